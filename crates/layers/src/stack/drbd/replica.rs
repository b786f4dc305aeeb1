//! A replicated device: its configuration, how its ends are brought up, and what is in force.

use super::admin::Admin;
use super::ends::{End, port};
use super::undo;
use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, choice};
use stackrace_foundation::foundation::line::Line;
use stackrace_foundation::foundation::{
    CutOf, Device, Gives, LayerError, Origin, Setup, StandingLayer, block,
};
use stackrace_machine::host::{Host, argv};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The state of a write, on both machines, when it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    A,
    B,
    C,
}

pub(super) const PROTOCOL: ChoiceDoc<Protocol> = choice!(
    "protocol",
    ["A" => Protocol::A, "B" => Protocol::B, "C" => Protocol::C],
    "C",
    "When a write has returned: A: on this disk and handed to the network; B: the peer has it in memory; C: on both disks.",
);

/// Relation of the two ends to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplicaState {
    Connected,
    Disconnected,
    Resyncing,
}

/// Machines that come back after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterCut {
    Both,
    This,
    Peer,
}

impl AfterCut {
    /// The wish, in words that follow others; empty if both come back.
    pub(super) fn asked(self) -> &'static str {
        match self {
            Self::Both => "",
            Self::This => ", after a cut this machine comes back alone",
            Self::Peer => ", after a cut the peer comes back alone",
        }
    }
}

/// A replicated device as a study asks for it.
pub(super) struct Drbd {
    /// The state of a write when it has returned.
    pub(super) protocol: Protocol,
    /// Relation of the ends to each other while the workload runs.
    pub(super) state: ReplicaState,
    /// True if both machines are primary.
    pub(super) dual: bool,
    /// Machines that come back after a power cut.
    pub(super) after_cut: AfterCut,
    /// The part that a power cut hits.
    pub(super) cut: CutOf,
    /// Lines of the section net.
    pub(super) net: Vec<String>,
    /// Lines of the section disk.
    pub(super) disk: Vec<String>,
    /// The line between the machines.
    pub(super) line: Line,
}

impl Drbd {
    /// The resource as drbd.conf(5) has it.
    fn configuration(&self, resource: &str, ends: &[End; 2]) -> String {
        let port = port(ends);
        let mut text = format!(
            "resource {resource} {{\n  net {{\n    protocol {};\n",
            PROTOCOL.word(self.protocol)
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

    /// Brings up this machine's end.
    ///
    /// # Errors
    /// The tool refuses.
    pub(super) fn up_here(
        &self,
        setup: &mut Setup<'_>,
        ends: &[End; 2],
    ) -> Result<Admin, LayerError> {
        let resource = resource(setup);
        up(setup, &resource, &self.configuration(&resource, ends))
    }

    /// Brings up the peer's end. A kernel knows a resource once, by its name.
    ///
    /// # Errors
    /// The tool refuses.
    pub(super) fn up_there(
        &self,
        setup: &mut Setup<'_>,
        ends: &[End; 2],
    ) -> Result<Admin, LayerError> {
        let mut resource = resource(setup);
        if setup.peer()?.shares_kernel() {
            resource.push_str("-2");
        }
        // The same sections on both machines: each end finds itself by its name.
        let text = self.configuration(&resource, ends);
        setup.on_peer(|setup| up(setup, &resource, &text))
    }

    /// Brings both ends, which are connected, into the state that was asked, and reads it back.
    ///
    /// # Errors
    /// The tool refuses, or something else is in force.
    pub(super) fn bring(
        &self,
        (host, admin): (&dyn Host, &Admin),
        (peer, there): (&dyn Host, &Admin),
    ) -> Result<Vec<Fact>, LayerError> {
        let mut first = "none: both disks were declared the same";
        if self.state == ReplicaState::Resyncing {
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
        if self.state == ReplicaState::Disconnected {
            admin.run(host, &["disconnect"])?;
            admin.until(host, "cstate", &["StandAlone"])?;
        }
        let mut facts = vec![
            Fact::new("protocol", PROTOCOL.word(self.protocol)),
            Fact::new("first sync", first),
        ];
        facts.extend(admin.facts(host)?);
        let in_force = host.must(&argv(["drbdsetup", "show", &admin.resource]))?;
        facts.extend(self.checked(&in_force.stdout)?);
        if let Ok(driver) = host.read_text(Path::new("/sys/module/drbd/version")) {
            facts.push(Fact::new("driver", driver.trim()));
        }
        Ok(facts)
    }

    /// Options in force, as `drbdsetup show` prints them; an error where the protocol is another.
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
        let asked = PROTOCOL.word(self.protocol);
        if self.state != ReplicaState::Disconnected && protocol != asked {
            return Err(LayerError::refused(
                format!("protocol {protocol} is in force although {asked} was asked for"),
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

/// Name of the resource of a stack.
fn resource(setup: &Setup<'_>) -> String {
    setup.name("drbd").trim_start_matches('.').to_string()
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
    if !setup.is_returning() {
        // --force: it asks nothing. That the device carries no signature was looked at before.
        admin.run(setup.host(), &["create-md", "--force"])?;
    }
    admin.run(setup.host(), &["up"])?;
    Ok(admin)
}

/// The device of an end, as the layer gives it.
pub(super) fn standing(end: &End, admin: Admin, facts: Vec<Fact>) -> StandingLayer {
    let device = PathBuf::from(format!("/dev/drbd{}", end.minor));
    StandingLayer {
        devices: vec![block::name(&device)],
        ..StandingLayer::new(
            "drbd",
            facts,
            Gives::Devices(vec![Device {
                path: device,
                origin: Origin::Replica(admin.resource),
            }]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::setting::Settings;

    #[test]
    fn what_is_in_force_is_read_and_another_protocol_is_an_error() {
        let drbd = Drbd {
            protocol: Protocol::A,
            state: ReplicaState::Connected,
            dual: false,
            after_cut: AfterCut::Both,
            cut: CutOf::Machines,
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
