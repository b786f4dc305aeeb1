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
        let letters: Vec<char> = line.chars().collect();
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

fn told(results: &[Imported]) -> Vec<(String, Vec<Named>)> {
    let of = |it: &Imported| {
        let values = it.values.iter().map(|it| it.map(|it| it.value));
        let names = it.metrics.iter().map(|head| head.name.clone());
        (it.tool.to_owned(), names.zip(values).collect())
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

#[test]
fn a_folded_text_is_read_as_it_was_or_refused() {
    let (mut broken, mut same) = (0, 0);
    for (name, text, results) in whole() {
        for width in [72, 76, 78] {
            for (way, pasted) in [
                ("folded", folded(&text, width)),
                (
                    "and quoted",
                    folded(&text, width)
                        .lines()
                        .map(|line| format!("> {line}\n"))
                        .collect(),
                ),
                ("wrapped", wrapped(&text, width)),
            ] {
                if pasted == text {
                    continue;
                }
                broken += 1;
                match read(&pasted, None) {
                    Ok(found) => {
                        let (found, whole) = (told(&found), told(&results));
                        same += usize::from(found == whole);
                        // Where half a report is read (bonnie++), the other half is missing, and no figure is another.
                        let figures = |all: Vec<(String, Vec<Named>)>| {
                            all.into_iter()
                                .flat_map(|(_, figures)| figures)
                                .collect::<Vec<_>>()
                        };
                        let (found, whole) = (figures(found), figures(whole));
                        for (name_of, value) in &found {
                            let known =
                                value.is_none() || whole.contains(&(name_of.clone(), *value));
                            assert!(known, "{name}, {way} at {width}: {name_of} {value:?}");
                        }
                    }
                    Err(why) => assert!(!why.next.is_empty(), "{name}: {why}"),
                }
            }
        }
    }
    // Most are read: what is refused has tables whose columns are gone, or two readings.
    assert!(same * 4 > broken * 3, "{same} of {broken}");
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
