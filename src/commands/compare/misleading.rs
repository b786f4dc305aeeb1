//! Why an answer on these directories would mislead.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::{CompareRequest, ComparedPath};
use stackrace_study::purpose::ALL;

/// Returns true if two paths lead to one directory, also where it is mounted at a second place.
pub(super) fn is_one(a: &Path, b: &Path) -> bool {
    let number = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    a == b || number(a).is_some_and(|one| number(b) == Some(one))
}

/// Lists the reasons why comparing these would mislead, one sentence each.
pub(super) fn compared(sides: &[ComparedPath]) -> Vec<String> {
    let mut reasons = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        for other in &sides[..index] {
            if side.mount.st_dev == other.mount.st_dev {
                reasons.push(format!("{} and {} are on the same file system ({}): a difference between them would say nothing about storage", other.text, side.text, side.mount.file_system));
            }
        }
    }
    let (in_memory, on_disk): (Vec<&ComparedPath>, Vec<&ComparedPath>) =
        sides.iter().partition(|side| side.lies_on.is_in_memory());
    if let (Some(ram), Some(disk)) = (in_memory.first(), on_disk.first()) {
        let below = ram.lies_on.loop_file.as_ref();
        let below = below.and_then(|file| file.file_system.as_ref());
        let below = below.map_or(String::new(), |memory| format!(" on a file in {memory}"));
        reasons.push(format!("{} is {}{below} (memory, lost at power-off) and {} is {} on storage: memory wins, and nothing is learned", ram.text, ram.mount.file_system, disk.text, disk.mount.file_system));
    }
    reasons
}

/// Why an answer on one directory would mislead: memory keeps nothing, whatever it answers and how fast.
pub(super) fn in_memory(sides: &[ComparedPath], request: &CompareRequest) -> Option<String> {
    let asked = !request.required.is_empty() || request.purpose.name != ALL[0].name;
    match sides {
        [only] if asked && only.lies_on.is_in_memory() => Some(format!(
            "{} lies in memory ({}), which keeps nothing when the machine is switched off: its figures say nothing about storage",
            only.text, only.lies_on.file_system
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{request_for, sides_of};
    use super::*;
    use stackrace_study::purpose::RequiredBound;

    #[test]
    fn memory_is_refused_where_something_is_asked_of_storage() {
        let directories = ["/srv/a".into(), "/srv/b".into()];
        let on = |file_system: &str, count: usize| {
            let mut sides = sides_of(&directories[..count]);
            for side in &mut sides {
                file_system.clone_into(&mut side.lies_on.file_system);
            }
            sides
        };
        let plain = request_for(&directories[..1]);
        let purpose = CompareRequest {
            purpose: stackrace_study::purpose::find("etcd").unwrap(),
            ..request_for(&directories[..1])
        };
        let required = CompareRequest {
            required: vec![RequiredBound {
                metric: "fsync latency p99".to_owned(),
                bound: "<= 10 ms".to_owned(),
                source: None,
            }],
            ..request_for(&directories[..1])
        };
        assert_eq!(in_memory(&on("tmpfs", 1), &plain), None);
        assert_eq!(in_memory(&on("ext4", 1), &required), None);
        assert_eq!(in_memory(&on("tmpfs", 2), &required), None);
        for asked in [&purpose, &required] {
            let said = in_memory(&on("tmpfs", 1), asked).unwrap();
            assert!(said.starts_with("/srv/a lies in memory (tmpfs)"), "{said}");
        }
    }

    #[test]
    fn two_names_of_one_directory_are_one() {
        let directory = tempfile::tempdir().unwrap();
        let (path, inner) = (directory.path(), directory.path().join("b"));
        std::fs::create_dir(&inner).unwrap();
        assert!(is_one(path, &inner.join("..")));
        assert!(!is_one(path, &inner));
        assert!(!is_one(path, &inner.join("not there")));
    }
}
