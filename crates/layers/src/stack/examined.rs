//! What a machine has of all that the layers need, found out without changing anything.

use super::written;
use stackrace_foundation::foundation::LayerKind;
use stackrace_machine::host::{Host, HostError, Needs, is_of, modules};
use std::path::Path;

/// A kind of layer, and what a machine lacks to set it up with the settings of its example.
#[derive(Debug)]
pub struct Examined {
    /// The name of the kind.
    pub layer: &'static str,
    /// True if it needs the rights of root.
    pub root: bool,
    /// Number of machines it needs.
    pub machines: usize,
    /// Things that are missing, the rights of root left out; empty if there are none.
    pub missing: Vec<HostError>,
}

/// Each kind of layer, in their order.
pub(super) fn of(kinds: &[LayerKind], host: &dyn Host) -> Vec<Examined> {
    let modules = Modules::of(host);
    let each = kinds.iter().filter_map(|kind| {
        // What a layer needs depends on its settings; its example stands for the usual ones.
        let layer = written::layer(kinds, kind.example).ok()?;
        let mut missing = Vec::new();
        let mut root = false;
        for needs in [Some(layer.needs()), layer.server_needs()]
            .into_iter()
            .flatten()
        {
            root |= needs.root;
            for error in lacking(host, &modules, &needs) {
                if !missing.contains(&error) {
                    missing.push(error);
                }
            }
        }
        Some(Examined {
            layer: kind.name,
            root,
            machines: layer.nodes(),
            missing,
        })
    });
    each.collect()
}

fn lacking(host: &dyn Host, modules: &Modules, needs: &Needs) -> Vec<HostError> {
    // The host loads modules to find out what the kernel knows; an examination changes nothing.
    let mut missing = host.missing(&Needs {
        root: false,
        file_system: None,
        drivers: &[],
        ..*needs
    });
    let lacks = |what: String, module: &str| HostError::KernelLacks {
        what,
        module: module.to_owned(),
    };
    if let Some(name) = needs.file_system.filter(|name| !modules.know(host, name)) {
        missing.push(lacks(format!("the file system {name}"), name));
    }
    for driver in needs.drivers {
        if !host.exists(Path::new(driver.shown_by)) && !modules.have(driver.module) {
            missing.push(lacks(driver.what.to_owned(), driver.module));
        }
    }
    missing
}

/// Modules that the kernel has, and could load.
struct Modules {
    /// Paths of all modules of the running kernel, those that are built in too, one a line.
    lists: String,
}

impl Modules {
    fn of(host: &dyn Host) -> Self {
        Self {
            lists: modules(host),
        }
    }

    /// Returns true if there is a module of that name.
    fn have(&self, module: &str) -> bool {
        self.lists.lines().any(|line| is_of(line, module))
    }

    /// Returns true if the kernel knows a file system, or could load it.
    fn know(&self, host: &dyn Host, name: &str) -> bool {
        let known = host.read_text(Path::new("/proc/filesystems"));
        let known = known.unwrap_or_default();
        // The last word of a line: before it may stand `nodev`.
        let mut names = known
            .lines()
            .filter_map(|line| line.split_whitespace().next_back());
        names.any(|known| known == name) || self.have(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::local::LocalHost;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn every_layer_is_examined_and_nothing_is_executed() {
        let executed = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&executed);
        let host = LocalHost::new(Arc::new(move |_| told.store(true, Ordering::Relaxed)));
        let all = of(crate::stack::ALL, &host);
        assert_eq!(all.len(), crate::stack::ALL.len());
        // Root would have the kernel load what it lacks.
        assert!(!executed.load(Ordering::Relaxed));
        let drbd = all.iter().find(|one| one.layer == "drbd").unwrap();
        assert_eq!(drbd.machines, 2);
    }

    #[test]
    fn a_module_is_found_by_its_name_alone() {
        let modules = Modules {
            lists:
                "kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\nkernel/drivers/md/dm-mod.ko\n"
                    .to_owned(),
        };
        assert!(modules.have("xfs") && modules.have("dm_mod"));
        // What a module needs stands behind the colon, and has a line of its own.
        assert!(!modules.have("libcrc32c") && !modules.have("fs") && !modules.have("dm"));
    }
}
