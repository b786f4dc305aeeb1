//! A file system in memory: what is left when storage costs nothing.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, Amount, OneOf, Word},
    Words,
};
use stackrace_foundation::foundation::{
    FileData, Gives, GivesKind, Layer, LayerError, LayerKind, Memory, Setup, StandingLayer, Takes,
    filesystem, options,
};
use stackrace_machine::host::imagined::{Tool, mount_without_device};
use stackrace_machine::host::{Host, Needs};
use std::ffi::OsStr;
use std::path::Path;

/// The layer `tmpfs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "tmpfs",
    summary: "A file system in memory; it is never unmounted between trials, which would empty it.",
    settings: &[
        SettingDoc::bytes("size", "", "How much it may hold.").required(),
        options::MOUNT,
    ],
    takes: Takes::Nothing,
    gives: GivesKind::Directory,
    example: "tmpfs = { size = \"1 GiB\" }",
    words: &[&MOUNT],
    parse,
    imagined: &[Tool::new("mount.tmpfs", mount_without_device)],
    reads: &[|text| {
        let free = available(text).into_iter();
        free.map(|bytes| Fact::new("free", bytes.to_string()))
            .collect()
    }],
    shapes: &[&["tmpfs = { size = \"1 MiB\" }"]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    data: FileData {
        in_place: true,
        page_cache_alone: false,
    },
    ..LayerKind::EMPTY
};

/// tmpfs(5). Not on the list: owners and modes, and the size, which is a setting.
const MOUNT: Words = Words {
    tool: "a mount of tmpfs",
    manual: "tmpfs(5)",
    options: &[
        ("huge", OneOf(&["never", "always", "within_size", "advise"])),
        ("inode32", Alone),
        ("inode64", Alone),
        ("mpol", Word),
        ("nr_inodes", Amount),
        ("noswap", Alone),
    ],
};

struct Tmpfs {
    size: u64,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let size = settings.bytes("size")?;
    if size == 0 {
        return Err(Refusal::at(
            settings.span_of("size"),
            "a tmpfs without a size may fill the memory",
            "write size = \"1 GiB\"",
        ));
    }
    Ok(Box::new(Tmpfs {
        size,
        mount: options::mount(settings, &MOUNT)?,
    }))
}

impl Layer for Tmpfs {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        let kind = format!("tmpfs of {}", unit::bytes(self.size));
        filesystem::asked(&kind, &[], &self.mount)
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some("tmpfs"),
            ..Needs::as_root(&["mount", "umount"], &[])
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, _below: Gives) -> Result<StandingLayer, LayerError> {
        // A tmpfs takes its memory while it is filled: in the middle of a trial the kernel would
        // swap, or kill.
        if let Some(free) = memory_available(setup.host())
            && self.size > free
        {
            return Err(LayerError::refused(
                format!(
                    "{} are asked for, {} of memory are available",
                    unit::bytes(self.size),
                    unit::bytes(free)
                ),
                "ask for less",
            ));
        }
        // In bytes, which tmpfs(5) rounds up to whole pages.
        let mut given = vec![format!("size={}", self.size)];
        given.extend(self.mount.iter().cloned());
        let root = setup.mount("tmpfs", OsStr::new("tmpfs"), &given, Memory::Yes)?;
        let mut facts = filesystem::mount_facts(setup.host(), &root, "tmpfs", &given, &[])?;
        // As of a directory of the user's on one: what it promises after a power cut follows from it.
        facts.push(Fact::new("file system", "tmpfs"));
        Ok(StandingLayer::new("tmpfs", facts, Gives::Mounted(root)))
    }
}

fn memory_available(host: &dyn Host) -> Option<u64> {
    let text = host.read_text(Path::new("/proc/meminfo")).ok()?;
    available(&text)
}

/// `MemAvailable:   23722000 kB` (KiB in truth) → bytes.
pub(super) fn available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}
