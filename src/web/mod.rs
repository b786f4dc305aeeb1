//! The live page: running and past studies over HTTP, for visitors the guard admits.
//!
//! Everything is rendered here, so that a page reads whole without a script; the one script only
//! brings what has changed. Nothing is fetched from elsewhere. This room only reads: starting and
//! stopping runs goes through the [`RunControl`] it is given, and without `--control` it has none.

mod beside;
mod cache;
mod events;
mod frame;
mod guard;
mod http;
mod import;
mod past;
mod run;
mod runs;
mod start;

pub(crate) use guard::Guard;

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use self::cache::RunCache;
use self::guard::Admission;
use self::http::{HttpError, HttpRequest, HttpResponse, Method};
use crate::import::ImportSource;
use crate::record::Store;
use crate::time::Clock;

/// Connections at a time; further ones are sent away.
const CONNECTIONS_MAX: usize = 64;

/// What may be done from the page.
pub(crate) trait RunControl: Send + Sync {
    /// Studies that may be started, by the names of their files.
    fn studies(&self) -> Vec<String>;
    /// Starts one of them.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn start(&self, study: &str) -> Result<(), String>;
    /// Goes on with a run.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn resume(&self, run: &str) -> Result<(), String>;
    /// Asks a run to stop, as Ctrl-C does.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn stop(&self, run: &str) -> Result<(), String>;
    /// Keeps imported results as a run, and gives back its id.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn keep(&self, sources: &[ImportSource], title: String) -> Result<String, String>;
    /// What was started from the page, oldest first.
    fn begun(&self) -> Vec<Begun>;
}

/// Something that was started from the page.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    /// `run demo.toml`.
    pub(crate) what: String,
    /// Its process.
    pub(crate) pid: u32,
    /// How it ended, in words; none: it goes on.
    pub(crate) ended: Option<String>,
    /// The end of what it said.
    pub(crate) said: String,
}

/// What is served.
pub(crate) struct WebSite {
    cache: RunCache,
    guard: Guard,
    control: Option<Arc<dyn RunControl>>,
    clock: Arc<dyn Clock>,
    connections: AtomicUsize,
}

impl WebSite {
    /// The runs of a store, for those the guard lets in; without control they can only read.
    pub(crate) fn new(
        store: Store,
        guard: Guard,
        control: Option<Arc<dyn RunControl>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            cache: RunCache::new(store),
            guard,
            control,
            clock,
            connections: AtomicUsize::new(0),
        }
    }
}

/// What a guard with a token says of the first bytes of a connection: a status, and whether they
/// are let in; none: they are not a whole head. For the checks of what comes from outside.
pub(crate) fn judged(bytes: &[u8]) -> Option<(u16, bool)> {
    let guard = Guard {
        token: Some("a token that no input contains".to_owned()),
        loopback: false,
        name: "here".to_owned(),
        port: 80,
    };
    Some(match http::understood(bytes) {
        Ok(None) => return None,
        Err(HttpError::Gone) => (400, false),
        Err(HttpError::Refused(status, _)) => (status, false),
        Ok(Some(request)) => match guard.admit(&request) {
            Admission::Granted | Admission::Cookie { .. } => (200, true),
            Admission::Refused(status, _) => (status, false),
        },
    })
}

/// Serves until the process ends.
pub(crate) fn serve(listener: &TcpListener, site: &Arc<WebSite>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Too many files are open, or the visitor is gone already: neither lasts.
            site.clock.sleep(Duration::from_millis(100));
            continue;
        };
        let place = Place::take(site);
        let visited = Arc::clone(site);
        std::thread::spawn(move || {
            let full = place.1 > CONNECTIONS_MAX;
            visit(&visited, stream, full);
            drop(place);
        });
    }
}

/// One of the connections there may be, and how many there are with it.
struct Place(Arc<WebSite>, usize);

impl Place {
    fn take(site: &Arc<WebSite>) -> Self {
        let before = site.connections.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(site), before + 1)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One connection from its request to its end.
fn visit(site: &WebSite, mut stream: TcpStream, full: bool) {
    let (answer, head_only) = if full {
        (frame::sorry(site, 503, "Too many pages are open."), false)
    } else {
        match http::read(&mut stream, site.clock.as_ref()) {
            Err(HttpError::Gone) => return,
            Err(HttpError::Refused(status, why)) => (frame::sorry(site, status, why), false),
            Ok(request) => match site.answer(&request) {
                Answer::Whole(response) => (*response, request.head_only),
                Answer::EventStream(stream_of) => {
                    // The visitor went away: an answer would reach no one.
                    let _ = events::send(site, &stream_of, &mut stream);
                    return;
                }
            },
        }
    };
    let _ = answer.send(&mut stream, head_only);
    close(&mut stream);
}

/// Closes a connection so that the answer arrives: what was sent and not read would make the system
/// throw away what the visitor has not read yet.
fn close(stream: &mut TcpStream) {
    use std::io::Read;
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut rest = [0; 4096];
    for _ in 0..256 {
        match stream.read(&mut rest) {
            Ok(1..) => {}
            _ => return,
        }
    }
}

/// An answer.
enum Answer {
    /// All of it.
    Whole(Box<HttpResponse>),
    /// News as they come.
    EventStream(events::EventStream),
}

impl From<HttpResponse> for Answer {
    fn from(response: HttpResponse) -> Self {
        Self::Whole(Box::new(response))
    }
}

impl WebSite {
    fn answer(&self, request: &HttpRequest) -> Answer {
        match self.guard.admit(request) {
            Admission::Granted => self.page(request),
            Admission::Cookie { cookie, place } => {
                HttpResponse::see(place).with("Set-Cookie", cookie).into()
            }
            Admission::Refused(status, why) => frame::sorry(self, status, why).into(),
        }
    }

    fn page(&self, request: &HttpRequest) -> Answer {
        let parts: Vec<&str> = request.path.split('/').skip(1).collect();
        match (request.method, parts.as_slice()) {
            (Method::Get, [""]) => runs::page(self).into(),
            (Method::Get, ["events"]) => Answer::EventStream(events::EventStream::List),
            (Method::Get, ["style.css"]) => frame::style().into(),
            (Method::Get, ["page.js"]) => frame::script().into(),
            (Method::Get, ["run", run]) => run::page(self, run).into(),
            (Method::Get, ["run", run, "report.html"]) => run::report(self, run).into(),
            (Method::Get, ["run", run, "events"]) => match self.cache.holds(run) {
                true => Answer::EventStream(events::EventStream::of_run(run, request)),
                false => self.nothing(request),
            },
            (Method::Post, ["run", run, "stop"]) => start::stop(self, run).into(),
            (Method::Post, ["run", run, "resume"]) => start::resume(self, run).into(),
            (Method::Get, ["history"]) => past::page(self, request).into(),
            (Method::Get, ["beside"]) => beside::page(self, request).into(),
            (Method::Get, ["import"]) => import::page(self).into(),
            (Method::Post, ["import"]) => import::read(self, request).into(),
            (Method::Post, ["import", "keep"]) => import::keep(self, request).into(),
            (Method::Get, ["start"]) => start::page(self).into(),
            (Method::Post, ["start"]) => start::start(self, request).into(),
            _ => self.nothing(request),
        }
    }

    fn nothing(&self, request: &HttpRequest) -> Answer {
        match request.method {
            Method::Get => frame::sorry(self, 404, "There is no such page.").into(),
            Method::Post => frame::sorry(self, 405, "This address takes no form.").into(),
        }
    }
}
