//! A replicated device after the power of both machines was cut: one of them comes back, or both.
//!
//! The device of the machine that was primary has what its own disk has. That of the peer has what
//! reached the peer's disk, which is what a protocol promises of the other machine.

use super::admin::{Admin, unconnected};
use super::ends::{End, ends};
use super::replica::{AfterCut, Drbd, standing};
use stackrace_foundation::foundation::one_kernel::Sockets;
use stackrace_foundation::foundation::{Gives, LayerError, Setup, StandingLayer, filesystem};

/// States of the connection that an end reports as soon as the machines have found each other: the
/// end with the newer data is settled then, and the rest is copied meanwhile.
const FOUND: [&str; 4] = ["Connected", "SyncSource", "PausedSyncS", "VerifyS"];

impl Drbd {
    /// Brings up the ends that came back, and makes one of them primary.
    ///
    /// # Errors
    /// The driver refuses; the device of a peer cannot be reached from here.
    pub(super) fn brought_back(
        &self,
        setup: &mut Setup<'_>,
        below: Gives,
    ) -> Result<StandingLayer, LayerError> {
        let here = filesystem::devices(below)?;
        let there = filesystem::devices(setup.there())?;
        if self.after_cut == AfterCut::Peer && !setup.peer()?.shares_kernel() {
            return Err(LayerError::refused(
                "the device of a peer that was promoted is on another machine",
                "write after-cut = \"this\" or \"both\"",
            ));
        }
        // The driver holds the devices open, as when it was set up.
        setup.keep_standing()?;
        let ready = self.line.set_up(setup, Sockets::OfKernel)?;
        let ends = ends(setup, [&here[0], &there[0]], ready.addresses)?;
        if self.after_cut == AfterCut::Peer {
            let admin = self.up_there(setup, &ends)?;
            return setup.on_peer(|setup| promoted(setup, &ends[1], admin));
        }
        let admin = self.up_here(setup, &ends)?;
        // Connected again, the two find out which has the newer data.
        if self.after_cut == AfterCut::Both {
            self.up_there(setup, &ends)?;
            let found = admin.until(setup.host(), "cstate", &FOUND);
            found.map_err(|error| unconnected(error, &ends))?;
        }
        promoted(setup, &ends[0], admin)
    }
}

/// Makes an end primary: by force only where it refuses, because that is an operator's decision.
fn promoted(setup: &mut Setup<'_>, end: &End, admin: Admin) -> Result<StandingLayer, LayerError> {
    if admin.run(setup.host(), &["primary"]).is_err() {
        setup.repair(&admin.command(&["primary", "--force"]))?;
        admin.run(setup.host(), &["primary"])?;
    }
    let facts = admin.facts(setup.host())?;
    Ok(standing(end, admin, facts))
}
