//! What a replay could not be like, found while its steps are made.

use stackrace_base::unit;
use stackrace_trace::trace::Operation;

use super::Compiling;

/// Largest mapping whose writes may be left out: SQLite's index of its log is one of 32 KiB.
const WRITTEN_MAX: u64 = 1 << 20;
/// Flags of `pwritev2` that are not passed on: `RWF_DSYNC`, `RWF_SYNC`, `RWF_APPEND` (linux/fs.h).
const WRITES_ELSE: u64 = 2 | 4 | 16;
/// Longest recording that is replayed.
const LASTS_MAX_NS: u64 = 24 * 3_600_000_000_000;

impl Compiling<'_> {
    /// Refuses what would take days, or more memory than any application makes of it.
    pub(super) fn check_size(&mut self) {
        if self.recorded_ns > LASTS_MAX_NS {
            let lasts = unit::time_ns(self.recorded_ns as f64);
            self.refuse(format!("it lasts {lasts}; at most 24 h are replayed"));
        }
        if self.order.is_full() {
            self.refuse(
                "its calls wait for each other more often than a replay can keep".to_owned(),
            );
        }
    }

    /// The first reason counts.
    pub(super) fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why);
    }

    /// Refuses writes whose flags make them another thing: each durable, or at the end of the file.
    pub(super) fn check_flags(&mut self, operation: &Operation) {
        // Of `write` only `pwritev2` without an offset has flags.
        if operation.flags & WRITES_ELSE != 0 {
            self.refuse(
                "the application writes with RWF_DSYNC, RWF_SYNC or RWF_APPEND, which is not replayed"
                    .to_owned(),
            );
        }
    }

    /// Refuses mappings whose writes are not seen.
    pub(super) fn check_mapping(&mut self, operation: &Operation) {
        if !operation.maps_for_writing() || operation.length <= WRITTEN_MAX {
            return;
        }
        self.refused.get_or_insert_with(|| {
            format!(
                "the application writes through a mapping of {}: such writes are not recorded",
                unit::bytes(operation.length)
            )
        });
    }
}
