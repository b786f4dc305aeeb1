//! The live page: running and past studies over HTTP, for visitors the guard admits.
//!
//! Everything is rendered here, so that a page reads whole without a script; the one script only
//! brings what has changed. Nothing is fetched from elsewhere. This room only reads: starting and
//! stopping runs goes through the [`RunControl`] it is given, and without `--control` it has none.

mod arriving;
mod beside;
mod cache;
mod events;
mod frame;
mod guard;
mod http;
mod import;
mod limits;
mod metrics;
mod past;
mod run;
mod runs;
mod site;
mod start;

pub use guard::Guard;
pub use site::{Begun, RunControl, TextReader, WebSite};

use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use self::arriving::ReceivedLine;
use self::guard::Admission;
use self::http::{HttpError, HttpRequest, HttpResponse, Method};
use self::limits::Visit;

/// Bytes of a form with the texts of other tools, all of them together.
const IMPORT_MAX: usize = 16 << 20;
/// Bytes of any other form.
const FORM_MAX: usize = 4 << 10;

/// Judgement of a guard with a token on the first bytes of a connection: a status, and whether they
/// are let in; `None` if they are not a whole head. For the checks of what comes from outside.
#[cfg(any(test, feature = "testing"))]
pub fn judged(bytes: &[u8]) -> Option<(u16, bool)> {
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
pub fn serve(listener: &TcpListener, site: &Arc<WebSite>) {
    // This machine's own runs are not read ahead: that could disturb a measurement.
    if site.cache.shared() {
        let ahead = Arc::clone(site);
        // Without a thread for it, the first visitor of each page waits a little.
        let _ = std::thread::Builder::new().spawn(move || ahead.cache.read_ahead());
    }
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Too many files are open, or the visitor is gone already: neither lasts.
            site.clock.sleep(Duration::from_millis(100));
            continue;
        };
        let (visited, sent_away) = (Arc::clone(site), stream.try_clone());
        let begun = site.limits.arrive(&stream).map(|place| {
            std::thread::Builder::new().spawn(move || visit(&visited, stream, &place))
        });
        if let (None | Some(Err(_)), Ok(mut stream)) = (begun, sent_away) {
            send_away(site, &mut stream);
        }
    }
}

/// Answers that there is no room, without waiting for anything: the others wait meanwhile.
fn send_away(site: &WebSite, stream: &mut TcpStream) {
    use std::io::Read;
    if stream.set_nonblocking(true).is_ok() {
        // What has arrived and is not read would make the system throw the answer away.
        let _ = stream.read(&mut [0; 4096]);
        let answer = frame::sorry(site, 503, "Too many pages are open. Try again in a minute.");
        let _ = ReceivedLine::new(stream, site.clock.as_ref()).answer(&answer, false);
    }
}

/// One connection from its request to its end.
fn visit(site: &WebSite, mut stream: TcpStream, place: &Visit) {
    let client = stream
        .peer_addr()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip());
    let mut line = ReceivedLine::new(&mut stream, site.clock.as_ref());
    let (answer, head_only) = match site.answer(&mut line) {
        Err(HttpError::Gone) => return,
        Err(HttpError::Refused(status, why)) => (frame::sorry(site, status, why), false),
        Ok((Answer::Whole(response), head_only)) => (*response, head_only),
        Ok((Answer::EventStream(stream_of), _)) => match place.listen(client) {
            Some(_listener) => {
                // The visitor went away: an answer would reach nothing.
                let _ = events::send(site, &stream_of, &mut line);
                return;
            }
            None => {
                let why = "Too many pages are open that show what changes.";
                (frame::sorry(site, 503, why), false)
            }
        },
    };
    // An answer that does not arrive concerns the visitor alone.
    let _ = line.answer(&answer, head_only);
    line.close();
}

/// Reply sent to a visitor.
enum Answer {
    /// A response of a known length, sent at once.
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
    /// The answer to the request that arrives, and whether only the answer's head is wanted.
    fn answer(&self, line: &mut ReceivedLine<'_>) -> Result<(Answer, bool), HttpError> {
        let arrived = line.head()?;
        let head_only = arrived.request.head_only;
        // Before anything more is read: a stranger's form takes no memory.
        let refused = match self.guard.admit(&arrived.request) {
            Admission::Granted => None,
            Admission::Cookie { cookie, place } => {
                Some(HttpResponse::see(place).with("Set-Cookie", cookie))
            }
            Admission::Refused(status, why) => Some(frame::sorry(self, status, why)),
        };
        if let Some(refused) = refused {
            return Ok((refused.into(), head_only));
        }
        let most = match arrived.request.path.as_str() {
            "/import" | "/import/keep" => IMPORT_MAX,
            _ => FORM_MAX,
        };
        // Held until the answer is made: the texts take memory just as long.
        let (request, _room) = line.form(arrived, most, &self.limits)?;
        Ok((self.page(&request), head_only))
    }

    fn page(&self, request: &HttpRequest) -> Answer {
        // The path begins with a slash: what is before it is no part.
        let parts: Vec<&str> = request.path.split('/').skip(1).collect();
        match (request.method, parts.as_slice()) {
            (Method::Get, [""]) => runs::page(self).into(),
            (Method::Get, ["metrics"]) => metrics::page(self).into(),
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
