//! The driver `ublk` for a kernel that Debian builds without it: without this driver a guest cannot serve
//! modelled drives to itself.

use super::error::LabError;
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::Host;
use std::path::Path;

/// The part of the recipe that builds it, in a tree of its own: a guest needs no compiler.
pub(super) const SCRIPT: &str = "ublk.sh";

/// Packages in that tree, besides what the script fetches.
pub(super) const PACKAGES: &str = "kmod,make,xz-utils";

/// The built driver, in the working directory and in `/usr/lib` of the image.
const FILE: &str = "ublk_drv.ko";

/// Says which kernel it was built for, in the working directory.
const BUILT_FOR: &str = "ublk";

/// The option of mmdebstrap that puts the driver into a tree; `None` if none was built.
pub(super) fn upload(work: &Path) -> Option<String> {
    let file = work.join(FILE);
    let upload = || {
        format!(
            "--customize-hook=upload '{}' '/usr/lib/{FILE}'",
            file.shown()
        )
    };
    file.is_file().then(upload)
}

/// Checks that the driver is for the kernel that the image got afterwards.
///
/// # Errors
/// The distribution replaced its kernel between the two.
pub(super) fn check(host: &dyn Host, work: &Path, kernel: &str) -> Result<(), LabError> {
    let text = host.read_text(&work.join(BUILT_FOR))?;
    let built_for = text.trim();
    if built_for == kernel {
        return Ok(());
    }
    Err(LabError::Refused(format!(
        "the distribution replaced its kernel {built_for} by {kernel} while the image was built: build it again"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::local::LocalHost;
    use std::sync::Arc;

    #[test]
    fn a_driver_of_another_kernel_is_refused_and_none_is_put_where_none_was_built() {
        let dir = tempfile::tempdir().unwrap();
        let host = LocalHost::new(Arc::new(|_| ()));
        assert_eq!(upload(dir.path()), None);
        std::fs::write(dir.path().join(FILE), "").unwrap();
        assert!(
            upload(dir.path())
                .unwrap()
                .ends_with("'/usr/lib/ublk_drv.ko'")
        );
        std::fs::write(dir.path().join(BUILT_FOR), "6.1.0-56-amd64\n").unwrap();
        assert_eq!(check(&host, dir.path(), "6.1.0-56-amd64"), Ok(()));
        let error = check(&host, dir.path(), "6.1.0-57-amd64").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("6.1.0-56-amd64 by 6.1.0-57-amd64")
        );
    }
}
