//! A PostgreSQL server of a trial's own, from this machine's package.
//!
//! Its data directory is below the trial's. It listens on no network, only on an abstract socket that
//! admits two users: the server's own and the one that runs this program. PostgreSQL refuses to run
//! as root. So when root runs this program, the server runs as the user "postgres", or as "nobody" if
//! there is no user "postgres". The server's user gets one right of root: to search the private
//! directories that contain its data directory.

use std::ffi::OsString;
#[cfg(feature = "postgresql")]
use std::io::Write;
use std::path::{Path, PathBuf};

use super::kind::{WorkloadError, trouble};
use super::program_end::{explained, judged};
use stackrace_base::owned::held::with_real_names;
use stackrace_machine::host::program::{self, ProgramCall};
use stackrace_machine::host::{Needs, Package, argv};

/// Directory where Debian keeps the programs of each version; others have them among all programs.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Users that may run the server when root runs this program. The first one that exists is taken.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// The data directory in the directory of a trial.
const DATA: &str = "data";
/// The server's log in its data directory.
const LOG: &str = "server.log";
/// The file in its data directory that names the server's first process.
const LOCK: &str = "postmaster.pid";
/// Lines of that log that say why a server does not start.
const LOG_LINES: usize = 5;
/// The user of the database.
pub const USER: &str = "bench";
/// Longest time to make, start or stop the server, ns.
pub const ASIDE_NS: u64 = 1_800_000_000_000;
/// The package of the server, as the lab's guests have it too.
pub const PACKAGE: &str = "postgresql";

const PACKAGES: &[Package] = &[
    Package::new(PACKAGE, &["postgres", "initdb", "pg_ctl", "pgbench"]),
    Package::new("util-linux", &["setpriv"]),
];

/// A server, started or not. Nothing of it is outside of its directory but its processes.
pub struct PostgresServer<'a> {
    /// The directory of the trial.
    pub directory: &'a Path,
    /// Settings it is told when it starts, `name=value` each, as in its configuration file.
    pub told: &'a [String],
    /// Function that returns true if what is under way is to be ended.
    pub stopped: &'a dyn Fn() -> bool,
}

impl PostgresServer<'_> {
    /// Makes an empty cluster whose files are not synced yet; false: it was stopped.
    ///
    /// # Errors
    /// What initdb says.
    pub fn make(&self) -> Result<bool, WorkloadError> {
        let directory = self.directory.join(DATA);
        std::fs::create_dir(&directory).map_err(trouble)?;
        if let Some([uid, gid]) = user().and_then(ids) {
            std::os::unix::fs::chown(&directory, Some(uid), Some(gid)).map_err(trouble)?;
        }
        let data = self.data();
        let words = [
            "-D",
            &data,
            "-U",
            USER,
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ];
        let words = words.map(str::to_owned);
        if self.tool(("initdb", &words), ASIDE_NS, false)?.is_none() {
            return Ok(false);
        }
        // The socket has no file with rights of its own: the server asks the kernel who connects.
        let rules = format!("local all {USER} peer map=bench\n");
        let map = format!(
            "bench {} {USER}\nbench {} {USER}\n",
            user().map_or_else(own_name, str::to_owned),
            own_name()
        );
        for (name, text) in [("pg_hba.conf", rules), ("pg_ident.conf", map)] {
            std::fs::write(directory.join(name), text).map_err(trouble)?;
        }
        Ok(true)
    }

    /// Adds lines to the configuration file of a cluster.
    ///
    /// # Errors
    /// What the system says.
    #[cfg(feature = "postgresql")]
    pub fn configure(&self, lines: &str) -> Result<(), WorkloadError> {
        let path = self.directory.join(DATA).join("postgresql.conf");
        // Added: of two lines for one setting the server takes the last.
        let file = std::fs::File::options().append(true).open(&path);
        file.and_then(|mut file| file.write_all(lines.as_bytes()))
            .map_err(|error| super::kind::trouble_at(&path, error))
    }

    /// Starts the server; it answers when this returns. False: it was stopped, and may be starting.
    ///
    /// # Errors
    /// It does not start: the last lines of its log.
    pub fn start(&self) -> Result<bool, WorkloadError> {
        let data = self.data();
        let log = format!("{data}/{LOG}");
        // No address: other machines have no way in. No times and numbers of processes in its log: its
        // last words are a finding, which is the same each time it is made.
        let mut told = format!(
            "-c listen_addresses='' -c log_line_prefix='' -c unix_socket_directories={}",
            self.socket()
        );
        for setting in self.told {
            told.push_str(&format!(" -c {setting}"));
        }
        // As long as recovery takes: after a minute pg_ctl would say that the server does not start.
        let most = (ASIDE_NS / 1_000_000_000).to_string();
        let words = [
            "start", "-w", "-s", "-t", &most, "-D", &data, "-l", &log, "-o", &told,
        ];
        let words = words.map(str::to_owned);
        let before = self.log_bytes();
        let started = self.tool(("pg_ctl", &words), ASIDE_NS, true);
        let started = started.map_err(|error| {
            let text = match self.said_since(before) {
                // What was said before is of another start.
                said if said.is_empty() => error.to_string(),
                said => format!("{error}; the end of its log:\n{said}"),
            };
            // Names of this run alone, which no reader could look for.
            let text = text.replace(&data, DATA).replace(&self.socket(), "@socket");
            error.saying(text)
        })?;
        Ok(started.is_some())
    }

    /// Bytes of the server's log.
    fn log_bytes(&self) -> usize {
        let log = self.directory.join(DATA).join(LOG).metadata();
        log.map_or(0, |log| log.len() as usize)
    }

    /// The last lines of the server's log after so many bytes. pg_ctl says only that a server does not
    /// start; why is here.
    fn said_since(&self, before: usize) -> String {
        let said = std::fs::read(self.directory.join(DATA).join(LOG)).unwrap_or_default();
        // After a power cut there may be anything in it.
        let said = String::from_utf8_lossy(said.get(before..).unwrap_or_default());
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// Returns true if there is a cluster.
    #[cfg(feature = "postgresql")]
    pub fn exists(&self) -> bool {
        self.directory.join(DATA).exists()
    }

    /// Removes the lock file of a server that is gone, if a power cut left nothing of its content: an
    /// operator has to, because the server takes it for that of another one and refuses to start. Returns
    /// what was removed, as it would be typed; `None` if there is no such file, or it has a number.
    ///
    /// # Errors
    /// It cannot be removed.
    #[cfg(feature = "postgresql")]
    pub fn remove_unreadable_lock(&self) -> Result<Option<String>, WorkloadError> {
        let path = self.directory.join(DATA).join(LOCK);
        let Ok(text) = std::fs::read(&path) else {
            return Ok(None);
        };
        let first = text.split(|&byte| byte == b'\n').next();
        let number = first.and_then(|first| std::str::from_utf8(first).ok());
        // With a number the server looks itself whether that process is there.
        if number.is_some_and(|number| number.trim().parse::<u32>().is_ok()) {
            return Ok(None);
        }
        std::fs::remove_file(&path)
            .map_err(|error| super::kind::trouble_at(&path, error).while_doing("remove"))?;
        Ok(Some(format!("rm {DATA}/{LOCK}")))
    }

    /// Ends the server in order: what is dirty in its memory is written back.
    ///
    /// # Errors
    /// What pg_ctl says.
    pub fn stop(&self) -> Result<(), WorkloadError> {
        let words = ["stop", "-w", "-s", "-m", "fast", "-D", &self.data()].map(str::to_owned);
        // Also after Ctrl-C, so that the server comes to its end.
        let unstopped = PostgresServer {
            stopped: &|| false,
            ..*self
        };
        unstopped.tool(("pg_ctl", &words), ASIDE_NS, true).map(drop)
    }

    /// Ends a server that may still run after an error.
    ///
    /// # Errors
    /// What pg_ctl says.
    pub fn stop_if_left(&self) -> Result<(), WorkloadError> {
        match self.process().is_some() {
            true => self.stop(),
            false => Ok(()),
        }
    }

    /// The number of the server's first process, if it runs: it leaves it in its directory, also when
    /// it dies.
    pub fn process(&self) -> Option<u32> {
        let said = std::fs::read_to_string(self.directory.join(DATA).join(LOCK));
        let number = said.ok()?.lines().next()?.trim().parse::<u32>().ok()?;
        // Another program may have that number by now.
        let name = std::fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
        name.starts_with("postgres").then_some(number)
    }

    /// Runs one of PostgreSQL's programs as the server's user; returns what it printed, or `None`
    /// if it was stopped.
    ///
    /// # Errors
    /// It cannot be started, or says that it failed.
    pub fn tool(
        &self,
        (name, words): (&str, &[String]),
        time_max_ns: u64,
        leaves_server: bool,
    ) -> Result<Option<String>, WorkloadError> {
        let mut command = as_user();
        command.push(tool(name).into());
        command.extend(argv(words.iter()));
        let ran = program::run(&ProgramCall {
            argv: &command,
            directory: self.directory,
            environment: &[("PGHOST", self.socket().into()), ("PGUSER", USER.into())],
            time_max_ns,
            durable: false,
            leaves_server,
            stopped: self.stopped,
            lines: None,
        });
        let ran = ran.map_err(explained)?;
        // pgbench says by its status that a client was lost: its rate would be that of fewer.
        let ran = judged(&command, time_max_ns, ran)?;
        Ok(ran.map(|ran| ran.stdout))
    }

    /// The data directory, as the server is told.
    fn data(&self) -> String {
        with_real_names(&self.directory.join(DATA).to_string_lossy())
    }

    /// An abstract socket, as PostgreSQL writes it: a name that no directory holds, so that no path is
    /// too long for it (unix(7)).
    pub fn socket(&self) -> String {
        let name = blake3::hash(self.data().as_bytes()).to_hex();
        format!("@stackrace-{}", &name[..16])
    }
}

/// Returns what a server needs of a machine; `programs`: those of the package that are used.
pub fn needs(programs: &'static [&'static str]) -> Needs {
    // Those outside of PATH are looked for by path; the package is named where there are none.
    Needs {
        tools: match self::programs() {
            Some(_) => &["setpriv"],
            None => programs,
        },
        packages: PACKAGES,
        ..Needs::default()
    }
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = Path::new(VERSIONS).read_dir().into_iter().flatten();
    // By number: as a text, 9 would be newer than 15.
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let all = versions.flatten().map(|entry| entry.path());
    let all = all.filter(|path| path.join("bin/postgres").exists());
    let newest = all.max_by_key(|path| number(path))?;
    Some(newest.join("bin"))
}

fn tool(name: &str) -> PathBuf {
    match programs() {
        Some(bin) => bin.join(name),
        None => name.into(),
    }
}

/// Words of a command line before one that runs as the server's user; empty if this is no root.
fn as_user() -> Vec<OsString> {
    let Some(name) = user() else {
        return Vec::new();
    };
    // setpriv takes names, which `ids` has found in the table of users.
    let (uid, gid) = (format!("--reuid={name}"), "--clear-groups".to_owned());
    // CAP_DAC_READ_SEARCH, see capabilities(7): the directories above are the private ones of a run.
    let words = [
        "setpriv",
        &uid,
        &gid,
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=-all,+dac_read_search",
    ];
    argv(words)
}

/// The user that runs the server; `None` means this user.
fn user() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    USERS.into_iter().find(|name| ids(name).is_some())
}

/// Number of a user, and of the group, from passwd(5).
fn ids(name: &str) -> Option<[u32; 2]> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut words = line.split(':').skip(2);
    Some([words.next()?.parse().ok()?, words.next()?.parse().ok()?])
}

/// The name of this user, as PostgreSQL's peer authentication knows it.
fn own_name() -> String {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut lines = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|words| words.get(2) == Some(&uid.as_str()));
    line.map_or(uid.clone(), |words| words[0].to_owned())
}
