//! A first round that is longer than the time allowed: said before it starts.
//!
//! A round under way is never cut off: half of one compares nothing. So a limit shorter than a round
//! does not limit the run, and one shorter than three gives no verdict. Where the time of a round was
//! measured, such a limit is refused; where it is only planned, it is warned of.

use stackrace_stats::FIRST_LOOK;

use crate::prepare::observer::Observer;
use stackrace_base::event::Decide;
use stackrace_base::failure::Failure;
use stackrace_base::unit;

/// Times are proposed in steps of this, s.
const STEP_SECONDS: f64 = 30.0;
/// Least share of the work that is proposed.
const SHARE_LEAST: f64 = 0.001;

/// Refuses a limit that one round would go beyond. `round_seconds` were measured, in `spent_ns` of the time that is
/// allowed; `with_time` is the command with a time that has room for a verdict, in seconds.
///
/// # Errors
/// No round fits.
pub fn check(
    decide: &Decide,
    round_seconds: f64,
    spent_ns: u64,
    with_time: &dyn Fn(f64) -> String,
) -> Result<(), Failure> {
    let (left, spent) = (decide.time_max_ns as f64 / 1e9, spent_ns as f64 / 1e9);
    if round_seconds <= left {
        return Ok(());
    }
    let rounds = FIRST_LOOK.min(decide.rounds_max);
    let text = format!(
        "the time allowed has no room for one round, which takes about {}, after {} of preparation",
        unit::long_time(round_seconds.max(1.0)),
        unit::long_time(spent.max(1.0)),
    );
    Err(Failure::refused(text).next(with_time(spent + f64::from(rounds) * round_seconds)))
}

/// Warns where a round that takes `seconds` at least goes on after the time that the study allows; one that was `typed`
/// is refused instead: it cannot be kept.
///
/// # Errors
/// No round fits into the time that was typed.
pub fn planned(
    decide: &Decide,
    seconds: f64,
    typed: bool,
    observer: &dyn Observer,
) -> Result<(), Failure> {
    match words(decide, seconds) {
        Some((text, next)) if typed => return Err(Failure::refused(text).next(next)),
        Some((text, next)) => {
            let goes_on = "It is measured to its end, and no verdict follows";
            observer.warn(&format!("{text}. {goes_on}"), &next);
        }
        None => {}
    }
    Ok(())
}

/// Says what is wrong, and what would fit; `None` if the first round fits.
fn words(decide: &Decide, seconds: f64) -> Option<(String, String)> {
    let allowed = decide.time_max_ns as f64 / 1e9;
    if seconds <= allowed {
        return None;
    }
    // A study with fewer rounds than a verdict takes is not to be given time for more.
    let rounds = FIRST_LOOK.min(decide.rounds_max);
    // In whole steps, as a time is typed.
    let needed = (f64::from(rounds) * seconds / STEP_SECONDS).ceil() * STEP_SECONDS;
    let share = allowed / (f64::from(rounds) * seconds);
    let text = format!(
        "the first round alone takes at least {}, and the time allowed is {}",
        unit::long_time(seconds),
        unit::whole_time(decide.time_max_ns),
    );
    let rounds = match rounds {
        1 => "1 round".to_owned(),
        _ => format!("{rounds} rounds"),
    };
    // Work that is reduced to a thousandth is other work.
    let less = match share < SHARE_LEAST {
        true => String::new(),
        false => format!("; so does {} of the work per trial", unit::percent(share)),
    };
    let next = format!("--time \"{needed:.0} s\" gives {rounds} at the best{less}");
    Some((text, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{Precision, Until};

    fn words_for(allowed_s: u64, rounds_max: u32, seconds: f64) -> Option<(String, String)> {
        words(&decide(allowed_s, rounds_max), seconds)
    }

    fn decide(allowed_s: u64, rounds_max: u32) -> Decide {
        Decide {
            comparison: None,
            margin: 0.05,
            confidence: 0.95,
            rounds_max,
            time_max_ns: (allowed_s * 1_000_000_000).max(1),
            until: Until::Overall,
            precision: Precision::Size,
            required: Vec::new(),
        }
    }

    #[test]
    fn what_would_fit_is_proposed() {
        assert_eq!(words_for(20, 30, 20.0), None);
        let (text, next) = words_for(20, 30, 65.0).unwrap();
        assert!(
            text.starts_with(
                "the first round alone takes at least 1 min 05 s, and the time allowed is 20 s"
            ),
            "{text}"
        );
        assert_eq!(
            next,
            "--time \"210 s\" gives 3 rounds at the best; so does 10 % of the work per trial"
        );
        let (_, one) = words_for(20, 1, 65.0).unwrap();
        assert!(one.starts_with("--time \"90 s\" gives 1 round at"), "{one}");
    }

    #[test]
    fn a_limit_that_no_round_fits_is_refused_with_one_that_a_verdict_fits() {
        let checked = |left_s: u64, rounds_max| {
            let decide = decide(left_s, rounds_max);
            let with_time = |seconds: f64| format!("--time {seconds}");
            let checked = check(&decide, 30.0, 12_000_000_000, &with_time);
            checked.err().map(|failure| failure.render())
        };
        assert_eq!(checked(30, 200), None);
        let refused = checked(8, 200).unwrap();
        assert!(
            refused.contains("no room for one round, which takes about 30 s, after 12 s of"),
            "{refused}"
        );
        assert!(refused.contains("--time 102"), "{refused}");
        assert!(checked(8, 1).unwrap().contains("--time 42"));
        // Nothing is said of 0 s or of 0.00 % of the work.
        let (text, next) = words(&decide(0, 30), 65.0).unwrap();
        assert!(
            !text.contains(" 0 s") && !next.contains('%'),
            "{text}: {next}"
        );
    }
}
