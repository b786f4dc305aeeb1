//! What the record and its reader must know of a machine that nothing of this program was on.

use super::program::Timer;
use super::stops;
use crate::agent::remote_host::clean_command;
use crate::agent::ssh::Way;
use stackrace_base::event::{Fact, again};

/// The command that removes what is left on a machine.
pub(super) fn cleaned_by(way: &Way) -> String {
    match way.named_by.is_empty() {
        // A guest of the lab: no option names it, and it is removed whole.
        true => again(&["clean"]),
        false => clean_command(&way.named_by, &["--agent", "none"]),
    }
}

/// Name of the fact that says which system it is.
pub const SYSTEM_FACT: &str = "system";

/// Name of the fact that says that nothing of this program was on the machine.
const AGENTLESS: &str = "agent";

/// Name of the fact that says what a run cannot know of the machine.
const NOT_OBSERVED: &str = "not observed there";

/// What it cannot know of any.
const HIDDEN: &str = "the kernel's counters, what limits a figure, what is in memory, other \
                                       work on the machine, bytes that a program moves";

/// Shows what it is, and whether a program that is stopped is seen there.
pub(super) fn script() -> String {
    format!("uname -srm; if {}; then echo {SEEN}; fi", stops::SEEN)
}

/// Word for that.
const SEEN: &str = "stops-are-seen";

/// What a run cannot know of a machine with these facts.
pub(super) fn not_observed(facts: &[Fact]) -> &str {
    let fact = facts.iter().find(|fact| fact.name == NOT_OBSERVED);
    fact.map_or(HIDDEN, |fact| &fact.value)
}

/// The facts of a machine, by what [`script`] shows.
pub(super) fn facts(shown: &str, timer: &Timer) -> Vec<Fact> {
    let hidden = match shown.lines().any(|line| line == SEEN) {
        true => HIDDEN.to_owned(),
        false => format!("{HIDDEN}, a program that is stopped for a while"),
    };
    let whole = shown.lines().next().unwrap_or_default();
    vec![
        Fact::new(SYSTEM_FACT, whole),
        // By this fact `resume` finds out how the run was made.
        Fact::new(
            AGENTLESS,
            "none: every command over the machine's own sh, no program of ours there",
        ),
        Fact::new("elapsed time measured by", timer.described()),
        Fact::new(
            "made durable by",
            "sync(8), which some systems end before all is written",
        ),
        Fact::new(NOT_OBSERVED, hidden),
    ]
}
