//! Whether layers fit on each other.

use stackrace_foundation::foundation::{
    Below, CutOf, Danger, GivesKind, Identity, Inspection, LaidOutData, Layer, StackError,
    StorageClaim, Takes, guard,
};
use stackrace_machine::host::{Host, HostError, LabDisk, Needs};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Layers that fit, bottom up; the last gives a directory, or bare devices.
pub struct Stack {
    /// Bottom up.
    pub layers: Vec<Box<dyn Layer>>,
}

impl Stack {
    /// Puts layers on each other.
    ///
    /// # Errors
    /// The layer (from 0 at the bottom) that does not fit, and why.
    pub fn new(layers: Vec<Box<dyn Layer>>) -> Result<Self, (usize, String)> {
        let mut below: Option<&dyn Layer> = None;
        for (index, layer) in layers.iter().enumerate() {
            // Each machine has a directory of its own there, and a layer takes one.
            if let Some(loaded) = below.filter(|below| below.loaded_from() > 1) {
                let (below, nodes) = (loaded.kind(), loaded.loaded_from());
                let why = format!(
                    "{below} with load-from = {nodes} gives its directory to the workload alone: leave load-from out below {}",
                    layer.kind()
                );
                return Err((index, why));
            }
            // It is unmounted and made anew before each phase, which nothing that stands on it survives.
            if let Some(packed) =
                below.filter(|below| below.laid_out_data() == LaidOutData::OnlyRead)
            {
                let why = format!(
                    "{} is packed anew before each phase: leave {} out above it",
                    packed.kind(),
                    layer.kind()
                );
                return Err((index, why));
            }
            fits(layer.as_ref(), below, devices_above(&layers[..index]))
                .map_err(|why| (index, why))?;
            layer
                .accepts(&layers[..index])
                .map_err(|why| (index, why))?;
            if layer.below() != Below::Here {
                let apart = layers[..index].iter().find(|other| {
                    // What is replicated may be served by a peer; nothing more goes on another.
                    (other.below(), layer.below()) != (Below::OnBoth, Below::OnPeer)
                        && other.below() != Below::Here
                });
                if let Some(apart) = apart {
                    let why = format!(
                        "{} and {} both need a peer: a stack is replicated once, and served by a peer once",
                        layer.kind(),
                        apart.kind()
                    );
                    return Err((index, why));
                }
            }
            // What hands everything on hides nothing of what is below it.
            if layer.takes() != Takes::Anything {
                below = Some(layer.as_ref());
            }
        }
        match below {
            None => Err((
                0,
                "a stack has at least one layer: write [[stack]] with dir, loop or tmpfs"
                    .to_string(),
            )),
            Some(top) => match top.gives() {
                GivesKind::Directory | GivesKind::Bare => Ok(Self { layers }),
                given => Err((
                    layers.len() - 1,
                    format!(
                        "the top layer ({}) gives {}, and a workload needs a directory: put {} on it",
                        top.brief(),
                        plural(given),
                        above(given)
                    ),
                )),
            },
        }
    }

    /// Returns true if it leaves bare devices to the workload, and no file system.
    pub fn is_bare(&self) -> bool {
        let mut layers = self.layers.iter().rev();
        let top = layers.find(|layer| layer.takes() != Takes::Anything);
        top.is_some_and(|top| top.gives() == GivesKind::Bare)
    }

    /// What becomes of data that a trial laid out on it, when its clock starts.
    pub fn laid_out_data(&self) -> LaidOutData {
        let all = self.layers.iter().map(|layer| layer.laid_out_data());
        let mut others = all.filter(|data| *data != LaidOutData::Stay);
        others.next().unwrap_or(LaidOutData::Stay)
    }

    /// Directories in which setting up this stack takes disk, each with its bytes; an empty path is
    /// the site's scratch directory.
    pub fn disk_needed(&self) -> Vec<(PathBuf, u64)> {
        self.layers
            .iter()
            .filter_map(|layer| layer.disk_needed())
            .collect()
    }

    /// Bytes that its disks are written for so many of a workload's, once.
    pub fn written_to_disks(&self, bytes: u64) -> u64 {
        (0..self.layers.len()).rev().fold(bytes, |bytes, index| {
            // The lowest layer writes to what it is made of, once.
            let devices = devices_above(&self.layers[..index]);
            self.layers[index].written_below(bytes, devices.unwrap_or(1))
        })
    }

    /// The directory it is, where it is one of the user's and nothing else.
    pub fn existing_directory(&self) -> Option<PathBuf> {
        match &self.layers[..] {
            [only] => only.existing_directory().map(Path::to_owned),
            _ => None,
        }
    }

    /// The volume of a storage class that it needs; `None` if it needs none.
    pub fn claim(&self) -> Option<&StorageClaim> {
        self.layers.iter().find_map(|layer| layer.claim())
    }

    /// Number of machines it needs.
    pub fn nodes(&self) -> usize {
        let layers = self.layers.iter().enumerate();
        // A layer that stands on the second machine and needs a peer needs a third one.
        let nodes = layers.map(|(index, layer)| self.home(index) - 1 + layer.nodes());
        nodes.max().unwrap_or(1)
    }

    /// The reason why it cannot stand in one kernel, as a clause; `None` if it can.
    pub fn apart(&self) -> Option<String> {
        if let Some(why) = self.layers.iter().find_map(|layer| layer.apart()) {
            return Some(why);
        }
        // Each machine beyond the first has one name and one network: there is room for one.
        (self.nodes() > 2).then(|| {
            let nodes = self.nodes();
            format!("a share whose files are replicated needs {nodes} machines, and two fit into one kernel")
        })
    }

    /// Returns true if all its disks are modelled, and it has some.
    pub fn is_modelled(&self) -> bool {
        let disks = self.lab_disks();
        !disks.is_empty() && disks.iter().all(|disk| disk.model.is_some())
    }

    /// Number of machines on which the workload runs at once.
    pub fn loaded_from(&self) -> usize {
        self.layers.last().map_or(1, |top| top.loaded_from())
    }

    /// The machine a layer of it stands on, from 1; its peer is the next one.
    pub fn home(&self, index: usize) -> usize {
        1 + self.above(index, Below::OnPeer)
    }

    /// Returns true if a layer of it stands on the peer too, alike.
    pub fn is_doubled(&self, index: usize) -> bool {
        self.above(index, Below::OnBoth) > 0
    }

    /// Number of layers above one that have what they take there.
    fn above(&self, index: usize, place: Below) -> usize {
        let above = self.layers[index + 1..].iter();
        // Each layer that takes what stands on a peer moves all layers below it one machine
        // further.
        above.filter(|layer| layer.below() == place).count()
    }

    /// Disks the virtual machine has to be started with.
    pub fn lab_disks(&self) -> Vec<LabDisk> {
        self.layers.iter().flat_map(|l| l.lab_disks()).collect()
    }

    /// The part of the stack that a power cut hits.
    pub fn cut_of(&self) -> CutOf {
        let mut said = self.layers.iter().filter_map(|layer| layer.cut_of());
        said.next().unwrap_or_default()
    }

    /// The machines a layer of it needs something of, from 1.
    fn machines(&self, index: usize) -> RangeInclusive<usize> {
        let home = self.home(index);
        match self.is_doubled(index) || self.layers[index].nodes() > 1 {
            true => home..=home + 1,
            false => home..=home,
        }
    }

    /// Needs of each layer, by its number, with a machine and what must be there before it is set up.
    pub fn needs(&self) -> Vec<(usize, usize, Needs)> {
        let mut needs = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let home = self.home(index);
            needs.push((index, home, layer.needs()));
            let on_peer = usize::from(layer.below() == Below::OnPeer);
            // The client needs one thing and its server another; layers without a server need the
            // same on both machines.
            match layer.server_needs() {
                Some(server) => needs.push((index, home + on_peer, server)),
                None if layer.nodes() > 1 || self.is_doubled(index) => {
                    needs.push((index, home + 1, layer.needs()));
                }
                None => {}
            }
        }
        needs
    }

    /// Things missing on the machines it needs, with the number of the layer that needs each.
    fn lacks(&self, host: &dyn Host) -> Vec<(Option<usize>, HostError)> {
        let node = self.nodes();
        // Nothing can be asked of a machine that is not there.
        if node > host.nodes() {
            return vec![(None, HostError::NoPeer { node })];
        }
        let mut lacks = Vec::new();
        for (index, node, needs) in self.needs() {
            let errors = lacking(host, node, &needs).into_iter();
            lacks.extend(errors.map(|error| (Some(index), error)));
        }
        lacks
    }

    /// Disk that its layers need on one of its machines: directories, and the bytes in each.
    pub fn disk_needed_on(&self, node: usize) -> Vec<(PathBuf, u64)> {
        let layers = self.layers.iter().enumerate();
        layers
            .filter(|(index, _)| self.machines(*index).contains(&node))
            .filter_map(|(_, layer)| layer.disk_needed())
            .collect()
    }

    /// The disks it is told to write over.
    fn disks(&self) -> impl Iterator<Item = &Identity> {
        self.layers.iter().flat_map(|layer| layer.disks())
    }

    /// Ids of the disks it is told to write over.
    pub fn disk_ids(&self) -> impl Iterator<Item = &str> {
        self.disks().map(|disk| disk.id.as_str())
    }

    /// Contents of devices this stack would write over, on this machine as it is now.
    pub fn dangers(&self, machine: &Inspection<'_>) -> Vec<Danger> {
        self.layers
            .iter()
            .flat_map(|layer| layer.dangers(machine))
            .collect()
    }

    /// Disks of a list of stacks that are one disk under two ids, on this machine as it is now.
    pub fn named_twice<'a>(stacks: impl Iterator<Item = &'a Self>, host: &dyn Host) -> Vec<Danger> {
        let mut seen: Vec<(&Identity, PathBuf)> = Vec::new();
        let mut twice = Vec::new();
        for disk in stacks.flat_map(Self::disks) {
            // A disk that is not there is refused when it is looked at.
            let Ok(found) = host.fix_device(&disk.link()) else {
                continue;
            };
            match seen.iter().find(|(_, node)| *node == found.node) {
                Some((other, _)) if other.id == disk.id => {}
                Some((other, node)) => {
                    let error = guard::same_disk(&other.id, &disk.id, node);
                    twice.push(Danger::Refused(error));
                }
                None => seen.push((disk, found.node)),
            }
        }
        twice
    }

    /// Refuses the stack if this machine lacks something that a layer needs: a tool, a module, a privilege. Nothing
    /// is changed. The error is of the first such layer.
    pub fn check_needs(&self, host: &dyn Host) -> Result<(), StackError> {
        let Some((layer, error)) = self.lacks(host).into_iter().next() else {
            return Ok(());
        };
        let whole = StackError::whole(error);
        Err(match layer {
            Some(index) => StackError {
                layer,
                kind: self.layers[index].kind().to_string(),
                ..whole
            },
            None => whole,
        })
    }
}

/// Number of devices that some layers give; `None` if they give no devices.
fn devices_above(layers: &[Box<dyn Layer>]) -> Option<usize> {
    let mut own = layers.iter().rev();
    own.find(|layer| !layer.passes_devices_on() && layer.takes() != Takes::Anything)?
        .devices_given()
}

fn fits(
    layer: &dyn Layer,
    below: Option<&dyn Layer>,
    given_below: Option<usize>,
) -> Result<(), String> {
    let kind = layer.kind();
    let taken = match layer.takes() {
        Takes::Nothing => {
            return match below {
                None => Ok(()),
                Some(below) => Err(format!(
                    "{kind} stands at the bottom; it cannot be put on {}",
                    below.brief()
                )),
            };
        }
        Takes::Devices { min, max } => devices(min, max),
        Takes::Pool => "a pool".to_string(),
        Takes::Directory => "a directory".to_string(),
        Takes::Anything => "what is below".to_string(),
    };
    let Some(below) = below else {
        // The nearest that gives what is missing.
        let on = match layer.takes() {
            Takes::Pool => "zpool",
            Takes::Directory => "a file system",
            _ => "loop",
        };
        return Err(format!(
            "{kind} takes {taken}; there is no layer below: put it on {on}"
        ));
    };
    // A layer that gives devices says how many; of others there is no number.
    match (layer.takes(), below.gives(), given_below) {
        (Takes::Devices { min, max }, _, Some(given)) if (min..=max).contains(&given) => Ok(()),
        (Takes::Devices { .. }, _, Some(given)) => Err(format!(
            "{} takes {taken}; the layer below ({}) gives {given}",
            layer.brief(),
            below.brief()
        )),
        (Takes::Pool, GivesKind::Pool, _)
        | (Takes::Directory, GivesKind::Directory, _)
        | (Takes::Anything, _, _) => Ok(()),
        (_, given, _) => Err(format!(
            "{kind} takes {taken}; the layer below ({}) gives {}",
            below.brief(),
            plural(given)
        )),
    }
}

fn plural(given: GivesKind) -> &'static str {
    match given {
        GivesKind::Devices => "devices",
        GivesKind::Directory => "a directory",
        GivesKind::Pool => "a pool",
        GivesKind::Bare => "devices to the workload alone",
    }
}

/// Things missing to set up some stacks, none twice, each need asked for once; empty if nothing is
/// missing.
pub fn missing<'a>(stacks: impl Iterator<Item = &'a Stack>, host: &dyn Host) -> Vec<HostError> {
    let mut asked: Vec<(usize, Needs)> = Vec::new();
    let mut missing = Vec::new();
    for stack in stacks {
        let node = stack.nodes();
        if node > host.nodes() {
            return vec![HostError::NoPeer { node }];
        }
        for (_, node, needs) in stack.needs() {
            if asked.contains(&(node, needs)) {
                continue;
            }
            asked.push((node, needs));
            for error in lacking(host, node, &needs) {
                if !missing.contains(&error) {
                    missing.push(error);
                }
            }
        }
    }
    missing
}

/// The needs that one of the machines does not meet.
fn lacking(host: &dyn Host, node: usize, needs: &Needs) -> Vec<HostError> {
    match node {
        1 => host.missing(needs),
        node => host
            .peer(node)
            .map_or_else(|error| vec![error], |peer| peer.missing(needs)),
    }
}

/// The kind of layer that makes a directory of it.
fn above(given: GivesKind) -> &'static str {
    match given {
        GivesKind::Pool => "a dataset",
        _ => "a file system",
    }
}

fn devices(min: usize, max: usize) -> String {
    match (min, max) {
        (1, 1) => "one device".to_string(),
        (1, _) => format!("one to {max} devices"),
        _ => format!("at least {min} devices, at most {max}"),
    }
}
