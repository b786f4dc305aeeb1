//! Outputs whose lines a mail program or a terminal broke: read as they were, or refused.

use super::*;

/// A text as a mail program folds it, at blanks.
fn folded(text: &str, width: usize) -> String {
    let mut all = String::new();
    for line in text.lines() {
        let mut rest = line;
        while rest.len() > width && rest.is_ascii() {
            let indented = rest.len() - rest.trim_start().len();
            let at = rest[..=width].rfind(' ').filter(|at| *at > indented);
            let Some(at) = at.or(rest[indented..].find(' ').map(|at| at + indented)) else {
                break;
            };
            all.push_str(rest[..at].trim_end());
            all.push('\n');
            rest = rest[at..].trim_start();
        }
        all.push_str(rest);
        all.push('\n');
    }
    all
}

/// A text as a terminal breaks it.
fn wrapped(text: &str, width: usize) -> String {
    let mut all = String::new();
    for line in text.lines() {
        let mut letters: Vec<char> = Vec::new();
        for letter in line.chars() {
            // It shows blanks up to the next stop, and these are copied.
            let stop = letters.len() - letters.len() % 8 + 8;
            match letter {
                '\t' => letters.resize(stop, ' '),
                _ => letters.push(letter),
            }
        }
        for part in letters.chunks(width) {
            all.extend(part);
            all.push('\n');
        }
        if letters.is_empty() {
            all.push('\n');
        }
    }
    all
}

fn stored(text: &str) -> String {
    let mut all = String::new();
    for line in text.replace('=', "=3D").lines() {
        let mut rest = line;
        while rest.len() > 75 && rest.is_ascii() {
            // Not within a code.
            let at = (70..75)
                .rev()
                .find(|at| !rest[at - 2..*at].contains('='))
                .unwrap();
            all.push_str(&rest[..at]);
            all.push_str("=\n");
            rest = &rest[at..];
        }
        all.push_str(rest);
        all.push('\n');
    }
    all
}

/// A figure by its name.
type Named = (String, Option<f64>);

/// What was done, and its figures.
type Told = (String, Vec<Fact>, Vec<Named>);

fn told(results: &[Imported]) -> Vec<Told> {
    let of = |it: &Imported| {
        let values = it.values.iter().map(|it| it.map(|it| it.value));
        let names = it.metrics.iter().map(|head| head.name.clone());
        (
            format!("{}: {}", it.tool, it.workload),
            it.settings.clone(),
            names.zip(values).collect(),
        )
    };
    results.iter().map(of).collect()
}

/// Every golden text, as (name, text, what is read of it).
fn whole() -> Vec<(String, String, Vec<Imported>)> {
    let all = goldens().into_iter().flat_map(|(_, files)| files);
    let short = all.filter(|(_, text)| text.len() < 20_000 && text.is_ascii());
    let read = short.filter_map(|(name, text)| {
        let results = read(&text, None).ok()?;
        Some((name, text, results))
    });
    read.collect()
}

/// A text as people number its lines before they show it.
fn numbered(text: &str) -> String {
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| format!("{:4}: {line}\n", at + 1))
        .collect()
}

/// Lines that end in blanks lose them where a terminal's text is copied.
fn trimmed(text: &str) -> String {
    text.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Tools whose text shows their command: all of it is read, or nothing.
const WITH_COMMAND: [&str; 5] = ["dd", "elbencho", "iozone", "mdtest", "time"];

/// Fails where a reading says what the whole text does not.
fn says_nothing_else(found: &[Told], whole: &[Told], what: &str) {
    for (work, settings, figures) in found {
        let tool = work.split(':').next().unwrap();
        if WITH_COMMAND.contains(&tool) {
            assert!(
                whole
                    .iter()
                    .any(|known| known.0 == *work && known.1 == *settings),
                "{what}: {work}, {settings:?}"
            );
        }
        // Where half a report is read (bonnie++), the other half is missing, and no figure is another.
        for figure in figures.iter().filter(|(_, value)| value.is_some()) {
            let known = whole.iter().any(|known| known.2.contains(figure));
            assert!(known, "{what}: {figure:?}");
        }
    }
}

fn check_folded(widths: &[usize]) -> (usize, usize) {
    let (mut broken, mut same) = (0, 0);
    for (name, text, results) in whole() {
        for width in widths.iter().copied() {
            let mail = folded(&text, width);
            let quoted = mail.lines().map(|line| format!("> {line}\n")).collect();
            let terminal = wrapped(&text, width);
            for (way, pasted) in [
                ("folded", mail),
                ("and quoted", quoted),
                ("numbered", wrapped(&numbered(&text), width)),
                ("copied", trimmed(&terminal)),
                ("wrapped", terminal),
            ] {
                if pasted == text {
                    continue;
                }
                broken += 1;
                match read(&pasted, None) {
                    Ok(found) => {
                        let (found, whole) = (told(&found), told(&results));
                        same += usize::from(found == whole);
                        says_nothing_else(&found, &whole, &format!("{name}, {way} at {width}"));
                    }
                    Err(why) => assert!(!why.next.is_empty(), "{name}: {why}"),
                }
            }
        }
    }
    (same, broken)
}

#[test]
fn a_folded_text_is_read_as_it_was_or_refused() {
    let (same, broken) = check_folded(&[40, 76, 80]);
    // Most are read: what is refused has tables whose columns are gone, or two readings.
    assert!(same * 5 > broken * 3, "{same} of {broken}");
}

/// Minutes without optimisation: `cargo test -p stackrace-import every_width -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn every_width_of_a_window_is_read_as_it_was_or_refused() {
    for width in [36, 38, 60, 72, 78, 100, 120, 132] {
        check_folded(&[width]);
    }
}

/// What is lost of a command makes other work the same work.
#[test]
fn a_folded_command_keeps_its_operands_or_is_refused() {
    let report = "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10 s, 107 MB/s\n";
    let (mut tried, mut some) = (0, 0);
    for command in [
        "$ dd if=/dev/zero of=/mnt/tank/testfile.img bs=1M count=1024 oflag=direct conv=fdatasync status=none",
        "root@nas:~# for i in 1; do dd if=/dev/zero of=/mnt/tank/some-longer-name/file bs=1M count=1024 conv=fsync oflag=direct,nonblock; done",
        "$ time sudo dd of=/mnt/a-very-long-directory-name/and-another/one/test bs=1024k if=/dev/zero count=1k conv=fdatasync,notrunc",
    ] {
        let text = format!("{command}\n{report}");
        let whole = told(&read(&text, None).unwrap());
        for width in 36..command.len() {
            let mail = folded(&text, width);
            let terminal = wrapped(&text, width);
            for pasted in [&mail, &trimmed(&terminal), &terminal] {
                match read(pasted, None) {
                    Ok(found) => assert_eq!(told(&found), whole, "{width}: {pasted}"),
                    Err(why) => assert!(why.line > 0 && !why.next.is_empty(), "{why}"),
                }
            }
            tried += 1;
            some += usize::from(read(&terminal, None).is_ok());
        }
    }
    // Where another line is as long as the window is wide by itself, it is open.
    assert!(some * 5 > tried * 4, "{some} of {tried}");
}

#[test]
fn a_mail_as_it_is_stored_is_read() {
    for (name, text, results) in whole() {
        let found = read(&stored(&text), None).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(told(&found), told(&results), "{name}");
    }
}

#[test]
fn the_line_of_a_refusal_is_that_of_the_mail() {
    let why = refused("a=3D1 is what=\n it says\n1024+0 records in\n1024+0 records out\n");
    assert_eq!(why.line, 4, "{why}");
}

#[test]
fn folded_lines_of_fio_are_read_with_a_note_and_a_text_that_is_cut_is_not_called_folded() {
    let text = golden("fio/fio-3.39_seqread_normal.txt");
    let found = read(&folded(&text, 72), None).unwrap();
    assert_eq!(told(&found), told(&from("fio/fio-3.39_seqread_normal.txt")));
    assert!(found[0].notes.iter().any(|note| note.contains("folded")));
    let cut = text.split("Run status").next().unwrap();
    assert!(!refused(cut).next.contains("folded"));
}

#[test]
fn a_text_that_is_wrong_for_another_reason_is_not_called_folded() {
    let page = golden("dd/coreutils-two.txt").replace('\n', "<br>\n");
    assert!(!refused(&page).next.contains("folded"));
    let comma = golden("ioping/ioping-1.3_latency.txt").replace('.', ",");
    let why = refused(&comma);
    assert!(
        !why.next.contains("folded") && why.next.contains("LC_ALL=C"),
        "{why}"
    );
    let rate = golden("pgbench/pgbench-15.18_tpcb.txt").replace("357.88", "357,88");
    assert!(refused(&rate).next.contains("LC_ALL=C"));
}
