//! Every command that prints, as the tests of terminals and of stores go through them.

use crate::support::Ground;

/// A command that prints, and what is expected of its text.
pub(super) struct Shown {
    pub(super) words: &'static [&'static str],
    /// It sets off parts of its text.
    pub(super) colours: bool,
    /// Lines are wrapped for people, and not kept as they are for programs.
    pub(super) wrapped: bool,
    /// It says the same each time.
    pub(super) same: bool,
    /// It is an error, with advice.
    pub(super) refused: bool,
}

const fn shown(words: &'static [&'static str], colours: bool) -> Shown {
    Shown {
        words,
        colours,
        wrapped: true,
        same: true,
        refused: false,
    }
}

const fn refused(words: &'static [&'static str]) -> Shown {
    Shown {
        refused: true,
        ..shown(words, false)
    }
}

/// The line of a file that is pointed at stays whole.
const fn excerpt(words: &'static [&'static str]) -> Shown {
    Shown {
        wrapped: false,
        ..refused(words)
    }
}

const fn data(words: &'static [&'static str]) -> Shown {
    Shown {
        wrapped: false,
        ..shown(words, false)
    }
}

const fn measured(words: &'static [&'static str], colours: bool) -> Shown {
    Shown {
        same: false,
        ..shown(words, colours)
    }
}

pub(super) const FIO: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/golden/fio/fio-3.33_two_jobs.json"
);

/// Every command that prints.
pub(super) const COMMANDS: &[Shown] = &[
    shown(&["--help"], true),
    shown(&["compare", "--help"], true),
    shown(&["--version"], false),
    shown(&["report", "last"], true),
    shown(&["verdict", "last"], true),
    shown(
        &["gate", "last", "--worse-than", "5 %", "--undecided", "pass"],
        true,
    ),
    shown(&["diff", "last/4 KiB", "last/8 KiB"], true),
    shown(&["runs"], false),
    shown(&["plan", "study.toml"], false),
    shown(&["published"], false),
    shown(&["published", "zfs-ashift"], true),
    shown(&["show", "layers"], false),
    shown(&["show", "workloads"], false),
    shown(&["show", "studies"], false),
    shown(&["show"], false),
    shown(&["show", "layer", "image"], false),
    shown(&["show", "workload", "random"], false),
    shown(&["show", "profile", "source-code"], false),
    shown(&["show", "purposes"], false),
    shown(&["show", "reports"], false),
    shown(&["show", "drives"], false),
    shown(&["show", "video-formats"], false),
    shown(&["show", "trace", "app.trace"], false),
    shown(&["trace", "info", "app.trace"], false),
    shown(&["show", "layer", "iscsi"], false),
    shown(&["show", "layer", "nvme-tcp"], false),
    shown(&["show", "layer", "vdo"], false),
    shown(&["show", "workload", "command-promises"], false),
    shown(&["plan", "lent.toml"], false),
    shown(&["clean"], false),
    measured(&["doctor", "--quick"], false),
    measured(
        &[
            "load",
            "data",
            "random",
            "mode=read",
            "size=1MiB",
            "time=20ms",
        ],
        false,
    ),
    measured(&["import", FIO], true),
    shown(&["check", "--help"], true),
    measured(&["reindex"], false),
    shown(&["show", "commands"], false),
    measured(&["run", "study.toml"], true),
    measured(&["resume", "last", "--rounds", "4"], true),
    measured(
        &[
            "compare", "a", "b", "--anyway", "--rounds", "3", "--", "true",
        ],
        true,
    ),
    data(&["export", "last"]),
    data(&["completions", "bash"]),
    data(&["report", "last", "--format", "json"]),
    refused(&["report", "no-such-run"]),
    refused(&["show", "trace", "no-such.trace"]),
    refused(&["compare", "a", "no such directory"]),
    refused(&["rapport", "--colour"]),
    refused(&[
        "trace",
        "cut",
        "app.trace",
        "--from",
        "3 s",
        "--to",
        "1 s",
        "-o",
        "part.trace",
    ]),
    refused(&["record", "--below", "no such directory", "--", "true"]),
    excerpt(&["plan", "wrong.toml"]),
    excerpt(&["plan", "refused.toml"]),
];

/// Commands that keep a run, or a journal of what they write.
const KEEPS: [&str; 5] = ["run", "resume", "compare", "load", "import"];

/// A name with a typo must neither look like a store without runs nor become one.
pub(super) fn no_command_that_reads_makes_a_store() {
    let ground = Ground::new();
    let nowhere = ground.path().join("no store");
    let more: [&[&str]; 12] = [
        &["runs", "--json"],
        &["runs", "prune", "--keep", "0"],
        &["runs", "rm", "last"],
        &["runs", "tag", "last", "good"],
        &["export", "last", "--table", "configurations"],
        &["gate"],
        &["crash", "show", "last"],
        &["clean", "--list"],
        &["resume"],
        &["compare", ".", "/", "--like", "last"],
        &["push", "last", "postgresql://ann@127.0.0.1:1/runs"],
        &["doctor", "--quick", "--json"],
    ];
    let listed = COMMANDS.iter().map(|command| command.words);
    let listed = listed.filter(|words| !KEEPS.contains(&words[0]));
    for words in listed.chain(more) {
        let store = ["--store", nowhere.to_str().unwrap()];
        let said = ground.stackrace(&[words, &store].concat());
        assert!(!nowhere.exists(), "{words:?}");
        if ["reindex", "report", "verdict", "gate", "resume"].contains(&words[0])
            && !words.contains(&"no-such-run")
            && !words.contains(&"json")
        {
            said.err_has("there is no store in ").err_has("--store DIR");
        }
    }
    let store = ["runs", "--store", nowhere.to_str().unwrap()];
    let runs = ground.stackrace(&store);
    assert!(
        runs.ended(0).out.contains("there is no store in "),
        "{}",
        runs.out
    );
    // A directory of something else does not become one either.
    let other = ground.make_dir("photos");
    let store = ["reindex", "--store", other.to_str().unwrap()];
    ground
        .stackrace(&store)
        .ended(2)
        .err_has("there is no store in ");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
}
