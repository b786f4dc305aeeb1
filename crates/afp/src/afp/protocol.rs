//! AFP 3 as bytes: requests as they are sent, replies as they are understood.
//!
//! Every number is big-endian. Names are UTF-8; a slash is an ordinary character in them and a
//! colon is not, the other way round than here, so that the two are swapped at this border.

mod fields;
mod reply;

pub use fields::{FileParameters, Space, Unix};
#[cfg(any(test, feature = "testing"))]
pub use reply::check;
pub(super) use reply::{created, described, listed, opened, space, volume, written};

use super::codes::{AfpCommand, ROOT};
use fields::{
    EPOCH, FILE_LENGTH, FINDER, MODIFIED, NAME, OF_DIRECTORY, OF_FILE, SYMBOLIC_LINK, UNIX, UTF8,
    UTF8_NAME, VOLUME_ID, VOLUME_SPACE, swapped,
};

/// The changes to be made to a file or directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParameterChange {
    /// Seconds since 1970.
    pub modified: Option<i64>,
    /// Owner and mode.
    pub unix: Option<Unix>,
    /// The file's content becomes the target of a symbolic link, which it becomes.
    pub link: bool,
}

/// A request that is being put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AfpRequest(Vec<u8>);

impl AfpRequest {
    /// Begins with the command; the second byte is for flags.
    fn new(command: AfpCommand, flags: u8) -> Self {
        Self(vec![command as u8, flags])
    }

    fn u16(mut self, number: u16) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn u32(mut self, number: u32) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn u64(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// A length in one byte, then the text.
    fn short_text(mut self, text: &str) -> Self {
        // The length has one byte.
        let bytes = &text.as_bytes()[..text.len().min(255)];
        self.0.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
        self.0.extend(bytes);
        self
    }

    /// One name in a directory; an empty one is the directory itself.
    fn name(mut self, name: &str) -> Self {
        self.0.push(UTF8_NAME);
        let name = swapped(name);
        let bytes = &name.as_bytes()[..name.len().min(usize::from(u16::MAX))];
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let mut request = self.u32(UTF8).u16(length);
        request.0.extend(bytes);
        request
    }

    /// Pads the request, so that what follows begins at an even place.
    fn even(mut self) -> Self {
        if self.0.len() % 2 == 1 {
            self.0.push(0);
        }
        self
    }

    /// The request as it is sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The place of a file or directory: a directory by its number, and a name in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogPath<'a> {
    /// The directory's number.
    pub directory: u32,
    /// Name in the directory; empty for the directory itself.
    pub name: &'a str,
}

/// Requests of a session.
pub(super) mod session {
    use super::{AfpCommand, AfpRequest, VOLUME_ID, VOLUME_SPACE};

    /// Says that we are a guest.
    pub(in crate::afp) fn login() -> AfpRequest {
        let mut request = AfpRequest(vec![AfpCommand::Login as u8]);
        request = request.short_text("AFP3.4").short_text("No User Authent");
        request
    }

    /// Ends the session with the server.
    pub(in crate::afp) fn logout() -> AfpRequest {
        AfpRequest::new(AfpCommand::Logout, 0)
    }

    /// Begins to use a volume.
    pub(in crate::afp) fn open_volume(name: &str) -> AfpRequest {
        AfpRequest::new(AfpCommand::OpenVol, 0)
            .u16(VOLUME_ID)
            .short_text(name)
    }

    /// Ends the use of a volume.
    pub(in crate::afp) fn close_volume(volume: u16) -> AfpRequest {
        AfpRequest::new(AfpCommand::CloseVol, 0).u16(volume)
    }

    /// Asks for the room on it.
    pub(in crate::afp) fn space(volume: u16) -> AfpRequest {
        AfpRequest::new(AfpCommand::GetVolParms, 0)
            .u16(volume)
            .u16(VOLUME_SPACE)
    }
}

/// Requests about names in a volume.
pub(super) mod catalog {
    use super::{
        AfpCommand, AfpRequest, CatalogPath, EPOCH, FINDER, MODIFIED, NAME, OF_DIRECTORY, OF_FILE,
        ParameterChange, ROOT, SYMBOLIC_LINK, UNIX,
    };

    fn at(command: AfpCommand, volume: u16, at: CatalogPath<'_>) -> AfpRequest {
        AfpRequest::new(command, 0)
            .u16(volume)
            .u32(at.directory)
            .name(at.name)
    }

    /// Asks for the parameters of a file or directory.
    pub(in crate::afp) fn parameters(volume: u16, at: CatalogPath<'_>) -> AfpRequest {
        AfpRequest::new(AfpCommand::GetFileDirParms, 0)
            .u16(volume)
            .u32(at.directory)
            .u16(OF_FILE)
            .u16(OF_DIRECTORY)
            .name(at.name)
    }

    /// Lists so many entries of a directory from one on (the first is 1), in a reply of so many
    /// bytes at most.
    pub(in crate::afp) fn list(
        volume: u16,
        directory: u32,
        first: u32,
        entries: u16,
        bytes: u32,
    ) -> AfpRequest {
        AfpRequest::new(AfpCommand::EnumerateExt2, 0)
            .u16(volume)
            .u32(directory)
            .u16(OF_FILE | NAME)
            .u16(OF_DIRECTORY | NAME)
            .u16(entries)
            .u32(first)
            .u32(bytes)
            .name("")
    }

    /// Makes an empty file; one that is there is left alone.
    pub(in crate::afp) fn create_file(volume: u16, file: CatalogPath<'_>) -> AfpRequest {
        at(AfpCommand::CreateFile, volume, file)
    }

    /// Makes an empty directory; one that is there is an error.
    pub(in crate::afp) fn create_directory(volume: u16, directory: CatalogPath<'_>) -> AfpRequest {
        at(AfpCommand::CreateDir, volume, directory)
    }

    /// Removes a file or an empty directory.
    pub(in crate::afp) fn delete(volume: u16, what: CatalogPath<'_>) -> AfpRequest {
        at(AfpCommand::Delete, volume, what)
    }

    /// Gives a file or directory another directory and name.
    pub(in crate::afp) fn rename(
        volume: u16,
        from: CatalogPath<'_>,
        to: CatalogPath<'_>,
    ) -> AfpRequest {
        AfpRequest::new(AfpCommand::MoveAndRename, 0)
            .u16(volume)
            .u32(from.directory)
            .u32(to.directory)
            .name(from.name)
            .name("")
            .name(to.name)
    }

    /// Sets what is given.
    pub(in crate::afp) fn set(
        volume: u16,
        what: CatalogPath<'_>,
        change: ParameterChange,
    ) -> AfpRequest {
        let mut bits = 0;
        bits |= change.modified.map_or(0, |_| MODIFIED);
        bits |= change.unix.map_or(0, |_| UNIX);
        bits |= if change.link { FINDER } else { 0 };
        let mut request = AfpRequest::new(AfpCommand::SetFileDirParms, 0)
            .u16(volume)
            .u32(what.directory)
            .u16(bits)
            .name(what.name)
            .even();
        if let Some(seconds) = change.modified {
            // Before 1931 and after 2068 there is no time in AFP.
            let range = i64::from(i32::MIN + 1)..=i64::from(i32::MAX);
            let since = (seconds - EPOCH).clamp(*range.start(), *range.end());
            let since = i32::try_from(since).unwrap_or(i32::MAX);
            request = request.u32(since.cast_unsigned());
        }
        if change.link {
            let mut finder = [0; 32];
            // Mac OS marks a symbolic link by Finder type and creator.
            finder[..8].copy_from_slice(SYMBOLIC_LINK);
            request.0.extend(finder);
        }
        if let Some(unix) = change.unix {
            // The last number is what we may do; the server works that out.
            request = request.u32(unix.uid).u32(unix.gid).u32(unix.mode).u32(0);
        }
        request
    }

    /// Makes all of a volume last: what syncing its root means.
    pub(in crate::afp) fn sync_all(volume: u16) -> AfpRequest {
        AfpRequest::new(AfpCommand::SyncDir, 0)
            .u16(volume)
            .u32(ROOT)
    }
}

/// Requests about open files.
pub(super) mod fork {
    use super::{AfpCommand, AfpRequest, CatalogPath, FILE_LENGTH, OF_FILE};

    /// Opens a file's data, to read, or to read and write.
    pub(in crate::afp) fn open(volume: u16, file: CatalogPath<'_>, write: bool) -> AfpRequest {
        AfpRequest::new(AfpCommand::OpenFork, 0)
            .u16(volume)
            .u32(file.directory)
            .u16(OF_FILE)
            .u16(if write { 3 } else { 1 })
            .name(file.name)
    }

    /// Reads bytes of an open file from an offset on.
    pub(in crate::afp) fn read(fork: u16, offset: u64, bytes: u64) -> AfpRequest {
        AfpRequest::new(AfpCommand::ReadExt, 0)
            .u16(fork)
            .u64(offset)
            .u64(bytes)
    }

    /// Writes; the data follow.
    pub(in crate::afp) fn write(fork: u16, offset: u64, bytes: u64) -> AfpRequest {
        AfpRequest::new(AfpCommand::WriteExt, 0)
            .u16(fork)
            .u64(offset)
            .u64(bytes)
    }

    /// Sets the length of an open file, bytes.
    pub(in crate::afp) fn truncate(fork: u16, length: u64) -> AfpRequest {
        AfpRequest::new(AfpCommand::SetForkParms, 0)
            .u16(fork)
            .u16(FILE_LENGTH)
            .u64(length)
    }

    /// Asks the server to put an open file on stable storage.
    pub(in crate::afp) fn sync(fork: u16) -> AfpRequest {
        AfpRequest::new(AfpCommand::SyncFork, 0).u16(fork)
    }

    /// Closes an open file or fork.
    pub(in crate::afp) fn close(fork: u16) -> AfpRequest {
        AfpRequest::new(AfpCommand::CloseFork, 0).u16(fork)
    }
}

#[cfg(test)]
mod tests;
