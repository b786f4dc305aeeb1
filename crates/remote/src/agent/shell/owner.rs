//! Whose a directory is, as `ls` shows it.

/// Returns true if `ls -ldn` shows a directory of root's in which no other user renames what is not theirs.
pub(super) fn only_root_renames(shown: &str) -> bool {
    let mut words = shown.split_whitespace();
    let (Some(mode), Some(_), Some("0")) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let mode = mode.as_bytes();
    let is = |at: usize, c: u8| mode.get(at) == Some(&c);
    // drwxrwxrwt: with the sticky bit only the owner renames.
    let sticky = is(9, b't') || is(9, b'T');
    is(0, b'd') && (sticky || !(is(5, b'w') || is(8, b'w')))
}

#[cfg(test)]
mod tests {
    use super::only_root_renames;

    #[test]
    fn a_directory_is_roots_if_no_other_user_can_rename_in_it() {
        for safe in [
            "drwxr-xr-x 2 0 0 4096",
            "drwxrwxrwt 2 0 0 4096",
            "drwx------+ 2 0 0 512",
        ] {
            assert!(only_root_renames(safe), "{safe}");
        }
        for unsafe_ in [
            "drwxr-xr-x 2 1000 0 4096",
            "drwxrwxr-x 2 0 0 4096",
            "drwxr-xrwx 2 0 0 4096",
            "lrwxrwxrwx 1 0 0 4",
            "",
        ] {
            assert!(!only_root_renames(unsafe_), "{unsafe_}");
        }
    }
}
