//! `stackrace serve`: the live page, and who may see it.

use stackrace_base::unit::{InWords, ShownPath};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::Serve;
use super::failure::Failure;
use super::push;
use super::setting::Setting;
use super::terminal::{error, print};
use super::variable::variable;
use crate::commands::control::{Owner, start, unnamed};
use stackrace_base::private::private_text;
use stackrace_base::time::SystemClock;
use stackrace_import::import::source;
use stackrace_load::tools::importers;
use stackrace_machine::host::Host;
use stackrace_machine::host::local::LocalHost;
use stackrace_results::record::{RunSource, Store, StoredRuns};
use stackrace_show::web::{self, Guard, RunControl, TextReader, WebSite};
use stackrace_system::memory::share_arenas;

/// Shortest token that is taken: what a machine can guess over a network is shorter.
const TOKEN_MIN: usize = 12;

/// Places that the threads of visitors take memory from: with one for each, the server keeps what one page needed as
/// many times.
const ARENAS: u8 = 2;

pub(super) fn exec(setting: &Setting, verb: Serve) -> Result<u8, Failure> {
    share_arenas(ARENAS);
    let address = address(&verb.listen)?;
    let loopback = address.ip().is_loopback();
    let token = token(given(&verb)?, loopback && !verb.control)?;
    let studies = verb.studies.as_deref().map(studies_dir).transpose()?;
    let store = match verb.control || verb.open {
        true => setting.session.open_store()?,
        false => setting.session.look_into_store()?,
    };
    let (runs, whose) = runs(&store, verb.from.as_deref())?;
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::unable(format!(
            "cannot listen on {address}: {error}",
            error = error.in_words()
        ))
        .next("name another address: --listen 127.0.0.1:0 takes any free port")
    })?;
    let address = listener.local_addr().map_err(|error| {
        Failure::internal(format!(
            "no address to listen on: {error}",
            error = error.in_words()
        ))
    })?;
    let name = machine();
    let link = link(address, &name, token.as_deref());
    let others = (!loopback).then(|| address.port());
    announce(setting, &verb.listen, &link, &whose, verb.control, others);
    if verb.open {
        open(&link, &store, token.is_some())?;
    }
    let hands = verb.control.then(|| {
        let hands: Arc<dyn RunControl> = Arc::new(Owner::new(store.clone(), studies));
        hands
    });
    let guard = Guard {
        token,
        loopback,
        name,
        port: address.port(),
    };
    let reader = TextReader {
        tools: || importers().iter().map(|importer| importer.name).collect(),
        read: |name, text| source(importers(), None, name, text, None),
    };
    let clock = Arc::new(SystemClock);
    let site = Arc::new(WebSite::new(runs, guard, hands, reader, clock));
    web::serve(&listener, &site);
    Ok(0)
}

/// Source of the runs that are served, and its name for people.
fn runs(store: &Store, from: Option<&str>) -> Result<(Arc<dyn RunSource>, String), Failure> {
    match from {
        Some(database) => push::runs_of(database),
        None => {
            let whose = store.dir().display().to_string();
            Ok((Arc::new(StoredRuns::new(store.clone())), whose))
        }
    }
}

/// `ADDRESS:PORT`; names are not asked for: another machine would say where we listen.
fn address(word: &str) -> Result<SocketAddr, Failure> {
    // Names are not looked up: a resolver could answer with an address that others reach.
    let numeric = word.replacen("localhost:", "127.0.0.1:", 1);
    numeric.parse().map_err(|_| {
        Failure::usage(format!("--listen {word} is no address with a port"))
            .next("write it like 127.0.0.1:7878 or [::1]:7878")
    })
}

/// The token that the user gives: of a file, or of the environment.
fn given(verb: &Serve) -> Result<Option<String>, Failure> {
    if verb.token.is_some() {
        return Err(Failure::refused(
            "--token shows the token to every user of this machine: all can read the words of a command",
        )
        .next("set STACKRACE_TOKEN, or write it to a file that only you can read: --token-file FILE; and choose another token"));
    }
    match &verb.token_file {
        Some(file) => Ok(Some(private_text(file)?.trim().to_owned())),
        None => variable("STACKRACE_TOKEN")
            .map(|token| token.into_string())
            .transpose()
            .map_err(|_| Failure::usage("STACKRACE_TOKEN is no text in UTF-8")),
    }
}

/// The token; none is needed only where this machine alone can reach the page, and nothing can
/// be done from it.
fn token(given: Option<String>, may_miss: bool) -> Result<Option<String>, Failure> {
    match given {
        Some(token) => {
            // Letters that need no escape in a link.
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
            if token.len() < TOKEN_MIN || !token.chars().all(fits) {
                return Err(Failure::usage(format!(
                    "a token has at least {TOKEN_MIN} letters, digits or any of - _ . ~"
                ))
                .next("leave it out: one is made and printed"));
            }
            Ok(Some(token))
        }
        None if may_miss => Ok(None),
        None => secret().map(Some),
    }
}

/// 128 bits that no other program has.
fn secret() -> Result<String, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let nonce = || {
        host.nonce().map_err(|error| {
            Failure::unable(format!("no token can be made: {error}"))
                .next("give one: --token-file FILE")
        })
    };
    // 128 random bits: guessing takes longer than any server runs.
    Ok(nonce()? + &nonce()?)
}

fn studies_dir(dir: &Path) -> Result<PathBuf, Failure> {
    let found = dir.canonicalize().ok().filter(|dir| dir.is_dir());
    found.ok_or_else(|| {
        Failure::usage(format!("--studies {}: no such directory", dir.shown()))
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

/// Address of the first page.
fn link(address: SocketAddr, name: &str, token: Option<&str>) -> String {
    // 0.0.0.0 is no address that another machine could open.
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
    whose: &str,
    control: bool,
    others: Option<u16>,
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
    let mut text = format!("serving the runs of {whose}: {what}; Ctrl-C ends it\n");
    if let Some(port) = others {
        text.push_str(&format!(
            "warning: {asked} is reached from other machines, and nothing is encrypted on the way\n  \
             next: listen on 127.0.0.1:{port} instead, and go through ssh -L {port}:127.0.0.1:{port} {}\n",
            machine()
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
    // The arguments of a process can be read by all users, so the link with the token goes through a
    // file of the caller's own.
    let place = if secret {
        let path = store.dir().join(PAGE);
        let page =
            format!("<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url={link}\">");
        let cannot = |error: &dyn std::fmt::Display| {
            failed(format!("cannot write {}: {error}", path.shown()))
        };
        let written = store.replace_file(PAGE, page.as_bytes());
        written.map_err(|error| cannot(&error))?;
        path.into_os_string()
    } else {
        link.into()
    };
    let said = unnamed(store).map_err(failed)?;
    start(&["xdg-open".into(), place], &said)
        .map(|_| ())
        .map_err(|error| failed(format!("no browser is opened: {error}")))
}
