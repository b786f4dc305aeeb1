//! `stackrace lab` and `stackrace run --lab`: disposable virtual machines.
//!
//! The trials of a study are done inside guests, by this same program; the run itself, with its
//! rounds, its record and its looks, is here, so that whatever becomes of a guest, what was measured
//! until then is on this machine's disk.

use super::afp;
use super::args::{LabShell, LabVerb};
use super::failure::{Failure, INTERRUPTED};
use super::images;
use super::interrupt::catch_interrupt;
use super::setting::Setting;
use super::terminal::{error, print};
use stackrace_base::event::LeftBehind;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_machine::host::{LabDisk, Output};
use stackrace_places::place::lab_guests::{in_the_lab, memory, unable, up};
use stackrace_places::place::worker::StudyWorker;
use stackrace_remote::agent::worker;
use stackrace_remote::lab::LabError;
use stackrace_remote::lab::description::Description;
use stackrace_remote::lab::fault;
use stackrace_remote::lab::machine::LabMachine;
use stackrace_run::prepare::observer::Observer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two questions whether guests are still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Carries out `stackrace lab`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: LabVerb) -> Result<u8, Failure> {
    match verb {
        LabVerb::Build(asked) => images::build(setting, &asked),
        LabVerb::Add(asked) => super::lab_add::exec(setting, &asked),
        LabVerb::List => images::list(setting),
        LabVerb::Shell(verb) => shell(setting, &verb),
        LabVerb::Fault(verb) => super::fault::exec(setting, &verb),
        LabVerb::Clean { systems } => images::remove(&systems),
        LabVerb::Agent => worker::virtual_guest(StudyWorker::default())
            .and_then(|virtual_time| match virtual_time {
                true => Ok(()),
                false => worker::guest(StudyWorker::default()),
            })
            .map(|()| 0)
            .map_err(Failure::internal),
        LabVerb::MountAfp(verb) => afp::exec(&verb),
    }
}

fn shell(setting: &Setting, verb: &LabShell) -> Result<u8, Failure> {
    // Without a command the terminal is handed to the guest.
    let interactive = verb.command.is_empty();
    let description = Description {
        nodes: verb.nodes,
        processors: verb.processors.into(),
        memory_bytes: memory(&verb.memory)?,
        disks: shell_disks(verb)?,
        shell_on: interactive.then_some(1),
        ..Description::default()
    };
    let images = [images::of(&verb.system)?];
    let interrupt = Arc::new(Interrupt::default());
    catch_interrupt(&interrupt, "the guests are ended", LeftBehind::FILES)?;
    let ended = in_the_lab(&setting.session, &images, &[], |sites, accelerator| {
        let site = &sites[0];
        let machine = LabMachine::start(site, &description, accelerator).map_err(unable)?;
        let one = fault::FaultTarget {
            machine: &machine,
            site,
            description: &description,
            name: None,
        };
        let open = |work: &mut dyn FnMut() -> Result<Output, LabError>| {
            let work = || while_wanted(&machine, &interrupt, work);
            fault::while_open_to(std::slice::from_ref(&one), &|_| (), work).map_err(unable)
        };
        if interactive {
            let ended = open(&mut || machine.wait(1).map(|()| Output::default()))?;
            return ended.map(|_| 0).map_err(unable);
        }
        setting.remark(&up(&machine));
        let node = machine.node(1).map_err(unable)?;
        let output = open(&mut || node.exec(&verb.command))?.map_err(unable)?;
        print(&output.stdout);
        error(&output.stderr);
        Ok(output
            .status
            .and_then(|status| u8::try_from(status).ok())
            // A command that a signal ended has no status; it did not succeed.
            .unwrap_or(1))
    });
    match interrupt.raised() {
        // That a guest has ended is what was asked for.
        true => Ok(INTERRUPTED),
        false => ended,
    }
}

/// Works with guests that lose their power as soon as the user wants it to stop.
fn while_wanted<T>(machine: &LabMachine, interrupt: &Interrupt, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) && !interrupt.raised() {
                SystemClock.sleep(LOOK);
            }
            if interrupt.raised() {
                for number in 1..=machine.nodes() {
                    // One that has ended by itself has no power.
                    let _ = machine.cut_power(number);
                }
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
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
            Failure::usage(format!("--sectors {sectors} is not supported"))
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
            model: None,
        })
    });
    disks.collect()
}
