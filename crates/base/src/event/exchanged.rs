//! Storage that was exchanged, or mounted otherwise, while a configuration was measured on it.

use super::identity::StorageIdentity;
use serde::{Deserialize, Serialize};

/// A trial whose storage was not the same all the time: what was there, and what is there now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangedStorage {
    /// The machine that saw it, as the command line calls it; `None` for the one that the run was begun on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Storage the configuration lay on when it was first set up, or when the trial began.
    pub before: StorageIdentity,
    /// Storage there now; `None` if the directory is not there any more.
    #[serde(default)]
    pub now: Option<StorageIdentity>,
    /// True if a file is in the directory's place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file: bool,
    /// What the system said, if the directory could not be looked at; nothing is known then of what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl ExchangedStorage {
    /// Advice about it; `resume` then measures again what failed because of it.
    pub fn advice(&self) -> &'static str {
        match (self.is_changed(), &self.unreadable) {
            (true, _) => "mount and set it as it was",
            // The storage is there and answers nothing: mounting it as it was would not help.
            (false, Some(_)) => {
                "bring it back to work (a file system that gave up: unmount it, check it, mount it)"
            }
            (false, None) => "bring back what was there",
        }
    }

    /// Returns true if the same storage is there, mounted or set otherwise.
    fn is_changed(&self) -> bool {
        let now = self.now.as_ref();
        now.is_some_and(|now| self.before.is_same_changed(now))
    }

    /// The same as a machine says it; one that is named already stays so.
    pub fn seen_by(self, machine: Option<&str>) -> Self {
        let machine = self.machine.or(machine.map(str::to_owned));
        Self { machine, ..self }
    }

    /// Storage that was there before and that is there now.
    pub fn told(&self) -> String {
        let told = match &self.now {
            Some(now) => self.before.difference(now),
            None => None,
        };
        let told = told.unwrap_or_else(|| {
            let now = match (self.file, &self.unreadable) {
                (true, _) => "is a file now".to_owned(),
                (false, Some(said)) => format!("cannot be looked at now: {said}"),
                (false, None) => "is not there any more".to_owned(),
            };
            format!("{} was on {} and {now}", self.before.directory, self.before)
        });
        match (
            &self.machine,
            self.is_changed() || self.unreadable.is_some(),
        ) {
            // Nothing was exchanged, and these words say all.
            (None, true) => told,
            (Some(machine), true) => format!("on {machine} {told}"),
            (None, false) => format!("the storage was exchanged: {told}"),
            (Some(machine), false) => format!("the storage was exchanged on {machine}: {told}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::sample::ext4;

    #[test]
    fn storage_that_is_only_mounted_otherwise_is_not_said_to_be_exchanged() {
        let huge = StorageIdentity {
            options: Some(vec!["huge=always".into()]),
            ..ext4()
        };
        let sealed = StorageIdentity {
            read_only: true,
            ..ext4()
        };
        for (now, how) in [(huge, "with huge=always"), (sealed, "read-only")] {
            let found = |machine: Option<&str>| ExchangedStorage {
                machine: machine.map(str::to_owned),
                before: ext4(),
                now: Some(now.clone()),
                file: false,
                unreadable: None,
            };
            assert_eq!(found(None).advice(), "mount and set it as it was");
            let here = found(None).told();
            assert!(here.starts_with("/mnt/a/d was mounted "), "{here}");
            assert!(here.ends_with(&format!("is now mounted {how}")), "{here}");
            assert_eq!(found(Some("node2")).told(), format!("on node2 {here}"));
        }
        // Another storage is one, however it is mounted.
        let other = ExchangedStorage {
            machine: None,
            before: ext4(),
            now: Some(StorageIdentity {
                read_only: true,
                file_system: "xfs".into(),
                ..ext4()
            }),
            file: false,
            unreadable: None,
        };
        assert!(other.told().starts_with("the storage was exchanged: "));
        assert_eq!(other.advice(), "bring back what was there");
    }

    #[test]
    fn a_setting_that_changes_what_is_measured_is_said_with_both_values() {
        let set = |name: &str, value: &str| StorageIdentity {
            settings: [(name.to_owned(), value.to_owned())].into(),
            ..ext4()
        };
        let found = |before, now| ExchangedStorage {
            machine: None,
            before,
            now: Some(now),
            file: false,
            unreadable: None,
        };
        let (ahead, none) = (
            set("read_ahead_kb of loop0", "128"),
            set("read_ahead_kb of loop0", "0"),
        );
        assert!(!ahead.is_same(&none));
        assert_eq!(
            found(ahead.clone(), none.clone()).told(),
            "below /mnt/a/d read_ahead_kb of loop0 was 128 and is now 0"
        );
        assert_eq!(
            found(ahead.clone(), none.clone()).advice(),
            "mount and set it as it was"
        );
        // Known once alone, or of another device after another start: nothing is known to have changed.
        assert!(ahead.is_same(&ext4()) && ahead.is_same(&set("nr_requests of loop0", "2")));
        let later = StorageIdentity {
            boot: Some("two".into()),
            ..none
        };
        assert!(ahead.is_same(&later));
    }

    #[test]
    fn what_was_there_and_what_is_there_is_said() {
        let (before, mut now) = (ext4(), ext4());
        now.read_only = true;
        let said = |now| {
            ExchangedStorage {
                machine: None,
                before: before.clone(),
                now,
                file: false,
                unreadable: None,
            }
            .told()
        };
        let there = ExchangedStorage {
            machine: Some("node2".into()),
            before: before.clone(),
            now: None,
            file: false,
            unreadable: None,
        };
        let told = there.told();
        assert!(
            told.starts_with("the storage was exchanged on node2: /mnt/a/d was on ext4"),
            "{told}"
        );
        assert!(
            said(Some(now.clone())).contains("was mounted writable and is now mounted read-only")
        );
        now.file_system = "tmpfs".into();
        let told = said(Some(now));
        assert!(
            told.contains(
                "was on ext4 (/dev/loop0, device 7:0, mounted at /mnt/a) and is now on tmpfs"
            ),
            "{told}"
        );
        assert!(said(None).contains("is not there any more"));
        let file = ExchangedStorage {
            file: true,
            ..there
        };
        assert!(file.told().ends_with(" and is a file now"));
    }

    #[test]
    fn a_file_system_that_gave_up_is_not_said_to_be_gone_or_exchanged() {
        let gave_up = ExchangedStorage {
            machine: None,
            before: ext4(),
            now: None,
            file: false,
            unreadable: Some("Input/output error".into()),
        };
        let told = gave_up.told();
        assert!(told.starts_with("/mnt/a/d was on ext4"), "{told}");
        assert!(
            told.ends_with(" and cannot be looked at now: Input/output error"),
            "{told}"
        );
        assert!(gave_up.advice().contains("unmount it, check it"));
    }
}
