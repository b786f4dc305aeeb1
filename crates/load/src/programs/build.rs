//! A build: a tree of generated C sources compiled by make and cc.
//!
//! The sources lie on the stack and are cold; the compiler is the machine's, and may be in memory. A
//! build takes processor time before anything else: see `user time` beside `elapsed`.

use std::fmt::Write as _;

use stackrace_engine::PhaseOutcome;

use super::git::sync;
use super::{generated, ran};
use crate::workload::{Cost, OverShell, Place, Workload, WorkloadError, WorkloadKind, trouble_at};
use stackrace_base::event::{MetricHead, OperationsOf};
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_machine::host::{Needs, Package, argv};

/// Longest time of a build, ns.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
const PACKAGES: &[Package] = &[
    Package::new("gcc", &["cc"]),
    Package::new("make", &["make"]),
    Package::new("libc6-dev", &[]),
];

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "build",
    summary: "a build: generated C sources compiled by make and cc",
    source: "the programs make and cc of this machine, cc -O1 -c for each file, then ar",
    settings: &[
        SettingDoc::count("files", "200", "Sources."),
        SettingDoc::bytes("file-size", "8 KiB", "Size of a source, about."),
        SettingDoc::count("jobs", "4", "Files compiled at the same time."),
    ],
    example: "build = { files = 100 }",
    over_shell: OverShell::Nearest("command = { run = \"make …\" }"),
    parse: |settings| Ok(Box::new(Build::parse(settings)?)),
    operations: OperationsOf::Program,
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct Build {
    files: u64,
    bytes: u64,
    jobs: u64,
}

impl Build {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        Ok(Self {
            files: settings.count_within("files", 1..=100_000)?,
            bytes: generated::file_bytes(settings, 1 << 20)?,
            jobs: settings.count_within("jobs", 1..=1024)?,
        })
    }
}

impl Workload for Build {
    fn summary(&self) -> String {
        format!(
            "compile {} C files of {} with make -j{}, durable before the clock stops",
            unit::count(self.files),
            unit::bytes(self.bytes),
            self.jobs
        )
    }

    fn needs(&self) -> Needs {
        Needs {
            tools: &["make", "cc", "ar"],
            packages: PACKAGES,
            ..Needs::default()
        }
    }

    fn metrics(&self) -> Vec<MetricHead> {
        ran::heads()
    }

    fn cost(&self) -> Cost {
        let sources = self.files * self.bytes;
        Cost {
            prepare_bytes: sources,
            // Sources are read, objects of about the same size written and gathered.
            measured_bytes: Some(sources * 3),
            disk_bytes: sources * 4,
            measured_ns: None,
            files: self.files * 2,
            working_set_bytes: sources,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["build"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let names = generated::write_tree(place.directory, self.files, self.bytes, place.seed)?;
        // By name, not by a pattern of make: every file is compiled, and nothing else.
        let objects: Vec<String> = names.iter().map(|name| name.replace(".c", ".o")).collect();
        let mut make = String::from(".SUFFIXES:\n.PHONY: all\nall: all.a\n");
        let _ = writeln!(make, "OBJECTS = {}", objects.join(" \\\n  "));
        // Names alone go to ar, through a file: a command line has an end.
        let _ = write!(
            make,
            "all.a: $(OBJECTS)\n\t@ar rc $@ @objects\n%.o: %.c\n\t@cc -O1 -c -o $@ $<\n"
        );
        let write = |name: &str, text: String| {
            let path = place.directory.join(name);
            std::fs::write(&path, text).map_err(|error| trouble_at(&path, error))
        };
        write("objects", objects.join("\n"))?;
        write("Makefile", make)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let command = argv([
            "make".to_owned(),
            "-s".to_owned(),
            format!("-j{}", self.jobs),
        ]);
        let Some(ran) = ran::run(place, &command, TIME_MAX_NS, false)? else {
            return Ok(ran::outcome(&command, None, 0, Vec::new()));
        };
        // An object that is still in memory costs the storage nothing.
        let written = SystemClock.now_ns();
        sync(place.directory)?;
        let sync_ns = SystemClock.now_ns().saturating_sub(written);
        let elapsed_ns = ran.elapsed_ns.saturating_add(sync_ns);
        let reported = ran::values(&ran, elapsed_ns);
        Ok(ran::outcome(&command, Some(&ran), elapsed_ns, reported))
    }
}
