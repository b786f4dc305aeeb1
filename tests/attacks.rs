//! The list of attacks (`bench/attacks`) names tests that there are.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::collections::BTreeSet;
use std::fs;

use crate::support::tool;

/// Returns true if a name fits a pattern, whose `*` stands for anything.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else {
        return name == pattern;
    };
    let left = name.strip_prefix(before);
    left.is_some_and(|left| {
        let rests = left.char_indices().map(|(at, _)| &left[at..]);
        rests.chain([""]).any(|rest| fits(rest, behind))
    })
}

/// An attack whose test was renamed is not tried any more, and only the bench would say so.
fn every_attack_on_the_whole_program_is_a_test() {
    let own = std::env::current_exe().unwrap();
    let listed = tool(own.to_str().unwrap(), &["--list"]);
    let names = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    let tests: BTreeSet<(&str, &str)> = names.filter_map(|name| name.split_once("::")).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/attackwork/classes.py");
    let (mut found, mut gone) = (0, Vec::new());
    for line in fs::read_to_string(path).unwrap().lines() {
        let words: Vec<&str> = line.trim().split("\", \"").collect();
        let [_, file, pattern] = words[..] else {
            continue;
        };
        let pattern = pattern.trim_end_matches(['"', ')', ',']);
        let mut of_file = tests.iter().filter(|(group, _)| *group == file).peekable();
        if of_file.peek().is_none() {
            continue;
        }
        // By its end: parts of a name stand before it.
        let ends = |name: &str| fits(name, pattern) || fits(name, &format!("*::{pattern}"));
        match of_file.any(|(_, name)| ends(name)) {
            true => found += 1,
            false => gone.push(format!("{file} {pattern}")),
        }
    }
    assert!(found > 60, "only {found} were found");
    assert!(gone.is_empty(), "no test: {gone:?}");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![every_attack_on_the_whole_program_is_a_test]
}
