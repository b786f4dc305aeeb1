//! This program on other machines: one protocol of three verbs (`exec`, `turn`, `phase`) over whatever
//! leads there: the input and output of ssh, the serial port of a guest, a socket in this process.
//!
//! [`message`] has every message, [`frame`] how they lie in the stream. The coordinator is the program
//! the user started: it holds one [`connection`] to each machine, and its [`router`] carries what the
//! machines of one stack say to each other. A [`worker`] executes. To the rest of the program another
//! machine is a [`remote_host`]. One on which this program is not, and only a POSIX shell, is reached
//! through a [`shell`].

pub mod connection;
pub mod frame;
pub mod message;
pub mod polled;
pub mod program;
pub mod remote_host;
pub mod router;
pub mod shell;
pub mod ssh;
#[cfg(test)]
mod tests;
pub mod watch;
pub mod window;
pub mod worker;
