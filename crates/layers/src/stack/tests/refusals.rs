//! What a study may not ask of a layer, and where that is said.

use crate::stack::ALL;
use crate::stack::testing::try_layer;
use stackrace_base::setting::written::with_zeros;
use stackrace_foundation::foundation::options::ANY;
use stackrace_foundation::foundation::words::OptionValue;

/// Every line is refused at a place, in these words, with help.
fn assert_refused(lines: &[(&str, &str)]) {
    for (line, words) in stackrace_test_needs::attacks(lines) {
        let refusal = try_layer(line).err().unwrap();
        assert!(
            refusal.message.contains(words),
            "{line}: {}",
            refusal.message
        );
        assert!(!refusal.help.is_empty(), "{line}");
        assert!(refusal.span.is_some(), "{line}");
    }
}

#[test]
fn settings_that_cannot_be_had_are_refused_where_they_stand() {
    assert_refused(&[
        (
            "loop = { size = \"1 GiB\", logical-sector = 512, physical-sector = 4096 }",
            "a loop device always reports its logical sector size (512 B) as its physical one",
        ),
        (
            "loop = { size = \"1 GiB\", logical-sector = 8192 }",
            "no sectors of 8192 bytes",
        ),
        (
            "loop = { size = 1000 }",
            "not a whole number of sectors of 512 B",
        ),
        ("loop = { size = \"1 GiB\", count = 0 }", "0 disks"),
        (
            "ext4 = { mkfs = [\"/dev/sda\"] }",
            "\"/dev/sda\" is no word that a study may give",
        ),
        (
            "ext4 = { mkfs = [\"-J\", \"size=8,device=UUID=1\"] }",
            "\"device=UUID=1\" is no word",
        ),
        ("btrfs = { mkfs = [\"dev/sda\"] }", "\"dev/sda\" is no word"),
        (
            "btrfs = { mount = [\"noatime,device=/dev/sda\"] }",
            "\"device=/dev/sda\" is no word",
        ),
        ("xfs = { mount = [\"bind\"] }", "\"bind\" is no word"),
        (
            "btrfs = { compression = \"lz4\" }",
            "no compression \"lz4\"",
        ),
        ("tmpfs = { size = 0 }", "may fill the memory"),
    ]);
}

#[test]
fn a_volume_of_a_cluster_needs_its_class_its_size_and_a_path_in_a_pod() {
    assert_refused(&[
        (
            "dir = { path = \"/mnt/a\", storage-class = \"fast\" }",
            "does not say how large",
        ),
        (
            "dir = { path = \"/mnt/a\", claim = \"1 GiB\" }",
            "claim goes with storage-class",
        ),
        (
            "dir = { path = \"/mnt/a\", bound-within = \"1 min\" }",
            "bound-within goes with storage-class",
        ),
        (
            "dir = { path = \"mnt\", storage-class = \"fast\", claim = \"1 GiB\" }",
            "an absolute path below /",
        ),
        (
            "dir = { path = \"/\", storage-class = \"fast\", claim = \"1 GiB\" }",
            "an absolute path below /",
        ),
        (
            "dir = { path = \"/mnt/a\", storage-class = \"x: {}\", claim = \"1 GiB\" }",
            "no such name for a storage class",
        ),
    ]);
}

#[test]
fn what_machines_cannot_do_together_is_refused_where_it_stands() {
    assert_refused(&[
        (
            "drbd = { protocol = \"A\", role = \"dual\" }",
            "two primaries need protocol C",
        ),
        (
            "drbd = { role = \"dual\", state = \"resyncing\" }",
            "must be connected",
        ),
        (
            "drbd = { net = [\"max-buffers 1; } disk {\"] }",
            "\"1; } disk {\" is no value",
        ),
        (
            "drbd = { net = [\"allow-two-primaries yes\"] }",
            "\"allow-two-primaries\" is no word",
        ),
        ("drbd = { rate = 0 }", "nothing would pass"),
        ("drbd = { cut = \"line\" }", "nothing can be lost"),
        (
            "gfs2 = { mounted-on = 2 }",
            "cannot be mounted on 2 machines",
        ),
        (
            "nfs = { server = \"same\", delay = \"1 ms\" }",
            "no line between a server and a client on the same machine",
        ),
        (
            "smb = { options = [\"path = /etc\"] }",
            "\"path\" is no word",
        ),
        (
            "smb = { options = [\"strict sync = no\", \"HostsAllow = ALL\"] }",
            "\"HostsAllow\" is no word that a study may give to a share of Samba",
        ),
        (
            "afp = { options = [\"vol dbpath = x\"] }",
            "\"vol dbpath\" is no word",
        ),
        (
            "afp = { cnid-rate = \"4 MB\" }",
            "has no meaning with cnid = \"volume\"",
        ),
        (
            "afp = { cnid = \"disk\", cnid-size = 1000 }",
            "not a whole number of sectors of 512 B",
        ),
        (
            "afp = { cnid = \"tmpfs\", cnid-size = 0 }",
            "may fill the memory",
        ),
    ]);
}

#[test]
fn devices_and_what_is_put_together_of_them_are_refused_where_they_stand() {
    assert_refused(&[
        (
            "devices = { ids = \"/dev/sda\", size = \"1 TB\", model = \"X\" }",
            "\"/dev/sda\" is not a lasting id",
        ),
        (
            "devices = { ids = [\"a\", \"a\"], size = \"1 TB\", model = \"X\" }",
            "a is named twice",
        ),
        (
            "devices = { ids = [\"a\", \"b\", \"c\"], size = [\"1 TB\", \"2 TB\"], model = \"X\" }",
            "size is given 2 times for 3 disks",
        ),
        (
            "devices = { ids = \"a\", size = 512, model = \"X\" }",
            "\"512\" is no size of a disk",
        ),
        ("zpool = { ashift = 8 }", "ashift cannot be 8"),
        (
            "drbd = { delay = \"1500 ns\" }",
            "a line is slowed down by whole microseconds",
        ),
        (
            "zpool = { arc-max = \"8 MiB\" }",
            "cannot be limited to 8 MiB",
        ),
        (
            "zpool = { properties = [\"cachefile=/x\"] }",
            "\"cachefile=/x\" is no word",
        ),
        (
            "dataset = { compression = \"lzo\" }",
            "ZFS has no compression \"lzo\"",
        ),
        (
            "dataset = { recordsize = \"100 KiB\" }",
            "recordsize cannot be 102400 B",
        ),
        ("dataset = { properties = [\"copies\"] }", "is no value"),
        (
            "zvol = { size = 1000 }",
            "not a whole number of blocks of 128 KiB",
        ),
        (
            "md = { raid = 0, degraded = true }",
            "does not work with a member missing",
        ),
        (
            "md = { raid = 1, chunk = \"64 KiB\" }",
            "RAID 1 has no chunks",
        ),
        (
            "md = { raid = 5, layout = \"f2\" }",
            "RAID 5 has no layout \"f2\"",
        ),
        (
            "lvm = { stripes = 2 }",
            "stripes has no meaning for a linear volume",
        ),
        (
            "lvm = { kind = \"striped\", stripes = 1 }",
            "1 stripes are not possible",
        ),
        (
            "bcachefs = { replicas = 5 }",
            "replicas must be between 1 and 4, not 5",
        ),
    ]);
}

/// Words that a study from anywhere might try: each of these would name a file or another device,
/// mount or share elsewhere, or run a command, as root.
#[test]
fn words_that_reach_beyond_the_stack_are_refused() {
    for line in stackrace_test_needs::attacks([
        "ext4 = { mkfs = [\"-l\", \"/etc/passwd\"] }",
        "ext4 = { mkfs = [\"-lpasswd\"] }",
        "ext4 = { mkfs = [\"-z\", \"undo\"] }",
        "ext4 = { mkfs = [\"-d\", \"etc\"] }",
        "ext4 = { mkfs = [\"-c\"] }",
        "ext4 = { mkfs = [\"-F\", \"disk\"] }",
        "ext4 = { mkfs = [\"-q\", \"disk\"] }",
        "ext4 = { mkfs = [\"-E\", \"root_owner=0:0,offset=1\"] }",
        "ext3 = { mkfs = [\"-J\", \"device=LABEL=photos\"] }",
        "ext2 = { mkfs = [\"--\", \"disk\"] }",
        "xfs = { mkfs = [\"-p\", \"protofile\"] }",
        "xfs = { mkfs = [\"-c\", \"options=file\"] }",
        "xfs = { mkfs = [\"-d\", \"file=1,name=x,size=1g\"] }",
        "xfs = { mkfs = [\"-l\", \"logdev=sda\"] }",
        "xfs = { mkfs = [\"-r\", \"rtdev=sda\"] }",
        "xfs = { mkfs = [\"-f\"] }",
        "btrfs = { mkfs = [\"--rootdir=etc\"] }",
        "btrfs = { mkfs = [\"-r\", \"etc\"] }",
        "btrfs = { mkfs = [\"-f\", \"sda\"] }",
        "f2fs = { mkfs = [\"-c\", \"sda\"] }",
        "nilfs2 = { mkfs = [\"-f\"] }",
        "bcachefs = { mkfs = [\"--source=etc\"] }",
        "gfs2 = { mkfs = [\"-t\", \"other:cluster\"] }",
        "ext4 = { mount = [\"usrjquota=aquota.user\"] }",
        "ext4 = { mount = [\"journal_path=sda\"] }",
        "ext4 = { mount = [\"X-mount.subdir=x\"] }",
        "ext4 = { mount = [\"helper=x\"] }",
        "xfs = { mount = [\"remount\"] }",
        "xfs = { mount = [\"logdev=sda\"] }",
        "xfs = { mount = [\"loop\"] }",
        "btrfs = { mount = [\"subvol=x\"] }",
        "btrfs = { mount = [\"user\"] }",
        "tmpfs = { size = \"1 MiB\", mount = [\"size=100g\"] }",
        "nfs = { mount = [\"addr=10.0.0.1\"] }",
        "nfs = { mount = [\"sec=none,port=1\"] }",
        "smb = { mount = [\"credentials=passwd\"] }",
        "smb = { mount = [\"ip=10.0.0.1\"] }",
        "smb = { options = [\"root preexec = reboot\"] }",
        "smb = { options = [\"rootpreexec=reboot\"] }",
        "smb = { options = [\"magic script = x\"] }",
        "smb = { options = [\"vfs objects = full_audit\"] }",
        "smb = { options = [\"valid users = x\"] }",
        "smb = { options = [\"strict sync = no\\nroot preexec = reboot\"] }",
        "afp = { options = [\"root preexec = reboot\"] }",
        "afp = { options = [\"postexec = reboot\"] }",
        "afp = { options = [\"follow symlinks = yes\"] }",
        "drbd = { disk = [\"on-io-error call-local-io-error\"] }",
        "drbd = { disk = [\"fencing resource-and-stonith\"] }",
        "drbd = { net = [\"max-buffers 8000; }\\nhandlers { pri-lost reboot\"] }",
        "zpool = { properties = [\"altroot=x\"] }",
        "zpool = { properties = [\"compatibility=/etc/passwd\"] }",
        "dataset = { properties = [\"mountpoint=/etc\"] }",
        "dataset = { properties = [\"sharenfs=on\"] }",
        "dataset = { properties = [\"keylocation=file:///etc/passwd\"] }",
        "zvol = { size = \"1 GiB\", properties = [\"readonly=on\"] }",
    ]) {
        let refusal = try_layer(line).err();
        let refusal = refusal.unwrap_or_else(|| panic!("{line} is taken"));
        let message = refusal.message;
        assert!(
            message.contains("that a study may give"),
            "{line}: {message}"
        );
        assert!(!refusal.help.is_empty() && refusal.span.is_some(), "{line}");
    }
}

/// Every word that a study may give is written down for its author, and nothing else is.
#[test]
fn the_page_on_studies_lists_every_word_of_a_tool() {
    let page = include_str!("../../../../../docs/study.md");
    let mut rows: Vec<String> = Vec::new();
    let of_layers = ALL.iter().flat_map(|kind| kind.words);
    for words in of_layers.chain([&&ANY]) {
        let names = words.options.iter().map(|(name, kind)| match kind {
            OptionValue::Pairs(inner) => {
                let inner: Vec<&str> = inner.iter().map(|(name, _)| *name).collect();
                format!("`{name}` ({})", inner.join(", "))
            }
            _ => format!("`{name}`"),
        });
        let names: Vec<String> = names.collect();
        let row = format!(
            "| {} | {} | {} |",
            words.tool,
            words.manual,
            names.join(" ")
        );
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert!(missing.is_empty(), "docs/study.md lacks\n{missing:#?}");
    let listed = page
        .lines()
        .filter(|line| line.contains("(8) |") || line.contains("(5) |") || line.contains("(7) |"));
    let more: Vec<&str> = listed
        .filter(|line| !rows.iter().any(|row| row == line))
        .collect();
    assert!(more.is_empty(), "docs/study.md also has\n{more:#?}");
}

#[test]
fn faults_of_modelled_disks_are_refused_where_they_cannot_be() {
    let disk = |words: &str| {
        format!("lab-disks = {{ model = \"seagate-st3000dm001\", size = \"1 GiB\", {words} }}")
    };
    let lines = [
        ("slow-sectors = \"1 MiB: 3 ms\"", "names no place and time"),
        ("slow-sectors = \"1 MiB to 2 MiB: fast\"", "fast"),
        (
            "read-errors = \"2 MiB to 2 MiB: 7 s\"",
            "ends where it begins",
        ),
        (
            "read-errors = \"1 MiB to 2 GiB: 7 s\"",
            "is not on a disk of 1 GiB",
        ),
        ("read-errors = \"1 MiB to 2 MiB: 0 s\"", "takes no time"),
        (
            "count = 2, dies-at = \"3 s\", faulty-disk = 3",
            "there is no disk 3 of 2",
        ),
        ("faulty-disk = 1", "no fault is declared"),
        ("last-size = \"1 GiB\"", "there is none"),
        ("count = 2, gone-after-cut = 3", "there is no disk 3 of 2"),
        ("last-model = \"seagte\"", "there is no drive model"),
        ("parameters = [\"rmp = 5400\"]", "has no value \"rmp\""),
        ("parameters = [\"rpm = 0\"]", "rpm: 60 to 150000"),
        ("parameters = [\"faster\"]", "cannot have these values"),
        (
            "parameters = [\"seek.middle = 1\"]",
            "no value \"seek.middle\"",
        ),
        (
            "last-model = \"sata-ssd\"",
            "the size of a sata-ssd must be given",
        ),
    ];
    let lines: Vec<(String, &str)> = lines
        .iter()
        .map(|(words, why)| (disk(words), *why))
        .collect();
    let emulated = "lab-disks = { size = \"1 GiB\", dies-at = \"3 s\" }";
    let no_card = "lab-disks = { size = \"1 GiB\", parameters = [\"rpm = 5400\"] }";
    let mut all: Vec<(&str, &str)> = lines
        .iter()
        .map(|(line, why)| (line.as_str(), *why))
        .collect();
    all.push((emulated, "is a fault of a modelled disk"));
    let gone = "lab-disks = { size = \"1 GiB\", gone-after-cut = 1 }";
    all.push((gone, "goes with modelled disks"));
    all.push((no_card, "goes with modelled disks"));
    assert_refused(&all);
}

#[test]
fn consistency_policies_are_refused_where_they_cannot_be_had() {
    assert_refused(&[
        (
            "md = { raid = 6, consistency-policy = \"ppl\" }",
            "RAID 6 has no ppl",
        ),
        (
            "md = { raid = 1, consistency-policy = \"journal\" }",
            "RAID 1 has no journal",
        ),
        (
            "md = { raid = 5, consistency-policy = \"ppl\", bitmap = \"internal\" }",
            "has no bitmap",
        ),
        (
            "md = { raid = 5, consistency-policy = \"journal\", degraded = true }",
            "made with all members",
        ),
    ]);
}

/// Settings of layers for which 0 does something real; it is refused for all others.
const ZEROS: &[&str] = &[
    "sequential-cutoff of bcache",
    "delay of drbd",
    "to of fill",
    "latency of lab-disks",
    "delay of nfs",
    "delay of nvme-tcp",
    "wbt of queue",
    "vm.dirty_writeback_centisecs of sysctl",
    "vm.dirtytime_expire_seconds of sysctl",
    "vm.swappiness of sysctl",
    "vm.page-cluster of sysctl",
    "special of zpool",
    "log of zpool",
    "cache of zpool",
];

/// A size or a number of 0 that makes no sense is not found out when the stack is built.
#[test]
fn a_setting_of_zero_is_refused_or_does_something() {
    let mut accepted = Vec::new();
    for kind in ALL {
        for (name, settings) in with_zeros(kind.settings, kind.example).unwrap() {
            if settings.check_all().is_empty() && (kind.parse)(&settings).is_ok() {
                accepted.push(format!("{name} of {}", kind.name));
            }
        }
    }
    assert_eq!(accepted, ZEROS);
}
