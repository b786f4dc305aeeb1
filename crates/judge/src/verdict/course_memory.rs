//! Time series of single trials that were understood already.

use std::sync::{Mutex, PoisonError};

use stackrace_stats::Course;

use crate::audit::course;
use stackrace_base::event::Observation;

/// Courses of single trials that are known already, so that a check between rounds works out only
/// those of the last round: they never change. For one run only, whose trials keep their order.
#[derive(Debug, Default)]
pub struct CourseMemory(Mutex<Vec<Vec<Option<Course>>>>);

impl CourseMemory {
    /// The courses of a trial's phases, in their order; `at` is its place among all trials.
    pub(super) fn of(&self, at: usize, trial: &Observation) -> Vec<Option<Course>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() <= at {
            known.resize(at + 1, Vec::new());
        }
        if known[at].len() != trial.phases.len() {
            known[at] = trial.phases.iter().map(course).collect();
        }
        known[at].clone()
    }
}
