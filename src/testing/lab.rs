//! The lab tried for real: two guests, their network, what can be done to them; guests as machines that are
//! asked over SSH.

use stackrace_base::time::{Clock, SystemClock};
use stackrace_layers::stack::{self, undo_all};
use stackrace_machine::host::{LabDisk, Output, argv, local::LocalHost};
use stackrace_machine::journal::{self, Journal};
use stackrace_remote::lab::LabError;
use stackrace_remote::lab::description::Description;
use stackrace_remote::lab::disk_cache::DiskCache;
use stackrace_remote::lab::image;
use stackrace_remote::lab::image_cache::ImageCache;
use stackrace_remote::lab::machine::{self, GuestNode, LabMachine, MachineSite};
use stackrace_remote::lab::system;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Serial of the disk of each guest.
const DISK: &str = "disk-1";

/// Something was tried in a guest and did not go as it must.
fn wrong(what: &str, found: &Output) -> String {
    format!("{what}: {found:?}")
}

/// Starts two guests of a system whose image is in `cache`, each `program` inside, in the directory `dir`; tries
/// the network between them (delay, a cut link), a power cut, and a disk that is pulled.
///
/// # Errors
/// What did not go as it must.
pub fn two_nodes(system: &str, program: &Path, cache: &Path, dir: &Path) -> Result<(), String> {
    let description = Description {
        nodes: 2,
        memory_bytes: 512 << 20,
        disks: vec![LabDisk {
            serial: DISK.to_string(),
            bytes: 64 << 20,
            logical_sector: 512,
            physical_sector: 4096,
            rate: None,
            requests: None,
            latency_ns: None,
            model: None,
        }],
        ..Description::default()
    };
    in_guests(
        system,
        program,
        cache,
        dir,
        &description,
        |machine, site| {
            network(machine)?;
            power(machine, site, &description)?;
            pulled(machine)
        },
    )
}

/// Guests that are made machines like any other.
#[derive(Debug)]
pub struct GuestsOverSsh<'a> {
    /// How many.
    pub nodes: usize,
    /// Memory of each, bytes.
    pub memory_bytes: u64,
    /// Directories where commands that come over SSH are looked for first, separated by colons.
    pub path_first: &'a str,
}

/// Starts guests as [`two_nodes`] does, of which the first may ask the others over SSH, and runs a script in
/// the first with bash: what it printed, its errors, and its exit status.
///
/// # Errors
/// A guest does not come up or its SSH server does not start; the machines could not be removed.
pub fn over_ssh(
    (system, program): (&str, &Path),
    (cache, dir): (&Path, &Path),
    guests: &GuestsOverSsh<'_>,
    script: &[&str],
) -> Result<(String, String, Option<i32>), String> {
    let description = Description {
        nodes: guests.nodes,
        memory_bytes: guests.memory_bytes,
        ..Description::default()
    };
    let mut said = Output::default();
    in_guests(system, program, cache, dir, &description, |machine, _| {
        let key = key_of_first(machine)?;
        for node in 2..=guests.nodes {
            let path = format!("PATH={}$PATH", guests.path_first);
            listens(machine, node, &key, &path)?;
        }
        let first = machine.node(1).map_err(|error| error.to_string())?;
        let words = ["bash", "-c"].iter().chain(script);
        said = first
            .exec(&argv(words.copied()))
            .map_err(|error| error.to_string())?;
        Ok(())
    })?;
    Ok((said.stdout, said.stderr, said.status))
}

/// Makes the first guest a machine like any other, which may ask others: its public key.
fn key_of_first(machine: &LabMachine) -> Result<String, String> {
    // What says that it is a guest is taken from it.
    let key = must(
        machine,
        1,
        "rm -f /run/stackrace-lab; mkdir -p /root/.ssh
         ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519 && cat /root/.ssh/id_ed25519.pub",
    )?;
    Ok(key.trim().to_owned())
}

/// Makes another guest a machine like any other, which listens to that key. `environment` is what a
/// login there finds.
fn listens(machine: &LabMachine, node: usize, key: &str, environment: &str) -> Result<(), String> {
    let ready = format!(
        "rm -f /run/stackrace-lab; mkdir -p /root/.ssh /run/sshd && ssh-keygen -A &&
         echo '{key}' >/root/.ssh/authorized_keys && chmod -R go= /root/.ssh &&
         HOME=/root /usr/sbin/sshd -o SetEnv=\"{environment}\"",
    );
    must(machine, node, &ready).map(drop)
}

/// File in the first guest that asks for power of the second: `cut` or `on`; it is gone when that is done.
pub const POWER: &str = "/run/power";

/// Where a guest with a scratch disk keeps what has to survive, as its logins find it.
const KEPT: &str = "XDG_STATE_HOME=/scratch/state XDG_CACHE_HOME=/scratch/cache";

/// Does what the first guest asks for the power of the second, until `over`.
fn gives_power(
    machine: &LabMachine,
    site: &MachineSite<'_>,
    description: &Description,
    key: &str,
    over: &AtomicBool,
) -> Result<(), String> {
    let words = |error: LabError| error.to_string();
    while !over.load(Ordering::SeqCst) {
        let asked = sh(machine, 1, &format!("cat {POWER} 2>/dev/null"))?;
        match asked.stdout.trim() {
            "cut" => machine.cut_power(2).map_err(words)?,
            "on" => {
                machine.power_on(2, site, description).map_err(words)?;
                listens(machine, 2, key, KEPT)?;
            }
            _ => {
                SystemClock.sleep(Duration::from_millis(200));
                continue;
            }
        }
        must(machine, 1, &format!("rm {POWER}"))?;
    }
    Ok(())
}

/// Starts two guests with a disk each that has a volatile cache, `lying` or honest, and runs a script in
/// the first, which may ask the second over SSH, and for its power ([`POWER`]): what it printed, its
/// errors, and its exit status.
///
/// # Errors
/// As [`over_ssh`].
pub fn with_power(
    (system, program): (&str, &Path),
    (cache, dir): (&Path, &Path),
    lying: bool,
    script: &str,
) -> Result<(String, String, Option<i32>), String> {
    let description = Description {
        nodes: 2,
        memory_bytes: 768 << 20,
        disks: vec![LabDisk {
            serial: DISK.to_string(),
            bytes: 256 << 20,
            logical_sector: 512,
            physical_sector: 512,
            rate: None,
            requests: None,
            latency_ns: Some(1_000_000),
            model: None,
        }],
        disk_cache: match lying {
            true => DiskCache::Lying,
            false => DiskCache::Volatile,
        },
        // In the second guest it is what a hard disk of a machine is: there after a power cut.
        scratch_bytes: Some(256 << 20),
        ..Description::default()
    };
    let mut said = Output::default();
    in_guests(
        system,
        program,
        cache,
        dir,
        &description,
        |machine, site| {
            let key = key_of_first(machine)?;
            let words = |error: LabError| error.to_string();
            machine
                .node(2)
                .and_then(GuestNode::make_scratch)
                .map_err(words)?;
            listens(machine, 2, &key, KEPT)?;
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let power = scope.spawn(|| gives_power(machine, site, &description, &key, &over));
                let ran = machine.node(1).map_err(words).and_then(|first| {
                    first
                        .exec(&argv(["bash", "-c", script]))
                        .map_err(|error| error.to_string())
                });
                over.store(true, Ordering::SeqCst);
                let served: Result<(), String> = power
                    .join()
                    .unwrap_or_else(|_| Err("the power's thread died".to_owned()));
                said = ran?;
                served
            })
        },
    )?;
    Ok((said.stdout, said.stderr, said.status))
}

/// Starts guests, does something with them, and removes them whatever happens.
fn in_guests(
    system: &str,
    program: &Path,
    cache: &Path,
    dir: &Path,
    description: &Description,
    work: impl FnOnce(&LabMachine, &MachineSite<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let words = |error: LabError| error.to_string();
    let system = system::named(system).ok_or_else(|| format!("no system {system}"))?;
    let cache = ImageCache {
        dir: cache.to_owned(),
        of_layers: stack::packages(),
    };
    let image = image::find(&cache, system).map_err(words)?;
    let host = LocalHost::new(Arc::new(|_| ()));
    let journal = Journal::create(&dir.join(journal::FILE)).map_err(|error| error.to_string())?;
    let site = MachineSite {
        host: &host,
        journal: &journal,
        dir: dir.to_path_buf(),
        image: &image,
        zfs: None,
        postgresql: None,
        program,
        carried: Vec::new(),
    };
    let tried = machine::accelerator(&site, &dir.join("accelerator"), stack::undo_kinds())
        .map_err(words)
        .and_then(|accelerator| {
            let machine = LabMachine::start(&site, description, accelerator).map_err(words)?;
            work(&machine, &site)
        });
    let report = undo_all(&host, &journal).map_err(|error| error.to_string())?;
    match report.failed.first() {
        Some((what, why)) => Err(format!("could not {what}: {why}")),
        None => tried,
    }
}

/// A command in a guest, through its shell.
fn sh(machine: &LabMachine, node: usize, script: &str) -> Result<Output, String> {
    let node = machine.node(node).map_err(|error| error.to_string())?;
    node.exec(&argv(["sh", "-c", script]))
        .map_err(|error| error.to_string())
}

/// The same, which has to succeed: what it printed.
fn must(machine: &LabMachine, node: usize, script: &str) -> Result<String, String> {
    let found = sh(machine, node, script)?;
    match found.status {
        Some(0) => Ok(found.stdout),
        _ => Err(wrong(script, &found)),
    }
}

/// Both directions answer; a delay set in one guest is seen by the other; a cut link is silent.
fn network(machine: &LabMachine) -> Result<(), String> {
    let ping = "ping -q -c 3 -i 0.2 -W 2";
    for (node, other) in [(1, "node2"), (2, "node1")] {
        let found = sh(machine, node, &format!("{ping} {other}"))?;
        if found.status != Some(0) {
            return Err(wrong("no answer", &found));
        }
    }
    let netem = "tc qdisc add dev eth0 root netem delay 300ms";
    let found = sh(machine, 2, netem)?;
    if found.status != Some(0) {
        return Err(wrong("no delay", &found));
    }
    let found = sh(machine, 1, &format!("{ping} node2"))?;
    // `rtt min/avg/max/mdev = 300.5/301.2/302.0/0.6 ms`: the guest's clock says at least the delay.
    let least = found.stdout.split(" = ").nth(1);
    let least = least.and_then(|text| text.split('/').next()?.parse::<f64>().ok());
    if !least.is_some_and(|least| least >= 300.0) {
        return Err(wrong("the delay is not seen", &found));
    }
    machine
        .cut_link(2, true)
        .map_err(|error| error.to_string())?;
    let found = sh(machine, 1, "ping -q -c 1 -W 1 node2")?;
    if found.status != Some(1) {
        return Err(wrong("the link is not cut", &found));
    }
    machine
        .cut_link(2, false)
        .map_err(|error| error.to_string())?;
    let found = sh(machine, 1, "ping -q -c 3 -W 2 node2")?;
    if found.status != Some(0) {
        return Err(wrong("the link is not mended", &found));
    }
    Ok(())
}

/// What was written durably is there after a power cut; what lay in the guest's memory is not.
fn power(
    machine: &LabMachine,
    site: &MachineSite<'_>,
    description: &Description,
) -> Result<(), String> {
    let words = |error: LabError| error.to_string();
    let device = format!("/dev/$(basename $(dirname $(grep -lx {DISK} /sys/block/*/serial)))");
    let script = format!(
        "echo kept >/tmp/a; dd if=/tmp/a of={device} bs=512 count=1 conv=sync,fsync && echo gone >/root/b"
    );
    let found = sh(machine, 2, &script)?;
    if found.status != Some(0) {
        return Err(wrong("cannot write", &found));
    }
    machine.cut_power(2).map_err(words)?;
    if sh(machine, 2, "true").is_ok() {
        return Err("a guest without power answers".to_string());
    }
    machine.power_on(2, site, description).map_err(words)?;
    let found = sh(machine, 2, &format!("head -n 1 {device}; ls /root/b"))?;
    if found.stdout.trim() != "kept" {
        return Err(wrong("the power cut", &found));
    }
    Ok(())
}

/// A disk that is pulled is gone.
fn pulled(machine: &LabMachine) -> Result<(), String> {
    let pulled = machine.pull_disk(1, DISK);
    pulled.map_err(|error| error.to_string())?;
    let found = sh(machine, 1, &format!("grep -lx {DISK} /sys/block/*/serial"))?;
    if found.status == Some(0) {
        return Err(wrong("the disk is still there", &found));
    }
    Ok(())
}
