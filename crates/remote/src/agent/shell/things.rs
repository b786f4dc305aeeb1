//! The numbers of files over a shell, and looking for a file by them.

use super::{mounts, quoted};
use stackrace_machine::host::{Host, MadeThing, MountInfo, SeenThing, ThingReads, TooMuch};
use stackrace_machine::host::{identity, thing};
use std::path::{Path, PathBuf};

/// Asks a machine that has nothing but a shell.
pub(super) struct ShellReads<'a> {
    /// The machine.
    pub(super) host: &'a dyn AsksPath,
    /// True if its table of mounts has numbers of devices.
    pub(super) numbered: bool,
}

/// A machine that is asked about a path by a script, and told of.
pub(super) trait AsksPath: Host {
    /// Output of the script; `None` if it failed.
    fn printed(&self, path: &Path, script: &str) -> Option<String>;
}

impl ThingReads for ShellReads<'_> {
    fn seen_at(&self, path: &Path) -> Option<SeenThing> {
        let text = self.host.printed(path, &seen(path))?;
        read_seen(&text, self.numbered)
    }

    fn seen_below(
        &self,
        root: &Path,
        thing: &MadeThing,
        left: &mut usize,
    ) -> Result<Option<PathBuf>, TooMuch> {
        let Some(script) = below(root, thing, *left) else {
            return Ok(None);
        };
        let text = self.host.printed(root, &script);
        let found = read_below(&text.ok_or(TooMuch)?)?;
        // The mount points in it have numbers of other file systems.
        let same = |path: &PathBuf| self.seen_at(path).is_some_and(|seen| thing.is_seen(&seen));
        Ok(found.filter(same))
    }

    fn leads_on(&self, path: &Path) -> bool {
        self.host.is_dir(path)
    }

    fn table(&self) -> Option<Vec<MountInfo>> {
        self.host.mounts().ok()
    }

    fn kind_at(&self, path: &Path) -> Option<String> {
        let script = format!("stat -f -c %T {}", quoted(path.as_os_str()));
        let text = self.host.printed(path, &script)?;
        Some(mounts::kind(text.trim()).to_owned())
    }

    fn boot(&self) -> Option<String> {
        let text = self.host.read_text(Path::new(identity::BOOT)).ok()?;
        Some(thing::boot_of(&text))
    }
}

/// The script that tells the numbers of what is at a path: device, inode, second in which it was made.
///
/// POSIX has the inode alone (`ls -i`); GNU and BusyBox have `stat -c`.
pub(super) fn seen(path: &Path) -> String {
    let p = quoted(path.as_os_str());
    format!("stat -c '%d %i %W' {p} 2>/dev/null || ls -di {p}")
}

/// Reads what it prints; `numbered`: the system's table of mounts has numbers of devices, too.
pub(super) fn read_seen(text: &str, numbered: bool) -> Option<SeenThing> {
    let mut words = text.split_whitespace();
    let (first, second) = (words.next()?, words.next()?);
    let Ok(inode) = second.parse() else {
        // `ls -di`: the inode, and the path.
        return Some(SeenThing {
            device: (0, 0),
            inode: first.parse().ok()?,
            made_ns: None,
        });
    };
    let device = first.parse().ok()?;
    // BusyBox writes a question mark.
    let made = words.next().and_then(|second| second.parse::<u64>().ok());
    Some(SeenThing {
        device: match numbered {
            true => stackrace_system::device_parts(device),
            false => (0, 0),
        },
        inode,
        made_ns: made
            .filter(|second| *second > 0)
            .and_then(|second| second.checked_mul(1_000_000_000)),
    })
}

/// Output of the script of [`below`] when there are too many names.
const TOO_MUCH: &str = "too much";

/// The script that looks for an inode below a directory, on its file system alone, and among so many
/// names at most.
pub(super) fn below(root: &Path, thing: &MadeThing, left: usize) -> Option<String> {
    let p = quoted(root.as_os_str());
    let inode = thing.inode?;
    // POSIX has no `find -inum`. What may not be read is nothing of ours.
    Some(format!(
        "find {p} -xdev -exec ls -di {{}} + 2>/dev/null | \
         awk 'NR > {left} {{ print \"{TOO_MUCH}\"; exit }} $1 == {inode} {{ print; exit }}'"
    ))
}

/// Reads what it prints.
pub(super) fn read_below(text: &str) -> Result<Option<PathBuf>, TooMuch> {
    let line = text.trim_start().trim_end_matches('\n');
    match line {
        "" => Ok(None),
        TOO_MUCH => Err(TooMuch),
        line => Ok(line.split_once(' ').map(|(_, path)| PathBuf::from(path))),
    }
}

/// The last part of a path.
pub(super) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_file_are_read_from_what_three_tools_print() {
        let seen = |device, made_ns| SeenThing {
            device,
            inode: 12,
            made_ns,
        };
        // GNU, BusyBox, and `ls -di` alone.
        for (text, expected) in [
            (
                "2049 12 1700000000\n",
                seen((8, 1), Some(1_700_000_000_000_000_000)),
            ),
            ("2049 12 0\n", seen((8, 1), None)),
            ("2049 12 ?\n", seen((8, 1), None)),
            ("  12 /srv/a b\n", seen((0, 0), None)),
        ] {
            assert_eq!(read_seen(text, true), Some(expected), "{text}");
        }
        assert_eq!(read_seen("2049 12 0", false), Some(seen((0, 0), None)));
        assert_eq!(read_seen("", true), None);
    }

    #[test]
    fn a_file_is_found_by_its_number_or_there_was_too_much() {
        assert_eq!(read_below("  12 /srv/a b\n"), Ok(Some("/srv/a b".into())));
        assert_eq!(read_below(""), Ok(None));
        assert_eq!(read_below("too much\n"), Err(TooMuch));
    }
}
