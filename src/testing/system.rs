//! Output of the kernel and of tools, command lines for them, and the journal.

use stackrace_base::event;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::input::Input;
use super::others::beside_others;
use stackrace_afp::afp::protocol;
use stackrace_base::unit::is_no_name;
use stackrace_machine::host::{MountInfo, mountinfo};
use stackrace_machine::journal::{Journal, JournalError};
use stackrace_machine::observe::{self, Snapshot};
use stackrace_remote::agent::frame::{self, FrameKind};
use stackrace_remote::agent::polled::PolledReader;
use stackrace_remote::agent::{router, shell};

/// Most entries of a journal that are also undone.
const UNDONE_MAX: usize = 32;

/// An answer of an AFP server is understood or refused, and no name in it leads out of the volume.
pub fn afp(data: &[u8]) {
    protocol::check(data);
}

/// A journal: it is understood or refused with its line, and undoing it (on a machine that is only
/// imagined, with things of other users on it) touches nothing that does not carry its mark.
pub fn journal(data: &[u8]) {
    let path = Path::new("/store/runs/fuzzed/journal.jsonl");
    let lines = data.split(|&byte| byte == b'\n').count();
    let journal = match Journal::remembered(data, path) {
        Ok(journal) => journal,
        Err(JournalError::Broken { line, .. }) => {
            assert!((1..=lines).contains(&line));
            return;
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.next().is_empty());
            return;
        }
    };
    let pending = journal.pending();
    if pending.len() > UNDONE_MAX {
        return;
    }
    let host = beside_others(data);
    let before = host.left();
    let steps = host.steps().len();
    match stackrace_layers::stack::undo_all(&host, &journal) {
        Ok(report) => {
            assert_eq!(report.undone.len() + report.failed.len(), pending.len());
        }
        Err(JournalError::Foreign(_)) => assert_eq!(host.steps().len(), steps),
        Err(error) => panic!("a journal that is kept in memory cannot fail: {error}"),
    }
    assert_eq!(
        host.left(),
        before,
        "the journal touched what is not its own"
    );
}

/// An answer of a machine that has nothing but a shell is understood or not; no time and no place in it is impossible.
pub fn shell_answer(data: &[u8]) {
    shell::check_answers(data);
}

/// A message between machines that was understood is written as it was read, and takes no more memory
/// than it has bytes. A peer that sends it asks nothing of the first machine and speaks in no other's
/// name.
pub fn wire(data: &[u8]) {
    let mut bytes = 0;
    for frame in router::forwarded(data) {
        assert_ne!(frame.kind, FrameKind::Request, "a peer commands");
        assert_eq!(frame.machine, 2, "a peer speaks in another name");
        // The last one says that the peer is lost: nothing of it is the peer's.
        bytes += match frame.kind {
            FrameKind::Lost if frame.conversation == 0 => 0,
            _ => frame.message.len(),
        };
    }
    assert!(bytes <= data.len());
    let mut written = Vec::new();
    for frame in frame::understood(data) {
        if let Err(error) = frame.write(&mut written) {
            panic!("{error}");
        }
    }
    assert!(data.starts_with(&written));
}

/// What a guest in virtual time says is taken frame by frame, and no memory for what is only announced.
pub fn guest(data: &[u8]) {
    let mut reader = PolledReader::new(data);
    let mut bytes = 0;
    while let Ok(Some((_clock, frame))) = reader.read() {
        bytes += frame.message.len();
    }
    assert!(bytes <= data.len());
}

/// A table of mounts that was understood is the same after writing it as the kernel would.
pub fn mountinfo(data: &[u8]) {
    let mounts = mountinfo::parse(data);
    assert!(mounts.len() <= data.split(|&byte| byte == b'\n').count());
    let table: Vec<u8> = mounts.iter().flat_map(line).collect();
    assert_eq!(mountinfo::parse(&table), mounts);
}

fn line(mount: &MountInfo) -> Vec<u8> {
    let (major, minor) = mount.st_dev;
    let mut line = format!("{} 1 {major}:{minor}", mount.id).into_bytes();
    let options = mount.options.join(",");
    for field in [
        mount.root.as_os_str().as_bytes(),
        mount.mount_point.as_os_str().as_bytes(),
        options.as_bytes(),
        b"-",
        mount.file_system.as_bytes(),
        mount.source.as_bytes(),
        b"",
    ] {
        line.push(b' ');
        for &byte in field {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' => line.extend(format!("\\{byte:03o}").into_bytes()),
                _ => line.push(byte),
            }
        }
    }
    line.push(b'\n');
    line
}

/// Files of `/proc` that a snapshot reads, as the pieces of the input between zero bytes: two
/// snapshots, the difference of which never overflows and never has more devices than asked.
pub fn observe(data: &[u8]) {
    const FILES: [&str; 10] = [
        "/proc/diskstats",
        "/proc/self/io",
        "/proc/stat",
        "/proc/self/stat",
        "/proc/pressure/cpu",
        "/proc/pressure/io",
        "/proc/pressure/memory",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/etc/os-release",
    ];
    let text = String::from_utf8_lossy(data);
    let pieces: Vec<&str> = text.split('\0').collect();
    let read = |skipped: usize| {
        let pieces = &pieces;
        move |path: &str| {
            let at = FILES.iter().position(|file| *file == path)?;
            pieces.get(at + skipped).map(|piece| (*piece).to_owned())
        }
    };
    let devices = ["vda".to_owned(), "loop0".to_owned()];
    let before = Snapshot::read(&devices, read(0));
    let after = Snapshot::read(&devices, read(FILES.len()));
    let mut counted = before.until(&after);
    assert!(counted.devices.len() <= devices.len());
    observe::asked_by_workload(&mut counted, u64::MAX);
    let more = Snapshot::read(&[], |_| None).until(&after);
    observe::add(&mut counted, &before.until(&after));
    observe::add(&mut counted, &more);
    assert!(serde_json::to_string(&counted).is_ok());
    for fact in observe::environment_of(&read(0)) {
        assert!(!fact.name.is_empty() && !fact.value.is_empty());
    }
    observe::memory_bytes_of(&read(0));
}

/// What the tools print when a layer reads back what it got.
pub fn stack(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let facts = stackrace_layers::stack::read_back(&text);
    let whole: usize = facts.iter().map(|fact| fact.value.len()).sum();
    // Each parser shows every letter at most once, and there are a few of them.
    assert!(whole <= 1024 + 16 * text.len(), "{whole} letters of facts");
}

/// A command of any words is shown so that a shell would read the same words.
pub fn command(data: &[u8]) {
    let mut input = Input::new(data);
    let mut words: Vec<OsString> = Vec::new();
    while !input.is_empty() && words.len() < 64 {
        let length = input.below(16);
        let word: Vec<u8> = input
            .bytes(length)
            .iter()
            .copied()
            .filter(|&b| b != 0)
            .collect();
        words.push(OsString::from_vec(word));
    }
    let wanted: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let line = event::shell(&words);
    assert!(!line.contains(is_no_name), "{line:?}");
    assert_eq!(shell_words(&line), wanted, "{line}");
}

/// The words of a POSIX shell's line without expansions: single quotes, `\'` and `$'…'` only.
fn shell_words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = line.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' => words.extend(word.take()),
            b'\'' => {
                let quoted = bytes.by_ref().take_while(|&byte| byte != b'\'');
                word.get_or_insert_default().extend(quoted);
            }
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            b'$' => {
                assert_eq!(bytes.next(), Some(b'\''), "{line}");
                word.get_or_insert_default().extend(unescaped(&mut bytes));
            }
            byte => {
                assert!(!b"\t\n\"`&|;<>()*?[]#~!".contains(&byte), "{line}");
                word.get_or_insert_default().push(byte);
            }
        }
    }
    words.extend(word);
    words
}

/// Bytes up to the quote that ends `$'…'`.
fn unescaped(bytes: &mut impl Iterator<Item = u8>) -> Vec<u8> {
    let mut word = Vec::new();
    while let Some(byte) = bytes.next().filter(|&byte| byte != b'\'') {
        let escaped = match byte {
            b'\\' => bytes.next(),
            byte => {
                word.push(byte);
                continue;
            }
        };
        word.push(match escaped {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(digit @ b'0'..=b'7') => {
                let digits = [digit, bytes.next().unwrap_or(0), bytes.next().unwrap_or(0)];
                digits.iter().fold(0, |sum, digit| sum * 8 + (digit - b'0'))
            }
            other => other.unwrap_or(0),
        });
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use stackrace_machine::host::Host;

    /// Things of others on the imagined machine, things of this run, and words that lead astray.
    const PATHS: [&str; 9] = [
        "/others/photos",
        "/others/mnt",
        "/others/disk-1",
        "/srv/.stackrace-t-0123456789abcdef-a",
        "/srv/.stackrace-t-0123456789abcdef-a/../../others/photos",
        "/others/.stackrace-t-0123456789abcdef-a",
        "/store/runs/fuzzed/mnt",
        "/dev/disk/by-id/disk-of-others",
        "/",
    ];
    const NAMES: [&str; 6] = [
        "tank",
        "",
        "0",
        "01234567-89ab-cdef-8000-000000000001",
        "stackrace-t-0123456789abcdef-pool-1",
        ".stackrace-t-0123456789abcdef",
    ];

    fn undo() -> impl Strategy<Value = String> {
        let path = || select(&PATHS[..]);
        let name = || select(&NAMES[..]);
        let by_path = [
            "remove-file",
            "remove-dir",
            "remove-tree",
            "unmount",
            "end-machine",
        ];
        let layers = select(vec![
            ("zfs", "destroy-pool"),
            ("md", "stop-array"),
            ("lvm", "remove-volume-group"),
            ("mapped", "remove"),
            ("loop", "detach"),
            ("drbd", "take-down"),
        ]);
        let one = prop_oneof![
            (select(by_path.to_vec()), path())
                .prop_map(|(kind, path)| format!("{{\"{kind}\":\"{path}\"}}")),
            (path(), name()).prop_map(|(path, name)| format!(
                "{{\"blank\":{{\"device\":\"{path}\",\"mark\":\"{name}\"}}}}"
            )),
            path().prop_map(|path| format!(
                "{{\"write-back\":{{\"file\":\"{path}\",\"ours\":\"\",\"before\":\"0\"}}}}"
            )),
            (select(vec!["smbd", "rpcbind"]), name()).prop_map(|(program, mark)| format!(
                "{{\"end-process\":{{\"program\":\"{program}\",\"mark\":\"{mark}\"}}}}"
            )),
            (layers, prop_oneof![path(), name()]).prop_map(|((layer, undo), of)| format!(
                "{{\"layer\":{{\"name\":\"{layer}\",\"undo\":\"{undo}\",\"of\":[\"{of}\"]}}}}"
            )),
        ];
        (any::<bool>(), one).prop_map(|(on_peer, one)| match on_peer {
            true => format!("{{\"on-peer\":{{\"node\":2,\"host\":\"node2\",\"undo\":{one}}}}}"),
            false => one,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_hostile_journal_touches_nothing_of_others(
            undos in proptest::collection::vec(undo(), 1..4),
            places in proptest::collection::vec(select(&["/srv", "/others", "/"][..]), 0..3),
        ) {
            let mut text = String::from("{\"journal\":3,\"run\":\"fuzzed\"}\n{\"mark\":\"0123456789abcdef\"}\n");
            for place in places {
                text += &format!("{{\"place\":\"{place}\"}}\n");
            }
            for (entry, undo) in (1..).zip(undos) {
                text += &format!("{{\"entry\":{entry},\"group\":\"a\",\"undo\":{undo}}}\n");
            }
            journal(text.as_bytes());
        }
    }

    /// The machine of the check above has what a careless program would take away.
    #[test]
    fn there_is_something_to_be_touched() {
        let host = beside_others(b"");
        let left = host.left().join("\n");
        for thing in [
            "/others/photos",
            "loop",
            "tmpfs",
            "tank",
            "smbd",
            "rpcbind",
            "ext4",
        ] {
            assert!(left.contains(thing), "no {thing} in {left}");
        }
        host.end_daemon("rpcbind", ".stackrace-theirs").unwrap();
        host.remove_dir(Path::new("/others/photos")).unwrap();
        assert_ne!(host.left().join("\n"), left);
    }
}
