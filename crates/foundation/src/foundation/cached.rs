//! A device with a cache on another one: the last of two.

use crate::foundation::block::{self, SYS_SECTOR_BYTES};
use crate::foundation::error::LayerError;
use crate::foundation::filesystem;
use crate::foundation::gives::Device;
use crate::foundation::layer::Layer;
use stackrace_base::event::{Fact, FactFigure, LayerEffect};
use stackrace_base::unit;
use stackrace_machine::host::Host;
use std::path::Path;

/// Bytes of what is cached, and of its cache.
pub struct CacheSizes {
    /// Bytes of the device that is cached.
    pub origin: u64,
    /// Bytes of its cache.
    pub cache: u64,
}

/// The device that is cached and its cache, with their sizes.
///
/// # Errors
/// There are not two, or the cache is larger.
pub fn sizes(host: &dyn Host, devices: &[Device]) -> Result<CacheSizes, LayerError> {
    let [origin, cache] = devices else {
        return Err(LayerError::refused("a cache takes two devices", ""));
    };
    let (origin, cache) = (size(host, origin)?, size(host, cache)?);
    // Loop devices are told apart here alone; of disks of the lab, a study is refused before.
    match cache > origin {
        true => Err(LayerError::refused(
            too_large(cache, origin),
            "make it smaller",
        )),
        false => Ok(CacheSizes { origin, cache }),
    }
}

impl CacheSizes {
    /// The cache as every set-up begins with it: a trial that is to find it warm has to warm it.
    pub fn fact(&self) -> Fact {
        let cache = unit::bytes(self.cache);
        Fact::new("cache", format!("{cache}, empty when the stack was set up"))
            .with(FactFigure::Effect(LayerEffect::EmptyCache))
    }
}

/// Refuses a cache that is larger than what it caches, and disks that would keep what no mark of ours is on.
///
/// # Errors
/// One clause.
pub fn accepts(kind: &str, below: &[Box<dyn Layer>]) -> Result<(), String> {
    let disks = below.last().map_or(Vec::new(), |layer| layer.lab_disks());
    if let [origin, cache] = &*disks
        && cache.bytes > origin.bytes
    {
        return Err(too_large(cache.bytes, origin.bytes));
    }
    filesystem::no_disks(kind, below)
}

fn too_large(cache: u64, origin: u64) -> String {
    format!(
        "the cache ({}) is larger than what it caches ({})",
        unit::bytes(cache),
        unit::bytes(origin)
    )
}

/// Bytes of a device.
///
/// # Errors
/// The kernel does not tell.
pub fn size(host: &dyn Host, device: &Device) -> Result<u64, LayerError> {
    let name = block::kernel_name(host, &device.path);
    let about = Path::new("/sys/class/block").join(name).join("size");
    let sectors = host.read_text(&about)?.trim().parse::<u64>();
    let sectors = sectors.map_err(|_| LayerError::refused("a device tells no size", ""))?;
    Ok(sectors.saturating_mul(SYS_SECTOR_BYTES))
}
