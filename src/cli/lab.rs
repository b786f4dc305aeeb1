//! `stackrace lab` and `stackrace run --lab`: disposable virtual machines.
//!
//! The trials of a study are done inside guests, by this same program; the run itself, with its
//! rounds, its record and its looks, is here, so that whatever becomes of a guest, what was measured
//! until then is on this machine's disk.

mod run;

pub(super) use run::{made, resume, run};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Setting;
use super::args::{LabShell, LabVerb};
use super::clean;
use super::execute;
use super::failure::{self, Failure};
use crate::agent::serve;
use crate::host::{Host, LabDisk, local::LocalHost};
use crate::journal::Journal;
use crate::lab::LabError;
use crate::lab::image::{self, Builder, Image};
use crate::lab::machine::{self, Accelerator, Description, Machine, Site};
use crate::lab::peer;
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
        LabVerb::Build { zfs } => build(setting, zfs),
        LabVerb::List => list(setting),
        LabVerb::Shell(verb) => shell(setting, &verb),
        LabVerb::Clean => remove(),
        LabVerb::Agent => serve::guest(peer::own_address())
            .map(|()| 0)
            .map_err(Failure::internal),
    }
}

/// Where images are for every user of a machine; root puts them there.
const SHARED: &str = "/var/cache/stackrace/lab";

/// Where images are kept.
fn cache(host: &dyn Host) -> Result<PathBuf, Failure> {
    let some = |name: &str| super::variable(name).filter(|value| !value.is_empty());
    let shared = PathBuf::from(SHARED);
    match (some("XDG_CACHE_HOME"), some("HOME")) {
        (Some(cache), _) => Ok(PathBuf::from(cache).join("stackrace/lab")),
        (None, _) if host.is_root() || host.is_dir(&shared) => Ok(shared),
        (None, Some(home)) => Ok(PathBuf::from(home).join(".cache/stackrace/lab")),
        (None, None) => Err(Failure::usage("no place for images: HOME is not set")
            .next("name one: XDG_CACHE_HOME=DIR stackrace …")),
    }
}

fn cannot(error: LabError) -> Failure {
    Failure::new(failure::CANNOT, error.to_string()).next(error.next())
}

fn quiet_host() -> LocalHost {
    LocalHost::new(Arc::new(|_| ()))
}

fn tell(setting: &Setting, text: &str) {
    if !setting.quiet {
        super::error(&format!("{text}\n"));
    }
}

fn build(setting: &Setting, zfs: bool) -> Result<u8, Failure> {
    let host = quiet_host();
    let cache = cache(&host)?;
    std::fs::create_dir_all(&cache)
        .map_err(|error| Failure::refused(format!("cannot make {}: {error}", cache.display())))?;
    clean::passing(setting, &host, |journal, id| {
        let builder = Builder {
            host: &host,
            journal,
            cache: &cache,
            mark: id,
        };
        tell(setting, "root file system and kernel …");
        let image = builder.image().map_err(cannot)?;
        super::print(&one_line(&image));
        if zfs {
            tell(setting, "ZFS modules …");
            super::print(&one_line(&builder.zfs(&image).map_err(cannot)?));
        }
        Ok(0)
    })
}

fn one_line(image: &Image) -> String {
    format!(
        "{}  {}, Linux {}, {}\n",
        image.name(),
        unit::bytes(image.bytes()),
        image.kernel(),
        image.dir().display()
    )
}

fn list(setting: &Setting) -> Result<u8, Failure> {
    let mut text = String::new();
    let cache = cache(&quiet_host())?;
    let images = image::all(&cache);
    let wanted = image::find(&cache).ok();
    for image in &images {
        image.verify().map_err(cannot)?;
        text.push_str(&one_line(image));
    }
    if wanted.is_none() {
        text.push_str(&format!(
            "{} of this program's recipe is not built: sudo stackrace lab build\n",
            image::wanted()
        ));
    }
    for machine in clean::passing_dirs(setting)? {
        for dir in machine::dirs_in(&machine) {
            let state = match Journal::open(&machine.join("journal.jsonl")) {
                Ok(_) => "left behind, `stackrace clean` removes it",
                Err(_) => "running",
            };
            text.push_str(&format!(
                "machine  {}, {state}, {}\n",
                unit::bytes(machine::bytes_in(&dir)),
                dir.display()
            ));
        }
    }
    super::print(&text);
    Ok(0)
}

fn remove() -> Result<u8, Failure> {
    let images = image::all(&cache(&quiet_host())?);
    for image in &images {
        let dir = image.dir();
        std::fs::remove_dir_all(dir).map_err(|error| {
            Failure::internal(format!("cannot remove {}: {error}", dir.display()))
        })?;
        super::print(&format!("removed {}", one_line(image)));
    }
    if images.is_empty() {
        super::print("no images\n");
    }
    Ok(0)
}

/// Calls with what the machine of each system is made with, and the accelerator that works; whatever
/// is made is gone when this returns.
fn in_the_lab<T>(
    setting: &Setting,
    systems: &[Option<&str>],
    work: impl FnOnce(&[Site<'_>], Accelerator) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let host = quiet_host();
    let cache = cache(&host)?;
    let images = systems.iter().map(|_| {
        let image = image::find(&cache).map_err(cannot)?;
        let zfs = image::find_zfs(&cache, &image).map_err(cannot)?;
        Ok((image, zfs))
    });
    let images: Vec<_> = images.collect::<Result<_, Failure>>()?;
    let known = setting.store()?.join(ACCELERATOR);
    clean::passing(setting, &host, |journal, id| {
        let mut sites = Vec::new();
        for (number, (image, zfs)) in (1..).zip(&images) {
            let dir = clean::passing_dir(setting, id)?.join(format!("place-{number}"));
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
    in_the_lab(setting, &[None], |sites, accelerator| {
        let mut machine = Machine::start(&sites[0], &description, accelerator).map_err(cannot)?;
        if interactive {
            machine.wait(1).map_err(cannot)?;
            return Ok(0);
        }
        tell(setting, &up(&machine));
        let node = machine.node(1).map_err(cannot)?;
        let output = node.exec(&verb.command).map_err(cannot)?;
        super::print(&output.stdout);
        super::error(&output.stderr);
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
        })
    });
    disks.collect()
}
