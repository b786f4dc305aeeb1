//! What a guest in virtual time says: frames through a port that is written byte by byte.
//!
//! Nothing may reach such a guest while its clock runs, so it cannot be answered. What it is to do
//! comes with it ([`GuestOrders`]). After each frame the port carries the guest's clock (8 bytes,
//! little-endian, ns since it started) and [`PADDING`] bytes of zeros. The pipe behind the port holds
//! fewer bytes than that: the guest goes on only when the reader has come back for more, after it did
//! what the frame asks for. So a result is on disk before the guest begins the next trial, and the
//! guest's clock, which counts instructions, does not show that it waited.

use super::frame::WireFrame;
use super::message::WorkerRequest;
use serde::{Deserialize, Serialize};
use stackrace_base::time::{Clock, SystemClock};
use std::io::{ErrorKind, Read, Result, Write};

/// Port of the processor on which a guest speaks.
pub const OUTPUT_PORT: u16 = 0xe9;

/// Most bytes that the pipe behind the port may hold.
pub const PIPE_BYTES: usize = 4096;

/// Bytes of zeros after each frame and its time.
const PADDING: usize = PIPE_BYTES + 1;

/// Place of a guest's orders: QEMU's configuration device, which answers at once.
pub const ORDERS_NAME: &str = "opt/stackrace/orders";

/// Orders for a guest in virtual time: everything that will ever be asked of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestOrders {
    /// Time it waits before it begins, ns: by how much the kernel's timers are ahead is one of the
    /// accidents that differ between two rounds.
    pub delay_ns: u64,
    /// One conversation, from its first request to its last.
    pub requests: Vec<WorkerRequest>,
}

/// Writes frames as a guest in virtual time does: each flush ends one.
pub(super) struct PolledWriter<W>(pub(super) W);

impl<W: Write> Write for PolledWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.write_all(&SystemClock.now_ns().to_le_bytes())?;
        self.0.write_all(&[0; PADDING])?;
        self.0.flush()
    }
}

/// Reads what such a guest says. Nothing is read ahead: see the head of this file.
pub struct PolledReader<R> {
    input: R,
    /// True if the padding of the last frame is still to be read.
    padded: bool,
}

impl<R: Read> PolledReader<R> {
    /// A reader at the beginning.
    pub fn new(input: R) -> Self {
        Self {
            input,
            padded: false,
        }
    }

    /// Lets the guest go on, if it waits behind a frame; whether it did. The padding is there or about
    /// to be written, so this does not wait for what the guest does next, as [`Self::read`] would.
    ///
    /// # Errors
    /// The system's.
    pub fn go_on(&mut self) -> Result<bool> {
        let padded = std::mem::take(&mut self.padded);
        if padded {
            let mut padding = [0; PADDING];
            match self.input.read_exact(&mut padding) {
                // A guest that said its last word does not have to finish the padding.
                Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
                _ => {}
            }
        }
        Ok(padded)
    }

    /// The next frame, and the guest's clock when it was written, ns; `None` if the guest has ended.
    ///
    /// # Errors
    /// The system's; what comes is no frame of this version.
    pub fn read(&mut self) -> Result<Option<(u64, WireFrame)>> {
        self.go_on()?;
        let Some(frame) = WireFrame::read(&mut self.input)? else {
            return Ok(None);
        };
        let mut time = [0; 8];
        self.input.read_exact(&mut time)?;
        self.padded = true;
        Ok(Some((u64::from_le_bytes(time), frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::FrameKind;
    use super::super::message::WorkerReply;
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn frame(number: u64) -> WireFrame {
        WireFrame::new(FrameKind::Reply, 0, number, &WorkerReply::Done).unwrap()
    }

    #[test]
    fn frames_come_out_as_they_went_in_with_a_clock_that_goes_on() {
        let mut bytes = Vec::new();
        for number in 0..3 {
            frame(number).write(&mut PolledWriter(&mut bytes)).unwrap();
        }
        let mut reader = PolledReader::new(&bytes[..]);
        let mut before = 0;
        for number in 0..3 {
            let (at, read) = reader.read().unwrap().unwrap();
            assert_eq!(read, frame(number));
            assert!(at >= before && at > 0);
            before = at;
        }
        assert!(reader.read().unwrap().is_none());
        let mut reader = PolledReader::new(&bytes[..20]);
        assert!(reader.read().is_err());
    }

    #[test]
    fn a_guest_waits_until_the_reader_comes_back() {
        let (input, output) = std::io::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&output, PIPE_BYTES).unwrap();
        let written = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&written);
        let guest = std::thread::spawn(move || {
            let mut port = PolledWriter(output);
            for number in 0..3 {
                frame(number).write(&mut port).unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut reader = PolledReader::new(input);
        for number in 0..3 {
            let (_, read) = reader.read().unwrap().unwrap();
            assert_eq!(read, frame(number));
            // Time enough to go on, if anything let it.
            SystemClock.sleep(std::time::Duration::from_millis(20));
            assert_eq!(written.load(Ordering::SeqCst) as u64, number);
        }
        drop(reader.read());
        guest.join().unwrap();
    }

    #[test]
    fn a_guest_let_go_on_is_not_waited_for() {
        let (input, mut output) = std::io::pipe().unwrap();
        let (ask, asked) = std::sync::mpsc::channel();
        let guest = std::thread::spawn(move || {
            // A word and all that is to be read before the next one, which comes only if it is asked for.
            let mut bytes = Vec::new();
            frame(0).write(&mut PolledWriter(&mut bytes)).unwrap();
            output.write_all(&bytes).unwrap();
            asked.recv().unwrap();
            frame(1).write(&mut PolledWriter(output)).unwrap();
        });
        let mut reader = PolledReader::new(input);
        assert!(!reader.go_on().unwrap(), "it waits for nothing yet");
        assert_eq!(reader.read().unwrap().unwrap().1, frame(0));
        assert!(reader.go_on().unwrap());
        assert!(!reader.go_on().unwrap(), "once for each word");
        ask.send(()).unwrap();
        assert_eq!(reader.read().unwrap().unwrap().1, frame(1));
        drop(reader);
        let _ = guest.join();
    }
}
