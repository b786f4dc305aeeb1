//! The room that the contents of several devices share: memory first, then a file of the host.

use super::device::PAGE;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io::{Error, Result};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The room for the contents of several devices.
#[derive(Debug, Clone)]
pub struct ContentRoom {
    /// Pages of memory that are left.
    memory: Arc<AtomicU64>,
    beyond: Option<Arc<HostPages>>,
}

impl ContentRoom {
    /// Makes room of so many bytes of memory.
    pub fn new(bytes: u64) -> Self {
        Self {
            memory: Arc::new(AtomicU64::new(bytes / PAGE)),
            beyond: None,
        }
    }

    /// And then the memory of a device of the bus, which is a file on the host (`ivshmem`). The file
    /// must hold nothing: it is written over.
    ///
    /// # Errors
    /// The system's; it is shorter than a page.
    pub fn with_host_file(self, path: &Path) -> Result<Self> {
        let beyond = Some(Arc::new(HostPages::open(path)?));
        Ok(Self { beyond, ..self })
    }

    /// Takes a page of memory, if one is left.
    pub(super) fn take(&self) -> bool {
        let less = |pages: u64| pages.checked_sub(1);
        self.memory
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }

    /// Gives a page of memory back.
    pub(super) fn give_back(&self) {
        self.memory.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a page of zeros in the host's file, if there is one.
    pub(super) fn take_on_host(&self) -> Option<HostPage> {
        self.beyond.as_ref()?.take()
    }

    /// Gives a page of the host's file back.
    pub(super) fn give_back_on_host(&self, page: HostPage) {
        if let Some(beyond) = &self.beyond {
            beyond.give_back(page);
        }
    }
}

/// A page of the host's file; who has it is the only one to read and write it.
#[derive(Debug)]
pub(super) struct HostPage(NonNull<u8>);

impl HostPage {
    /// Its first byte; it is mapped for as long as the room it was taken of.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.0
    }
}

/// Bytes of a host's file that are mapped at once. To map the memory of a device, the kernel writes an entry
/// for each page: for all of a large file that takes half a second of a guest.
const PIECE: usize = 16 << 20;

/// A file on the host, page by page.
#[derive(Debug)]
struct HostPages {
    file: File,
    bytes: usize,
    free: Mutex<FreePages>,
}

/// The pages that nothing is kept in.
#[derive(Debug, Default)]
struct FreePages {
    /// Bytes from the beginning that were taken at least once.
    taken: usize,
    /// The mapped pieces, from the beginning.
    pieces: Vec<NonNull<u8>>,
    given_back: Vec<HostPage>,
}

// SAFETY: a mapping belongs to the process, not to a thread; a page is handed out once until it is
// given back, and the list of free ones is locked.
unsafe impl Send for HostPages {}
// SAFETY: as above.
unsafe impl Sync for HostPages {}
// SAFETY: a page is memory of the process, and one value alone refers to it.
unsafe impl Send for HostPage {}

impl HostPages {
    fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if bytes < PAGE as usize {
            return Err(Error::other("there is nothing behind it"));
        }
        let pages = Self {
            file,
            bytes,
            free: Mutex::default(),
        };
        // Where the first piece cannot be mapped, that is said before anything is kept.
        let first = pages.map(0)?;
        pages.lock().pieces.push(first);
        Ok(pages)
    }

    fn lock(&self) -> MutexGuard<'_, FreePages> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the piece that begins at byte `from`.
    fn piece_bytes(&self, from: usize) -> usize {
        PIECE.min(self.bytes - from)
    }

    /// Maps the piece that begins at byte `from`.
    fn map(&self, from: usize) -> Result<NonNull<u8>> {
        // SAFETY: a null hint without FIXED makes the kernel choose an unused range, so no memory
        // in use is replaced.
        let start = unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            let (shared, bytes) = (MapFlags::SHARED, self.piece_bytes(from));
            mmap(
                std::ptr::null_mut(),
                bytes,
                flags,
                shared,
                &self.file,
                from as u64,
            )
        }?;
        let start = NonNull::new(start.cast::<u8>());
        start.ok_or_else(|| Error::other("it was mapped at 0"))
    }

    fn take(&self) -> Option<HostPage> {
        let mut free = self.lock();
        if let Some(page) = free.given_back.pop() {
            // SAFETY: a page lies in the mapping as a whole, and this value alone refers to it.
            unsafe { page.0.as_ptr().write_bytes(0, PAGE as usize) };
            return Some(page);
        }
        // A page that was never taken is a hole of the file: zeros.
        let (at, next) = (free.taken, free.taken + PAGE as usize);
        if next > self.bytes {
            return None;
        }
        if at / PIECE == free.pieces.len() {
            let piece = self.map(at).ok()?;
            free.pieces.push(piece);
        }
        free.taken = next;
        let piece = free.pieces[at / PIECE].as_ptr();
        NonNull::new(piece.wrapping_add(at % PIECE)).map(HostPage)
    }

    fn give_back(&self, page: HostPage) {
        self.lock().given_back.push(page);
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        let pieces = std::mem::take(&mut self.lock().pieces);
        for (number, start) in pieces.into_iter().enumerate() {
            let bytes = self.piece_bytes(number * PIECE);
            // SAFETY: the range was mapped by `map` with this very length. Each content has a clone of
            // the room, so the last one is gone.
            let unmapped = unsafe { munmap(start.as_ptr().cast(), bytes) };
            debug_assert!(unmapped.is_ok());
        }
    }
}
