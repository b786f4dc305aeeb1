//! git: a repository of generated sources cloned on the stack, then another branch checked out.
//!
//! The repository lies on the stack, too, and is cold. The clone copies every object (`--no-local`, as
//! from another machine) and writes the working tree; the other branch differs in half of the files.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use stackrace_engine::{PhaseEnd, PhaseOutcome};

use super::generated;
use super::ran;
use crate::workload::metric;
use crate::workload::{
    Cost, OverShell, Place, Workload, WorkloadError, WorkloadKind, trouble, trouble_at,
};
use stackrace_base::event::{Better, MetricHead, OperationsOf};
use stackrace_base::owned::held::with_real_names;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_machine::host::{Host, Needs, Package, argv, local::LocalHost};

/// Longest time of one command of git, ns.
const TIME_MAX_NS: u64 = 3_600_000_000_000;
const PACKAGES: &[Package] = &[Package::new("git", &["git"])];

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "git",
    summary: "git: a repository of generated sources cloned, another branch checked out",
    source: "the program git of this machine, git-clone(1) --no-local, git-checkout(1)",
    settings: &[
        SettingDoc::count("files", "2000", "Files of a branch."),
        SettingDoc::bytes("file-size", "8 KiB", "Size of a file, about."),
        SettingDoc::count(
            "commits",
            "20",
            "Commits; each changes a twentieth of the files.",
        ),
    ],
    example: "git = { files = 2000 }",
    over_shell: OverShell::Nearest("command = { run = \"git clone …\" }"),
    parse: |settings| Ok(Box::new(Git::parse(settings)?)),
    operations: OperationsOf::Program,
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct Git {
    files: u64,
    bytes: u64,
    commits: u64,
}

impl Git {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        Ok(Self {
            files: settings.count_within("files", 2..=1_000_000)?,
            bytes: generated::file_bytes(settings, 64 << 20)?,
            commits: settings.count_within("commits", 1..=1_000_000)?,
        })
    }

    /// Runs git in the trial's directory; `None` if the trial was stopped.
    fn git(place: &Place<'_>, words: &[&str]) -> Result<Option<u64>, WorkloadError> {
        let mut command = argv(["git"]);
        command.extend(argv(words.iter().copied()));
        let real = with_real_names(&place.directory.to_string_lossy());
        // Nothing of the user's settings, hooks or names counts: the same work everywhere.
        let environment: Vec<(&str, OsString)> = vec![
            ("HOME", real.into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
        ];
        let ran = ran::run_in(place, &command, &environment, TIME_MAX_NS)?;
        Ok(ran.map(|ran| ran.elapsed_ns))
    }

    /// Writes the history, as git-fast-import(1) reads it; one that is to end ends with fewer commits.
    fn write_history(&self, place: &Place<'_>, out: &mut impl Write) -> std::io::Result<()> {
        // One stream instead of a thousand commits by the program: preparing takes seconds, not minutes.
        let mut last = self.commit(place.seed, out, ("main", 1, None), &|_| true, 0)?;
        let first = last;
        for version in 1..self.commits {
            if place.control.stopped() {
                break;
            }
            let changed = |file: u64| file % 20 == version % 20;
            let of = ("main", last + 1, Some(last));
            last = self.commit(place.seed, out, of, &changed, version)?;
        }
        let half = |file: u64| file.is_multiple_of(2);
        let of = ("other", last + 1, Some(first));
        self.commit(place.seed, out, of, &half, self.commits + 1)?;
        out.flush()
    }

    /// Writes a commit of a branch, with its mark and that of the one before it; gives its mark.
    fn commit(
        &self,
        seed: u64,
        out: &mut impl Write,
        (branch, mark, from): (&str, u64, Option<u64>),
        which: &dyn Fn(u64) -> bool,
        version: u64,
    ) -> std::io::Result<u64> {
        write!(
            out,
            "commit refs/heads/{branch}\nmark :{mark}\ncommitter stackrace <stackrace@localhost> {} +0000\ndata 2\nc\n\n",
            1_700_000_000 + mark * 60
        )?;
        if let Some(from) = from {
            writeln!(out, "from :{from}")?;
        }
        for file in (0..self.files).filter(|file| which(*file)) {
            let seed = seed ^ (file << 20) ^ version.rotate_right(14);
            let source = generated::source(file, self.bytes, seed);
            write!(
                out,
                "M 100644 inline d{}/f{file}.c\ndata {}\n{source}\n",
                file / 20,
                source.len()
            )?;
        }
        Ok(mark)
    }
}

impl Workload for Git {
    fn summary(&self) -> String {
        format!(
            "git: clone a repository of {} files of {} and {} commits, check out a branch with half of them changed, durable before the clock stops",
            unit::count(self.files),
            unit::bytes(self.bytes),
            unit::count(self.commits)
        )
    }

    fn needs(&self) -> Needs {
        Needs {
            tools: &["git"],
            packages: PACKAGES,
            ..Needs::default()
        }
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let each = ["clone", "checkout"].map(|phase| MetricHead::new(phase, "s", Better::Lower));
        std::iter::once(metric::elapsed_head())
            .chain(each)
            .collect()
    }

    fn cost(&self) -> Cost {
        let tree = self.files.saturating_mul(self.bytes);
        // Each further commit has a twentieth of the files; the history is written, and packed beside it.
        let further = (tree / 20).saturating_mul(self.commits);
        let history = tree.saturating_mul(3) / 2;
        let history = history.saturating_add(further);
        Cost {
            prepare_bytes: history,
            // The clone writes packed objects and a tree; the checkout half a tree more.
            measured_bytes: Some(tree.saturating_mul(2)),
            disk_bytes: tree
                .saturating_mul(4)
                .saturating_add(history.saturating_mul(2)),
            measured_ns: None,
            files: self.files,
            working_set_bytes: tree,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["clone", "checkout"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let history = place.directory.join("history");
        let failed = |error: std::io::Error| trouble_at(&history, error);
        let file = std::fs::File::create(&history).map_err(failed)?;
        self.write_history(place, &mut std::io::BufWriter::new(file))
            .map_err(failed)?;
        // Packed, as a server keeps it; the name of the first branch depends on the version of git.
        let script = "git init -q --bare origin && git -C origin fast-import --quiet < history && git -C origin symbolic-ref HEAD refs/heads/main && git -C origin repack -q -a -d";
        let environment = [
            ("GIT_CONFIG_GLOBAL", OsString::from("/dev/null")),
            ("GIT_CONFIG_NOSYSTEM", OsString::from("1")),
        ];
        ran::run_in(
            place,
            &argv(["sh", "-c", script]),
            &environment,
            TIME_MAX_NS,
        )?;
        std::fs::remove_file(&history).map_err(failed)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let words: &[&str] = match phase {
            0 => &["clone", "--quiet", "--no-local", "origin", "work"],
            _ => &["-C", "work", "checkout", "--quiet", "other"],
        };
        let done = Self::git(place, words)?;
        // git itself makes only its packs durable, not the working tree.
        let written = SystemClock.now_ns();
        sync(place.directory)?;
        let sync_ns = SystemClock.now_ns().saturating_sub(written);
        // What this program does between the two is not git's time.
        let elapsed_ns = done.unwrap_or(0).saturating_add(sync_ns);
        let outcome = PhaseOutcome::of_program(
            "program",
            format!("git {}", words.join(" ")),
            elapsed_ns,
            crate::workload::SLICE_NS,
        );
        Ok(match done {
            Some(_) => outcome,
            None => PhaseOutcome {
                ended: PhaseEnd::Stopped,
                ..outcome
            },
        })
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        // Only of both together: half the work would look twice as fast.
        let all: u64 = outcomes.iter().map(|outcome| outcome.elapsed_ns).sum();
        let whole = (outcomes.len() == 2).then(|| all as f64 / 1e9);
        let each = (0..2).map(|phase| outcomes.get(phase).and_then(metric::elapsed));
        std::iter::once(whole).chain(each).collect()
    }
}

/// Makes everything durable that was written in a file system.
pub(super) fn sync(directory: &Path) -> Result<(), WorkloadError> {
    let here = LocalHost::new(Arc::new(|_| ()));
    here.sync_file_system(directory).map_err(trouble)
}
