//! Peers of a study: refused before anything is touched.

use super::*;

/// A stack of two machines.
const REPLICATED: &str = r#"
title = "a device on two machines"
[factors]
protocol = ["A", "C"]
[[stack]]
loop = { size = "8 MiB" }
[[stack]]
drbd = { protocol = "{protocol}" }
[[stack]]
ext4 = {}
[[workload]]
files = { count = 5 }
[decide]
rounds-at-most = 1
"#;

pub(super) fn peers_that_make_no_sense_are_refused_with_what_to_say() {
    let ground = Ground::new();
    ground.write("study.toml", REPLICATED);
    let run = |words: &[&str]| {
        let command = [&["run"], words].concat();
        // An ssh that must not be needed.
        ground.stackrace(&[&command[..], &["--ssh", "no-such-ssh"]].concat())
    };
    run(&["demo", "--peer", "b"])
        .ended(2)
        .err_has("need no peer")
        .err_has("leave --peer out");
    run(&["study.toml", "--peer", "b", "--peer", "c"])
        .ended(2)
        .err_has("need one peer; --peer names 2");
    run(&["study.toml", "--on", "a", "--peer", "a"])
        .ended(2)
        .err_has("a cannot be a peer of itself");
    run(&["study.toml", "--on", "a", "--on", "b", "--peer", "c"])
        .ended(2)
        .err_has("tried on several");
    run(&["study.toml", "--lab", "--peer", "b"]).ended(2);
    run(&["study.toml", "--peer", "b=10.1.0.256"])
        .ended(2)
        .err_has("\"10.1.0.256\" is no address");
    run(&["study.toml", "--peer", "-oProxyCommand=x"]).ended(2);
    run(&["study.toml", "--peer", "b"])
        .ended(4)
        .err_has("no-such-ssh");
    // Without one, what could be said is said.
    ground
        .stackrace(&["run", "study.toml"])
        .ended(4)
        .err_has("there is no machine of number 2")
        .err_has("--peer [USER@]HOST");
    let twice = ["clean", "--peer", "b", "--peer", "b=10.1.0.2"];
    ground.stackrace(&twice).ended(2).err_has("said twice");
    assert!(log(&ground).is_empty());
}

pub(super) fn what_a_peer_lacks_is_said_with_its_name_before_anything_is_touched() {
    let ground = Ground::new();
    let server = Server::start(&ground);
    if Path::new("/sys/module/drbd").exists() || Path::new("/usr/sbin/drbdadm").exists() {
        needs::skip("this machine has DRBD, which the test needs to be missing");
    }
    let to = server.to();
    ground.write("study.toml", REPLICATED);
    for on in [&[][..], &["--on", &to.replace("127.0.0.1", "localhost")]] {
        let words = ["run", "study.toml", "--peer", &to];
        let refused = stackrace(&ground, &[&words, on].concat());
        refused
            .ended(4)
            .err_has("drbdadm is not installed")
            .err_has(&format!("{to}: drbdadm is not installed"))
            .err_has("apt install drbd-utils");
        assert!(log(&ground).is_empty());
        // The copy of the program, and nothing else.
        assert_eq!(ground.left().len(), 1, "{:?}", ground.left());
    }
    let planned = stackrace(&ground, &["plan", "study.toml", "--peer", &to]);
    // A script hears that it cannot run.
    planned.ended(3);
    let missing = format!("{to}: drbdadm is not installed");
    assert!(planned.out.contains(&missing), "{}", planned.out);
    stackrace(&ground, &["clean", "--peer", &to]).ended(0);
    assert_eq!(ground.left(), Vec::<String>::new());
}
