//! Which processes are recorded.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
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
                if let Some(process) = thread_of(*number) {
                    return Err(Failure::usage(format!(
                        "{number} is a thread of process {process}, and all threads of a process are recorded together"
                    ))
                    .next(format!("name the process: --pid {process}")));
                }
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

/// The process of a thread that is not its first one: some programs list threads by their own numbers.
fn thread_of(number: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{number}/status")).ok()?;
    // `Tgid:` of proc_pid_status(5).
    let mut words = status.split_whitespace();
    words.find(|word| *word == "Tgid:")?;
    let process: u32 = words.next()?.parse().ok()?;
    (process != number).then_some(process)
}

/// Checks that calls of each process can be read, and that the directory is the same one for it: in a container or a changed root its name means another
/// one, or none, and calls on it would not be found.
///
/// # Errors
/// A process sees other directories, or is a 32-bit program.
pub(super) fn sees(processes: &[u32], below: &Path) -> Result<(), Failure> {
    let named = |about: std::fs::Metadata| (about.dev(), about.ino());
    let Ok(own) = std::fs::metadata(below).map(named) else {
        return Ok(());
    };
    for process in processes {
        // Numbers of calls are those of another table there.
        if is_32_bit(Path::new(&format!("/proc/{process}/exe"))) {
            return Err(Failure::unable(format!(
                "process {process} is a 32-bit program, whose calls have other numbers"
            ))
            .next("record a 64-bit build of it"));
        }
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

/// Whether a file is a program of 32 bits (elf(5)); one that cannot be read is taken for none.
fn is_32_bit(program: &Path) -> bool {
    let mut head = [0; 5];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
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
    fn a_program_of_32_bits_is_known() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("program");
        std::fs::write(&program, b"\x7fELF\x01\x01\x01\0").unwrap();
        assert!(is_32_bit(&program));
        assert!(!is_32_bit(Path::new("/proc/self/exe")) && !is_32_bit(home.path()));
    }

    #[test]
    fn a_thread_is_refused_and_its_process_named() {
        let own = std::process::id();
        // Tests run in threads of their own.
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let refused = Target::Process(thread.unsigned_abs()).processes();
        let said = refused.unwrap_err().render();
        assert!(said.contains(&format!("--pid {own}")), "{said}");
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
