//! Which promises were broken, and how.
//!
//! Each sector of an operation must have its generation or a newer one that was begun before the
//! cut. Missing or damaged content is charged to the newest operation that had promised it: older
//! ones had been written over. If older content than promised is found, all newer operations are
//! lost.

use std::collections::HashMap;

use stackrace_engine::promises::content::{PromisedContent, SectorFound};

use super::look::{SECTOR, Seen, SeenObject};
use stackrace_base::event::{
    CheckedPromises, LOSSES_KEPT, LedgerLine, Loss, LossLine, OperationKind, Promise, Promised,
};
use stackrace_base::unit;

/// One sector of one object.
type SectorPlace<'a> = (&'a str, u64);

/// State of a sector for the operation that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectorState {
    /// Content of this generation or a newer one.
    Kept,
    /// An older one.
    Older(u32),
    /// The sector is not there, or zeros.
    Missing,
    /// Neither old nor new.
    Damaged,
    /// Content that belongs to another place.
    Elsewhere { mark: u64, offset: u64 },
}

/// Fate of an operation.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The operation is there, complete and undamaged.
    Kept,
    /// Nothing of the operation can be asked for: written over, or removed since.
    Superseded,
    /// The operation is lost, and in which way.
    Gone(Loss, String),
}

/// Effects that operations had on each place when the power went.
struct Ledger<'a> {
    seen: &'a Seen,
    at_ns: u64,
    /// Number of the newest acknowledged operation of a sector.
    newest: HashMap<SectorPlace<'a>, u64>,
    /// Sectors that operations of the measured part had begun to write.
    touched: HashMap<SectorPlace<'a>, Touched>,
    /// Objects whose removal had begun.
    removed: HashMap<&'a str, ()>,
    /// The object of each mark.
    marks: HashMap<u64, &'a str>,
    seed: u64,
}

/// Use that was being made of a sector.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    /// An overwrite of it was in flight.
    in_flight: bool,
}

/// Compares what is seen with what was promised when the power went at `at_ns`.
pub(super) fn judge(promised: &Promised, seen: &Seen, at_ns: u64) -> CheckedPromises {
    let ledger = Ledger::new(promised, seen, at_ns);
    let begun = promised.lines.iter().filter(|line| line.begun_ns <= at_ns);
    let fates: Vec<(&LedgerLine, Fate)> = begun
        .filter(|line| line.kind != OperationKind::Remove)
        .map(|line| (line, ledger.fate(line)))
        .collect();
    // The latest beginning of anything that survived: what was acknowledged before it is older.
    let survived_ns = fates
        .iter()
        .filter(|(line, fate)| line.kind != OperationKind::AtRest && *fate == Fate::Kept)
        .map(|(line, _)| line.begun_ns)
        .max();
    let mut checked = CheckedPromises::default();
    // Operations in flight were followed until here only for what they say about order.
    for (line, fate) in fates {
        if done(line, at_ns) {
            ledger.count(line, fate, survived_ns, &mut checked);
        }
    }
    checked
}

/// Returns true if an operation was acknowledged when the power went.
fn done(line: &LedgerLine, at_ns: u64) -> bool {
    line.acknowledged_ns.is_some_and(|ns| ns <= at_ns)
}

/// The sectors of an operation, by their offsets.
fn sectors(line: &LedgerLine) -> impl Iterator<Item = u64> {
    (line.offset..line.offset + line.bytes).step_by(SECTOR as usize)
}

impl<'a> Ledger<'a> {
    fn new(promised: &'a Promised, seen: &'a Seen, at_ns: u64) -> Self {
        let mut ledger = Self {
            seen,
            at_ns,
            newest: HashMap::new(),
            touched: HashMap::new(),
            removed: HashMap::new(),
            marks: HashMap::new(),
            seed: promised.seed,
        };
        for line in promised.lines.iter().filter(|line| line.begun_ns <= at_ns) {
            let object = line.object.as_str();
            if line.kind == OperationKind::Remove {
                ledger.removed.insert(object, ());
                continue;
            }
            // To name the file that misplaced content belongs to.
            let mark = PromisedContent::mark(promised.seed, object);
            ledger.marks.insert(mark, object);
            let done = done(line, at_ns);
            for offset in sectors(line) {
                let place = (object, offset);
                // Lines are in the order in which operations were begun.
                if done {
                    ledger.newest.insert(place, line.number);
                }
                if line.kind != OperationKind::AtRest {
                    let touched = ledger.touched.entry(place).or_default();
                    touched.in_flight |= !done && line.kind == OperationKind::Overwrite;
                }
            }
        }
        ledger
    }

    /// Returns the content that lies at a place.
    fn at(&self, object: &str, offset: u64) -> SectorFound {
        match self.seen.of(object) {
            SeenObject::Absent => SectorFound::Zeros,
            SeenObject::Unreadable(_) => SectorFound::Damaged,
            SeenObject::Sectors(all) => {
                let found = all.get((offset / SECTOR) as usize);
                *found.unwrap_or(&SectorFound::Zeros)
            }
        }
    }

    fn state(&self, line: &LedgerLine, offset: u64) -> SectorState {
        // A sector proves by its mark that it is of this file, and by its offset that it is in place.
        let own = PromisedContent::mark(self.seed, &line.object);
        match self.at(&line.object, offset) {
            SectorFound::Zeros => SectorState::Missing,
            // A sector may be torn while it is written over: no promise covers it just then.
            SectorFound::Damaged if self.is_in_flight(line, offset) => SectorState::Kept,
            SectorFound::Damaged => SectorState::Damaged,
            SectorFound::Content {
                mark,
                offset: at,
                generation,
            } if (mark, at) == (own, offset) => match generation >= line.generation {
                true => SectorState::Kept,
                false => SectorState::Older(generation),
            },
            SectorFound::Content { mark, offset, .. } => SectorState::Elsewhere { mark, offset },
        }
    }

    fn is_in_flight(&self, line: &LedgerLine, offset: u64) -> bool {
        let touched = self.touched.get(&(line.object.as_str(), offset));
        touched.is_some_and(|touched| touched.in_flight)
            && matches!(self.seen.of(&line.object), SeenObject::Sectors(_))
    }

    /// Decides what became of an operation.
    fn fate(&self, line: &LedgerLine) -> Fate {
        if self.removed.contains_key(line.object.as_str())
            && *self.seen.of(&line.object) == SeenObject::Absent
        {
            return Fate::Superseded;
        }
        let charged = |offset: u64, state: SectorState| {
            let newest = self.newest.get(&(line.object.as_str(), offset));
            // A later acknowledged operation answers for what is missing here.
            let superseded = newest.is_some_and(|newest| *newest > line.number);
            !superseded || matches!(state, SectorState::Older(_))
        };
        let states: Vec<(u64, SectorState)> = sectors(line)
            .map(|offset| (offset, self.state(line, offset)))
            .filter(|(offset, state)| charged(*offset, *state))
            .collect();
        // All of it was written over by later operations, which answer for it.
        if states.is_empty() {
            return Fate::Superseded;
        }
        let bad: Vec<(u64, SectorState)> = states
            .iter()
            .copied()
            .filter(|(_, state)| *state != SectorState::Kept)
            .collect();
        let Some((offset, first)) = bad.first().copied() else {
            return Fate::Kept;
        };
        // The first bad sector is named; how many there are is said beside it.
        let loss = self.loss(line, &bad, bad.len() < states.len());
        Fate::Gone(loss, self.words(line, (offset, first), bad.len()))
    }

    /// Names the way an operation with bad sectors was lost; `partly`: others of its sectors are
    /// there.
    fn loss(&self, line: &LedgerLine, bad: &[(u64, SectorState)], partly: bool) -> Loss {
        // Also a neighbour of what was written, in the same file: a drive may damage it.
        let untouched = |offset: &u64| !self.touched.contains_key(&(line.object.as_str(), *offset));
        if line.kind == OperationKind::AtRest && bad.iter().any(|(offset, _)| untouched(offset)) {
            return Loss::Collateral;
        }
        for (offset, state) in bad {
            if let SectorState::Elsewhere { mark, offset: from } = state {
                return match self.came_from_here(line, *offset, (*mark, *from)) {
                    true => Loss::Swapped,
                    false => Loss::Misplaced,
                };
            }
        }
        let all = |wanted: fn(&SectorState) -> bool| bad.iter().all(|(_, state)| wanted(state));
        match partly {
            true => Loss::Torn,
            false if all(|state| *state == SectorState::Missing) => Loss::Lost,
            false if all(|state| matches!(state, SectorState::Older(_))) => Loss::Stale,
            false => Loss::Torn,
        }
    }

    /// Returns true if the place whose content lies here has the content of here.
    fn came_from_here(&self, line: &LedgerLine, offset: u64, (mark, from): (u64, u64)) -> bool {
        let own = PromisedContent::mark(self.seed, &line.object);
        let other = self.marks.get(&mark);
        other.is_some_and(|other| {
            matches!(
                self.at(other, from),
                SectorFound::Content { mark, offset: at, .. } if (mark, at) == (own, offset)
            )
        })
    }

    /// Describes for people what was found.
    fn words(&self, line: &LedgerLine, (offset, state): (u64, SectorState), bad: usize) -> String {
        match self.seen.of(&line.object) {
            SeenObject::Absent => return "it is not there".to_owned(),
            SeenObject::Unreadable(why) => return why.clone(),
            SeenObject::Sectors(all) if (offset / SECTOR) as usize >= all.len() => {
                // How long a file is says more than where it was looked into.
                let end = unit::bytes(all.len() as u64 * SECTOR);
                return format!("it ends after {end}, before byte {offset}");
            }
            SeenObject::Sectors(_) => {}
        }
        let what = match state {
            SectorState::Kept => "what was written".to_owned(),
            SectorState::Missing => "zeros".to_owned(),
            SectorState::Damaged => "damaged content".to_owned(),
            SectorState::Older(found) => {
                format!("generation {found} where {} was promised", line.generation)
            }
            SectorState::Elsewhere { mark, offset } => match self.marks.get(&mark) {
                Some(object) => format!("content of {object} at byte {offset}"),
                None => "content of another trial".to_owned(),
            },
        };
        let whole = line.bytes.div_ceil(SECTOR);
        format!("{what} at byte {offset} ({bad} of {whole} sectors)")
    }

    /// Returns true if only the name, or only which of two whole files it is, was not promised.
    fn excused(&self, line: &LedgerLine) -> bool {
        match (line.kind, line.promise) {
            (_, Promise::None) => true,
            (OperationKind::Create, Promise::Fsync) => {
                *self.seen.of(&line.object) == SeenObject::Absent
            }
            (_, Promise::Rename) => self.is_whole(line),
            _ => false,
        }
    }

    /// Returns true if an object is one generation from beginning to end.
    fn is_whole(&self, line: &LedgerLine) -> bool {
        let own = PromisedContent::mark(self.seed, &line.object);
        let generation = |offset: u64| match self.at(&line.object, offset) {
            SectorFound::Content {
                mark,
                offset: at,
                generation,
            } if (mark, at) == (own, offset) => Some(generation),
            _ => None,
        };
        // Such files are written from their beginning, in one operation.
        let first = generation(line.offset);
        first.is_some() && sectors(line).all(|offset| generation(offset) == first)
    }

    /// Adds one acknowledged operation to what is reported.
    fn count(
        &self,
        line: &LedgerLine,
        fate: Fate,
        survived_ns: Option<u64>,
        checked: &mut CheckedPromises,
    ) {
        // Callers only count what was acknowledged.
        let acknowledged_ns = line.acknowledged_ns.unwrap_or(0);
        let ago_ns = self.at_ns.saturating_sub(acknowledged_ns);
        let at_rest = line.kind == OperationKind::AtRest;
        checked.promised += u64::from(!at_rest && line.promise != Promise::None);
        let Fate::Gone(loss, found) = fate else {
            return;
        };
        if self.excused(line) {
            checked.unpromised_lost += 1;
            checked.unpromised_ns = checked.unpromised_ns.max(ago_ns);
            return;
        }
        // What was laid out first is older than everything: that says nothing about order.
        let reordered = !at_rest && survived_ns.is_some_and(|ns| ns >= acknowledged_ns);
        checked.counts.add(loss, reordered);
        if !at_rest {
            checked.rpo_operations += 1;
            checked.rpo_ns = checked.rpo_ns.max(ago_ns);
        }
        // All are counted above; details of thousands of them help no reader.
        if checked.losses.len() < LOSSES_KEPT {
            checked.losses.push(LossLine {
                ledger: line.clone(),
                loss,
                reordered,
                found,
            });
        }
    }
}
