//! The answer for programs: the verdict and every observation it rests on, histograms included.
//!
//! Fields of `run` and `trials` are those of the log (`docs/formats/log.md`).

use serde::Serialize;

use super::form::{ReportForm, ReportOptions};
use super::{audited, content, durability};
use stackrace_base::event::{LayerFacts, Observation, RunStarted};
use stackrace_judge::audit::Audit;
use stackrace_judge::verdict::{Beside, DurabilityRow, Placed, Verdict};
use stackrace_results::record::Record;

/// Version of this form; a field never changes its meaning.
const FORMAT: u32 = 3;

/// The form for programs.
pub(super) const JSON: ReportForm = ReportForm {
    name: "json",
    summary: "the verdict and every observation, for programs",
    extension: "json",
    render,
};

#[derive(Serialize)]
struct Page<'a> {
    report_format: u32,
    run: &'a RunStarted,
    started_at: &'a str,
    ended: Option<End<'a>>,
    elapsed_s: f64,
    rounds: Vec<u32>,
    verdict: &'a Verdict,
    notes: Vec<String>,
    /// Audit: what set the pace and what spoils the figures, with the evidence (`docs/audit.md`).
    audit: Audit,
    /// Own ratios beside published ones; absent if not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside_published: Option<&'a Beside>,
    /// Where the storage stands against its past and among drives; absent if that is not known.
    #[serde(skip_serializing_if = "Placed::is_empty")]
    standing: &'a Placed,
    /// Losses of power cuts, one entry for each configuration and workload; absent if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    durability: Vec<DurabilityRow>,
    /// Facts that the layers really got, of each configuration, each time it was raised.
    layers: Vec<Vec<&'a [LayerFacts]>>,
    trials: Vec<&'a Observation>,
}

#[derive(Serialize)]
struct End<'a> {
    at: &'a str,
    reason: &'a str,
    detail: &'a str,
}

fn render(record: &Record, verdict: &Verdict, options: &ReportOptions) -> Vec<u8> {
    let page = Page {
        report_format: FORMAT,
        run: &record.head,
        started_at: record.started_at(),
        ended: record.ended().map(|ended| End {
            at: ended.at,
            reason: ended.reason,
            detail: ended.detail,
        }),
        elapsed_s: record.elapsed_seconds(),
        rounds: record.complete_rounds(),
        verdict,
        notes: content::notes(record, verdict),
        audit: audited::audit(record),
        beside_published: options.beside.as_ref(),
        standing: &options.placed,
        durability: durability::rows(record, verdict),
        layers: (0..record.head.configurations.len())
            .map(|configuration| record.layer_facts(configuration))
            .collect(),
        trials: record.trials().collect(),
    };
    // Only a map with keys that are no texts could fail, and there is none.
    let mut text = serde_json::to_vec_pretty(&page).unwrap_or_default();
    // Tools that work by lines miss the last one without it.
    text.push(b'\n');
    text
}
