//! This program on other machines: one protocol of three verbs (`exec`, `turn`, `phase`) over whatever
//! leads there: the input and output of ssh, the serial port of a guest, a socket in this process.
//!
//! [`message`] has every message, [`frame`] how they lie in the stream. The coordinator is the program
//! the user started: it holds one [`connection`] to each machine, and its [`router`] carries what the
//! machines of one stack say to each other. A [`worker`] executes. To the rest of the program another
//! machine is a [`remote_host`]. One on which this program is not, and only a POSIX shell, is reached
//! through a [`shell`].

pub(crate) mod connection;
pub(crate) mod frame;
pub(crate) mod message;
pub(crate) mod polled;
pub(crate) mod program;
pub(crate) mod remote_host;
pub(crate) mod router;
pub(crate) mod shell;
pub(crate) mod ssh;
#[cfg(test)]
mod tests;
pub(crate) mod watch;
pub(crate) mod window;
pub(crate) mod worker;
