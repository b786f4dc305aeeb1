//! A made-up run whose power was cut, for tests: no measurement behind it.

use super::sample::{self, SampleShape};
use crate::record::Record;
use stackrace_base::event::{
    CheckedPromises, Cut, Event, LedgerLine, LogLine, Loss, LossCounts, LossLine, OperationKind,
    Promise, Recovery,
};

/// Cuts of each configuration.
const CUTS: u32 = 40;

/// Number of broken promises that a cut of a configuration finds.
fn losses(configuration: usize, number: u32) -> u64 {
    match configuration {
        // Three of four, and a different number each time.
        1 if number % 4 != 3 => u64::from(number % 7) + 1,
        3 if number % 20 == 7 => 1,
        _ => 0,
    }
}

fn ledger(number: u64, at_ns: u64) -> LedgerLine {
    LedgerLine {
        number,
        worker: 0,
        kind: OperationKind::Append,
        object: "log-0".to_owned(),
        offset: number * 4096,
        bytes: 4096,
        generation: 1,
        promise: Promise::Fdatasync,
        begun_ns: at_ns - 2_000_000,
        acknowledged_ns: Some(at_ns - 1_000_000),
    }
}

/// One cut and what was found.
fn cut(configuration: usize, number: u32) -> Cut {
    let at_ns = 10_000_000_000 + u64::from(number) * 77_000_000;
    // One cut of the worst configuration leaves nothing that can be mounted.
    let mounted = (configuration, number) != (1, 9);
    let lost = losses(configuration, number);
    let torn = u64::from(lost > 4);
    let line = |at| LossLine {
        ledger: ledger(100 + at, at_ns),
        loss: if at < torn { Loss::Torn } else { Loss::Lost },
        reordered: at == 5,
        found: format!("it ends after 400 KiB, before byte {}", (100 + at) * 4096),
    };
    Cut {
        round: 1 + number % 5,
        configuration,
        workload: 0,
        number,
        seed: 7,
        at_ns,
        stratum: "anywhere".to_owned(),
        of: "all disks".to_owned(),
        recovery: Recovery {
            mounted,
            needed_operator: !mounted,
            repair: Vec::new(),
            mount_ns: 80_000_000 + u64::from(number) * 1_000_000,
            refused: (!mounted).then(|| "mount: structure needs cleaning".to_owned()),
        },
        found: mounted.then(|| CheckedPromises {
            promised: 150,
            counts: LossCounts {
                lost: lost - torn,
                torn,
                reordered: u64::from(lost > 5),
                ..LossCounts::default()
            },
            losses: (0..lost).map(line).collect(),
            unpromised_lost: 3,
            unpromised_ns: 4_000_000_000,
            rpo_operations: lost,
            rpo_ns: lost * 740_000_000,
        }),
    }
}

/// Four configurations, one workload of promises, 40 cuts of each.
pub fn with_cuts() -> Record {
    let small = sample::small();
    let name = |name: &str| (name.to_owned(), vec![name.to_owned()]);
    let shape = SampleShape {
        title: "What does async lose when the power goes?",
        factors: vec!["export"],
        configurations: ["sync", "async", "sync, cache off", "sync, old firmware"]
            .map(name)
            .to_vec(),
        workloads: small.workloads[..1].to_vec(),
        comparison: None,
        rounds: 5,
        speed: |configuration, _| [24e6, 98e6, 9e6, 25e6][configuration],
    };
    let mut record = sample::record(&shape);
    let end = record.lines.len() - 1;
    let at = record.lines[end].at.clone();
    // Before the end of the run, configuration by configuration, as a run cuts them.
    for configuration in (0..4).rev() {
        for number in (1..=CUTS).rev() {
            let event = Event::Cut(Box::new(cut(configuration, number)));
            let at = at.clone();
            record.lines.insert(
                end,
                LogLine {
                    at,
                    since_ns: None,
                    event,
                },
            );
        }
    }
    record
}
