//! File systems that are packed once and then only read: SquashFS and EROFS.
//!
//! A trial lays out its data in a directory of the file system below, seen at the mount point. Settling packs
//! that directory into an image and mounts the image in its place. When the trial is over, the directory is
//! seen again.

#[cfg(any(test, feature = "testing"))]
mod testing;

use crate::stack::loops;
use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    Gives, GivesKind, LaidOutData, Layer, LayerError, LayerKind, Memory, Setup, StandingLayer,
    Takes, filesystem, plain,
};
use stackrace_machine::host::imagined::{Tool, mount_without_device, said};
use stackrace_machine::host::{Needs, Package, argv, argv_at};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Unit of the blocks and clusters that both take.
const SMALLEST: u64 = 4096;

/// Most bytes of a block or cluster.
const LARGEST: u64 = 1 << 20;

const EROFS_WITH: ChoiceDoc<&'static str> = choice!(
    "compression",
    [
        "none" => "none",
        "lz4" => "lz4",
        "lz4hc" => "lz4hc",
        "lzma" => "lzma",
        "deflate" => "deflate",
        "zstd" => "zstd",
    ],
    "none",
    "Compression, as far as mkfs.erofs and the kernel have it.",
);

const SQUASHFS_WITH: ChoiceDoc<&'static str> = choice!(
    "compression",
    [
        "none" => "none",
        "gzip" => "gzip",
        "lzo" => "lzo",
        "lz4" => "lz4",
        "xz" => "xz",
        "zstd" => "zstd",
    ],
    "gzip",
    "Compression, as far as mksquashfs and the kernel have it.",
);

/// One of these file systems.
struct Packer {
    kind: &'static LayerKind,
    /// Programs needed.
    tools: &'static [&'static str],
    /// The setting for its compression.
    with: ChoiceDoc<&'static str>,
    /// Compressions that have levels, each with its lowest and its highest, by the tool's manual page.
    levels: &'static [(&'static str, u64, u64)],
    /// The setting for the bytes that are compressed together.
    size: &'static str,
    /// The command that packs, of what is asked for, a directory and an image.
    pack: fn(&Packed, &Path, &Path) -> Vec<OsString>,
    /// The command that tells how an image was made, before it.
    ask: &'static [&'static str],
    /// Reads what it tells.
    told: fn(&str) -> Vec<Fact>,
}

/// The layer `erofs` of a study.
pub(super) const EROFS: LayerKind = LayerKind {
    name: "erofs",
    summary: "EROFS, packed before each phase and then only read; for workloads that read data laid out before.",
    settings: &[
        EROFS_WITH.doc,
        LEVEL,
        SettingDoc::bytes(
            "cluster-size",
            "",
            "Most bytes that are compressed together; the tool's own choice unless given.",
        ),
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "erofs = { compression = \"lz4\" }",
    parse: |settings| parse(&EROFS_PACKER, settings),
    packages: &[Package::new("erofs-utils", &["mkfs.erofs", "dump.erofs"])],
    imagined: &[
        Tool::new("mount.erofs", mount_without_device),
        Tool::new("dump.erofs", |_, _| said("Filesystem features: 0padding\n")),
    ],
    reads: &[erofs_told],
    shapes: &[&[
        "loop = { size = \"1 GiB\" }",
        "ext4 = {}",
        "erofs = { compression = \"lz4hc\", level = 9, cluster-size = \"64 KiB\" }",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::EROFS,
    ..LayerKind::EMPTY
};

/// The layer `squashfs` of a study.
pub(super) const SQUASHFS: LayerKind = LayerKind {
    name: "squashfs",
    summary: "SquashFS, packed before each phase and then only read; for workloads that read data laid out before.",
    settings: &[
        SQUASHFS_WITH.doc,
        LEVEL,
        SettingDoc::bytes(
            "block-size",
            "128 KiB",
            "Bytes that are compressed together, 4 KiB to 1 MiB.",
        ),
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "squashfs = { compression = \"zstd\" }",
    parse: |settings| parse(&SQUASHFS_PACKER, settings),
    packages: &[Package::new(
        "squashfs-tools",
        &["mksquashfs", "unsquashfs"],
    )],
    imagined: &[Tool::new("mount.squashfs", mount_without_device)],
    reads: &[squashfs_told],
    shapes: &[&[
        "loop = { size = \"1 GiB\" }",
        "xfs = {}",
        "squashfs = { compression = \"zstd\", level = 3, block-size = \"1 MiB\" }",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::SQUASHFS,
    ..LayerKind::EMPTY
};

const LEVEL: SettingDoc = SettingDoc::count(
    "level",
    "",
    "Level of the compression; the tool's own unless given.",
);

const EROFS_PACKER: Packer = Packer {
    kind: &EROFS,
    tools: &["mkfs.erofs", "dump.erofs", "mount", "umount"],
    with: EROFS_WITH,
    // mkfs.erofs(1).
    levels: &[
        ("lz4hc", 1, 12),
        ("lzma", 1, 9),
        ("deflate", 1, 9),
        ("zstd", 1, 22),
    ],
    size: "cluster-size",
    pack: |asked, directory, image| {
        let mut command = argv(["mkfs.erofs", "--quiet"]);
        if asked.compression != "none" {
            let level = asked
                .level
                .map_or(String::new(), |level| format!(",{level}"));
            command.push(format!("-z{}{level}", asked.compression).into());
        }
        command.extend(asked.size.map(|bytes| format!("-C{bytes}").into()));
        command.extend([image.into(), directory.into()]);
        command
    },
    ask: &["dump.erofs", "-s"],
    told: erofs_told,
};

const SQUASHFS_PACKER: Packer = Packer {
    kind: &SQUASHFS,
    tools: &["mksquashfs", "unsquashfs", "mount", "umount"],
    with: SQUASHFS_WITH,
    // mksquashfs(1).
    levels: &[("gzip", 1, 9), ("zstd", 1, 22)],
    size: "block-size",
    pack: |asked, directory, image| {
        let mut command = argv(["mksquashfs"]);
        command.extend([directory.into(), image.into()]);
        // An image that is there would be added to.
        command.extend(argv(["-noappend", "-quiet", "-no-progress"]));
        if let Some(bytes) = asked.size {
            command.extend(argv(["-b".to_owned(), bytes.to_string()]));
        }
        match asked.compression {
            "none" => command.extend(argv(["-noI", "-noD", "-noF", "-noX"])),
            other => command.extend(argv(["-comp", other])),
        }
        if let Some(level) = asked.level {
            command.extend(argv(["-Xcompression-level".to_owned(), level.to_string()]));
        }
        command
    },
    ask: &["unsquashfs", "-s"],
    // `Compression zstd`, `	compression-level 3`, `Block size 131072`.
    told: squashfs_told,
};

fn erofs_told(text: &str) -> Vec<Fact> {
    plain::told(text, &["Filesystem features"])
}

fn squashfs_told(text: &str) -> Vec<Fact> {
    let lines = text.lines().map(str::trim);
    let of = |line: &str, name: &str| {
        let value = line.strip_prefix(name)?.strip_prefix(' ')?;
        Some(Fact::new(name, value.trim()))
    };
    let names = ["Compression", "compression-level", "Block size"];
    lines
        .filter_map(|line| names.iter().find_map(|name| of(line, name)))
        .collect()
}

/// One of them as a study asks for it.
struct Packed {
    of: &'static Packer,
    compression: &'static str,
    level: Option<u64>,
    /// Bytes that are compressed together.
    size: Option<u64>,
}

fn parse(of: &'static Packer, settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let compression = settings.choice(of.with)?;
    let size = settings.optional_bytes(of.size)?;
    let fits = |bytes: u64| (SMALLEST..=LARGEST).contains(&bytes) && bytes.is_power_of_two();
    if let Some(bytes) = size.filter(|bytes| !fits(*bytes)) {
        return Err(Refusal::at(
            settings.span_of(of.size),
            format!("{} has no {} of {bytes} bytes", of.kind.name, of.size),
            "write a power of two from \"4 KiB\" to \"1 MiB\"",
        ));
    }
    let level = settings.optional_count("level")?;
    // The tool would refuse it when the stack is set up, and by then other things stand.
    let levels = of.levels.iter().find(|(name, ..)| *name == compression);
    match (level, levels) {
        (None, _) => {}
        (Some(_), None) => {
            return Err(Refusal::at(
                settings.span_of("level"),
                format!("compression = \"{compression}\" has no levels here"),
                "leave level out",
            ));
        }
        (Some(level), Some((_, least, most))) if !(*least..=*most).contains(&level) => {
            return Err(Refusal::at(
                settings.span_of("level"),
                format!("there is no level {level} of {compression}"),
                format!("write {least} to {most}, or leave level out"),
            ));
        }
        _ => {}
    }
    // mkfs.erofs takes the size without a word, and makes nothing of it.
    if of.kind.name == EROFS.name && compression == "none" && size.is_some() {
        return Err(Refusal::at(
            settings.span_of(of.size),
            "without compression there are no clusters",
            "write a compression, or leave cluster-size out",
        ));
    }
    Ok(Box::new(Packed {
        of,
        compression,
        level,
        size,
    }))
}

impl Layer for Packed {
    fn of_kind(&self) -> &'static LayerKind {
        self.of.kind
    }

    fn describe_asked(&self) -> String {
        let level = self
            .level
            .map_or(String::new(), |level| format!(", level {level}"));
        let size = self.size.map_or(String::new(), |bytes| {
            format!(", {} {}", self.of.size, unit::bytes(bytes))
        });
        format!(
            "{}, only read, compression {}{level}{size}",
            self.kind(),
            self.compression
        )
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        filesystem::not_theirs(self.kind(), below)
    }

    fn laid_out_data(&self) -> LaidOutData {
        LaidOutData::OnlyRead
    }

    /// What is laid out is written once more, packed.
    fn written_below(&self, bytes: u64, _devices: usize) -> u64 {
        bytes.saturating_mul(2)
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some(self.kind()),
            drivers: &[loops::DRIVER],
            ..Needs::as_root(self.of.tools, self.of.kind.packages)
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let name = self.kind();
        let root = filesystem::own_root(below)?;
        let [content, image]: [PathBuf; 2] = ["content", "packed"].map(|part| root.join(part));
        let host = setup.host();
        // Both end with the file system that they lie in.
        host.create_dir(&content)?;
        let pack = (self.of.pack)(self, &content, &image);
        // Packed and mounted with nothing in it: what this kernel cannot read is found out here, and not
        // in the first trial.
        host.must(&pack)?;
        let ask = argv_at(self.of.ask.iter().copied(), &image);
        let mut facts = (self.of.told)(&host.must(&ask)?.stdout);
        let point = setup.mount_point()?;
        let mut command = argv(["mount", "-t", name, "-o", "loop,ro"]);
        command.extend([image.into(), point.clone().into()]);
        setup.mount_with(command, &point, Memory::No)?;
        facts.extend(filesystem::mount_facts(
            setup.host(),
            &point,
            name,
            &[],
            &[],
        )?);
        let mut see = argv(["mount", "--bind"]);
        see.extend([content.into(), point.clone().into()]);
        setup.opens(see, pack)?;
        Ok(StandingLayer::new(name, facts, Gives::Mounted(point)))
    }
}

#[cfg(test)]
mod tests {

    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};

    #[test]
    fn what_it_cannot_have_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("squashfs = { block-size = \"2 MiB\" }", "no block-size of"),
            (
                "erofs = { cluster-size = \"5000 B\" }",
                "no cluster-size of",
            ),
            ("erofs = { cluster-size = \"64 KiB\" }", "no clusters"),
            (
                "squashfs = { compression = \"xz\", level = 3 }",
                "has no levels",
            ),
            ("squashfs = { level = 0 }", "no level 0"),
            (
                "squashfs = { compression = \"zstd\", level = 23 }",
                "no level 23",
            ),
            (
                "erofs = { compression = \"lz4hc\", level = 13 }",
                "no level 13",
            ),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
    }

    #[test]
    fn nothing_is_put_on_what_is_packed_anew() {
        let disk = "loop = { size = \"1 GiB\" }";
        let on_it = [disk, "ext4 = {}", "squashfs = {}", "overlay = {}"].map(layer);
        let (at, why) = Stack::new(on_it.into()).err().unwrap();
        assert_eq!(at, 3);
        assert!(why.starts_with("squashfs is packed anew"), "{why}");
    }
}
