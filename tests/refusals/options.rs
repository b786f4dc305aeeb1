//! Options that would be ignored, and names of files that would promise another format.

use super::*;

/// Options that mean nothing where the study would be measured, as they are typed.
pub(crate) fn options_that_a_place_would_ignore_are_refused() {
    let ground = Ground::new();
    ground.write("good.toml", GOOD);
    ground.make_dir("a");
    ground.make_dir("b");
    let clients = ["--clients", "ssh:far,away"];
    let run = ["run", "good.toml"];
    let lab = ["run", "good.toml", "--lab"];
    let compare = ["compare", "a", "b", "--anyway"];
    for (place, options, named) in [
        (&lab[..], &clients[..], "--clients"),
        (&["run", "modelled-disk", "--lab"], &clients, "--clients"),
        (&["plan", "good.toml", "--lab"], &clients, "--clients"),
        (&lab, &["--ssh", "ssh -i KEY"], "--ssh"),
        (&lab, &["--sudo"], "--sudo"),
        (&lab, &["--anyway"], "--anyway"),
        (&lab, &["--wipe", "ata-ONE_1"], "--wipe"),
        (&run, &["--ssh", "ssh -i KEY"], "--ssh"),
        (&run, &["--sudo"], "--sudo"),
        (&["plan", "good.toml"], &["--sudo"], "--sudo"),
        (&["clean"], &["--ssh", "ssh -i KEY"], "--ssh"),
        (&compare, &["--ssh", "ssh -i KEY"], "--ssh"),
        (&compare, &["--sudo"], "--sudo"),
        (
            &compare,
            &["--clients", "srun:n1,n2", "--ssh", "x"],
            "--ssh",
        ),
        (&["clean", "--on", "far"], &clients, "--clients"),
    ] {
        refused(
            &ground,
            &[place, options].concat(),
            2,
            &["error: ", named, "  next: leave "],
        );
    }
    // The variable is for whichever command needs it.
    let mut command = ground.program(&["plan", "good.toml"]);
    let said = Said::of(&command.env("STACKRACE_SSH", "ssh -i KEY").output().unwrap());
    said.ended(planned());
}

/// With a command of the user's, clients are used, or refused before it is tried.
pub(crate) fn a_command_that_clients_cannot_measure_together_is_refused_before_it_is_tried() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let head = ["compare", "a", "b", "--anyway", "--clients", "ssh:far,away"];
    let tail = ["--", "touch tried"];
    let parts = ["cannot be put together over clients"];
    refused(&ground, &[&head[..], &tail].concat(), 3, &parts);
    refused(
        &ground,
        &[&head[..], &["--print-study"], &tail].concat(),
        3,
        &parts,
    );
    refused(
        &ground,
        &[&head[..], &["--with", "git"]].concat(),
        3,
        &parts,
    );
}

/// One directory of which nothing is required has nothing to decide, and files have no size.
pub(crate) fn options_without_a_question_for_them_are_refused() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let nothing = ["nothing is to be decided", "--require"];
    for verb in ["check", "compare"] {
        refused(
            &ground,
            &[verb, "a", "--anyway", "--until-decided"],
            2,
            &nothing,
        );
    }
    let command = [
        "compare",
        "a",
        "--anyway",
        "--until-decided",
        "--",
        "touch tried",
    ];
    refused(&ground, &command, 2, &nothing);
    let files = [
        "compare", "a", "b", "--anyway", "--for", "files", "--size", "1GiB",
    ];
    refused(&ground, &files, 2, &["a number of files, and no size"]);
}

/// Sizes whose sum no number holds.
pub(crate) fn data_beyond_all_numbers_are_refused_for_want_of_room() {
    let ground = Ground::new();
    ground.make_dir("a");
    let files = [
        "load",
        "a",
        "files",
        "count=2100",
        "size-min=9PB",
        "size-max=9PB",
    ];
    refused(&ground, &files, 3, &["free"]);
}

/// A file whose name promises another format than would be in it.
pub(crate) fn files_whose_names_promise_an_unknown_format_are_refused() {
    let ground = Ground::new();
    for verb in ["export", "report"] {
        let args = [verb, "last", "--output", "x.xlsx"];
        refused(
            &ground,
            &args,
            2,
            &["there is no format \"xlsx\"", "--format"],
        );
    }
}
