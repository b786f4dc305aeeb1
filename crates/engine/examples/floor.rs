//! What the engine adds to a bare loop of the same system calls.
//!
//! `bench/floor` builds and runs this. Every round measures every case once, so that whatever else
//! the machine does falls on all of them; a ratio is taken within a round, and the median of these
//! ratios is shown. Times are CPU time of the whole process, kernel threads of a ring included, per
//! operation, ns. No figure is asserted: this is for reading.

use std::hint::black_box;
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};
use stackrace_engine::clock::FastClock;
use stackrace_engine::content::{ContentPool, POOL_BYTES};
use stackrace_engine::recorder::Recorder;
use stackrace_engine::spec::{Content, IoEngine, IoTarget, Spec, Stop};
use stackrace_engine::{Control, Op, PhaseOutcome, lay_out, run};
use stackrace_system::draw::Draw;
use stackrace_system::memory::AlignedMemory;

type Failable<T> = Result<T, Box<dyn std::error::Error>>;

/// Bytes of one operation.
const BLOCK: usize = 4096;
/// A set that stays in the processor's caches, bytes.
const HOT: u64 = 16 << 20;
/// A set that does not, bytes.
const CACHED: u64 = 1 << 30;

/// What is asked on the command line.
struct Asked {
    rounds: usize,
    operations: u64,
    directory: PathBuf,
    /// A device whose content may be read, tried with direct I/O.
    device: Option<PathBuf>,
    json: bool,
    /// Only cases whose name contains this.
    only: String,
}

impl Asked {
    fn parse() -> Failable<Asked> {
        let mut asked = Asked {
            rounds: 7,
            operations: 500_000,
            directory: "/var/tmp".into(),
            device: None,
            json: false,
            only: String::new(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--rounds" => asked.rounds = value()?.parse()?,
                "--operations" => asked.operations = value()?.parse()?,
                "--directory" => asked.directory = value()?.into(),
                "--device" => asked.device = Some(value()?.into()),
                "--only" => asked.only = value()?,
                "--json" => asked.json = true,
                _ => return Err(format!("unknown option {word}").into()),
            }
        }
        if asked.rounds == 0 || asked.operations == 0 {
            return Err("rounds and operations must be above 0".into());
        }
        Ok(asked)
    }
}

fn cpu_ns() -> f64 {
    // CPU time and not elapsed time: other programs of the machine are left out of it.
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// CPU time per operation of `work`, which does this many, ns.
fn per_operation(operations: u64, work: impl FnOnce() -> Failable<()>) -> Failable<f64> {
    let begun = cpu_ns();
    work()?;
    Ok((cpu_ns() - begun) / operations as f64)
}

/// Where the operations go.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a Path,
    bytes: u64,
    direct: bool,
}

impl Place<'_> {
    /// As the engine opens it: without access times.
    fn open(&self) -> Failable<OwnedFd> {
        let mut flags = OFlags::RDONLY | OFlags::NOATIME;
        flags.set(OFlags::DIRECT, self.direct);
        Ok(rustix::fs::open(self.path, flags, Mode::empty())?)
    }
}

/// The cheapest uniform offsets there are: one multiplication each (Knuth's MMIX constants).
struct Offsets {
    state: u64,
    blocks: u64,
}

impl Offsets {
    fn of(place: Place<'_>) -> Offsets {
        let blocks = place.bytes / BLOCK as u64;
        Offsets { state: 1, blocks }
    }

    #[inline(always)]
    fn draw(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // The high bits of a product: as even as a remainder, and cheaper.
        let block = (u128::from(self.state) * u128::from(self.blocks)) >> 64;
        block as u64 * BLOCK as u64
    }
}

/// Uniform reads by `pread`, and nothing else.
fn bare_pread(place: Place<'_>, operations: u64, size: usize) -> Failable<f64> {
    let file = place.open()?;
    let mut memory = AlignedMemory::new(BLOCK)?;
    let buffer = &mut memory.bytes_mut()[..size];
    let mut offsets = Offsets::of(place);
    per_operation(operations, || {
        for _ in 0..operations {
            let moved = rustix::io::pread(&file, &mut *buffer, offsets.draw())?;
            if moved != size {
                return Err("a short read".into());
            }
        }
        Ok(())
    })
}

/// A ring with everything registered.
fn ring(depth: u32) -> Failable<IoUring> {
    let mut builder = IoUring::builder();
    builder
        .setup_single_issuer()
        // Completions are then handled in this thread, when it asks for them.
        .setup_defer_taskrun()
        .setup_no_sqarray();
    Ok(builder.build(depth)?)
}

/// Keeps `depth` operations outstanding: as many are issued as came back, in one system call that
/// also waits for the next.
fn turn_over(
    ring: &mut IoUring,
    depth: u32,
    operations: u64,
    mut entry: impl FnMut(u64) -> squeue::Entry,
    result: i32,
) -> Failable<f64> {
    let (mut submitter, mut submission, mut completion) = ring.split();
    submitter.register_ring_fd()?;
    let mut push = |submission: &mut squeue::SubmissionQueue<'_>, slot| {
        // SAFETY: the entry's buffer is the slot's own, which is free, and outlives the ring.
        unsafe { submission.push(&entry(slot)) }
    };
    let (mut issued, mut done) = (u64::from(depth).min(operations), 0);
    let figure = per_operation(operations, || {
        for slot in 0..issued {
            push(&mut submission, slot)?;
        }
        while done < operations {
            submission.sync();
            submitter.submit_and_wait(1)?;
            submission.sync();
            completion.sync();
            for entry in &mut completion {
                if entry.result() != result {
                    return Err(format!("an operation returned {}", entry.result()).into());
                }
                done += 1;
                if issued < operations {
                    push(&mut submission, entry.user_data())?;
                    issued += 1;
                }
            }
        }
        Ok(())
    })?;
    // A thread has places for sixteen rings, and a ring keeps its own until told otherwise.
    submitter.unregister_ring_fd()?;
    Ok(figure)
}

/// Uniform reads by a ring with fixed files and buffers, and nothing else.
fn bare_ring(place: Place<'_>, operations: u64, depth: u32) -> Failable<f64> {
    let file = place.open()?;
    let memory = AlignedMemory::new(BLOCK * depth as usize)?;
    let mut ring = ring(depth)?;
    ring.submitter().register_files(&[file.as_raw_fd()])?;
    let region = [IoSlice::new(memory.bytes())];
    // SAFETY: `IoSlice` is documented to have the layout of `iovec`.
    let vectors = unsafe { std::slice::from_raw_parts(region.as_ptr().cast(), region.len()) };
    // SAFETY: `memory`, the region, is dropped after `ring`, which was made after it.
    unsafe { ring.submitter().register_buffers(vectors) }?;
    let mut offsets = Offsets::of(place);
    let entry = |slot: u64| {
        let start = memory.as_ptr().wrapping_add(slot as usize * BLOCK);
        opcode::ReadFixed::new(types::Fixed(0), start, BLOCK as u32, 0)
            .offset(offsets.draw())
            .build()
            .user_data(slot)
    };
    turn_over(&mut ring, depth, operations, entry, BLOCK as i32)
}

/// A ring's operations that do nothing.
fn ring_nop(operations: u64, depth: u32) -> Failable<f64> {
    let mut ring = ring(depth)?;
    let entry = |slot| opcode::Nop::new().build().user_data(slot);
    turn_over(&mut ring, depth, operations, entry, 0)
}

/// The same reads by the engine, beginning and end of the phase included.
fn engine(
    place: Place<'_>,
    operations: u64,
    depth: u32,
    engine: IoEngine,
) -> Failable<PhaseOutcome> {
    let target = IoTarget {
        path: place.path.into(),
        bytes: place.bytes,
    };
    let spec = Spec {
        queue_depth: depth,
        direct: place.direct,
        content: Content::Zero,
        stop: Stop {
            ops: Some(operations),
            time_ns: None,
        },
        engine,
        ..Spec::reads(vec![target], BLOCK as u32)
    };
    let outcome = run(&spec, &Control::default())?;
    match outcome.error {
        Some(error) => Err(error.into()),
        None => Ok(outcome),
    }
}

/// One thing to measure.
struct Case<'a> {
    name: String,
    /// The case its ratio is taken to.
    base: Option<String>,
    measure: Box<dyn Fn() -> Failable<f64> + 'a>,
}

impl<'a> Case<'a> {
    fn new(name: impl Into<String>, measure: impl Fn() -> Failable<f64> + 'a) -> Case<'a> {
        Case {
            name: name.into(),
            base: None,
            measure: Box::new(measure),
        }
    }

    fn over(self, base: &str) -> Case<'a> {
        Case {
            base: Some(base.to_owned()),
            ..self
        }
    }
}

/// What a system call, a clock and the engine's own parts cost.
fn parts<'a>(place: Place<'a>, operations: u64) -> Vec<Case<'a>> {
    let calls = move || {
        per_operation(operations, || {
            for _ in 0..operations {
                black_box(rustix::process::getppid());
            }
            Ok(())
        })
    };
    let clock = move || {
        let clock = FastClock::calibrated();
        per_operation(operations, || {
            for _ in 0..operations {
                black_box(clock.now_ns());
            }
            Ok(())
        })
    };
    let stamps = move || {
        let mut pool = ContentPool::new(Content::Random, 1, 0, 1, BLOCK..=BLOCK, POOL_BYTES)?;
        per_operation(operations, || {
            for _ in 0..operations {
                black_box(pool.take(BLOCK).as_ptr());
            }
            Ok(())
        })
    };
    let records = move || {
        let (mut recorder, mut draw) = (Recorder::new(1_000_000, &[Op::Read]), Draw::new(1, 1));
        let mut now_ns = 0;
        per_operation(operations, || {
            for _ in 0..operations {
                let begun_ns = now_ns;
                now_ns += 400 + draw.below(200);
                recorder.record(Op::Read, begun_ns, now_ns, BLOCK as u64);
            }
            black_box(&recorder);
            Ok(())
        })
    };
    let null = move || {
        per_operation(operations, || {
            engine(place, operations, 1, IoEngine::Null).map(drop)
        })
    };
    vec![
        Case::new("getppid", calls),
        Case::new("clock reading", clock),
        Case::new("pread of 0 bytes", move || bare_pread(place, operations, 0)),
        Case::new("ring nop, depth 1", move || ring_nop(operations, 1)),
        Case::new("ring nop, depth 32", move || ring_nop(operations, 32)),
        Case::new("engine null", null),
        Case::new("recording one latency", records),
        Case::new("stamping 4 KiB to write", stamps),
    ]
}

/// Bare loops, and the engine beside each.
fn loops<'a>(place: Place<'a>, set: &str, operations: u64, engines: &[IoEngine]) -> Vec<Case<'a>> {
    let bare = format!("{set}: bare pread");
    let mut cases = vec![Case::new(bare.clone(), move || {
        bare_pread(place, operations, BLOCK)
    })];
    for depth in [1, 32, 128] {
        let base = format!("{set}: bare ring, depth {depth}");
        let measure = move || bare_ring(place, operations, depth);
        cases.push(Case::new(base.clone(), measure).over(&bare));
        for &way in engines {
            let name = match way {
                IoEngine::Sync => "sync",
                IoEngine::Uring => "io_uring",
                IoEngine::Auto => "auto",
                IoEngine::Null => "null",
                // Calls that move no data have no floor of their own here.
                other => unreachable!("{other:?} is not measured"),
            };
            // Plain calls at depth 32 and more are threads: worth a look on a device only.
            if way == IoEngine::Sync && depth > 1 && !place.direct {
                continue;
            }
            let base = if way == IoEngine::Uring { &base } else { &bare };
            let measure = move || {
                per_operation(operations, || {
                    engine(place, operations, depth, way).map(drop)
                })
            };
            let name = format!("{set}: engine {name}, depth {depth}");
            cases.push(Case::new(name, measure).over(base));
        }
    }
    cases
}

/// A file of random content, all of it in the page cache.
fn laid_out(directory: &Path, bytes: u64) -> Failable<tempfile::NamedTempFile> {
    let file = tempfile::NamedTempFile::new_in(directory)?;
    let target = IoTarget {
        path: file.path().into(),
        bytes,
    };
    lay_out(&[target], Content::Random, 1, &Control::default())?;
    std::io::copy(&mut file.reopen()?.take(bytes), &mut std::io::sink())?;
    Ok(file)
}

fn device_bytes(path: &Path) -> Failable<u64> {
    use std::io::{Seek, SeekFrom};
    Ok(std::fs::File::open(path)?.seek(SeekFrom::End(0))?)
}

fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// One line per case: figures by case and round.
fn print(
    out: &mut dyn Write,
    cases: &[Case<'_>],
    figures: &[Vec<f64>],
    json: bool,
) -> Failable<()> {
    if !json {
        let heads = ["min ns", "median", "max", "ratio"];
        write!(out, "{:<34}", "CPU per operation")?;
        heads
            .iter()
            .try_for_each(|head| write!(out, " {head:>9}"))?;
        writeln!(out, "  of")?;
    }
    for (case, ns) in cases.iter().zip(figures) {
        let base = case.base.as_ref();
        let base = base.and_then(|base| Some((base, cases.iter().position(|c| c.name == *base)?)));
        let ratio = base.map(|(base, index)| {
            let ratios = ns.iter().zip(&figures[index]).map(|(ns, of)| ns / of);
            (base, median(&ratios.collect::<Vec<_>>()))
        });
        let (name, middle) = (&case.name, median(ns));
        if json {
            let ns: Vec<String> = ns.iter().map(|ns| format!("{ns:.2}")).collect();
            write!(
                out,
                r#"{{"case":"{name}","ns":[{}],"median_ns":{middle:.2}"#,
                ns.join(",")
            )?;
            if let Some((base, ratio)) = ratio {
                write!(out, r#","of":"{base}","ratio":{ratio:.4}"#)?;
            }
            writeln!(out, "}}")?;
            continue;
        }
        let least = ns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ns.iter().copied().fold(0.0, f64::max);
        write!(out, "{name:<34} {least:9.1} {middle:9.1} {most:9.1}")?;
        match ratio {
            Some((base, ratio)) => writeln!(out, " {ratio:9.3}  {base}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

fn main() -> Failable<()> {
    let asked = Asked::parse()?;
    let operations = asked.operations;
    let (hot, cached) = (
        laid_out(&asked.directory, HOT)?,
        laid_out(&asked.directory, CACHED)?,
    );
    let file = |file: &'static str, path, bytes| {
        (
            file,
            Place {
                path,
                bytes,
                direct: false,
            },
        )
    };
    let engines = [IoEngine::Sync, IoEngine::Uring];
    let (_, first) = file("", hot.path(), HOT);
    let mut cases = parts(first, operations);
    for (set, place) in [
        file("hot 16 MiB", hot.path(), HOT),
        file("cached 1 GiB", cached.path(), CACHED),
    ] {
        cases.extend(loops(place, set, operations, &engines));
    }
    if let Some(path) = &asked.device {
        let place = Place {
            path,
            bytes: device_bytes(path)?,
            direct: true,
        };
        let engines = [IoEngine::Auto, IoEngine::Sync, IoEngine::Uring];
        cases.extend(loops(place, "device", operations / 5, &engines));
    }
    cases.retain(|case| case.name.contains(&asked.only));
    let mut figures = vec![Vec::with_capacity(asked.rounds); cases.len()];
    for _ in 0..asked.rounds {
        for (case, figures) in cases.iter().zip(&mut figures) {
            figures.push((case.measure)()?);
        }
    }
    print(&mut std::io::stdout().lock(), &cases, &figures, asked.json)
}
