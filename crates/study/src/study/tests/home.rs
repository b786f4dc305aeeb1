//! `home` of a replay: one configuration, by its name or by a level that it alone has.

use super::*;
use crate::study::home;
use stackrace_layers::stack;
use stackrace_load::programs;

/// A study of two file systems on two disks, without the last one of them, whose replay has this home.
fn read(home: &str) -> Result<Study, Vec<StudyError>> {
    let text = format!(
        "[factors]\nfs = [\"ext4\", \"xfs\"]\non = [\"a\", \"b\"]\n[[exclude]]\nfs = \"xfs\"\non = \"b\"\n\
         [[stack]]\ndir = {{ path = \"/{{fs}}/{{on}}\" }}\n[[workload]]\nreplay = {{ trace = \"/gone.trace\", home = \"{home}\" }}\n"
    );
    let kinds = Kinds {
        layers: stack::ALL,
        workloads: programs::workloads(),
    };
    parse("s.toml", text.as_bytes(), &kinds)
}

#[test]
fn the_home_of_a_replay_is_a_configuration_or_a_level_that_one_alone_has() {
    for (named, at) in [("ext4, a", 0), ("ext4, b", 1), ("xfs", 2), ("b", 1)] {
        let study = read(named).map_err(|errors| errors[0].to_string());
        assert_eq!(
            home::place(0, &study.unwrap().configurations),
            Ok(Some(at)),
            "{named}"
        );
    }
}

#[test]
fn what_is_no_home_of_a_replay_is_refused_at_its_place() {
    for (named, message, help) in [
        (
            "btrfs",
            "no configuration is called \"btrfs\"",
            "name one of them: \"ext4, a\"; \"ext4, b\"; and \"xfs, a\"",
        ),
        (
            "ext4",
            "2 configurations have the level \"ext4\"",
            "name one of them: \"ext4, a\"; and \"ext4, b\"",
        ),
        (
            "{fs}",
            "the home of a recorded application varies",
            "without a placeholder",
        ),
    ] {
        let refused = read(named).err().unwrap();
        let refused = &refused[0].refusal;
        assert_eq!(refused.message, message);
        assert!(refused.help.contains(help), "{}", refused.help);
        assert!(refused.span.is_some(), "{named}");
    }
}
