//! What shares have in common: where the server is, what it serves, how the client is measured.

use super::{
    Below, Gives, LayerError, Raising,
    line::{self, Line, Ready},
};
use crate::event::Fact;
use crate::host::{Host, argv};
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// The setting for the server's place.
pub(super) const SERVER: SettingDoc = SettingDoc::optional(
    "server",
    Kind::Choice(&["peer", "same"]),
    "peer",
    "peer: the layers below and the server are on another machine, the client is here; same: all on this one.",
);

/// Options of a share as its server's file of settings takes them. `ours` are those this program
/// gives itself.
///
/// # Errors
/// One that is no name with a value, or leads elsewhere.
pub(super) fn options(settings: &Settings, ours: &[&str]) -> Result<Vec<String>, Refusal> {
    let given = settings.texts("options")?.unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || " :=_-".contains(c);
    let refused = |option: &&String| {
        let name = option.split('=').next().unwrap_or_default().trim();
        !option.contains('=') || !option.chars().all(plain) || ours.contains(&name)
    };
    if let Some(option) = given.iter().find(refused) {
        return Err(Refusal::at(
            settings.span_of("options"),
            format!("\"{option}\" is no option that can be given here"),
            "write a name and a value without paths, like \"strict sync = no\"",
        ));
    }
    Ok(given)
}

/// How often, and with what pause, it is looked whether a server listens.
const LOOKS: usize = 300;
const LOOK: Duration = Duration::from_millis(200);

/// Waits until somebody listens at a server's port: it goes to the background before it does.
///
/// # Errors
/// When nobody comes.
pub(super) fn listening(host: &dyn Host, server: &str, port: u16) -> Result<(), LayerError> {
    let at = format!(":{port}");
    for _ in 0..LOOKS {
        let found = host.must(&argv(["ss", "-Hltn", "sport", "=", &at]))?;
        if !found.stdout.trim().is_empty() {
            return Ok(());
        }
        host.pause(LOOK);
    }
    let why = format!("{server} does not listen at port {port}");
    Err(LayerError::refused(why, ""))
}

/// Where the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    on_peer: bool,
    line: Line,
}

impl Place {
    /// What the settings say.
    ///
    /// # Errors
    /// A line where there is none.
    pub(super) fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let on_peer = settings.text(SERVER.name)?.as_deref() != Some("same");
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

    /// Where the layers below stand.
    pub(super) fn below(self) -> Below {
        if self.on_peer {
            Below::OnPeer
        } else {
            Below::Here
        }
    }

    /// In words that follow others.
    pub(super) fn asked(self) -> String {
        let server = if self.on_peer {
            ", served by a peer"
        } else {
            ", served by this machine"
        };
        format!("{server}{}", self.line.asked())
    }

    /// The line, ready; without a peer that of the machine with itself, which is not measured.
    pub(super) fn ready(self, raising: &mut Raising<'_>) -> Result<Ready, LayerError> {
        if self.on_peer {
            return self.line.raise(raising);
        }
        Ok(Ready {
            addresses: [IpAddr::V4(Ipv4Addr::LOCALHOST); 2],
            facts: vec![Fact::new("server", "this machine")],
        })
    }

    /// Does something where the server is.
    pub(super) fn at_server<T>(
        self,
        raising: &mut Raising<'_>,
        work: impl FnOnce(&mut Raising<'_>) -> Result<T, LayerError>,
    ) -> Result<T, LayerError> {
        if self.on_peer {
            raising.on_peer(work)
        } else {
            work(raising)
        }
    }

    /// Builds the server, given the directory it serves. What lies below stays mounted when
    /// settling, and is written back.
    pub(super) fn serve<T>(
        self,
        raising: &mut Raising<'_>,
        below: Gives,
        build: impl FnOnce(&mut Raising<'_>, PathBuf) -> Result<T, LayerError>,
    ) -> Result<T, LayerError> {
        let served = |raising: &mut Raising<'_>, gives: Gives| match gives {
            Gives::Mounted(root) | Gives::Private(root) => {
                raising.keep_standing();
                raising.lies_in(&root);
                build(raising, root)
            }
            _ => Err(LayerError::refused("there is no directory below", "")),
        };
        if self.on_peer {
            raising.on_peer(|raising| {
                let there = raising.there();
                served(raising, there)
            })
        } else {
            served(raising, below)
        }
    }
}
