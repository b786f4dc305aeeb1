//! Frames: how messages lie in a stream of bytes, whatever carries it.
//!
//! A header of 20 bytes, then the message as JSON. All numbers are little-endian:
//! `"SR"`, version (1 byte), kind (1), machine (4), conversation (8), length of the message (4).

use serde::Serialize;
use std::io::{Error, ErrorKind, Read, Write};

/// Begins every frame: the name, then the version of the protocol.
const MAGIC: [u8; 3] = [b'S', b'R', 1];

/// Bytes of a header.
const HEADER: usize = 20;

/// Most bytes of one message. The largest are observations of trials with many slices and threads.
pub const MESSAGE_MAX: usize = 64 << 20;

/// Content of a frame: a request, a reply, or the end of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A [`WorkerRequest`](super::message::WorkerRequest), the first of its conversation or a further one.
    Request = 0,
    /// A [`WorkerReply`](super::message::WorkerReply).
    Reply = 1,
    /// The machine that asked wants no more replies. No message.
    Cancel = 2,
    /// A machine is lost, and every conversation with it. The message says why, as a JSON string.
    Lost = 3,
}

/// The unit of the protocol: one message with its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireFrame {
    /// Kind of the message, which tells how it is read.
    pub kind: FrameKind,
    /// The machine at the other end of the conversation. A worker reads here who sent the frame, and
    /// writes here who shall receive it.
    pub machine: u32,
    /// Number of the conversation; the machine that opened it chose it.
    pub conversation: u64,
    /// JSON, at most [`MESSAGE_MAX`] bytes; empty for a cancellation.
    pub message: Vec<u8>,
}

impl WireFrame {
    /// A frame with a message.
    ///
    /// # Errors
    /// The message is too long.
    pub fn new(
        kind: FrameKind,
        machine: u32,
        conversation: u64,
        message: &impl Serialize,
    ) -> std::io::Result<Self> {
        let message = serde_json::to_vec(message)?;
        if message.len() > MESSAGE_MAX {
            let text = format!("a message of {} bytes is too long", message.len());
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        Ok(Self {
            kind,
            machine,
            conversation,
            message,
        })
    }

    /// Writes it whole.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, output: &mut dyn Write) -> std::io::Result<()> {
        // A header without its message would leave the reader waiting in the middle of a frame.
        let mut bytes = Vec::with_capacity(HEADER + self.message.len());
        bytes.extend(MAGIC);
        bytes.push(self.kind as u8);
        bytes.extend(self.machine.to_le_bytes());
        bytes.extend(self.conversation.to_le_bytes());
        bytes.extend((self.message.len() as u32).to_le_bytes());
        bytes.extend(&self.message);
        // One write: pieces would cost a packet each where the connection does not wait for more.
        output.write_all(&bytes)?;
        output.flush()
    }

    /// The next frame; `None` if the stream ended between two frames.
    ///
    /// # Errors
    /// The system's; when the stream ends within a frame, or what comes is none of this version.
    pub fn read(input: &mut impl Read) -> std::io::Result<Option<Self>> {
        let mut header = [0; HEADER];
        // A signal may interrupt it, unlike the others, which go on by themselves.
        let first = loop {
            match input.read(&mut header[..1]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if first == 0 {
            return Ok(None);
        }
        input.read_exact(&mut header[1..])?;
        let refused = |text: String| Error::new(ErrorKind::InvalidData, text);
        let (magic, rest) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(refused(
                "not a message of this version of stackrace".to_owned(),
            ));
        }
        let kind = match rest[0] {
            0 => FrameKind::Request,
            1 => FrameKind::Reply,
            2 => FrameKind::Cancel,
            3 => FrameKind::Lost,
            other => return Err(refused(format!("no kind of frame: {other}"))),
        };
        let number = |from: usize, bytes: usize| {
            let little = rest[from..from + bytes].iter().rev();
            little.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let length = number(13, 4);
        if length > MESSAGE_MAX as u64 {
            return Err(refused(format!("a message of {length} bytes is too long")));
        }
        // Read as it comes: what the header promises is not yet worth the memory.
        let mut message = Vec::new();
        input.take(length).read_to_end(&mut message)?;
        if message.len() as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(Self {
            kind,
            machine: number(1, 4) as u32,
            conversation: number(5, 8),
            message,
        }))
    }
}

/// Reads a stream of frames to its end or to the first mistake, and every message in it; the frames
/// are those that were understood.
#[cfg(any(test, feature = "testing"))]
pub fn understood(mut bytes: &[u8]) -> Vec<WireFrame> {
    use super::message::{WorkerReply, WorkerRequest};
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = WireFrame::read(&mut bytes) {
        let message = &*frame.message;
        let understood = match frame.kind {
            FrameKind::Request => serde_json::from_slice::<WorkerRequest>(message).is_ok(),
            FrameKind::Reply => serde_json::from_slice::<WorkerReply>(message).is_ok(),
            FrameKind::Cancel => true,
            FrameKind::Lost => serde_json::from_slice::<String>(message).is_ok(),
        };
        if !understood {
            break;
        }
        frames.push(frame);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::super::message::{ExecRequest, WorkerReply, WorkerRequest};
    use super::*;

    fn written(frames: &[WireFrame]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in frames {
            frame.write(&mut bytes).unwrap();
        }
        bytes
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let request = WorkerRequest::Exec(ExecRequest::Command {
            argv: vec!["echo".to_owned(), "a\nb \"c\" ü".to_owned()],
            run: None,
        });
        let frames = [
            WireFrame::new(FrameKind::Request, 2, u64::MAX, &request).unwrap(),
            WireFrame::new(FrameKind::Reply, u32::MAX, 7, &WorkerReply::Done).unwrap(),
            WireFrame::new(FrameKind::Lost, 3, 0, &"power cut").unwrap(),
        ];
        let bytes = written(&frames);
        assert_eq!(understood(&bytes), frames);
        assert_eq!(
            &bytes[..HEADER],
            b"SR\x01\0\x02\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x41\0\0\0"
        );
    }

    #[test]
    fn what_is_no_frame_is_refused_with_a_reason() {
        let frame = WireFrame::new(FrameKind::Reply, 1, 1, &WorkerReply::Done).unwrap();
        let good = written(&[frame]);
        let read = |bytes: &[u8]| WireFrame::read(&mut &*bytes).map_err(|error| error.to_string());
        assert_eq!(read(b""), Ok(None));
        read(&good[..good.len() - 1]).unwrap_err();
        read(&good[..HEADER - 1]).unwrap_err();
        let changed = |at: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[at] = to;
            read(&bytes).unwrap_err()
        };
        assert!(changed(2, 2).contains("this version"));
        assert!(changed(3, 4).contains("no kind of frame: 4"));
        assert!(changed(19, 0x7f).contains("too long"));
    }
}
