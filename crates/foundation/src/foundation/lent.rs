//! A device that a server lends over a network: where the server is, whom it lets in, which disk appears here.
//!
//! The server lends one device of the layers below to the one client of the stack, and goes with the stack.

use crate::foundation::error::LayerError;
use crate::foundation::gives::{Below, Device, Gives, Origin, StandingLayer};
use crate::foundation::layer::{Layer, LayerKind};
use crate::foundation::setup::Setup;
use crate::foundation::share::{Ends, ServerPlace};
use crate::foundation::{block, filesystem, line::Ready};
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_machine::host::{Host, Needs, argv};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whether the protocol checks what stands before the data.
pub const HEADER_DIGEST: SettingDoc =
    SettingDoc::flag("header-digest", "false", "Whether headers have a checksum.");

/// Whether it checks the data.
pub const DATA_DIGEST: SettingDoc =
    SettingDoc::flag("data-digest", "false", "Whether data have a checksum.");

/// Number of times, and pause between them, that a disk that was just connected is looked for.
const LOOKS: usize = 150;
const LOOK: Duration = Duration::from_millis(200);

/// The part of a protocol that the others do not have.
pub trait Lends: Send + Sync {
    /// Its kind, as the list of all layers has it.
    const KIND: &'static LayerKind;

    /// What is asked for in words, for the plan: `NBD, 4 connections`.
    fn asked(&self) -> String;
    /// Needs of the machine that the disk appears on.
    fn client_needs(&self) -> Needs;
    /// Needs of the machine that lends it.
    fn server_needs(&self) -> Needs;
    /// Lends a device under a name of ours, on the server's machine.
    ///
    /// # Errors
    /// The system refuses.
    fn serve(
        &self,
        setup: &mut Setup<'_>,
        loan: &Loan<'_>,
        device: &Path,
    ) -> Result<(), LayerError>;
    /// Connects to it on the client's machine.
    ///
    /// # Errors
    /// The system refuses, or what it gives is not what was asked for.
    fn connect(&self, setup: &mut Setup<'_>, loan: &Loan<'_>) -> Result<LentDisk, LayerError>;
}

/// One device that is lent.
pub struct Loan<'a> {
    /// A name of ours, which nothing else has.
    pub name: String,
    /// Addresses of the client and of the server.
    pub ends: Ends,
    /// The machine of the client.
    pub client: &'a dyn Host,
}

/// A disk that appeared here.
pub struct LentDisk {
    /// The kernel's name of it: `sdb`.
    pub name: String,
    /// A file below its directory in `/sys/block`, and what it holds as long as the disk is this one.
    pub shown: (&'static str, String),
    /// What is in force.
    pub facts: Vec<Fact>,
}

/// A protocol, with the place of its server: a layer.
pub struct Lent<L> {
    lends: L,
    place: ServerPlace,
}

impl<L: Lends + 'static> Lent<L> {
    /// The layer of a protocol, in the place the settings say.
    ///
    /// # Errors
    /// As [`ServerPlace::parse`].
    pub fn layer(lends: L, settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
        let place = ServerPlace::parse(settings)?;
        Ok(Box::new(Self { lends, place }))
    }
}

impl<L: Lends> Layer for Lent<L> {
    fn of_kind(&self) -> &'static LayerKind {
        L::KIND
    }

    fn describe_asked(&self) -> String {
        self.lends.asked() + &self.place.asked()
    }

    fn below(&self) -> Below {
        self.place.below()
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        filesystem::no_disks(self.kind(), below)
    }

    fn needs(&self) -> Needs {
        self.lends.client_needs()
    }

    fn server_needs(&self) -> Option<Needs> {
        Some(self.lends.server_needs())
    }

    fn returns(&self) -> bool {
        true
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let Ready {
            addresses: [client, server],
            mut facts,
        } = self.place.ready(setup)?;
        // Drawn in the same order after a power cut, so that the same names come back.
        let loan = Loan {
            name: setup.short_name(),
            ends: Ends {
                place: self.place,
                client,
                server,
            },
            client: setup.host(),
        };
        // What stands on the peer was kept for the layer that serves it.
        let given = match self.place.below() {
            Below::Here => below,
            _ => setup.there(),
        };
        self.place.at_server(setup, |setup| {
            // It is open as long as it is lent.
            setup.keep_standing()?;
            let devices = filesystem::devices(given)?;
            // Here alone it can be told whose it is; after a power cut it holds what was written.
            if !setup.is_returning() {
                filesystem::ours_to_format(setup.host(), &devices[0])?;
            }
            self.lends.serve(setup, &loan, &devices[0].path)
        })?;
        let disk = self.lends.connect(setup, &loan)?;
        // Behind the line, with which they are read.
        facts.extend(disk.facts);
        let (file, holds) = disk.shown;
        let device = Device {
            path: Path::new("/dev").join(&disk.name),
            origin: Origin::Lent {
                shown: Path::new(block::DISKS).join(&disk.name).join(file),
                holds,
            },
        };
        Ok(StandingLayer {
            devices: vec![disk.name],
            ..StandingLayer::new(self.kind(), facts, Gives::Devices(vec![device]))
        })
    }
}

/// Waits for the disk of which a file below `/sys/block/NAME` holds a text of ours; its name.
///
/// # Errors
/// It does not appear.
pub fn appeared(host: &dyn Host, file: &str, holds: &str) -> Result<String, LayerError> {
    for _ in 0..LOOKS {
        let disks = host.list(Path::new(block::DISKS))?.into_iter();
        let mut disks = disks.filter_map(|disk| disk.into_string().ok());
        let found = disks.find(|disk| {
            let text = host.read_text(&Path::new(block::DISKS).join(disk).join(file));
            // The kernel shows paths to a disk as disks, too; these have no device of their own.
            text.is_ok_and(|text| block::says(&text, holds))
                && host.exists(&Path::new("/dev").join(disk))
        });
        if let Some(disk) = found {
            return Ok(disk);
        }
        host.pause(LOOK);
    }
    Err(LayerError::refused(
        format!("no disk has appeared whose {file} is {holds}"),
        "see what the kernel says: dmesg | tail",
    ))
}

/// What a disk that was lent is, as the kernel here tells it.
pub fn facts(host: &dyn Host, disk: &str) -> Vec<Fact> {
    let named = [
        ("logical sector", "queue/logical_block_size"),
        ("write cache", "queue/write_cache"),
        ("scheduler", "queue/scheduler"),
    ];
    let named = named.into_iter().filter_map(|(name, file)| {
        let text = block::told(host, disk, file).ok()?;
        Some(Fact::new(name, block::chosen(&text)))
    });
    named.collect()
}

/// A number that hardly anything else has, of the digits in a name of ours and what it counts.
pub fn number(name: &str) -> u32 {
    let mut parts = name.split('-').skip(1);
    // A plan draws no digits.
    let digits = parts.next().and_then(|digits| digits.get(..8));
    let drawn = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let counted = parts.next().and_then(|count| count.parse::<u32>().ok());
    drawn.unwrap_or(0).wrapping_add(counted.unwrap_or(0))
}

/// Makes directories one after the other, each of which the kernel fills.
///
/// # Errors
/// The system refuses one.
pub fn directories<const N: usize>(host: &dyn Host, all: [&PathBuf; N]) -> Result<(), LayerError> {
    for directory in all {
        host.create_dir(directory)?;
    }
    Ok(())
}

/// Refers to a directory of the kernel's from another one, by which the kernel joins them.
///
/// # Errors
/// The system refuses.
pub fn linked(host: &dyn Host, to: &Path, link: &Path) -> Result<(), LayerError> {
    let mut command = argv(["ln", "-s"]);
    command.extend([to.into(), link.into()]);
    host.must(&command)?;
    Ok(())
}
