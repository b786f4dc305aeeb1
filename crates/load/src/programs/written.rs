//! A workload of one written line, for tests: they need no study for it.

use crate::workload::Workload;
use stackrace_base::setting::Refusal;
use stackrace_base::setting::written::line;

/// The workload of one line of TOML.
///
/// # Errors
/// As a study would refuse it: what is wrong, and what to write instead.
pub fn workload(text: &str) -> Result<Box<dyn Workload>, String> {
    let said = |refusal: Refusal| format!("{}\n{}", refusal.message, refusal.help);
    let kinds = super::workloads();
    let kind = |name: &str| kinds.iter().find(|kind| kind.name == name);
    let docs = |owner: &str| kind(owner).map_or(&[][..], |kind| kind.settings);
    // Two braces stand for one, as where a study has placeholders.
    let text = text.replace("{{", "{").replace("}}", "}");
    let settings = line(docs, &text).map_err(said)?;
    let kind = kind(&settings.owner).ok_or_else(|| "there is no such workload".to_owned())?;
    let refusals = settings.check_all().into_iter().next();
    refusals.map_or(Ok(()), |refusal| Err(said(refusal)))?;
    (kind.parse)(&settings).map_err(said)
}
