//! What a layer undoes itself: an entry names the layer, one of its ways to undo, and what is undone.
//!
//! A journal is a file, and files get damaged or edited. An entry is therefore data and never a
//! command: the layer declares what its entries may contain, and everything is checked against that
//! before the first entry is undone.

use super::bytes;
use super::proof::Proof;
use crate::host::{Host, HostError};
use serde::{Deserialize, Serialize};
use stackrace_base::unit::ShownPath;
use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

/// Hexadecimal digits of a digest (BLAKE3, 256 bits).
const DIGEST_DIGITS: usize = 64;

/// An entry of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerUndo {
    /// The layer that knows how.
    pub(super) name: String,
    /// The way in which it is undone, among those of the layer.
    pub(super) undo: String,
    /// The words of what is undone, as its [`UndoKind`] declares.
    #[serde(with = "bytes::list")]
    pub(super) of: Vec<OsString>,
}

/// A way in which a layer undoes something.
pub struct UndoKind {
    /// The layer, as its folder is called.
    pub layer: &'static str,
    /// The way, in words with hyphens: `stop-array`.
    pub name: &'static str,
    /// Meanings of the words of an entry, in order.
    pub params: &'static [Param],
    /// Does it; nothing to undo is fine.
    pub undo: fn(&dyn Host, &[OsString]) -> Result<(), HostError>,
}

impl UndoKind {
    /// A way of a layer: its name, the meanings of its words, and what does it.
    pub const fn new(
        layer: &'static str,
        name: &'static str,
        params: &'static [Param],
        undo: fn(&dyn Host, &[OsString]) -> Result<(), HostError>,
    ) -> Self {
        Self {
            layer,
            name,
            params,
            undo,
        }
    }
}

/// The kinds of words that an entry may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// A name that carries a mark of the run.
    OurName,
    /// A UUID that begins with a mark of the run.
    Uuid,
    /// A path of the run: below what carries its mark, in a place of its own.
    Path,
    /// An address of a machine, an IPv6 one in brackets.
    Address,
    /// A name that the system gave: of a network card, of a boot.
    Name,
    /// The digest of a command that the run's record holds.
    Digest,
}

impl Param {
    fn accepts(self, word: &OsString, proof: &Proof) -> bool {
        if self == Self::Path {
            return proof.is_ours(Path::new(word));
        }
        let Some(text) = word.to_str() else {
            return false;
        };
        // A word that begins with a hyphen would be an option to the tool. Plans draw no digits: they
        // write `{id}` instead, and `{loop 1}`.
        let planned = text.starts_with('{');
        let plain =
            |c: char| c.is_ascii_alphanumeric() || "-_.:@{}".contains(c) || (planned && c == ' ');
        let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '{')
            && text.chars().all(plain);
        match self {
            Self::OurName => is_name && proof.is_name(text),
            Self::Uuid => {
                let digit = |c: char| c.is_ascii_hexdigit() || c == '-';
                is_name && text.replace("{id}", "").chars().all(digit) && proof.is_uuid(text)
            }
            Self::Address => {
                let bare = text
                    .strip_prefix('[')
                    .and_then(|rest| rest.strip_suffix(']'));
                bare.unwrap_or(text).parse::<IpAddr>().is_ok()
            }
            Self::Name => is_name,
            Self::Digest => is_digest(text),
            Self::Path => false,
        }
    }
}

fn is_digest(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == DIGEST_DIGITS && text.bytes().all(digit)
}

impl UndoKind {
    /// The entry that undoes this.
    pub fn of<const N: usize>(&self, of: [OsString; N]) -> LayerUndo {
        debug_assert_eq!(N, self.params.len());
        LayerUndo {
            name: self.layer.to_string(),
            undo: self.name.to_string(),
            of: of.into(),
        }
    }

    fn accepts(&self, entry: &LayerUndo, proof: &Proof) -> bool {
        let mut words = self.params.iter().zip(&entry.of);
        self.layer == entry.name
            && self.name == entry.undo
            && self.params.len() == entry.of.len()
            && words.all(|(param, word)| param.accepts(word, proof))
    }
}

impl LayerUndo {
    /// The layer that knows how.
    pub fn layer(&self) -> &str {
        &self.name
    }

    /// Digest of the command that undoes it, which a user cannot read; `None` if it takes none of the user's.
    pub fn digest(&self) -> Option<&str> {
        let mut words = self.of.iter().filter_map(|word| word.to_str());
        words.find(|word| is_digest(word))
    }

    /// The way this entry is undone; `None` if no layer undoes such an entry.
    pub(super) fn kind<'a>(&self, kinds: &[&'a UndoKind], proof: &Proof) -> Option<&'a UndoKind> {
        let mut kinds = kinds.iter();
        kinds.find(|kind| kind.accepts(self, proof)).copied()
    }
}

/// A word of an entry that was checked to be text.
pub fn text(of: &[OsString], at: usize) -> &str {
    of.get(at)
        .and_then(|word| word.to_str())
        .unwrap_or_default()
}

impl fmt::Display for LayerUndo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.undo.replace('-', " "))?;
        for word in &self.of {
            if word.to_str() != self.digest() {
                write!(f, " {}", word.shown())?;
            }
        }
        write!(f, " ({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::local::LocalHost;
    use crate::journal::{Journal, JournalError, Undo, undo_all};

    const MARK: &str = "0123456789abcdef";

    fn proof() -> Proof {
        let mut proof = Proof::default();
        proof.add_mark(MARK);
        proof.add_mark("{id}");
        proof.add_place("/srv".into());
        proof
    }

    #[test]
    fn words_that_are_not_of_the_run_are_refused() {
        let proof = proof();
        let accepts = |param: Param, word: &str| param.accepts(&word.into(), &proof);
        assert!(accepts(
            Param::OurName,
            "stackrace-r1-t0-0123456789abcdef-pool-1"
        ));
        assert!(accepts(Param::OurName, "stackrace-r1-t0-{id}-pool-1"));
        for word in [
            "tank",
            "",
            "-f",
            "stackrace-0123456789abcdef/b",
            "stackrace-0123456789abcdef b",
            "/stackrace-0123456789abcdef",
            "stackrace-r1-t0-fedcba9876543210-pool-1",
        ] {
            assert!(!accepts(Param::OurName, word), "{word}");
        }
        assert!(accepts(Param::Uuid, "01234567-89ab-cdef-8000-000000000001"));
        assert!(!accepts(
            Param::Uuid,
            "fedcba98-7654-3210-8000-000000000001"
        ));
        assert!(!accepts(Param::Uuid, "--all") && !accepts(Param::Uuid, "xyz"));
        assert!(accepts(Param::Path, "/srv/.stackrace-{id}/a b"));
        for word in ["srv", "/srv/a", "/srv/.stackrace-{id}/../../etc"] {
            assert!(!accepts(Param::Path, word), "{word}");
        }
        assert!(accepts(Param::Address, "10.0.0.1") && accepts(Param::Address, "[::1]"));
        assert!(!accepts(Param::Address, "*"));
        assert!(accepts(Param::Name, "eth0") && !accepts(Param::Name, "-a"));
        assert!(accepts(Param::Digest, &"0123456789abcdef".repeat(4)));
        for word in ["", "0123456789abcdef", "rm -rf /", &"g".repeat(64)] {
            assert!(!accepts(Param::Digest, word), "{word}");
        }
    }

    /// Also what was made later stays: a journal with such an entry is not a journal of ours.
    #[test]
    fn what_is_undone_is_said_without_what_nobody_can_read() {
        let entry = LayerUndo {
            name: "script".to_owned(),
            undo: "tear-down".to_owned(),
            of: vec!["/srv/x".into(), "0123456789abcdef".repeat(4).into()],
        };
        assert_eq!(entry.to_string(), "tear down /srv/x (script)");
        assert_eq!(entry.digest(), Some(&*"0123456789abcdef".repeat(4)));
    }

    #[test]
    fn nothing_is_undone_when_one_entry_is_not_of_the_run() {
        let base = tempfile::tempdir().unwrap();
        let made = base.path().join(format!(".stackrace-{MARK}-made"));
        std::fs::create_dir(&made).unwrap();
        let host = LocalHost::new(std::sync::Arc::new(|_| ()));
        let stop = UndoKind {
            layer: "md",
            name: "stop-array",
            params: &[Param::Uuid],
            undo: |_, _| panic!("it was refused"),
        };
        let destroy = UndoKind {
            name: "destroy",
            params: &[Param::OurName],
            ..stop
        };
        for undo in [
            Undo::from(destroy.of(["stackrace-a".into()])),
            Undo::from(stop.of(["--scan".into()])),
            Undo::on(2, &host, stop.of(["--scan".into()]).into()),
            Undo::RemoveFile(base.path().join("photo")),
            Undo::EndProcess {
                program: "sshd".to_string(),
                mark: String::new(),
            },
        ] {
            let mut text = format!("{{\"journal\":3,\"run\":\"r\"}}\n{{\"mark\":\"{MARK}\"}}\n");
            let place = base.path().display();
            text += &format!("{{\"place\":\"{place}\"}}\n");
            for (id, undo) in [(1, undo.clone()), (2, Undo::RemoveDir(made.clone()))] {
                let undo = serde_json::to_string(&undo).unwrap();
                text += &format!("{{\"entry\":{id},\"group\":\"a\",\"undo\":{undo}}}\n");
            }
            let journal = Journal::remembered(text.as_bytes(), Path::new("/r/journal.jsonl"));
            let error = undo_all(&host, &journal.unwrap(), &[&stop]).unwrap_err();
            assert_eq!(error, JournalError::Foreign(undo.to_string()));
            assert!(made.exists());
        }
    }
}
