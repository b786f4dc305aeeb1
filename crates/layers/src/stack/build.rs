//! A stack on its way up: layer by layer, from the bottom.

use super::composition::Stack;
use super::ground::Ground;
use super::standing::{StandingStack, boots};
use stackrace_base::event::LayerFacts;
use stackrace_base::owned::held::HeldDir;
use stackrace_foundation::foundation::{
    Bare, Gives, Layer, LayerError, Setup, Site, StackError, StandingLayer,
};
use std::path::PathBuf;

impl Stack {
    /// Builds the stack, bottom up, and reads back what was really obtained.
    ///
    /// # Errors
    /// The layer that failed and why; what stood by then has been torn down, except what the error
    /// says is left.
    pub fn set_up(&self, site: &Site<'_>) -> Result<StandingStack, StackError> {
        self.check_needs(site.host)?;
        // Before anything is made: a machine that is started again later has lost its part, and
        // this tells.
        let boots = boots(site.host, self.nodes()).map_err(StackError::whole)?;
        let mut setup = Setup::new(site).map_err(StackError::whole)?;
        self.built(&mut setup, boots)
    }

    /// Brings back a stack that was set up under a mark ([`StandingStack::mark`]) and lost its
    /// power, on machines that were started since. `repairs` gets the commands that repaired what
    /// could not be brought back otherwise.
    ///
    /// # Errors
    /// The layer that could not be brought back, and why; what stood by then has been torn down.
    pub fn bring_back(
        &self,
        site: &Site<'_>,
        mark: &str,
        repairs: &mut Vec<String>,
    ) -> Result<StandingStack, StackError> {
        let boots = boots(site.host, self.nodes()).map_err(StackError::whole)?;
        let mut setup = Setup::again(site, mark).map_err(StackError::whole)?;
        let built = self.built(&mut setup, boots);
        // Also where it could not be brought back in the end.
        repairs.append(&mut setup.repairs);
        built
    }

    /// The first layer that could not be brought back after a power cut; `None` if all can.
    pub fn lost_with_power(&self) -> Option<&dyn Layer> {
        let mut layers = self.layers.iter().map(AsRef::as_ref);
        layers.find(|layer| !layer.returns())
    }

    /// The layer that everything else stands on; `None` if the stack has no layers.
    pub fn lowest(&self) -> Option<&dyn Layer> {
        self.layers.first().map(AsRef::as_ref)
    }

    fn built(
        &self,
        setup: &mut Setup<'_>,
        boots: Vec<String>,
    ) -> Result<StandingStack, StackError> {
        let built = self.build(setup).and_then(|built| {
            let ground =
                Ground::of(self, setup, built.mounted.as_deref()).map_err(StackError::whole)?;
            Ok((built, ground))
        });
        match built {
            Ok((built, lies_on)) => Ok(StandingStack {
                lies_on,
                mark: setup.mark().to_string(),
                directory: built.directory,
                held: built.held,
                bare: built.bare,
                facts: built.facts,
                devices: built.devices,
                parts: std::mem::take(&mut setup.parts),
                nodes: self.nodes(),
                boots,
            }),
            Err(error) => Err(StackError {
                // The caller gets no parts of a stack that failed, so it could not undo them.
                left: setup.tear_down(),
                ..error
            }),
        }
    }

    fn build(&self, setup: &mut Setup<'_>) -> Result<Built, StackError> {
        let mut below = Gives::Nothing;
        let mut facts = Vec::new();
        let mut devices: Vec<String> = Vec::new();
        let mut disks = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let failed = |cause| StackError {
                layer: Some(index),
                kind: layer.kind().to_string(),
                cause: Box::new(cause),
                left: Vec::new(),
            };
            let home = self.home(index);
            setup.stand_on(home).map_err(|e| failed(e.into()))?;
            let standing = stood_up(setup, layer.as_ref(), below).map_err(failed)?;
            facts.push(setup.placed(standing.facts));
            if home == 1 {
                // In front: the devices under the top file system, which show the workload's
                // traffic, come first.
                devices.splice(0..0, standing.devices);
                disks.extend(standing.disks);
            }
            if self.is_doubled(index) {
                facts.push(stood_up_there(setup, layer.as_ref()).map_err(failed)?);
            }
            // What stands on a peer is found there by the layer that serves it.
            let last = index + 1 == self.layers.len();
            below = match last || self.home(index + 1) == home {
                true => standing.gives,
                false => {
                    setup.there = standing.gives;
                    Gives::Nothing
                }
            };
        }
        // Behind all layers, and each once: several devices may lie on one disk.
        for disk in disks {
            if !devices.contains(&disk) {
                devices.push(disk);
            }
        }
        let bare = match &below {
            Gives::Bare(bare) => Some(bare.clone()),
            _ => None,
        };
        let mounted = match &below {
            Gives::Mounted(root) => Some(root.clone()),
            _ => None,
        };
        let (directory, held) = working_directory(setup, below).map_err(StackError::whole)?;
        Ok(Built {
            directory,
            held,
            bare,
            facts,
            devices,
            mounted,
        })
    }
}

/// Sets a layer up for the first time, or brings it back.
fn stood_up(
    setup: &mut Setup<'_>,
    layer: &dyn Layer,
    below: Gives,
) -> Result<StandingLayer, LayerError> {
    match setup.is_returning() {
        true => layer.bring_back(setup, below),
        false => layer.set_up(setup, below),
    }
}

/// The same on the peer, on what the layers below gave there.
fn stood_up_there(setup: &mut Setup<'_>, layer: &dyn Layer) -> Result<LayerFacts, LayerError> {
    setup.on_peer(|setup| {
        let below = setup.there();
        let StandingLayer { gives, facts, .. } = stood_up(setup, layer, below)?;
        setup.there = gives;
        Ok(setup.placed(facts))
    })
}

struct Built {
    directory: PathBuf,
    held: Option<HeldDir>,
    bare: Option<Bare>,
    facts: Vec<LayerFacts>,
    devices: Vec<String>,
    /// Root of the file system that was made for it; `None` if it has none.
    mounted: Option<PathBuf>,
}

/// The root of a fresh file system is not always empty (`lost+found`); a directory in it is. It
/// needs no entry in the journal: it ends with the file system it lies in.
/// A private directory lies in one of the user's, where others may rename what lies above it: it is
/// held, and worked in through its descriptor.
fn working_directory(
    setup: &Setup<'_>,
    top: Gives,
) -> Result<(PathBuf, Option<HeldDir>), LayerError> {
    match top {
        Gives::Private(path) => {
            let held = setup.host().hold_dir(&path)?;
            let path = held.as_ref().map_or(path, |held| held.path().to_path_buf());
            Ok((path, held))
        }
        Gives::Bare(bare) => Ok((bare.directory, None)),
        Gives::Mounted(root) => {
            let path = root.join("work");
            // After a power cut it is there, or it is lost.
            if !setup.is_returning() {
                setup.host().create_dir(&path)?;
            }
            Ok((path, None))
        }
        Gives::Nothing | Gives::Devices(_) | Gives::Pool(_) => Err(LayerError::refused(
            "the top layer gives no directory",
            "put a file system on it",
        )),
    }
}
