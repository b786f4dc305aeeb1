//! What the program outside of a guest and the one inside say to each other: one JSON object a line
//! over a serial port, or over TCP between guests, each reply with the number of the request it belongs to.

use crate::host::verb::{Told, Verb};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Name of the serial port, inside and outside.
pub(crate) const PORT: &str = "stackrace";

/// A request or a reply with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Numbered<T> {
    /// Of the request.
    pub(crate) id: u64,
    /// What is said.
    #[serde(flatten)]
    pub(crate) said: T,
}

/// What a guest is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Say that it is there: [`Reply::Done`].
    Hello,
    /// Let the commands from here on be those of a run: [`Reply::Done`].
    Belong {
        /// Its name.
        run: String,
    },
    /// Run a command to its end: [`Reply::Ended`].
    Exec {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Do what a host does: [`Reply::Did`] or [`Reply::Unable`].
    Do {
        /// What.
        #[serde(flatten)]
        verb: Verb,
    },
    /// Measure the line to another guest, with so many bytes: [`Reply::Did`] with a
    /// [`LineSpeed`](crate::host::LineSpeed).
    Measure {
        /// Where its agent listens.
        address: SocketAddr,
        /// How many.
        bytes: u64,
    },
    /// Listen once at an address of this machine for one who measures the line to it, and says and
    /// sends nothing else: [`Reply::Did`] with address and port.
    Listen {
        /// Which.
        address: IpAddr,
    },
    /// Read so many bytes that follow this line, and drop them: [`Reply::Done`].
    Receive {
        /// How many.
        bytes: u64,
    },
    /// Write a file, over another one if need be: [`Reply::Done`].
    Write {
        /// Absolute; its directory is made.
        path: String,
        /// All of it.
        text: String,
    },
    /// Run a command, and send each line it prints as it is printed: [`Reply::Line`] …, then
    /// [`Reply::Ended`], whose standard output is empty.
    Follow {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Hand a line to the command of a [`Request::Follow`]: [`Reply::Done`].
    Tell {
        /// Its number.
        of: u64,
        /// Without its line break.
        text: String,
    },
    /// Ask the command of a [`Request::Follow`] to end, as Ctrl-C would: [`Reply::Done`].
    Interrupt {
        /// Its number.
        of: u64,
    },
}

/// What a guest answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// It is done.
    Done,
    /// A line that a command printed, without its line break.
    Line {
        /// As it was printed.
        text: String,
    },
    /// A command ended.
    Ended {
        /// Exit status; none: ended by a signal.
        status: Option<i32>,
        /// Standard output.
        stdout: String,
        /// Standard error.
        stderr: String,
        /// How long it took by the guest's clock, ns.
        elapsed_ns: u64,
    },
    /// A host did what was asked.
    Did {
        /// Its answer.
        value: serde_json::Value,
    },
    /// A host could not do what was asked.
    Unable {
        /// Why.
        told: Told,
    },
    /// It could not be done.
    Refused {
        /// What was tried and what the system said.
        why: String,
    },
}

/// One line, with its line break.
pub(crate) fn line<T: Serialize>(id: u64, said: T) -> std::io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Numbered { id, said })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_one_line_and_comes_back() {
        let said = Request::Exec {
            argv: vec!["echo".to_string(), "a\nb \"c\" ü".to_string()],
        };
        let bytes = line(7, said.clone()).unwrap();
        assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let back: Numbered<Request> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(back, Numbered { id: 7, said });
        let text = String::from_utf8(line(1, Reply::Done).unwrap()).unwrap();
        assert_eq!(text, "{\"id\":1,\"reply\":\"done\"}\n");
    }
}
