//! What a layer needs of a machine, looked for there.

use super::{Host, HostError, LAB_MARK, Needs, argv};
use std::path::Path;

/// Finds what a host lacks of what is needed, each with what to do about it; what the kernel can
/// load is loaded. `finds` says whether it has a program.
///
/// # Errors
/// Those of `finds`: it cannot be asked.
pub fn lacking(
    host: &dyn Host,
    needs: &Needs,
    finds: &dyn Fn(&str) -> Result<bool, HostError>,
) -> Result<Vec<HostError>, HostError> {
    let mut missing = Vec::new();
    if let Some(part) = needs.part.filter(|part| !part.built) {
        missing.push(HostError::NotBuilt(part));
    }
    if needs.root && !host.is_root() {
        missing.push(HostError::NeedsRoot);
    }
    for tool in needs.tools {
        if !finds(tool)? {
            let mut packages = needs.packages.iter();
            let package = packages.find(|package| package.programs.contains(tool));
            missing.push(HostError::ToolMissing {
                tool: (*tool).to_string(),
                package: package.copied(),
            });
        }
    }
    let mut kernel = |module: &str, what: &str, has: &dyn Fn() -> bool| {
        if has() {
            return Ok(());
        }
        // Loading a module is the one change that a check makes; others could not.
        if host.is_root() && finds("modprobe")? {
            // A failure is recorded with the command; what counts is what the kernel knows next.
            let _ = host.exec(&argv(["modprobe", module]));
        }
        if !has() {
            let what = what.to_string();
            let module = module.to_string();
            missing.push(HostError::KernelLacks { what, module });
        }
        Ok(())
    };
    if let Some(name) = needs.file_system {
        let what = format!("the file system {name}");
        kernel(name, &what, &|| knows_file_system(host, name))?;
    }
    for driver in needs.drivers {
        let shown_by = Path::new(driver.shown_by);
        kernel(driver.module, driver.what, &|| host.exists(shown_by))?;
    }
    let free = needs.daemons.iter().map(|daemon| host.check_free(daemon));
    missing.extend(free.filter_map(Result::err));
    if needs.lab && !host.exists(Path::new(LAB_MARK)) {
        missing.push(HostError::OutsideLab);
    }
    Ok(missing)
}

fn knows_file_system(host: &dyn Host, name: &str) -> bool {
    let known = host.read_text(Path::new("/proc/filesystems"));
    let known = known.unwrap_or_default();
    // The last word of a line: before it may stand `nodev`.
    let mut names = known
        .lines()
        .filter_map(|line| line.split_whitespace().next_back());
    names.any(|known| known == name)
}
