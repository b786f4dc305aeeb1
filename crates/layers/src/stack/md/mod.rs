//! An array of the kernel's md driver, read back from the driver itself.

mod imagined;
#[cfg(any(test, feature = "testing"))]
mod testing;
#[cfg(test)]
mod tests;
mod undo;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::lasting::LastingState;
use stackrace_foundation::foundation::{
    Device, FileData, Gives, GivesKind, Layer, LayerError, LayerKind, ON_TWO_DISKS, Setup,
    StandingLayer, Takes, assembled, block, filesystem,
};
use stackrace_machine::host::imagined::Tool;
use stackrace_machine::host::{Driver, Host, Needs, Package, argv, argv_at};
use std::path::{Path, PathBuf};

/// Levels of mdadm(8) that this layer makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RaidLevel {
    Zero,
    One,
    Four,
    Five,
    Six,
    Ten,
}

/// The means of keeping stripes consistent instead of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Ppl,
    Journal,
}

const RAID: ChoiceDoc<RaidLevel> = choice!(
    "raid",
    [
        "0" => RaidLevel::Zero,
        "1" => RaidLevel::One,
        "4" => RaidLevel::Four,
        "5" => RaidLevel::Five,
        "6" => RaidLevel::Six,
        "10" => RaidLevel::Ten,
    ],
    "",
    "How data is spread over the devices.",
);
const BITMAP: ChoiceDoc<bool> = choice!(
    "bitmap",
    ["none" => false, "internal" => true],
    "internal",
    "Whether a map of what is being written lies on the members; RAID 0 has none.",
);
/// The format of superblocks that mdadm makes unless told otherwise.
const METADATA_USUAL: &str = "1.2";
const METADATA: ChoiceDoc<&'static str> = choice!(
    "metadata",
    ["1.0" => "1.0", "1.1" => "1.1", "1.2" => METADATA_USUAL],
    "1.2",
    "Where the superblock of each member is: 1.0 at its end, 1.1 at its start, 1.2 at 4 KiB.",
);
const POLICY: ChoiceDoc<Policy> = choice!(
    "consistency-policy",
    ["ppl" => Policy::Ppl, "journal" => Policy::Journal],
    "",
    "Of RAID 5 (a journal also of 4 and 6), instead of a bitmap: a partial parity log on the members, or a journal on the last device, keep stripes consistent when the power goes.",
);

/// Files in which the driver tells of an array, besides what is compared.
const TOLD: [&str; 7] = [
    "array_state",
    "bitmap/chunksize",
    "component_size",
    "consistency_policy",
    "layout",
    "stripe_cache_size",
    "sync_action",
];

/// The layer `md` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "md",
    summary: "An array of Linux's md driver: RAID 0, 1, 4, 5, 6 or 10, also with a member missing.",
    settings: &[
        RAID.doc.required(),
        SettingDoc::bytes(
            "chunk",
            "512 KiB",
            "Bytes on one device before the next one's turn; RAID 1 has none.",
        ),
        BITMAP.doc,
        POLICY.doc,
        METADATA.doc,
        SettingDoc::text(
            "layout",
            "",
            "Of RAID 10: n2, n3, f2, f3, o2, o3; of RAID 5 and 6 as mdadm names it; what mdadm chooses unless given.",
        ),
        SettingDoc::flag(
            "degraded",
            "false",
            "Whether the last device is left out, and its place in the array is empty.",
        ),
        SettingDoc::flag(
            "assume-clean",
            "true",
            "Whether the first synchronisation is left out; if not, it is waited for.",
        ),
    ],
    takes: Takes::at_least(2),
    gives: GivesKind::Devices,
    example: "md = { raid = 5, chunk = \"64 KiB\", bitmap = \"internal\" }",
    parse,
    words: &[],
    packages: &[Package::new("mdadm", &["mdadm"])],
    undo: &[undo::STOP],
    imagined: &[Tool::new("mdadm", imagined::mdadm)],
    data: FileData::UNKNOWN,
    reads: &[exported],
    shapes: &[
        &[
            "loop = { size = \"1 GiB\", count = 4 }",
            "md = { raid = 10, layout = \"f2\", degraded = true }",
            "ext4 = {}",
        ],
        &[
            ON_TWO_DISKS,
            "md = { raid = 1, metadata = 1.0 }",
            "ext4 = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

struct Md {
    level: RaidLevel,
    chunk: Option<u64>,
    /// True for a bitmap on the members; `None` where there can be none.
    bitmap: Option<bool>,
    policy: Option<Policy>,
    metadata: &'static str,
    layout: Option<String>,
    degraded: bool,
    assume_clean: bool,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let level = settings.choice(RAID)?;
    let refuse = |name: &str, message: String, help: &str| {
        Err(Refusal::at(settings.span_of(name), message, help))
    };
    let chunk = settings.optional_bytes("chunk")?;
    if let Some(chunk) = chunk
        && (!chunk.is_power_of_two() || chunk < 4096)
    {
        let message = format!("a chunk of {chunk} B is not possible");
        return refuse("chunk", message, "write a power of two from \"4 KiB\"");
    }
    if level == RaidLevel::One && chunk.is_some() {
        let message = "RAID 1 has no chunks".to_string();
        return refuse("chunk", message, "leave chunk out");
    }
    // Without redundancy nothing can be missing, out of sync, or marked in a bitmap.
    let redundant = level != RaidLevel::Zero;
    if !redundant && settings.optional_choice(BITMAP)? == Some(true) {
        let message = "RAID 0 has no bitmap".to_string();
        return refuse("bitmap", message, "leave bitmap out");
    }
    let policy = policy(settings, level)?;
    let degraded = settings.flag("degraded")?;
    if !redundant && degraded {
        let message = "RAID 0 does not work with a member missing".to_string();
        return refuse("degraded", message, "choose another raid");
    }
    let layout = settings.optional_text("layout")?;
    if let Some(word) = &layout
        && !is_layout(level, word)
    {
        let message = format!("RAID {} has no layout \"{word}\"", RAID.word(level));
        return refuse(
            "layout",
            message,
            "see --layout in mdadm(8), or leave it out",
        );
    }
    Ok(Box::new(Md {
        chunk: (level != RaidLevel::One)
            .then(|| settings.bytes("chunk"))
            .transpose()?,
        // The driver takes one of them alone.
        bitmap: (redundant && policy.is_none())
            .then(|| settings.choice(BITMAP))
            .transpose()?,
        policy,
        metadata: settings.choice(METADATA)?,
        layout,
        degraded,
        assume_clean: settings.flag("assume-clean")?,
        level,
    }))
}

/// Copies of a RAID 10 of this layout: `f3` has three (mdadm(8)); two unless it says so.
fn copies(layout: Option<&str>) -> u64 {
    let number = layout.and_then(|layout| layout.get(1..)?.parse().ok());
    number.unwrap_or(2)
}

/// Reads what a study asks for instead of a bitmap.
///
/// # Errors
/// The level has no such thing, or something else is asked for that cannot be had beside it.
fn policy(settings: &Settings, level: RaidLevel) -> Result<Option<Policy>, Refusal> {
    let Some(policy) = settings.optional_choice(POLICY)? else {
        return Ok(None);
    };
    let refuse = |name: &str, message: String, help: &str| {
        Err(Refusal::at(settings.span_of(name), message, help))
    };
    // mdadm(8), --consistency-policy.
    let (levels, has): (&[RaidLevel], &str) = match policy {
        Policy::Ppl => (&[RaidLevel::Five], "write raid = 5"),
        Policy::Journal => (
            &[RaidLevel::Four, RaidLevel::Five, RaidLevel::Six],
            "write raid = 4, 5 or 6",
        ),
    };
    let word = POLICY.word(policy);
    if !levels.contains(&level) {
        let message = format!("RAID {} has no {word}", RAID.word(level));
        return refuse(POLICY.doc.name, message, has);
    }
    if settings.optional_choice(BITMAP)? == Some(true) {
        let message = format!("an array with a {word} has no bitmap");
        return refuse("bitmap", message, "leave bitmap out");
    }
    if settings.flag("degraded")? {
        let message = format!("an array with a {word} is made with all members");
        return refuse("degraded", message, "leave degraded out");
    }
    Ok(Some(policy))
}

/// Layouts of mdadm(8).
fn is_layout(level: RaidLevel, word: &str) -> bool {
    match level {
        RaidLevel::Ten => ["n2", "n3", "n4", "f2", "f3", "f4", "o2", "o3", "o4"].contains(&word),
        RaidLevel::Five | RaidLevel::Six => [
            "left-asymmetric",
            "right-asymmetric",
            "left-symmetric",
            "right-symmetric",
            "parity-first",
            "parity-last",
        ]
        .contains(&word),
        RaidLevel::Zero | RaidLevel::One | RaidLevel::Four => false,
    }
}

impl Md {
    fn devices_min(&self) -> usize {
        let members = match self.level {
            RaidLevel::Zero | RaidLevel::One | RaidLevel::Ten => 2,
            RaidLevel::Four | RaidLevel::Five => 3,
            RaidLevel::Six => 4,
        };
        members + self.journals()
    }

    /// Number of devices, the last ones, that are a journal and no members.
    fn journals(&self) -> usize {
        usize::from(self.policy == Some(Policy::Journal))
    }

    /// The members, and the empty place of the one left out.
    fn create(&self, device: &Path, name: &str, uuid: &str, devices: &[Device]) -> Vec<String> {
        let (devices, journal) = devices.split_at(devices.len().saturating_sub(self.journals()));
        let count = devices.len();
        // --run asks nothing: what the devices carry was looked at. A fixed home host, because
        // that of the machine would stand in the superblock (mdadm(8)).
        let words = [
            "mdadm",
            "--create",
            &device.to_string_lossy(),
            "--run",
            "--level",
            RAID.word(self.level),
            "--raid-devices",
            &count.to_string(),
            "--metadata",
            self.metadata,
            "--homehost",
            "none",
            "--name",
            name,
            "--uuid",
            uuid,
        ];
        let mut words: Vec<String> = words.map(str::to_string).to_vec();
        let mut option = |name: &str, value: String| words.extend([name.to_string(), value]);
        if let Some(chunk) = self.chunk {
            // mdadm(8) counts KiB.
            option("--chunk", (chunk / 1024).to_string());
        }
        if let Some(bitmap) = self.bitmap {
            option("--bitmap", BITMAP.word(bitmap).to_string());
        }
        match (self.policy, journal) {
            (_, [journal]) => option("--write-journal", journal.path.to_string_lossy().into()),
            (Some(policy), _) => option("--consistency-policy", POLICY.word(policy).to_string()),
            (None, _) => {}
        }
        if let Some(layout) = &self.layout {
            option("--layout", layout.clone());
        }
        if self.assume_clean && self.level != RaidLevel::Zero {
            words.push("--assume-clean".to_string());
        }
        let members = &devices[..count - usize::from(self.degraded)];
        words.extend(
            members
                .iter()
                .map(|d| d.path.to_string_lossy().into_owned()),
        );
        if self.degraded {
            // mdadm's word for a place without a device.
            words.push("missing".to_string());
        }
        words
    }

    /// Reads back what the driver made of it.
    fn read_back(
        &self,
        host: &dyn Host,
        device: &Path,
        count: usize,
    ) -> Result<Vec<Fact>, LayerError> {
        let name = block::kernel_name(host, device);
        let about = Path::new("/sys/class/block").join(&name).join("md");
        let read = |what: &str| {
            let text = host.read_text(&about.join(what)).ok()?;
            Some(text.trim().to_string())
        };
        let mut asked = vec![
            ("level", format!("raid{}", RAID.word(self.level))),
            ("raid_disks", count.to_string()),
            ("metadata_version", self.metadata.to_owned()),
        ];
        if self.level != RaidLevel::Zero {
            // RAID 0 has no such file.
            asked.push(("degraded", usize::from(self.degraded).to_string()));
        }
        if let Some(policy) = self.policy {
            asked.push(("consistency_policy", POLICY.word(policy).to_string()));
        }
        if let Some(chunk) = self.chunk {
            asked.push(("chunk_size", chunk.to_string()));
        }
        let mut facts = Vec::new();
        for (what, asked) in asked {
            let found = read(what).unwrap_or_else(|| "nothing".to_string());
            if found != asked {
                return Err(LayerError::refused(
                    format!("{name} has {what} = {found} although {asked} was asked for"),
                    "",
                ));
            }
            facts.push(Fact::new(what, found));
        }
        if let Some(bitmap) = self.bitmap {
            // `none`, or where it lies: `+8`.
            let found = read("bitmap/location").unwrap_or_else(|| "none".to_string());
            if (found != "none") != bitmap {
                let asked = BITMAP.word(bitmap);
                return Err(LayerError::refused(
                    format!("{name} has its bitmap at {found} although {asked} was asked for"),
                    "",
                ));
            }
            facts.push(Fact::new("bitmap", found));
        }
        facts.extend(
            TOLD.iter()
                .filter_map(|what| Some(Fact::new(*what, read(what)?))),
        );
        let export = host.must(&argv_at(["mdadm", "--detail", "--export"], device))?;
        facts.extend(exported(&export.stdout));
        Ok(facts)
    }
}

/// The members that have all data, as `mdadm --detail` counts them: one that failed leaves less to write.
pub(super) fn members_at_work(text: &str) -> String {
    let mut lines = text.lines().filter_map(|line| line.split_once(" : "));
    let active = lines.find(|(name, _)| name.trim() == "Active Devices");
    let count = active.and_then(|(_, count)| count.trim().parse().ok());
    count.map_or_else(
        || "without a count of its members".to_owned(),
        at_work_words,
    )
}

fn at_work_words(count: usize) -> String {
    format!("at work on {}", unit::counted(count, "member"))
}

/// `MD_LEVEL=raid1` lines of `mdadm --detail --export`, without those of single members.
pub(super) fn exported(text: &str) -> Vec<Fact> {
    text.lines()
        // Members have names of loop devices or disks that differ from trial to trial.
        .filter(|line| line.starts_with("MD_") && !line.starts_with("MD_DEVICE_"))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| Fact::new(name, value))
        .collect()
}

impl Layer for Md {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("md, raid = {}", RAID.word(self.level))
    }

    fn describe_asked(&self) -> String {
        let mut text = format!("RAID {} (md)", RAID.word(self.level));
        if let Some(chunk) = self.chunk {
            text.push_str(&format!(", chunk {}", unit::bytes(chunk)));
        }
        if let Some(layout) = &self.layout {
            text.push_str(&format!(", layout {layout}"));
        }
        if self.metadata != METADATA_USUAL {
            text.push_str(&format!(", metadata {}", self.metadata));
        }
        if let Some(bitmap) = self.bitmap {
            text.push_str(&format!(", bitmap {}", BITMAP.word(bitmap)));
        }
        text.push_str(match self.policy {
            Some(Policy::Ppl) => ", partial parity log",
            Some(Policy::Journal) => ", a journal on the last device",
            None => "",
        });
        if self.degraded {
            text.push_str(", the last member missing");
        }
        if self.level != RaidLevel::Zero {
            text.push_str(match self.assume_clean {
                true => ", not synchronised first (assumed to be clean)",
                false => ", synchronised first",
            });
        }
        text
    }

    fn takes(&self) -> Takes {
        Takes::at_least(self.devices_min())
    }

    fn written_below(&self, bytes: u64, devices: usize) -> u64 {
        let (all, devices) = (devices, devices.saturating_sub(self.journals()));
        // The place of a missing member is not written to.
        let members = devices - usize::from(self.degraded && devices > 0);
        // A journal gets data and parity first.
        let times = 1 + (all - devices) as u64;
        match self.level {
            RaidLevel::Zero => bytes,
            RaidLevel::One => bytes.saturating_mul(members as u64),
            RaidLevel::Ten => bytes.saturating_mul(copies(self.layout.as_deref())),
            RaidLevel::Four | RaidLevel::Five => {
                block::with_parity(bytes, devices, 1).saturating_mul(times)
            }
            RaidLevel::Six => block::with_parity(bytes, devices, 2).saturating_mul(times),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: "md_mod",
                shown_by: "/proc/mdstat",
                what: "arrays (md)",
            }],
            ..Needs::as_root(&["mdadm", "wipefs", "blkid"], KIND.packages)
        }
    }

    fn returns(&self) -> bool {
        true
    }

    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let devices = filesystem::devices(below)?;
        let (name, uuid) = (setup.short_name(), setup.uuid());
        let device = PathBuf::from("/dev/md").join(&name);
        // udev may have put it together already, under a name of its own choice.
        host.exec(&argv(["udevadm", "settle"]))?;
        host.exec(&argv(["mdadm", "--stop", "--scan"]))?;
        let assemble = |more: &[&str]| {
            let mut words = argv(["mdadm", "--assemble"]);
            words.extend(argv(more.iter().map(ToString::to_string)));
            words.push(device.clone().into());
            let members = &devices[..devices.len() - usize::from(self.degraded)];
            words.extend(members.iter().map(|member| member.path.clone().into()));
            words
        };
        setup.will(undo::STOP.of([uuid.into()]))?;
        // --run: also with a member missing, as systemd starts it after half a minute. What may be
        // inconsistent is not started by it (mdadm(8)).
        if host.must(&assemble(&["--run"])).is_err() {
            // What was put together in part is in the way.
            host.exec(&argv(["mdadm", "--stop", "--scan"]))?;
            setup.repair(&assemble(&["--force", "--run"]))?;
        }
        setup.await_device(&device)?;
        Ok(assembled::standing(host, "md", Vec::new(), device, name))
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let devices = filesystem::to_format(host, below)?;
        let (name, uuid) = (setup.short_name(), setup.uuid());
        // A name and no number: mdadm takes a free one.
        let device = PathBuf::from("/dev/md").join(&name);
        // Also of loop devices: udev would put the array together again while they are detached.
        for member in &devices {
            setup.will_carry(member, &uuid)?;
        }
        let create = argv(self.create(&device, &name, &uuid, &devices));
        // By UUID: the kernel may give the array another device when udev assembles it.
        setup.make(undo::STOP.of([uuid.into()]), &create)?;
        setup.await_device(&device)?;
        if !self.assume_clean && self.level != RaidLevel::Zero {
            // 1: there was nothing to wait for (mdadm(8)).
            host.exec(&argv_at(["mdadm", "--wait"], &device))?;
        }
        // What the members held before may look like a signature of the array.
        host.must(&argv_at(["wipefs", "--all"], &device))?;
        let members = devices.len() - self.journals();
        let mut facts = self.read_back(host, &device, members)?;
        let sync = match (self.level, self.assume_clean) {
            (RaidLevel::Zero, _) => "none: no redundancy",
            (_, true) => "left out: assumed to be clean",
            (_, false) => "waited for",
        };
        facts.push(Fact::new("first synchronisation", sync));
        if self.level != RaidLevel::Zero {
            let detail = argv_at(["mdadm", "--detail"], &device);
            // As asked, and not as found: a member may have failed a moment ago.
            let at_work = members - usize::from(self.degraded);
            let asked = (
                members_at_work as fn(&str) -> String,
                at_work_words(at_work),
            );
            let state = LastingState::asked("the array", setup.node, detail, asked);
            setup.parts.stays.push(state);
        }
        Ok(assembled::standing(host, "md", facts, device, name))
    }
}
