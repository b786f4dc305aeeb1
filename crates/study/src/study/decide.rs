//! What is asked, when to stop, and how a trial is prepared.

use stackrace_base::event::{Decide, Precision};
use stackrace_base::setting::{Refusal, Settings, Span};
use stackrace_base::unit;

use super::design::{Factor, Policy, Provision, RoundOrder, Slices};
use super::factor::find_factor;
use super::place::is_place;
use super::words::{ORDER, PRECISION, PRECONDITION, PROVISION, UNTIL};

/// A slice where none is written, ns: long beside a change of turns, short beside what drifts.
const SLICE_NS: u64 = 50_000_000;
/// Shortest and longest slice, ns.
const SLICE_NS_RANGE: std::ops::RangeInclusive<u64> = 10_000_000..=1_000_000_000;

/// Most rounds that can be asked for.
pub const ROUNDS_MAX: u32 = 10_000;

/// Confidence that may be asked for: below, a coin would do; above, no number of rounds that is measured would.
pub const CONFIDENCE: std::ops::RangeInclusive<f64> = 0.5..=0.9999;

/// Reads `[decide]`, its comparison left out.
///
/// # Errors
/// What is out of range.
pub(super) fn decide(words: &Settings) -> Result<Decide, Refusal> {
    let margin = words.share("margin")?;
    if margin <= 0.0 {
        return Err(Refusal::at(
            words.span_of("margin"),
            "a margin of 0 can never be reached: no two devices are equal to the last digit",
            "write the smallest difference that matters to you, like \"5 %\"",
        ));
    }
    let confidence = words.share("confidence")?;
    if !CONFIDENCE.contains(&confidence) {
        return Err(Refusal::at(
            words.span_of("confidence"),
            "confidence lies between 50 % and 99.99 %",
            "write \"95 %\" to be wrong in at most one study of twenty",
        ));
    }
    let rounds = words.count("rounds-at-most")?;
    if !(1..=u64::from(ROUNDS_MAX)).contains(&rounds) {
        return Err(Refusal::at(
            words.span_of("rounds-at-most"),
            format!("rounds-at-most lies between 1 and {ROUNDS_MAX}"),
            "write 30, or a shorter at-most",
        ));
    }
    let time_max_ns = words.lasting_ns("at-most")?;
    let within = words.optional_share("within")?;
    let precision = match (words.choice(PRECISION)?, within) {
        (Precision::Direction, Some(_)) => {
            return Err(Refusal::at(
                words.span_of("within"),
                "precision = \"direction\" asks for no size, and within asks for one",
                "leave one of them out",
            ));
        }
        (_, Some(within)) if within <= 0.0 => {
            return Err(Refusal::at(
                words.span_of("within"),
                "an interval cannot be 0 wide",
                "write how far apart its ends may be, like \"10 %\"",
            ));
        }
        (_, Some(within)) => Precision::Within(within),
        (asked, None) => asked,
    };
    Ok(Decide {
        comparison: None,
        margin,
        confidence,
        // At most ROUNDS_MAX, just checked.
        rounds_max: rounds as u32,
        time_max_ns,
        until: words.choice(UNTIL)?,
        precision,
        required: Vec::new(),
    })
}

/// Checks that a comparison names a factor with something to compare.
///
/// # Errors
/// It does not.
pub(super) fn comparison(name: &str, span: &Span, factors: &[Factor]) -> Result<(), Refusal> {
    if is_place(name) && factors.iter().all(|factor| factor.name != name) {
        return Err(Refusal::at(
            span,
            format!("there is no factor \"{name}\""),
            format!("name the places to compare: [factors] {name} = [\"one\", \"another\"]"),
        ));
    }
    let factor = &factors[find_factor(factors, name, span)?];
    // One place of several: runs of the others are judged together with this one.
    if factor.levels.len() == 1 && !is_place(name) {
        return Err(Refusal::at(
            span,
            format!("factor \"{name}\" has one level: there is nothing to compare it with"),
            "add a level, or compare another factor",
        ));
    }
    Ok(())
}

/// Reads `[trial]`, already checked.
///
/// # Errors
/// A value is of another kind.
pub(super) fn policy(words: &Settings) -> Result<Policy, Refusal> {
    let provision = words.choice(PROVISION)?;
    let order = words.optional_choice(ORDER)?.unwrap_or(match provision {
        Provision::Once => RoundOrder::Adjacent,
        Provision::EachRound => RoundOrder::Turns,
    });
    let precondition = words.choice(PRECONDITION)?;
    Ok(Policy {
        drop_caches: words.flag("drop-caches")?,
        remount: words.flag("remount")?,
        provision,
        order,
        slices: slices(words, order, precondition)?,
        precondition,
    })
}

/// Slices as they are asked for; where nothing is said, for what only reads and wherever they can be.
fn slices(
    words: &Settings,
    order: RoundOrder,
    precondition: bool,
) -> Result<Option<Slices>, Refusal> {
    let adjacent = order == RoundOrder::Adjacent;
    let refuse = |message: String, help: &str| Refusal::at(words.span_of("slice"), message, help);
    let text = match words.optional_text("slice")? {
        None => {
            return Ok((adjacent && !precondition).then_some(Slices {
                ns: SLICE_NS,
                writes: false,
            }));
        }
        Some(off) if off == "off" => return Ok(None),
        Some(text) => text,
    };
    let ns = unit::parse_time_ns(&text)
        .map_err(|why| refuse(why.to_string(), "write it like \"50 ms\", or \"off\""))?;
    let (least, most) = (*SLICE_NS_RANGE.start(), *SLICE_NS_RANGE.end());
    if !SLICE_NS_RANGE.contains(&ns) {
        let nearest = unit::time_ns(ns.clamp(least, most) as f64);
        return Err(refuse(
            "a slice lasts from 10 ms to 1 s".to_owned(),
            &format!("write \"{nearest}\", or \"off\""),
        ));
    }
    if !adjacent {
        return Err(refuse(
            "slices need configurations that follow each other within a workload".to_owned(),
            "write order = \"adjacent\", or slice = \"off\"",
        ));
    }
    // Its turns leave it idle, and idle flash recovers.
    if precondition {
        return Err(refuse(
            "a stack does not stay in its steady state while it waits for its next slice"
                .to_owned(),
            "write slice = \"off\", or precondition = \"none\"",
        ));
    }
    Ok(Some(Slices { ns, writes: true }))
}
