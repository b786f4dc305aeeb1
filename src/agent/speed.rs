//! How fast the line to another agent is, measured over a connection of its own.

use super::wire::{Request, line};
use crate::host::LineSpeed;
use crate::time::{Clock, SystemClock};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

/// How often a short message goes there and back when the line is measured.
const ROUND_TRIPS: usize = 20;

/// Bytes handed to the system at a time when the line is measured.
const CHUNK: usize = 64 * 1024;

/// Measures the line to the agent that listens at an address: the shortest of some round trips, and
/// so many bytes until the other end had the last of them.
///
/// # Errors
/// The system's, and when the other end has gone.
pub(crate) fn speed_to(address: SocketAddr, bytes: u64) -> std::io::Result<LineSpeed> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let mut text = String::new();
    let mut round_trip_ns = u64::MAX;
    for number in 0..ROUND_TRIPS as u64 {
        let began = SystemClock.now_ns();
        stream.write_all(&line(number, Request::Hello)?)?;
        text.clear();
        replies.read_line(&mut text)?;
        round_trip_ns = round_trip_ns.min(SystemClock.now_ns().saturating_sub(began));
    }
    let zeros = [0; CHUNK];
    let mut left = bytes;
    let began = SystemClock.now_ns();
    stream.write_all(&line(0, Request::Receive { bytes })?)?;
    while left > 0 {
        let now = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        stream.write_all(&zeros[..now])?;
        left -= now as u64;
    }
    text.clear();
    if replies.read_line(&mut text)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let seconds = SystemClock.now_ns().saturating_sub(began) as f64 / 1e9;
    Ok(LineSpeed {
        round_trip_ns,
        rate: bytes as f64 / seconds,
        bytes,
    })
}
