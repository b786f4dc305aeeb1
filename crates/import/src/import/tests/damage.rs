//! Outputs that were damaged: refused, or read without another figure.

use super::*;

/// Every folder with its files.
pub(super) fn goldens() -> Vec<(String, Vec<(String, String)>)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/golden");
    let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
    let entries = |path: &Path| -> Vec<fs::DirEntry> {
        let mut all: Vec<fs::DirEntry> = fs::read_dir(path).unwrap().map(Result::unwrap).collect();
        all.sort_by_key(fs::DirEntry::file_name);
        all
    };
    entries(&root)
        .iter()
        .filter(|folder| folder.path().is_dir())
        .map(|folder| {
            let files = entries(&folder.path());
            let files = files
                .iter()
                .map(|file| (name(file), fs::read_to_string(file.path()).unwrap()));
            let tool = match name(folder).as_str() {
                "bonnie" => "bonnie++".to_owned(),
                other => other.to_owned(),
            };
            (tool, files.collect())
        })
        .collect()
}

/// Files that are read, not refused, as text and what is read.
fn readable() -> Vec<(String, String, Vec<Imported>)> {
    goldens()
        .into_iter()
        .flat_map(|(_, files)| files)
        .filter_map(|(name, text)| {
            let results = read(&text, None).ok()?;
            Some((name, text, results))
        })
        .collect()
}

/// The parts of a result that count: its tool, and its figures by name.
type Figures = (String, Vec<(String, f64)>);

fn figures(results: &[Imported]) -> Vec<Figures> {
    let of = |result: &Imported| {
        let heads = result.metrics.iter().zip(&result.values);
        let told = heads.filter_map(|(head, value)| Some((head.name.clone(), (*value)?.value)));
        (result.tool.to_owned(), told.collect())
    };
    results.iter().map(of).collect()
}

/// Cut off anywhere, an output is refused, or gives figures it had before the cut: never one of fewer
/// digits.
#[test]
fn a_text_that_is_cut_off_gives_no_other_figure() {
    for (name, text, results) in readable() {
        // A report under way is whole, and nothing shows that others came after it.
        if name.contains("status-interval") {
            continue;
        }
        let whole = figures(&results);
        // Many outputs are long; of those, places that fall into every part of a line will do.
        let step = match text.len() {
            0..=1000 => 1,
            1001..=8000 => 13,
            _ => 397,
        };
        for cut in (0..text.len())
            .step_by(step)
            .filter(|cut| text.is_char_boundary(*cut))
        {
            if let Ok(found) = read(&text[..cut], None) {
                for figure in figures(&found) {
                    let same = |whole: &Figures| {
                        let told = |cut: &(String, f64)| {
                            let mut known = whole.1.iter();
                            known.any(|known| {
                                // bonnie++ 2.00 rounds in its table (1.1g), which comes before its
                                // CSV.
                                let rounded = figure.0 == "bonnie++"
                                    && (known.1 - cut.1).abs() <= 0.06 * known.1;
                                known.0 == cut.0 && (known.1 == cut.1 || rounded)
                            })
                        };
                        whole.0 == figure.0 && figure.1.iter().all(told)
                    };
                    assert!(whole.iter().any(same), "{name}, cut at {cut}: {figure:?}");
                }
            }
        }
    }
}

/// One way to spoil a text.
#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Remove(usize, usize),
    RepeatLine(usize),
    DropLine(usize),
    Splice(usize, usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let any = any::<usize>;
    prop_oneof![
        (any(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any(), 1..40usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        any().prop_map(Damage::RepeatLine),
        any().prop_map(Damage::DropLine),
        (any(), any(), any()).prop_map(|(at, other, from)| Damage::Splice(at, other, from)),
    ]
}

fn damaged(text: &str, damages: &[Damage], others: &[(String, String, Vec<Imported>)]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for damage in damages {
        let length = bytes.len().max(1);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let line = |at: usize| at % lines.len().max(1);
        match damage {
            Damage::Flip(at, bit) => {
                if let Some(byte) = bytes.get_mut(at % length) {
                    *byte ^= 1 << bit;
                }
            }
            Damage::Remove(at, count) => {
                let at = at % length;
                bytes.drain(at.min(bytes.len())..(at + count).min(bytes.len()));
            }
            Damage::RepeatLine(at) | Damage::DropLine(at) if !lines.is_empty() => {
                let times = if matches!(damage, Damage::DropLine(_)) {
                    0
                } else {
                    2
                };
                let at = line(*at);
                let kept = lines.iter().enumerate();
                bytes = kept
                    .flat_map(|(index, line)| line.repeat(if index == at { times } else { 1 }))
                    .collect();
            }
            Damage::RepeatLine(_) | Damage::DropLine(_) => {}
            Damage::Splice(at, other, from) => {
                let other = others[other % others.len()].1.as_bytes();
                bytes.truncate(at % length);
                bytes.extend_from_slice(&other[from % other.len()..]);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn damaged_texts_are_refused_or_give_figures_that_make_sense() {
    let all = readable();
    let strategy = (any::<usize>(), prop::collection::vec(damage(), 1..4));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let tried = runner.run(&strategy, |(which, damages)| {
        let text = damaged(&all[which % all.len()].1, &damages, &all);
        for tool in importers()
            .iter()
            .map(|importer| Some(importer.name))
            .chain([None])
        {
            match read(&text, tool) {
                Ok(results) => {
                    for result in results {
                        prop_assert_eq!(result.metrics.len(), result.values.len());
                        for value in result.values.into_iter().flatten() {
                            prop_assert!(
                                value.value.is_finite() && value.value >= 0.0,
                                "{:?}",
                                value
                            );
                            prop_assert!(
                                value.step.is_finite() && value.step >= 0.0,
                                "{:?}",
                                value
                            );
                        }
                    }
                }
                Err(misread) => {
                    prop_assert!(misread.line >= 1 && misread.line <= text.split('\n').count());
                    prop_assert!(!misread.what.is_empty() && !misread.next.is_empty());
                }
            }
        }
        Ok(())
    });
    if let Err(error) = tried {
        panic!("{error}");
    }
}

/// A file, a figure in it that the text says twice, and another in its place.
const SAID_TWICE: &[(&str, &str, &str)] = &[
    ("dd/coreutils-two.txt", "0.097739", "0.197739"),
    ("dd/coreutils-two.txt", "687 MB/s", "387 MB/s"),
    (
        "dd/coreutils-two.txt",
        "(67 MB, 64 MiB) copied, 0.16",
        "(57 MB, 64 MiB) copied, 0.16",
    ),
    (
        "fio/fio-3.39_seqread_normal.txt",
        "BW=1365MiB/s",
        "BW=2365MiB/s",
    ),
    (
        "fio/fio-3.39_seqread_normal.txt",
        "1024MiB/750msec",
        "1024MiB/150msec",
    ),
    (
        "fio/fio-3.39_seqread_normal.txt",
        "50.00th=[  570]",
        "50.00th=[  970]",
    ),
    (
        "fio/fio-3.39_seqread_normal.txt",
        "avg=633.69",
        "avg=9933.69",
    ),
    (
        "fio/fio-3.39_seqread_normal.txt",
        "total=1024,0",
        "total=0,1024",
    ),
    (
        "fio/fio-3.39_randrw_jsonplus.json",
        "\"iops\" : 36791",
        "\"iops\" : 86791",
    ),
    (
        "fio/fio-3.39_randrw_jsonplus.json",
        "\"bw_bytes\" : 150",
        "\"bw_bytes\" : 450",
    ),
    (
        "fio/fio-3.39_randrw_jsonplus.json",
        "\"50.000000\" : 242688",
        "\"50.000000\" : 942688",
    ),
    (
        "ior/ior-3.3.0.txt",
        "write     1842.29",
        "write     3842.29",
    ),
    ("ior/ior-3.3.0.txt", "(1931.78 MB/sec)", "(2931.78 MB/sec)"),
    ("pgbench/pgbench-15.18_tpcb.txt", "tps = 357", "tps = 957"),
    (
        "pgbench/pgbench-15.18_tpcb.txt",
        "average = 11",
        "average = 41",
    ),
    ("mdtest/mdtest-3.3.0.txt", "9009.705", "1009.705"),
    ("elbencho/elbencho-3.1-1.csv", ",2784,", ",4784,"),
    (
        "elbencho/elbencho-3.1-1_from-csv.json",
        "\"2784\"",
        "\"4784\"",
    ),
    (
        "elbencho/elbencho-3.1-1_from-csv.json",
        "\"8589934592\"",
        "\"1589934592\"",
    ),
];

/// A digit changed in one of two places is found out where a text says a figure twice.
#[test]
fn a_changed_leading_digit_is_found_where_the_text_says_it_twice() {
    for (name, right, wrong) in SAID_TWICE {
        let text = golden(name);
        assert_eq!(text.matches(*right).count(), 1, "{name}: {right}");
        let misread = refused(&text.replacen(*right, wrong, 1));
        assert!(
            misread.what.contains("contradict") || misread.what.contains("is not what"),
            "{name}, {wrong}: {misread:?}"
        );
    }
}
