//! `--clients kubernetes:JOB` with storage classes: the real kubectl, an API server that is none, and a pod that is
//! this machine.

mod server;

use super::*;
use server::{SLOW, Server};
use std::os::unix::fs::PermissionsExt as _;

/// Two classes as two levels; each volume is a directory of the ground.
const CLASSES: &str = study!(
    "two storage classes",
    r#"class = ["fast", "cheap"]"#,
    [
        r#"dir = { path = "GROUND/{class}", storage-class = "{class}", claim = "64 MiB", bound-within = "1 s" }"#
    ],
    [r#"sequential = { mode = "write", size = "4 MiB", time = "100 ms", passes = 0 }"#],
    3
);

/// Runs what is to run in a pod on this machine; everything else goes to the server.
const KUBECTL: &str = r#"#!/bin/sh
export PATH=REAL HOME=HOMEDIR KUBECONFIG=/dev/null
case $1 in
exec)
    # The pod has a home of its own, too.
    while [ "$1" != -- ]; do shift; done
    shift
    exec "$@" ;;
create) exec kubectl --server=http://127.0.0.1:PORT "$@" --validate=false ;;
*) exec kubectl --server=http://127.0.0.1:PORT "$@" ;;
esac
"#;

/// A ground with a cluster, and the study with these words in place of others.
fn with_cluster(words: &[(&str, &str)]) -> (Ground, Server) {
    needs::tool("kubectl");
    let (ground, server) = (Ground::new(), Server::start());
    for name in ["fast", "cheap", SLOW, "home", "bin"] {
        ground.make_dir(name);
    }
    let mut study = CLASSES.replace("GROUND", ground.path().to_str().unwrap());
    for (from, to) in words {
        study = study.replace(from, to);
    }
    ground.write("study.toml", study);
    let real = search_path();
    let port = server.port.to_string();
    let home = ground.path().join("home").display().to_string();
    let kubectl = KUBECTL.replace("REAL", &real).replace("PORT", &port);
    let kubectl = kubectl.replace("HOMEDIR", &home);
    let kubectl = ground.write("bin/kubectl", kubectl);
    fs::set_permissions(kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    (ground, server)
}

/// Where this machine's own programs are looked for.
#[expect(
    clippy::disallowed_methods,
    reason = "the tool of the test stands before them"
)]
fn search_path() -> String {
    std::env::var("PATH").unwrap()
}

/// The program of a user who reaches the cluster.
fn at_cluster(ground: &Ground, words: &[&str]) -> Command {
    let mut program = ground.program(words);
    let home = ground.path().join("home");
    let path = search_path();
    let path = format!("{}:{path}", ground.path().join("bin").display());
    program.env("PATH", path);
    for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME"] {
        program.env(name, &home);
    }
    program
}

fn said(ground: &Ground, words: &[&str]) -> Said {
    Said::of(&at_cluster(ground, words).output().unwrap())
}

const RUN: [&str; 4] = ["run", "study.toml", "--clients", "kubernetes:meter"];

fn two_storage_classes_are_two_levels_of_one_factor() {
    let (ground, server) = with_cluster(&[]);
    let run = said(&ground, &RUN);
    // The volumes of this class stay, and must be told: they may cost money.
    run.ended(0)
        .err_has("the volume pvc-of-cheap stays")
        .err_has("kubectl delete persistentvolume pvc-of-cheap");
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 2 * 3);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
    let facts = log[0]["environment"].as_array().unwrap();
    let fact = |name: &str| facts.iter().find(|fact| fact["name"] == name).unwrap();
    let volume = fact("volume of fast")["value"].as_str().unwrap();
    assert!(volume.starts_with("pvc-of-fast, 67108864 at "), "{volume}");
    assert!(volume.ends_with("made by fast.csi.example"), "{volume}");
    assert_eq!(fact("node of the pod")["value"], "node-one");
    assert_eq!(server.made(), [""; 0], "something is left in the cluster");
    assert_eq!(
        server.changes()[0].split('?').next(),
        Some("POST /apis/batch/v1/namespaces/default/jobs")
    );
}

fn a_volume_that_is_never_made_ends_with_what_the_cluster_says() {
    let (ground, server) = with_cluster(&[("\"cheap\"", "\"slow\"")]);
    said(&ground, &RUN)
        .ended(4)
        .err_has("no volume of the storage class slow in 1 s")
        .err_has("ProvisioningFailed: the pool is full")
        .err_has("kubectl describe storageclass slow");
    assert_eq!(server.made(), [""; 0], "something is left in the cluster");
}

fn a_class_is_refused_before_anything_is_made() {
    let (ground, server) = with_cluster(&[("\"cheap\"", "\"chaep\"")]);
    said(&ground, &RUN)
        .ended(3)
        .err_has("no storage class chaep: it has fast, cheap, slow");
    for elsewhere in [&RUN[..2], &["plan", "study.toml", "--clients", "ssh:one"]] {
        said(&ground, elsewhere)
            .ended(2)
            .err_has("only a Kubernetes cluster makes those")
            .err_has("--clients kubernetes:meter");
    }
    assert_eq!(server.changes(), [""; 0]);
}

fn what_a_killed_run_left_in_a_cluster_is_deleted_by_its_labels() {
    let (ground, server) = with_cluster(&[("100 ms", "60 s")]);
    let mut running = at_cluster(&ground, &RUN)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| !of_kind(&log(&ground), "round-started").is_empty());
    // A run that goes on keeps its Job.
    let clean = ["clean", "--clients", "kubernetes:meter"];
    let kept = said(&ground, &clean);
    assert!(
        kept.out.contains("left alone: the Job meter"),
        "{}{}",
        kept.out,
        kept.err
    );
    running.kill().unwrap();
    running.wait().unwrap();
    let all = server.made();
    assert_eq!(all.len(), 4, "{all:?}");
    said(&ground, &RUN)
        .ended(3)
        .err_has("stackrace clean --clients kubernetes:meter");
    let listed = said(&ground, &[&clean[..], &["--list"]].concat());
    listed.ended(0);
    assert!(
        listed.out.contains("would delete: job.batch/meter"),
        "{}",
        listed.out
    );
    assert_eq!(server.made(), all);
    // The worker there notices after a while that nothing asks it any more.
    until(|| said(&ground, &clean).code == Some(0));
    assert_eq!(server.made(), [""; 0], "something is left in the cluster");
}

fn a_job_that_the_user_made_is_looked_at_used_and_stays() {
    let (ground, server) = with_cluster(&[]);
    let planned = said(&ground, &[&["plan", "--json"], &RUN[1..]].concat());
    let plan: Value = serde_json::from_str(&planned.ended(0).out).unwrap();
    let manifest = plan["kubernetes_manifest"].as_str().unwrap();
    let manifest = ground.write("job.yaml", manifest);
    let kubectl = ground.path().join("bin/kubectl");
    let file = format!("--filename={}", manifest.display());
    tool(kubectl.to_str().unwrap(), &["create", &file]);
    let all = server.made();
    said(&ground, &RUN)
        .ended(0)
        .err_has("the Job meter is yours, and stays");
    // What has no label of a run is never deleted.
    let clean = ["clean", "--clients", "kubernetes:meter"];
    said(&ground, &clean).ended(0);
    assert_eq!(server.made(), all);
    let study = fs::read_to_string(ground.path().join("study.toml")).unwrap();
    ground.write("study.toml", study.replace("\"cheap\"", "\"slow\""));
    said(&ground, &RUN)
        .ended(3)
        .err_has("has no volume of a storage class there");
    assert_eq!(server.made(), all);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        two_storage_classes_are_two_levels_of_one_factor,
        a_volume_that_is_never_made_ends_with_what_the_cluster_says,
        a_class_is_refused_before_anything_is_made,
        what_a_killed_run_left_in_a_cluster_is_deleted_by_its_labels,
        a_job_that_the_user_made_is_looked_at_used_and_stays,
    ]
}
