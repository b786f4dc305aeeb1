//! `stackrace lab fault`: something happens to a machine that another terminal runs.

use std::path::PathBuf;

use super::Setting;
use super::args::{DiskWord, FaultVerb, LabFault, LinkWord, PowerWord};
use super::clean;
use super::failure::{self, Failure};
use super::lab::cannot;
use crate::lab::fault::{self, DiskFault, Fault};
use crate::lab::machine;
use crate::unit;

/// `stackrace lab fault`.
pub(super) fn exec(setting: &Setting, verb: &LabFault) -> Result<u8, Failure> {
    let fault = wanted(&verb.what)?;
    let machine = which(setting, verb.machine.as_deref())?;
    fault::ask(&machine, &fault).map_err(cannot)?;
    super::print(&format!("{fault}\n"));
    Ok(0)
}

fn wanted(verb: &FaultVerb) -> Result<Fault, Failure> {
    Ok(match verb {
        FaultVerb::Power { node, what } => Fault::Power {
            node: *node,
            on: *what == PowerWord::On,
        },
        FaultVerb::Link { node, what } => Fault::Link {
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
            if length == 0 {
                return Err(Failure::usage("no request touches 0 bytes")
                    .next("write a --length of at least 1 B"));
            }
            Fault::Disk {
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

/// The directory of the machine that is meant: the only one that runs, or the one that is named.
fn which(setting: &Setting, named: Option<&str>) -> Result<PathBuf, Failure> {
    let mut running = clean::passing_dirs(setting)?;
    running.retain(|place| fault::can_be_asked(&machine::dir_in(place)));
    let names: Vec<String> = running
        .iter()
        .filter_map(|place| Some(place.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let meant = |name: &String| named.is_none_or(|named| name.ends_with(named));
    let places = running.iter().zip(&names);
    let meant: Vec<&PathBuf> = places
        .filter(|(_, name)| meant(name))
        .map(|p| p.0)
        .collect();
    match meant.as_slice() {
        [one] => Ok(machine::dir_in(one)),
        _ if names.is_empty() => Err(Failure::new(
            failure::CANNOT,
            "no machine of the lab runs in this store",
        )
        .next("start one: stackrace lab shell --nodes 2, or stackrace run STUDY --lab")),
        _ => Err(Failure::usage(format!(
            "which machine is meant? {} run: {}",
            names.len(),
            names.join(", ")
        ))
        .next(format!("name one: --machine {}", names[0]))),
    }
}
