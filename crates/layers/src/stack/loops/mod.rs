//! Block devices on files: throw-away disks, safe anywhere.
//!
//! The files lie in a private directory and go with the stack. What the kernel really set up
//! (sector size, direct I/O) is read back; a device that is not what was asked is an error.

mod imagined;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod undo;

use crate::stack::dir;
use stackrace_base::event::Fact;
use stackrace_base::owned::held::HeldDir;
use stackrace_base::setting::{ChoiceDoc, OverShell, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_base::unit::ShownPath;
use stackrace_foundation::foundation::{
    DEVICES_MAX, Device, Gives, GivesKind, Layer, LayerError, LayerKind, Origin, Setup,
    StandingLayer, Takes, block,
};
use stackrace_machine::host::imagined::Tool;
use stackrace_machine::host::{Driver, Filling, Host, HostError, Needs, Package, argv};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Sector sizes a loop device can have.
const SECTORS: [u64; 4] = [512, 1024, 2048, 4096];

/// Smallest disk file: below it no file system fits, and the mistake is a unit.
const SIZE_MIN: u64 = 1 << 20;

/// Loop devices.
pub(super) const KIND: LayerKind = LayerKind {
    name: "loop",
    summary: "Throw-away disks: loop devices on files that are made for the stack and removed with it.",
    settings: &[
        SettingDoc::bytes("size", "", "Size of each disk.").required(),
        SettingDoc::count("count", "1", "How many disks."),
        SettingDoc::text(
            "directory",
            "",
            "Where the files are made: their file system and disk are part of what is measured; the run's own directory unless given.",
        ),
        LAID_OUT.doc,
        SettingDoc::bytes(
            "logical-sector",
            "512",
            "Smallest unit the disks read and write: 512, 1024, 2048 or 4096 bytes.",
        ),
        SettingDoc::bytes(
            "physical-sector",
            "",
            "Must equal logical-sector: a loop device reports no other.",
        ),
        SettingDoc::flag(
            "direct-io",
            "true",
            "Whether the disks bypass the page cache of the file system their files lie in.",
        ),
    ],
    takes: Takes::Nothing,
    gives: GivesKind::Devices,
    example: "loop = { size = \"1 GiB\", count = 2, logical-sector = 4096 }",
    parse,
    packages: &[Package::new("mount", &["losetup"])],
    undo: &[undo::DETACH],
    kept_by_drives: &["size", "count"],
    imagined: &[Tool::new("losetup", imagined::losetup)],
    over_shell: OverShell::Nearest("native, which makes its own device on a file"),
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// The driver of the kernel for loop devices.
pub(super) const DRIVER: Driver = Driver {
    module: "loop",
    shown_by: "/dev/loop-control",
    what: "loop devices (/dev/loop-control is not there)",
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaidOut {
    No,
    Allocated,
    Written,
}

const LAID_OUT: ChoiceDoc<LaidOut> = choice!(
    "laid-out",
    [
        "no" => LaidOut::No,
        "allocated" => LaidOut::Allocated,
        "written" => LaidOut::Written,
    ],
    "allocated",
    "What the files hold: no: one hole; allocated: blocks reserved by fallocate, not written; written: random bytes, written and synced.",
);

impl LaidOut {
    fn words(self) -> &'static str {
        match self {
            Self::No => "no (one hole)",
            Self::Allocated => "allocated (fallocate, not written)",
            Self::Written => "written (random bytes, synced)",
        }
    }
}

struct Loop {
    directory: Option<PathBuf>,
    size: u64,
    count: usize,
    laid_out: LaidOut,
    sector: u64,
    direct_io: bool,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let sector = sector(settings)?;
    let size = settings.bytes("size")?;
    if size < SIZE_MIN || !size.is_multiple_of(sector) {
        return Err(Refusal::at(
            settings.span_of("size"),
            format!("{size} bytes is not a whole number of sectors of {sector} B"),
            "write a size of at least 1 MiB, like \"1 GiB\"",
        ));
    }
    let count = settings.count("count")?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if !(1..=DEVICES_MAX).contains(&count) {
        return Err(Refusal::at(
            settings.span_of("count"),
            format!("{count} disks cannot be made"),
            format!("write 1 to {DEVICES_MAX}"),
        ));
    }
    Ok(Box::new(Loop {
        directory: settings.optional_text("directory")?.map(PathBuf::from),
        size,
        count,
        laid_out: settings.choice(LAID_OUT)?,
        sector,
        direct_io: settings.flag("direct-io")?,
    }))
}

fn sector(settings: &Settings) -> Result<u64, Refusal> {
    let logical = settings.bytes("logical-sector")?;
    if !SECTORS.contains(&logical) {
        return Err(Refusal::at(
            settings.span_of("logical-sector"),
            format!("a loop device has no sectors of {logical} bytes"),
            "write 512, 1024, 2048 or 4096",
        ));
    }
    match settings.optional_bytes("physical-sector")? {
        Some(physical) if physical != logical => Err(Refusal::at(
            settings.span_of("physical-sector"),
            format!(
                "a loop device always reports its logical sector size ({logical} B) as its physical one"
            ),
            "leave physical-sector out, or use disks of the lab, which can differ",
        )),
        _ => Ok(logical),
    }
}

impl Layer for Loop {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("loop, count = {}", self.count)
    }

    fn describe_asked(&self) -> String {
        let place = match &self.directory {
            Some(directory) => directory.shown().to_string(),
            None => "the run's directory".to_string(),
        };
        format!(
            "{} loop {} of {} in {place}, {} B sectors, laid out: {}, direct I/O {}",
            self.count,
            if self.count == 1 { "device" } else { "devices" },
            unit::bytes(self.size),
            self.sector,
            self.laid_out.words(),
            on_off(self.direct_io)
        )
    }

    fn devices_given(&self) -> Option<usize> {
        Some(self.count)
    }

    fn needs(&self) -> Needs {
        Needs {
            drivers: &[DRIVER],
            ..Needs::as_root(&["losetup"], KIND.packages)
        }
    }

    fn disk_needed(&self) -> Option<(PathBuf, u64)> {
        Some((
            self.directory.clone().unwrap_or_default(),
            self.size.saturating_mul(self.count as u64),
        ))
    }

    fn set_up(&self, setup: &mut Setup<'_>, _below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let directory = match &self.directory {
            Some(directory) => dir::usable(host, directory)?,
            None => setup.scratch()?,
        };
        self.check_space(host, &directory)?;
        // A directory of their own: undoing removes nothing else.
        let private = directory.join(setup.name("disks"));
        setup.create_dir(&private)?;
        let held = host.hold_dir(&private)?;
        setup.lies_in(&directory);
        let mut devices = Vec::new();
        let mut facts = self.facts_below(host, &directory)?;
        for number in 1..=self.count {
            let file = private.join(format!("disk-{number}"));
            let device = self.make(setup, &file, number as u64)?;
            if let Some(held) = &held {
                check_backing(host, held, &file, &device)?;
            }
            facts.push(read_back(host, &device, self)?);
            devices.push(Device {
                path: device,
                origin: Origin::LoopOn(file),
            });
        }
        // The counters of the disks below are read beside those of the loop devices.
        let below = block::under_mount(host, &host.mount_of(&directory)?);
        Ok(StandingLayer {
            disks: block::disks(host, &below),
            ..StandingLayer::new("loop", facts, Gives::Devices(devices))
        })
    }
}

impl Loop {
    fn check_space(&self, host: &dyn Host, directory: &Path) -> Result<(), LayerError> {
        let needed = self.size.saturating_mul(self.count as u64);
        let free = host.free_bytes(directory)?;
        if needed <= free {
            return Ok(());
        }
        Err(LayerError::refused(
            format!(
                "{} × {} = {} are asked for, {} are free in {}",
                self.count,
                unit::bytes(self.size),
                unit::bytes(needed),
                unit::bytes(free),
                directory.shown()
            ),
            "ask for smaller or fewer disks, or name another directory",
        ))
    }

    fn make(&self, setup: &mut Setup<'_>, file: &Path, number: u64) -> Result<PathBuf, LayerError> {
        let filling = match self.laid_out {
            LaidOut::No => Filling::Sparse,
            LaidOut::Allocated => Filling::Allocated,
            LaidOut::Written => Filling::Written {
                seed: setup.seed().wrapping_add(number),
            },
        };
        setup
            .create_file(file, self.size, filling)
            .map_err(cannot_allocate)?;
        let direct = format!("--direct-io={}", on_off(self.direct_io));
        let options = [direct, "--sector-size".to_string(), self.sector.to_string()];
        attach(setup, &options, file)
    }

    fn facts_below(&self, host: &dyn Host, directory: &Path) -> Result<Vec<Fact>, LayerError> {
        let mount = host.mount_of(directory)?;
        let disks = block::disks(host, &block::under_mount(host, &mount));
        let mut facts = vec![
            Fact::new("files in", directory.to_string_lossy()),
            Fact::new("file system of the files", &mount.file_system),
            Fact::new(
                "mount options of the files' file system",
                mount.options.join(","),
            ),
            Fact::new("files laid out", self.laid_out.words()),
        ];
        facts.extend(disks.iter().map(|disk| block::fact(host, disk)));
        Ok(facts)
    }
}

/// Attaches a loop device to a file; the command is `losetup --find --show` and the options.
pub(super) fn attach(
    setup: &mut Setup<'_>,
    options: &[String],
    file: &Path,
) -> Result<PathBuf, LayerError> {
    let mut command = argv(["losetup", "--find", "--show"]);
    command.extend(options.iter().map(OsString::from));
    command.push(file.into());
    let output = setup.make(undo::DETACH.of([file.into()]), &command)?;
    match output.stdout.trim() {
        "" => Err(LayerError::refused(
            format!("losetup named no device for {}", file.shown()),
            "",
        )),
        device => Ok(PathBuf::from(device)),
    }
}

/// Refuses a device that is not on the file that was just made: another user who may rename the
/// directory could have put another file in its place between the two commands.
fn check_backing(
    host: &dyn Host,
    held: &HeldDir,
    file: &Path,
    device: &Path,
) -> Result<(), LayerError> {
    let mut command = argv(["losetup", "--noheadings"]);
    command.extend(argv(["--output", "BACK-MAJ:MIN,BACK-INO"]));
    command.push(device.into());
    let told = host.must(&command)?.stdout;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let made = held.identity(&name);
    if made.is_ok_and(|made| told.split_whitespace().eq(made.iter().map(String::as_str))) {
        return Ok(());
    }
    // The journal finds a device by the name of its file, which leads elsewhere now.
    host.must(&argv(["losetup", "--detach", &device.to_string_lossy()]))?;
    Err(LayerError::refused(
        format!(
            "{} was replaced while a loop device was set up on it; nothing was written to what took its place",
            file.shown()
        ),
        "as root, name a directory in which no other user can rename files",
    ))
}

fn on_off(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

fn cannot_allocate(error: LayerError) -> LayerError {
    match error {
        LayerError::Host(HostError::Path {
            kind: std::io::ErrorKind::Unsupported,
            path,
            ..
        }) => LayerError::refused(
            format!(
                "the file system of {} cannot reserve blocks (fallocate)",
                path.shown()
            ),
            "write laid-out = \"written\" or \"no\"",
        ),
        other => other,
    }
}

/// The device as the kernel set it up; an error where it is not what was asked.
fn read_back(host: &dyn Host, device: &Path, asked: &Loop) -> Result<Fact, LayerError> {
    let name = block::name(device);
    let read = |what: &str| block::told(host, &name, what);
    let logical = read("queue/logical_block_size")?;
    let physical = read("queue/physical_block_size")?;
    let direct = read("loop/dio")? == "1";
    if logical != asked.sector.to_string() || physical != logical {
        return Err(LayerError::refused(
            format!(
                "{name} has {logical} B logical and {physical} B physical sectors although {} B were asked for",
                asked.sector
            ),
            "",
        ));
    }
    // The kernel falls back to the page cache without an error.
    if direct != asked.direct_io {
        return Err(LayerError::refused(
            format!(
                "{name} has direct I/O {} although {} was asked for",
                on_off(direct),
                on_off(asked.direct_io)
            ),
            "write direct-io = false, or a logical-sector as large as the sectors of the disk below, or name a directory whose file system can do direct I/O",
        ));
    }
    Ok(Fact::new(
        format!("device {name}"),
        format!(
            "{}, logical sector {logical} B, physical sector {physical} B, direct I/O {}",
            unit::bytes(asked.size),
            on_off(direct)
        ),
    ))
}
