//! Faults of a machine on request: from another terminal, while it runs.
//!
//! The program that holds the machine listens on a socket in its directory; a request is one JSON
//! object, a reply another, and what was done is put on record.

use super::description::Description;
use super::error::LabError;
use super::machine::{LabMachine, MachineSite};
use super::short::Short;
use serde::{Deserialize, Serialize};
use stackrace_base::bounded::ByteLimit;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_machine::host::HostError;
use std::fmt;
use std::io::{BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Name of the socket in the machine's directory.
const SOCKET: &str = "faults";

/// A request or a reply, as one line.
const LINE: ByteLimit = ByteLimit::new(64 << 10);

/// Interval at which it is checked whether a request comes, and whether the machine is still needed.
const LOOK: Duration = Duration::from_millis(20);

/// Time a program that has connected may take to send its request.
const PATIENCE: Duration = Duration::from_secs(5);

/// A fault of a machine, injected while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum MachineFault {
    /// The power of a guest goes, or comes back.
    Power {
        /// The guest, from 1.
        node: usize,
        /// True if it comes back.
        on: bool,
    },
    /// The network link of a guest is cut, or mended.
    Link {
        /// The guest, from 1.
        node: usize,
        /// True if it is cut.
        cut: bool,
    },
    /// A fault of a disk.
    Disk {
        /// The guest, from 1.
        node: usize,
        /// The disk.
        serial: String,
        /// Fault of the disk.
        #[serde(flatten)]
        what: DiskFault,
    },
}

/// Faults of a disk, injected while the machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "disk", rename_all = "kebab-case")]
pub enum DiskFault {
    /// The disk is pulled: the guest has it no more.
    Pull,
    /// Requests fail that touch these bytes; none are given: all of them.
    Fail {
        /// The first byte, and how many.
        bytes: Option<(u64, u64)>,
    },
    /// No request fails any more.
    Mend,
}

impl fmt::Display for MachineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Power { node, on: false } => write!(f, "node{node} lost its power"),
            Self::Power { node, on: true } => write!(f, "node{node} has power again"),
            Self::Link { node, cut: true } => write!(f, "the link of node{node} was cut"),
            Self::Link { node, cut: false } => write!(f, "the link of node{node} was mended"),
            Self::Disk { node, serial, what } => match what {
                DiskFault::Pull => write!(f, "{serial} of node{node} was pulled"),
                DiskFault::Mend => write!(f, "{serial} of node{node} works again"),
                DiskFault::Fail { bytes: None } => {
                    write!(
                        f,
                        "every request to {serial} of node{node} fails from now on"
                    )
                }
                DiskFault::Fail {
                    bytes: Some((from, length)),
                } => write!(
                    f,
                    "requests to {length} bytes of {serial} of node{node}, from byte {from} on, fail from now on"
                ),
            },
        }
    }
}

impl MachineFault {
    /// Lets it happen.
    fn happen(
        &self,
        machine: &LabMachine,
        site: &MachineSite<'_>,
        description: &Description,
    ) -> Result<(), LabError> {
        match self {
            Self::Power { node, on: false } => machine.cut_power(*node),
            Self::Power { node, on: true } => machine.power_on(*node, site, description),
            Self::Link { node, cut } => machine.cut_link(*node, *cut),
            Self::Disk { node, serial, what } => match what {
                DiskFault::Pull => machine.pull_disk(*node, serial),
                DiskFault::Mend => machine.fail_disk(*node, serial, None),
                DiskFault::Fail { bytes } => {
                    // All that a number can name, whatever the size of the disk.
                    let (from, length) = bytes.unwrap_or((0, u64::MAX));
                    let range = from..from.saturating_add(length);
                    machine.fail_disk(*node, serial, Some(range))
                }
            },
        }
    }
}

/// A machine to which something may happen.
pub struct FaultTarget<'a> {
    /// The guest, which runs.
    pub machine: &'a LabMachine,
    /// Site it was made with.
    pub site: &'a MachineSite<'a>,
    /// Description it was made from.
    pub description: &'a Description,
    /// Name among several; `None` if it is alone.
    pub name: Option<&'a str>,
}

impl FaultTarget<'_> {
    fn listen(&self) -> Result<UnixListener, LabError> {
        let dir = self.machine.dir();
        let failed = |error| HostError::path("listen for faults in", dir, error);
        let short = Short::of(dir).map_err(failed)?;
        let listener = UnixListener::bind(short.join(SOCKET)).map_err(failed)?;
        // The thread must see when the work is over.
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(listener)
    }

    /// Answers requests until the machine is no longer needed.
    fn serve(&self, listener: &UnixListener, told: &dyn Fn(&str), over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let Ok((stream, _)) = listener.accept() else {
                SystemClock.sleep(LOOK);
                continue;
            };
            // A program that does not wait for the answer has ended.
            let _ = answer(stream, |fault| {
                fault.happen(self.machine, self.site, self.description)?;
                match self.name {
                    Some(name) => told(&format!("{fault} ({name})")),
                    None => told(&fault.to_string()),
                }
                Ok(())
            });
        }
    }
}

/// Calls while faults may be asked for; `told` hears what happened, as it happens.
///
/// # Errors
/// When there can be no socket.
pub fn while_open_to<T>(
    open: &[FaultTarget<'_>],
    told: &(dyn Fn(&str) + Sync),
    work: impl FnOnce() -> T,
) -> Result<T, LabError> {
    let listeners: Vec<UnixListener> = open
        .iter()
        .map(FaultTarget::listen)
        .collect::<Result<_, _>>()?;
    let over = AtomicBool::new(false);
    Ok(std::thread::scope(|scope| {
        for (open, listener) in open.iter().zip(&listeners) {
            scope.spawn(|| open.serve(listener, told, &over));
        }
        let done = work();
        // The scope waits for the threads, so they must end even if no fault was asked for.
        over.store(true, Ordering::Relaxed);
        done
    }))
}

/// Answer: `None` if it happened; else the reason that it did not.
type Answer = Option<String>;

fn answer(
    mut stream: UnixStream,
    happen: impl FnOnce(&MachineFault) -> Result<(), LabError>,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    // A client that connects and sends nothing must not keep others from being heard.
    stream.set_read_timeout(Some(PATIENCE))?;
    let text = LINE.line(&mut BufReader::new(stream.try_clone()?))?;
    let answer: Answer = match serde_json::from_slice(&text.unwrap_or_default()) {
        Ok(fault) => happen(&fault).err().map(|error| error.to_string()),
        Err(error) => Some(format!("not understood: {error}")),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Returns true if a machine in a directory can be asked for faults.
pub fn can_be_asked(dir: &Path) -> bool {
    Short::of(dir).is_ok_and(|short| short.join(SOCKET).exists())
}

/// Asks the machine in a directory for a fault, and waits until it has happened.
///
/// # Errors
/// Why it has not.
pub fn ask(dir: &Path, fault: &MachineFault) -> Result<(), LabError> {
    let failed = |error: std::io::Error| HostError::path("ask the machine in", dir, error);
    let mut stream = Short::of(dir)
        .and_then(|short| UnixStream::connect(short.join(SOCKET)))
        .map_err(failed)?;
    let mut line = serde_json::to_vec(fault).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(failed)?;
    let text = LINE.line(&mut BufReader::new(stream)).map_err(failed)?;
    match serde_json::from_slice::<Answer>(&text.unwrap_or_default()) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(LabError::Refused(why)),
        Err(_) => Err(LabError::Ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_asked_for_in_one_line_and_answered() {
        let faults = [
            MachineFault::Power { node: 2, on: true },
            MachineFault::Disk {
                node: 1,
                serial: "disk-1".to_string(),
                what: DiskFault::Fail {
                    bytes: Some((4096, 512)),
                },
            },
        ];
        for refused in [None, Some("no such disk")] {
            for fault in &faults {
                let dir = tempfile::tempdir().unwrap();
                let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
                assert!(can_be_asked(dir.path()));
                let asked = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let (stream, _) = listener.accept().unwrap();
                        answer(stream, |heard| {
                            assert_eq!(heard, fault);
                            match refused {
                                None => Ok(()),
                                Some(why) => Err(LabError::Refused(why.to_string())),
                            }
                        })
                        .unwrap();
                    });
                    ask(dir.path(), fault)
                });
                let expected = refused.map(|why| LabError::Refused(why.to_string()));
                assert_eq!(asked.err(), expected);
            }
        }
        let nowhere = tempfile::tempdir().unwrap();
        assert!(!can_be_asked(nowhere.path()));
        assert!(ask(nowhere.path(), &faults[0]).is_err());
    }
}
