//! Outputs as people paste them: out of a terminal, a mail or a page.

use super::*;

/// A way, by its name, and what it does.
type Way = (&'static str, fn(&str) -> String);

/// Changes that a way through a terminal, a mail or a page makes to a text, and must not make to
/// its figures.
const WAYS: &[Way] = &[
    ("line breaks of Windows", |text| text.replace('\n', "\r\n")),
    ("tabs turned into blanks", |text| {
        text.replace('\t', "        ")
    }),
    ("blanks at the end of each line", |text| {
        text.replace('\n', "   \n")
    }),
    ("a blank line after each line", |text| {
        text.replace('\n', "\n\n")
    }),
    ("a prompt before and after", |text| {
        format!("root@nas:~# run-it --now\n{text}root@nas:~# \n")
    }),
    ("progress before it", |text| {
        format!("Writing a byte at a time...\rdone\nstart 'em...done...done...\n{text}")
    }),
    ("no line break at the end", |text| {
        text.trim_end().to_owned()
    }),
];

/// Texts that stand in one block, and what they hold.
const WHOLE: &[&str] = &[
    "bonnie/1.03e_full_s1100M_n16.stdout.txt",
    "bonnie/1.97_s512M_64k_n32.stdout.txt",
    "bonnie/2.00a_full_s1G_n4.stdout.txt",
    "postmark/151_default.txt",
    "postmark/deb153_default.txt",
    "postmark/deb153_phoronix.txt",
    "sysbench/sysbench-0.4.12_rndrw.txt",
    "sysbench/sysbench-0.4.12_seqwr.txt",
    "sysbench/sysbench-1.0.20_rndrw.txt",
    "sysbench/sysbench-1.0.20_rndrd_async_direct_histogram.txt",
];

fn values(results: &[Imported]) -> Vec<Vec<Option<f64>>> {
    let of = |it: &Imported| it.values.iter().map(|it| it.map(|it| it.value)).collect();
    results.iter().map(of).collect()
}

fn notes(results: &[Imported]) -> String {
    let notes = results.iter().flat_map(|it| &it.notes);
    notes.map(String::as_str).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_way_a_text_came_changes_no_figure() {
    for name in WHOLE {
        let text = golden(name);
        let whole = values(&read(&text, None).unwrap());
        for (way, changed) in WAYS {
            // A table whose lines are torn apart is none.
            if name.starts_with("bonnie") && *way == "a blank line after each line" {
                continue;
            }
            let found = read(&changed(&text), None)
                .unwrap_or_else(|error| panic!("{name}, {way}: {error}"));
            assert_eq!(values(&found), whole, "{name}, {way}");
        }
    }
}

#[test]
fn several_runs_in_one_text_are_several_results() {
    for name in WHOLE {
        let text = golden(name);
        let one = values(&read(&text, None).unwrap());
        let two = format!("first:\n{text}\nsecond:\n{text}");
        let two = values(&read(&two, None).unwrap_or_else(|error| panic!("{name}: {error}")));
        assert_eq!(two, [one.clone(), one].concat(), "{name}");
    }
}

#[test]
fn a_table_without_its_blanks_is_read_by_its_words() {
    for name in [
        "bonnie/1.03e_full_s1100M_n16.stdout.txt",
        "bonnie/1.97_s512M_64k_n32.stdout.txt",
    ] {
        let text = golden(name);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let table: Vec<&str> = text
            .lines()
            .filter(|line| line.matches(',').count() < 20)
            .collect();
        let whole = table
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        let squeezed = table
            .iter()
            .map(|line| words(line) + "\n")
            .collect::<String>();
        let found = read(&squeezed, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            values(&found),
            values(&read(&whole, None).unwrap()),
            "{name}"
        );
    }
}

#[test]
fn the_csv_line_counts_where_the_table_above_it_lost_its_first_half() {
    for name in [
        "bonnie/1.03e_full_s1100M_n16.stdout.txt",
        "bonnie/1.97_s512M_64k_n32.stdout.txt",
    ] {
        let text = golden(name);
        let whole = values(&read(&text, None).unwrap());
        for first in 1..text.lines().count() {
            let rest: String = text
                .lines()
                .skip(first)
                .map(|line| format!("{line}\n"))
                .collect();
            let found = read(&rest, None)
                .unwrap_or_else(|error| panic!("{name} from line {first}: {error}"));
            assert_eq!(values(&found), whole, "{name} from line {first}");
        }
    }
}

#[test]
fn lines_that_sysbench_prints_under_way_are_passed_over() {
    let text = golden("sysbench/sysbench-0.4.12_rndrw.txt");
    let whole = values(&read(&text, None).unwrap());
    let under_way = "Time limit exceeded, exiting...\n(last message repeated 7 times)\nDone.\n";
    let pasted = text.replace("Done.\n", under_way);
    assert_eq!(values(&read(&pasted, None).unwrap()), whole);
}

/// Cut off at a line at either end, what is left is the same as in the whole text, what is missing is
/// said, and what is left of one line is no result.
#[test]
fn what_was_cut_off_at_either_end_is_left_out_and_said() {
    let cases = [
        (
            "sysbench/sysbench-0.4.12_rndrw.txt",
            "Operations performed",
            "percentile:",
        ),
        (
            "sysbench/sysbench-1.0.20_rndrw.txt",
            "File operations:",
            "Latency (ms):",
        ),
        ("postmark/deb153_phoronix.txt", "\t", "deleted ("),
    ];
    for (name, from, until) in cases {
        let text = golden(name);
        let whole = values(&read(&text, None).unwrap()).remove(0);
        let head = text.find(from).unwrap();
        let tail = text.find(until).unwrap();
        let tail = tail + text[tail..].find('\n').unwrap() + 1;
        for (part, missing) in [(&text[head..], "beginning"), (&text[..tail], "end")] {
            let found =
                read(part, None).unwrap_or_else(|error| panic!("{name}, {missing}: {error}"));
            let mut some = 0;
            for (found, whole) in values(&found).remove(0).into_iter().zip(&whole) {
                let Some(found) = found else { continue };
                let whole = whole.unwrap();
                assert!(
                    (found - whole).abs() <= 1e-3 * whole,
                    "{name}: {found} and {whole}"
                );
                some += 1;
            }
            assert!(some >= 3, "{name}, {missing}: {some} figures");
            if !name.starts_with("postmark") || missing == "end" {
                assert!(
                    notes(&found).contains("missing"),
                    "{name}: {}",
                    notes(&found)
                );
            }
        }
    }
}

#[test]
fn figures_that_contradict_each_other_are_refused_with_both_places() {
    let text = golden("bonnie/1.03e_full_s1100M_n16.stdout.txt");
    let wrong = text.replacen("testhost,1100M,114598", "testhost,1100M,214598", 1);
    let refused = read(&wrong, None).unwrap_err();
    assert!(
        refused
            .what
            .contains("table above it disagree: character output"),
        "{refused}"
    );
    let text = golden("sysbench/sysbench-0.4.12_rndrw.txt");
    let refused = read(&text.replacen("1200 Read", "1300 Read", 1), None).unwrap_err();
    assert!(refused.what.contains("are not 4560"), "{refused}");
    let text = golden("postmark/deb153_phoronix.txt");
    let line = text
        .lines()
        .find(|line| line.contains("Creation alone"))
        .unwrap();
    let refused = read(&text.replacen(line, "", 1), None).unwrap_err();
    assert!(
        refused.what.contains("is missing before this line"),
        "{refused}"
    );
}

/// Numbered by cat(1), or found by grep(1): read, or refused with what to take away.
#[test]
fn dd_with_numbers_before_its_lines_is_read_or_told_why_not() {
    let text = golden("dd/coreutils-two.txt");
    let whole = values(&read(&text, None).unwrap());
    let lines = || text.lines().enumerate();
    let cat: String = lines()
        .map(|(at, line)| format!("{:6}\t{line}\n", at + 1))
        .collect();
    let grep: String = lines()
        .map(|(at, line)| format!("{}:{line}\n", 7 * at + 3))
        .collect();
    let named: String = lines()
        .map(|(at, line)| format!("log.txt:{}:{line}\n", 7 * at + 3))
        .collect();
    for numbered in [cat, grep, named] {
        let found = read(&numbered, None).unwrap_or_else(|why| panic!("{numbered}: {why}"));
        assert_eq!(values(&found), whole, "{numbered}");
    }
    let blanks: String = lines()
        .map(|(at, line)| format!("{} {line}\n", at + 1))
        .collect();
    let why = refused(&blanks);
    assert!(why.next.contains("without the number of the line"), "{why}");
}
