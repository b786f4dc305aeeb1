//! The driver `ublk` for a kernel that Debian builds without it: without this driver a guest cannot serve
//! modelled drives to itself.

use super::error::LabError;
use super::image::Builder;
use super::system::System;
use std::path::Path;

/// The built driver, in the working directory and in `/usr/lib` of the image.
const FILE: &str = "ublk_drv.ko";

/// Says which kernel it was built for, in the working directory.
const BUILT_FOR: &str = "ublk";

/// The option of mmdebstrap that puts the driver into a tree; none: none was built.
pub(super) fn upload(work: &Path) -> Option<String> {
    let file = work.join(FILE);
    let upload = || {
        format!(
            "--customize-hook=upload '{}' '/usr/lib/{FILE}'",
            file.display()
        )
    };
    file.is_file().then(upload)
}

impl Builder<'_> {
    /// Builds the driver into the working directory of an image, if the system needs it.
    ///
    /// # Errors
    /// A package cannot be had, or the compiler refuses.
    pub(super) fn driver(&self, system: &System, work: &Path) -> Result<(), LabError> {
        match system.builds_ublk {
            // In a tree of its own: a guest needs no compiler.
            true => self.bootstrap(system, work, "kmod,make,xz-utils", "ublk.sh"),
            false => Ok(()),
        }
    }

    /// Checks that the driver is for the kernel that the image got afterwards.
    ///
    /// # Errors
    /// The distribution replaced its kernel between the two.
    pub(super) fn check_driver(
        &self,
        system: &System,
        work: &Path,
        kernel: &str,
    ) -> Result<(), LabError> {
        if !system.builds_ublk {
            return Ok(());
        }
        let built_for = self.host.read_text(&work.join(BUILT_FOR))?;
        match built_for.trim() == kernel {
            true => Ok(()),
            false => Err(LabError::Refused(format!(
                "the distribution replaced its kernel {} by {kernel} while the image was built: build it again",
                built_for.trim()
            ))),
        }
    }
}
