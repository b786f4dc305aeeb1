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

/// The line that a name would put into what the program says.
const FORGED: &str = "nothing was changed, all is well";

fn no_name_writes_a_line_of_its_own_into_an_error() {
    let ground = Ground::new();
    let name = format!("a\n{FORGED}\tb");
    let (directory, file) = (name.clone(), format!("{name}.toml"));
    let below = format!("{name}/deeper/file.json");
    fs::create_dir(ground.path().join(&name)).unwrap();
    ground.write("file", "no result of any tool");
    let (study, store) = (&file as &str, format!("{name}/store"));
    ground.write(study, "title = 3");
    let mut refused = 0;
    for args in stackrace_test_needs::attacks([
        &["run", study][..],
        &["run", &below],
        &["plan", study],
        &["compare", &directory, "nowhere"],
        &["compare", &below, &directory],
        &["load", &below, "random"],
        &["import", study],
        &["import", &below],
        &["import", &format!("{name}={below}")],
        &["report", &directory],
        &["report", "last", "--html", &below],
        &["export", "-o", &below],
        &["gate", "last", "--worse-than", &directory],
        &["diff", &directory, &below],
        &["resume", &directory],
        &["verdict", &directory],
        &["show", &directory],
        &["show", "workloads", &directory],
        &["published", &directory],
        &["run", "file", "--events", &below],
        &["man", &below],
        &["--store", &store, "report"],
        &[&directory],
        &["--colour", &directory, "runs"],
    ]) {
        let said = ground.stackrace(args);
        assert_ne!(said.code, Some(0), "{args:?}: {}", said.err);
        let forged = said
            .err
            .lines()
            .find(|line| line.trim_start().starts_with(FORGED));
        assert_eq!(forged, None, "{args:?}: {}", said.err);
        refused += usize::from(said.err.contains('\u{240a}'));
    }
    assert!(refused > 15, "{refused} named it");
}

fn what_names_nothing_to_compare_is_refused_with_what_to_do() {
    let ground = Ground::new();
    imported(&ground, "a", "One configuration");
    for (args, why, next) in [
        (
            &["diff", "/tmp/a.json", "last"][..],
            "/tmp/a.json names no run",
            "stackrace import",
        ),
        (
            &["gate", "last", "--worse-than", "5%"],
            "has one configuration, a,",
            "--baseline RUN",
        ),
    ] {
        let said = ground.stackrace(args);
        said.ended(2).err_has(why);
        said.err_has(next);
    }
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        no_terminal_obeys_a_name,
        no_spreadsheet_computes_a_name,
        no_name_writes_a_line_of_its_own_into_an_error,
        what_names_nothing_to_compare_is_refused_with_what_to_do
    ]
}
