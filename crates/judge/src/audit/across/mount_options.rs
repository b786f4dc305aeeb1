//! Mount options that change figures and are not the same for all configurations.

use super::difference::{RunReading, Unlike, named};
use stackrace_base::event::{OPTION_CLASSES, OptionClass};

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let options = run.each(|at| Some(&*run.set_ups.place(at, "mount options")?.value));
    let classes = OPTION_CLASSES.iter();
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
