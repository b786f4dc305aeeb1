//! Requests, completions, and the interface all models share.

/// Instants and durations of virtual time, nanoseconds.
pub type Nanos = u64;

/// Bytes of the sector that requests are counted in, whatever the drive's physical sector is.
pub const SECTOR: u64 = 512;

/// The operation that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Data from the drive.
    Read,
    /// Data to the drive. `durable`: complete only when on stable storage (FUA, "force unit
    /// access").
    Write {
        /// Set if the write bypasses the volatile cache.
        durable: bool,
    },
    /// Everything completed before is on stable storage when this completes.
    Flush,
    /// The data of these sectors are no longer needed (TRIM, UNMAP).
    Discard,
}

/// One request to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The caller's number; returned with the completion.
    pub id: u64,
    /// Operation that is asked for.
    pub operation: Operation,
    /// First sector of [`SECTOR`] bytes; without meaning for a flush.
    pub first: u64,
    /// Number of sectors of [`SECTOR`] bytes; 0 for a flush.
    pub sectors: u32,
}

/// A request that has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The number of its [`Request`].
    pub id: u64,
    /// Instant of the completion.
    pub at: Nanos,
}

/// A modelled drive.
///
/// Time never goes backwards: `now` of every call is at least that of the call before.
pub trait Drive {
    /// Number of sectors of [`SECTOR`] bytes.
    fn sectors(&self) -> u64;

    /// Accepts a request at `now`. A request beyond the last sector is the caller's error; the
    /// model treats it as one for the last sectors.
    fn submit(&mut self, request: Request, now: Nanos);

    /// The next instant at which [`Drive::complete`] may return something, if nothing else is submitted;
    /// none: no request is open. What a drive does by itself until then need not be waited for.
    fn next_event(&self) -> Option<Nanos>;

    /// Moves the model forward to `now` and returns one completion due by then. Call it until it
    /// returns none.
    fn complete(&mut self, now: Nanos) -> Option<Completion>;

    /// Takes the error of the completed request of this number, once; `None` if it succeeded.
    /// Drives without faults never fail.
    fn take_error(&mut self, _id: u64) -> Option<DriveError> {
        None
    }
}

/// The failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveError {
    /// Its sectors cannot be read.
    Unreadable,
    /// The drive does not answer.
    Gone,
}

impl<D: Drive + ?Sized> Drive for Box<D> {
    fn sectors(&self) -> u64 {
        (**self).sectors()
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        (**self).submit(request, now);
    }

    fn next_event(&self) -> Option<Nanos> {
        (**self).next_event()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        (**self).complete(now)
    }

    fn take_error(&mut self, id: u64) -> Option<DriveError> {
        (**self).take_error(id)
    }
}
