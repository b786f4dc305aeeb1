//! What a person sees: every command that prints, in a pseudo-terminal of several widths.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[path = "terminal/shown.rs"]
mod shown;
#[path = "terminal/wide.rs"]
mod wide;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use crate::support::{Ground, Said};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use shown::{COMMANDS, FIO, Shown, no_command_that_reads_makes_a_store};
use wide::{
    an_excerpt_of_a_study_fits_its_terminal, no_line_is_broken_twice,
    wide_letters_and_marks_are_measured_by_what_is_seen,
};

const STUDY: &str = study!(two block sizes: "Small", "10 ms", 3);

/// A name that commands a terminal and hides half of itself.
const HOSTILE: &str = "\u{1b}[31mred\u{1b}[2J\u{9b}1m over\u{202e}ride zero\u{200b}width";

/// Colours are wanted there: in text that has them.
const COLOUR: [(&str, &str); 1] = [("TERM", "xterm-256color")];
const NO_COLOUR: [(&str, &str); 2] = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];

/// Devices that a server lends, and caches, in one study.
const LENT: &str = study!(
    "Lent",
    r#"way = [
  { label = "NBD", value = "nbd" },
  { label = "iSCSI", value = "iscsi" },
  { label = "NVMe over TCP", value = "nvme" },
  { label = "VDO", value = "vdo" },
]"#,
    [
        r#"loop = { size = "8 GiB", laid-out = "no" }"#,
        "when = { way = \"nbd\" }\nnbd = { server = \"same\" }",
        "when = { way = \"iscsi\" }\niscsi = { server = \"same\", queue-depth = 4096 }",
        "when = { way = \"nvme\" }\nnvme-tcp = { server = \"same\" }",
        "when = { way = \"vdo\" }\nvdo = { slab-bits = 15 }",
        "ext4 = {}"
    ],
    ["files = { count = 5 }"],
    3
);

/// The same where its settings can be kept.
fn lent() -> String {
    LENT.replace("queue-depth = 4096", "queue-depth = 64")
}

/// A ground with a finished run, and what the commands are pointed at.
fn ground() -> Ground {
    let ground = Ground::new();
    for name in ["data", "a", "b"] {
        ground.make_dir(name);
    }
    ground.write("study.toml", STUDY);
    // With a mistake whose advice is long.
    ground.write("wrong.toml", STUDY.replace("access =", "acces ="));
    // Layers of which this machine may lack something, and one that is refused for its settings.
    ground.write("refused.toml", LENT);
    ground.write("lent.toml", lent());
    ground.write("app.trace", stackrace::testing::small_trace());
    ground.stackrace(&["run", "study.toml"]).ended(0);
    ground
}

/// The master of a pseudo-terminal so many columns wide, and its other side.
fn pair(columns: u16) -> (File, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size).unwrap();
    (master.into(), slave.into())
}

/// Without what the tests' own terminal says of colours.
fn bare(command: &mut Command, environment: &[(&str, &str)]) {
    for name in [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "FORCE_COLOR",
        "COLUMNS",
        "TERM",
    ] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied());
}

/// Starts the program in a terminal; gives what reads all that it writes.
fn start(
    ground: &Ground,
    words: &[&str],
    columns: u16,
    environment: &[(&str, &str)],
) -> (Child, File) {
    let (master, slave) = pair(columns);
    let mut command = ground.program(words);
    bare(&mut command, environment);
    command
        .stdin(Stdio::from(slave.try_clone().unwrap()))
        .stdout(Stdio::from(slave.try_clone().unwrap()))
        .stderr(Stdio::from(slave));
    // The command holds the other side open: it goes with it, so that reading comes to an end.
    (command.spawn().unwrap(), master)
}

/// Everything that is written to a terminal until its other side is closed.
fn read_all(mut master: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut room = [0; 4096];
    // A closed side is an error here, and no end of file.
    while let Ok(read @ 1..) = master.read(&mut room) {
        bytes.extend_from_slice(&room[..read]);
    }
    bytes
}

/// What stands on the screen in the end; high enough that nothing is scrolled out of it.
fn screen(bytes: &[u8], columns: u16) -> vt100::Parser {
    let mut parser = vt100::Parser::new(3000, columns, 0);
    parser.process(bytes);
    parser
}

fn on_screen(
    ground: &Ground,
    words: &[&str],
    columns: u16,
    environment: &[(&str, &str)],
) -> vt100::Parser {
    let (mut child, master) = start(ground, words, columns, environment);
    let bytes = read_all(master);
    child.wait().unwrap();
    screen(&bytes, columns)
}

fn piped(ground: &Ground, words: &[&str], environment: &[(&str, &str)]) -> Said {
    let mut command = ground.program(words);
    bare(&mut command, environment);
    Said::of(&command.output().unwrap())
}

/// Whether anything on the screen is set off.
fn coloured(screen: &vt100::Screen) -> bool {
    let (rows, columns) = screen.size();
    let mut cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    cells.any(|(row, column)| {
        screen.cell(row, column).is_some_and(|cell| {
            cell.fgcolor() != vt100::Color::Default || cell.bold() || cell.underline()
        })
    })
}

/// Every word on the screen is one of the text, unless it is part of one that no line can hold.
fn no_word_is_broken(screen: &vt100::Screen, text: &str, columns: u16, what: &str) {
    // Free space and times differ from one look to the next.
    let alike = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
    let (text, contents) = (alike(text), alike(&screen.contents()));
    let words: HashSet<&str> = text.split_whitespace().collect();
    let half = usize::from(columns) / 2;
    let shown = contents.split_whitespace();
    // Signs between words depend on the width.
    for word in shown.filter(|word| word.contains(char::is_alphanumeric)) {
        let part = || {
            words
                .iter()
                .any(|whole| whole.len() > half && whole.contains(word))
        };
        assert!(
            words.contains(word) || part(),
            "{what}: {word:?} is broken in\n{}",
            screen.contents()
        );
    }
}

/// Everything that is asked of one command on one screen.
fn judge(ground: &Ground, command: &Shown, columns: u16, colour: bool) {
    let environment: &[(&str, &str)] = if colour { &COLOUR } else { &NO_COLOUR };
    let what = format!("{:?} at {columns}, colour {colour}", command.words);
    let parser = on_screen(ground, command.words, columns, environment);
    let screen = parser.screen();
    let contents = screen.contents();
    assert!(!contents.trim().is_empty(), "{what}: nothing");
    assert!(!contents.contains(['␛', '\u{fffd}']), "{what}\n{contents}");
    assert_eq!(
        coloured(screen),
        colour && command.colours,
        "{what}\n{contents}"
    );
    if !command.wrapped {
        return;
    }
    let longest = contents.split_whitespace().map(str::len).max();
    // A path longer than the screen stays whole, so that it can be copied.
    if longest.is_none_or(|longest| longest < usize::from(columns)) {
        // A command stays on one line, so that it can be copied, too.
        let mut of_command = false;
        let mut goes_on = false;
        let mut wide = Vec::new();
        for (row, text) in (0..).zip(screen.rows(0, columns)) {
            let begins = ["next ", "figures ", "`stackrace "]
                .iter()
                .any(|word| text.trim_start().starts_with(word));
            of_command = begins || (of_command && goes_on);
            goes_on = screen.row_wrapped(row);
            if goes_on && !of_command {
                wide.push(row);
            }
        }
        assert!(wide.is_empty(), "{what}: lines {wide:?} of\n{contents}");
    }
    if command.same {
        let said = piped(ground, command.words, &[("COLUMNS", "80")]);
        let wide = piped(ground, command.words, &[("COLUMNS", "400")]);
        let text = [said.out, said.err, wide.out, wide.err].join("\n");
        no_word_is_broken(screen, &text, columns, &what);
    }
}

/// A pipe has no colours, unless they are forced; then those commands have them that set off parts of their text.
fn judge_piped(ground: &Ground, command: &Shown) {
    for (environment, forced) in [
        (&[("TERM", "xterm")][..], false),
        (&[("FORCE_COLOR", "1")], true),
        (&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")], false),
    ] {
        let said = piped(ground, command.words, environment);
        let text = [said.out, said.err].concat();
        let what = format!("{:?} through a pipe, {environment:?}", command.words);
        assert!(!text.trim().is_empty(), "{what}: nothing");
        let colours = text.contains('\u{1b}');
        assert_eq!(colours, forced && command.colours, "{what}\n{text}");
    }
}

fn every_command_fits_every_terminal_and_has_colours_only_where_they_are_wanted() {
    let ground = ground();
    for command in COMMANDS {
        for (columns, colour) in [(40, true), (60, false), (80, true), (120, false)] {
            judge(&ground, command, columns, colour);
        }
        judge_piped(&ground, command);
    }
}

fn colours_follow_the_environment_and_the_command_line() {
    let ground = ground();
    for words in [&["report", "last"][..], &["--help"]] {
        for (environment, expected) in [
            (&[("TERM", "xterm-256color")][..], true),
            (&[("TERM", "dumb")], false),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], false),
            (&[("TERM", "xterm"), ("CLICOLOR", "0")], false),
            (&[("TERM", "dumb"), ("FORCE_COLOR", "1")], true),
        ] {
            let parser = on_screen(&ground, words, 80, environment);
            assert_eq!(
                coloured(parser.screen()),
                expected,
                "{words:?} {environment:?}"
            );
        }
        for (environment, expected) in [
            (&[("TERM", "xterm")][..], false),
            (&[("FORCE_COLOR", "1")], true),
            (&[("CLICOLOR_FORCE", "1")], true),
            (&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")], false),
        ] {
            let said = piped(&ground, words, environment);
            assert_eq!(
                said.out.contains('\u{1b}'),
                expected,
                "{words:?} {environment:?}"
            );
        }
        let always = [words, &["--colour", "always"]].concat();
        assert!(
            piped(&ground, &always, &[("NO_COLOR", "1")])
                .out
                .contains("\u{1b}[")
        );
        let never = [words, &["--colour=never"]].concat();
        assert!(!coloured(on_screen(&ground, &never, 80, &COLOUR).screen()));
    }
}

fn foreign_text_commands_no_terminal() {
    let ground = ground();
    ground
        .stackrace(&["import", FIO, "--title", HOSTILE])
        .ended(0);
    let study = STUDY.replace("Small", "␛[31mred \\u001b[2J over\\u202eride");
    ground.write("hostile.toml", study.replace('␛', "\\u001b"));
    ground.stackrace(&["run", "hostile.toml"]).ended(0);
    for words in [
        &["runs"][..],
        &["report", "last"],
        &["verdict", "last"],
        &["plan", "hostile.toml"],
        &["run", "hostile.toml"],
        &["diff", "last/4 KiB", "last/8 KiB"],
        &["export", "last"],
        &["export", "--table", "configurations"],
        &["report", "last", "--format", "csv"],
        &["report", "last", "--format", "json"],
        &["runs", "--json"],
        &["report", HOSTILE],
        &[HOSTILE],
    ] {
        let (mut child, master) = start(&ground, words, 80, &[("TERM", "dumb")]);
        let bytes = read_all(master);
        child.wait().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let commands = |letter: char| {
            letter.is_control() && !"\r\n\t".contains(letter) || "\u{202e}\u{200b}".contains(letter)
        };
        assert!(!text.contains(commands), "{words:?}: {text:?}");
    }
}

/// What stands in a name never looks like a line of ours.
fn a_name_with_line_breaks_begins_no_line() {
    const NAME: &str = "a\nINJECTED\rINJECTED\tINJECTED\u{2028}INJECTED\u{85}INJECTED";
    let ground = Ground::new();
    ground.make_dir(NAME);
    ground.make_dir("b");
    let escaped = NAME
        .replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t");
    let study = STUDY
        .replace("Small", &escaped.replace('\u{85}', "\\u0085"))
        .replace(
            "\"random write\"",
            &format!("\"{}\"", escaped.replace('\u{85}', "\\u0085")),
        );
    ground.make_dir("data");
    ground.write("hostile.toml", study);
    for words in [
        &["run", "hostile.toml"][..],
        &["plan", "hostile.toml"],
        &["import", FIO, "--title", NAME],
        &[
            "compare", NAME, "b", "--anyway", "--rounds", "3", "--", "true",
        ],
        &["report", "last"],
        &["verdict", "last"],
        &["runs"],
        &["runs", "prune", "--keep", "0"],
        &["clean"],
    ] {
        let said = piped(&ground, words, &[("COLUMNS", "500")]);
        let text = [said.out, said.err].join("\n");
        let breaks = |letter| "\n\r\u{85}\u{2028}\u{2029}\u{b}\u{c}".contains(letter);
        let injected = text
            .split(breaks)
            .find(|line| line.trim().starts_with("INJECTED"));
        // Tables and paragraphs are at most 80 columns wide, so a word may begin a line after a blank.
        assert!(
            injected.is_none_or(|line| line.starts_with(' ')),
            "{words:?}: {text}"
        );
    }
}

/// A list that was cut off must not look like all of it.
fn a_full_disk_behind_standard_output_is_an_error_of_every_command() {
    let ground = ground();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut commands: Vec<&[&str]> = COMMANDS
        .iter()
        // What is refused prints nothing to standard output.
        .filter(|command| command.same && !command.refused)
        .map(|command| command.words)
        .collect();
    commands.extend([
        &["runs", "--json"][..],
        &["plan", "study.toml", "--json"],
        &["doctor", "--quick", "--json"],
        &[
            "load",
            "data",
            "random",
            "mode=read",
            "size=1MiB",
            "time=20ms",
            "--json",
        ],
        &["verdict", "last", "--json"],
        &["export", "last", "-o", "-"],
        &["run", "study.toml", "--events", "-"],
        &["run", "study.toml", "--json"],
        &[
            "compare",
            "a",
            "b",
            "--anyway",
            "--print-study",
            "--",
            "true",
        ],
        &["man"],
        &["completions", "bash"],
    ]);
    for words in commands {
        let output = ground.program(words).stdout(full()).output().unwrap();
        let said = Said::of(&output);
        assert_eq!(said.code, Some(1), "{words:?}: {}", said.err);
        said.err_has("cannot write to standard output: No space left on device");
    }
}

fn a_reader_that_has_gone_ends_the_program_quietly() {
    let ground = ground();
    for words in [&["report", "last"][..], &["--help"], &["export", "last"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = ground.program(words).stdout(writer).output().unwrap();
        Said::of(&output).ended(0);
        assert!(output.stderr.is_empty(), "{words:?}");
    }
}

/// The lines of a comparison that finds its sizes, until it is interrupted there.
fn interrupted_while_it_finds_sizes(words: &[&str]) {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let (mut child, mut master) = start(&ground, words, 80, &COLOUR);
    let mut bytes = Vec::new();
    let mut room = [0; 4096];
    // It is on the screen before anything is measured to its end.
    while !String::from_utf8_lossy(&bytes).contains(" of ") {
        let read = master.read(&mut room).unwrap();
        bytes.extend_from_slice(&room[..read]);
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    bytes.extend(read_all(master));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let parser = screen(&bytes, 80);
    let contents = parser.screen().contents();
    for part in [
        "stopping: ",
        "interrupted before the first round: nothing was measured",
        "to start again: stackrace",
    ] {
        let flat = contents.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "no {part:?} in\n{contents}");
    }
    assert_eq!(ground.left(), [""; 0]);
}

fn interrupted_while_sizes_are_found_nothing_is_left() {
    interrupted_while_it_finds_sizes(&["compare", "a", "b", "--anyway", "--time", "60 s"]);
}

/// A trial that failed after a moment must not count as a fast one.
fn a_trial_that_fails_while_sizes_are_found_is_no_timing() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let program = ground.program(&["compare", "a", "b", "--anyway", "--time", "60 s"]);
    let line = "ulimit -f 8192; exec \"$0\" \"$@\"";
    let mut limited = shell(line, &program);
    let said = Said::of(&limited.output().unwrap());
    said.ended(3)
        .err_has("cannot be used")
        .err_has("File too large");
    assert_eq!(ground.left(), [""; 0]);
}

/// A line for the shell that goes on as this program.
#[expect(
    clippy::disallowed_methods,
    reason = "the program under test is a process"
)]
fn shell(line: &str, program: &Command) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(program.get_current_dir().unwrap())
        .stdin(Stdio::null());
    command
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        every_command_fits_every_terminal_and_has_colours_only_where_they_are_wanted,
        no_command_that_reads_makes_a_store,
        an_excerpt_of_a_study_fits_its_terminal,
        no_line_is_broken_twice,
        wide_letters_and_marks_are_measured_by_what_is_seen,
        colours_follow_the_environment_and_the_command_line,
        foreign_text_commands_no_terminal,
        a_name_with_line_breaks_begins_no_line,
        a_full_disk_behind_standard_output_is_an_error_of_every_command,
        a_reader_that_has_gone_ends_the_program_quietly,
        interrupted_while_sizes_are_found_nothing_is_left,
        a_trial_that_fails_while_sizes_are_found_is_no_timing
    ]
}
