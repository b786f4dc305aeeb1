//! How a loss came about: the guest of its trial is made once more, its power is cut at the same
//! instant, and what is found is compared with the record.

use stackrace_base::event::{Cut, Ended, Event, Promised};
use stackrace_base::failure::Failure;
use stackrace_places::place::lab_guests::{Images, unable};
use stackrace_places::place::virtual_lab::again;
use stackrace_places::place::virtual_lab::turns::{
    VirtualPlace, accident, conversation, orders, to_end,
};
use stackrace_remote::agent::message::{
    Assignment, CutOrder, RecoverOrder, Turn, TurnReply, TurnRequest,
};
use stackrace_remote::agent::polled::GuestOrders;
use stackrace_remote::lab::virtual_guest::{SideBySide, VirtualLab};
use stackrace_results::record::Record;
use stackrace_run::execute::virtual_clock;
use stackrace_run::prepare::context::{Context, unrecorded};
use stackrace_run::run::crash::{CrashPackage, drive_log};
use stackrace_study::study::Study;

/// Requests of each drive that are shown before a cut.
const REQUESTS: usize = 16;

/// A loss that was made again.
pub(crate) struct LossAgain {
    /// Requests to the drives around the cut, a line each.
    pub(crate) drives: Vec<String>,
    /// Findings of this time.
    pub(crate) cut: Cut,
}

/// Returns true if cuts of this run can be made again: those of a real machine cannot.
pub(crate) fn is_simulated(record: &Record) -> bool {
    virtual_clock::made(record)
}

/// Makes a cut of a run in virtual time once more.
///
/// # Errors
/// The run has no such cut, or its guests cannot be made here.
pub(crate) fn cut_again(
    context: &Context,
    record: &Record,
    study: &Study,
    cut: &Cut,
    images: Images<'_>,
) -> Result<LossAgain, Failure> {
    again(context, study, record, cut.configuration, images, |place| {
        let VirtualPlace { lab, assignment } = place;
        let package = package(lab, assignment, record, cut)?;
        let order = CutOrder {
            workload: cut.workload,
            number: cut.number,
            seed: cut.seed,
            at_ns: cut.at_ns,
            stratum: cut.stratum.clone(),
        };
        let stack = &study.configurations[cut.configuration].stack;
        let (disks, of) = (stack.lab_disks(), stack.cut_of());
        let drives = drive_log(&package.capture, &disks, of, &order, REQUESTS);
        let cut = recovered(lab, assignment, &package, cut, order)?;
        Ok(LossAgain { drives, cut })
    })
}

/// Packs what the guest of a trial left, with the ledgers on record.
fn package(
    lab: &VirtualLab<'_>,
    assignment: &Assignment,
    record: &Record,
    cut: &Cut,
) -> Result<CrashPackage, Failure> {
    let here: Vec<_> = record
        .trials()
        .filter(|trial| (trial.round, trial.configuration) == (cut.round, cut.configuration))
        .filter(|trial| trial.ended == Ended::Complete)
        .collect();
    // As it was asked then: what follows has to be the same, instruction by instruction.
    let turn = Turn {
        round: cut.round,
        position: here.first().map_or(0, |trial| trial.position),
        configuration: cut.configuration,
        missing: here.iter().map(|trial| trial.workload).collect(),
        keep: false,
        lies_on: Vec::new(),
    };
    // The very guest of the round: same seed, same delay, same orders.
    let seed = accident(assignment.seed, cut.round);
    let orders = orders(assignment, Some(&turn));
    let guest = lab
        .start(1, seed, &orders, Some(&[]), SideBySide::ALONE)
        .map_err(unable)?;
    let (_, left) = to_end(guest).map_err(Failure::unable)?;
    let mut package = CrashPackage::of_bytes(&left).map_err(Failure::internal)?;
    let workloads = here.iter().map(|trial| trial.workload);
    let ledgers =
        workloads.filter_map(|workload| record.promised(cut.round, cut.configuration, workload));
    // As on record: the guest has told them again, and they are the same.
    package.promised = ledgers.cloned().collect::<Vec<Promised>>();
    Ok(package)
}

/// Returns what a guest finds after the cut.
fn recovered(
    lab: &VirtualLab<'_>,
    assignment: &Assignment,
    package: &CrashPackage,
    cut: &Cut,
    order: CutOrder,
) -> Result<Cut, Failure> {
    let order = RecoverOrder {
        round: cut.round,
        configuration: cut.configuration,
        cuts: vec![order],
    };
    let orders = GuestOrders {
        delay_ns: 0,
        requests: conversation(assignment, Some(TurnRequest::Recover(order))),
    };
    let seed = accident(assignment.seed, cut.round);
    let guest = lab
        .start(
            2,
            seed,
            &orders,
            Some(&package.to_bytes()),
            SideBySide::ALONE,
        )
        .map_err(unable)?;
    let (said, _) = to_end(guest).map_err(Failure::unable)?;
    // Commands are told, too.
    let mut events = said.into_iter().filter_map(|reply| match reply {
        TurnReply::Happened(event) => Some(*event),
        _ => None,
    });
    let found = events.find_map(|event| match event {
        Event::Cut(cut) => Some(*cut),
        _ => None,
    });
    found.ok_or_else(|| Failure::internal("the guest said nothing of the cut"))
}

/// A run by its name, and its study.
///
/// # Errors
/// There is no such run, or its study cannot be read any more.
pub(crate) fn recorded(context: &Context, run: &str) -> Result<(Record, Study), Failure> {
    let store = context.look_into_store()?;
    let run = store
        .find(run)
        .map_err(|error| Failure::usage(error.to_string()).next(error.next()))?;
    let record = store.read(&run).map_err(unrecorded)?;
    let head = &record.head;
    let mut study =
        stackrace_run::prepare::study_file::parse(&head.study_name, head.study.as_bytes())?;
    // Options of the command line are in the head alone, not in the study's text.
    study.decide = head.decide.clone();
    study.seed = head.seed;
    // As the run did: each turn has a guest of its own.
    stackrace_places::place::virtual_lab::in_turns(&mut study);
    Ok((record, study))
}
