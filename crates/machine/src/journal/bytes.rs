//! Paths as text without loss: printable ASCII as it is, every other byte as `%` and two digits.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(path))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(deserializer)?;
    decode(&text).ok_or_else(|| D::Error::custom("a % without two hexadecimal digits"))
}

/// Several words, each as a path is written.
pub(super) mod list {
    use super::{decode, encode};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::ffi::OsString;
    use std::path::Path;

    pub(in crate::journal) fn serialize<S: Serializer>(
        words: &[OsString],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(words.iter().map(|word| encode(Path::new(word))))
    }

    pub(in crate::journal) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<OsString>, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        let word = |text: String| {
            let bytes = decode(&text).map(OsString::from);
            bytes.ok_or_else(|| D::Error::custom("a % without two hexadecimal digits"))
        };
        words.into_iter().map(word).collect()
    }
}

fn encode(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        // A journal is read by people, too: what they can read stays as it is.
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02x}"));
        }
    }
    text
}

fn decode(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        // Digit by digit: a number's parser would also take a sign.
        let digit = |at: usize| tail.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
        rest = &tail[2..];
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            let text = encode(&path);
            prop_assert!(text.is_ascii());
            prop_assert_eq!(decode(&text), Some(path));
        }
    }

    #[test]
    fn ordinary_paths_stay_readable() {
        assert_eq!(encode(Path::new("/srv/a b/50%")), "/srv/a%20b/50%25");
        assert_eq!(decode("/a%2"), None);
        assert_eq!(decode("/a%zz"), None);
    }
}
