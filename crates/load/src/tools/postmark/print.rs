//! PostMark's two reports, byte for byte.

use super::report::{Tally, Version};

/// The whole seconds PostMark divides by: differences of the wall clock's seconds, at least 1.
struct Seconds {
    total: u64,
    creation: u64,
    transactions: u64,
    deletion: u64,
}

impl Seconds {
    fn of(tally: &Tally) -> Seconds {
        let mut at_ns = tally.began_ns;
        let times = [tally.creation_ns, tally.transactions_ns, tally.deletion_ns];
        let marks = times.map(|ns| {
            // PostMark calls time(2) at these moments: a fraction that crosses a second counts as
            // 1, and a whole part within one second as none.
            at_ns = at_ns.saturating_add(ns);
            at_ns / 1_000_000_000
        });
        let began = tally.began_ns / 1_000_000_000;
        Seconds {
            total: (marks[2] - began).max(1),
            creation: (marks[0] - began).max(1),
            transactions: (marks[1] - marks[0]).max(1),
            deletion: (marks[2] - marks[1]).max(1),
        }
    }
}

/// An amount as both reports and `show` put it: bytes only where there is nothing.
fn amount(bytes: f32) -> String {
    // PostMark's limits: exactly 1 MiB is 1024 kilobytes, and the smallest amounts are parts of
    // one.
    if bytes > 1_048_576.0 {
        format!("{:.2} megabytes", bytes / 1_048_576.0)
    } else if bytes == 0.0 {
        "0.000000 bytes".to_owned()
    } else {
        format!("{:.2} kilobytes", bytes / 1024.0)
    }
}

impl Tally {
    /// The verbose report: counts and rates, with words.
    pub(super) fn verbose(&self, version: Version) -> String {
        let seconds = Seconds::of(self);
        let (total, during) = (seconds.total, seconds.transactions);
        let deleted = match version {
            Version::V1_51 => self.created(),
            Version::V1_53 => self.deleted(),
        };
        let line = |indent: &str, count: u64, what: &str, seconds: u64| {
            format!("{indent}{count} {what} ({} per second)\n", count / seconds)
        };
        let part = |name: &str, count: u64, seconds: u64| {
            // Whole numbers are divided, so rates are cut off, as PostMark's are.
            line(&format!("\t\t{name}: "), count, "files", seconds)
        };
        let moved = |bytes: f32, how: &str| {
            let rate = amount(bytes / total as f32);
            format!("\t{} {how} ({rate} per second)\n", amount(bytes))
        };
        [
            format!("Time:\n\t{total} seconds total\n"),
            format!(
                "\t{during} seconds of transactions ({} per second)\n\nFiles:\n",
                self.transactions / during
            ),
            line("\t", self.created(), "created", total),
            part("Creation alone", self.created_alone, seconds.creation),
            part("Mixed with transactions", self.created_mixed, during),
            line("\t", self.read, "read", during),
            line("\t", self.appended, "appended", during),
            line("\t", deleted, "deleted", total),
            part("Deletion alone", self.deleted_alone, seconds.deletion),
            part("Mixed with transactions", self.deleted_mixed, during),
            "\nData:\n".to_owned(),
            moved(self.read_as_float, "read"),
            moved(self.written_as_float, "written"),
        ]
        .concat()
    }

    /// The terse report: one line.
    pub(super) fn terse(&self, version: Version) -> String {
        let seconds = Seconds::of(self);
        let (total, during) = (seconds.total, seconds.transactions);
        let (deleted, deletion) = match version {
            // Both mistakes are 1.51's, and scripts may know its numbers.
            Version::V1_51 => (self.created(), seconds.creation),
            Version::V1_53 => (self.deleted(), seconds.deletion),
        };
        // In single precision, as the bytes are.
        let rates = [
            (self.transactions as f32, during),
            (self.created() as f32, total),
            (self.created_alone as f32, seconds.creation),
            (self.created_mixed as f32, during),
            (self.read as f32, during),
            (self.appended as f32, during),
            (deleted as f32, total),
            (self.deleted_alone as f32, deletion),
            (self.deleted_mixed as f32, during),
            (self.read_as_float, total),
            (self.written_as_float, total),
        ];
        let rates = rates.map(|(count, seconds)| format!("{:.2}", count / seconds as f32));
        format!("{total} {during} {}\n", rates.join(" "))
    }
}
