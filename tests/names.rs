//! Names that others chose, through whole commands: no terminal obeys them, no spreadsheet computes
//! them.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;

use crate::support::Ground;

/// The title of the window, a cleared screen, a hidden text, the same with one byte (C1), a reordered
/// line.
const TERMINAL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[8m\u{9b}2J\u{202e}\rname";

fn imported(ground: &Ground, name: &str, title: &str) -> String {
    let text = fs::read_to_string("tests/golden/dd/coreutils-two.txt").unwrap();
    let file = ground.write("dd.txt", text);
    let source = format!("{name}={}", file.display());
    let said = ground.stackrace(&["import", &source, "--title", title]);
    said.ended(0);
    said.out + &said.err
}

#[track_caller]
fn commands_nothing(text: &str, what: &str) {
    let command = text.chars().find(|c| {
        c.is_control() && !matches!(c, '\n' | '\t') || ('\u{202a}'..='\u{202e}').contains(c)
    });
    assert_eq!(command, None, "{what}: {text:?}");
}

fn no_terminal_obeys_a_name() {
    let ground = Ground::new();
    commands_nothing(&imported(&ground, TERMINAL, TERMINAL), "import");
    let missing = format!("{TERMINAL}.toml");
    for args in stackrace_test_needs::attacks([
        &["runs"][..],
        &["report"],
        &["report", "--format", "markdown"],
        &["verdict"],
        &["gate", "last", "--against", TERMINAL],
        &["diff", "last", TERMINAL],
        &["report", TERMINAL],
        &["plan", &missing],
        &["run", &missing],
        &["import", &missing],
    ]) {
        let said = ground.stackrace(args);
        commands_nothing(&said.out, &format!("{args:?}"));
        commands_nothing(&said.err, &format!("{args:?}"));
    }
}

fn no_spreadsheet_computes_a_name() {
    let ground = Ground::new();
    imported(&ground, "@SUM(A1)", "=1+1");
    for args in [
        &["report", "--format", "csv"][..],
        &["export", "--format", "csv"],
    ] {
        let said = ground.stackrace(args);
        let cells = said.ended(0).out.split(['\n', ',']);
        let mut formulas = cells.filter(|cell| cell.trim_matches('"').starts_with(['=', '@']));
        assert_eq!(formulas.next(), None, "{args:?}");
        assert!(said.out.contains("'@SUM(A1)"), "{}", said.out);
    }
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![no_terminal_obeys_a_name, no_spreadsheet_computes_a_name]
}
