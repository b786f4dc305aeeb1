//! Disks pooled file by file, as home servers have them (mergerfs): each device has a file system of its
//! own, every file lies whole on one of them, and a policy says on which a new one is made.

#[cfg(any(test, feature = "testing"))]
mod testing;

use crate::stack::ext;
use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, Settings, choice};
use stackrace_base::unit::{self, ShownPath};
use stackrace_foundation::foundation::words::{
    OptionValue::{Amount, OneOf},
    Words, mount_options,
};
use stackrace_foundation::foundation::{
    Gives, GivesKind, Layer, LayerError, LayerKind, Memory, Setup, StandingLayer, Takes,
    filesystem, options,
};
use stackrace_machine::host::imagined::{Tool, World, last, said, text_after, word};
use stackrace_machine::host::{Host, Needs, Output, Package, argv_at};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The word in a study, and the program.
const NAME: &str = "mergerfs";

/// The kernel's name of what it mounts.
const MOUNTED_AS: &str = "fuse.mergerfs";

/// The file in which it tells its settings as attributes.
const CONTROL: &str = ".mergerfs";

/// Begins the name of each of those attributes.
const ATTRIBUTE: &str = "user.mergerfs.";

/// The option for the room that a branch must have for a new file.
const MIN_FREE: &str = "minfreespace=";

/// A file system for each device, by mkfs(8): its words, and the option for its UUID with what stands
/// before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Branch {
    kind: &'static str,
    mkfs: &'static [&'static str],
    uuid: [&'static str; 2],
}

const EXT4: Branch = Branch {
    kind: "ext4",
    // mke2fs(8): nothing is left for the kernel to initialize while trials run.
    mkfs: &["mkfs.ext4", "-q", "-E", ext::EXTENDED],
    uuid: ["-U", ""],
};

const XFS: Branch = Branch {
    kind: "xfs",
    mkfs: &["mkfs.xfs", "-q", "-K"],
    uuid: ["-m", "uuid="],
};

const FILE_SYSTEM: ChoiceDoc<Branch> = choice!(
    "file-system",
    ["ext4" => EXT4, "xfs" => XFS],
    "ext4",
    "What is made on each device.",
);

/// mergerfs(1), "POLICY DESCRIPTIONS".
const CREATE: ChoiceDoc<&'static str> = choice!(
    "create",
    [
        "all" => "all",
        "epall" => "epall",
        "epff" => "epff",
        "eplfs" => "eplfs",
        "eplus" => "eplus",
        "epmfs" => "epmfs",
        "eprand" => "eprand",
        "ff" => "ff",
        "lfs" => "lfs",
        "lus" => "lus",
        "mfs" => "mfs",
        "msplfs" => "msplfs",
        "msplus" => "msplus",
        "mspmfs" => "mspmfs",
        "newest" => "newest",
        "pfrd" => "pfrd",
        "rand" => "rand",
    ],
    "epmfs",
    "Policy category.create: where a new file is made.",
);

/// The layer `mergerfs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "Devices pooled file by file (mergerfs, FUSE): a file system on each, a policy for new files; minfreespace is 0 unless given.",
    settings: &[CREATE.doc, FILE_SYSTEM.doc, options::MOUNT],
    takes: Takes::at_least(1),
    gives: GivesKind::Directory,
    example: "mergerfs = { create = \"mfs\", mount = [\"cache.files=partial\"] }",
    words: &[&MOUNT],
    parse: |settings| {
        Ok(Box::new(Mergerfs {
            create: settings.choice(CREATE)?,
            branch: settings.choice(FILE_SYSTEM)?,
            mount: own_options(settings)?,
        }))
    },
    packages: PACKAGES,
    imagined: &[
        Tool::new(NAME, imagined_mount),
        Tool::new("getfattr", imagined_attributes),
    ],
    reads: &[told],
    shapes: &[&[
        "loop = { size = \"1 GiB\", count = 3 }",
        "mergerfs = { create = \"mfs\", file-system = \"xfs\" }",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[
    Package::new("mergerfs", &[NAME]),
    Package::new("attr", &["getfattr"]),
];

/// mergerfs(1), "OPTIONS". Not on the list: other branches, whom it lets in, names, and what follows or
/// makes links (`follow-symlinks`, `symlinkify`, `link_cow`, `rename-exdev`).
const MOUNT: Words = Words {
    tool: "a mount of mergerfs",
    manual: "mergerfs(1)",
    options: &[
        ("async_read", OneOf(YES_NO)),
        ("cache.attr", Amount),
        ("cache.entry", Amount),
        (
            "cache.files",
            OneOf(&["libfuse", "off", "partial", "full", "auto-full"]),
        ),
        ("cache.negative_entry", Amount),
        ("cache.readdir", OneOf(YES_NO)),
        ("cache.statfs", Amount),
        ("cache.symlinks", OneOf(YES_NO)),
        ("cache.writeback", OneOf(YES_NO)),
        ("dropcacheonclose", OneOf(YES_NO)),
        ("fuse_msg_size", Amount),
        ("minfreespace", Amount),
        ("moveonenospc", OneOf(YES_NO)),
        ("readdirplus", OneOf(YES_NO)),
        ("security_capability", OneOf(YES_NO)),
        ("threads", Amount),
        ("xattr", OneOf(&["passthrough", "noattr", "nosys"])),
    ],
};

const YES_NO: &[&str] = &["true", "false"];

struct Mergerfs {
    create: &'static str,
    branch: Branch,
    mount: Vec<String>,
}

/// Its own options alone: a mount through FUSE takes no others from here.
fn own_options(settings: &Settings) -> Result<Vec<String>, Refusal> {
    mount_options(settings, options::MOUNT.name, &[&MOUNT])
}

/// `mergerfs -o OPTIONS BRANCHES DIRECTORY` as a plan imagines it.
fn imagined_mount(world: &mut World, words: &[OsString]) -> Output {
    let options = text_after(words, "-o").unwrap_or_default();
    let named = options
        .split(',')
        .find_map(|option| option.strip_prefix("fsname="));
    let source = OsString::from(named.unwrap_or(NAME));
    world.mount(&source, Path::new(&last(words)), MOUNTED_AS, &options)
}

/// Tells the options that it was mounted with.
fn imagined_attributes(world: &mut World, words: &[OsString]) -> Output {
    let control = PathBuf::from(last(words));
    let shown = control.parent().and_then(|point| world.options_at(point));
    let pairs = shown.unwrap_or_default();
    let pairs = pairs.iter().filter_map(|option| option.split_once('='));
    let lines = pairs.map(|(name, value)| format!("{ATTRIBUTE}{name}=\"{value}\"\n"));
    // `word` is what getfattr(1) calls the file by.
    said(format!(
        "# file: {}\n{}",
        word(words, 1),
        lines.collect::<String>()
    ))
}

/// `user.mergerfs.cache.files="partial"`, one a line → facts.
fn told(text: &str) -> Vec<Fact> {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix(ATTRIBUTE)?.split_once('=')?;
        Some((name, value.trim_matches('"')))
    });
    // Paths and the number of the process differ in every trial.
    let own = |name: &str| !["branches", "srcmounts", "mount", "pid", "fsname"].contains(&name);
    pairs
        .filter(|(name, _)| own(name))
        .map(|(name, value)| Fact::new(name, value))
        .collect()
}

/// `4G` → bytes, as mergerfs(1) counts; `None` if it is no such amount.
fn in_bytes(text: &str) -> Option<u64> {
    let (digits, shift) =
        match text.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T', 'b', 'B']) {
            None => (text, 0),
            Some(digits) => match text.to_ascii_lowercase().chars().last()? {
                'k' => (digits, 10),
                'm' => (digits, 20),
                'g' => (digits, 30),
                't' => (digits, 40),
                _ => (digits, 0),
            },
        };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Refuses a directory in which the mount points of branches would be read as something else.
///
/// # Errors
/// mergerfs(1): branches have colons between them and a mode behind "=", and are patterns.
fn check_name(directory: &Path) -> Result<(), LayerError> {
    let special = [':', ',', '=', '*', '?', '[', '\\'];
    let text = directory.to_str();
    if text.is_some_and(|text| !text.contains(special)) {
        return Ok(());
    }
    Err(LayerError::refused(
        format!(
            "{} has a sign in its name that mergerfs reads as a pattern",
            directory.shown()
        ),
        "put the store in a directory with a plain name",
    ))
}

impl Mergerfs {
    fn asked(&self) -> Vec<String> {
        let mut asked = vec![format!("category.create={}", self.create)];
        // By default it makes no file on a branch with less than 4 GiB free, which small disks never have.
        if !self.mount.iter().any(|option| option.starts_with(MIN_FREE)) {
            asked.push(format!("{MIN_FREE}0"));
        }
        asked.extend(self.mount.iter().cloned());
        asked
    }

    /// Pools what is mounted at these directories.
    fn pooled(&self, setup: &mut Setup<'_>, branches: &[PathBuf]) -> Result<PathBuf, LayerError> {
        let point = setup.mount_point()?;
        let mut given = vec![format!("fsname={}", setup.name(NAME))];
        given.extend(self.asked());
        let texts = branches
            .iter()
            .map(|path| path.to_string_lossy().into_owned());
        let texts: Vec<String> = texts.collect();
        let command = argv_at([NAME, "-o", &given.join(","), &texts.join(":")], &point);
        setup.mount_with(command, &point, Memory::No)?;
        Ok(point)
    }

    /// What it says of itself, and of what was asked for.
    fn read_back(&self, host: &dyn Host, point: &Path) -> Result<Vec<Fact>, LayerError> {
        // Anything else at that directory would be measured in its place.
        let mut facts = filesystem::mount_facts(host, point, MOUNTED_AS, &[], &[])?;
        let ask = argv_at(
            ["getfattr", "--dump", "--absolute-names", "--match=-"],
            point.join(CONTROL),
        );
        let own = told(&host.must(&ask)?.stdout);
        let in_force = own
            .iter()
            .map(|fact| format!("{}={}", fact.name, fact.value));
        let in_force: Vec<String> = in_force.collect();
        facts.extend(options::missing(&self.asked(), &in_force));
        facts.extend(own);
        Ok(facts)
    }
}

impl Layer for Mergerfs {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        let kind = format!("mergerfs over {}, create {}", self.branch.kind, self.create);
        filesystem::asked(&kind, &[], &self.mount)
    }

    /// Refuses room that no branch could have: then no file could be made.
    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        let asked = self
            .mount
            .iter()
            .find_map(|option| option.strip_prefix(MIN_FREE));
        let (Some(asked), Some(lowest)) = (asked, below.last()) else {
            return Ok(());
        };
        // Sizes that are known before anything is made; of a user's disks the kernel tells later.
        let disks = lowest.lab_disks().into_iter().map(|disk| disk.bytes).min();
        let count = lowest.devices_given().unwrap_or(1).max(1) as u64;
        let of_files = lowest.disk_needed().map(|(_, bytes)| bytes / count);
        match (disks.or(of_files), in_bytes(asked)) {
            (Some(has), Some(free)) if free >= has => Err(format!(
                "{MIN_FREE}{asked} is more than a whole branch has ({}): no file could be made",
                unit::bytes(has)
            )),
            _ => Ok(()),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some("fuse"),
            ..Needs::as_root(
                match self.branch.kind {
                    "xfs" => &[NAME, "getfattr", "mkfs.xfs", "wipefs", "mount", "umount"],
                    _ => &[NAME, "getfattr", "mkfs.ext4", "wipefs", "mount", "umount"],
                },
                PACKAGES,
            )
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        check_name(&setup.scratch()?)?;
        let devices = filesystem::to_format(setup.host(), below)?;
        let mkfs: Vec<String> = self.branch.mkfs.iter().map(ToString::to_string).collect();
        let mut branches = Vec::new();
        for device in &devices {
            let one = std::slice::from_ref(device);
            let [option, before] = self.branch.uuid;
            let bears = |uuid: &str| vec![option.to_owned(), format!("{before}{uuid}")];
            filesystem::format(setup, &mkfs, bears, one)?;
            let source = device.path.as_os_str();
            branches.push(setup.mount(self.branch.kind, source, &[], Memory::No)?);
        }
        let point = self.pooled(setup, &branches)?;
        let host = setup.host();
        let kind = self.branch.kind;
        let mut facts = vec![Fact::new(
            "branches",
            format!("{} of {kind}", branches.len()),
        )];
        // All were made alike: one tells.
        let mount = host.mount_of(&branches[0])?;
        facts.push(Fact::new(
            "mount options of branches",
            mount.options.join(","),
        ));
        facts.extend(self.read_back(host, &point)?);
        Ok(filesystem::standing(host, NAME, point, facts, &devices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::layer;

    #[test]
    fn room_that_no_branch_has_is_refused_before_anything_is_made() {
        let disks = "loop = { size = \"64 MiB\", count = 3 }";
        let of = |free: &str| {
            let pool = format!("mergerfs = {{ mount = [\"minfreespace={free}\"] }}");
            Stack::new([disks, &pool].map(layer).into()).err()
        };
        let (at, why) = of("64M").unwrap();
        assert_eq!(at, 1);
        assert!(why.contains("no file could be made"), "{why}");
        assert!(of("32M").is_none() && of("65535k").is_none());
    }

    #[test]
    fn amounts_are_read_as_mergerfs_reads_them() {
        assert_eq!(in_bytes("4G"), Some(4 << 30));
        assert_eq!(in_bytes("10"), Some(10));
        assert_eq!(in_bytes("1.5G"), None);
        assert_eq!(in_bytes("99999999999999999999T"), None);
    }
}
