//! The whole room: common rules of the list, composition, the plan, every failure, the real thing.

use super::testing::{layer, site, stack};
use super::*;
use stackrace_foundation::foundation::{
    Device, ON_A_DISK, ON_TWO_DISKS, Origin, TriedStack, filesystem,
};
use stackrace_machine::host::Host;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::plan::{Fault, PlanHost};
use stackrace_machine::journal::Journal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn why_not(lines: &[&str]) -> (usize, String) {
    Stack::new(lines.iter().map(|line| layer(line)).collect())
        .err()
        .unwrap()
}

#[test]
fn the_list_keeps_its_rules() {
    assert!(ALL.is_sorted_by_key(|kind| kind.name));
    for kind in ALL {
        let layer = layer(kind.example);
        assert_eq!(layer.kind(), kind.name);
        assert!(kind.summary.ends_with('.'), "{}", kind.name);
        assert!(!layer.describe_asked().is_empty());
        assert_eq!(layer.gives(), kind.gives);
        assert_eq!(
            layer.devices_given().is_some(),
            kind.gives == GivesKind::Devices
        );
        match (kind.takes, layer.takes()) {
            (Takes::Nothing, Takes::Nothing)
            | (Takes::Directory, Takes::Directory)
            | (Takes::Anything, Takes::Anything)
            | (Takes::Pool, Takes::Pool) => {}
            (Takes::Devices { min, max }, Takes::Devices { min: a, max: b }) => {
                assert!(min <= a && b <= max, "{}", kind.name);
            }
            other => panic!("{}: {other:?}", kind.name),
        }
        for doc in kind.settings {
            assert!(doc.doc.ends_with('.'), "{} {}", kind.name, doc.name);
        }
    }
}

#[test]
fn what_does_not_fit_is_said_in_words() {
    let four = "loop = { size = \"1 GiB\", count = 4 }";
    assert_eq!(
        why_not(&[four, "xfs = {}"]),
        (
            1,
            "xfs takes one device; the layer below (loop, count = 4) gives 4".to_string()
        )
    );
    assert_eq!(
        why_not(&["loop = { size = \"1 GiB\", count = 2 }", "btrfs = { profile = \"raid10\" }"]),
        (
            1,
            "btrfs, profile = raid10 takes at least 4 devices, at most 64; the layer below (loop, count = 2) gives 2".to_string()
        )
    );
    assert_eq!(
        why_not(&["ext4 = {}"]),
        (
            0,
            "ext4 takes one device; there is no layer below: put it on loop".to_string()
        )
    );
    assert_eq!(
        why_not(&["dir = { path = \"/srv\" }", "ext4 = {}"]),
        (
            1,
            "ext4 takes one device; the layer below (dir) gives a directory".to_string()
        )
    );
    assert_eq!(
        why_not(&["tmpfs = { size = \"1 MiB\" }", four]),
        (
            1,
            "loop stands at the bottom; it cannot be put on tmpfs".to_string()
        )
    );
    assert_eq!(
        why_not(&[four]),
        (
            0,
            "the top layer (loop, count = 4) gives devices, and a workload needs a directory: put a file system on it".to_string()
        )
    );
    assert_eq!(
        why_not(&[four, "zpool = {}"]),
        (
            1,
            "the top layer (zpool, topology = stripe) gives a pool, and a workload needs a directory: put a dataset on it".to_string()
        )
    );
    assert_eq!(
        why_not(&[four, "dataset = {}"]),
        (
            1,
            "dataset takes a pool; the layer below (loop, count = 4) gives devices".to_string()
        )
    );
    assert_eq!(
        why_not(&["zvol = { size = \"1 GiB\" }"]),
        (
            0,
            "zvol takes a pool; there is no layer below: put it on zpool".to_string()
        )
    );
    assert!(why_not(&[]).1.starts_with("a stack has at least one layer"));
}

/// A client, a server and the server's own peer: each command is on the machine it is meant for.
#[test]
fn what_a_peer_serves_may_be_replicated_to_a_third_machine() {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let host = imagined(Fault::Never);
    let journal = Journal::nowhere();
    let site = site(&host, &journal, &scratch);
    let disk = "lab-disks = { size = \"1 GiB\" }";
    let shape = stack(&[
        disk,
        "drbd = { delay = \"1 ms\" }",
        "ext3 = {}",
        "nfs = { delay = \"2 ms\" }",
    ]);
    assert_eq!(shape.nodes(), 3);
    assert_eq!(stack(&[disk, "ext3 = {}", "nfs = {}"]).nodes(), 2);
    let standing = shape.set_up(&site).unwrap();
    let layers: Vec<&str> = standing.facts().iter().map(|l| l.layer.as_str()).collect();
    let on = ["lab-disks on node2", "lab-disks on node3", "drbd on node2"];
    assert_eq!(layers[..3], on);
    assert_eq!(layers[3..], ["ext3 on node2", "nfs"]);
    assert_eq!(standing.devices(), [""; 0], "node1 has none of them");
    let steps: Vec<String> = host.steps().iter().map(|step| step.shown()).collect();
    let at = |words: &str| steps.iter().position(|step| step.contains(words)).unwrap();
    assert!(steps[at("mkfs.ext3")].starts_with("node2: "));
    assert!(steps[at("exportfs -o")].starts_with("node2: "));
    assert!(steps[at("mount -t nfs4")].starts_with("mount -t nfs4"));
    // The server's card leads to both others, at a delay of its own each.
    let slowed = |node: &str, class: &str, delay: &str| {
        let words = format!("{node}tc qdisc add dev {{card}} parent 5ac7:{class} netem");
        steps
            .iter()
            .any(|step| step.starts_with(&words) && step.ends_with(delay))
    };
    assert!(slowed("node2: ", "2", "1000us") && slowed("node3: ", "2", "1000us"));
    assert!(slowed("node2: ", "3", "2000us") && slowed("", "2", "2000us"));
    standing.tear_down(&site).unwrap();
    assert_eq!(host.left(), Vec::<String>::new());
}

/// Each machine is asked for what it does, and no daemon is looked for where none is started.
#[test]
fn what_is_needed_is_needed_where_it_is_used() {
    let disk = "loop = { size = \"1 GiB\" }";
    let needs = |lines: &[&str]| {
        let needs = stack(lines).needs().into_iter();
        let brief = needs.map(|(layer, node, needs)| {
            let daemons = needs.daemons.iter().map(|daemon| daemon.program);
            (layer, node, daemons.collect::<Vec<_>>().join(" "))
        });
        brief.collect::<Vec<_>>()
    };
    let need = |layer, node, daemons: &str| (layer, node, daemons.to_string());
    assert_eq!(
        needs(&[disk, "xfs = {}", "smb = {}"]),
        [
            need(0, 2, ""),
            need(1, 2, ""),
            need(2, 1, ""),
            need(2, 2, "smbd")
        ]
    );
    assert_eq!(
        needs(&[disk, "xfs = {}", "nfs = { server = \"same\" }"])[2..],
        [need(2, 1, ""), need(2, 1, "nfsd rpc.mountd")]
    );
    let cluster = "corosync dlm_controld";
    assert_eq!(
        needs(&[
            disk,
            "drbd = { role = \"dual\" }",
            "gfs2 = { lock = \"dlm\" }"
        ]),
        [
            need(0, 1, ""),
            need(0, 2, ""),
            need(1, 1, ""),
            need(1, 2, ""),
            need(2, 1, cluster),
            need(2, 2, cluster)
        ]
    );
}

/// A machine has one server of a kind: a second stack that needs it is refused, and the first stands.
#[test]
fn a_server_that_runs_is_left_alone() {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let host = imagined(Fault::Never);
    let journal = Journal::nowhere();
    let at = || site(&host, &journal, &scratch);
    let site = at();
    let layers = |share| {
        let server = format!("{share} = {{ server = \"same\" }}");
        stack(&["tmpfs = { size = \"1 MiB\" }", &server])
    };
    for (share, program) in [("smb", "smbd"), ("nfs", "nfsd"), ("afp", "netatalk")] {
        let first = layers(share).set_up(&site).unwrap();
        let other = Site {
            tag: "another".to_string(),
            ..at()
        };
        let error = layers(share).set_up(&other).unwrap_err();
        let words = format!("{program} (process {{id}}) runs already, and a machine has one");
        assert!(error.to_string().contains(&words), "{error}");
        assert!(host.running(program).unwrap().is_some());
        assert_eq!(error.left, Vec::<String>::new());
        first.tear_down(&site).unwrap();
        assert_eq!(host.left(), Vec::<String>::new());
    }
}

#[test]
fn what_machines_cannot_be_joined_by_is_said_in_words() {
    let drbd = "drbd = { role = \"dual\" }";
    let disk = "lab-disks = { size = \"1 GiB\" }";
    assert_eq!(
        why_not(&[disk, drbd, drbd, "xfs = {}"]),
        (
            2,
            "drbd and drbd both need a peer: a stack is replicated once, and served by a peer once"
                .to_string()
        )
    );
    assert_eq!(
        why_not(&[disk, "drbd = {}", "gfs2 = { lock = \"dlm\" }"]),
        (
            2,
            "gfs2 with DLM needs a device that both machines write: put it on drbd with role = \"dual\"".to_string()
        )
    );
    let both = "gfs2 = { lock = \"dlm\", mounted-on = 2, load-from = 2 }";
    assert_eq!(
        why_not(&[disk, drbd, both, "nfs = {}"]),
        (
            3,
            "gfs2 with load-from = 2 gives its directory to the workload alone: leave load-from out below nfs".to_string()
        )
    );
    assert_eq!(why_not(&[disk, "ext4 = {}", "nfs = {}", "smb = {}"]).0, 3);
    assert_eq!(
        why_not(&[disk, "nfs = {}"]),
        (
            1,
            "nfs takes a directory; the layer below (lab-disks, count = 1) gives devices"
                .to_string()
        )
    );
}

#[test]
fn a_plan_shows_every_step_in_order() {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let host = imagined(Fault::Never);
    let journal = Journal::nowhere();
    let site = site(&host, &journal, &scratch);
    let stack = stack(&[
        "loop = { size = \"1 GiB\", count = 2, logical-sector = 4096 }",
        "btrfs = { profile = \"raid1\", compression = \"zstd\", mount = [\"noatime\"] }",
    ]);
    let standing = stack.set_up(&site).unwrap();
    let settled = standing.settle(&site, true, true).unwrap();
    assert!(settled.remounted);
    assert_eq!(settled.caches, "drop_caches");
    assert_eq!(standing.devices()[..2], ["{loop 1}", "{loop 2}"]);
    standing.tear_down(&site).unwrap();
    let at = scratch.display().to_string();
    let steps: Vec<String> = host
        .steps()
        .iter()
        .map(|step| step.shown().replace(&at, ""))
        .collect();
    let mount = "mount -t btrfs -o 'noatime,compress=zstd,device={loop 2}' '{loop 1}' /.stackrace-r1-t0-{id}-mnt";
    assert_eq!(
        steps,
        [
            "mkdir /.stackrace-r1-t0-{id}-disks",
            "fallocate --length 1073741824 /.stackrace-r1-t0-{id}-disks/disk-1",
            "losetup --find --show --direct-io=on --sector-size 4096 /.stackrace-r1-t0-{id}-disks/disk-1",
            "fallocate --length 1073741824 /.stackrace-r1-t0-{id}-disks/disk-2",
            "losetup --find --show --direct-io=on --sector-size 4096 /.stackrace-r1-t0-{id}-disks/disk-2",
            "wipefs --no-act --noheadings --output TYPE '{loop 1}'",
            "wipefs --no-act --noheadings --output TYPE '{loop 2}'",
            "mkfs.btrfs --nodiscard --data raid1 --metadata raid1 '{loop 1}' '{loop 2}'",
            "mkdir /.stackrace-r1-t0-{id}-mnt",
            mount,
            "btrfs device stats /.stackrace-r1-t0-{id}-mnt",
            "btrfs filesystem df -b /.stackrace-r1-t0-{id}-mnt",
            "btrfs filesystem usage -b /.stackrace-r1-t0-{id}-mnt",
            "mkdir /.stackrace-r1-t0-{id}-mnt/work",
            "sync --file-system /.stackrace-r1-t0-{id}-mnt/work",
            "umount /.stackrace-r1-t0-{id}-mnt",
            "sync --file-system ",
            "echo 3 '>' /proc/sys/vm/drop_caches",
            mount,
            "umount /.stackrace-r1-t0-{id}-mnt",
            "rmdir /.stackrace-r1-t0-{id}-mnt",
            "losetup --associated /.stackrace-r1-t0-{id}-disks/disk-2 --noheadings --output NAME",
            "losetup --detach '{loop 2}'",
            "losetup --associated /.stackrace-r1-t0-{id}-disks/disk-2 --noheadings --output NAME",
            "rm /.stackrace-r1-t0-{id}-disks/disk-2",
            "losetup --associated /.stackrace-r1-t0-{id}-disks/disk-1 --noheadings --output NAME",
            "losetup --detach '{loop 1}'",
            "losetup --associated /.stackrace-r1-t0-{id}-disks/disk-1 --noheadings --output NAME",
            "rm /.stackrace-r1-t0-{id}-disks/disk-1",
            "rmdir /.stackrace-r1-t0-{id}-disks",
        ]
    );
    assert!(host.left().is_empty());
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}

/// A machine with two blank disks.
fn with_disks(fault: Fault) -> PlanHost {
    let link = |number| PathBuf::from(format!("/dev/disk/by-id/disk-of-test-{number}"));
    imagined(fault)
        .with_disk(&link(1), 1 << 30, "TEST")
        .with_disk(&link(2), 1 << 30, "TEST")
}

/// Sets up, settles, tears down; then, as after a restart, undoes what the journal on the disk names.
/// Returns whether the fault was met.
fn survive(shape: &[&str], fault: Fault) -> bool {
    survive_on(with_disks(fault), shape, fault)
}

fn survive_on(host: PlanHost, shape: &[&str], fault: Fault) -> bool {
    // Thousands of journals, each synced at every step: on a disk this took minutes.
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    };
    let scratch = base.path().canonicalize().unwrap();
    let path = scratch.join("journal.jsonl");
    let journal = Journal::create(&path).unwrap();
    let met = {
        let site = site(&host, &journal, &scratch);
        match stack(shape).set_up(&site) {
            Err(error) => {
                assert!(error.to_string().contains("told to fail here"), "{error}");
                if matches!(fault, Fault::Refused(_)) {
                    // The program is alive: it must have cleaned up by itself.
                    assert_eq!(
                        error.left,
                        Vec::<String>::new(),
                        "{shape:?} {fault:?}: {error}"
                    );
                    assert_eq!(host.left(), Vec::<String>::new(), "{fault:?}");
                    assert!(journal.pending().is_empty());
                }
                true
            }
            Ok(standing) => {
                let settled = standing.settle(&site, true, true);
                let dropped = settled.as_ref().is_ok_and(|s| s.caches == "drop_caches");
                let torn_down = standing.tear_down(&site);
                !dropped || torn_down.is_err()
            }
        }
    };
    drop(journal);
    host.recover();
    let journal = Journal::open(&path).unwrap();
    let report = undo_all(&host, &journal).unwrap();
    assert_eq!(report.failed, [], "{shape:?} {fault:?}");
    assert!(journal.pending().is_empty());
    assert_eq!(host.left(), Vec::<String>::new(), "{shape:?} {fault:?}");
    met
}

#[test]
fn whatever_step_fails_nothing_is_left() {
    let shapes = ALL.iter().flat_map(|kind| kind.shapes);
    for shape in shapes {
        for fault in [Fault::Refused, Fault::DiedBefore, Fault::DiedAfter] {
            assert!(survive(shape, fault(1)), "{shape:?}");
            let tried = (1..1000)
                .take_while(|&at| survive(shape, fault(at)))
                .count();
            // mkdir, sync, drop, remove: no stack has fewer steps.
            assert!((4..300).contains(&tried), "{shape:?}: {tried}");
        }
    }
}

#[test]
fn a_device_that_is_not_ours_is_never_formatted() {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let host = imagined(Fault::Never);
    let file = scratch.join("disk-1");
    host.create_file(&file, 1 << 30, stackrace_machine::host::Filling::Sparse)
        .unwrap();
    let attach = ["losetup", "--find", "--show", &file.to_string_lossy()].map(String::from);
    let device = host.must(&stackrace_machine::host::argv(attach)).unwrap();
    let device = Device {
        path: device.stdout.trim().into(),
        origin: Origin::LoopOn(file),
    };
    let before = host.steps().len();
    let error = filesystem::ours_to_format(&host, &device).unwrap_err();
    assert!(error.to_string().contains("is not ours"), "{error}");
    assert_eq!(host.steps().len(), before);
}

/// Layers that can stand on so many devices, of all kinds: those that give devices again, and those
/// that end a stack.
fn on_devices() -> [Vec<(usize, TriedStack)>; 2] {
    let all = ALL.iter().flat_map(|kind| kind.tried.on_devices).copied();
    let (between, above): (Vec<_>, Vec<_>) = all.partition(|(_, lines)| {
        let top = lines.last().map(|line| layer(line));
        top.is_some_and(|top| top.gives() == GivesKind::Devices)
    });
    [between, above]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    /// Any legal stack, killed anywhere: nothing is left.
    #[test]
    fn any_stack_that_fails_anywhere_leaves_nothing(
        loops in 0..6_usize,
        between in proptest::collection::vec(proptest::prelude::any::<proptest::sample::Index>(), 0..4),
        above in proptest::prelude::any::<proptest::sample::Index>(),
        fault in 0..3_usize,
        at in 1..250_usize,
    ) {
        let bottom = format!("loop = {{ size = \"1 GiB\", count = {} }}", loops.max(1));
        let bottom = if loops == 0 { ON_TWO_DISKS } else { &bottom };
        let mut given = if loops == 0 { 2 } else { loops };
        let mut shape = vec![bottom];
        let [all_between, all_above] = on_devices();
        for (needed, lines) in between.iter().map(|index| *index.get(&all_between)) {
            let fits = match layer(lines[0]).takes() {
                Takes::Devices { min, max } => (min..=max).contains(&given),
                _ => true,
            };
            if needed <= given && fits && ![lines[0], shape[shape.len() - 1]].iter().all(|line| layer(line).passes_devices_on()) {
                shape.extend(lines);
                given = if layer(lines[0]).passes_devices_on() { given } else { 1 };
            }
        }
        let (needed, lines) = *above.get(&all_above);
        let takes_many = lines[0].starts_with("zpool") || lines[0].starts_with("b");
        if needed <= given && (given == 1 || takes_many) {
            shape.extend(lines);
        } else if given > 1 {
            shape.push("btrfs = {}");
        } else {
            shape.push("ext3 = {}");
        }
        survive(&shape, [Fault::Refused, Fault::DiedBefore, Fault::DiedAfter][fault](at));
    }
}

/// The content of the imagined first disk is wiped by permission alone, and only before the stack.
#[test]
fn a_disk_that_carries_something_is_refused_unless_its_id_is_repeated() {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let disk = Path::new("/dev/disk/by-id/disk-of-test-1");
    let journal = Journal::nowhere();
    let shape = stack(&[ON_A_DISK, "ext4 = {}"]);
    let host = with_disks(Fault::Never).carrying(disk, "xfs", "photos");
    let other = ["disk-of-test-2".to_string()];
    for wipe in [&[] as &[String], &other] {
        let site = Site {
            wipe,
            ..site(&host, &journal, &scratch)
        };
        let error = shape.set_up(&site).unwrap_err();
        let text = "devices: disk-of-test-1 (disk-of-test-1) carries xfs";
        assert_eq!(error.to_string(), text);
        assert!(error.next().ends_with("--wipe disk-of-test-1"));
        assert!(host.left().iter().any(|left| left.contains("photos")));
    }
    let dangers = shape.dangers(&Inspection::new(&host, &[]));
    assert!(
        matches!(&dangers[..], [Danger::Refused(_), Danger::Lost(what)] if what == "on disk-of-test-1: xfs")
    );
    let allowed = ["disk-of-test-1".to_string()];
    assert_eq!(shape.dangers(&Inspection::new(&host, &allowed)).len(), 1);
    let site = Site {
        wipe: &allowed,
        ..site(&host, &journal, &scratch)
    };
    shape.set_up(&site).unwrap().tear_down(&site).unwrap();
    assert_eq!(host.left(), Vec::<String>::new());
}

/// After a crash its owner has put the disk to use: `clean` leaves it alone and says so.
#[test]
fn what_is_not_ours_any_more_is_not_wiped() {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let disk = Path::new("/dev/disk/by-id/disk-of-test-1");
    let journal = Journal::nowhere();
    let host = with_disks(Fault::Never);
    let standing = stack(&[ON_A_DISK, "ext4 = {}"])
        .set_up(&site(&host, &journal, &scratch))
        .unwrap();
    let host = host.carrying(disk, "ext4", "of its owner");
    let error = standing
        .tear_down(&site(&host, &journal, &scratch))
        .unwrap_err();
    assert!(
        error.to_string().contains("does not bear our mark"),
        "{error}"
    );
    assert!(host.left().iter().any(|left| left.contains("of its owner")));
}

#[test]
fn more_than_there_is_room_for_is_refused_with_numbers() {
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let host = imagined(Fault::Never);
    let journal = Journal::nowhere();
    let site = site(&host, &journal, &scratch);
    let stack = stack(&["loop = { size = \"900 TiB\", count = 2 }", "btrfs = {}"]);
    assert_eq!(stack.disk_needed(), [(PathBuf::new(), 1800 << 40)]);
    let error = stack.set_up(&site).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("loop: 2 × 900 TiB = 1.8 PiB are asked for, "),
        "{text}"
    );
    assert!(host.steps().is_empty());
}

#[test]
fn a_directory_that_cannot_be_used_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let host = LocalHost::new(Arc::new(|_| {}));
    let journal = Journal::nowhere();
    let site = site(&host, &journal, base.path());
    let file = base.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let missing = base.path().join("missing");
    for (path, words) in [
        (missing.as_path(), "missing does not exist"),
        (file.as_path(), "file is not a directory"),
        (
            Path::new("/proc"),
            "cannot create directory /proc/.stackrace-",
        ),
    ] {
        let line = format!("dir = {{ path = \"{}\" }}", path.display());
        let error = stack(&[&line]).set_up(&site).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(journal.pending().is_empty());
    }
}
mod described;
mod effects;
mod one_kernel;
mod one_place;
mod refusals;
