//! `together`: workloads that every configuration goes through at the same time.

use stackrace_base::event::WorkloadHead;
use stackrace_base::setting::{Refusal, Settings, unknown_word};
use stackrace_base::unit;
use stackrace_load::workload::{Workload, WorkloadKind};

use super::design::{Configuration, Policy, Study};

/// The word of a study.
pub(super) const TOGETHER: &str = "together";

/// A study as far as it is read: what each of its workloads is, everywhere.
pub(super) struct Known<'a> {
    /// Name and kind of each workload.
    pub(super) workloads: Vec<(&'a str, Option<&'a WorkloadKind>)>,
    pub(super) configurations: &'a [Configuration],
    pub(super) policy: Option<&'a Policy>,
    /// True if the power of its trials is cut.
    pub(super) cut: bool,
}

/// The workloads that are measured at the same time, by index, the one first that decides when all of them end; none if
/// the study does not ask for it.
///
/// # Errors
/// They cannot be measured together: which, why, and what to do.
pub(super) fn read(words: &Settings, known: &Known<'_>) -> Result<Vec<usize>, Refusal> {
    if !words.given(TOGETHER) {
        return Ok(Vec::new());
    }
    let names = words.texts(TOGETHER)?;
    // All refusals point at the list: what is wrong is that these stand in it together.
    let refused = |message: String, help: &str| Refusal::at(words.span_of(TOGETHER), message, help);
    let mut all = Vec::new();
    for name in &names {
        let place = known.workloads.iter().position(|(known, _)| known == name);
        let Some(place) = place else {
            let span = words.span_of(TOGETHER);
            let message = format!("there is no workload named \"{name}\"");
            let named = known.workloads.iter().map(|(name, _)| *name);
            return Err(unknown_word(span, &message, name, named, "workloads"));
        };
        if all.contains(&place) {
            let help = "name each once; a second one like it is a [[workload]] of its own";
            return Err(refused(format!("\"{name}\" is named twice"), help));
        }
        all.push(place);
    }
    // One alone is what every workload is without the word.
    if all.len() < 2 {
        let help = "name the one that decides when all end, and then those beside it: together = [\"database\", \"backup\"]";
        return Err(refused(
            "together takes two workloads or more".to_owned(),
            help,
        ));
    }
    if known.cut {
        let help = "leave out together, or [crash]";
        return Err(refused(
            "the power is cut under one workload at a time".to_owned(),
            help,
        ));
    }
    if known.policy.is_some_and(|policy| policy.precondition) {
        let help = "leave out together, or precondition";
        return Err(refused(
            "a stack is brought to its steady state by one workload at a time".to_owned(),
            help,
        ));
    }
    // The same names in all of them, but stacks and times may vary.
    for configuration in known.configurations {
        if let Some((message, help)) = misfit(configuration, &all, known) {
            return Err(refused(message, &help));
        }
    }
    Ok(all)
}

/// Reason why workloads cannot be measured at once in a configuration, and what to do.
fn misfit(
    configuration: &Configuration,
    all: &[usize],
    known: &Known<'_>,
) -> Option<(String, String)> {
    if configuration.stack.loaded_from() > 1 {
        return Some((
            format!(
                "several machines load \"{}\" at once already",
                configuration.name
            ),
            "leave out together, or take a stack on one machine".to_owned(),
        ));
    }
    let workload = |at: usize| configuration.workloads[at].as_ref();
    let first = workload(all[0]);
    for (place, at) in all.iter().enumerate() {
        let (name, kind) = known.workloads[*at];
        let (work, leads) = (workload(*at), place == 0);
        let misfit = misfit_of(work, kind, leads);
        // Data that pass from one to the next would be changed while they are read.
        let after = configuration.workloads.get(at + 1);
        let shares = work.uses_data_before() || after.is_some_and(|it| it.uses_data_before());
        let misfit = misfit.or_else(|| {
            shares.then_some(("shares its data with another one", "leave out same-data"))
        });
        if let Some((why, help)) = misfit {
            return Some((
                format!("\"{name}\" cannot be measured together: it {why}"),
                help.to_owned(),
            ));
        }
        let (longest, own) = (first.cost().measured_ns, work.cost().measured_ns);
        // Where both times are known, it is known before anything is touched.
        if let (Some(longest), Some(own)) = (longest, own)
            && own < longest
        {
            let longest = unit::time_ns(longest as f64);
            return Some((
                format!(
                    "\"{name}\" would end after {}, before \"{}\" ({longest})",
                    unit::time_ns(own as f64),
                    known.workloads[all[0]].0
                ),
                format!("give it time = \"{longest}\" or more: it ends with the first one"),
            ));
        }
    }
    None
}

/// Reason why a workload cannot be one of several at once, as what it does; `leads`: it decides when all end.
fn misfit_of(
    work: &dyn Workload,
    kind: Option<&WorkloadKind>,
    leads: bool,
) -> Option<(&'static str, &'static str)> {
    if work.wants_bare() {
        return Some(("takes all devices for itself", "measure it alone"));
    }
    // All phases begin and end together, and only the first of two could.
    if work.phases().len() != 1 {
        return Some((
            "has several parts, and nothing says beside which of them the others work",
            "take random or sequential without verify, a database, or a command",
        ));
    }
    let cost = work.cost();
    let lasts = cost.measured_ns.is_some() && cost.measured_bytes.is_none();
    let stops = kind.is_some_and(|kind| kind.mergeable) && lasts;
    // What is stopped in the middle of fixed work has no figure, and what ends by itself is not there to the end.
    (!(leads || stops)).then_some((
        "does a fixed amount of work, and only the first one decides when all end",
        "name it first, or take random or sequential with time = \"…\" and passes = 0",
    ))
}

/// Says of each of them beside which others it works: the same work alone is another work.
pub(super) fn told(heads: &mut [WorkloadHead], all: &[usize]) {
    let names: Vec<String> = all.iter().map(|at| heads[*at].name.clone()).collect();
    for (place, at) in all.iter().enumerate() {
        let others = names
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place);
        let others: Vec<String> = others.map(|(_, name)| format!("\"{name}\"")).collect();
        let others = others.join(" and ");
        // The summary is what tells earlier runs of the same work from those of another.
        heads[*at].summary.push_str(&match place {
            0 => format!("; at the same time as {others}"),
            _ => format!(
                "; at the same time as {others}, until \"{}\" ends",
                names[0]
            ),
        });
    }
}

impl Study {
    /// The workloads that are measured at the same time as this one, it among them, the one that decides when all end
    /// first; only itself if it is measured alone.
    pub fn at_once(&self, workload: usize) -> Vec<usize> {
        match self.together.contains(&workload) {
            true => self.together.clone(),
            false => vec![workload],
        }
    }

    /// Returns true if a workload is measured together with another one that decides when it ends.
    pub fn ends_with_another(&self, workload: usize) -> bool {
        self.together.iter().skip(1).any(|other| *other == workload)
    }
}
