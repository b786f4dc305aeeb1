//! What may be on a disk, or use it, one case each: no disk that holds data or is in use is written
//! over without permission.
//!
//! Where the tool that makes a format is not needed, its magic bytes are written where the kernel's
//! or libblkid's sources look for them.

use super::disk_users::*;
use super::guarded::{Disk, SIZE, disk};
use super::{Ended, NamedCase};
use stackrace_foundation::foundation::guard;
use stackrace_machine::host::Host;
use std::any::Any;
use std::io::Read as _;

/// Things that are brought to a disk.
enum Case {
    /// Bytes at an offset from the start.
    Bytes(u64, &'static [u8]),
    /// Bytes at a distance from the end.
    AtEnd(u64, &'static [u8]),
    /// The work of a command; then zeros over so many bytes from the start.
    Made(&'static [&'static str], &'static str, u64),
    /// The work of a function.
    Done(&'static [&'static str], fn(&Disk)),
    /// A user of the disk, as long as what is returned lives, and the words that tell of it.
    Used(
        &'static [&'static str],
        &'static str,
        fn(&Disk) -> Box<dyn Any>,
    ),
}

use Case::{AtEnd, Bytes, Done, Made, Used};

/// A name, and what is brought to the disk.
const CASES: &[(&str, Case)] = &[
    ("ext2", Made(&["mkfs.ext2"], "mkfs.ext2 -q DEVICE", 0)),
    ("ext3", Made(&["mkfs.ext3"], "mkfs.ext3 -q DEVICE", 0)),
    ("ext4", Made(&["mkfs.ext4"], "mkfs.ext4 -q DEVICE", 0)),
    ("XFS", Made(&["mkfs.xfs"], "mkfs.xfs -q DEVICE", 0)),
    ("Btrfs", Made(&["mkfs.btrfs"], "mkfs.btrfs -q DEVICE", 0)),
    ("F2FS", Made(&["mkfs.f2fs"], "mkfs.f2fs -q DEVICE", 0)),
    ("NILFS2", Made(&["mkfs.nilfs2"], "mkfs.nilfs2 -q DEVICE", 0)),
    ("MINIX", Made(&["mkfs.minix"], "mkfs.minix DEVICE", 0)),
    ("swap space", Made(&["mkswap"], "mkswap --quiet DEVICE", 0)),
    (
        "a physical volume of LVM",
        Made(&["pvcreate"], "pvcreate --yes --quiet DEVICE", 0),
    ),
    (
        "only the second superblocks of ext4",
        Made(&["mkfs.ext4"], "mkfs.ext4 -q DEVICE", 8 << 20),
    ),
    (
        "only the second superblocks of ext2 with small blocks",
        Made(&["mkfs.ext2"], "mkfs.ext2 -q -b 1024 DEVICE", 4096),
    ),
    (
        "only the second superblocks of XFS",
        Made(&["mkfs.xfs"], "mkfs.xfs -q DEVICE", 8 << 20),
    ),
    (
        "only the second superblock of Btrfs",
        Made(&["mkfs.btrfs"], "mkfs.btrfs -q DEVICE", 1 << 20),
    ),
    (
        "only the second superblock of F2FS",
        Made(&["mkfs.f2fs"], "mkfs.f2fs -q DEVICE", 4096),
    ),
    (
        "only the second superblock of NILFS2",
        Made(&["mkfs.nilfs2"], "mkfs.nilfs2 -q DEVICE", 4096),
    ),
    ("a partition table of DOS", Bytes(510, b"\x55\xaa")),
    ("a partition table (GPT)", Bytes(512, b"EFI PART\0\0\x01\0")),
    (
        "only the second partition table (GPT)",
        AtEnd(512, b"EFI PART\0\0\x01\0"),
    ),
    ("a label of BSD", Bytes(512, b"\x57\x45\x56\x82")),
    ("a label of Sun", Bytes(508, b"\xda\xbe\x12\x34")),
    ("a label of SGI", Bytes(0, b"\x0b\xe5\xa9\x41")),
    ("a partition map of Apple", Bytes(512, b"PM\0\0\0\0\0\x01")),
    ("LUKS 1", Bytes(0, b"LUKS\xba\xbe\0\x01")),
    ("LUKS 2", Bytes(0, b"LUKS\xba\xbe\0\x02")),
    (
        "only the second header of LUKS 2",
        Bytes(0x4000, b"SKUL\xba\xbe\0\x02"),
    ),
    ("BitLocker", Bytes(0, b"\xeb\x58\x90-FVE-FS-")),
    ("an array, metadata 1.1", Bytes(0, b"\xfc\x4e\x2b\xa9\x01")),
    (
        "an array, metadata 1.2",
        Bytes(4096, b"\xfc\x4e\x2b\xa9\x01"),
    ),
    (
        "an array, metadata 1.0",
        AtEnd(8192, b"\xfc\x4e\x2b\xa9\x01"),
    ),
    (
        "an array, metadata 0.90",
        AtEnd(65536, b"\xfc\x4e\x2b\xa9\0\0\0\0\x5a"),
    ),
    (
        "an array of Intel's firmware",
        AtEnd(1024, b"Intel Raid ISM Cfg Sig. 1.3.00"),
    ),
    (
        "an array of a controller (DDF)",
        AtEnd(512, b"\xde\x11\xde\x11"),
    ),
    (
        "a label of ZFS",
        Bytes(128 << 10, b"\x0c\xb1\xba\0\0\0\0\0"),
    ),
    (
        "only the last label of ZFS",
        AtEnd(128 << 10, b"\x0c\xb1\xba\0\0\0\0\0"),
    ),
    (
        "bcache",
        Bytes(
            4096 + 24,
            b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        ),
    ),
    (
        "bcachefs",
        Bytes(
            4096 + 24,
            b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        ),
    ),
    ("metadata of DRBD", AtEnd(4096, b"\x83\x74\x02\x6d")),
    ("BlueStore", Bytes(0, b"bluestore block device\n")),
    ("NTFS", Bytes(3, b"NTFS    ")),
    ("FAT", Bytes(54, b"FAT16   ")),
    ("exFAT", Bytes(3, b"EXFAT   ")),
    ("ISO 9660", Bytes(32769, b"CD001\x01")),
    ("UDF", Bytes(34817, b"NSR02")),
    ("SquashFS", Bytes(0, b"hsqs")),
    ("HFS+", Bytes(1024, b"H+\0\x04")),
    ("APFS", Bytes(32, b"NXSB")),
    ("ReiserFS", Bytes(65536 + 52, b"ReIsEr2Fs")),
    ("JFS", Bytes(32768, b"JFS1\x01")),
    ("GFS2", Bytes(65536, b"\x01\x16\x19\x70\0\0\0\x01")),
    ("OCFS2", Bytes(8192, b"OCFSV2")),
    ("VMFS", Bytes(1 << 20, b"\x0d\xd0\x01\xc0")),
    ("a tar archive", Done(&["tar"], tar_at_start)),
    (
        "a tar archive in the middle",
        Done(&["tar"], tar_in_the_middle),
    ),
    ("a database of SQLite", Bytes(0, b"SQLite format 3\0\x10\0")),
    (
        "a database of SQLite in the middle",
        Bytes(100 << 20, b"SQLite format 3\0\x10\0"),
    ),
    (
        "a page of PostgreSQL",
        Bytes(
            8192,
            b"\0\0\0\0\x28\x7b\x4e\x01\0\0\0\0\x20\0\xf0\x1f\0\x20\x04\x20",
        ),
    ),
    (
        "a page of InnoDB",
        Bytes(
            16384,
            b"\x9a\x3c\x11\x52\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x1e\x45\xbf",
        ),
    ),
    ("encrypted data without a header", Done(&[], noise)),
    (
        "ext4 behind a gap of 1 MiB",
        Done(&["losetup", "mkfs.ext4"], |disk| shifted(disk, 1 << 20)),
    ),
    (
        "ext4 behind a gap of 37 MiB and a sector",
        Done(&["losetup", "mkfs.ext4"], |disk| {
            shifted(disk, (37 << 20) + 512);
        }),
    ),
    ("one byte at the start", Bytes(0, b"x")),
    ("one byte in the last sector", AtEnd(1, b"x")),
    ("one byte of the first MiB", Bytes(777_777, b"x")),
    (
        "what was left, and written to since",
        Done(&[], |disk| {
            left(disk);
            disk.write(200 << 20, b"x");
        }),
    ),
    (
        "what was left on another disk",
        Done(&[], |disk| {
            left(disk);
            disk.write(SIZE - 4096, b"x");
        }),
    ),
    (
        "a mounted file system",
        Used(&["mkfs.ext4", "mount"], " is mounted at ", mounted),
    ),
    (
        "a mounted file system of another number",
        Used(&["mkfs.btrfs", "mount"], " is mounted at ", mounted_btrfs),
    ),
    (
        "a file system mounted by another path",
        Used(
            &["mkfs.ext4", "mknod", "mount"],
            " is mounted at ",
            mounted_by_another_path,
        ),
    ),
    (
        "a file system mounted where only others see it",
        Used(
            &["mkfs.ext4", "unshare"],
            "with exclusive right",
            mounted_elsewhere,
        ),
    ),
    (
        "a mounted partition",
        Used(
            &["addpart", "delpart", "mkfs.ext4", "mount"],
            "p1 is mounted at ",
            mounted_partition,
        ),
    ),
    (
        "a process that reads a partition",
        Used(&["addpart", "delpart"], "has it open", opened_partition),
    ),
    (
        "a loop device on it",
        Used(&["losetup"], "lies on it, from byte 0", |disk| {
            looped(disk, 0)
        }),
    ),
    (
        "a loop device on it behind a gap",
        Used(&["losetup"], "lies on it, from byte 1048576", |disk| {
            looped(disk, 1 << 20)
        }),
    ),
    (
        "a mounted loop device on it behind a gap",
        Used(
            &["losetup", "mkfs.ext4", "mount"],
            "lies on it, from byte 1048576",
            looped_and_mounted,
        ),
    ),
    (
        "a loop device on the same file",
        Used(&["losetup"], "lies on it, from byte 0", |disk| {
            Box::new(Loop::on(disk, &disk.base.path().join("file"), 0))
        }),
    ),
    (
        "a process that may write to it",
        Used(&[], "has it open", |disk| {
            Box::new(opened(&disk.device, "<>"))
        }),
    ),
    (
        "a process that reads it",
        Used(&[], "has it open", |disk| {
            Box::new(opened(&disk.device, "<"))
        }),
    ),
    (
        "a process that has it open by another path",
        Used(&["mknod"], "has it open", opened_by_another_path),
    ),
    (
        "a holder of the exclusive right",
        Used(&[], "with exclusive right", held),
    ),
    (
        "swap space in use",
        Used(&["mkswap", "swapon"], "holds swapped memory", swapping),
    ),
    (
        "a mapped device",
        Used(&["dmsetup"], " is held by ", mapped),
    ),
    (
        "a disk that may only be read",
        Used(&["blockdev"], "it is read-only", only_read),
    ),
];

/// The cases, for the list of tests.
pub fn cases() -> impl Iterator<Item = NamedCase> {
    CASES.iter().map(|(name, case)| {
        let test: Box<dyn Fn() -> Ended + Send> = Box::new(move || is_guarded(case));
        let kind = match case {
            Used(..) => "used",
            _ => "carried",
        };
        (format!("guard::{kind}::{name}"), test)
    })
}

/// Checks that the disk is refused without permission; with permission what it carries is wiped,
/// what uses it never touched.
fn is_guarded(case: &'static Case) -> Ended {
    let tools = match case {
        Bytes(..) | AtEnd(..) => &[],
        Made(tools, ..) | Done(tools, _) | Used(tools, ..) => *tools,
    };
    let disk = disk(tools)?;
    guard::blank(&disk.host, &disk.identity()).unwrap();
    if let Used(_, words, make) = case {
        return is_untouched(&disk, words, *make);
    }
    match case {
        Bytes(at, bytes) => disk.write(*at, bytes),
        AtEnd(before, bytes) => disk.write(SIZE - before, bytes),
        Made(_, command, zeros) => {
            disk.run(command);
            disk.write(0, &vec![0; usize::try_from(*zeros).unwrap()]);
        }
        Done(_, make) => make(&disk),
        Used(..) => {}
    }
    let before = disk.digest();
    let error = guard::clear(&disk.host, &disk.identity(), false).unwrap_err();
    assert!(error.to_string().contains("carries"), "{error}");
    assert!(error.next().ends_with("--wipe loop-of-test"));
    assert_eq!(disk.digest(), before, "it was only looked at");
    guard::clear(&disk.host, &disk.identity(), true).unwrap();
    guard::blank(&disk.host, &disk.identity()).unwrap();
    Ok(())
}

/// Several checks may see one use. The words tell that the one meant saw it.
#[expect(clippy::disallowed_methods, reason = "other tests need a moment")]
fn is_untouched(disk: &Disk, words: &str, make: fn(&Disk) -> Box<dyn Any>) -> Ended {
    let user = make(disk);
    if let Some(missing) = user.downcast_ref::<String>() {
        return Err(missing.clone());
    }
    let digest = || match user.is::<Swap>() {
        // The kernel swaps to it at times of its own, but never to its first page, the signature's.
        true => disk.digest_of_first(4096),
        false => disk.digest(),
    };
    let before = digest();
    for wipe in [false, true] {
        let error = guard::clear(&disk.host, &disk.identity(), wipe).unwrap_err();
        assert!(error.to_string().contains("is in use"), "{error}");
    }
    // A process that another test has just begun has copies of our open files for a moment, and
    // exclusive use is looked for only where no open file is found.
    let uses = || guard::inspect(&disk.host, &disk.identity()).unwrap().uses;
    let seen = (0..100).any(|_| {
        let seen = uses().iter().any(|usage| usage.contains(words));
        if !seen {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        seen
    });
    assert!(seen, "{words}: {:?}", uses());
    assert_eq!(digest(), before);
    Ok(())
}

fn tar_at_start(disk: &Disk) {
    disk.run("tar --create --file DEVICE --directory /etc hostname");
}

fn tar_in_the_middle(disk: &Disk) {
    let file = disk.base.path().join("archive");
    disk.run(&format!(
        "tar --create --file {} --directory /etc hostname passwd",
        file.display()
    ));
    disk.write(64 << 20, &std::fs::read(file).unwrap());
}

fn noise(disk: &Disk) {
    let mut bytes = vec![0; 8 << 20];
    let source = std::fs::File::open("/dev/urandom").unwrap();
    source.take(8 << 20).read_exact(&mut bytes).unwrap();
    for at in (0..SIZE).step_by(8 << 20) {
        disk.write(at, &bytes);
    }
}

fn left(disk: &Disk) {
    let fixed = disk.host.fix_device(&disk.device).unwrap();
    disk.host.leave_device(&fixed).unwrap();
    guard::blank(&disk.host, &disk.identity()).unwrap();
}

/// A file system that does not begin where the disk begins.
fn shifted(disk: &Disk, offset: u64) {
    let device = Loop::on(disk, &disk.device, offset);
    let path = device.path.to_string_lossy().into_owned();
    disk.run(&format!("mkfs.ext4 -q {path}"));
}
