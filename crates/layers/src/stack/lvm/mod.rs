//! A logical volume of LVM, read back with `lvs`.

mod imagined;
#[cfg(any(test, feature = "testing"))]
mod testing;
#[cfg(test)]
mod tests;
mod undo;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    DEVICES_MAX, Device, FileData, Gives, GivesKind, Layer, LayerError, LayerKind, ON_TWO_DISKS,
    Setup, StandingLayer, Takes, assembled, filesystem,
};
use stackrace_machine::host::{Driver, Host, Needs, Package, argv, argv_at};
use std::ffi::OsString;
use std::path::Path;

/// Columns that `lvs` is asked for.
const COLUMNS: &str = "lv_name,segtype,stripes,stripe_size,chunk_size,lv_size,cache_mode,cache_policy,origin,pool_lv,devices";

/// The layer `lvm` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "lvm",
    summary: "A logical volume of LVM: linear, striped, thin or cached, also under a snapshot.",
    settings: &[
        KIND_OF_VOLUME.doc,
        SettingDoc::count(
            "stripes",
            "",
            "Of a striped one: over how many devices; all unless given.",
        ),
        SettingDoc::bytes(
            "stripe-size",
            "64 KiB",
            "Of a striped one: bytes on one device before the next one's turn.",
        ),
        SettingDoc::choice(
            "cache-mode",
            &["writethrough", "writeback"],
            "writethrough",
            "Of a cached one: whether a write waits for the slow devices.",
        ),
        SNAPSHOT.doc,
    ],
    takes: Takes::at_least(1),
    gives: GivesKind::Devices,
    example: "lvm = { kind = \"striped\", stripes = 2, stripe-size = \"64 KiB\" }",
    parse,
    words: &[],
    packages: &[
        Package::new(
            "lvm2",
            &[
                "pvcreate",
                "vgcreate",
                "lvcreate",
                "lvconvert",
                "lvs",
                "vgs",
                "vgremove",
            ],
        ),
        Package::new("thin-provisioning-tools", &["thin_check", "cache_check"]),
        Package::new("dmsetup", &["dmsetup"]),
    ],
    undo: &[undo::REMOVE],
    imagined: imagined::TOOLS,
    data: FileData::UNKNOWN,
    reads: &[|text| {
        let volumes = reported(text).into_iter().flatten();
        volumes.map(|volume| volume.fact()).collect()
    }],
    shapes: &[
        &[
            "loop = { size = \"1 GiB\", count = 3 }",
            "md = { raid = 5, assume-clean = false, chunk = \"64 KiB\" }",
            "lvm = { kind = \"thin\", snapshot = \"present\" }",
            "xfs = {}",
        ],
        &[
            "loop = { size = \"1 GiB\", count = 2 }",
            "lvm = { kind = \"cache\", cache-mode = \"writeback\" }",
            "ext3 = {}",
        ],
        &[
            ON_TWO_DISKS,
            "lvm = { kind = \"striped\", snapshot = \"present\" }",
            "zpool = {}",
            "dataset = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VolumeKind {
    Linear,
    Striped,
    Thin,
    Cache,
}

const KIND_OF_VOLUME: ChoiceDoc<VolumeKind> = choice!(
    "kind",
    [
        "linear" => VolumeKind::Linear,
        "striped" => VolumeKind::Striped,
        "thin" => VolumeKind::Thin,
        "cache" => VolumeKind::Cache,
    ],
    "linear",
    "How it lies on the devices; cache: the last one, which is to be fast, caches the others.",
);
const SNAPSHOT: ChoiceDoc<bool> = choice!(
    "snapshot",
    ["none" => false, "present" => true],
    "none",
    "Whether a snapshot, taken of the empty volume, is held as long as it stands; for that the volume has less than half of the room.",
);

struct Lvm {
    shape: VolumeKind,
    stripes: Option<usize>,
    stripe_size: u64,
    cache_mode: String,
    snapshot: bool,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let shape = settings.choice(KIND_OF_VOLUME)?;
    for (name, of) in [
        ("stripes", VolumeKind::Striped),
        ("stripe-size", VolumeKind::Striped),
        ("cache-mode", VolumeKind::Cache),
    ] {
        if settings.given(name) && shape != of {
            let message = format!(
                "{name} has no meaning for a {} volume",
                KIND_OF_VOLUME.word(shape)
            );
            let help = format!(
                "leave it out, or write kind = \"{}\"",
                KIND_OF_VOLUME.word(of)
            );
            return Err(Refusal::at(settings.span_of(name), message, help));
        }
    }
    let stripes = settings.optional_count("stripes")?;
    let stripes = stripes.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    if let Some(count) = stripes.filter(|count| !(2..=DEVICES_MAX).contains(count)) {
        return Err(Refusal::at(
            settings.span_of("stripes"),
            format!("{count} stripes are not possible"),
            format!("write 2 to {DEVICES_MAX}"),
        ));
    }
    let stripe_size = settings.bytes("stripe-size")?;
    if !stripe_size.is_power_of_two() || stripe_size < 4096 {
        return Err(Refusal::at(
            settings.span_of("stripe-size"),
            format!("a stripe of {stripe_size} B is not possible"),
            "write a power of two from \"4 KiB\"",
        ));
    }
    Ok(Box::new(Lvm {
        shape,
        stripes,
        stripe_size,
        cache_mode: settings.text("cache-mode")?,
        snapshot: settings.choice(SNAPSHOT)?,
    }))
}

/// The command that makes a volume, over whatever its blocks may carry.
const CREATE: [&str; 4] = ["lvcreate", "--yes", "--wipesignatures", "y"];

impl Lvm {
    /// The volume's share of the room it may take: a snapshot as large as what it is taken of, and
    /// its tables, never runs full.
    fn share(&self) -> u32 {
        // Percent. The rest is for what LVM keeps itself, and for the snapshot.
        if self.snapshot { 45 } else { 95 }
    }

    /// The commands that make the volume `data` of a group, after each other.
    fn create(&self, group: &str, devices: &[Device]) -> Vec<Vec<OsString>> {
        let make = |words: &[&str]| argv(CREATE.iter().chain(words).copied());
        let share = self.share();
        let of_group = format!("{share}%VG");
        let data = ["--name", "data", "--extents", &of_group];
        match self.shape {
            VolumeKind::Linear => vec![make(&[&data[..], &["--type", "linear", group]].concat())],
            VolumeKind::Striped => {
                let stripes = self.stripes.unwrap_or(devices.len()).to_string();
                let size = format!("{}k", self.stripe_size / 1024);
                let how = ["--type", "striped", "--stripes", &stripes];
                let size = ["--stripesize", &size, group];
                vec![make(&[&data[..], &how, &size].concat())]
            }
            // The volume itself follows when the size of its pool is known.
            VolumeKind::Thin => vec![argv([
                "lvcreate",
                "--yes",
                "--type",
                "thin-pool",
                "--name",
                "pool",
                "--extents",
                "90%VG",
                group,
            ])],
            VolumeKind::Cache => self.create_cached(group, devices),
        }
    }

    /// The same for a cached one: the last device caches the others.
    fn create_cached(&self, group: &str, devices: &[Device]) -> Vec<Vec<OsString>> {
        // %PVS counts the devices that are named, %VG would count the cache's, too (lvcreate(8)).
        let (slow, fast) = devices.split_at(devices.len() - 1);
        let share = format!("{}%PVS", self.share());
        let mut data = argv(CREATE.iter().copied());
        data.extend(argv(["--name", "data", "--type", "linear"]));
        data.extend(argv(["--extents", &share, group]));
        data.extend(slow.iter().map(|device| device.path.clone().into()));
        // A tenth stays for the pool's metadata and its spare.
        let mut pool = argv(["lvcreate", "--yes", "--type", "cache-pool"]);
        pool.extend(argv(["--name", "fast", "--extents", "90%PVS", group]));
        pool.extend(fast.iter().map(|device| device.path.clone().into()));
        let mut join = argv(["lvconvert", "--yes", "--type", "cache"]);
        join.extend(argv(["--cachemode", &self.cache_mode]));
        join.extend(argv(["--cachepool", &format!("{group}/fast")]));
        join.push(format!("{group}/data").into());
        vec![data, pool, join]
    }

    fn make_thin(&self, host: &dyn Host, group: &str) -> Result<(), LayerError> {
        let volumes = volumes(host, group)?;
        let pool = volumes
            .iter()
            .find(|volume| volume.get("segtype") == "thin-pool");
        let size: u64 = pool
            .and_then(|pool| pool.get("lv_size").parse().ok())
            .ok_or_else(|| LayerError::refused("lvs names no size of the thin pool", ""))?;
        // Whole extents of 4 MiB, no larger than what is really there.
        let size = format!("{}b", size / (4 << 20) * (4 << 20));
        host.must(&argv([
            "lvcreate",
            "--yes",
            "--type",
            "thin",
            "--virtualsize",
            &size,
            "--name",
            "data",
            "--thinpool",
            "pool",
            group,
        ]))?;
        Ok(())
    }

    fn take_snapshot(&self, host: &dyn Host, group: &str) -> Result<(), LayerError> {
        let of = format!("{group}/data");
        // LVM keeps names that begin with "snapshot" for itself.
        let mut command = argv(["lvcreate", "--yes", "--snapshot", "--name", "held"]);
        // A thin snapshot takes its blocks from the pool and has no size.
        if self.shape != VolumeKind::Thin {
            command.extend(argv(["--extents", "100%FREE"]));
        }
        command.push(of.into());
        host.must(&command)?;
        Ok(())
    }

    /// Reads back the volume that was made, as `lvs` tells it.
    fn read_back(
        &self,
        host: &dyn Host,
        group: &str,
        devices: usize,
    ) -> Result<Vec<Fact>, LayerError> {
        let volumes = volumes(host, group)?;
        let Some(data) = volumes
            .iter()
            .find(|volume| volume.get("lv_name") == "data")
        else {
            return Err(LayerError::refused("lvs does not name the volume", ""));
        };
        // Compared with what lvs says: defaults of lvm.conf may have changed what lvcreate was
        // told.
        let mut asked = vec![("segtype", KIND_OF_VOLUME.word(self.shape).to_string())];
        match self.shape {
            VolumeKind::Striped => {
                asked.push(("stripes", self.stripes.unwrap_or(devices).to_string()));
                asked.push(("stripe_size", self.stripe_size.to_string()));
            }
            VolumeKind::Cache => asked.push(("cache_mode", self.cache_mode.clone())),
            VolumeKind::Linear | VolumeKind::Thin => {}
        }
        for (column, asked) in asked {
            let found = data.get(column);
            if found != asked {
                return Err(LayerError::refused(
                    format!("the volume has {column} = {found} although {asked} was asked for"),
                    "",
                ));
            }
        }
        let held = volumes.iter().any(|volume| volume.get("origin") == "data");
        if self.snapshot && !held {
            return Err(LayerError::refused("the snapshot is not there", ""));
        }
        Ok(volumes.iter().map(Volume::fact).collect())
    }
}

/// One line of `lvs`.
pub(super) struct Volume(Vec<(String, String)>);

impl Volume {
    fn get(&self, column: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or("", |(_, value)| value)
    }

    pub(super) fn fact(&self) -> Fact {
        let told = self
            .0
            .iter()
            .filter(|(name, value)| name != "lv_name" && !value.is_empty());
        let told: Vec<String> = told
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        Fact::new(format!("volume {}", self.get("lv_name")), told.join(", "))
    }
}

fn volumes(host: &dyn Host, group: &str) -> Result<Vec<Volume>, LayerError> {
    let output = host.must(&argv([
        "lvs",
        "--all",
        "--reportformat",
        "json",
        "--units",
        "b",
        // Plain bytes, so that sizes can be compared as text.
        "--nosuffix",
        "--options",
        COLUMNS,
        group,
    ]))?;
    reported(&output.stdout)
        .ok_or_else(|| LayerError::refused("what lvs printed cannot be understood", ""))
}

/// `{"report":[{"lv":[{"lv_name":"data", …}]}]}`.
pub(super) fn reported(text: &str) -> Option<Vec<Volume>> {
    let whole: serde_json::Value = serde_json::from_str(text).ok()?;
    let lines = whole.get("report")?.get(0)?.get("lv")?.as_array()?;
    let volume = |line: &serde_json::Value| {
        let columns = line.as_object()?.iter();
        let columns = columns.map(|(name, value)| {
            let value = value.as_str().unwrap_or_default();
            // Hidden volumes stand in brackets.
            (name.clone(), value.trim_matches(['[', ']']).to_string())
        });
        Some(Volume(columns.collect()))
    };
    lines.iter().map(volume).collect()
}

/// A UUID with its digits grouped as LVM wants them: 6-4-4-4-4-4-6.
fn regrouped(uuid: &str) -> String {
    let digits: Vec<char> = uuid.chars().filter(|c| c.is_ascii_hexdigit()).collect();
    if digits.len() != 32 {
        return uuid.to_string();
    }
    let ends = [6, 10, 14, 18, 22, 26, 32];
    let starts = [0, 6, 10, 14, 18, 22, 26];
    let groups = starts.iter().zip(ends);
    let groups = groups.map(|(start, end)| digits[*start..end].iter().collect::<String>());
    groups.collect::<Vec<_>>().join("-")
}

impl Layer for Lvm {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("lvm, kind = {}", KIND_OF_VOLUME.word(self.shape))
    }

    fn describe_asked(&self) -> String {
        let mut text = format!("{} volume (LVM)", KIND_OF_VOLUME.word(self.shape));
        if self.shape == VolumeKind::Striped {
            if let Some(stripes) = self.stripes {
                text.push_str(&format!(", {stripes} stripes"));
            }
            text.push_str(&format!(", stripe size {}", unit::bytes(self.stripe_size)));
        }
        if self.shape == VolumeKind::Cache {
            text.push_str(&format!(", {} by the last device", self.cache_mode));
        }
        if self.snapshot {
            text.push_str(", a snapshot held");
        }
        text
    }

    fn takes(&self) -> Takes {
        let min = match self.shape {
            VolumeKind::Striped => self.stripes.unwrap_or(2),
            VolumeKind::Cache => 2,
            VolumeKind::Linear | VolumeKind::Thin => 1,
        };
        Takes::at_least(min)
    }

    fn needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: "dm_mod",
                shown_by: "/sys/class/misc/device-mapper",
                what: "mapped devices (dm)",
            }],
            ..Needs::as_root(
                match self.shape {
                    VolumeKind::Linear | VolumeKind::Striped => {
                        &["pvcreate", "vgcreate", "lvcreate", "lvs", "wipefs", "blkid"]
                    }
                    VolumeKind::Thin => &[
                        "pvcreate",
                        "vgcreate",
                        "lvcreate",
                        "lvs",
                        "wipefs",
                        "blkid",
                        "thin_check",
                    ],
                    VolumeKind::Cache => &[
                        "pvcreate",
                        "vgcreate",
                        "lvcreate",
                        "lvconvert",
                        "lvs",
                        "wipefs",
                        "blkid",
                        "cache_check",
                    ],
                },
                KIND.packages,
            )
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let devices = filesystem::to_format(host, below)?;
        for device in &devices {
            let uuid = regrouped(&setup.uuid());
            // Also of loop devices: udev would activate the group again while they are detached.
            setup.will_carry(device, &uuid)?;
            // pvcreate(8): a UUID of one's own needs --norestorefile, else a backup to restore
            // from.
            let command = argv_at(
                ["pvcreate", "--norestorefile", "--uuid", &uuid],
                &device.path,
            );
            host.must(&command)?;
        }
        let group = setup.plain_name("group");
        // The tag tells an administrator (`vgs -o +tags`) who made a group that was left behind.
        let mut command = argv(["vgcreate", "--addtag", "stackrace", &group]);
        command.extend(devices.iter().map(|device| device.path.clone().into()));
        setup.make(undo::REMOVE.of([group.clone().into()]), &command)?;
        // Without entries of their own: all volumes go with the group.
        for command in self.create(&group, &devices) {
            host.must(&command)?;
        }
        if self.shape == VolumeKind::Thin {
            self.make_thin(host, &group)?;
        }
        if self.snapshot {
            self.take_snapshot(host, &group)?;
        }
        let path = Path::new("/dev").join(&group).join("data");
        setup.await_device(&path)?;
        Ok(assembled::standing(
            host,
            "lvm",
            self.read_back(host, &group, devices.len())?,
            path,
            group,
        ))
    }
}
