//! `stackrace lab` and `stackrace run --lab`: disposable virtual machines.
//!
//! The trials of a study are done inside guests, by this same program; the run itself, with its
//! rounds, its record and its looks, is here, so that whatever becomes of a guest, what was measured
//! until then is on this machine's disk.

mod images;
mod run;

pub(super) use run::{made, resume, run};

use std::path::Path;
use std::sync::Arc;

use super::afp;
use super::args::{LabShell, LabVerb};
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::{error, print};
use crate::agent::serve;
use crate::host::{Host, LabDisk, Output, local::LocalHost};
use crate::lab::LabError;
use crate::lab::fault;
use crate::lab::machine::{self, Accelerator, Description, Machine, Site};
use crate::lab::peer;
use crate::session::temporary;
use crate::unit;

/// Name of the fact that says a run was made in the lab.
pub(super) const LAB: &str = "lab";

/// Where in the store it is kept which accelerator works here.
const ACCELERATOR: &str = "lab-accelerator";

/// This program, whatever became of its file.
const PROGRAM: &str = "/proc/self/exe";

/// `stackrace lab`.
pub(super) fn exec(setting: &Setting, verb: LabVerb) -> Result<u8, Failure> {
    match verb {
        LabVerb::Build { systems, zfs } => images::build(setting, &systems, zfs),
        LabVerb::List => images::list(setting),
        LabVerb::Shell(verb) => shell(setting, &verb),
        LabVerb::Fault(verb) => super::fault::exec(setting, &verb),
        LabVerb::Clean { systems } => images::remove(&systems),
        LabVerb::Agent => serve::guest(peer::own_address())
            .map(|()| 0)
            .map_err(Failure::internal),
        LabVerb::Load { order } => crate::run::carry_out(&order)
            .map(|()| 0)
            .map_err(Failure::internal),
        LabVerb::MountAfp(verb) => afp::exec(&verb),
    }
}

pub(super) fn cannot(error: LabError) -> Failure {
    Failure::unable(error.to_string()).next(error.next())
}

fn quiet_host() -> LocalHost {
    LocalHost::new(Arc::new(|_| ()))
}

fn tell(setting: &Setting, text: &str) {
    if !setting.quiet {
        error(&format!("{text}\n"));
    }
}

/// Calls with what the machine of each system is made with, and the accelerator that works; whatever
/// is made is gone when this returns.
fn in_the_lab<T>(
    setting: &Setting,
    systems: &[&str],
    work: impl FnOnce(&[Site<'_>], Accelerator) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let host = quiet_host();
    let images = systems.iter().map(|system| images::of(system));
    let images: Vec<_> = images.collect::<Result<_, Failure>>()?;
    let known = setting.session.store_dir()?.join(ACCELERATOR);
    temporary::work(&setting.session, &host, |journal, id| {
        let mut sites = Vec::new();
        for (number, (image, zfs)) in (1..).zip(&images) {
            let dir = temporary::dir(&setting.session, id)?.join(format!("place-{number}"));
            host.create_dir(&dir)
                .map_err(|error| cannot(error.into()))?;
            sites.push(Site {
                host: &host,
                journal,
                dir,
                image,
                zfs: zfs.as_ref(),
                program: Path::new(PROGRAM),
            });
        }
        let accelerator = machine::accelerator(&sites[0], &known).map_err(cannot)?;
        work(&sites, accelerator)
    })
}

fn memory(text: &str) -> Result<u64, Failure> {
    unit::parse_bytes(text).map_err(|why| Failure::usage(format!("--memory: {why}")))
}

fn shell(setting: &Setting, verb: &LabShell) -> Result<u8, Failure> {
    let interactive = verb.command.is_empty();
    let description = Description {
        nodes: verb.nodes,
        memory_bytes: memory(&verb.memory)?,
        disks: shell_disks(verb)?,
        shell_on: interactive.then_some(1),
        ..Description::default()
    };
    in_the_lab(setting, &[&verb.system], |sites, accelerator| {
        let site = &sites[0];
        let machine = Machine::start(site, &description, accelerator).map_err(cannot)?;
        let one = fault::Open {
            machine: &machine,
            site,
            description: &description,
            name: None,
        };
        let open = |work: &mut dyn FnMut() -> Result<Output, LabError>| {
            fault::while_open_to(std::slice::from_ref(&one), &|_| (), work).map_err(cannot)
        };
        if interactive {
            let ended = open(&mut || machine.wait(1).map(|()| Output::default()))?;
            return ended.map(|_| 0).map_err(cannot);
        }
        tell(setting, &up(&machine));
        let node = machine.node(1).map_err(cannot)?;
        let output = open(&mut || node.exec(&verb.command))?.map_err(cannot)?;
        print(&output.stdout);
        error(&output.stderr);
        Ok(output
            .status
            .and_then(|status| u8::try_from(status).ok())
            .unwrap_or(1))
    })
}

/// `lab: up in 4.1 s (tcg)`.
fn up(machine: &Machine) -> String {
    format!(
        "lab: up in {} ({})",
        unit::time_ns(machine.boot_ns() as f64),
        machine.accelerator().name()
    )
}

fn shell_disks(verb: &LabShell) -> Result<Vec<LabDisk>, Failure> {
    let sectors = verb
        .sectors
        .split_once('/')
        .and_then(|(logical, physical)| {
            let [logical, physical] = [logical, physical].map(|text| text.trim().parse().ok());
            Some((logical?, physical?))
        });
    let Some((logical_sector, physical_sector)) = sectors else {
        let sectors = &verb.sectors;
        return Err(
            Failure::usage(format!("--sectors {sectors} makes no sense"))
                .next("write 512/512, 512/4096 or 4096/4096"),
        );
    };
    let disks = verb.disks.iter().zip(1..).map(|(text, number)| {
        let bytes =
            unit::parse_bytes(text).map_err(|why| Failure::usage(format!("--disk: {why}")))?;
        Ok(LabDisk {
            serial: format!("disk-{number}"),
            bytes,
            logical_sector,
            physical_sector,
            rate: None,
            requests: None,
            latency_ns: None,
        })
    });
    disks.collect()
}
