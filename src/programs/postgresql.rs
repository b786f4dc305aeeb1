//! PostgreSQL: a real server with its data directory on the stack, loaded by its own pgbench.
//!
//! The server comes from this machine's package. It is started for the trial with its own data
//! directory and stopped after it; a server that already runs is left alone. It listens on no
//! network: pgbench reaches it through an abstract socket that admits only the server's own user.
//! PostgreSQL refuses to run as root. So when root starts stackrace, the server runs as the user
//! "postgres", or as "nobody" if there is no user "postgres". The server's user gets one right of
//! root: to search the private directories that contain its data directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stackrace_engine::{PhaseEnd, PhaseOutcome};

use super::{ran, reported};
use crate::event::{Better, MetricHead};
use crate::host::program::{self, ProgramCall};
use crate::host::{Needs, Package, argv};
use crate::owned::held::with_real_names;
use crate::setting::{Refusal, SettingDoc, Settings};
use crate::unit;
use crate::workload::metric::{self, head};
use crate::workload::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};

/// Where Debian keeps the programs of each version; others have them among all programs.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Users that may run the server when root starts stackrace. The first one that exists is taken.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// Longest time to make, start or stop the server, ns.
const ASIDE_NS: u64 = 1_800_000_000_000;
/// Bytes of a database for each unit of pgbench's scale (100,000 accounts), as its manual has it.
const SCALE_BYTES: u64 = 15 << 20;
const PACKAGES: &[Package] = &[
    Package::new("postgresql", &["postgres", "initdb", "pg_ctl", "pgbench"]),
    Package::new("util-linux", &["setpriv"]),
];

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "postgresql",
    summary: "PostgreSQL: a real server on the stack, loaded by pgbench",
    source: "the package postgresql of this machine: initdb, pg_ctl, pgbench with its built-in scripts",
    settings: &[
        SettingDoc::count(
            "scale",
            "10",
            "pgbench's scale: 100,000 accounts each, some 15 MiB.",
        ),
        SettingDoc::count("clients", "4", "Connections at the same time."),
        SettingDoc::time("time", "10 s", "How long pgbench runs."),
        SettingDoc::choice(
            "script",
            &["tpcb-like", "simple-update", "select-only"],
            "tpcb-like",
            "pgbench's built-in script.",
        ),
        SettingDoc::bytes(
            "shared-buffers",
            "128 MiB",
            "Memory that the server caches pages in.",
        ),
    ],
    example: "postgresql = { scale = 1, time = \"2 s\" }",
    parse: |settings| Ok(Box::new(Postgres::parse(settings)?)),
};

#[derive(Debug)]
struct Postgres {
    scale: u64,
    clients: u64,
    time_ns: u64,
    script: String,
    shared_bytes: u64,
}

impl Postgres {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let refuse = |name: &str, why: String| Err(Refusal::at(settings.span_of(name), why, ""));
        let count = |name: &str, most: u64| {
            let found = settings.count(name)?;
            match (1..=most).contains(&found) {
                true => Ok(found),
                false => refuse(name, format!("{name} must be between 1 and {most}")),
            }
        };
        let time_ns = settings.time_ns("time")?;
        if time_ns < 1_000_000_000 || time_ns % 1_000_000_000 != 0 {
            refuse(
                "time",
                "pgbench takes whole seconds, 1 s at least".to_owned(),
            )?;
        }
        let shared_bytes = settings.bytes("shared-buffers")?;
        if !(128 << 10..1 << 40).contains(&shared_bytes) {
            refuse(
                "shared-buffers",
                "PostgreSQL takes 128 KiB and more".to_owned(),
            )?;
        }
        Ok(Self {
            scale: count("scale", 100_000)?,
            clients: count("clients", 1000)?,
            time_ns,
            script: settings.text("script")?,
            shared_bytes,
        })
    }

    /// The words that start the server, quoted for pg_ctl.
    fn server_words(&self, socket: &str) -> String {
        // No address: other users and machines have no way in. Ten connections more than pgbench has,
        // for those that the server keeps for itself.
        format!(
            "-c listen_addresses='' -c unix_socket_directories={socket} -c max_connections={} -c shared_buffers={}kB",
            self.clients + 10,
            self.shared_bytes >> 10
        )
    }

    /// Runs one of PostgreSQL's programs as the server's user; what it printed, or none: stopped.
    fn tool(
        &self,
        place: &Place<'_>,
        (name, words): (&str, &[String]),
        time_max_ns: u64,
        leaves_server: bool,
    ) -> Result<Option<String>, WorkloadError> {
        let mut command = as_user()?;
        command.push(tool(name).into());
        command.extend(argv(words.iter()));
        let ran = program::run(&ProgramCall {
            argv: &command,
            directory: place.directory,
            environment: &[("PGHOST", socket(place).into()), ("PGUSER", "bench".into())],
            time_max_ns,
            durable: false,
            leaves_server,
            stopped: &|| place.control.stopped(),
        });
        let ran = ran.map_err(ran::explained)?;
        // pgbench says by its status that a client was lost: its rate would be that of fewer.
        let ran = ran::judged(&command, time_max_ns, ran)?;
        Ok(ran.map(|ran| ran.stdout))
    }

    fn start(&self, place: &Place<'_>) -> Result<bool, WorkloadError> {
        let data = data(place);
        let log = format!("{data}/server.log");
        // -w: it answers when pg_ctl returns, so that pgbench never finds it starting.
        let words = ["start", "-w", "-s", "-D", &data, "-l", &log, "-o"].map(str::to_owned);
        let mut words = words.to_vec();
        words.push(self.server_words(&socket(place)));
        let started = self.tool(place, ("pg_ctl", &words), ASIDE_NS, true);
        let started = started.map_err(|error| {
            // pg_ctl says only that it could not: why is in the server's own log.
            let said = std::fs::read_to_string(place.directory.join("data/server.log"));
            let said = said.unwrap_or_default();
            let last = said.lines().rev().take(5).collect::<Vec<_>>();
            let last: Vec<&str> = last.into_iter().rev().collect();
            trouble(format!("{error}\n{}", last.join("\n")))
        })?;
        Ok(started.is_some())
    }

    fn stop(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let words = ["stop", "-w", "-s", "-m", "fast", "-D", &data(place)].map(str::to_owned);
        // Also after Ctrl-C: a control of its own, so that the server comes to its end.
        let control = stackrace_engine::Control::default();
        let place = Place {
            control: &control,
            ..*place
        };
        self.tool(&place, ("pg_ctl", &words), ASIDE_NS, true)
            .map(drop)
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

/// What runs a command as the server's user: nothing where this is no root.
fn as_user() -> Result<Vec<OsString>, WorkloadError> {
    let Some(name) = user()? else {
        return Ok(Vec::new());
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
    Ok(argv(words))
}

/// Who runs the server; none: this user.
fn user() -> Result<Option<String>, WorkloadError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    Ok(USERS
        .iter()
        .find(|name| ids(name).is_some())
        .map(|name| (*name).to_owned()))
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

/// The data directory, as the server is told.
fn data(place: &Place<'_>) -> String {
    let directory = place.directory.join("data");
    with_real_names(&directory.to_string_lossy())
}

/// An abstract socket: a name that no directory holds, so that no path is too long for it (unix(7)).
fn socket(place: &Place<'_>) -> String {
    let name = blake3::hash(data(place).as_bytes()).to_hex();
    format!("@stackrace-{}", &name[..16])
}

impl Workload for Postgres {
    fn summary(&self) -> String {
        format!(
            "PostgreSQL: pgbench {} at scale {} with {} clients for {}, shared_buffers {}",
            self.script,
            self.scale,
            self.clients,
            unit::long_time(self.time_ns as f64 / 1e9),
            unit::bytes(self.shared_bytes)
        )
    }

    fn needs(&self) -> Needs {
        // Those outside of PATH are looked for by path; the package is named where there are none.
        match programs() {
            Some(_) => Needs {
                tools: &["setpriv"],
                packages: PACKAGES,
                ..Needs::default()
            },
            None => Needs {
                tools: &["initdb", "pg_ctl", "pgbench", "setpriv"],
                packages: PACKAGES,
                ..Needs::default()
            },
        }
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![
            head("transactions", "op/s", Better::Higher),
            metric::named_latency_head("transaction", metric::Latency::Mean),
        ]
    }

    fn cost(&self) -> Cost {
        let data = self.scale * SCALE_BYTES;
        Cost {
            prepare_bytes: data * 2,
            // As many as fit into the time.
            measured_bytes: None,
            // The empty cluster, the tables, and two segments of the write-ahead log.
            disk_bytes: data * 2 + (200 << 20),
            measured_ns: Some(self.time_ns),
            files: 1000,
            working_set_bytes: data,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["pgbench"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let directory = place.directory.join("data");
        std::fs::create_dir(&directory).map_err(trouble)?;
        if let Some([uid, gid]) = user()?.as_deref().and_then(ids) {
            std::os::unix::fs::chown(&directory, Some(uid), Some(gid)).map_err(trouble)?;
        }
        let data = data(place);
        let words = [
            "-D",
            &data,
            "-U",
            "bench",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ];
        let words = words.map(str::to_owned);
        if self
            .tool(place, ("initdb", &words), ASIDE_NS, false)?
            .is_none()
        {
            return Ok(());
        }
        // Only the server's own user is let in: the socket has no file with rights of its own.
        let user = user()?.unwrap_or_else(own_name);
        let rules = "local all bench peer map=bench\n".to_owned();
        let map = format!("bench {user} bench\n");
        for (name, text) in [("pg_hba.conf", rules), ("pg_ident.conf", map)] {
            std::fs::write(directory.join(name), text).map_err(trouble)?;
        }
        // Stopped in the middle: what started must end.
        if !self.start(place)? {
            return self.stop(place);
        }
        let words = ["-i", "-q", "-s", &self.scale.to_string(), "postgres"].map(str::to_owned);
        let filled = self.tool(place, ("pgbench", &words), ASIDE_NS, true);
        // Stopped before the stack is settled: an open file system cannot be remounted. The shutdown
        // writes everything back.
        let stopped = self.stop(place);
        filled?;
        stopped
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let why = format!(
            "pgbench -b {} -s {} -c {}",
            self.script, self.scale, self.clients
        );
        let seconds = (self.time_ns / 1_000_000_000).to_string();
        let clients = self.clients.to_string();
        let words = [
            "-n",
            "-b",
            &self.script,
            "-c",
            &clients,
            "-j",
            &clients,
            "-T",
            &seconds,
            "postgres",
        ];
        let words = words.map(str::to_owned);
        let printed = match self.start(place)? {
            true => self.tool(place, ("pgbench", &words), self.time_ns + ASIDE_NS, true),
            false => Ok(None),
        };
        // Outside of the rate, which pgbench takes itself; the shutdown writes back what is dirty.
        let stopped = self.stop(place);
        let outcome = PhaseOutcome::of_program("PostgreSQL", why, self.time_ns, SLICE_NS);
        let Some(printed) = printed? else {
            let ended = PhaseEnd::Stopped;
            return Ok(PhaseOutcome { ended, ..outcome });
        };
        stopped?;
        let found = reported::found_in(
            reported::Printed {
                out: &printed,
                errors: "",
            },
            Some("pgbench"),
        )
        .map_err(trouble)?;
        let of = |name: &str| {
            let found = found.iter().find(|(head, _)| head.name == name);
            found.and_then(|(_, value)| *value)
        };
        Ok(PhaseOutcome {
            reported: vec![of("transactions"), of("transaction latency mean")],
            printed: [printed, String::new()],
            ..outcome
        })
    }

    fn finish(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        // After an error in the middle one may still run; its number is in its directory.
        match place.directory.join("data/postmaster.pid").exists() {
            true => self.stop(place),
            false => Ok(()),
        }
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        ran::reported(outcomes, self.metrics().len())
    }
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
