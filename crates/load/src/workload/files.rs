//! Many small files, and what is done to them: each phase on a settled stack.
//!
//! `phases` says which, in order; create, stat, read, unlink unless given. Directories are made
//! before the clock starts, unless `mkdir` is one of the phases. Phases that change something end
//! with a `syncfs` inside the clock (unless switched off): metadata that is only in memory has not
//! been stored. `read` opens, reads whole and closes; `open-close` does not read; `readdir` opens
//! a directory, lists all of it, checks the number of entries and closes; `link` gives each file a
//! second name, and `unlink` then removes both, one operation each.

use libm::log as ln;
use stackrace_engine::files::{
    AtEnd, CurrentNames, DIRECTORIES_MAX, FileSet, Pass, RenameTo, VisitOrder,
};
use stackrace_engine::spec::Content;
use stackrace_engine::{Op, OpError, PhaseOutcome};

use super::block::words::{COMPRESS_RATIO, CONTENT};
use super::block::{at_least_one, content};
use super::copy_file::{at_end, durable};
use super::kind::{Cost, Place, SLICE_NS, Visits, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::{self, Latency};
use super::shared_file::VISITS;
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::setting::{
    ChoiceDoc, Refusal, SettingDoc, Settings, Span, choice, unknown_word,
};
use stackrace_base::unit::{self, listed};

const ORDER: ChoiceDoc<VisitOrder> = choice!(
    "order",
    ["random" => VisitOrder::Random, "creation" => VisitOrder::Creation],
    "random",
    "Order of visits after creation: each once at random, or as created.",
);
const RENAME_TO: ChoiceDoc<RenameTo> = choice!(
    "rename-to",
    [
        "same-directory" => RenameTo::SameDirectory,
        "next-directory" => RenameTo::NextDirectory,
    ],
    "same-directory",
    "Where rename puts a file.",
);
/// True if all processes share the directories.
const TREE: ChoiceDoc<bool> = choice!(
    "tree",
    ["own" => false, "shared" => true],
    "own",
    "With several clients: each process has directories of its own, or all have the same ones.",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "files",
    summary: "many small files: created, looked up, read, renamed, linked, listed, unlinked",
    source: "the common core of bonnie++ -n, mdtest and fs_mark",
    settings: &[
        SettingDoc::count("count", "", "Number of files.").required(),
        SettingDoc::count(
            "directories",
            "16",
            "Number of directories they are spread over.",
        ),
        SettingDoc::texts(
            "phases",
            "[\"create\", \"stat\", \"read\", \"unlink\"]",
            "What is done to all of them, in this order: mkdir, create, then stat, open-close, read, readdir, rename, link as you like, unlink, rmdir; each once, create always.",
        ),
        ORDER.doc,
        RENAME_TO.doc,
        SettingDoc::bytes("size-min", "1 KiB", "Smallest file."),
        SettingDoc::bytes(
            "size-max",
            "16 KiB",
            "Largest file (sizes are log-uniform between).",
        ),
        SettingDoc::count("threads", "1", "Threads."),
        SettingDoc::flag("fsync", "false", "fsync each file when it is created."),
        SettingDoc::flag(
            "sync-at-end",
            "true",
            "Make what a phase changed durable before its clock stops.",
        ),
        TREE.doc,
        VISITS.doc,
        CONTENT.doc,
        COMPRESS_RATIO,
    ],
    example: "files = { count = 10000, size-min = \"1 KiB\", size-max = \"16 KiB\" }",
    mergeable: true,
    parse: |settings| Ok(Box::new(Files::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

/// One thing that can be done to a set of files.
#[derive(Debug)]
struct Phase {
    /// The word in a study, and the metric.
    word: &'static str,
    op: Op,
    /// Name of its latency.
    latency: &'static str,
    /// Phases stand in a study in ascending order of this.
    rank: u8,
    /// Set if anything is different afterwards.
    changes: bool,
    run: fn(&FileSet, Pass<'_>) -> Result<PhaseOutcome, OpError>,
}

impl Phase {
    const fn new(
        word: &'static str,
        op: Op,
        rank: u8,
        run: fn(&FileSet, Pass<'_>) -> Result<PhaseOutcome, OpError>,
    ) -> Self {
        Self {
            word,
            op,
            latency: word,
            rank,
            // A phase that changes nothing has nothing to make durable.
            changes: !matches!(op, Op::Stat | Op::Open | Op::Readdir),
            run,
        }
    }
}

const READ: Phase = Phase {
    latency: "open",
    ..Phase::new("read", Op::Open, 2, FileSet::read)
};
const PHASES: &[Phase] = &[
    Phase::new("mkdir", Op::Mkdir, 0, FileSet::mkdir),
    Phase::new("create", Op::Create, 1, FileSet::create),
    Phase::new("stat", Op::Stat, 2, FileSet::stat),
    Phase::new("open-close", Op::Open, 2, FileSet::open_close),
    READ,
    Phase::new("readdir", Op::Readdir, 2, FileSet::readdir),
    Phase::new("rename", Op::Rename, 2, FileSet::rename),
    Phase::new("link", Op::Link, 2, FileSet::link),
    Phase::new("unlink", Op::Unlink, 3, FileSet::unlink),
    Phase::new("rmdir", Op::Rmdir, 4, FileSet::rmdir),
];

/// The phases a study asks for.
fn phases(settings: &Settings) -> Result<Vec<&'static Phase>, Refusal> {
    let words = settings.texts("phases")?;
    let span = settings.span_of("phases");
    let find = |word: &String| {
        let found = PHASES.iter().find(|phase| phase.word == word);
        found.ok_or_else(|| {
            let message = format!("there is no phase \"{word}\"");
            let all = PHASES.iter().map(|phase| phase.word);
            unknown_word(span, &message, word, all, "phases of files")
        })
    };
    let chosen = words.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    in_order(&chosen, span)?;
    Ok(chosen)
}

/// Refuses what would find nothing to do, or do it twice.
fn in_order(chosen: &[&Phase], span: &Span) -> Result<(), Refusal> {
    let refuse = |message: String, help: &str| Err(Refusal::at(span, message, help));
    let among = |word: &str| chosen.iter().any(|phase| phase.word == word);
    for (number, phase) in chosen.iter().enumerate() {
        let word = phase.word;
        if chosen[..number].iter().any(|before| before.word == word) {
            return refuse(format!("{word} stands twice in phases"), "leave one out");
        }
        // Ranks say what must exist: directories before files, files before anything done to them.
        if let Some(before) = chosen[..number].iter().find(|it| it.rank > phase.rank) {
            let message = format!("{word} cannot follow {}", before.word);
            return refuse(
                message,
                "the order is: mkdir, create, any others, unlink, rmdir",
            );
        }
    }
    if !among("create") {
        return refuse(
            "phases without create find no files".to_owned(),
            "add \"create\"",
        );
    }
    if among("rmdir") && !among("unlink") {
        let message = "rmdir finds directories that are not empty".to_owned();
        return refuse(message, "add \"unlink\" before it");
    }
    Ok(())
}

/// Reads where files are renamed to.
fn rename_to(settings: &Settings, chosen: &[&Phase]) -> Result<RenameTo, Refusal> {
    if settings.given("rename-to") && !chosen.iter().any(|phase| phase.op == Op::Rename) {
        return Err(settings.refuse(
            "rename-to",
            "rename-to says where files are renamed to, and no phase renames them",
            "add \"rename\" to phases, or leave it out",
        ));
    }
    settings.choice(RENAME_TO)
}

#[derive(Debug)]
struct Files {
    phases: Vec<&'static Phase>,
    order: VisitOrder,
    rename_to: RenameTo,
    count: u64,
    directories: u32,
    size_min: u64,
    size_max: u64,
    threads: u32,
    fsync: bool,
    at_end: AtEnd,
    content: Content,
    /// Set if all processes of all clients make their files in the same directories.
    shared: bool,
    visits: Visits,
}

impl Files {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let count = settings.count("count")?;
        // More files take hours to make, and most file systems run out of inodes first.
        if count == 0 || count > 100_000_000 {
            return Err(settings.refuse("count", "count must be between 1 and 100 million", ""));
        }
        let size_min = settings.bytes("size-min")?;
        let mut size_max = settings.bytes("size-max")?;
        if !settings.given("size-max") {
            // A smallest file above the usual largest one makes all files equal.
            size_max = size_max.max(size_min);
        }
        if size_max < size_min {
            return Err(settings.refuse("size-max", "size-max is below size-min", "swap them"));
        }
        let phases = phases(settings)?;
        let rename_to = rename_to(settings, &phases)?;
        Ok(Self {
            order: settings.choice(ORDER)?,
            rename_to,
            count,
            directories: settings.count_within("directories", 1..=DIRECTORIES_MAX)?,
            size_min,
            size_max,
            threads: at_least_one(settings, "threads")?,
            fsync: settings.flag("fsync")?,
            at_end: at_end(settings)?,
            content: content(settings)?,
            shared: shared(settings, &phases)?,
            visits: settings.choice(VISITS)?,
            phases,
        })
    }

    /// The files a process makes.
    fn set(&self, place: &Place<'_>) -> FileSet {
        self.set_of(place, Visits::Own)
    }

    /// The files of whom a process visits.
    fn set_of(&self, place: &Place<'_>, visits: Visits) -> FileSet {
        // Names follow from the seed: those of two processes never meet in one directory.
        let (own, seed) = match place.seat {
            None => (place.directory.to_owned(), place.seed),
            Some(seat) => {
                let rank = seat.visited(visits);
                (seat.directory_of(rank), seat.seed_of(rank))
            }
        };
        let root = match place.seat.filter(|_| self.shared) {
            Some(seat) => seat.shared.join(SHARED),
            None => own,
        };
        FileSet {
            root,
            directories: self.directories,
            files: self.count,
            size_min: self.size_min,
            size_max: self.size_max,
            threads: self.threads,
            fsync_each: self.fsync,
            content: self.content,
            names: CurrentNames {
                rename_to: self.rename_to,
                ..CurrentNames::default()
            },
            seed,
        }
    }

    fn has(&self, op: Op) -> bool {
        self.phases.iter().any(|phase| phase.op == op)
    }

    /// Mean of a log-uniform distribution: (max - min) / ln(max / min).
    fn bytes_expected(&self) -> u64 {
        let (low, high) = (self.size_min.max(1) as f64, self.size_max.max(1) as f64);
        let mean = if self.size_max > self.size_min {
            (high - low) / ln(high / low)
        } else {
            self.size_max as f64
        };
        (mean * self.count as f64) as u64
    }
}

/// Name of the directory that all processes share.
const SHARED: &str = "shared";

/// Reads whether all processes share the directories.
fn shared(settings: &Settings, chosen: &[&Phase]) -> Result<bool, Refusal> {
    let shared = settings.choice(TREE)?;
    let counts = chosen
        .iter()
        .find(|phase| matches!(phase.op, Op::Mkdir | Op::Rmdir | Op::Readdir));
    match counts.filter(|_| shared) {
        None => Ok(shared),
        // Each process would find what others have made, or try to make it again.
        Some(phase) => Err(settings.refuse(
            "tree",
            format!(
                "{} needs directories that no other process changes",
                phase.word
            ),
            format!("take {} out of phases, or write tree = \"own\"", phase.word),
        )),
    }
}

impl Workload for Files {
    fn summary(&self) -> String {
        format!(
            "{} {} of {} to {} in {}, {}{}{}{}",
            listed(&self.phases()),
            unit::counted(self.count as usize, "file"),
            unit::bytes(self.size_min),
            unit::bytes(self.size_max),
            match self.directories {
                1 => "1 directory".to_owned(),
                several => format!("{several} directories"),
            },
            unit::counted(self.threads as usize, "thread"),
            match self.order {
                VisitOrder::Random => "",
                VisitOrder::Creation => ", in order of creation",
            },
            if self.fsync { ", fsync after each" } else { "" },
            durable(self.at_end)
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let mut heads = vec![metric::elapsed_head()];
        for phase in &self.phases {
            heads.push(MetricHead::new(phase.word, "op/s", Better::Higher));
            heads.push(metric::named_latency_head(phase.latency, Latency::P99));
        }
        heads
    }

    fn draws_sizes(&self) -> bool {
        self.size_max > self.size_min
    }

    fn cost(&self) -> Cost {
        let bytes = self.bytes_expected();
        // A file takes at least one block of 4 KiB and an inode.
        let blocks = self.count.saturating_mul(4096);
        let disk = bytes.saturating_add(blocks).max(1 << 20);
        Cost {
            prepare_bytes: 0,
            // Written by `create`, and once more read.
            measured_bytes: Some(if self.phases.iter().any(|phase| phase.word == "read") {
                bytes.saturating_mul(2)
            } else {
                bytes
            }),
            disk_bytes: disk,
            measured_ns: None,
            files: self.count,
            working_set_bytes: bytes,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        self.phases.iter().map(|phase| phase.word).collect()
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        // The phase makes the directories itself, inside the clock.
        if self.has(Op::Mkdir) {
            return Ok(());
        }
        let set = self.set(place);
        if self.shared && place.seat.is_some() {
            // Another process may have made it first.
            std::fs::create_dir_all(&set.root).map_err(trouble)?;
        }
        set.prepare().map_err(trouble)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let (before, phase) = (&self.phases[..phase], self.phases[phase]);
        let making = matches!(phase.op, Op::Mkdir | Op::Create);
        let mut set = match making {
            true => self.set(place),
            false => self.set_of(place, self.visits),
        };
        // A file has to be looked for under the name that an earlier phase gave it.
        set.names.renamed = before.iter().any(|phase| phase.op == Op::Rename);
        set.names.linked = before.iter().any(|phase| phase.op == Op::Link);
        // The order is one in which files are found again; made they are one after the other.
        let pass = Pass {
            order: if making {
                VisitOrder::Creation
            } else {
                self.order
            },
            at_end: if phase.changes {
                self.at_end
            } else {
                AtEnd::Return
            },
            slice_ns: SLICE_NS,
            control: place.control,
        };
        (phase.run)(&set, pass).map_err(trouble)
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        let whole: u64 = outcomes.iter().map(|outcome| outcome.elapsed_ns).sum();
        // The time of all phases is none if one of them is missing: it would look like a faster run.
        let mut values = vec![(outcomes.len() == self.phases.len()).then_some(whole as f64 / 1e9)];
        for (index, phase) in self.phases.iter().enumerate() {
            let outcome = outcomes.get(index);
            let latency = |outcome| metric::latency(outcome, phase.op, Latency::P99);
            values.push(outcome.and_then(metric::operations));
            values.push(outcome.and_then(latency));
        }
        values
    }
}
