//! Where a workload's files will lie, as the system shows it right before a turn: how the file system
//! is mounted, how full and how old it is, and every device below it. What differs between two
//! configurations and was not asked for is found from these facts.

use stackrace_base::unit::ShownPath;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::foundation::block;
use crate::foundation::error::LayerError;
use stackrace_base::event::{Fact, FactFigure, LayerFacts};
use stackrace_base::unit;
use stackrace_machine::host::{Host, MountInfo};

/// Name of the layer under which these facts are on record.
const LAYER: &str = "place";

/// The mount exactly at a directory; `None` if nothing is mounted there, and an empty directory of
/// ours would be measured in its place.
///
/// # Errors
/// The system does not show what is mounted.
pub fn mounted_at(host: &dyn Host, point: &Path) -> Result<Option<MountInfo>, LayerError> {
    let mount = host.mount_of(point)?;
    // The path of a mount that is not told is no path.
    if mount.mount_point.is_relative() {
        return Err(LayerError::refused(
            format!(
                "the system does not show what is mounted at {}",
                point.shown()
            ),
            "use dir, on storage that is there",
        ));
    }
    Ok(Some(mount).filter(|mount| mount.mount_point == point))
}

/// The facts of a directory, on a file system that this run mounted (`ours`) or found; `None` if it
/// cannot be found out where it lies.
pub fn facts(host: &dyn Host, directory: &Path, ours: bool) -> Option<LayerFacts> {
    let mount = host.mount_of(directory).ok()?;
    // A file system that was there before may be old and full, which a new one is not.
    let mounted = if ours {
        "by this run"
    } else {
        "before the run"
    };
    let mut facts = vec![
        Fact::new("mounted", mounted).with(FactFigure::BeforeTheRun(!ours)),
        Fact::new("mounted at", mount.mount_point.to_string_lossy()),
        Fact::new("mount options", mount.options.join(",")),
    ];
    facts.extend(used(directory));
    facts.extend(made(&mount));
    let devices = block::all_below(host, &block::under_mount(host, &mount));
    if !devices.is_empty() {
        let devices: Vec<String> = devices.into_iter().map(|device| device.name).collect();
        let fact = Fact::new("devices", devices.join(", "));
        facts.push(fact.with(FactFigure::Devices(devices)));
    }
    Some(LayerFacts {
        layer: LAYER.to_owned(),
        facts,
    })
}

/// `83.1 % of 320 MiB`
fn used(directory: &Path) -> Option<Fact> {
    let space = rustix::fs::statvfs(directory).ok()?;
    if space.f_blocks == 0 {
        return None;
    }
    // As df(1) counts, and as fill levels are reached: what is kept for root is neither used nor room.
    let blocks = space.f_blocks.saturating_sub(space.f_bfree);
    let all = blocks.saturating_add(space.f_bavail);
    let share = blocks as f64 / all.max(1) as f64;
    let [bytes, of] = [blocks, all].map(|blocks| blocks.saturating_mul(space.f_frsize));
    let value = format!("{:.1} % of {}", 100.0 * share, unit::bytes(of));
    Some(Fact::new("space used", value).with(FactFigure::Used { bytes, of }))
}

/// Time at which the file system was made, in seconds since 1970: its root directory is as old as
/// itself.
fn made(mount: &MountInfo) -> Option<Fact> {
    // Below another root (a bind mount, a subvolume) the directory seen may be younger.
    if mount.root != Path::new("/") {
        return None;
    }
    let root = std::fs::metadata(&mount.mount_point).ok()?;
    let here = stackrace_system::device_number(mount.st_dev.0, mount.st_dev.1);
    // Something else may be mounted over it.
    if root.dev() != here {
        return None;
    }
    let made = root.created().ok()?;
    let seconds = made.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    let fact = Fact::new("file system made", format!("{seconds} s since 1970"));
    Some(fact.with(FactFigure::SecondsSince1970(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::local::LocalHost;
    use std::sync::Arc;

    #[test]
    fn a_directory_of_this_machine_has_a_mount_and_a_fill_level() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let dir = tempfile::tempdir().unwrap();
        let facts = facts(&host, dir.path(), false).unwrap();
        assert_eq!(facts.layer, LAYER);
        let value = |name: &str| {
            let mut all = facts.facts.iter();
            all.find(|fact| fact.name == name).unwrap().value.clone()
        };
        assert!(value("mount options").contains("rw"));
        assert!(value("space used").contains(" % of "));
    }
}
