//! sysbench's options: `--name=value`, a test, a command.

use stackrace_engine::sysbench::{SysbenchMode, SysbenchPlan, SysbenchVersion, Transfer};

use super::report::MODE;

/// Options that make no difference to fileio here, and are let pass.
const IDLE: [&str; 12] = [
    "debug",
    "verbosity",
    "forced-shutdown",
    "thread-stack-size",
    "thread-init-timeout",
    "rand-type",
    "rand-init",
    "rand-spec-iter",
    "rand-spec-pct",
    "rand-spec-res",
    "rand-pareto-h",
    "rand-zipfian-exp",
];

/// Options as the user gives them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SysbenchOptions {
    pub(super) plan: SysbenchPlan,
    pub(super) command: Command,
    /// The word of the mode; `None` if not given, which only `run` minds.
    pub(super) mode: Option<SysbenchMode>,
    /// Seed of the random numbers; 0 means one from the time, or, for 0.4, none at all.
    pub(super) seed: u64,
    /// `--init-rng`: 0.4 seeds its generator.
    pub(super) seeded: bool,
    pub(super) interval_s: u64,
    /// Rank of the percentile to print, %; 0 means none.
    pub(super) percentile: u64,
    pub(super) histogram: bool,
}

/// Task of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Prepare,
    Run,
    Cleanup,
    Help,
}

impl SysbenchOptions {
    fn new(version: SysbenchVersion) -> Self {
        Self {
            plan: SysbenchPlan::of(version),
            command: Command::Help,
            mode: None,
            seed: 0,
            seeded: false,
            interval_s: 0,
            percentile: 95,
            histogram: false,
        }
    }

    /// Reads the words after `sysbench`.
    ///
    /// # Errors
    /// One sentence, for a word that is unknown or makes no sense.
    pub(super) fn read(words: &[String]) -> Result<Self, String> {
        // 0.4 takes its test as an option, 1.0 as a word: that tells them apart.
        let old = words.iter().any(|word| word.starts_with("--test"));
        let mut options = Self::new(if old {
            SysbenchVersion::V0_4
        } else {
            SysbenchVersion::V1_0
        });
        if words.iter().any(|word| word == "--help" || word == "-h") {
            return Ok(options);
        }
        let (mut plain, mut backlog, mut queued) = (Vec::new(), 128, false);
        for word in words {
            let Some(option) = word.strip_prefix("--") else {
                plain.push(word.as_str());
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            match (name, value.unwrap_or_default()) {
                // In front, where 1.0 has its test: the rest is the same.
                ("test", test) => plain.insert(0, test),
                ("file-async-backlog", value) => backlog = number(name, value)?,
                ("file-io-mode", "sync") => options.plan.transfer = Transfer::Sync,
                ("file-io-mode", "async") => queued = true,
                ("file-io-mode", "mmap") => options.plan.transfer = Transfer::Mmap,
                _ => options.take(name, value)?,
            }
        }
        // After all words: the backlog may come before or behind its mode.
        if queued {
            options.plan.transfer = Transfer::Async { backlog };
        }
        options.command = command(&plain)?;
        if options.histogram && options.percentile == 0 {
            return Err("--histogram needs a percentile: leave out --percentile=0".to_owned());
        }
        Ok(options)
    }

    fn take(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let (plan, text) = (&mut self.plan, value.unwrap_or_default());
        match name {
            "threads" | "num-threads" => plan.threads = number(name, text)?,
            "events" | "max-requests" => plan.events = number(name, text)?,
            "time" | "max-time" => plan.time_ns = time(number(name, text)?),
            "rate" | "tx-rate" => {
                let rate: u32 = number(name, text)?;
                plan.rate = (rate > 0).then_some(f64::from(rate));
            }
            "report-interval" => self.interval_s = number(name, text)?,
            "validate" => plan.validate = flag(name, value)?,
            "rand-seed" => self.seed = number(name, text)?,
            "init-rng" => self.seeded = flag(name, value)?,
            "percentile" => self.percentile = number(name, text)?,
            "histogram" => self.histogram = flag(name, value)?,
            "file-num" => plan.files = number(name, text)?,
            "file-block-size" => plan.block_size = number(name, text)?,
            "file-total-size" => plan.total_bytes = number(name, text)?,
            "file-test-mode" => self.mode = Some(mode(text, plan)?),
            "file-extra-flags" => flags(text, plan)?,
            "file-fsync-freq" => plan.fsync_every = number(name, text)?,
            "file-fsync-all" => plan.fsync_each = flag(name, value)?,
            "file-fsync-end" => plan.fsync_at_end = flag(name, value)?,
            "file-fsync-mode" => {
                plan.data_only = match text {
                    "fsync" => false,
                    "fdatasync" => true,
                    _ => return Err(format!("--{name} is fsync or fdatasync, not \"{text}\"")),
                }
            }
            "file-merged-requests" => plan.merged = number(name, text)?,
            "file-rw-ratio" => {
                let ratio = text
                    .parse()
                    .ok()
                    .filter(|ratio: &f64| ratio.is_finite() && *ratio >= 0.0);
                plan.ratio = ratio.ok_or_else(|| format!("--{name}: \"{text}\" is no ratio"))?;
            }
            _ if IDLE.contains(&name) => {}
            _ => return Err(format!("--{name} is not an option of fileio here")),
        }
        Ok(())
    }
}

fn time(seconds: u64) -> Option<u64> {
    (seconds > 0).then(|| seconds.saturating_mul(1_000_000_000))
}

fn mode(text: &str, plan: &mut SysbenchPlan) -> Result<SysbenchMode, String> {
    plan.mode = MODE.of_word(text).ok_or_else(|| {
        let words = MODE.words().join(", ");
        format!("--file-test-mode is one of {words}, not \"{text}\"")
    })?;
    Ok(plan.mode)
}

/// Reads one flag, or, as in 1.0, several with commas.
fn flags(text: &str, plan: &mut SysbenchPlan) -> Result<(), String> {
    for flag in text.split(',').filter(|flag| !flag.is_empty()) {
        match flag {
            "sync" => plan.open_sync = true,
            "dsync" => plan.open_dsync = true,
            "direct" => plan.direct = true,
            _ => {
                return Err(format!(
                    "--file-extra-flags are sync, dsync, direct, not \"{flag}\""
                ));
            }
        }
    }
    Ok(())
}

fn flag(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("on" | "true" | "yes" | "1") => Ok(true),
        Some("off" | "false" | "no" | "0") => Ok(false),
        Some(other) => Err(format!("--{name} is on or off, not \"{other}\"")),
    }
}

/// A whole number, with a suffix K, M, G or T (1024 each) or without.
fn number<T: TryFrom<u64>>(name: &str, text: &str) -> Result<T, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let shift = match suffix {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        // An unknown suffix: a shift by 64 is refused by `checked_shl`.
        _ => 64,
    };
    let number: Option<u64> = digits.parse().ok();
    let number = number.and_then(|number| number.checked_mul(1u64.checked_shl(shift)?));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("--{name}: \"{text}\" is not a number that it takes"))
}

fn command(plain: &[&str]) -> Result<Command, String> {
    let (test, rest) = match plain {
        [] | ["help"] => return Ok(Command::Help),
        [test, rest @ ..] => (*test, rest),
    };
    if test != "fileio" {
        return Err(format!(
            "\"{test}\" is not supported: of sysbench's tests only fileio is"
        ));
    }
    match rest {
        ["prepare"] => Ok(Command::Prepare),
        ["run"] => Ok(Command::Run),
        ["cleanup"] => Ok(Command::Cleanup),
        ["help"] => Ok(Command::Help),
        [] => Err("fileio needs a command: prepare, run, cleanup or help".to_owned()),
        [first, ..] => {
            let wrong = match *first {
                "prepare" | "run" | "cleanup" | "help" => rest.last().unwrap_or(first),
                other => other,
            };
            Err(format!(
                "\"{wrong}\" is no command: prepare, run, cleanup, help"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<SysbenchOptions, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        SysbenchOptions::read(&words)
    }

    #[test]
    fn options_of_0_4_and_of_1_0_are_understood() {
        let new = read("--threads=4 fileio --file-test-mode=rndrw --time=60 --file-extra-flags=sync,direct --file-io-mode=async --file-fsync-all run").unwrap();
        assert_eq!(
            (new.plan.threads, new.plan.time_ns),
            (4, Some(60_000_000_000))
        );
        assert_eq!(
            (new.command, new.mode),
            (Command::Run, Some(SysbenchMode::RandomBoth))
        );
        assert_eq!(new.plan.transfer, Transfer::Async { backlog: 128 });
        assert!(new.plan.open_sync && new.plan.direct && new.plan.fsync_each);
        let old = read("--test=fileio --num-threads=16 --file-total-size=3G --max-time=0 --init-rng=on --file-test-mode=seqwr prepare").unwrap();
        assert_eq!(
            (old.plan.version, old.plan.events),
            (SysbenchVersion::V0_4, 10_000)
        );
        assert_eq!((old.plan.time_ns, old.plan.total_bytes), (None, 3 << 30));
        assert!(old.seeded && old.command == Command::Prepare);
        assert_eq!(read("fileio --help").unwrap().command, Command::Help);
    }

    #[test]
    fn contradicting_options_are_refused_by_name() {
        for (line, why) in [
            ("cpu run", "\"cpu\" is not supported"),
            ("--test=oltp run", "\"oltp\" is not supported"),
            ("fileio", "needs a command"),
            ("fileio dance", "\"dance\" is no command"),
            ("fileio run now", "\"now\" is no command"),
            ("fileio --file-nm=3 run", "--file-nm is not an option"),
            (
                "fileio --report-checkpoints=3 run",
                "--report-checkpoints is not",
            ),
            ("fileio --file-num=3x run", "\"3x\" is not a number"),
            (
                "fileio --threads=99999999999 run",
                "is not a number that it takes",
            ),
            (
                "fileio --file-total-size=99999999T run",
                "is not a number that it takes",
            ),
            ("fileio --file-test-mode=foo run", "one of seqwr, seqrewr"),
            ("fileio --file-extra-flags=foo run", "not \"foo\""),
            ("fileio --validate=maybe run", "on or off"),
            ("fileio --file-rw-ratio=-1 run", "no ratio"),
            (
                "fileio --histogram --percentile=0 run",
                "needs a percentile",
            ),
        ] {
            let refusal = read(line).unwrap_err();
            assert!(refusal.contains(why), "{line}: {refusal}");
        }
    }
}
