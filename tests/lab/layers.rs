//! Layers that need disks of the lab: arrays, volumes, pools.

use super::*;

/// Runs a study in the lab: each configuration must be raised, described, used and lowered.
pub(crate) fn every_configuration(study: &str, memory: &str, described: &[&str]) {
    let ground = Ground::new();
    ground.write("study.toml", study);
    let said = ground.stackrace(&[
        "run",
        "study.toml",
        "--lab",
        "--system",
        &system(),
        "--memory",
        memory,
    ]);
    let log = log(&ground);
    for trial in of_kind(&log, "trial") {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let configurations = log[0]["configurations"].as_array().unwrap().len();
    let workloads = log[0]["workloads"].as_array().unwrap().len();
    let rounds = of_kind(&log, "round-finished").len();
    assert!(rounds > 0);
    for (kind, count) in [
        ("stack-set-up", configurations * rounds),
        ("stack-torn-down", configurations * rounds),
        ("trial", configurations * workloads * rounds),
    ] {
        assert_eq!(of_kind(&log, kind).len(), count, "{kind}");
    }
    let raised: Vec<String> = of_kind(&log, "stack-set-up")
        .iter()
        .map(|event| event.to_string())
        .collect();
    for words in described {
        assert!(raised.iter().any(|one| one.contains(words)), "{words}");
    }
    assert_eq!(ground.left(), Vec::<String>::new());
}

pub(crate) fn arrays_volumes_and_f2fs_stand_on_disks_of_the_lab() {
    cache("image");
    every_configuration(ARRAYS, "512 MiB", &["raid10", "thin-pool", "extra_attr"]);
}

/// By both clocks: on emulated disks, and on modelled ones.
pub(crate) fn what_people_put_on_their_disks_stands_in_the_lab() {
    cache("image");
    let words = [
        "LUKS2",
        "LUKS1",
        "no_write_workqueue",
        "\"sector size\",\"value\":\"4 KiB\"",
        "high watermark",
        "\"category.create\",\"value\":\"mfs\"",
        "redirect_dir=on",
        "\"flushes\",\"value\":\"ignored\"",
        "mq-deadline",
        "vm.dirty_bytes",
        "times the capacity",
        "squashfs",
        "erofs",
    ];
    every_configuration(WANTED, "512 MiB", &words);
    let modelled = WANTED.replace(
        "lab-disks = { size",
        "lab-disks = { model = \"seagate-st3000dm001\", size",
    );
    every_configuration(&modelled, "512 MiB", &words);
}

pub(crate) fn bcachefs_stands_on_disks_of_the_lab() {
    if system() == "debian-12" {
        needs::skip("the kernel of Debian 12 has no bcachefs");
    }
    cache("image");
    let words = ["\"data_replicas\",\"value\":\"2\"", "xxhash", "lz4"];
    every_configuration(BCACHEFS, "512 MiB", &words);
}

pub(crate) fn pools_datasets_and_volumes_of_zfs_stand_on_disks_of_the_lab() {
    cache("zfs");
    every_configuration(
        POOLS,
        "1280 MiB",
        &["raidz3", "draid2", "gzip-9", "special"],
    );
}

pub(crate) fn a_mirror_becomes_a_raidz1_and_a_disk_is_replaced() {
    cache("zfs");
    every_configuration(MIGRATION, "1280 MiB", &["bare"]);
}

pub(crate) fn zfs_pools_of_every_layout_can_be_made_by_hand() {
    cache("zfs");
    let ground = Ground::new();
    let script = "set -e; modprobe zfs; disks=$(grep -l disk- /sys/block/*/serial | cut -d/ -f4); \
        set -- $disks; \
        for layout in \"\" mirror raidz; do \
        zpool create -f -o ashift=12 pool $layout /dev/$1 /dev/$2 /dev/$3; \
        dd if=/dev/urandom of=/pool/file bs=1M count=8 2>/dev/null; zpool scrub -w pool; \
        zpool status -x pool; zpool destroy pool; done";
    let disk = ["--disk", "256 MiB"];
    let mut command = ground.program(&[]);
    command
        .args(["lab", "shell", "--system", &system()])
        .args(disk)
        .args(disk)
        .args(disk);
    let said = Said::of(&command.args(["--", "sh", "-c", script]).output().unwrap());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(said.out.matches("is healthy").count(), 3, "{}", said.out);
}
