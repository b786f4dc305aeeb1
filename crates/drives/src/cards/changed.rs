//! Cards with some values changed: parameters of a drive as factors of a study, or a drive of one's own.

use super::{Card, from_table};
use crate::card::CardError;

/// Bytes of the drive that is made to try the values of a card: an SSD is as large as it is asked to be.
const TRIED_BYTES: u64 = 4 << 30;
/// Origin and source of a changed value.
const FROM: &str = "assumed";
const SOURCE: &str = "the study says so";

impl Card {
    /// This card with other values. Each change is an assignment in TOML, in the units of the card:
    /// `rpm = 5400`, `seek.average = 12.0`. What the maker claims of the drive is left out, as it holds
    /// no more.
    ///
    /// # Errors
    /// A change is no assignment, the card has no such value, or no drive can be made with it.
    pub fn with(&self, changes: &[String]) -> Result<Self, CardError> {
        if changes.is_empty() {
            return Ok(self.clone());
        }
        let mut table = self.table();
        table.remove("claims");
        for change in changes {
            for (name, value) in assigned(change)? {
                let entry = table.get_mut(&name).and_then(toml::Value::as_table_mut);
                // Every value of a card has its source beside it.
                let Some(entry) = entry.filter(|entry| entry.contains_key("source")) else {
                    let known = self.values().into_iter().map(|value| value.name);
                    return Err(CardError::Unknown {
                        name,
                        known: known.collect(),
                    });
                };
                replace(&mut entry["value"], value, &name)?;
                entry.insert("from".to_owned(), FROM.into());
                entry.insert("source".to_owned(), SOURCE.into());
            }
        }
        let changed = from_table(table)?;
        // Impossible values are found by the drive that they would make.
        changed.drive(0, TRIED_BYTES)?;
        Ok(changed)
    }
}

/// Parses a change into the assigned values: `seek.average = 12` is a table in a table.
fn assigned(change: &str) -> Result<toml::Table, CardError> {
    let problem = |problem: &str| CardError::Change {
        change: change.to_owned(),
        problem: problem.to_owned(),
    };
    let asked: toml::Table = change
        .parse()
        .map_err(|error: toml::de::Error| problem(error.message()))?;
    match asked.is_empty() {
        true => Err(problem("NAME = VALUE is expected")),
        false => Ok(asked),
    }
}

/// Puts a value in the place of another one; of a table, only the keys that are given.
fn replace(old: &mut toml::Value, new: toml::Value, name: &str) -> Result<(), CardError> {
    match (old, new) {
        (toml::Value::Table(old), toml::Value::Table(new)) => {
            for (key, value) in new {
                let Some(old) = old.get_mut(&key) else {
                    return Err(CardError::Unknown {
                        name: format!("{name}.{key}"),
                        known: old.keys().map(|key| format!("{name}.{key}")).collect(),
                    });
                };
                replace(old, value, &format!("{name}.{key}"))?;
            }
        }
        (old, new) => *old = new,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Request, SECTOR};

    fn changed(model: &str, changes: &[&str]) -> Result<Card, CardError> {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        Card::shipped(model).unwrap().with(&changes)
    }

    /// Nanoseconds of 200 reads, far from each other, one after the other.
    fn reads(card: &Card) -> u64 {
        let mut drive = card.drive(0, TRIED_BYTES).unwrap();
        let (sectors, mut now) = (drive.sectors(), 0);
        for id in 0..200 {
            let request = Request {
                id,
                operation: Operation::Read,
                first: id * 7_919_993 % (sectors / 8) * 8,
                sectors: 8,
            };
            drive.submit(request, now);
            while drive.complete(now).is_none() {
                now = drive.next_event().unwrap();
            }
        }
        now
    }

    #[test]
    fn a_slower_spindle_takes_longer() {
        let fast = changed("seagate-st3000dm001", &[]).unwrap();
        let slow = changed("seagate-st3000dm001", &["rpm = 5400"]).unwrap();
        let far = changed("seagate-st3000dm001", &["seek.average = 16"]).unwrap();
        assert!(reads(&slow) > reads(&fast), "rotation");
        assert!(reads(&far) > reads(&fast), "one value of a table");
        let [slow_bytes, fast_bytes] =
            [&slow, &fast].map(|card| card.capacity().unwrap().unwrap() as f64);
        // Tracks of whole sectors: not to the byte.
        assert!((slow_bytes / fast_bytes - 1.0).abs() < 1e-3);
        let claimed = Card::shipped("sata-ssd").unwrap();
        let other = changed("sata-ssd", &["bus = 300"]).unwrap();
        assert!(!claimed.claims().is_empty() && other.claims().is_empty());
    }

    #[test]
    fn a_controller_over_one_disk_has_the_capacity_of_one() {
        let whole = changed("hp-p400", &[]).unwrap().capacity().unwrap();
        let one = changed("hp-p400", &["count = 1", "layout = \"stripe\""]).unwrap();
        let one = one.capacity().unwrap().unwrap();
        let disk = Card::shipped("seagate-st973451ss").unwrap();
        let disk = disk.capacity().unwrap().unwrap();
        assert!(disk - one < 64 * 1024 * SECTOR, "{one} of {disk}");
        assert!(whole.unwrap() > 6 * disk);
    }

    #[test]
    fn what_no_card_can_have_is_refused_with_its_name() {
        for (change, says) in [
            ("rpm", "rpm: "),
            ("", "NAME = VALUE is expected"),
            ("rpm = \"fast\"", "rpm"),
            ("rpm = 0", "rpm: 60 to 150000"),
            ("write-cache = -1", "write-cache: 0 or more"),
            ("turns = 5400", "there is no value \"turns\""),
            ("model = \"x\"", "there is no value \"model\""),
            ("seek.middle = 3", "middle"),
        ] {
            let error = changed("seagate-st3000dm001", &[change]).unwrap_err();
            assert!(error.to_string().contains(says), "{change}: {error}");
        }
        assert!(Card::shipped("none").is_none());
    }
}
