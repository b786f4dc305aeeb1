//! The private network between guests: every frame a guest sends goes to all the others.
//!
//! Each guest's network card is connected to a datagram socket in the directory of the machine; no
//! address and no device of the host is involved. Rate and delay are set in the guests (netem); a
//! link is cut here.

use super::short::Short;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Largest frame: Ethernet's header and what segmentation offload may put behind it.
const FRAME_MAX: usize = 1 << 17;

/// Time in which a port notices that it is no longer wanted.
const PATIENCE: Duration = Duration::from_millis(200);

/// The socket a guest sends to.
pub(super) fn outside(node: usize) -> String {
    format!("net-{node}.outside")
}

/// The socket a guest receives on.
pub(super) fn inside(node: usize) -> String {
    format!("net-{node}.inside")
}

/// The network; it ends when dropped.
pub(super) struct NetworkSwitch {
    ended: Arc<AtomicBool>,
    cut: Vec<Arc<AtomicBool>>,
    /// The paths of the sockets lead through it.
    _directory: Short,
}

impl NetworkSwitch {
    /// Connects guests 1 to `nodes`, whose sockets are in a directory.
    pub(super) fn start(directory: Short, nodes: usize) -> std::io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let cut: Vec<Arc<AtomicBool>> = (0..nodes).map(|_| Arc::default()).collect();
        for node in 1..=nodes {
            let socket = UnixDatagram::bind(directory.join(&outside(node)))?;
            // A thread that waits for a frame would not notice the end.
            socket.set_read_timeout(Some(PATIENCE))?;
            let others: Vec<(PathBuf, Arc<AtomicBool>)> = (1..=nodes)
                // Sent to all others, as a hub does: no table of addresses has to be learnt.
                .filter(|other| *other != node)
                .map(|other| (directory.join(&inside(other)), Arc::clone(&cut[other - 1])))
                .collect();
            let (ended, own) = (Arc::clone(&ended), Arc::clone(&cut[node - 1]));
            std::thread::spawn(move || forward(&socket, &others, &own, &ended));
        }
        Ok(Self {
            ended,
            cut,
            _directory: directory,
        })
    }

    /// Cuts the link of a guest (from 1), or mends it.
    pub(super) fn cut(&self, node: usize, cut: bool) {
        if let Some(link) = node.checked_sub(1).and_then(|index| self.cut.get(index)) {
            link.store(cut, Ordering::Relaxed);
        }
    }
}

impl Drop for NetworkSwitch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn forward(
    socket: &UnixDatagram,
    others: &[(PathBuf, Arc<AtomicBool>)],
    own: &AtomicBool,
    ended: &AtomicBool,
) {
    let mut frame = vec![0; FRAME_MAX];
    while !ended.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut frame) else {
            // Nothing came for a while.
            continue;
        };
        for (other, cut) in others {
            if !own.load(Ordering::Relaxed) && !cut.load(Ordering::Relaxed) {
                // A guest that is not there, or not quick enough, loses the frame, as on a wire.
                let _ = socket.send_to(&frame[..length], other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_goes_to_the_others_unless_a_link_is_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let guests: Vec<UnixDatagram> = (1..=3)
            .map(|node| UnixDatagram::bind(path.join(inside(node))).unwrap())
            .collect();
        let switch = NetworkSwitch::start(Short::of(path).unwrap(), 3).unwrap();
        let send = |node: usize, text: &[u8]| {
            let to = path.join(outside(node));
            guests[node - 1].send_to(text, to).unwrap();
        };
        let mut bytes = [0; 16];
        send(1, b"first");
        for guest in &guests[1..] {
            let length = guest.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"first");
        }
        // Guest 3 comes after guest 2: when it has a frame, what becomes of guest 2 is settled.
        for (cut, text) in [(true, b"lost "), (false, b"found")] {
            switch.cut(2, cut);
            send(1, text);
            guests[2].recv(&mut bytes).unwrap();
        }
        let length = guests[1].recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"found");
    }
}
