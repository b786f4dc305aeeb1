//! What a drive holds after a cut, made of what it was told to write.

use stackrace_drives::power::{Aftermath, Durability, Logged, PowerCut, WriteLog};
use stackrace_drives::{SECTOR, scattered};
use stackrace_ublk::{DeviceLog, Medium};
use std::sync::Arc;

use super::capture::{Capture, DriveCapture};
use stackrace_layers::stack::CutOf;
use stackrace_machine::host::LabDisk;

/// Returns what matters of a disk when its power is cut; `None` if it is not a modelled one.
fn power(disk: &LabDisk) -> Option<PowerCut> {
    let model = disk.model.as_ref()?;
    let card = model.card.card();
    let durability = match model.cache {
        Some(kind) => kind.durability(),
        None if card.identity().volatile_cache => Durability::Honest,
        None => Durability::Protected,
    };
    Some(PowerCut {
        durability,
        cache_sectors: card.cache_sectors(),
        physical_sectors: u32::try_from(disk.physical_sector / SECTOR).unwrap_or(1),
    })
}

/// Effect of a cut on one drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DriveCut {
    /// Properties of the drive that matter when its power is cut.
    pub power: PowerCut,
    /// Time for which it goes on with what happened before the cut, ns; `None` if its power is cut.
    pub goes_on_for: Option<u64>,
    /// Decides what it keeps, with the seed of the cut.
    number: u64,
}

/// Returns what a cut does to each drive of a capture, in their order; `None` for one that is not modelled.
pub(super) fn drive_cuts(capture: &Capture, disks: &[LabDisk], of: CutOf) -> Vec<Option<DriveCut>> {
    let drives = (0_u64..).zip(&capture.drives);
    let cut = |(number, drive): (u64, &DriveCapture)| {
        let disk = disks.iter().find(|disk| disk.serial == drive.serial)?;
        // Two machines in one kernel have drives of the same serial: the first one's is started first.
        let before = &capture.drives[..number as usize];
        let of_peer = before.iter().any(|other| other.serial == drive.serial);
        Some(DriveCut {
            power: power(disk)?,
            goes_on_for: of.goes_on_for(of_peer),
            number,
        })
    };
    drives.map(cut).collect()
}

impl DriveCut {
    /// Returns which of these writes the drive has after a cut at `at`, ns.
    pub(super) fn aftermath(&self, entries: &[Logged], at: u64, seed: u64) -> Aftermath {
        // One instant for all drives; what each keeps of its own cache is its own chance.
        let seed = seed ^ scattered(self.number);
        let Some(goes_on_for) = self.goes_on_for else {
            return WriteLog::of(entries.to_vec()).cut(&self.power, at, seed);
        };
        // A drive with power does what it was asked to, sooner or later.
        let done = entries.iter().map(|entry| Logged {
            completed: Some(entry.submitted),
            ..*entry
        });
        let power = PowerCut {
            durability: Durability::Protected,
            ..self.power
        };
        WriteLog::of(done.collect()).cut(&power, at + goes_on_for, seed)
    }
}

/// The content of a drive that was told to write this, after a cut at an instant.
pub(super) fn medium(log: &DeviceLog, cut: &DriveCut, at: u64, seed: u64) -> Medium {
    let after = cut.aftermath(&log.entries, at, seed);
    let mut pieces = Vec::new();
    for kept in &after.kept {
        let (content, begin) = (
            &log.contents[kept.write],
            log.entries[kept.write].request.first,
        );
        let (from, to) = (kept.first * SECTOR, kept.end * SECTOR);
        let bytes: Arc<[u8]> = match content.is_empty() {
            true => content.clone(),
            false => {
                let place = (kept.first - begin) * SECTOR..(kept.end - begin) * SECTOR;
                match place.start == 0 && place.end == content.len() as u64 {
                    // Most are kept whole: nothing is copied then.
                    true => content.clone(),
                    false => content[place.start as usize..place.end as usize].into(),
                }
            }
        };
        pieces.push((from, to - from, bytes));
    }
    Medium {
        pieces,
        unreadable: after.damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_drives::power::Logged;
    use stackrace_drives::{Operation, Request};

    #[test]
    fn an_image_has_what_was_flushed_and_parts_of_the_rest() {
        let write = |first, sectors, at| Logged {
            request: Request {
                id: 0,
                operation: match sectors {
                    0 => Operation::Flush,
                    _ => Operation::Write { durable: false },
                },
                first,
                sectors,
            },
            submitted: at,
            completed: Some(at + 1),
        };
        let log = DeviceLog {
            entries: vec![write(0, 8, 1), write(0, 0, 3), write(8, 8, 5)],
            contents: vec![vec![1; 4096].into(), [].into(), vec![2; 4096].into()],
        };
        let power = PowerCut {
            durability: Durability::Honest,
            cache_sectors: 1 << 20,
            physical_sectors: 1,
        };
        let cut = DriveCut {
            power,
            goes_on_for: None,
            number: 0,
        };
        let mut torn = 0;
        for seed in 0..200 {
            let medium = medium(&log, &cut, 10, seed);
            assert_eq!(medium.pieces[0].0, 0);
            assert_eq!(medium.pieces[0].2[..], [1; 4096]);
            for (_, length, bytes) in &medium.pieces[1..] {
                assert_eq!(*length, bytes.len() as u64);
                assert!(bytes.iter().all(|byte| *byte == 2));
                torn += u64::from(*length < 4096);
            }
        }
        assert!(torn > 0, "no write was torn in 200 cuts");
    }

    #[test]
    fn a_peer_that_keeps_its_power_has_what_had_left_this_machine_before_the_cut() {
        let write = |sector, at| Logged {
            request: Request {
                id: 0,
                operation: Operation::Write { durable: false },
                first: sector,
                sectors: 1,
            },
            submitted: at,
            completed: None,
        };
        let drive = DriveCapture {
            serial: "disk-1".to_owned(),
            log: DeviceLog {
                entries: vec![write(0, 90), write(1, 105), write(2, 111)],
                contents: vec![vec![7; 512].into(); 3],
            },
        };
        let capture = Capture {
            mark: String::new(),
            drives: vec![drive.clone(), drive],
        };
        let card = stackrace_drives::AskedCard::meant("seagate-st3000dm001").unwrap();
        let disk = LabDisk {
            serial: "disk-1".to_owned(),
            bytes: 1 << 30,
            logical_sector: SECTOR,
            physical_sector: SECTOR,
            rate: None,
            requests: None,
            latency_ns: None,
            model: Some(stackrace_machine::host::DiskModel {
                cache: Some(stackrace_machine::host::DriveCache::Volatile),
                ..stackrace_machine::host::DiskModel::of(card.unwrap())
            }),
        };
        let held = |of: CutOf, seed: u64| {
            let cuts = drive_cuts(&capture, std::slice::from_ref(&disk), of);
            [0, 1].map(|drive| {
                let cut = cuts[drive].as_ref().unwrap();
                let medium = medium(&capture.drives[drive].log, cut, 100, seed);
                let mut sectors = medium.pieces.iter().map(|piece| piece.0 / SECTOR);
                sectors.by_ref().collect::<Vec<u64>>()
            })
        };
        let this = CutOf::This { on_the_way_ns: 10 };
        let mut lost = [0; 2];
        for seed in 0..100 {
            let [here, there] = held(this, seed);
            assert_eq!(
                there,
                [0, 1],
                "sent before the cut, and still on the way at 100"
            );
            lost[0] += u32::from(here.is_empty());
            assert_eq!(held(CutOf::Line, seed), [[0], [0]], "only the line is cut");
            lost[1] += u32::from(held(CutOf::Machines, seed)[1].is_empty());
        }
        assert!(
            lost.iter().all(|lost| *lost > 0),
            "{lost:?}: where the power goes, caches do"
        );
    }
}
