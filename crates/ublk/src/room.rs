//! The room that the contents of several devices share: memory first, then a file of the host.

use super::device::PAGE;
use rustix::mm::{MapFlags, ProtFlags};
use stackrace_system::mapping::Mapping;
use std::fs::File;
use std::io::{Error, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The content of a page that holds nothing.
pub(super) const ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];

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

/// A page of the host's file; who has it is the only one here to read and write it. The host may do
/// so, too: see [`Mapping`].
#[derive(Debug)]
pub(super) struct HostPage {
    piece: Arc<Mapping>,
    /// First byte of the page in it.
    at: usize,
}

impl HostPage {
    /// The mapping it lies in, and its first byte there.
    pub(super) fn place(&self) -> (&Mapping, usize) {
        (&self.piece, self.at)
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
    pieces: Vec<Arc<Mapping>>,
    given_back: Vec<HostPage>,
}

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

    /// Maps the piece that begins at byte `from`.
    fn map(&self, from: usize) -> Result<Arc<Mapping>> {
        let (protection, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        let bytes = PIECE.min(self.bytes - from);
        let piece = Mapping::of_file(&self.file, from as u64, bytes, protection, shared)?;
        Ok(Arc::new(piece))
    }

    fn take(&self) -> Option<HostPage> {
        let mut free = self.lock();
        if let Some(page) = free.given_back.pop() {
            page.piece.write(page.at, &ZEROS);
            return Some(page);
        }
        // A page that was never taken is a hole of the file: zeros.
        let (from, next) = (free.taken, free.taken + PAGE as usize);
        if next > self.bytes {
            return None;
        }
        if from / PIECE == free.pieces.len() {
            let piece = self.map(from).ok()?;
            free.pieces.push(piece);
        }
        free.taken = next;
        let piece = Arc::clone(&free.pieces[from / PIECE]);
        let at = from % PIECE;
        Some(HostPage { piece, at })
    }

    fn give_back(&self, page: HostPage) {
        self.lock().given_back.push(page);
    }
}
