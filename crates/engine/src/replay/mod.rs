//! Calls that an application made, made again: each thread's in their order, and each after those that it followed.
//!
//! A [`ReplayPlan`] has the calls of every recorded thread, the processor time between them, and what each has to wait
//! for ([`OrderBuilder`]). One thread of ours stands for one of theirs. Results are compared with the recorded ones and
//! counted; only a full or broken storage ends a replay. Names are looked up below the directory and nowhere else.

#[cfg(target_os = "linux")]
mod act;
#[cfg(not(target_os = "linux"))]
#[path = "no_act.rs"]
#[expect(dead_code, reason = "nothing is replayed")]
mod act;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "nothing is replayed")
)]
mod files;
mod order;
mod pace;
mod run;
mod step;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub use crate::outcome::{ReplayDifference, ReplayResults};
pub use files::{HeldFile, WarmPart};
pub use order::{OrderBuilder, ReplayOrder, Touch};
pub use run::ReplayPlan;
pub use step::{On, ReplayCall, ReplayStep};
