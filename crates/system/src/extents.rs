//! Which parts of a file are stored, and how: holes, extents that were reserved and never written,
//! and compressed ones. The first two are read as zeros without touching a device.
//!
//! Units: bytes.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::map_extents;

/// Asks to write dirty data first, so that what is not allocated yet gets its place.
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents asked for at once.
const EXTENTS: usize = 128;

/// The layout of the bytes of some files on their file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes without an extent.
    pub hole_bytes: u64,
    /// Bytes in extents that were reserved and never written.
    pub unwritten_bytes: u64,
    /// Bytes in extents that are compressed or encrypted.
    pub encoded_bytes: u64,
}

impl Stored {
    /// Adds what was found of other files.
    pub fn add(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.hole_bytes += more.hole_bytes;
        self.unwritten_bytes += more.unwritten_bytes;
        self.encoded_bytes += more.encoded_bytes;
    }
}

/// `struct fiemap_extent` of `linux/fiemap.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of `linux/fiemap.h`, with room for extents.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

/// Reads how a file is stored.
///
/// # Errors
/// It cannot be opened, or its file system does not tell (`EOPNOTSUPP`: tmpfs, NFS, ZFS).
pub fn of_file(path: &Path) -> Result<Stored, Errno> {
    // NONBLOCK: opening a pipe must not hang.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = openat(CWD, path, flags, Mode::empty())?;
    let about = fstat(&fd)?;
    let bytes = u64::try_from(about.st_size).unwrap_or(0);
    stored(&fd, bytes)
}

/// Counts the pieces in which a file lies on its device: extents that follow each other are one.
///
/// # Errors
/// As [`of_file`].
pub fn pieces_of(path: &Path) -> Result<u64, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = openat(CWD, path, flags, Mode::empty())?;
    let (mut start, mut pieces, mut end) = (0, 0, None);
    loop {
        let (extents, count) = extents(&fd, start, u64::MAX - start)?;
        for extent in &extents[..count] {
            pieces += u64::from(end != Some((extent.logical, extent.physical)));
            end = Some((
                extent.logical.saturating_add(extent.length),
                extent.physical.saturating_add(extent.length),
            ));
        }
        let last = extents[..count].last();
        match last.filter(|last| last.flags & EXTENT_LAST == 0) {
            Some(last) => start = last.logical.saturating_add(last.length.max(1)),
            None => return Ok(pieces),
        }
    }
}

fn stored(fd: &OwnedFd, bytes: u64) -> Result<Stored, Errno> {
    let mut found = Stored {
        bytes,
        ..Stored::default()
    };
    let (mut start, mut mapped) = (0, 0);
    while start < bytes {
        let (extents, count) = extents(fd, start, bytes - start)?;
        let Some(last) = extents[..count].last() else {
            break;
        };
        for extent in &extents[..count] {
            // The last one may reach beyond the end of the file, in whole blocks.
            let end = extent.logical.saturating_add(extent.length).min(bytes);
            let length = end.saturating_sub(extent.logical.max(start));
            mapped += length;
            if extent.flags & EXTENT_UNWRITTEN != 0 {
                found.unwritten_bytes += length;
            } else if extent.flags & EXTENT_ENCODED != 0 {
                found.encoded_bytes += length;
            }
        }
        let next = last.logical.saturating_add(last.length);
        if last.flags & EXTENT_LAST != 0 || next <= start {
            break;
        }
        start = next;
    }
    found.hole_bytes = bytes.saturating_sub(mapped);
    Ok(found)
}

/// The extents from a place on, and how many of them the kernel filled in.
fn extents(fd: &OwnedFd, start: u64, length: u64) -> Result<([Extent; EXTENTS], usize), Errno> {
    let mut map = Map {
        start,
        length,
        flags: FLAG_SYNC,
        mapped_extents: 0,
        extent_count: EXTENTS as u32,
        reserved: 0,
        extents: [Extent::default(); EXTENTS],
    };
    // SAFETY: `Map` is laid out as `struct fiemap`, followed by as many extents as `extent_count`
    // says.
    unsafe { map_extents(fd, &raw mut map) }?;
    Ok((map.extents, (map.mapped_extents as usize).min(EXTENTS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, fallocate};
    use std::io::Write;

    #[test]
    fn holes_and_reserved_extents_are_told_from_data() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let named = |name: &str| dir.path().join(name);
        const BYTES: u64 = 1 << 20;
        std::fs::File::create(named("hole"))
            .unwrap()
            .set_len(BYTES)
            .unwrap();
        let reserved = std::fs::File::create(named("reserved")).unwrap();
        let kept = fallocate(&reserved, FallocateFlags::empty(), 0, BYTES).is_ok();
        let mut data = std::fs::File::create(named("data")).unwrap();
        data.write_all(&vec![7; BYTES as usize]).unwrap();
        let files = ["hole", "reserved", "data"].map(|name| of_file(&named(name)));
        let [Ok(hole), Ok(reserved), Ok(data)] = &files else {
            // A file system that does not tell says so of every file.
            assert!(files.iter().all(Result::is_err), "{files:?}");
            return;
        };
        assert_eq!((hole.bytes, hole.hole_bytes), (BYTES, BYTES));
        assert_eq!(reserved.unwritten_bytes, if kept { BYTES } else { 0 });
        assert_eq!((data.hole_bytes, data.unwritten_bytes), (0, 0));
        assert_eq!(pieces_of(&named("hole")).unwrap(), 0);
        assert!(pieces_of(&named("data")).unwrap() >= 1);
        let mut all = Stored::default();
        for file in [hole, reserved, data] {
            all.add(*file);
        }
        let holes = hole.hole_bytes + reserved.hole_bytes;
        assert_eq!((all.bytes, all.hole_bytes), (3 * BYTES, holes));
    }
}
