//! What the live page may do with `serve --control`: start studies, stop and continue runs, keep
//! imported results. Each run is a process of its own, with no more permission than its words give.

use stackrace_base::unit::InWords;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use parking_lot::Mutex;

use crate::commands::import;
use stackrace_base::printed::ImportSource;
use stackrace_machine::host::HostError;
use stackrace_machine::host::process::{Process, Streams, interrupt_holder};
use stackrace_results::record::Store;
use stackrace_run::prepare::context::entropy;
use stackrace_show::web::{Begun, RunControl};

/// Bytes of what a started program said that are shown.
const SAID_MAX: u64 = 16 << 10;
/// Programs started from the page that are remembered.
const BEGUN_MAX: usize = 50;

/// A file in the store that is gone when no program has it open any more.
///
/// # Errors
/// Why it cannot be made.
pub(crate) fn unnamed(store: &Store) -> Result<File, String> {
    let name = format!(".said-{:016x}", entropy());
    let file = store.create_file(&name);
    let file = file.map_err(|error| error.to_string())?;
    let _ = store.remove_file(&name);
    Ok(file)
}

/// Does what the page is asked for, as the user who started the server.
pub(crate) struct Owner {
    store: Store,
    studies: Option<PathBuf>,
    begun: Mutex<Vec<Program>>,
    /// Runs that were asked to stop, with their processes: a second time would end them at once.
    stopped: Mutex<Vec<(String, u32)>>,
}

/// Starts a program in this process's directory.
///
/// # Errors
/// It cannot be started.
pub(crate) fn start(argv: &[OsString], said: &File) -> Result<Process, HostError> {
    Process::start(argv, Path::new("."), Streams::Open(said))
}

/// Says how a program ended.
fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "It ended well.".to_owned(),
        (Some(code), _) => format!("It ended with exit code {code}."),
        (None, signal) => format!("It was ended by signal {}.", signal.unwrap_or(0)),
    }
}

/// A program of ours that was started.
struct Program {
    what: String,
    process: Process,
    said: File,
}

impl Owner {
    /// Does it in a store, with the studies of a directory.
    pub(crate) fn new(store: Store, studies: Option<PathBuf>) -> Self {
        Self {
            store,
            studies,
            begun: Mutex::default(),
            stopped: Mutex::default(),
        }
    }

    /// Starts ourselves with these words.
    fn begin(&self, what: String, words: &[OsString]) -> Result<(), String> {
        // Held until it runs: of two visitors at once, one is refused.
        let mut begun = self.begun.lock();
        // Two at once would measure each other.
        let goes_on = |program: &mut Program| program.process.ended().is_none();
        if let Some(at) = begun.iter_mut().position(goes_on) {
            let other = &begun[at].what;
            return Err(format!(
                "\"{other}\" was started from here and goes on. One at a time: start this when it has ended."
            ));
        }
        let program = std::env::current_exe().map_err(|error| error.in_words())?;
        let mut argv = vec![program.into_os_string(), "--store".into()];
        argv.push(self.store.dir().as_os_str().to_owned());
        argv.extend_from_slice(words);
        let said = unnamed(&self.store)?;
        let process = start(&argv, &said).map_err(|error| error.to_string())?;
        begun.push(Program {
            what,
            process,
            said,
        });
        // All but the last have ended.
        if begun.len() > BEGUN_MAX {
            begun.remove(0);
        }
        Ok(())
    }
}

impl RunControl for Owner {
    fn studies(&self) -> Vec<String> {
        let entries = self
            .studies
            .iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok());
        let mut names: Vec<String> = entries
            .flatten()
            .flatten()
            .filter(|entry| entry.path().is_file())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".toml"))
            .collect();
        // A directory lists its files in no order.
        names.sort_unstable();
        names
    }

    fn start(&self, study: &str) -> Result<(), String> {
        // Only what is in the list: a path can lead anywhere.
        let known = self.studies().iter().any(|name| name == study);
        let dir = self.studies.as_ref().filter(|_| known);
        let dir = dir.ok_or_else(|| format!("There is no study \"{study}\" to start."))?;
        let path = dir.join(study).into_os_string();
        self.begin(format!("run {study}"), &["run".into(), path])
    }

    fn resume(&self, run: &str) -> Result<(), String> {
        // `resume` refuses, too, but only where the visitor has to open its output.
        if self.store.goes_on(run) {
            return Err("This run is going on already.".to_owned());
        }
        self.begin(format!("resume {run}"), &["resume".into(), run.into()])
    }

    fn stop(&self, run: &str) -> Result<(), String> {
        if !self.store.goes_on(run) {
            return Err("This run is not going on.".to_owned());
        }
        let unknown =
            "The process of this run is not on record. Stop the run where it was started.";
        let now = self.store.now(run).ok_or(unknown)?;
        let mut stopped = self.stopped.lock();
        let this = (run.to_owned(), now.pid);
        if stopped.contains(&this) {
            return Err("It was asked to stop already; it tears down its stacks first.".to_owned());
        }
        // By the log it holds open: the number alone may be another program's by now.
        let log = self.store.run_dir(run).join("log.jsonl");
        interrupt_holder(now.pid, &log)
            .map_err(|why| format!("It is not stopped: {why}. Stop it where it was started."))?;
        stopped.push(this);
        Ok(())
    }

    fn keep(&self, sources: &[ImportSource], title: String) -> Result<String, String> {
        let words = std::iter::once("stackrace serve: import".to_owned());
        let words = words.chain(sources.iter().map(|source| source.file.clone()));
        import::keep(&self.store, sources, title, words.collect())
            .map(|ledger| ledger.record().head.run.clone())
            .map_err(|error| match error.next() {
                next if next.is_empty() => format!("It is not kept: {error}."),
                next => format!("It is not kept: {error}. Next: {next}."),
            })
    }

    fn begun(&self) -> Vec<Begun> {
        let mut begun = self.begun.lock();
        begun
            .iter_mut()
            .map(|program| {
                let ended = program.process.ended().map(in_words);
                Begun {
                    what: program.what.clone(),
                    // The numbers of one that has ended may be another program's by now.
                    pids: ended
                        .as_ref()
                        .map_or_else(|| program.process.ids(), |_| Vec::new()),
                    ended,
                    said: tail(&program.said),
                }
            })
            .collect()
    }
}

/// The end of a file, from a whole line on.
fn tail(file: &File) -> String {
    let length = file.metadata().map_or(0, |meta| meta.len());
    let begin = length.saturating_sub(SAID_MAX);
    let mut bytes = vec![0; usize::try_from(length - begin).unwrap_or(0)];
    if file.read_exact_at(&mut bytes, begin).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The rest of a line that was cut off would make no sense.
    match begin {
        0 => text,
        _ => text
            .split_once('\n')
            .map_or(String::new(), |(_, rest)| rest.to_owned()),
    }
}
