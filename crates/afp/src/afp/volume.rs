//! One volume of a server, one request at a time.

use super::codes::{self, AfpCommand};
use super::dsi::Session;
use super::error::AfpError;
use super::protocol::{
    self, CatalogPath, FileParameters, ParameterChange, Space, catalog, fork, session,
};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest time for a server to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);

/// Entries asked for at once, and bytes of the reply that lists them.
const ENTRIES: u16 = 1024;
const ENTRIES_BYTES: u32 = 256 << 10;

/// Most entries of one directory: the index of a listing has 32 bits, memory has less.
const ENTRIES_MAX: usize = 10_000_000;

/// A file that is open, by the number the server gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fork(u16);

/// A volume that is in use.
#[derive(Debug)]
pub(super) struct AfpVolume {
    session: Session,
    id: u16,
}

impl AfpVolume {
    /// Lets us in as a guest and begins to use a volume.
    pub(super) fn open(server: SocketAddr, name: &str) -> Result<Self, AfpError> {
        let stream = TcpStream::connect_timeout(&server, CONNECT_PATIENCE)
            .map_err(|error| AfpError::Broken(format!("cannot connect to {server}: {error}")))?;
        let session = Session::open(stream)?;
        session.ask(AfpCommand::Login, session::login().bytes())?;
        let request = session::open_volume(name);
        let id = protocol::volume(&session.ask(AfpCommand::OpenVol, request.bytes())?)?;
        Ok(Self { session, id })
    }

    /// Ends the use and the session.
    pub(super) fn close(&self) {
        // The server drops the session with the connection, so errors do not matter.
        let _ = self
            .session
            .ask(AfpCommand::CloseVol, session::close_volume(self.id).bytes());
        let _ = self
            .session
            .ask(AfpCommand::Logout, session::logout().bytes());
        self.session.close();
    }

    pub(super) fn space(&self) -> Result<Space, AfpError> {
        let request = session::space(self.id);
        protocol::space(&self.session.ask(AfpCommand::GetVolParms, request.bytes())?)
    }

    pub(super) fn parameters(&self, at: CatalogPath<'_>) -> Result<FileParameters, AfpError> {
        let request = catalog::parameters(self.id, at);
        let reply = self
            .session
            .ask(AfpCommand::GetFileDirParms, request.bytes())?;
        protocol::described(&reply)
    }

    /// All entries of a directory.
    pub(super) fn list(&self, directory: u32) -> Result<Vec<FileParameters>, AfpError> {
        let mut entries: Vec<FileParameters> = Vec::new();
        while entries.len() < ENTRIES_MAX {
            // AFP counts entries from 1.
            let first = u32::try_from(entries.len() + 1).unwrap_or(u32::MAX);
            let request = catalog::list(self.id, directory, first, ENTRIES, ENTRIES_BYTES);
            match self.session.ask(AfpCommand::EnumerateExt2, request.bytes()) {
                Ok(reply) => match protocol::listed(&reply)? {
                    // An empty list would otherwise repeat the request for ever.
                    more if more.is_empty() => break,
                    more => entries.extend(more),
                },
                // No entry with that number: the list is complete.
                Err(AfpError::Refused(_, codes::OBJECT_NOT_FOUND)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }

    pub(super) fn create_file(&self, file: CatalogPath<'_>) -> Result<(), AfpError> {
        let request = catalog::create_file(self.id, file);
        self.session.ask(AfpCommand::CreateFile, request.bytes())?;
        Ok(())
    }

    /// Makes a directory, and gives the server's number of it.
    pub(super) fn create_directory(&self, directory: CatalogPath<'_>) -> Result<u32, AfpError> {
        let request = catalog::create_directory(self.id, directory);
        protocol::created(&self.session.ask(AfpCommand::CreateDir, request.bytes())?)
    }

    pub(super) fn delete(&self, what: CatalogPath<'_>) -> Result<(), AfpError> {
        let request = catalog::delete(self.id, what);
        self.session.ask(AfpCommand::Delete, request.bytes())?;
        Ok(())
    }

    /// Fails if the new name exists.
    pub(super) fn rename(
        &self,
        from: CatalogPath<'_>,
        to: CatalogPath<'_>,
    ) -> Result<(), AfpError> {
        let request = catalog::rename(self.id, from, to);
        self.session
            .ask(AfpCommand::MoveAndRename, request.bytes())?;
        Ok(())
    }

    pub(super) fn set(
        &self,
        what: CatalogPath<'_>,
        change: ParameterChange,
    ) -> Result<(), AfpError> {
        let request = catalog::set(self.id, what, change);
        self.session
            .ask(AfpCommand::SetFileDirParms, request.bytes())?;
        Ok(())
    }

    /// Makes everything on the volume last.
    pub(super) fn sync_all(&self) -> Result<(), AfpError> {
        self.session
            .ask(AfpCommand::SyncDir, catalog::sync_all(self.id).bytes())?;
        Ok(())
    }

    pub(super) fn open_fork(
        &self,
        file: CatalogPath<'_>,
        write: bool,
    ) -> Result<(Fork, FileParameters), AfpError> {
        let request = fork::open(self.id, file, write);
        let reply = self.session.ask(AfpCommand::OpenFork, request.bytes())?;
        let (fork, parameters) = protocol::opened(&reply)?;
        Ok((Fork(fork), parameters))
    }

    /// Reads so many bytes from there on; fewer where the file ends.
    pub(super) fn read(&self, fork: Fork, offset: u64, bytes: usize) -> Result<Vec<u8>, AfpError> {
        let mut data = Vec::new();
        while data.len() < bytes {
            // The server may refuse a reply that is larger than its quantum.
            let part = (bytes - data.len()).min(self.session.quantum());
            let request = fork::read(fork.0, offset + data.len() as u64, part as u64);
            let found = self.session.ask(AfpCommand::ReadExt, request.bytes())?;
            if found.is_empty() {
                break;
            }
            // A reply longer than requested would overflow the kernel's buffer.
            if found.len() > part {
                return Err(AfpError::Malformed("more data than were asked for"));
            }
            if data.is_empty() {
                data = found;
            } else {
                data.extend(found);
            }
        }
        Ok(data)
    }

    /// Writes all of the data, in as many requests as it takes.
    pub(super) fn write(&self, fork: Fork, offset: u64, data: &[u8]) -> Result<(), AfpError> {
        let mut at = offset;
        for part in data.chunks(self.session.quantum()) {
            let request = fork::write(fork.0, at, part.len() as u64);
            let reply = self
                .session
                .write(AfpCommand::WriteExt, request.bytes(), part)?;
            at += part.len() as u64;
            // The reply holds the offset after the last byte written.
            if protocol::written(&reply)? != at {
                return Err(AfpError::Malformed("less was written than was sent"));
            }
        }
        Ok(())
    }

    pub(super) fn truncate(&self, fork: Fork, length: u64) -> Result<(), AfpError> {
        let request = fork::truncate(fork.0, length);
        self.session
            .ask(AfpCommand::SetForkParms, request.bytes())?;
        Ok(())
    }

    pub(super) fn sync(&self, fork: Fork) -> Result<(), AfpError> {
        self.session
            .ask(AfpCommand::SyncFork, fork::sync(fork.0).bytes())?;
        Ok(())
    }

    pub(super) fn close_fork(&self, fork: Fork) -> Result<(), AfpError> {
        self.session
            .ask(AfpCommand::CloseFork, fork::close(fork.0).bytes())?;
        Ok(())
    }
}
