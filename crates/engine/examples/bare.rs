//! The bare loop of system calls as a process of its own, to be measured from outside like a tool.
//!
//! `bare pread FILE OPERATIONS [direct]`, `bare ring FILE OPERATIONS DEPTH [direct]`: uniform reads
//! of 4 KiB from the whole of a file or device, by plain calls or by a ring with everything
//! registered. `bare files DIRECTORY FILES DIRECTORIES BYTES`: creates, stats and unlinks, one pass
//! after the other, in the order of creation and once more with stats and unlinks in another.
//! `bare write FILE BYTES`: a file written 1 MiB at a time from one buffer.
//! Nothing is timed, counted or printed: `bench/peers` takes the CPU time of the whole process.

use std::ffi::CString;
use std::fs::File;
use std::io::{IoSlice, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, statat, unlinkat};
use stackrace_system::memory::AlignedMemory;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

/// From one file to the next one visited, out of order: a prime.
const STRIDE: u64 = 1_000_003;
/// Bytes of one read.
const BLOCK: usize = 4096;

/// The cheapest uniform offsets there are: one multiplication each (Knuth's MMIX constants).
struct Offsets {
    state: u64,
    blocks: u64,
}

impl Offsets {
    #[inline(always)]
    fn draw(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let block = (u128::from(self.state) * u128::from(self.blocks)) >> 64;
        block as u64 * BLOCK as u64
    }
}

/// Opened without access times, as the engine opens it.
fn opened(path: &str, direct: bool) -> Done<(OwnedFd, Offsets)> {
    let mut flags = OFlags::RDONLY | OFlags::NOATIME;
    flags.set(OFlags::DIRECT, direct);
    let blocks = File::open(path)?.seek(SeekFrom::End(0))? / BLOCK as u64;
    let file = open(path, flags, Mode::empty())?;
    Ok((file, Offsets { state: 1, blocks }))
}

fn pread(path: &str, operations: u64, direct: bool) -> Done<()> {
    let (file, mut offsets) = opened(path, direct)?;
    let mut memory = AlignedMemory::new(BLOCK)?;
    let buffer = &mut memory.bytes_mut()[..BLOCK];
    for _ in 0..operations {
        if rustix::io::pread(&file, &mut *buffer, offsets.draw())? != BLOCK {
            return Err("a short read".into());
        }
    }
    Ok(())
}

/// As many are issued as came back, by the one system call that also waits for the next.
fn ring(path: &str, operations: u64, depth: u32, direct: bool) -> Done<()> {
    let (file, mut offsets) = opened(path, direct)?;
    let memory = AlignedMemory::new(BLOCK * depth as usize)?;
    let mut builder = IoUring::<squeue::Entry>::builder();
    builder.setup_single_issuer().setup_defer_taskrun();
    let mut ring = builder.setup_no_sqarray().build(depth)?;
    ring.submitter().register_files(&[file.as_raw_fd()])?;
    let region = [IoSlice::new(memory.bytes())];
    // SAFETY: `IoSlice` is documented to have the layout of `iovec`.
    let region = unsafe { &*region.as_ptr().cast::<[_; 1]>() };
    // SAFETY: `memory` outlives `ring`.
    unsafe { ring.submitter().register_buffers(region) }?;
    ring.submitter().register_ring_fd()?;
    let (submitter, mut submission, mut completion) = ring.split();
    let mut issue = |submission: &mut squeue::SubmissionQueue<'_>, slot: u64| {
        let start = memory.as_ptr().wrapping_add(slot as usize * BLOCK);
        let entry = opcode::ReadFixed::new(types::Fixed(0), start, BLOCK as u32, 0)
            .offset(offsets.draw())
            .build()
            .user_data(slot);
        // SAFETY: the entry's buffer is the slot's own, which is free, and outlives the ring.
        unsafe { submission.push(&entry) }
    };
    let (mut issued, mut done) = (u64::from(depth).min(operations), 0);
    (0..issued).try_for_each(|slot| issue(&mut submission, slot))?;
    while done < operations {
        submission.sync();
        submitter.submit_and_wait(1)?;
        submission.sync();
        completion.sync();
        for entry in &mut completion {
            if entry.result() != BLOCK as i32 {
                return Err(format!("an operation returned {}", entry.result()).into());
            }
            done += 1;
            if issued < operations {
                issue(&mut submission, entry.user_data())?;
                issued += 1;
            }
        }
    }
    Ok(())
}

/// Names as long as the engine's. A stride of 1 visits them in the order of creation; a large one
/// that has no factor in common with their number visits each once, far from the one before.
fn files(root: &str, files: u64, directories: u64, bytes: usize, stride: u64) -> Done<()> {
    let place = OFlags::PATH | OFlags::DIRECTORY;
    let root = open(root, place, Mode::empty())?;
    let mut homes = Vec::new();
    for number in 0..directories {
        let name = format!("d{number}");
        mkdirat(&root, &name, Mode::RWXU)?;
        homes.push((openat(&root, &name, place, Mode::empty())?, name));
    }
    let scattered = |file: u64| file.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let names: Vec<CString> = (0..files)
        .map(|file| CString::new(format!("f{:016x}", scattered(file))))
        .collect::<Result<_, _>>()?;
    let visited = |stride: u64| {
        let numbers = (0..files).map(move |file| file * stride % files);
        numbers.map(|file| {
            (
                &homes[(file % directories) as usize].0,
                &names[file as usize],
            )
        })
    };
    let data = vec![0xa5; bytes];
    let make = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    for (home, name) in visited(1) {
        let file = openat(home, name.as_c_str(), make, Mode::RUSR | Mode::WUSR)?;
        if bytes > 0 && rustix::io::write(&file, &data)? != bytes {
            return Err("a short write".into());
        }
    }
    for (home, name) in visited(stride) {
        statat(home, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    for (home, name) in visited(stride) {
        unlinkat(home, name.as_c_str(), AtFlags::empty())?;
    }
    for (_, name) in &homes {
        unlinkat(&root, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn write(path: &str, bytes: u64) -> Done<()> {
    let make = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = open(path, make, Mode::RUSR | Mode::WUSR)?;
    let memory = AlignedMemory::new(1 << 20)?;
    let mut left = bytes;
    while left > 0 {
        let step = memory.bytes().len().min(left as usize);
        left -= rustix::io::write(&file, &memory.bytes()[..step])? as u64;
    }
    Ok(())
}

fn main() -> Done<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["pread", path, operations] => pread(path, operations.parse()?, false),
        ["pread", path, operations, "direct"] => pread(path, operations.parse()?, true),
        ["ring", path, operations, depth] => ring(path, operations.parse()?, depth.parse()?, false),
        ["ring", path, operations, depth, "direct"] => {
            ring(path, operations.parse()?, depth.parse()?, true)
        }
        ["files", root, count, directories, bytes] => {
            let (count, directories) = (count.parse()?, directories.parse()?);
            files(root, count, directories, bytes.parse()?, 1)?;
            files(root, count, directories, bytes.parse()?, STRIDE)
        }
        ["write", path, bytes] => write(path, bytes.parse()?),
        _ => Err("bare pread | ring | files | write, see the head of its source".into()),
    }
}
