//! Whether layers fit on each other.

use super::{Below, Layer, StackError, Takes};
use crate::host::{Host, HostError, LabDisk};
use std::path::PathBuf;

/// Layers that fit, bottom up; the last gives a directory.
pub(crate) struct Stack {
    /// Bottom up.
    pub(crate) layers: Vec<Box<dyn Layer>>,
}

impl Stack {
    /// Puts layers on each other.
    ///
    /// # Errors
    /// The layer (from 0 at the bottom) that does not fit, and why.
    pub(crate) fn new(layers: Vec<Box<dyn Layer>>) -> Result<Self, (usize, String)> {
        let mut below: Option<&dyn Layer> = None;
        for (index, layer) in layers.iter().enumerate() {
            fits(layer.as_ref(), below).map_err(|why| (index, why))?;
            layer
                .accepts(&layers[..index])
                .map_err(|why| (index, why))?;
            let apart = layers[..index].iter().find(|l| l.below() != Below::Here);
            if let (Some(apart), true) = (apart, layer.below() != Below::Here) {
                let why = format!(
                    "{} and {} both need a peer: a stack reaches to one other machine, once",
                    layer.kind(),
                    apart.kind()
                );
                return Err((index, why));
            }
            below = Some(layer.as_ref());
        }
        match below {
            None => Err((
                0,
                "a stack has at least one layer: write [[stack]] with dir, loop or tmpfs"
                    .to_string(),
            )),
            Some(top) if top.devices_given().is_some() => Err((
                layers.len() - 1,
                format!(
                    "the top layer ({}) gives devices, and a workload needs a directory: put a file system on it",
                    top.brief()
                ),
            )),
            Some(_) => Ok(Self { layers }),
        }
    }

    /// Where raising this stack takes how many bytes of disk; an empty path is the site's scratch
    /// directory.
    pub(crate) fn disk_needed(&self) -> Vec<(PathBuf, u64)> {
        self.layers
            .iter()
            .filter_map(|layer| layer.disk_needed())
            .collect()
    }

    /// How many machines it needs.
    pub(crate) fn nodes(&self) -> usize {
        let nodes = self.layers.iter().map(|layer| layer.nodes());
        nodes.max().unwrap_or(1)
    }

    /// Where a layer of it stands.
    pub(super) fn place(&self, index: usize) -> Below {
        let above = self.layers[index + 1..].iter().map(|layer| layer.below());
        above.fold(Below::Here, |place, below| match below {
            Below::Here => place,
            other => other,
        })
    }

    /// Disks the virtual machine has to be started with.
    pub(crate) fn lab_disks(&self) -> Vec<LabDisk> {
        self.layers.iter().flat_map(|l| l.lab_disks()).collect()
    }

    /// What this machine lacks to raise this stack, none twice; empty: nothing.
    pub(crate) fn missing(&self, host: &dyn Host) -> Vec<HostError> {
        let mut missing: Vec<HostError> = Vec::new();
        if self.nodes() > host.nodes() {
            missing.push(HostError::NoPeer { node: self.nodes() });
        }
        for error in self.layers.iter().flat_map(|l| host.missing(&l.needs())) {
            if !missing.contains(&error) {
                missing.push(error);
            }
        }
        missing
    }

    pub(super) fn check_needs(&self, host: &dyn Host) -> Result<(), StackError> {
        if self.nodes() > host.nodes() {
            let node = self.nodes();
            return Err(StackError::whole(HostError::NoPeer { node }));
        }
        for (index, layer) in self.layers.iter().enumerate() {
            if let Some(error) = host.missing(&layer.needs()).into_iter().next() {
                return Err(StackError {
                    layer: Some(index),
                    kind: layer.kind().to_string(),
                    cause: Box::new(error.into()),
                    left: Vec::new(),
                });
            }
        }
        Ok(())
    }
}

fn fits(layer: &dyn Layer, below: Option<&dyn Layer>) -> Result<(), String> {
    let kind = layer.kind();
    match (layer.takes(), below) {
        (Takes::Nothing, None) => Ok(()),
        (Takes::Directory, Some(below)) if below.devices_given().is_none() => Ok(()),
        (Takes::Directory, below) => Err(format!(
            "{kind} takes a directory; {}: put a file system below it",
            match below {
                Some(below) => format!("the layer below ({}) gives devices", below.brief()),
                None => "there is no layer below".to_string(),
            }
        )),
        (Takes::Nothing, Some(below)) => Err(format!(
            "{kind} stands at the bottom; it cannot be put on {}",
            below.brief()
        )),
        (Takes::Devices { min, max }, None) => Err(format!(
            "{kind} takes {}; there is no layer below: put it on loop",
            devices(min, max)
        )),
        (Takes::Devices { min, max }, Some(below)) => match below.devices_given() {
            Some(given) if (min..=max).contains(&given) => Ok(()),
            Some(given) => Err(format!(
                "{} takes {}; the layer below ({}) gives {given}",
                layer.brief(),
                devices(min, max),
                below.brief()
            )),
            None => Err(format!(
                "{kind} takes {}; the layer below ({}) gives a directory",
                devices(min, max),
                below.brief()
            )),
        },
    }
}

fn devices(min: usize, max: usize) -> String {
    match (min, max) {
        (1, 1) => "one device".to_string(),
        (1, _) => format!("one to {max} devices"),
        _ => format!("at least {min} devices, at most {max}"),
    }
}
