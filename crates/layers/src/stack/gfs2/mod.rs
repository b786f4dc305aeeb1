//! GFS2: a file system that several machines may mount from one device.
//!
//! Without locks between machines (`lock = "nolock"`) it is a local file system. With them (DLM) the
//! machines are made a cluster for as long as the stack stands: corosync says who is there,
//! dlm_controld keeps the locks. A machine has one of each, so that none may run there already. No machine
//! is fenced: what is on the device is of the stack alone, and goes with it.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, AloneOrAmount, Amount, OneOf, Pairs},
    Words,
};
use stackrace_foundation::foundation::{
    Gives, GivesKind, Layer, LayerError, LayerKind, Memory, Setup, StandingLayer, Takes, block,
    config_tree, filesystem, options, plain,
};
use stackrace_machine::host::imagined::{Tool, mount_without_device, said};
use stackrace_machine::host::{Daemon, Host, Needs, Package, argv, argv_at};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// Name of the cluster.
const CLUSTER: &str = "stackrace";

/// The daemon that says which machines are there: it listens at a port of its own, UDP.
const COROSYNC: Daemon = Daemon {
    program: "corosync",
    port: Some(5405),
};

/// The daemon that keeps the locks.
const DLM: Daemon = Daemon {
    program: "dlm_controld",
    port: None,
};

/// Number of times, and pause between them, that it is looked whether the cluster is complete.
const LOOKS: usize = 150;
const LOOK: Duration = Duration::from_millis(200);

/// True for locks between machines.
const LOCK: ChoiceDoc<bool> = choice!(
    "lock",
    ["nolock" => false, "dlm" => true],
    "nolock",
    "nolock: one machine, no locks between machines; dlm: locks between two, on drbd with role = \"dual\".",
);

/// The layer `gfs2` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "gfs2",
    summary: "GFS2 on one device: alone, or shared by two machines with locks between them (DLM).",
    settings: &[
        LOCK.doc,
        SettingDoc::count(
            "mounted-on",
            "1",
            "On how many machines it is mounted: 1 or, with dlm, 2.",
        ),
        SettingDoc::count(
            "load-from",
            "1",
            "On how many of them the workload runs: 1, the first; 2, both at once, each in a directory of its own.",
        ),
        options::MKFS,
        options::MOUNT,
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Directory,
    example: "gfs2 = { lock = \"nolock\", mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse,
    packages: &[
        Package::new("gfs2-utils", &["mkfs.gfs2"]),
        Package::new("corosync", &["corosync", "corosync-quorumtool"]),
        Package::new("dlm-controld", &["dlm_controld", "dlm_tool"]),
    ],
    imagined: &[
        plain::imagined_mkfs("mkfs.gfs2"),
        Tool {
            // What the peer formatted bears no signature on this machine.
            name: "mount.gfs2",
            run: mount_without_device,
        },
        config_tree::IMAGINED,
        Tool::new("corosync", |world, _| world.start("corosync", &[5405])),
        Tool::new("corosync-quorumtool", |_, _| said("Nodes: 2\n")),
        Tool::new("dlm_controld", |world, _| world.start("dlm_controld", &[])),
        Tool::new("dlm_tool", |_, _| said("node 1 M\nnode 2 M\n")),
    ],
    shapes: &[
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "drbd = { state = \"resyncing\", disk = [\"resync-rate 10M\"] }",
            "gfs2 = {}",
        ],
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "drbd = { role = \"dual\" }",
            "gfs2 = { lock = \"dlm\", mounted-on = 2, load-from = 2 }",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// mkfs.gfs2(8). Not on the list: what is set by the layer (`-p`, `-t`, `-j`, `-O`), and the UUID.
const MKFS: Words = Words {
    tool: "mkfs.gfs2",
    manual: "mkfs.gfs2(8)",
    options: &[
        ("-b", Amount),
        ("-c", Amount),
        ("-J", Amount),
        (
            "-o",
            Pairs(&[
                ("align", Amount),
                ("format", Amount),
                ("rgrp_align", Amount),
                ("sunit", Amount),
                ("swidth", Amount),
            ]),
        ),
        ("-q", Alone),
        ("-r", Amount),
    ],
};

/// gfs2(5). Not on the list: who keeps the locks (`lockproto`, `locktable`, `hostdata`), and what
/// other machines see (`spectator`, `ignore_local_fs`).
const MOUNT: Words = Words {
    tool: "a mount of GFS2",
    manual: "gfs2(5)",
    options: &[
        ("acl", Alone),
        ("barrier", AloneOrAmount),
        ("commit", Amount),
        ("data", OneOf(&["ordered", "writeback"])),
        ("discard", Alone),
        ("errors", OneOf(&["panic", "withdraw"])),
        ("loccookie", Alone),
        ("nobarrier", Alone),
        ("nodiscard", Alone),
        ("noloccookie", Alone),
        ("norgrplvb", Alone),
        ("quota", OneOf(&["off", "account", "on", "quiet"])),
        ("quota_quantum", Amount),
        ("rgrplvb", Alone),
        ("statfs_percent", Amount),
        ("statfs_quantum", Amount),
        ("suiddir", Alone),
    ],
};

struct Gfs2 {
    dlm: bool,
    mounted_on: u64,
    load_from: usize,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let dlm = settings.choice(LOCK)?;
    let mounted_on = settings.count("mounted-on")?;
    // Without locks between machines, two mounts would destroy the file system.
    if mounted_on != 1 && !(dlm && mounted_on == 2) {
        return Err(Refusal::at(
            settings.span_of("mounted-on"),
            format!("it cannot be mounted on {mounted_on} machines with these locks"),
            "write 1, or 2 with lock = \"dlm\"",
        ));
    }
    // A machine without the mount has nothing to load.
    let load_from = settings.count("load-from")?;
    if !(1..=mounted_on).contains(&load_from) {
        return Err(Refusal::at(
            settings.span_of("load-from"),
            format!(
                "the load cannot come from {load_from} machines where it is mounted on {mounted_on}"
            ),
            "write load-from = 1, or load-from = 2 with mounted-on = 2",
        ));
    }
    Ok(Box::new(Gfs2 {
        dlm,
        mounted_on,
        load_from: load_from as usize,
        mkfs: options::mkfs(settings, &MKFS)?,
        mount: options::mount(settings, &MOUNT)?,
    }))
}

impl Layer for Gfs2 {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        let locks = match (self.dlm, self.mounted_on, self.load_from) {
            (false, ..) => "gfs2, no locks between machines",
            (true, 1, _) => "gfs2 with DLM, mounted on one machine",
            (true, _, 1) => "gfs2 with DLM, mounted on both machines",
            (true, ..) => "gfs2 with DLM, mounted on both machines, load from both",
        };
        filesystem::asked(locks, &self.mkfs, &self.mount)
    }

    fn loaded_from(&self) -> usize {
        self.load_from
    }

    fn nodes(&self) -> usize {
        if self.dlm { 2 } else { 1 }
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        if !self.dlm || below.last().is_some_and(|layer| layer.is_shared()) {
            return Ok(());
        }
        Err("gfs2 with DLM needs a device that both machines write: put it on drbd with role = \"dual\"".to_string())
    }

    fn apart(&self) -> Option<String> {
        let why = "gfs2 with lock = \"dlm\" needs two kernels: each node of its cluster is one";
        self.dlm.then(|| why.to_string())
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some("gfs2"),
            daemons: if self.dlm { &[COROSYNC, DLM] } else { &[] },
            ..Needs::as_root(
                if self.dlm {
                    &[
                        "mkfs.gfs2",
                        "wipefs",
                        "mount",
                        "umount",
                        "modprobe",
                        "corosync",
                        "corosync-quorumtool",
                        "dlm_controld",
                        "dlm_tool",
                    ]
                } else {
                    &["mkfs.gfs2", "wipefs", "mount", "umount"]
                },
                KIND.packages,
            )
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let device = devices[0].path.clone();
        // -O asks nothing, -K keeps the blocks that were laid out (mkfs.gfs2(8)).
        let mut command = vec!["mkfs.gfs2".to_string(), "-O".to_string(), "-K".to_string()];
        let locks = if self.dlm {
            // First, because a mount with locks fails without the cluster.
            cluster(setup)?;
            // One journal for each machine.
            ["-p", "lock_dlm", "-j", "2", "-t", "stackrace:work"].as_slice()
        } else {
            ["-p", "lock_nolock", "-j", "1"].as_slice()
        };
        command.extend(locks.iter().map(|word| (*word).to_string()));
        command.extend(self.mkfs.iter().cloned());
        if setup.is_outlived() {
            return Err(LayerError::refused(
                "a GFS2 cannot be marked as ours, so it could not be wiped afterwards",
                "put it on loop, on lab-disks or on drbd",
            ));
        }
        filesystem::format(setup, &command, |_| Vec::new(), &devices)?;
        let root = setup.mount("gfs2", device.as_os_str(), &self.mount, Memory::No)?;
        if self.mounted_on == 2 {
            setup.on_peer(|setup| {
                let root = setup.mount("gfs2", device.as_os_str(), &self.mount, Memory::No)?;
                match self.load_from {
                    1 => Ok(()),
                    _ => setup.also_loaded(&root),
                }
            })?;
        }
        let mut facts = filesystem::mount_facts(setup.host(), &root, "gfs2", &self.mount, &[])?;
        facts.extend(self.locks(setup.host(), &block::name(&device)));
        Ok(StandingLayer {
            devices: vec![block::name(&device)],
            ..StandingLayer::new("gfs2", facts, Gives::Mounted(root))
        })
    }
}

impl Gfs2 {
    /// Facts that the file system tells of its locks.
    fn locks(&self, host: &dyn Host, device: &str) -> Vec<Fact> {
        let mounts = host.list(Path::new("/sys/fs/gfs2")).unwrap_or_default();
        let mut facts = vec![
            Fact::new("mounted on", format!("{} of 2 machines", self.mounted_on)),
            Fact::new("load from", format!("{} of 2 machines", self.load_from)),
        ];
        // There is one machine, and nothing to be counted.
        if !self.dlm {
            facts.clear();
        }
        // Found by its device: the directories are named after lock tables.
        for mount in mounts {
            let about = Path::new("/sys/fs/gfs2").join(mount);
            let ours = host.canonical(&about.join("device"));
            if ours.is_ok_and(|path| block::name(&path) == device)
                && let Ok(proto) = host.read_text(&about.join("lock_module/proto_name"))
            {
                facts.push(Fact::new("locks", proto.trim()));
            }
        }
        facts
    }
}

/// Makes the two machines a cluster with locks.
fn cluster(setup: &mut Setup<'_>) -> Result<(), LayerError> {
    let addresses = setup.ends()?;
    let file = setup.name("corosync.conf");
    let state = setup.name("corosync");
    setup.on_both(|setup| {
        let host = setup.host();
        host.must(&argv(["modprobe", "-a", "configfs", "dlm", "gfs2"]))?;
        // dlm_controld talks to the kernel there.
        config_tree::shown(host)?;
        let scratch = setup.scratch()?;
        let (file, state) = (scratch.join(&file), scratch.join(&state));
        setup.create_tree(&state)?;
        setup.create_text(&file, &configuration(addresses, &state))?;
        let command = argv_at(["corosync", "-c"], &file);
        setup.start(&[COROSYNC], &command)
    })?;
    // Locks are kept between members, so both have to be members first.
    setup.on_both(|setup| complete(setup.host()))?;
    setup.on_both(|setup| {
        // No machine is fenced and a second machine is not waited for: the stack is disposable.
        let command = ["dlm_controld", "-q0", "-f0", "-s0"];
        setup.start(&[DLM], &argv(command))
    })?;
    setup.on_both(|setup| locked(setup.host()))
}

/// Waits until the locks are kept between both machines: a mount that comes before is refused at
/// once. Where that is not seen in time, the mount says what is wrong.
fn locked(host: &dyn Host) -> Result<(), LayerError> {
    let command = argv(["dlm_tool", "status"]);
    for _ in 0..LOOKS {
        // It fails until dlm_controld can be talked to.
        if lockers(&host.exec(&command)?.stdout) == 2 {
            break;
        }
        host.pause(LOOK);
    }
    Ok(())
}

/// Number of machines that `dlm_tool status` calls members: `node 2 M add 20 rem 0 …`.
fn lockers(said: &str) -> usize {
    let lines = said.lines().map(str::trim);
    let of_node = lines.filter_map(|line| line.strip_prefix("node "));
    of_node
        .filter(|line| line.split_whitespace().nth(1) == Some("M"))
        .count()
}

/// Waits until both machines are members.
fn complete(host: &dyn Host) -> Result<(), LayerError> {
    let command = argv(["corosync-quorumtool", "-s"]);
    let mut said = String::new();
    for _ in 0..LOOKS {
        // Its exit status says whether there is a quorum, and it fails while corosync starts.
        said = host.exec(&command)?.stdout;
        if members(&said) == Some(2) {
            return Ok(());
        }
        host.pause(LOOK);
    }
    Err(LayerError::refused(
        format!("the two machines did not become a cluster: {}", said.trim()),
        "",
    ))
}

/// Number of machines that `corosync-quorumtool -s` says there are.
fn members(said: &str) -> Option<u32> {
    let line = said.lines().find_map(|line| line.strip_prefix("Nodes:"))?;
    line.trim().parse().ok()
}

/// corosync.conf(5): two machines, every word on a line of its own; it speaks at these addresses alone,
/// and keeps what it has to remember in a directory of ours.
fn configuration(addresses: [IpAddr; 2], state: &Path) -> String {
    // two_node: with one of two machines gone, the other still has a quorum. udpu needs no
    // multicast, which networks often keep back.
    let mut text = format!(
        "system {{\n  state_dir: {}\n}}\ntotem {{\n  version: 2\n  cluster_name: {CLUSTER}\n  transport: udpu\n  token: 10000\n}}\n\
         quorum {{\n  provider: corosync_votequorum\n  two_node: 1\n}}\n\
         logging {{\n  to_syslog: no\n  to_stderr: no\n}}\nnodelist {{\n",
        state.display()
    );
    for (number, address) in (1..).zip(addresses) {
        text.push_str(&format!(
            "  node {{\n    ring0_addr: {address}\n    name: machine{number}\n    nodeid: {number}\n  }}\n"
        ));
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_counted() {
        let said = "Quorum information\n------------------\nDate:             Sat\nQuorum provider:  corosync_votequorum\nNodes:            2\nNode ID:          1\n";
        assert_eq!(members(said), Some(2));
        assert_eq!(members("Cannot initialize QUORUM service\n"), None);
        let said = "cluster nodeid 1 quorate 1 ring seq 8 8\ndaemon now 31 fence_pid 0\nnode 1 M add 19 rem 0 fail 0 fence 0 at 0 0\nnode 2 X add 0 rem 0 fail 0 fence 0 at 0 0\n";
        assert_eq!(lockers(said), 1);
    }
}
