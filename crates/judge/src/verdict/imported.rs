//! Imported results in a sentence: ratios, and no verdict.

use super::answer::VerdictGrounds;
use super::fragment::times;
use super::statement::Comparison;
use super::still;
use stackrace_base::event::RunStarted;

/// The ratios of imported results, with what they are worth.
pub(super) fn sentence(judged: &VerdictGrounds<'_>, head: &RunStarted, over: &str) -> String {
    let compared = judged.overall.iter().filter(|c| c.ratio.is_some());
    let ratios = match (judged.overall, compared.count()) {
        (_, 0) if head.configurations.len() > 1 => "no workload is in all of them".to_owned(),
        (_, 0) => "one configuration, and nothing to compare it with".to_owned(),
        ([only], _) => ratio(only, over),
        (several, _) => {
            let leader = several.first().map_or("", |c| c.a.as_str());
            let part = |c: &Comparison| Some(format!("{} {}", c.b, times(c.ratio?.estimate)));
            let parts: Vec<String> = several.iter().filter_map(part).collect();
            format!(
                "{leader} is best{over}; relative to it: {}",
                parts.join(", ")
            )
        }
    };
    let intervals = judged.overall.iter().filter_map(|c| c.ratio);
    let worth = match judged.overall {
        _ if intervals.clone().count() == 0 => "",
        [_] => "",
        _ if intervals.into_iter().all(|ratio| ratio.low.is_nan()) => {
            "; intervals need at least 3 runs on each side"
        }
        _ => "; the runs are not paired, so there is no verdict",
    };
    let doubt = still::clause(judged.overall.iter());
    format!("Imported, not measured here: {ratios}{worth}{doubt}.")
}

/// `b is 1.23 x as fast as a; one run each, so no interval`
pub(super) fn ratio(c: &Comparison, over: &str) -> String {
    match c.ratio {
        None => format!("{} and {} have no metric in common", c.a, c.b),
        Some(ratio) => format!(
            "{} is {} x as fast as {}{over}; {}",
            c.b,
            times(ratio.estimate),
            c.a,
            c.text
        ),
    }
}
