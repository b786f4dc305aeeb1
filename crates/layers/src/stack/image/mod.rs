//! A disk image as virtual machines have it: a raw or qcow2 file in the file system below, opened by QEMU
//! with a cache mode, and a device on it.
//!
//! QEMU's storage daemon runs the same code as a virtual machine's disk. It shows the image as one file
//! (FUSE), and a loop device makes a disk of that.

#[cfg(any(test, feature = "testing"))]
mod testing;

use crate::stack::loops;
use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    Device, Gives, GivesKind, Layer, LayerError, LayerKind, Origin, Setup, StandingLayer, Takes,
    filesystem, plain,
};
use stackrace_machine::host::imagined::{Tool, World, said, text_after, word};
use stackrace_machine::host::{Filling, Host, Needs, Output, Package, argv, argv_at};
use stackrace_machine::journal::Undo;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The word in a study.
const NAME: &str = "image";

/// The kernel's name of the daemon: 15 characters of it.
const DAEMON: &str = "qemu-storage-da";

/// Smallest image: below it no file system fits, and the mistake is a unit.
const SIZE_MIN: u64 = 1 << 20;

/// Cluster sizes of qcow2, from and to.
const CLUSTERS: [u64; 2] = [512, 2 << 20];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Raw,
    Qcow2,
}

const FORMAT: ChoiceDoc<Format> = choice!(
    "format",
    ["raw" => Format::Raw, "qcow2" => Format::Qcow2],
    "qcow2",
    "Format of the file.",
);

/// A cache mode: past the page cache below, flushes ignored, each write flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cache {
    direct: bool,
    no_flush: bool,
    through: bool,
}

const fn cache(direct: bool, no_flush: bool, through: bool) -> Cache {
    Cache {
        direct,
        no_flush,
        through,
    }
}

/// qemu-img(1), "-t CACHE".
const CACHE: ChoiceDoc<Cache> = choice!(
    "cache",
    [
        "none" => cache(true, false, false),
        "writeback" => cache(false, false, false),
        "writethrough" => cache(false, false, true),
        "directsync" => cache(true, false, true),
        "unsafe" => cache(false, true, false),
    ],
    "none",
    "none and directsync go past the page cache of the file system below; writethrough and directsync flush each write; unsafe ignores flushes.",
);

const PREALLOCATION: ChoiceDoc<&'static str> = choice!(
    "preallocation",
    ["off" => "off", "metadata" => "metadata", "falloc" => "falloc", "full" => "full"],
    "off",
    "What is laid out beforehand: nothing, the tables of qcow2, reserved blocks, written blocks.",
);

const AIO: ChoiceDoc<&'static str> = choice!(
    "aio",
    ["threads" => "threads", "native" => "native", "io_uring" => "io_uring"],
    "threads",
    "QEMU's way to the file; native goes past the page cache alone.",
);

/// The layer `image` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A disk image as virtual machines have it, raw or qcow2, opened by QEMU's storage daemon.",
    settings: &[
        SettingDoc::bytes("size", "", "Size of the disk.").required(),
        FORMAT.doc,
        CACHE.doc,
        PREALLOCATION.doc,
        SettingDoc::bytes(
            "cluster-size",
            "",
            "Cluster of qcow2, 512 B to 2 MiB; 64 KiB unless given.",
        ),
        AIO.doc,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Devices,
    example: "image = { size = \"1 GiB\", format = \"qcow2\", cache = \"writeback\" }",
    parse,
    packages: PACKAGES,
    imagined: &[
        Tool::new("qemu-img", imagined_img),
        Tool::new("qemu-storage-daemon", |world, _| world.start(DAEMON, &[])),
    ],
    reads: &[told],
    shapes: &[&[
        "loop = { size = \"2 GiB\" }",
        "xfs = {}",
        "image = { size = \"1 GiB\", preallocation = \"metadata\", cluster-size = \"128 KiB\" }",
        "ext4 = {}",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[
    Package::new("qemu-utils", &["qemu-img"]),
    Package::new("qemu-system-common", &["qemu-storage-daemon"]),
];

/// Lines of `qemu-img info` that matter to figures.
const TOLD: &[&str] = &["file format", "virtual size", "disk size", "cluster_size"];

struct Image {
    bytes: u64,
    format: Format,
    cache: Cache,
    preallocation: &'static str,
    cluster: Option<u64>,
    aio: &'static str,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let image = Image {
        bytes: settings.bytes("size")?,
        format: settings.choice(FORMAT)?,
        cache: settings.choice(CACHE)?,
        preallocation: settings.choice(PREALLOCATION)?,
        cluster: settings.optional_bytes("cluster-size")?,
        aio: settings.choice(AIO)?,
    };
    let refuse =
        |name: &str, what: String, next: &str| Err(Refusal::at(settings.span_of(name), what, next));
    if image.bytes < SIZE_MIN || !image.bytes.is_multiple_of(SIZE_MIN) {
        let what = format!("{} bytes is not a whole number of MiB", image.bytes);
        return refuse("size", what, "write a size like \"1 GiB\"");
    }
    // Of the tables of qcow2 a raw image has none: what is asked for would not be there.
    let raw = image.format == Format::Raw;
    if let Some(cluster) = image.cluster {
        if raw {
            let what = "a raw image has no clusters".to_owned();
            return refuse(
                "cluster-size",
                what,
                "leave it out, or write format = \"qcow2\"",
            );
        }
        let [least, most] = CLUSTERS;
        if !(least..=most).contains(&cluster) || !cluster.is_power_of_two() {
            let what = format!("qcow2 has no clusters of {cluster} bytes");
            return refuse(
                "cluster-size",
                what,
                "write a power of two from \"512 B\" to \"2 MiB\"",
            );
        }
    }
    if raw && image.preallocation == "metadata" {
        let what = "a raw image has no tables to lay out".to_owned();
        return refuse("preallocation", what, "write off, falloc or full");
    }
    // qemu refuses it only when the daemon starts, long after the study was read.
    if image.aio == "native" && !image.cache.direct {
        let what =
            "aio = \"native\" goes past the page cache, which this cache mode uses".to_owned();
        return refuse("aio", what, "write cache = \"none\", or aio = \"threads\"");
    }
    Ok(Box::new(image))
}

/// `qemu-img` as a plan imagines it: it tells the format that it is asked about.
fn imagined_img(_: &mut World, words: &[OsString]) -> Output {
    let format = text_after(words, "-f").unwrap_or_default();
    match word(words, 1).as_str() {
        "info" => said(format!("image: disk\nfile format: {format}\n")),
        _ => said(""),
    }
}

fn told(text: &str) -> Vec<Fact> {
    plain::told(text, TOLD)
}

impl Image {
    fn file(&self, root: &Path) -> PathBuf {
        root.join(format!("disk.{}", FORMAT.word(self.format)))
    }

    /// The command that makes the image in a file.
    fn create(&self, file: &Path) -> Vec<OsString> {
        let mut options = vec![format!("preallocation={}", self.preallocation)];
        options.extend(self.cluster.map(|bytes| format!("cluster_size={bytes}")));
        let format = FORMAT.word(self.format);
        let mut command = argv(["qemu-img", "create", "-q", "-f", format, "-o"]);
        command.extend([options.join(",").into(), file.into()]);
        command.push(self.bytes.to_string().into());
        command
    }

    /// The command that serves it as one file; it returns once that file is there.
    fn serve(&self, file: &Path, export: &Path) -> Vec<OsString> {
        let on_off = |on: bool| if on { "on" } else { "off" };
        let Cache {
            direct,
            no_flush,
            through,
        } = self.cache;
        let cache = format!(
            "cache.direct={},cache.no-flush={}",
            on_off(direct),
            on_off(no_flush)
        );
        // Two nodes: the file, and the disk that its format makes of it. Both take the cache mode.
        let mut command = argv(["qemu-storage-daemon", "--daemonize", "--blockdev"]);
        command.push(with_path(
            &format!(
                "driver=file,node-name=file,{cache},aio={},filename=",
                self.aio
            ),
            file,
        ));
        let format = FORMAT.word(self.format);
        command.extend(argv([
            "--blockdev".to_owned(),
            format!("driver={format},node-name=disk,file=file,{cache}"),
            "--export".to_owned(),
        ]));
        let writes = on_off(through);
        command.push(with_path(
            &format!(
                "type=fuse,id=disk,node-name=disk,writable=on,writethrough={writes},mountpoint="
            ),
            export,
        ));
        command
    }

    /// Serves the image, and makes a device of it.
    fn stand(&self, setup: &mut Setup<'_>, root: &Path) -> Result<StandingLayer, LayerError> {
        let file = self.file(root);
        // Open as long as the stack stands, so that what it lies on cannot be unmounted to settle.
        setup.keep_standing()?;
        setup.lies_in(root);
        let private = setup.scratch()?.join(setup.name(NAME));
        setup.create_dir(&private)?;
        let export = private.join("export");
        setup.create_file(&export, 0, Filling::Sparse)?;
        // A daemon that is killed leaves the mount behind.
        setup.will(Undo::Unmount(export.clone()))?;
        setup.start_one_more(DAEMON, &self.serve(&file, &export))?;
        // Not with direct I/O: through FUSE of QEMU 7.2 what was written then came back as other bytes.
        let options = ["--direct-io=off", "--sector-size", "512"].map(String::from);
        let device = loops::attach(setup, &options, &export)?;
        let mut facts = self.read_back(setup.host(), &file)?;
        facts.push(Fact::new("device", device.to_string_lossy()));
        let device = Device {
            path: device,
            origin: Origin::LoopOn(export),
        };
        Ok(StandingLayer::new(
            NAME,
            facts,
            Gives::Devices(vec![device]),
        ))
    }

    /// What the file is by its own header, and what QEMU does with it.
    fn read_back(&self, host: &dyn Host, file: &Path) -> Result<Vec<Fact>, LayerError> {
        let format = FORMAT.word(self.format);
        let ask = argv_at(["qemu-img", "info", "--force-share", "-f", format], file);
        let mut facts = told(&host.must(&ask)?.stdout);
        if Fact::value_of(&facts, "file format") != Some(format) {
            return Err(LayerError::refused(
                format!("the image is not {format} although that was asked for"),
                "",
            ));
        }
        let flushes = match self.cache {
            Cache { no_flush: true, .. } => "ignored",
            Cache { through: true, .. } => "after each write",
            _ => "passed on",
        };
        facts.push(Fact::new("cache", CACHE.word(self.cache)));
        facts.push(Fact::new("flushes", flushes));
        facts.push(Fact::new("preallocation", self.preallocation));
        facts.push(Fact::new("aio", self.aio));
        Ok(facts)
    }
}

/// An option that ends with a path; QEMU reads a comma in it as two.
fn with_path(begin: &str, path: &Path) -> OsString {
    format!("{begin}{}", path.to_string_lossy().replace(',', ",,")).into()
}

impl Layer for Image {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        let cluster = self.cluster.map_or(String::new(), |bytes| {
            format!(", clusters of {}", unit::bytes(bytes))
        });
        format!(
            "a {} image of {}{cluster}, cache {}, preallocation {}, aio {}",
            FORMAT.word(self.format),
            unit::bytes(self.bytes),
            CACHE.word(self.cache),
            self.preallocation,
            self.aio
        )
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        if below.iter().any(|layer| layer.kind() == NAME) {
            return Err(
                "an image inside an image is refused: put each on storage of its own".to_owned(),
            );
        }
        filesystem::not_theirs(NAME, below)
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some("fuse"),
            drivers: &[loops::DRIVER],
            ..Needs::as_root(
                &["qemu-img", "qemu-storage-daemon", "losetup", "umount"],
                PACKAGES,
            )
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let root = filesystem::own_root(below)?;
        // It ends with the file system it lies in.
        setup.host().must(&self.create(&self.file(&root)))?;
        self.stand(setup, &root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};

    #[test]
    fn what_no_image_has_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("image = { size = \"1000 B\" }", "not a whole number of MiB"),
            (
                "image = { size = \"1 GiB\", format = \"raw\", cluster-size = \"64 KiB\" }",
                "has no clusters",
            ),
            (
                "image = { size = \"1 GiB\", cluster-size = \"3 KiB\" }",
                "no clusters of 3072 bytes",
            ),
            (
                "image = { size = \"1 GiB\", format = \"raw\", preallocation = \"metadata\" }",
                "no tables",
            ),
            (
                "image = { size = \"1 GiB\", cache = \"unsafe\", aio = \"native\" }",
                "past the page cache",
            ),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
        let image = "image = { size = \"1 GiB\" }";
        let twice = [
            "loop = { size = \"4 GiB\" }",
            "xfs = {}",
            image,
            "ext4 = {}",
            image,
            "ext4 = {}",
        ];
        let (at, why) = Stack::new(twice.map(layer).into()).err().unwrap();
        assert_eq!(at, 4);
        assert!(why.starts_with("an image inside an image"), "{why}");
        let on_theirs = ["dir = { path = \"/srv\" }", image, "ext4 = {}"].map(layer);
        assert_eq!(Stack::new(on_theirs.into()).err().unwrap().0, 1);
    }

    #[test]
    fn a_comma_in_a_path_is_no_option() {
        assert_eq!(with_path("filename=", Path::new("/a,b")), "filename=/a,,b");
    }
}
