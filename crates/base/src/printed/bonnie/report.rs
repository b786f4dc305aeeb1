//! What bonnie++ reports: 1.03 (text, CSV of 27 columns), 1.96 and 1.97 (48), 2.00 (1.98, 50).
//!
//! Numbers are kept as the tool knows them: KiB/s, operations per second, whole percents of a
//! processor. `+++++` is not zero: the phase took less than half a second, which the originals do
//! not trust their clock for.
//!
//! Bugs of 2.00 that our output repeats, because readers of format 1.98 know the columns by
//! them: the CSV header has 48 names for 50 columns, the number of directories stands in the column
//! of the file chunk's size, which itself is never printed. Not repeated: the text shows the right
//! rates of files (the original prints what happens to lie in a register), and the chunk's size is
//! in its column (the original leaves it empty).

use crate::event::{Better, MetricHead};
use crate::printed::PrintedFigure;

/// Bytes of a chunk unless a report says otherwise.
pub const CHUNK: u64 = 8192;
/// Seeks unless a report says otherwise.
pub const SEEKS: u32 = 8192;
/// Phases shorter than this are shown as `+++++`, ns.
pub const TOO_FAST_NS: u64 = 500_000_000;
/// Files are counted in units of this many.
pub const FILES_UNIT: u64 = 1024;

/// Layout of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BonnieLayout {
    /// 1.03: no latencies.
    V1_03,
    /// 1.96.
    V1_96,
    /// 1.97.
    V1_97,
    /// 2.00, whose CSV calls itself 1.98.
    V2_00,
}

/// Subject of one pair of columns, in the order of the originals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BonnieColumn {
    /// Output, a character at a time.
    CharacterOutput,
    /// Output, a chunk at a time.
    BlockOutput,
    /// Read, change, write back.
    Rewrite,
    /// Input, a character at a time.
    CharacterInput,
    /// Input, a chunk at a time.
    BlockInput,
    /// Random seeks.
    Seeks,
    /// Create, names in order.
    SequentialCreate,
    /// Look up and read, in the order of the directory.
    SequentialStat,
    /// Remove, in the order of the directory.
    SequentialDelete,
    /// Create, names at random.
    RandomCreate,
    /// Look up and read, at random.
    RandomStat,
    /// Remove, at random.
    RandomDelete,
}

impl BonnieColumn {
    /// Every column, in the order of the originals.
    pub const ALL: [BonnieColumn; 12] = [
        BonnieColumn::CharacterOutput,
        BonnieColumn::BlockOutput,
        BonnieColumn::Rewrite,
        BonnieColumn::CharacterInput,
        BonnieColumn::BlockInput,
        BonnieColumn::Seeks,
        BonnieColumn::SequentialCreate,
        BonnieColumn::SequentialStat,
        BonnieColumn::SequentialDelete,
        BonnieColumn::RandomCreate,
        BonnieColumn::RandomStat,
        BonnieColumn::RandomDelete,
    ];

    /// The name of its metric.
    pub fn name(self) -> &'static str {
        match self {
            BonnieColumn::CharacterOutput => "character output",
            BonnieColumn::BlockOutput => "block output",
            BonnieColumn::Rewrite => "rewrite",
            BonnieColumn::CharacterInput => "character input",
            BonnieColumn::BlockInput => "block input",
            BonnieColumn::Seeks => "seeks",
            BonnieColumn::SequentialCreate => "sequential create",
            BonnieColumn::SequentialStat => "sequential stat",
            BonnieColumn::SequentialDelete => "sequential delete",
            BonnieColumn::RandomCreate => "random create",
            BonnieColumn::RandomStat => "random stat",
            BonnieColumn::RandomDelete => "random delete",
        }
    }

    /// Returns true if its rate is an amount of data per second.
    pub fn moves_data(self) -> bool {
        // Columns are in the order of `ALL`: data before seeks, files behind them.
        (self as usize) < BonnieColumn::Seeks as usize
    }
}

/// Order in which metrics are reported: the first is primary, so characters, which measure the
/// processor, do not stand there.
const METRICS: [BonnieColumn; 12] = [
    BonnieColumn::BlockOutput,
    BonnieColumn::Rewrite,
    BonnieColumn::BlockInput,
    BonnieColumn::Seeks,
    BonnieColumn::CharacterOutput,
    BonnieColumn::CharacterInput,
    BonnieColumn::SequentialCreate,
    BonnieColumn::SequentialStat,
    BonnieColumn::SequentialDelete,
    BonnieColumn::RandomCreate,
    BonnieColumn::RandomStat,
    BonnieColumn::RandomDelete,
];

/// One rate with the processor it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BonnieFigure {
    /// `+++++`: took less than half a second.
    TooFast,
    /// The rate as a report gives it.
    Rate {
        /// KiB/s, or operations per second.
        per_s: PrintedFigure,
        /// Percent of one processor.
        cpu_percent: u32,
    },
    /// The text of 2.00 does not show rates of files, but anything; what it shows, to be shown again.
    Garbage {
        /// The number in the table, which is no rate.
        shown: u64,
        /// Percent of one processor.
        cpu_percent: u32,
    },
    /// The rate as we measured it.
    Measured {
        /// KiB or operations.
        amount: f64,
        /// Duration, ns.
        elapsed_ns: u64,
        /// Processor time, user and system, ns.
        cpu_ns: u64,
    },
}

impl BonnieFigure {
    /// KiB/s, or operations per second; `None` if it is too fast to tell, or not shown.
    pub fn per_s(self) -> Option<PrintedFigure> {
        match self {
            BonnieFigure::TooFast | BonnieFigure::Garbage { .. } => None,
            BonnieFigure::Rate { per_s, .. } => Some(per_s),
            BonnieFigure::Measured {
                amount, elapsed_ns, ..
            } => (elapsed_ns > 0).then(|| PrintedFigure::exact(amount * 1e9 / elapsed_ns as f64)),
        }
    }

    /// Percent of one processor.
    pub fn cpu_percent(self) -> Option<PrintedFigure> {
        match self {
            BonnieFigure::TooFast => None,
            BonnieFigure::Rate { cpu_percent, .. } | BonnieFigure::Garbage { cpu_percent, .. } => {
                Some(PrintedFigure::whole(u64::from(cpu_percent)))
            }
            BonnieFigure::Measured {
                elapsed_ns, cpu_ns, ..
            } => (elapsed_ns > 0)
                .then(|| PrintedFigure::exact(cpu_ns as f64 * 100.0 / elapsed_ns as f64)),
        }
    }
}

/// Content of one column of a report.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cell {
    /// Figure; `None` if the phase was left out.
    pub figure: Option<BonnieFigure>,
    /// The longest operation, ns; `None` for 1.03, or if left out.
    pub latency_ns: Option<PrintedFigure>,
}

/// The data that were written and read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Size, MiB.
    pub size_mib: u64,
    /// Bytes of a chunk; `None` for the usual, or if not said (2.00 never does).
    pub chunk: Option<u64>,
    /// Number of seeks; `None` if it is not said.
    pub seeks: Option<u32>,
    /// Number of seekers; `None` if it is not said.
    pub seekers: Option<u32>,
}

/// The files that were created and removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BonnieFiles {
    /// Number of files, in units of [`FILES_UNIT`].
    pub number: u64,
    /// Files of which sizes, or links.
    pub made: Made,
    /// Over how many directories.
    pub directories: u32,
}

/// Kinds of created files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Files of such sizes, bytes.
    Sizes {
        /// Largest.
        max: u64,
        /// Smallest.
        min: u64,
    },
    /// Made with `link`: all are names of one file.
    HardLinks,
    /// `symlink`.
    SymbolicLinks,
}

/// Report of one run of bonnie++.
#[derive(Debug, Clone, PartialEq)]
pub struct BonnieReport {
    /// The version whose layout it has.
    pub layout: BonnieLayout,
    /// Name and version of the program by its own account: `1.03e`, `2.00a`.
    pub program: String,
    /// The machine's name, as far as it is shown.
    pub name: String,
    /// `-c`: a label only.
    pub concurrency: u32,
    /// The random seed, if it is shown.
    pub seed: Option<String>,
    /// Data part; `None` if this part was left out.
    pub data: Option<Data>,
    /// Files part; `None` if this part was left out.
    pub files: Option<BonnieFiles>,
    /// Cells in the order of [`BonnieColumn::ALL`].
    pub cells: [Cell; 12],
    /// Parts of the text that could not be read, and the reason.
    pub left_out: Option<String>,
}

impl BonnieReport {
    /// A report of these figures and of nothing else.
    pub fn new(layout: BonnieLayout, cells: [Cell; 12]) -> BonnieReport {
        BonnieReport {
            layout,
            program: String::new(),
            name: String::new(),
            concurrency: 1,
            seed: None,
            data: None,
            files: None,
            cells,
            left_out: None,
        }
    }
}

/// Metrics that every report can have: for each column its rate, the processor it took and its
/// longest operation.
pub fn metrics() -> Vec<MetricHead> {
    METRICS.into_iter().flat_map(heads).collect()
}

/// The three metrics of one column.
pub fn heads(column: BonnieColumn) -> [MetricHead; 3] {
    let name = column.name();
    let unit = if column.moves_data() { "B/s" } else { "op/s" };
    [
        MetricHead::new(name, unit, Better::Higher),
        MetricHead::new(format!("{name} CPU"), "%", Better::Lower),
        MetricHead::new(format!("{name} latency max"), "ns", Better::Lower),
    ]
}

/// The value of each of [`metrics`]: B/s, operations per second, percent, ns.
pub fn values(report: &BonnieReport) -> Vec<Option<PrintedFigure>> {
    METRICS
        .into_iter()
        .flat_map(|column| of_column(report, column))
        .collect()
}

/// The values of [`heads`].
pub fn of_column(report: &BonnieReport, column: BonnieColumn) -> [Option<PrintedFigure>; 3] {
    let cell = report.cells[column as usize];
    // Reports count KiB, metrics bytes.
    let scale = if column.moves_data() { 1024.0 } else { 1.0 };
    [
        cell.figure
            .and_then(BonnieFigure::per_s)
            .map(|per_s| per_s * scale),
        cell.figure.and_then(BonnieFigure::cpu_percent),
        cell.latency_ns,
    ]
}

/// Columns in the order of [`metrics`].
pub fn in_metric_order() -> impl Iterator<Item = BonnieColumn> {
    METRICS.into_iter()
}

/// Reasons figures are missing that the report has a place for.
pub fn notes(report: &BonnieReport) -> Vec<String> {
    let which = |wanted: fn(BonnieFigure) -> bool| {
        let columns = BonnieColumn::ALL.into_iter().filter(|column| {
            let figure = report.cells[*column as usize].figure;
            figure.is_some_and(wanted)
        });
        columns
            .map(BonnieColumn::name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let left_out = report.left_out.as_ref();
    let mut notes: Vec<String> = left_out
        .map(|what| format!("left out: {what}"))
        .into_iter()
        .collect();
    let too_fast = which(|figure| figure == BonnieFigure::TooFast);
    if !too_fast.is_empty() {
        notes.push(format!(
            "+++++: under 0.5 s, too short for bonnie++ to tell: {too_fast}"
        ));
    }
    let garbage = which(|figure| matches!(figure, BonnieFigure::Garbage { .. }));
    if !garbage.is_empty() {
        notes.push(format!(
            "the text of bonnie++ 2.00 shows wrong rates of files; the CSV has the right ones: {garbage}"
        ));
    }
    notes
}
