//! Block devices before they are written over: fixed by number, who uses them, what they hold.
//!
//! A link may lead elsewhere a moment later, so it is followed once ([`fix`]). What counts from then
//! on is the number of the device, and a descriptor keeps that number from being given to another
//! device. Whether a device holds data is found out by reading it ([`content`]): a list of known
//! signatures is never complete.

use super::identity::backing_path;
use super::{HostError, reading};
use rand_core::{Rng, SeedableRng};
use rustix::fs::{Mode, OFlags};
use stackrace_base::unit::ShownPath;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A block device by its numbers, which no link can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceNumber {
    /// Number of the driver, the first half of a device number.
    pub major: u32,
    /// Number of the device among those of that driver.
    pub minor: u32,
    /// Grows with every device, and every medium, that the kernel sees; none before Linux 5.16.
    pub sequence: Option<u64>,
}

/// A block device that was found once, and is held.
#[derive(Debug, Clone)]
pub struct FixedDevice {
    /// The kernel's own path: `/dev/sdb`.
    pub node: PathBuf,
    /// Its numbers; `None` if the host only imagines, or is far.
    pub number: Option<DeviceNumber>,
    /// While this is open, the kernel gives the path to no other device.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "an open file holds by being there")
    )]
    hold: Option<Arc<File>>,
}

impl PartialEq for FixedDevice {
    fn eq(&self, other: &Self) -> bool {
        (&self.node, self.number) == (&other.node, other.number)
    }
}

impl Eq for FixedDevice {}

impl FixedDevice {
    /// A device that is known by its path alone.
    pub fn by_path(node: PathBuf) -> Self {
        Self {
            node,
            number: None,
            hold: None,
        }
    }

    /// A device that this process holds open.
    #[cfg(test)]
    fn is_held(&self) -> bool {
        self.hold.is_some()
    }
}

/// Content of a device, as far as reading samples of it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceContent {
    /// Zeros, or ones as erased flash has them.
    Blank,
    /// Content that this program left there, and that no one has written over since.
    Left,
    /// Other content; it begins at or before this byte.
    Data {
        /// Offset of the first sample that is not blank.
        at: u64,
    },
}

/// Length of what is read without a gap at either end of a device, bytes.
const ENDS_BYTES: u64 = 4 << 20;

/// Distance from sample to sample over the first [`STEPS`] of them, bytes.
const STEP_BYTES: u64 = 1 << 20;

/// Number of samples that are a step apart, and of those spread evenly over the whole device. A
/// hard disk needs about 8 ms for each.
const STEPS: u64 = 1024;

/// Number of samples at random places; the same ones each time, so that what was left there can be
/// compared.
const DRAWN: u64 = 512;

/// Bytes of a sample, and what it is aligned to: the largest sector of a disk.
const SAMPLE_BYTES: u64 = 4096;

/// Bytes that are read at once at the ends.
const CHUNK_BYTES: u64 = 256 << 10;

/// Begins the first sector of a device that was given back by this program.
const LEFT: &str = "stackrace used this device and left it: nothing on it is needed.\nsamples ";

/// Finds the device at a path, links followed once.
///
/// # Errors
/// When it is no block device, or the kernel's own path of it is not there.
pub(super) fn fix(path: &Path) -> Result<FixedDevice, HostError> {
    let failed = |error: std::io::Error| HostError::path("open", path, error);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file: File = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| failed(error.into()))?
        .into();
    let number = number(&file).map_err(failed)?;
    let node = node(number)?;
    // The path is used by tools from now on: it must be the device that is held.
    let there = node
        .metadata()
        .map_err(|error| HostError::path("find", &node, error))?;
    if !there.file_type().is_block_device() || there.rdev() != device_id(number) {
        let other = std::io::Error::other("it is not the device with the kernel's number");
        return Err(HostError::path("find", &node, other));
    }
    Ok(FixedDevice {
        node,
        number: Some(number),
        hold: Some(Arc::new(file)),
    })
}

fn device_id(number: DeviceNumber) -> u64 {
    stackrace_system::device_number(number.major, number.minor)
}

pub(super) fn number(file: &File) -> std::io::Result<DeviceNumber> {
    let about = file.metadata()?;
    if !about.file_type().is_block_device() {
        return Err(std::io::Error::other("it is no block device"));
    }
    let (major, minor) = stackrace_system::device_parts(about.rdev());
    let sequence = reading::text(&by_number(major, minor).join("diskseq"));
    Ok(DeviceNumber {
        major,
        minor,
        // Kernels before 5.15 have none; then major and minor number have to do.
        sequence: sequence.ok().and_then(|text| text.trim().parse().ok()),
    })
}

fn by_number(major: u32, minor: u32) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// The path that the kernel itself gives a device.
fn node(number: DeviceNumber) -> Result<PathBuf, HostError> {
    let file = by_number(number.major, number.minor).join("uevent");
    let told = reading::text(&file)?;
    let name = told.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map(|name| Path::new("/dev").join(name))
        .ok_or_else(|| HostError::path("find the name in", &file, std::io::ErrorKind::NotFound))
}

/// Users of a device or one of its partitions that `/sys/…/holders` does not show: loop devices on
/// it, servers of the kernel, processes that have it open, and the holder of the kernel's exclusive
/// right.
pub(super) fn users(device: &FixedDevice) -> Vec<String> {
    let Some(number) = device.number else {
        return vec!["it could not be found out who uses it".to_string()];
    };
    let mut ours = vec![device_id(number)];
    let whole = by_number(number.major, number.minor);
    for part in reading::list(&whole).unwrap_or_default() {
        let part = whole.join(part);
        if part.join("partition").exists() {
            ours.extend(number_in(&part.join("dev")));
        }
    }
    // Partitions count as well: to write over a disk is to write over them.
    let mut users = loops_on(&ours, &whole);
    users.extend(exports_of(&ours, Path::new(CONFIGURED), device_at));
    users.extend(openers_of(&ours));
    if users.is_empty()
        // Mounts, arrays and swap hold a device in the kernel, where no process shows.
        && let Err(error) = exclusively(&device.node, OFlags::RDONLY)
    {
        users.push(error.to_string());
    }
    users
}

/// `8:16` in a file of the kernel.
fn number_in(file: &Path) -> Option<u64> {
    let text = reading::text(file).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(stackrace_system::device_number(
        major.parse().ok()?,
        minor.parse().ok()?,
    ))
}

/// Loop devices that lie on one of these devices, or on the same file as the loop device that is
/// looked at: a file system in them has no other mark in `/sys`.
fn loops_on(ours: &[u64], whole: &Path) -> Vec<String> {
    let same_file = reading::text(&whole.join("loop/backing_file")).ok();
    let own_name = whole.canonicalize().unwrap_or_default();
    let mut found = Vec::new();
    for name in reading::list(Path::new("/sys/block")).unwrap_or_default() {
        let about = Path::new("/sys/block").join(&name);
        let Ok(backing) = reading::text(&about.join("loop/backing_file")) else {
            continue;
        };
        let is_itself = about.canonicalize().is_ok_and(|path| path == own_name);
        let on_device = device_at(Path::new(backing_path(&backing)))
            .is_some_and(|number| ours.contains(&number));
        // Two loop devices on one file share its bytes without knowing of each other.
        if on_device || (!is_itself && same_file.as_ref() == Some(&backing)) {
            let offset = reading::text(&about.join("loop/offset")).unwrap_or_default();
            found.push(format!(
                "{} lies on it, from byte {}",
                name.to_string_lossy(),
                offset.trim()
            ));
        }
    }
    found
}

/// The number of the block device at a path.
fn device_at(path: &Path) -> Option<u64> {
    let about = path.metadata().ok()?;
    about.file_type().is_block_device().then(|| about.rdev())
}

/// Directory in which the kernel shows what it was configured to do.
const CONFIGURED: &str = "/sys/kernel/config";

/// Directories in which the kernel's own servers of disks (LIO, NVMe) keep what they serve, below
/// [`CONFIGURED`].
const EXPORTS: [(&str, &[&str], &str); 2] = [
    ("target/core", &["", ""], "udev_path"),
    ("nvmet/subsystems", &["", "namespaces", ""], "device_path"),
];

/// Servers of the kernel that serve one of these devices: they hold it open without a process.
fn exports_of(
    ours: &[u64],
    configured: &Path,
    number_at: impl Fn(&Path) -> Option<u64>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (top, levels, file) in EXPORTS {
        let mut directories = vec![configured.join(top)];
        for level in levels {
            directories = directories
                .iter()
                .flat_map(|directory| match level.is_empty() {
                    true => reading::list(directory)
                        .unwrap_or_default()
                        .into_iter()
                        .map(|name| directory.join(name))
                        .collect(),
                    false => vec![directory.join(level)],
                })
                .collect();
        }
        for directory in directories {
            let served = reading::text(&directory.join(file)).unwrap_or_default();
            if number_at(Path::new(served.trim())).is_some_and(|number| ours.contains(&number)) {
                found.push(format!("it is served as {}", directory.shown()));
            }
        }
    }
    found
}

/// Other processes that have one of these devices open.
fn openers_of(ours: &[u64]) -> Vec<String> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for process in reading::list(Path::new("/proc")).unwrap_or_default() {
        let digits = process.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        // We hold the device open ourselves.
        if !digits || process == *own {
            continue;
        }
        let about = Path::new("/proc").join(&process);
        let open = reading::list(&about.join("fd")).unwrap_or_default();
        let opened = open.iter().any(|number| {
            let link = about.join("fd").join(number);
            opened_device(&link).is_some_and(|number| ours.contains(&number))
        });
        if opened {
            let name = reading::text(&about.join("comm")).unwrap_or_default();
            found.push(format!(
                "{} (process {}) has it open",
                name.trim(),
                process.to_string_lossy()
            ));
        }
    }
    found
}

/// The number of the block device that a descriptor of a process leads to.
fn opened_device(link: &Path) -> Option<u64> {
    // A server of files that does not answer must not hold us up: the kernel's own knowledge is
    // enough for a device.
    let about = stackrace_system::statx_cached(link).ok()?;
    let kind = stackrace_system::kind_of(about.stx_mode.into());
    kind.is_block_device()
        .then(|| stackrace_system::device_number(about.stx_rdev_major, about.stx_rdev_minor))
}

/// Opens a block device with the kernel's exclusive right, which a mount, an array, a pool or the
/// like has while it stands.
pub(super) fn exclusively(node: &Path, access: OFlags) -> Result<File, HostError> {
    // Without O_CREAT, O_EXCL is defined for block devices alone (open(2)).
    let flags = access | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(node, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| HostError::path("open with exclusive right", node, error))
}

/// Reads samples of a device from its start to its end.
///
/// # Errors
/// When a sample cannot be read: what cannot be read cannot be called blank.
pub(super) fn content(device: &FixedDevice) -> Result<DeviceContent, HostError> {
    let failed = |error: std::io::Error| HostError::path("read samples of", &device.node, error);
    let file = uncached(&device.node).map_err(failed)?;
    let mut samples = Samples::of(&file).map_err(failed)?;
    let first = samples.read(0, SAMPLE_BYTES).map_err(failed)?.to_vec();
    let told = digest_in(&first);
    if told.is_none() && !is_blank(&first) {
        return Ok(DeviceContent::Data { at: 0 });
    }
    let mut hash = blake3::Hasher::new();
    let mut written = None;
    for (at, bytes) in samples.places() {
        let sample = samples.read(at, bytes).map_err(failed)?;
        hash.update(sample);
        // Read to the end even so: the digest of a device that we left covers all samples.
        written = written.or_else(|| (!is_blank(sample)).then_some(at));
        if let (None, Some(at)) = (&told, written) {
            return Ok(DeviceContent::Data { at });
        }
    }
    Ok(match (told, written) {
        (None, _) => DeviceContent::Blank,
        (Some(told), _) if told == hash.finalize().to_hex().as_str() => DeviceContent::Left,
        (Some(_), at) => DeviceContent::Data {
            at: at.unwrap_or_default(),
        },
    })
}

/// Writes into the first sector of a device that nothing on it is needed, with a digest of its
/// samples: as long as they stay the same, it may be used again.
///
/// # Errors
/// When the device is in use, or cannot be read or written.
pub(super) fn leave(device: &FixedDevice) -> Result<(), HostError> {
    let failed = |error: std::io::Error| HostError::path("give back", &device.node, error);
    // From the check to the write nothing else may take the device.
    let mut file = exclusively(&device.node, OFlags::RDWR)?;
    let read = uncached(&device.node).map_err(failed)?;
    let mut samples = Samples::of(&read).map_err(failed)?;
    let mut hash = blake3::Hasher::new();
    for (at, bytes) in samples.places() {
        hash.update(samples.read(at, bytes).map_err(failed)?);
    }
    let mut sector = format!("{LEFT}{}\n", hash.finalize().to_hex()).into_bytes();
    sector.resize(SAMPLE_BYTES as usize, 0);
    file.write_all(&sector)
        .and_then(|()| file.sync_all())
        .map_err(failed)
}

/// The digest in a first sector that [`leave`] wrote.
fn digest_in(sector: &[u8]) -> Option<String> {
    let rest = sector.strip_prefix(LEFT.as_bytes())?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let blank = rest[end + 1..].iter().all(|byte| *byte == 0);
    blank.then(|| String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// Opens a device so that what is read comes from the device, and nothing stays in memory.
fn uncached(node: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let direct = |direct| rustix::fs::open(node, flags | direct, Mode::empty());
    let opened = match stackrace_system::direct().and_then(direct) {
        // Not every driver can; then the kernel reads ahead.
        Err(rustix::io::Errno::INVAL) => rustix::fs::open(node, flags, Mode::empty()),
        opened => opened,
    };
    Ok(opened?.into())
}

fn is_blank(bytes: &[u8]) -> bool {
    // Erased flash may read as ones.
    bytes.iter().all(|byte| *byte == 0) || bytes.iter().all(|byte| *byte == 0xff)
}

/// Samples of one device.
struct Samples<'a> {
    file: &'a File,
    size: u64,
    buffer: Vec<u8>,
}

impl<'a> Samples<'a> {
    fn of(file: &'a File) -> std::io::Result<Self> {
        let size = rustix::fs::seek(file.as_fd(), rustix::fs::SeekFrom::End(0))?;
        Ok(Self {
            file,
            size,
            // Room to begin at an aligned address, which uncached reading asks for.
            buffer: vec![0; (CHUNK_BYTES + SAMPLE_BYTES) as usize],
        })
    }

    fn places(&self) -> Vec<(u64, u64)> {
        places(self.size)
    }

    /// Reads at most [`CHUNK_BYTES`].
    fn read(&mut self, at: u64, bytes: u64) -> std::io::Result<&[u8]> {
        let bytes = bytes.min(self.size.saturating_sub(at)) as usize;
        let start = self.buffer.as_ptr().align_offset(SAMPLE_BYTES as usize);
        let sample = &mut self.buffer[start..start + bytes];
        self.file.read_exact_at(sample, at)?;
        Ok(sample)
    }
}

/// Places of samples of a device of this size, in order, each with its length; without the first
/// sector.
fn places(size: u64) -> Vec<(u64, u64)> {
    let aligned = |at: u64| at / SAMPLE_BYTES * SAMPLE_BYTES;
    let end = aligned(size.saturating_sub(ENDS_BYTES)).max(SAMPLE_BYTES);
    let chunks = |from: u64, to: u64| {
        let starts = (from..to).step_by(CHUNK_BYTES as usize);
        starts.map(move |at| (at, CHUNK_BYTES.min(to - at)))
    };
    let mut places: Vec<(u64, u64)> = chunks(SAMPLE_BYTES, ENDS_BYTES.min(end)).collect();
    // Seeded by the size: the same device gives the same places, now and in a later run.
    let mut draw = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(size);
    let stepped = (0..STEPS).map(|step| step * STEP_BYTES);
    let spread = (0..STEPS).map(|step| size / STEPS * step);
    let drawn = (0..DRAWN).map(|_| draw.next_u64() % size.max(1));
    let mut single: Vec<u64> = stepped.chain(spread).chain(drawn).map(aligned).collect();
    // The ends are read whole already.
    single.retain(|at| (ENDS_BYTES..end).contains(at));
    single.sort_unstable();
    single.dedup();
    places.extend(single.into_iter().map(|at| (at, SAMPLE_BYTES)));
    places.extend(chunks(end, size));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_cover_both_ends_and_every_mebibyte_of_a_small_device() {
        for size in [4 << 20, 5 << 20, 320 << 20, (1 << 30) + 512] {
            let places = places(size);
            let covered = |at: u64| {
                let within = |(from, bytes): &(u64, u64)| (*from..from + bytes).contains(&at);
                places.iter().any(within)
            };
            assert!(covered(SAMPLE_BYTES) && covered(size - 1), "{size}");
            let all = (1..size >> 20).all(|step| covered(step << 20));
            assert!(all, "{size}");
            let apart = places
                .windows(2)
                .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0);
            assert!(apart, "{size}: no byte is read twice");
            assert!(places.iter().all(|(at, _)| at % SAMPLE_BYTES == 0));
        }
    }

    #[test]
    fn a_large_device_has_a_bounded_number_of_samples() {
        let places = places(16 << 40);
        // 32 at the ends, 1024 a step apart, 1024 spread, 512 drawn; few of them are the same.
        assert!((2500..3000).contains(&places.len()), "{}", places.len());
        let largest = places.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
        assert!(largest <= Some((16 << 40) / STEPS));
    }

    #[test]
    fn what_is_no_block_device_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = fix(file.path()).unwrap_err();
        assert!(error.to_string().contains("no block device"), "{error}");
        assert!(!FixedDevice::by_path(PathBuf::new()).is_held());
    }

    /// The trees as the kernel's documentation of LIO and of its NVMe target describe them.
    #[test]
    fn a_disk_that_the_kernel_serves_is_in_use() {
        let configured = tempfile::tempdir().unwrap();
        for (directory, file) in [
            ("target/core/iblock_0/photos", "udev_path"),
            ("nvmet/subsystems/photos/namespaces/1", "device_path"),
        ] {
            let directory = configured.path().join(directory);
            std::fs::create_dir_all(&directory).unwrap();
            let serves = |path: &str| {
                std::fs::write(directory.join(file), format!("{path}\n")).unwrap();
                let number_at = |path: &Path| (path == Path::new("/dev/sdb")).then_some(16);
                exports_of(&[16], configured.path(), number_at)
            };
            let words = format!("it is served as {}", directory.display());
            assert_eq!(serves("/dev/sdb"), [words]);
            assert_eq!(serves("/dev/sdc"), [""; 0]);
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_called_blank() {
        let no_device = tempfile::tempdir().unwrap();
        let device = FixedDevice::by_path(no_device.path().to_path_buf());
        assert!(content(&device).is_err());
    }

    #[test]
    fn only_a_whole_sector_of_ours_tells_a_digest() {
        let mut sector = format!("{LEFT}abc\n").into_bytes();
        sector.resize(SAMPLE_BYTES as usize, 0);
        assert_eq!(digest_in(&sector).as_deref(), Some("abc"));
        sector[4000] = 1;
        assert_eq!(digest_in(&sector), None);
        assert_eq!(digest_in(&[0; 4096]), None);
    }
}
