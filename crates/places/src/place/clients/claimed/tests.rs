//! Storage classes of a study: what is refused, what a pod must have, and what is told of a volume that is not made.

use super::*;
use crate::place::clients::manifest;
use serde_json::json;
use stackrace_run::prepare::study_file;

fn study(factor: &str, dir: &str) -> Study {
    let text = format!(
        "title = \"t\"\n[factors]\n{factor}\n[[stack]]\ndir = {{ {dir} }}\n[[workload]]\n\
         files = {{ count = 4 }}\n[decide]\nrounds-at-most = 3\n"
    );
    study_file::parse("t.toml", text.as_bytes()).unwrap()
}

const TWO: &str = "class = [\"fast\", \"cheap\"]";
const EACH: &str = "path = \"/mnt/{class}\", storage-class = \"{class}\", claim = \"10 GiB\"";

fn refused(study: &Study, started: Option<&str>) -> String {
    let checked = check(study, started)
        .and_then(|()| ClaimedJob::of(study, started.unwrap_or_default(), false));
    checked.map(drop).unwrap_err().render()
}

#[test]
fn each_class_gets_a_volume_of_its_own_in_one_pod() {
    let options = ClientsOptions {
        started: Some("kubernetes:meter"),
        ..ClientsOptions::default()
    };
    let job = manifest(&mut study(TWO, EACH), options).unwrap().unwrap();
    assert!(job.made_by_run);
    for part in [
        "completions: 1",
        "name: storage-1, mountPath: \"/mnt/fast\"",
        "name: storage-2, mountPath: \"/mnt/cheap\"",
        "storageClassName: \"cheap\"",
    ] {
        assert!(job.text.contains(part), "{part}: {}", job.text);
    }
}

#[test]
fn a_class_is_refused_where_no_cluster_makes_volumes() {
    for elsewhere in [None, Some("ssh:a,b"), Some("srun")] {
        let said = refused(&study(TWO, EACH), elsewhere);
        assert!(
            said.contains("fast is a volume of a storage class"),
            "{said}"
        );
        assert!(said.contains("--clients kubernetes:meter"), "{said}");
    }
    assert!(check(&study(TWO, "path = \"/srv/{class}\""), None).is_ok());
}

#[test]
fn volumes_that_one_pod_cannot_have_are_refused() {
    let job = Some("kubernetes:meter");
    let one_path = EACH.replace("/mnt/{class}", "/mnt/x");
    let said = refused(&study(TWO, &one_path), job);
    assert!(said.contains("would both be at /mnt/x"), "{said}");
    let clients = format!("{TWO}\nclients = [1, 2]");
    let said = refused(&study(&clients, EACH), job);
    assert!(said.contains("ReadWriteOnce"), "{said}");
    let said = refused(&study(TWO, EACH), Some("kubernetes:Meter"));
    assert!(said.contains("no such name"), "{said}");
}

fn parsed<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn job() -> ClaimedJob {
    let made = ClaimedJob::of(&study(TWO, EACH), "kubernetes:meter", false);
    made.unwrap().unwrap()
}

/// The pod of the Job; its first volume as a claim of this name.
fn pod(phase: &str) -> Pod {
    parsed(json!({
        "metadata": {"name": "meter-0-x"},
        "spec": {
            "nodeName": "n1",
            "volumes": [
                {"name": "storage-1", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "storage-2", "persistentVolumeClaim": {"claimName": "mine"}}
            ],
            "containers": [{"volumeMounts": [
                {"name": "storage-1", "mountPath": "/mnt/fast"},
                {"name": "storage-2", "mountPath": "/mnt/cheap"}
            ]}]
        },
        "status": {"phase": phase}
    }))
}

fn claim(name: &str, class: &str, phase: &str) -> Claim {
    parsed(json!({
        "metadata": {"name": name},
        "spec": {"storageClassName": class, "volumeName": format!("pv-{name}")},
        "status": {"phase": phase, "capacity": {"storage": "10Gi"}}
    }))
}

#[test]
fn a_claim_that_is_not_bound_is_told_with_what_the_cluster_said_last() {
    let event = |name: &str, reason: &str, at: &str, message: &str| {
        parsed::<ClusterEvent>(json!({
            "involvedObject": {"kind": "PersistentVolumeClaim", "name": name},
            "reason": reason, "message": message, "lastTimestamp": at
        }))
    };
    let events = [
        event(
            "meter-0-x-storage-1",
            "ProvisioningFailed",
            "2026-01-01T00:00:02Z",
            "no room",
        ),
        event(
            "meter-0-x-storage-1",
            "ProvisioningFailed",
            "2026-01-01T00:00:01Z",
            "busy",
        ),
        event(
            "other",
            "ProvisioningFailed",
            "2026-01-01T00:00:03Z",
            "not ours",
        ),
    ];
    let claims = [
        claim("meter-0-x-storage-1", "fast", "Pending"),
        claim("mine", "cheap", "Bound"),
    ];
    let said = job()
        .not_ready(Some(&pod("Pending")), &claims, &events)
        .render();
    for part in [
        "no volume of the storage class fast in 5 min",
        "PersistentVolumeClaim meter-0-x-storage-1: ProvisioningFailed: no room",
        "next: kubectl describe storageclass fast",
        "bound-within",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(
        !said.contains("busy") && !said.contains("not ours"),
        "{said}"
    );
    let said = job().not_ready(None, &[], &[]).render();
    assert!(said.contains("no pod of the Job meter"), "{said}");
    assert!(said.contains("no event that says why"), "{said}");
}

#[test]
fn a_pod_with_a_volume_of_another_class_is_not_measured() {
    let classes: Vec<StorageClass> = parsed(json!([
        {"metadata": {"name": "fast"}, "provisioner": "csi.example", "reclaimPolicy": "Retain"},
    ]));
    let fast = claim("meter-0-x-storage-1", "fast", "Bound");
    let right = [fast, claim("mine", "cheap", "Bound")];
    let granted = job().granted(&pod("Running"), &right, &classes).unwrap();
    let told: Vec<&str> = granted.facts.iter().map(|fact| &*fact.value).collect();
    let of_fast = "pv-meter-0-x-storage-1, 10Gi at /mnt/fast, made by csi.example";
    assert!(told.contains(&of_fast), "{told:?}");
    // The class keeps the volume: it must be told when its claim goes.
    let kept = ("fast".to_owned(), "pv-meter-0-x-storage-1".to_owned());
    assert_eq!(granted.kept, [kept]);
    let slow = [
        claim("meter-0-x-storage-1", "fast", "Bound"),
        claim("mine", "slow", "Bound"),
    ];
    let refused = job().granted(&pod("Running"), &slow, &classes);
    let said = refused.map(drop).unwrap_err().render();
    assert!(said.contains("storage class slow there"), "{said}");
}

#[test]
fn of_many_tries_to_reach_a_cluster_the_reason_alone_is_told() {
    let said = "E1130 13:02:56.5 memcache.go:265] refused\nE1130 13:02:57.1 memcache.go:265] refused\n\
        The connection to the server a:8080 was refused\n";
    let reason = "The connection to the server a:8080 was refused";
    assert_eq!(crate::place::clients::cluster::last_line(said), reason);
}
