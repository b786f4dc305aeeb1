//! What the record says of guests, whatever they are made of.

use super::command::{Accelerator, PROGRAM};
use super::error::LabError;
use stackrace_base::event::Fact;
use stackrace_base::unit;
use stackrace_machine::host::{Host, argv};
use std::path::Path;

/// Facts on guests that run an image and took so long to start, on this machine.
///
/// # Errors
/// QEMU does not say its version.
pub(super) fn of_guests(
    host: &dyn Host,
    image: &str,
    accelerator: Accelerator,
    boot_ns: u64,
) -> Result<Vec<Fact>, LabError> {
    let version = host.must(&argv([PROGRAM, "--version"]))?.stdout;
    let version = version.lines().next().unwrap_or_default();
    // The kernel below matters, too: it schedules the guests and holds their disks.
    let outside = host.read_text(Path::new("/proc/sys/kernel/osrelease"))?;
    Ok(vec![
        Fact::new(
            "lab",
            format!("{version}, accelerator {}", accelerator.name()),
        ),
        Fact::images("lab image", vec![image.to_owned()]),
        Fact::new("lab boot", unit::time_ns(boot_ns as f64)),
        Fact::new("lab on kernel", format!("Linux {}", outside.trim())),
    ])
}
