//! Mount options that change figures and are not the same for all configurations.
//!
//! Two file systems differ in dozens of options, most of which are words of one of them. Only what every one has in
//! its own way is compared here; whether one mount stayed the same is another question (`event/mount_options.rs`).
//!
//! Sources: mount(8), ext4(5), xfs(5), btrfs(5), `overlayfs.rst` of Linux, mount(8) of FreeBSD and OpenBSD.

use super::difference::{RunReading, Unlike, named};

/// Options of which a file system has one, or none, and what that does. A word that ends with `=` has a value.
struct OptionClass {
    words: &'static [&'static str],
    /// What is in force where none of the words is shown, as a word; empty: nothing has a name.
    otherwise: &'static str,
    /// Effect on figures, as a clause.
    means: &'static str,
}

const fn class(
    words: &'static [&'static str],
    otherwise: &'static str,
    means: &'static str,
) -> OptionClass {
    OptionClass {
        words,
        otherwise,
        means,
    }
}

/// Every class of options that changes figures on any file system. `synchronous` and `asynchronous` are words of the
/// BSDs; the second is a mode of its own there, below what they do without any word.
const CLASSES: &[OptionClass] = &[
    class(
        &["sync", "synchronous"],
        "async",
        "with sync every write waits for the disk",
    ),
    class(
        &["asynchronous"],
        "",
        "with asynchronous no change of a directory waits for the disk",
    ),
    class(
        &["dirsync", "wsync"],
        "",
        "with dirsync or wsync every new name waits for the disk",
    ),
    class(
        &["noatime", "relatime"],
        "strictatime",
        "without noatime a read may write a time stamp",
    ),
    class(
        &["nobarrier", "barrier=0"],
        "barrier",
        "without barriers no flush is sent to the disk: fsync is faster, and not durable",
    ),
    class(
        &["volatile", "fsync=volatile"],
        "",
        "with volatile fsync does nothing",
    ),
    class(
        &["lazytime"],
        "nolazytime",
        "with lazytime time stamps are written late",
    ),
    class(&["data="], "", "the journal treats data differently"),
    class(
        &["commit="],
        "",
        "data stay in memory for a longer or shorter time",
    ),
    class(
        &["discard", "discard="],
        "nodiscard",
        "freed blocks are trimmed at once, or not",
    ),
    class(
        &["compress=", "compress-force="],
        "",
        "what is compressed moves fewer bytes",
    ),
    class(
        &["nodatacow", "nodatasum"],
        "datacow",
        "without checksums and copies less work is done",
    ),
    class(&["dax", "dax="], "", "with dax the page cache is not used"),
];

impl OptionClass {
    /// The options of this class among those in force; none where it has none.
    fn in_force<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
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
    fn said(&self, in_force: &[&str]) -> String {
        match (in_force.is_empty(), self.otherwise) {
            (false, _) => format!("with {}", in_force.join(",")),
            (true, "") => {
                let words = self.words.iter().map(|word| word.trim_end_matches('='));
                let mut words: Vec<&str> = words.collect();
                words.dedup();
                format!("without {}", words.join(" or "))
            }
            (true, otherwise) => format!("with {otherwise}"),
        }
    }
}

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let options = run.each(|at| Some(&*run.set_ups.place(at, "mount options")?.value));
    let classes = CLASSES.iter();
    classes
        .filter_map(|class| differing(run, class, &options))
        .collect()
}

fn differing(
    run: &RunReading<'_>,
    class: &OptionClass,
    options: &[(usize, &str)],
) -> Option<Unlike> {
    let mut values: Vec<(Vec<&str>, Vec<usize>)> = Vec::new();
    for (configuration, options) in options {
        let value = class.in_force(options.split(','));
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, of)) => of.push(*configuration),
            None => values.push((value, vec![*configuration])),
        }
    }
    // Named in the configurations, it is what was asked.
    let asked = |value: &[&str], of: &[usize]| {
        let named = |at: &usize| run.name(*at).contains(&value.join(","));
        !value.is_empty() && of.iter().all(named)
    };
    if values.len() < 2 || values.iter().any(|(value, of)| asked(value, of)) {
        return None;
    }
    let parts: Vec<String> = values
        .iter()
        .map(|(value, of)| format!("{} {}", named(run.head, of), class.said(value)))
        .collect();
    Some(Unlike {
        check: "mount options",
        sentence: format!("mounted differently: {}; {}", parts.join(", "), class.means),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;

    fn sentences(a: &str, b: &str) -> Vec<String> {
        let run = Run::of(|at| vec![("mount options", [a, b][at])]);
        run.read(|reading| judge(reading).into_iter().map(|one| one.sentence).collect())
    }

    #[test]
    fn each_option_that_changes_figures_is_named_where_it_differs() {
        for (option, words) in [
            ("sync", "every write waits"),
            ("noatime", "may write a time stamp"),
            ("nobarrier", "not durable"),
            ("barrier=0", "not durable"),
            ("synchronous", "every write waits"),
            ("asynchronous", "no change of a directory waits"),
            ("wsync", "every new name waits"),
            ("volatile", "fsync does nothing"),
            ("lazytime", "written late"),
            ("data=journal", "treats data differently"),
            ("commit=600", "longer or shorter"),
            ("discard=async", "trimmed at once"),
            ("compress=zstd:3", "fewer bytes"),
            ("nodatasum", "less work"),
            ("dax=always", "page cache is not used"),
        ] {
            let found = sentences("rw", &format!("rw,{option}"));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].contains(&format!("xfs with {option}")),
                "{found:?}"
            );
            assert!(found[0].contains(words), "{found:?}");
        }
        assert_eq!(
            sentences("rw,sync,relatime", "rw,relatime,sync,stripe=8"),
            [""; 0]
        );
    }

    #[test]
    fn an_option_that_a_configuration_is_named_after_was_asked() {
        let mut run = Run::of(|at| vec![("mount options", ["rw", "rw,noatime"][at])]);
        run.record.head.configurations[1].name = "ext4 noatime".to_owned();
        run.read(|reading| assert_eq!(judge(reading), []));
    }
}
