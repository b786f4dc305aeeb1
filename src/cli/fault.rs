//! `stackrace lab fault`: something happens to a machine that another terminal runs.

use std::path::{Path, PathBuf};

use super::args::{DiskWord, FaultVerb, LabFault, LinkWord, PowerWord};
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::print;
use stackrace_base::unit;
use stackrace_places::place::lab_guests::unable;
use stackrace_remote::lab::fault::{self, DiskFault, MachineFault};
use stackrace_remote::lab::machine;
use stackrace_run::prepare::temporary;

/// Carries out `stackrace lab fault`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: &LabFault) -> Result<u8, Failure> {
    let fault = wanted(&verb.what)?;
    let machine = which(setting, verb.machine.as_deref())?;
    fault::ask(&machine, &fault).map_err(unable)?;
    print(&format!("{fault}\n"));
    Ok(0)
}

fn wanted(verb: &FaultVerb) -> Result<MachineFault, Failure> {
    Ok(match verb {
        FaultVerb::Power { node, what } => MachineFault::Power {
            node: *node,
            on: *what == PowerWord::On,
        },
        FaultVerb::Link { node, what } => MachineFault::Link {
            node: *node,
            cut: *what == LinkWord::Cut,
        },
        FaultVerb::Disk {
            node,
            serial,
            what,
            at,
            length,
        } => {
            if at.is_some() && *what != DiskWord::Fail {
                return Err(Failure::usage("--at says which requests fail")
                    .next("write fail, or leave --at out"));
            }
            let bytes = |name: &str, text: &str| {
                unit::parse_bytes(text).map_err(|why| Failure::usage(format!("{name}: {why}")))
            };
            let at = at.as_ref().map(|at| bytes("--at", at)).transpose()?;
            let length = bytes("--length", length)?;
            // Such a fault would be accepted and never happen.
            if length == 0 {
                return Err(Failure::usage("no request touches 0 bytes")
                    .next("write a --length of at least 1 B"));
            }
            MachineFault::Disk {
                node: *node,
                serial: serial.clone(),
                what: match what {
                    DiskWord::Pull => DiskFault::Pull,
                    DiskWord::Mend => DiskFault::Mend,
                    DiskWord::Fail => DiskFault::Fail {
                        bytes: at.map(|at| (at, length)),
                    },
                },
            }
        }
    })
}

/// The directory of the machine that is meant: the only one that runs, or the named one.
fn which(setting: &Setting, named: Option<&str>) -> Result<PathBuf, Failure> {
    let begun = temporary::dirs(&setting.session)?;
    let mut running: Vec<PathBuf> = begun.iter().flat_map(|b| machine::dirs_in(b)).collect();
    // What a dead run left behind has a directory, but no monitor that answers.
    running.retain(|dir| fault::can_be_asked(dir));
    let names: Vec<String> = running.iter().map(|dir| name(dir)).collect();
    // The end of the name is what differs between machines.
    let meant = |name: &String| named.is_none_or(|named| name.ends_with(named));
    let machines = running.iter().zip(&names);
    let meant: Vec<&PathBuf> = machines
        .filter(|(_, name)| meant(name))
        .map(|machine| machine.0)
        .collect();
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        _ if names.is_empty() => Err(Failure::unable("no machine of the lab runs in this store")
            .next("start one: stackrace lab shell --nodes 2, or stackrace run STUDY --lab")),
        _ => Err(Failure::usage(format!(
            "which machine is meant? {} run: {}",
            names.len(),
            names.join(", ")
        ))
        .next(format!("name one: --machine {}", names[0]))),
    }
}

/// What a machine is called: the run it belongs to, and its system.
fn name(dir: &Path) -> String {
    let parts = dir.parent().map(|place| {
        let parts = place.components().rev().take(2);
        let parts: Vec<_> = parts
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        parts.into_iter().rev().collect::<Vec<_>>().join("/")
    });
    parts.unwrap_or_default()
}
