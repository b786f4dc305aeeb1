//! Pools of ZFS as a workload makes them itself: made, filled with a tree, scrubbed, resilvered and
//! followed to the end, every file checked.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use stackrace_engine::{PhaseEnd, PhaseOutcome, Slice};

use super::kind::{BareDevices, Place, SLICE_NS, WorkloadError, trouble, trouble_at};
use super::metric;
use super::tree::{FROM, HELD, INVENTED, Source};
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::setting::SettingDoc;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_machine::host::{argv, udev::create_pool};

/// Settings of the tree that a pool is filled with.
pub(super) const TREE: [SettingDoc; 10] = SettingDoc::joined(&[&INVENTED, &[FROM], &HELD]);

/// Blocks of 4 KiB: larger than the sectors of any common disk, so that ZFS takes it as asked.
const ASHIFT: &str = "ashift=12";

/// Interval at which a pool is asked how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// Suffix of the list of checksums, behind the name of the trial's directory. The list lies beside
/// it, for what is in it is looked at to tell a cold start from a warm one.
const SUMS: &str = ".sums";

/// One of the two pools of a trial.
pub(super) struct TrialPool<'a> {
    place: &'a Place<'a>,
    bare: BareDevices<'a>,
    name: &'a str,
    mount: PathBuf,
}

/// Work of a pool in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Background {
    Scrub,
    Resilver,
}

impl<'a> TrialPool<'a> {
    /// The first or the second of a trial; not made yet.
    ///
    /// # Errors
    /// When there are fewer bare devices than are needed.
    pub(super) fn new(
        place: &'a Place<'a>,
        which: usize,
        devices_min: usize,
    ) -> Result<Self, WorkloadError> {
        let bare = place
            .bare
            .filter(|bare| bare.devices.len() >= devices_min)
            .ok_or_else(|| {
                let given = place.bare.map_or(0, |bare| bare.devices.len());
                trouble(format!(
                    "{devices_min} bare devices are needed, and there are {given}: write `bare = {{}}` on {devices_min} disks in a study, as rebuild.toml does"
                ))
            })?;
        Ok(Self {
            place,
            bare,
            name: &bare.pools[which],
            mount: place.directory.join(["a", "b"][which]),
        })
    }

    /// The devices of the stack.
    pub(super) fn devices(&self) -> Vec<OsString> {
        let devices = self.bare.devices.iter();
        devices.map(|device| device.clone().into()).collect()
    }

    /// The root of its file system.
    pub(super) fn mount(&self) -> &Path {
        &self.mount
    }

    /// Runs `zpool VERB NAME WORDS…`.
    pub(super) fn zpool(&self, verb: &[&str], words: &[OsString]) -> Result<String, WorkloadError> {
        let mut command = argv(["zpool"]);
        command.extend(argv(verb.iter().copied()));
        command.push(self.name.into());
        command.extend_from_slice(words);
        let output = self.bare.host.must(&command).map_err(trouble)?;
        Ok(output.stdout)
    }

    /// Makes it of these words: where which device goes.
    pub(super) fn create(&self, vdevs: &[OsString]) -> Result<(), WorkloadError> {
        let mut mount = OsString::from("mountpoint=");
        mount.push(&self.mount);
        // -f: that the devices may be written over was found out before.
        let mut command = argv(["zpool", "create", "-f", "-o", "cachefile=none", "-o"]);
        command.extend(argv([ASHIFT, "-O"]));
        command.extend([mount, self.name.into()]);
        command.extend_from_slice(vdevs);
        create_pool(self.bare.host, &command).map_err(trouble)?;
        Ok(())
    }

    /// Fills it with a tree, notes the checksum of every file, and makes it cold.
    pub(super) fn fill(&self, source: &Source) -> Result<(), WorkloadError> {
        let within = Place {
            directory: &self.mount,
            ..*self.place
        };
        let root = source.build(&within)?;
        let (sums, _) = sums(&root)?;
        std::fs::write(self.sums_file(), sums).map_err(trouble)?;
        self.take_away_and_back()
    }

    fn sums_file(&self) -> PathBuf {
        let mut name = self.place.directory.as_os_str().to_os_string();
        name.push(SUMS);
        PathBuf::from(name)
    }

    /// Exports and imports it: nothing of it is in memory then.
    fn take_away_and_back(&self) -> Result<(), WorkloadError> {
        // ZFS keeps data in a cache of its own (ARC), which dropping the page cache does not reach.
        self.zpool(&["export"], &[])?;
        self.zpool(&["import", "-o", "cachefile=none", "-d", "/dev"], &[])?;
        Ok(())
    }

    /// Does something that takes no longer than its commands.
    pub(super) fn timed(
        &self,
        work: impl FnOnce() -> Result<(), WorkloadError>,
    ) -> Result<PhaseOutcome, WorkloadError> {
        let began = SystemClock.now_ns();
        work()?;
        Ok(outcome(SystemClock.now_ns().saturating_sub(began)))
    }

    /// Starts what goes on in the background by a command, and follows it to its end.
    pub(super) fn follow(
        &self,
        what: Background,
        verb: &[&str],
        words: &[OsString],
    ) -> Result<PhaseOutcome, WorkloadError> {
        let began = SystemClock.now_ns();
        self.zpool(verb, words)?;
        let mut series: Vec<Slice> = Vec::new();
        let mut before = 0;
        loop {
            let scan = Scan::of(&self.zpool(&["status"], &[])?, what);
            let elapsed_ns = SystemClock.now_ns().saturating_sub(began);
            let slice = usize::try_from(elapsed_ns / SLICE_NS).unwrap_or(usize::MAX);
            series.resize(series.len().max(slice + 1), Slice::default());
            // What is shown is rounded, and can seem to go back.
            let bytes = scan.bytes.unwrap_or(before).max(before);
            series[slice].bytes += bytes - before;
            self.place.control.bytes.store(bytes, Ordering::Relaxed);
            before = bytes;
            if let Some(errors) = scan.errors {
                // A scrub or resilver with errors has not done the work that is compared.
                if errors != 0 {
                    let words = format!("{what:?} ended with {errors} errors");
                    return Err(trouble(words.to_lowercase()));
                }
                return Ok(PhaseOutcome {
                    series,
                    ..outcome(elapsed_ns)
                });
            }
            if self.place.control.stopped() {
                return Ok(PhaseOutcome {
                    ended: PhaseEnd::Stopped,
                    series,
                    ..outcome(elapsed_ns)
                });
            }
            self.bare.host.pause(LOOK);
        }
    }

    /// Reads every file again, from the devices, and destroys the pool after the clock has stopped.
    ///
    /// # Errors
    /// The first file that is missing, or is not what it was.
    pub(super) fn verify(&self, root: &Path) -> Result<PhaseOutcome, WorkloadError> {
        self.take_away_and_back()?;
        let expected = std::fs::read_to_string(self.sums_file()).map_err(trouble)?;
        let began = SystemClock.now_ns();
        let (found, bytes) = sums(root)?;
        let elapsed_ns = SystemClock.now_ns().saturating_sub(began);
        let lines = expected.lines().zip(found.lines());
        if let Some((line, _)) = lines
            .into_iter()
            .find(|(expected, found)| expected != found)
        {
            let (_, name) = line.split_once(' ').unwrap_or_default();
            return Err(trouble(format!("{name} is not what it was")));
        }
        if expected.len() != found.len() {
            return Err(trouble(format!(
                "{} files and links were there, now {}",
                expected.lines().count(),
                found.lines().count()
            )));
        }
        // The last phase leaves the devices bare again, as the stack gave them.
        self.zpool(&["destroy", "-f"], &[])?;
        Ok(PhaseOutcome {
            verified_bytes: bytes,
            ..outcome(elapsed_ns)
        })
    }
}

/// Progress of a pool in its work in the background.
#[derive(Debug, PartialEq, Eq)]
struct Scan {
    /// Bytes resilvered, or scrubbed; `None` if not said.
    bytes: Option<u64>,
    /// Number of errors; `None` if it has not ended.
    errors: Option<u64>,
}

impl Scan {
    /// Reads what `zpool status` prints; numbers are rounded there.
    fn of(status: &str, what: Background) -> Self {
        let lines: Vec<&str> = status.lines().map(str::trim).collect();
        // `zpool status` has no output for programs in the versions that are still in use.
        let said = |start: &str| lines.iter().find_map(|line| line.strip_prefix(start));
        let (ended, counted) = match what {
            Background::Scrub => (said("scan: scrub repaired "), " issued"),
            Background::Resilver => (said("scan: resilvered "), " resilvered"),
        };
        let amount = |line: &str| {
            let (before, _) = line.split_once(counted)?;
            bytes(before.rsplit([' ', ',']).next()?)
        };
        Self {
            bytes: match (ended, what) {
                (Some(line), Background::Resilver) => line.split(' ').next().and_then(bytes),
                _ => lines.iter().find_map(|line| amount(line)),
            },
            errors: ended.and_then(|line| {
                let (before, _) = line.split_once(" errors")?;
                before.rsplit(' ').next()?.parse().ok()
            }),
        }
    }
}

/// Reads `49.0M`: in units of 1024.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let power = "BKMGTPE".find(unit)?;
    let number: f64 = number.parse().ok()?;
    Some((number * (1_u64 << (10 * power)) as f64) as u64)
}

/// A line for each file and link below a directory, sorted by name, with the BLAKE3 of what it
/// holds or where it leads; and all bytes of the files.
fn sums(root: &Path) -> Result<(String, u64), WorkloadError> {
    let mut left = vec![root.to_path_buf()];
    let mut found = Vec::new();
    let mut bytes = 0;
    while let Some(path) = left.pop() {
        let failed = |error: std::io::Error| trouble_at(&path, error);
        let about = path.symlink_metadata().map_err(failed)?;
        let mut hash = blake3::Hasher::new();
        if about.is_dir() {
            for entry in path.read_dir().map_err(failed)? {
                left.push(entry.map_err(failed)?.path());
            }
            continue;
        } else if about.is_symlink() {
            let target = path.read_link().map_err(failed)?;
            hash.update(target.as_os_str().as_encoded_bytes());
        } else {
            let file = std::fs::File::open(&path).map_err(failed)?;
            hash.update_reader(file).map_err(failed)?;
            bytes += about.len();
        }
        let name = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
        found.push((name, hash.finalize().to_hex()));
    }
    // A directory lists its entries in any order.
    found.sort_unstable();
    let mut text = String::new();
    for (name, hash) in found {
        writeln!(text, "{hash} {}", name.display()).map_err(trouble)?;
    }
    Ok((text, bytes))
}

/// Makes the outcome of a phase that ZFS itself carried out.
fn outcome(elapsed_ns: u64) -> PhaseOutcome {
    // Nothing went through the engine: these words say so.
    PhaseOutcome::of_program("zpool", "ZFS does it".to_owned(), elapsed_ns, SLICE_NS)
}

/// The metrics of phases that follow each other: all together, the rate of the resilvering, each.
pub(super) fn heads(phases: &[&str]) -> Vec<MetricHead> {
    let each = phases
        .iter()
        .map(|phase| MetricHead::new(*phase, "s", Better::Lower));
    let rate = MetricHead::new("resilver throughput", "B/s", Better::Higher);
    [metric::elapsed_head(), rate]
        .into_iter()
        .chain(each)
        .collect()
}

/// Their values; `resilver` is the place of that phase.
pub(super) fn values(
    outcomes: &[PhaseOutcome],
    phases: &[&str],
    resilver: usize,
) -> Vec<Option<f64>> {
    let all: u64 = outcomes.iter().map(|outcome| outcome.elapsed_ns).sum();
    let rate = outcomes.get(resilver).and_then(|outcome| {
        let bytes: u64 = outcome.series.iter().map(|slice| slice.bytes).sum();
        (bytes > 0).then(|| bytes as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64)
    });
    let whole = (outcomes.len() == phases.len()).then(|| all as f64 / 1e9);
    let each = (0..phases.len()).map(|phase| outcomes.get(phase).and_then(metric::elapsed));
    [whole, rate].into_iter().chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those that OpenZFS 2.1 prints (print_scan_scrub_resilver_status in
    /// zpool_main.c).
    #[test]
    fn how_far_a_pool_is_can_be_read() {
        let of = |text: &str, what| {
            let scan = Scan::of(text, what);
            (scan.bytes, scan.errors)
        };
        let going = concat!(
            "  scan: resilver in progress since Sat Nov 21 20:43:06 2026\n",
            "\t49.0M scanned at 12.2M/s, 30.1M issued at 7.5M/s, 150M total\n",
            "\t8.00M resilvered, 20.11% done, 00:00:15 to go\n",
        );
        assert_eq!(of(going, Background::Resilver), (Some(8 << 20), None));
        let ended = "  scan: resilvered 1.50K in 00:00:04 with 0 errors on Sat Nov 21\n";
        assert_eq!(of(ended, Background::Resilver), (Some(1536), Some(0)));
        assert_eq!(of(ended, Background::Scrub), (None, None));
        let going = going.replace("resilver in", "scrub in");
        assert_eq!(of(&going, Background::Scrub), (bytes("30.1M"), None));
        let ended = "  scan: scrub repaired 0B in 00:00:01 with 3 errors on Sat Nov 21\n";
        assert_eq!(of(ended, Background::Scrub), (None, Some(3)));
    }

    #[test]
    fn a_tree_that_changed_has_other_sums() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("b")).unwrap();
        std::fs::write(root.path().join("b/file"), b"12").unwrap();
        std::os::unix::fs::symlink("b/file", root.path().join("a")).unwrap();
        let (before, bytes) = sums(root.path()).unwrap();
        assert_eq!((before.lines().count(), bytes), (2, 2));
        assert_eq!(sums(root.path()).unwrap().0, before);
        std::fs::write(root.path().join("b/file"), b"13").unwrap();
        assert_ne!(sums(root.path()).unwrap().0, before);
    }
}
