//! `[crash]`: the power of a trial is cut, and its promises are checked.

use stackrace_base::event::OperationsOf;
use stackrace_base::setting::{Refusal, Settings};
use stackrace_layers::stack::{Stack, Takes};
use stackrace_load::workload::WorkloadKind;

/// Most cuts of one trial.
const CUTS_MAX: u64 = 1000;

/// Plan by which the power is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrashPlan {
    /// Cuts of each trial: of one configuration in one round, by one workload.
    pub cuts: u32,
    /// Upper bound of the share of cuts that break a promise, which is enough where none was
    /// broken.
    pub enough: f64,
}

/// Reads `[crash]`.
///
/// # Errors
/// What is out of range.
pub(super) fn plan(words: &Settings) -> Result<CrashPlan, Refusal> {
    let cuts = words.count("cuts")?;
    if !(1..=CUTS_MAX).contains(&cuts) {
        return Err(Refusal::at(
            words.span_of("cuts"),
            format!("cuts lies between 1 and {CUTS_MAX}"),
            "write 20: each round cuts a run of its own as often",
        ));
    }
    let enough = words.share("enough")?;
    if !(enough > 0.0 && enough < 1.0) {
        return Err(Refusal::at(
            words.span_of("enough"),
            "enough lies between 0 and 100 %, and is neither: no number of cuts shows that none breaks a promise",
            "write 5 %: it takes 160 cuts of each configuration",
        ));
    }
    Ok(CrashPlan {
        // At most CUTS_MAX, just checked.
        cuts: cuts as u32,
        enough,
    })
}

/// Reason why the power of this stack cannot be cut, of a `real` machine or in virtual time; `None`
/// if it can.
pub fn refused_stack(stack: &Stack, real: bool) -> Option<(String, String)> {
    let modelled = !stack.lab_disks().is_empty();
    if real && modelled {
        return Some((
            "lab-disks are modelled, and --cut is for real machines".to_owned(),
            "run it with --lab, without --cut; or build on devices or dir".to_owned(),
        ));
    }
    if real && stack.nodes() > 1 {
        return Some((
            "a stack over several machines is cut in the lab only".to_owned(),
            "run it with --lab; or take a stack on one machine".to_owned(),
        ));
    }
    // The lowest one: what stands on it is only a consequence.
    let lowest = || (!real && !modelled).then(|| stack.lowest()).flatten();
    let layer = stack.lost_with_power().or_else(lowest)?;
    let kind = layer.kind();
    let model = "lab-disks = { model = \"seagate-st3000dm001\" } (stackrace show drives)";
    Some(match (layer.lab_disks().is_empty(), layer.takes()) {
        (false, _) => (
            "what a power cut leaves on an emulated disk is not known".to_owned(),
            format!("name a model: {model}"),
        ),
        // It stands at the bottom, and drives of its own are not modelled.
        (true, Takes::Nothing) => (
            format!("{kind} has no drive whose power could be cut"),
            match real {
                true => "build on devices or dir".to_owned(),
                false => format!("build on {model}"),
            },
        ),
        _ => (
            format!("{kind} cannot be brought back after a power cut yet"),
            "take it out of the stack, or take [crash] out".to_owned(),
        ),
    })
}

/// Reason why these workloads cannot be cut; `None` if they can.
pub(super) fn refused_workloads<'a>(
    mut kinds: impl Iterator<Item = &'a WorkloadKind>,
) -> Option<(&'static str, &'static str)> {
    // One is enough: the others are measured and not cut.
    let none = !kinds.any(|kind| kind.operations == OperationsOf::Promised);
    none.then_some((
        "no workload of this study is promised anything that a power cut could break",
        "add one:\n[[workload]]\npromises = { idiom = \"append-fdatasync\" }",
    ))
}
