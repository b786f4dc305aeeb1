//! Options of a mount as they are compared: a directory that is mounted otherwise may be faster, slower or less
//! durable.
//!
//! Every option counts, also one of a file system that is written next year: only the kernel knows what each does.
//! Those in [`OF_NO_MATTER`] do not, and paths, which say where something lies.

/// Options that change neither speed nor durability, or are compared by themselves. A word that ends with `=` has
/// a value.
///
/// Sources: mount(8), nfs(5), mount.cifs(8), mount.fuse3(8), `tmpfs.rst` of Linux, mount(8) of illumos.
const OF_NO_MATTER: &[&str] = &[
    // Read-only is compared by itself; these are its words on all systems.
    "rw",
    "ro",
    "read",
    "write",
    "read only",
    "read-only",
    // Who may do what there.
    "suid",
    "nosuid",
    "setuid",
    "nosetuid",
    "dev",
    "nodev",
    "devices",
    "nodevices",
    "exec",
    "noexec",
    "nosymfollow",
    "seclabel",
    "context=",
    "fscontext=",
    "defcontext=",
    "rootcontext=",
    "uid=",
    "gid=",
    "mode=",
    "fmask=",
    "dmask=",
    "umask=",
    "file_mode=",
    "dir_mode=",
    "forceuid",
    "noforceuid",
    "forcegid",
    "noforcegid",
    "user_id=",
    "group_id=",
    "rootmode=",
    "allow_other",
    // What an error leads to, and how much fits.
    "errors=",
    "size=",
    "nr_blocks=",
    "nr_inodes=",
    // Numbers that are given anew: of a mount, of files (CIFS gives that of the server up by itself).
    "dev=",
    "subvolid=",
    // An overlay has it at its first mount; the next one finds it in the upper layer, and does not show it.
    "uuid=",
    "serverino",
    "noserverino",
    // The way to a server, which a mount that connects again may have chosen otherwise.
    "addr=",
    "clientaddr=",
    "mountaddr=",
    "mountport=",
    "srcaddr=",
];

/// Returns true if the option may change speed or durability.
fn counts(option: &str) -> bool {
    let is_it = |word: &str| match word.ends_with('=') {
        true => option.starts_with(word),
        false => option == word,
    };
    !OF_NO_MATTER.iter().any(|word| is_it(word))
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

/// Those of them that count, as one text: what a file system that lies on this one depends on.
pub fn counting_options<'a>(options: impl IntoIterator<Item = &'a str>) -> String {
    let mut options = comparable_options(options);
    options.retain(|option| counts(option));
    options.sort_unstable();
    options.join(",")
}

/// What a setting was and is now: of lists, what they do not have in common.
pub(super) fn apart(was: &str, is: &str) -> (String, String) {
    let alone = |of: &str, other: &str| {
        let own = of.split(',');
        let own = own.filter(|one| !other.split(',').any(|same| same == *one));
        own.collect::<Vec<_>>().join(",")
    };
    match (alone(was, is), alone(is, was)) {
        (gone, new) if gone.is_empty() => (format!("without {new}"), format!("with {new}")),
        (gone, new) if new.is_empty() => (format!("with {gone}"), format!("without {gone}")),
        both => both,
    }
}

/// How it was mounted, and how it is now, where an option that counts differs: `with commit=5`, `with commit=600`.
pub(super) fn changed(was: &[String], now: &[String]) -> Option<(String, String)> {
    let alone = |of: &[String], other: &[String]| {
        let alone = of.iter().filter(|one| counts(one) && !other.contains(one));
        let mut alone: Vec<&str> = alone.map(String::as_str).collect();
        // Their order says nothing.
        alone.sort_unstable();
        alone.join(",")
    };
    let (gone, new) = (alone(was, now), alone(now, was));
    match (&*gone, &*new) {
        ("", "") => None,
        ("", new) => Some((lacking(new), format!("with {new}"))),
        (gone, "") => Some((format!("with {gone}"), lacking(gone))),
        (gone, new) => Some((format!("with {gone}"), format!("with {new}"))),
    }
}

/// The words for a mount that has none of these: without `nobarrier` it has `barrier`.
fn lacking(options: &str) -> String {
    let opposite = |option| Some(str::strip_prefix(option, "no")?).filter(|it| !it.contains('='));
    let opposites: Option<Vec<&str>> = options.split(',').map(opposite).collect();
    match opposites {
        Some(opposites) => format!("with {}", opposites.join(",")),
        None => format!("without {options}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(told: &str) -> Vec<String> {
        comparable_options(told.split(','))
    }

    /// How it was and how it is now, where anything of it is compared.
    fn said(was: &str, now: &str) -> Option<(String, String)> {
        changed(&words(was), &words(now))
    }

    #[test]
    fn of_two_lists_only_what_differs_is_told() {
        let told = |was, is| {
            let (was, is) = apart(was, is);
            format!("was {was} and is now {is}")
        };
        assert_eq!(told("none", "zstd"), "was none and is now zstd");
        assert_eq!(
            told(
                "barrier,commit=5,data=ordered",
                "barrier,commit=5,data=writeback"
            ),
            "was data=ordered and is now data=writeback"
        );
        assert_eq!(
            told("relatime", "huge=always,relatime"),
            "was without huge=always and is now with huge=always"
        );
        assert_eq!(told("a,b", "a"), "was with b and is now without b");
    }

    #[test]
    fn every_option_counts_and_is_told_in_both_directions() {
        for option in [
            "sync",
            "noatime",
            "nobarrier",
            "data=journal",
            "commit=600",
            "max_batch_time=100000",
            "huge=always",
            "logbsize=256k",
            "thread_pool=2",
            "rsize=65536",
            "an_option_of_next_year",
        ] {
            let with = format!("with {option}");
            let without = match option.strip_prefix("no") {
                Some(opposite) => format!("with {opposite}"),
                None => format!("without {option}"),
            };
            let (on, off) = (format!("rw,{option}"), "rw,stripe=8,seclabel");
            assert_eq!(said(&on, &on), None);
            let both = (without.clone(), with.clone());
            assert_eq!(said("rw", &on), Some(both));
            assert_eq!(said(&on, "rw"), Some((with.clone(), without)));
            assert_eq!(said(off, &on), Some(("with stripe=8".into(), with)));
        }
        let value = said("rw,commit=5", "rw,commit=600");
        assert_eq!(
            value,
            Some(("with commit=5".into(), "with commit=600".into()))
        );
        let two = said("rw,relatime", "rw,sync,noatime");
        let is = "with noatime,sync".to_owned();
        assert_eq!(two, Some(("with relatime".to_owned(), is)));
    }

    #[test]
    fn what_changes_neither_speed_nor_durability_is_not_compared() {
        for harmless in [
            "errors=remount-ro",
            "clientaddr=10.0.0.2",
            "addr=10.0.0.1",
            "seclabel",
            "nosuid",
            "size=64m",
            "noserverino",
            "lowerdir=/commit=/sync",
        ] {
            assert_eq!(
                said("rw,relatime", &format!("rw,relatime,{harmless}")),
                None,
                "{harmless}"
            );
        }
        assert_eq!(said("rw,discard,sync", "rw,sync,discard"), None);
        // Words alone are known whole.
        assert!(said("rw", "rw,devs").is_some() && said("rw", "rw,execute").is_some());
    }
}
