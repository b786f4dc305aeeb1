//! What a study needs of the lab: looked at before the first guest starts, and told by `plan`.

use stackrace_base::unit::ShownPath;
use std::path::Path;
use std::sync::Arc;

use crate::place::lab_guests::{Guest, Images, SystemImage};
use crate::place::virtual_lab::{self, LabDrives};
use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_machine::host::{Host, HostError, Needs, local::LocalHost};
use stackrace_remote::lab::image::wants_zfs;
use stackrace_remote::lab::{command, postgresql, system};
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::preflight;
use stackrace_run::prepare::study_file::part;
use stackrace_study::study::Study;

/// Lists what is missing for a study in the lab, all of it, each with what to do; empty if nothing is.
pub fn missing(
    context: &Context,
    study: &Study,
    guests: &[Guest],
    images: Images<'_>,
) -> Vec<String> {
    let host = LocalHost::new(Arc::new(|_| ()));
    // Without QEMU nothing else matters, but the user gets the whole list at once.
    let tools = host.missing(&Needs {
        tools: &[command::PROGRAM],
        ..Needs::default()
    });
    let lines = tools
        .iter()
        .map(|error| format!("{error}; {}", error.next()));
    let mut lines: Vec<String> = lines.collect();
    for guest in guests {
        let part = match part(study, guest.place.as_deref()) {
            Ok(part) => part,
            Err(failure) => {
                lines.push(joined(failure, &[]));
                continue;
            }
        };
        // Whatever the image has: the guests run this very program.
        for line in left_out(&needs(&part)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        match images(&guest.system) {
            Ok(image) => lines.extend(of_image(&needs(&part), &image)),
            // It is built with all that the study needs, and not twice.
            Err(failure) => lines.push(joined(failure, &needs(&part))),
        }
    }
    // The plan of a run in virtual time counts the content of modelled drives itself.
    if virtual_lab::disks(study) == LabDrives::Emulated {
        lines.extend(no_room(context, study));
    }
    lines
}

/// A failure as one line; the command that builds an image gets what else is needed.
fn joined(failure: Failure, needs: &[Needs]) -> String {
    let (text, next) = failure.into_parts();
    let mut line = format!("{text}; {next}");
    if system::ALL
        .iter()
        .any(|system| next.ends_with(&system.build()))
    {
        for (_, option) in additions(needs) {
            line.push_str(&format!(" {option}"));
        }
    }
    line
}

/// Lists what is built beside an image for such needs, each with the option of `lab build`.
fn additions(needs: &[Needs]) -> Vec<(&'static str, &'static str)> {
    let zfs = needs
        .iter()
        .any(wants_zfs)
        .then_some(("the ZFS modules", "--zfs"));
    let postgresql = needs.iter().any(postgresql::wanted);
    let postgresql = postgresql.then_some(("PostgreSQL", "--postgresql"));
    zfs.into_iter().chain(postgresql).collect()
}

/// Refuses a study that the lab cannot carry out, before the first guest starts.
///
/// # Errors
/// All that is missing.
pub fn check(
    context: &Context,
    study: &Study,
    guests: &[Guest],
    images: Images<'_>,
) -> Result<(), Failure> {
    let missing = missing(context, study, guests, images);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Failure::unable(missing.join("\n"))),
    }
}

/// Lists the needs of the stacks and the workloads of a study.
fn needs(study: &Study) -> Vec<Needs> {
    let each = study.configurations.iter().flat_map(|one| {
        let stack = one.stack.needs().into_iter().map(|(_, _, needs)| needs);
        let workloads = one.workloads.iter().map(|workload| workload.needs());
        stack.chain(workloads).collect::<Vec<Needs>>()
    });
    let mut all: Vec<Needs> = Vec::new();
    for needs in each {
        // Configurations share most of their layers; each lack is said once.
        if !all.contains(&needs) {
            all.push(needs);
        }
    }
    all
}

/// Parts of this program that the study needs and that were left out when it was built.
fn left_out(needs: &[Needs]) -> impl Iterator<Item = String> {
    let parts = needs.iter().filter_map(|needs| needs.part);
    let left_out = parts.filter(|part| !part.built).map(HostError::NotBuilt);
    left_out.map(|error| format!("{error}; {}", error.next()))
}

/// Lists what the guests of a system lack.
fn of_image(needs: &[Needs], image: &SystemImage) -> Vec<String> {
    let system = image.system;
    let mut lines: Vec<String> = Vec::new();
    let mut build = additions(needs);
    build.retain(|(_, option)| match *option {
        "--zfs" => image.zfs.is_none(),
        _ => image.postgresql.is_none(),
    });
    if !build.is_empty() {
        let what: Vec<&str> = build.iter().map(|(what, _)| *what).collect();
        let options: Vec<&str> = build.iter().map(|(_, option)| *option).collect();
        lines.push(format!(
            "the study needs {}, which the lab does not have for {system}; build it once: {} {}",
            what.join(" and "),
            system.build(),
            options.join(" ")
        ));
    }
    for package in needs.iter().flat_map(|needs| needs.packages) {
        let line = match package.only_on {
            Some(only) if !system.has(package) => {
                format!(
                    "{system} has no {}; take another system: --system {only}",
                    package.name
                )
            }
            // Pinned ones and those of the layers above are in no list of packages.
            None if !postgresql::has(package)
                && package.pinned.is_none()
                && image.image.package(package.name).is_none() =>
            {
                format!(
                    "guests of the lab have no {}; run the study without --lab, on a machine that has it",
                    package.name
                )
            }
            _ => continue,
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Says that the files of the guests do not fit where runs are kept; `None` if they do.
fn no_room(context: &Context, study: &Study) -> Option<String> {
    let needed = study.trial_disk_bytes();
    let free = preflight::free_for_runs(context).ok()?;
    let store = context.store_dir().ok();
    let store = store.as_deref().unwrap_or(Path::new("the store"));
    (needed > free).then(|| {
        format!(
            "{} has {} free, and the disks of a guest take {}; free space there, or name another place: --store DIR",
            store.shown(),
            unit::bytes(free),
            unit::bytes(needed)
        )
    })
}
