//! Words of the command line: one of several, a share, or a run.

use std::ffi::{OsStr, OsString};
use std::ops::Range;

use clap::error::{ContextKind, ContextValue};

use super::failure::Failure;
use super::{args, other_tools};
use stackrace_base::setting::nearest;
use stackrace_base::unit;
use stackrace_results::record::{Record, RecordError, Store};
use stackrace_study::study::CONFIDENCE;

/// A name that is not one of the valid ones, with the nearest of them.
pub(super) fn unknown(what: &str, name: &str, valid: &[&str]) -> Failure {
    no_such(what, name, nearest(name, valid.iter().copied()), valid)
}

/// A name that is not one of the valid ones, with the one that is most likely meant; none: nothing is
/// near.
pub(super) fn no_such(what: &str, name: &str, meant: Option<&str>, valid: &[&str]) -> Failure {
    let meant = match meant {
        Some(meant) => format!("did you mean \"{meant}\"? There are: "),
        None => "choose one of: ".to_owned(),
    };
    Failure::usage(format!("there is no {what} \"{name}\""))
        .next(format!("{meant}{}", valid.join(", ")))
}

/// Takes from what the parser says each proposal that is not near to what was typed (`--wieght` is no `--with`), and
/// the advice to write an unknown option as a value.
pub(super) fn keep_near(said: &mut clap::Error, words: &[OsString]) {
    said.remove(ContextKind::Suggested);
    if other_tools::propose(said, &args::whole(), words) {
        return;
    }
    for (typed, proposed) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(ContextValue::String(word)) = said.get(typed).cloned() else {
            continue;
        };
        let all = match said.get(proposed) {
            Some(ContextValue::String(one)) => vec![one.clone()],
            Some(ContextValue::Strings(all)) => all.clone(),
            _ => continue,
        };
        match nearest(&word, all.iter().map(String::as_str)) {
            Some(near) => {
                let near = ContextValue::String(near.to_owned());
                said.insert(proposed, near);
            }
            None => {
                said.remove(proposed);
                // It shows how the proposal is used.
                said.remove(ContextKind::Usage);
            }
        }
    }
}

/// Says of a number below zero that there is none, where the parser only finds a sign that is no digit.
pub(super) fn below_zero(said: &clap::Error) -> Option<Failure> {
    let text = |kind| match said.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let why = std::error::Error::source(said)?;
    let value = text(ContextKind::InvalidValue).filter(|value| value.starts_with('-'))?;
    let option = text(ContextKind::InvalidArg)?;
    why.is::<std::num::ParseIntError>().then(|| {
        Failure::usage(format!("{option}: {value} is below zero"))
            .next("write a whole number from 0 on")
    })
}

/// The words of a command line, where a value below zero is one word with its option: alone it looks like an option,
/// and the parser would refuse that one instead of the value.
pub(super) fn with_values(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut own = true;
    for word in words {
        let below_zero = word.to_str().and_then(|word| word.strip_prefix('-'));
        let below_zero = below_zero.is_some_and(|rest| {
            rest.trim_start_matches('.')
                .starts_with(|c: char| c.is_ascii_digit())
        });
        match all.last_mut() {
            Some(option) if own && below_zero && waits(option) => {
                option.push("=");
                option.push(word);
            }
            _ => {
                // Behind it are words of another program.
                own &= word != "--";
                all.push(word);
            }
        }
    }
    all
}

/// The words of the command that carries out what was typed: a plan shows what `run` needs, and changes nothing
/// itself.
pub(super) fn as_carried_out(
    verb: Option<&str>,
    words: impl Iterator<Item = OsString>,
) -> impl Iterator<Item = OsString> {
    let mut planned = verb == Some("plan");
    let shown = move |word: &OsString| !(verb == Some("plan") && word == "--json");
    words.filter(shown).map(move |word| {
        if planned && word == "plan" {
            planned = false;
            return "run".into();
        }
        word
    })
}

/// Returns true if a word is a long option without its value.
fn waits(word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    word.len() > 2 && word.starts_with("--") && !word.contains('=')
}

/// One of several by its name, or by a beginning that only one of them has.
pub(super) fn named(what: &str, name: &str, valid: &[&str]) -> Result<usize, Failure> {
    let exact = valid.iter().position(|valid| *valid == name);
    let mut begin = (0..valid.len()).filter(|at| valid[*at].starts_with(name));
    // A beginning is enough where it is clear, as with ids of runs.
    let only = begin.next().filter(|_| begin.next().is_none());
    exact.or(only).ok_or_else(|| unknown(what, name, valid))
}

/// A share that an option gives, above 0 and within what is valid.
pub(super) fn share(
    option: &str,
    text: Option<&String>,
    valid: Range<f64>,
) -> Result<Option<f64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let why = match unit::parse_share(text) {
        Ok(value) if valid.contains(&value) && value > 0.0 => return Ok(Some(value)),
        Ok(_) => format!("{option} {text} is out of range"),
        Err(why) => format!("{option}: {}", why.what),
    };
    let (example, least) = match valid.start > 0.0 {
        true => ("95 %", format!("at least {}", unit::percent(valid.start))),
        false => ("5 %", "above 0".to_owned()),
    };
    Err(Failure::usage(why).next(format!(
        "write a share such as {example}: {least} and below {}",
        unit::percent(valid.end)
    )))
}

/// The confidence that `--confidence` gives.
pub(super) fn confidence(text: Option<&String>) -> Result<Option<f64>, Failure> {
    let value = share("--confidence", text, 0.5..1.0)?;
    match (value, text) {
        (Some(value), Some(text)) if !CONFIDENCE.contains(&value) => {
            let why = format!("--confidence {text} is out of range");
            Err(Failure::usage(why).next("write at most 99.99 %"))
        }
        _ => Ok(value),
    }
}

/// The run that a word names: an id, its beginning, or `last`.
pub(super) fn run(store: &Store, word: &str) -> Result<Record, Failure> {
    store.read(word).map_err(not_read)
}

/// The runs that these words name, in that order.
pub(super) fn runs(store: &Store, words: &[String]) -> Result<Vec<Record>, Failure> {
    words.iter().map(|word| run(store, word)).collect()
}

/// The failure of a store that is asked for a run.
pub(super) fn not_read(error: RecordError) -> Failure {
    Failure::usage(error.to_string()).next(error.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the parser says of a command line that is wrong.
    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut said = args::whole().try_get_matches_from(&words).unwrap_err();
        keep_near(&mut said, &words);
        said.to_string()
    }

    #[test]
    fn a_proposal_is_near_to_what_was_typed() {
        for (line, proposed) in [
            ("stackrace compare --wihtin 3% a b", "'--within'"),
            ("stackrace compare --quik a b", "'--quick'"),
            ("stackrace compre a b", "'compare'"),
        ] {
            let said = said(line);
            assert!(said.contains(proposed), "{line}: {said}");
        }
        for line in [
            "stackrace compare --wieght 2 a b",
            "stackrace compare --s3 a b",
            "stackrace cifs",
            "stackrace s3",
            "stackrace ai",
        ] {
            let said = said(line);
            assert!(!said.contains("tip:"), "{line}: {said}");
            assert!(said.contains("--help"), "{line}: {said}");
        }
    }

    #[test]
    fn a_value_below_zero_is_refused_as_a_value() {
        let joined = |line: &str| with_values(line.split(' ').map(OsString::from));
        assert_eq!(
            joined("s compare a --margin -5% --quick b -- x --y -5"),
            [
                "s",
                "compare",
                "a",
                "--margin=-5%",
                "--quick",
                "b",
                "--",
                "x",
                "--y",
                "-5"
            ]
        );
        assert_eq!(
            joined("s load -q --time .5s"),
            ["s", "load", "-q", "--time", ".5s"]
        );
        for line in ["--rounds -3", "--seed -4"] {
            let line = format!("stackrace compare a b {line}");
            let words = with_values(line.split(' ').map(OsString::from));
            let mut said = args::whole().try_get_matches_from(&words).unwrap_err();
            keep_near(&mut said, &words);
            let own = below_zero(&said).map(|failure| failure.render());
            let said = own.unwrap_or(said.to_string());
            let known = ["-3 is not in 1..=10000", "-4 is below zero"];
            assert!(
                known.iter().any(|known| said.contains(known)),
                "{line}: {said}"
            );
            assert!(!said.contains("tip:"), "{line}: {said}");
        }
    }

    #[test]
    fn what_a_plan_needs_is_said_of_the_run() {
        let of = |verb, line: &str| {
            let words = as_carried_out(Some(verb), line.split(' ').map(OsString::from));
            let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
            words.join(" ")
        };
        assert_eq!(
            of("plan", "--store x plan plan --json"),
            "--store x run plan"
        );
        assert_eq!(of("report", "report plan --json"), "report plan --json");
    }

    #[test]
    fn an_unknown_option_is_not_proposed_as_a_value() {
        let said = said("stackrace compare --client a b");
        assert!(!said.contains("as a value"), "{said}");
        assert!(said.contains("'--clients'"), "{said}");
    }
}
