//! Outputs whose lines a mail program or a terminal broke: read as they were, or refused.

use super::matrix::{folded, trimmed, wrapped};
use super::*;

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
    // Where another line is as long as the window is wide by itself, or a blank may have stood there, it is open.
    assert!(some * 10 > tried * 7, "{some} of {tried}");
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

/// The lines of a text, each with its place, that have figures among other words.
fn numbered(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| {
            line.split_whitespace()
                .any(|word| word.parse::<f64>().is_ok())
        })
        .collect()
}

/// A figure that is none is the reason, and no fold, of which nothing shows.
#[test]
fn a_figure_that_is_none_in_whole_lines_is_not_called_a_fold() {
    let mut wrong = Vec::new();
    for (name, text, _) in whole() {
        let all = numbered(&text);
        let step = all.len() / 12 + 1;
        for (at, line) in all.into_iter().step_by(step) {
            let mut words = line.split_whitespace().rev();
            let word = words.find(|word| word.parse::<f64>().is_ok()).unwrap();
            for other in ["inf", "-12", "nan", "0", "12MBytes", "-"] {
                let place = line.rfind(word).unwrap();
                let changed = format!("{}{other}{}", &line[..place], &line[place + word.len()..]);
                let lines = text.lines().enumerate();
                let lines = lines.map(|(i, line)| if i == at { changed.as_str() } else { line });
                let text: String = lines.map(|line| format!("{line}\n")).collect();
                let Err(why) = read(&text, None) else {
                    continue;
                };
                if why.to_string().contains("the lines were folded") {
                    wrong.push(format!("{name}, {other} in line {}: {why}", at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// PostMark counts whole seconds; of none there is no rate.
#[test]
fn postmark_that_took_no_second_is_not_called_folded() {
    for name in ["151_default.txt", "151_phoronix.txt", "deb153_default.txt"] {
        let text = golden(&format!("postmark/{name}"));
        for line in text.lines().filter(|line| line.contains(" seconds")) {
            let Some(at) = line.find(|c: char| c.is_ascii_digit()) else {
                continue;
            };
            let digits = line[at..].find(|c: char| !c.is_ascii_digit()).unwrap();
            let none = format!("{}0{}", &line[..at], &line[at + digits..]);
            let why = refused(&text.replacen(line, &none, 1));
            assert!(!why.to_string().contains("folded"), "{name}: {why}");
        }
    }
}
