//! One configuration on one workload, over all its trials.

use serde::Serialize;

use super::judgement::{Judgement, LimitedBy};

/// One configuration on one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditCell {
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index.
    pub workload: usize,
    /// Complete trials.
    pub trials: usize,
    /// The limit that set the pace in more than half of them; `None` if it cannot be told.
    pub limited_by: Option<LimitedBy>,
    /// The figures of that in the middle one of those trials: `loop0 97 % busy, 412 MB/s`.
    pub limited_how: String,
    /// Judgements of the checks that could say something.
    pub judgements: Vec<Judgement>,
}

impl AuditCell {
    /// The judgement of a check of this cell; `None` if it could not tell.
    pub fn judgement(&self, check: &str) -> Option<&Judgement> {
        self.judgements
            .iter()
            .find(|judgement| judgement.check == check)
    }
}
