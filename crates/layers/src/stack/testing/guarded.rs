//! The guard of real disks, on loop devices that carry, for real, what people's disks carry. A loop
//! device has no id of its own: links in a directory of the test stand for those udev makes.

use super::{Ended, settings, site};
use crate::stack::devices::in_directory;
use crate::stack::undo_all;
use crate::stack::{Danger, Layer, Site, Stack};
use stackrace_foundation::foundation::Inspection;
use stackrace_foundation::foundation::{Identity, guard};
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::{Host, Needs, argv};
use stackrace_machine::journal::Journal;
use std::fmt::Write as _;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const SIZE: u64 = 320 << 20;

/// A loop device under an id.
pub(super) struct Disk {
    pub(super) base: tempfile::TempDir,
    /// Directory that stands for the `/dev/disk/by-id` of other disks.
    pub(super) ids: tempfile::TempDir,
    pub(super) host: LocalHost,
    pub(super) device: PathBuf,
}

/// A disk that these tools may be used on, or what is missing for it.
pub(super) fn disk(tools: &'static [&'static str]) -> Result<Disk, String> {
    let host = LocalHost::new(Arc::new(|_| {}));
    let needs = Needs {
        drivers: &[crate::stack::loops::DRIVER],
        ..Needs::as_root(tools, &[])
    };
    if let Some(missing) = host.missing(&needs).into_iter().next() {
        return Err(missing.to_string());
    }
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("file");
    std::fs::File::create(&file).unwrap().set_len(SIZE).unwrap();
    let attach = ["losetup", "--find", "--show", &file.to_string_lossy()].map(String::from);
    let device = PathBuf::from(host.must(&argv(attach)).unwrap().stdout.trim());
    // The kernel keeps partitions of a loop device that a killed test told it of.
    let name = device.file_name().unwrap().to_string_lossy().into_owned();
    if host.exists(
        &Path::new("/sys/block")
            .join(&name)
            .join(format!("{name}p1")),
    ) {
        let forget = ["partx", "--delete", &device.to_string_lossy()].map(String::from);
        host.must(&argv(forget)).unwrap();
    }
    // A journal undoes nothing on a device whose id does not lie below /dev.
    let ids = tempfile::tempdir_in("/dev/shm").unwrap();
    symlink(&device, ids.path().join("loop-of-test")).unwrap();
    Ok(Disk {
        base,
        ids,
        host,
        device,
    })
}

impl Drop for Disk {
    fn drop(&mut self) {
        let detach = ["losetup", "--detach", &self.device.to_string_lossy()].map(String::from);
        let detached = self.host.must(&argv(detach));
        assert!(detached.is_ok() || std::thread::panicking());
    }
}

impl Disk {
    pub(super) fn identity(&self) -> Identity {
        Identity {
            directory: self.ids.path().to_path_buf(),
            id: "loop-of-test".to_string(),
            size: SIZE,
            model: guard::NO_MODEL.to_string(),
        }
    }

    pub(super) fn layer(&self) -> Box<dyn Layer> {
        let line = format!(
            "devices = {{ ids = \"loop-of-test\", size = \"{SIZE} B\", model = \"none\" }}"
        );
        Box::new(in_directory(&settings(&line), self.ids.path()).unwrap())
    }

    /// Runs a command whose word `DEVICE` stands for the device.
    pub(super) fn run(&self, command: &str) {
        let device = self.device.to_string_lossy();
        let words = command
            .split(' ')
            .map(|word| word.replace("DEVICE", &device));
        self.host.must(&argv(words)).unwrap();
    }

    /// Writes bytes to it.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) {
        let mut device = std::fs::OpenOptions::new()
            .write(true)
            .open(&self.device)
            .unwrap();
        device.seek(SeekFrom::Start(at)).unwrap();
        device.write_all(bytes).unwrap();
        device.sync_all().unwrap();
    }

    /// Digest of all that is on it. Holes of the file are zeros, and are not read.
    pub(super) fn digest(&self) -> String {
        self.digest_of_first(u64::MAX)
    }

    /// Digest of so many of its first bytes.
    pub(super) fn digest_of_first(&self, bytes: u64) -> String {
        let mut hash = blake3::Hasher::new();
        let file = std::fs::File::open(self.base.path().join("file")).unwrap();
        let mut block = vec![0; 4096];
        let mut at = 0;
        while let Ok((data, hole)) = stackrace_system::next_data(&file, at) {
            for start in (data..hole.min(bytes)).step_by(block.len()) {
                file.read_exact_at(&mut block, start).unwrap();
                // Zeros that were written and zeros that never were are the same.
                if block.iter().any(|byte| *byte != 0) {
                    hash.update(&start.to_le_bytes());
                    hash.update(&block);
                }
            }
            at = hole;
        }
        hash.finalize().to_hex().to_string()
    }

    /// Checks that one of the tools tells of it in these words.
    fn assert_carries(&self, what: &str) -> guard::Found {
        let found = guard::inspect(&self.host, &self.identity()).unwrap();
        assert!(
            found.carries.iter().any(|carried| carried.contains(what)),
            "{what}: {:?}",
            found.carries
        );
        found
    }

    /// Checks what is on it: nothing may be written while it carries something, then it is wiped by
    /// permission, and blank.
    fn assert_guarded(&self, what: &str) {
        let asked = self.identity();
        let found = self.assert_carries(what);
        assert_eq!(found.uses, [""; 0], "{what}");
        let error = guard::clear(&self.host, &asked, false).unwrap_err();
        assert!(error.to_string().contains("carries"), "{what}: {error}");
        assert!(error.next().ends_with("--wipe loop-of-test"));
        assert_eq!(guard::inspect(&self.host, &asked).unwrap(), found, "{what}");
        guard::clear(&self.host, &asked, true).unwrap();
        guard::blank(&self.host, &asked).unwrap();
    }
}

/// The result of this command is recognised as this.
pub(super) fn recognised(tool: &'static [&'static str], command: &str, what: &str) -> Ended {
    let disk = disk(tool)?;
    disk.run(command);
    disk.assert_guarded(what);
    Ok(())
}

pub(super) fn a_physical_volume_alone_and_in_a_group() -> Ended {
    let disk = disk(&["pvcreate", "vgcreate", "pvs"])?;
    disk.run("pvcreate --yes DEVICE");
    disk.assert_guarded("LVM2_member");
    disk.run("pvcreate --yes DEVICE");
    let group = format!("of-test-{}", disk.host.nonce().unwrap());
    disk.run(&format!("vgcreate {group} DEVICE"));
    disk.assert_guarded(&format!("a physical volume of the group {group}"));
    Ok(())
}

/// wipefs names both; that it cannot tell which one counts, only blkid says.
pub(super) fn two_file_systems_at_once() -> Ended {
    let disk = disk(&["mkfs.ext4"])?;
    disk.run("mkfs.ext4 -q DEVICE");
    disk.write(8192, b"OCFSV2");
    disk.assert_carries("what blkid says: ");
    disk.assert_guarded("ext4");
    Ok(())
}

pub(super) fn an_encrypted_device() -> Ended {
    let disk = disk(&["cryptsetup"])?;
    let key = disk.base.path().join("key");
    std::fs::write(&key, b"0123456789abcdef").unwrap();
    let quick = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000 --batch-mode";
    disk.run(&format!(
        "cryptsetup luksFormat {quick} --key-file {} DEVICE",
        key.display()
    ));
    disk.assert_guarded("crypto_LUKS");
    Ok(())
}

/// The superblock of format 1.2 as mdadm's manual and `linux/raid/md_p.h` describe it, with its
/// checksum: making one with mdadm needs a kernel with md.
pub(super) fn a_member_of_an_array() -> Ended {
    let disk = disk(&["mdadm"])?;
    let mut block = vec![0_u8; 256 + 2 * 384];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &0xa92b_4efc_u32.to_le_bytes());
    put(4, &1_u32.to_le_bytes());
    put(16, &[0x11; 16]);
    put(32, b"vm:photos");
    put(72, &1_u32.to_le_bytes());
    put(80, &(SIZE / 512 - 2048).to_le_bytes());
    put(92, &2_u32.to_le_bytes());
    put(128, &2048_u64.to_le_bytes());
    put(136, &(SIZE / 512 - 2048).to_le_bytes());
    put(144, &8_u64.to_le_bytes());
    put(160, &[0; 4]);
    put(168, &[0x22; 16]);
    put(208, &u64::MAX.to_le_bytes());
    put(220, &384_u32.to_le_bytes());
    put(256, &[0, 0, 1, 0]);
    for role in 2..384 {
        put(256 + 2 * role, &0xffff_u16.to_le_bytes());
    }
    let words = block
        .chunks(4)
        .map(|word| u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
    let sum: u64 = words.sum();
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    block[216..220].copy_from_slice(&u32::try_from(sum & 0xffff_ffff).unwrap().to_le_bytes());
    disk.write(4096, &block);
    disk.assert_carries("a member of an array (mdadm)");
    disk.assert_guarded("linux_raid_member");
    Ok(())
}

pub(super) fn partition_tables() -> Ended {
    for (label, what) in [("dos", "dos"), ("gpt", "gpt")] {
        let disk = disk(&["sfdisk"])?;
        let script = disk.base.path().join("script");
        std::fs::write(&script, format!("label: {label}\n,64M\n,64M\n")).unwrap();
        let mut command = String::from("sfdisk --quiet --no-reread DEVICE < ");
        write!(command, "{}", script.display()).unwrap();
        let command = command.replace("DEVICE", &disk.device.to_string_lossy());
        disk.host.must(&argv(["sh", "-c", &command])).unwrap();
        disk.assert_guarded(what);
    }
    Ok(())
}

pub(super) fn a_pool() -> Ended {
    let disk = disk(&["zpool", "zdb"])?;
    super::pools::answers()?;
    let name = format!("oftest{}", disk.host.nonce().unwrap());
    let path = disk.device.to_string_lossy();
    let make = [
        "zpool",
        "create",
        "-o",
        "cachefile=none",
        "-O",
        "mountpoint=none",
        &name,
        &path,
    ];
    disk.host.must(&argv(make)).unwrap();
    let found = guard::inspect(&disk.host, &disk.identity()).unwrap();
    let objections = guard::objections(&disk.identity(), &found, true);
    disk.host.must(&argv(["zpool", "export", &name])).unwrap();
    assert!(objections[0].0.contains("in use"), "{objections:?}");
    disk.assert_guarded(&format!("a label of the pool {name}"));
    Ok(())
}

/// A disk in use is never wiped, whatever is allowed.
pub(super) fn what_is_in_use_is_refused_with_permission_too() -> Ended {
    let disk = disk(&["mkfs.ext4", "mount", "mkswap", "swapon", "swapoff"])?;
    let asked = disk.identity();
    let refused = || {
        let error = guard::clear(&disk.host, &asked, true).unwrap_err();
        error.to_string()
    };
    disk.run("mkfs.ext4 -q DEVICE");
    let point = disk.base.path().join("mnt");
    std::fs::create_dir(&point).unwrap();
    disk.run(&format!("mount DEVICE {}", point.display()));
    std::fs::write(point.join("photo"), b"x").unwrap();
    let text = refused();
    assert!(
        text.contains("is in use: loop") && text.contains("is mounted at"),
        "{text}"
    );
    assert!(point.join("photo").exists());
    disk.run(&format!("umount {}", point.display()));
    disk.run("wipefs --all --quiet DEVICE");
    disk.run("mkswap --quiet DEVICE");
    // This kernel may not swap to it; then there is nothing to see.
    if disk
        .host
        .must(&argv(["swapon", &disk.device.to_string_lossy()]))
        .is_ok()
    {
        let text = refused();
        disk.run("swapoff DEVICE");
        assert!(text.contains("holds swapped memory"), "{text}");
    }
    Ok(())
}

pub(super) fn another_disk_than_the_one_named_is_refused() -> Ended {
    let disk = disk(&["wipefs"])?;
    let refused = |asked: &Identity| {
        let error = guard::clear(&disk.host, asked, true).unwrap_err();
        (error.to_string(), error.next())
    };
    let smaller = Identity {
        size: SIZE - 512,
        ..disk.identity()
    };
    let (text, next) = refused(&smaller);
    assert!(text.contains(&format!("has {SIZE} bytes")), "{text}");
    assert!(next.contains(&format!("size = \"{SIZE} B\"")), "{next}");
    let other = Identity {
        model: "X".to_string(),
        ..disk.identity()
    };
    assert!(refused(&other).0.contains("of the model \"none\""));
    let none = Identity {
        id: "of-no-disk".to_string(),
        ..disk.identity()
    };
    assert!(refused(&none).0.contains("there is no device"));
    // By the kernel's name it is refused in the study, with the id it has.
    let line = format!(
        "devices = {{ ids = \"{}\", size = \"1 TB\", model = \"X\" }}",
        disk.device.display()
    );
    let refusal = in_directory(&settings(&line), disk.ids.path());
    let refusal = refusal.err().unwrap();
    assert_eq!(refusal.help, "now it is: loop-of-test");
    Ok(())
}

/// Two rounds on the same disk, and a crash between: it is blank again each time.
pub(super) fn a_disk_is_blank_again_when_its_stack_is_lowered() -> Ended {
    for upper in ["ext4 = {}", "xfs = {}", "btrfs = {}"] {
        let disk = disk(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mount"])?;
        let scratch = disk.base.path().join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let path = disk.base.path().join("journal.jsonl");
        let journal = Journal::create(&path).unwrap();
        let stack = Stack::new(vec![disk.layer(), super::layer(upper)]).unwrap();
        for _ in 0..2 {
            let site = site(&disk.host, &journal, &scratch);
            let standing = stack.set_up(&site).unwrap();
            std::fs::write(standing.directory().join("data"), b"x").unwrap();
            standing.tear_down(&site).unwrap();
            guard::blank(&disk.host, &disk.identity()).unwrap();
        }
        let standing = stack.set_up(&site(&disk.host, &journal, &scratch)).unwrap();
        assert!(!standing.directory().as_os_str().is_empty());
        drop((standing, journal));
        let journal = Journal::open(&path).unwrap();
        assert_eq!(
            undo_all(&disk.host, &journal).unwrap().failed,
            [],
            "{upper}"
        );
        guard::blank(&disk.host, &disk.identity()).unwrap();
    }
    Ok(())
}

/// Made again by its owner after a crash, the file system stays.
pub(super) fn what_was_made_by_others_since_is_left_alone() -> Ended {
    let disk = disk(&["mkfs.ext4", "mount"])?;
    let scratch = disk.base.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let journal = Journal::nowhere();
    let stack = Stack::new(vec![disk.layer(), super::layer("ext4 = {}")]).unwrap();
    let site: Site<'_> = site(&disk.host, &journal, &scratch);
    let standing = stack.set_up(&site).unwrap();
    let point = standing.directory().parent().unwrap().to_path_buf();
    disk.run(&format!("umount {}", point.display()));
    disk.run("mkfs.ext4 -q -F -L photos DEVICE");
    let error = standing.tear_down(&site).unwrap_err();
    assert!(
        error.to_string().contains("does not bear our mark"),
        "{error}"
    );
    let dangers = stack.dangers(&Inspection::new(&disk.host, &[]));
    assert!(matches!(&dangers[1], Danger::Lost(what) if what.contains("photos")));
    // In the order of the journal nothing older of the stack was undone: do it by hand.
    disk.run("wipefs --all --quiet DEVICE");
    assert_eq!(undo_all(&disk.host, &journal).unwrap().failed, []);
    assert!(!Path::new(&point).exists());
    Ok(())
}
