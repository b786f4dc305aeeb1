//! What the observations say: comparisons judged, configurations ranked, one sentence.
//!
//! Input is a run's record, measured here or imported; output is data without presentation. The rules are
//! those of `docs/methodology.md`.

mod answer;
mod asked;
mod beside;
mod compared;
mod course;
mod durability;
mod effects;
mod fragment;
mod gate;
mod guarantee;
mod history;
mod judge;
mod outlook;
mod rows;
mod sentence;
mod separate;
mod shares;
mod sides;
mod slices;
mod statement;
mod table;
#[cfg(test)]
mod tests;
mod unpaired;
mod words;
mod work;

pub(crate) use answer::Verdict;
pub(crate) use asked::{Question, RunAnswer, Sought, ask};
pub(crate) use beside::{Beside, BesideRow, beside};
pub(crate) use course::RateChange;
pub(crate) use durability::{DurabilityRow, cuts_decide, durability};
pub(crate) use effects::{EffectKind, EffectRow, EffectTable};
pub(crate) use gate::{FigureAnswer, GateAnswer, GateError, GateOutcome, Threshold, gate, on};
pub(crate) use history::{HistoryLine, HistoryPoint, history};
pub(crate) use judge::{judge, to_drop};
pub(crate) use outlook::{may_stop, undecided_workloads};
pub(crate) use slices::end_slices;
pub(crate) use statement::{Comparison, ConfigurationRow, Interval, Left, MetricCell, State};
pub(crate) use table::Evidence;
pub(crate) use unpaired::{Difference, Stored, WorkloadPair, difference};
