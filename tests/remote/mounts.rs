//! A directory that is not the same storage on two clients: clients with mounts of their own. A script
//! stands in for ssh and gives one of them a view of its own (unshare).

use std::os::unix::fs::PermissionsExt;

use super::*;

/// Runs the script of a login here; `apart` sees another directory in the place of the shared one.
const LOGIN: &str = r#"#!/bin/sh
# The last two words are the machine and what it is to do.
while [ $# -gt 2 ]; do shift; done
export HOME=GROUND/home
[ "$1" = apart ] || exec sh -c "$2"
exec unshare --mount sh -c 'mount OPTIONS GROUND/PLACE && exec sh -c "$1"' sh "$2"
"#;

/// A ground whose client `apart` has this mount in the place of the directory `there`.
fn with_a_client_apart(place: &str, options: &str) -> Ground {
    needs::root();
    needs::tool("unshare");
    let ground = Ground::new();
    for name in ["here", "there", "other", "home"] {
        ground.make_dir(name);
    }
    let here = ground.path().to_str().unwrap();
    let study = SHARED.replace("GROUND", here);
    ground.write("study.toml", study);
    let options = options.replace("GROUND", here);
    let login = LOGIN.replace("GROUND", here).replace("PLACE", place);
    let login = ground.write("login", login.replace("OPTIONS", &options));
    fs::set_permissions(login, fs::Permissions::from_mode(0o755)).unwrap();
    ground
}

/// Begins a run by these clients.
fn run_by(ground: &Ground, clients: &str) -> Said {
    let words = ["run", "study.toml", "--rounds", "1", "--clients", clients];
    let mut command = ground.program(&words);
    command.env("STACKRACE_SSH", ground.path().join("login"));
    Said::of(&command.output().unwrap())
}

/// What is in the directories, by name.
fn found(ground: &Ground) -> Vec<String> {
    let places = ["here", "there", "other"].map(|place| ground.path().join(place));
    let files = places.iter().flat_map(|place| fs::read_dir(place).unwrap());
    let names = files.map(|file| file.unwrap().path().display().to_string());
    names.collect()
}

pub(crate) fn a_directory_that_is_other_storage_on_one_client_is_refused() {
    // Another file system, another directory of the same one, and the right one that cannot be written.
    for (options, says) in [
        (
            "-t tmpfs none",
            "is not the same storage on all clients: what",
        ),
        (
            "--bind GROUND/other",
            "is not the same storage on all clients: what",
        ),
        ("--bind -o ro GROUND/there", "Read-only file system"),
    ] {
        let ground = with_a_client_apart("there", options);
        for clients in [
            "ssh:beside,apart",
            "ssh:apart,beside",
            "ssh:beside,more,apart",
        ] {
            let said = run_by(&ground, clients);
            assert_eq!(said.code, Some(3), "{options}, {clients}: {}", said.err);
            said.err_has(says).err_has("there").err_has("apart");
            // Refused before anything was measured, and the marks are gone.
            assert!(log(&ground).is_empty(), "{options}, {clients}");
            assert_eq!(found(&ground), Vec::<String>::new(), "{options}, {clients}");
        }
        // The clients that do have one storage can do without it.
        run_by(&ground, "ssh:beside,more").ended(0);
        assert_eq!(of_kind(&log(&ground), "trial").len(), 4);
    }
}
