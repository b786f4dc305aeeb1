//! A pool of ZFS on devices, its ashift read back from the labels on them.
//!
//! ZFS takes the ashift asked for as a wish: on disks that report physical sectors of 4096 B,
//! mirrors and raidz get 12 although 9 was asked. Such a pool is an error here, never a figure.

use crate::stack::zfs::arc::{self, ArcLimit};
use crate::stack::zfs::properties as zfs;
use crate::stack::zfs::supported::impossible;
use crate::stack::zfs::topology::{TOPOLOGY, Topology};
use crate::stack::zfs::{imagined, undo::DESTROY};
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::lasting::{LastingState, whole};
use stackrace_foundation::foundation::{
    DEVICES_MAX, Danger, Device, FileData, Gives, GivesKind, Inspection, Layer, LayerError,
    LayerKind, Pool, Setup, StandingLayer, Takes, block, filesystem,
};
use stackrace_machine::host::{Host, Needs, argv, argv_at, udev::create_pool};
use stackrace_machine::journal::partitions;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Largest ashift ZFS takes by itself on disks that ask for it.
const MAX_AUTO_ASHIFT: &str = "/sys/module/zfs/parameters/zfs_vdev_max_auto_ashift";

/// The least that ZFS takes as lower and as upper limit of its cache, bytes.
const ARC_LEAST: [u64; 2] = [32 << 20, 64 << 20];

/// The layer `zpool` of a study.
pub(crate) const KIND: LayerKind = LayerKind {
    name: "zpool",
    summary: "A pool of ZFS; put a dataset on it, or a zvol. Exported and imported between trials.",
    settings: &[
        TOPOLOGY.doc,
        SettingDoc::count(
            "ashift",
            "",
            "Power of two of the smallest write, 9 to 16; what ZFS chooses unless given.",
        ),
        SettingDoc::count(
            "max-auto-ashift",
            "",
            "The module's parameter zfs_vdev_max_auto_ashift while the pool stands; 9 makes an ashift of 9 hold on disks with physical sectors of 4 KiB.",
        ),
        SettingDoc::bytes(
            "arc-max",
            "",
            "The module's parameter zfs_arc_max while the pool stands: most memory for the cache of ZFS (ARC), at least 64 MiB.",
        ),
        SettingDoc::count(
            "special",
            "0",
            "How many devices hold metadata alone, a mirror if several; before those of log and cache.",
        ),
        SettingDoc::count(
            "log",
            "0",
            "How many devices hold the intent log alone, a mirror if several; before those of cache.",
        ),
        SettingDoc::count(
            "cache",
            "0",
            "How many devices, the last ones, cache what is read.",
        ),
        zfs::PROPERTIES,
    ],
    takes: Takes::at_least(1),
    gives: GivesKind::Pool,
    example: "zpool = { topology = \"mirror\", ashift = 12 }",
    words: &[&zfs::POOL],
    parse,
    packages: zfs::PACKAGES,
    undo: &[DESTROY],
    imagined: imagined::TOOLS,
    data: FileData::UNKNOWN,
    reads: &[|text| {
        let ashift = ashift(text).map(|ashift| Fact::new("ashift", ashift.to_string()));
        let layout = Fact::new("layout", layout(text, ""));
        ashift.into_iter().chain([layout]).collect()
    }],
    shapes: &[&[
        "loop = { size = \"1 GiB\", count = 3 }",
        "zpool = { topology = \"mirror\", ashift = 9, max-auto-ashift = 9, log = 1 }",
        "dataset = { compression = \"lz4\" }",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: super::testing::POOL,
    over_shell: zfs::OVER_SHELL,
    ..LayerKind::EMPTY
};

struct Zpool {
    topology: Topology,
    ashift: Option<u64>,
    max_auto_ashift: Option<u64>,
    /// Most memory for the cache of ZFS, bytes.
    arc_max: Option<u64>,
    special: usize,
    log: usize,
    cache: usize,
    properties: Vec<(String, String)>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let count = |name: &str| -> Result<usize, Refusal> {
        let count = settings.count(name)?;
        usize::try_from(count)
            .ok()
            .filter(|count| *count < DEVICES_MAX)
            .ok_or_else(|| {
                let message = format!("{name} cannot be {count}");
                Refusal::at(settings.span_of(name), message, "write 0, 1 or 2")
            })
    };
    let ashift = |name: &str| -> Result<Option<u64>, Refusal> {
        let value = settings.optional_count(name)?;
        match value {
            // The range of zpoolprops(7).
            Some(value) if !(9..=16).contains(&value) => Err(Refusal::at(
                settings.span_of(name),
                format!("{name} cannot be {value}"),
                "write 9 (512 B), 12 (4 KiB) or another power of two up to 16",
            )),
            _ => Ok(value),
        }
    };
    Ok(Box::new(Zpool {
        topology: settings.choice(TOPOLOGY)?,
        ashift: ashift("ashift")?,
        max_auto_ashift: ashift("max-auto-ashift")?,
        arc_max: arc_max(settings)?,
        special: count("special")?,
        log: count("log")?,
        cache: count("cache")?,
        properties: zfs::properties(settings, &[&zfs::POOL])?,
    }))
}

/// Most memory for the cache, where the study says so.
fn arc_max(settings: &Settings) -> Result<Option<u64>, Refusal> {
    let [_, least] = ARC_LEAST;
    match settings.optional_bytes("arc-max")? {
        // ZFS takes no notice of a smaller one.
        Some(bytes) if bytes < least => Err(Refusal::at(
            settings.span_of("arc-max"),
            format!(
                "the cache of ZFS cannot be limited to {}",
                unit::bytes(bytes)
            ),
            format!("write {} or more", unit::bytes(least)),
        )),
        bytes => Ok(bytes),
    }
}

impl Zpool {
    /// Limits the cache of ZFS where that is asked for; the limit that holds.
    fn limit_cache(&self, setup: &mut Setup<'_>) -> Result<Option<Fact>, LayerError> {
        let Some(bytes) = self.arc_max else {
            return Ok(arc::fact(setup.host()));
        };
        // With much memory the lower limit is above the upper one, which then does not count.
        let [least, _] = ARC_LEAST;
        arc::limit(setup, ArcLimit::Lower, least)?;
        arc::limit(setup, ArcLimit::Upper, bytes)?;
        let found = ArcLimit::Upper.in_force(setup.host());
        if found != Some(bytes) {
            let found = found.map_or("nothing".to_owned(), unit::bytes);
            return Err(LayerError::refused(
                format!(
                    "the cache of ZFS is limited to {found} although {} was asked for",
                    unit::bytes(bytes)
                ),
                "write an arc-max below the memory of the machine",
            ));
        }
        Ok(arc::fact(setup.host()))
    }

    /// Devices its data need.
    fn data_min(&self) -> usize {
        self.topology.devices_min()
    }

    fn extra(&self) -> usize {
        self.special + self.log + self.cache
    }

    /// The words after the name: where which device goes.
    fn vdevs(&self, devices: &[Device]) -> Result<Vec<OsString>, LayerError> {
        let paths: Vec<&OsStr> = devices.iter().map(|d| d.path.as_os_str()).collect();
        // In the order of the settings' documentation: data, special, log, cache.
        let (data, rest) = paths.split_at(paths.len().saturating_sub(self.extra()));
        let (special, rest) = rest.split_at(self.special);
        let (log, cache) = rest.split_at(self.log);
        let mut words: Vec<OsString> = Vec::new();
        match self.topology {
            Topology::Stripe => words.extend(argv(data.iter().copied())),
            Topology::Raid10 if !data.len().is_multiple_of(2) => {
                return Err(LayerError::refused(
                    format!("{} devices make no pairs for raid10", data.len()),
                    "give it an even number of devices",
                ));
            }
            Topology::Raid10 => {
                for pair in data.chunks(2) {
                    words.push("mirror".into());
                    words.extend(argv(pair.iter().copied()));
                }
            }
            // The others are words of zpool-create(8).
            topology => {
                words.push(TOPOLOGY.word(topology).into());
                words.extend(argv(data.iter().copied()));
            }
        }
        for (purpose, devices) in [("special", special), ("log", log), ("cache", cache)] {
            if !devices.is_empty() {
                words.push(purpose.into());
            }
            // Devices of a cache cannot be mirrored (zpoolconcepts(7)).
            if devices.len() > 1 && purpose != "cache" {
                words.push("mirror".into());
            }
            words.extend(argv(devices.iter().copied()));
        }
        Ok(words)
    }

    fn create(&self, name: &str, devices: &[Device]) -> Result<Vec<OsString>, LayerError> {
        // -f: that the devices may be written over was found out before, and a single special or
        // log device beside a mirror is what was asked for.
        // cachefile=none: no service imports the pool when the machine starts again
        // (zpoolprops(7)).
        let mut command = argv(["zpool", "create", "-f", "-o", "cachefile=none"]);
        if let Some(ashift) = self.ashift {
            command.extend(argv(["-o".to_string(), format!("ashift={ashift}")]));
        }
        command.extend(zfs::words(&self.properties));
        // The pool's own dataset would be mounted at /NAME.
        command.extend(argv(["-O", "mountpoint=none", name]));
        command.extend(self.vdevs(devices)?);
        Ok(command)
    }

    /// The ashift in the labels, which alone is what ZFS works with.
    fn ashift_of(&self, host: &dyn Host, devices: &[Device]) -> Result<Vec<Fact>, LayerError> {
        let mut facts = Vec::new();
        // Data and metadata lie on these; logs and caches come behind them.
        let (main, _) = devices.split_at(devices.len().saturating_sub(self.log + self.cache));
        for device in main {
            let name = block::kernel_name(host, &device.path);
            let label = argv([OsStr::new("zdb"), OsStr::new("-l")]);
            let leaf = leaf(host, &device.path);
            let label = host.must(&[label, vec![leaf.into_os_string()]].concat())?;
            let found = ashift(&label.stdout).ok_or_else(|| {
                LayerError::refused(
                    format!("the label of the pool on {name} names no ashift"),
                    "",
                )
            })?;
            if let Some(asked) = self.ashift.filter(|asked| *asked != found) {
                return Err(LayerError::refused(
                    format!("{name} got an ashift of {found} although {asked} was asked for"),
                    trap(asked),
                ));
            }
            facts.push(Fact::new(format!("ashift of {name}"), found.to_string()));
        }
        Ok(facts)
    }

    fn facts(
        &self,
        host: &dyn Host,
        name: &str,
        devices: &[Device],
    ) -> Result<Vec<Fact>, LayerError> {
        let status = host.must(&argv(["zpool", "status", name]))?;
        let mut facts = vec![Fact::new("layout", layout(&status.stdout, name))];
        facts.extend(self.ashift_of(host, devices)?);
        let all = host.must(&argv(["zpool", "get", "all", name]))?;
        let found = zfs::table(&all.stdout);
        zfs::check("the pool", &self.properties, &found)?;
        facts.extend(zfs::facts(&self.properties, &found));
        let module = host.read_text(Path::new("/sys/module/zfs/version"));
        facts.extend(
            module
                .ok()
                .map(|version| Fact::new("version of ZFS", version.trim())),
        );
        Ok(facts)
    }
}

fn trap(asked: u64) -> String {
    format!(
        "write max-auto-ashift = {asked} in zpool, or use disks that report physical sectors of {} B",
        1_u64 << asked
    )
}

impl Layer for Zpool {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn written_below(&self, bytes: u64, devices: usize) -> u64 {
        // What lies on a log or a cache lies in the pool too, after a while.
        let data = devices.saturating_sub(self.special + self.log + self.cache);
        self.topology.written(bytes, data)
    }

    fn brief(&self) -> String {
        format!("zpool, topology = {}", TOPOLOGY.word(self.topology))
    }

    fn describe_asked(&self) -> String {
        let mut text = format!("pool, {}", TOPOLOGY.word(self.topology));
        if let Some(ashift) = self.ashift {
            text.push_str(&format!(", ashift {ashift}"));
        }
        if let Some(most) = self.max_auto_ashift {
            text.push_str(&format!(", chosen ashift at most {most}"));
        }
        if let Some(bytes) = self.arc_max {
            text.push_str(&format!(", ARC at most {}", unit::bytes(bytes)));
        }
        for (what, count) in [
            ("special", self.special),
            ("log", self.log),
            ("cache", self.cache),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} for {what}"));
            }
        }
        text + &zfs::shown(&self.properties)
    }

    fn takes(&self) -> Takes {
        Takes::at_least(self.data_min() + self.extra())
    }

    fn needs(&self) -> Needs {
        Needs::as_root(&["zpool", "zfs", "zdb", "wipefs", "blkid"], zfs::PACKAGES)
    }

    /// Parameters of the module hold for all pools.
    fn sets_the_machine(&self) -> bool {
        self.arc_max.is_some() || self.max_auto_ashift.is_some()
    }

    fn returns(&self) -> bool {
        true
    }

    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let devices = filesystem::devices(below)?;
        let name = setup.plain_name("pool");
        zfs::load(host);
        // Partitions of the disks appear after the disks.
        host.exec(&argv(["udevadm", "settle"]))?;
        let links = directory_of_links(setup, &name)?;
        link(host, &links, &devices)?;
        setup.will(DESTROY.of([name.clone().into()]))?;
        if host.must(&import(&links, &[], &name)).is_err() {
            // -F: back to the last transactions that can be opened (zpool-import(8)).
            setup.repair(&import(&links, &["-F"], &name))?;
        }
        host.must(&argv(["zpool", "list", &name]))?;
        Ok(StandingLayer::new(
            "zpool",
            Vec::new(),
            Gives::Pool(Pool { name }),
        ))
    }

    fn dangers(&self, machine: &Inspection<'_>) -> Vec<Danger> {
        impossible(machine, "zpool", &self.properties)
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let devices = filesystem::devices(below)?;
        let name = setup.plain_name("pool");
        let create = self.create(&name, &devices)?;
        for device in &devices {
            filesystem::ours_to_format(host, device)?;
        }
        zfs::load(host);
        if let Some(ashift) = self.max_auto_ashift {
            // Before the pool: the parameter counts when devices are added.
            setup.set_parameter(Path::new(MAX_AUTO_ASHIFT), &ashift.to_string())?;
        }
        let limit = self.limit_cache(setup)?;
        let links = directory_of_links(setup, &name)?;
        if setup.is_outlived() {
            for device in &devices {
                setup.will_carry(device, &name)?;
            }
        }
        setup.will(DESTROY.of([name.clone().into()]))?;
        create_pool(host, &create)?;
        link(host, &links, &devices)?;
        let import = import(&links, &[], &name);
        // ZFS has a cache of its own (ARC), which drop_caches does not empty.
        setup.moves(argv(["zpool", "export", &name]), import);
        let names: Vec<String> = devices
            .iter()
            .map(|device| block::kernel_name(host, &device.path))
            .collect();
        let mut facts = self.facts(host, &name, &devices)?;
        facts.extend(limit);
        // DEGRADED where it writes less than it was made for.
        let health = argv(["zpool", "get", "-H", "-o", "value", "health", &name]);
        let asked = (whole as fn(&str) -> String, "ONLINE".to_owned());
        let state = LastingState::asked("the pool", setup.node, health, asked);
        setup.parts.stays.push(state);
        Ok(StandingLayer {
            devices: names,
            ..StandingLayer::new("zpool", facts, Gives::Pool(Pool { name }))
        })
    }
}

/// A directory for links to the devices of a pool: import looks there, and so at no disk of another's.
fn directory_of_links(setup: &mut Setup<'_>, pool: &str) -> Result<PathBuf, LayerError> {
    let links = setup.scratch()?.join(format!(".{pool}"));
    setup.create_tree(&links)?;
    Ok(links)
}

fn link(host: &dyn Host, links: &Path, devices: &[Device]) -> Result<(), LayerError> {
    for (index, device) in devices.iter().enumerate() {
        let target = leaf(host, &device.path).into_os_string();
        let link = links.join(format!("disk-{}", index + 1)).into_os_string();
        host.must(&[argv(["ln", "--symbolic"]), vec![target, link]].concat())?;
    }
    Ok(())
}

/// The command that imports a pool whose devices are linked in a directory.
fn import(links: &Path, more: &[&str], pool: &str) -> Vec<OsString> {
    let mut import = argv_at(["zpool", "import", "-d"], links);
    import.extend(argv(["-o", "cachefile=none"]));
    import.extend(argv(more.iter().map(ToString::to_string)));
    import.extend(argv([pool]));
    import
}

/// The device that bears the label of one given to `zpool create`: ZFS makes a partition on a whole
/// disk.
fn leaf(host: &dyn Host, device: &Path) -> PathBuf {
    let mut partitions = partitions(host, device).into_iter();
    partitions.next().unwrap_or_else(|| device.to_path_buf())
}

/// The ashift in a label as `zdb -l` prints it.
pub(super) fn ashift(label: &str) -> Option<u64> {
    let line = label
        .lines()
        .find_map(|line| line.trim().strip_prefix("ashift: "))?;
    line.trim().parse().ok()
}

/// The names in the table of `zpool status`: `mirror-0 loop1 loop2`.
pub(super) fn layout(status: &str, pool: &str) -> String {
    let words = status
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("NAME "))
        .skip(1)
        .take_while(|line| !line.starts_with("errors:"))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| *word != pool);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of zfs-fuse 0.7.0 about two loop devices.
    #[test]
    fn layout_and_ashift_are_read_back() {
        let status = concat!(
            "  pool: p\n state: ONLINE\n scrub: none requested\nconfig:\n\n",
            "\tNAME        STATE     READ WRITE CKSUM\n",
            "\tp  ONLINE       0     0     0\n",
            "\t  mirror-0  ONLINE       0     0     0\n",
            "\t    loop1   ONLINE       0     0     0\n",
            "\t    loop2   ONLINE       0     0     0\n\n",
            "errors: No known data errors\n",
        );
        assert_eq!(layout(status, "p"), "mirror-0 loop1 loop2");
        // OpenZFS 2.3.9, of disks with physical sectors of 4096 B.
        let status = concat!(
            "  pool: p\n state: ONLINE\nconfig:\n\n",
            "\tNAME                STATE     READ WRITE CKSUM\n",
            "\tp                   ONLINE       0     0     0\n",
            "\t  draid2:2d:4c:0s-0 ONLINE       0     0     0\n",
            "\t    vda             ONLINE       0     0     0  block size: 512B configured, 4096B native\n",
            "\t    vdb             ONLINE       0     0     0  block size: 512B configured, 4096B native\n\n",
            "errors: No known data errors\n",
        );
        assert_eq!(layout(status, "p"), "draid2:2d:4c:0s-0 vda vdb");
        let label =
            "    vdev_tree:\n        type: 'mirror'\n        ashift: 12\n        asize: 1\n";
        assert_eq!(ashift(label), Some(12));
        assert_eq!(ashift("failed to unpack label 0\n"), None);
        assert!(trap(9).ends_with("physical sectors of 512 B"));
    }

    #[test]
    fn devices_go_where_they_were_asked_to() {
        let pool = Zpool {
            topology: Topology::Raid10,
            ashift: Some(9),
            max_auto_ashift: None,
            arc_max: None,
            special: 2,
            log: 1,
            cache: 1,
            properties: Vec::new(),
        };
        let devices = |count: u32| -> Vec<Device> {
            let device = |number| Device {
                path: PathBuf::from(format!("/{number}")),
                origin: stackrace_foundation::foundation::Origin::LoopOn(PathBuf::new()),
            };
            (1..=count).map(device).collect()
        };
        let words = pool.vdevs(&devices(8)).unwrap();
        assert_eq!(
            stackrace_base::event::shell(&words),
            "mirror /1 /2 mirror /3 /4 special mirror /5 /6 log /7 cache /8"
        );
        assert!(pool.vdevs(&devices(9)).is_err());
        assert_eq!(pool.takes(), Takes::at_least(8));
    }
}
