//! A device over NVMe over TCP: lent by the kernel's target (nvmet), a disk of the kernel here.

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
use stackrace_machine::host::imagined::{ImaginedDevice, Tool, World, asked, said, word};
use stackrace_machine::host::{Driver, Host, HostError, Needs, Output, Package, argv};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The word in a study.
const NAME: &str = "nvme-tcp";

/// The tool of the client.
const TOOL: &str = "nvme";

/// The port that IANA has for it.
const PORT: &str = "4420";

/// The tree of the kernel's target.
const TARGET: &str = "/sys/kernel/config/nvmet";

/// Where a disk tells whose it is: of a controller, and of several paths to one.
const SUBSYSTEM: &str = "device/subsysnqn";

/// The layer `nvme-tcp` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A device served and connected over NVMe over TCP, both by the kernel.",
    settings: &[
        SettingDoc::count(
            "queues",
            "",
            "How many queues for reads and writes, 1 to 128.",
        )
        .computed("one for each processor"),
        SettingDoc::count(
            "queue-size",
            "128",
            "How many commands each queue holds, 16 to 1024.",
        ),
        lent::HEADER_DIGEST,
        lent::DATA_DIGEST,
        SERVER.doc,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    example: "nvme-tcp = { queue-size = 64, data-digest = true, delay = \"1 ms\" }",
    parse,
    packages: PACKAGES,
    undo: &[DISCONNECT, STOP],
    imagined: &[Tool::new(TOOL, imagined), config_tree::IMAGINED],
    shapes: &[
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "nvme-tcp = { queues = 2, header-digest = true, rate = \"125 MB\" }",
            "ext4 = {}",
        ],
        &[
            "loop = { size = \"1 GiB\" }",
            "nvme-tcp = { server = \"same\" }",
            "luks = {}",
            "xfs = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new("nvme-cli", &[TOOL])];

/// Ends the connection to a device that was lent under a name of ours.
const DISCONNECT: UndoKind = UndoKind::new(NAME, "disconnect", &[Param::OurName], disconnect);

/// Lends a device under a name of ours no more.
const STOP: UndoKind = UndoKind::new(NAME, "stop", &[Param::OurName], stop);

struct NvmeTcp {
    queues: Option<u64>,
    queue_size: u64,
    header_digest: bool,
    data_digest: bool,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let asked = NvmeTcp {
        queues: settings.optional_count("queues")?,
        queue_size: settings.count("queue-size")?,
        header_digest: settings.flag(lent::HEADER_DIGEST.name)?,
        data_digest: settings.flag(lent::DATA_DIGEST.name)?,
    };
    let limits = [
        ("queues", asked.queues, 1..=128),
        ("queue-size", Some(asked.queue_size), 16..=1024),
    ];
    for (name, count, limits) in limits {
        if let Some(count) = count.filter(|count| !limits.contains(count)) {
            let what = format!("{name} = {count} is not possible");
            let next = format!("write {} to {}", limits.start(), limits.end());
            return Err(settings.refuse(name, what, next));
        }
    }
    Lent::layer(asked, settings)
}

/// The name that the target and the client know it by (NVMe Base Specification, NQN).
fn subsystem(name: &str) -> String {
    format!("nqn.2026-11.invalid.stackrace:{name}")
}

/// What the target makes for one device.
struct Served {
    subsystem: PathBuf,
    space: PathBuf,
    client: PathBuf,
    allowed: PathBuf,
    port: PathBuf,
    link: PathBuf,
}

impl Served {
    fn of(name: &str) -> Self {
        let root = Path::new(TARGET);
        let (nqn, client) = (subsystem(name), client(name));
        let subsystem = root.join("subsystems").join(&nqn);
        // A port is known by a number of 16 bits; one that is there already is another's.
        let port = root
            .join("ports")
            .join((lent::number(name) as u16).to_string());
        Self {
            space: subsystem.join("namespaces/1"),
            client: root.join("hosts").join(&client),
            allowed: subsystem.join("allowed_hosts").join(client),
            link: port.join("subsystems").join(nqn),
            subsystem,
            port,
        }
    }
}

/// The only client that is let in.
fn client(name: &str) -> String {
    format!("{}:client", subsystem(name))
}

/// Ends the connection; none of that name is fine.
fn disconnect(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let nqn = format!("--nqn={}", subsystem(text(of, 0)));
    let command = argv([TOOL, "disconnect", &nqn]);
    let output = host.exec(&command)?;
    // Without the driver there are no connections.
    match output.status == Some(0) || output.stderr.contains("No such file") {
        true => Ok(()),
        false => Err(HostError::failed(&command, output)),
    }
}

/// Takes away what the target made, as far as it is there; what goes first refers to what goes last.
fn stop(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let served = Served::of(text(of, 0));
    host.remove_file(&served.link)?;
    host.remove_file(&served.allowed)?;
    for directory in [served.space, served.subsystem, served.client, served.port] {
        host.remove_dir(&directory)?;
    }
    Ok(())
}

impl Lends for NvmeTcp {
    const KIND: &'static LayerKind = &KIND;

    fn asked(&self) -> String {
        let queues = match self.queues {
            Some(queues) => format!("{queues} queues"),
            None => "a queue for each processor".to_owned(),
        };
        let mut text = format!("NVMe over TCP, {queues} of {} commands", self.queue_size);
        for (is_asked, what) in [(self.header_digest, "headers"), (self.data_digest, "data")] {
            if is_asked {
                text.push_str(&format!(", {what} with a checksum"));
            }
        }
        text
    }

    fn client_needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: "nvme_tcp",
                shown_by: "/sys/module/nvme_tcp",
                what: "disks over NVMe over TCP (nvme-tcp)",
            }],
            ..Needs::as_root(&[TOOL, "ip", "tc"], PACKAGES)
        }
    }

    fn server_needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: "nvmet_tcp",
                shown_by: "/sys/module/nvmet_tcp",
                what: "the target of NVMe over TCP (nvmet-tcp)",
            }],
            ..Needs::as_root(&["wipefs", "mount", "ln", "ip", "tc"], &[])
        }
    }

    fn serve(
        &self,
        setup: &mut Setup<'_>,
        loan: &Loan<'_>,
        device: &Path,
    ) -> Result<(), LayerError> {
        let host = setup.host();
        config_tree::shown(host)?;
        let served = Served::of(&loan.name);
        if host.exists(&served.port) {
            return Err(LayerError::refused(
                format!("the target has a port {} already", served.port.shown()),
                "run it again: another number is taken at random",
            ));
        }
        setup.will(STOP.of([loan.name.clone().into()]))?;
        lent::directories(host, [&served.subsystem, &served.space, &served.client])?;
        // Without this link the target lets no client in.
        lent::linked(host, &served.client, &served.allowed)?;
        let device = device.to_string_lossy();
        host.write_text(&served.space.join("device_path"), &device)?;
        host.write_text(&served.space.join("enable"), "1")?;
        // The port last: nothing is asked for before all of it is there.
        lent::directories(host, [&served.port])?;
        let family = match loan.ends.server {
            IpAddr::V4(_) => "ipv4",
            IpAddr::V6(_) => "ipv6",
        };
        for (file, value) in [
            ("addr_trtype", "tcp"),
            ("addr_adrfam", family),
            ("addr_traddr", &loan.ends.server.to_string()),
            ("addr_trsvcid", PORT),
        ] {
            host.write_text(&served.port.join(file), value)?;
        }
        // From here on it listens.
        lent::linked(host, &served.subsystem, &served.link)
    }

    fn connect(&self, setup: &mut Setup<'_>, loan: &Loan<'_>) -> Result<LentDisk, LayerError> {
        let (host, nqn) = (setup.host(), subsystem(&loan.name));
        let mut command = argv([TOOL, "connect", "--transport=tcp"]);
        command.extend(argv([
            format!("--nqn={nqn}"),
            format!("--traddr={}", loan.ends.server),
            format!("--trsvcid={PORT}"),
            format!("--hostnqn={}", client(&loan.name)),
            // The kernel wants another one for each name of a client.
            format!("--hostid={}", setup.uuid()),
            format!("--queue-size={}", self.queue_size),
        ]));
        command.extend(
            self.queues
                .map(|queues| format!("--nr-io-queues={queues}").into()),
        );
        let digests = [
            (self.header_digest, "--hdr-digest"),
            (self.data_digest, "--data-digest"),
        ];
        let digests = digests.into_iter().filter(|(is_asked, _)| *is_asked);
        command.extend(digests.map(|(_, option)| option.into()));
        // The driver looks for the namespaces afterwards: the disk comes some time later.
        setup.make(DISCONNECT.of([loan.name.clone().into()]), &command)?;
        let disk = appeared(host, SUBSYSTEM, &nqn)?;
        let mut facts = self.read_back(host, &disk)?;
        facts.extend(lent::facts(host, &disk));
        Ok(LentDisk {
            name: disk,
            shown: (SUBSYSTEM, nqn),
            facts,
        })
    }
}

impl NvmeTcp {
    /// Queues as the driver made them: fewer where the target has fewer, or this machine fewer processors.
    fn read_back(&self, host: &dyn Host, disk: &str) -> Result<Vec<Fact>, LayerError> {
        let device = Path::new(block::DISKS).join(disk).join("device");
        let has_queues = |place: &PathBuf| host.exists(&place.join("queue_count"));
        // Where the kernel can have several paths to a disk, its controllers are one step further down.
        let paths = host.list(&device).unwrap_or_default();
        let mut places =
            std::iter::once(device.clone()).chain(paths.iter().map(|path| device.join(path)));
        let Some(controller) = places.find(has_queues) else {
            return Err(LayerError::refused(format!("{disk} tells no queues"), ""));
        };
        let told = |file: &str| -> Result<u64, LayerError> {
            let text = host.read_text(&controller.join(file))?;
            Ok(text.trim().parse().unwrap_or_default())
        };
        // The first is for orders to the controller; sizes are counted from 0.
        let queues = told("queue_count")?.saturating_sub(1);
        let size = told("sqsize")? + 1;
        let other = self.queues.is_some_and(|asked| asked != queues);
        if other || size != self.queue_size {
            let asked = self.queues.unwrap_or(queues);
            return Err(LayerError::refused(
                format!(
                    "{disk} has {queues} queues of {size} commands although {asked} of {} were asked for",
                    self.queue_size
                ),
                "ask for at most one queue for each processor, and for what the target holds",
            ));
        }
        Ok(vec![
            Fact::new("queues", queues.to_string()),
            Fact::new("commands per queue", size.to_string()),
        ])
    }
}

/// `nvme connect` and `nvme disconnect`.
fn imagined(world: &mut World, words: &[OsString]) -> Output {
    let asked = asked(words);
    let told = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let number = |name: &str, other: u64| told(name).parse().unwrap_or(other);
    let device = OsString::from(format!("/dev/nvme-{}", told("nqn").replace(':', "-")));
    if word(words, 1) == "disconnect" {
        return match world.is_device(&device) {
            true => world.detach(&device),
            false => said("disconnected 0 controller(s)\n"),
        };
    }
    // As the driver shows it; the first queue is its own.
    let about = [
        (SUBSYSTEM, told("nqn")),
        (
            "device/queue_count",
            (number("nr-io-queues", 4) + 1).to_string(),
        ),
        (
            "device/sqsize",
            number("queue-size", 128).saturating_sub(1).to_string(),
        ),
        ("queue/logical_block_size", "512".to_owned()),
    ];
    let connected = ImaginedDevice {
        about: about.into(),
        ..ImaginedDevice::default()
    };
    world.attach(device, connected);
    said("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};

    #[test]
    fn what_no_target_has_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("nvme-tcp = { queues = 0 }", "queues = 0"),
            ("nvme-tcp = { queue-size = 8 }", "queue-size = 8"),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
        let disk = [
            stackrace_foundation::foundation::ON_A_DISK,
            "nvme-tcp = {}",
            "ext4 = {}",
        ];
        let (at, why) = Stack::new(disk.map(layer).into()).err().unwrap();
        assert_eq!(at, 1);
        assert!(why.contains("cannot be marked as ours"), "{why}");
    }

    #[test]
    fn two_stacks_have_ports_of_their_own() {
        let port = |name: &str| Served::of(name).port;
        let [one, two] = ["0123456789abcdef-1", "0123456789abcdef-2"]
            .map(|name| port(&format!("stackrace-{name}")));
        assert_ne!(one, two);
        assert_eq!(one, Path::new("/sys/kernel/config/nvmet/ports/17768"));
    }
}
