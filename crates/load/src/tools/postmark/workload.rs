//! PostMark: the small files of a mail or news server, one after the other.
//!
//! Exactly the work of PostMark 1.51 with the same settings, by default with its settings too:
//! files are made, transactions read or append and then make or delete a file, what is left is
//! deleted. All three parts are one phase, without a pause between them; nothing is synced unless
//! `sync-at-end` asks for it, so where the files fit in memory it measures memory and the file
//! system's code. Times are real ones, where PostMark knows whole seconds.

use stackrace_engine::files::AtEnd;
use stackrace_engine::postmark::{
    FILES_MAX, PostMarkLocation, PostMarkPlan, PostMarkProgress, SIZE_MAX, STRETCHES,
};
use stackrace_engine::{Op, PhaseOutcome};

use super::report::{self as postmark, Tally};
use crate::workload::metric::{self, Latency};
use crate::workload::{
    Cost, OverShell, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble,
};
use stackrace_base::event::MetricHead;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "postmark",
    summary: "small files of a mail server: made, read, appended to, deleted",
    source: "PostMark 1.51 (J. Katcher, Network Appliance TR3022), the same draws and system calls",
    settings: &[
        SettingDoc::count("number", "500", "Files in the beginning."),
        SettingDoc::count(
            "transactions",
            "500",
            "Transactions, two operations each: read or append, then create or delete.",
        ),
        SettingDoc::bytes("size-low", "500 B", "Smallest file."),
        SettingDoc::bytes(
            "size-high",
            "10000 B",
            "Files are made smaller than this, and appended to up to it.",
        ),
        SettingDoc::count(
            "subdirectories",
            "0",
            "Directories the files are spread over; 0 and 1: none.",
        ),
        SettingDoc::bytes("read-block", "512 B", "Bytes of one read."),
        SettingDoc::bytes("write-block", "512 B", "Bytes of one write."),
        SettingDoc::flag(
            "buffering",
            "true",
            "Through a buffer as the C library's (at most 8 KiB), instead of a system call per block.",
        ),
        SettingDoc::count(
            "bias-read",
            "5",
            "Of ten transactions so many read, the others append.",
        ),
        SettingDoc::count(
            "bias-create",
            "5",
            "Of ten transactions so many create, the others delete.",
        ),
        SettingDoc::flag(
            "read-append",
            "true",
            "Whether transactions read or append at all (false: PostMark's bias of -1).",
        ),
        SettingDoc::flag(
            "create-delete",
            "true",
            "Whether transactions create or delete at all (false: PostMark's bias of -1).",
        ),
        SettingDoc::count(
            "seed",
            "",
            "PostMark's seed, 42 unless changed there; absent: another one every round.",
        ),
        SettingDoc::flag(
            "sync-at-end",
            "false",
            "Flush the file system after creation, transactions and deletion, inside their times (PostMark never does).",
        ),
    ],
    example: "postmark = { number = 1000, transactions = 5000 }",
    over_shell: OverShell::Nearest("command = { run = \"postmark …\", parse = \"postmark\" }"),
    parse: |settings| Ok(Box::new(Mail::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

/// The operations of a run.
const OPS: [Op; 4] = [Op::Create, Op::Open, Op::Append, Op::Unlink];

#[derive(Debug)]
struct Mail {
    /// The plan without a location; the seed is the trial's if none is given.
    plan: PostMarkPlan,
    seed: Option<u32>,
}

impl Mail {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let count = |name: &str, limits| settings.count_within(name, limits);
        let bytes = |name: &str| settings.within(name, settings.bytes(name)?, 1..=SIZE_MAX);
        let size_low = bytes("size-low")?;
        let mut size_high = bytes("size-high")?;
        if !settings.given("size-high") {
            // As in PostMark, a smallest file above the usual largest one makes all files equal.
            size_high = size_high.max(size_low);
        }
        if size_high < size_low {
            return Err(settings.refuse("size-high", "size-high is below size-low", "swap them"));
        }
        let bias = |name: &str, whether: &str| {
            let bias = count(name, 0..=10)?;
            let done = settings.flag(whether)?;
            if !done && settings.given(name) {
                let message = format!("{name} has no effect where {whether} is false");
                return Err(settings.refuse(name, message, "leave it out"));
            }
            Ok(done.then_some(bias))
        };
        Ok(Self {
            plan: PostMarkPlan {
                locations: Vec::new(),
                subdirectories: count("subdirectories", 0..=1_000_000)?,
                files: count("number", 1..=FILES_MAX)?,
                transactions: count("transactions", 1..=i32::MAX as u32)?,
                size_low,
                size_high,
                read_block: bytes("read-block")?,
                write_block: bytes("write-block")?,
                buffered: settings.flag("buffering")?,
                bias_read: bias("bias-read", "read-append")?,
                bias_create: bias("bias-create", "create-delete")?,
                seed: 0,
                at_end: match settings.flag("sync-at-end")? {
                    true => AtEnd::Durable,
                    false => AtEnd::Return,
                },
            },
            seed: match settings.given("seed") {
                true => Some(count("seed", 1..=i32::MAX as u32)?),
                false => None,
            },
        })
    }

    /// Bytes of a file as it is made, on average.
    fn mean_bytes(&self) -> u64 {
        u64::midpoint(self.plan.size_low.into(), self.plan.size_high.into())
    }
}

impl Workload for Mail {
    fn summary(&self) -> String {
        let plan = &self.plan;
        format!(
            "PostMark: {} transactions on {} files of {} to {}{}, blocks of {} read and {} written{}{}{}",
            unit::count(plan.transactions.into()),
            unit::count(plan.files.into()),
            unit::bytes(plan.size_low.into()),
            unit::bytes(plan.size_high.into()),
            match plan.subdirectories {
                0 | 1 => String::new(),
                count => format!(" in {} subdirectories", unit::count(count.into())),
            },
            unit::bytes(plan.read_block.into()),
            unit::bytes(plan.write_block.into()),
            if plan.buffered { ", buffered" } else { "" },
            match self.seed {
                Some(seed) => format!(", seed {seed}"),
                None => String::new(),
            },
            match plan.at_end {
                AtEnd::Durable => ", each part durable before it ends",
                AtEnd::Return => "",
            }
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let mut heads = postmark::metrics();
        heads.extend(OPS.map(|op| metric::latency_head(op, Latency::P99)));
        heads
    }

    fn draws_sizes(&self) -> bool {
        // Without a seed of its own, its transactions and sizes follow from that of the run.
        self.seed.is_none()
    }

    fn cost(&self) -> Cost {
        let plan = &self.plan;
        let (files, transactions) = (u64::from(plan.files), u64::from(plan.transactions));
        let of_ten = |bias: Option<u32>| transactions * u64::from(bias.unwrap_or(0)) / 10;
        let (reads, creations) = (of_ten(plan.bias_read), of_ten(plan.bias_create));
        let appends = plan.bias_read.map_or(0, |_| transactions - reads);
        let mean = self.mean_bytes();
        // A file lacks half of the range on average, and an append adds half of what is lacking.
        let appended = u64::from(plan.size_high - plan.size_low) / 4;
        // PostMark has room for twice the files of the beginning, and then creates no more.
        let at_once = files + creations.min(files);
        Cost {
            prepare_bytes: 0,
            measured_bytes: Some((files + creations + reads) * mean + appends * appended),
            // At worst every file has grown to its limit, in whole blocks.
            disk_bytes: (at_once * u64::from(plan.size_high).next_multiple_of(4096)).max(1 << 20),
            measured_ns: None,
            files: at_once,
            working_set_bytes: files * mean,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["postmark"]
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let plan = PostMarkPlan {
            locations: vec![PostMarkLocation {
                path: place.directory.to_owned(),
                weight: 1,
            }],
            // The lower half: PostMark's seed has 32 bits.
            seed: self.seed.unwrap_or(place.seed as u32),
            ..self.plan.clone()
        };
        let mut ignore = |_: PostMarkProgress| ();
        let ran = plan
            .run(SLICE_NS, place.control, &mut ignore)
            .map_err(trouble)?;
        if ran.out_of_files {
            let why = "there was no file left before the last transaction: \
                       give it more files, fewer transactions or a greater bias-create";
            return Err(trouble(why));
        }
        Ok(ran.outcome)
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        // With fewer it was stopped in the middle: rates of a part would pass for those of the
        // whole.
        let whole = |outcome: &&PhaseOutcome| outcome.stretches.len() == STRETCHES.len();
        let Some(outcome) = outcomes.first().filter(whole) else {
            return vec![None; self.metrics().len()];
        };
        let tally = tally(outcome, self.plan.transactions.into());
        let figures = postmark::values(&tally.report()).into_iter();
        let values = figures.map(|figure| figure.map(|figure| figure.value));
        let mut values: Vec<Option<f64>> = values.collect();
        values.extend(OPS.map(|op| metric::latency(outcome, op, Latency::P99)));
        values
    }
}

/// Makes PostMark's report of a run that went to its end; when it began, and the sums in single
/// precision, only the caller can know.
pub(super) fn tally(outcome: &PhaseOutcome, transactions: u64) -> Tally {
    let elapsed = |at: usize| outcome.stretches.get(at).map_or(0, |it| it.elapsed_ns);
    let count = |at: usize, op: Op| {
        let counts = outcome.stretches.get(at).map(|it| it.counts.iter());
        counts
            .into_iter()
            .flatten()
            .filter(|(kind, _)| *kind == op)
            .map(|(_, count)| count)
            .sum()
    };
    let bytes = |op: Op| metric::of(outcome, op).map_or(0, |entry| entry.bytes);
    // Reading a file is one operation with its opening; so are creating and writing one.
    let (bytes_read, bytes_written) = (bytes(Op::Open), bytes(Op::Create) + bytes(Op::Append));
    Tally {
        began_ns: 0,
        // In the order of `STRETCHES`: creation, transactions, deletion.
        creation_ns: elapsed(0),
        transactions_ns: elapsed(1),
        deletion_ns: elapsed(2),
        transactions,
        created_alone: count(0, Op::Create),
        created_mixed: count(1, Op::Create),
        read: count(1, Op::Open),
        appended: count(1, Op::Append),
        deleted_mixed: count(1, Op::Unlink),
        deleted_alone: count(2, Op::Unlink),
        bytes_read,
        bytes_written,
        read_as_float: bytes_read as f32,
        written_as_float: bytes_written as f32,
    }
}
