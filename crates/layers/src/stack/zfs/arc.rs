//! The limits of ZFS's cache (ARC): where the kernel keeps them, and where it says what it made of them (zfs(4)).

use stackrace_base::event::Fact;
use stackrace_base::unit;
use stackrace_foundation::foundation::{LayerError, Setup};
use stackrace_machine::host::Host;
use std::path::Path;

pub(super) const ARC_MIN: &str = "/sys/module/zfs/parameters/zfs_arc_min";
pub(super) const ARC_MAX: &str = "/sys/module/zfs/parameters/zfs_arc_max";
pub(super) const ARC_STATS: &str = "/proc/spl/kstat/zfs/arcstats";

/// What the parameters hold as long as ZFS chooses the limits itself.
pub(super) const CHOSEN: &str = "0";

/// One of both limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArcLimit {
    Lower,
    Upper,
}

impl ArcLimit {
    fn parameter(self) -> &'static Path {
        Path::new(match self {
            Self::Lower => ARC_MIN,
            Self::Upper => ARC_MAX,
        })
    }

    /// The limit that ZFS goes by now, bytes; `None` where it does not say.
    pub(super) fn in_force(self, host: &dyn Host) -> Option<u64> {
        let stats = host.read_text(Path::new(ARC_STATS)).ok()?;
        let name = match self {
            Self::Lower => "c_min",
            Self::Upper => "c_max",
        };
        // Name, type, value.
        let mut lines = stats.lines().map(str::split_whitespace);
        let mut words = lines.find(|words| words.clone().next() == Some(name))?;
        words.next_back()?.parse().ok()
    }
}

/// Sets a limit until the stack is torn down.
///
/// # Errors
/// It cannot be set, or could not be taken back.
pub(super) fn limit(setup: &mut Setup<'_>, limit: ArcLimit, bytes: u64) -> Result<(), LayerError> {
    let file = limit.parameter();
    let mut before = setup.host().read_text(file)?.trim().to_owned();
    if before == CHOSEN {
        // ZFS takes no notice of a 0 that is written while it runs: the limit in force is what brings it back.
        let in_force = limit.in_force(setup.host()).ok_or_else(|| {
            LayerError::refused(
                format!("{ARC_STATS} does not say how ZFS limits its cache, which could not be brought back"),
                "leave arc-max out, or use OpenZFS",
            )
        })?;
        before = in_force.to_string();
    }
    setup.set_parameter_after(file, &bytes.to_string(), before)
}

/// The most memory that the cache takes, for the record: all that lies on ZFS depends on it.
pub(in crate::stack) fn fact(host: &dyn Host) -> Option<Fact> {
    let most = ArcLimit::Upper.in_force(host)?;
    Some(Fact::new("limit of ARC", unit::bytes(most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::testing::{site, stack};
    use stackrace_machine::host::plan::Fault;
    use stackrace_machine::journal::Journal;

    /// A 0 that is written would leave the limit of the stack for ever.
    #[test]
    fn a_limit_that_zfs_chose_is_brought_back_as_a_number() {
        let scratch = tempfile::tempdir().unwrap();
        let host = crate::stack::imagined(Fault::Never);
        for limit in [ArcLimit::Lower, ArcLimit::Upper] {
            host.write_text(limit.parameter(), "0\n").unwrap();
        }
        let before = [ArcLimit::Lower, ArcLimit::Upper].map(|limit| limit.in_force(&host).unwrap());
        let journal = Journal::nowhere();
        let site = site(&host, &journal, scratch.path());
        let pool = "zpool = { arc-max = \"64 MiB\" }";
        let shape = stack(&["loop = { size = \"1 GiB\" }", pool, "dataset = {}"]);
        let standing = shape.set_up(&site).unwrap();
        assert_eq!(ArcLimit::Upper.in_force(&host), Some(64 << 20));
        standing.tear_down(&site).unwrap();
        for (limit, before) in [ArcLimit::Lower, ArcLimit::Upper].into_iter().zip(before) {
            let now = host.read_text(limit.parameter()).unwrap();
            assert_eq!(now.trim(), before.to_string(), "{limit:?}");
        }
    }
}
