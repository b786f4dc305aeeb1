//! The live view of a run: one line for the race, one for what runs now.
//!
//! Everything goes to standard error, so that standard output is the report alone. Where standard
//! error is no terminal, one plain line is written for each round and look.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use stackrace_engine::Control;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::run::{Shared, TrialStart, Watcher};
use crate::time::{Clock, SystemClock};
use crate::unit;
use crate::verdict::{Evidence, Verdict};

/// How often the throughput is refreshed.
const TICK: Duration = Duration::from_millis(250);

/// Draws a run.
pub(super) struct Progress {
    ledger: Shared,
    treatments: Vec<String>,
    workloads: Vec<String>,
    rounds_max: u32,
    time_max_s: f64,
    quiet: bool,
    terminal: bool,
    bars: MultiProgress,
    race: ProgressBar,
    now: Arc<Now>,
}

/// What runs at the moment, shared with the ticker.
struct Now {
    bar: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    text: String,
    control: Option<Arc<Control>>,
    began_ns: u64,
    round: u32,
    ended: bool,
}

impl Progress {
    /// Begins to draw.
    pub(super) fn new(
        ledger: Shared,
        treatments: Vec<String>,
        workloads: Vec<String>,
        rounds_max: u32,
        time_max_s: f64,
        quiet: bool,
    ) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bars = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let race = bars.add(ProgressBar::new(1).with_style(style("{bar:24} {msg}")));
        let bar = bars.add(ProgressBar::new_spinner().with_style(style("{spinner} {msg}")));
        if !terminal {
            bars.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        let now = Arc::new(Now {
            bar,
            state: Mutex::new(State::default()),
        });
        if terminal {
            let ticking = Arc::clone(&now);
            std::thread::spawn(move || tick(&ticking));
        }
        Self {
            ledger,
            treatments,
            workloads,
            rounds_max,
            time_max_s,
            quiet,
            terminal,
            bars,
            race,
            now,
        }
    }

    /// Ends the drawing and leaves a clean line.
    pub(super) fn end(&self) {
        self.state().ended = true;
        self.race.finish_and_clear();
        self.now.bar.finish_and_clear();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.now
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, text: &str) {
        if self.terminal {
            // `println` keeps the bars below the text; it fails only where there is no terminal.
            let _ = self.bars.println(text);
        } else {
            super::error(&format!("{text}\n"));
        }
    }

    /// How far the race is, in trials of this round, and how long it may still take.
    fn race_line(&self, round: u32) -> String {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        let elapsed = record.elapsed_seconds();
        let left = (self.time_max_s - elapsed).max(0.0);
        let done = record.trials().filter(|trial| trial.round == round).count() as u64;
        let in_round = (self.treatments.len() - Evidence::of(record).dropped.len()).max(1)
            * self.workloads.len();
        self.race.set_length(in_round as u64);
        self.race.set_position(done);
        let mean = Evidence::of(record).round_seconds;
        let rest = mean.map(|mean| mean * f64::from((self.rounds_max + 1).saturating_sub(round)));
        let most = rest.map_or(left, |rest| rest.min(left));
        format!(
            "round {round} of at most {} · {} elapsed · at most {} left",
            self.rounds_max,
            unit::long_time(elapsed),
            unit::long_time(most)
        )
    }
}

fn tick(now: &Now) {
    loop {
        SystemClock.sleep(TICK);
        let state = now.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return;
        }
        let mut text = state.text.clone();
        if let Some(control) = &state.control {
            let seconds = SystemClock.now_ns().saturating_sub(state.began_ns) as f64 / 1e9;
            let bytes = control.bytes.load(Ordering::Relaxed) as f64;
            let ops = control.ops.load(Ordering::Relaxed) as f64;
            if seconds > 0.3 && bytes > 0.0 {
                text.push_str(&format!(" · {}", unit::bytes_per_second(bytes / seconds)));
            } else if seconds > 0.3 && ops > 0.0 {
                text.push_str(&format!(
                    " · {}",
                    unit::operations_per_second(ops / seconds)
                ));
            }
        }
        now.bar.set_message(text);
        now.bar.tick();
    }
}

impl Watcher for Progress {
    fn begins(&self, start: &TrialStart<'_>) {
        let name = self
            .treatments
            .get(start.treatment)
            .map_or("", String::as_str);
        let workload = start
            .workload
            .and_then(|w| self.workloads.get(w))
            .map_or(String::new(), |w| format!(" · {w}"));
        let line = self.race_line(start.round);
        let new_round = {
            let mut state = self.state();
            state.text = format!("{name}{workload} · {}", start.part);
            state.control.clone_from(&start.control);
            state.began_ns = SystemClock.now_ns();
            std::mem::replace(&mut state.round, start.round) != start.round
        };
        self.race.set_message(line.clone());
        if new_round && !self.terminal && !self.quiet {
            self.say(&line);
        }
    }

    fn looked(&self, verdict: &Verdict) {
        if !self.quiet {
            self.say(&format!(
                "after round {}: {}",
                verdict.rounds, verdict.sentence
            ));
        }
    }

    fn warned(&self, text: &str) {
        self.say(&format!("warning: {text}"));
    }
}
