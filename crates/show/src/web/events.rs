//! What has changed, sent as it happens: Server-Sent Events.
//!
//! A thread looks at the log's length and at `now.json` four times a second; a log that has not
//! grown costs one `stat`. What follows from a log is worked out at most once a second, however many
//! trials end, and only while a page is open. Pieces of the page are sent as they are to stand
//! there, so that the script need not know what they mean.

use std::io;
use std::time::Duration;

use maud::{Markup, html};

use super::arriving::ReceivedLine;
use super::http::{HttpRequest, HttpResponse};
use super::site::WebSite;
use super::{run, runs};
use crate::report;
use stackrace_results::record::Now;

/// Interval between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// Time between two pieces that cost work, ns.
const WORK_NS: u64 = 1_000_000_000;
/// Silence after which the visitor is asked whether it is still there, ns.
const SILENCE_NS: u64 = 10_000_000_000;

/// The events that are listened to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventStream {
    /// The list of runs.
    List,
    /// Events in one run.
    Run {
        /// Its id.
        run: String,
        /// Bytes of its log that the visitor has seen.
        seen: u64,
    },
}

impl EventStream {
    /// The stream of a run. A visitor that comes back says what it heard last; one that is new what
    /// its page shows.
    pub(super) fn of_run(run: &str, request: &HttpRequest) -> Self {
        let last = request.header("last-event-id");
        let seen = last.or_else(|| request.asked("seen"));
        Self::Run {
            run: run.to_owned(),
            seen: seen.and_then(|seen| seen.parse().ok()).unwrap_or(0),
        }
    }
}

/// The visitor's end of the line.
struct EventLine<'a, 'b> {
    line: &'a mut ReceivedLine<'b>,
    site: &'a WebSite,
    said_ns: u64,
}

impl EventLine<'_, '_> {
    /// Sends one event: a piece of the page.
    fn say(&mut self, name: &str, id: Option<u64>, piece: Markup) -> io::Result<()> {
        let mut text = format!("event: {name}\n");
        if let Some(id) = id {
            text.push_str(&format!("id: {id}\n"));
        }
        // A line ends at either character; a name with a line break must not begin a field of its
        // own.
        for line in report::written(piece).split(['\n', '\r']) {
            text.push_str(&format!("data: {line}\n"));
        }
        text.push('\n');
        self.said_ns = self.site.clock.now_ns();
        self.line.send(text.as_bytes())
    }

    /// Finds out whether the visitor is still there, if nothing was said for long.
    fn alive(&mut self) -> io::Result<()> {
        let now_ns = self.site.clock.now_ns();
        if now_ns.saturating_sub(self.said_ns) > SILENCE_NS {
            self.said_ns = now_ns;
            // A line that begins with a colon is a comment: browsers pass over it, and sending it
            // fails once the visitor is gone.
            self.line.send(b": still here\n\n")?;
        }
        Ok(())
    }
}

/// Sends events until the visitor or the run is gone.
///
/// # Errors
/// The visitor is gone, or takes them too slowly.
pub(super) fn send(
    site: &WebSite,
    stream_of: &EventStream,
    line: &mut ReceivedLine<'_>,
) -> io::Result<()> {
    let head = HttpResponse::new(200, "text/event-stream", "").head();
    // A page that loses the connection asks again after a second.
    line.send(format!("{head}\r\nretry: 1000\n\n").as_bytes())?;
    let mut line = EventLine {
        line,
        site,
        said_ns: site.clock.now_ns(),
    };
    match stream_of {
        EventStream::List => list(site, &mut line),
        EventStream::Run { run, seen } => one(site, &mut line, run, *seen),
    }
}

fn list(site: &WebSite, line: &mut EventLine<'_, '_>) -> io::Result<()> {
    let mut said = String::new();
    loop {
        let piece = runs::list(site);
        if piece.0 != said {
            said.clone_from(&piece.0);
            line.say("runs", None, piece)?;
        }
        line.alive()?;
        site.clock.sleep(Duration::from_nanos(WORK_NS));
    }
}

fn one(site: &WebSite, line: &mut EventLine<'_, '_>, run: &str, mut seen: u64) -> io::Result<()> {
    let mut doing: Option<Now> = None;
    let mut worked_ns = 0;
    loop {
        // Asked before the log is read: what was written until the end is then sent.
        let goes_on = site.cache.goes_on(run);
        // A log that cannot be looked at just now counts as unchanged.
        let bytes = site.cache.version(run).map_or(seen, |(bytes, _)| bytes);
        let due = site.clock.now_ns().saturating_sub(worked_ns) >= WORK_NS;
        // What came last is sent at once: there is no next time.
        if bytes != seen && (due || !goes_on) {
            seen = bytes;
            worked_ns = site.clock.now_ns();
            record(site, line, run, bytes)?;
        }
        if !goes_on {
            return line.say("end", None, end(site, run));
        }
        let now = site.cache.now(run);
        if now.is_some() && now != doing {
            if let Ok(judged) = site.cache.known(run) {
                let piece = report::doing(&judged.record, now.as_ref());
                line.say("doing", None, piece)?;
            }
            doing = now;
        }
        line.alive()?;
        site.clock.sleep(LOOK);
    }
}

/// Line above a run that has ended.
fn end(site: &WebSite, run: &str) -> Markup {
    match site.cache.judged(run) {
        // The error may name a file as another user called it.
        Err(error) => html! { (error) },
        Ok(judged) => {
            let ended = judged.record.ended().map(|ended| ended.reason);
            run::stage_line(site, &judged.record, &site.cache.stage(run, ended))
        }
    }
}

/// Sends what follows from the log as it is.
fn record(site: &WebSite, line: &mut EventLine<'_, '_>, run: &str, bytes: u64) -> io::Result<()> {
    let Ok(judged) = site.cache.judged(run) else {
        return Ok(());
    };
    let race = report::race(&judged.record, &judged.verdict);
    let sentence = format!(
        "{} of at most {} rounds done.",
        judged.verdict.rounds, judged.record.head.decide.rounds_max
    );
    let pieces: [(&str, Markup); 2] = [("race", race), ("record", judged.body().clone())];
    for (name, piece) in pieces {
        line.say(name, None, piece)?;
    }
    // The number comes last: a page that has it has everything above too.
    line.say("status", Some(bytes), html! { (sentence) })
}
