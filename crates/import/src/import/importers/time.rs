//! What a timed command took: `time` of bash, of POSIX (`time -p`), and GNU time with and without
//! `-v`. Lines of the command itself are passed over. Where the text shows the command behind a prompt, it says what
//! was timed: another command is other work.

use stackrace_base::printed::text::{Figures, TextLine, facts, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "time",
    summary: "what time of bash, time -p, or GNU time (also with -v) prints",
    recognises: |text| {
        lines(text).iter().any(|line| {
            shell(*line, "real").is_some()
                || line.text.contains("elapsed ")
                || line.after(WALL).is_some()
        })
    },
    read,
};

/// Words of GNU time -v before the wall clock.
const WALL: &str = "Elapsed (wall clock) time (h:mm:ss or m:ss):";
/// The first line of GNU time -v.
const COMMAND: &str = "Command being timed:";
/// Ends of prompts, before what was typed.
const PROMPTS: [&str; 5] = ["$ ", "# ", "% ", "❯ ", "➜ "];
/// What the clocks of shells and of GNU time count in, s.
const TICK: f64 = 0.01;

/// Resources that one timed command took; times in s.
#[derive(Debug, Clone, Default)]
struct Took {
    command: Option<String>,
    elapsed: Option<PrintedFigure>,
    user: Option<PrintedFigure>,
    system: Option<PrintedFigure>,
    /// Processor time as a share of the elapsed time, %; `None` if it is not said.
    share: Option<PrintedFigure>,
    /// Bytes.
    resident: Option<PrintedFigure>,
    exit: Option<String>,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let lines = lines(text);
    let mut at = 0;
    // What was typed last, until the times of it are read.
    let mut typed = None;
    while let Some(line) = lines.get(at).copied() {
        at += 1;
        typed = timed(line.text).or(typed);
        if let Some(word) = shell(line, "real") {
            // The three lines belong together and stand in this order in every shell.
            let part = |offset: usize, name: &str| {
                let part = lines.get(at + offset).copied().unwrap_or(line);
                let word = shell(part, name);
                let expected =
                    || line.refuse(format!("the {name} time of time in a line behind it"));
                seconds(part, word.ok_or_else(expected)?)
            };
            results.push(
                Took {
                    command: typed.take(),
                    elapsed: Some(seconds(line, word)?),
                    user: Some(part(0, "user")?),
                    system: Some(part(1, "sys")?),
                    ..Took::default()
                }
                .imported(),
            );
            at += 2;
        } else if shell(line, "user").is_some() || shell(line, "sys").is_some() {
            return Err(line.refuse("the real time before it"));
        } else if line.text.contains("elapsed ") && line.text.contains("user ") {
            let next = lines.get(at).map_or("", |next| next.text);
            if !next.trim_end().ends_with("swaps") || !next.contains("inputs+") {
                return Err(line.refuse("the line \"…inputs+…outputs … swaps\" after it"));
            }
            let took = Took {
                command: typed.take(),
                ..short(line)?
            };
            results.push(took.imported());
            at += 1;
        } else if let Some(command) = line.after(COMMAND) {
            // It stands in quotes, so that its end shows.
            if command.len() < 2 || !command.ends_with('"') {
                return Err(lines.get(at).unwrap_or(&line).rest_of_command());
            }
            results.push(verbose(&lines, &mut at, line, command)?.imported());
        } else if line.after(WALL).is_some() {
            return Err(line.refuse(format!("\"{COMMAND}\" before it")));
        }
    }
    Ok(results)
}

impl Took {
    /// Refuses a share of the processor that the times do not give.
    fn check(&self, line: TextLine<'_>) -> Result<(), ImportError> {
        let (Some(share), Some(elapsed)) = (self.share, self.elapsed) else {
            return Ok(());
        };
        let (Some(user), Some(system)) = (self.user, self.system) else {
            return Ok(());
        };
        let took = user.value + system.value;
        let said = share.value / 100.0 * elapsed.value;
        // Each of them was cut off: the times to a tick, the share to a percent.
        let slack = 2.0 * TICK + TICK * share.value / 100.0 + 0.01 * (elapsed.value + TICK);
        match (took - said).abs() <= slack {
            true => Ok(()),
            false => {
                Err(line.contradicts("itself: the share of the processor is not that of its times"))
            }
        }
    }

    fn imported(self) -> Imported {
        let mut figures = Figures::default();
        let some = |time: Option<PrintedFigure>| time.and_then(PrintedFigure::above_zero);
        figures.time("elapsed", "s", some(self.elapsed));
        figures.time("user time", "s", some(self.user));
        figures.time("system time", "s", some(self.system));
        if self.resident.is_some() {
            figures.time("largest resident set", "B", self.resident);
        }
        let mut notes = figures.missing("0: shorter than the clock can tell");
        if let Some(exit) = self.exit.filter(|exit| exit != "0") {
            // A command that failed may have done less work than one that did not.
            notes.push(format!("the command ended with exit status {exit}"));
        }
        let command = self.command.unwrap_or_default();
        Imported {
            settings: facts([("command", command.as_str())]),
            notes,
            ..figures.imported(
                "time",
                match command.as_str() {
                    "" => "timed command".to_owned(),
                    command => format!("timed: {command}"),
                },
            )
        }
    }
}

/// The command behind `$ time `, as a shell shows it.
fn timed(line: &str) -> Option<String> {
    // A prompt may have the end of another one in it.
    let typed = |end: &&str| line.split_once(*end)?.1.trim().strip_prefix("time ");
    let command = PROMPTS.iter().find_map(typed)?.trim();
    let command = command.strip_prefix("-p ").unwrap_or(command);
    (!command.is_empty()).then(|| command.to_owned())
}

/// The time of a line that begins with `real` (or another name) and a tab or blank.
fn shell<'a>(line: TextLine<'a>, name: &str) -> Option<&'a str> {
    let rest = line.text.strip_prefix(name)?;
    let word = rest.strip_prefix(['\t', ' '])?.trim();
    word.starts_with(|c: char| c.is_ascii_digit())
        .then_some(word)
}

/// Reads `1m2.345s` of bash, three digits behind the point, or `62.34` of POSIX, two: fewer would
/// be a figure that was cut off.
fn seconds(line: TextLine<'_>, word: &str) -> Result<PrintedFigure, ImportError> {
    // Shells print the comma of the language; they never group digits.
    let pointed = match (word.contains('.'), word.matches(',').count()) {
        (false, 1) => word.replace(',', "."),
        _ => word.to_owned(),
    };
    let word = pointed.as_str();
    let decimals = |word: &str| word.split_once('.').map(|(_, part)| part.len());
    let time = if let Some((minutes, rest)) = word.split_once('m') {
        let rest = rest
            .strip_suffix('s')
            .filter(|rest| decimals(rest) == Some(3));
        rest.and_then(|rest| clock(&[minutes], rest))
    } else {
        // The number of digits tells the forms apart, and a line of the command itself from both.
        let posix = decimals(word) == Some(2);
        posix.then(|| PrintedFigure::read(word)).flatten()
    };
    time.ok_or_else(|| line.refuse("a time as 0m0.116s (bash) or 0.05 (time -p)"))
}

/// Reads `0:00.09`, `1:02:03`.
fn wall(line: TextLine<'_>, word: &str) -> Result<PrintedFigure, ImportError> {
    let parts: Vec<&str> = word.split(':').collect();
    let two_digits = |word: &str| word.split('.').all(|part| part.len() == 2);
    let time = match parts.as_slice() {
        [before @ .., last] if (1..=2).contains(&before.len()) && two_digits(last) => {
            clock(before, last)
        }
        _ => None,
    };
    time.ok_or_else(|| line.refuse("a time as 0:00.09 or 1:02:03"))
}

/// Hours and minutes before seconds.
fn clock(before: &[&str], seconds: &str) -> Option<PrintedFigure> {
    let mut whole = 0.0;
    for part in before {
        let part: u32 = part.parse().ok().filter(|part| *part < 1_000_000)?;
        whole = whole * 60.0 + f64::from(part);
    }
    let seconds = PrintedFigure::read(seconds).filter(|seconds| seconds.value < 60.0)?;
    Some(PrintedFigure::exact(whole * 60.0) + seconds)
}

/// Reads `0.00user 0.01system 0:00.09elapsed 18%CPU (0avgtext+0avgdata 2820maxresident)k`.
fn short(line: TextLine<'_>) -> Result<Took, ImportError> {
    let mut took = Took::default();
    for word in line.text.split_whitespace() {
        if let Some(time) = word.strip_suffix("user") {
            took.user = Some(seconds(line, time)?);
        } else if let Some(time) = word.strip_suffix("system") {
            took.system = Some(seconds(line, time)?);
        } else if let Some(time) = word.strip_suffix("elapsed") {
            took.elapsed = Some(wall(line, time)?);
        } else if let Some(share) = word.strip_suffix("%CPU") {
            took.share = PrintedFigure::read(share);
        } else if let Some(size) = word.strip_suffix("maxresident)k") {
            took.resident = Some(line.number(size)? * 1024.0);
        }
    }
    took.check(line)?;
    let whole = took.user.is_some() && took.system.is_some() && took.resident.is_some();
    if !whole || took.elapsed.is_none() {
        return Err(line.refuse("a line of GNU time: …user …system …elapsed … (… …maxresident)k"));
    }
    Ok(took)
}

/// The lines of GNU time -v, up to the exit status.
fn verbose(
    lines: &[TextLine<'_>],
    at: &mut usize,
    first: TextLine<'_>,
    command: &str,
) -> Result<Took, ImportError> {
    let mut took = Took {
        command: Some(command.trim_matches('"').to_owned()),
        ..Took::default()
    };
    while let Some(line) = lines.get(*at).copied() {
        *at += 1;
        if let Some(time) = line.after("User time (seconds):") {
            took.user = Some(seconds(line, time)?);
        } else if let Some(time) = line.after("System time (seconds):") {
            took.system = Some(seconds(line, time)?);
        } else if let Some(time) = line.after(WALL) {
            took.elapsed = Some(wall(line, time)?);
        } else if let Some(share) = line.after("Percent of CPU this job got:") {
            took.share = PrintedFigure::read(share.trim_end_matches('%'));
        } else if let Some(size) = line.after("Maximum resident set size (kbytes):") {
            took.resident = Some(line.number(size)? * 1024.0);
        } else if let Some(status) = line.after("Exit status:") {
            line.whole(status)?;
            took.exit = Some(status.to_owned());
            took.check(first)?;
            break;
        } else if line.after(COMMAND).is_some() {
            return Err(line.refuse("the rest of the command before it, up to its exit status"));
        }
    }
    let whole = took.user.is_some() && took.system.is_some() && took.elapsed.is_some();
    if !whole || took.exit.is_none() {
        return Err(first.refuse("user, system and elapsed time and the exit status after it"));
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{has, refused};

    fn read(text: &str) -> Vec<stackrace_base::printed::Imported> {
        crate::import::tests::read(text, Some("time")).unwrap_or_else(|why| panic!("{why}: {text}"))
    }

    #[test]
    fn another_command_behind_a_prompt_is_other_work() {
        let times = "\nreal\t0m1.234s\nuser\t0m0.100s\nsys\t0m0.010s\n";
        let text = format!(
            "me@nas:~$ time cp a b{times}me@nas:~$ time -p sync{times}me@nas:~$ ls\n{times}"
        );
        let done: Vec<String> = read(&text).into_iter().map(|it| it.workload).collect();
        assert_eq!(done, ["timed: cp a b", "timed: sync", "timed command"]);
    }

    #[test]
    fn a_time_of_0_is_no_figure_and_says_so() {
        let [took] = read("real\t0m0.000s\nuser\t0m0.000s\nsys\t0m0.010s\n")
            .try_into()
            .unwrap();
        assert_eq!(took.values[0], None);
        has(&took, "system time", "s", 0.01);
        assert!(
            took.notes[0].starts_with("elapsed, user time: 0"),
            "{took:?}"
        );
    }

    #[test]
    fn a_share_of_the_processor_follows_from_the_times() {
        let pages = "0inputs+0outputs (0major+120minor)pagefaults 0swaps\n";
        let line = |user: &str| {
            format!(
                "{user}user 0.01system 0:00.09elapsed 18%CPU (0avgtext+0avgdata 2820maxresident)k\n{pages}"
            )
        };
        assert_eq!(read(&line("0.00")).len(), 1);
        assert!(refused(&line("9.00")).what.contains("contradicts"));
        let failed = format!("Command exited with non-zero status 2\n{}", line("0.00"));
        assert!(
            read(&failed)[0]
                .notes
                .iter()
                .any(|note| note.contains("status 2"))
        );
    }
}
