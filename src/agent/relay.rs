//! The peers of a stack's first machine, asked through the one who started the program there.
//!
//! Only the machine the user sits at can log in to the others, so what the first one asks of a peer
//! goes back over its own lines, `{"peer":2,"ask":{…}}`, and the answer comes as one of those it is
//! told, `{"peer":2,"reply":{…}}`. When the line to a peer ends, the first machine hears why
//! (`{"peer":2,"gone":"…"}`); when its own line ends, all of them are gone.
//!
//! [`Relay`] is the end of the one who carries, [`first`] that of the program at the first machine.

use super::wire::{Numbered, Reply, Request, line};
use super::{Agent, held};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Shutdown};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// How every line begins that is of a peer.
const OF_PEER: &str = "{\"peer\":";

/// What the program at the first machine must know of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduced {
    /// What the user calls it.
    pub(crate) name: String,
    /// Where the line of a stack goes.
    pub(crate) address: IpAddr,
    /// What the run has there; it is made when it is needed.
    pub(crate) directory: PathBuf,
}

/// What the first machine asks of a peer.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    /// Its number, from 2.
    peer: usize,
    ask: Numbered<Request>,
}

/// What comes back.
#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    peer: usize,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// What the agent there said.
    Reply(Numbered<Reply>),
    /// There is no line to it any more: why.
    Gone(String),
}

/// A peer at the end of the one who carries.
pub(crate) trait Far: Send + Sync {
    /// Who does there what is asked.
    fn agent(&self) -> &Agent;
    /// Why the line to it has ended.
    fn why(&self) -> String;
}

/// Carries what a program at the first machine asks of its peers.
#[derive(Clone)]
pub(crate) struct Relay {
    first: Arc<Agent>,
    peers: Vec<Arc<dyn Far>>,
}

impl Relay {
    /// Between a program that the first machine's agent follows and these peers, from number 2 on.
    pub(crate) fn new(first: Arc<Agent>, peers: Vec<Arc<dyn Far>>) -> Self {
        Self { first, peers }
    }

    /// Takes a line out of what the program of this number says, if it is for a peer; what comes of
    /// it is told to the program whenever it does.
    pub(crate) fn takes(&self, program: u64, text: &str) -> bool {
        if !text.starts_with(OF_PEER) {
            return false;
        }
        let Ok(Asked { peer, ask }) = serde_json::from_str(text) else {
            return false;
        };
        let back = Back {
            first: Arc::clone(&self.first),
            program,
            peer,
        };
        match peer.checked_sub(2).and_then(|at| self.peers.get(at)) {
            Some(far) => back.ask(far, ask),
            None => back.tell(Answer::Gone("nobody knows where it is".to_owned())),
        }
        true
    }
}

/// The way back to the one who asked.
struct Back {
    first: Arc<Agent>,
    program: u64,
    peer: usize,
}

impl Back {
    fn ask(self, far: &Arc<dyn Far>, ask: Numbered<Request>) {
        let id = ask.id;
        // Bytes that follow a request do not come along.
        if let Request::Receive { .. } = ask.said {
            let why = "that cannot be carried".to_owned();
            let said = Reply::Refused { why };
            return self.tell(Answer::Reply(Numbered { id, said }));
        }
        let asked = far.agent().ask(ask.said);
        let far = Arc::clone(far);
        std::thread::spawn(move || {
            let mut answered = false;
            if let Ok((_, replies)) = asked {
                for said in replies {
                    answered |= !matches!(said, Reply::Line { .. });
                    self.tell(Answer::Reply(Numbered { id, said }));
                }
            }
            if !answered {
                self.tell(Answer::Gone(far.why()));
            }
        });
    }

    fn tell(&self, answer: Answer) {
        let peer = self.peer;
        let Ok(text) = serde_json::to_string(&Answered { peer, answer }) else {
            return;
        };
        // A program that has ended wants to know nothing, and how it ended is heard elsewhere.
        let _ = self.first.ask(Request::Tell {
            of: self.program,
            text,
        });
    }
}

/// The line to a peer at the end of the first machine.
pub(crate) struct Line {
    /// What is known of it.
    pub(crate) of: Introduced,
    agent: Arc<Agent>,
    gone: Arc<Mutex<Option<String>>>,
}

impl Line {
    /// Who does there what is asked.
    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// Why it has ended, if it has.
    pub(crate) fn gone(&self) -> String {
        let gone = held(&self.gone).clone();
        gone.unwrap_or_else(|| "the one who carries what is said has gone".to_owned())
    }
}

/// The far end of a line, where what is asked becomes a line of the program's and back.
struct Desk {
    port: UnixStream,
    gone: Arc<Mutex<Option<String>>>,
}

impl Desk {
    fn answered(&self, answer: Answer) {
        let written = match answer {
            Answer::Reply(Numbered { id, said }) => {
                line(id, said).and_then(|bytes| (&self.port).write_all(&bytes))
            }
            Answer::Gone(why) => {
                *held(&self.gone) = Some(why);
                self.port.shutdown(Shutdown::Both)
            }
        };
        // Nobody reads at a line that has ended.
        drop(written);
    }
}

/// The lines to the peers, and what else the program is told, to its end. `told` is what it reads;
/// `say` prints a line whole.
///
/// # Errors
/// The system's.
pub(crate) fn first(
    peers: Vec<Introduced>,
    told: impl BufRead + Send + 'static,
    say: impl Fn(&[u8]) -> std::io::Result<()> + Clone + Send + 'static,
) -> std::io::Result<(Vec<Arc<Line>>, Receiver<String>)> {
    let mut lines = Vec::new();
    let mut desks = HashMap::new();
    for (number, of) in (2..).zip(peers) {
        let (ours, theirs) = UnixStream::pair()?;
        let gone = Arc::default();
        let asked = BufReader::new(theirs.try_clone()?);
        let say = say.clone();
        std::thread::spawn(move || ask(number, asked, &say));
        let port = theirs;
        desks.insert(
            number,
            Desk {
                port,
                gone: Arc::clone(&gone),
            },
        );
        let agent = Arc::new(Agent::new(ours)?);
        lines.push(Arc::new(Line { of, agent, gone }));
    }
    let (sender, others) = channel();
    std::thread::spawn(move || hand_on(told, &desks, &sender));
    Ok((lines, others))
}

/// Prints what is asked of a peer.
fn ask(peer: usize, asked: impl BufRead, say: &dyn Fn(&[u8]) -> std::io::Result<()>) {
    for text in asked.lines().map_while(Result::ok) {
        let line = format!("{OF_PEER}{peer},\"ask\":{text}}}\n");
        if say(line.as_bytes()).is_err() {
            return;
        }
    }
}

/// Hands on what the program is told, until the end; then the peers are gone as well.
fn hand_on(told: impl BufRead, desks: &HashMap<usize, Desk>, others: &Sender<String>) {
    let mut wanted = true;
    for text in told.lines().map_while(Result::ok) {
        let answered = match text.starts_with(OF_PEER) {
            true => serde_json::from_str::<Answered>(&text).ok(),
            false => None,
        };
        match answered {
            Some(Answered { peer, answer }) => {
                if let Some(desk) = desks.get(&peer) {
                    desk.answered(answer);
                }
            }
            // Who no longer listens may still need the peers.
            None => wanted = wanted && others.send(text).is_ok(),
        }
    }
    for desk in desks.values() {
        // It may have ended already.
        let _ = desk.port.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve;
    use super::*;
    use crate::agent::AgentError;
    use crate::host::argv;
    use crate::host::verb::Verb;
    use std::time::Duration;

    /// A peer in this process; of another, the line has ended.
    struct Near(Agent);

    impl Far for Near {
        fn agent(&self) -> &Agent {
            &self.0
        }

        fn why(&self) -> String {
            "Connection reset".to_owned()
        }
    }

    fn introduced(name: &str) -> Introduced {
        Introduced {
            name: name.to_owned(),
            address: [127, 0, 0, 1].into(),
            directory: PathBuf::from("/nowhere"),
        }
    }

    /// The lines to three peers, of which the second has gone and the third never answers, and what
    /// else is told; what carries between both ends is a thread. The last is what the carrier writes
    /// to the program.
    fn both_ends() -> (Vec<Arc<Line>>, Receiver<String>, UnixStream) {
        let (told, tells) = UnixStream::pair().unwrap();
        let (says, hears) = UnixStream::pair().unwrap();
        let says = Arc::new(says);
        let say = move |bytes: &[u8]| (&*says).write_all(bytes);
        let peers = ["b", "c", "d"].map(introduced).to_vec();
        let (lines, others) = first(peers, BufReader::new(told), say).unwrap();
        // The agent of the first machine hands `Tell` to the program: here, it is what it reads.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut program = tells.try_clone().unwrap();
        std::thread::spawn(move || {
            for text in BufReader::new(theirs).lines().map_while(Result::ok) {
                let told: Numbered<Request> = serde_json::from_str(&text).unwrap();
                let Request::Tell { of: 7, text } = told.said else {
                    panic!("not told: {told:?}");
                };
                program.write_all(format!("{text}\n").as_bytes()).unwrap();
            }
        });
        let first = Arc::new(Agent::new(ours).unwrap());
        std::thread::spawn(move || {
            let (gone, _) = UnixStream::pair().unwrap();
            let (silent, _never) = UnixStream::pair().unwrap();
            let agents = [serve::here(), Agent::new(gone), Agent::new(silent)];
            let peers = agents.map(|agent| -> Arc<dyn Far> { Arc::new(Near(agent.unwrap())) });
            let relay = Relay::new(first, peers.into());
            for text in BufReader::new(hears).lines().map_while(Result::ok) {
                assert!(relay.takes(7, &text), "{text}");
            }
        });
        (lines, others, tells)
    }

    #[test]
    fn what_is_asked_of_a_peer_is_done_there_and_comes_back() {
        let (lines, others, mut tells) = both_ends();
        let agent = lines[0].agent();
        let output = agent
            .exec(&argv(["sh", "-c", "echo \"{\"; exit 3"]))
            .unwrap();
        assert_eq!((output.status, &*output.stdout), (Some(3), "{\n"));
        let root: bool = agent.does("b", Verb::IsRoot).unwrap();
        assert_eq!(root, rustix::process::geteuid().is_root());
        let bytes = Request::Receive { bytes: 1 };
        let refused = agent.done(bytes, Duration::from_secs(60));
        assert!(matches!(refused, Err(AgentError::Refused(_))));
        // What is not of a peer is for somebody else.
        tells.write_all(b"an order\n").unwrap();
        assert_eq!(others.recv().unwrap(), "an order");
    }

    #[test]
    fn a_peer_that_has_gone_is_heard_of_and_so_is_the_end_of_all() {
        let (lines, others, tells) = both_ends();
        let lost = lines[1].agent().exec(&argv(["true"]));
        assert_eq!(lost, Err(AgentError::Ended));
        assert_eq!(lines[1].gone(), "Connection reset");
        lines[0].agent().exec(&argv(["true"])).unwrap();
        // Somebody waits when the one who carries goes.
        let (_, replies) = lines[2].agent().ask(Request::Hello).unwrap();
        tells.shutdown(Shutdown::Both).unwrap();
        assert!(replies.recv().is_err());
        assert!(others.recv().is_err());
        assert!(lines[0].gone().contains("has gone"));
    }

    #[test]
    fn other_lines_are_not_taken() {
        let relay = Relay::new(Arc::new(serve::here().unwrap()), Vec::new());
        for text in ["", "{\"said\":1}", "{\"peer\":2}", "{\"peer\":"] {
            assert!(!relay.takes(1, text), "{text}");
        }
    }
}
