//! What a drive holds after a cut, made of what it was told to write.

use stackrace_drives::power::{Durability, PowerCut, WriteLog};
use stackrace_drives::{Card, SECTOR};
use stackrace_engine::ublk::{DeviceLog, Medium};
use std::sync::Arc;

use crate::host::LabDisk;

/// What matters of a disk when its power is cut; none: it is not a modelled one.
pub(super) fn power(disk: &LabDisk) -> Option<PowerCut> {
    let model = disk.model.as_ref()?;
    let card = Card::shipped(&model.card)?;
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

/// The content of a drive that was told to write this, when its power is cut at an instant.
pub(super) fn medium(log: &DeviceLog, power: &PowerCut, at: u64, seed: u64) -> Medium {
    let after = WriteLog::of(log.entries.clone()).cut(power, at, seed);
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
        let mut torn = 0;
        for seed in 0..200 {
            let medium = medium(&log, &power, 10, seed);
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
}
