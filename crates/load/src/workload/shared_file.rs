//! One file that all processes of all clients write, then read, as IOR does.
//!
//! Each process has its own part of the file: one segment, or every so many blocks in turn. Or each
//! has a file of its own. After all have written, each reads its own part again, or what another
//! client wrote: a cache of its own cannot help it then. Alone, a process has all of the file.

use stackrace_engine::spec::{AccessPattern, Content, Durability, FilePart, IoTarget, Spec, Stop};
use stackrace_engine::{Op, PhaseOutcome};

use super::block::words::{COMPRESS_RATIO, CONTENT, DIRECT, FSYNC_AT_END, QUEUE_DEPTH, block_size};
use super::block::{at_least_one, content, size};
use super::kind::{Cost, Place, SLICE_NS, Visits, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::{self, Latency};
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::setting::{ChoiceDoc, OverShell, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "shared-file",
    summary: "one file written, then read, by all processes of all clients",
    source: "the interface of IOR: segments, strided access, reordered tasks",
    settings: &[
        SIZE,
        block_size("1 MiB"),
        LAYOUT.doc,
        VISITS.doc,
        QUEUE_DEPTH,
        DIRECT,
        FSYNC_AT_END,
        CONTENT.doc,
        COMPRESS_RATIO,
    ],
    example: "shared-file = { size = \"64 MiB\", layout = \"strided\", visits = \"next\" }",
    mergeable: true,
    over_shell: OverShell::Nearest("command = { run = \"fio …\", parse = \"fio\" }"),
    parse: |settings| Ok(Box::new(SharedFile::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

const SIZE: SettingDoc = SettingDoc::bytes("size", "", "Bytes of each process.").required();

/// Process whose data are visited.
pub(super) const VISITS: ChoiceDoc<Visits> = choice!(
    "visits",
    ["own" => Visits::Own, "next" => Visits::Next, "shuffled" => Visits::Shuffled],
    "own",
    "With several clients: what each process visits of what was made: its own, that of the next client, or that of one that is drawn.",
);

const LAYOUT: ChoiceDoc<Layout> = choice!(
    "layout",
    ["segments" => Layout::Segments, "strided" => Layout::Strided, "own" => Layout::Own],
    "segments",
    "What belongs to each process: one segment of the file, every n-th block of it, or a file of its own.",
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Segments,
    Strided,
    Own,
}

/// Phases, each with the operation it does.
const PHASES: [(&str, Op); 2] = [("write", Op::Write), ("read", Op::Read)];

#[derive(Debug)]
struct SharedFile {
    bytes: u64,
    block: u32,
    layout: Layout,
    visits: Visits,
    queue_depth: u32,
    direct: bool,
    fsync_at_end: bool,
    content: Content,
}

impl SharedFile {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let bytes = size(settings)?;
        let blocks = settings.bytes("block-size")?;
        let block = u32::try_from(blocks).ok().filter(|block| *block > 0);
        let Some(block) = block.filter(|block| u64::from(*block) <= bytes) else {
            return Err(settings.refuse(
                "block-size",
                format!(
                    "a block of {1} does not fit into {0}",
                    unit::bytes(bytes),
                    unit::bytes(blocks)
                ),
                "write a block size from 1 byte to the size",
            ));
        };
        let direct = settings.flag("direct")?;
        if direct && !block.is_multiple_of(512) {
            return Err(settings.refuse(
                "block-size",
                format!("direct I/O cannot use blocks of {}", unit::bytes(blocks)),
                "write a multiple of 512 B, or direct = false",
            ));
        }
        // Rounded down: a part of a block would belong to two processes.
        let bytes = bytes / u64::from(block) * u64::from(block);
        Ok(Self {
            bytes,
            block,
            layout: settings.choice(LAYOUT)?,
            visits: settings.choice(VISITS)?,
            queue_depth: at_least_one(settings, "queue-depth")?,
            direct,
            fsync_at_end: settings.flag("fsync-at-end")?,
            content: content(settings)?,
        })
    }

    /// A phase as the engine is asked for it.
    fn spec(&self, op: Op, place: &Place<'_>) -> Spec {
        let visits = match op {
            Op::Read => self.visits,
            _ => Visits::Own,
        };
        let seat = place.seat.map(|seat| (seat, seat.visited(visits)));
        let (directory, part) = match (self.layout, seat) {
            (_, None) => (place.directory.to_owned(), None),
            (Layout::Own, Some((seat, rank))) => (seat.directory_of(rank), None),
            (layout, Some((seat, rank))) => {
                let run_bytes = match layout {
                    Layout::Strided => u64::from(self.block),
                    _ => self.bytes,
                };
                let of = seat.of;
                let part = FilePart {
                    rank,
                    of,
                    run_bytes,
                };
                (seat.shared.to_owned(), Some(part))
            }
        };
        let target = IoTarget {
            path: directory.join("shared-file"),
            bytes: self.bytes,
        };
        Spec {
            access: AccessPattern::Sequential,
            read_share: if op == Op::Read { 1.0 } else { 0.0 },
            queue_depth: self.queue_depth,
            direct: self.direct,
            durability: Durability {
                fsync_at_end: self.fsync_at_end && op == Op::Write,
                ..Durability::default()
            },
            content: self.content,
            stop: Stop {
                ops: Some(self.bytes / u64::from(self.block)),
                time_ns: None,
            },
            part,
            seed: place.seed,
            slice_ns: SLICE_NS,
            ..Spec::reads(vec![target], self.block)
        }
    }
}

impl Workload for SharedFile {
    fn summary(&self) -> String {
        let layout = match self.layout {
            Layout::Segments => "a segment of one file",
            Layout::Strided => "every n-th block of one file",
            Layout::Own => "a file of its own",
        };
        let visits = match self.visits {
            Visits::Own => "what it wrote",
            Visits::Next => "what the next client wrote",
            Visits::Shuffled => "what a process that is drawn wrote",
        };
        format!(
            "each process writes {layout}, {} in blocks of {}, then reads {visits}",
            unit::bytes(self.bytes),
            unit::bytes(u64::from(self.block)),
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let heads = PHASES.into_iter().flat_map(|(name, op)| {
            let throughput = MetricHead::new(format!("{name} throughput"), "B/s", Better::Higher);
            [throughput, metric::latency_head(op, Latency::P99)]
        });
        heads.collect()
    }

    fn cost(&self) -> Cost {
        Cost {
            measured_bytes: Some(self.bytes.saturating_mul(2)),
            disk_bytes: self.bytes,
            files: 1,
            working_set_bytes: self.bytes,
            ..Cost::default()
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        PHASES.map(|(name, _)| name).to_vec()
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        // Writing makes the file: that is what is measured first.
        Ok(())
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let spec = self.spec(PHASES[phase].1, place);
        stackrace_engine::run(&spec, place.control).map_err(trouble)
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        let values = PHASES.iter().enumerate().flat_map(|(phase, (_, op))| {
            let outcome = outcomes.get(phase);
            let latency = |outcome| metric::latency(outcome, *op, Latency::P99);
            [
                outcome.and_then(metric::throughput),
                outcome.and_then(latency),
            ]
        });
        values.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use stackrace_engine::Control;

    use super::*;
    use crate::workload::Seat;

    /// Returns what three processes leave in a file, block by block, after checking whether each
    /// can read the others'.
    fn shared(layout: Layout) -> Vec<u8> {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        let workload = SharedFile {
            bytes: 16 << 10,
            block: 4096,
            layout,
            visits: Visits::Next,
            queue_depth: 1,
            direct: false,
            fsync_at_end: true,
            content: Content::Zero,
        };
        let (ledger, control) = (OnceLock::new(), Control::default());
        let place = |rank, own| Place {
            directory: own,
            bare: None,
            existing: None,
            cold: false,
            ledger: &ledger,
            elsewhere: None,
            seat: Some(Seat {
                rank,
                of: 3,
                shared: base.path(),
                seed: 7,
            }),
            seed: u64::from(rank),
            control: &control,
        };
        let own = [0, 1, 2].map(|rank| base.path().join(format!("client-{rank}")));
        own.iter().for_each(|own| std::fs::create_dir(own).unwrap());
        for phase in 0..2 {
            for (rank, own) in (0..).zip(&own) {
                let outcome = workload.measure(phase, &place(rank, own)).unwrap();
                let error = &outcome.error;
                assert!(error.is_none() && outcome.short == 0, "{error:?}");
            }
        }
        std::fs::read(base.path().join("shared-file")).unwrap_or_default()
    }

    #[test]
    fn all_parts_of_the_shared_file_are_written_and_read() {
        assert_eq!(shared(Layout::Segments).len(), 48 << 10);
        assert_eq!(shared(Layout::Strided).len(), 48 << 10);
        assert!(shared(Layout::Own).is_empty());
    }

    #[test]
    fn every_part_is_visited_once_whoever_visits_it() {
        let seat = |rank| Seat {
            rank,
            of: 7,
            shared: std::path::Path::new("/s"),
            seed: 3,
        };
        for visits in [Visits::Own, Visits::Next, Visits::Shuffled] {
            let mut visited: Vec<u32> = (0..7).map(|rank| seat(rank).visited(visits)).collect();
            visited.sort_unstable();
            assert_eq!(visited, [0, 1, 2, 3, 4, 5, 6], "{visits:?}");
        }
        assert_eq!(seat(6).visited(Visits::Next), 0);
    }
}
