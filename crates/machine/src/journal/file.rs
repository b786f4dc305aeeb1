//! The file of a journal: locked while its run lives, on the disk before anything is created.

use super::bytes;
use super::check::{accepts, new_place};
use super::entry::{Entry, EntryId, Undo};
use super::error::{FORMAT, JournalError};
use super::gone;
use super::proof::{Proof, is_mark};
use crate::host::{Host, HostError, MadeThing};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use stackrace_base::appendlog::{AppendError, AppendLog, Durable, Reopened, look};
use stackrace_base::owned::{OwnDir, OwnError};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum JournalLine {
    Head {
        journal: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    Mark {
        mark: String,
    },
    Place {
        #[serde(with = "bytes")]
        place: PathBuf,
    },
    Entry(Entry),
    Made {
        made: EntryId,
        thing: MadeThing,
    },
    Done {
        done: EntryId,
    },
}

/// The oldest format of which a journal with nothing left to undo is understood.
const FORMAT_READ: u32 = 2;

/// The oldest format of which everything is understood: it has no `made` lines.
const FORMAT_UNDONE: u32 = 3;

/// The journal of one run.
pub struct Journal {
    state: Mutex<State>,
}

struct State {
    /// The log and its path; `None` means a plan, of which nothing is kept.
    file: Option<(AppendLog, PathBuf)>,
    next: u64,
    pending: Vec<Entry>,
    proof: Proof,
}

impl Journal {
    /// Begins a journal and locks it.
    ///
    /// # Errors
    /// Also when the file exists.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let (dir, name) = place(path)?;
        let file = AppendLog::create(&dir, name).map_err(|error| refused(error, path))?;
        let journal = Self::with(Some((file, path.to_path_buf())), Replayed::new(path));
        journal.state.lock().append(&head(path), Durable::Yes)?;
        dir.sync().map_err(|error| refused(error.into(), path))?;
        Ok(journal)
    }

    /// Goes on with a journal, and locks it. A last line that was torn by a crash is cut off: what
    /// it spoke of was not created yet.
    ///
    /// # Errors
    /// [`JournalError::Live`] when its run is alive.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let (dir, name) = place(path)?;
        let Reopened {
            log: mut file,
            whole,
            torn,
        } = AppendLog::open(&dir, name).map_err(|error| refused(error, path))?;
        let replayed = understand(&whole, &torn, path)?;
        if !torn.is_empty() {
            file.cut_torn().map_err(|error| refused(error, path))?;
        }
        let begun = replayed.format == Some(FORMAT);
        let journal = Self::with(Some((file, path.to_path_buf())), replayed);
        if !begun {
            journal.state.lock().append(&head(path), Durable::Yes)?;
        }
        Ok(journal)
    }

    /// Reads a journal without a change to it.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn look(path: &Path) -> Result<Self, JournalError> {
        let (dir, name) = place(path)?;
        let (whole, torn) = look(&dir, name).map_err(|error| refused(error, path))?;
        Ok(Self::with(None, understand(&whole, &torn, path)?))
    }

    /// A journal that is kept nowhere: for plans, which create nothing.
    pub fn nowhere() -> Self {
        Self::with(None, Replayed::new(Path::new("")))
    }

    /// Reads a journal from bytes, kept in memory alone. `path` is where the file would be.
    ///
    /// # Errors
    /// The first line that cannot be understood, or another format.
    pub fn remembered(bytes: &[u8], path: &Path) -> Result<Self, JournalError> {
        Ok(Self::with(None, replay(bytes, path)?))
    }

    fn with(file: Option<(AppendLog, PathBuf)>, replayed: Replayed) -> Self {
        Self {
            state: Mutex::new(State {
                file,
                next: replayed.next,
                pending: replayed.pending,
                proof: replayed.proof,
            }),
        }
    }

    /// Says that names with these 16 random digits are the run's.
    ///
    /// # Errors
    /// They are no such digits, or it cannot be written.
    pub fn draw(&self, mark: &str) -> Result<(), JournalError> {
        if !is_mark(mark) {
            return Err(JournalError::Foreign(format!("the mark {mark:?}")));
        }
        let mut state = self.state.lock();
        if state.proof.add_mark(mark) {
            let mark = mark.to_string();
            // Not flushed: the entry that first uses the mark is, and takes everything before it to
            // the disk.
            state.append(&JournalLine::Mark { mark }, Durable::No)?;
        }
        Ok(())
    }

    /// Says what is about to be created; on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written, or could not be undone later because it does not carry a mark of
    /// the run: then nothing may be created.
    pub fn will(&self, group: &str, undo: Undo) -> Result<EntryId, JournalError> {
        // What is created now would be noted where `clean` does not look.
        self.in_place()?;
        let mut state = self.state.lock();
        // Before the entry: a reader must know the place when it checks the entry.
        if let Some(place) = new_place(&state.proof, &undo) {
            let line = JournalLine::Place {
                place: place.clone(),
            };
            state.append(&line, Durable::No)?;
            state.proof.add_place(place);
        }
        if !accepts(&state.proof, &undo, None) {
            return Err(JournalError::Foreign(undo.to_string()));
        }
        let entry = Entry {
            id: EntryId::new(state.next),
            group: group.to_string(),
            undo,
            thing: None,
        };
        state.append(&JournalLine::Entry(entry.clone()), Durable::Yes)?;
        state.next += 1;
        let id = entry.id;
        state.pending.push(entry);
        Ok(id)
    }

    /// Says what was made by an entry, so that it is told from anything else at its path later. Without
    /// this line, after a crash, it is found by its path alone.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn made(&self, host: &dyn Host, id: EntryId) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        let mut pending = state.pending.iter_mut();
        let Some(entry) = pending.find(|entry| entry.id == id) else {
            return Ok(());
        };
        let Some(thing) = gone::made(host, &entry.undo) else {
            return Ok(());
        };
        entry.thing = Some(thing.clone());
        // Not flushed: it says nothing that has to be there before anything else happens.
        state.append(&JournalLine::Made { made: id, thing }, Durable::No)
    }

    /// Says that an entry has been undone, or that what it speaks of was never created.
    ///
    /// Not synced: if it is lost, undoing again is harmless.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn done(&self, id: EntryId) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        // Not flushed: if a power cut loses it, the undo runs once more and finds nothing to undo.
        state.append(&JournalLine::Done { done: id }, Durable::No)?;
        state.pending.retain(|entry| entry.id != id);
        Ok(())
    }

    /// Makes sure that it still is where `clean` looks for it.
    ///
    /// # Errors
    /// [`JournalError::Moved`]; it was removed.
    pub fn in_place(&self) -> Result<(), JournalError> {
        match &self.state.lock().file {
            Some((file, path)) => file.in_place().map_err(|error| refused(error, path)),
            None => Ok(()),
        }
    }

    /// Returns true if a part of a path carries a mark of the run: what lies below needs none.
    pub fn is_marked(&self, path: &Path) -> bool {
        self.state.lock().proof.is_marked(path)
    }

    /// Entries still to be undone, newest first.
    pub fn pending(&self) -> Vec<Entry> {
        // Newest first: what was made last stands on what was made before.
        self.state.lock().pending.iter().rev().cloned().collect()
    }

    /// Returns true if a program was started that is still to be ended, on whatever machine.
    pub fn will_end(&self, program: &str) -> bool {
        let ends =
            |undo: &Undo| matches!(undo, Undo::EndProcess { program: one, .. } if one == program);
        let state = self.state.lock();
        state.pending.iter().any(|entry| match &entry.undo {
            Undo::OnPeer { undo, .. } => ends(undo),
            undo => ends(undo),
        })
    }

    /// The run's statements about itself.
    pub(super) fn proof(&self) -> Proof {
        self.state.lock().proof.clone()
    }
}

impl State {
    fn append(&mut self, line: &JournalLine, durable: Durable) -> Result<(), JournalError> {
        let Some((file, path)) = &mut self.file else {
            return Ok(());
        };
        let mut bytes =
            serde_json::to_vec(line).map_err(|error| system("write to", path, error.into()))?;
        bytes.push(b'\n');
        file.append(&bytes, durable)
            .map_err(|error| refused(error, path))
    }
}

/// The directory of a journal, which has to be the user's own, and its name there.
fn place(path: &Path) -> Result<(OwnDir, &str), JournalError> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().and_then(|name| name.to_str());
    OwnDir::open(parent)
        .and_then(OwnDir::obeyed)
        .map(|dir| (dir, name.unwrap_or_default()))
        .map_err(|error| refused(error.into(), path))
}

/// The first line of the journal at a path.
fn head(path: &Path) -> JournalLine {
    JournalLine::Head {
        journal: FORMAT,
        run: Some(run_of(path)),
    }
}

/// The run a journal belongs to: the name of the directory it is in.
fn run_of(path: &Path) -> String {
    let name = path.parent().and_then(Path::file_name);
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// The error of the file as one of the journal.
fn refused(error: AppendError, path: &Path) -> JournalError {
    match error {
        AppendError::Locked => JournalError::Live {
            path: path.to_path_buf(),
        },
        AppendError::System { tried, source } => system(tried, path, source),
        AppendError::NotOpened(OwnError::System {
            tried,
            path,
            source,
        }) => system(tried, &path, source),
        AppendError::NotOpened(error) => JournalError::NotOwn {
            why: error.to_string(),
            next: error.next(),
        },
        AppendError::Moved { now } => JournalError::Moved {
            hidden: now == path,
            path: path.to_path_buf(),
            now,
        },
        AppendError::Broken | AppendError::Removed | AppendError::Changed { .. } => {
            system("write to", path, std::io::Error::other(error))
        }
    }
}

fn system(what: &'static str, path: &Path, error: std::io::Error) -> JournalError {
    JournalError::System(HostError::path(what, path, error))
}

/// State that the lines of a journal come to.
#[derive(Debug)]
struct Replayed {
    /// Number of the next entry.
    next: u64,
    /// Entries still to be undone, oldest first.
    pending: Vec<Entry>,
    proof: Proof,
    /// Format of the last head; `None` if there is no line.
    format: Option<u32>,
}

impl Replayed {
    /// State of a journal without a line.
    fn new(path: &Path) -> Self {
        let own = path.parent().unwrap_or(Path::new(""));
        Self {
            next: 1,
            pending: Vec::new(),
            proof: Proof::of_run(own),
            format: None,
        }
    }
}

/// Understands a whole file before anything of it is cut off.
///
/// # Errors
/// As [`replay`]; also when the rest is none that a crash leaves.
fn understand(whole: &[u8], torn: &[u8], path: &Path) -> Result<Replayed, JournalError> {
    let replayed = replay(whole, path)?;
    // A whole line that cannot be read may be an entry: to forget it would leave behind what it
    // speaks of. Only what has no line break was never told to be kept.
    let begins = |line: &&str| {
        let length = torn.len().min(line.len());
        torn[..length] == line.as_bytes()[..length]
    };
    let ours = [
        "{\"journal\":",
        "{\"mark\":",
        "{\"place\":",
        "{\"entry\":",
        "{\"made\":",
        "{\"done\":",
    ];
    // Some file systems lengthen a file before its data arrive.
    let is_rest = torn.iter().all(|&byte| byte == 0) || ours.iter().any(begins);
    if torn.contains(&b'\n') || !is_rest {
        let line = whole.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let path = path.to_path_buf();
        return Err(JournalError::Broken { path, line });
    }
    Ok(replayed)
}

/// Reads the whole lines of a journal. `path` is where it was found.
///
/// # Errors
/// The first line that cannot be understood, another format, or another run.
fn replay(bytes: &[u8], path: &Path) -> Result<Replayed, JournalError> {
    let mut replayed = Replayed::new(path);
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    for (index, line) in lines.enumerate() {
        let broken = || JournalError::Broken {
            path: path.to_path_buf(),
            line: index + 1,
        };
        match serde_json::from_slice(line).map_err(|_| broken())? {
            JournalLine::Head { journal, run } => replayed.begin(journal, run, path)?,
            _ if replayed.format.is_none() => return Err(broken()),
            JournalLine::Mark { mark } if is_mark(&mark) => {
                replayed.proof.add_mark(&mark);
            }
            JournalLine::Mark { .. } => return Err(broken()),
            JournalLine::Place { place } => replayed.proof.add_place(place),
            JournalLine::Entry(entry) => {
                let after = entry.id.number().checked_add(1).ok_or_else(broken)?;
                replayed.next = replayed.next.max(after);
                replayed.pending.push(moved_with(entry, path));
            }
            JournalLine::Made { made, thing } => {
                let mut pending = replayed.pending.iter_mut();
                if let Some(entry) = pending.find(|entry| entry.id == made) {
                    entry.thing = Some(thing);
                }
            }
            JournalLine::Done { done } => replayed.pending.retain(|entry| entry.id != done),
        }
    }
    match replayed.format {
        Some(format) if format < FORMAT_UNDONE && !replayed.pending.is_empty() => {
            Err(other_format(path, format))
        }
        _ => Ok(replayed),
    }
}

/// An entry of a run whose store was moved: what lies below the run's own directory was moved with it.
fn moved_with(mut entry: Entry, path: &Path) -> Entry {
    let own = path.parent().unwrap_or(Path::new(""));
    let rebased = |was: &Path| {
        let run = own.file_name()?;
        let before = was
            .ancestors()
            .find(|above| above.file_name() == Some(run))?;
        // While the old directory is there, this is a copy of a journal, and not the run's own.
        let moved = before != own && before.symlink_metadata().is_err();
        moved.then(|| Some(own.join(was.strip_prefix(before).ok()?)))?
    };
    entry.undo.each_path(&|was| {
        if let Some(now) = rebased(was) {
            *was = now;
        }
    });
    entry
}

fn other_format(path: &Path, format: u32) -> JournalError {
    let path = path.to_path_buf();
    JournalError::OtherFormat { path, format }
}

impl Replayed {
    /// A head: of a new journal, or of one that a newer program goes on with.
    fn begin(&mut self, format: u32, run: Option<String>, path: &Path) -> Result<(), JournalError> {
        if !(FORMAT_READ..=FORMAT).contains(&format) {
            return Err(other_format(path, format));
        }
        if format >= FORMAT_UNDONE && run.as_ref() != Some(&run_of(path)) {
            return Err(JournalError::OtherRun {
                path: path.to_path_buf(),
                run: run.unwrap_or_default(),
            });
        }
        // A newer program goes on with what it understands.
        let understood = self.format.is_some_and(|format| format >= FORMAT_UNDONE);
        if !self.pending.is_empty() && !understood {
            return Err(other_format(path, self.format.unwrap_or(format)));
        }
        self.format = Some(format);
        Ok(())
    }
}
