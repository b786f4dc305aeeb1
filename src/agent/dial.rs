//! The line to another guest's agent: made when it is first asked, and again when it has ended, as
//! that guest may lose its power and come back.

use super::wire::Request;
use super::{Agent, held};
use crate::time::{Clock, SystemClock};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long one try to connect may take.
const CONNECT: Duration = Duration::from_secs(30);

/// How long one that was there is waited for, from when it was first missed: it may be starting.
const RETURN: Duration = Duration::from_secs(60);

/// How often it is tried meanwhile.
const LOOK: Duration = Duration::from_millis(200);

/// A line to the agent at an address.
pub(crate) struct Dial {
    address: SocketAddr,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    agent: Option<Arc<Agent>>,
    /// Since when one that was there does not answer; none: it does, or was never there.
    missed_ns: Option<u64>,
}

impl Dial {
    /// To an address; nothing is connected yet.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let line = Mutex::default();
        Self { address, line }
    }

    /// Where the agent listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection beside the line.
    ///
    /// # Errors
    /// When there is none at once.
    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Who answers there. Nothing is asked a second time: a request that was under way when the line
    /// ended has failed.
    ///
    /// # Errors
    /// When nobody does: at once, or where somebody was there, after he has been missed for
    /// [`RETURN`].
    pub(crate) fn agent(&self) -> std::io::Result<Arc<Agent>> {
        let mut line = held(&self.line);
        if let Some(agent) = line.agent.as_ref().filter(|agent| !agent.has_ended()) {
            return Ok(Arc::clone(agent));
        }
        if line.agent.take().is_some() {
            line.missed_ns = Some(SystemClock.now_ns());
        }
        let until = line
            .missed_ns
            .map_or(0, |missed| missed + RETURN.as_nanos() as u64);
        let stream = loop {
            match self.connect() {
                Ok(stream) => break stream,
                Err(error) if SystemClock.now_ns() > until => return Err(error),
                Err(_) => SystemClock.sleep(LOOK),
            }
        };
        line.missed_ns = None;
        let agent = Arc::new(Agent::over(stream.try_clone()?, stream));
        line.agent = Some(Arc::clone(&agent));
        Ok(agent)
    }

    /// Looks after one that has been silent: whether somebody is there, and whether it is still the
    /// one of this line, which otherwise ends.
    ///
    /// # Errors
    /// When it is not there: the line is not used again.
    pub(crate) fn look_after(&self, agent: &Agent) -> Result<(), String> {
        if let Err(error) = self.connect() {
            // Whoever comes back knows nothing of it, but cannot be asked to say so.
            *held(&self.line) = Line {
                agent: None,
                missed_ns: Some(SystemClock.now_ns()),
            };
            return Err(error.to_string());
        }
        let asked = agent.ask(Request::Hello);
        asked.map(|_| ()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve;
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::{Ipv4Addr, TcpListener};

    /// As one that loses its power and has it again: what is asked meanwhile fails, what is asked
    /// later does not.
    #[test]
    fn one_that_comes_back_is_connected_to_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let dial = Dial::new(listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (first, _) = listener.accept().unwrap();
            let mut asked = String::new();
            BufReader::new(first).read_line(&mut asked).unwrap();
            let (second, _) = listener.accept().unwrap();
            serve::of_peer(second)
        });
        let before = dial.agent().unwrap();
        assert!(Arc::ptr_eq(&before, &dial.agent().unwrap()));
        let patience = Duration::from_secs(60);
        assert!(before.done(Request::Hello, patience).is_err());
        let after = dial.agent().unwrap();
        after.done(Request::Hello, patience).unwrap();
        assert!(before.has_ended() && !after.has_ended());
    }

    #[test]
    fn one_that_was_there_is_waited_for() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let dial = Dial::new(address);
        let before = dial.agent().unwrap();
        drop(listener);
        assert!(dial.look_after(&before).is_err());
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| dial.agent().map(|_| ()));
            let _listener = TcpListener::bind(address).unwrap();
            asked.join().unwrap().unwrap();
        });
        assert!(held(&dial.line).missed_ns.is_none());
    }

    #[test]
    fn one_that_was_never_there_is_not_waited_for() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let dial = Dial::new(listener.local_addr().unwrap());
        drop(listener);
        assert!(dial.agent().is_err());
        assert!(held(&dial.line).missed_ns.is_none());
    }
}
