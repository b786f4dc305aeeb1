//! What a study or a journal does to a machine that others use too; the machine is imagined.

use std::path::{Path, PathBuf};

use stackrace_layers::stack::{self, Site};
use stackrace_machine::host::plan::{Fault, PlanHost, Step};
use stackrace_machine::host::{Filling, Host, argv};
use stackrace_machine::journal::Journal;
use stackrace_study::study::Study;

/// Most configurations of a study that are carried out.
const CARRIED_OUT_MAX: usize = 4;
/// Where the stacks of [`carried_out`] are mounted.
const SCRATCH: &str = "/scratch";

/// Sets up, settles and tears down the stacks of a study, and gives back the steps. A stack may be
/// refused on the way.
///
/// # Panics
/// Something of others is gone or changed, or something of ours is left.
pub(super) fn carried_out(study: &Study) -> Vec<Step> {
    let mut steps = Vec::new();
    for configuration in study.configurations.iter().take(CARRIED_OUT_MAX) {
        let host = beside_others(study.text.as_bytes());
        assert!(host.create_dir(Path::new(SCRATCH)).is_ok());
        let before = (host.left(), host.steps().len());
        let journal = Journal::nowhere();
        let site = Site {
            host: &host,
            journal: &journal,
            scratch: PathBuf::from(SCRATCH),
            tag: "r1-t0".to_owned(),
            seed: study.seed,
            wipe: &[],
            undo: stack::undo_kinds(),
            interrupt: None,
        };
        if let Ok(standing) = configuration.stack.set_up(&site) {
            // A study may ask for what cannot be settled; it must come down all the same.
            let _ = standing.settle(&site, true, true);
            let lowered = standing.tear_down(&site);
            assert!(lowered.is_ok(), "{lowered:?}");
        }
        assert_eq!(host.left(), before.0, "a study touched what is not its own");
        steps.extend(host.steps().into_iter().skip(before.1));
    }
    steps
}

/// An imagined machine that others use, too: files, a mount, loop devices, an array, a volume group,
/// pools, servers, a disk with data. Some of it is of another run, whose mark no input can hold.
pub(super) fn beside_others(data: &[u8]) -> PlanHost {
    let mark = &blake3::hash(data).to_hex()[..16];
    let disk = Path::new("/dev/disk/by-id/disk-of-others");
    let uuid = [
        &mark[..8],
        &mark[8..12],
        &mark[12..],
        "8000",
        "000000000001",
    ]
    .join("-");
    let pooled = "/dev/disk/by-id/disk-of-a-pool";
    let host = stack::imagined(Fault::Never)
        .with_disk(Path::new(pooled), 1 << 30, "THEIRS")
        .with_disk(disk, 1 << 30, "THEIRS")
        .carrying(disk, "ext4", &uuid);
    for root in ["/others".to_owned(), format!("/.stackrace-t-{mark}-disks")] {
        let root = Path::new(&root);
        let file = |name: &str| root.join(name);
        let made = host.create_dir(root).is_ok()
            && host.create_dir(&file("photos")).is_ok()
            && host.create_dir(&file("mnt")).is_ok()
            && host
                .create_file(&file("disk-1"), 1 << 30, Filling::Sparse)
                .is_ok();
        assert!(made, "{}", root.display());
        let path = file("disk-1").into_os_string();
        let attached = [argv(["losetup", "--find", "--show"]), vec![path]].concat();
        assert!(host.must(&attached).is_ok());
        let mounted = argv(["mount", "-t", "tmpfs", "tmpfs"]);
        let mount = |at: PathBuf| [mounted.clone(), vec![at.into_os_string()]].concat();
        assert!(host.exec(&mount(file("mnt"))).is_ok());
    }
    for command in [
        argv(["smbd"]),
        argv(["env", "STACKRACE_STACK=.stackrace-theirs", "rpcbind", "-w"]),
        argv(["zpool", "create", "tank", pooled]),
    ] {
        assert!(host.exec(&command).is_ok());
    }
    host
}
