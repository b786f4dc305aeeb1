//! The card of a drive in which nothing turns: of a volume where its three limits explain the reads, else of an SSD.

use super::card::{assumed, measured};
use super::modelled::{Modelled, Noise, WHOLE_BYTES};
use super::probe::{Bench, round};
use super::several::{Several, several};
use super::writing;
use super::written::{WriteFindings, apart};
use crate::cards::{Card, SsdCard, VolumeCard};
use crate::{Origin, SECTOR, Stated};

/// Size of the SSD that is tried in place of the measured one, bytes: reads are as fast from a small one, and the stream
/// fits between its first third and its end.
const TRIED_BYTES: u64 = 96 << 20;
/// A volume is what it is taken for where its figures are this near to the measured ones.
const IS_VOLUME: f64 = 0.03;
/// The steps by which values are changed: each until it finds nothing better.
const STEPS: [f64; 6] = [0.5, 0.2, 0.08, 0.03, 0.01, 0.003];
/// Steps of them with which the number of dies is chosen.
const COARSE: usize = 3;
/// Numbers of dies and pages that are tried with the finer steps.
const POLISHED: usize = 8;
/// Rounds over all values with one step, at most.
const ROUNDS: usize = 12;
/// Dies, and KiB programmed at once, that are tried.
const DIES: [u32; 6] = [1, 4, 8, 16, 32, 64];
const PAGES: [u64; 4] = [16, 32, 64, 128];
/// Values that are changed.
const VALUES: usize = 5;
/// Bounds of each value, us or MB/s: a clock that stands still shows none.
const LEAST: f64 = 0.002;
const MOST: f64 = 1e5;
/// KiB of one block of each die, at most.
const ROW_KIB: u64 = 32 << 10;
/// Channels of an SSD with many dies.
const CHANNELS: u32 = 8;

/// The figures of a card's model, as those of the drive were measured.
fn of_model(card: &Card, bytes: u64) -> Option<Several> {
    let mut model = Modelled::new(card, bytes, Noise::default()).ok()?;
    let sectors = super::Probe::sectors(&model);
    let mut bench = Bench {
        probe: &mut model,
        sectors,
        drawn: 0,
    };
    several(&mut bench).ok()
}

fn distance(found: &Several, card: &Card, bytes: u64) -> f64 {
    let modelled = of_model(card, bytes);
    modelled.map_or(f64::MAX, |modelled| found.distance(&modelled))
}

/// How far a card's model is from what was measured, as a share; 0 of what has no model.
pub(super) fn missed(found: &Several, card: &Card) -> f64 {
    distance(found, card, WHOLE_BYTES)
}

/// How far a card's model is from what writing showed, as a share; 0 of a volume, which has one time for all writes.
pub(super) fn missed_writing(found: &WriteFindings, card: &Card) -> f64 {
    match card {
        Card::Ssd(card) => writing::missed(found, card),
        _ => 0.0,
    }
}

/// The card that meets the reads, and the writes where there were some.
pub(super) fn card(
    sectors: u64,
    found: &Several,
    written: Option<&WriteFindings>,
    turns: bool,
    model: &str,
) -> Card {
    match (of_reads(sectors, found, written, turns, model), written) {
        (Card::Ssd(card), Some(written)) => {
            let mut card = writing::fitted(*card, written);
            card.name = format!("{model}, an SSD, measured by reading and writing");
            Card::Ssd(Box::new(card))
        }
        (Card::Volume(mut card), Some(written)) => {
            card.name = format!("{model}, measured by reading and writing; nothing in it turns");
            card.latency.value[1] = round((written.alone / 1e6).max(0.001));
            card.latency.source = format!("{}; 64 small writes", found.words());
            Card::Volume(card)
        }
        (card, _) => card,
    }
}

fn of_reads(
    sectors: u64,
    found: &Several,
    written: Option<&WriteFindings>,
    turns: bool,
    model: &str,
) -> Card {
    let volume = Card::Volume(Box::new(volume(sectors, found, turns, model)));
    let to_volume = distance(found, &volume, 0);
    // An SSD has more values to choose, so it could pass for a volume; three limits that explain all are the simpler answer.
    if turns || to_volume <= IS_VOLUME {
        return volume;
    }
    let (ssd, to_ssd) = ssd(found, written, model);
    match to_ssd < to_volume {
        true => Card::Ssd(Box::new(ssd)),
        false => volume,
    }
}

fn volume(sectors: u64, found: &Several, turns: bool, model: &str) -> VolumeCard {
    let latency = (found.latency() / 1e6).max(0.001);
    let iops = found.most().round().max(1.0);
    VolumeCard {
        model: model.to_owned(),
        name: match turns {
            false => format!("{model}, measured by reading; nothing in it turns"),
            true => format!("{model}, measured by reading; no turn explains its times"),
        },
        capacity: measured(
            (sectors * SECTOR).div_ceil(1 << 30),
            "size of the device, GiB".to_owned(),
        ),
        latency: measured(
            [round(latency); 2],
            format!("{}; writing is assumed to take as long", found.words()),
        ),
        iops: measured(
            iops,
            match found.still_grows() {
                true => "the most that were seen; with more at once it may do more".to_owned(),
                false => "the most that were seen, whatever was under way".to_owned(),
            },
        ),
        burst_iops: assumed(iops),
        credit: assumed(0.0),
        rate: measured(
            round(found.stream / f64::from(1 << 20)).max(0.001),
            "reads of 128 KiB in sequence, 32 at once".to_owned(),
        ),
        request: assumed(256),
        claims: Vec::new(),
    }
}

/// Pages of a block: few enough that a small modelled drive has spare ones.
fn blocks(dies: u32, page: u64) -> u32 {
    let row = u64::from(dies) * page;
    (ROW_KIB / row.max(1)).clamp(1, 64) as u32
}

/// The values that reads show, with the dies and the page they belong to: us, and MB/s.
#[derive(Debug, Clone, Copy)]
struct Tried<'a> {
    dies: u32,
    page: u64,
    /// Read of a page, overhead, rate of the bus, command on the bus, rate of a channel.
    values: [f64; VALUES],
    written: Option<&'a WriteFindings>,
}

impl<'a> Tried<'a> {
    /// Begins with what the figures say at once.
    fn first(found: &Several, written: Option<&'a WriteFindings>, dies: u32, page: u64) -> Self {
        // The stream is the interface's, and the most small reads a second its commands'; the rest of a read alone is flash.
        let latency = found.latency() / 1e3;
        let bus = found.stream / 1e6;
        let command = (1e6 / found.most() - 4096.0 / bus).max(0.05);
        Self {
            dies,
            page,
            values: [latency * 0.6, latency * 0.2, bus, command, 800.0],
            written,
        }
    }

    fn card(&self, model: &str, source: &str) -> SsdCard {
        let [read, overhead, bus, command, channel] =
            self.values.map(|value| round(value.clamp(LEAST, MOST)));
        let channels = self.dies.min(CHANNELS);
        let together = "with the time to read a page, from the same reads";
        SsdCard {
            model: model.to_owned(),
            name: format!("{model}, an SSD, measured by reading"),
            channels: fitted(channels, together),
            dies_per_channel: fitted(self.dies / channels, together),
            page: fitted(self.page, together),
            pages_per_block: assumed(blocks(self.dies, self.page)),
            over_provisioning: assumed(0.1),
            read: fitted(read, source),
            program: assumed(700.0),
            program_slc: assumed(200.0),
            slc_share: assumed(0.04),
            erase: assumed(3500.0),
            suspend: assumed(100.0),
            channel: fitted(channel, together),
            overhead: fitted(overhead, together),
            bus: fitted(bus, together),
            bus_command: fitted(command, together),
            buffer: assumed(1024),
            protected: assumed(false),
            claims: Vec::new(),
        }
    }

    /// How far its model is from the measured figures. Blocks are small, so that a small drive has enough of them.
    fn distance(&self, found: &Several) -> f64 {
        let mut card = self.card("tried", "");
        // Reads do not ask for either.
        card.pages_per_block.value = 2;
        card.over_provisioning.value = 4.0;
        let reads = distance(found, &Card::Ssd(Box::new(card)), TRIED_BYTES);
        let writes = self
            .written
            .map_or(0.0, |written| apart(&self.writes(written)));
        (reads * reads + writes * writes).sqrt()
    }

    /// Figures of writing that tell the values of reading apart, each with that of the model.
    fn writes(&self, written: &WriteFindings) -> Vec<[f64; 2]> {
        let [_, overhead, bus, command, channel] = self.values;
        let time = |bytes: f64| command + bytes / bus;
        // A small write waits for no flash: it shows the overhead.
        let mut pairs = vec![[written.alone / 1e3, overhead + time(4096.0)]];
        let large = f64::from(128 << 10);
        let interface = large / time(large);
        // What the buffer takes at once passes the interface alone.
        let bursts = written.bursts.iter().map(|(_, rate)| rate / 1e6);
        pairs.push([bursts.fold(0.0, f64::max), interface]);
        let program = written.flush_full / 1e3 - overhead - 4096.0 / channel;
        if !written.is_protected() && program > 0.0 {
            // Flushes show the time of a page, and the stream then, how many are programmed at once.
            let channels = f64::from(self.dies.min(CHANNELS)) * channel;
            let flash = f64::from(self.dies) * (self.page << 10) as f64 / program;
            let rate = interface.min(channels).min(flash);
            pairs.push([written.stream.after / 1e6, rate]);
        }
        pairs
    }

    /// Changes one value at a time as long as the figures come nearer.
    fn improve(&mut self, found: &Several, steps: &[f64], moves: &[Move]) -> f64 {
        let mut best = self.distance(found);
        for step in steps {
            for _ in 0..ROUNDS {
                let before = best;
                for (up, down) in moves.iter().copied() {
                    let mut other = *self;
                    let mut change = |at: Option<usize>, factor: f64| {
                        if let Some(at) = at {
                            other.values[at] *= factor;
                        }
                    };
                    change(up, 1.0 + step);
                    change(down, 1.0 / (1.0 + step));
                    let distance = other.distance(found);
                    if distance < best {
                        (*self, best) = (other, distance);
                    }
                }
                if best >= before {
                    // Nothing nearer at this step: the next one is finer.
                    break;
                }
            }
        }
        best
    }
}

/// A value that goes up, and one that goes down.
type Move = (Option<usize>, Option<usize>);

/// A value up, one down, and one for another: two that add up to the same time are told apart by other reads.
fn moves() -> Vec<Move> {
    let of = |at: usize| (at < VALUES).then_some(at);
    let all = (0..=VALUES).flat_map(|up| (0..=VALUES).map(move |down| (of(up), of(down))));
    all.filter(|(up, down)| up != down).collect()
}

fn fitted<T>(value: T, source: &str) -> Stated<T> {
    Stated {
        value,
        from: Origin::Fitted,
        source: source.to_owned(),
    }
}

/// The SSD whose model meets the figures best, and how far it is from them.
fn ssd(found: &Several, written: Option<&WriteFindings>, model: &str) -> (SsdCard, f64) {
    let moves = moves();
    let kinds = DIES.iter().flat_map(|dies| PAGES.map(|page| (*dies, page)));
    let mut tried: Vec<(Tried, f64)> = kinds
        .map(|(dies, page)| {
            let mut tried = Tried::first(found, written, dies, page);
            let distance = tried.improve(found, &STEPS[..COARSE], &moves);
            (tried, distance)
        })
        .collect();
    // Number of dies and size of a page are no scale that could be followed: each is tried.
    tried.sort_by(|one, other| one.1.total_cmp(&other.1));
    // Coarse steps do not tell the nearest ones apart.
    tried.truncate(POLISHED);
    for (tried, distance) in &mut tried {
        *distance = tried.improve(found, &STEPS[COARSE..], &moves);
    }
    let nearest = tried
        .into_iter()
        .min_by(|one, other| one.1.total_cmp(&other.1));
    let (tried, distance) =
        nearest.unwrap_or_else(|| (Tried::first(found, written, DIES[0], PAGES[0]), f64::MAX));
    let source = format!(
        "so that the model meets {}; it is {:.1} % from them",
        found.words(),
        distance * 100.0
    );
    (tried.card(model, &source), distance)
}
