//! What the engine adds to a bare loop of the same metadata calls, and what other ways cost.
//!
//! `cargo run --release --example floor_files -p stackrace-engine -- [--json] [--files N]
//! [--rounds N] DIRECTORY…`: each directory is worked in on its own file system. Prints minimum,
//! median and maximum over interleaved rounds of the CPU time of the whole process, its threads in
//! the kernel included, for one create, one stat and one unlink, ns; and the median of the ratios
//! to the bare loop of the same round. No figure is asserted: this is for reading.
//!
//! All ways make, look up and remove the same names in the same order, one pass after the other.
//! The bare loops have their names spelled out before the clock starts.

use std::ffi::CString;
use std::hint::black_box;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx, unlinkat};
use rustix::time::{ClockId, clock_gettime};
use stackrace_engine::files::{AtEnd, CurrentNames, FileSet, Pass, VisitOrder};
use stackrace_engine::spec::Content;
use stackrace_engine::{Control, PhaseEnd, PhaseOutcome};

/// Files handed to a ring at once.
const BATCH: usize = 32;
const SLICE_NS: u64 = 100_000_000;
const MAKE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::CLOEXEC);

type Done<T> = Result<T, Box<dyn std::error::Error>>;
/// CPU ns of each pass: create, stat, unlink.
type Passes = [f64; 3];

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn timed(work: impl FnOnce() -> Done<()>) -> Done<f64> {
    let begun = cpu_ns();
    work()?;
    Ok(cpu_ns() - begun)
}

/// A set of files with everything a bare loop needs to find them.
struct Work {
    set: FileSet,
    directories: Vec<OwnedFd>,
    /// Directory and name of each file.
    names: Vec<(usize, CString)>,
    paths: Vec<CString>,
    data: Vec<u8>,
}

impl Work {
    fn new(root: &Path, files: u64, directories: u32, size: u64) -> Done<Work> {
        let set = FileSet {
            root: root.to_path_buf(),
            directories,
            files,
            size_min: size,
            size_max: size,
            threads: 1,
            fsync_each: false,
            content: Content::Random,
            names: CurrentNames::default(),
            seed: 1,
        };
        set.prepare()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let homes: Vec<PathBuf> = set.directory_paths().collect();
        let open = |path: &PathBuf| openat(CWD, path, flags, Mode::empty());
        let directories = homes.iter().map(open).collect::<Result<_, _>>()?;
        let (mut names, mut paths) = (Vec::new(), Vec::new());
        for path in set.paths() {
            let home = homes.iter().position(|home| path.starts_with(home));
            let name = path.file_name().ok_or("a file has no name")?;
            names.push((
                home.ok_or("a file has no home")?,
                CString::new(name.as_bytes())?,
            ));
            paths.push(CString::new(path.as_os_str().as_bytes())?);
        }
        Ok(Work {
            set,
            directories,
            names,
            paths,
            data: vec![0xa5; size as usize],
        })
    }

    fn fill(&self, file: &OwnedFd) -> Done<()> {
        if !self.data.is_empty() {
            rustix::io::write(file, &self.data)?;
        }
        Ok(())
    }

    /// Plain calls relative to descriptors of the directories.
    fn relative(&self) -> Done<Passes> {
        let create = timed(|| {
            for (home, name) in &self.names {
                let mode = Mode::from_raw_mode(0o644);
                let file = openat(&self.directories[*home], name.as_c_str(), MAKE, mode)?;
                self.fill(&file)?;
            }
            Ok(())
        })?;
        let stat = timed(|| {
            let (flags, mask) = (AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
            for (home, name) in &self.names {
                black_box(statx(
                    &self.directories[*home],
                    name.as_c_str(),
                    flags,
                    mask,
                )?);
            }
            Ok(())
        })?;
        let unlink = timed(|| {
            for (home, name) in &self.names {
                unlinkat(&self.directories[*home], name.as_c_str(), AtFlags::empty())?;
            }
            Ok(())
        })?;
        Ok([create, stat, unlink])
    }

    /// Plain calls with whole paths, as most tools make them.
    fn absolute(&self) -> Done<Passes> {
        let create = timed(|| {
            for path in &self.paths {
                let file = openat(CWD, path.as_c_str(), MAKE, Mode::from_raw_mode(0o644))?;
                self.fill(&file)?;
            }
            Ok(())
        })?;
        let stat = timed(|| {
            let (flags, mask) = (AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
            for path in &self.paths {
                black_box(statx(CWD, path.as_c_str(), flags, mask)?);
            }
            Ok(())
        })?;
        let unlink = timed(|| {
            for path in &self.paths {
                unlinkat(CWD, path.as_c_str(), AtFlags::empty())?;
            }
            Ok(())
        })?;
        Ok([create, stat, unlink])
    }

    /// The same three through a ring, in batches: open into a slot of the ring's own, write and
    /// close linked behind it; the ring is made before the clock starts.
    fn ring(&self) -> Done<Passes> {
        let mut ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(BATCH as u32 * 4)?;
        ring.submitter().register_files_sparse(BATCH as u32)?;
        let mut attributes = vec![std::mem::MaybeUninit::<rustix::fs::Statx>::uninit(); BATCH];
        let create = timed(|| {
            self.batches(&mut ring, |slot, home, name, out| {
                // Each of the three begins when the one before it is done.
                let linked = squeue::Flags::IO_LINK;
                let place = types::DestinationSlot::try_from_slot_target(slot as u32)
                    .map_err(|slot| format!("no slot {slot}"))?;
                let open = opcode::OpenAt::new(home, name)
                    // The kernel refuses close-on-exec for a slot of the ring: it is no descriptor.
                    .flags((MAKE - OFlags::CLOEXEC).bits() as i32)
                    .mode(0o644)
                    .file_index(Some(place));
                out.push(open.build().flags(linked));
                let file = types::Fixed(slot as u32);
                if !self.data.is_empty() {
                    let write =
                        opcode::Write::new(file, self.data.as_ptr(), self.data.len() as u32);
                    out.push(write.offset(0).build().flags(linked));
                }
                out.push(opcode::Close::new(file).build());
                Ok(())
            })
        })?;
        let stat = timed(|| {
            self.batches(&mut ring, |slot, home, name, out| {
                let place = attributes[slot].as_mut_ptr().cast();
                let stat = opcode::Statx::new(home, name, place)
                    .flags(AtFlags::SYMLINK_NOFOLLOW.bits() as i32)
                    .mask(StatxFlags::BASIC_STATS.bits());
                out.push(stat.build());
                Ok(())
            })
        })?;
        let unlink = timed(|| {
            self.batches(&mut ring, |_, home, name, out| {
                out.push(opcode::UnlinkAt::new(home, name).build());
                Ok(())
            })
        })?;
        Ok([create, stat, unlink])
    }

    /// Hands all files to the ring, a batch at a time, and waits for each batch.
    fn batches(
        &self,
        ring: &mut IoUring,
        mut entries: impl FnMut(
            usize,
            types::Fd,
            *const std::ffi::c_char,
            &mut Vec<squeue::Entry>,
        ) -> Done<()>,
    ) -> Done<()> {
        let mut batch = Vec::with_capacity(BATCH * 3);
        for part in self.names.chunks(BATCH) {
            batch.clear();
            for (slot, (home, name)) in part.iter().enumerate() {
                let home = types::Fd(self.directories[*home].as_raw_fd());
                entries(slot, home, name.as_ptr(), &mut batch)?;
            }
            // SAFETY: names, data and attributes outlive the wait below, which is for all of them.
            unsafe { ring.submission().push_multiple(&batch)? };
            ring.submit_and_wait(batch.len())?;
            for completion in ring.completion() {
                if completion.result() < 0 {
                    let error = std::io::Error::from_raw_os_error(-completion.result());
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// The engine's phases, everything it sets up for them included.
    fn engine(&self) -> Done<Passes> {
        let control = Control::default();
        let whole = |outcome: PhaseOutcome| match (outcome.ended, outcome.error) {
            (PhaseEnd::Complete, _) => Ok(()),
            (_, Some(error)) => Err(error.into()),
            (ended, None) => Err(format!("{ended:?}").into()),
        };
        let pass = Pass {
            order: VisitOrder::Creation,
            at_end: AtEnd::Return,
            slice_ns: SLICE_NS,
            control: &control,
        };
        Ok([
            timed(|| whole(self.set.create(pass)?))?,
            timed(|| whole(self.set.stat(pass)?))?,
            timed(|| whole(self.set.unlink(pass)?))?,
        ])
    }
}

/// One way to do the work.
type IoMethod = (&'static str, fn(&Work) -> Done<Passes>);

/// The first is what the others are compared with.
const WAYS: [IoMethod; 4] = [
    ("bare calls, by descriptor", Work::relative),
    ("bare calls, whole paths", Work::absolute),
    ("bare ring, 32 at once", Work::ring),
    ("engine", Work::engine),
];

/// Smallest, median and largest.
fn spread(mut figures: Vec<f64>) -> [f64; 3] {
    figures.sort_by(f64::total_cmp);
    [
        figures[0],
        figures[figures.len() / 2],
        figures[figures.len() - 1],
    ]
}

struct Arguments {
    json: bool,
    files: u64,
    rounds: usize,
    roots: Vec<PathBuf>,
}

fn arguments() -> Done<Arguments> {
    let mut found = Arguments {
        json: false,
        files: 20_000,
        rounds: 7,
        roots: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or("a number is missing");
        match word.as_str() {
            "--json" => found.json = true,
            "--files" => found.files = next()?.parse()?,
            "--rounds" => found.rounds = next()?.parse::<usize>()?.max(1),
            directory => found.roots.push(directory.into()),
        }
    }
    if found.roots.is_empty() {
        return Err("name the directories to work in".into());
    }
    Ok(found)
}

/// One row: a way, with what it cost per file in each round, and in each pass.
#[expect(clippy::print_stdout, reason = "an example's output is its purpose")]
fn tell(
    json: bool,
    place: &Path,
    case: (u32, u64),
    way: &str,
    rounds: &[Passes],
    ratios: Vec<f64>,
) {
    let total = |passes: &Passes| passes.iter().sum();
    let [min, median, max] = spread(rounds.iter().map(total).collect());
    let pass = |which: usize| spread(rounds.iter().map(|passes| passes[which]).collect())[1];
    let [create, stat, unlink] = [pass(0), pass(1), pass(2)];
    let ratio = spread(ratios)[1];
    let ((directories, size), place) = (case, place.display());
    if json {
        println!(
            "{{\"place\":\"{place}\",\"directories\":{directories},\"file_bytes\":{size},\
             \"way\":\"{way}\",\"rounds\":{},\"cpu_ns_min\":{min:.0},\"cpu_ns_median\":{median:.0},\
             \"cpu_ns_max\":{max:.0},\"create_ns\":{create:.0},\"stat_ns\":{stat:.0},\
             \"unlink_ns\":{unlink:.0},\"ratio_median\":{ratio:.3}}}",
            rounds.len()
        );
    } else {
        println!(
            "{place} {directories:>3} dir {size:>5} B  {way:<26} {min:>8.0} {median:>8.0} {max:>8.0} ns \
             ({create:>6.0} {stat:>5.0} {unlink:>6.0})  {ratio:.3}"
        );
    }
}

fn main() -> Done<()> {
    let arguments = arguments()?;
    for root in &arguments.roots {
        for (directories, size) in [(1, 0), (64, 0), (1, 4096), (64, 4096)] {
            let home = tempfile::tempdir_in(root)?;
            let work = Work::new(home.path(), arguments.files, directories, size)?;
            let disk = openat(CWD, root, OFlags::RDONLY, Mode::empty())?;
            let mut rounds = vec![Vec::new(); WAYS.len()];
            for round in 0..=arguments.rounds {
                for ((_, way), rounds) in WAYS.iter().zip(&mut rounds) {
                    // What the way before left to be written is not this one's cost.
                    rustix::fs::syncfs(&disk)?;
                    let passes = way(&work)?.map(|ns| ns / arguments.files as f64);
                    // The first round warms up: the directory grows, the clock is calibrated.
                    if round > 0 {
                        rounds.push(passes);
                    }
                }
            }
            let sum = |passes: &Passes| passes.iter().sum::<f64>();
            for ((name, _), own) in WAYS.iter().zip(&rounds) {
                let ratios = own
                    .iter()
                    .zip(&rounds[0])
                    .map(|(own, bare)| sum(own) / sum(bare));
                let case = (directories, size);
                tell(arguments.json, root, case, name, own, ratios.collect());
            }
        }
    }
    Ok(())
}
