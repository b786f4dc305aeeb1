//! A first round that is longer than the time allowed: said before it starts.
//!
//! A round under way is never cut off: half of one compares nothing. So a limit shorter than a round
//! does not limit the run, and one shorter than three gives no verdict.

use stackrace_stats::FIRST_LOOK;

use crate::prepare::observer::Observer;
use stackrace_base::event::Decide;
use stackrace_base::unit;

/// Times are proposed in steps of this, s.
const STEP_SECONDS: f64 = 30.0;

/// Warns where a round that takes `seconds` at least goes on after the time allowed.
pub fn warn(decide: &Decide, seconds: f64, observer: &dyn Observer) {
    if let Some((text, next)) = words(decide, seconds) {
        observer.warn(&text, &next);
    }
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
        "the first round alone takes at least {}, and {} are allowed. It is measured to its end, and no verdict follows",
        unit::long_time(seconds),
        unit::long_time(allowed),
    );
    let next = format!(
        "--time \"{needed:.0} s\" gives {} at the best; so does {} of the work per trial",
        match rounds {
            1 => "1 round".to_owned(),
            _ => format!("{rounds} rounds"),
        },
        unit::percent(share)
    );
    Some((text, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{Precision, Until};

    fn words_for(allowed_s: u64, rounds_max: u32, seconds: f64) -> Option<(String, String)> {
        let decide = Decide {
            comparison: None,
            margin: 0.05,
            confidence: 0.95,
            rounds_max,
            time_max_ns: allowed_s * 1_000_000_000,
            until: Until::Overall,
            precision: Precision::Size,
            required: Vec::new(),
        };
        words(&decide, seconds)
    }

    #[test]
    fn what_would_fit_is_proposed() {
        assert_eq!(words_for(20, 30, 20.0), None);
        let (text, next) = words_for(20, 30, 65.0).unwrap();
        assert!(
            text.starts_with(
                "the first round alone takes at least 1 min 05 s, and 20 s are allowed"
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
}
