//! What a machine is made with: its image, this program, its directory.

use super::command::{self, Accelerator, GuestFiles};
use super::cpio::Archive;
use super::description::Description;
use super::error::LabError;
use super::image::Image;
use super::postgresql;
use super::system;
use crate::agent::program::{libc_needed, version};
use stackrace_machine::host::process::{Process, Streams};
use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::Journal;
use std::path::{Path, PathBuf};

/// Things a machine is made with.
pub struct MachineSite<'a> {
    /// This machine.
    pub host: &'a dyn Host,
    /// Journal that is told first of what is created.
    pub journal: &'a Journal,
    /// An existing directory for the machine's own.
    pub dir: PathBuf,
    /// Image that guests are made of.
    pub image: &'a Image,
    /// ZFS modules for it.
    pub zfs: Option<&'a Image>,
    /// PostgreSQL for it.
    pub postgresql: Option<&'a Image>,
    /// This program's file.
    pub program: &'a Path,
}

pub(super) fn start_node(
    site: &MachineSite<'_>,
    dir: &Path,
    node: usize,
    description: &Description,
    accelerator: Accelerator,
) -> Result<Process, LabError> {
    let (kernel, root) = (site.image.file("vmlinux"), site.image.file("root.squashfs"));
    let zfs = site.zfs.map(|zfs| zfs.file("zfs.squashfs"));
    let files = GuestFiles {
        dir,
        kernel: &kernel,
        root: &root,
        zfs: zfs.as_deref(),
        postgresql: site.postgresql.is_some(),
    };
    let words = argv(command::command(node, description, accelerator, &files));
    let said = command::file(node, "qemu");
    let streams = if description.shell_on == Some(node) {
        Streams::Ours
    } else {
        Streams::File(&said)
    };
    Ok(Process::start(&words, dir, streams)?)
}

/// Writes the archive the kernel unpacks first: a shell, the modules it needs, this program; where it is `whole`, the
/// root file system and the ZFS modules too, because nothing can be read later.
pub(super) fn write_first(site: &MachineSite<'_>, path: &Path, whole: bool) -> std::io::Result<()> {
    let file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut archive = Archive::new(file)?;
    archive.directory("boot")?;
    archive.directory("kit")?;
    archive.program("init", system::INIT.as_bytes())?;
    archive.program("kit/start", include_bytes!("recipe/start"))?;
    let mut entries: Vec<_> =
        std::fs::read_dir(site.image.file("boot"))?.collect::<Result<_, _>>()?;
    // A directory has its entries in no order: the same files have to make the same archive.
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let content = std::fs::read(entry.path())?;
        match name.as_str() {
            "busybox" => archive.program("busybox", &content)?,
            name => archive.program(&format!("boot/{name}"), &content)?,
        }
    }
    archive.program("kit/stackrace", &std::fs::read(site.program)?)?;
    if whole {
        archive.program(
            "root.squashfs",
            &std::fs::read(site.image.file("root.squashfs"))?,
        )?;
        if let Some(zfs) = site.zfs {
            archive.program("zfs.squashfs", &std::fs::read(zfs.file("zfs.squashfs"))?)?;
        }
    }
    // A guest with disks of its own has no place for one more of this.
    if let Some(layer) = site.postgresql {
        archive.program(
            postgresql::FILE,
            &std::fs::read(layer.file(postgresql::FILE))?,
        )?;
    }
    std::io::Write::flush(&mut archive.end()?)
}

/// Refuses a program that the guest's C library is too old for.
pub(super) fn check_libc(site: &MachineSite<'_>) -> Result<(), LabError> {
    let program = std::fs::read(site.program)
        .map_err(|error| HostError::path("read", site.program, error))?;
    let has = site.image.package("libc6").unwrap_or_default();
    match (libc_needed(&program), version(&has)) {
        (Some(needs), Some(found)) if needs > found => Err(LabError::Libc {
            needs: format!("{}.{}", needs.0, needs.1),
            has: format!("{}.{}", found.0, found.1),
        }),
        _ => Ok(()),
    }
}
