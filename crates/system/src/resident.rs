//! Which parts of a file are in the page cache.

use std::ffi::{c_int, c_uchar, c_void};
use std::ops::Range;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::Mapping;

/// Bytes mapped at once, a multiple of every page size.
const WINDOW_BYTES: u64 = 1 << 30;

// SAFETY: the signature is that of mincore(2) in the C library: `int mincore(void *, size_t,
// unsigned char *)`.
unsafe extern "C" {
    /// `mincore(2)`, which rustix does not have. One byte per page; bit 0: in memory.
    fn mincore(address: *mut c_void, length: usize, pages: *mut c_uchar) -> c_int;
}

/// Parts of a file of so many bytes that are in memory, in their order; no two touch each other. The last page counts
/// with as many bytes as the file has in it. If the caller neither owns the file nor may write to it, the kernel reports
/// every page as resident (since Linux 5.2).
///
/// # Errors
/// The file cannot be mapped.
pub fn parts(file: impl AsFd, total: u64) -> Result<Vec<Range<u64>>, Errno> {
    let page = rustix::param::page_size() as u64;
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut offset = 0;
    while offset < total {
        let length = WINDOW_BYTES.min(total - offset);
        for (index, state) in (0u64..).zip(pages(&file, offset, length, page as usize)?) {
            let start = offset + index * page;
            if state & 1 == 0 {
                continue;
            }
            let end = (start + page).min(total);
            match found.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => found.push(start..end),
            }
        }
        offset += length;
    }
    Ok(found)
}

/// The state of each page of one window of a file, `length` being at least 1.
fn pages(file: impl AsFd, offset: u64, length: u64, page_bytes: usize) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::FBIG)?;
    let mut pages = vec![0; length.div_ceil(page_bytes)];
    // Never accessed, only asked about.
    let mapped = Mapping::of_file(file, offset, length, ProtFlags::READ, MapFlags::SHARED)?;
    let address = mapped.start().as_ptr().cast();
    // SAFETY: `address` and `length` are the mapping made above, page-aligned by the kernel, and
    // `pages` has one byte for each of its pages, as `mincore` demands.
    match unsafe { mincore(address, length, pages.as_mut_ptr()) } {
        0 => Ok(pages),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
