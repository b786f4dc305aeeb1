//! The exact commands on each system, from an imagined machine of that system.

use crate::stack::testing::{self, site, stack};
use crate::stack::{self, Danger, Inspection, undo_all};
use stackrace_machine::host::Host;
use stackrace_machine::host::plan::{Fault, PlanHost, Step};
use stackrace_machine::journal::Journal;
use std::path::{Path, PathBuf};

fn machine(system: &str, fault: Fault) -> PlanHost {
    stack::imagined(fault).of_system(system, [PathBuf::from("/fs")])
}

fn layer(file_system: &str) -> String {
    let properties = match file_system {
        "zfs" => ", properties = [\"checksum=sha256\"]",
        _ => "",
    };
    format!(
        "native = {{ file-system = \"{file_system}\", size = \"64 MiB\", directory = \"/fs\"{properties} }}"
    )
}

/// The commands that set it up, settle it and tear it down; then those that undo it after a crash.
fn transcript(system: &str, file_system: &str) -> String {
    let mut text = String::new();
    let mut known = 0;
    let host = machine(system, Fault::Never);
    let mut news = |host: &PlanHost, title: &str, text: &mut String| {
        text.push_str(&format!("# {title}\n"));
        let steps = host.steps();
        let lines = steps[known..]
            .iter()
            .filter(|step| step.argv.last().is_some_and(|path| path != "/scratch"));
        text.extend(lines.map(Step::shown).map(|line| line + "\n"));
        known = steps.len();
    };
    let stack = stack(&[&layer(file_system)]);
    let scratch = Path::new("/scratch");
    let journal = Journal::nowhere();
    let site = site(&host, &journal, scratch);
    let standing = stack.set_up(&site).unwrap();
    news(&host, "set up", &mut text);
    standing.settle(&site, true, true).unwrap();
    news(&host, "settle", &mut text);
    standing.tear_down(&site).unwrap();
    news(&host, "tear down", &mut text);
    assert_eq!(host.left(), ["/fs", "/scratch"], "{text}");
    // The same from the journal alone, on a machine that is new.
    let (host, journal) = (machine(system, Fault::Never), Journal::nowhere());
    let standing = stack
        .set_up(&testing::site(&host, &journal, scratch))
        .unwrap();
    drop(standing);
    let known = host.steps().len();
    undo_all(&host, &journal).unwrap();
    text.push_str("# undo after a crash\n");
    text.extend(
        host.steps()[known..]
            .iter()
            .map(Step::shown)
            .map(|line| line + "\n"),
    );
    assert_eq!(host.left(), ["/fs", "/scratch"], "{text}");
    text
}

#[test]
fn the_commands_of_each_system_are_these() {
    for (system, file_system) in [
        ("FreeBSD", "ufs"),
        ("FreeBSD", "zfs"),
        ("SunOS", "ufs"),
        ("Darwin", "hfs+"),
        ("Darwin", "apfs"),
        ("NetBSD", "ffs"),
        ("Linux", "ext4"),
        ("Linux", "xfs"),
        ("Linux", "btrfs"),
    ] {
        let name = format!("{system}-{}", file_system.replace('+', "-plus"));
        insta::assert_snapshot!(name, transcript(system, file_system));
    }
    // ZFS is the same everywhere.
    let freebsd = transcript("FreeBSD", "zfs");
    for system in ["SunOS", "NetBSD", "Linux"] {
        let mut theirs = transcript(system, "zfs");
        // Linux alone has this file.
        theirs.retain(|c| c != '\r');
        let theirs = theirs.replace("echo 3 '>' /proc/sys/vm/drop_caches\n", "");
        assert_eq!(theirs, freebsd, "{system}");
    }
}

/// A step that fails leaves nothing, and neither does a program that dies, once its journal is undone.
#[test]
fn nothing_is_left_on_any_system_whatever_fails() {
    for (system, file_system) in [
        ("FreeBSD", "ufs"),
        ("FreeBSD", "zfs"),
        ("SunOS", "ufs"),
        ("Darwin", "hfs+"),
        ("NetBSD", "ffs"),
    ] {
        let steps = {
            let host = machine(system, Fault::Never);
            let journal = Journal::nowhere();
            let site = site(&host, &journal, Path::new("/scratch"));
            let _standing = stack(&[&layer(file_system)]).set_up(&site).unwrap();
            host.steps().len()
        };
        for at in 1..=steps {
            for fault in [
                Fault::Refused(at),
                Fault::DiedBefore(at),
                Fault::DiedAfter(at),
            ] {
                let host = machine(system, fault);
                let journal = Journal::nowhere();
                let site = site(&host, &journal, Path::new("/scratch"));
                // It may also succeed: some steps only read.
                let set_up = stack(&[&layer(file_system)]).set_up(&site);
                drop(set_up);
                host.recover();
                undo_all(&host, &journal).unwrap();
                let mut left = host.left();
                left.retain(|path| path != "/fs" && path != "/scratch");
                assert_eq!(left, [""; 0], "{system} {file_system}: {fault:?}");
            }
        }
    }
}

#[test]
fn what_a_system_does_not_make_is_refused_before_anything_is_touched() {
    let refused = |system: &str, file_system: &str| {
        let host = machine(system, Fault::Never);
        let dangers = stack(&[&layer(file_system)]).dangers(&Inspection::new(&host, &[]));
        let said = dangers.iter().map(|danger| match danger {
            Danger::Refused(error) => format!("{error}; {}", error.next()),
            Danger::Lost(what) => what.clone(),
        });
        let said = said.collect::<Vec<_>>().join("\n");
        assert!(host.steps().is_empty() && !host.exists(Path::new("/scratch")));
        said
    };
    assert_eq!(refused("FreeBSD", "ufs"), "");
    assert_eq!(
        refused("FreeBSD", "ext4"),
        "FreeBSD makes no ext4; write one of: ufs, zfs"
    );
    assert!(refused("Plan9", "ufs").starts_with("the commands of Plan9 are not known; use dir"));
}

#[test]
fn a_property_that_this_zfs_does_not_have_is_refused_before_the_pool_is_made() {
    let dangers = |properties: &str| {
        let host = machine("FreeBSD", Fault::Never);
        let line = format!(
            "native = {{ file-system = \"zfs\", size = \"1 GiB\", properties = [{properties}] }}"
        );
        let dangers = stack(&[&line]).dangers(&Inspection::new(&host, &[]));
        assert!(!host.exists(Path::new("/scratch")));
        dangers.len()
    };
    assert_eq!(dangers("\"checksum=sha256\", \"recordsize=16K\""), 0);
    assert_eq!(
        dangers("\"checksum=blake3\", \"special_small_blocks=0\""),
        2
    );
}

#[test]
fn a_machine_is_asked_once_what_its_zfs_can_set() {
    let host = machine("FreeBSD", Fault::Never);
    let inspected = Inspection::new(&host, &[]);
    for checksum in ["sha256", "blake3"] {
        let line = format!(
            "native = {{ file-system = \"zfs\", size = \"1 GiB\", properties = [\"checksum={checksum}\"] }}"
        );
        stack(&[&line]).dangers(&inspected);
    }
    let steps = host.steps();
    let asked: Vec<String> = steps.iter().map(Step::shown).collect();
    assert_eq!(asked, ["zfs get"]);
}
