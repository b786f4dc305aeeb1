//! What emulated and modelled disks have in common.

use stackrace_base::setting::{Refusal, Settings};
use stackrace_foundation::foundation::DEVICES_MAX;

/// Smallest disk: below it no file system fits, and the mistake is a unit.
pub(super) const SIZE_MIN: u64 = 1 << 20;

/// Number of disks that a study asks for.
pub(super) fn disk_count(settings: &Settings) -> Result<u64, Refusal> {
    let count = settings.count("count")?;
    if (1..=DEVICES_MAX as u64).contains(&count) {
        return Ok(count);
    }
    Err(Refusal::at(
        settings.span_of("count"),
        format!("{count} disks cannot be made"),
        format!("write 1 to {DEVICES_MAX}"),
    ))
}

/// `disk-1f83a90c-03`: what the disk is like, and which of those it is.
pub(super) fn serial(like: &[u64], number: u64) -> String {
    let mut hash = blake3::Hasher::new();
    for value in like {
        hash.update(&value.to_le_bytes());
    }
    format!("disk-{}-{number:02}", &hash.finalize().to_hex()[..8])
}
