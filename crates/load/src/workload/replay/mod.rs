//! A recorded application, replayed: the calls of a trace that `stackrace record` wrote, made again in the directory of
//! the trial.
//!
//! Before the clock starts the tree is laid out as it was, with random content. Then each recorded thread has one of
//! ours, which makes its calls in their order, with the processor time between them. A thread begins after its fork; one
//! that another thread woke waits for that moment; a call on a name or an open file comes after those that made, moved or
//! removed it. Waits for what was not recorded last as long as they did (`arrivals = "closed"`), or end when they did
//! ("open"). Results are compared with the recorded ones: where too many differ, the trial has failed. Calls on io_uring,
//! aio, copies between files and locks are not made; their time is waited instead.

mod compile;
mod differing;
mod lanes;
mod loaded;
mod on_name;
mod recorded;
#[cfg(test)]
pub(crate) mod tests;
mod touched;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackrace_engine::{Op, PhaseOutcome};

use super::kind::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::{Figure, Latency};
use loaded::LoadedTrace;
use recorded::Arrivals;
use stackrace_base::event::{NotByElapsed, RecordedApplication};
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit::{self, ShownPath};
use stackrace_machine::host::Host;

/// The word in a study.
pub const REPLAY: &str = "replay";
/// The setting that names the trace.
pub const TRACE: &str = "trace";
/// The setting with the sum of the trace.
pub const DIGEST: &str = "digest";

/// The setting that names the configuration where it was recorded.
pub const HOME: &str = "home";
/// The setting for waits.
pub const ARRIVALS: &str = "arrivals";

const WAITS: ChoiceDoc<Arrivals> = choice!(
    "arrivals",
    ["closed" => Arrivals::Closed, "open" => Arrivals::Open],
    "closed",
    "Waits for clients and timers last as long as recorded (closed), or end when they did (open).",
);

/// Share of differing results above which a replay is not like the application.
const DIFFERING_MAX: f64 = 0.001;
/// Share of the syncs that several threads share, above which their number follows from how fast the storage is.
const SHARED_MAX: f64 = 0.05;
/// Share of the critical path that waits for others, above which elapsed time says little of storage.
const OUTSIDE_MAX: f64 = 0.1;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: REPLAY,
    summary: "a recorded application: the calls of a trace, made again",
    source: "a trace of `stackrace record`; rules after ARTC/ROOT (SOSP 2013) and //TRACE (FAST 2007)",
    settings: &[
        SettingDoc::text(
            TRACE,
            "",
            "The trace, on the machine that measures, and on this one.",
        )
        .required(),
        SettingDoc::text(DIGEST, "", "BLAKE3 of the trace: another one is refused."),
        SettingDoc::text(
            HOME,
            "",
            "The configuration, or its level, on the storage of the recording: is the replay like it?",
        ),
        WAITS.doc,
    ],
    example: "replay = { trace = \"app.trace\" }",
    parse: |settings| Ok(Box::new(Replay::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct Replay {
    trace: PathBuf,
    arrivals: Arrivals,
    home: Option<String>,
    /// Why it cannot be replayed, if it cannot: a stored run is read where its trace is gone.
    loaded: Result<Arc<LoadedTrace>, String>,
}

/// Reads a trace, and gives its sum.
///
/// # Errors
/// Why it cannot be replayed, and what to do, each a sentence.
pub fn digest(trace: &Path) -> Result<String, (String, &'static str)> {
    loaded::of(trace, Arrivals::Closed).map(|loaded| loaded.digest.clone())
}

impl Replay {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let trace = PathBuf::from(settings.text(TRACE)?);
        let arrivals = settings.choice(WAITS)?;
        let digest = settings.optional_text(DIGEST)?;
        let home = settings.optional_text(HOME)?;
        // One that is gone is no error here: reports read studies of long ago.
        let loaded = loaded::of(&trace, arrivals);
        let loaded = loaded.map_err(|(why, next)| format!("{why}; {next}"));
        if let (Some(asked), Ok(loaded)) = (&digest, &loaded)
            && *asked != loaded.digest
        {
            return Err(settings.refuse(
                DIGEST,
                format!("{} is another trace than the study names", trace.shown()),
                format!(
                    "bring the trace back, or write digest = \"{}\"",
                    loaded.digest
                ),
            ));
        }
        Ok(Self {
            trace,
            arrivals,
            home,
            loaded,
        })
    }

    /// Below saturation the elapsed time is that of those who ask, whatever the storage does.
    fn not_by_elapsed(&self, loaded: &LoadedTrace) -> Option<NotByElapsed> {
        match self.arrivals {
            Arrivals::Open => Some(NotByElapsed::Arrivals),
            Arrivals::Closed if loaded.outside_share > OUTSIDE_MAX => Some(NotByElapsed::Waits),
            // Elsewhere it would make more of them, or fewer.
            Arrivals::Closed if loaded.shared.share() > SHARED_MAX => Some(NotByElapsed::Joins {
                shared: loaded.shared.shared,
                syncs: loaded.shared.syncs,
            }),
            Arrivals::Closed => None,
        }
    }

    /// The trace, where its calls can be made.
    fn loaded(&self) -> Result<&LoadedTrace, WorkloadError> {
        match self.refused() {
            None => self.loaded.as_deref().map_err(|why| trouble(why.clone())),
            Some(why) => Err(trouble(why)),
        }
    }

    fn refused(&self) -> Option<String> {
        match &self.loaded {
            Ok(loaded) => loaded
                .not_here
                .as_ref()
                .map(|why| format!("{}: {why}", self.trace.shown())),
            Err(why) => Some(why.clone()),
        }
    }
}

impl Workload for Replay {
    fn summary(&self) -> String {
        let trace = self.trace.shown();
        match &self.loaded {
            Ok(loaded) => format!(
                "replay {trace} ({}, {}; trace {})",
                unit::counted(loaded.calls as usize, "call"),
                unit::counted(loaded.plan.threads.len(), "thread"),
                &loaded.digest[..8]
            ),
            Err(_) => format!("replay {trace}"),
        }
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let elapsed = Figure::elapsed();
        let Ok(loaded) = &self.loaded else {
            return vec![elapsed];
        };
        let both = |op: Op| {
            [
                Figure::latency(op, Latency::P99),
                Figure::latency(op, Latency::Mean),
            ]
        };
        // The tail first: it is what a user of the application feels.
        let mut figures: Vec<Figure<'_>> = loaded.by_time().into_iter().flat_map(both).collect();
        let place = match self.not_by_elapsed(loaded) {
            Some(_) => figures.len().min(1),
            None => 0,
        };
        figures.insert(place, elapsed);
        figures.extend(Figure::cpu());
        figures
    }

    fn cost(&self) -> Cost {
        self.loaded
            .as_ref()
            .map_or_else(|_| Cost::default(), |loaded| loaded.cost)
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![REPLAY]
    }

    fn refused_on(&self, _host: &dyn Host) -> Option<String> {
        // Each machine that measures reads the trace itself, at this path.
        self.refused()
    }

    fn reads(&self) -> Vec<PathBuf> {
        vec![self.trace.clone()]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        tree::lay_out(&self.loaded()?.tree, place)
    }

    fn warm(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let plan = &self.loaded()?.plan;
        plan.warm(place.directory, place.control).map_err(trouble)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let loaded = self.loaded()?;
        let run = loaded
            .plan
            .run(place.directory, place.seed, SLICE_NS, place.control);
        let mut outcome = run.map_err(trouble)?;
        if let Some(results) = &outcome.replayed
            && results.differing > 0
        {
            let words = differing::words(results);
            // A few differ by chance: a lookup that raced with another process.
            if results.differing as f64 > results.calls as f64 * DIFFERING_MAX
                && outcome.error.is_none()
            {
                return Err(trouble(format!(
                    "the replay is not like the application: {words}"
                )));
            }
            outcome.told.push(words);
        }
        Ok(outcome)
    }

    fn recorded(&self) -> Option<RecordedApplication> {
        let loaded = self.loaded.as_ref().ok()?;
        Some(RecordedApplication {
            not_by_elapsed: self.not_by_elapsed(loaded),
            ..loaded.recorded()
        })
    }

    fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }
}
