//! How fast the line to another agent is, measured over a connection of its own.

use super::wire::{Numbered, Reply, Request, line};
use crate::host::LineSpeed;
use crate::time::{Clock, SystemClock};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How often a short message goes there and back when the line is measured.
const ROUND_TRIPS: usize = 20;

/// Bytes handed to the system at a time when the line is measured.
const CHUNK: usize = 64 * 1024;

/// How long one who measures may take to connect.
const CONNECT: Duration = Duration::from_secs(15);

/// How long one who was listened for may take to come, and then altogether: a slow line takes a
/// minute for the fewest bytes that are sent.
const COMES: Duration = Duration::from_secs(30);
const STAYS: Duration = Duration::from_secs(300);

/// How often it is looked whether he has come.
const LOOK: Duration = Duration::from_millis(20);

/// Longest line he may say, bytes.
const LINE_MAX: u64 = 1000;

/// Measures the line to the agent that listens at an address: the shortest of some round trips, and
/// so many bytes until the other end had the last of them.
///
/// # Errors
/// The system's, and when the other end has gone.
pub(crate) fn speed_to(address: SocketAddr, bytes: u64) -> std::io::Result<LineSpeed> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
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
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let seconds = SystemClock.now_ns().saturating_sub(began) as f64 / 1e9;
    Ok(LineSpeed {
        round_trip_ns,
        rate: bytes as f64 / seconds,
        bytes,
    })
}

/// Listens at an address of this machine for one connection that may do nothing but measure the
/// line; the port it listens at is returned at once.
///
/// # Errors
/// The system's: the address may be none of this machine's.
pub(super) fn listen_once(address: IpAddr) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((address, 0))?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    std::thread::spawn(move || {
        let began = SystemClock.now_ns();
        let waited = || u128::from(SystemClock.now_ns().saturating_sub(began));
        while waited() < COMES.as_nanos() {
            match listener.accept() {
                Ok((stream, _)) => {
                    drop(listener);
                    // One who says something else, or too much, is not answered.
                    return drop(answer(&stream));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => SystemClock.sleep(LOOK),
                Err(_) => return,
            }
        }
    });
    Ok(at)
}

/// Answers one who measures the line, to its end.
fn answer(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let watched = stream.try_clone()?;
    std::thread::spawn(move || {
        SystemClock.sleep(STAYS);
        // It has mostly ended long since.
        let _ = watched.shutdown(Shutdown::Both);
    });
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut text = String::new();
    while lines.by_ref().take(LINE_MAX).read_line(&mut text)? > 0 {
        let asked: Numbered<Request> = serde_json::from_str(&text)?;
        text.clear();
        match asked.said {
            Request::Hello => {}
            Request::Receive { bytes } => {
                std::io::copy(&mut lines.by_ref().take(bytes), &mut std::io::sink())?;
            }
            _ => break,
        }
        let mut writing = stream;
        writing.write_all(&line(asked.id, Reply::Done)?)?;
    }
    stream.shutdown(Shutdown::Both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_who_is_listened_for_may_measure_the_line_and_nothing_else() {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let speed = speed_to(listen_once(here).unwrap(), 300_000).unwrap();
        assert!(speed.rate.is_finite() && speed.rate > 0.0);
        let base = tempfile::tempdir().unwrap();
        let made = base.path().join("made");
        let at = listen_once(here).unwrap();
        let mut stream = TcpStream::connect(at).unwrap();
        let argv = ["touch", made.to_str().unwrap()]
            .map(str::to_owned)
            .to_vec();
        stream
            .write_all(&line(1, Request::Exec { argv }).unwrap())
            .unwrap();
        let mut said = String::new();
        // The connection ends, without an answer; that it is reset is as good.
        let _ = stream.read_to_string(&mut said);
        assert_eq!(said, "");
        assert!(!made.exists());
        assert!(TcpStream::connect(at).is_err(), "it listens again");
        // TEST-NET-1 (RFC 5737) is nobody's.
        assert!(listen_once(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))).is_err());
    }
}
