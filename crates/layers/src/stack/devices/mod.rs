//! Real disks, each named by an id that stays, with its size and model; guarded.

use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_base::unit::ShownPath;
use stackrace_foundation::foundation::guard::{self, NamedDisk};
use stackrace_foundation::foundation::{
    DEVICES_MAX, Danger, Device, Gives, GivesKind, Identity, Inspection, Layer, LayerError,
    LayerKind, Origin, Setup, StandingLayer, Takes, block,
};
use stackrace_machine::host::{FixedDevice, Host, Needs, local::LocalHost};
use std::path::Path;
use std::sync::Arc;

/// Directory in which udev keeps links whose names stay.
const BY_ID: &str = "/dev/disk/by-id";

/// Smallest disk: room for what is written over at both ends.
const SIZE_MIN: u64 = 4 << 20;

/// The layer `devices` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "devices",
    summary: "Real disks, by id, size and model; refused when one is in use or carries anything.",
    settings: &[
        SettingDoc::texts("ids", "", "Names in /dev/disk/by-id of whole disks; all they hold is lost, so each must be blank, or repeated after --wipe.").required(),
        SettingDoc::texts("size", "", "Size of each disk, to the byte; one for all, or one each.").required(),
        SettingDoc::texts("model", "", "Model of each disk, as /sys/block/DISK/device/model gives it, none where it is not there; one for all, or one each.").required(),
    ],
    takes: Takes::Nothing,
    gives: GivesKind::Devices,
    example: "devices = { ids = [\"ata-MODEL_SERIAL\"], size = \"4000787030016 B\", model = \"MODEL\" }",
    parse,
    ..LayerKind::EMPTY
};

pub(super) struct Disks {
    disks: Vec<Identity>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(in_directory(settings, Path::new(BY_ID))?))
}

/// The layer, with ids looked up in another directory than `/dev/disk/by-id`.
pub(super) fn in_directory(settings: &Settings, directory: &Path) -> Result<Disks, Refusal> {
    let ids = settings.optional_texts("ids")?.unwrap_or_default();
    let span = settings.span_of("ids");
    if ids.is_empty() || ids.len() > DEVICES_MAX {
        let message = format!("{} disks cannot be used", ids.len());
        return Err(Refusal::at(
            span,
            message,
            format!("write 1 to {DEVICES_MAX}"),
        ));
    }
    let sizes = each(settings, "size", ids.len())?;
    // Size and model besides the id: a mistyped id must not be enough to lose a disk.
    let models = each(settings, "model", ids.len())?;
    let mut disks: Vec<Identity> = Vec::new();
    for ((id, size), model) in ids.into_iter().zip(sizes).zip(models) {
        let id =
            stable(&id, directory).map_err(|(message, help)| Refusal::at(span, message, help))?;
        // An array of one disk twice would be no array.
        if disks.iter().any(|disk| disk.id == id) {
            let message = format!("{id} is named twice");
            return Err(Refusal::at(span, message, "name each disk once"));
        }
        let bytes = unit::parse_bytes(&size)
            .ok()
            .filter(|size| *size >= SIZE_MIN);
        let bytes = bytes.ok_or_else(|| {
            Refusal::at(
                settings.span_of("size"),
                format!("\"{size}\" is no size of a disk"),
                "write its bytes, as `lsblk --bytes` shows them: size = \"4000787030016 B\"",
            )
        })?;
        disks.push(Identity {
            directory: directory.to_path_buf(),
            id,
            size: bytes,
            model: model.trim().to_string(),
        });
    }
    Ok(Disks { disks })
}

/// Values of a setting: one for all, or one each.
fn each(settings: &Settings, name: &str, count: usize) -> Result<Vec<String>, Refusal> {
    let values = settings.optional_texts(name)?.unwrap_or_default();
    match values.len() {
        1 => Ok(vec![values[0].clone(); count]),
        given if given == count => Ok(values),
        given => Err(Refusal::at(
            settings.span_of(name),
            format!("{name} is given {given} times for {count} disks"),
            "give it once for all, or once each",
        )),
    }
}

/// The id alone; a name that the kernel may give to another disk after the next start is refused,
/// with the ids the disk has now.
fn stable(id: &str, directory: &Path) -> Result<String, (String, String)> {
    let name = match Path::new(id).strip_prefix(directory) {
        Ok(below) => below.to_string_lossy().into_owned(),
        Err(_) => id.to_string(),
    };
    let kernel = name.contains('/') || name.is_empty() || name.starts_with('.');
    // The kernel gives names such as sdb in the order in which devices appear: after a restart
    // another disk may have it.
    if !kernel && !Path::new("/sys/class/block").join(&name).exists() {
        return Ok(name);
    }
    let ids = ids_of(&name, directory);
    let help = match ids.is_empty() {
        true => format!("write its name in {}", directory.shown()),
        false => format!("now it is: {}", ids.join(", or ")),
    };
    let message =
        format!("\"{id}\" is not a lasting id: another disk may have that name after a restart");
    Err((message, help))
}

/// The links to a device.
fn ids_of(name: &str, directory: &Path) -> Vec<String> {
    // For the advice in a refusal, so on the machine on which the study is read.
    let host = LocalHost::new(Arc::new(|_| ()));
    let device = Path::new("/dev").join(name);
    let device = host.canonical(&device).unwrap_or(device);
    let links = host.list(directory).unwrap_or_default();
    links
        .iter()
        .filter(|link| host.canonical(&directory.join(link)).ok().as_ref() == Some(&device))
        .map(|link| link.to_string_lossy().into_owned())
        .collect()
}

/// A disk that its owner names by a link, and allows to be written over as a whole by repeating the link's name; what it
/// held is wiped.
///
/// # Errors
/// When the link is none that lasts or its name was not repeated, the disk turns, is in use, or cannot be wiped.
pub fn given_up(host: &dyn Host, link: &Path, repeated: &str) -> Result<FixedDevice, LayerError> {
    let shown = link.shown();
    let directory = link.parent().unwrap_or(Path::new(""));
    let id = link.file_name().unwrap_or_default().to_string_lossy();
    // A name such as /dev/sdb is no link: another disk may have it after a restart.
    if !link.is_symlink() {
        let ids = ids_of(&id, Path::new(BY_ID));
        return Err(LayerError::refused(
            format!("{shown} is no name that lasts: another disk may have it after a restart"),
            match ids.is_empty() {
                true => format!("name it by its link in {BY_ID}"),
                false => format!("name it {BY_ID}/{}", ids.join(", or ")),
            },
        ));
    }
    if id != repeated {
        return Err(LayerError::refused(
            format!("--wipe {repeated} is not the name of {shown}"),
            format!("if all that is on {shown} may be lost, write: --wipe {id}"),
        ));
    }
    let mut asked = Identity {
        directory: directory.to_path_buf(),
        id: repeated.to_owned(),
        size: 0,
        model: String::new(),
    };
    let found = guard::inspect(host, &asked)?;
    // Both are what the disk says: its owner has named it twice.
    asked.size = found.size.unwrap_or(0);
    asked.model.clone_from(&found.model);
    let name = found.name.as_deref().unwrap_or_default();
    let turns = host.read_text(
        &Path::new("/sys/class/block")
            .join(name)
            .join("queue/rotational"),
    );
    if turns.is_ok_and(|turns| turns.trim() == "1") {
        return Err(LayerError::refused(
            format!("{shown} says that it turns: writing shows nothing that its card has"),
            "leave out --wipe: a hard disk is measured by reading",
        ));
    }
    Ok(guard::clear(host, &asked, true)?.device)
}

impl Layer for Disks {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("devices, {}", self.disks.len())
    }

    fn describe_asked(&self) -> String {
        let disks = self.disks.iter().map(|disk| {
            let size = unit::bytes(disk.size);
            format!("{} ({}, {size})", disk.id, disk.model)
        });
        let disks: Vec<String> = disks.collect();
        format!("all that is on {} is lost", disks.join(", "))
    }

    fn devices_given(&self) -> Option<usize> {
        Some(self.disks.len())
    }

    fn needs(&self) -> Needs {
        Needs::as_root(&["wipefs", "blkid", "blkdiscard"], &[])
    }

    fn disks(&self) -> &[Identity] {
        &self.disks
    }

    fn dangers(&self, machine: &Inspection<'_>) -> Vec<Danger> {
        let mut dangers = Vec::new();
        for disk in &self.disks {
            let found = match guard::inspect(machine.host, disk) {
                Ok(found) => found,
                Err(error) => {
                    dangers.push(Danger::Refused(error));
                    continue;
                }
            };
            let objections = guard::objections(disk, &found, machine.wipe.contains(&disk.id));
            let refused = objections
                .into_iter()
                .map(|(message, next)| Danger::Refused(LayerError::refused(message, next)));
            dangers.extend(refused);
            if !found.carries.is_empty() {
                let carries = found.carries.join(", ");
                dangers.push(Danger::Lost(format!("on {}: {carries}", disk.id)));
            }
        }
        dangers
    }

    fn set_up(&self, setup: &mut Setup<'_>, _below: Gives) -> Result<StandingLayer, LayerError> {
        self.taken(setup, guard::clear)
    }

    fn returns(&self) -> bool {
        true
    }

    fn bring_back(
        &self,
        setup: &mut Setup<'_>,
        _below: Gives,
    ) -> Result<StandingLayer, LayerError> {
        // What they hold is what the cut has left.
        self.taken(setup, |host, asked, _| guard::unused(host, asked))
    }
}

/// Finds a disk that may be taken, by its host, its id, and whether it may be wiped.
type Finding = fn(&dyn Host, &Identity, bool) -> Result<NamedDisk, LayerError>;

impl Disks {
    /// All disks, found and held.
    fn taken(&self, setup: &mut Setup<'_>, find: Finding) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let mut disks: Vec<NamedDisk> = Vec::new();
        for asked in &self.disks {
            let disk = find(host, asked, setup.may_wipe().contains(&asked.id))?;
            // udev makes several links to a disk (by its serial, by its WWN), so ids that differ
            // prove nothing.
            if let Some(other) = disks.iter().find(|other| other.device == disk.device) {
                return Err(guard::same_disk(
                    &other.asked.id,
                    &asked.id,
                    &disk.device.node,
                ));
            }
            // At once: from here on an open file keeps other programs from taking it.
            setup.outlived_by(&disk.device);
            disks.push(disk);
        }
        let name = |disk: &NamedDisk| block::name(&disk.device.node);
        let names: Vec<String> = disks.iter().map(name).collect();
        let device = |disk: NamedDisk| Device {
            path: disk.device.node.clone(),
            origin: Origin::Disk(disk),
        };
        let facts = names.iter().map(|name| block::fact(host, name)).collect();
        let gives = Gives::Devices(disks.into_iter().map(device).collect());
        Ok(StandingLayer {
            disks: names,
            ..StandingLayer::new("devices", facts, gives)
        })
    }
}
