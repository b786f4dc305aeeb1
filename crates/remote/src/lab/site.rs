//! What a machine is made with: its image, this program, its directory.

use super::command::{self, Accelerator, GuestFiles};
use super::cpio::Archive;
use super::description::Description;
use super::error::LabError;
use super::image::Image;
use super::postgresql;
use super::system;
use crate::agent::program::{libc_needed, version};
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::process::{Process, Streams};
use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::Journal;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

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
    /// Files of this machine that guests have copies of, at the same paths.
    pub carried: Vec<PathBuf>,
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
    carry(&site.carried, &mut archive)?;
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

/// Directory of the archive whose content a guest finds at its root; `recipe/start` puts it there.
const CARRIED: &str = "kit/carried";

/// Adds files at the paths by which the guest's agent, which works in its root directory, looks for them.
fn carry<W: std::io::Write>(files: &[PathBuf], archive: &mut Archive<W>) -> std::io::Result<()> {
    let mut made = BTreeSet::new();
    for file in files {
        let mut place = PathBuf::from(CARRIED);
        for part in file.components() {
            match part {
                Component::Normal(name) => place.push(name),
                // Above the root directory is the root directory.
                Component::ParentDir if place != Path::new(CARRIED) => drop(place.pop()),
                _ => {}
            }
        }
        let above = place.ancestors().skip(1);
        let above: Vec<&Path> = above.filter(|path| path.starts_with(CARRIED)).collect();
        // From the top: the kernel makes no parents.
        for directory in above.into_iter().rev() {
            if made.insert(directory.to_owned()) {
                archive.directory(&directory.to_string_lossy())?;
            }
        }
        let content = std::fs::read(file).map_err(|error| {
            std::io::Error::new(error.kind(), format!("{}: {error}", file.shown()))
        })?;
        archive.program(&place.to_string_lossy(), &content)?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::super::cpio;
    use super::*;

    #[test]
    fn a_guest_finds_files_that_were_carried_by_the_same_words() {
        let dir = tempfile::tempdir().unwrap();
        let absolute = dir.path().join("a.trace");
        std::fs::write(&absolute, b"recorded").unwrap();
        let roundabout = dir.path().join("gone/../a.trace");
        std::fs::create_dir(dir.path().join("gone")).unwrap();
        let mut archive = Archive::new(Vec::new()).unwrap();
        carry(&[absolute.clone(), roundabout], &mut archive).unwrap();
        let entries = cpio::tests::read(&archive.end().unwrap());
        let expected = format!("{CARRIED}{}", absolute.display());
        let found = entries.iter().filter(|(name, ..)| *name == expected);
        assert!(
            found.clone().all(|(.., content)| content == b"recorded"),
            "{entries:?}"
        );
        let names: Vec<&str> = entries.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(found.count(), 2, "{names:?}");
        for directory in Path::new(&expected).ancestors().skip(1) {
            let name = directory.to_string_lossy();
            let places = names.iter().filter(|other| **other == name).count();
            // The directory of the program and its own parents are there already.
            let made = usize::from(directory.starts_with(CARRIED));
            assert_eq!(places, made, "{name}: {names:?}");
        }
        let gone = carry(
            &[dir.path().join("none")],
            &mut Archive::new(Vec::new()).unwrap(),
        );
        assert!(gone.unwrap_err().to_string().contains("none"));
    }
}
