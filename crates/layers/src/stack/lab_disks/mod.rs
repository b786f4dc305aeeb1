//! Disks of the lab: emulated, with the sectors and the speed the study declares.
//!
//! The virtual machine is started with them, so nothing is created here: a disk is found by its
//! serial, emptied by a discard of all of it, and looked at. Configurations that ask for the same disks
//! use the same ones, one after the other.

mod common;
mod faults;
mod model;

use self::common::{SIZE_MIN, disk_count, serial};
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    DEVICES_MAX, Device, Gives, GivesKind, Layer, LayerError, LayerKind, Origin, Setup,
    StandingLayer, Takes, block,
};
use stackrace_machine::host::{Host, LabDisk, Needs, argv};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Longest latency of a disk, ns: the kernel gives up on a request after 30 s, and a device is made
/// ready by hundreds of requests.
const LATENCY_MAX_NS: u64 = 1_000_000_000;

/// Direct reads of one block that are timed when a latency is declared, and the block, bytes.
const READS: u64 = 5;
const BLOCK: u64 = 4096;

/// Number of a disk of another layer: no disk of the layer `lab-disks` can have it.
const OWN_NUMBER: u64 = DEVICES_MAX as u64 + 1;

/// Sector sizes a disk can have.
const SECTORS: [u64; 2] = [512, 4096];

/// Settings of an emulated or a modelled disk.
const SETTINGS: [SettingDoc; 13] = [
    SettingDoc::text(
        "model",
        "",
        "A drive of `stackrace show drives`, or the text of a card: the disks are then modelled, in virtual time; sectors and speed are the model's.",
    ),
    SettingDoc::bytes(
        "size",
        "",
        "Size of each disk. Of a modelled one: how much of it is used, from its beginning; all of it unless given.",
    ),
    SettingDoc::count("count", "1", "How many disks."),
    SettingDoc::texts(
        "parameters",
        "",
        "Of modelled disks: values that differ from the card, in its units, like \"rpm = 5400\" or \"seek.average = 12\".",
    ),
    SettingDoc::text(
        "last-model",
        "",
        "Another drive of `stackrace show drives` for the last of the modelled disks: a log device, a cache.",
    ),
    SettingDoc::bytes("last-size", "", "Size of that last disk."),
    SettingDoc::bytes(
        "logical-sector",
        "512",
        "Smallest unit the disks read and write: 512 or 4096 bytes.",
    ),
    SettingDoc::bytes(
        "physical-sector",
        "",
        "What the disks say their media are written in, 512 or 4096 bytes; the logical sector unless given. 512 and 4096: a 512e disk.",
    ),
    SettingDoc::bytes(
        "rate",
        "",
        "Most bytes per second of each disk, reads and writes together; as fast as it goes unless given.",
    ),
    SettingDoc::count(
        "requests",
        "",
        "Most requests per second of each disk, reads and writes together; as many as go unless given.",
    ),
    model::CACHE.doc,
    SettingDoc::count(
        "gone-after-cut",
        "0",
        "Of modelled disks whose power a study cuts: which one, from 1, does not come back with the power; 0: all do.",
    ),
    SettingDoc::time(
        "latency",
        "",
        "How long each request takes at least, however many are under way; no longer than it does unless given.",
    ),
];

/// The layer `lab-disks` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "lab-disks",
    summary: "Emulated disks of the lab, with declared sectors and speed: only with `stackrace run STUDY --lab`.",
    settings: &SettingDoc::joined::<17>(&[&SETTINGS, &faults::SETTINGS]),
    takes: Takes::Nothing,
    gives: GivesKind::Devices,
    example: "lab-disks = { size = \"1 GiB\", count = 4, physical-sector = 4096, rate = \"60 MB\", requests = 120 }",
    parse,
    kept_by_drives: &["size", "count"],
    ..LayerKind::EMPTY
};

struct LabDisks {
    disks: Vec<LabDisk>,
    /// Number of the disk that does not come back after a power cut, from 1; 0 if all do.
    gone: usize,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let disks = match settings.optional_text("model")? {
        Some(word) => model::disks(settings, &word)?,
        None => emulated(settings)?,
    };
    let gone = settings.count("gone-after-cut")?;
    let gone = usize::try_from(gone).unwrap_or(usize::MAX);
    if gone > disks.len() {
        let count = disks.len();
        return Err(Refusal::at(
            settings.span_of("gone-after-cut"),
            format!("there is no disk {gone} of {count}"),
            format!("write 1 to {count}, or 0: all come back"),
        ));
    }
    Ok(Box::new(LabDisks { disks, gone }))
}

/// Refuses of emulated disks what only modelled ones can have.
fn refuse_of_models(settings: &Settings) -> Result<(), Refusal> {
    let declared = faults::SETTINGS.iter().map(|setting| setting.name);
    if let Some(name) = ["parameters", "last-model", "last-size", "gone-after-cut"]
        .iter()
        .find(|name| settings.given(name))
    {
        return Err(Refusal::at(
            settings.span_of(name),
            format!("\"{name}\" goes with modelled disks, and these are emulated"),
            "name a model too (stackrace show drives), or leave it out",
        ));
    }
    if let Some(name) = declared.into_iter().find(|name| settings.given(name)) {
        return Err(Refusal::at(
            settings.span_of(name),
            format!("\"{name}\" is a fault of a modelled disk, and these are emulated"),
            "name a model (stackrace show drives), or make faults happen by hand: stackrace lab fault",
        ));
    }
    Ok(())
}

/// Disks that QEMU emulates.
fn emulated(settings: &Settings) -> Result<Vec<LabDisk>, Refusal> {
    if settings.given("cache") {
        return Err(Refusal::at(
            settings.span_of("cache"),
            "only a modelled disk has a cache of a kind",
            "name a model, like model = \"seagate-st3000dm001\", or leave cache out",
        ));
    }
    refuse_of_models(settings)?;
    let sector = |name: &str, bytes: u64| -> Result<u64, Refusal> {
        if SECTORS.contains(&bytes) {
            return Ok(bytes);
        }
        Err(Refusal::at(
            settings.span_of(name),
            format!("a disk of the lab has no sectors of {bytes} bytes"),
            "write 512 or 4096",
        ))
    };
    let logical_sector = sector("logical-sector", settings.bytes("logical-sector")?)?;
    let physical = settings.optional_bytes("physical-sector")?;
    let physical_sector = sector("physical-sector", physical.unwrap_or(logical_sector))?;
    if physical_sector < logical_sector {
        return Err(Refusal::at(
            settings.span_of("physical-sector"),
            "a physical sector is never smaller than a logical one",
            "write physical-sector = 4096, or leave it out",
        ));
    }
    let Some(bytes) = settings.optional_bytes("size")? else {
        return Err(Refusal::at(
            settings.span_of("size"),
            "lab-disks needs \"size\", or \"model\"",
            "write a size, like size = \"1 GiB\", or the model of a drive: stackrace show drives",
        ));
    };
    if bytes < SIZE_MIN || !bytes.is_multiple_of(physical_sector) {
        return Err(Refusal::at(
            settings.span_of("size"),
            format!("{bytes} bytes is not a whole number of sectors of {physical_sector} B"),
            "write a size of at least 1 MiB, like \"1 GiB\"",
        ));
    }
    let count = disk_count(settings)?;
    let rate = some(settings, "rate", settings.optional_bytes("rate")?)?;
    let requests = some(settings, "requests", settings.optional_count("requests")?)?;
    let latency_ns = latency(settings)?;
    // By its serial a guest finds it: disks that differ in anything must differ in that.
    let disks = (1..=count).map(|number| LabDisk {
        serial: serial(
            &[
                bytes,
                logical_sector,
                physical_sector,
                rate.unwrap_or(0),
                requests.unwrap_or(0),
                latency_ns.unwrap_or(0),
            ],
            number,
        ),
        bytes,
        logical_sector,
        physical_sector,
        rate,
        requests,
        latency_ns,
        model: None,
    });
    Ok(disks.collect())
}

/// Shortest time that each request is to take, ns.
fn latency(settings: &Settings) -> Result<Option<u64>, Refusal> {
    let latency = settings
        .optional_time_ns("latency")?
        .filter(|latency| *latency > 0);
    if latency.is_none_or(|latency| latency <= LATENCY_MAX_NS) {
        return Ok(latency);
    }
    let most = unit::time_ns(LATENCY_MAX_NS as f64);
    Err(Refusal::at(
        settings.span_of("latency"),
        format!("a disk that takes longer than {most} for a request would be given up as failed"),
        "write less, like \"4 ms\"",
    ))
}

/// Speed of a disk, if that is said.
fn some(settings: &Settings, name: &str, value: Option<u64>) -> Result<Option<u64>, Refusal> {
    match value {
        Some(0) => Err(Refusal::at(
            settings.span_of(name),
            format!("a disk with {name} 0 would never answer"),
            "write more, or leave it out",
        )),
        value => Ok(value),
    }
}

/// A disk of a layer's own, which is never one that [`KIND`] gives: settings of this name say its
/// model, or its rate and its requests, and one its size, unless it is `bytes`.
///
/// # Errors
/// A model, a size, a rate or a number of requests with which there is no disk.
pub(super) fn own_disk(
    settings: &Settings,
    [model, size, rate, requests]: [&str; 4],
    bytes: u64,
) -> Result<LabDisk, Refusal> {
    if let Some(word) = settings.optional_text(model)? {
        return model::own(
            settings,
            [model, size],
            &word,
            &[rate, requests],
            OWN_NUMBER,
        );
    }
    let sector = SECTORS[0];
    if bytes < SIZE_MIN || !bytes.is_multiple_of(sector) {
        return Err(Refusal::at(
            settings.span_of(size),
            format!("{bytes} bytes is not a whole number of sectors of {sector} B"),
            "write a size of at least 1 MiB, like \"256 MiB\"",
        ));
    }
    let rate = some(settings, rate, settings.optional_bytes(rate)?)?;
    let requests = some(settings, requests, settings.optional_count(requests)?)?;
    let like = [
        bytes,
        sector,
        sector,
        rate.unwrap_or(0),
        requests.unwrap_or(0),
    ];
    Ok(LabDisk {
        serial: serial(&like, OWN_NUMBER),
        bytes,
        logical_sector: sector,
        physical_sector: sector,
        rate,
        requests,
        latency_ns: None,
        model: None,
    })
}

impl Layer for LabDisks {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("lab-disks, count = {}", self.disks.len())
    }

    fn describe_asked(&self) -> String {
        // Most disks of a layer are alike: one with a fault or of another model is told of by itself.
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for disk in &self.disks {
            let like = disk.described();
            match kinds.iter_mut().find(|kind| kind.0 == like) {
                Some(kind) => kind.1 += 1,
                None => kinds.push((like, 1)),
            }
        }
        let kinds: Vec<String> = kinds
            .into_iter()
            .map(|(like, count)| format!("{} of the lab, {like}", unit::counted(count, "disk")))
            .collect();
        kinds.join("; ")
    }

    fn devices_given(&self) -> Option<usize> {
        Some(self.disks.len())
    }

    fn needs(&self) -> Needs {
        Needs {
            lab: true,
            ..Needs::as_root(&["blkdiscard", "dd"], &[])
        }
    }

    fn lab_disks(&self) -> Vec<LabDisk> {
        self.disks.clone()
    }

    fn returns(&self) -> bool {
        // Only of modelled drives is it known what they hold after a cut.
        self.disks.iter().all(|disk| disk.model.is_some())
    }

    fn bring_back(
        &self,
        setup: &mut Setup<'_>,
        _below: Gives,
    ) -> Result<StandingLayer, LayerError> {
        // They are found as they were; what they hold was put there.
        let place = self.gone.checked_sub(1);
        self.found(setup, place)
    }

    fn set_up(&self, setup: &mut Setup<'_>, _below: Gives) -> Result<StandingLayer, LayerError> {
        self.found(setup, None)
    }
}

impl LabDisks {
    /// All disks but the one at this place.
    fn found(
        &self,
        setup: &mut Setup<'_>,
        without: Option<usize>,
    ) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let mut devices = Vec::new();
        let mut facts = Vec::new();
        let disks = (0..).zip(&self.disks);
        for (number, disk) in disks.filter(|(number, _)| Some(*number as usize) != without) {
            let disk = &in_use(disk, setup, number);
            let (device, fact) = found_device(host, disk)?;
            facts.push(fact);
            facts.extend(waited(host, &device.path, disk)?);
            devices.push(device);
        }
        let disks = devices.iter().map(|device| block::name(&device.path));
        Ok(StandingLayer {
            disks: disks.collect(),
            ..StandingLayer::new("lab-disks", facts, Gives::Devices(devices))
        })
    }
}

/// A disk of a layer's own as it is used in this round: found, and made as it was when new.
///
/// # Errors
/// There is none, it cannot be emptied, or it is not like the one asked for.
pub(super) fn own_device(setup: &Setup<'_>, disk: &LabDisk) -> Result<(Device, Fact), LayerError> {
    let disk = &in_use(disk, setup, OWN_NUMBER);
    found_device(setup.host(), disk)
}

/// A disk, emptied where it may have been used before, and what it says of itself.
fn found_device(host: &dyn Host, disk: &LabDisk) -> Result<(Device, Fact), LayerError> {
    // By its serial: the names of the guest's disks follow the order in which they were found.
    let path = host.lab_disk(disk)?;
    if disk.model.is_none() {
        // Everything is given back, so that each set-up finds the disk as it was when new.
        // Without --force it fails where the disk is in use. A modelled drive is new: its
        // guest lives for this stack alone.
        host.must(&argv([OsStr::new("blkdiscard"), path.as_os_str()]))?;
    }
    let fact = read_back(host, &path, disk)?;
    let origin = match disk.model {
        Some(_) => Origin::Served,
        None => Origin::Lab(disk.serial.clone()),
    };
    Ok((Device { path, origin }, fact))
}

/// The disk as it is used in the round of a seed: the accident of a modelled one follows from both,
/// so that all configurations of a round meet the same.
fn in_use(disk: &LabDisk, setup: &Setup<'_>, number: u64) -> LabDisk {
    let mut disk = disk.clone();
    if let Some(model) = &mut disk.model {
        let mut hash = blake3::Hasher::new();
        // Words of its own, so that no other number drawn from the seed is the same.
        hash.update(b"head and platter");
        hash.update(&setup.seed().to_le_bytes())
            .update(&number.to_le_bytes());
        // Disks of two machines do not turn in step.
        if setup.is_on_peer() {
            hash.update(b"of the peer");
        }
        let drawn = hash.finalize();
        model.accident = u64::from_le_bytes(*drawn.as_bytes().first_chunk().unwrap_or(&[0; 8]));
    }
    disk
}

/// Time that requests were found to take where a latency is declared; an error where it was less.
fn waited(host: &dyn Host, device: &Path, asked: &LabDisk) -> Result<Option<Fact>, LayerError> {
    let Some(latency) = asked.latency_ns else {
        return Ok(None);
    };
    // Direct: the page cache would answer at once.
    let mut command = argv(["dd", "of=/dev/null", "iflag=direct"]);
    command.extend(argv([format!("bs={BLOCK}"), format!("count={READS}")]));
    let mut from = OsString::from("if=");
    from.push(device);
    command.push(from);
    // dd(1) prints its statistics on standard error.
    let said = host.must(&command)?.stderr;
    // Of a plan there is nothing to be read.
    let Some(took_ns) = taken_ns(&said) else {
        return Ok(None);
    };
    let name = block::name(device);
    if took_ns < (READS * latency) as f64 {
        return Err(LayerError::refused(
            format!(
                "{READS} reads of {name} took {} although each is to take {} at least",
                unit::time_ns(took_ns),
                unit::time_ns(latency as f64)
            ),
            "",
        ));
    }
    let each = unit::time_ns(took_ns / READS as f64);
    Ok(Some(Fact::new(
        format!("latency of {name}"),
        format!("{each} a read, mean of {READS} direct ones of {BLOCK} B"),
    )))
}

/// The time in the last line of dd(1): `20480 bytes (20 kB, 20 KiB) copied, 0.0231 s, 887 kB/s`.
fn taken_ns(said: &str) -> Option<f64> {
    let (_, rest) = said.lines().last()?.split_once("copied, ")?;
    let seconds: f64 = rest.split_once(" s")?.0.parse().ok()?;
    Some(seconds * 1e9)
}

/// The disk as the guest sees it; an error where it is not what was asked.
pub(super) fn read_back(
    host: &dyn Host,
    device: &Path,
    asked: &LabDisk,
) -> Result<Fact, LayerError> {
    let described = asked.described();
    let name = block::name(device);
    let read = |what: &str| block::told(host, &name, what);
    let seen = [
        read("queue/logical_block_size")?,
        read("queue/physical_block_size")?,
        read("size")?,
    ];
    let wanted = [
        asked.logical_sector.to_string(),
        asked.physical_sector.to_string(),
        (asked.bytes / block::SYS_SECTOR_BYTES).to_string(),
    ];
    // A guest that takes another disk for this one would measure that.
    if seen != wanted {
        return Err(LayerError::refused(
            format!(
                "{name} ({}) has sectors of {} B and {} B and {} × 512 B although {described} was asked for",
                asked.serial, seen[0], seen[1], seen[2]
            ),
            "",
        ));
    }
    Ok(Fact::new(
        format!("disk {name}"),
        match asked.model {
            Some(_) => described,
            None => format!("emulated, {described}"),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_the_one_dd_prints() {
        let said = "5+0 records in\n5+0 records out\n20480 bytes (20 kB, 20 KiB) copied, 0.0231 s, 887 kB/s\n";
        assert_eq!(taken_ns(said), Some(23_100_000.0));
        assert_eq!(taken_ns(""), None);
    }
}
