//! Options of a mount that change what is measured on it: where they differ, it is other storage.
//!
//! Only these are compared. Others come and go by themselves (`errors`, `clientaddr`, `space_cache`, sizes
//! that a server and its client agree on), or say where something lies, which is compared by itself.
//!
//! Sources: mount(8), ext4(5), xfs(5), btrfs(5), `overlayfs.rst` of Linux, mount(8) of FreeBSD and OpenBSD.

/// Options of which a file system has one, or none, and what that does. A word that ends with `=` has
/// a value.
#[derive(Debug)]
pub struct OptionClass {
    words: &'static [&'static str],
    /// What is in force where none of the words is shown, as a word; empty: nothing has a name.
    otherwise: &'static str,
    /// Effect on figures, as a clause.
    pub means: &'static str,
}

/// Every class of options that changes figures.
pub const OPTION_CLASSES: &[OptionClass] = &[
    OptionClass {
        // The second is how the BSDs show it.
        words: &["sync", "synchronous"],
        otherwise: "async",
        means: "with sync every write waits for the disk",
    },
    OptionClass {
        // On the BSDs a mode of its own, below what they do without any word.
        words: &["asynchronous"],
        otherwise: "",
        means: "with asynchronous no change of a directory waits for the disk",
    },
    OptionClass {
        words: &["dirsync", "wsync"],
        otherwise: "",
        means: "with dirsync or wsync every new name waits for the disk",
    },
    OptionClass {
        words: &["noatime", "relatime"],
        otherwise: "strictatime",
        means: "without noatime a read may write a time stamp",
    },
    OptionClass {
        words: &["nobarrier", "barrier=0"],
        otherwise: "barrier",
        means: "without barriers no flush is sent to the disk: fsync is faster, and not durable",
    },
    OptionClass {
        words: &["volatile", "fsync=volatile"],
        otherwise: "",
        means: "with volatile fsync does nothing",
    },
    OptionClass {
        words: &["lazytime"],
        otherwise: "nolazytime",
        means: "with lazytime time stamps are written late",
    },
    OptionClass {
        words: &["data="],
        otherwise: "",
        means: "the journal treats data differently",
    },
    OptionClass {
        words: &["commit="],
        otherwise: "",
        means: "data stay in memory for a longer or shorter time",
    },
    OptionClass {
        words: &["discard", "discard="],
        otherwise: "nodiscard",
        means: "freed blocks are trimmed at once, or not",
    },
    OptionClass {
        words: &["compress=", "compress-force="],
        otherwise: "",
        means: "what is compressed moves fewer bytes",
    },
    OptionClass {
        words: &["nodatacow", "nodatasum"],
        otherwise: "datacow",
        means: "without checksums and copies less work is done",
    },
    OptionClass {
        words: &["dax", "dax="],
        otherwise: "",
        means: "with dax the page cache is not used",
    },
];

impl OptionClass {
    /// The options of this class among those in force; none where it has none.
    pub fn in_force<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mine = |option: &&str| {
            self.words.iter().any(|word| match word.ends_with('=') {
                // Words that take a value are known by their beginning.
                true => option.starts_with(word),
                false => option == word,
            })
        };
        let mut found: Vec<&str> = options.into_iter().filter(mine).collect();
        // Their order says nothing.
        found.sort_unstable();
        found
    }

    /// The options of this class among those in force, in words: `with sync`, `with async`, `without dirsync or wsync`.
    pub fn said(&self, in_force: &[&str]) -> String {
        match (in_force.is_empty(), self.otherwise) {
            (false, _) => format!("with {}", in_force.join(",")),
            (true, "") => {
                let mut words: Vec<&str> = self
                    .words
                    .iter()
                    .map(|word| word.trim_end_matches('='))
                    .collect();
                words.dedup();
                format!("without {}", words.join(" or "))
            }
            (true, otherwise) => format!("with {otherwise}"),
        }
    }
}

/// Options of a mount worth keeping for a comparison. Paths are not: an overlay has dozens, and a file system is
/// never told by one here.
pub fn comparable_options<'a>(options: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let options = options.into_iter();
    options
        .filter(|option| !option.contains('/'))
        .map(str::to_owned)
        .collect()
}

/// How it was mounted, and how it is now, of each class in which both differ: `with async`, `with sync`.
pub(super) fn changed(was: &[String], now: &[String]) -> (Vec<String>, Vec<String>) {
    let classes = OPTION_CLASSES.iter();
    let changed = classes.filter_map(|class| {
        let [was, now] = [was, now].map(|all| class.in_force(all.iter().map(String::as_str)));
        (was != now).then(|| (class.said(&was), class.said(&now)))
    });
    changed.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(told: &str) -> Vec<String> {
        comparable_options(told.split(','))
    }

    /// How it was and how it is now, where anything of it is compared.
    fn said(was: &str, now: &str) -> Option<(String, String)> {
        let (was, now) = changed(&words(was), &words(now));
        (!was.is_empty()).then(|| (was.join(" and "), now.join(" and ")))
    }

    #[test]
    fn each_option_that_changes_figures_is_told_in_both_directions() {
        for (option, none) in [
            ("sync", "with async"),
            ("synchronous", "with async"),
            ("asynchronous", "without asynchronous"),
            ("dirsync", "without dirsync or wsync"),
            ("wsync", "without dirsync or wsync"),
            ("noatime", "with strictatime"),
            ("relatime", "with strictatime"),
            ("nobarrier", "with barrier"),
            ("barrier=0", "with barrier"),
            ("volatile", "without volatile or fsync=volatile"),
            ("lazytime", "with nolazytime"),
            ("data=journal", "without data"),
            ("commit=600", "without commit"),
            ("discard", "with nodiscard"),
            ("discard=async", "with nodiscard"),
            ("compress=zstd:3", "without compress or compress-force"),
            ("compress-force=lzo", "without compress or compress-force"),
            ("nodatacow", "with datacow"),
            ("nodatasum", "with datacow"),
            ("dax", "without dax"),
            ("dax=always", "without dax"),
        ] {
            let with = format!("with {option}");
            let (on, off) = (format!("rw,{option}"), "rw,stripe=8");
            assert_eq!(said(&on, &on), None);
            assert_eq!(said(off, &on), Some((none.to_owned(), with.clone())));
            assert_eq!(said(&on, off), Some((with, none.to_owned())));
        }
        let value = said("rw,commit=5", "rw,commit=600");
        assert_eq!(
            value,
            Some(("with commit=5".into(), "with commit=600".into()))
        );
        let two = said("rw,relatime", "rw,sync,noatime");
        let was = "with async and with relatime".to_owned();
        assert_eq!(two, Some((was, "with sync and with noatime".into())));
    }

    #[test]
    fn options_that_come_and_go_by_themselves_are_not_compared() {
        for harmless in [
            "errors=remount-ro",
            "clientaddr=10.0.0.2",
            "addr=10.0.0.1",
            "rsize=1048576",
            "space_cache=v2",
            "ssd",
            "strictatime",
            "atime",
            "seclabel",
            "nosuid",
            "stripe=64",
            "size=64m",
            "lowerdir=/commit=/sync",
            "datax=1",
            "nosync",
        ] {
            assert_eq!(
                said("rw,relatime", &format!("rw,relatime,{harmless}")),
                None,
                "{harmless}"
            );
        }
        assert_eq!(said("rw,discard,sync", "rw,sync,discard"), None);
    }
}
