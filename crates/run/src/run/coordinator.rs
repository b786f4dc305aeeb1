//! The loop of a run: it draws the order of each round, checks the results, and says when to stop.

use std::collections::BTreeSet;

use stackrace_stats::FIRST_LOOK;

use super::executor::{Broken, Executor, Turned, Watcher};
use super::ledger::{Ledger, SharedLedger};
use super::time_left::{NextRound, TimeLeft};
use super::trial_kind::{TrialKind, io_limit, trial_kinds};
use stackrace_base::event::{Ended, Event, StorageIdentity, Until};
use stackrace_judge::verdict::{self, State};
use stackrace_load::workload::Slicing;
use stackrace_remote::agent::message::Turn;
use stackrace_study::plan;
use stackrace_study::study::{Configuration, Provision, RoundOrder, Study};

/// Reason why an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The question is answered.
    Decided,
    /// The figures are too coarse for what is open, or of too few operations: no further round would change that.
    Resolution,
    /// All rounds the study allows are done.
    Rounds,
    /// Another round, or the rounds up to the next check, would end too late.
    Time,
    /// The user stopped it.
    Interrupted,
    /// Too few configurations are left to compare, or the record cannot be written.
    Failed,
    /// The connection to a worker is lost.
    Lost,
}

impl Reason {
    /// Returns the word that stands on record.
    pub fn word(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Resolution => "resolution",
            Self::Rounds => "rounds",
            Self::Time => "time",
            Self::Interrupted => "interrupted",
            Self::Failed | Self::Lost => "failed",
        }
    }
}

/// Orders turns and decides when the run is over.
pub struct Coordinator<'a> {
    /// The question.
    pub study: &'a Study,
    /// Ledger to which results go.
    pub ledger: SharedLedger,
    /// Watcher that is told of checks and warnings.
    pub watcher: &'a dyn Watcher,
}

impl Coordinator<'_> {
    /// Runs until there is a reason to end; the stacks are torn down whatever happens.
    ///
    /// # Errors
    /// The record cannot be written: nothing measured after that would survive.
    pub fn run(&self, executor: &mut dyn Executor) -> Result<Reason, Broken> {
        self.tell_no_slices(executor)?;
        let ended = self.rounds(executor);
        // Also after an error, and before it is passed on: nothing may stand when this returns.
        let torn_down = executor.end();
        let (reason, detail) = ended?;
        torn_down?;
        self.append(Event::RunEnded {
            reason: reason.word().to_owned(),
            detail,
        })?;
        Ok(reason)
    }

    /// Says, before the first round, why nothing is measured in slices.
    fn tell_no_slices(&self, executor: &dyn Executor) -> Result<(), Broken> {
        let Some(why) = self.no_slices(executor) else {
            return Ok(());
        };
        let text = format!("{why}: reads are measured in one go, not in slices");
        self.watcher.warned(&text);
        self.append(Event::Warned { text })
    }

    /// Says why nothing is measured in slices; `None` if something is, nothing could be, or it was said before.
    fn no_slices(&self, executor: &dyn Executor) -> Option<String> {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        if !record.complete_rounds().is_empty() {
            return None;
        }
        if let Some(why) = self.study.no_slices() {
            return Some(why.to_owned());
        }
        let mut workloads = 0..self.study.workload_heads.len();
        let could = |workload| self.study.slicing(workload) != Slicing::Never;
        if !executor.slices() || !workloads.any(could) {
            return None;
        }
        let limit = io_limit(self.study, record)?;
        Some(format!(
            "a control group limits the I/O of this program ({limit})"
        ))
    }

    fn rounds(&self, executor: &mut dyn Executor) -> Result<(Reason, String), Broken> {
        let decide = &self.study.decide;
        loop {
            let done = self.ledger.lock().record().complete_rounds().len() as u32;
            if let Some(end) = self.look(done)? {
                return Ok(end);
            }
            if done >= decide.rounds_max {
                return Ok((
                    Reason::Rounds,
                    format!("all {done} rounds the study allows are done"),
                ));
            }
            match self.time_left(done).next() {
                NextRound::Fits => {}
                NextRound::Late(text) => {
                    self.watcher.warned(&text);
                    self.append(Event::Warned { text })?;
                }
                NextRound::TooLate(detail) => return Ok((Reason::Time, detail)),
            }
            let live = self.live();
            if let Some(detail) = self.too_few(live.len()) {
                return Ok((Reason::Failed, detail));
            }
            // After a resume it may be one before the last: a round is measured again where what failed was mended.
            let round = self.ledger.lock().record().next_round();
            match self.round(round, &live, executor)? {
                Turned::Done => {}
                Turned::Interrupted => {
                    let detail = format!("stopped by the user in round {round}");
                    return Ok((Reason::Interrupted, detail));
                }
                Turned::Lost(why) => {
                    let detail = format!("{why}; what was measured until then is kept");
                    return Ok((Reason::Lost, detail));
                }
            }
        }
    }

    /// Says why a further round would answer nothing, with so many configurations left.
    fn too_few(&self, left: usize) -> Option<String> {
        let failed = self.failed(left).map(str::to_owned);
        failed.or_else(|| self.withheld())
    }

    /// Says why no verdict can be given, however many rounds follow.
    fn withheld(&self) -> Option<String> {
        let asked = self.study.decide.until != Until::Never;
        let mut ledger = self.ledger.lock();
        let (kept, record) = ledger.looked_at();
        asked.then(|| verdict::withheld(&kept.of(record)))?
    }

    fn failed(&self, left: usize) -> Option<&'static str> {
        // A study of one configuration measures without comparing.
        let compares = self.study.configurations.len() > 1;
        match left {
            0 => return Some("no configuration is left: all failed, see their errors"),
            1 if compares => {
                // Where others were beaten, the last one is measured for what it must meet.
                let failed = self.ledger.lock().record().dropped().is_empty();
                return failed
                    .then_some("one configuration is left: the others failed, see their errors");
            }
            // None failed, and none was left out: what is compared is there.
            _ if left == self.study.configurations.len() => return None,
            _ => {}
        }
        // Where every round was asked for, or promises are, each configuration has an answer of its own.
        let each = self.study.crash.is_some() || self.study.decide.until == Until::Never;
        let mut ledger = self.ledger.lock();
        let (kept, record) = ledger.looked_at();
        let open = each || !compares || verdict::can_compare(&kept.of(record));
        (!open)
            .then_some("every comparison has a configuration that failed: mend it, see its error")
    }

    /// Checks the results after a round, from the third on.
    fn look(&self, done: u32) -> Result<Option<(Reason, String)>, Broken> {
        if done < FIRST_LOOK {
            return Ok(None);
        }
        let decide = &self.study.decide;
        let (answer, dropped, whole, before, decided, open) = {
            let mut ledger = self.ledger.lock();
            let (kept, record) = ledger.looked_at();
            let mut evidence = kept.of(record);
            let before = record.checked_at(done);
            // The check is on record already, from an execution that ended right after it: what it
            // decided stands.
            let whole = match before {
                true => Vec::new(),
                false => verdict::end_slices(&evidence),
            };
            // The verdict of this check does not count the slices that end with it.
            let ended = whole.iter().map(|ended| (done, ended.clone()));
            evidence.slices_ended.extend(ended);
            let look = kept.look(&evidence);
            let stops = look.may_stop(decide);
            let dropped = match self.study.crash {
                // One that is slower may be the one that keeps its promises.
                Some(_) => Vec::new(),
                // The run ends here: none is left out of anything.
                None if stops => Vec::new(),
                None => look.to_drop(decide),
            };
            let decided = match &self.study.crash {
                // What is asked is what is kept; speed stands beside it.
                Some(_) if decide.until == Until::Never => false,
                Some(crash) => {
                    let verdict = verdict::judge(&evidence);
                    verdict::cuts_decide(record, &verdict, crash.cuts, crash.enough)
                }
                None => stops,
            };
            let open = look.requires_more();
            (look.answer(), dropped, whole, before, decided, open)
        };
        for ended in &whole {
            let name = &self.study.workload_heads[ended.workload].name;
            let why = &ended.why;
            self.watcher
                .warned(&format!("{name} is no longer measured in slices: {why}"));
        }
        if !before {
            self.append(Event::Checked {
                rounds: done,
                sentence: answer.found.clone(),
                dropped,
                whole,
            })?;
        }
        self.watcher.looked(&answer);
        // One that is alone because the others failed has not won, and what it must meet is asked on.
        let one_left = self.live().len() == 1 && answer.state != State::TooFew && !open;
        let won = || !self.ledger.lock().record().dropped().is_empty();
        let winner = self.study.crash.is_none() && one_left && won();
        // Stopped, but not answered: a script must not take it for an answer.
        let reason = match answer.too_coarse {
            true => Reason::Resolution,
            false => Reason::Decided,
        };
        Ok((decided || winner).then_some((reason, answer.found)))
    }

    /// The time that is left after so many rounds.
    fn time_left(&self, done: u32) -> TimeLeft {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        let lays_out = self.study.policy.provision == Provision::Once;
        TimeLeft {
            allowed_s: self.study.decide.time_max_ns as f64 / 1e9,
            spent_s: ledger.spent_seconds(),
            rounds_s: record.round_times().iter().map(|it| it.seconds).collect(),
            first_trials_s: lays_out.then(|| {
                // Asked for after the first round alone.
                let trials = record.trials().take_while(|_| done <= 1);
                let trials = trials.map(|trial| trial.elapsed_ns);
                trials.sum::<u64>() as f64 / 1e9
            }),
        }
    }

    /// Configurations that are still tried.
    fn live(&self) -> Vec<usize> {
        let mut ledger = self.ledger.lock();
        let (kept, record) = ledger.looked_at();
        let dropped = kept.dropped(record);
        (0..self.study.configurations.len())
            .filter(|t| !dropped.iter().any(|(gone, _)| gone == t))
            .collect()
    }

    /// Runs one round, up to the turn that was not done.
    fn round(
        &self,
        round: u32,
        live: &[usize],
        executor: &mut dyn Executor,
    ) -> Result<Turned, Broken> {
        let (order, orders) = self.orders(round, live);
        self.append(Event::RoundStarted {
            round,
            order: order.clone(),
            orders: orders.clone(),
        })?;
        // Without orders within workloads, each turn is whole.
        let turned = match orders.is_empty() {
            true => self.whole_turns(round, &order, live, executor)?,
            false => self.workload_by_workload(round, &orders, executor)?,
        };
        if turned == Turned::Done {
            let told = |ledger: &Ledger| {
                let of_round = ledger
                    .record()
                    .trials()
                    .filter(|trial| trial.round == round);
                u32::try_from(of_round.count()).ok()
            };
            let trials = told(&self.ledger.lock());
            self.append(Event::RoundFinished { round, trials })?;
        }
        Ok(turned)
    }

    /// The order of the configurations, and, where partners are to be adjacent, that within each
    /// workload; as they were drawn if the round was begun already.
    fn orders(&self, round: u32, live: &[usize]) -> (Vec<usize>, Vec<Vec<usize>>) {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        if let Some(drawn) = record.order_of(round).zip(record.orders_of(round)) {
            return drawn;
        }
        let (seed, hash) = (self.study.seed, self.study.hash());
        let order = plan::order(seed, &hash, round, live);
        let orders = match self.study.policy.order {
            RoundOrder::Turns => Vec::new(),
            RoundOrder::Adjacent => (0..self.study.workload_heads.len())
                .map(|workload| plan::order_within(seed, &hash, round, workload, live))
                .collect(),
        };
        (order, orders)
    }

    /// Executes whole turns: each configuration goes through all workloads in its turn.
    fn whole_turns(
        &self,
        round: u32,
        order: &[usize],
        live: &[usize],
        executor: &mut dyn Executor,
    ) -> Result<Turned, Broken> {
        let turns = order.iter().copied().enumerate();
        // The order was drawn when others were live, too; a resumed round keeps it.
        let turns = turns.filter(|(_, configuration)| live.contains(configuration));
        // Once for all of them: it takes all comparisons to say what is still open.
        let asked = self.asked(round, false);
        let turns = turns.map(|(position, configuration)| Turn {
            round,
            position,
            configuration,
            missing: self.missing(round, configuration, &asked),
            keep: self.study.policy.provision == Provision::Once,
            lies_on: self.lies_on(configuration),
        });
        let turns: Vec<Turn> = turns.filter(|turn| !turn.missing.is_empty()).collect();
        executor.announce(&turns);
        executor.execute_all(&turns)
    }

    /// Executes a round workload by workload: within one the configurations follow each other at once, or take turns in
    /// slices, so that what drifts has little time to come between them.
    fn workload_by_workload(
        &self,
        round: u32,
        orders: &[Vec<usize>],
        executor: &mut dyn Executor,
    ) -> Result<Turned, Broken> {
        // Fixed for the whole round: every configuration gets the same workloads.
        let asked = self.asked(round, executor.slices());
        for at in 0..asked.len() {
            let (workload, kind) = asked[at];
            let order = &orders[workload];
            let turned = match kind {
                TrialKind::Whole => self.one_by_one(round, order, &asked[at..], executor)?,
                TrialKind::Sliced(ns) => {
                    let turns = self.turns_in_slices(round, order, &asked[at..]);
                    match turns.is_empty() {
                        true => Turned::Done,
                        false => executor.execute_in_slices(&turns, ns)?,
                    }
                }
            };
            if turned != Turned::Done {
                return Ok(turned);
            }
        }
        Ok(Turned::Done)
    }

    /// Returns what every configuration is measured on in a round that goes workload by workload.
    fn asked(&self, round: u32, in_slices: bool) -> Vec<(usize, TrialKind)> {
        let mut ledger = self.ledger.lock();
        let (kept, record) = ledger.looked_at();
        let undecided = kept.undecided_workloads(record);
        let workloads = self.with_those_before(undecided).into_iter();
        let kinds = |workload| match in_slices {
            true => trial_kinds(self.study, record, workload, round),
            false => vec![TrialKind::Whole],
        };
        workloads
            .flat_map(|workload| {
                kinds(workload)
                    .into_iter()
                    .map(move |kind| (workload, kind))
            })
            .collect()
    }

    /// The workloads, and those before them whose data they work on.
    fn with_those_before(&self, workloads: Vec<usize>) -> Vec<usize> {
        let mut all = BTreeSet::new();
        for workload in workloads {
            let data_of = |configuration: &Configuration| configuration.data_of(workload);
            let first = self.study.configurations.iter().map(data_of).min();
            all.extend(first.unwrap_or(workload)..=workload);
            // Beside others it is other work than alone.
            all.extend(self.study.at_once(workload));
        }
        all.into_iter().collect()
    }

    fn one_by_one(
        &self,
        round: u32,
        order: &[usize],
        asked: &[(usize, TrialKind)],
        executor: &mut dyn Executor,
    ) -> Result<Turned, Broken> {
        let at_once = self.study.at_once(asked[0].0);
        // All of them are measured with the first that comes.
        if at_once.iter().min() != Some(&asked[0].0) {
            return Ok(Turned::Done);
        }
        for (position, configuration) in order.iter().copied().enumerate() {
            let mut at_once = at_once.iter().map(|workload| (*workload, asked[0].1));
            // One may have failed a moment ago.
            if !self.live().contains(&configuration)
                || at_once.all(|one| self.has(round, configuration, one))
            {
                continue;
            }
            let turn = self.turn(round, position, configuration, asked);
            match executor.execute(&turn)? {
                Turned::Done => {}
                ended => return Ok(ended),
            }
        }
        Ok(Turned::Done)
    }

    /// The turns of all configurations that are left, if any of them lacks its trial: trials in slices
    /// are measured together.
    fn turns_in_slices(
        &self,
        round: u32,
        order: &[usize],
        asked: &[(usize, TrialKind)],
    ) -> Vec<Turn> {
        let live = self.live();
        let placed = order.iter().copied().enumerate();
        let live: Vec<_> = placed.filter(|(_, t)| live.contains(t)).collect();
        if live.iter().all(|(_, t)| self.has(round, *t, asked[0])) {
            return Vec::new();
        }
        let turns = live.into_iter();
        turns
            .map(|(position, t)| self.turn(round, position, t, asked))
            .collect()
    }

    /// The turn of a configuration in the first workload of what is still asked in this round.
    fn turn(
        &self,
        round: u32,
        position: usize,
        configuration: usize,
        asked: &[(usize, TrialKind)],
    ) -> Turn {
        let missing = self.study.at_once(asked[0].0);
        // A stack stays up for what this round still asks of it.
        let mut later = asked[1..]
            .iter()
            .filter(|later| missing.len() == 1 || !missing.contains(&later.0));
        let more = later.any(|later| !self.has(round, configuration, *later));
        Turn {
            round,
            position,
            configuration,
            missing,
            keep: more || self.study.policy.provision == Provision::Once,
            lies_on: self.lies_on(configuration),
        }
    }

    /// Returns what a configuration lay on when it was first set up in this run, also before a `resume`.
    fn lies_on(&self, configuration: usize) -> Vec<StorageIdentity> {
        let ledger = self.ledger.lock();
        ledger.record().lies_on(configuration).to_vec()
    }

    /// Workloads of a configuration that have no complete trial in a round yet, of those that are
    /// still to be decided.
    fn missing(
        &self,
        round: u32,
        configuration: usize,
        asked: &[(usize, TrialKind)],
    ) -> Vec<usize> {
        let lacks = |(workload, kind)| {
            !self.has(round, configuration, (workload, kind))
                || self.lacks_cuts(round, configuration, workload)
        };
        // What is measured at once is measured again at once.
        let missing = asked.iter().copied().filter(|(workload, kind)| {
            let mut at_once = self.study.at_once(*workload).into_iter();
            at_once.any(|workload| lacks((workload, *kind)))
        });
        missing.map(|(workload, _)| workload).collect()
    }

    /// Returns true if a configuration has a complete trial of that workload and kind in a round.
    fn has(&self, round: u32, configuration: usize, asked: (usize, TrialKind)) -> bool {
        let ledger = self.ledger.lock();
        // From the last: nearly always it is one of the last round, or none is there yet.
        let mut trials = ledger.record().trials_since(round);
        trials.any(|trial| {
            trial.round == round
                && trial.configuration == configuration
                && trial.workload == asked.0
                && asked.1.is_of(trial.sliced.is_some())
                && trial.ended == Ended::Complete
        })
    }

    /// Returns true if the power of a trial is still to be cut.
    fn lacks_cuts(&self, round: u32, configuration: usize, workload: usize) -> bool {
        let Some(crash) = &self.study.crash else {
            return false;
        };
        let ledger = self.ledger.lock();
        let cuts = ledger.record().cuts();
        let here = cuts.filter(|cut| {
            (cut.round, cut.configuration, cut.workload) == (round, configuration, workload)
        });
        let lacks = here.count() < crash.cuts as usize;
        // Only a workload that keeps a ledger is cut.
        lacks
            && ledger
                .record()
                .promised(round, configuration, workload)
                .is_some()
    }

    fn append(&self, event: Event) -> Result<(), Broken> {
        self.ledger.tell(event)
    }
}
