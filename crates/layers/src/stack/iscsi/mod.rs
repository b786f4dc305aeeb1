//! A device over iSCSI: lent by the kernel's target (LIO), a disk of open-iscsi here.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit::ShownPath;
use stackrace_foundation::foundation::lent::{self, Lends, Lent, LentDisk, Loan, appeared};
use stackrace_foundation::foundation::share::SERVER;
use stackrace_foundation::foundation::{
    GivesKind, Layer, LayerError, LayerKind, Setup, Takes, block, config_tree, line,
};
use stackrace_machine::host::imagined::{
    Assembly, Tool, World, complained, said, text_after, word,
};
use stackrace_machine::host::{
    Daemon, Driver, Host, HostError, Needs, Output, Package, argv, argv_at,
};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// The word in a study.
const NAME: &str = "iscsi";

/// The tool of the client, and its daemon: it has one for a machine.
const TOOL: &str = "iscsiadm";
const DAEMON: Daemon = Daemon {
    program: "iscsid",
    port: None,
};

/// The socket at which the daemon, or who starts it when it is needed, waits for the tool.
const SOCKET: &str = "@ISCSIADM_ABSTRACT_NAMESPACE";

/// The file with the name of a machine whose daemon is not ours.
const MACHINE: &str = "/etc/iscsi/initiatorname.iscsi";

/// The port that IANA has for it.
const PORT: u16 = 3260;

/// The tree of the kernel's target.
const TARGET: &str = "/sys/kernel/config/target";

/// Where a disk tells its serial number, which the target was told.
const SERIAL: &str = "device/vpd_pg80";

/// Status of the tool where it finds none of what it is asked for (iscsiadm(8), ISCSI_ERR_NO_OBJS_FOUND).
const NONE_FOUND: i32 = 21;

/// The layer `iscsi` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A device served by the kernel over iSCSI (LIO) and connected here (open-iscsi).",
    settings: &[
        SettingDoc::count(
            "queue-depth",
            "32",
            "How many commands the disk holds, 1 to 1024.",
        ),
        SettingDoc::count(
            "commands",
            "128",
            "How many the session holds: a power of two, 2 to 2048.",
        ),
        lent::HEADER_DIGEST,
        lent::DATA_DIGEST,
        SERVER.doc,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    example: "iscsi = { queue-depth = 64, header-digest = true, server = \"same\" }",
    parse,
    packages: PACKAGES,
    undo: &[LOG_OUT, STOP],
    imagined: &[
        Tool::new(TOOL, imagined),
        Tool::new(DAEMON.program, |world, _| world.start(DAEMON.program, &[])),
        config_tree::IMAGINED,
    ],
    reads: &[|text| digests(text, "")],
    shapes: &[
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "iscsi = { queue-depth = 64, data-digest = true, delay = \"1 ms\" }",
            "ext4 = {}",
        ],
        &[
            "loop = { size = \"1 GiB\" }",
            "iscsi = { server = \"same\" }",
            "xfs = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new("open-iscsi", &[TOOL, DAEMON.program])];

/// Logs out of a target with a name of ours, and forgets it.
const LOG_OUT: UndoKind = UndoKind::new(NAME, "log-out", &[Param::OurName], log_out);

/// Takes a target with a name of ours away.
const STOP: UndoKind = UndoKind::new(NAME, "stop", &[Param::OurName], stop);

struct Iscsi {
    depth: u64,
    commands: u64,
    header_digest: bool,
    data_digest: bool,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let asked = Iscsi {
        depth: settings.count("queue-depth")?,
        commands: settings.count("commands")?,
        header_digest: settings.flag(lent::HEADER_DIGEST.name)?,
        data_digest: settings.flag(lent::DATA_DIGEST.name)?,
    };
    if !(1..=1024).contains(&asked.depth) {
        let what = format!("a disk over iSCSI cannot hold {} commands", asked.depth);
        return Err(settings.refuse("queue-depth", what, "write 1 to 1024"));
    }
    // iscsid.conf: the tool would take another number than the one that is written.
    if !(2..=2048).contains(&asked.commands) || !asked.commands.is_power_of_two() {
        let what = format!("a session of iSCSI cannot hold {} commands", asked.commands);
        return Err(settings.refuse("commands", what, "write a power of two, 2 to 2048"));
    }
    if asked.commands < asked.depth {
        let what = format!(
            "{} commands of a disk do not fit into a session of {}",
            asked.depth, asked.commands
        );
        return Err(settings.refuse("queue-depth", what, "write a smaller one, or more commands"));
    }
    Lent::layer(asked, settings)
}

/// The name of the target (RFC 7143, iqn).
fn target(name: &str) -> String {
    format!("iqn.2026-11.invalid.stackrace:{name}")
}

/// What the target makes for one device, in the order in which it is made.
struct Served {
    /// The driver's place for devices, one of its own.
    place: PathBuf,
    device: PathBuf,
    target: PathBuf,
    group: PathBuf,
    unit: PathBuf,
    unit_link: PathBuf,
}

impl Served {
    fn of(name: &str) -> Self {
        let root = Path::new(TARGET);
        let place = root
            .join("core")
            .join(format!("iblock_{}", lent::number(name)));
        let target = root.join(NAME).join(target(name));
        let group = target.join("tpgt_1");
        let unit = group.join("lun/lun_0");
        Self {
            device: place.join(name),
            unit_link: unit.join(name),
            place,
            target,
            unit,
            group,
        }
    }

    /// The only client, with its unit and the link to it.
    fn client(&self, client: &str) -> [PathBuf; 3] {
        let known = self.group.join("acls").join(client);
        let unit = known.join("lun_0");
        let link = unit.join("disk");
        [known, unit, link]
    }
}

/// The name of the client where its daemon is ours.
fn client(name: &str) -> String {
    format!("{}.client", target(name))
}

/// Logs out and removes the record; where there is none is fine.
fn log_out(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let target = target(text(of, 0));
    for words in [&["-u"] as &[&str], &["-o", "delete"]] {
        let mut command = argv([TOOL, "-m", "node", "-T", &target]);
        command.extend(argv(words.iter().copied()));
        let output = host.exec(&command)?;
        if ![Some(0), Some(NONE_FOUND)].contains(&output.status) {
            return Err(HostError::failed(&command, output));
        }
    }
    Ok(())
}

/// Takes away what the target made, as far as it is there; what goes first refers to what goes last.
fn stop(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let served = Served::of(text(of, 0));
    // The names of clients and addresses are the target's own.
    let all = |part: &str| host.list(&served.group.join(part)).unwrap_or_default();
    for address in all("np") {
        host.remove_dir(&served.group.join("np").join(address))?;
    }
    for client in all("acls") {
        let [known, unit, link] = served.client(&client.to_string_lossy());
        host.remove_file(&link)?;
        host.remove_dir(&unit)?;
        host.remove_dir(&known)?;
    }
    host.remove_file(&served.unit_link)?;
    for directory in [
        &served.unit,
        &served.group,
        &served.target,
        &served.device,
        &served.place,
    ] {
        host.remove_dir(directory)?;
    }
    Ok(())
}

impl Iscsi {
    /// Digests as the node's record has them: one that both ends must take, and none.
    fn digest(is_asked: bool) -> &'static str {
        if is_asked { "CRC32C" } else { "None" }
    }
}

/// True if a daemon that is not ours serves this machine.
fn is_served(host: &dyn Host) -> bool {
    let sockets = host.read_text(Path::new("/proc/net/unix"));
    sockets.is_ok_and(|sockets| sockets.contains(SOCKET))
}

/// The client's name: ours, or the machine's where its own daemon runs.
fn client_here(host: &dyn Host, name: &str) -> Result<String, LayerError> {
    if !is_served(host) {
        return Ok(client(name));
    }
    let text = host.read_text(Path::new(MACHINE))?;
    let mut lines = text.lines().map(str::trim);
    let named = lines.find_map(|line| line.strip_prefix("InitiatorName="));
    named.map(|named| named.trim().to_owned()).ok_or_else(|| {
        LayerError::refused(
            format!("{MACHINE} has no line InitiatorName="),
            "give this machine a name: iscsi-iname",
        )
    })
}

impl Lends for Iscsi {
    const KIND: &'static LayerKind = &KIND;

    fn asked(&self) -> String {
        format!(
            "iSCSI, {} commands of {} in a session, header digest {}, data digest {}",
            self.depth,
            self.commands,
            Self::digest(self.header_digest),
            Self::digest(self.data_digest)
        )
    }

    fn client_needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: "iscsi_tcp",
                shown_by: "/sys/module/iscsi_tcp",
                what: "disks over iSCSI (iscsi_tcp)",
            }],
            ..Needs::as_root(&[TOOL, DAEMON.program, "ip", "tc"], PACKAGES)
        }
    }

    fn server_needs(&self) -> Needs {
        Needs {
            drivers: &[
                Driver {
                    module: "iscsi_target_mod",
                    shown_by: "/sys/module/iscsi_target_mod",
                    what: "the target of iSCSI (LIO)",
                },
                Driver {
                    module: "target_core_iblock",
                    shown_by: "/sys/module/target_core_iblock",
                    what: "devices of a target (target_core_iblock)",
                },
            ],
            ..Needs::as_root(&["wipefs", "mkdir", "mount", "ln", "ip", "tc"], &[])
        }
    }

    fn serve(
        &self,
        setup: &mut Setup<'_>,
        loan: &Loan<'_>,
        device: &Path,
    ) -> Result<(), LayerError> {
        // Of this run's own the name is drawn for one stack, and tearing that down would end the other's sessions.
        if setup.has_started(DAEMON.program) {
            return Err(LayerError::refused(
                "another stack of this run has the client of iSCSI, of which a machine has one",
                "write provision = \"each-round\" and order = \"turns\" in [trial]: one stack after the other",
            ));
        }
        let client = client_here(loan.client, &loan.name)?;
        let host = setup.host();
        config_tree::shown(host)?;
        let served = Served::of(&loan.name);
        if host.exists(&served.place) {
            return Err(LayerError::refused(
                format!("the target has {} already", served.place.shown()),
                "run it again: another number is taken at random",
            ));
        }
        // The protocol itself stays, as its module does.
        let protocol = Path::new(TARGET).join(NAME);
        host.must(&argv_at(["mkdir", "-p"], &protocol))?;
        setup.will(STOP.of([loan.name.clone().into()]))?;
        lent::directories(host, [&served.place, &served.device])?;
        let write = |file: PathBuf, text: &str| host.write_text(&file, text);
        write(
            served.device.join("control"),
            &format!("udev_path={}", device.to_string_lossy()),
        )?;
        // By this number the disk is found on the client, whatever the kernel calls it there.
        write(served.device.join("wwn/vpd_unit_serial"), &loan.name)?;
        write(served.device.join("enable"), "1")?;
        let [known, unit, link] = served.client(&client);
        lent::directories(host, [&served.target, &served.group, &served.unit])?;
        lent::linked(host, &served.device, &served.unit_link)?;
        // The name of the client, which is drawn, lets it in.
        write(served.group.join("attrib/authentication"), "0")?;
        lent::directories(host, [&known, &unit])?;
        lent::linked(host, &served.unit, &link)?;
        let address = SocketAddr::new(loan.ends.server, PORT).to_string();
        let portal = served.group.join("np").join(address);
        // By a command, which sees the network of the server's machine: there the target listens.
        host.must(&argv_at(["mkdir"], &portal))?;
        // Last: a client that came earlier would be refused, and not try again at once.
        write(served.group.join("enable"), "1")?;
        Ok(())
    }

    fn connect(&self, setup: &mut Setup<'_>, loan: &Loan<'_>) -> Result<LentDisk, LayerError> {
        let (host, name) = (setup.host(), &*loan.name);
        if !is_served(host) {
            let file = setup.scratch()?.join(setup.name("initiator"));
            setup.create_text(&file, &format!("InitiatorName={}\n", client(name)))?;
            let command = argv_at([DAEMON.program, "-n", "-i"], &file);
            setup.start(&[DAEMON], &command)?;
        }
        let target = target(name);
        let address = match loan.ends.server {
            IpAddr::V4(server) => format!("{server}:{PORT}"),
            IpAddr::V6(server) => format!("[{server}]:{PORT}"),
        };
        // Before the record: a killed run must not leave one for the next start of the machine.
        setup.will(LOG_OUT.of([name.into()]))?;
        let node = |words: &[&str]| -> Result<(), LayerError> {
            let mut command = argv([TOOL, "-m", "node", "-T", &target, "-p", &address]);
            command.extend(argv(words.iter().copied()));
            host.must(&command)?;
            Ok(())
        };
        node(&["-o", "new"])?;
        for (field, value) in [
            // Not again by itself when the machine is started.
            ("node.startup", "manual"),
            ("node.session.queue_depth", &self.depth.to_string()),
            ("node.session.cmds_max", &self.commands.to_string()),
            (
                "node.conn[0].iscsi.HeaderDigest",
                Self::digest(self.header_digest),
            ),
            (
                "node.conn[0].iscsi.DataDigest",
                Self::digest(self.data_digest),
            ),
        ] {
            node(&["-o", "update", "-n", field, "-v", value])?;
        }
        // It returns when the session stands; the disks are looked for behind it.
        node(&["-l"])?;
        let disk = appeared(host, SERIAL, name)?;
        let facts = self.read_back(host, &disk, &target)?;
        Ok(LentDisk {
            name: disk,
            shown: (SERIAL, name.to_owned()),
            facts,
        })
    }
}

impl Iscsi {
    fn read_back(
        &self,
        host: &dyn Host,
        disk: &str,
        target: &str,
    ) -> Result<Vec<Fact>, LayerError> {
        let shown = host.must(&argv([TOOL, "-m", "session", "-P", "2"]))?.stdout;
        let depth = block::told(host, disk, "device/queue_depth")?;
        let mut facts = vec![Fact::new("queue depth", depth)];
        facts.extend(digests(&shown, target));
        for (name, asked) in [
            ("queue depth", self.depth.to_string()),
            ("header digest", Self::digest(self.header_digest).to_owned()),
            ("data digest", Self::digest(self.data_digest).to_owned()),
        ] {
            let found = Fact::value_of(&facts, name).unwrap_or("not told");
            if found != asked {
                return Err(LayerError::refused(
                    format!("{disk} has the {name} {found} although {asked} was asked for"),
                    "",
                ));
            }
        }
        facts.extend(lent::facts(host, disk));
        Ok(facts)
    }
}

/// Digests that the ends agreed on, as `iscsiadm -m session -P 2` prints them below `Target: NAME …`.
fn digests(shown: &str, target: &str) -> Vec<Fact> {
    let lines = shown.lines().map(str::trim);
    let of_target = |line: &&str| {
        let named = line.strip_prefix("Target:").map(str::trim);
        named.and_then(|named| named.split_whitespace().next()) != Some(target)
    };
    // Other sessions of the machine stand in the same text.
    let below = lines.skip_while(of_target).skip(1);
    let below = below.take_while(|line| !line.starts_with("Target:"));
    let named = below.filter_map(|line| {
        let (field, value) = line.split_once(':')?;
        let name = match field {
            "HeaderDigest" => "header digest",
            "DataDigest" => "data digest",
            _ => return None,
        };
        Some(Fact::new(name, value.trim()))
    });
    named.collect()
}

/// `iscsiadm -m node -T TARGET …` and `iscsiadm -m session -P 2`.
fn imagined(world: &mut World, words: &[OsString]) -> Output {
    let told = |option: &str| text_after(words, option).unwrap_or_default();
    let target = told("-T");
    let does = |option: &str| words.iter().any(|word| word == option);
    if word(words, 2) == "session" {
        return said(imagined_session(world));
    }
    if told("-o") == "new" {
        let record = Assembly {
            tool: TOOL,
            away: true,
            ..Assembly::default()
        };
        return world.assemble(target, record);
    }
    // open-iscsi keeps a record of each target; a session belongs to one.
    let busy = world.is_busy(&target);
    let Some(record) = world
        .assembly(&target)
        .filter(|record| !does("-u") || !record.away)
    else {
        return complained(NONE_FOUND, "iscsiadm: No records found");
    };
    if does("-u") {
        record.away = !busy;
        return if busy {
            complained(9, "it is busy")
        } else {
            said("")
        };
    }
    if does("-l") {
        // As the kernel makes a disk of the target's unit; here its name tells whose it is.
        let depth = record.asked.get("node.session.queue_depth").cloned();
        let name = target.rsplit(':').next().unwrap_or_default();
        record.away = false;
        record.gives = vec![format!("/dev/sd-{name}").into()];
        record.about = [
            (SERIAL, name.to_owned()),
            ("device/queue_depth", depth.unwrap_or_default()),
        ]
        .into();
        return said("");
    }
    if told("-o") == "delete" {
        return world.disassemble(&target);
    }
    record.asked.insert(told("-n"), told("-v"));
    said("")
}

fn imagined_session(world: &World) -> String {
    let of = |(target, record): (&String, &Assembly)| {
        let digest = |which: &str| {
            let asked = record.asked.get(&format!("node.conn[0].iscsi.{which}"));
            format!("\t\t{which}: {}\n", asked.map_or("None", |asked| asked))
        };
        format!(
            "Target: {target} (non-flash)\n{}{}",
            digest("HeaderDigest"),
            digest("DataDigest")
        )
    };
    world.assembled(TOOL).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::testing::{site, stack, try_layer};
    use stackrace_foundation::foundation::Site;
    use stackrace_machine::host::plan::Fault;
    use stackrace_machine::journal::Journal;

    #[test]
    fn what_no_session_has_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("iscsi = { queue-depth = 0 }", "cannot hold 0 commands"),
            ("iscsi = { commands = 100 }", "cannot hold 100 commands"),
            (
                "iscsi = { queue-depth = 64, commands = 32 }",
                "64 commands of a disk",
            ),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
    }

    /// Its daemon has the name of the first stack's client, and goes with that stack.
    #[test]
    fn the_client_of_another_stack_of_the_run_is_not_used() {
        let base = tempfile::tempdir().unwrap();
        let scratch = base.path().canonicalize().unwrap();
        let host = crate::stack::imagined(Fault::Never);
        let journal = Journal::nowhere();
        let at = || site(&host, &journal, &scratch);
        let disk = "loop = { size = \"1 GiB\" }";
        let lines = [disk, "iscsi = { server = \"same\" }", "ext4 = {}"];
        let first = stack(&lines).set_up(&at()).unwrap();
        let other = Site {
            tag: "another".to_owned(),
            ..at()
        };
        let error = stack(&lines).set_up(&other).err().unwrap();
        let words = "another stack of this run has the client of iSCSI";
        assert!(error.to_string().contains(words), "{error}");
        first.tear_down(&at()).unwrap();
        stack(&lines)
            .set_up(&other)
            .unwrap()
            .tear_down(&other)
            .unwrap();
    }

    /// As iscsiadm(8) of open-iscsi 2.1 prints two sessions.
    #[test]
    fn digests_are_those_of_our_target() {
        let shown = "Target: iqn.a:other (non-flash)\n\tCurrent Portal: 10.0.0.1:3260,1\n\t\tHeaderDigest: None\n\t\tDataDigest: None\nTarget: iqn.a:ours (non-flash)\n\t\tHeaderDigest: CRC32C\n\t\tDataDigest: None\n";
        let found = digests(shown, "iqn.a:ours");
        assert_eq!(Fact::value_of(&found, "header digest"), Some("CRC32C"));
        assert_eq!(Fact::value_of(&found, "data digest"), Some("None"));
        assert_eq!(digests(shown, "iqn.a:none"), []);
    }
}
