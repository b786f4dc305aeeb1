//! What a layer owns is in its own file or folder, and the how-to names every file of a new one.

use crate::stack::{ALL, LayerKind, packages};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files of this room that no layer owns.
const SHARED: [&str; 9] = [
    "build.rs",
    "composition.rs",
    "examined.rs",
    "ground.rs",
    "mod.rs",
    "served.rs",
    "standing.rs",
    "testing",
    "written.rs",
];

/// Words of layers that other files say, and why they have to.
const ELSEWHERE: [(&str, &[&str], &str); 32] = [
    (
        "crates/machine/src/host/tools.rs",
        &["qemu-img"],
        "the package of a program that the lab needs, too",
    ),
    (
        "crates/remote/src/lab/command.rs",
        &["qemu-img"],
        "the lab makes images of guests with it",
    ),
    (
        "crates/machine/src/host/file_system_settings.rs",
        &["btrfs", "devices", "ext2", "ext3", "ext4", "zfs"],
        "types of file systems as the kernel names them, and a directory of sysfs: their settings are compared as mount options are",
    ),
    (
        "crates/base/src/event/identity.rs",
        &["tmpfs"],
        "a type of the kernel's that ends when it is unmounted",
    ),
    (
        "crates/base/src/event/mount_options.rs",
        &["devices"],
        "an option of mounts in ZFS",
    ),
    (
        "crates/machine/src/host/storage_settings.rs",
        &["overlay", "queue"],
        "a type of the kernel's, and a directory of sysfs",
    ),
    (
        "crates/judge/src/audit/across/space.rs",
        &["age"],
        "the name of a column",
    ),
    (
        "crates/machine/src/host/local.rs",
        &["fill"],
        "what is done to a file, in a message",
    ),
    (
        "crates/base/src/event/figure.rs",
        &["devices"],
        "the name of a fact in logs from before",
    ),
    (
        "src/cli/report.rs",
        &["md"],
        "the ending of a file in Markdown",
    ),
    (
        "crates/machine/src/host/tools.rs",
        &["bcachefs", "mksquashfs"],
        "the one program that formats and is not called mkfs: it starts in an empty directory; and one that makes the lab's image",
    ),
    (
        "crates/remote/src/lab/command.rs",
        &["image"],
        "the name of a guest's disk",
    ),
    (
        "crates/machine/src/host/identity.rs",
        &[
            "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "gfs2", "jfs", "nfs", "nilfs2",
            "tmpfs", "xfs", "zfs",
        ],
        "which file systems number their directories for good, also those that no layer made",
    ),
    (
        "crates/machine/src/journal/gone.rs",
        &["losetup"],
        "a device is found by the numbers of its file wherever that file is now",
    ),
    (
        "crates/judge/src/audit/reading.rs",
        &["bcache", "loop", "md", "drbd"],
        "names of the kernel's devices in a record",
    ),
    (
        "crates/judge/src/audit/promised.rs",
        &["drbd", "nfs", "tmpfs", "zfs"],
        "what survives a power cut in a directory whose file system no layer made",
    ),
    (
        "crates/judge/src/audit/across/same_disk.rs",
        &["devices"],
        "the name of a fact about a place",
    ),
    (
        "crates/show/src/export/trials.rs",
        &["devices"],
        "the name of a column",
    ),
    (
        "crates/remote/src/lab/image.rs",
        &["mksquashfs", "zfs", "zpool"],
        "its modules are built apart, as their licence wants it; and what an image of the lab is made with",
    ),
    (
        "crates/base/src/event/drive.rs",
        &["nvme"],
        "the kernel's name of a drive, whatever layer lies on it",
    ),
    (
        "crates/run/src/run/standing_data.rs",
        &["nvme"],
        "names of disks whose blocks no memory of this machine caches",
    ),
    (
        "crates/machine/src/observe/physical.rs",
        &["loop"],
        "names of the kernel's devices",
    ),
    (
        "crates/load/src/programs/postgresql.rs",
        &["script"],
        "the name of a setting: what pgbench runs",
    ),
    (
        "crates/judge/src/published/card.rs",
        &["ext3", "ext4", "gfs2", "xfs"],
        "published studies",
    ),
    (
        "crates/judge/src/published/counterpart.rs",
        &["ext3", "ext4", "gfs2", "xfs"],
        "published studies",
    ),
    (
        "crates/judge/src/published/remark/sense.rs",
        &["gfs2"],
        "published studies",
    ),
    (
        "crates/results/src/record/index/rows.rs",
        &["devices"],
        "the name of a column",
    ),
    (
        "crates/show/src/report/markdown.rs",
        &["md"],
        "the ending of a file",
    ),
    (
        "src/commands/compare.rs",
        &["dir"],
        "a comparison is a study of directories",
    ),
    (
        "crates/foundation/src/foundation",
        &["devices", "drbd", "drbdsetup", "mdadm", "zdb", "zpool"],
        "the guard: one place decides what may be written over; and words of the kernel",
    ),
    (
        "crates/layers/src/stack/composition.rs",
        &["devices", "loop", "zpool"],
        "advice on what to put below",
    ),
    (
        "crates/load/src/workload/pools.rs",
        &["zpool"],
        "workloads that make pools themselves",
    ),
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Files of code below a folder, as paths from the root.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(root()).unwrap().to_path_buf()),
            }
        }
    }
    found
}

/// Words and programs of a layer.
fn words(kind: &LayerKind) -> impl Iterator<Item = &'static str> {
    let packages = kind.packages.iter();
    let programs = packages.flat_map(|package| package.programs);
    programs
        .chain(kind.tried.changes)
        .copied()
        .chain([kind.name])
}

/// Returns true if a file belongs to a layer, or is a test: tests may name any layer.
fn may_name_layers(path: &Path) -> bool {
    let is_test = |part: &Path| part.ends_with("tests") || part.ends_with("testing");
    let name = path.file_name().unwrap_or_default();
    if name == "tests.rs" || name == "sample.rs" || path.ancestors().any(is_test) {
        return true;
    }
    let of_stack = path.strip_prefix("crates/layers/src/stack").ok();
    let first = of_stack.and_then(|inside| inside.components().next());
    first.is_some_and(|first| !SHARED.iter().any(|shared| first.as_os_str() == *shared))
}

/// Texts in double quotes outside of comments and unit tests.
fn quoted(source: &str) -> BTreeSet<&str> {
    let product = source.split("#[cfg(test)]\nmod tests {").next();
    let lines = product.unwrap_or_default().lines();
    let code = lines.filter_map(|line| line.split("//").next());
    // A feature of the build may have the name of a layer.
    let code = code.filter(|line| !line.contains("feature = \""));
    code.flat_map(|line| line.split('"').skip(1).step_by(2))
        .collect()
}

#[test]
fn a_layers_words_are_said_in_its_own_place_only() {
    let words: BTreeSet<&'static str> = ALL.iter().flat_map(words).collect();
    // A recipe and a script have no quotes: there every word counts.
    let packages = ALL.iter().flat_map(|kind| kind.packages);
    let packages: BTreeSet<&str> = packages.map(|package| package.name).collect();
    for (path, declared) in [
        ("crates/remote/src/lab/recipe/packages", &packages),
        ("tests/lab/kills.sh", &words),
    ] {
        let listed = text(path);
        let code = listed
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        let listed: BTreeSet<&str> = code.flat_map(str::split_whitespace).collect();
        let twice: BTreeSet<&&str> = listed.intersection(declared).collect();
        assert!(twice.is_empty(), "{path}: layers declare {twice:?}");
    }
    let mut used = BTreeSet::new();
    let mut misplaced = Vec::new();
    for path in [
        "src",
        "crates/base/src",
        "crates/results/src",
        "crates/afp/src",
        "crates/judge/src",
        "crates/machine/src",
        "crates/foundation/src",
        "crates/layers/src",
        "crates/load/src",
        "crates/study/src",
        "crates/show/src",
        "crates/remote/src",
        "crates/run/src",
        "crates/places/src",
    ]
    .into_iter()
    .flat_map(sources)
    {
        if path.extension().is_none_or(|ending| ending != "rs") || may_name_layers(&path) {
            continue;
        }
        let source = text(&path.to_string_lossy());
        let quoted = quoted(&source);
        for word in words.iter().filter(|word| quoted.contains(*word)) {
            let known = ELSEWHERE
                .iter()
                .find(|(place, allowed, _)| path.starts_with(place) && allowed.contains(word));
            match known {
                Some((place, ..)) => drop(used.insert((*place, *word))),
                None => misplaced.push(format!("{}: \"{word}\"", path.display())),
            }
        }
    }
    assert!(
        misplaced.is_empty(),
        "these belong to a layer, move what needs them there: {misplaced:#?}"
    );
    for (place, allowed, _) in ELSEWHERE {
        for word in allowed {
            assert!(
                used.contains(&(place, word)),
                "{place} says \"{word}\" no more"
            );
        }
    }
}

#[test]
fn the_how_to_names_every_file_and_field_of_a_layer() {
    let page = text("docs/howto/add-a-layer.md");
    for path in page
        .split('`')
        .filter(|part| part.starts_with("crates/") || part.starts_with("tests/"))
    {
        let exists = path.contains("NAME") || root().join(path).exists();
        assert!(
            exists,
            "docs/howto/add-a-layer.md names {path}, which is not there"
        );
    }
    let source = text("crates/foundation/src/foundation/layer.rs");
    let (_, kind) = source.split_once("pub struct LayerKind {").unwrap();
    let (kind, _) = kind.split_once("\n}").unwrap();
    let fields = kind
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "));
    for field in fields.filter_map(|line| line.split(':').next()) {
        assert!(
            page.contains(&format!("`{field}`")),
            "the how-to does not tell of {field}"
        );
    }
    let registry = text("crates/layers/src/stack/mod.rs");
    for path in sources("crates/layers/src/stack") {
        let inside = path.strip_prefix("crates/layers/src/stack").unwrap();
        let first = inside
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_string_lossy();
        let name = first.trim_end_matches(".rs");
        if name == "tests" || SHARED.contains(&&*first) {
            continue;
        }
        // The registry is the only file besides its own that a layer appears in.
        assert!(
            registry.contains(&format!("mod {name};")),
            "{name} is not declared"
        );
        assert!(
            registry.contains(&format!("\n    {name}::")),
            "{name} is not in ALL"
        );
    }
}

/// A layer that is not tested would be noticed only when it fails.
#[test]
fn every_layer_is_tried() {
    let shapes = || ALL.iter().flat_map(|kind| kind.shapes).copied();
    let random = ALL
        .iter()
        .flat_map(|kind| kind.tried.on_devices)
        .map(|(_, shape)| *shape);
    let lines: Vec<&str> = shapes().chain(random).flatten().copied().collect();
    for kind in ALL {
        let begin = format!("{} = ", kind.name);
        let tried = lines.iter().any(|line| line.starts_with(&begin));
        assert!(tried, "{} is in no stack that is tried", kind.name);
    }
}

#[test]
fn guests_of_the_lab_get_the_packages_of_layers() {
    let packages = packages();
    let only_on = |name: &str| {
        let package = packages.iter().find(|package| package.name == name);
        package.unwrap().only_on
    };
    assert_eq!(only_on("e2fsprogs"), None);
    assert_eq!(only_on("netatalk"), Some("debian-13"));
}
