//! A cache for reads and writes on a faster device (bcache). In mode writeback, what was written is on the cache
//! alone until it is written back: when the cache dies, that is lost.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::lent::appeared;
use stackrace_foundation::foundation::{
    Device, Gives, GivesKind, Layer, LayerError, LayerKind, Origin, Setup, StandingLayer, Takes,
    block, cached, filesystem,
};
use stackrace_machine::host::imagined::{
    Assembly, Signature, Tool, World, complained, said, text_after, word,
};
use stackrace_machine::host::{Driver, Host, HostError, Needs, Output, Package, argv, argv_at};
use stackrace_machine::journal::{Param, UndoKind, busy, text};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The word in a study, and the kernel's.
const NAME: &str = "bcache";

/// The tool that formats both devices.
const MAKE: &str = "make-bcache";

/// The tool that shows what a device bears.
const SHOW: &str = "bcache-super-show";

/// Where the driver shows caches, and takes devices.
const DRIVER: &str = "/sys/fs/bcache";

/// What a disk of it says of the device that it caches.
const CACHED: &str = "bcache/backing_dev_name";

/// Number of times, and pause between them, that it is looked whether the driver has let go.
const LOOKS: usize = 150;
const LOOK: Duration = Duration::from_millis(200);

/// bcache.rst of the kernel (admin-guide).
const MODE: ChoiceDoc<&'static str> = choice!(
    "mode",
    [
        "writethrough" => "writethrough",
        "writeback" => "writeback",
        "writearound" => "writearound",
        "none" => "none",
    ],
    "writethrough",
    "Where a write goes: to both devices; to the cache, and later to the other; past the cache; none caches nothing.",
);

/// The layer `bcache` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A cache for reads and writes on the last of two devices (bcache); empty at first.",
    settings: &[
        MODE.doc,
        SettingDoc::bytes(
            "bucket-size",
            "512 KiB",
            "What the cache is given out in: a power of two from 4 KiB to 16 MiB; it has at least 128.",
        ),
        SettingDoc::bytes(
            "sequential-cutoff",
            "4 MiB",
            "Bytes in a row from which on requests go past the cache; 0 B: never.",
        ),
    ],
    takes: Takes::Devices { min: 2, max: 2 },
    gives: GivesKind::Devices,
    example: "bcache = { mode = \"writeback\", sequential-cutoff = \"0 B\" }",
    parse,
    packages: PACKAGES,
    undo: &[STOP],
    imagined: &[
        Tool::new(MAKE, imagined_make),
        Tool::new(DRIVER, imagined_driver),
    ],
    shapes: &[&[
        "loop = { size = \"1 GiB\", count = 2 }",
        "bcache = { mode = \"writeback\", sequential-cutoff = \"0 B\" }",
        "ext4 = {}",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new("bcache-tools", &[MAKE, SHOW])];

/// Stops a cache of ours, and what it caches: its UUID, both devices, and a file that is gone after a restart.
const STOP: UndoKind = UndoKind::new(
    NAME,
    "stop",
    &[Param::Uuid, Param::Name, Param::Name, Param::Path],
    stop,
);

struct Bcache {
    mode: &'static str,
    bucket: u64,
    cutoff: u64,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let bucket = settings.bytes("bucket-size")?;
    if !bucket.is_power_of_two() || !(4 << 10..=16 << 20).contains(&bucket) {
        let what = format!("buckets of {bucket} B are not possible");
        let next = "write a power of two from \"4 KiB\" to \"16 MiB\"";
        return Err(settings.refuse("bucket-size", what, next));
    }
    Ok(Box::new(Bcache {
        mode: settings.choice(MODE)?,
        bucket,
        cutoff: settings.bytes("sequential-cutoff")?,
    }))
}

impl Bcache {
    /// Sets what the tool cannot, and reads back what is in force.
    fn in_force(&self, host: &dyn Host, disk: &str, set: &Path) -> Result<Vec<Fact>, LayerError> {
        let about = |file: &str| format!("{NAME}/{file}");
        let write = |file: &str, text: &str| host.write_text(&place(disk).join(file), text);
        // The tool knows two of the modes, the driver all of them.
        write("cache_mode", self.mode)?;
        write("sequential_cutoff", &self.cutoff.to_string())?;
        let mode = block::told(host, disk, &about("cache_mode"))?;
        if block::chosen(&mode) != self.mode || !stands(host, set) {
            return Err(LayerError::refused(
                format!(
                    "{disk} has the mode {mode} although {} was asked for",
                    self.mode
                ),
                "see what the kernel says: dmesg | tail",
            ));
        }
        // Sizes as the driver writes them, which rounds: they are told and not compared.
        Ok(vec![
            Fact::new("mode", self.mode),
            Fact::new(
                "bucket size",
                host.read_text(&set.join("bucket_size"))?.trim(),
            ),
            Fact::new(
                "past the cache from",
                block::told(host, disk, &about("sequential_cutoff"))?,
            ),
        ])
    }
}

/// Returns true if the driver knows a cache.
fn stands(host: &dyn Host, set: &Path) -> bool {
    host.read_text(&set.join("bucket_size")).is_ok()
}

/// Stops the cache and what it caches, and wipes what marks them; what is not there any more is fine.
fn stop(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let set = Path::new(DRIVER).join(text(of, 0));
    // While it is there, the driver holds the device, which then has a directory of it.
    let device = place(text(of, 1));
    for number in 0..LOOKS {
        // After a restart the names are others'.
        let ours = host.exists(Path::new(&of[3]));
        let held = (ours && host.exists(&device.join("running"))).then_some(&device);
        let mut standing = stands(host, &set).then_some(&set).into_iter().chain(held);
        match standing.next() {
            // It stops by itself when its last user is gone; it is asked again only where udev was faster.
            Some(first) if number % 10 == 0 => host.write_text(&first.join("stop"), "1")?,
            Some(_) => {}
            // udev shows the driver whatever bears a mark when it changes, and would have it held again.
            None if ours && unmarked(host, of)? => return Ok(()),
            None if ours => {}
            None => return Ok(()),
        }
        host.pause(LOOK);
    }
    Err(busy(host, &set, "stop"))
}

/// Wipes the marks of a cache from its devices, as far as they are its own; true: neither has one.
fn unmarked(host: &dyn Host, of: &[OsString]) -> Result<bool, HostError> {
    let mut unmarked = true;
    for device in [1, 2].map(|at| Path::new("/dev").join(text(of, at))) {
        let shown = host.exec(&argv_at([SHOW], &device))?;
        if shown.stdout.contains(text(of, 0)) {
            let wipe = argv(["wipefs", "--all", "--types", NAME]);
            // It may be held again by now: then it is looked at once more.
            host.exec(&[wipe, vec![device.into()]].concat())?;
            unmarked = false;
        }
    }
    Ok(unmarked)
}

/// What the driver shows of a device.
fn place(device: &str) -> PathBuf {
    Path::new(block::DISKS).join(device).join(NAME)
}

impl Layer for Bcache {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        format!(
            "cached on the last device, {}, buckets of {}, past it from {} in a row",
            self.mode,
            unit::bytes(self.bucket),
            unit::bytes(self.cutoff)
        )
    }

    /// In both modes that cache writes, what is written goes to both devices in the end.
    fn written_below(&self, bytes: u64, _devices: usize) -> u64 {
        match self.mode {
            "writethrough" | "writeback" => bytes.saturating_mul(2),
            _ => bytes,
        }
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        cached::accepts(NAME, below)
    }

    fn needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: NAME,
                shown_by: DRIVER,
                what: "caches of devices (bcache)",
            }],
            ..Needs::as_root(&[MAKE, SHOW, "wipefs"], PACKAGES)
        }
    }

    fn returns(&self) -> bool {
        true
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let devices = match setup.is_returning() {
            true => filesystem::devices(below)?,
            false => filesystem::to_format(host, below)?,
        };
        let sizes = cached::sizes(host, &devices)?;
        let [origin, cache] = [0, 1].map(|at| devices[at].path.as_os_str());
        let [device, fast] = [0, 1].map(|at| block::kernel_name(host, &devices[at].path));
        let uuid = setup.uuid();
        let set = Path::new(DRIVER).join(&uuid);
        let proof = setup.prove(NAME)?;
        setup.will(STOP.of([
            uuid.clone().into(),
            device.clone().into(),
            fast.into(),
            proof.into(),
        ]))?;
        if !setup.is_returning() {
            let mut command = argv([MAKE, "--cset-uuid", &uuid, "--bucket"]);
            command.extend(argv([self.bucket.to_string()]));
            command.extend(["-B".into(), origin.into(), "-C".into(), cache.into()]);
            host.must(&command)?;
        }
        // udev may have been faster: that is no error here.
        let register = Path::new(DRIVER).join("register_quiet");
        // The cache first: a device that comes to its cache begins with it, and stops with it.
        for device in [cache, origin] {
            host.write_text(&register, &device.to_string_lossy())?;
        }
        let disk = appeared(host, CACHED, &device)?;
        let mut facts = self.in_force(host, &disk, &set)?;
        facts.push(sizes.fact());
        Ok(StandingLayer {
            devices: vec![disk.clone()],
            ..StandingLayer::new(
                NAME,
                facts,
                Gives::Devices(vec![Device {
                    path: Path::new("/dev").join(&disk),
                    origin: Origin::Lent {
                        shown: Path::new(block::DISKS).join(&disk).join(CACHED),
                        holds: device,
                    },
                }]),
            )
        })
    }
}

/// `make-bcache --cset-uuid UUID … -B DEVICE -C DEVICE`.
fn imagined_make(world: &mut World, words: &[OsString]) -> Output {
    let members = match world.members(words) {
        Ok(members) => members,
        Err(answer) => return answer,
    };
    let note = |name: &'static str| (name, text_after(words, name).unwrap_or_default());
    let signature = Signature {
        file_system: NAME.to_owned(),
        notes: ["--cset-uuid", "-B", "--bucket"].map(note).into(),
        ..Signature::default()
    };
    // Each of the two knows the other by the UUID of the cache.
    world.sign(&members, &signature);
    said("")
}

/// The driver: takes devices, and gives a disk of two that belong together; stops; tells.
fn imagined_driver(world: &mut World, words: &[OsString]) -> Output {
    let (file, device) = (PathBuf::from(word(words, 0)), words.get(1));
    let Some(device) = device.filter(|_| file.ends_with("register_quiet")) else {
        let set = file.parent().and_then(Path::file_name).unwrap_or_default();
        let set = set.to_string_lossy().into_owned();
        return match world.assembly(&set) {
            Some(_) if file.ends_with("stop") => world.disassemble(&set),
            Some(cache) => said(cache.asked.get("--bucket").cloned().unwrap_or_default()),
            None => complained(1, "No such file or directory"),
        };
    };
    let Some(signature) = world.signature(device).cloned() else {
        return complained(1, "Bad magic");
    };
    let note = |name: &str| signature.notes.get(name).cloned().unwrap_or_default();
    let (uuid, origin) = (note("--cset-uuid"), note("-B"));
    let name = Path::new(&origin).file_name().unwrap_or_default();
    let about = [
        (CACHED, name.to_string_lossy().into_owned()),
        ("bcache/cache_mode", "[writethrough]".to_owned()),
    ];
    let mut members = vec![device.clone()];
    // The second one completes it.
    let gives = match world.assembly(&uuid) {
        Some(cache) => {
            members.append(&mut cache.members);
            vec![format!("/dev/bcache-{uuid}").into()]
        }
        None => Vec::new(),
    };
    let cache = Assembly {
        tool: MAKE,
        members,
        gives,
        asked: [("--bucket".to_owned(), note("--bucket"))].into(),
        about: about.into(),
        ..Assembly::default()
    };
    world.assemble(uuid, cache)
}

#[cfg(test)]
mod tests {
    use crate::stack::testing::{site, stack, try_layer};
    use stackrace_machine::host::plan::Fault;
    use stackrace_machine::journal::Journal;

    #[test]
    fn buckets_that_no_cache_has_are_refused() {
        for size in ["3 KiB", "32 MiB", "12 KiB"] {
            let line = format!("bcache = {{ bucket-size = \"{size}\" }}");
            let refused = try_layer(&line).err().unwrap();
            assert!(
                refused.message.contains("not possible"),
                "{}",
                refused.message
            );
        }
    }

    #[test]
    fn the_mode_is_the_one_in_force() {
        let scratch = tempfile::tempdir().unwrap();
        let host = crate::stack::imagined(Fault::Never);
        let journal = Journal::nowhere();
        let site = site(&host, &journal, scratch.path());
        let loops = "loop = { size = \"1 GiB\", count = 2 }";
        let shape = stack(&[loops, "bcache = { mode = \"writearound\" }", "ext4 = {}"]);
        let standing = shape.set_up(&site).unwrap();
        let facts = &standing.facts()[1].facts;
        assert_eq!(crate::stack::testing::value(facts, "mode"), "writearound");
        assert!(crate::stack::testing::value(facts, "cache").contains("empty"));
        standing.tear_down(&site).unwrap();
        assert_eq!(host.left(), Vec::<String>::new());
    }
}
