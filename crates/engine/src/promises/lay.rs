//! What promised operations find: directories, files to write over, and data at rest.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use super::content::PromisedContent;
use super::plan::{Idiom, PromisesPlan};
use crate::outcome::{Op, OpError, PromiseRecord};
use crate::target::durable_on_return;
use crate::worker_pool::fault;
use stackrace_system::syncfs;

/// Directories, each used by some idioms only.
pub(super) const AT_REST: &str = "at-rest";
pub(super) const DOCUMENTS: &str = "documents";
pub(super) const FILES: &str = "files";
pub(super) const INCOMING: &str = "incoming";
pub(super) const ACTIVE: &str = "active";

/// Bytes of a file at rest.
const AT_REST_BYTES: u32 = 64 << 10;

impl Idiom {
    /// The directories it works in; the first is where files are made.
    fn directories(self) -> &'static [&'static str] {
        match self {
            Idiom::Replace | Idiom::ReplaceNoDirectorySync => &[DOCUMENTS],
            Idiom::Create | Idiom::CreateNoDirectorySync => &[FILES],
            Idiom::MailQueue => &[INCOMING, ACTIVE],
            _ => &[],
        }
    }

    /// The one file of a thread that it writes to, if there is one.
    fn file(self, thread: u32) -> Option<String> {
        match self {
            Idiom::OverwriteFsync | Idiom::OverwriteDsync => Some(format!("data-{thread}")),
            Idiom::AppendFdatasync | Idiom::AppendPlain => Some(format!("log-{thread}")),
            _ => None,
        }
    }
}

impl PromisesPlan {
    /// Makes what the phase works on, and makes it durable. Not measured. Returns a record of each
    /// file with content, acknowledged at instant 0.
    ///
    /// # Errors
    /// The plan makes no sense, or the file system refuses.
    pub fn lay_out(&self) -> Result<Vec<PromiseRecord>, OpError> {
        self.check()?;
        let content = PromisedContent::new(self.seed);
        for name in self.idiom.directories().iter().chain([&AT_REST]) {
            let path = self.root.join(name);
            mkdirat(CWD, &path, Mode::from_raw_mode(0o755))
                .map_err(|errno| fault(Op::Mkdir, &path, errno))?;
        }
        let records = self.laid_out();
        let mut buffer = Vec::new();
        for record in &records {
            buffer.resize(record.bytes as usize, 0);
            content.fill(&mut buffer, &record.object, 0, record.generation);
            self.lay(&record.object, &buffer)?;
        }
        // Logs begin empty: what is promised of them is what is appended, and not their name.
        if self.idiom.op() == Op::Append {
            for thread in 0..self.threads {
                self.lay(&format!("log-{thread}"), &[])?;
            }
        }
        let root = self.directory("")?;
        let synced = syncfs(&root).and_then(|()| rustix::fs::fsync(&root));
        synced.map_err(|errno| fault(Op::Fsync, &self.root, errno))?;
        Ok(records)
    }

    /// Returns the records of what [`PromisesPlan::lay_out`] lays out, without doing it.
    pub fn laid_out(&self) -> Vec<PromiseRecord> {
        let of = |object, bytes| PromiseRecord {
            worker: 0,
            op: Op::Create,
            object,
            offset: 0,
            bytes,
            generation: 1,
            begun_ns: 0,
            acknowledged_ns: Some(0),
        };
        let rest = (0..self.at_rest).map(|number| format!("{AT_REST}/{number}"));
        let mut records: Vec<PromiseRecord> = rest
            .map(|name| of(name, u64::from(AT_REST_BYTES)))
            .collect();
        for thread in 0..self.threads {
            match self.idiom {
                Idiom::OverwriteFsync | Idiom::OverwriteDsync => {
                    let bytes = u64::from(self.objects) * u64::from(self.bytes);
                    records.push(of(format!("data-{thread}"), bytes));
                }
                Idiom::Replace | Idiom::ReplaceNoDirectorySync => {
                    let each = (0..self.objects).map(|number| document(thread, number));
                    records.extend(each.map(|name| of(name, u64::from(self.bytes))));
                }
                _ => {}
            }
        }
        records
    }

    /// Writes one file and makes it durable.
    fn lay(&self, object: &str, bytes: &[u8]) -> Result<(), OpError> {
        let path = self.root.join(object);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let failed = |errno| fault(Op::Create, &path, errno);
        let fd = openat(CWD, &path, flags, Mode::from_raw_mode(0o644)).map_err(failed)?;
        write_at(fd.as_fd(), bytes, 0).map_err(failed)?;
        rustix::fs::fsync(&fd).map_err(failed)
    }
}

/// The name of a document.
pub(super) fn document(thread: u32, number: u32) -> String {
    format!("{DOCUMENTS}/{thread}-{number}")
}

/// Writes all of it, in as many calls as the system takes.
pub(super) fn write_at(fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(fd, &bytes[done..], offset + done as u64)? {
            // A file that takes nothing and says no error would be tried for ever.
            0 => return Err(Errno::IO),
            written => done += written,
        }
    }
    Ok(())
}

/// Descriptors that are opened before the clock starts.
pub(super) struct Handles {
    /// Directories of the idiom, then the files of the threads.
    all: Vec<OwnedFd>,
    directories: usize,
}

impl Handles {
    pub(super) fn open(plan: &PromisesPlan) -> Result<Handles, OpError> {
        let names = plan.idiom.directories();
        let opened = names.iter().map(|name| plan.directory(name));
        let mut all = opened.collect::<Result<Vec<_>, _>>()?;
        let directories = all.len();
        let dsync = durable_on_return(plan.idiom == Idiom::OverwriteDsync, false);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | dsync;
        for thread in 0..plan.threads {
            if let Some(name) = plan.idiom.file(thread) {
                let path = plan.root.join(name);
                let fd = openat(CWD, &path, flags, Mode::empty());
                all.push(fd.map_err(|errno| fault(plan.idiom.op(), &path, errno))?);
            }
        }
        Ok(Handles { all, directories })
    }

    /// All of them, for threads that see no others.
    pub(super) fn all(&self) -> &[OwnedFd] {
        &self.all
    }

    /// A directory of the idiom, in the order of [`Idiom::directories`].
    pub(super) fn directory(&self, number: usize) -> &OwnedFd {
        &self.all[number]
    }

    /// The file of a thread.
    pub(super) fn file(&self, thread: u32) -> &OwnedFd {
        &self.all[self.directories + thread as usize]
    }
}
