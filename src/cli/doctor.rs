//! `stackrace doctor`: what this machine can do, in plain sentences or as JSON.

use super::args::Doctor;
use super::defaults::Defaults;
use super::failure::Failure;
use super::images;
use super::progress::Preparing;
use super::setting::Setting;
use super::terminal::{print_data, say};
use crate::commands::doctor::{self, Ability, Health, Lack, LayerHealth, Mends};
use stackrace_base::event::{again, sudo};
use stackrace_base::unit;
use stackrace_run::prepare::observer::Preparation;

/// Columns before the second one.
const NAME: usize = 16;

/// Carries out `stackrace doctor`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Doctor, defaults: &Defaults) -> Result<u8, Failure> {
    // Without a home there are no images, and all else can still be said.
    let cache = images::place();
    let doing = Preparing::drawn(setting.quiet);
    doing.now("looking at this machine, and how busy it is", "");
    let health = doctor::examine(&setting.session, cache.as_ref(), !verb.quick);
    drop(doing);
    if verb.json {
        let text = serde_json::to_string_pretty(&health);
        let text = text.map_err(|error| Failure::internal(error.to_string()))?;
        print_data(format!("{text}\n").as_bytes());
    } else {
        say(&text(&health, defaults));
    }
    // What is missing here is a finding, and no failure: most studies need little of it.
    Ok(0)
}

/// A row of two columns.
fn row(name: &str, what: &str) -> String {
    format!("{name:<NAME$}{what}\n")
}

fn next(advice: &str) -> String {
    match advice.is_empty() {
        true => String::new(),
        false => row("", &format!("next: {advice}")),
    }
}

fn text(health: &Health, defaults: &Defaults) -> String {
    let mut text = machine(health, defaults);
    // What most users came for stands first; what a machine does meanwhile is the smallest part.
    text.push_str(&layers(health));
    for (part, missing) in health
        .parts
        .iter()
        .chain(&health.images)
        .map(|part| (&part.part, &part.missing))
    {
        if missing.is_empty() {
            continue;
        }
        text.push_str(&format!("{part}: {}\n", clauses(missing)));
        // What a package mends stands in the one line at the end.
        let others = missing.iter().filter(|lack| lack.mends != Mends::Package);
        text.extend(others.map(|lack| next(&lack.next)));
    }
    let ready = health.parts.iter().chain(&health.images);
    let ready: Vec<&str> = ready
        .filter(|part| part.missing.is_empty())
        .map(|part| part.part.as_str())
        .collect();
    if !ready.is_empty() {
        // Said too: silence could mean that it was not looked at.
        text.push_str(&format!("ready: {}\n", ready.join(", ")));
    }
    if !health.install.is_empty() {
        let all = health.install.join(" ");
        text.push_str(&match health.apt {
            true => format!("\nTo have all that this system offers: apt install {all}\n"),
            false => format!("\nPackages that are missing (Debian's names): {all}\n"),
        });
    }
    text.push('\n');
    text.push_str(&noise(health));
    text.push_str(&left(health));
    text
}

fn machine(health: &Health, defaults: &Defaults) -> String {
    let fact = |name: &str| {
        let facts = &mut health.machine.iter();
        facts
            .find(|(known, _)| known == name)
            .map_or("unknown", |(_, value)| value)
    };
    // Advice follows only where there is something to do about it.
    let ability = |name: &str, ability: &Ability| {
        row(name, ability.why.as_deref().unwrap_or("available")) + &next(&ability.next)
    };
    let store = match (&health.store.path, health.store.free_bytes) {
        (Some(path), Some(free)) => format!("{path}, {} free", unit::bytes(free)),
        (Some(path), None) => {
            format!("{path} is no directory that can be used: name one with --store DIR")
        }
        (None, _) => "no place for results: name one with --store DIR".to_owned(),
    };
    let rights = match health.root {
        true => "root: layers can be set up and torn down",
        false => "not root: compare, load and every layer below that needs no root",
    };
    [
        row(
            "system",
            &format!("{}, {}", fact("distribution"), fact("kernel")),
        ),
        match health.kernel.available {
            true => String::new(),
            false => ability("/proc", &health.kernel),
        },
        row("processors", fact("processors")),
        row("rights", rights),
        row("results", &store),
        row("defaults", &defaults.words()),
        ability("io_uring", &health.io_uring),
        ability("KVM", &health.kvm),
        "\n".to_owned(),
    ]
    .concat()
}

fn layers(health: &Health) -> String {
    if !health.kernel.available {
        return "Layers for this machine: not known without /proc\n\n".to_owned();
    }
    let names = |of: &dyn Fn(&&LayerHealth) -> bool| {
        let names: Vec<&str> = health
            .layers
            .iter()
            .filter(of)
            .map(|one| one.layer)
            .collect();
        names.join(", ")
    };
    let ready = |one: &&LayerHealth| one.missing.is_empty();
    // Rights are had with one word; packages and kernels are not, so they are told apart.
    let here = |one: &LayerHealth| health.root || !one.root;
    let as_root = format!("As root ({})", sudo());
    let mut text = String::new();
    for (head, names) in [
        (
            "Layers for this machine",
            names(&|one| ready(one) && one.machines == 1 && here(one)),
        ),
        (
            "With a second machine (--peer, or the lab)",
            names(&|one| ready(one) && one.machines > 1 && here(one)),
        ),
        (&*as_root, names(&|one| ready(one) && !here(one))),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("{head}: {names}\n"));
        }
    }
    let lacking: Vec<&LayerHealth> = health.layers.iter().filter(|one| !ready(one)).collect();
    if !lacking.is_empty() {
        text.push_str("\nLayers that lack something here:\n");
    }
    for one in lacking {
        text.push_str(&row(&format!("  {}", one.layer), &clauses(&one.missing)));
    }
    // Another kernel is not installed for a comparison; a guest is.
    if health
        .layers
        .iter()
        .any(|one| one.missing.iter().any(|lack| lack.mends == Mends::Kernel))
    {
        text.push_str("The lab has a kernel with all of them: stackrace run STUDY --lab\n");
    }
    text.push('\n');
    text
}

/// The missing parts, in one line.
fn clauses(missing: &[Lack]) -> String {
    let clauses: Vec<&str> = missing.iter().map(|lack| lack.what.as_str()).collect();
    clauses.join("; ")
}

fn noise(health: &Health) -> String {
    let Some(noise) = &health.noise else {
        // Nothing was heard because nothing was listened to.
        return String::new();
    };
    let words = noise.words();
    // A busy machine is no reason not to measure: the intervals grow with it.
    let seconds = noise.seconds;
    row(
        "noise",
        &match words.is_empty() {
            true => format!("quiet: in {seconds:.0} s nothing else used processors or disk much"),
            false => format!(
                "in {seconds:.0} s {}; every run is judged with its noise, it only takes longer",
                words.join(", ")
            ),
        },
    )
}

fn left(health: &Health) -> String {
    if health.left.is_empty() {
        return row("left behind", "nothing");
    }
    let mut text: String = health
        .left
        .iter()
        .map(|line| row("left behind", line))
        .collect();
    text.push_str(&next(&again(&["clean"])));
    text
}
