//! Linux has them all.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, IFlags, MemfdFlags, Mode, OFlags, SeekFrom, Uid};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::mm::MapFlags;
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{CpuSet, LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use rustix::time::ClockId;

pub use rustix::fs::{
    Advice, FallocateFlags, RawDir, Statx, StatxAttributes, StatxFlags, copy_file_range, fadvise,
    fallocate, fdatasync, ioctl_ficlone, statx, syncfs,
};

/// Set if the system can flush one file system (`syncfs`), copy between files by itself
/// (`copy_file_range`) and let files share blocks (`FICLONE`).
pub const FLUSHES_AND_COPIES: bool = true;

/// `O_DSYNC` of the generic Linux interface. Written out because rustix 1.1 gives `OFlags::DSYNC`
/// the value of `O_SYNC`, which also makes time stamps durable: another measurement.
pub const O_DSYNC: OFlags = OFlags::from_bits_retain(0o10000);

/// Opened with it, a file keeps its access time.
pub const NOATIME: OFlags = OFlags::NOATIME;

/// Opened with it, a directory is a place to look names up in, and nothing else.
pub const PLACE_ONLY: OFlags = OFlags::PATH;

/// A clock that goes on while the machine is suspended.
pub const BOOT_CLOCK: ClockId = ClockId::Boottime;

/// Processor time of this thread, ns: what others do on the machine does not count.
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time of this process, ns.
pub fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The next part of a file that is no hole, from a place on: its beginning and its end, bytes.
///
/// # Errors
/// `ENXIO` where there is none; else the system's.
pub fn next_data(file: impl AsFd, from: u64) -> Result<(u64, u64), Errno> {
    let begin = rustix::fs::seek(&file, SeekFrom::Data(from))?;
    Ok((begin, rustix::fs::seek(&file, SeekFrom::Hole(begin))?))
}

/// Pages of a new mapping are there at once.
pub const POPULATE: MapFlags = MapFlags::POPULATE;

/// `FS_IOC_FIEMAP` of `linux/fs.h`: `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;

/// The flag to open a file past the page cache.
///
/// # Errors
/// `EINVAL`, as from a file system without direct I/O: the system has no such flag.
#[inline]
pub fn direct() -> Result<OFlags, Errno> {
    Ok(OFlags::DIRECT)
}

/// Reads what is known of an open file.
///
/// # Errors
/// The system's.
pub fn statx_open(fd: impl AsFd, mask: StatxFlags) -> Result<Statx, Errno> {
    statx(fd, c"", AtFlags::EMPTY_PATH, mask)
}

/// Reads what can be had without waiting (`RWF_NOWAIT`).
///
/// # Errors
/// `EAGAIN` where it would wait; `EOPNOTSUPP` where the file always might.
pub fn read_without_waiting(
    file: &OwnedFd,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, Errno> {
    let vectors = &mut [IoSliceMut::new(buffer)];
    rustix::io::preadv2(file, vectors, offset, ReadWriteFlags::NOWAIT)
}

/// Has the kernel wake this thread at the very instant; else it may delay that by 50 µs. If it
/// refuses, starts are only less precise.
pub fn wake_precisely() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Gives the calling thread a copy of the process's descriptor table.
///
/// # Errors
/// The system refuses, as in some containers.
///
/// # Safety
/// The thread must own no descriptor that another thread is to see or to close.
pub unsafe fn unshare_descriptors() -> Result<(), Errno> {
    // SAFETY: by the contract of this function.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }
}

/// Asks how a file is stored (`FS_IOC_FIEMAP`).
///
/// # Errors
/// Its file system does not tell.
///
/// # Safety
/// `map` points to a `struct fiemap`, followed by as many extents as its `extent_count` says.
pub unsafe fn map_extents<M>(fd: &OwnedFd, map: *mut M) -> Result<(), Errno> {
    // SAFETY: the request takes such a pointer, by the contract of this function. The kernel writes
    // nothing beyond the extents and keeps no pointer.
    match unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP, map) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Holds a process, so that its number cannot come to mean another one (`pidfd_open`). What is
/// returned can be read from when the process has ended.
///
/// # Errors
/// The system's.
pub fn hold_process(pid: Pid) -> Result<OwnedFd, Errno> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty())
}

/// Signals a process that is held.
///
/// # Errors
/// The system's.
pub fn signal_held(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    rustix::process::pidfd_send_signal(process, signal)
}

/// Gives the calling thread alone another user and group, for good: groups first, because without
/// the rights of root they can no longer be changed, and all three user numbers, so that there is no
/// way back.
///
/// # Errors
/// The system's.
pub fn work_as(user: Uid, group: Gid) -> Result<(), Errno> {
    // All supplementary groups go, because root's would still open files.
    rustix::thread::set_thread_groups(&[group])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)
}

/// Memory of this machine, bytes.
pub fn memory_bytes() -> u64 {
    // sysinfo(2) counts in units of `mem_unit` bytes.
    let info = rustix::system::sysinfo();
    let bytes = u128::from(info.totalram) * u128::from(info.mem_unit.max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Makes a hole in a file, which reads as zeros; its length stays.
///
/// # Errors
/// The file system has no holes.
pub fn punch_hole(file: impl AsFd, offset: u64, bytes: u64) -> Result<(), Errno> {
    // The kernel wants both (fallocate(2)).
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, hole, offset, bytes)
}

/// Gives the calling thread, and what it starts, a host name of its own. Only root may do that.
///
/// # Errors
/// The system's.
pub fn take_host_name(name: &str) -> Result<(), Errno> {
    // SAFETY: only the name of the machine is no longer shared with other threads: no descriptor and
    // no memory is concerned.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUTS) }?;
    rustix::system::sethostname(name.as_bytes())
}

/// Moves the calling thread, and what it starts, into a network namespace. Only root may do that.
///
/// # Errors
/// The system's; also when it is no network namespace.
pub fn enter_network(namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))
}

/// Makes everything fail that waits for the server of the network file system that is mounted there. It stays mounted
/// as long as it is in use. Only root may do that.
///
/// # Errors
/// The system's; that it is in use is one.
pub fn give_up_on_server(mount_point: &Path) -> Result<(), Errno> {
    // No link is followed, and nothing is asked of what is mounted there: it would wait for the server itself.
    rustix::mount::unmount(mount_point, UnmountFlags::FORCE | UnmountFlags::NOFOLLOW)
}

/// Sets how much a pipe holds.
///
/// # Errors
/// The system's.
pub fn widen_pipe(pipe: impl AsFd, bytes: usize) -> Result<(), Errno> {
    rustix::pipe::fcntl_setpipe_size(pipe, bytes).map(drop)
}

/// Asks about a file without asking a server that may not answer.
///
/// # Errors
/// The system's.
pub fn statx_cached(path: &Path) -> Result<Statx, Errno> {
    statx(
        rustix::fs::CWD,
        path,
        AtFlags::STATX_DONT_SYNC,
        StatxFlags::TYPE,
    )
}

/// The kernel's number of the file system that holds an open file (statfs(2)).
///
/// # Errors
/// The system's.
pub fn file_system_kind(fd: impl AsFd) -> Result<u32, Errno> {
    // It has 32 bits; some systems extend its sign.
    Ok(rustix::fs::fstatfs(fd)?.f_type as u32)
}

/// Makes a pipe with a name, for its owner alone.
///
/// # Errors
/// The system's.
pub fn make_pipe(path: &Path) -> Result<(), Errno> {
    let (kind, mode) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0)
}

/// A file in memory, without a place in any directory.
///
/// # Errors
/// The system's.
pub fn memory_file(name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)
}

/// Processors that this thread may use, by number; `None` where the kernel does not say.
pub fn allowed_processors() -> Option<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let all = (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number));
    Some(all.collect())
}

/// Has this thread, and what it starts from now on, use these processors alone.
///
/// # Errors
/// The system's.
pub fn keep_to_processors(numbers: &[usize]) -> Result<(), Errno> {
    let mut only = CpuSet::new();
    for number in numbers {
        only.set(*number);
    }
    rustix::thread::sched_setaffinity(None, &only)
}

/// Rights of this thread that are in force (capabilities(7)), by their bits; 0 where the kernel does not say.
pub fn rights() -> u64 {
    rustix::thread::capabilities(None).map_or(0, |sets| sets.effective.bits())
}

/// Attributes of chattr(1) that change how files in a directory are written. The others say nothing of it, or the
/// file system sets them by itself (an index, extents).
const ATTRIBUTES: [(IFlags, char); 8] = [
    (IFlags::SYNC, 'S'),
    (IFlags::DIRSYNC, 'D'),
    (IFlags::JOURNALING, 'j'),
    (IFlags::COMPRESSED, 'c'),
    (IFlags::NOCOW, 'C'),
    (IFlags::NOATIME, 'A'),
    (IFlags::NOTAIL, 't'),
    (IFlags::IMMUTABLE, 'i'),
];

/// The letters of lsattr(1) that are set of a file, of those that change how it is written; empty if none is.
///
/// # Errors
/// The system's; its file system has no attributes.
pub fn file_attributes(fd: impl AsFd) -> Result<String, Errno> {
    let set = rustix::fs::ioctl_getflags(fd)?;
    let letters = ATTRIBUTES.iter().filter(|(flag, _)| set.contains(*flag));
    Ok(letters.map(|(_, letter)| letter).collect())
}

/// Reads an extended attribute of a file: how many bytes it has, or that there is none of the name.
///
/// # Errors
/// The system's; there is no room for it.
pub fn extended_attribute(
    path: &Path,
    name: &str,
    into: &mut [u8],
) -> Result<Option<usize>, Errno> {
    match rustix::fs::getxattr(path, name, into) {
        Err(Errno::NODATA) => Ok(None),
        told => told.map(Some),
    }
}

pub use libc::wait4;
