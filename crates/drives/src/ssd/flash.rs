//! Flash behind the controller: where each unit lies, and what each die is busy with.

use super::parameters::{MAPPING_UNIT, SsdError, SsdParameters};
use crate::{Nanos, SECTOR};

/// No unit, no place.
const NONE: u32 = u32::MAX;

/// Free blocks of a die below which garbage is collected: one to move data into, one for the host.
const SPARE_BLOCKS: u32 = 2;

/// Dies with their blocks, and the mapping.
#[derive(Debug, Clone)]
pub(super) struct Flash {
    times: SsdParameters,
    dies: Vec<Die>,
    /// Place of each unit the host sees, counted over all dies; [`NONE`]: nowhere.
    place: Vec<u32>,
    /// Unit at each place; [`NONE`]: nothing valid.
    unit: Vec<u32>,
    units_per_page: u32,
    units_per_block: u32,
    blocks_per_die: u32,
    next_die: usize,
    /// Instant at which each channel becomes free.
    channels: Vec<Nanos>,
    slc_left: u64,
    host_units: u64,
    programmed_units: u64,
}

#[derive(Debug, Clone)]
struct Die {
    free_at: Nanos,
    /// Instant at which the reads so far are done.
    reads_until: Nanos,
    /// Valid units of each block.
    valid: Vec<u32>,
    free: Vec<u32>,
    /// Block being filled, and units already taken in it.
    open: u32,
    taken: u32,
}

impl Flash {
    pub(super) fn new(parameters: &SsdParameters) -> Result<Self, SsdError> {
        let dies = parameters.channels * parameters.dies_per_channel;
        let units_per_page = (parameters.page / MAPPING_UNIT) as u32;
        let units_per_block = units_per_page * parameters.pages_per_block;
        let units = (parameters.sectors * SECTOR).div_ceil(MAPPING_UNIT);
        if dies == 0 || units_per_block == 0 || units == 0 {
            return Err(SsdError::Empty);
        }
        // Rounded up on each die alike: a die never lends a block to another.
        let blocks = units.div_ceil(u64::from(units_per_block) * u64::from(dies)) as u32;
        let spare = (f64::from(blocks) * parameters.over_provisioning) as u32;
        // One more is open on each die at any time.
        if spare <= SPARE_BLOCKS {
            return Err(SsdError::NoSpare {
                needed: SPARE_BLOCKS + 1,
            });
        }
        let blocks_per_die = blocks + spare;
        let places = dies as usize * blocks_per_die as usize * units_per_block as usize;
        let die = Die {
            free_at: 0,
            reads_until: 0,
            valid: vec![0; blocks_per_die as usize],
            // Block 0 is open from the start; the others are taken from the end, in ascending
            // order.
            free: (1..blocks_per_die).rev().collect(),
            open: 0,
            taken: 0,
        };
        Ok(Self {
            times: *parameters,
            dies: vec![die; dies as usize],
            // Both directions: garbage collection goes from a place to its unit, a read from a unit
            // to its place.
            place: vec![NONE; units as usize],
            unit: vec![NONE; places],
            units_per_page,
            units_per_block,
            blocks_per_die,
            next_die: 0,
            channels: vec![0; parameters.channels as usize],
            slc_left: parameters.slc_bytes / MAPPING_UNIT,
            host_units: 0,
            programmed_units: 0,
        })
    }

    /// Units programmed at once.
    pub(super) fn page_units(&self) -> u64 {
        u64::from(self.units_per_page)
    }

    pub(super) fn write_amplification(&self) -> Option<f64> {
        (self.host_units > 0).then(|| self.programmed_units as f64 / self.host_units as f64)
    }

    fn die_of(&self, place: u32) -> usize {
        (place / (self.units_per_block * self.blocks_per_die)) as usize
    }

    fn block_of(&self, place: u32) -> usize {
        (place / self.units_per_block % self.blocks_per_die) as usize
    }

    /// Instant at which units that follow each other have been read at `now` or later; at once where they are not mapped.
    pub(super) fn read(&mut self, units: impl Iterator<Item = u32>, now: Nanos) -> Nanos {
        let mut last = now;
        // The page that was read last, and the instant at which the die had it.
        let mut sensed: Option<(u32, Nanos)> = None;
        for unit in units {
            let place = self.place.get(unit as usize).copied().unwrap_or(NONE);
            // A controller answers what was never written, or was discarded, without its flash.
            if place == NONE {
                continue;
            }
            let page = place / self.units_per_page;
            // A page is read as a whole.
            let at = match sensed.filter(|(read, _)| *read == page) {
                Some((_, at)) => at,
                None => self.sense(self.die_of(place), now),
            };
            sensed = Some((page, at));
            last = last.max(self.move_units(self.die_of(place), 1, at));
        }
        last
    }

    /// Reads a page of a die: behind other reads, and before a program or an erase, which is suspended for it and goes on
    /// later by as much. Returns when the die has it.
    fn sense(&mut self, at: usize, now: Nanos) -> Nanos {
        let times = self.times;
        let die = &mut self.dies[at];
        let begin = match die.reads_until > now {
            // What was suspended for the reads before still is.
            true => die.reads_until,
            false => die.free_at.min(now + times.suspend).max(now),
        };
        die.reads_until = begin + times.read;
        die.free_at = die.free_at.max(begin) + times.read;
        die.reads_until
    }

    /// Moves units over the channel of a die; returns when they have passed.
    fn move_units(&mut self, die: usize, units: u32, from: Nanos) -> Nanos {
        let channels = self.channels.len();
        // Neighbouring dies are on different channels, so that a stripe of pages uses all of them.
        let channel = &mut self.channels[die % channels];
        *channel = from.max(*channel) + u64::from(units) * self.times.channel_unit;
        *channel
    }

    /// Programs units of the host as one page of the next die; returns when that is done.
    pub(super) fn program(&mut self, units: impl Iterator<Item = u32>, now: Nanos) -> Nanos {
        let at = self.next_die;
        self.next_die = (at + 1) % self.dies.len();
        // Before the page and not after it: the die must have a block to put it into.
        self.collect_garbage(at, now);
        let mut count = 0;
        for unit in units {
            self.put(at, unit);
            count += 1;
        }
        self.host_units += u64::from(count);
        self.fill_page(at, count);
        // A page lies in one kind of cell as a whole.
        let slc = self.slc_left >= u64::from(count);
        self.slc_left = self.slc_left.saturating_sub(u64::from(count));
        let time = if slc {
            self.times.program_slc
        } else {
            self.times.program
        };
        // Data pass the channel first, so that a die programs while the next page is on its way.
        let moved = self.move_units(at, count, now);
        let die = &mut self.dies[at];
        die.free_at = die.free_at.max(moved) + time;
        die.free_at
    }

    /// Puts data into every unit, in order and in no time: a drive that was filled long ago.
    pub(super) fn fill(&mut self) {
        let units = self.place.len() as u32;
        let mut unit = 0;
        while unit < units {
            let (at, end) = (self.next_die, units.min(unit + self.units_per_page));
            self.next_die = (at + 1) % self.dies.len();
            for unit in unit..end {
                self.put(at, unit);
            }
            // A page is programmed once: what the last one lacks stays empty.
            let rest = self.units_per_page - (end - unit);
            self.dies[at].taken += rest;
            unit = end;
        }
    }

    /// Takes the rest of a page that was programmed only partly filled: flash is programmed by
    /// whole pages.
    fn fill_page(&mut self, die: usize, count: u32) {
        let rest = (self.units_per_page - count % self.units_per_page) % self.units_per_page;
        self.dies[die].taken += rest;
        self.programmed_units += u64::from(count + rest);
    }

    /// Maps a unit to the next place of a die's open block.
    fn put(&mut self, at: usize, unit: u32) {
        if self.dies[at].taken >= self.units_per_block {
            self.open_block(at);
        }
        // The old copy becomes garbage at this moment, and counts as such when a block is chosen.
        self.unmap(unit);
        let die = &mut self.dies[at];
        let block = at as u32 * self.blocks_per_die + die.open;
        let place = block * self.units_per_block + die.taken;
        die.taken += 1;
        die.valid[die.open as usize] += 1;
        self.unit[place as usize] = unit;
        if let Some(known) = self.place.get_mut(unit as usize) {
            *known = place;
        }
    }

    fn open_block(&mut self, at: usize) {
        let die = &mut self.dies[at];
        // Garbage collection keeps SPARE_BLOCKS free, so there always is one.
        if let Some(block) = die.free.pop() {
            (die.open, die.taken) = (block, 0);
        }
    }

    /// Forgets where a unit lies: what is there is garbage.
    pub(super) fn unmap(&mut self, unit: u32) {
        let Some(place) = self.place.get_mut(unit as usize) else {
            return;
        };
        let old = std::mem::replace(place, NONE);
        if old != NONE {
            let (die, block) = (self.die_of(old), self.block_of(old));
            self.dies[die].valid[block] -= 1;
            self.unit[old as usize] = NONE;
        }
    }

    /// Frees blocks of a die until enough are free: each time the one with the least valid data,
    /// whose units are moved first (greedy garbage collection).
    fn collect_garbage(&mut self, at: usize, now: Nanos) {
        let mut moved = 0;
        while (self.dies[at].free.len() as u32) < SPARE_BLOCKS {
            let Some(block) = self.emptiest(at) else {
                break;
            };
            moved += self.clear(at, block, now);
        }
        // Once for all that was moved: after each block it could take as much as that block freed, for ever.
        self.fill_page(at, moved);
    }

    /// The block of a die that holds the least valid data; `None` if clearing it frees nothing.
    fn emptiest(&self, at: usize) -> Option<u32> {
        let die = &self.dies[at];
        let candidates = die.valid.iter().enumerate();
        let used = candidates.filter(|(block, _)| {
            let block = *block as u32;
            // The open block would be cleared into itself.
            block != die.open && !die.free.contains(&block)
        });
        let (block, valid) = used.min_by_key(|(_, valid)| **valid)?;
        // Of a full block each unit moved takes the place of one freed.
        (*valid < self.units_per_block).then_some(block as u32)
    }

    /// Moves the units of a block, and erases it; how many they were.
    fn clear(&mut self, at: usize, block: u32, now: Nanos) -> u32 {
        let first = (at as u32 * self.blocks_per_die + block) * self.units_per_block;
        let mut moved: u32 = 0;
        for place in first..first + self.units_per_block {
            let unit = self.unit[place as usize];
            if unit != NONE {
                self.put(at, unit);
                moved += 1;
            }
        }
        let pages = u64::from(moved.div_ceil(self.units_per_page));
        let die = &mut self.dies[at];
        // Copied inside of the die: no channel is used.
        let copy = pages * (self.times.read + self.times.program);
        die.free_at = die.free_at.max(now) + copy + self.times.erase;
        // At the far end, so that blocks are reused in turn and wear alike.
        die.free.insert(0, block);
        moved
    }
}

#[cfg(test)]
impl Flash {
    /// Returns true if mapping, its reverse and the counts of valid units agree.
    pub(super) fn is_consistent(&self) -> bool {
        let there = self
            .place
            .iter()
            .enumerate()
            .all(|(unit, place)| *place == NONE || self.unit[*place as usize] == unit as u32);
        let mapped = self.place.iter().filter(|place| **place != NONE).count();
        let held = self.unit.iter().filter(|unit| **unit != NONE).count();
        let valid: u32 = self.dies.iter().flat_map(|die| &die.valid).sum();
        there && mapped == held && valid as usize == mapped
    }
}
