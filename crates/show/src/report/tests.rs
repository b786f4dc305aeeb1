//! Every report on every kind of record: nothing lost, nothing that breaks out, the same bytes.

use super::*;
use stackrace_base::event::{Event, WorkloadHead};
use stackrace_judge::verdict::{Beside, BesideRow, Interval, Verdict};
use stackrace_results::record::{Record, sample, sample_cuts};

/// The verdict of the real judge.
fn judged(record: &Record) -> Verdict {
    stackrace_judge::verdict::judge(&stackrace_judge::verdict::Evidence::of(record))
}

fn records() -> Vec<(&'static str, Record)> {
    vec![
        ("small", sample::record(&sample::small())),
        ("sweep", sample::record(&sample::sweep())),
        ("workload-sweep", sample::record(&sample::workload_sweep())),
        ("cuts", sample_cuts::with_cuts()),
        ("failure", sample::with_failure()),
        ("no-rounds", sample::without_rounds()),
        ("hostile", sample::record(&sample::hostile())),
    ]
}

fn options() -> ReportOptions {
    ReportOptions {
        next: "stackrace resume 2026-11-21T1405-k3f9".into(),
        ..ReportOptions::default()
    }
}

fn rendered(name: &str, record: &Record) -> String {
    let report = by_name(name).unwrap();
    let bytes = report.render(record, &judged(record), &options());
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_list_is_alphabetical_and_every_form_is_named() {
    let names: Vec<&str> = ALL.iter().map(|report| report.name).collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    for report in ALL {
        assert!(!report.summary.is_empty());
        assert!(report.extension.chars().all(|c| c.is_ascii_lowercase()));
    }
    assert!(by_name("pdf").is_none());
}

#[test]
fn a_workload_in_slices_says_what_the_order_of_the_turns_did() {
    let record = sample::in_slices();
    for form in ["terminal", "markdown"] {
        let page = rendered(form, &record);
        let (_, after) = page
            .split_once("Order of turns\n")
            .unwrap_or_else(|| panic!("{page}"));
        let words = after.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = &record.head.workloads[1].name;
        let begin = format!("- {name}: measured in slices of 50.0 ms: ");
        assert!(words.starts_with(&begin), "{words}");
        assert!(!rendered(form, &sample::record(&sample::small())).contains("Order of turns"));
    }
}

#[test]
fn a_terminal_page_says_its_confidence_once() {
    for (name, record) in records() {
        let page = rendered("terminal", &record);
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.matches("% confidence").count() == 1, "{name}: {page}");
    }
}

/// Source files below a directory, those of tests left out.
fn sources(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found
}

/// A report is in the files that its how-to names, and in no others.
#[test]
fn the_how_to_names_every_file_of_a_report() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = include_str!("../../../../docs/howto/add-a-report.md");
    let quoted = page.split('`').skip(1).step_by(2);
    let files: Vec<&str> = quoted.filter(|word| word.contains("src/")).collect();
    assert_eq!(
        files,
        [
            "crates/show/src/report/NAME.rs",
            "crates/show/src/report/mod.rs"
        ]
    );
    let folders = [
        "src",
        "crates/base/src",
        "crates/results/src",
        "crates/afp/src",
        "crates/judge/src",
        "crates/machine/src",
        "crates/layers/src",
        "crates/load/src",
        "crates/study/src",
        "crates/show/src",
        "crates/remote/src",
    ]
    .into_iter();
    let sources: Vec<_> = folders
        .flat_map(|folder| sources(&root.join(folder)))
        .collect();
    for report in ALL {
        let name = report.name;
        // `html::HTML`, and where the constant itself is.
        let constant = name.to_uppercase();
        let words = [format!("{name}::{constant}"), format!("{constant}: Report")];
        let mut holders: Vec<String> = sources
            .iter()
            .filter(|path| {
                let text = std::fs::read_to_string(path).unwrap();
                words.iter().any(|word| text.contains(word))
            })
            .map(|path| path.strip_prefix(root).unwrap().display().to_string())
            .map(|path| path.replace(&format!("{name}/mod.rs"), &format!("{name}.rs")))
            .collect();
        holders.sort();
        let mut expected: Vec<String> = files.iter().map(|f| f.replace("NAME", name)).collect();
        expected.sort();
        assert_eq!(holders, expected, "{name}");
    }
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    for (sample, record) in records() {
        let again = Record::parse(
            record
                .lines
                .iter()
                .map(|line| serde_json::to_string(line).unwrap() + "\n")
                .collect::<String>()
                .as_bytes(),
            std::path::Path::new("log.jsonl"),
        )
        .unwrap();
        for report in ALL {
            let name = report.name;
            let text = rendered(name, &record);
            assert!(!text.is_empty());
            // From memory and from the log: figures must survive being written and read.
            assert!(text == rendered(name, &again), "{sample}, {name}");
        }
    }
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let page = rendered("html", &sample::record(&sample::hostile()));
    for bad in ["<script", "<img", "<b>", "</title></svg>"] {
        assert!(!page.contains(bad), "{bad}");
    }
    assert!(page.contains("&lt;script&gt;"));
    assert!(page.contains("日本語"));
}

#[test]
fn the_page_fetches_nothing() {
    for (sample, record) in records() {
        let page = rendered("html", &record);
        for bad in [
            "http://", "https://", "//cdn", "src=", "@import", "url(", "<link",
        ] {
            // Only markup can fetch; a made-up study that says so as text is none.
            let found = page.contains(bad) && !(sample == "hostile" && bad == "src=");
            assert!(!found, "{sample}: {bad}");
        }
    }
}

#[test]
fn the_page_is_whole() {
    for (sample, record) in records() {
        let page = rendered("html", &record);
        let mut ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{sample}: an id twice");
        for anchor in page.split("href=\"#").skip(1) {
            let id = anchor.split('"').next().unwrap();
            assert!(ids.contains(&id), "{sample}: {id}");
        }
        for drawing in page.split("<svg ").skip(1) {
            let drawing = drawing.split("</svg>").next().unwrap();
            let described = drawing.contains("<title") && drawing.contains("<desc");
            assert!(
                described || drawing.contains("aria-hidden"),
                "{sample}: {drawing}"
            );
        }
        for element in [
            "table", "svg", "g", "path", "details", "section", "figure", "text",
        ] {
            let opened = page.matches(&format!("<{element} ")).count()
                + page.matches(&format!("<{element}>")).count();
            let closed = page.matches(&format!("</{element}>")).count();
            assert_eq!(opened, closed, "{sample}: {element}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf "), "{sample}");
        assert!(page.len() < 1_500_000, "{sample}: {}", page.len());
    }
}

/// Enough of RFC 4180 to read what was written.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                row.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().unwrap().push(c),
        }
    }
    let last = rows.pop().unwrap();
    assert_eq!(last, [""], "the text ends with a line break");
    rows
}

#[test]
fn every_trial_and_metric_has_its_row() {
    for (sample, record) in records() {
        let rows = parse_csv(&rendered("csv", &record));
        let expected: usize = record
            .trials()
            .map(|trial| record.head.workloads[trial.workload].metrics.len())
            .sum();
        assert_eq!(rows.len(), expected + 1, "{sample}");
        let width = rows[0].len();
        assert!(rows.iter().all(|row| row.len() == width), "{sample}");
        let column = |name: &str| rows[0].iter().position(|head| head == name).unwrap();
        let (round, name, value) = (column("round"), column("configuration"), column("value"));
        let mut at = 1;
        for trial in record.trials() {
            for expected in &trial.metrics {
                let row = &rows[at];
                assert_eq!(row[round], trial.round.to_string());
                assert_eq!(
                    row[name],
                    record.head.configurations[trial.configuration].name
                );
                assert_eq!(row[value].parse().ok(), *expected, "{sample}");
                at += 1;
            }
        }
    }
}

/// Width as terminals count it: East Asian characters take two columns, combining marks none.
fn columns(line: &str) -> usize {
    line.chars()
        .map(|c| {
            if ('\u{300}'..'\u{370}').contains(&c) {
                0
            } else if u32::from(c) >= 0x1100
                && u32::from(c) < 0x1_0000
                && !"–…·\u{fffd}".contains(c)
                && !('\u{2000}'..'\u{2e80}').contains(&c)
            {
                2
            } else {
                1
            }
        })
        .sum()
}

#[test]
fn a_terminal_of_any_width_holds_every_line() {
    for (sample, record) in records() {
        for width in [50, 64, 80, 200] {
            let bytes = terminal::TERMINAL.render(
                &record,
                &judged(&record),
                &ReportOptions {
                    screen: Screen { width },
                    ..options()
                },
            );
            let text = String::from_utf8(bytes).unwrap();
            for line in text.lines() {
                let command = line.trim_start().starts_with('`');
                assert!(
                    command || columns(line) <= width.min(120),
                    "{sample} at {width}: {} columns: {line}",
                    columns(line)
                );
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}

/// A run with names and numbers of configurations drawn by a seed: long, empty of spaces, wide, hostile.
fn drawn(seed: u64) -> Record {
    let parts = [
        "xfs",
        "日本語のファイルシステム",
        "a-name-without-any-place-to-break-it-",
        "größe ",
        "\u{1b}[31mred",
        "\u{202e}reversed",
        "🙂",
        "4 KiB, compression=zstd:3, ",
        "e\u{301}",
    ];
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut name = |unique: usize| {
        let count = 1 + draw(12);
        let parts: String = (0..count).map(|_| parts[draw(9) as usize]).collect();
        format!("{parts}{unique}")
    };
    let mut shape = sample::small();
    let first = shape.workloads[0].clone();
    shape.configurations = (0..2 + seed as usize % 13)
        .map(|at| (name(at), vec![name(at)]))
        .collect();
    shape.workloads = (0..1 + seed as usize % 4)
        .map(|at| WorkloadHead {
            name: name(at),
            summary: name(at),
            ..first.clone()
        })
        .collect();
    shape.rounds = 3;
    shape.speed = |configuration, workload| 1e6 * (1 + configuration + workload) as f64;
    sample::record(&shape)
}

#[test]
fn the_answer_fits_a_screen_whatever_the_names_are() {
    for seed in 0..24 {
        let record = drawn(seed);
        let verdict = judged(&record);
        let options = ReportOptions {
            lines_max: Some(20),
            ..options()
        };
        let page = |colour| page(&record, &verdict, &options).render(colour);
        let text = page(false);
        assert!(text.starts_with("VERDICT"), "{seed}");
        assert!(text.lines().count() <= 20, "{seed}:\n{text}");
        assert!(text.contains("stackrace re"), "{seed}: nothing to do next");
        for line in text.lines() {
            assert!(
                columns(line) <= 80,
                "{seed}: {} columns: {line}",
                columns(line)
            );
            assert!(!line.chars().any(char::is_control), "{seed}: {line:?}");
        }
        assert_eq!(bare(&page(true)), text, "{seed}");
    }
}

/// The text without what colours it; blanks at the ends of lines do not count.
fn bare(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('m').unwrap();
        assert!(
            code.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "{code}"
        );
        bare.push_str(rest);
    }
    bare.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn colour_adds_nothing_but_colour() {
    let record = sample::record(&sample::small());
    let coloured = page(&record, &judged(&record), &options()).render(true);
    assert_ne!(bare(&coloured), coloured);
    assert_eq!(bare(&coloured), rendered("terminal", &record));
}

#[test]
fn a_markdown_table_keeps_its_columns() {
    for (sample, record) in records() {
        let text = rendered("markdown", &record);
        let mut width = None;
        for line in text.lines() {
            let bars = line
                .replace("\\\\", "")
                .replace("\\|", "")
                .matches('|')
                .count();
            if line.starts_with('|') {
                assert_eq!(*width.get_or_insert(bars), bars, "{sample}: {line}");
            } else {
                width = None;
            }
            assert!(!line.contains("<script"));
        }
    }
}

#[test]
fn programs_get_the_verdict_and_every_observation() {
    for (_, record) in records() {
        let page: serde_json::Value = serde_json::from_str(&rendered("json", &record)).unwrap();
        let trials = page["trials"].as_array().unwrap();
        assert_eq!(trials.len(), record.trials().count());
        assert!(
            !trials[0]["phases"][0]["operations"][0]["histogram"]
                .as_str()
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            page["verdict"]["configurations"].as_array().unwrap().len(),
            record.head.configurations.len()
        );
    }
}

#[test]
fn published_ratios_stand_beside_own_ones() {
    let record = sample::record(&sample::small());
    let row = BesideRow {
        own: "xfs against ext4".into(),
        published: "gfs2 against ext3".into(),
        within: "cold".into(),
        own_on: "copy: throughput".into(),
        published_on: "block output".into(),
        ratio: Some(Interval {
            estimate: 0.86,
            low: 0.81,
            high: 0.91,
        }),
        published_ratio: 0.93,
        published_count: 2,
        inside: Some(false),
        remarked: true,
    };
    let options = ReportOptions {
        beside: Some(Beside {
            study: "drbd-gfs2".into(),
            stands_in: "nothing stands for GFS2".into(),
            rows: vec![row],
            unmatched: vec!["published levels without a partner here: A".into()],
        }),
        ..ReportOptions::default()
    };
    let words = [
        "xfs against ext4, cold",
        "gfs2 against ext3",
        "0.93*",
        "not a storage figure",
        "nothing stands for GFS2",
        "without a partner here: A",
    ];
    for name in ["terminal", "markdown", "html"] {
        let report = by_name(name).unwrap();
        let text = report.render(&record, &judged(&record), &options);
        // Markdown escapes the star, and a terminal breaks lines.
        let text = String::from_utf8(text).unwrap().replace('\\', "");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in words {
            assert!(text.contains(words), "{name}: {words}: {text}");
        }
        assert!(!rendered(name, &record).contains("drbd-gfs2"), "{name}");
    }
    let text = by_name("json")
        .unwrap()
        .render(&record, &judged(&record), &options);
    let page: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(page["beside_published"]["rows"][0]["inside"], false);
    let page: serde_json::Value = serde_json::from_str(&rendered("json", &record)).unwrap();
    assert!(page.get("beside_published").is_none());
}

#[test]
fn a_change_midway_is_drawn_where_it_is() {
    let mut record = sample::record(&sample::small());
    for line in &mut record.lines {
        let Event::Trial(trial) = &mut line.event else {
            continue;
        };
        let full = (trial.configuration, trial.workload) == (1, 0);
        let bytes = |at: u64| match full && at >= 120 {
            true => 400_000 + at % 5 * 1600,
            false => 1_000_000 + at % 5 * 4000,
        };
        trial.phases[0].series = (0..200).map(|at| (1, bytes(at))).collect();
        trial.phases[0].elapsed_ns = 20_000_000_000;
    }
    let verdict = judged(&record);
    let report = by_name("html").unwrap();
    let page =
        String::from_utf8(report.render(&record, &verdict, &ReportOptions::default())).unwrap();
    assert_eq!(page.matches("<g class=\"change s1\">").count(), 1);
    assert!(page.contains("xfs: −60 % at 12.0 s, 115.4 MiB</title>"));
    assert!(!rendered("html", &sample::record(&sample::small())).contains("class=\"change"));
}

#[test]
fn what_failed_is_said() {
    let record = sample::with_failure();
    for name in ["terminal", "markdown", "html", "json"] {
        let text = rendered(name, &record);
        assert!(text.contains("xfs, import, round 3: failed"), "{name}");
    }
}

#[test]
fn texts_for_terminal_and_markdown_are_as_reviewed() {
    let small = sample::record(&sample::small());
    insta::assert_snapshot!("terminal-small", rendered("terminal", &small));
    let cuts = sample_cuts::with_cuts();
    insta::assert_snapshot!("terminal-cuts", rendered("terminal", &cuts));
    insta::assert_snapshot!("markdown-cuts", rendered("markdown", &cuts));
    insta::assert_snapshot!("markdown-small", rendered("markdown", &small));
    insta::assert_snapshot!(
        "terminal-failure",
        rendered("terminal", &sample::with_failure())
    );
    insta::assert_snapshot!(
        "terminal-no-rounds",
        rendered("terminal", &sample::without_rounds())
    );
}

/// Run by name, then open the pages of `target/pages` with a browser.
#[test]
#[ignore = "writes pages for people to look at"]
fn every_report_is_written_for_people_to_look_at() {
    let dir = std::path::Path::new(concat!(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
        "/target/pages"
    ));
    std::fs::create_dir_all(dir).unwrap();
    for (sample, record) in records() {
        for report in ALL {
            let path = dir.join(format!("{sample}.{}", report.extension));
            std::fs::write(path, rendered(report.name, &record)).unwrap();
        }
    }
}

#[test]
fn a_note_is_cut_where_a_clause_ends_and_the_number_of_the_others_stays() {
    let record = sample::record(&sample::small());
    let mut verdict = judged(&record);
    verdict.notes = vec![
        "4 KiB: measured for only 446 ms (the worst of 4 trials; median 450 ms; all of them are \
         short); less than 1 s says little about the storage of a machine that works all day long; \
         give it more time or more data"
            .to_owned(),
        "another".to_owned(),
    ];
    let options = ReportOptions {
        lines_max: Some(16),
        ..options()
    };
    let text = page(&record, &verdict, &options).plain();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = flat.find("note ").unwrap();
    let note = &flat[start..flat.find(" figures ").unwrap()];
    assert!(note.ends_with(" more"), "{text}");
    assert!(!note.contains('…'), "{text}");
}
