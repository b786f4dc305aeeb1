//! bonnie++ 1.03 and 2.00: data as characters, blocks and seeks, then many files.
//!
//! All phases follow each other as in the original: nothing is settled in between, so what a phase
//! left in memory the next one may find there. That is why data are twice the memory by default.
//! Only the beginning is cold. `docs/workloads/bonnie.md` says exactly what is done, and what is not
//! as in the original.

use stackrace_base::printed::PrintedFigure;
use stackrace_engine::bonnie::{
    BonniePlan, BonnieVersion, CHARACTERS, CHUNK, FILE_BYTES, FileKind, Phase,
};
use stackrace_engine::spec::Content;
use stackrace_engine::{Op, PhaseOutcome};

use super::report::{self as classic, BonnieColumn, BonnieFigure, BonnieReport, Cell};
use crate::workload::block::at_least_one;
use crate::workload::{
    Cost, OverShell, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble,
};
use stackrace_base::event::MetricHead;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;

/// Smallest and largest chunk, bytes.
pub(super) const CHUNKS: std::ops::RangeInclusive<u64> = 256..=1 << 20;
/// Most files of [`FILE_BYTES`] that 1.03 splits its data into.
pub(super) const FILES_MAX: u64 = 1000;
/// Most directories: their names have five digits.
pub(super) const DIRECTORIES_MAX: u32 = 99_999;

const VERSION: ChoiceDoc<BonnieVersion> = choice!(
    "version",
    ["2.00" => BonnieVersion::V2_00, "1.03" => BonnieVersion::V1_03],
    "2.00",
    "Which benchmark; figures of one say nothing about the other.",
);
/// `None` for files.
const LINKS: ChoiceDoc<Option<FileKind>> = choice!(
    "links",
    [
        "none" => None,
        "hard" => Some(FileKind::HardLinks),
        "symbolic" => Some(FileKind::SymbolicLinks),
    ],
    "none",
    "Make links to the first file instead of files.",
);
const CONTENT: ChoiceDoc<Content> = choice!(
    "content",
    ["original" => Content::Zero, "random" => Content::Random],
    "original",
    "What is written: nearly all zero as in the original, which compresses to nothing, or random bytes.",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "bonnie++",
    summary: "bonnie++ 1.03 or 2.00: characters, blocks, rewriting, seeks, many files",
    source: "bonnie++ 1.03e and 2.00a; see docs/workloads/bonnie.md",
    settings: &[
        VERSION.doc,
        SettingDoc::bytes("size", "", "Data written and read; 0: none.")
            .computed("twice the memory"),
        SettingDoc::bytes("chunk", "8 KiB", "Bytes of one read or write."),
        SettingDoc::count(
            "files",
            "16384",
            "Files created, looked up and removed, twice; 0: none.",
        ),
        SettingDoc::bytes("file-size-min", "0 B", "Smallest file."),
        SettingDoc::bytes(
            "file-size-max",
            "0 B",
            "Largest file (sizes are uniform between).",
        ),
        LINKS.doc,
        SettingDoc::count("directories", "1", "Directories the files are spread over."),
        SettingDoc::count("seekers", "", "Threads that seek.").computed("5 (1.03: 3)"),
        SettingDoc::count("seeks", "8192", "Seeks of all of them."),
        SettingDoc::flag(
            "fast",
            "false",
            "Leave out reading and writing by characters.",
        ),
        SettingDoc::flag(
            "direct",
            "false",
            "Direct I/O where data files are created, and, as in the original, only there.",
        ),
        SettingDoc::flag(
            "fsync",
            "false",
            "fsync each file, changed directory and updating seek (-b).",
        ),
        SettingDoc::time(
            "too-fast",
            "0 s",
            "No rate of a phase shorter than this (the original: 0.5 s).",
        ),
        CONTENT.doc,
    ],
    example: "\"bonnie++\" = { version = \"2.00\", size = \"1 GiB\", files = 4096 }",
    over_shell: OverShell::Nearest("command = { run = \"bonnie++ -d . …\", parse = \"bonnie++\" }"),
    parse: |settings| Ok(Box::new(Classic::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

/// The columns of the report and the phases that fill them.
pub(super) fn phases() -> impl Iterator<Item = (BonnieColumn, Phase)> {
    BonnieColumn::ALL.into_iter().zip(Phase::ALL)
}

/// The columns that a plan fills, in the order in which it does.
pub(super) fn columns(plan: &BonniePlan, fast: bool) -> Vec<(BonnieColumn, Phase)> {
    phases()
        .filter(|(column, _)| match column {
            BonnieColumn::CharacterOutput | BonnieColumn::CharacterInput => plan.bytes > 0 && !fast,
            BonnieColumn::BlockOutput
            | BonnieColumn::Rewrite
            | BonnieColumn::BlockInput
            | BonnieColumn::Seeks => plan.bytes > 0,
            _ => plan.files > 0,
        })
        .collect()
}

/// Makes the cell of a report for one phase.
pub(super) fn cell(plan: &BonniePlan, phase: Phase, outcome: &PhaseOutcome) -> Cell {
    // The column of latencies is of chunks, seeks and files; what closes a phase is in its time
    // only.
    let work = |op: &&stackrace_engine::OpOutcome| !matches!(op.op, Op::Fsync | Op::Rmdir);
    let longest = outcome.ops.iter().filter(work).map(|op| op.latency.max());
    let amount = match phase {
        Phase::WriteCharacters | Phase::ReadCharacters => plan.character_bytes() as f64 / 1024.0,
        Phase::WriteBlocks | Phase::Rewrite | Phase::ReadBlocks => plan.bytes as f64 / 1024.0,
        Phase::Seeks => f64::from(plan.seeks),
        _ => plan.files as f64,
    };
    Cell {
        figure: Some(BonnieFigure::Measured {
            amount,
            elapsed_ns: outcome.elapsed_ns,
            cpu_ns: outcome.cpu_ns(),
        }),
        latency_ns: longest.max().map(|ns| PrintedFigure::exact(ns as f64)),
    }
}

/// Memory of this machine, MiB; 0 if the system does not say.
pub(super) fn memory_mib() -> u64 {
    stackrace_system::memory_bytes() >> 20
}

/// The usual size of the data on a machine with so much memory, MiB: twice that, at least 300 MiB,
/// and a whole number of GiB where that is near above.
pub(super) fn usual_size_mib(memory_mib: u64) -> u64 {
    let size = (2 * memory_mib).max(300);
    if size % 1024 > 512 {
        size.next_multiple_of(1024)
    } else {
        size
    }
}

#[derive(Debug)]
struct Classic {
    /// The plan, without directory and seed.
    plan: BonniePlan,
    fast: bool,
    too_fast_ns: u64,
}

impl Classic {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let version = settings.choice(VERSION)?;
        let plan = BonniePlan {
            directory: std::path::PathBuf::new(),
            name: "bonnie".to_owned(),
            version,
            bytes: match settings.optional_bytes("size")? {
                Some(bytes) => bytes,
                None => usual_size_mib(memory_mib()) << 20,
            },
            chunk: chunk(settings)?,
            characters: CHARACTERS,
            seeks: settings.count_within("seeks", 1..=1_000_000_000)?,
            seekers: match settings.given("seekers") {
                true => at_least_one(settings, "seekers")?,
                false => version.seekers(),
            },
            files: settings.count("files")?,
            made: made(settings)?,
            directories: settings.count_within("directories", 1..=DIRECTORIES_MAX)?,
            file_chunk: CHUNK,
            fsync: settings.flag("fsync")?,
            direct: settings.flag("direct")?,
            content: settings.choice(CONTENT)?,
            seed: 0,
        };
        let whole = Self {
            fast: settings.flag("fast")?,
            too_fast_ns: settings.time_ns("too-fast")?,
            plan,
        };
        whole.check(settings)?;
        Ok(whole)
    }

    /// Refuses what contradicts itself.
    fn check(&self, settings: &Settings) -> Result<(), Refusal> {
        let plan = &self.plan;
        let refuse =
            |name: &str, message: String, help: &str| Err(settings.refuse(name, message, help));
        if plan.bytes == 0 && plan.files == 0 {
            return refuse(
                "size",
                "size and files are both 0".to_owned(),
                "leave one out",
            );
        }
        // The originals write whole chunks only, so a rest would never be written.
        if !plan.bytes.is_multiple_of(plan.chunk as u64) {
            let message = "size is not a multiple of the chunk".to_owned();
            return refuse("size", message, "write a whole number of MiB");
        }
        if plan.version == BonnieVersion::V1_03 && plan.bytes > FILES_MAX * FILE_BYTES {
            let message = "1.03 has at most 1000 files of 1 GiB".to_owned();
            return refuse("size", message, "write at most 1000 GiB");
        }
        if plan.files >= 1 << 31 {
            let message = "there are not enough names for so many files".to_owned();
            return refuse("files", message, "write less than 2147483648");
        }
        let symbolic = plan.made == FileKind::SymbolicLinks;
        if symbolic && plan.directories > 1 {
            let message = "symbolic links into other directories would lead nowhere".to_owned();
            return refuse(
                "directories",
                message,
                "write links = \"hard\", or one directory",
            );
        }
        if plan.direct && !plan.chunk.is_multiple_of(512) {
            let message = format!(
                "direct I/O cannot use chunks of {}",
                unit::bytes(plan.chunk as u64)
            );
            return refuse("chunk", message, "write 512 B or more, or direct = false");
        }
        if plan.direct && plan.version == BonnieVersion::V2_00 && plan.bytes > 0 && !self.fast {
            let message = "2.00 writes characters one by one, which no direct I/O takes".to_owned();
            return refuse("direct", message, "add fast = true");
        }
        Ok(())
    }

    fn phase_list(&self) -> Vec<(BonnieColumn, Phase)> {
        columns(&self.plan, self.fast)
    }

    fn file_bytes(&self) -> u64 {
        match self.plan.made {
            FileKind::Files { min, max } => self.plan.files.saturating_mul(min.midpoint(max)),
            FileKind::HardLinks | FileKind::SymbolicLinks => 0,
        }
    }
}

fn chunk(settings: &Settings) -> Result<usize, Refusal> {
    let chunk = settings.bytes("chunk")?;
    if !CHUNKS.contains(&chunk) || !chunk.is_power_of_two() {
        return Err(settings.refuse(
            "chunk",
            "chunk must be a power of two from 256 B to 1 MiB",
            "write \"8 KiB\"",
        ));
    }
    Ok(chunk as usize)
}

fn made(settings: &Settings) -> Result<FileKind, Refusal> {
    let min = settings.bytes("file-size-min")?;
    let max = settings.bytes("file-size-max")?;
    if min > max {
        return Err(settings.refuse(
            "file-size-min",
            "file-size-min is above file-size-max",
            "swap them",
        ));
    }
    let Some(made) = settings.choice(LINKS)? else {
        return Ok(FileKind::Files { min, max });
    };
    if max > 0 {
        return Err(settings.refuse(
            "links",
            "links have no size",
            "leave out links or file-size-max",
        ));
    }
    Ok(made)
}

impl Workload for Classic {
    fn summary(&self) -> String {
        let plan = &self.plan;
        let mut parts = Vec::new();
        if plan.bytes > 0 {
            parts.push(format!(
                "{} of data in chunks of {}{}, {} seeks of {} threads",
                unit::bytes(plan.bytes),
                unit::bytes(plan.chunk as u64),
                if self.fast { "" } else { " and by characters" },
                unit::count(plan.seeks.into()),
                plan.seekers
            ));
        }
        if plan.files > 0 {
            let what = match plan.made {
                FileKind::Files { max: 0, .. } => "empty files".to_owned(),
                FileKind::Files { min, max } => {
                    format!("files of {} to {}", unit::bytes(min), unit::bytes(max))
                }
                FileKind::HardLinks => "hard links".to_owned(),
                FileKind::SymbolicLinks => "symbolic links".to_owned(),
            };
            let directories = match plan.directories {
                1 => "1 directory".to_owned(),
                several => format!("{} directories", unit::count(several.into())),
            };
            let files = unit::count(plan.files);
            parts.push(format!("{files} {what} in {directories}"));
        }
        format!(
            "bonnie++ {}: {}{}{}",
            match plan.version {
                BonnieVersion::V1_03 => "1.03",
                BonnieVersion::V2_00 => "2.00",
            },
            parts.join("; "),
            if plan.direct {
                ", direct where created"
            } else {
                ""
            },
            if plan.fsync { ", fsync after each" } else { "" },
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let run: Vec<BonnieColumn> = self.phase_list().into_iter().map(|(it, _)| it).collect();
        let columns = classic::in_metric_order().filter(|column| run.contains(column));
        columns.flat_map(classic::heads).collect()
    }

    fn draws_sizes(&self) -> bool {
        matches!(self.plan.made, FileKind::Files { min, max } if self.plan.files > 0 && max > min)
    }

    fn cost(&self) -> Cost {
        let plan = &self.plan;
        let characters = if self.fast { 0 } else { plan.character_bytes() };
        // Blocks are written once, rewritten (read and written), and read; files twice each.
        let data = plan.bytes.saturating_mul(4).saturating_add(2 * characters);
        let files = self.file_bytes();
        // A file takes at least one block of 4 KiB and an inode.
        let on_disk = files.saturating_add(plan.files.saturating_mul(4096));
        Cost {
            prepare_bytes: 0,
            measured_bytes: Some(data.saturating_add(files.saturating_mul(4))),
            disk_bytes: plan.bytes.max(on_disk).max(1 << 20),
            measured_ns: None,
            files: plan.files,
            working_set_bytes: plan.bytes.max(files),
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        let list = self.phase_list().into_iter();
        list.map(|(column, _)| column.name()).collect()
    }

    /// Returns true at the beginning only: the original drops nothing between its phases.
    fn settles(&self, phase: usize) -> bool {
        phase == 0
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let plan = BonniePlan {
            // One seed for all phases: names follow from it, and a phase must find the files of
            // the one before.
            directory: place.directory.to_owned(),
            seed: place.seed,
            ..self.plan.clone()
        };
        let (_, phase) = self.phase_list()[phase];
        plan.run(phase, SLICE_NS, place.control).map_err(trouble)
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        let mut cells = [Cell::default(); 12];
        for ((column, phase), outcome) in self.phase_list().into_iter().zip(outcomes) {
            let mut cell = cell(&self.plan, phase, outcome);
            if outcome.elapsed_ns < self.too_fast_ns {
                cell.figure = Some(BonnieFigure::TooFast);
            }
            cells[column as usize] = cell;
        }
        // Any layout will do: values come from the cells alone.
        let report = BonnieReport::new(classic::BonnieLayout::V2_00, cells);
        let run: Vec<BonnieColumn> = self.phase_list().into_iter().map(|(it, _)| it).collect();
        let columns = classic::in_metric_order().filter(|column| run.contains(column));
        columns
            .flat_map(|column| classic::of_column(&report, column))
            .map(|figure| figure.map(|figure| figure.value))
            .collect()
    }
}
