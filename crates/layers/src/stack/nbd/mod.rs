//! A device over the network block device protocol: lent by nbd-server, a disk of the kernel here.
//!
//! nbd-server goes through the page cache of its machine. Without flushes, what is written stays there until
//! that kernel writes it back, and the client believes it durable.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::{Fact, FactFigure, LayerEffect};
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::lent::{self, Lends, Lent, LentDisk, Loan};
use stackrace_foundation::foundation::share::{SERVER as PLACE, listening};
use stackrace_foundation::foundation::{
    GivesKind, Layer, LayerError, LayerKind, Setup, Takes, block, line,
};
use stackrace_machine::host::imagined::{Assembly, Tool, World, complained, text_after, word};
use stackrace_machine::host::{Daemon, Driver, Host, Needs, Output, Package, argv, argv_at};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The word in a study, and the kernel's.
const NAME: &str = "nbd";

/// The port that IANA has for it.
const PORT: u16 = 10809;

const SERVER: Daemon = Daemon {
    program: "nbd-server",
    port: Some(PORT),
};
const CLIENT: &str = "nbd-client";

/// Devices that the driver makes when it is loaded.
const DEVICES: usize = 16;

/// Shows that a device is connected, and by which process.
const CONNECTED: &str = "pid";

/// Number of times, and pause between them, that it is looked whether a disk is as it was asked for.
const LOOKS: usize = 50;
const LOOK: Duration = Duration::from_millis(100);

/// The layer `nbd` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A device served by nbd-server and connected here (NBD).",
    settings: &[
        SettingDoc::bytes(
            "block-size",
            "512 B",
            "Sector of the disk here: 512, 1024, 2048 or 4096.",
        ),
        SettingDoc::count("connections", "1", "How many connections, 1 to 16."),
        SettingDoc::count(
            "threads",
            "4",
            "How many requests the server works on at once.",
        ),
        SettingDoc::flag(
            "flush",
            "true",
            "Whether the server takes flushes; without them it keeps writes in its memory.",
        ),
        PLACE.doc,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    example: "nbd = { block-size = \"4 KiB\", connections = 4, server = \"same\" }",
    parse,
    packages: PACKAGES,
    imagined: &[
        Tool::new(SERVER.program, |world, _| {
            world.start(SERVER.program, &[PORT])
        }),
        Tool::new(CLIENT, imagined_client),
    ],
    shapes: &[
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "nbd = { connections = 4, flush = false, delay = \"1 ms\" }",
            "ext4 = {}",
        ],
        &[
            "loop = { size = \"1 GiB\" }",
            "luks = {}",
            "nbd = { block-size = \"4 KiB\", server = \"same\" }",
            "xfs = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[
    Package::new("nbd-client", &[CLIENT]),
    Package::new("nbd-server", &[SERVER.program]),
];

struct Nbd {
    sector: u64,
    connections: u64,
    threads: u64,
    flush: bool,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let sector = block::sector(settings, "block-size")?;
    let nbd = Nbd {
        sector,
        connections: settings.count("connections")?,
        threads: settings.count("threads")?,
        flush: settings.flag("flush")?,
    };
    for (name, count, most) in [
        ("connections", nbd.connections, 16),
        ("threads", nbd.threads, 64),
    ] {
        if !(1..=most).contains(&count) {
            let what = format!("{count} {name} are not possible");
            return Err(settings.refuse(name, what, format!("write 1 to {most}")));
        }
    }
    Lent::layer(nbd, settings)
}

impl Nbd {
    /// nbd-server(5): the device under a name of ours, for the clients in a file.
    fn configuration(&self, loan: &Loan<'_>, device: &Path, clients: &Path) -> String {
        let (server, name) = (loan.ends.server, &loan.name);
        let (threads, flush) = (self.threads, self.flush);
        // Both are names of this program's or of the kernel's, without an end of line.
        let [device, clients] = [device, clients].map(Path::to_string_lossy);
        format!(
            "[generic]\nlistenaddr = {server}\nport = {PORT}\nmax_threads = {threads}\n[{name}]\nexportname = {device}\nauthfile = {clients}\nflush = {flush}\nfua = {flush}\n"
        )
    }
}

impl Nbd {
    /// Waits until the disk is as it was asked for: the driver shows its process first, and sets the rest behind it.
    fn in_force(&self, host: &dyn Host, disk: &str) -> Result<(), LayerError> {
        let cached = if self.flush {
            "write back"
        } else {
            "write through"
        };
        let asked = (self.sector.to_string(), cached.to_owned());
        let told = || -> Result<(String, String), LayerError> {
            let sector = block::told(host, disk, "queue/logical_block_size")?;
            // A plan does not know what the server offers.
            let cache = block::told(host, disk, "queue/write_cache")?;
            let known = Some(cache).filter(|cache| !cache.is_empty());
            Ok((sector, known.unwrap_or_else(|| cached.to_owned())))
        };
        let mut found = told()?;
        for _ in 0..LOOKS {
            if found == asked {
                return Ok(());
            }
            host.pause(LOOK);
            found = told()?;
        }
        Err(LayerError::refused(
            format!(
                "{disk} has sectors of {} B and is {} although {} B and {} were asked for",
                found.0, found.1, asked.0, asked.1
            ),
            "see what the kernel says: dmesg | tail",
        ))
    }
}

impl Lends for Nbd {
    const KIND: &'static LayerKind = &KIND;

    fn asked(&self) -> String {
        format!(
            "NBD, sectors {}, {} connections, {} threads, flushes {}",
            unit::bytes(self.sector),
            self.connections,
            self.threads,
            if self.flush {
                "passed on"
            } else {
                "not passed on"
            }
        )
    }

    fn client_needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: NAME,
                shown_by: "/sys/module/nbd",
                what: "network block devices (nbd)",
            }],
            ..Needs::as_root(&[CLIENT, "ip", "tc"], PACKAGES)
        }
    }

    fn server_needs(&self) -> Needs {
        Needs {
            daemons: &[SERVER],
            ..Needs::as_root(&[SERVER.program, "wipefs", "ip", "tc"], PACKAGES)
        }
    }

    fn serve(
        &self,
        setup: &mut Setup<'_>,
        loan: &Loan<'_>,
        device: &Path,
    ) -> Result<(), LayerError> {
        // The server leaves a file with its number there.
        let private = setup.scratch()?.join(setup.name(NAME));
        setup.create_tree(&private)?;
        let [clients, file, number] =
            ["clients", "config", "number"].map(|part| private.join(part));
        setup.create_text(&clients, &format!("{}\n", loan.ends.client))?;
        let text = self.configuration(loan, device, &clients);
        setup.create_text(&file, &text)?;
        let mut command = argv([SERVER.program, "-C"]);
        command.extend([file.into(), "-p".into(), number.into()]);
        // It reads the file once, and answers for each connection by a child.
        setup.start(&[SERVER], &command)?;
        listening(setup.host(), SERVER.program, PORT)
    }

    fn connect(&self, setup: &mut Setup<'_>, loan: &Loan<'_>) -> Result<LentDisk, LayerError> {
        let host = setup.host();
        let disk = free(host)?;
        // By the older calls: then the client stays, bears our mark, and ends the connection when it ends.
        let mut command = argv_at(
            [CLIENT, &loan.ends.server.to_string(), &PORT.to_string()],
            format!("/dev/{disk}"),
        );
        command.extend(argv(["-nonetlink", "-name", &loan.name]));
        command.extend(argv(["-block-size".to_owned(), self.sector.to_string()]));
        command.extend(argv([
            "-connections".to_owned(),
            self.connections.to_string(),
        ]));
        // A machine may have many clients: another one that connects to this device is refused by the kernel.
        setup.start_one_more(CLIENT, &command)?;
        setup.await_device(&PathBuf::from(format!("/sys/block/{disk}/{CONNECTED}")))?;
        let process = block::told(host, &disk, CONNECTED)?;
        self.in_force(host, &disk)?;
        let mut facts = lent::facts(host, &disk);
        facts.push(match self.flush {
            true => Fact::new("flushes", "passed on to the server's disk"),
            // The kernel here takes a disk without flushes for one without a cache.
            false => Fact::new(
                "flushes",
                "not passed on: the server keeps writes in its memory",
            )
            .with(FactFigure::Effect(LayerEffect::FlushesKept)),
        });
        Ok(LentDisk {
            name: disk,
            shown: (CONNECTED, process),
            facts,
        })
    }
}

/// The first device that nothing is connected to.
fn free(host: &dyn Host) -> Result<String, LayerError> {
    // The driver makes so many when it is loaded (nbds_max); of others there is no node in /dev.
    let mut all = (0..DEVICES).map(|number| format!("nbd{number}"));
    let is_free =
        |disk: &String| !host.exists(&PathBuf::from(format!("/sys/block/{disk}/{CONNECTED}")));
    all.find(is_free).ok_or_else(|| {
        LayerError::refused(
            format!("{DEVICES} devices of NBD are in use"),
            "disconnect some: nbd-client -d /dev/nbd0",
        )
    })
}

/// `nbd-client SERVER PORT DEVICE …`: it stays as long as the device is connected.
fn imagined_client(world: &mut World, words: &[OsString]) -> Output {
    let device = word(words, 3);
    if world.assembly(&device).is_some() {
        return complained(1, "Cannot open NBD: Device or resource busy");
    }
    let sector = text_after(words, "-block-size").unwrap_or_default();
    let connected = Assembly {
        tool: CLIENT,
        gives: vec![device.clone().into()],
        about: [
            (CONNECTED, "{process}".to_owned()),
            ("queue/logical_block_size", sector),
            // Not what a disk of this name has here.
            ("queue/write_cache", String::new()),
        ]
        .into(),
        ..Assembly::default()
    };
    world.start(CLIENT, &[]);
    world.assemble(device, connected)
}

#[cfg(test)]
mod tests {
    use crate::stack::testing::try_layer;

    #[test]
    fn what_no_server_has_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("nbd = { block-size = \"8 KiB\" }", "sectors of 8192 B"),
            ("nbd = { connections = 0 }", "0 connections"),
            ("nbd = { threads = 65 }", "65 threads"),
            (
                "nbd = { server = \"same\", delay = \"1 ms\" }",
                "no line between",
            ),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
    }
}
