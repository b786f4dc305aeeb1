//! A tree as a tar archive, for [`super::extract_tar`] to unpack. Not measured.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use tar::{Builder, EntryType, Header};

use super::build::Fill;
use super::entry::{EntryKind, TreeEntry, check};
use crate::content::{FileContent, UNIT};
use crate::control::Control;
use crate::outcome::{Op, OpError, PhaseEnd};
use crate::worker_pool::{errno_of, fault};

/// Bytes written to the archive at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Modification time of the first entry, seconds since 1970 (1 January 2010); each further one is a
/// second younger, so that an extraction that forgot the times is found out.
const FIRST_MODIFIED_S: u64 = 1_262_304_000;

/// Writes a tree to a new tar archive (GNU headers) at `to`, entries in their order, owned by the
/// user who asks. The content of each file is that which [`super::build()`] gives it.
///
/// # Errors
/// The list makes no sense, `to` exists, or the system refuses. What was written stays.
pub fn archive(
    entries: &[TreeEntry],
    to: &Path,
    fill: &Fill,
    seed: u64,
    control: &Control,
) -> Result<PhaseEnd, OpError> {
    check(entries, to)?;
    let mut contents = fill.sources(seed, to)?;
    let failed = |op| move |error: io::Error| fault(op, to, errno_of(&error));
    let file = File::create_new(to).map_err(failed(Op::Create))?;
    let mut builder = Builder::new(BufWriter::with_capacity(BUFFER_BYTES, file));
    for (number, entry) in entries.iter().enumerate() {
        let content = &mut contents[fill.place(number)];
        let put = put(&mut builder, entry, number as u64, content, control);
        match put {
            // The content ended early because the caller asked to stop.
            Err(_) if control.stopped() => return Ok(PhaseEnd::Stopped),
            put => put.map_err(failed(Op::Write))?,
        }
        control.ops.fetch_add(1, Ordering::Relaxed);
    }
    let flushed = builder.into_inner().and_then(|mut file| file.flush());
    flushed.map_err(failed(Op::Write))?;
    Ok(PhaseEnd::Complete)
}

fn put(
    builder: &mut Builder<impl Write>,
    entry: &TreeEntry,
    number: u64,
    content: &mut FileContent,
    control: &Control,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_mtime(FIRST_MODIFIED_S + number);
    header.set_uid(rustix::process::geteuid().as_raw().into());
    header.set_gid(rustix::process::getegid().as_raw().into());
    match &entry.kind {
        EntryKind::Directory => {
            header.set_entry_type(EntryType::Directory);
            header.set_size(0);
            let mut name = entry.path.clone().into_os_string();
            name.push("/");
            builder.append_data(&mut header, name, io::empty())
        }
        EntryKind::Symlink { target } => {
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            builder.append_link(&mut header, &entry.path, target)
        }
        EntryKind::File { bytes } => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(*bytes);
            let reader = Filling {
                content,
                control,
                number,
                left: *bytes,
                offset: 0,
                room: Vec::with_capacity(UNIT),
                given: 0,
            };
            builder.append_data(&mut header, &entry.path, reader)
        }
    }
}

/// The content of one file as something to read.
struct Filling<'a> {
    content: &'a mut FileContent,
    control: &'a Control,
    number: u64,
    /// Bytes of the file not yet in `room`.
    left: u64,
    offset: u64,
    room: Vec<u8>,
    given: usize,
}

impl Read for Filling<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.room.len() && self.left > 0 {
            if self.control.stopped() {
                return Err(Errno::CANCELED.into());
            }
            let bytes = usize::try_from(self.left).unwrap_or(usize::MAX).min(UNIT);
            let piece = self.content.piece(self.number, self.offset, bytes);
            self.room.clear();
            self.room.extend_from_slice(piece);
            self.given = 0;
            self.left -= self.room.len() as u64;
            self.offset += self.room.len() as u64;
            self.control
                .bytes
                .fetch_add(self.room.len() as u64, Ordering::Relaxed);
        }
        let bytes = into.len().min(self.room.len() - self.given);
        into[..bytes].copy_from_slice(&self.room[self.given..self.given + bytes]);
        self.given += bytes;
        Ok(bytes)
    }
}
