//! Settings typed as `NAME=VALUE`: the same words as in a study, without its quotes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::args::OwnProgramArgs;
use super::super::failure::Failure;
use super::super::variable::variable;
use super::super::words::unknown;
use crate::commands::load_target::LoadTarget;
use crate::commands::own_program;
use stackrace_base::event::shell;
use stackrace_base::failure::next_line;
use stackrace_base::setting::{GivenSetting, Kind, Refusal, Settings, Value, advised_size};
use stackrace_base::unit;
use stackrace_load::programs;
use stackrace_load::programs::fio::{CONTENT, FIO, JOB};
use stackrace_load::workload::{WorkloadKind, find_rate, replay};
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_run::prepare::job_file;

/// Bytes that may be written in all of these directories; what cannot be asked is refused later.
pub(in crate::cli) fn free_in(directories: &[PathBuf]) -> u64 {
    let host = LocalHost::new(Arc::new(|_| ()));
    let free = directories.iter().map(|dir| host.free_bytes(dir));
    free.filter_map(Result::ok).min().unwrap_or(u64::MAX)
}

/// Every word, checked against what the workload takes. The size of something that exists is all
/// of it, unless given.
///
/// # Errors
/// Everything that is wrong with them.
pub(super) fn read(
    kind: &WorkloadKind,
    words: &[String],
    (target, free): (&LoadTarget, u64),
) -> Result<Settings, Failure> {
    let mut settings = Settings {
        owner: kind.name.to_owned(),
        span: 0..0,
        settings: Vec::new(),
        docs: kind.settings,
    };
    for word in words {
        let Some((name, text)) = word.split_once('=') else {
            return Err(Failure::usage(format!("\"{word}\" is no setting"))
                .next("write NAME=VALUE, for example block-size=4KiB"));
        };
        let (name, text) = (name.trim(), text.trim());
        if settings.given(name) {
            return Err(
                Failure::usage(format!("{name} is given twice")).next("leave one of them out")
            );
        }
        let takes = kind.settings.iter().find(|doc| doc.name == name);
        settings.settings.push(GivenSetting::new(
            name,
            value(text, takes.map(|doc| doc.kind)),
        ));
    }
    if kind.name == FIO
        && !settings.given(CONTENT)
        && let Ok(Some(file)) = settings.optional_text(JOB)
    {
        let text = job_file::read(Path::new(&file), &variable)?;
        settings
            .settings
            .push(GivenSetting::new(CONTENT, Value::Text(text)));
    }
    if let LoadTarget::Existing { bytes, .. } = target
        && kind.settings.iter().any(|doc| doc.name == "size")
        // The whole of a file that exists, unless the user wants less.
        && !settings.given("size")
        && let Ok(bytes) = i64::try_from(*bytes)
    {
        settings
            .settings
            .push(GivenSetting::new("size", Value::Integer(bytes)));
    }
    let refusals = settings.check_all_in(free);
    if refusals.is_empty() {
        Ok(settings)
    } else {
        Err(refused(&refusals))
    }
}

/// Refusals as they are printed: spellings of a study become those of a command line.
pub(super) fn refused(refusals: &[Refusal]) -> Failure {
    let lines = refusals.iter().map(|refusal| {
        let mut text = format!("error: {}\n", refusal.message);
        if !refusal.help.is_empty() {
            text.push_str(&next_line(2, &typed(&refusal.help)));
        }
        text
    });
    Failure::usage(lines.collect::<String>())
}

/// Advice for a study as it is typed: `size=4KiB` for `size = "4 KiB"`, `mode=read` for `mode = "read"`. A shell
/// would take the quotes away, and break the words at blanks.
fn typed(help: &str) -> String {
    let parts = help.split('"').enumerate().map(|(at, part)| {
        let amount = part.starts_with(|c: char| c.is_ascii_digit());
        match (at % 2, part.contains(' ')) {
            (0, _) => part.replace(" = ", "=").replace(" =", "="),
            (_, true) if amount && !part.contains(',') => part.replace(' ', ""),
            (_, true) => format!("'{part}'"),
            (_, false) => part.to_owned(),
        }
    });
    parts.collect()
}

/// A workload as `compare --with` is given it, checked; refusals have the words of the command line.
///
/// # Errors
/// There is no such workload, or its settings are wrong.
pub(in crate::cli) fn workload(
    workload: &str,
    directories: &[PathBuf],
) -> Result<Settings, Failure> {
    let (name, words) = split(workload)?;
    named(&name, &words, free_in(directories))
}

/// A recorded application, as `compare --replay` is given it, with the sum of its trace; `None` if it is not.
///
/// # Errors
/// The trace cannot be replayed.
pub(in crate::cli) fn replayed(typed: &OwnProgramArgs) -> Result<Option<Settings>, Failure> {
    let Some(trace) = &typed.replay else {
        return Ok(None);
    };
    // A study is carried on from any directory.
    let trace = std::path::absolute(trace).unwrap_or_else(|_| trace.to_owned());
    let digest = replay::digest(&trace).map_err(|(why, next)| Failure::refused(why).next(next))?;
    let mut words = vec![
        format!("{}={}", replay::TRACE, trace.to_string_lossy()),
        format!("{}={digest}", replay::DIGEST),
    ];
    let arrivals = typed.arrivals.as_ref();
    words.extend(arrivals.map(|way| format!("{}={way}", replay::ARRIVALS)));
    named(replay::REPLAY, &words, u64::MAX).map(Some)
}

/// The workload that finds the rate of random I/O at which a latency keeps `bound`; `with`: the I/O, as
/// `compare --with` is given it.
///
/// # Errors
/// The workload is another one, or its settings are wrong.
pub(in crate::cli) fn find_rate(
    with: Option<&str>,
    bound: &str,
    directories: &[PathBuf],
    time_ns: Option<u64>,
) -> Result<Settings, Failure> {
    let search = time_ns.map(|ns| own_program::search_ns(ns, directories.len() as u64));
    searched(with, (bound, search.transpose()?), free_in(directories))
}

/// The same where so many bytes are free, and a search may take so long.
fn searched(
    with: Option<&str>,
    (bound, time_ns): (&str, Option<u64>),
    free: u64,
) -> Result<Settings, Failure> {
    // One word of a shell.
    let size = unit::bytes(advised_size(free)).replace(' ', "");
    let default = format!("{} mode=read size={size}", find_rate::SEARCHED);
    let (name, mut words) = split(with.unwrap_or(&default))?;
    if name != find_rate::SEARCHED {
        let told = format!("--find-rate takes random reads and writes, not \"{name}\"");
        return Err(
            Failure::usage(told).next(format!("write --with \"{default}\", or leave --with out"))
        );
    }
    if !find_rate::is_bound(bound) {
        let told = format!("--find-rate: \"{bound}\" is no bound of a latency");
        return Err(Failure::usage(told)
            .next("write --find-rate \"p99 <= 5 ms\" (or p50, p95, p99.9, mean)"));
    }
    words.push(format!("{}={bound}", find_rate::BOUND.name));
    let time = format!("{}=", find_rate::LIMIT.name);
    // A time that is said of the search itself is meant.
    if let Some(ns) = time_ns.filter(|_| !words.iter().any(|word| word.starts_with(&time))) {
        words.push(format!("{time}{} ms", ns / 1_000_000));
    }
    named(find_rate::NAME, &words, free)
}

/// The name of a workload and its settings, with the quotes of a shell.
fn split(workload: &str) -> Result<(String, Vec<String>), Failure> {
    let Some(words) = shlex::split(workload) else {
        let told = format!("a quote is open in --with {}", shell(&[workload]));
        return Err(Failure::usage(told).next("close it, or leave it out"));
    };
    let mut words = words.into_iter();
    let name = words.next().unwrap_or_default();
    Ok((name, words.collect()))
}

/// The workload of that name with these settings, checked.
fn named(name: &str, words: &[String], free: u64) -> Result<Settings, Failure> {
    let mut kinds = programs::workloads().iter();
    let Some(kind) = kinds.find(|kind| kind.name == name) else {
        let names: Vec<&str> = programs::workloads().iter().map(|kind| kind.name).collect();
        return Err(unknown("workload", name, &names));
    };
    let settings = read(kind, words, (&LoadTarget::Directory(PathBuf::new()), free))?;
    let parsed = (kind.parse)(&settings);
    parsed.map_err(|refusal| refused(&[refusal]))?;
    Ok(settings)
}

/// Words with commas between them: `read, write`. A comma in brackets, as patterns have it, belongs to its word.
fn separate(text: &str) -> Vec<String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let mut words = vec![String::new()];
    let mut open = 0_usize;
    for sign in bare.unwrap_or(text).chars() {
        match sign {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(word) if sign != ',' || open > 0 => word.push(sign),
            _ => words.push(String::new()),
        }
    }
    let word = |word: &String| word.trim().trim_matches('"').to_owned();
    words.iter().map(word).collect()
}

/// A value as its setting takes it. What cannot be read so stays a text, and is refused as one.
fn value(text: &str, kind: Option<Kind>) -> Value {
    let read = match kind {
        Some(Kind::Count | Kind::Number) => text
            .parse()
            .map(Value::Integer)
            .or_else(|_| text.parse().map(Value::Float))
            .ok(),
        Some(Kind::Flag) => text.parse().map(Value::Flag).ok(),
        Some(Kind::Texts) => {
            // A list copied from a study keeps its brackets and quotes.
            let list = toml::from_str::<toml::Table>(&format!("list = {text}"));
            let list = list
                .ok()
                .and_then(|table| table["list"].as_array().cloned());
            let words = match list.filter(|_| text.starts_with('[')) {
                Some(list) => list
                    .iter()
                    .map(|one| one.as_str().map(str::to_owned))
                    .collect(),
                None => Some(separate(text)),
            };
            words.map(|words| Value::List(words.into_iter().map(Value::Text).collect()))
        }
        _ => None,
    };
    // A text is checked by the setting itself, whose refusal says what is expected.
    read.unwrap_or_else(|| Value::Text(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first thing that a refusal advises to write, as one would type it.
    fn advised(refused: Failure) -> Vec<String> {
        let (text, _) = refused.into_parts();
        let lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("next: write "));
        let word = |line: &str| {
            // Sentences have apostrophes that no shell would close.
            let plain = || line.split(' ').map(str::to_owned).collect();
            let words: Vec<String> = shlex::split(line).unwrap_or_else(plain);
            words.into_iter().find(|word| word.contains('='))
        };
        // The file of a user's is not here: a job itself stands for it.
        let there = |word: String| match word.starts_with("job=") {
            true => format!("{CONTENT}=[x]"),
            false => word,
        };
        lines.filter_map(word).map(there).collect()
    }

    #[test]
    fn what_a_refused_workload_advises_is_accepted_when_it_is_typed() {
        for kind in programs::workloads() {
            let mut words = vec![kind.name.to_owned()];
            for _ in 0..4 {
                let Err(refused) = workload(&shell(&words), &[]) else {
                    break;
                };
                let new = advised(refused);
                assert!(
                    !new.is_empty(),
                    "{words:?} is refused without advice that can be typed"
                );
                // A word that was refused is written anew.
                let name = |word: &str| word.split('=').next().map(str::to_owned);
                words.retain(|old| new.iter().all(|word| name(word) != name(old)));
                words.extend(new);
            }
            let refused = workload(&shell(&words), &[]).err().map(Failure::into_parts);
            assert_eq!(refused, None, "{words:?}");
        }
    }

    #[test]
    fn the_size_that_is_advised_fits_the_disk() {
        for (free, size) in [
            (u64::MAX, "size=1GiB"),
            (200 << 20, "size=32MiB"),
            (7 << 20, "size=1MiB"),
            (0, "size=1MiB"),
        ] {
            let refused = named("random", &["mode=write".to_owned()], free).err();
            assert_eq!(refused.map(advised), Some(vec![size.to_owned()]), "{free}");
        }
        let settings = searched(None, ("p99 <= 5 ms", None), 200 << 20);
        assert_eq!(
            settings.ok().unwrap().optional_bytes("size"),
            Ok(Some(32 << 20))
        );
    }

    #[test]
    fn advice_for_a_study_is_told_as_it_is_typed() {
        assert_eq!(typed("write size = \"4 KiB\""), "write size=4KiB");
        assert_eq!(
            typed("write mode = \"read\" or \"write\""),
            "write mode=read or write"
        );
        assert_eq!(typed("write count = 4"), "write count=4");
    }

    #[test]
    fn a_value_is_read_as_its_setting_takes_it() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (word, kind, expected) in [
            ("4", Some(Kind::Count), Value::Integer(4)),
            ("1.5", Some(Kind::Number), Value::Float(1.5)),
            ("four", Some(Kind::Count), text("four")),
            ("true", Some(Kind::Flag), Value::Flag(true)),
            ("yes", Some(Kind::Flag), text("yes")),
            ("4KiB", Some(Kind::Bytes), text("4KiB")),
            (
                "[\"conv=fsync,notrunc\", \"of=f\"]",
                Some(Kind::Texts),
                Value::List(vec![text("conv=fsync,notrunc"), text("of=f")]),
            ),
            (
                "tps=tps: ([0-9,.]+),b=b",
                Some(Kind::Texts),
                Value::List(vec![text("tps=tps: ([0-9,.]+)"), text("b=b")]),
            ),
            (
                "a, b",
                Some(Kind::Texts),
                Value::List(vec![text("a"), text("b")]),
            ),
            (
                "[\"a\", \"b\"]",
                Some(Kind::Texts),
                Value::List(vec![text("a"), text("b")]),
            ),
            ("1", None, text("1")),
        ] {
            assert_eq!(value(word, kind), expected, "{word}");
        }
    }
}
