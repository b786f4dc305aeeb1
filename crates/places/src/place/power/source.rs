//! Power cuts of a run in virtual time: when, what is still to be cut, and in which guests.

use std::sync::Arc;

use crate::place::virtual_lab::turns::VirtualExecutor;
use stackrace_base::event::Promised;
use stackrace_base::failure::Failure;
use stackrace_layers::stack::Stack;
use stackrace_remote::agent::message::{CutOrder, RecoverOrder, Turn};
use stackrace_run::run::crash::{Capture, CrashPackage, instants};
use stackrace_run::run::{Broken, Turned};
use stackrace_study::study::{self, Study, crash::refused_stack};

/// Cuts that one guest recovers from, one after the other: its start takes longer than a cut.
const CUTS_OF_A_GUEST: usize = 25;

/// Refuses a study whose power cannot be cut, before anything is started.
///
/// # Errors
/// The layer that stands in the way; it is not to run in virtual time.
pub fn check(study: &Study, power: PowerSource) -> Result<(), Failure> {
    if study.crash.is_none() {
        return match power {
            PowerSource::Commands => Err(Failure::refused(
                "--cut is for studies that cut the power, and this one does not",
            )
            .next("add to the study: [crash] cuts = 5, and a workload of promises; or leave --cut out")),
            PowerSource::Modelled | PowerSource::None => Ok(()),
        };
    }
    // The stack before the place: it is wrong everywhere.
    let refused = |stack: &Stack| match power {
        PowerSource::Modelled => refused_stack(stack, false),
        PowerSource::Commands => refused_stack(stack, true),
        // Nothing was said yet: only what neither of them could cut.
        PowerSource::None => {
            refused_stack(stack, false).filter(|_| refused_stack(stack, true).is_some())
        }
    };
    let mut stacks = study.configurations.iter().map(|each| &each.stack);
    if let Some((why, next)) = stacks.find_map(refused) {
        return Err(Failure::refused(format!("[crash]: {why}")).next(next));
    }
    if power == PowerSource::None {
        let none = Failure::refused("[crash]: nothing says whose power is to be cut");
        return Err(none.next(ways(study)));
    }
    Ok(())
}

/// Says how the power of these stacks can be cut: all are of one kind.
fn ways(study: &Study) -> String {
    let mut stacks = study.configurations.iter().map(|each| &each.stack);
    // Each can be cut in one of both ways, which was checked before.
    match stacks.any(|stack| refused_stack(stack, false).is_some()) {
        true => "--on HOST --cut 'COMMAND' --restore 'COMMAND'".to_owned(),
        false => study::command("run", &study.name, &["--lab"]),
    }
}

/// Origin of a run's power cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerSource {
    /// Cuts computed for the modelled drives of a guest in virtual time.
    Modelled,
    /// Commands of the user's cut the power of a real machine.
    Commands,
    /// Nothing cuts the power of what is measured.
    None,
}

/// Numbers of the cuts of one trial: they go on from trial to trial of a configuration, so that each
/// names one cut.
pub fn cuts_of_trial(study: &Study, round: u32, workload: usize) -> std::ops::RangeInclusive<u32> {
    let count = study.crash.map_or(0, |crash| crash.cuts);
    let trials = (round - 1) as usize * study.workload_heads.len() + workload;
    let before = u32::try_from(trials)
        .unwrap_or(u32::MAX)
        .saturating_mul(count);
    before.saturating_add(1)..=before.saturating_add(count)
}

/// Seed from which the cuts of one trial are drawn. Without the configuration: all of a round meet the same accidents.
pub fn seed_of_trial(study: &Study, round: u32, workload: usize) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(b"power cuts of a trial");
    hash.update(&study.seed.to_le_bytes());
    hash.update(&round.to_le_bytes());
    hash.update(&(workload as u64).to_le_bytes());
    let drawn = hash.finalize();
    u64::from_le_bytes(*drawn.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

/// The cuts of one trial that a study asks for.
pub fn of_trial(study: &Study, promised: &Promised, capture: &Capture) -> Vec<CutOrder> {
    let numbers = cuts_of_trial(study, promised.round, promised.workload);
    let count = study.crash.map_or(0, |crash| crash.cuts);
    let seed = seed_of_trial(study, promised.round, promised.workload);
    let drawn = instants(promised, capture, seed, count);
    let cuts = numbers.zip(drawn).map(|(number, instant)| CutOrder {
        workload: promised.workload,
        number,
        seed: instant.seed,
        at_ns: instant.at_ns,
        stratum: instant.stratum.to_owned(),
    });
    cuts.collect()
}

impl VirtualExecutor<'_> {
    /// Cuts the power of a turn that is over as often as the study asks and as is not on record yet.
    ///
    /// # Errors
    /// What the guest left cannot be read.
    pub fn cut(&mut self, turn: &Turn, left: &[u8]) -> Result<Turned, Broken> {
        let mut package = CrashPackage::of_bytes(left).map_err(Broken)?;
        let ledgers = self.ledgers(turn);
        let mut cuts = Vec::new();
        for promised in &ledgers {
            cuts.extend(of_trial(self.study, promised, &package.capture));
        }
        let known = self.cuts_known(turn);
        // What was found before an interruption is not looked for again.
        cuts.retain(|cut| !known.contains(&cut.number));
        package.promised = ledgers;
        let package = Arc::new(package.to_bytes());
        let orders: Vec<RecoverOrder> = cuts
            .chunks(CUTS_OF_A_GUEST)
            .map(|cuts| RecoverOrder {
                round: turn.round,
                configuration: turn.configuration,
                cuts: cuts.to_vec(),
            })
            .collect();
        // In this order: the log does not show how many ran side by side.
        let guests = orders.len();
        self.next(orders, &package);
        for _ in 0..guests {
            match self.first_to_end()?.0 {
                Turned::Done => {}
                ended => return Ok(ended),
            }
        }
        Ok(Turned::Done)
    }

    /// The ledgers of a turn, as they are on record.
    fn ledgers(&self, turn: &Turn) -> Vec<Promised> {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        let workloads = 0..self.study.workload_heads.len();
        workloads
            .filter_map(|workload| record.promised(turn.round, turn.configuration, workload))
            .cloned()
            .collect()
    }

    /// Numbers of the cuts of a turn that are on record.
    fn cuts_known(&self, turn: &Turn) -> Vec<u32> {
        let ledger = self.ledger.lock();
        let cuts = ledger.record().cuts();
        let here =
            cuts.filter(|cut| (cut.round, cut.configuration) == (turn.round, turn.configuration));
        here.map(|cut| cut.number).collect()
    }
}
