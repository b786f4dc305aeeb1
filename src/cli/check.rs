//! `stackrace check`: whether one directory is enough.

use std::path::Path;

use super::answer;
use super::args::{Check, OutputArgs};
use super::failure::Failure;
use super::gallery;
use super::output;
use super::run::time;
use super::setting::Setting;
use super::terminal::print;
use super::words::{no_such, unknown};
use crate::commands::compare::{self, CompareRequest};
use crate::commands::gallery_runs::GalleryFigures;
use crate::commands::standing;
use stackrace_base::event::{is_same_metric, split};
use stackrace_base::unit;
use stackrace_judge::verdict::{Placed, Verdict};
use stackrace_places::place::options::AskedPlace;
use stackrace_results::record::Record;
use stackrace_run::execute::FinishedRun;
use stackrace_run::prepare::observer::Observer as _;
use stackrace_run::prepare::study_file::Overrides;
use stackrace_study::purpose::{self, Purpose, RequiredBound};

/// Carries out `stackrace check`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Check) -> Result<u8, Failure> {
    let (purpose, published) = purpose_asked(&verb.purpose)?;
    // Before anything is measured: a folder that cannot be read is a mistake of the command line.
    let gallery = verb.gallery.as_deref().map(runs_of).transpose()?;
    let size = verb.size.as_deref().map(unit::parse_bytes).transpose();
    let time_asked = time("--time", verb.time.as_ref())?;
    let required = all_required(published, typed(&verb.require)?);
    let request = CompareRequest {
        directories: vec![verb.directory],
        purpose,
        time_ns: time_asked.unwrap_or(compare::TIME_NS),
        quick: false,
        costs: Vec::new(),
        size: size.map_err(|why| Failure::usage(format!("--size: {why}")))?,
        like: None,
        anyway: verb.anyway,
        warm: verb.warm,
        clients: None,
        required,
        overrides: Overrides {
            time_max_ns: time_asked,
            rounds_max: verb.how_long.rounds,
            until_decided: verb.how_long.until_decided,
            ..Overrides::default()
        },
    };
    if request.required.is_empty() && !verb.print_study {
        setting.remark(&format!(
            "no requirement is published for {}, so this only measures; for an answer: --require \"METRIC <= BOUND\"",
            purpose.name
        ));
    }
    setting.typed.check(AskedPlace::Here)?;
    output::check_before_run(verb.output.html.as_deref())?;
    setting.events.name(verb.output.events.as_deref())?;
    let prepared = compare::prepare(&setting.session, &request, setting)?;
    if verb.print_study {
        print(&prepared.printed(&request.overrides));
        return Ok(0);
    }
    let finished = compare::run(&setting.session, &request, prepared, setting)?;
    let asked = (&request, gallery.as_ref());
    finish(setting, finished, (asked, false), &verb.output)
}

/// The figures of a gallery; what it cannot show is told.
fn runs_of(dir: &Path) -> Result<GalleryFigures, Failure> {
    let (figures, gathered) = GalleryFigures::read(dir)?;
    gallery::report_others(&gathered);
    match gathered.runs {
        0 => Err(gallery::nothing_in(dir)),
        _ => Ok(figures),
    }
}

/// What was asked, and the gallery that the answer is to stand in.
pub(super) type CheckAsked<'a> = (&'a CompareRequest, Option<&'a GalleryFigures>);

/// Shows what a run found, of one directory also where that stands.
pub(super) fn finish(
    setting: &Setting,
    run: FinishedRun,
    (asked, decide): (CheckAsked<'_>, bool),
    output: &OutputArgs,
) -> Result<u8, Failure> {
    answer::finish_with(
        setting,
        run,
        output,
        (decide, &|record, verdict| {
            stands(setting, asked, record, verdict)
        }),
    )
}

/// Where one directory stands: beside its own past, beside drives where nothing is required of it, and in a gallery;
/// nothing of several.
fn stands(
    setting: &Setting,
    (request, gallery): CheckAsked<'_>,
    record: &Record,
    verdict: &Verdict,
) -> Placed {
    if request.directories.len() > 1 {
        return Placed::default();
    }
    let mut placed = standing::past(&setting.session, record, verdict);
    if request.required.is_empty() {
        placed.drives = standing::among_drives(verdict, request.purpose);
    }
    if let Some(gallery) = gallery {
        gallery.place(record, verdict, &mut placed);
    }
    placed
}

/// The bounds that were typed.
///
/// # Errors
/// A bound has no sign, or no metric before it.
fn typed(all: &[String]) -> Result<Vec<RequiredBound>, Failure> {
    let bound = |text: &String| {
        let (metric, bound) =
            split(text).map_err(|why| Failure::usage(format!("--require: {why}")))?;
        Ok(RequiredBound {
            metric: metric.to_owned(),
            bound: bound.to_owned(),
            source: None,
        })
    };
    all.iter().map(bound).collect()
}

/// What is published for the purpose, and what was typed: that alone where both are about one metric.
fn all_required(published: Vec<RequiredBound>, typed: Vec<RequiredBound>) -> Vec<RequiredBound> {
    let is_typed = |one: &RequiredBound| {
        let mut typed = typed.iter();
        typed.any(|other| is_same_metric(&other.metric, &one.metric))
    };
    let kept = published.into_iter().filter(|one| !is_typed(one));
    kept.collect::<Vec<_>>().into_iter().chain(typed).collect()
}

/// Finds a purpose by its name, and what it requires of one directory; `video:FORMAT` and `surveillance:16x4Mbit/s` say
/// more than a name.
///
/// # Errors
/// There is none of that name, and the nearest is named; or what is said after the colon is wrong.
pub(super) fn purpose_asked(word: &str) -> Result<(&'static Purpose, Vec<RequiredBound>), Failure> {
    let (name, detail) = match word.split_once(':') {
        Some((name, detail)) => (name, Some(detail.trim())),
        None => (word, None),
    };
    let purpose = purpose::find(name).ok_or_else(|| {
        let names: Vec<&str> = purpose::ALL.iter().map(|purpose| purpose.name).collect();
        match purpose::meant(name) {
            Some(meant) => no_such("purpose", name, Some(meant), &names),
            None => unknown("purpose", name, &names),
        }
    })?;
    let required = purpose::required(purpose.name, detail)
        .map_err(|why| Failure::usage(format!("--for {name}: {}", why.what)).next(why.next))?;
    Ok(match detail {
        Some(_) => (purpose.with_detail(), required),
        None => (purpose, required),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_required_beside_what_is_typed() {
        let published = || purpose_asked("etcd").unwrap().1;
        let metrics = |bounds: &[&str]| {
            let bounds: Vec<String> = bounds.iter().map(|&it| it.to_owned()).collect();
            let all = all_required(published(), typed(&bounds).unwrap());
            let words = all
                .iter()
                .map(|one| format!("{} {}", one.metric, one.bound));
            words.collect::<Vec<_>>()
        };
        let etcd = "fsync latency p99 <= 10 ms";
        assert_eq!(metrics(&[]), [etcd]);
        let more = "throughput >= 1 MB/s";
        assert_eq!(metrics(&[more]), [etcd, more]);
        // Who types a bound of the same metric means that one in place of the published one.
        let other = "fsync latency p99 <= 20 ms";
        assert_eq!(metrics(&[other, more]), [other, more]);
    }
}
