//! File I/O as sysbench's: six modes over several files, fsync at a cadence.
//!
//! With `version` these are exactly the requests of that sysbench ([`exact`]). Without, it shares
//! sysbench's vocabulary (modes, 1.5 reads a write, fsync after every 100 requests), not
//! its sequence. Data is random, not zeros: zeros compress to nothing on half of the file
//! systems this is meant to compare. With `fsync-every = 1` the fsync counts into the latency of
//! the write before it, as `--file-fsync-all` does.

use stackrace_engine::spec::{AccessPattern, IoEngine};
use stackrace_engine::sysbench::SysbenchMode;
use stackrace_engine::{Op, PhaseOutcome};

use super::exact::{self, Exact};
use super::report::MODE;
use crate::workload::block::words::{self as word, block_size, files, fsync_every, time};
use crate::workload::block::{BlockIo, Frame};
use crate::workload::metric::{Figure, Latency};
use crate::workload::{Cost, OverShell, Place, Workload, WorkloadError, WorkloadKind};
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "fileio",
    summary: "sysbench file I/O: its exact requests, or the same modes; six modes, periodic fsync",
    source: "the modes and defaults of sysbench 1.0.20 fileio",
    settings: &[
        MODE.doc.required(),
        exact::VERSION.doc,
        word::SIZE,
        files("8", "Number of files; with version 128."),
        block_size("16 KiB"),
        word::THREADS,
        word::RATE,
        word::ARRIVALS.doc,
        word::THINK_TIME,
        fsync_every("100"),
        exact::FSYNC_EACH,
        exact::IO.doc,
        exact::BACKLOG,
        exact::MERGE,
        word::FSYNC_AT_END,
        word::DATA_ONLY,
        word::SYNC.doc,
        word::PREALLOCATE,
        SettingDoc::number("ratio", "1.5", "Reads for each write in rndrw."),
        word::DIRECT,
        time("10 s", "Stop after this long."),
        word::OPERATIONS,
        word::VERIFY,
        word::CONTENT.doc,
        word::COMPRESS_RATIO,
        word::DUPLICATES,
        word::ENGINE.doc,
    ],
    example: "fileio = { mode = \"rndrw\", size = \"1 GiB\", fsync-every = 100 }",
    mergeable: true,
    level: true,
    over_shell: OverShell::Nearest(
        "command = { run = \"sysbench fileio …\", parse = \"sysbench\" }",
    ),
    parse,
    ..WorkloadKind::PLAIN
};

fn parse(settings: &Settings) -> Result<Box<dyn Workload>, Refusal> {
    let mode = settings.choice(MODE)?;
    if settings.given("version") {
        return Ok(Box::new(Exact::parse(settings, mode)?));
    }
    if let Some(name) = exact::WITH.into_iter().find(|name| settings.given(name)) {
        return Err(settings.refuse(
            name,
            format!("{name} belongs to the requests of sysbench itself"),
            "write version = \"1.0\" as well",
        ));
    }
    Ok(Box::new(FileIo::parse(settings, mode)?))
}

/// Index of the metric an open loop is asked for: the 95th percentile of the first operation.
const PRIMARY_OPEN: usize = 4;

#[derive(Debug)]
struct FileIo {
    mode: SysbenchMode,
    io: BlockIo,
}

impl FileIo {
    fn parse(settings: &Settings, mode: SysbenchMode) -> Result<Self, Refusal> {
        let ratio = settings.number("ratio")?;
        let read_share = match mode {
            SysbenchMode::SeqRead | SysbenchMode::RandomRead => 1.0,
            // Reads for each write, as a share: 1.5 are 60 %.
            SysbenchMode::RandomBoth => ratio / (ratio + 1.0),
            SysbenchMode::SeqWrite | SysbenchMode::SeqRewrite | SysbenchMode::RandomWrite => 0.0,
        };
        let frame = Frame {
            access: if mode.sequential() {
                AccessPattern::Sequential
            } else {
                AccessPattern::OncePerPass
            },
            read_share,
            new_files: mode == SysbenchMode::SeqWrite,
        };
        let mut io = BlockIo::parse(settings, &frame)?;
        // fsync-every = 1 is sysbench's --file-fsync-all, whose fsync counts into the write's
        // latency.
        let each = io
            .durability
            .fsync_every
            .is_some_and(|every| every.get() == 1);
        io.durability.fsync_in_write = each;
        if io.engine == IoEngine::Uring && each && io.read_share < 1.0 {
            return Err(settings.refuse(
                "engine",
                "io_uring cannot count an fsync into the write before it",
                "write engine = \"sync\" or \"auto\", or another fsync-every",
            ));
        }
        Ok(Self { mode, io })
    }
}

impl Workload for FileIo {
    fn summary(&self) -> String {
        format!(
            "sysbench-style {} over {} files of together {}, blocks of {}, {}{}{}",
            MODE.word(self.mode),
            unit::count(self.io.files.into()),
            unit::bytes(self.io.size),
            unit::weights(&self.io.block_sizes),
            unit::counted(self.io.threads as usize, "thread"),
            self.io.words(),
            self.io.at_most()
        )
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = vec![Figure::operations(), Figure::throughput()];
        for op in self.mode.ops() {
            figures.extend(
                [Latency::Min, Latency::Mean, Latency::P95]
                    .map(|which| Figure::latency(*op, which)),
            );
        }
        if self.io.read_share < 1.0 {
            figures.push(Figure::rate("fsyncs", &[Op::Fsync]));
        }
        self.io.figures(figures, PRIMARY_OPEN, self.mode.ops())
    }

    fn cost(&self) -> Cost {
        self.io.cost(self.mode != SysbenchMode::SeqWrite)
    }

    fn phases(&self) -> Vec<&'static str> {
        self.io.phases(MODE.word(self.mode))
    }

    fn offered_per_s(&self, phase: usize) -> Option<f64> {
        // The second phase, where there is one, reads everything back as fast as it can.
        self.io.offered_per_s().filter(|_| phase == 0)
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        match self.mode == SysbenchMode::SeqWrite {
            // Making its files is what it measures.
            true => Ok(()),
            false => self.io.lay_out(place),
        }
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.io.measure(phase, place)
    }
}
