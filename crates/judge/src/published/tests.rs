//! Whether the data, the ratios and the remarks are what they should be.
//!
//! Each remark is tried both ways: on data that give a reason for it, and on the same data with
//! the reason taken away.

use proptest::prelude::*;

use super::card::{Card, PublishedSource};
use super::table::{PublishedFigure, PublishedTable, PublishedValue};
use super::{ALL, by_name, comparisons, conclusions, geometric_mean, remarks};
use stackrace_base::event::Better;

fn card(name: &str) -> &'static Card {
    by_name(name).unwrap()
}

fn table(name: &str) -> PublishedTable {
    PublishedTable::of(card(name)).unwrap()
}

/// Sentences of one check.
fn said(name: &str, check: &str, table: &PublishedTable) -> Vec<String> {
    remarks(card(name), table)
        .into_iter()
        .filter(|remark| remark.check == check)
        .map(|remark| remark.text)
        .collect()
}

/// The check speaks of the data as published, and no longer once they are changed.
fn speaks_until(name: &str, check: &str, words: &str, change: impl Fn(&mut PublishedTable)) {
    let mut table = table(name);
    let before = said(name, check, &table).join("\n");
    assert!(before.contains(words), "{check} of {name}: {before}");
    change(&mut table);
    let after = said(name, check, &table).join("\n");
    assert!(
        !after.contains(words),
        "{check} of {name}, changed: {after}"
    );
}

fn each(
    table: &mut PublishedTable,
    holds: impl Fn(&PublishedFigure) -> bool,
    change: impl Fn(&mut PublishedFigure),
) {
    let mut changed = 0;
    for figure in table.figures.iter_mut().filter(|figure| holds(figure)) {
        change(figure);
        changed += 1;
    }
    assert!(changed > 0, "no figure was changed");
}

#[test]
fn every_study_is_read_whole() {
    let counts: Vec<(&str, usize)> = ALL
        .iter()
        .map(|card| {
            (
                card.name,
                PublishedTable::of(card)
                    .unwrap()
                    .figures
                    .iter()
                    .filter(|f| !f.derived())
                    .count(),
            )
        })
        .collect();
    assert_eq!(
        counts,
        [
            ("drbd-gfs2", 96),
            ("netatalk-cnid", 72),
            ("zfs-ashift", 96),
            ("zfs-block-size", 0),
            ("zfs-three-os", 27),
        ]
    );
    assert!(ALL.is_sorted_by_key(|card| card.name));
}

#[test]
fn figures_are_those_published() {
    let ashift = table("zfs-ashift");
    let block = |levels: [&str; 2], metric: &str| {
        ashift
            .figures
            .iter()
            .find(|f| f.levels == levels && f.metric.name == metric)
            .unwrap()
            .clone()
    };
    assert_eq!(
        block(["mirror-2", "9"], "random delete").value(),
        Some(5378.0)
    );
    assert_eq!(
        block(["stripe-4", "12"], "block output").value(),
        Some(347_417.0 * 1024.0)
    );
    assert_eq!(
        block(["stripe-4", "9"], "sequential stat").reading,
        PublishedValue::TooShort
    );
    assert_eq!(
        block(["raidz1-4", "9"], "random seeks").cpu_percent,
        Some(5.0)
    );
    let three = table("zfs-three-os");
    let rate = three.of_metric("read-cold", "throughput").last().unwrap();
    assert!((rate.value().unwrap() - 9_207_209_203.0 / 72.7268).abs() < 1.0);
}

/// Levels of factors that have their own baseline: everything else equal, naively, from the text.
#[test]
fn ratios_are_those_of_a_naive_computation() {
    for (name, factor, base) in [
        ("zfs-ashift", 1, "9"),
        ("zfs-ashift", 0, "stripe-4"),
        ("netatalk-cnid", 0, "xfs"),
        ("netatalk-cnid", 1, "default"),
        ("zfs-three-os", 0, "openindiana-151a9"),
        ("zfs-three-os", 1, "off"),
    ] {
        let table = table(name);
        let mut naive = Vec::new();
        for b in table
            .figures
            .iter()
            .filter(|f| !f.derived() && f.levels[factor] != base)
        {
            let mut levels = b.levels.clone();
            levels[factor] = base.to_owned();
            let a = table.figures.iter().find(|f| {
                (&f.workload, &f.metric.name, &f.levels) == (&b.workload, &b.metric.name, &levels)
            });
            if let Some((Some(x), Some(y))) = a.map(|a| (a.value(), b.value())) {
                naive.push(if b.metric.better == Better::Higher {
                    y / x
                } else {
                    x / y
                });
            }
        }
        let own: Vec<f64> = comparisons(card(name), &table)
            .iter()
            .filter(|c| c.factor == factor)
            .map(|c| c.ratio)
            .collect();
        assert_eq!(own.len(), naive.len(), "{name} {factor}");
        assert!(!own.is_empty());
        for (own, naive) in own.iter().zip(&naive) {
            assert!((own / naive - 1.0).abs() < 1e-12, "{name}: {own} {naive}");
        }
    }
}

proptest! {
    /// All figures of one level times k: its ratios times k (or its inverse), the others unchanged.
    #[test]
    fn ratios_follow_their_figures(k in 0.01_f64..100.0) {
        let before = comparisons(card("netatalk-cnid"), &table("netatalk-cnid"));
        let mut changed = table("netatalk-cnid");
        each(&mut changed, |f| f.levels[1] == "tmp", |figure| {
            figure.reading = PublishedValue::Value(figure.value().unwrap() * k);
        });
        let after = comparisons(card("netatalk-cnid"), &changed);
        prop_assert_eq!(before.len(), after.len());
        for (x, y) in before.iter().zip(&after) {
            let factor = match (x.factor, x.b.as_str(), x.metric.better) {
                (1, "tmp", Better::Higher) => k,
                (1, "tmp", Better::Lower) => 1.0 / k,
                _ => 1.0,
            };
            prop_assert!((y.ratio / x.ratio / factor - 1.0).abs() < 1e-9, "{x:?} {y:?}");
        }
    }

    /// The geometric mean of ratios and of their inverses are inverse to each other.
    #[test]
    fn geometric_means_have_no_direction(ratios in prop::collection::vec(0.01_f64..100.0, 1..20)) {
        let inverse: Vec<f64> = ratios.iter().map(|r| 1.0 / r).collect();
        let product = geometric_mean(&ratios).unwrap() * geometric_mean(&inverse).unwrap();
        prop_assert!((product - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_nested_factor_is_not_held_equal() {
    let table = table("drbd-gfs2");
    let all = comparisons(card("drbd-gfs2"), &table);
    let of = |b: &str, metric: &str| -> Vec<(&str, f64)> {
        all.iter()
            .filter(|c| c.b == b && c.metric.name == metric)
            .map(|c| (c.within.as_str(), (c.ratio * 1000.0).round() / 1000.0))
            .collect()
    };
    assert_eq!(
        of("C", "block output"),
        [
            ("xen, ext3, primary/primary", 0.343),
            ("xen, ext3, primary/secondary", 0.364),
        ]
    );
    // GFS2 with one mount and with two, against ext3 on the same protocol.
    assert_eq!(of("gfs2", "rewrite").len(), 2);
}

#[test]
fn the_contradiction_is_found_and_left_out() {
    let table = table("netatalk-cnid");
    let found = said("netatalk-cnid", "contradiction", &table);
    assert_eq!(found.len(), 1);
    for words in [
        "copy-large-files of ext4, var",
        "200.6 s",
        "factor of 1.65",
        "121 s",
    ] {
        assert!(found[0].contains(words), "{found:?}");
    }
    let var = conclusions(card("netatalk-cnid"), &table);
    let var = var
        .iter()
        .find(|text| text.starts_with("cnid_db var"))
        .unwrap();
    assert!(var.contains("copy-large-files: elapsed (1.03)"), "{var}");
    speaks_until("netatalk-cnid", "contradiction", "contradict", |table| {
        each(
            table,
            |f| f.value() == Some(200.626),
            |figure| figure.reading = PublishedValue::Value(120.626),
        );
    });
}

#[test]
fn remarks_follow_the_data() {
    let higher = |factor: f64| {
        move |f: &mut PublishedFigure| {
            f.reading = PublishedValue::Value(f.value().unwrap() * factor)
        }
    };
    speaks_until("zfs-ashift", "single-run", "published once", |table| {
        let again = table.figures[0].clone();
        table.figures.push(again);
    });
    speaks_until("zfs-ashift", "cpu", "sequential create (8 of 8)", |table| {
        each(
            table,
            |f| f.metric.name == "sequential create",
            |f| f.cpu_percent = Some(50.0),
        );
    });
    speaks_until("zfs-ashift", "cpu", "handles characters", |table| {
        each(
            table,
            |f| f.value() == Some(44_318.0 * 1024.0),
            |f| f.cpu_percent = Some(40.0),
        );
    });
    speaks_until("drbd-gfs2", "cpu", "more than 100 %", |table| {
        each(
            table,
            |_| true,
            |f| f.cpu_percent = f.cpu_percent.map(|p| p.min(100.0)),
        );
    });
    speaks_until(
        "zfs-ashift",
        "outlier",
        "random delete of mirror-2, ashift 9",
        |table| {
            each(table, |f| f.value() == Some(5378.0), higher(2.5));
        },
    );
    speaks_until("zfs-ashift", "too-short", "+++++", |table| {
        each(
            table,
            |f| f.reading == PublishedValue::TooShort,
            |f| f.reading = PublishedValue::Value(1e4),
        );
    });
    speaks_until("drbd-gfs2", "brief", "19.2 ms", |table| {
        each(table, |f| f.metric.name.ends_with("stat"), higher(0.001));
    });
    speaks_until("zfs-ashift", "memory", "this is memory", |table| {
        each(table, |f| f.metric.name == "random seeks", higher(1e4));
    });
    speaks_until("drbd-gfs2", "memory", "over the network", |table| {
        each(
            table,
            |f| f.levels[2] == "gfs2" && f.metric.name == "random seeks",
            higher(0.01),
        );
    });
    speaks_until("zfs-three-os", "size", "copy-file: 8.6 GiB", |table| {
        each(
            table,
            |f| f.workload == "copy-file",
            |f| f.data_bytes = Some(64 << 30),
        );
    });
}

#[test]
fn remarks_on_lines_and_machines_follow_the_data() {
    let times = |factor: f64| {
        move |f: &mut PublishedFigure| {
            f.reading = PublishedValue::Value(f.value().unwrap() * factor)
        }
    };
    let video = |f: &PublishedFigure| f.workload == "stream-video" && f.metric.name == "read";
    speaks_until(
        "netatalk-cnid",
        "line",
        "stream-video: read (6 of 6)",
        |table| each(table, video, times(0.5)),
    );
    let mut fast = table("netatalk-cnid");
    assert!(
        !said("netatalk-cnid", "line", &fast)
            .join("")
            .contains("did not cross")
    );
    each(&mut fast, video, times(2.0));
    assert!(
        said("netatalk-cnid", "line", &fast)
            .join("")
            .contains("did not cross")
    );
    let written = |f: &PublishedFigure| f.metric.name == "block output" && f.levels[0] != "none";
    speaks_until("drbd-gfs2", "below-line", "36 % of the disks", |table| {
        each(table, written, times(2.5))
    });
    speaks_until("drbd-gfs2", "order", "chance here", |table| {
        each(
            table,
            |f| f.levels[0] == "A" && f.metric.name == "block output",
            times(2.0),
        );
    });
    speaks_until(
        "drbd-gfs2",
        "confounded",
        "protocol A against none: measured on two",
        |table| {
            each(table, |_| true, |f| f.machine = "one".to_owned());
        },
    );
    speaks_until("drbd-gfs2", "confounded", "15.5 GiB and 16 GiB", |table| {
        each(table, |_| true, |f| f.data_bytes = Some(16 << 30));
    });
    speaks_until("netatalk-cnid", "rounding", "±10 %", |table| {
        each(table, |f| f.workload == "postmark", times(10.0));
    });
    speaks_until(
        "netatalk-cnid",
        "control",
        "stream-video: write, stream-video: read",
        |table| {
            each(table, |f| video(f) && f.levels[1] == "var", times(0.7));
        },
    );
    speaks_until("netatalk-cnid", "stated-size", "8.65 GB", |table| {
        each(
            table,
            |f| f.workload == "copy-small-tree" && f.metric.name == "elapsed",
            times(1.0 / 1.095),
        );
    });
    speaks_until("zfs-three-os", "placement", "every reader", |table| {
        each(table, |f| f.value() == Some(115.16), times(0.5));
    });
}

#[test]
fn remarks_on_stated_numbers_follow_them() {
    assert!(said("zfs-ashift", "resilver", &table("zfs-ashift"))[0].contains("60.3 MB/s"));
    assert!(
        said("zfs-block-size", "rotation", &PublishedTable::default())[0].contains("0.71 times")
    );
    assert!(
        said("zfs-block-size", "no-figures", &PublishedTable::default())[0].contains("only plots")
    );
    assert!(said("netatalk-cnid", "resilver", &table("netatalk-cnid")).is_empty());
    assert!(said("netatalk-cnid", "rotation", &table("netatalk-cnid")).is_empty());
    assert!(said("netatalk-cnid", "no-figures", &table("netatalk-cnid")).is_empty());
}

/// A study of nothing, to give other data to.
const EMPTY: Card = Card {
    name: "empty",
    title: "",
    year: 0,
    question: "",
    environment: &[],
    words: &[],
    stated: super::card::NOTHING_STATED,
    factors: &[],
    source: PublishedSource::None,
    counterpart: super::counterpart::ZFS_BLOCK_SIZE,
};

#[test]
fn damaged_data_are_refused_with_their_line() {
    let with = |text: &'static str| {
        let card = Card {
            source: PublishedSource::Long(text),
            ..EMPTY
        };
        PublishedTable::of(&card).map(|table| table.figures.len())
    };
    assert_eq!(with("workload,metric,value,unit\ncp,elapsed,1.5,s"), Ok(1));
    assert!(
        with("workload,metric,value\n")
            .unwrap_err()
            .starts_with("line 1: columns")
    );
    assert!(
        with("workload,metric,value,unit\ncp,elapsed,1.5\n")
            .unwrap_err()
            .starts_with("line 2: 3 columns")
    );
    assert!(
        with("workload,metric,value,unit\ncp,elapsed,x,s\n")
            .unwrap_err()
            .contains("\"x\" is no number")
    );
    assert!(
        with("workload,metric,value,unit\ncp,elapsed,1,h\n")
            .unwrap_err()
            .contains("\"h\" is no unit")
    );
    let bonnie = |results| {
        let card = Card {
            source: PublishedSource::Bonnie {
                version: "1.03e",
                results,
                levels: "line\n1\n",
            },
            ..EMPTY
        };
        PublishedTable::of(&card).map(|table| table.figures.len())
    };
    assert_eq!(
        bonnie("m,1G,1,2,3,4,5,6,7,8,9,10,11,12,16,1,2,+++++,+++,5,6,,,9,10,11,12"),
        Ok(11)
    );
    let short = bonnie("m,1G,1,2").unwrap_err();
    assert!(short.starts_with("line 1: 4 fields"), "{short}");
    assert!(
        bonnie("m,1T,1,2,3,4,5,6,7,8,9,10,11,12,16,1,2,3,4,5,6,7,8,9,10,11,12")
            .unwrap_err()
            .contains("not a size")
    );
}
