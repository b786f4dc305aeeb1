//! What a gallery shows of a log, what it cuts, and what it refuses.

use std::collections::BTreeSet;

use super::*;
use stackrace_base::event::{
    DriveClass, DriveTold, Event, Fact, OtherMachines, RunPlace, StorageIdentity,
};
use stackrace_results::record::{Record, sample};

/// A made-up run whose hashes fit, as a file.
fn log(record: &mut Record) -> Vec<u8> {
    let study = record.head.study.clone();
    let Event::RunStarted(head) = &mut record.lines[0].event else {
        panic!("a run has a head");
    };
    head.study_hash = blake3::hash(study.as_bytes()).to_hex().to_string();
    written(record)
}

fn written(record: &Record) -> Vec<u8> {
    let lines = record
        .lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap() + "\n");
    lines.collect::<String>().into_bytes()
}

fn read(bytes: Vec<u8>, without: &[MachinePart]) -> Result<GalleryRun, RefusedFile> {
    GalleryRun::read(bytes, "a.jsonl", &without.iter().copied().collect())
}

fn small() -> Record {
    sample::record(&sample::small())
}

/// A directory whose name is written otherwise in JSON than it is.
const DIRECTORY: &str = "/home/annika/it's \"here\"\t日本";

/// A run that says much of its machine, in fields and in sentences.
fn telling() -> Record {
    let mut record = small();
    let Event::RunStarted(head) = &mut record.lines[0].event else {
        panic!("a run has a head");
    };
    head.command = vec!["stackrace".into(), "run".into(), "annika-disk".into()];
    head.study = format!("# {DIRECTORY}\n");
    head.place = Some(RunPlace::Ssh(OtherMachines {
        on: Some("bobby@boxhost".into()),
        ..OtherMachines::default()
    }));
    record.head = (**head).clone();
    let lies_on = vec![StorageIdentity {
        directory: DIRECTORY.into(),
        uuid: Some("15857c30-558c-4ab9-906e-af215bcc1570".into()),
        ..StorageIdentity::default()
    }];
    for line in &mut record.lines {
        match &mut line.event {
            Event::StackSetUp {
                lies_on: on,
                layers,
                ..
            } => {
                on.clone_from(&lies_on);
                let drive = DriveTold {
                    class: DriveClass::Ssd,
                    model: Some("ACME 900".into()),
                    bytes: None,
                };
                let disk = Fact::new("disk sda", "model ACME 900").of_drive(drive);
                layers[0]
                    .facts
                    .extend([disk, Fact::new("serial number", "S3X1NB0K512")]);
            }
            Event::Warned { text } => {
                *text = format!("boxhost filled {DIRECTORY} of bobby: see /srv/log, S3X1NB0K512");
            }
            Event::Command(command) => command.stdout = "hostname boxhost-secret".into(),
            _ => {}
        }
    }
    record
}

#[test]
fn what_a_log_says_of_a_machine_is_listed_by_its_part() {
    let run = read(log(&mut telling()), &[]).unwrap();
    let words = |part| {
        run.words
            .of(part)
            .map(|(word, _)| word.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(words(MachinePart::Host), ["boxhost"]);
    assert_eq!(words(MachinePart::User), ["annika", "bobby"]);
    assert!(
        words(MachinePart::Paths).contains(&DIRECTORY.to_owned()),
        "{:?}",
        run.words
    );
    assert!(words(MachinePart::Serials).contains(&"S3X1NB0K512".to_owned()));
    assert_eq!(words(MachinePart::Kernel), ["6.12.48"]);
    assert_eq!(run.log, log(&mut telling()), "published as it is");
}

#[test]
fn what_is_cut_stands_nowhere_in_the_log_nor_on_its_page_and_no_figure_changes() {
    let whole = read(log(&mut telling()), &[]).unwrap();
    let run = read(log(&mut telling()), &MachinePart::ALL).unwrap();
    let texts = [run.log.clone(), run_page(&run)];
    for text in texts.map(|bytes| String::from_utf8(bytes).unwrap()) {
        for word in [
            "annika", "bobby", "boxhost", "日本", "/srv", "S3X1", "15857c30", "6.12.48",
        ] {
            assert!(!text.contains(word), "{word}");
        }
        assert!(text.contains("(path 1)") && text.contains("ACME 900"));
        assert!(
            text.contains("this log was cut before it was published: without host, user"),
            "{text}"
        );
    }
    assert_eq!(run.verdict.sentence, whole.verdict.sentence);
    let figures = |run: &GalleryRun| {
        run.record
            .trials()
            .map(|trial| trial.metrics.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(figures(&run), figures(&whole));
    assert_eq!(run.hash, blake3::hash(&run.log).to_hex().to_string());
    // What was published can be published again.
    assert!(read(run.log, &[]).is_ok());
}

#[test]
fn one_part_that_is_cut_leaves_the_others() {
    let run = read(log(&mut telling()), &[MachinePart::User]).unwrap();
    let text = String::from_utf8(run.log).unwrap();
    assert!(!text.contains("annika") && !text.contains("bobby"));
    assert!(
        text.contains("/home/(user 2)/it's") && text.contains("6.12.48"),
        "{text}"
    );
}

#[test]
fn a_name_that_is_also_a_word_of_the_log_is_not_cut_in_silence() {
    let mut record = telling();
    let Event::RunStarted(head) = &mut record.lines[0].event else {
        panic!("a run has a head");
    };
    // Also the name of a field.
    head.place = Some(RunPlace::Ssh(OtherMachines {
        on: Some("round".into()),
        ..OtherMachines::default()
    }));
    let refused = read(log(&mut record), &[MachinePart::Host])
        .map(|_| ())
        .unwrap_err();
    assert!(
        refused.why.contains("cannot be read without its names"),
        "{refused:?}"
    );
}

fn refusal(record: &mut Record) -> String {
    read(log(record), &[]).map(|_| ()).unwrap_err().why
}

#[test]
fn a_log_whose_numbers_contradict_each_other_is_refused() {
    let forged = |change: &dyn Fn(&mut stackrace_base::event::Observation)| {
        let mut record = small();
        let trial = record
            .lines
            .iter_mut()
            .find_map(|line| match &mut line.event {
                Event::Trial(trial) if trial.round == 2 => Some(trial),
                _ => None,
            });
        change(trial.unwrap());
        refusal(&mut record)
    };
    let faster = forged(&|trial| trial.metrics[0] = trial.metrics[0].map(|value| value * 1.2));
    assert!(
        faster.contains("its throughput is") && faster.contains("what was counted gives"),
        "{faster}"
    );
    let quicker = forged(&|trial| trial.phases[0].operations[0].latency_ns_p99 /= 2);
    assert!(quicker.contains("of its own histogram"), "{quicker}");
    let other = forged(&|trial| trial.configuration = 7);
    assert!(other.contains("it is not in the study"), "{other}");
    let endless = forged(&|trial| trial.metrics[0] = Some(-1.0));
    assert!(endless.contains("-1 is no figure"), "{endless}");
}

#[test]
fn a_log_without_one_of_its_trials_is_refused() {
    let mut record = small();
    for line in &mut record.lines {
        if let Event::RoundFinished { trials, .. } = &mut line.event {
            *trials = Some(6);
        }
    }
    assert!(read(log(&mut record), &[]).is_ok());
    let trial = record
        .lines
        .iter()
        .position(|line| matches!(line.event, Event::Trial(_)));
    record.lines.remove(trial.unwrap());
    let why = refusal(&mut record);
    assert!(
        why.contains("round 1 ended with 6 trials, and the log has 5"),
        "{why}"
    );
}

#[test]
fn a_log_with_another_study_than_it_ran_is_refused() {
    let mut record = small();
    log(&mut record);
    let Event::RunStarted(head) = &mut record.lines[0].event else {
        panic!("a run has a head");
    };
    head.study.push_str("# another margin");
    let refused = read(written(&record), &[]).map(|_| ()).unwrap_err();
    assert!(
        refused
            .why
            .contains("the text of its study has another hash"),
        "{refused:?}"
    );
}

#[test]
fn a_log_of_an_unknown_version_is_refused_by_its_name() {
    let mut record = small();
    let Event::RunStarted(head) = &mut record.lines[0].event else {
        panic!("a run has a head");
    };
    head.format = 99;
    let refused = read(log(&mut record), &[]).map(|_| ()).unwrap_err();
    assert!(
        refused.why.contains("a.jsonl has log format 99"),
        "{refused:?}"
    );
    for (text, why) in [
        ("", "it is empty"),
        ("{\"jobs\":[]}\n", "no event of a run"),
        ("some words\n", "no JSON"),
    ] {
        let refused = read(text.as_bytes().to_vec(), &[]).map(|_| ()).unwrap_err();
        assert!(refused.why.contains(why), "{text}: {refused:?}");
        assert!(refused.next.contains("log.jsonl"), "{refused:?}");
    }
}

#[test]
fn an_id_that_would_lead_out_of_the_site_is_refused() {
    let mut record = small();
    let Event::RunStarted(head) = &mut record.lines[0].event else {
        panic!("a run has a head");
    };
    head.run = "../../etc/x".into();
    assert!(refusal(&mut record).contains("is not a run id"));
}

#[test]
fn names_with_html_are_shown_and_not_obeyed() {
    let run = read(log(&mut sample::record(&sample::hostile())), &[]).unwrap();
    let page = GalleryPage::of(&run, 0, &BTreeSet::new());
    let text = String::from_utf8(index_page("<b>mine</b>", &[page])).unwrap();
    for bad in ["<script>alert", "<b>mine", "\u{1b}", "</title></svg>"] {
        assert!(!text.contains(bad), "{bad:?}");
    }
    assert!(
        text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{text}"
    );
    assert!(!text.contains("<script"), "no script is needed");
}

#[test]
fn the_page_of_all_runs_has_the_newest_study_first_and_all_that_is_known_of_each_run() {
    let mut record = telling();
    let run = read(log(&mut record), &[MachinePart::Paths]).unwrap();
    let page = GalleryPage::of(&run, 0, &BTreeSet::from([MachinePart::Paths]));
    let mut older = small();
    older.lines[0].at = "2025-01-02T03:04:05Z".into();
    let Event::RunStarted(head) = &mut older.lines[0].event else {
        panic!("a run has a head");
    };
    head.title = "An older question".into();
    let older = read(log(&mut older), &[]).unwrap();
    let older = GalleryPage::of(&older, 1, &BTreeSet::new());
    let text = String::from_utf8(index_page("Mine", &[older, page])).unwrap();
    let at = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}: {text}"))
    };
    assert!(at("Is xfs faster") < at("An older question"));
    for words in [
        "SSD ACME 900",
        "2026-11-21",
        "2025-01-02",
        "stackrace 0.1.0",
        &run.hash,
        "id=\"run-0\"",
        "id=\"run-1\"",
        "Cut before it was published: paths",
        ">log</a>",
    ] {
        at(words);
    }
}
