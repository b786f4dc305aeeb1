//! DRBD: one device that two machines have the same.
//!
//! The layers below stand on both machines alike; the first machine is primary and runs the
//! workload. The protocol says when a write has returned: A, when it is on this machine's disk and
//! handed to the network; B, when the peer has it in memory; C, when it is on both disks.

mod imagined;
mod undo;
mod words;

use crate::event::{Fact, LayerFacts};
use crate::host::{Driver, Host, Needs, Package, argv};
use crate::setting::{Refusal, SettingDoc, Settings};
use crate::stack::common::words::lines;
use crate::stack::common::{
    block, filesystem,
    line::{self, Line},
    one_kernel::Sockets,
};
use crate::stack::error::LayerError;
use crate::stack::gives::{Below, Device, Gives, GivesKind, Origin, StandingLayer, Takes};
use crate::stack::layer::{KillStack, Layer, LayerKind, Tried};
use crate::stack::setup::Setup;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use words::{DISK, NET};

/// The port of device 0; device 1 has the next one.
const PORT: usize = 7788;

/// The driver of the kernel for DRBD.
const DRIVER: Driver = Driver {
    module: "drbd",
    shown_by: "/sys/module/drbd",
    what: "replicated devices (drbd)",
};

/// Devices that are tried for one that is free.
const MINORS: usize = 64;

/// How often, and with what pause, it is looked whether the machines have found each other.
const LOOKS: usize = 150;
const LOOK: Duration = Duration::from_millis(200);

/// The layer `drbd` of a study.
pub(crate) const KIND: LayerKind = LayerKind {
    name: "drbd",
    summary: "A device replicated to a peer (DRBD): what it lies on is set up on both machines.",
    settings: &[
        SettingDoc::choice(
            "protocol",
            &["A", "B", "C"],
            "C",
            "When a write has returned: A: on this disk and handed to the network; B: the peer has it in memory; C: on both disks.",
        ),
        SettingDoc::choice(
            "state",
            &["connected", "disconnected", "resyncing"],
            "connected",
            "connected: both disks the same, without a first sync; disconnected: no peer; resyncing: all of it is being copied to the peer meanwhile.",
        ),
        SettingDoc::choice(
            "role",
            &["single", "dual"],
            "single",
            "single: this machine is primary; dual: both are, which needs protocol C and state connected.",
        ),
        SettingDoc::texts(
            "net",
            "",
            "Options of the net section as drbd.conf takes them: \"max-buffers 8000\".",
        ),
        SettingDoc::texts(
            "disk",
            "",
            "Options of the disk section as drbd.conf takes them: \"resync-rate 10M\".",
        ),
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    example: "drbd = { protocol = \"C\", net = [\"max-buffers 8000\"], delay = \"1 ms\" }",
    words: &[&NET, &DISK],
    parse,
    packages: &[Package::new(
        "drbd-utils",
        &["drbdadm", "drbdsetup", "drbdmeta"],
    )],
    undo: &[undo::DOWN],
    imagined: imagined::TOOLS,
    tried: Tried {
        shapes: &[
            &[
                "lab-disks = { size = \"1 GiB\" }",
                "drbd = { protocol = \"A\", net = [\"max-buffers 8000\"], delay = \"1 ms\", rate = \"12.5 MB\" }",
                "ext3 = {}",
            ],
            &[
                "loop = { size = \"1 GiB\" }",
                "drbd = { state = \"disconnected\" }",
                "xfs = {}",
            ],
            &[
                "lab-disks = { size = \"1 GiB\" }",
                "drbd = { delay = \"1 ms\" }",
                "ext3 = {}",
                "nfs = { rate = \"12.5 MB\" }",
            ],
        ],
        kills: &[KillStack {
            name: "drbd",
            disks: ("64 MiB", 1),
            layers: &["drbd = { protocol = \"C\", delay = \"1 ms\" }", "ext4 = {}"],
            machines: &[2],
        }],
        changes: &["drbdadm"],
        standing: "[ ! -d /sys/module/drbd ] || drbdsetup status | grep -v 'No currently configured DRBD found'",
        ..Tried::NOWHERE
    },
    ..LayerKind::EMPTY
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connected,
    Disconnected,
    Resyncing,
}

struct Drbd {
    protocol: String,
    state: State,
    dual: bool,
    net: Vec<String>,
    disk: Vec<String>,
    line: Line,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let protocol = settings.text("protocol")?;
    let state = match settings.text("state")?.as_str() {
        "disconnected" => State::Disconnected,
        "resyncing" => State::Resyncing,
        _ => State::Connected,
    };
    let dual = settings.text("role")? == "dual";
    if dual && protocol != "C" {
        return Err(Refusal::at(
            settings.span_of("role"),
            format!(
                "two primaries need protocol C: under {protocol} one may read what the other has not written yet"
            ),
            "write protocol = \"C\", or role = \"single\"",
        ));
    }
    if dual && state != State::Connected {
        return Err(Refusal::at(
            settings.span_of("role"),
            "two primaries must be connected and have the same",
            "write state = \"connected\", or role = \"single\"",
        ));
    }
    Ok(Box::new(Drbd {
        protocol,
        state,
        dual,
        net: lines(settings, "net", ' ', &NET)?,
        disk: lines(settings, "disk", ' ', &DISK)?,
        line: Line::parse(settings)?,
    }))
}

impl Drbd {
    /// The resource as drbd.conf(5) has it.
    fn configuration(&self, resource: &str, port: usize, ends: &[End; 2]) -> String {
        let mut text = format!(
            "resource {resource} {{\n  net {{\n    protocol {};\n",
            self.protocol
        );
        if self.dual {
            // Without it the second machine cannot become primary (drbd.conf(5)).
            text.push_str("    allow-two-primaries yes;\n");
        }
        for option in &self.net {
            text.push_str(&format!("    {option};\n"));
        }
        text.push_str("  }\n  disk {\n");
        for option in &self.disk {
            text.push_str(&format!("    {option};\n"));
        }
        text.push_str("  }\n");
        for end in ends {
            let address = match end.address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("ipv6 [{address}]"),
            };
            text.push_str(&format!(
                "  on {} {{\n    device /dev/drbd{};\n    disk {};\n    address {address}:{port};\n    meta-disk internal;\n  }}\n",
                end.name,
                end.minor,
                end.disk.display(),
            ));
        }
        text.push_str("}\n");
        text
    }
}

/// One of the two machines.
struct End {
    name: String,
    /// Number of its device.
    minor: usize,
    disk: PathBuf,
    address: IpAddr,
}

impl End {
    /// An end on a disk that may be written over, on a machine whose driver is loaded.
    fn of(
        host: &dyn Host,
        disk: &Device,
        minor: usize,
        address: IpAddr,
    ) -> Result<Self, LayerError> {
        filesystem::ours_to_format(host, disk)?;
        // drbdadm finds its own section of the file by this name (`on NAME`).
        let name = host.must(&argv(["uname", "-n"]))?.stdout;
        Ok(Self {
            name: name.trim().to_string(),
            minor,
            disk: disk.path.clone(),
            address,
        })
    }
}

/// Both ends, each on a disk and at an address.
fn ends(
    setup: &Setup<'_>,
    disks: [&Device; 2],
    addresses: [IpAddr; 2],
) -> Result<[End; 2], LayerError> {
    let (host, peer) = (setup.host(), setup.peer()?);
    let minors = free_minors(host, peer)?;
    let ends = [
        End::of(host, disks[0], minors[0], addresses[0])?,
        End::of(peer, disks[1], minors[1], addresses[1])?,
    ];
    if ends[0].name == ends[1].name {
        return Err(LayerError::refused(
            format!(
                "both machines call themselves {}, and DRBD knows them by that",
                ends[0].name
            ),
            "give one another name (hostnamectl hostname NAME)",
        ));
    }
    Ok(ends)
}

/// Brings up the resource of one end, as a text configures it.
fn up(setup: &mut Setup<'_>, resource: &str, text: &str) -> Result<Admin, LayerError> {
    let admin = Admin {
        file: setup.scratch()?.join(setup.name("drbd.res")),
        resource: resource.to_string(),
    };
    setup.create_text(&admin.file, text)?;
    // Before the first command that makes something; taking down what is not there is fine.
    setup.will(undo::DOWN.of([resource.into()]))?;
    // --force: it asks nothing. That the device carries no signature was looked at before.
    admin.run(setup.host(), &["create-md", "--force"])?;
    admin.run(setup.host(), &["up"])?;
    Ok(admin)
}

/// The tool with its words for one resource.
struct Admin {
    file: PathBuf,
    resource: String,
}

impl Admin {
    fn run(&self, host: &dyn Host, words: &[&str]) -> Result<String, LayerError> {
        let mut command = argv(["drbdadm", "--config-file"]);
        command.push(self.file.clone().into());
        command.extend(argv(words.iter().copied()));
        command.push(self.resource.clone().into());
        let output = host.must(&command)?;
        Ok(output.stdout.trim().to_string())
    }

    /// Waits until the tool says what is wanted.
    fn until(&self, host: &dyn Host, word: &str, wanted: &[&str]) -> Result<String, LayerError> {
        let mut found = self.run(host, &[word])?;
        for _ in 0..LOOKS {
            if wanted.contains(&found.as_str()) {
                return Ok(found);
            }
            host.pause(LOOK);
            found = self.run(host, &[word])?;
        }
        Err(LayerError::refused(
            format!(
                "{word} of the replicated device is {found}, not {}",
                wanted.join(" or ")
            ),
            "see what the kernel says: dmesg | tail",
        ))
    }
}

impl Layer for Drbd {
    fn kind(&self) -> &'static str {
        "drbd"
    }

    fn brief(&self) -> String {
        let role = if self.dual { "dual" } else { "single" };
        format!("drbd, protocol = {}, role = {role}", self.protocol)
    }

    fn describe_asked(&self) -> String {
        let mut text = format!("DRBD to a peer, protocol {}", self.protocol);
        text.push_str(match self.state {
            State::Connected => ", connected",
            State::Disconnected => ", disconnected",
            State::Resyncing => ", resyncing",
        });
        if self.dual {
            text.push_str(", both primary");
        }
        for (section, options) in [("net", &self.net), ("disk", &self.disk)] {
            if !options.is_empty() {
                text.push_str(&format!(", {section} {}", options.join(", ")));
            }
        }
        text + &self.line.asked()
    }

    fn takes(&self) -> Takes {
        Takes::Devices { min: 1, max: 1 }
    }

    fn devices_given(&self) -> Option<usize> {
        Some(1)
    }

    fn below(&self) -> Below {
        Below::OnBoth
    }

    fn written_below(&self, bytes: u64, _devices: usize) -> u64 {
        // Once on each machine.
        2 * bytes
    }

    fn is_shared(&self) -> bool {
        self.dual
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            tools: &["drbdadm", "drbdsetup", "modprobe", "uname", "ip", "tc"],
            packages: KIND.packages,
            drivers: &[DRIVER],
            ..Needs::default()
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        // What lies below stands on both machines; `build` set it up twice.
        let here = filesystem::devices(below)?;
        let there = filesystem::devices(setup.there())?;
        if setup.is_outlived() {
            return Err(LayerError::refused(
                "what DRBD keeps on its devices would outlive the stack",
                "put it on loop or on lab-disks",
            ));
        }
        // The driver holds the devices below open as long as the resource is up.
        setup.keep_standing();
        // The driver sends by itself, in the network of the kernel.
        let ready = self.line.set_up(setup, Sockets::OfKernel)?;
        let ends = ends(setup, [&here[0], &there[0]], ready.addresses)?;
        // One port for both ends.
        let port = PORT + ends[0].minor;
        let resource = setup.name("drbd").trim_start_matches('.').to_string();
        let up = |setup: &mut Setup<'_>, resource: &str| {
            // The same sections on both machines: each end finds itself by its name.
            up(setup, resource, &self.configuration(resource, port, &ends))
        };
        let admin = up(setup, &resource)?;
        let peer = setup.peer()?;
        // A kernel knows a resource once, by its name.
        let theirs = match peer.shares_kernel() {
            true => format!("{resource}-2"),
            false => resource.clone(),
        };
        let there = setup.on_peer(|setup| up(setup, &theirs))?;
        // First the connection: what is declared without it does not reach the peer.
        let connected = admin.until(setup.host(), "cstate", &["Connected"]);
        connected.map_err(|error| unconnected(error, &ends, port))?;
        let mut facts = self.bring((setup.host(), &admin), (peer, &there))?;
        facts.extend(ready.facts);
        let device = PathBuf::from(format!("/dev/drbd{}", ends[0].minor));
        Ok(StandingLayer {
            gives: Gives::Devices(vec![Device {
                path: device.clone(),
                origin: Origin::Replica(resource),
            }]),
            facts: LayerFacts {
                layer: "drbd".to_string(),
                facts,
            },
            devices: vec![block::name(&device)],
            disks: Vec::new(),
        })
    }
}

impl Drbd {
    /// Brings both ends, which are connected, into the state that was asked, and reads it back.
    fn bring(
        &self,
        (host, admin): (&dyn Host, &Admin),
        (peer, there): (&dyn Host, &Admin),
    ) -> Result<Vec<Fact>, LayerError> {
        let mut first = "none: both disks were declared the same";
        if self.state == State::Resyncing {
            first = "under way from this machine to the peer";
            // Declares this disk the good one: all of it is copied to the peer.
            admin.run(host, &["primary", "--force"])?;
            admin.until(host, "cstate", &["SyncSource", "PausedSyncS"])?;
        } else {
            // Declares both disks the same, without a first sync: what they held before is never
            // read.
            admin.run(host, &["new-current-uuid", "--clear-bitmap"])?;
            admin.until(host, "dstate", &["UpToDate/UpToDate"])?;
            admin.run(host, &["primary"])?;
        }
        if self.dual {
            there.run(peer, &["primary"])?;
        }
        // Last: both disks were the same before the peer went.
        if self.state == State::Disconnected {
            admin.run(host, &["disconnect"])?;
            admin.until(host, "cstate", &["StandAlone"])?;
        }
        let said = [
            ("cstate", "connection"),
            ("role", "roles"),
            ("dstate", "disks"),
        ];
        let mut facts = vec![
            Fact::new("protocol", &self.protocol),
            Fact::new("first sync", first),
        ];
        for (word, name) in said {
            facts.push(Fact::new(name, admin.run(host, &[word])?));
        }
        let in_force = host.must(&argv(["drbdsetup", "show", &admin.resource]))?;
        facts.extend(self.checked(&in_force.stdout)?);
        if let Ok(driver) = host.read_text(Path::new("/sys/module/drbd/version")) {
            facts.push(Fact::new("driver", driver.trim()));
        }
        Ok(facts)
    }

    /// What is in force, as `drbdsetup show` prints it; an error where the protocol is another.
    fn checked(&self, shown: &str) -> Result<Vec<Fact>, LayerError> {
        let lines: Vec<&str> = shown.lines().map(str::trim).collect();
        let value = |name: &str| {
            let line = lines.iter().find_map(|line| {
                line.strip_prefix(name)?.starts_with([' ', '\t']).then(|| {
                    line[name.len()..]
                        .split(';')
                        .next()
                        .unwrap_or_default()
                        .trim()
                })
            });
            line.map(str::to_string)
        };
        // The default, C, is not always shown.
        let protocol = value("protocol").unwrap_or_else(|| "C".to_string());
        // Without a connection there is no protocol in force.
        if self.state != State::Disconnected && protocol != self.protocol {
            return Err(LayerError::refused(
                format!(
                    "protocol {protocol} is in force although {} was asked",
                    self.protocol
                ),
                "",
            ));
        }
        let asked = self.net.iter().chain(&self.disk);
        let facts = asked.filter_map(|option| {
            let name = option.split_whitespace().next()?;
            let found = value(name).unwrap_or_else(|| "not shown: the default".to_string());
            Some(Fact::new(format!("{name} in force"), found))
        });
        Ok(facts.collect())
    }
}

/// Why the machines have not found each other, with what there has to be between them.
fn unconnected(error: LayerError, ends: &[End; 2], port: usize) -> LayerError {
    let [here, there] = [&ends[0], &ends[1]].map(|end| format!("{}:{port}", end.address));
    LayerError::refused(
        format!("the machines cannot connect to each other: {error}"),
        format!(
            "let TCP through between {here} and {there}, both ways, and see dmesg | tail on both"
        ),
    )
}

/// A device number of each machine that neither uses: the same one, except in one kernel.
fn free_minors(here: &dyn Host, there: &dyn Host) -> Result<[usize; 2], LayerError> {
    for host in [here, there] {
        // The driver shows in /sys which numbers are free.
        host.must(&argv(["modprobe", "drbd"]))?;
    }
    let free = |minor: &usize| {
        let shown = PathBuf::from(format!("/sys/block/drbd{minor}"));
        !here.exists(&shown) && !there.exists(&shown)
    };
    let mut all = (0..MINORS).filter(free);
    let first = all.next();
    let second = match there.shares_kernel() {
        true => all.next(),
        false => first,
    };
    first.zip(second).map(Into::into).ok_or_else(|| {
        LayerError::refused(
            format!("{MINORS} devices of DRBD are in use"),
            "take some down",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_is_read_and_another_protocol_is_an_error() {
        let drbd = Drbd {
            protocol: "A".to_string(),
            state: State::Connected,
            dual: false,
            net: vec!["max-buffers 8000".to_string()],
            disk: vec!["resync-rate 10M".to_string()],
            line: Line::parse(&Settings {
                owner: "drbd".to_string(),
                span: 0..1,
                settings: Vec::new(),
                docs: &[],
            })
            .unwrap(),
        };
        let shown = "resource r {\n    net {\n        protocol            A;\n        max-buffers         8000;\n    }\n}\n";
        assert_eq!(
            drbd.checked(shown).unwrap(),
            [
                Fact::new("max-buffers in force", "8000"),
                Fact::new("resync-rate in force", "not shown: the default"),
            ]
        );
        assert!(drbd.checked("resource r {\n}\n").is_err());
    }
}
