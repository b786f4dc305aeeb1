//! Advice that works on the machine at hand: no package that its system does not have, no package at all
//! where the kernel lacks the rest.

use super::{Host, HostError, LAB_MARK, argv};
use std::collections::BTreeSet;
use std::path::Path;

/// Directory in which apt keeps what its sources have.
const LISTS: &str = "/var/lib/apt/lists";

/// The advice where nothing on this machine helps.
fn in_the_lab(command: &str) -> String {
    format!("run the study in the lab, which has it: {command}")
}

/// Each thing that is missing with what to do about it on this machine; `lab`: the command that runs the study in the
/// lab, where that would do for it.
pub fn advised(host: &dyn Host, missing: &[HostError], lab: Option<&str>) -> Vec<String> {
    let lab = lab
        .filter(|_| !host.exists(Path::new(LAB_MARK)))
        .map(in_the_lab);
    let hopeless = |error: &HostError| match error {
        HostError::KernelLacks { module, .. } => !has_module(host, module),
        _ => false,
    };
    // A package alone does not help where the kernel lacks the rest.
    let hopeless = missing.iter().any(hopeless);
    let known = known_packages(host, missing);
    let nexts = missing.iter().map(|error| match error {
        HostError::ToolMissing { .. } if hopeless && lab.is_some() => String::new(),
        HostError::ToolMissing { .. } if !has_package(error, known.as_ref()) => {
            lab.clone().unwrap_or_else(|| elsewhere(error))
        }
        HostError::KernelLacks { module, .. } if has_module(host, module) => {
            format!("load it: sudo modprobe {module}")
        }
        HostError::KernelLacks { .. } | HostError::OutsideLab => {
            lab.clone().unwrap_or_else(|| error.next())
        }
        error => error.next(),
    });
    let nexts: Vec<String> = nexts.collect();
    let lines = missing.iter().enumerate().map(|(at, error)| {
        // The same advice is said once, behind the last line it is for.
        match nexts[at].is_empty() || nexts[at + 1..].contains(&nexts[at]) {
            true => error.to_string(),
            false => format!("{error}; {}", nexts[at]),
        }
    });
    lines.collect()
}

/// Packages that could be installed here, of those that hold what is missing; `None` if apt cannot
/// be asked.
pub fn known_packages(host: &dyn Host, missing: &[HostError]) -> Option<BTreeSet<String>> {
    let names = missing.iter().filter_map(HostError::package);
    let names: BTreeSet<&str> = names.map(|package| package.name).collect();
    // Without lists apt knows nothing, whatever its sources have.
    let listed = host.list(Path::new(LISTS)).unwrap_or_default();
    if names.is_empty()
        || !listed
            .iter()
            .any(|name| name.to_string_lossy().contains("Packages"))
    {
        return None;
    }
    let command = argv(["apt-cache", "policy"].into_iter().chain(names));
    let said = host
        .exec(&command)
        .ok()
        .filter(|said| said.status == Some(0))?;
    Some(candidates(&said.stdout))
}

/// The packages of `apt-cache policy` that have a candidate.
fn candidates(said: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut package = "";
    for line in said.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            package = name;
        }
        // A name without a version to install is one that others only recommend.
        let candidate = line.trim().strip_prefix("Candidate: ");
        if candidate.is_some_and(|version| version != "(none)") {
            known.insert(package.to_owned());
        }
    }
    known
}

/// Returns true if the package of a tool can be installed, as far as that is known.
fn has_package(error: &HostError, known: Option<&BTreeSet<String>>) -> bool {
    match (error.package(), known) {
        (Some(package), Some(known)) => known.contains(package.name),
        (_, _) => true,
    }
}

/// Advice where the system's sources do not have a package and the lab would not do.
fn elsewhere(error: &HostError) -> String {
    let package = error.package().map_or("it", |package| package.name);
    format!(
        "no source of apt here has {package}: add one that has it (Debian: contrib), then apt update"
    )
}

/// Returns true if a module lies where the running kernel would load it from.
fn has_module(host: &dyn Host, module: &str) -> bool {
    modules(host).lines().any(|line| is_of(line, module))
}

/// Paths of all modules of the running kernel, those that are built in too, one a line.
pub fn modules(host: &dyn Host) -> String {
    let read = |path: String| host.read_text(Path::new(&path)).unwrap_or_default();
    // Modules lie in a directory of the running kernel; others may be installed beside it.
    let release = read("/proc/sys/kernel/osrelease".to_owned());
    let at = |name: &str| read(format!("/lib/modules/{}/{name}", release.trim()));
    at("modules.dep") + &at("modules.builtin")
}

/// Returns true if a line of such a list is the file of a module.
pub fn is_of(line: &str, module: &str) -> bool {
    // The file of `dm_mod` is `dm-mod.ko`; what a module needs stands behind the colon.
    let same = |name: &str| name.replace('-', "_") == module.replace('-', "_");
    let path = line.split(':').next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    file.split_once(".ko").is_some_and(|(name, _)| same(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Package, local::LocalHost};
    use std::sync::Arc;

    fn tool(name: &str, package: &'static str) -> HostError {
        HostError::ToolMissing {
            tool: name.to_owned(),
            package: Some(Package::new(package, &[])),
        }
    }

    #[test]
    fn a_package_that_no_source_has_is_told_from_one_with_a_candidate() {
        let said = "mdadm:\n  Installed: (none)\n  Candidate: 4.2-5\n  Version table:\n     4.2-5 500\n\
                    zfsutils-linux:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        let known = candidates(said);
        assert!(has_package(&tool("mdadm", "mdadm"), Some(&known)));
        assert!(!has_package(&tool("zpool", "zfsutils-linux"), Some(&known)));
        assert!(
            has_package(&tool("zpool", "zfsutils-linux"), None),
            "apt was not asked"
        );
    }

    #[test]
    fn where_the_kernel_lacks_a_thing_no_package_is_advised_but_the_lab() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let missing = [
            tool("mdadm", "mdadm"),
            HostError::KernelLacks {
                what: "a thing".to_owned(),
                module: "no_such_module".to_owned(),
            },
        ];
        let lines = advised(&host, &missing, Some("stackrace run s --lab"));
        assert_eq!(lines[0], "mdadm is not installed");
        assert!(
            lines[1].ends_with(": stackrace run s --lab"),
            "{}",
            lines[1]
        );
        // The disks of the user's are in no lab.
        let lines = advised(&host, &missing, None);
        assert!(
            lines.iter().all(|line| !line.contains("--lab")),
            "{lines:?}"
        );
    }

    #[test]
    fn a_module_is_found_by_its_name_alone() {
        let dep = "kernel/drivers/md/dm-mod.ko.xz: kernel/lib/libcrc32c.ko.xz";
        assert!(is_of(dep, "dm_mod"));
        assert!(!is_of(dep, "libcrc32c") && !is_of(dep, "md") && !is_of(dep, "dm"));
    }
}
