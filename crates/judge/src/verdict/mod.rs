//! What the observations say: comparisons judged, configurations ranked, one sentence.
//!
//! Input is a run's record, measured here or imported; output is data without presentation. The rules are
//! those of `docs/methodology.md`.

mod answer;
mod asked;
mod beside;
mod cells;
mod compared;
mod course;
mod durability;
mod effects;
mod enough;
mod evidence;
mod fidelity;
mod forecast;
mod fragment;
mod gate;
mod guarantee;
mod headline;
mod history;
mod imported;
mod judge;
mod kept;
mod lacking;
mod look;
mod outlook;
mod placed;
mod rows;
mod sentence;
mod separate;
mod shares;
mod sides;
mod slices;
mod statement;
mod still;
mod table;
#[cfg(test)]
mod tests;
mod unpaired;
mod words;
mod work;

pub use answer::Verdict;
pub use asked::{Question, RunAnswer, Sought, ask};
pub use beside::{Beside, BesideRow, beside};
pub use course::RateChange;
pub use durability::{DurabilityRow, cuts_decide, durability};
pub use effects::{EffectKind, EffectRow, EffectTable};
pub use enough::{Enough, RequiredRow};
pub use evidence::Evidence;
pub use fidelity::{RECORD_AGAIN, withheld};
pub use gate::{FigureAnswer, GateAnswer, GateError, GateOutcome, Threshold, figure_of, gate, on};
pub use history::{HistoryLine, HistoryPoint, history};
pub use judge::{can_compare, judge};
pub use kept::KeptEvidence;
pub use lacking::Lacking;
pub use look::{CheckAnswer, Look};
pub use placed::{AgainstPast, AmongDrives, AmongRuns, ModelledDrive, Placed, RUNS_LEAST};
pub use slices::end_slices;
pub use statement::{Comparison, ConfigurationRow, Interval, Left, MetricCell, State};
pub use unpaired::{Difference, Stored, WorkloadPair, difference};
