//! Settings of a job that its normal output does not have: those of the command line, or of the job file, that the text
//! shows.

use std::collections::BTreeMap;

use super::results::JobResult;
use super::{language, spelling};
use stackrace_base::event::Fact;
use stackrace_base::printed::ImportError;
use stackrace_base::printed::text::{TextLine, lines};
use stackrace_import::import::{self, ShownCommand};

/// Options of fio itself: how it reports, and none of a job's work.
const REPORTING: [&str; 11] = [
    "append-terse",
    "eta",
    "eta-interval",
    "eta-newline",
    "minimal",
    "output",
    "output-format",
    "section",
    "showcmd",
    "status-interval",
    "terse-version",
];

/// A command line of fio, taken apart.
#[derive(Default)]
struct AskedCommand {
    /// Options before the first job, and of jobs that are called global.
    global: BTreeMap<String, String>,
    /// Options of each job.
    jobs: Vec<(String, BTreeMap<String, String>)>,
    /// Job files.
    files: Vec<String>,
}

/// Adds to each job what the last command of fio above it asked for.
///
/// # Errors
/// A command seems to go on in the next line, and what it asks for there would be lost.
pub(super) fn add(text: &str, jobs: &mut [JobResult]) -> Result<(), ImportError> {
    let commands = import::commands(text);
    for shown in &commands {
        let rows = lines(&shown.printed);
        let rest = rows.get(shown.rows).filter(|row| is_rest(row.text));
        if let Some(row) = rest.filter(|_| AskedCommand::read(shown).is_some()) {
            let index = shown.line + row.index;
            return Err(TextLine { index, ..*row }.rest_of_command());
        }
    }
    for job in jobs {
        let before = || commands.iter().rev().filter(|shown| shown.line < job.line);
        let Some(asked) = before().find_map(AskedCommand::read) else {
            continue;
        };
        let mut options = BTreeMap::new();
        for file in &asked.files {
            match before().find(|shown| prints(shown, file)) {
                Some(shown) => options.extend(of_file(&shown.printed, &job.name)),
                // What is in it is not known, and another file is another job.
                None => drop(options.insert("job file".to_owned(), file.clone())),
            }
        }
        options.extend(asked.of(&job.name));
        let options = spelling::facts(&spelling::plain(options));
        let other = options.iter().find_map(|asked| {
            let reported = Fact::value_of(&job.settings, &asked.name)?;
            let is_other = contradicts(asked, reported, &job.settings);
            is_other.then(|| {
                format!(
                    "{}={}, and the result has {reported}",
                    asked.name, asked.value
                )
            })
        });
        if let Some(other) = other {
            let note = format!(
                "the command above it asks for {other}: it is of another run, and what else was asked for is not known"
            );
            for direction in &mut job.directions {
                direction.notes.push(note.clone());
            }
            continue;
        }
        for option in options {
            if Fact::value_of(&job.settings, &option.name).is_none() {
                job.settings.push(option);
            }
        }
    }
    Ok(())
}

/// Returns true if a job did not do what a command asks for. What a shell or fio fills in, and lists of several
/// values, are printed in other words.
fn contradicts(asked: &Fact, reported: &str, settings: &[Fact]) -> bool {
    /// Engines that have one operation under way at most.
    const ONE_BY_ONE: [&str; 6] = ["mmap", "psync", "pvsync", "pvsync2", "sync", "vsync"];
    let plain = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
    let engine = Fact::value_of(settings, "ioengine").unwrap_or_default();
    let capped = asked.name == "iodepth" && ONE_BY_ONE.contains(&engine);
    let compared = ["rw", "bs", "ioengine", "iodepth"].contains(&asked.name.as_str());
    compared && !capped && asked.value != reported && plain(&asked.value) && plain(reported)
}

/// Returns true for a line that fio does not print and a command may have: words with `=` or a dash before them, or one
/// word.
fn is_rest(row: &str) -> bool {
    let own = row.contains(": ") || row.starts_with("fio") || row.starts_with(['[', '{', ' ']);
    let mut words = row.split_whitespace();
    let option = words
        .clone()
        .any(|word| word.starts_with('-') || word.contains('='));
    !own && (option || words.next().is_some() && words.next().is_none())
}

/// Returns true for `cat FILE`.
fn prints(shown: &ShownCommand, file: &str) -> bool {
    let mut words = shown.words.iter();
    words.any(|word| word == "cat") && words.any(|word| word == file)
}

/// The options of one job of a job file.
fn of_file(text: &str, job: &str) -> BTreeMap<String, String> {
    let sections = language::sections(text, &mut Vec::new());
    let own = sections.iter().rfind(|section| section.name == job);
    let all = own.into_iter().flat_map(language::JobSection::all);
    all.map(|option| (option.name.clone(), option.value.to_owned()))
        .collect()
}

impl AskedCommand {
    /// Takes a command line of fio apart; `None` if it is of another program.
    fn read(shown: &ShownCommand) -> Option<Self> {
        let fio = |word: &String| word.rsplit('/').next() == Some("fio");
        let at = shown.words.iter().position(fio)?;
        let mut asked = Self::default();
        let words = shown.words[at + 1..].iter();
        let own = |word: &&String| !matches!(word.as_str(), "|" | ";" | ">" | "&");
        let mut words = words.take_while(own).peekable();
        while let Some(word) = words.next() {
            let option = word.trim_start_matches('-');
            if option.len() == word.len() {
                asked.files.push(word.clone());
                continue;
            }
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                // "--rw read"; what ends like a job file is one.
                None => {
                    let value = words.next_if(|next| !next.starts_with('-') && !next.contains('.'));
                    (option, value.cloned().unwrap_or_default())
                }
            };
            asked.take(name, value);
        }
        Some(asked)
    }

    fn take(&mut self, name: &str, value: String) {
        if name == "name" {
            self.jobs.push((value, BTreeMap::new()));
            return;
        }
        if REPORTING.contains(&name) {
            return;
        }
        let own = self.jobs.last_mut();
        let own = own.filter(|(job, _)| !language::is_global(job));
        let options = own.map_or(&mut self.global, |(_, options)| options);
        options.insert(name.to_owned(), value);
    }

    /// All options of a job.
    fn of(self, job: &str) -> BTreeMap<String, String> {
        let mut all = self.global;
        let own = self.jobs.into_iter().rfind(|(name, _)| name == job);
        all.extend(own.map(|(_, options)| options).unwrap_or_default());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::IMPORTER;
    use stackrace_base::printed::{Imported, told_apart};

    const REPORT: &str = include_str!("../../../../tests/golden/fio/fio-3.39_seqread_normal.txt");

    fn read(text: &str) -> Vec<Imported> {
        import::read(&[IMPORTER], text, None).unwrap_or_else(|error| panic!("{error}"))
    }

    fn setting(text: &str, name: &str) -> Option<String> {
        let results = read(text);
        Fact::value_of(&results[0].settings, name).map(str::to_owned)
    }

    /// The same run as another process, so that it is none that was pasted twice.
    fn again() -> String {
        REPORT.replace(": pid=", ": pid=1")
    }

    #[test]
    fn jobs_that_differ_in_an_option_of_the_command_line_are_no_repetitions() {
        let job = REPORT.split(": (g=0)").next().unwrap().trim();
        for option in [
            "--rwmixread=70",
            "--fsync=1",
            "--sync=1",
            "--rate=10m",
            "--random_distribution=zipf:1.2",
            "--bsrange=4k-64k",
            "--size 2g",
            "-direct=1",
            "other.fio",
        ] {
            let plain = format!("$ fio --name={job} --rw=read --bs=1M --eta=never");
            let text = format!("{plain}\n{REPORT}\n{plain} {option}\n{}", again());
            let names = told_apart(&read(&text));
            assert_eq!(names.len(), 2, "{option}");
            assert_ne!(names[0], names[1], "{option}");
            let spelled = format!("$ /usr/bin/fio --readwrite=read --blocksize=1024k --name={job}");
            let text = format!("{plain}\n{REPORT}\n{spelled}\n{}", again());
            let names = told_apart(&read(&text));
            assert_eq!(names[0], names[1], "the same in other words");
        }
    }

    #[test]
    fn a_job_has_the_options_of_its_own_and_those_before_all() {
        let job = REPORT.split(": (g=0)").next().unwrap().trim();
        let line = format!(
            "$ sync; sudo fio --direct=1 --name={job} --fsync=4 --description='a > b' --name=other --sync=1 2>&1 # | tee x"
        );
        let text = format!("{line}\n{REPORT}");
        assert_eq!(setting(&text, "direct").as_deref(), Some("1"));
        assert_eq!(setting(&text, "fsync").as_deref(), Some("4"));
        assert_eq!(setting(&text, "sync"), None);
        assert_eq!(setting(&text, "job file"), None);
        assert_eq!(
            setting(&text, "bs").as_deref(),
            Some("1M"),
            "as the report says"
        );
    }

    #[test]
    fn a_command_that_asks_for_other_work_than_was_done_is_of_another_run() {
        let job = REPORT.split(": (g=0)").next().unwrap().trim();
        let of = |options: &str| {
            let text = format!("$ fio --name={job} --direct=1 {options}\n{REPORT}");
            let result = read(&text).remove(0);
            let direct = Fact::value_of(&result.settings, "direct").is_some();
            (result.against.join("; "), direct)
        };
        for (options, asked) in [
            (
                "--rw=randwrite --bs=1M",
                "rw=randwrite, and the result has read",
            ),
            ("--rw=read --bs=4k", "bs=4k, and the result has 1M"),
            (
                "--rw=read --ioengine=mmap",
                "ioengine=mmap, and the result has ",
            ),
        ] {
            let (against, direct) = of(options);
            assert!(against.contains(asked), "{options}: {against}");
            assert!(!direct, "what another run was asked for is not this one's");
        }
        for options in [
            "--rw=read --bs=1024k",
            "--readwrite=read --bs=$BS",
            "--bs=1m,4k",
        ] {
            assert_eq!(of(options), (String::new(), true), "{options}");
        }
    }

    #[test]
    fn a_command_that_was_folded_is_refused_before_an_option_is_lost() {
        for folded in [
            "fio --name=seqr --rw=read --dire\nct=1",
            "fio --name=seqr\n--direct=1",
            "fio --size=1\nG",
        ] {
            let text = format!("$ {folded}\n{REPORT}");
            let why = import::read(&[IMPORTER], &text, None).unwrap_err();
            assert!(why.what.contains("the rest of the command"), "{why}");
            assert_eq!(why.line, 2);
        }
        let goes_on = format!("$ fio --name=seqr --rw=read \\\n  --direct=1\n{REPORT}");
        assert_eq!(setting(&goes_on, "direct").as_deref(), Some("1"));
    }

    #[test]
    fn a_job_file_that_the_text_shows_is_read_and_another_one_is_named() {
        let job = REPORT.split(": (g=0)").next().unwrap().trim();
        let shown = format!("$ cat a.fio\n[global]\nfsync=8\n[{job}]\nrw=read\nrwmixread=70\n");
        let text = format!("{shown}$ fio a.fio\n{REPORT}");
        assert_eq!(setting(&text, "fsync").as_deref(), Some("8"));
        assert_eq!(setting(&text, "job file"), None);
        let text = format!("{shown}$ fio b.fio\n{REPORT}");
        assert_eq!(setting(&text, "fsync"), None);
        assert_eq!(setting(&text, "job file").as_deref(), Some("b.fio"));
    }
}
