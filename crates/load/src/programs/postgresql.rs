//! PostgreSQL: a real server with its data directory on the stack, loaded by its own pgbench.
//!
//! The server comes from this machine's package. It is started for the trial with its own data
//! directory and stopped after it; a server that already runs is left alone. How it is kept apart
//! from other users: [`PostgresServer`].

use stackrace_engine::{PhaseEnd, PhaseOutcome};

use super::reported;
use super::reported::FoundFigure;
use crate::workload::metric;
use crate::workload::postgres_server::{self, ASIDE_NS, PostgresServer};
use crate::workload::{
    Cost, OverShell, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble,
};
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_machine::host::Needs;

/// Bytes of a database for each unit of pgbench's scale (100,000 accounts), as its manual has it.
const SCALE_BYTES: u64 = 15 << 20;

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
    over_shell: OverShell::Nearest("command = { run = \"pgbench …\", parse = \"pgbench\" }"),
    parse: |settings| Ok(Box::new(Postgres::parse(settings)?)),
    ..WorkloadKind::PLAIN
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
        let time_ns = settings.time_ns("time")?;
        if time_ns < 1_000_000_000 || time_ns % 1_000_000_000 != 0 {
            return Err(settings.refuse("time", "pgbench takes whole seconds, 1 s at least", ""));
        }
        let shared_bytes = settings.bytes("shared-buffers")?;
        if !(128 << 10..1 << 40).contains(&shared_bytes) {
            return Err(settings.refuse("shared-buffers", "PostgreSQL takes 128 KiB and more", ""));
        }
        Ok(Self {
            scale: settings.count_within("scale", 1..=100_000)?,
            clients: settings.count_within("clients", 1..=1000)?,
            time_ns,
            script: settings.text("script")?,
            shared_bytes,
        })
    }

    /// Settings for the server. Ten connections more than pgbench has, for those that the server keeps
    /// for itself.
    fn told(&self) -> [String; 2] {
        [
            format!("max_connections={}", self.clients + 10),
            format!("shared_buffers={}kB", self.shared_bytes >> 10),
        ]
    }

    /// Calls with the server of a place.
    fn with<T>(&self, place: &Place<'_>, work: impl FnOnce(&PostgresServer<'_>) -> T) -> T {
        work(&PostgresServer {
            directory: place.directory,
            told: &self.told(),
            stopped: &|| place.control.stopped(),
        })
    }

    /// Makes the cluster and fills it.
    fn fill(&self, server: &PostgresServer<'_>) -> Result<(), WorkloadError> {
        if !server.make()? {
            return Ok(());
        }
        // Stopped in the middle: what started must end.
        if !server.start()? {
            return server.stop();
        }
        let words = ["-i", "-q", "-s", &self.scale.to_string(), "postgres"].map(str::to_owned);
        let filled = server.tool(("pgbench", &words), ASIDE_NS, true);
        // Stopped before the stack is settled: an open file system cannot be remounted. The shutdown
        // writes everything back.
        let stopped = server.stop();
        filled?;
        stopped
    }
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
        postgres_server::needs(&["initdb", "pg_ctl", "pgbench", "setpriv"])
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![
            MetricHead::new("transactions", "op/s", Better::Higher),
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
        self.with(place, |server| self.fill(server))
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
        let (printed, stopped) = self.with(place, |server| {
            let printed = match server.start()? {
                true => server.tool(("pgbench", &words), self.time_ns + ASIDE_NS, true),
                false => Ok(None),
            };
            // Outside of the rate, which pgbench takes itself; the shutdown writes back what is dirty.
            Ok((printed, server.stop()))
        })?;
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
        let of = |name: &str| found.figures.iter().find(|(head, _)| head.name == name);
        let (rate, latency) = (of("transactions"), of("transaction latency mean"));
        let figure = |found: Option<&FoundFigure>| found.and_then(|(_, figure)| *figure);
        let (rate, latency) = (figure(rate), figure(latency));
        // Time ends it: one transaction more or less.
        let one = Some(1e9 / self.time_ns.max(1) as f64);
        Ok(PhaseOutcome {
            reported: [rate, latency].map(|it| it.map(|it| it.value)).into(),
            reported_steps: vec![one, latency.map(|latency| latency.step)],
            printed: [printed, String::new()],
            ..outcome
        })
    }

    fn finish(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.with(place, |server| server.stop_if_left())
    }
}
