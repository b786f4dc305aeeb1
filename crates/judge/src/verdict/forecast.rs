//! What would decide that is still open, in words: rounds, time, and the command that goes on.

use stackrace_stats::FIRST_LOOK;

use super::answer::VerdictGrounds;
use super::evidence::Evidence;
use super::fragment::{finer, known_to};
use super::lacking::Lacking;
use super::statement::{More, State, VerdictWord};
use stackrace_base::event::RunStarted;
use stackrace_base::unit::{self, counted};

/// The command that goes on until there is an answer.
fn resume(head: &RunStarted) -> String {
    head.resume_command() + " --until-decided"
}

/// Text on what would decide, as long as it is open.
pub(super) fn forecast(
    judged: &VerdictGrounds<'_>,
    more: Option<&More>,
    evidence: &Evidence<'_>,
) -> String {
    if judged.too_coarse && judged.state == State::Undecided {
        return coarse_outlook(judged);
    }
    let Some(more) = more else {
        return goes_on(judged, evidence);
    };
    if judged.state == State::Decided {
        let comes_first = limit_comes_first(more, evidence);
        return sizes(more, evidence.ended, comes_first, &resume(evidence.head));
    }
    let time = more.seconds.map(unit::long_time);
    // The user who waits looks at another clock.
    let time = match evidence.head.place().in_virtual_time() {
        true => time.map(|time| format!("{time} of virtual time")),
        false => time,
    };
    match (evidence.ended, more.rounds, time) {
        (true, Some(_), Some(time)) => {
            format!(" `{}` would take about {time}.", resume(evidence.head))
        }
        (true, Some(rounds), None) => format!(
            " `{}` would take about {}.",
            resume(evidence.head),
            counted(rounds as usize, "more round")
        ),
        (true, None, _) if judged.rounds < FIRST_LOOK => format!(
            " After {} it cannot be told how long a certain answer takes; `{}` goes on until there is one.",
            counted(judged.rounds as usize, "round"),
            resume(evidence.head)
        ),
        (false, None, _) if judged.rounds < FIRST_LOOK => String::new(),
        (true, None, _) => format!(
            " The rounds vary too much to say how long a certain answer takes; `{}` goes on until there is one.",
            resume(evidence.head)
        ),
        (false, Some(rounds), time) => {
            let time = time.map_or(String::new(), |time| format!(" ({time})"));
            let rounds = counted(rounds as usize, "more round");
            let end = end(more, evidence);
            format!(" About {rounds}{time} would decide{end}")
        }
        (false, None, _) => {
            " The rounds so far vary too much to say how long a certain answer will take."
                .to_owned()
        }
    }
}

/// The command for the rounds that are missing for the first interval; empty if none are, or the run goes on by itself.
pub(super) fn goes_on(judged: &VerdictGrounds<'_>, evidence: &Evidence<'_>) -> String {
    let all = judged.overall.iter().chain(judged.ranking);
    let mut lacking = all.filter_map(|c| c.lacking);
    match evidence.ended && lacking.any(Lacking::takes_rounds) {
        true => format!(" `{}` goes on.", resume(evidence.head)),
        false => String::new(),
    }
}

/// The reason that no number of rounds would decide, and what would.
fn coarse_outlook(judged: &VerdictGrounds<'_>) -> String {
    let all = judged.ranking.iter().chain(judged.overall);
    let mut open = all.filter(|c| c.coarse.undecidable);
    let Some(first) = open.next() else {
        return String::new();
    };
    let finer = finer(first.coarse);
    // A pair that is told apart only by the figures says so itself.
    match first.word {
        VerdictWord::Undecided if judged.ranking.is_empty() => {
            format!(" More rounds do not help: {finer}.")
        }
        _ => format!(
            " More rounds do not help, because {}: {finer}.",
            known_to(first.coarse)
        ),
    }
}

/// What follows the work that is needed, where the run may not do so much.
const LIMIT_FIRST: &str = "; the run's limit comes first.";

/// Whether a run that goes on ends at its limit of rounds or time before it has done so much more.
fn limit_comes_first(more: &More, evidence: &Evidence<'_>) -> bool {
    let decide = &evidence.head.decide;
    let done = evidence.rounds.len();
    let rounds_left = (decide.rounds_max as usize).saturating_sub(done);
    // The time so far is that of its rounds: preparation comes before the clock of the run. No limit: what another
    // tool measured.
    let spent = evidence.round_seconds.map(|each| each * done as f64);
    let spent = spent.filter(|_| decide.time_max_ns > 0);
    let seconds_left = spent.map(|spent| decide.time_max_ns as f64 / 1e9 - spent);
    more.rounds
        .is_some_and(|rounds| rounds as usize > rounds_left)
        || more
            .seconds
            .zip(seconds_left)
            .is_some_and(|(needed, left)| needed > left)
}

/// What follows the work that would decide.
fn end(more: &More, evidence: &Evidence<'_>) -> &'static str {
    match limit_comes_first(more, evidence) {
        true => LIMIT_FIRST,
        false => ".",
    }
}

/// The way to a narrower interval of what is decided: nothing where nothing is said to be too wide.
fn sizes(more: &More, ended: bool, limit_first: bool, resume: &str) -> String {
    match (ended, more.seconds.map(unit::long_time)) {
        (true, Some(time)) => {
            format!(
                " How much faster is known only roughly; `{resume}` takes about {time} for more."
            )
        }
        (true, None) => format!(" How much faster is known only roughly; `{resume}` finds out."),
        (false, Some(time)) if limit_first => {
            format!(" To tell how much takes about {time} more{LIMIT_FIRST}")
        }
        (false, Some(time)) => format!(" About {time} more will tell how much."),
        (false, None) => String::new(),
    }
}
