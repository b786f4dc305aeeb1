//! The live view of a run: on the terminal, and told to those who watch from outside.
//!
//! Everything goes to standard error, so that standard output is the report alone. Where standard
//! error is no terminal, one plain line is written for each round and look. One thread looks at what
//! is under way four times a second, draws it and writes the run's `now.json`.

mod board;
mod doing;
mod preparing;
mod view;

pub(super) use self::preparing::Preparing;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use self::board::Board;
use self::doing::Doing;
use super::terminal::{columns, draws, error, set_view};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_judge::verdict::CheckAnswer;
use stackrace_results::record::{Now, NowFile};
use stackrace_run::prepare::observer::WatchedRun;
use stackrace_run::run::{SharedLedger, TrialStart, Watcher};
use stackrace_show::report::{self, Standings};
use stackrace_study::study::ROUNDS_MAX;

/// On a terminal the same answer is told again after this, ns: rounds may take a tenth of a second.
const TOLD_EVERY_NS: u64 = 10_000_000_000;

/// Pause between two looks.
const TICK: Duration = Duration::from_millis(250);

/// Draws on the terminal how far a run is.
pub(super) struct Progress {
    ledger: SharedLedger,
    configurations: Vec<String>,
    time_max_s: Option<f64>,
    /// Of a run in virtual time: when it began here, ns, and the trials it had by then.
    begun: Option<(u64, usize)>,
    quiet: bool,
    terminal: bool,
    watched: Arc<Watched>,
    ticker: Option<JoinHandle<()>>,
    /// The last answer that was told, and when, ns.
    told: Mutex<(Vec<&'static str>, u64)>,
}

/// Shared with the thread that looks.
struct Watched {
    bar: ProgressBar,
    workloads: Vec<String>,
    rounds_max: u32,
    colour: bool,
    terminal: bool,
    state: Mutex<State>,
    end: Condvar,
}

/// State as of the last event.
#[derive(Default)]
struct State {
    doing: Doing,
    standings: Standings,
    /// Complete rounds the standings are of; none: there are no standings yet.
    standings_of: Option<usize>,
    trials: (u64, u64),
    /// Elapsed and left at the moment `at_ns`, s.
    elapsed_s: f64,
    /// None: it cannot be told yet.
    left_s: Option<f64>,
    at_ns: u64,
    ended: bool,
}

impl Progress {
    /// Begins to draw and to tell.
    pub(super) fn new(run: WatchedRun, quiet: bool, colour: bool) -> Self {
        let terminal = draws() && !quiet;
        let bars = view::new();
        if !terminal {
            // Escape sequences would be noise in a file.
            bars.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        set_view(terminal.then_some(&bars));
        let style = ProgressStyle::with_template("{msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let watched = Arc::new(Watched {
            bar: bars.add(ProgressBar::new_spinner().with_style(style)),
            workloads: run.workloads,
            rounds_max: run.rounds_max,
            colour,
            terminal,
            state: Mutex::default(),
            end: Condvar::new(),
        });
        let ticking = Arc::clone(&watched);
        let told = run.now;
        let ticker =
            (terminal || told.is_some()).then(|| std::thread::spawn(move || tick(&ticking, told)));
        let begun = {
            let ledger = run.ledger.lock();
            let record = ledger.record();
            let virtual_time = record.head.place().in_virtual_time();
            virtual_time.then(|| (SystemClock.now_ns(), record.trials().count()))
        };
        Self {
            ledger: run.ledger,
            begun,
            configurations: run.configurations,
            time_max_s: run.time_max_s,
            quiet,
            terminal,
            watched,
            ticker,
            told: Mutex::default(),
        }
    }

    /// Returns true if an answer is worth a paragraph above the live view, which shows where all stand: it is another one
    /// than the last, or that was a while ago.
    fn is_news(&self, answer: &CheckAnswer) -> bool {
        let words = answer.words.iter().map(|word| word.name());
        let (words, now) = (words.collect(), SystemClock.now_ns());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, at) = &*told;
        let news = !self.terminal || *before != words || now.saturating_sub(*at) >= TOLD_EVERY_NS;
        if news {
            *told = (words, now);
        }
        news
    }

    fn say(&self, text: &str) {
        error(&format!("{text}\n"));
    }

    /// Brings what the record says into the state: how far the race is and how long it may still
    /// take, and after each round where the configurations stand.
    fn race(&self, state: &mut State, round: u32) {
        let mut ledger = self.ledger.lock();
        let spent_s = ledger.spent_seconds();
        let (kept, record) = ledger.looked_at();
        let evidence = kept.of(record);
        let live = (self.configurations.len() - evidence.dropped.len()).max(1);
        let since = record.trials_since(round);
        let done = since.filter(|trial| trial.round == round).count();
        state.trials = (done as u64, (live * self.watched.workloads.len()) as u64);
        state.at_ns = SystemClock.now_ns();
        let rounds = (self.watched.rounds_max + 1).saturating_sub(round);
        let limited = self.watched.rounds_max < ROUNDS_MAX;
        (state.elapsed_s, state.left_s) = match self.begun {
            // The user who waits for a run in virtual time looks at another clock.
            Some((began_ns, before)) => {
                let elapsed = state.at_ns.saturating_sub(began_ns) as f64 / 1e9;
                let made = evidence.trials.len().saturating_sub(before);
                let rest = f64::from(rounds) * state.trials.1 as f64 - state.trials.0 as f64;
                let left = (made > 0).then(|| elapsed / made as f64 * rest.max(0.0));
                (elapsed, left.filter(|_| limited))
            }
            None => {
                let elapsed = spent_s;
                let left = self.time_max_s.map(|most| (most - elapsed).max(0.0));
                let rest = evidence.round_seconds.map(|mean| mean * f64::from(rounds));
                let rest = rest.filter(|_| limited);
                let both = left.zip(rest).map(|(left, rest)| left.min(rest));
                (elapsed, both.or(left).or(rest))
            }
        };
        // Judging costs more with each round, and changes only when one is complete.
        if self.terminal && state.standings_of != Some(evidence.rounds.len()) {
            state.standings_of = Some(evidence.rounds.len());
            let look = kept.look(&evidence);
            state.standings = report::standings(record, look.configurations(), look.overall());
        }
    }
}

impl Drop for Progress {
    /// Ends the drawing and leaves a clean line for what is printed next.
    fn drop(&mut self) {
        self.watched.state().ended = true;
        self.watched.end.notify_all();
        if let Some(ticker) = self.ticker.take() {
            // It draws nothing any more: one that panicked has only lost the view.
            let _ = ticker.join();
        }
        self.watched.bar.finish_and_clear();
        set_view(None);
    }
}

impl Watched {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next look. False: the run has ended.
    fn wait(&self) -> bool {
        let state = self.state();
        let waited = self
            .end
            .wait_timeout_while(state, TICK, |state| !state.ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.ended
    }

    fn board(&self, state: &State, now_ns: u64) -> Board {
        let since_s = now_ns.saturating_sub(state.at_ns) as f64 / 1e9;
        let doing = &state.doing;
        let workload = doing.workload.and_then(|at| self.workloads.get(at));
        Board {
            round: doing.round,
            rounds_max: self.rounds_max,
            trials: state.trials,
            elapsed_s: state.elapsed_s + since_s,
            left_s: state.left_s.map(|left| (left - since_s).max(0.0)),
            standings: state.standings.clone(),
            configuration: doing.configuration,
            doing: match workload {
                Some(workload) if *workload != doing.part => {
                    format!("{workload} · {}", doing.part)
                }
                _ => doing.part.clone(),
            },
            doing_s: doing.elapsed_ns(now_ns) as f64 / 1e9,
            rate: doing.rate(),
            recent: doing.recent(),
        }
    }
}

/// Looks, draws and tells until the run ends.
fn tick(watched: &Watched, mut told: Option<NowFile>) {
    while watched.wait() {
        let now_ns = SystemClock.now_ns();
        let (board, now) = {
            let mut state = watched.state();
            if state.doing.round == 0 {
                continue;
            }
            state.doing.look(now_ns);
            (watched.board(&state, now_ns), state.doing.told(now_ns))
        };
        if let Some(file) = &mut told {
            file.write(&Now {
                pid: std::process::id(),
                at: SystemClock.today(),
                left_s: board.left_s,
                ..now
            });
        }
        if watched.terminal {
            let width = columns(&std::io::stderr());
            let lines = board::lines(&board, width);
            watched.bar.set_message(lines.render(watched.colour));
        }
    }
}

impl Watcher for Progress {
    fn begins(&self, start: &TrialStart<'_>) {
        let (new_round, line) = {
            let mut state = self.watched.state();
            self.race(&mut state, start.round);
            let doing = Doing::begins(start, SystemClock.now_ns());
            let before = std::mem::replace(&mut state.doing, doing).round;
            let line = format!(
                "{} · {} elapsed{}",
                board::round(start.round, self.watched.rounds_max),
                unit::long_time(state.elapsed_s),
                board::left(state.left_s)
            );
            (before != start.round, line)
        };
        if new_round && !self.terminal && !self.quiet {
            self.say(&line);
        }
    }

    fn looked(&self, answer: &CheckAnswer) {
        if !self.quiet && self.is_news(answer) {
            self.say(&format!(
                "after round {}: {}",
                answer.rounds,
                report::on_one_line(&answer.sentence)
            ));
        }
    }

    fn warned(&self, text: &str) {
        self.say(&format!("warning: {}", report::on_one_line(text)));
    }
}
