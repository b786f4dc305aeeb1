//! Archives that real tar made, archives that are damaged, archives that mean harm.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use proptest::prelude::*;
use tar::{Builder, Header};

use super::*;
use crate::fixtures::{SLICE_NS, count, extract, picture};
use crate::outcome::PhaseEnd;
use crate::spec::Content;
use crate::tree::{self, EntryKind, profile};

#[test]
fn an_archive_of_ours_is_the_tree_that_would_be_built() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let (entries, fill) = profile::by_name("os-image").unwrap().tree(0.002, 4);
    let (archive, control) = (home.path().join("a.tar"), Control::default());
    tree::archive(&entries, &archive, &fill, 4, &control).unwrap();
    let (built, ours) = (home.path().join("built"), home.path().join("ours"));
    tree::build(&entries, &built, &fill, 4, &control).unwrap();
    let outcome = extract_tar(&archive, &ours, AtEnd::Durable, SLICE_NS, &control).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    assert_eq!(count(&outcome, Op::Fsync), (1, 0));
    assert_eq!(count(&outcome, Op::Create).1, tree::total_bytes(&entries));
    let plain = |root: &Path| -> Vec<_> {
        let found = picture(root).into_iter().skip(1);
        found.map(|(path, p)| (path, p.0, p.5)).collect()
    };
    assert!(plain(&ours) == plain(&built));
    let times: Vec<i64> = entries
        .iter()
        .map(|entry| ours.join(&entry.path).symlink_metadata().unwrap().mtime())
        .collect();
    let expected: Vec<i64> = (0..entries.len() as i64)
        .map(|n| 1_262_304_000 + n)
        .collect();
    assert_eq!(times, expected);
    let again = tree::archive(&entries, &archive, &fill, 4, &control).unwrap_err();
    assert_eq!(again.errno, Errno::EXIST.raw_os_error());
    let again = extract_tar(&archive, &ours, AtEnd::Return, SLICE_NS, &control).unwrap_err();
    assert_eq!(
        (again.path, again.errno),
        (ours, Errno::EXIST.raw_os_error())
    );
}

/// One entry of an archive made by hand: its name and that of its target are taken as they are.
fn raw(kind: EntryType, name: &[u8], target: &[u8], data: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_size(data.len() as u64);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    let fields = header.as_old_mut();
    fields.name[..name.len()].copy_from_slice(name);
    fields.linkname[..target.len()].copy_from_slice(target);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn archive_of(home: &Path, entries: &[Vec<u8>]) -> PathBuf {
    let path = home.join("a.tar");
    fs::write(&path, [&entries.concat()[..], &[0; 1024]].concat()).unwrap();
    path
}

#[test]
fn what_leads_outside_is_refused_and_nothing_is_there() {
    use EntryType::{Directory, Link, Regular, Symlink};
    let file = |name: &[u8]| raw(Regular, name, b"", b"harm");
    let up = raw(Symlink, b"up", b"..", b"");
    for (entries, word) in [
        (vec![file(b"/tmp/outside")], "is absolute"),
        (vec![file(b"../outside")], "upwards"),
        (vec![file(b"a/../../outside")], "upwards"),
        (vec![file(b"..")], "upwards"),
        (vec![file(b".")], "destination itself"),
        (vec![up.clone(), file(b"up/outside")], "put something else"),
        (
            vec![up.clone(), raw(Directory, b"up/", b"", b"")],
            "put something else",
        ),
        (
            vec![up.clone(), raw(Directory, b"up/d/", b"", b"")],
            "put something else",
        ),
        (
            vec![up.clone(), raw(Link, b"a", b"up/outside", b"")],
            "has not unpacked",
        ),
        (vec![raw(Link, b"a", b"/etc/passwd", b"")], "absolute"),
        (vec![raw(Link, b"a", b"../secret", b"")], "upwards"),
        (
            vec![raw(EntryType::Char, b"null", b"", b"")],
            "neither file",
        ),
        (
            vec![raw(EntryType::Fifo, b"pipe", b"", b"")],
            "neither file",
        ),
        // A directory that was made cannot become a link afterwards.
        (
            vec![
                raw(Directory, b"up/", b"", b""),
                up.clone(),
                file(b"up/outside"),
            ],
            "directory",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("secret"), b"secret").unwrap();
        let archive = archive_of(home.path(), &entries);
        let outcome = extract(&archive, &home.path().join("to"));
        assert_eq!(outcome.ended, PhaseEnd::Failed, "{word}");
        let error = outcome.error.unwrap();
        let text = error.to_string();
        assert!(text.to_lowercase().contains(word), "{word}: {text}");
        if error.path == archive {
            assert_eq!(error.offset, Some((entries.len() as u64 - 1) * 512));
        }
        let beside = fs::read_dir(home.path()).unwrap().count();
        assert_eq!(beside, 3, "{word}: something came into being outside");
        let secret = home.path().join("secret").metadata().unwrap();
        assert_eq!((secret.nlink(), secret.len()), (1, 6));
    }
}

#[test]
fn what_comes_again_replaces_what_was_there_and_never_through_a_link() {
    use EntryType::{Directory, Regular, Symlink};
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("secret"), b"secret").unwrap();
    let entries = [
        raw(Regular, b"twice", b"", b"first"),
        raw(Regular, b"twice", b"", b"second"),
        raw(Symlink, b"link", b"../secret", b""),
        raw(Regular, b"link", b"", b"a file"),
        raw(Directory, b"parent/child/", b"", b""),
        raw(Directory, b"parent/child/", b"", b""),
        raw(Regular, b"old directory/", b"", b""),
    ];
    let to = home.path().join("to");
    let outcome = extract(&archive_of(home.path(), &entries), &to);
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    assert_eq!(fs::read(to.join("twice")).unwrap(), b"second");
    assert_eq!(fs::read(to.join("link")).unwrap(), b"a file");
    assert_eq!(fs::read(home.path().join("secret")).unwrap(), b"secret");
    assert!(to.join("old directory").is_dir());
    assert_eq!(count(&outcome, Op::Mkdir), (3, 0));
    assert_eq!(count(&outcome, Op::Create), (4, 17));
}

#[test]
fn what_is_no_archive_or_not_whole_is_said_with_its_place() {
    let home = tempfile::tempdir().unwrap();
    let file = raw(EntryType::Regular, b"file", b"", &[1; 3000]);
    let (whole, name) = ([&file[..], &[0; 1024]].concat(), home.path().join("b.tar"));
    let mut packed = vec![0x1f, 0x8b, 8, 0];
    packed.resize(2000, 9);
    for (number, (bytes, word, offset)) in [
        (packed, "compressed", 0),
        (Vec::new(), "no end mark", 0),
        (whole[..300].to_vec(), "damaged", 0),
        (
            whole[..2000].to_vec(),
            "1488 of 3000 bytes are there within entry \"file\"",
            2000,
        ),
        (whole[..3584].to_vec(), "no end mark", 3584),
        (whole[..4096].to_vec(), "no end mark", 4096),
        (
            [&file[..], &[0; 512], &file[..]].concat(),
            "no end mark",
            4608,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(&name, bytes).unwrap();
        let outcome = extract(&name, &home.path().join(format!("to {number}")));
        let error = outcome.error.unwrap();
        assert_eq!(error.path, name);
        assert!(error.to_string().contains(word), "{number}: {error}");
        assert_eq!(error.offset, Some(offset), "{number}: {error}");
    }
}

#[test]
fn a_description_without_end_is_not_read_to_its_end() {
    let home = tempfile::tempdir().unwrap();
    let long = raw(
        EntryType::GNULongName,
        b"././@LongLink",
        b"",
        &vec![b'n'; 3 << 20],
    );
    let mut long = long;
    let mut gnu = Header::new_gnu();
    gnu.set_entry_type(EntryType::GNULongName);
    gnu.set_size(3 << 20);
    gnu.set_mode(0);
    gnu.set_uid(0);
    gnu.set_gid(0);
    gnu.set_mtime(0);
    gnu.set_cksum();
    long[..512].copy_from_slice(gnu.as_bytes());
    let archive = archive_of(
        home.path(),
        &[long, raw(EntryType::Regular, b"f", b"", b"")],
    );
    let error = extract(&archive, &home.path().join("to")).error.unwrap();
    assert!(error.to_string().contains("more than 1 MiB"), "{error}");
}

#[test]
fn stopping_ends_in_the_middle() {
    let home = tempfile::tempdir().unwrap();
    let archive = archive_of(home.path(), &[raw(EntryType::Regular, b"f", b"", b"1234")]);
    let (to, control) = (home.path().join("to"), Control::default());
    control
        .stop
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let outcome = extract_tar(&archive, &to, AtEnd::Durable, SLICE_NS, &control).unwrap();
    assert_eq!(
        (outcome.ended, fs::read_dir(to).unwrap().count()),
        (PhaseEnd::Stopped, 0)
    );
    let entries = [tree::TreeEntry {
        path: "large".into(),
        kind: EntryKind::File { bytes: 1 << 30 },
        mode: 0o644,
    }];
    let fill = Content::Random.into();
    let ended = tree::archive(&entries, &home.path().join("b.tar"), &fill, 0, &control).unwrap();
    assert_eq!(ended, PhaseEnd::Stopped);
}

#[test]
fn times_are_read_to_the_nanosecond_before_1970_too() {
    let time = |text| seconds(text).map(|time| (time.tv_sec, time.tv_nsec));
    assert_eq!(time("12.5"), Some((12, 500_000_000)));
    assert_eq!(time("12"), Some((12, 0)));
    assert_eq!(time("12.1234567891"), Some((12, 123_456_789)));
    assert_eq!(time("-3.25"), Some((-4, 750_000_000)));
    assert_eq!(
        (time("1.-5"), time(""), time("x"), time("1.5x")),
        (None, None, None, None)
    );
}

/// A small archive of every kind of entry, by the library and by hand.
fn small() -> &'static [u8] {
    static SMALL: OnceLock<Vec<u8>> = OnceLock::new();
    SMALL.get_or_init(|| {
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1);
        header.set_size(700);
        builder
            .append_data(&mut header, "n".repeat(120), &[5; 700][..])
            .unwrap();
        let pax = [
            ("mtime", &b"12.5"[..]),
            ("path", &b"from the extension"[..]),
        ];
        builder.append_pax_extensions(pax).unwrap();
        header.set_size(3);
        builder
            .append_data(&mut header, "other", &b"abc"[..])
            .unwrap();
        let mut bytes = builder.into_inner().unwrap();
        bytes.truncate(bytes.len() - 1024);
        for (kind, name, target) in [
            (EntryType::Directory, &b"d/"[..], &b""[..]),
            (EntryType::Symlink, b"d/s", b"../other"),
            (EntryType::Link, b"d/l", b"from the extension"),
        ] {
            bytes.extend(raw(kind, name, target, b""));
        }
        bytes.extend(raw(EntryType::Regular, b"d/s", b"", &[6; 11_000]));
        bytes.extend([0; 1024]);
        bytes
    })
}

/// Everything of a directory but what the test put there.
fn strangers(home: &Path) -> Vec<std::ffi::OsString> {
    let names = fs::read_dir(home).unwrap().map(|e| e.unwrap().file_name());
    names
        .filter(|name| name != "a.tar" && name != "to" && name != "secret")
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Damage is an error with its place, or changes what is inside: never what is outside. An
    /// archive cut short is always an error.
    #[test]
    fn damage_stays_inside(
        cut in prop::option::of(any::<prop::sample::Index>()),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 0..4),
        mend in any::<bool>(),
    ) {
        let home = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::write(home.path().join("secret"), b"secret").unwrap();
        let mut bytes = small().to_vec();
        for (at, bits) in &flips {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            if mend {
                // With a valid checksum, as an attacker would.
                let begin = at / 512 * 512;
                let mut header = Header::new_old();
                header.as_mut_bytes().copy_from_slice(&bytes[begin..begin + 512]);
                if &header.as_bytes()[257..262] == b"ustar" {
                    header.set_cksum();
                    bytes[begin..begin + 512].copy_from_slice(header.as_bytes());
                }
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(home.path().join("a.tar"), &bytes).unwrap();
        let outcome = extract(&home.path().join("a.tar"), &home.path().join("to"));
        prop_assert!(strangers(home.path()).is_empty());
        prop_assert_eq!(fs::read(home.path().join("secret")).unwrap(), b"secret");
        if flips.is_empty() {
            prop_assert_eq!(outcome.ended == PhaseEnd::Complete, cut.is_none());
        }
        if let Some(error) = outcome.error {
            prop_assert!(error.path.starts_with(home.path()));
            prop_assert!(error.offset.is_some() || error.path != home.path().join("a.tar"));
        }
    }
}
