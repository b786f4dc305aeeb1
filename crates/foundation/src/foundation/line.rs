//! The line between two machines: made slower where a study says so, and always measured.
//!
//! Delay and rate are queues of the kernel (tc-netem(8)) on both ends, so that each direction has
//! them. What the line then does is measured with messages of our own and stands beside the results.

use crate::foundation::error::LayerError;
use crate::foundation::one_kernel::{self, Sockets};
use crate::foundation::setup::Setup;
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_machine::host::imagined::{Assembly, Tool, World, last, said, text_after, word};
use stackrace_machine::host::{Host, HostError, Output, argv};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

/// Handle of the queue that stands on a network card of ours while lines from it are slowed, as
/// tc(8) writes it. It was drawn once, so that no other program has it.
const LINE_HANDLE: &str = "5ac7:";

/// Classes of a card: one for what is not slowed, and one for each line. The kernel's most.
const BANDS: usize = 16;

/// Name of the fact that says how fast a line was found to be.
pub const MEASURED: &str = "line to the peer";

/// Name of the fact that says why it was not.
const UNMEASURED: &str = "line to the peer not measured";

/// Name of the fact that says what the line to a storage of the user's carries, as the study declares it.
pub const DECLARED: &str = "line to the storage";

/// Bytes that are sent to measure a line, where no rate is declared.
const SENT: u64 = 4 << 20;

/// Fewest.
const SENT_MIN: u64 = 64 << 10;

/// The setting for a delay.
pub const DELAY: SettingDoc = SettingDoc::time(
    "delay",
    "",
    "Time a packet between the machines takes longer, each way; none unless given.",
);

/// The setting for a rate.
pub const RATE: SettingDoc = SettingDoc::bytes(
    "rate",
    "",
    "Most bytes per second between the machines, each way: \"12.5 MB\" is 100 Mbit/s; as fast as it goes unless given.",
);

/// A line as a study declares it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line {
    delay_ns: Option<u64>,
    rate: Option<u64>,
}

/// A line that is ready.
pub struct Ready {
    /// Addresses of this machine and of the peer on it.
    pub addresses: [IpAddr; 2],
    /// Facts about the line: as it was asked for, and as it was measured.
    pub facts: Vec<Fact>,
}

impl Line {
    /// Reads the line that the settings declare.
    ///
    /// # Errors
    /// A rate at which nothing would pass, a part of a microsecond.
    pub fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let rate = settings.optional_bytes(RATE.name)?;
        if rate == Some(0) {
            return Err(Refusal::at(
                settings.span_of(RATE.name),
                "at a rate of 0 nothing would pass",
                "write more, or leave it out",
            ));
        }
        let delay_ns = settings.optional_time_ns(DELAY.name)?;
        // tc would be given the part before the point, and the plan would say all of it.
        if delay_ns.is_some_and(|ns| !ns.is_multiple_of(1000)) {
            return Err(Refusal::at(
                settings.span_of(DELAY.name),
                "a line is slowed down by whole microseconds",
                "write delay = \"1 us\" or a multiple of it",
            ));
        }
        Ok(Self {
            delay_ns: delay_ns.filter(|delay| *delay > 0),
            rate,
        })
    }

    /// Time that a packet takes longer, each way, ns; 0 if no longer than it does.
    pub fn delay_ns(self) -> u64 {
        self.delay_ns.unwrap_or(0)
    }

    /// The wishes, in words that follow others; empty if there are none.
    pub fn asked(self) -> String {
        let mut text = String::new();
        if let Some(delay) = self.delay_ns {
            text.push_str(&format!(", delay {} each way", unit::time_ns(delay as f64)));
        }
        if let Some(rate) = self.rate {
            let rate = unit::bytes_per_second(rate as f64);
            text.push_str(&format!(", at most {rate} between the machines"));
        }
        text
    }

    /// Makes the line to the peer as declared, and measures it.
    ///
    /// # Errors
    /// When a queue is there already that is not ours, or the line fails.
    pub fn set_up(self, setup: &mut Setup<'_>, sockets: Sockets) -> Result<Ready, LayerError> {
        let addresses = one_kernel::ends(setup, sockets)?;
        let [here, there] = addresses;
        // A queue acts on what leaves a card, so each end slows one direction.
        self.slow(setup, there)?;
        match one_kernel::is_one_network(setup, sockets)? {
            // Both directions leave by the same card.
            true => self.slow(setup, here)?,
            false => setup.on_peer(|setup| self.slow(setup, here))?,
        }
        if setup.is_returning() {
            // It was measured before the power cut, and would count as a time of recovery.
            return Ok(Ready {
                addresses,
                facts: Vec::new(),
            });
        }
        // A second of the declared rate: a slow line must not take minutes, and a few packets
        // measure nothing.
        let bytes = self.rate.unwrap_or(SENT).clamp(SENT_MIN, SENT);
        let mut facts = vec![Fact::new(
            "line asked for",
            match self.asked().trim_start_matches(", ") {
                "" => "as it is",
                asked => asked,
            },
        )];
        // After both queues stand: it is the slowed line that results are read with.
        match setup.measure_line(bytes) {
            Ok(None) => {}
            Ok(Some(speed)) => facts.push(Fact::rate(
                MEASURED,
                speed.rate.round() as u64,
                format!(
                    "one TCP connection, {} sent; shortest of 20 round trips {}",
                    unit::bytes(speed.bytes),
                    unit::time_ns(speed.round_trip_ns as f64)
                ),
            )),
            // A firewall may let the stack's own ports through and no other.
            Err(error) => facts.push(Fact::new(UNMEASURED, error.to_string())),
        }
        Ok(Ready { addresses, facts })
    }

    /// Slows down one end: what leaves this machine for the other.
    fn slow(self, setup: &mut Setup<'_>, other: IpAddr) -> Result<(), LayerError> {
        if self.delay_ns.is_none() && self.rate.is_none() {
            return Ok(());
        }
        let card = card(setup.host(), other)?;
        let class = room(setup, &card, other)?;
        let mut words = vec![
            "tc", "qdisc", "add", "dev", &card, "parent", &class, "netem",
        ];
        // Room for what is on its way: a second of a gigabit line.
        words.extend(["limit", "100000"]);
        // Whole microseconds, which every version of tc takes.
        let delay = self.delay_ns.map(|ns| format!("{}us", ns / 1000));
        if let Some(delay) = &delay {
            words.extend(["delay", delay]);
        }
        // tc's `bps` are bytes per second.
        let rate = self.rate.map(|rate| format!("{rate}bps"));
        if let Some(rate) = &rate {
            words.extend(["rate", rate]);
        }
        setup.host().must(&argv(words))?;
        // u32 filters compare bytes of the header, which differ between the two protocols.
        let (protocol, family) = match other {
            IpAddr::V4(_) => ("ip", "ip"),
            IpAddr::V6(_) => ("ipv6", "ip6"),
        };
        let other = other.to_string();
        let mut words = vec!["tc", "filter", "add", "dev", &card, "parent", LINE_HANDLE];
        words.extend(["protocol", protocol, "u32", "match", family, "dst", &other]);
        words.extend(["flowid", &class]);
        setup.host().must(&argv(words))?;
        Ok(())
    }
}

/// A class of its own on a card for what leaves it for another machine: what goes elsewhere is not
/// slowed, and another line may begin at the same card.
fn room(setup: &mut Setup<'_>, card: &str, other: IpAddr) -> Result<String, LayerError> {
    let found = setup
        .host()
        .must(&argv(["tc", "qdisc", "show", "dev", card]))?;
    // One netem for each line that begins at this card.
    let slowed = found.stdout.matches("netem").count();
    let ours = found.stdout.contains(&format!(" {LINE_HANDLE} root"));
    let filters = ["tc", "-pretty", "filter", "show", "dev", card];
    let taken = ours && {
        let shown = setup.host().must(&argv(filters))?.stdout;
        shown.contains(&format!("{other}/"))
    };
    if taken || (slowed > 0 && !ours) || slowed + 2 > BANDS {
        return Err(LayerError::refused(
            format!("{card} is already slowed: {}", found.stdout.trim()),
            "let stacks that slow a line stand one after the other: provision = \"each-round\"",
        ));
    }
    // A queue bears no name of ours: this file, which is gone after a restart as the queue is,
    // stands for it.
    let proof = setup.prove(&format!("line-{card}"))?;
    setup.will(CLEAR.of([proof.into(), card.into()]))?;
    if !ours {
        let bands = BANDS.to_string();
        let mut words = vec!["tc", "qdisc", "add", "dev", card, "root", "handle"];
        words.extend([LINE_HANDLE, "prio", "bands", &bands, "priomap"]);
        // Of each of the 16 priorities a packet may have: to the first class.
        words.extend(["0"; 16]);
        setup.host().must(&argv(words))?;
    }
    // Classes have hexadecimal numbers, from 1; the first is for what is not slowed.
    Ok(format!("{LINE_HANDLE}{:x}", slowed + 2))
}

/// The network card that leads to an address.
fn card(host: &dyn Host, address: IpAddr) -> Result<String, LayerError> {
    let address = address.to_string();
    let found = host.must(&argv(["ip", "-o", "route", "get", &address]))?;
    // `10.77.0.2 dev eth0 src 10.77.0.1 uid 0`: what follows "dev".
    let mut words = found.stdout.split_whitespace();
    words.find(|word| *word == "dev");
    words
        .next()
        .map(str::to_string)
        .ok_or_else(|| LayerError::refused(format!("no network card leads to {address}"), ""))
}

/// Gives a network card its ordinary queue back.
pub const CLEAR: UndoKind = UndoKind::new("line", "clear", &[Param::Path, Param::Name], clear);

/// Takes away what delays or slows a network card, if that is what the stack put there.
///
/// # Errors
/// When the tool fails.
fn clear(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let (proof, card) = (Path::new(&of[0]), text(of, 1));
    // The machine was started again, and the queue went with that.
    if !host.exists(proof) {
        return Ok(());
    }
    let found = host.must(&argv(["tc", "qdisc", "show", "dev", card]))?;
    // Only with our handle: another program may have replaced the queue.
    if found.stdout.contains(&format!(" {LINE_HANDLE} root")) {
        host.must(&argv(["tc", "qdisc", "del", "dev", card, "root"]))?;
    }
    Ok(())
}

/// ip(8) and tc(8) as a plan imagines them.
pub const IMAGINED: &[Tool] = &[Tool::new("ip", imagined_ip), Tool::new(TC, imagined_tc)];

/// Networks that were made are remembered; every way leads through one card.
fn imagined_ip(world: &mut World, words: &[OsString]) -> Output {
    let made = |tool| Assembly {
        tool,
        ..Assembly::default()
    };
    match [word(words, 1), word(words, 2)]
        .each_ref()
        .map(String::as_str)
    {
        ["netns", "add"] => world.assemble(last(words), made(NETWORK)),
        ["netns", "delete"] => world.disassemble(&last(words)),
        ["netns", "list"] => {
            let names = world
                .assembled(NETWORK)
                .map(|(name, _)| format!("{name}\n"));
            said(names.collect::<String>())
        }
        // Of addresses, those of the loopback device: the others go with the network they are in.
        ["address", "add"] if last(words) == "lo" => world.assemble(word(words, 3), made(ADDRESS)),
        ["address", "delete"] => world.disassemble(&word(words, 3)),
        ["-o", "address"] => {
            let held = world
                .assembled(ADDRESS)
                .map(|(address, _)| format!(" {address} \n"));
            said(held.collect::<String>())
        }
        _ => said("10.77.0.2 dev {card} src 10.77.0.1\n"),
    }
}

const NETWORK: &str = "ip netns";
const ADDRESS: &str = "ip address";
const TC: &str = "tc";

/// Imagines tc(8): remembers of a card how many others its lines are slowed to.
fn imagined_tc(world: &mut World, words: &[OsString]) -> Output {
    let card = text_after(words, "dev").unwrap_or_default();
    let slowed = world.assembly(&card).map(|queue| queue.parts.len());
    match [word(words, 1), word(words, 2)]
        .each_ref()
        .map(String::as_str)
    {
        ["qdisc", "show"] => match slowed {
            Some(slowed) => {
                let ours = format!("qdisc prio {LINE_HANDLE} root\n");
                said(ours + &"qdisc netem\n".repeat(slowed))
            }
            None => said(""),
        },
        ["qdisc", "add"] if slowed.is_none() => {
            let queue = Assembly {
                tool: TC,
                ..Assembly::default()
            };
            world.assemble(card, queue)
        }
        ["qdisc", "add"] => {
            let class = text_after(words, "parent").unwrap_or_default();
            if let Some(queue) = world.assembly(&card) {
                queue.parts.insert(class, Default::default());
            }
            said("")
        }
        ["qdisc", "del"] => world.disassemble(&card),
        _ => said(""),
    }
}
