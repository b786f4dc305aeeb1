//! What is asked, when to stop, and how a trial is prepared.

use crate::event::{Decide, Until};
use crate::setting::{Refusal, Settings, Span};

use super::design::{Factor, Policy, Provision, RoundOrder};
use super::factor::find_factor;
use super::place::is_place;

/// Most rounds that can be asked for.
pub(crate) const ROUNDS_MAX: u32 = 10_000;

/// Reads `[decide]`, its comparison left out.
///
/// # Errors
/// What is out of range.
pub(super) fn decide(words: &Settings) -> Result<Decide, Refusal> {
    let margin = words.share("margin")?;
    if margin <= 0.0 {
        return Err(Refusal::at(
            words.span_of("margin"),
            "a margin of 0 can never be reached: no two storages are equal to the last digit",
            "write the smallest difference that matters to you, like \"5 %\"",
        ));
    }
    let confidence = words.share("confidence")?;
    if !(0.5..=0.9999).contains(&confidence) {
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
    let time_max_ns = words.time_ns("at-most")?;
    if time_max_ns == 0 {
        return Err(Refusal::at(
            words.span_of("at-most"),
            "nothing can be measured in no time",
            "write it like \"1 h\"",
        ));
    }
    Ok(Decide {
        comparison: None,
        margin,
        confidence,
        // At most ROUNDS_MAX, just checked.
        rounds_max: rounds as u32,
        time_max_ns,
        until: match words.text("until")?.as_str() {
            "each" => Until::Each,
            "never" => Until::Never,
            _ => Until::Overall,
        },
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
    if factor.levels.len() == 1 {
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
    // Other words were refused when the settings were checked.
    let provision = match words.text("provision")?.as_str() {
        "once" => Provision::Once,
        _ => Provision::EachRound,
    };
    let order = match (words.optional_text("order")?.as_deref(), provision) {
        (Some("adjacent"), _) | (None, Provision::Once) => RoundOrder::Adjacent,
        _ => RoundOrder::Turns,
    };
    Ok(Policy {
        drop_caches: words.flag("drop-caches")?,
        remount: words.flag("remount")?,
        provision,
        order,
        precondition: words.text("precondition")? == "snia",
    })
}
