//! Requests a second of each model alone.

use rustix::time::{ClockId, clock_gettime};

use stackrace_drives::{
    ArrayLayout, CARDS, Card, Controller, ControllerParameters, Drive, Line, Operation, Request,
    scattered,
};

/// Requests timed on each model.
const REQUESTS: u64 = 1_000_000;
/// Bytes of a modelled SSD.
const SSD_BYTES: u64 = 4 << 30;

/// One model of each kind, requests one at a time and 32 outstanding.
pub(super) fn speed() -> Result<(), String> {
    println!(
        "{:<46} {:>14} {:>14}",
        "million requests a second of processor time", "1 outstanding", "32 outstanding"
    );
    for model in ["seagate-st3000dm001", "sata-ssd", "nvme-ssd", "aws-gp3"] {
        for (load, write, sequential) in LOADS {
            let mut figures = [0.0; 2];
            for (figure, depth) in figures.iter_mut().zip([1, 32]) {
                *figure = rate(&mut *drive(model)?, depth, write, sequential);
            }
            println!(
                "{:<46} {:>14.2} {:>14.2}",
                format!("{model}, {load}"),
                figures[0],
                figures[1]
            );
        }
    }
    for (load, write, sequential) in LOADS {
        let figures = [1, 32]
            .map(|depth| controller().map(|mut array| rate(&mut array, depth, write, sequential)));
        let [one, many] = figures;
        println!(
            "{:<46} {:>14.2} {:>14.2}",
            format!("RAID 5 of 4 disks, {load}"),
            one?,
            many?
        );
    }
    let mut line = Line::new(125e6, 100_000, 0.001, 1).map_err(|error| error.to_string())?;
    let begin = processor_seconds();
    let arrived = (0..REQUESTS)
        .filter_map(|at| line.send(1500, at * 1000))
        .count();
    let rate = REQUESTS as f64 / 1e6 / (processor_seconds() - begin);
    println!(
        "{:<46} {rate:>14.2}",
        format!("line, 1500 bytes, {arrived} arrived")
    );
    Ok(())
}

const LOADS: [(&str, bool, bool); 4] = [
    ("random read", false, false),
    ("sequential read", false, true),
    ("random write", true, false),
    ("sequential write", true, true),
];

fn card(model: &str) -> Result<Card, String> {
    let cards = CARDS.iter().filter_map(|text| Card::parse(text).ok());
    let mut found = cards.filter(|card| card.model() == model);
    found
        .next()
        .ok_or_else(|| format!("there is no card {model}"))
}

fn drive(model: &str) -> Result<Box<dyn Drive>, String> {
    card(model)?
        .drive(0, SSD_BYTES)
        .map_err(|error| error.to_string())
}

fn controller() -> Result<Controller<Box<dyn Drive>>, String> {
    let drives: Result<Vec<_>, _> = (0..4).map(|_| drive("seagate-st973451ss")).collect();
    let parameters = ControllerParameters {
        layout: ArrayLayout::Parity,
        chunk: 128,
        write_sectors: 1 << 19,
        overhead: 50_000,
        bus_sector: 500,
    };
    Controller::new(drives?, parameters).map_err(|error| error.to_string())
}

/// Seconds of processor time of this thread: what else the machine does is not counted.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Million requests of 4 KiB a second of processor time.
fn rate(drive: &mut dyn Drive, depth: u64, write: bool, sequential: bool) -> f64 {
    let places = drive.sectors() / 8;
    let operation = if write {
        Operation::Write { durable: false }
    } else {
        Operation::Read
    };
    let (mut now, mut sent, mut done) = (0, 0, 0);
    let begin = processor_seconds();
    while done < REQUESTS {
        while sent < REQUESTS && sent - done < depth {
            let place = if sequential {
                sent % places
            } else {
                scattered(sent) % places
            };
            drive.submit(
                Request {
                    id: sent,
                    operation,
                    first: place * 8,
                    sectors: 8,
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
        // A slow case need not run to its end to be timed. Asking for the time costs time, too.
        if sent % 4096 == 0 && processor_seconds() - begin > 2.0 {
            break;
        }
    }
    done as f64 / 1e6 / (processor_seconds() - begin)
}
