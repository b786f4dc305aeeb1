//! How fast the line between two machines is, measured over a connection of its own.
//!
//! One machine listens once, at a port that is free, and takes nothing but the measurement: bytes to
//! send back, then a length and as many bytes to drop. Nothing that is sent can be a command.

use super::LineSpeed;
use stackrace_base::time::{Clock, SystemClock};
use std::io::{ErrorKind, Read, Write, copy, sink};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Number of times that a short message goes there and back.
const ROUND_TRIPS: u8 = 20;

/// Bytes handed to the system at a time.
const CHUNK: usize = 64 * 1024;

/// Longest time in which the machine that measures connects.
const CONNECT: Duration = Duration::from_secs(15);

/// Longest time that it is waited for, and that it may then stay: a slow line takes a minute for
/// the fewest bytes that are sent.
const COMES: Duration = Duration::from_secs(30);
const STAYS: Duration = Duration::from_secs(300);

/// Pause between checks that it has come.
const LOOK: Duration = Duration::from_millis(20);

/// Measures the line to where another machine listens: the shortest of some round trips, and a number
/// of bytes until the other end has read the last of them.
///
/// # Errors
/// The system's, and when the other end is gone.
pub fn measure(address: SocketAddr, bytes: u64) -> std::io::Result<LineSpeed> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
    // Otherwise the kernel would hold a short message back, to join it with the next one.
    stream.set_nodelay(true)?;
    let mut byte = [0];
    let mut round_trip_ns = u64::MAX;
    for _ in 0..ROUND_TRIPS {
        let began = SystemClock.now_ns();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        // The least: everything else that the machines do only adds to it.
        round_trip_ns = round_trip_ns.min(SystemClock.now_ns().saturating_sub(began));
    }
    let zeros = [0; CHUNK];
    let mut left = bytes;
    let began = SystemClock.now_ns();
    stream.write_all(&bytes.to_le_bytes())?;
    while left > 0 {
        let now = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        stream.write_all(&zeros[..now])?;
        left -= now as u64;
    }
    stream.read_exact(&mut byte)?;
    let seconds = SystemClock.now_ns().saturating_sub(began) as f64 / 1e9;
    Ok(LineSpeed {
        round_trip_ns,
        rate: bytes as f64 / seconds,
        bytes,
    })
}

/// Listens at an address of this machine for one measurement; the port is returned at once.
///
/// # Errors
/// The system's: the address may belong to another machine.
pub(super) fn listen_once(address: IpAddr) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((address, 0))?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    std::thread::spawn(move || {
        let began = SystemClock.now_ns();
        let waited = || u128::from(SystemClock.now_ns().saturating_sub(began));
        // A measurement that never comes must not leave a port open.
        while waited() < COMES.as_nanos() {
            match listener.accept() {
                Ok((stream, _)) => {
                    // Only one connection is ever taken.
                    drop(listener);
                    // The machine that measures finds out about an error by itself.
                    return drop(answer(&stream));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => SystemClock.sleep(LOOK),
                Err(_) => return,
            }
        }
    });
    Ok(at)
}

/// The other end of [`measure`].
fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    // Also between two chunks of a line that has gone dead.
    stream.set_read_timeout(Some(STAYS))?;
    let mut byte = [0];
    for _ in 0..ROUND_TRIPS {
        stream.read_exact(&mut byte)?;
        stream.write_all(&byte)?;
    }
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    // Dropped at once: neither disk nor memory of this machine is part of the line.
    copy(&mut stream.take(u64::from_le_bytes(length)), &mut sink())?;
    stream.write_all(&byte)?;
    stream.shutdown(Shutdown::Both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_machine_listens_for_one_measurement_and_nothing_else() {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let at = listen_once(here).unwrap();
        let speed = measure(at, 300_000).unwrap();
        assert_eq!(speed.bytes, 300_000);
        assert!(speed.round_trip_ns > 0 && speed.rate.is_finite() && speed.rate > 0.0);
        assert!(TcpStream::connect(at).is_err(), "it listens again");
        // TEST-NET-1 (RFC 5737) is no address of this machine.
        assert!(listen_once(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))).is_err());
    }

    #[test]
    fn what_is_sent_besides_is_sent_back_or_dropped() {
        let at = listen_once(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let mut stream = TcpStream::connect(at).unwrap();
        let mut sent = vec![b'!'; usize::from(ROUND_TRIPS)];
        sent.extend(5_u64.to_le_bytes());
        sent.extend(b"touch");
        stream.write_all(&sent).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert_eq!(back, vec![b'!'; usize::from(ROUND_TRIPS) + 1]);
    }
}
