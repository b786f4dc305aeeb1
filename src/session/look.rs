//! A look at the machine before a run starts: how noisy it is, and how long an answer takes then.
//!
//! Short trials of the same work follow each other in all directories of the run. How much they differ
//! beyond what the directories and the time explain is the noise that the verdict has to overcome. No
//! verdict counts these trials.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stackrace_stats::elementary::{exp, exp_m1, ln};
use stackrace_stats::{FIRST_LOOK, detectable, mean, two_sided_level};

use super::context::Context;
use super::observer::{Observer, Start};
use super::watched::WatchedDirs;
use super::{preflight, study_file, temporary};
use stackrace_base::event::Decide;
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_engine::{Control, Op, PhaseEnd, residency};
use stackrace_load::workload::{Place, Workload};
use stackrace_machine::host::local::LocalHost;
use stackrace_study::study::{ROUNDS_MAX, Study};

/// Longest look, s.
const SECONDS_MAX: f64 = 5.0;
/// Shortest look that says anything, s.
const SECONDS_MIN: f64 = 0.5;
/// Share of the time a run takes that a look may.
const SHARE: f64 = 0.05;
/// Trials in one place at least, and in all of them together at best.
const LAPS_MIN: usize = 3;
const TRIALS: usize = 20;
/// Trials in one place after which a look ends where the answer will come soon anyway.
const LAPS_ENOUGH: usize = 4;
/// So much more noise than a look has seen so far may be there.
const UNSEEN: f64 = 2.0;
/// Share of the time allowed within which an answer is soon.
const SOON: f64 = 0.25;
/// Where an answer takes so many times longer than the time allowed, the user is asked.
const HOPELESS: f64 = 5.0;
/// What stays of the variance of a short trial however long a trial lasts; the rest averages out.
const LASTING: f64 = 0.5;
/// A difference this large and larger is no answer to promise, as a share.
const TELLS_MAX: f64 = 3.0;
/// Normal deviations that make a chance of a half one of 80 %.
const SURE: f64 = 0.84;
/// Time between two looks while the user waits for a quieter machine, s.
const PAUSE_SECONDS: u64 = 30;

/// What a run is going to do, as far as a look needs to know it.
pub(super) struct Looked<'a> {
    /// Directories on the storage, each once.
    pub(super) directories: Vec<PathBuf>,
    /// Workloads of a round.
    pub(super) workloads: usize,
    /// How many there are; each takes its turn in a round.
    pub(super) configurations: usize,
    /// Seconds of a round; an estimate.
    pub(super) round_seconds: f64,
    /// Seconds the run takes at most, if no limit ends it; an estimate.
    pub(super) run_seconds: f64,
    /// Do not ask.
    pub(super) anyway: bool,
    /// Says what was found, and asks the user.
    pub(super) observer: &'a dyn Observer,
}

/// Looks at the machine before a study of existing directories runs on it. Its time is taken from what
/// the study allows. What the reader of the result must know is returned.
///
/// # Errors
/// The study cannot be run here.
pub(super) fn before_study(
    context: &Context,
    study: &mut Study,
    anyway: bool,
    observer: &dyn Observer,
) -> Result<Option<String>, Failure> {
    let Some(directories) = directories(study) else {
        return Ok(None);
    };
    preflight::check(context, study, &[])?;
    let time = preflight::plan(context, study, true)?.time;
    let looked = Looked {
        directories,
        workloads: study.workload_heads.len(),
        configurations: study.configurations.len(),
        // Between a fast and a slow storage: which of them it is has not been measured.
        round_seconds: (time.round_seconds.least * time.round_seconds.most).sqrt(),
        run_seconds: time.run_seconds.most,
        anyway,
        observer,
    };
    before(context, &mut study.decide, &looked)
}

/// The directories of a study whose stacks are nothing else, each once; none: there is something else,
/// or nothing to compare.
fn directories(study: &Study) -> Option<Vec<PathBuf>> {
    let stacks = study.configurations.iter().map(|one| &one.stack);
    let all: Option<Vec<PathBuf>> = stacks.map(|stack| stack.existing_directory()).collect();
    let mut all = all.filter(|all| all.len() > 1)?;
    all.sort();
    all.dedup();
    Some(all)
}

/// Looks at the machine, says what it found, and asks where an answer within the time is hopeless. The
/// time it took is taken from what is allowed, that of waiting is not.
///
/// # Errors
/// What a look made cannot be removed.
pub(super) fn before(
    context: &Context,
    decide: &mut Decide,
    looked: &Looked<'_>,
) -> Result<Option<String>, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let watched = WatchedDirs::of(&host, &looked.directories)?;
    let warning = looked_at(context, decide, looked)?;
    watched.unchanged()?;
    Ok(warning)
}

fn looked_at(
    context: &Context,
    decide: &mut Decide,
    looked: &Looked<'_>,
) -> Result<Option<String>, Failure> {
    let limited = decide.time_max_ns < study_file::NO_LIMIT_NS;
    let allowed = decide.time_max_ns as f64 / 1e9;
    let seconds = seconds(allowed.min(looked.run_seconds));
    if seconds < SECONDS_MIN || decide.rounds_max < FIRST_LOOK {
        return Ok(None);
    }
    loop {
        let began = SystemClock.now_ns();
        // Anew as often as the user waits for a quieter machine.
        let (_, trial) = shape(looked.directories.len().max(2), seconds);
        let soon = |laps: &[Vec<f64>]| {
            let noise = noise(laps).filter(|_| laps.len() >= LAPS_ENOUGH);
            noise.is_some_and(|noise| {
                let outlook = Outlook::new(UNSEEN * noise, trial, looked, decide);
                outlook.rounds() == FIRST_LOOK || outlook.seconds() <= SOON * allowed
            })
        };
        let trials = trials(context, &looked.directories, seconds, &soon)?;
        let took = SystemClock.now_ns().saturating_sub(began);
        let left = decide.time_max_ns.saturating_sub(took).max(1);
        let Some(noise) = trials.and_then(|laps| noise(&laps)) else {
            decide.time_max_ns = left;
            return Ok(None);
        };
        let outlook = Outlook::new(noise, trial, looked, decide);
        let needed = outlook.seconds();
        if !limited || needed <= HOPELESS * allowed {
            looked.observer.remark(&outlook.words(limited, allowed));
            decide.time_max_ns = left;
            return Ok(None);
        }
        let text = outlook.words(limited, allowed);
        let asked = match looked.anyway {
            true => {
                looked.observer.remark(&text);
                Start::Now
            }
            false => looked.observer.wait_or_start(&text),
        };
        if asked == Start::Now {
            decide.time_max_ns = left;
            return Ok(Some(text));
        }
        SystemClock.sleep(Duration::from_secs(PAUSE_SECONDS));
    }
}

/// How long a look takes, s, before a run of so many seconds.
pub(super) fn seconds(run: f64) -> f64 {
    (run * SHARE).min(SECONDS_MAX)
}

/// How long an answer takes.
struct Outlook {
    /// Deviation of the log ratio of two trials next to each other.
    noise: f64,
    /// Deviation of the log ratio of a round over all workloads.
    deviation: f64,
    /// Error of the answer.
    alpha: f64,
    margin: f64,
    round_seconds: f64,
}

impl Outlook {
    /// `trial`: seconds of the trials that showed the noise.
    fn new(noise: f64, trial: f64, looked: &Looked<'_>, decide: &Decide) -> Self {
        let (workloads, k) = (looked.workloads.max(1), looked.configurations);
        let each = looked.round_seconds / (workloads * k.max(1)) as f64;
        let averaged = LASTING + (1.0 - LASTING) * (trial / each.max(trial));
        // As many comparisons as a ranking has: every pair.
        let pairs = (k * k.saturating_sub(1) / 2).max(1);
        Self {
            noise,
            deviation: noise * (averaged / workloads as f64).sqrt(),
            alpha: (1.0 - decide.confidence) * decide.overall_share(workloads) / pairs as f64,
            margin: decide.margin,
            round_seconds: looked.round_seconds,
        }
    }

    /// The smallest difference, as a share, that so many rounds show with a chance of 80 %.
    fn difference(&self, rounds: u32) -> f64 {
        let rounds = rounds.max(FIRST_LOOK);
        let level = two_sided_level(self.alpha, rounds);
        let half = detectable(self.deviation, rounds, level).unwrap_or(f64::MAX);
        // A difference as large as the half-width is found every second time. A chance of 80 %
        // takes 0.84 standard errors more.
        half * exp(SURE * self.deviation / f64::from(rounds).sqrt()) - 1.0
    }

    /// Rounds that show a difference as large as the margin; at most as many as a run can have.
    fn rounds(&self) -> u32 {
        // More rounds show smaller differences, so the first number that does can be bisected.
        let (mut first, mut last) = (FIRST_LOOK, ROUNDS_MAX);
        while first < last {
            let middle = first.midpoint(last);
            match self.difference(middle) <= self.margin {
                true => last = middle,
                false => first = middle + 1,
            }
        }
        first
    }

    fn seconds(&self) -> f64 {
        f64::from(self.rounds()) * self.round_seconds
    }

    fn words(&self, limited: bool, allowed: f64) -> String {
        let vary = format!(
            "results vary by {} from one trial to the next",
            difference(exp_m1(self.noise))
        );
        let needed = format!(
            "A difference of {} takes about {} to see.",
            difference(self.margin),
            about(self.seconds())
        );
        if !limited || self.seconds() <= allowed {
            return format!("On this machine, {vary}. {needed}");
        }
        let busy = match self.seconds() > HOPELESS * allowed {
            true => format!("This machine is noisy now: {vary}."),
            false => format!("On this machine, {vary}."),
        };
        let rounds = (allowed / self.round_seconds).min(f64::from(ROUNDS_MAX)) as u32;
        let seen = match self.difference(rounds) {
            told if told < TELLS_MAX => format!("only one of {} or more shows", difference(told)),
            _ => "none is likely to show".to_owned(),
        };
        format!("{busy} {needed} In the {} given, {seen}.", about(allowed))
    }
}

/// A difference as people say it: `5 %`, `a factor of 2.3`.
fn difference(share: f64) -> String {
    match share {
        share if share < 1.0 => unit::percent(share).replace(".0 %", " %"),
        share => format!("a factor of {:.1}", 1.0 + share),
    }
}

/// A time as it is guessed: "50 s", "40 min", "3 h".
fn about(seconds: f64) -> String {
    match seconds {
        s if s < 95.0 => format!("{:.0} s", (s / 10.0).ceil() * 10.0),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// Deviation of the log ratio of two trials next to each other: what is left of the values of each lap
/// when their place and their lap are taken out of them. None: too few.
fn noise(laps: &[Vec<f64>]) -> Option<f64> {
    let places = laps.first()?.len();
    if places < 2 || laps.len() < 2 {
        return None;
    }
    let logs: Vec<Vec<f64>> = laps
        .iter()
        .map(|lap| lap.iter().map(|value| ln(*value)).collect())
        .collect();
    let of_lap: Vec<f64> = logs.iter().map(|lap| mean(lap)).collect();
    let of_place: Vec<f64> = (0..places)
        .map(|place| mean(&logs.iter().map(|lap| lap[place]).collect::<Vec<_>>()))
        .collect();
    let all = mean(&of_lap);
    let rest = |(lap, values): (usize, &Vec<f64>)| -> f64 {
        let squares = values.iter().zip(&of_place);
        // What a place and a lap do not explain: the residual of a two-way layout.
        let squares = squares.map(|(value, place)| (value - place - of_lap[lap] + all).powi(2));
        squares.sum()
    };
    let sum: f64 = logs.iter().enumerate().map(rest).sum();
    let freedom = ((places - 1) * (laps.len() - 1)) as f64;
    // A ratio of two trials has the variance of both.
    let deviation = (2.0 * sum / freedom).sqrt();
    deviation.is_finite().then_some(deviation)
}

/// Operations per second of trials in the places, lap by lap, until `enough` says so or the time is
/// over; one directory alone is two places. None: it cannot be worked in one of them, which the run
/// itself will say.
fn trials(
    context: &Context,
    directories: &[PathBuf],
    seconds: f64,
    enough: &dyn Fn(&[Vec<f64>]) -> bool,
) -> Result<Option<Vec<Vec<f64>>>, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    temporary::work(context, &host, |journal, id| {
        let (mut places, mut held_dirs) = (Vec::new(), Vec::new());
        for directory in directories {
            let name = directory.to_string_lossy();
            let held = temporary::private(&host, journal, directory, "probe", id, &name);
            let Ok(held) = held else {
                return Ok(None);
            };
            places.push(held.path().to_path_buf());
            held_dirs.push(held);
        }
        // Without a second place, a directory is set against itself.
        if let [only] = &places[..] {
            places.push(only.clone());
        }
        Ok(laps(&places, seconds, enough))
    })
}

/// How often a look of so many seconds goes through so many places, and the seconds of each trial.
fn shape(places: usize, seconds: f64) -> (usize, f64) {
    let laps = (TRIALS / places).max(LAPS_MIN);
    (laps, seconds / (laps * places) as f64)
}

fn laps(
    places: &[PathBuf],
    seconds: f64,
    enough: &dyn Fn(&[Vec<f64>]) -> bool,
) -> Option<Vec<Vec<f64>>> {
    let (count, each) = shape(places.len(), seconds);
    // Writes that are made durable now and then, between reads: what most storage is asked for, and
    // what a neighbour disturbs first.
    let text = format!(
        "[[stack]]\ndir = {{ path = \"/\" }}\n[[workload]]\nrandom = {{ mode = \"mixed\", read-share = \"50 %\", size = \"8 MiB\", access = \"uniform\", fsync-every = 16, time = \"{:.0} us\" }}\n[decide]\nrounds-at-most = 1\n",
        each * 1e6
    );
    let study = study_file::parse("look", text.as_bytes()).ok()?;
    let workload = &*study.configurations.first()?.workloads[0];
    let (ledger, control) = (OnceLock::new(), Control::default());
    let at = |directory| Place {
        cold: true,
        ..Place::alone(directory, 1, &ledger, &control)
    };
    for place in places {
        workload.prepare(&at(place)).ok()?;
        // What is still to be written would disturb the first trials.
        residency::evict_tree(place).ok()?;
    }
    let mut laps: Vec<Vec<f64>> = Vec::new();
    while laps.len() < count && !enough(&laps) {
        let number = laps.len();
        let mut lap = vec![0.0; places.len()];
        for step in 0..places.len() {
            // Every second lap goes backwards, as a run balances its order.
            let place = match number % 2 {
                0 => step,
                _ => places.len() - 1 - step,
            };
            lap[place] = trial(workload, &at(&places[place]))?;
        }
        laps.push(lap);
    }
    Some(laps)
}

/// Operations per second of one trial; none: it failed, or did nothing.
fn trial(workload: &dyn Workload, place: &Place<'_>) -> Option<f64> {
    let outcome = workload.measure(0, place).ok()?;
    let work = outcome.ops.iter().filter(|op| op.op != Op::Fsync);
    let rate = work.map(|op| op.count).sum::<u64>() as f64 / (outcome.elapsed_ns as f64 / 1e9);
    (outcome.ended == PhaseEnd::Complete && rate > 0.0 && rate.is_finite()).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::sync::Arc;

    use super::super::observer::WatchedRun;
    use crate::run::{Interrupt, Watcher};

    /// Remembers what it was told; answers what it was given.
    struct Asked {
        answer: Start,
        asked: Cell<bool>,
        told: RefCell<Vec<String>>,
    }

    impl Asked {
        fn answers(answer: Start) -> Self {
            Self {
                answer,
                asked: Cell::new(false),
                told: RefCell::default(),
            }
        }
    }

    impl Observer for Asked {
        fn remark(&self, text: &str) {
            self.told.borrow_mut().push(text.to_owned());
        }
        fn warn(&self, _: &str, _: &str) {}
        fn wait_or_start(&self, text: &str) -> Start {
            self.asked.set(true);
            self.remark(text);
            self.answer
        }
        fn catch_interrupt(&self, _: &'static str) -> Result<Arc<Interrupt>, Failure> {
            unreachable!("a look runs nothing")
        }
        fn watch(&self, _: WatchedRun) -> Box<dyn Watcher> {
            unreachable!("a look runs nothing")
        }
    }

    fn decide(seconds: u64, margin: f64) -> Decide {
        Decide {
            comparison: None,
            margin,
            confidence: 0.95,
            rounds_max: 200,
            time_max_ns: seconds * 1_000_000_000,
            until: stackrace_base::event::Until::Overall,
        }
    }

    fn looked<'a>(observer: &'a Asked, directories: Vec<PathBuf>, anyway: bool) -> Looked<'a> {
        Looked {
            directories,
            workloads: 3,
            configurations: 2,
            round_seconds: 9.0,
            run_seconds: 1e9,
            anyway,
            observer,
        }
    }

    fn outlook(noise: f64, seconds: u64) -> Outlook {
        let observer = Asked::answers(Start::Now);
        let looked = looked(&observer, Vec::new(), false);
        Outlook::new(noise, 0.25, &looked, &decide(seconds, 0.05))
    }

    #[test]
    fn places_and_drift_are_no_noise() {
        // The second place is twice as fast, and both get slower.
        let drift = [[8.0, 16.0], [4.0, 8.0], [2.0, 4.0]].map(Vec::from);
        assert!(noise(&drift).unwrap() < 1e-9);
        let laps = [[1.0, 1.1], [1.0, 1.0], [1.0, 1.1], [1.0, 1.0]].map(Vec::from);
        let ratios = [1.1_f64.ln(), 0.0, 1.1_f64.ln(), 0.0];
        let expected = stackrace_stats::variance(&ratios).sqrt();
        assert!((noise(&laps).unwrap() - expected).abs() < 1e-9);
        assert_eq!(noise(&laps[..1]), None);
        assert_eq!(noise(&[vec![1.0], vec![2.0]]), None);
    }

    #[test]
    fn the_trials_of_a_look_fill_its_time() {
        for places in 2..=16 {
            let (laps, each) = shape(places, 5.0);
            assert!(laps >= LAPS_MIN);
            assert!(((laps * places) as f64).mul_add(each, -5.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_look_ends_early_where_it_has_seen_enough() {
        let place = tempfile::tempdir().unwrap();
        let places = [place.path().to_owned(), place.path().to_owned()];
        let early = laps(&places, 0.5, &|laps| laps.len() == 2).unwrap();
        assert_eq!((early.len(), early[0].len()), (2, 2));
        let whole = laps(&places, 0.5, &|_| false).unwrap();
        assert_eq!(whole.len(), shape(2, 0.5).0);
    }

    #[test]
    fn more_noise_takes_more_rounds() {
        let rounds = [0.01, 0.05, 0.2].map(|noise| outlook(noise, 120).rounds());
        assert_eq!(rounds[0], FIRST_LOOK);
        assert!(rounds[0] < rounds[1] && rounds[1] < rounds[2], "{rounds:?}");
        let noisy = outlook(0.2, 120);
        assert!(noisy.difference(rounds[2]) <= 0.05);
        assert!(noisy.difference(rounds[2] - 1) > 0.05);
    }

    #[test]
    fn what_is_said_has_the_time_that_was_given() {
        let quiet = outlook(0.01, 120).words(true, 120.0);
        assert_eq!(
            quiet,
            "On this machine, results vary by 1 % from one trial to the next. A difference of 5 % takes about 30 s to see."
        );
        let busy = outlook(0.3, 120).words(true, 120.0);
        assert!(
            busy.starts_with("This machine is noisy now: results vary by 35 % from one"),
            "{busy}"
        );
        assert!(
            busy.contains(" to see. In the 2 min given, only one of ") && busy.ends_with("shows."),
            "{busy}"
        );
        let hopeless = outlook(1.0, 120).words(true, 30.0);
        assert!(hopeless.contains("vary by a factor of 2.7"), "{hopeless}");
        assert!(
            hopeless.ends_with("In the 30 s given, none is likely to show."),
            "{hopeless}"
        );
        let unlimited = outlook(0.3, 120).words(false, 1e9);
        assert!(!unlimited.contains("given"), "{unlimited}");
    }

    /// A machine on which nothing can be told within the time: what the smallest margin makes of any.
    #[test]
    fn the_user_is_asked_only_where_it_is_hopeless_and_not_with_anyway() {
        let store = tempfile::tempdir().unwrap();
        let place = tempfile::tempdir().unwrap();
        let context = Context {
            store: Some(store.path().to_owned()),
            command: Vec::new(),
            peers: Vec::new(),
            one_kernel: false,
        };
        for (margin, anyway, asked) in [
            (1e-6, false, true),
            (1e-6, true, false),
            (1e3, false, false),
        ] {
            let observer = Asked::answers(Start::Now);
            let mut decide = decide(20, margin);
            let looked = looked(&observer, vec![place.path().to_owned()], anyway);
            let warned = before(&context, &mut decide, &looked).unwrap();
            assert_eq!(observer.asked.get(), asked, "{margin} {anyway}");
            assert_eq!(warned.is_some(), margin < 1.0, "kept with the result");
            assert_eq!(observer.told.borrow().len(), 1, "said once");
            assert!(decide.time_max_ns < 20_000_000_000, "a look takes time");
        }
        let left = std::fs::read_dir(place.path()).unwrap().count();
        assert_eq!(left, 0, "a look leaves nothing behind");
    }

    #[test]
    fn a_short_run_is_not_looked_at() {
        let context = Context {
            store: None,
            command: Vec::new(),
            peers: Vec::new(),
            one_kernel: false,
        };
        let observer = Asked::answers(Start::Now);
        let mut decide = decide(5, 0.05);
        let looked = looked(&observer, Vec::new(), false);
        assert_eq!(before(&context, &mut decide, &looked).unwrap(), None);
        assert_eq!(decide.time_max_ns, 5_000_000_000);
    }
}
