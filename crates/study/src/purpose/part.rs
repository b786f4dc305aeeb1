//! One workload of a purpose, and how it grows with the time that it is given.

use crate::study::StudyTable;
use stackrace_base::setting::{GivenSetting, Settings, Value};
use stackrace_load::programs;
use stackrace_load::workload::block::words::{PASSES, THREADS};

/// Amount of work in one trial of a workload. A workload uses the field it is sized by, and those
/// that last a fixed time use `bytes` for their data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkloadSize {
    /// Bytes of its data.
    pub bytes: u64,
    /// Times it goes over them.
    pub passes: u64,
    /// Number of files it works on.
    pub files: u64,
    /// Seconds, where it ends by the clock.
    pub seconds: f64,
}

impl WorkloadSize {
    /// The least that says anything: smaller data would be gone before the first sample of the
    /// throughput is taken, and fewer files are measured too coarsely.
    pub const LEAST: Self = Self {
        bytes: 16 * MIB,
        passes: 1,
        files: 100,
        seconds: 0.3,
    };
}

/// The quantity that sets how long a trial of a workload takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizedBy {
    /// The bytes of its data.
    Bytes,
    /// The number of its files.
    Files,
    /// The time that it is given.
    Clock,
}

/// One workload of a purpose.
#[derive(Debug, Clone, Copy)]
pub struct PurposeWorkload {
    /// Name of the workload in the study.
    pub name: &'static str,
    /// Weight in the overall figure.
    pub weight: f64,
    /// Its kind and settings, as in a study. `SIZE`, `COUNT` and `TIME` stand for values that fit the time.
    template: &'static str,
    /// The quantity that sets how long a trial of it takes.
    pub sized_by: SizedBy,
    /// Upper limit of `SIZE`, bytes: a fast device would otherwise get files that fill it.
    size_max: u64,
}

/// Words of a template for values that fit the time: bytes, files, and how long it lasts.
const SIZE: &str = "SIZE";
const COUNT: &str = "COUNT";
const TIME: &str = "TIME";

pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// Most times that one trial goes over its data.
const PASSES_MAX: u64 = 1000;

/// Most files of a trial: more fill directories for minutes.
pub(super) const FILES_MAX: u64 = 100_000;

const fn workload(
    name: &'static str,
    weight: f64,
    template: &'static str,
    sized_by: SizedBy,
) -> PurposeWorkload {
    PurposeWorkload {
        name,
        weight,
        template,
        sized_by,
        size_max: match sized_by {
            SizedBy::Bytes => 4 * GIB,
            SizedBy::Files | SizedBy::Clock => GIB,
        },
    }
}

pub(super) const fn stream(
    name: &'static str,
    weight: f64,
    template: &'static str,
) -> PurposeWorkload {
    workload(name, weight, template, SizedBy::Bytes)
}

pub(super) const fn random(
    name: &'static str,
    weight: f64,
    template: &'static str,
) -> PurposeWorkload {
    workload(name, weight, template, SizedBy::Clock)
}

pub(super) const fn small_files(
    name: &'static str,
    weight: f64,
    template: &'static str,
) -> PurposeWorkload {
    workload(name, weight, template, SizedBy::Files)
}

impl PurposeWorkload {
    /// The kind of workload that it is, with its settings at this size.
    pub fn settings(&self, size: &WorkloadSize) -> Settings {
        // Random access lasts a fixed time: it has no end that data could set.
        let time = format!("{:.0} ms", size.seconds * 1000.0);
        let written = StudyTable::read(self.template).unwrap_or_default();
        let mut settings = written.settings(|kind| {
            let kind = programs::kind(kind);
            kind.map_or(&[][..], |kind| kind.settings)
        });
        for setting in &mut settings.settings {
            setting.value = match &setting.value {
                Value::Text(word) if word == SIZE => size.bytes.into(),
                Value::Text(word) if word == COUNT => size.files.into(),
                Value::Text(word) if word == TIME => time.as_str().into(),
                _ => continue,
            };
        }
        // One pass is the default: a study reads better without it.
        if size.passes != 1 {
            let size_at = settings.settings.iter().position(|it| it.name == "size");
            let after = size_at.map_or(0, |at| at + 1);
            let passes = GivenSetting::new(PASSES.name, size.passes);
            settings.settings.insert(after, passes);
        }
        settings
    }

    /// Returns true if it can go over its data more than once.
    fn repeats(&self) -> bool {
        let settings = self.settings(&WorkloadSize::LEAST);
        // What ends by time or by a count goes over its data as often as it can.
        let offered = settings.docs.iter().any(|doc| doc.name == PASSES.name);
        // A file that several threads write cannot be made anew in between.
        let alone = settings.count(THREADS).is_ok_and(|threads| threads == 1);
        self.sized_by == SizedBy::Bytes && offered && alone
    }

    /// The size with `times` as much in it, within what says anything and fits into `room` bytes; what
    /// does not fit is gone over more than once, if it can be.
    pub fn scaled(&self, size: WorkloadSize, times: f64, room: u64) -> WorkloadSize {
        let least = WorkloadSize::LEAST;
        // The least goes before the room: a plan then says that the room is too small.
        let most = self.size_max.min(room).max(least.bytes);
        // A share of a byte does not matter.
        let more = |amount: u64| (amount as f64 * times) as u64;
        let bytes = more(size.bytes.saturating_mul(size.passes));
        let passes = match self.repeats() {
            true => bytes.div_ceil(most).clamp(1, PASSES_MAX),
            false => 1,
        };
        WorkloadSize {
            // Whole MiB: block sizes divide them, so that no block is cut off at the end.
            bytes: (bytes / passes).clamp(least.bytes, most) / MIB * MIB,
            passes,
            // Two digits are enough to size a workload, and easier to read in the printed study.
            files: round_two(more(size.files).clamp(least.files, FILES_MAX)),
            seconds: size.seconds,
        }
    }
}

pub(super) fn round_two(count: u64) -> u64 {
    let mut scale = 1;
    // Rounded down, so that the time allowed is not exceeded.
    while count / scale >= 100 {
        scale *= 10;
    }
    count / scale * scale
}
