//! Systems that are not Linux: what POSIX has in place of Linux's calls, or a refusal.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Gid, OFlags, Stat, Uid, fstat, statat};
use rustix::io::Errno;
use rustix::mm::MapFlags;
use rustix::path::Arg;
use rustix::process::{Pid, Signal};
use rustix::time::ClockId;

/// Linux's alone: one file system is flushed, files are copied by the kernel, files share blocks.
pub const FLUSHES_AND_COPIES: bool = false;

/// `O_DSYNC`, as this system has it.
pub const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as _);

/// No flag: the one to leave the access time alone is Linux's.
pub const NOATIME: OFlags = OFlags::empty();

/// Opened with it, a file is a place, and nothing else.
#[cfg(target_os = "freebsd")]
pub const PLACE_ONLY: OFlags = OFlags::PATH;

/// Opened to be read, for want of a flag for places: what may only be searched is refused, and so is
/// a link.
#[cfg(not(target_os = "freebsd"))]
pub const PLACE_ONLY: OFlags = OFlags::RDONLY;

/// The monotonic clock: that the machine was suspended goes unseen.
pub const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// Processor time of this thread, ns: what others do on the machine does not count. 0: the system does
/// not say.
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time of this process, ns. 0: the system does not say.
pub fn process_cpu_ns() -> u64 {
    cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu_ns(clock: libc::clockid_t) -> u64 {
    // SAFETY: a time of zeros is one.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one time to where it is told to, and keeps no pointer. rustix does not
    // offer these clocks on every system that has them.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}

/// The rest of a file, as if it had no holes: its beginning and its end, bytes.
///
/// # Errors
/// `ENXIO` where there is none; else the system's.
pub fn next_data(file: impl AsFd, from: u64) -> Result<(u64, u64), Errno> {
    let end = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
    match from < end {
        true => Ok((from, end)),
        false => Err(Errno::NXIO),
    }
}

/// No flag: who maps memory touches its pages.
pub const POPULATE: MapFlags = MapFlags::empty();

/// The flag to open a file past the page cache.
///
/// # Errors
/// `EINVAL`, as from a file system without direct I/O: the system has no such flag.
pub fn direct() -> Result<OFlags, Errno> {
    #[cfg(any(target_os = "freebsd", target_os = "netbsd"))]
    return Ok(OFlags::DIRECT);
    #[cfg(not(any(target_os = "freebsd", target_os = "netbsd")))]
    Err(Errno::INVAL)
}

/// The facts that are asked about a file: all that `stat` tells, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatxFlags(u32);

impl StatxFlags {
    /// Its kind.
    pub const TYPE: Self = Self(1);
    /// All that `stat` tells.
    pub const BASIC_STATS: Self = Self(0x7ff);
    /// The number of its mount, which only Linux has: never told.
    pub const MNT_ID: Self = Self(0x1000);

    /// All that both of them ask for.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits as [`Statx::stx_mask`] has them.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// The properties of a file besides its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatxAttributes(bool);

impl StatxAttributes {
    /// A file system is mounted here.
    pub const MOUNT_ROOT: Self = Self(true);

    /// Returns true if it has the other's, too.
    pub const fn contains(self, other: Self) -> bool {
        self.0 || !other.0
    }
}

/// A moment, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatxTimestamp {
    /// Seconds.
    pub tv_sec: i64,
    /// And nanoseconds.
    pub tv_nsec: u32,
}

/// All that is known of a file, with the names that Linux gives it.
#[derive(Debug, Clone, Copy)]
pub struct Statx {
    /// The [`StatxFlags`] that are told.
    pub stx_mask: u32,
    /// Set if a file system is mounted here.
    pub stx_attributes: StatxAttributes,
    /// Kind and permissions.
    pub stx_mode: u16,
    /// Owner.
    pub stx_uid: u32,
    /// Group.
    pub stx_gid: u32,
    /// Number of the file on its device.
    pub stx_ino: u64,
    /// Bytes.
    pub stx_size: u64,
    /// Time of the last change of its content.
    pub stx_mtime: StatxTimestamp,
    /// The upper half of the number of the device it is on.
    pub stx_dev_major: u32,
    /// The lower half.
    pub stx_dev_minor: u32,
    /// The upper half of its own number, of a device.
    pub stx_rdev_major: u32,
    /// The lower half.
    pub stx_rdev_minor: u32,
    /// Number of its mount, always 0: see [`StatxFlags::MNT_ID`].
    pub stx_mnt_id: u64,
}

impl Statx {
    #[expect(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "each system has other types here"
    )]
    fn of(stat: &Stat, mount_root: bool) -> Self {
        // Two halves of one number: they are only ever compared.
        let halves = |number: u64| ((number >> 32) as u32, number as u32);
        let (stx_dev_major, stx_dev_minor) = halves(stat.st_dev as u64);
        let (stx_rdev_major, stx_rdev_minor) = halves(stat.st_rdev as u64);
        Self {
            stx_mask: StatxFlags::BASIC_STATS.bits(),
            stx_attributes: StatxAttributes(mount_root),
            stx_mode: stat.st_mode as u16,
            stx_uid: stat.st_uid,
            stx_gid: stat.st_gid,
            stx_ino: stat.st_ino as u64,
            stx_size: u64::try_from(stat.st_size).unwrap_or(0),
            stx_mtime: StatxTimestamp {
                tv_sec: stat.st_mtime as i64,
                tv_nsec: modified_ns(stat),
            },
            stx_dev_major,
            stx_dev_minor,
            stx_rdev_major,
            stx_rdev_minor,
            stx_mnt_id: 0,
        }
    }
}

/// The nanoseconds of the last change.
fn modified_ns(stat: &Stat) -> u32 {
    u32::try_from(stat.st_mtime_nsec).unwrap_or(0)
}

/// Reads what is known of a file.
///
/// # Errors
/// The system's.
pub fn statx(
    directory: impl AsFd,
    path: impl Arg,
    flags: AtFlags,
    _mask: StatxFlags,
) -> Result<Statx, Errno> {
    Ok(Statx::of(&statat(directory, path, flags)?, false))
}

/// Reads what is known of an open file. Only here is told whether a directory is where a file
/// system is mounted.
///
/// # Errors
/// The system's.
pub fn statx_open(fd: impl AsFd, _mask: StatxFlags) -> Result<Statx, Errno> {
    let own = fstat(&fd)?;
    let mut mount_root = false;
    if FileType::from_raw_mode(own.st_mode) == FileType::Directory {
        // Above a mount point lies another device; above `/` it lies itself.
        let above = statat(&fd, c"..", AtFlags::empty())?;
        mount_root = above.st_dev != own.st_dev || above.st_ino == own.st_ino;
    }
    Ok(Statx::of(&own, mount_root))
}

/// The entries of a directory, one by one.
pub struct RawDir<'a, Fd> {
    entries: Result<Dir, Errno>,
    directory: PhantomData<&'a Fd>,
}

impl<'a, Fd: AsFd> RawDir<'a, Fd> {
    /// Reads the directory from the first entry on. The room is Linux's: this system's library has its own.
    pub fn new(fd: Fd, _room: &'a mut [MaybeUninit<u8>]) -> Self {
        Self {
            entries: Dir::read_from(fd),
            directory: PhantomData,
        }
    }

    /// The next one; `None` after the last.
    #[expect(
        clippy::should_implement_trait,
        reason = "as on Linux, where the entry borrows the room"
    )]
    pub fn next(&mut self) -> Option<Result<RawEntry, Errno>> {
        match &mut self.entries {
            Ok(entries) => entries.next().map(|entry| entry.map(RawEntry)),
            Err(errno) => Some(Err(*errno)),
        }
    }
}

/// One entry of a directory.
pub struct RawEntry(DirEntry);

impl RawEntry {
    /// Its name in that directory.
    pub fn file_name(&self) -> &CStr {
        self.0.file_name()
    }

    /// Its kind, unless the system does not tell.
    pub fn file_type(&self) -> FileType {
        #[cfg(not(target_os = "illumos"))]
        return self.0.file_type();
        #[cfg(target_os = "illumos")]
        FileType::Unknown
    }
}

#[cfg(not(any(target_vendor = "apple")))]
pub use rustix::fs::fdatasync;

/// Makes what was written to a file durable, as far as this system's `fsync` does.
///
/// # Errors
/// The system's.
#[cfg(target_vendor = "apple")]
pub fn fdatasync(fd: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fsync(fd)
}

#[cfg(target_os = "freebsd")]
pub use rustix::fs::{Advice, fadvise};

/// The use of a file that a program announces.
#[cfg(not(target_os = "freebsd"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Reads one byte after the other.
    Sequential,
    /// Reads in no order.
    Random,
    /// Needs nothing for now.
    DontNeed,
}

/// Refuses: rustix has no such call for this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "freebsd"))]
pub fn fadvise(
    _fd: impl AsFd,
    _offset: u64,
    _length: Option<std::num::NonZeroU64>,
    _advice: Advice,
) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

#[cfg(not(target_os = "netbsd"))]
pub use rustix::fs::{FallocateFlags, fallocate};

/// Options of reserving blocks.
#[cfg(target_os = "netbsd")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FallocateFlags;

#[cfg(target_os = "netbsd")]
impl FallocateFlags {
    /// The usual way: the file grows with them.
    pub const fn empty() -> Self {
        Self
    }
}

/// Refuses: rustix has no such call for this system.
///
/// # Errors
/// Always.
#[cfg(target_os = "netbsd")]
pub fn fallocate(
    _fd: impl AsFd,
    _flags: FallocateFlags,
    _offset: u64,
    _length: u64,
) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: no call of this system flushes one file system and waits until that is done. What
/// flushes all of them (`sync`) may return before it is.
///
/// # Errors
/// Always.
pub fn syncfs(_fd: impl AsFd) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: the call is Linux's.
///
/// # Errors
/// Always.
pub fn copy_file_range(
    _from: impl AsFd,
    _from_offset: Option<&mut u64>,
    _to: impl AsFd,
    _to_offset: Option<&mut u64>,
    _bytes: usize,
) -> Result<usize, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: the call is Linux's.
///
/// # Errors
/// Always.
pub fn ioctl_ficlone(_to: impl AsFd, _from: impl AsFd) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: whether a read would wait can be asked on Linux alone.
pub fn read_without_waiting(
    _file: &OwnedFd,
    _buffer: &mut [u8],
    _offset: u64,
) -> Result<usize, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Does nothing: this system has no slack that a thread could set.
pub fn wake_precisely() {}

/// Refuses: threads of this system share one table.
///
/// # Safety
/// Nothing to keep: it does nothing.
pub unsafe fn unshare_descriptors() -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: no file system of this system tells.
///
/// # Safety
/// Nothing to keep: it does nothing.
pub unsafe fn map_extents<M>(_fd: &OwnedFd, _map: *mut M) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: a process that is held is Linux's.
///
/// # Errors
/// Always.
pub fn hold_process(_pid: Pid) -> Result<OwnedFd, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: a process that is held is Linux's.
///
/// # Errors
/// Always.
pub fn signal_held(_process: &OwnedFd, _signal: Signal) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: here a user is that of the whole process, not of a thread.
///
/// # Errors
/// Always.
pub fn work_as(_user: Uid, _group: Gid) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Memory of this machine: 0, which means that the system does not say.
pub fn memory_bytes() -> u64 {
    0
}

/// Refuses: only Linux is known to make holes in what is there.
///
/// # Errors
/// Always.
pub fn punch_hole(_file: impl AsFd, _offset: u64, _bytes: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: no thread of this system has a host name of its own.
///
/// # Errors
/// Always.
pub fn take_host_name(_name: &str) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: no thread of this system has a network of its own.
///
/// # Errors
/// Always.
pub fn enter_network(_namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: the call is Linux's.
///
/// # Errors
/// Always.
pub fn give_up_on_server(_mount_point: &Path) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: how much a pipe holds is the system's business here.
///
/// # Errors
/// Always.
pub fn widen_pipe(_pipe: impl AsFd, _bytes: usize) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Asks about a file.
///
/// # Errors
/// The system's.
pub fn statx_cached(path: &Path) -> Result<Statx, Errno> {
    statx(rustix::fs::CWD, path, AtFlags::empty(), StatxFlags::TYPE)
}

/// The number of the file system that holds an open file: 0, for those of Linux mean nothing here.
///
/// # Errors
/// Never.
pub fn file_system_kind(_fd: impl AsFd) -> Result<u32, Errno> {
    Ok(0)
}

/// Refuses: only the lab needs it, which is Linux's.
///
/// # Errors
/// Always.
pub fn make_pipe(_path: &Path) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refuses: only the lab needs it, which is Linux's.
///
/// # Errors
/// Always.
pub fn memory_file(_name: &str) -> Result<OwnedFd, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Not told: other systems have other calls for it, or none.
pub fn allowed_processors() -> Option<Vec<usize>> {
    None
}

/// Refused, as [`allowed_processors`] tells of none.
///
/// # Errors
/// Always.
pub fn keep_to_processors(_numbers: &[usize]) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// None: rights apart from those of root are Linux's.
pub fn rights() -> u64 {
    0
}

/// Refused: letters of lsattr(1) are Linux's.
///
/// # Errors
/// Always.
pub fn file_attributes(_fd: impl AsFd) -> Result<String, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Refused: other systems have other calls, and none of the attributes that are asked for.
///
/// # Errors
/// Always.
pub fn extended_attribute(
    _path: &Path,
    _name: &str,
    _into: &mut [u8],
) -> Result<Option<usize>, Errno> {
    Err(Errno::OPNOTSUPP)
}

#[cfg(not(target_os = "illumos"))]
pub use libc::wait4;

/// Refuses, as the C library would: illumos waits without telling what the child took.
///
/// # Safety
/// Nothing to keep: it does nothing but set `errno`.
#[cfg(target_os = "illumos")]
pub unsafe fn wait4(
    _pid: libc::pid_t,
    _status: *mut libc::c_int,
    _options: libc::c_int,
    _usage: *mut libc::rusage,
) -> libc::pid_t {
    // SAFETY: the place of this thread's `errno` is valid for as long as the thread lives.
    unsafe { *libc::___errno() = libc::ENOSYS };
    -1
}
