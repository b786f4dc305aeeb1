//! What the figures of a study say together, factor by factor.

use super::card::Card;
use super::ratio::{PublishedRatio, comparisons, geometric_mean};
use super::remark;
use super::table::{PublishedTable, distinct};

/// Conclusions of the figures on each factor, a sentence per level: which metrics speak with one
/// voice, how loud, and the mean over all.
///
/// Figures that measured the processor, were over too soon, or contradict another are left out
/// here (and named among the remarks): what they say of storage is nothing.
pub fn conclusions(card: &Card, table: &PublishedTable) -> Vec<String> {
    // Judged once for all factors: a figure that is unfit is unfit everywhere.
    let unfit = remark::unfit(table);
    let all = comparisons(card, table);
    let mut sentences = Vec::new();
    for (factor, about) in card.factors.iter().enumerate() {
        let of: Vec<&PublishedRatio> = all
            .iter()
            .filter(|comparison| comparison.factor == factor)
            .collect();
        for (a, b) in distinct(of.iter().map(|comparison| (&comparison.a, &comparison.b))) {
            let of: Vec<&&PublishedRatio> = of.iter().filter(|c| (&c.a, &c.b) == (a, b)).collect();
            let fit: Vec<&&&PublishedRatio> = of
                .iter()
                .filter(|comparison| comparison.figures.iter().all(|at| !unfit.contains(at)))
                .collect();
            let mut sentence = format!("{} {b} against {a}: ", about.name);
            sentence.push_str(&voices(&fit.iter().map(|c| ***c).collect::<Vec<_>>()));
            // Said in the sentence itself, so that it is not read as a statement about all figures.
            if of.len() > fit.len() {
                let left = of.len() - fit.len();
                sentence.push_str(&format!(" ({left} of {} left out, see remarks)", of.len()));
            }
            sentences.push(format!("{sentence}."));
        }
    }
    sentences
}

/// `better on x (1.10 to 1.40); worse on y (0.70); both ways on z (0.90 to 1.20); mean 1.12`.
fn voices(comparisons: &[&PublishedRatio]) -> String {
    let mut groups: [(&str, Vec<String>); 3] = [
        ("better on", vec![]),
        ("worse on", vec![]),
        ("both ways on", vec![]),
    ];
    for on in distinct(comparisons.iter().map(|comparison| comparison.on())) {
        let of = comparisons
            .iter()
            .filter(|comparison| comparison.on() == on);
        let ratios: Vec<f64> = of.map(|comparison| comparison.ratio).collect();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        let span = match ratios.len() {
            // One configuration gives one ratio, and no range.
            1 => format!("{low:.2}"),
            _ => format!("{low:.2} to {high:.2}"),
        };
        // 0: all above 1, better. 1: all at or below 1, worse. 2: some on each side.
        let group = usize::from(low <= 1.0) + usize::from(low <= 1.0 && high > 1.0);
        groups[group].1.push(format!("{on} ({span})"));
    }
    let mut parts: Vec<String> = groups
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(voice, names)| format!("{voice} {}", names.join(", ")))
        .collect();
    let ratios: Vec<f64> = comparisons
        .iter()
        .map(|comparison| comparison.ratio)
        .collect();
    match geometric_mean(&ratios) {
        Some(mean) => parts.push(format!("geometric mean {mean:.2}")),
        // All of them may have been left out.
        None => parts.push("nothing fit to be compared".to_owned()),
    }
    parts.join("; ")
}
