//! Mount options that change figures and are not the same for all configurations.

use super::difference::{RunReading, Unlike, named};

/// Options of which a file system has one, or none, and what that does. A word that ends with `=` has
/// a value.
struct OptionClass {
    words: &'static [&'static str],
    means: &'static str,
}

const CLASSES: &[OptionClass] = &[
    OptionClass {
        words: &["sync"],
        means: "with sync every write waits for the disk",
    },
    OptionClass {
        words: &["dirsync"],
        means: "with dirsync every new name waits for the disk",
    },
    OptionClass {
        words: &["noatime", "relatime", "strictatime"],
        means: "without noatime a read may write a time stamp",
    },
    OptionClass {
        words: &["nobarrier", "barrier=0"],
        means: "without barriers no flush is sent to the disk: fsync is faster, and not durable",
    },
    OptionClass {
        words: &["lazytime"],
        means: "with lazytime time stamps are written late",
    },
    OptionClass {
        words: &["data="],
        means: "the journal treats data differently",
    },
    OptionClass {
        words: &["commit="],
        means: "data stay in memory for a longer or shorter time",
    },
    OptionClass {
        words: &["discard", "discard="],
        means: "freed blocks are trimmed at once, or not",
    },
    OptionClass {
        words: &["compress=", "compress-force="],
        means: "what is compressed moves fewer bytes",
    },
    OptionClass {
        words: &["nodatacow", "nodatasum"],
        means: "without checksums and copies less work is done",
    },
    OptionClass {
        words: &["dax", "dax="],
        means: "with dax the page cache is not used",
    },
];

impl OptionClass {
    /// The options of this class among those in force; empty if none.
    fn in_force(&self, options: &str) -> String {
        let mine = |option: &&str| {
            self.words.iter().any(|word| match word.ends_with('=') {
                // Words that take a value are known by their beginning.
                true => option.starts_with(word),
                false => option == word,
            })
        };
        let found: Vec<&str> = options.split(',').filter(mine).collect();
        found.join(",")
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
    let mut values: Vec<(String, Vec<usize>)> = Vec::new();
    for (configuration, options) in options {
        let value = class.in_force(options);
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, of)) => of.push(*configuration),
            None => values.push((value, vec![*configuration])),
        }
    }
    // Named in the configurations, it is what was asked.
    let asked = |value: &str, of: &[usize]| {
        !value.is_empty() && of.iter().all(|at| run.name(*at).contains(value))
    };
    if values.len() < 2 || values.iter().any(|(value, of)| asked(value, of)) {
        return None;
    }
    let parts: Vec<String> = values
        .iter()
        .map(|(value, of)| match value.is_empty() {
            true => format!(
                "{} without {}",
                named(run.head, of),
                class.words.join(" or ")
            ),
            false => format!("{} with {value}", named(run.head, of)),
        })
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
