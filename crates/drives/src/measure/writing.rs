//! The values of an SSD's card that writing shows: each is chosen so that the model meets its own figures.

use super::modelled::{Modelled, WHOLE_BYTES};
use super::probe::{Bench, round};
use super::written::{self, Stream, WriteFindings, apart};
use super::{Noise, Probe};
use crate::cards::{Card, SsdCard};
use crate::{Origin, Stated};
use std::convert::Infallible;

/// What was assumed stays where another value comes nearer by less than this.
const BETTER: f64 = 0.01;
/// Values tried on the way from the smallest to the largest, and around the best one then.
const COARSE: usize = 12;
const FINE: usize = 8;
/// Blocks of each die of the SSD that is tried, and pages of each: it is small, and a share of its blocks is spare.
const BLOCKS: u64 = 128;
/// A buffer that holds up no stream, KiB.
const LARGE_BUFFER: u64 = 64 << 10;
/// Multiples of the time of a page that are tried where nothing else shows it.
const PROGRAMS: [f64; 4] = [0.35, 0.6, 1.0, 1.6];
/// Spare blocks of each die that are tried: with fewer, each that is freed costs hundreds that are moved.
const SPARE_LEAST: u32 = 5;
const SPARE_MOST: u32 = 45;
const SPARE_STEP: usize = 4;
const PAGES_LEAST: u64 = 2;
const PAGES_MOST: u64 = 1 << 12;
/// Size of it, bytes, if pages of that number make it so.
const TRIED_BYTES: u64 = 256 << 20;

/// The card with the values that writing shows.
pub(super) fn fitted(mut card: SsdCard, found: &WriteFindings) -> SsdCard {
    let us = |ns: f64| ns / 1e3;
    card.protected = Stated {
        value: found.is_protected(),
        from: Origin::Measured,
        source: format!(
            "a flush takes {:.0} us, a small write {:.0} us",
            us(found.flush),
            us(found.alone)
        ),
    };
    let Stream {
        before,
        after,
        cliff,
    } = found.stream;
    card.slc_share = Stated {
        value: (cliff * 1e4).round() / 1e4,
        from: Origin::Measured,
        source: match cliff > 0.0 {
            true => format!(
                "up to there a stream of writes has {:.0} MB/s and a flush takes {:.0} us, behind it {:.0} MB/s and {:.0} us",
                before / 1e6,
                us(found.flush),
                after / 1e6,
                us(found.flush_full)
            ),
            false => format!("a stream of writes never falls: {:.0} MB/s", after / 1e6),
        },
    };
    // Flushes show the time of a page: at the beginning in the cache, behind it in the ordinary mode. Those of a protected
    // drive program nothing: its stream shows it, if the interface does not limit it.
    let is_told = !card.protected.value;
    let distance = |card: &SsdCard, flushed: f64, streamed: f64| {
        let pair = match is_told {
            true => [flushed, flush(card)?],
            false => [streamed, stream(&with_buffer(card, LARGE_BUFFER))?],
        };
        Some(apart(&[pair]))
    };
    let words = |flushed: f64, streamed: f64| match is_told {
        true => format!("flushes of {:.0} us", us(flushed)),
        false => format!("a stream of {:.0} MB/s", streamed / 1e6),
    };
    if cliff > 0.0 {
        choose(
            &mut card,
            [20.0, 5000.0],
            &words(found.flush, before),
            |card| &mut card.program_slc,
            |card| distance(&with_cache(card, 1.0), found.flush, before),
        );
    }
    choose(
        &mut card,
        [50.0, 20_000.0],
        &words(found.flush_full, after),
        |card| &mut card.program,
        |card| distance(&with_cache(card, 0.0), found.flush_full, after),
    );
    buffer(&mut card, found);
    suspended(&mut card, found);
    spare(&mut card, found);
    card
}

/// How far the card's model is from what writing showed, as a share.
pub(super) fn missed(found: &WriteFindings, card: &SsdCard) -> f64 {
    let again = Modelled::empty(&Card::Ssd(Box::new(card.clone())), WHOLE_BYTES).ok();
    let again = again.and_then(|mut model| written::written(&mut bench(&mut model)).ok());
    again.map_or(f64::MAX, |(_, again)| found.distance(&again))
}

fn bench(model: &mut Modelled) -> Bench<'_, Modelled> {
    let sectors = model.sectors();
    Bench {
        probe: model,
        sectors,
        drawn: 0,
    }
}

/// Finds the value between two at which a card is nearest, and keeps what was assumed if that is as near.
fn choose(
    card: &mut SsdCard,
    [least, most]: [f64; 2],
    source: &str,
    value: fn(&mut SsdCard) -> &mut Stated<f64>,
    distance: impl Fn(&SsdCard) -> Option<f64>,
) {
    let of = |tried: f64| {
        let mut card = card.clone();
        value(&mut card).value = tried;
        distance(&card).unwrap_or(f64::MAX)
    };
    let assumed = value(&mut card.clone()).value;
    let unchanged = of(assumed);
    let mut best = (assumed, unchanged);
    let (mut from, mut to) = (least, most);
    for steps in [COARSE, FINE, FINE] {
        let step = libm::pow(to / from, 1.0 / steps as f64);
        for number in 0..=steps {
            let tried = from * step.powi(number as i32);
            let distance = of(tried);
            if distance < best.1 {
                best = (tried, distance);
            }
        }
        (from, to) = ((best.0 / step).max(least), (best.0 * step).min(most));
    }
    if best.1 + BETTER < unchanged {
        *value(card) = Stated {
            value: round(best.0),
            from: Origin::Fitted,
            source: format!("so that the model meets {source}"),
        };
    }
}

/// Time that a read waits for a program, by reads beside writes.
fn suspended(card: &mut SsdCard, found: &WriteFindings) {
    let source = format!(
        "small reads beside writes take {:.0} us",
        found.beside / 1e3
    );
    choose(
        card,
        [1.0, 5000.0],
        &source,
        |card| &mut card.suspend,
        |card| {
            let beside = modelled(&with_cache(card, 0.0), written::beside)?;
            Some(apart(&[[found.beside, beside]]))
        },
    );
}

/// The buffer, by bursts of writes after a rest, and by the stream: pages on their way to flash stay in it. Powers of two
/// alone.
fn buffer(card: &mut SsdCard, found: &WriteFindings) {
    let of = |kib: u64| {
        let card = with_buffer(&with_cache(card, 0.0), kib);
        let told = modelled(&card, written::bursts).zip(stream(&card));
        let Some((bursts, after)) = told else {
            return f64::MAX;
        };
        let pairs = found.bursts.iter().zip(&bursts);
        let mut pairs: Vec<[f64; 2]> = pairs.map(|(own, model)| [own.1, model.1]).collect();
        pairs.push([found.stream.after, after]);
        apart(&pairs)
    };
    let unchanged = of(card.buffer.value);
    let sizes = (6..=18).map(|power| 1_u64 << power);
    let nearest = sizes
        .map(|kib| (kib, of(kib)))
        .min_by(|one, other| one.1.total_cmp(&other.1));
    let Some((kib, _)) = nearest.filter(|nearest| nearest.1 + BETTER < unchanged) else {
        return;
    };
    let rates: Vec<String> = found
        .bursts
        .iter()
        .map(|(_, rate)| format!("{:.0}", rate / 1e6))
        .collect();
    card.buffer = Stated {
        value: kib,
        from: Origin::Fitted,
        source: format!(
            "so that the model meets bursts of 256 KiB to 64 MiB after a rest: {} MB/s",
            rates.join(", ")
        ),
    };
}

fn with_buffer(card: &SsdCard, kib: u64) -> SsdCard {
    let mut card = card.clone();
    card.buffer.value = kib;
    card
}

fn with_cache(card: &SsdCard, share: f64) -> SsdCard {
    let mut card = card.clone();
    card.slc_share.value = share;
    card
}

/// A small SSD with the times of a card, and its bytes.
fn small(card: &SsdCard) -> (Card, u64) {
    let mut card = card.clone();
    let dies = u64::from(card.channels.value * card.dies_per_channel.value);
    let row = BLOCKS * dies * (card.page.value << 10);
    // Few blocks: which of them holds the least is looked for each time that one is freed.
    let pages = (TRIED_BYTES / row.max(1)).clamp(PAGES_LEAST, PAGES_MOST);
    // Smaller blocks are erased more often: each costs its share of one.
    card.erase.value *= pages as f64 / f64::from(card.pages_per_block.value.max(1));
    card.pages_per_block.value = pages as u32;
    (Card::Ssd(Box::new(card)), row * pages)
}

/// What a measurement finds of a small SSD that holds data; `None` if values of the card contradict each other.
fn modelled<F>(
    card: &SsdCard,
    measure: impl Fn(&mut Bench<'_, Modelled>) -> Result<F, Infallible>,
) -> Option<F> {
    let (card, bytes) = small(card);
    let mut model = Modelled::new(&card, bytes, Noise::default()).ok()?;
    measure(&mut bench(&mut model)).ok()
}

fn flush(card: &SsdCard) -> Option<f64> {
    let found = modelled(card, |bench| written::flushes(bench, written::FLUSHED));
    found.map(|[_, flush]| flush)
}

/// Rate of a stream of writes on a small SSD that was emptied.
fn stream(card: &SsdCard) -> Option<f64> {
    let (card, bytes) = small(card);
    let mut model = Modelled::empty(&card, bytes).ok()?;
    let mut bench = bench(&mut model);
    let (middle, end) = (bench.sectors / 4, bench.sectors / 2);
    // The first part fills the buffer.
    let Ok(_) = written::row(&mut bench, 0, middle);
    written::row(&mut bench, middle, end).ok()
}

/// Spare blocks, and then the times of a block, by small writes anywhere: each block that is spare changes their rate by
/// much, and the times by little.
fn spare(card: &mut SsdCard, found: &WriteFindings) {
    let distance = |card: &SsdCard| {
        let rates = overwritten(card)?;
        // The first one fills what the drive holds in memory.
        let pairs = found.anywhere.iter().zip(rates).skip(1);
        let pairs: Vec<[f64; 2]> = pairs.map(|(own, model)| [*own, model]).collect();
        Some(apart(&pairs))
    };
    let rates: Vec<String> = found
        .anywhere
        .iter()
        .map(|rate| format!("{:.0}", rate / 1e6))
        .collect();
    let source = format!(
        "small writes anywhere, 5 % of the drive each: {} MB/s",
        rates.join(", ")
    );
    // Neither a stream that the interface limits nor the flushes of a protected drive show the time of a page.
    let factors: &[f64] = match card.program.from == Origin::Assumed && card.protected.value {
        true => &PROGRAMS,
        false => &[1.0],
    };
    let tried = factors.iter().filter_map(|factor| {
        let mut card = card.clone();
        card.program.value *= factor;
        let (share, apart) = nearest_share(&card, &distance)?;
        Some((card.program.value, share, apart))
    });
    let best = tried.min_by(|one, other| one.2.total_cmp(&other.2));
    let unchanged = distance(card).unwrap_or(f64::MAX);
    if let Some((program, share, _)) = best.filter(|best| best.2 + BETTER < unchanged) {
        let fitted = |value| Stated {
            value,
            from: Origin::Fitted,
            source: format!("so that the model meets {source}"),
        };
        card.over_provisioning = fitted(share);
        if program != card.program.value {
            card.program = fitted(program);
        }
    }
    let source = "the same small writes, with the spare blocks";
    if factors.len() > 1 {
        choose(
            card,
            [50.0, 20_000.0],
            source,
            |card| &mut card.program,
            distance,
        );
    }
    choose(
        card,
        [500.0, 20_000.0],
        source,
        |card| &mut card.erase,
        distance,
    );
}

/// The share of spare blocks at which a card is nearest, and how near.
fn nearest_share(
    card: &SsdCard,
    distance: &impl Fn(&SsdCard) -> Option<f64>,
) -> Option<(f64, f64)> {
    let dies = u64::from(card.channels.value * card.dies_per_channel.value);
    let row = dies * (card.page.value << 10) * u64::from(card.pages_per_block.value);
    let blocks = WHOLE_BYTES.div_ceil(row.max(1)) as f64;
    // Half a block more: a share is rounded down to blocks.
    let share = |spare: u32| ((f64::from(spare) + 0.5) / blocks * 1e4).round() / 1e4;
    let of = |spare: u32| {
        let mut card = card.clone();
        card.over_provisioning.value = share(spare);
        (spare, distance(&card).unwrap_or(f64::MAX))
    };
    let nearest = |spares: Vec<u32>| {
        let all = spares.into_iter().map(of);
        all.min_by(|one, other| one.1.total_cmp(&other.1))
    };
    let (around, _) = nearest((SPARE_LEAST..SPARE_MOST).step_by(SPARE_STEP).collect())?;
    let step = SPARE_STEP as u32;
    let fine = around.saturating_sub(step).max(SPARE_LEAST)..around + step;
    nearest(fine.collect()).map(|(spare, apart)| (share(spare), apart))
}

/// Rates of small writes anywhere, all at the ordinary time of a page. Blocks have their size: of small ones, some hold
/// much less than others by chance, and fewer units are moved.
fn overwritten(card: &SsdCard) -> Option<Vec<f64>> {
    let card = Card::Ssd(Box::new(with_cache(card, 0.0)));
    let mut model = Modelled::new(&card, WHOLE_BYTES, Noise::default()).ok()?;
    written::anywhere(&mut bench(&mut model)).ok()
}
