//! Whether a control group or an affinity limits the processor time of the program: then figures are of that limit as much as of the
//! storage.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;
use stackrace_base::event::{Fact, FactFigure};
use stackrace_base::unit;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "control group",
    question: "May the program use the processors as it needs them?",
    limits: false,
    priority: 20,
    judge,
};

/// The narrowest limit of processor time on record, in processors; of several places, that of any.
pub(super) fn processors(environment: &[Fact]) -> Option<f64> {
    let limits = environment.iter().filter_map(|fact| match fact.figure {
        Some(FactFigure::ProcessorLimit(thousandths)) => Some(thousandths),
        _ => None,
    });
    limits.min().map(|thousandths| thousandths as f64 / 1000.0)
}

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let may = reading.processors_allowed?;
    let evidence = vec![EvidenceFigure::new("processors allowed", may, "")];
    let share = match may < 1.0 {
        true => format!("{} of one processor", unit::percent(may)),
        false if may == 1.0 => "one processor".to_owned(),
        false => format!("{may} processors"),
    };
    let sentence =
        format!("this program may use {share}: a control group or its affinity limits it");
    Some(CheckFinding::new(Grade::Note, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{reading, trial};
    use super::*;

    #[test]
    fn a_limit_of_processor_time_is_said_with_its_share() {
        let trial = trial();
        let said = |limit| {
            let reading = TrialReading {
                processors_allowed: limit,
                ..reading(&trial)
            };
            judge(&reading).map(|finding| finding.sentence)
        };
        assert_eq!(said(None), None);
        let words =
            "this program may use 20 % of one processor: a control group or its affinity limits it";
        assert_eq!(said(Some(0.2)).as_deref(), Some(words));
        let facts = [
            Fact::new("processors", "2"),
            Fact::new("processor limit on far", "x").with(FactFigure::ProcessorLimit(200)),
        ];
        assert_eq!(processors(&facts), Some(0.2));
        assert_eq!(processors(&facts[..1]), None);
    }
}
