//! What shares have in common: where the server is, whom it lets in, how the client sees it.
//!
//! A machine has one server of a kind. It is started for the stack, at the address of the line and
//! for the one client alone, and ended with it; where one runs already, the stack is refused.

use crate::foundation::error::LayerError;
use crate::foundation::gives::{Below, Gives, StandingLayer};
use crate::foundation::layer::{Layer, LayerKind};
use crate::foundation::setup::Setup;
use crate::foundation::{
    filesystem,
    line::{self, Line, Ready},
    one_kernel::Sockets,
    words::{self, Words},
};
use stackrace_base::event::{Fact, FactFigure, LayerEffect};
use stackrace_base::setting::{ChoiceDoc, Refusal, Settings, choice};
use stackrace_machine::host::{Host, LabDisk, Needs};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// The setting for the server's place: true if it is another machine than the client's.
pub const SERVER: ChoiceDoc<bool> = choice!(
    "server",
    ["peer" => true, "same" => false],
    "peer",
    "peer: the layers below and the server are on another machine, the client is here; same: all on this one.",
);

/// The part of a kind of share that the others do not have.
pub trait Share: Send + Sync {
    /// Its kind, as the list of all layers has it.
    const KIND: &'static LayerKind;
    /// Facts that the client has to know of what is served.
    type Served;

    /// The share in words, for the plan: `NFS 4.2, sync`.
    fn asked(&self) -> String;
    /// Options its server is given.
    fn options(&self) -> &[String] {
        &[]
    }
    /// Options the client mounts it with.
    fn mount_options(&self) -> &[String] {
        &[]
    }
    /// Needs of the machine that mounts the share: what must be installed and allowed there.
    fn client_needs(&self) -> Needs;
    /// Needs of the machine that serves the share: what must be installed and allowed there.
    fn server_needs(&self) -> Needs;
    /// Disks the virtual machine has to be started with.
    fn lab_disks(&self) -> Vec<LabDisk> {
        Vec::new()
    }
    /// Returns true if an administrator brings it back after a power cut by serving and mounting it
    /// again.
    fn returns(&self) -> bool {
        false
    }
    /// Has a directory served, on the server's machine; what is in force is added to the facts.
    ///
    /// # Errors
    /// When a server of that kind runs there already, or is not as it was asked for.
    fn serve(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        root: PathBuf,
        facts: &mut Vec<Fact>,
    ) -> Result<Self::Served, LayerError>;
    /// Mounts it on the client's machine, and says where; what is in force is added to the facts.
    ///
    /// # Errors
    /// When it cannot be mounted, or is not as it was asked for.
    fn mount(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        served: Self::Served,
        facts: &mut Vec<Fact>,
    ) -> Result<PathBuf, LayerError>;
}

/// The two ends of a share, and their addresses.
pub struct Ends {
    /// Place of the server.
    pub place: ServerPlace,
    /// The client's address: no other is let in.
    pub client: IpAddr,
    /// The server's: it listens nowhere else.
    pub server: IpAddr,
}

/// A share in its place: a layer.
pub struct Shared<S> {
    share: S,
    place: ServerPlace,
}

impl<S: Share + 'static> Shared<S> {
    /// The layer of a share, in the place the settings say.
    ///
    /// # Errors
    /// As [`ServerPlace::parse`].
    pub fn layer(share: S, settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
        let place = ServerPlace::parse(settings)?;
        Ok(Box::new(Self { share, place }))
    }
}

impl<S: Share> Layer for Shared<S> {
    fn of_kind(&self) -> &'static LayerKind {
        S::KIND
    }

    fn describe_asked(&self) -> String {
        let parts = [self.share.asked() + &self.place.asked()];
        let parts = [&parts, self.share.options()].concat();
        filesystem::asked(&parts.join(", "), &[], self.share.mount_options())
    }

    fn below(&self) -> Below {
        self.place.below()
    }

    fn needs(&self) -> Needs {
        self.share.client_needs()
    }

    fn server_needs(&self) -> Option<Needs> {
        Some(self.share.server_needs())
    }

    fn lab_disks(&self) -> Vec<LabDisk> {
        self.share.lab_disks()
    }

    fn returns(&self) -> bool {
        self.share.returns()
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let place = self.place;
        // The line before the server, which listens at its address.
        let Ready {
            addresses: [client, server],
            mut facts,
        } = place.ready(setup)?;
        let ends = Ends {
            place,
            client,
            server,
        };
        let served = place.serve(setup, below, |setup, root| {
            self.share.serve(setup, &ends, root, &mut facts)
        })?;
        let root = self.share.mount(setup, &ends, served, &mut facts)?;
        if place.on_peer {
            setup.served_at(&root);
        }
        Ok(StandingLayer::new(self.kind(), facts, Gives::Mounted(root)))
    }
}

/// Options of a share as its server's file of settings takes them.
///
/// # Errors
/// One that is not on the list.
pub fn options(settings: &Settings, allowed: &Words) -> Result<Vec<String>, Refusal> {
    words::lines(settings, "options", '=', allowed)
}

/// Number of times, and pause between them, that it is looked whether a server listens.
const LOOKS: usize = 300;
const LOOK: Duration = Duration::from_millis(200);

/// Waits until a server listens at its port: it goes to the background before it does.
///
/// # Errors
/// When it does not in time.
pub fn listening(host: &dyn Host, server: &str, port: u16) -> Result<(), LayerError> {
    for _ in 0..LOOKS {
        // Looked up in the table of sockets, because a connection of ours would be a client's.
        if host.listener(port)?.is_some() {
            return Ok(());
        }
        host.pause(LOOK);
    }
    let why = format!("{server} does not listen at port {port}");
    Err(LayerError::refused(why, ""))
}

/// Machine of the server, and the line to it if it is the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerPlace {
    on_peer: bool,
    line: Line,
}

impl ServerPlace {
    /// A server on this machine, as `server = "same"` says.
    #[cfg(any(test, feature = "testing"))]
    pub fn same() -> Self {
        Self {
            on_peer: false,
            line: Line::default(),
        }
    }

    /// Reads the place from the settings.
    ///
    /// # Errors
    /// A line where there is none.
    pub fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let on_peer = settings.choice(SERVER)?;
        for name in [line::DELAY.name, line::RATE.name] {
            if !on_peer && settings.given(name) {
                return Err(Refusal::at(
                    settings.span_of(name),
                    "there is no line between a server and a client on the same machine",
                    "leave it out, or write server = \"peer\"",
                ));
            }
        }
        Ok(Self {
            on_peer,
            line: Line::parse(settings)?,
        })
    }

    /// Place of the layers below.
    pub fn below(self) -> Below {
        if self.on_peer {
            Below::OnPeer
        } else {
            Below::Here
        }
    }

    /// The place in words that follow others.
    pub fn asked(self) -> String {
        let server = if self.on_peer {
            ", served by a peer"
        } else {
            ", served by this machine"
        };
        format!("{server}{}", self.line.asked())
    }

    /// The line, ready; without a peer that of the machine with itself, which is not measured.
    pub fn ready(self, setup: &mut Setup<'_>) -> Result<Ready, LayerError> {
        if self.on_peer {
            return self.line.set_up(setup, Sockets::OfProcesses);
        }
        Ok(Ready {
            // The loopback address, so that no other machine reaches the server.
            addresses: [IpAddr::V4(Ipv4Addr::LOCALHOST); 2],
            facts: vec![
                Fact::new("server", "this machine")
                    .with(FactFigure::Effect(LayerEffect::NoNetwork)),
            ],
        })
    }

    /// Does something where the server is.
    pub fn at_server<T>(
        self,
        setup: &mut Setup<'_>,
        work: impl FnOnce(&mut Setup<'_>) -> Result<T, LayerError>,
    ) -> Result<T, LayerError> {
        if self.on_peer {
            setup.on_peer(work)
        } else {
            work(setup)
        }
    }

    /// Builds the server, given the directory it serves. What lies below stays mounted when
    /// settling, and is written back.
    pub fn serve<T>(
        self,
        setup: &mut Setup<'_>,
        below: Gives,
        build: impl FnOnce(&mut Setup<'_>, PathBuf) -> Result<T, LayerError>,
    ) -> Result<T, LayerError> {
        let served = |setup: &mut Setup<'_>, gives: Gives| match gives {
            Gives::Mounted(root) | Gives::Private(root) => {
                // What is served is open, so it can neither be unmounted nor exported when
                // settling.
                setup.keep_standing()?;
                setup.lies_in(&root);
                build(setup, root)
            }
            _ => Err(LayerError::refused("there is no directory below", "")),
        };
        if self.on_peer {
            setup.on_peer(|setup| {
                let there = setup.there();
                served(setup, there)
            })
        } else {
            served(setup, below)
        }
    }
}
