//! What network interfaces moved: `/proc/net/dev`, and in `/sys/class/net` how fast each of them is.
//!
//! Only hardware is read. Bridges, VLANs and tunnels pass their bytes on to it, and what they say of
//! their speed is made up (tun(4) says 10 Mbit/s of any line).

use stackrace_base::event::InterfaceCounted;

/// Bytes an interface has moved so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InterfaceTotals {
    name: String,
    received_bytes: u64,
    sent_bytes: u64,
    bytes_per_s: Option<u64>,
}

/// Every interface that is hardware and is up.
pub(super) fn take(read: impl Fn(&str) -> Option<String>) -> Vec<InterfaceTotals> {
    let text = read("/proc/net/dev").unwrap_or_default();
    let counted = text.lines().filter_map(line);
    let hardware = counted.filter(|totals| {
        // No path in the name: the kernel allows no `/` in it.
        read(&format!("/sys/class/net/{}/device/uevent", totals.name)).is_some()
    });
    let with_speed = hardware.map(|totals| InterfaceTotals {
        bytes_per_s: read(&format!("/sys/class/net/{}/speed", totals.name))
            .and_then(|text| speed(&text)),
        ..totals
    });
    with_speed.collect()
}

/// `eth0: 1296 12 0 0 0 0 0 0 876 10 0 …`: bytes received come first, bytes sent ninth.
fn line(line: &str) -> Option<InterfaceTotals> {
    let (name, counters) = line.split_once(':')?;
    let mut counters = counters.split_whitespace().map(str::parse::<u64>);
    Some(InterfaceTotals {
        name: name.trim().to_owned(),
        received_bytes: counters.next()?.ok()?,
        sent_bytes: counters.nth(7)?.ok()?,
        bytes_per_s: None,
    })
}

/// Mbit/s as B/s; `None` for -1, which cards of virtual machines say.
fn speed(text: &str) -> Option<u64> {
    let megabits: u64 = text.trim().parse().ok()?;
    // 4294967295 is -1 to older kernels.
    (1..1_000_000_000)
        .contains(&megabits)
        .then(|| megabits * 125_000)
}

/// Bytes that each moved from a moment to a later one; those that moved nothing are left out.
pub(super) fn between(
    before: &[InterfaceTotals],
    later: &[InterfaceTotals],
) -> Vec<InterfaceCounted> {
    let moved = later.iter().filter_map(|later| {
        let before = before.iter().find(|before| before.name == later.name)?;
        Some(InterfaceCounted {
            interface: later.name.clone(),
            received_bytes: later.received_bytes.saturating_sub(before.received_bytes),
            sent_bytes: later.sent_bytes.saturating_sub(before.sent_bytes),
            bytes_per_s: later.bytes_per_s,
        })
    });
    moved
        .filter(|it| it.received_bytes > 0 || it.sent_bytes > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 6160 77 0 0 0 0 0 0 6160 77 0 0 0 0 0 0
  eth0: 1296 12 0 0 0 0 0 0 876 10 0 0 0 0 0 0
  tun0: 5 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
  eth1:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
";

    fn read(path: &str) -> Option<String> {
        match path {
            "/proc/net/dev" => Some(FILE.to_owned()),
            "/sys/class/net/eth0/device/uevent" | "/sys/class/net/eth1/device/uevent" => {
                Some(String::new())
            }
            "/sys/class/net/eth0/speed" => Some("1000\n".to_owned()),
            "/sys/class/net/eth1/speed" => Some("-1\n".to_owned()),
            "/sys/class/net/tun0/speed" => Some("10\n".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn hardware_alone_is_counted_with_its_speed_where_it_has_one() {
        let totals = take(read);
        let of = |name: &str, received_bytes, sent_bytes, bytes_per_s| InterfaceTotals {
            name: name.to_owned(),
            received_bytes,
            sent_bytes,
            bytes_per_s,
        };
        let expected = [
            of("eth0", 1296, 876, Some(125_000_000)),
            of("eth1", 100, 200, None),
        ];
        assert_eq!(totals, expected);
    }

    #[test]
    fn an_interface_that_moved_nothing_is_left_out() {
        let before = take(read);
        let mut later = before.clone();
        later[0].received_bytes += 5;
        let moved = between(&before, &later);
        assert_eq!(moved.len(), 1);
        assert_eq!((&*moved[0].interface, moved[0].received_bytes), ("eth0", 5));
    }

    #[test]
    fn what_says_nothing_of_its_speed_has_none() {
        for text in ["-1\n", "4294967295", "0", "", "fast"] {
            assert_eq!(speed(text), None, "{text}");
        }
        assert_eq!(speed("2500\n"), Some(312_500_000));
    }
}
