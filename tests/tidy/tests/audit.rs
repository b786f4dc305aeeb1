//! What a program names as its crates is read from it, and compared with the list that is published beside it.

#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]
#![expect(
    clippy::disallowed_methods,
    reason = "the script is started as a user starts it"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use stackrace_test_needs::{group, run, tests, tool};

/// Writes the smallest program file with one section of a name, which holds a packed text.
const PACK: &str = r#"
import struct, sys, zlib
name, text, path = sys.argv[1:]
packed, names = zlib.compress(text.encode()), b"\0" + name.encode() + b"\0"
at = 64
headers = at + len(packed) + len(names)
def section(name, place, length): return struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, place, length, 0, 0, 1, 0)
sections = bytes(64) + section(1, at, len(packed)) + section(0, at + len(packed), len(names))
head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, headers, 0, 64, 0, 0, 64, 3, 2)
open(path, "wb").write(head + packed + names + sections)
"#;

const INSIDE: &str = r#"{"packages":[
    {"name":"stackrace","version":"1.2.3","source":"local","dependencies":[1],"root":true},
    {"name":"libc","version":"0.2.1","source":"crates.io"},
    {"name":"cc","version":"1.0.0","source":"crates.io","kind":"build"}]}"#;

struct Room(tempfile::TempDir);

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn program(&self, section: &str) -> PathBuf {
        let path = self.0.path().join("program");
        let mut packs = Command::new(tool("python3"));
        let packed = packs.args(["-c", PACK, section, INSIDE]).arg(&path);
        assert!(packed.status().unwrap().success());
        path
    }

    fn list(&self, libraries: &[(&str, &str)]) -> PathBuf {
        let path = self.0.path().join("list.json");
        let named = |(name, version): &(&str, &str)| {
            format!(r#"{{"name":"{name}","version":"{version}"}}"#)
        };
        let libraries: Vec<String> = libraries.iter().map(named).collect();
        let own = named(&("stackrace", "1.2.3"));
        let libraries = libraries.join(",");
        let text = format!(r#"{{"metadata":{{"component":{own}}},"components":[{libraries}]}}"#);
        fs::write(&path, text).unwrap();
        path
    }
}

fn audit(words: &[&Path]) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/audit");
    let done = Command::new(tool("python3"))
        .arg(script)
        .args(words)
        .output();
    let Output {
        status,
        stdout,
        stderr,
    } = done.unwrap();
    let said = [stdout, stderr].concat();
    (status.code(), String::from_utf8(said).unwrap())
}

fn a_program_names_each_crate_of_the_published_list_or_the_one_it_lacks_is_named() {
    let room = Room::new();
    let program = room.program(".dep-v0");
    // What only the build took is not in the program.
    let named = (Some(0), "libc 0.2.1\nstackrace 1.2.3\n".to_owned());
    assert_eq!(audit(&[&program]), named);
    let (status, said) = audit(&[&program, &room.list(&[("libc", "0.2.1")])]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.starts_with("the program names all 2 crates of "),
        "{said}"
    );
    let (status, said) = audit(&[&program, &room.list(&[])]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("the program alone names libc 0.2.1\n"),
        "{said}"
    );
    let (status, said) = audit(&[&program, &room.list(&[("libc", "0.2.2")])]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("the program does not name libc 0.2.2\n"),
        "{said}"
    );
}

fn a_program_without_such_a_list_is_told_from_one_that_names_no_crates() {
    let room = Room::new();
    let (status, said) = audit(&[&room.program(".data")]);
    assert_eq!(status, Some(4), "{said}");
    assert!(said.contains("built without cargo-auditable"), "{said}");
    let (status, said) = audit(&[&room.list(&[])]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("not a program for Linux"), "{said}");
}

fn main() -> ExitCode {
    run(vec![group(
        "audit",
        tests![
            a_program_names_each_crate_of_the_published_list_or_the_one_it_lacks_is_named,
            a_program_without_such_a_list_is_told_from_one_that_names_no_crates,
        ],
    )])
}
