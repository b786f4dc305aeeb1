//! What a wrong value of a card costs: each is made 20 % smaller and larger, and ratios between ways
//! of using the drive are looked at, because ratios are what a comparison decides by.

use stackrace_drives::{CARDS, Card, Drive, Operation, Request, scattered};
use toml::Value;

/// A card of each kind of drive.
const MODELS: [&str; 4] = [
    "seagate-st3000dm001",
    "seagate-st8000as0002",
    "sata-ssd",
    "aws-gp2-100gib",
];
/// Requests of each way.
const REQUESTS: u64 = 2_000;
/// Bytes of a modelled SSD.
const SSD_BYTES: u64 = 4 << 30;

/// Pairs of ways whose ratio is looked at.
const RATIOS: [(&str, Way, Way); 4] = [
    (
        "queue 32 : 1",
        Way {
            depth: 32,
            ..Way::READS
        },
        Way::READS,
    ),
    (
        "64 : 4 KiB",
        Way {
            sectors: 128,
            ..Way::READS
        },
        Way::READS,
    ),
    (
        "aligned : not",
        Way {
            write: true,
            flush: 1,
            ..Way::READS
        },
        Way {
            write: true,
            flush: 1,
            shift: 1,
            ..Way::READS
        },
    ),
    (
        "flush 32 : 1",
        Way {
            write: true,
            flush: 32,
            ..Way::READS
        },
        Way {
            write: true,
            flush: 1,
            ..Way::READS
        },
    ),
];

/// A way of using a drive: requests anywhere on it.
#[derive(Clone, Copy)]
struct Way {
    write: bool,
    depth: u64,
    sectors: u32,
    /// Sectors that each request begins behind a multiple of 4 KiB.
    shift: u64,
    /// Writes between two flushes; 0: none.
    flush: u64,
}

impl Way {
    const READS: Self = Self {
        write: false,
        depth: 1,
        sectors: 8,
        shift: 0,
        flush: 0,
    };

    /// Nanoseconds for all requests of a new drive.
    fn time(self, drive: &mut dyn Drive) -> f64 {
        let places = drive.sectors() / 128 - 1;
        let (mut now, mut sent, mut done) = (0, 0, 0);
        while done < REQUESTS {
            while sent < REQUESTS && sent - done < self.depth {
                let place = scattered(sent) % places;
                let flush = self.flush > 0 && sent % (self.flush + 1) == self.flush;
                let operation = match (flush, self.write) {
                    (true, _) => Operation::Flush,
                    (false, true) => Operation::Write { durable: false },
                    (false, false) => Operation::Read,
                };
                let first = place * 128 + self.shift;
                let sectors = if flush { 0 } else { self.sectors };
                drive.submit(
                    Request {
                        id: sent,
                        operation,
                        first,
                        sectors,
                    },
                    now,
                );
                sent += 1;
            }
            let Some(next) = drive.next_event() else {
                break;
            };
            now = now.max(next);
            while drive.complete(now).is_some() {
                done += 1;
            }
        }
        now as f64 / (REQUESTS - REQUESTS / (self.flush + 1) * u64::from(self.flush > 0)) as f64
    }
}

/// Ratios of a card's drive; none: the values contradict each other.
fn ratios(table: &toml::Table) -> Option<[f64; 4]> {
    let card = Card::parse(&table.to_string()).ok()?;
    let time = |way: Way| Some(way.time(&mut *card.drive(0, SSD_BYTES).ok()?));
    let mut found = [0.0; 4];
    for (ratio, (_, one, other)) in found.iter_mut().zip(RATIOS) {
        *ratio = time(other)? / time(one)?;
    }
    Some(found)
}

/// Every number of a value with the way to it.
fn leaves(value: &Value, way: &str, found: &mut Vec<String>) {
    let inside = |name: &str| {
        if way.is_empty() {
            name.to_owned()
        } else {
            format!("{way}.{name}")
        }
    };
    match value {
        Value::Integer(_) | Value::Float(_) => found.push(way.to_owned()),
        Value::Table(table) => table
            .iter()
            .for_each(|(name, value)| leaves(value, &inside(name), found)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(at, value)| leaves(value, &inside(&at.to_string()), found)),
        _ => {}
    }
}

fn scale(value: &mut Value, way: &str, by: f64) {
    let (name, rest) = way.split_once('.').unwrap_or((way, ""));
    match value {
        Value::Integer(number) => *number = (*number as f64 * by).round() as i64,
        Value::Float(number) => *number *= by,
        Value::Table(table) => table
            .get_mut(name)
            .into_iter()
            .for_each(|value| scale(value, rest, by)),
        Value::Array(list) => name
            .parse()
            .ok()
            .and_then(|at: usize| list.get_mut(at))
            .into_iter()
            .for_each(|value| scale(value, rest, by)),
        _ => {}
    }
}

pub(super) fn sensitivity() -> Result<(), String> {
    for model in MODELS {
        let text = CARDS
            .iter()
            .find(|text| text.contains(&format!("model = \"{model}\"")));
        let table: toml::Table = text
            .ok_or("no such card")?
            .parse()
            .map_err(|error| format!("{error}"))?;
        let base = ratios(&table).ok_or_else(|| format!("{model}: no drive"))?;
        println!("{model}: ratio as it is, and percent it moves when a value is 20 % off");
        let head: String = RATIOS
            .iter()
            .map(|ratio| format!("{:>15}", ratio.0))
            .collect();
        println!("{:<28}{head}", "");
        let line: String = base.iter().map(|ratio| format!("{ratio:>15.2}")).collect();
        println!("{:<28}{line}", "as it is");
        for (name, entry) in &table {
            let mut ways = Vec::new();
            if let Some(value) = entry.get("value") {
                leaves(value, "", &mut ways);
            }
            for way in ways {
                let moved = move_of(&table, name, &way, &base);
                if moved.iter().any(|moved| *moved >= 0.5) {
                    let line: String = moved.iter().map(|moved| format!("{moved:>15.1}")).collect();
                    println!("{:<28}{line}", format!("{name} {way}"));
                }
            }
        }
        println!();
    }
    Ok(())
}

/// Largest move of each ratio, percent; a value that makes no drive when it is off counts as none.
fn move_of(table: &toml::Table, name: &str, way: &str, base: &[f64; 4]) -> [f64; 4] {
    let mut moved = [0.0_f64; 4];
    for by in [0.8, 1.2] {
        let mut table = table.clone();
        if let Some(value) = table.get_mut(name).and_then(|entry| entry.get_mut("value")) {
            scale(value, way, by);
        }
        for (moved, (now, base)) in moved
            .iter_mut()
            .zip(ratios(&table).iter().flatten().zip(base))
        {
            *moved = moved.max(((now / base).ln().abs().exp() - 1.0) * 100.0);
        }
    }
    moved
}
