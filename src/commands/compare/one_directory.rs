//! Two names of one directory.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Returns true if two paths lead to one directory, also where it is mounted at a second place.
pub(super) fn is_one(a: &Path, b: &Path) -> bool {
    let number = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    a == b || number(a).is_some_and(|one| number(b) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

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
