//! Which processes are recorded.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stackrace_base::failure::Failure;
use stackrace_base::unit::{ShownPath, signs};
use stackrace_machine::host::process;

/// Where the units of systemd have their groups.
const GROUPS: &str = "/sys/fs/cgroup";
/// Deepest group that is looked at.
const DEEPEST: usize = 8;
/// Ends of names of units that have processes: a name with none of them means a service, as for systemctl.
const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

/// An application, by what is known of it.
#[derive(Debug, Clone)]
pub enum Target {
    /// A process, and all below it.
    Process(u32),
    /// All processes of a unit of systemd.
    Unit(String),
    /// A command that is started.
    Command(Vec<OsString>),
}

impl Target {
    /// The processes that run already.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn processes(&self) -> Result<Vec<u32>, Failure> {
        match self {
            Self::Process(number) => {
                let found = process::with_below(*number);
                match found.is_empty() {
                    true => Err(Failure::usage(format!("there is no process {number}"))
                        .next("find it: pgrep -a NAME")),
                    false => Ok(found),
                }
            }
            Self::Unit(name) => {
                let found = in_groups(Path::new(GROUPS), name);
                match found.is_empty() {
                    true => Err(Failure::usage(format!(
                        "no process of a unit {} runs",
                        signs(name)
                    ))
                    .next("find it: systemctl list-units --type=service")),
                    false => Ok(found),
                }
            }
            Self::Command(_) => Ok(Vec::new()),
        }
    }
}

/// Checks that the directory is the same one for each process: in a container or a changed root its name means another
/// one, or none, and calls on it would not be found.
///
/// # Errors
/// A process sees other directories.
pub(super) fn sees(processes: &[u32], below: &Path) -> Result<(), Failure> {
    let named = |about: std::fs::Metadata| (about.dev(), about.ino());
    let Ok(own) = std::fs::metadata(below).map(named) else {
        return Ok(());
    };
    for process in processes {
        let root = PathBuf::from(format!("/proc/{process}/root"));
        // One that is gone meanwhile sees nothing any more.
        if std::fs::metadata(&root).is_err() {
            continue;
        }
        let seen = root.join(below.strip_prefix("/").unwrap_or(below));
        // A link in it would be followed from our root; `below` has none here, and there it is another directory.
        if std::fs::metadata(&seen).map(named).ok() != Some(own) {
            return Err(Failure::unable(format!(
                "process {process} does not see {}: it is in a container, or in another root",
                below.shown()
            ))
            .next("record an application that runs on the machine itself, or run it there for the recording"));
        }
    }
    Ok(())
}

/// Processes in the group of a unit, and in the groups below it.
fn in_groups(root: &Path, unit: &str) -> Vec<u32> {
    let named = match KINDS.iter().any(|kind| unit.ends_with(kind)) {
        true => unit.to_owned(),
        false => format!("{unit}.service"),
    };
    let mut found = Vec::new();
    let mut waiting: Vec<(PathBuf, usize, bool)> = vec![(root.to_owned(), 0, false)];
    while let Some((group, depth, inside)) = waiting.pop() {
        // Groups below a unit belong to it.
        let inside = inside || group.file_name().is_some_and(|name| *name == *named);
        if inside {
            let processes = std::fs::read_to_string(group.join("cgroup.procs"));
            let processes = processes.unwrap_or_default();
            found.extend(
                processes
                    .lines()
                    .filter_map(|line| line.parse::<u32>().ok()),
            );
        }
        let below = std::fs::read_dir(&group).into_iter().flatten().flatten();
        let groups = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        // A tree of groups has no loops, but may be deep.
        if depth < DEEPEST {
            waiting.extend(groups.map(|entry| (entry.path(), depth + 1, inside)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_the_processes_of_its_group_and_of_those_below() {
        let root = tempfile::tempdir().unwrap();
        let group = |path: &str, processes: &str| {
            let group = root.path().join(path);
            std::fs::create_dir_all(&group).unwrap();
            std::fs::write(group.join("cgroup.procs"), processes).unwrap();
        };
        group("system.slice/db.service", "10\n11\n");
        group("system.slice/db.service/worker", "12\n");
        group("system.slice/other.service", "13\n");
        let mut found = in_groups(root.path(), "db");
        found.sort_unstable();
        assert_eq!(found, [10, 11, 12]);
        assert_eq!(in_groups(root.path(), "db.service").len(), 3);
        assert!(in_groups(root.path(), "none").is_empty());
        // A point in a name is no end of one.
        group("system.slice/php8.2-fpm.service", "14\n");
        assert_eq!(in_groups(root.path(), "php8.2-fpm"), [14]);
        assert_eq!(in_groups(root.path(), "system.slice").len(), 5);
    }

    #[test]
    fn a_process_that_is_not_there_is_refused_by_its_number() {
        let refused = Target::Process(u32::MAX).processes().unwrap_err().render();
        assert!(
            refused.contains("there is no process 4294967295"),
            "{refused}"
        );
        let own = Target::Process(std::process::id()).processes().unwrap();
        assert!(own.contains(&std::process::id()));
    }
}
