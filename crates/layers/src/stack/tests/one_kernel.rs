//! Stacks whose two machines are in one kernel, as in virtual time.

use super::survive_on;
use crate::stack::testing::{site, stack};
use crate::stack::{ALL, imagined};
use stackrace_machine::host::plan::Fault;
use stackrace_machine::host::{Host, LabDisk};
use stackrace_machine::journal::Journal;
use std::collections::BTreeSet;
use std::path::Path;

const DISK: &str = "lab-disks = { model = \"hitachi-hds721010kla330\", size = \"1 GiB\" }";

/// The steps of a stack from its first command to its last; nothing is left of it.
fn steps(lines: &[&str]) -> Vec<String> {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let host = imagined(Fault::Never).in_one_kernel();
    let journal = Journal::nowhere();
    let site = site(&host, &journal, &scratch);
    let standing = stack(lines).set_up(&site).unwrap();
    standing.settle(&site, true, true).unwrap();
    standing.tear_down(&site).unwrap();
    assert_eq!(host.left(), Vec::<String>::new());
    let steps = host.steps();
    steps.iter().map(|step| step.shown()).collect()
}

#[track_caller]
fn assert_in_order(steps: &[String], expected: &[&str]) {
    let mut rest = steps.iter();
    for words in expected {
        assert!(
            rest.any(|step| step.starts_with(words)),
            "{words} does not follow in\n{}",
            steps.join("\n")
        );
    }
}

#[test]
fn both_ends_of_drbd_are_devices_of_their_own_on_the_loopback_device() {
    let drbd = "drbd = { protocol = \"B\", rate = \"112 MB\", delay = \"0.06 ms\" }";
    let steps = steps(&[DISK, drbd, "ext3 = {}"]);
    assert_in_order(
        &steps,
        &[
            "ip address add 127.0.0.2/8 dev lo",
            "echo 1500 '>' /sys/class/net/lo/mtu",
            "tc qdisc add dev {card} parent 5ac7:2 netem limit 100000 delay 60us rate 112000000bps",
            "tc filter add dev {card} parent 5ac7: protocol ip u32 match ip dst 127.0.0.2",
            "tc qdisc add dev {card} parent 5ac7:3 netem limit 100000 delay 60us rate 112000000bps",
            "tc filter add dev {card} parent 5ac7: protocol ip u32 match ip dst 127.0.0.1",
            "mkfs.ext3",
            "node2: drbdsetup down stackrace-r1-t0-{id}-drbd-2",
            "drbdsetup down stackrace-r1-t0-{id}-drbd",
            "ip address delete 127.0.0.2/8 dev lo",
        ],
    );
    // A file of its own for each end, with the same two sections and another name.
    let files: BTreeSet<&str> = steps
        .iter()
        .filter(|step| step.contains("drbdadm"))
        .map(|step| step.rsplit(' ').next().unwrap())
        .collect();
    let expected = ["stackrace-r1-t0-{id}-drbd", "stackrace-r1-t0-{id}-drbd-2"];
    assert_eq!(files, BTreeSet::from(expected));
    let written = |words: &str| steps.iter().any(|step| step.contains(words));
    assert!(written("/dev/drbd0") && written("mkfs.ext3"), "{steps:#?}");
    assert!(!written("ip netns"), "DRBD sends in the kernel's network");
}

#[test]
fn a_share_is_served_in_a_network_that_is_made_for_it() {
    for share in ["nfs = { delay = \"1 ms\" }", "smb = {}", "afp = {}"] {
        let steps = steps(&[DISK, "ext4 = {}", share]);
        assert_in_order(
            &steps,
            &[
                "node2: mkfs.ext4",
                "ip netns add node2",
                "ip link add node2 type veth peer name node1 netns node2",
                "ip address add 10.77.0.1/24 dev node2",
                "ip link set node2 up",
                "node2: ip link set lo up",
                "node2: ip address add 10.77.0.2/24 dev node1",
                "node2: ip link set node1 up",
                "umount",
                "ip netns delete node2",
            ],
        );
    }
}

#[test]
fn a_server_on_the_same_machine_needs_no_second_one() {
    let steps = steps(&[DISK, "ext4 = {}", "nfs = { server = \"same\" }"]);
    let apart = |step: &&String| step.starts_with("node2: ") || step.contains("netns");
    assert_eq!(steps.iter().find(apart), None);
}

/// The steps by which a stack is brought back after a power cut, on machines that were started since.
fn steps_back(lines: &[&str]) -> Vec<String> {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let (before, journal) = (imagined(Fault::Never).in_one_kernel(), Journal::nowhere());
    let stack = stack(lines);
    assert!(stack.lost_with_power().is_none(), "{lines:?}");
    let standing = stack.set_up(&site(&before, &journal, &scratch)).unwrap();
    let mark = standing.mark().to_owned();
    let host = imagined(Fault::Never).in_one_kernel();
    // The imagined driver does not copy what is written.
    let host = host
        .instead_of(&before)
        .with_copy("/dev/drbd0", "/dev/drbd1");
    let site = site(&host, &journal, &scratch);
    let mut repairs = Vec::new();
    let back = stack.bring_back(&site, &mark, &mut repairs).unwrap();
    assert_eq!(repairs, [""; 0]);
    back.tear_down(&site).unwrap();
    let mut left = host.left();
    left.retain(|line| !line.contains("/dev/drbd"));
    assert_eq!(left, Vec::<String>::new());
    let steps: Vec<String> = host.steps().iter().map(|step| step.shown()).collect();
    let made = |step: &&String| step.contains("mkfs") || step.contains("create-md");
    assert_eq!(steps.iter().find(made), None, "what was there is kept");
    steps
}

#[test]
fn after_a_power_cut_the_machines_that_are_asked_for_come_back() {
    let back = |word: &str| {
        let drbd = format!("drbd = {{ protocol = \"A\", after-cut = \"{word}\" }}");
        steps_back(&[DISK, &drbd, "ext3 = {}"])
    };
    let (both, this, peer) = (back("both"), back("this"), back("peer"));
    let has = |steps: &[String], begin: &str, end: &str| {
        let mut steps = steps.iter();
        steps.any(|step| step.starts_with(begin) && step.ends_with(end))
    };
    let up = |steps: &[String]| {
        [("drbdadm", "drbd"), ("node2: drbdadm", "drbd-2")].map(|(tool, resource)| {
            let resource = format!("stackrace-r1-t0-{{id}}-{resource}");
            ["up", "primary"].map(|verb| has(steps, tool, &format!("{verb} {resource}")))
        })
    };
    // Up and primary, of this machine and of the peer.
    assert_eq!(up(&both), [[true, true], [true, false]], "{both:#?}");
    assert_eq!(up(&this), [[true, true], [false, false]], "{this:#?}");
    assert_eq!(up(&peer), [[false, false], [true, true]], "{peer:#?}");
    assert!(has(&this, "mount -t ext3 /dev/drbd0", ""));
    assert!(has(&peer, "mount -t ext3 /dev/drbd1", ""));
}

#[test]
fn a_guest_forgets_the_drives_of_the_cut_before_where_a_file_system_has_several() {
    let disks = "lab-disks = { model = \"seagate-st3000dm001\", size = \"1 GiB\", count = 2 }";
    let mount = "mount -t btrfs -o ";
    let steps = steps_back(&[disks, "btrfs = { profile = \"raid1\" }"]);
    assert_in_order(&steps, &["btrfs device scan --forget", mount]);
    // One is found by its own name.
    let alone = steps_back(&[&disks.replace("count = 2", "count = 1"), "btrfs = {}"]);
    assert!(
        !alone.iter().any(|step| step.contains("--forget")),
        "{alone:#?}"
    );
}

#[test]
fn after_a_power_cut_a_share_is_served_again_from_what_came_back() {
    let steps = steps_back(&[DISK, "ext4 = {}", "nfs = { export = \"async\" }"]);
    assert_in_order(
        &steps,
        &[
            "node2: mount -t ext4",
            "node2: rpc.nfsd",
            "node2: exportfs -o rw,async",
            "mount -t nfs4",
        ],
    );
}

#[test]
fn what_needs_two_kernels_says_so() {
    let why = |lines: &[&str]| stack(lines).apart().unwrap_or_default();
    let dual = "drbd = { role = \"dual\" }";
    let words = "gfs2 with lock = \"dlm\" needs two kernels";
    assert!(why(&[DISK, dual, "gfs2 = { lock = \"dlm\" }"]).starts_with(words));
    let three = why(&[DISK, "drbd = {}", "ext3 = {}", "nfs = {}"]);
    assert!(three.contains("needs 3 machines"), "{three}");
    for lines in [
        &[DISK, "drbd = {}", "gfs2 = {}"][..],
        &[DISK, "ext4 = {}", "afp = {}"],
        &[DISK, "ext4 = {}"],
    ] {
        assert_eq!(why(lines), "", "{lines:?}");
    }
}

#[test]
fn whatever_step_fails_in_one_kernel_nothing_is_left() {
    let shapes = ALL.iter().flat_map(|kind| kind.shapes);
    let fits = |lines: &&&[&str]| {
        let shape = stack(lines);
        shape.nodes() == 2 && shape.apart().is_none()
    };
    let mut tried = 0;
    for shape in shapes.filter(fits) {
        for fault in [Fault::Refused, Fault::DiedBefore, Fault::DiedAfter] {
            let met = |at: &usize| {
                let fault = fault(*at);
                survive_on(imagined(fault).in_one_kernel(), shape, fault)
            };
            tried += (1..1000).take_while(met).count();
        }
    }
    assert!(tried > 300, "{tried}");
}

/// Disks of two machines are alike and do not turn in step.
#[test]
fn each_machine_has_its_own_modelled_disks() {
    let disks = stack(&[DISK, "drbd = {}", "ext3 = {}"]).lab_disks();
    let [
        LabDisk {
            model: Some(model), ..
        },
    ] = &disks[..]
    else {
        panic!("{disks:?}");
    };
    assert_eq!(model.card.words(), "hitachi-hds721010kla330");
    let host = imagined(Fault::Never).in_one_kernel();
    assert!(host.peer(2).unwrap().shares_kernel());
    assert!(!host.shares_kernel());
    // The plan says of each machine what stands there.
    let base = tempfile::tempdir().unwrap();
    let scratch: &Path = &base.path().canonicalize().unwrap();
    let journal = Journal::nowhere();
    let site = site(&host, &journal, scratch);
    let standing = stack(&[DISK, "drbd = {}", "ext3 = {}"])
        .set_up(&site)
        .unwrap();
    let layers: Vec<&str> = standing.facts().iter().map(|l| l.layer.as_str()).collect();
    assert_eq!(layers, ["lab-disks", "lab-disks on node2", "drbd", "ext3"]);
    standing.tear_down(&site).unwrap();
}
