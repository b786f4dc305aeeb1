//! DRBD: one device that two machines have the same.
//!
//! The layers below stand on both machines alike; the first machine is primary and runs the
//! workload. The protocol says when a write has returned: A, when it is on this machine's disk and
//! handed to the network; B, when the peer has it in memory; C, when it is on both disks.

mod admin;
mod ends;
mod imagined;
mod recovery;
mod replica;
mod undo;
mod words;

use admin::unconnected;
use ends::ends;
use replica::{AfterCut, Drbd, PROTOCOL, Protocol, ReplicaState, standing};
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_foundation::foundation::lasting::{LastingState, whole};
use stackrace_foundation::foundation::line::{self, Line};
use stackrace_foundation::foundation::one_kernel::Sockets;
use stackrace_foundation::foundation::words::lines;
use stackrace_foundation::foundation::{
    Below, CutOf, Gives, GivesKind, Layer, LayerError, LayerKind, Setup, StandingLayer, Takes,
    filesystem,
};
use stackrace_machine::host::{Driver, Needs, Package};
use words::{DISK, NET};

/// The driver of the kernel for DRBD.
const DRIVER: Driver = Driver {
    module: "drbd",
    shown_by: "/sys/module/drbd",
    what: "replicated devices (drbd)",
};

const STATE: ChoiceDoc<ReplicaState> = choice!(
    "state",
    [
        "connected" => ReplicaState::Connected,
        "disconnected" => ReplicaState::Disconnected,
        "resyncing" => ReplicaState::Resyncing,
    ],
    "connected",
    "connected: both disks the same, without a first sync; disconnected: no peer; resyncing: all of it is being copied to the peer meanwhile.",
);
/// True if both machines are primary.
const ROLE: ChoiceDoc<bool> = choice!(
    "role",
    ["single" => false, "dual" => true],
    "single",
    "single: this machine is primary; dual: both are, which needs protocol C and state connected.",
);
const AFTER_CUT: ChoiceDoc<AfterCut> = choice!(
    "after-cut",
    ["both" => AfterCut::Both, "this" => AfterCut::This, "peer" => AfterCut::Peer],
    "both",
    "Which machines the stack is brought back on after a power cut, in a study with [crash]: both; this one alone; the peer alone, which becomes primary.",
);
/// The part that is cut, by the delay of the line, ns.
const CUT: ChoiceDoc<fn(u64) -> CutOf> = choice!(
    "cut",
    [
        "both" => |_| CutOf::Machines,
        "this" => |on_the_way_ns| CutOf::This { on_the_way_ns },
        "line" => |_| CutOf::Line,
    ],
    "both",
    "What a power cut hits, in a study with [crash]: both machines; this one alone; the line between them, and no machine loses its power.",
);

/// The layer `drbd` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "drbd",
    summary: "A device replicated to a peer (DRBD): what it lies on is set up on both machines.",
    settings: &[
        PROTOCOL.doc,
        STATE.doc,
        ROLE.doc,
        AFTER_CUT.doc,
        CUT.doc,
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
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let protocol = settings.choice(PROTOCOL)?;
    let state = settings.choice(STATE)?;
    let dual = settings.choice(ROLE)?;
    if dual && protocol != Protocol::C {
        let protocol = PROTOCOL.word(protocol);
        return Err(Refusal::at(
            settings.span_of("role"),
            format!(
                "two primaries need protocol C: under {protocol} one may read what the other has not written yet"
            ),
            "write protocol = \"C\", or role = \"single\"",
        ));
    }
    if dual && state != ReplicaState::Connected {
        return Err(Refusal::at(
            settings.span_of("role"),
            "two primaries must be connected and hold the same data",
            "write state = \"connected\", or role = \"single\"",
        ));
    }
    let line = Line::parse(settings)?;
    let after_cut = settings.choice(AFTER_CUT)?;
    // A line that is cut takes what was on its way with it: how much, its delay says.
    let cut = settings.choice(CUT)?(line.delay_ns());
    if cut == CutOf::Line && after_cut != AfterCut::Peer {
        return Err(Refusal::at(
            settings.span_of("cut"),
            "where only the line is cut, this machine has everything: nothing can be lost",
            "write after-cut = \"peer\": the peer takes over",
        ));
    }
    Ok(Box::new(Drbd {
        protocol,
        state,
        dual,
        after_cut,
        cut,
        net: lines(settings, "net", ' ', &NET)?,
        disk: lines(settings, "disk", ' ', &DISK)?,
        line,
    }))
}

impl Layer for Drbd {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        let (protocol, role) = (PROTOCOL.word(self.protocol), ROLE.word(self.dual));
        format!("drbd, protocol = {protocol}, role = {role}")
    }

    fn describe_asked(&self) -> String {
        let mut text = format!("DRBD to a peer, protocol {}", PROTOCOL.word(self.protocol));
        text.push_str(match self.state {
            ReplicaState::Connected => ", connected",
            ReplicaState::Disconnected => ", disconnected",
            ReplicaState::Resyncing => ", resyncing",
        });
        if self.dual {
            text.push_str(", both primary");
        }
        text.push_str(match self.cut {
            CutOf::Machines => "",
            CutOf::This { .. } => ", only this machine loses its power",
            CutOf::Line => ", only the line is cut",
        });
        text.push_str(self.after_cut.asked());
        for (section, options) in [("net", &self.net), ("disk", &self.disk)] {
            if !options.is_empty() {
                text.push_str(&format!(", {section} {}", options.join(", ")));
            }
        }
        text + &self.line.asked()
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
            drivers: &[DRIVER],
            ..Needs::as_root(
                &["drbdadm", "drbdsetup", "modprobe", "uname", "ip", "tc"],
                KIND.packages,
            )
        }
    }

    fn returns(&self) -> bool {
        // A second primary has writes of its own, and no ledger.
        !self.dual && self.state == ReplicaState::Connected
    }

    fn cut_of(&self) -> Option<CutOf> {
        Some(self.cut)
    }

    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        self.brought_back(setup, below)
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
        setup.keep_standing()?;
        // The driver sends by itself, in the network of the kernel.
        let ready = self.line.set_up(setup, Sockets::OfKernel)?;
        let ends = ends(setup, [&here[0], &there[0]], ready.addresses)?;
        let admin = self.up_here(setup, &ends)?;
        let there = self.up_there(setup, &ends)?;
        // First the connection: what is declared without it does not reach the peer.
        let connected = admin.until(setup.host(), "cstate", &["Connected"]);
        connected.map_err(|error| unconnected(error, &ends))?;
        let mut facts = self.bring((setup.host(), &admin), (setup.peer()?, &there))?;
        facts.extend(ready.facts);
        if self.state != ReplicaState::Resyncing {
            let at = (setup.node, setup.host());
            for (what, word) in [
                ("the connection of DRBD", "cstate"),
                ("the disks of DRBD", "dstate"),
            ] {
                let state = LastingState::now(what, at, admin.command(&[word]), whole)?;
                setup.parts.stays.push(state);
            }
        }
        Ok(standing(&ends[0], admin, facts))
    }
}

#[cfg(any(test, feature = "testing"))]
mod testing;
#[cfg(test)]
mod tests;
