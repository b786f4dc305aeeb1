//! `stackrace show`: explains layers, workloads and the other words of a study.
//!
//! The texts come from the lists that check a study, so help and check cannot disagree.

use std::path::Path;

use stackrace_engine::tree;
use stackrace_engine::tree::profile::{self, Profile, Scales};

use super::args::Show;
use super::drives;
use super::failure::Failure;
use super::load::formats;
use super::setting::Setting;
use super::terminal::{print, say};
use super::words::unknown;
use stackrace_base::setting::{Fallback, Kind, SettingDoc};
use stackrace_base::unit;
use stackrace_layers::stack::{self, GivesKind, Takes};
use stackrace_load::programs;
use stackrace_show::report::wrap;
use stackrace_study::purpose;
use stackrace_study::study;

/// Things that can be shown, each with what it is.
pub(super) const THINGS: [(&str, &str); 12] = [
    ("layers", "what stacks are made of, and their settings"),
    (
        "commands",
        "every command that a layer runs, as root or not",
    ),
    ("workloads", "what is measured, and the settings of each"),
    ("profiles", "trees of files: how many, of which sizes"),
    (
        "purposes",
        "groups of workloads, as compare and check --for take",
    ),
    ("studies", "studies that ship, for run and plan"),
    ("reports", "ways to write a run down"),
    ("schema", "JSON schema of a study, for editors"),
    ("video-formats", "the rate that each format needs"),
    ("drives", "modelled drives, for the lab"),
    (
        "engine",
        "what an operation costs on this machine; measured now",
    ),
    (
        "trace",
        "what `record` kept of an application: show trace FILE",
    ),
];

pub(super) fn exec(setting: &Setting, verb: Show) -> Result<u8, Failure> {
    let name = verb.name.as_deref();
    let Some(what) = verb.what.as_deref() else {
        let lines = THINGS.map(|(word, is)| format!("stackrace show {word:<14} {is}\n"));
        say(&lines.concat());
        return Ok(0);
    };
    if verb.json && what != "engine" {
        return Err(Failure::usage("--json works only with engine")
            .next("run stackrace show engine --json, or leave --json out"));
    }
    let text = match what {
        // Both numbers of the word are taken: a user guesses either.
        "layers" | "layer" => layers(name)?,
        "commands" => commands(name)?,
        "workloads" | "workload" => workloads(name)?,
        "profiles" | "profile" => profiles(name)?,
        "purposes" | "purpose" => purposes(name)?,
        "studies" | "study" => studies(name, setting.screen.columns())?,
        "reports" | "report" => stackrace_show::report::ALL
            .iter()
            .map(|kind| format!("{:<14} {} (.{})\n", kind.name, kind.summary, kind.extension))
            .collect(),
        "schema" => format!("{:#}\n", study::schema(&study::Kinds::real())),
        "video-formats" | "video-format" => format!(
            "Rate that each format needs, in MiB/s (ProRes in the first column):\n\n{}",
            formats(None, setting.screen.columns())
        ),
        "drives" | "drive" => drives::text(name)?,
        "engine" => super::engine::render(verb.json),
        "trace" | "traces" => {
            let file = name.ok_or_else(|| {
                Failure::usage("show trace needs a file").next("stackrace show trace app.trace")
            })?;
            super::trace::shown(Path::new(file), setting.screen.columns())?
        }
        other => {
            return Err(unknown(
                "thing to show",
                other,
                &THINGS.map(|(word, _)| word),
            ));
        }
    };
    // What other programs read is shown as it is.
    let is_file = ["schema", "study", "studies"].contains(&what);
    if verb.json || is_file && (name.is_some() || what == "schema") {
        print(&text);
    } else {
        say(&text);
    }
    Ok(0)
}

fn pick<'a, T>(
    what: &str,
    all: &'a [T],
    name: Option<&str>,
    of: impl Fn(&T) -> &'static str,
) -> Result<Vec<&'a T>, Failure> {
    let Some(name) = name else {
        return Ok(all.iter().collect());
    };
    match all.iter().find(|one| of(one) == name) {
        Some(one) => Ok(vec![one]),
        None => Err(unknown(what, name, &all.iter().map(of).collect::<Vec<_>>())),
    }
}

fn layers(name: Option<&str>) -> Result<String, Failure> {
    let kinds = pick("layer", stack::ALL, name, |kind| kind.name)?;
    let whole = name.is_some();
    let text = kinds.into_iter().map(|kind| {
        let fits = format!("{}, {}", takes_words(kind.takes), gives_words(kind.gives));
        entry(
            kind.name,
            kind.summary,
            &fits,
            kind.settings,
            kind.example,
            whole,
        )
    });
    Ok(text.collect())
}

/// Everything that layers run: what root is used for.
fn commands(name: Option<&str>) -> Result<String, Failure> {
    let kinds = pick("layer", stack::ALL, name, |kind| kind.name)?;
    let text = kinds.into_iter().filter_map(|kind| {
        let shown = stack::commands(kind)?;
        let rights = if shown.root { "as root" } else { "as any user" };
        let stack = shown.stack.join("; ");
        // Files that are written are shown whole, below the line that writes them.
        let steps = shown.steps.iter().map(|step| step.replace('\n', "\n    "));
        let steps: String = steps.map(|step| format!("  {step}\n")).collect();
        Some(format!("{} ({rights}): {stack}\n{steps}\n", kind.name))
    });
    let names = "{id} is drawn at each set-up, {loop 1} is the first loop device.\n\n".to_owned();
    let text: String = std::iter::once(names).chain(text).collect();
    Ok(text.trim_end().to_owned() + "\n")
}

fn takes_words(takes: Takes) -> String {
    match takes {
        Takes::Nothing => "bottom layer".to_owned(),
        Takes::Directory => "on a directory".to_owned(),
        Takes::Devices { min: 1, max: 1 } => "on one device".to_owned(),
        Takes::Devices { min, max } if min == max => format!("on {min} devices"),
        Takes::Devices { min, max } => format!("on {min} to {max} devices"),
        Takes::Pool => "on a pool".to_owned(),
        Takes::Anything => "on anything".to_owned(),
    }
}

fn gives_words(gives: GivesKind) -> &'static str {
    match gives {
        GivesKind::Devices => "provides devices",
        GivesKind::Directory => "provides a directory",
        GivesKind::Pool => "provides a pool",
        GivesKind::Bare => "provides bare devices to the workload",
    }
}

fn workloads(name: Option<&str>) -> Result<String, Failure> {
    let kinds = pick("workload", programs::workloads(), name, |kind| kind.name)?;
    Ok(kinds
        .into_iter()
        .map(|kind| {
            entry(
                kind.name,
                kind.summary,
                &format!("semantics: {}", kind.source),
                kind.settings,
                kind.example,
                name.is_some(),
            )
        })
        .collect())
}

fn entry(
    name: &str,
    summary: &str,
    source: &str,
    settings: &[SettingDoc],
    example: &str,
    whole: bool,
) -> String {
    if !whole {
        return format!("{name:<14} {summary}\n");
    }
    let mut text = format!("{name}: {summary}\n");
    if !source.is_empty() {
        text.push_str(&format!("{source}\n"));
    }
    text.push_str(&format!("\n  {example}\n\n"));
    let longest = settings.iter().map(|setting| setting.name.len()).max();
    // As the lists of all layers and workloads have it, unless a name is longer.
    let width = longest.map_or(18, |longest| longest.max(18));
    for setting in settings {
        let default = match setting.fallback {
            Fallback::Required => "required".to_owned(),
            Fallback::Absent => "optional".to_owned(),
            Fallback::Value(default) | Fallback::Computed(default) => format!("default {default}"),
        };
        text.push_str(&format!(
            "  {:<width$} {} ({}; {default})\n",
            setting.name,
            setting.doc,
            takes(setting.kind)
        ));
    }
    text
}

fn takes(kind: Kind) -> String {
    match kind {
        Kind::Bytes => "bytes, \"4 KiB\"".to_owned(),
        Kind::Count => "whole number".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Share => "share, \"5 %\"".to_owned(),
        Kind::Time => "time, \"5 s\"".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Texts => "text or list of texts".to_owned(),
        Kind::Weights => "sizes with weights, \"4 KiB:70, 64 KiB:30\"".to_owned(),
        Kind::Choice(words) => words.join(" | "),
    }
}

fn profiles(name: Option<&str>) -> Result<String, Failure> {
    let kinds = pick("profile", profile::ALL, name, |profile| profile.name)?;
    let entries = |profile: &Profile| {
        let (entries, _) = profile.tree(1.0, 0);
        let bytes = unit::bytes(tree::total_bytes(&entries));
        format!("{} entries, {bytes}", entries.len())
    };
    if name.is_none() {
        let line = |profile: &Profile| {
            let all = entries(profile);
            format!("{:<14} {} ({all})\n", profile.name, profile.summary)
        };
        return Ok(kinds.into_iter().map(line).collect());
    }
    Ok(kinds
        .into_iter()
        .map(|kind| described(kind, &entries(kind)))
        .collect())
}

fn described(profile: &Profile, entries: &str) -> String {
    let mut text = format!("{}: {}\n", profile.name, profile.summary);
    text.push_str(&format!(
        "source: {}\n\n  copy-tree = {{ profile = \"{}\" }}\n\n",
        profile.source, profile.name
    ));
    text.push_str(&format!(
        "  {:<30}{:>8}{:>10}{:>10}{:>10}{:>15}\n",
        "files", "number", "smallest", "largest", "ends in", "compresses to"
    ));
    for part in profile.parts {
        let size = |at: usize| unit::bytes(part.sizes[at].1);
        text.push_str(&format!(
            "  {:<30}{:>8}{:>10}{:>10}{:>10}{:>15}\n",
            part.what,
            part.files,
            size(0),
            size(part.sizes.len() - 1),
            part.ending.rsplit(':').next_back().unwrap_or_default(),
            unit::percent(1.0 / part.compress_ratio),
        ));
    }
    let scaled = match profile.scales {
        // Which of the two grows is a property of the profile: photos get more, images of systems
        // get larger.
        Scales::Files => "the number of files",
        Scales::Sizes => "the sizes of files",
    };
    text.push_str(&format!(
        "\n  {entries}, the same for every seed; scale multiplies {scaled}\n"
    ));
    text
}

fn purposes(name: Option<&str>) -> Result<String, Failure> {
    let mut text = String::new();
    for purpose in pick("purpose", purpose::ALL, name, |purpose| purpose.name)? {
        text.push_str(&format!("{:<14} {}\n", purpose.name, purpose.summary));
        for part in purpose.parts {
            text.push_str(&format!("    {:<24} weight {}\n", part.name, part.weight));
        }
        for one in purpose::published(purpose.name) {
            let source = one.source.unwrap_or_default();
            let required = format!("    check requires {} {}\n", one.metric, one.bound);
            text.push_str(&format!("{required}        {source}\n"));
        }
        let detail = purpose::detail_of(purpose.name);
        if !detail.is_empty() {
            text.push_str(&format!("    check requires {detail}\n"));
        }
    }
    Ok(text)
}

fn studies(name: Option<&str>, columns: usize) -> Result<String, Failure> {
    /// Column that titles begin in.
    const ABOUT: usize = 26;
    let all = study::SHIPPED;
    if let Some(name) = name {
        return Ok(pick("study", all, Some(name), |study| study.0)?
            .first()
            .map_or(String::new(), |study| study.1.to_owned()));
    }
    let title = |text: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("title = "))
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned()
    };
    let mut text = String::new();
    for (name, study) in all {
        text.push_str(&format!("{name:<25} {}\n", title(study)));
        if let Some(card) = stackrace_judge::published::by_name(name) {
            let about = format!(
                "repeats a study of {}; {}",
                card.year, card.counterpart.stands_in
            );
            // As the title itself, which goes on below where there is no room beside the name.
            let indent = if columns >= 2 * ABOUT { ABOUT } else { 4 };
            for line in wrap(&about, columns.saturating_sub(indent).max(1)) {
                text.push_str(&format!("{:<indent$}{line}\n", ""));
            }
        }
    }
    Ok(text)
}
