//! What the kernel and the tools print, what is typed for them, and the journal.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::input::Input;
use crate::afp::protocol;
use crate::agent::frame;
use crate::host::plan::Fault;
use crate::host::{MountInfo, mountinfo, shown};
use crate::journal::{self, Journal, JournalError, Undo};
use crate::observe::{self, Snapshot};

/// Most entries of a journal that are also undone.
const UNDONE_MAX: usize = 32;

/// What an AFP server answers: understood or refused, and no name that leads elsewhere.
pub fn afp(data: &[u8]) {
    protocol::check(data);
}

/// A journal: what is pending comes back when it is written again, and undoing it (on the host
/// that only imagines) removes no tree that is not ours.
pub fn journal(data: &[u8]) {
    let path = Path::new("journal.jsonl");
    let lines = data.split(|&byte| byte == b'\n').count();
    let pending = match journal::replay(data, path) {
        Ok((next, pending)) => {
            assert!(pending.iter().all(|entry| entry.id.number() < next));
            pending
        }
        Err(JournalError::Broken { line, .. }) => {
            assert!((1..=lines).contains(&line));
            return;
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.next().is_empty());
            return;
        }
    };
    let mut written = Vec::new();
    for entry in &pending {
        serde_json::to_writer(&mut written, entry).unwrap_or_else(|error| panic!("{error}"));
        written.push(b'\n');
    }
    match journal::replay(&written, path) {
        Ok((_, again)) => assert_eq!(again, pending),
        Err(error) => panic!("{error}"),
    }
    if pending.len() > UNDONE_MAX {
        return;
    }
    let memory = Journal::nowhere();
    for entry in &pending {
        assert!(memory.will(&entry.group, entry.undo.clone()).is_ok());
    }
    let report = match crate::stack::undo_all(&crate::stack::imagined(Fault::Never), &memory) {
        Ok(report) => report,
        // Then nothing was undone.
        Err(JournalError::Foreign(_)) => return,
        Err(error) => panic!("a journal that is kept nowhere cannot fail: {error}"),
    };
    assert_eq!(report.undone.len() + report.failed.len(), pending.len());
    for undo in &report.undone {
        if let Undo::RemoveTree(tree) = undo {
            let name = tree.file_name().unwrap_or_default();
            assert!(name.as_bytes().starts_with(b".stackrace-"), "{undo}");
        }
    }
}

/// What machines say to each other: what was understood is written as it was read.
pub fn wire(data: &[u8]) {
    let mut written = Vec::new();
    for frame in frame::understood(data) {
        if let Err(error) = frame.write(&mut written) {
            panic!("{error}");
        }
    }
    assert!(data.starts_with(&written));
}

/// The table of mounts: what was understood comes back when it is written as the kernel would.
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
    let facts = crate::stack::read_back(&text);
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
    let lossy: Vec<String> = words
        .iter()
        .map(|word| OsStr::to_string_lossy(word).into_owned())
        .collect();
    assert_eq!(shell_words(&shown(&words)), lossy);
}

/// The words of a POSIX shell's line without expansions: single quotes and `\'` only.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' => {
                let quoted = letters.by_ref().take_while(|&letter| letter != '\'');
                word.get_or_insert_default().extend(quoted);
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            letter => {
                assert!(!"\t\n\"$`&|;<>()*?[]#~!".contains(letter), "{line}");
                word.get_or_insert_default().push(letter);
            }
        }
    }
    words.extend(word);
    words
}
