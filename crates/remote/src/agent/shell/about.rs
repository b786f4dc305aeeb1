//! What the record and its reader must know of a machine that nothing of this program was on.

use super::program::Timer;
use stackrace_base::event::Fact;

/// Name of the fact that says that nothing of this program was on the machine.
const AGENTLESS: &str = "agent";

/// Facts a run cannot know of such a machine.
pub(super) const NOT_OBSERVED: &str = "the kernel's counters, what limits a figure, what is in memory, other \
                                       work on the machine, bytes that a program moves";

/// The facts of a machine; `whole` is what `uname -srm` says.
pub(super) fn facts(whole: &str, timer: &Timer) -> Vec<Fact> {
    vec![
        Fact::new("system", whole),
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
        Fact::new("not observed there", NOT_OBSERVED),
    ]
}
