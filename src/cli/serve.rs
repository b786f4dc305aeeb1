//! `stackrace serve`: the live page, and the hands it is given with `--control`.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::args::Serve;
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::{error, print};
use crate::host::local::LocalHost;
use crate::host::process::{Process, Streams, interrupt_holder};
use crate::host::{Host, HostError};
use crate::import::Source;
use crate::record::Store;
use crate::session::entropy;
use crate::time::SystemClock;
use crate::web::{self, Begun, Guard, RunControl, WebSite};

/// Shortest token that is taken: what a machine can guess over a network is shorter.
const TOKEN_MIN: usize = 12;
/// Bytes of what a started program said that are shown.
const SAID_MAX: u64 = 16 << 10;
/// Programs started from the page that are remembered.
const BEGUN_MAX: usize = 50;

pub(super) fn exec(setting: &Setting, verb: Serve) -> Result<u8, Failure> {
    let address = address(&verb.listen)?;
    let loopback = address.ip().is_loopback();
    let token = token(verb.token, loopback && !verb.control)?;
    let studies = verb.studies.as_deref().map(studies_dir).transpose()?;
    let store = setting.session.open_store()?;
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::unable(format!("cannot listen on {address}: {error}"))
            .next("name another address: --listen 127.0.0.1:0 takes any free port")
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::internal(format!("no address to listen on: {error}")))?;
    let name = machine();
    let link = link(address, &name, token.as_deref());
    announce(setting, &verb.listen, &link, &store, verb.control, loopback);
    if verb.open {
        open(&link, &store, token.is_some())?;
    }
    let hands = verb.control.then(|| {
        let hands: Arc<dyn RunControl> = Arc::new(Owner {
            store: store.clone(),
            studies,
            begun: Mutex::default(),
            stopped: Mutex::default(),
        });
        hands
    });
    let guard = Guard {
        token,
        loopback,
        name,
        port: address.port(),
    };
    let site = Arc::new(WebSite::new(store, guard, hands, Arc::new(SystemClock)));
    web::serve(&listener, &site);
    Ok(0)
}

/// `ADDRESS:PORT`; names are not asked for, so that nobody else says where we listen.
fn address(word: &str) -> Result<SocketAddr, Failure> {
    let numeric = word.replacen("localhost:", "127.0.0.1:", 1);
    numeric.parse().map_err(|_| {
        Failure::usage(format!("--listen {word} is no address with a port"))
            .next("write it like 127.0.0.1:7878 or [::1]:7878")
    })
}

/// The token; none is needed only where nobody but this machine can reach the page, and nothing can
/// be done from it.
fn token(given: Option<String>, may_miss: bool) -> Result<Option<String>, Failure> {
    match given {
        Some(token) => {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
            if token.len() < TOKEN_MIN || !token.chars().all(fits) {
                return Err(Failure::usage(format!(
                    "--token: at least {TOKEN_MIN} letters, digits or any of - _ . ~"
                ))
                .next("leave it out: one is made and printed"));
            }
            Ok(Some(token))
        }
        None if may_miss => Ok(None),
        None => secret().map(Some),
    }
}

/// 128 bits nobody else has.
fn secret() -> Result<String, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let nonce = || {
        host.nonce().map_err(|error| {
            Failure::unable(format!("no token can be made: {error}")).next("give one: --token")
        })
    };
    Ok(nonce()? + &nonce()?)
}

fn studies_dir(dir: &Path) -> Result<PathBuf, Failure> {
    let found = dir.canonicalize().ok().filter(|dir| dir.is_dir());
    found.ok_or_else(|| {
        Failure::usage(format!("--studies {}: no such directory", dir.display()))
            .next("name a directory with studies in TOML")
    })
}

/// This machine's name.
fn machine() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Where to go.
fn link(address: SocketAddr, name: &str, token: Option<&str>) -> String {
    let place = if address.ip().is_unspecified() {
        format!("{name}:{}", address.port())
    } else {
        address.to_string()
    };
    match token {
        Some(token) => format!("http://{place}/?token={token}"),
        None => format!("http://{place}/"),
    }
}

fn announce(
    setting: &Setting,
    asked: &str,
    link: &str,
    store: &Store,
    control: bool,
    loopback: bool,
) {
    print(&format!("{link}\n"));
    if setting.quiet {
        return;
    }
    let what = if control {
        "runs may be started and stopped"
    } else {
        "read-only"
    };
    let mut text = format!(
        "serving the runs of {}: {what}; Ctrl-C ends it\n",
        store.dir().display()
    );
    if !loopback {
        text.push_str(&format!(
            "warning: {asked} is reached from other machines, and nothing is encrypted on the way\n  \
             next: listen on 127.0.0.1 and go through ssh -L 7878:127.0.0.1:7878 instead\n"
        ));
    }
    error(&text);
}

/// The file in the store that leads a browser to the page.
const PAGE: &str = "open.html";

/// Opens the page in the user's browser. A link with a token goes through a file of the user's own:
/// words of a command can be read by everybody on the machine.
fn open(link: &str, store: &Store, secret: bool) -> Result<(), Failure> {
    let failed = |what: String| Failure::unable(what).next(format!("open it yourself: {link}"));
    let place = if secret {
        let path = store.dir().join(PAGE);
        let page =
            format!("<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url={link}\">");
        let cannot = |error: &dyn std::fmt::Display| {
            failed(format!("cannot write {}: {error}", path.display()))
        };
        store
            .create_file(PAGE, true)
            .map_err(|error| cannot(&error))?
            .write_all(page.as_bytes())
            .map_err(|error| cannot(&error))?;
        path.into_os_string()
    } else {
        link.into()
    };
    let said = unnamed(store).map_err(failed)?;
    start(&["xdg-open".into(), place], &said)
        .map(|_| ())
        .map_err(|error| failed(format!("no browser is opened: {error}")))
}

/// A file in the store that is gone when nobody has it open any more.
fn unnamed(store: &Store) -> Result<File, String> {
    let name = format!(".said-{:016x}", entropy());
    let file = store.create_file(&name, false);
    let file = file.map_err(|error| error.to_string())?;
    let _ = store.remove_file(&name);
    Ok(file)
}

/// Does what the page is asked for, as the user who started the server.
struct Owner {
    store: Store,
    studies: Option<PathBuf>,
    begun: Mutex<Vec<Program>>,
    /// Runs that were asked to stop, with their processes: a second time would end them at once.
    stopped: Mutex<Vec<(String, u32)>>,
}

/// Starts a program in this process's directory.
fn start(argv: &[OsString], said: &File) -> Result<Process, HostError> {
    Process::start(argv, Path::new("."), Streams::Open(said))
}

/// How a program ended.
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
    /// Starts ourselves with these words.
    fn begin(&self, what: String, words: &[OsString]) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut argv = vec![program.into_os_string(), "--store".into()];
        argv.push(self.store.dir().as_os_str().to_owned());
        argv.extend_from_slice(words);
        let said = unnamed(&self.store)?;
        let process = start(&argv, &said).map_err(|error| error.to_string())?;
        let mut begun = held(&self.begun);
        begun.push(Program {
            what,
            process,
            said,
        });
        if begun.len() > BEGUN_MAX
            && let Some(old) = begun.iter_mut().position(|p| p.process.ended().is_some())
        {
            begun.remove(old);
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
        if self.store.goes_on(run) {
            return Err("This run is going on already.".to_owned());
        }
        self.begin(format!("resume {run}"), &["resume".into(), run.into()])
    }

    fn stop(&self, run: &str) -> Result<(), String> {
        if !self.store.goes_on(run) {
            return Err("This run is not going on.".to_owned());
        }
        let unknown = "Which process runs it is not on record. Stop it where it was started.";
        let now = self.store.now(run).ok_or(unknown)?;
        let mut stopped = held(&self.stopped);
        let this = (run.to_owned(), now.pid);
        if stopped.contains(&this) {
            return Err("It was asked to stop already; it lowers what stands first.".to_owned());
        }
        let log = self.store.run_dir(run).join("log.jsonl");
        interrupt_holder(now.pid, &log)
            .map_err(|why| format!("It is not stopped: {why}. Stop it where it was started."))?;
        stopped.push(this);
        Ok(())
    }

    fn keep(&self, sources: &[Source], title: String) -> Result<String, String> {
        let words = std::iter::once("stackrace serve: import".to_owned());
        let words = words.chain(sources.iter().map(|source| source.file.clone()));
        crate::session::import::keep(&self.store, sources, title, words.collect())
            .map(|ledger| ledger.record().head.run.clone())
            .map_err(|error| format!("It is not kept: {error}. Next: {}.", error.next()))
    }

    fn begun(&self) -> Vec<Begun> {
        let mut begun = held(&self.begun);
        begun
            .iter_mut()
            .map(|program| Begun {
                what: program.what.clone(),
                pid: program.process.id(),
                ended: program.process.ended().map(in_words),
                said: tail(&program.said),
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
    match begin {
        0 => text,
        _ => text
            .split_once('\n')
            .map_or(String::new(), |(_, rest)| rest.to_owned()),
    }
}

/// A lock; nothing is left half done by a thread that ended while it held it.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
