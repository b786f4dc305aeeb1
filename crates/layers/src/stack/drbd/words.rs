//! Options of DRBD that a study may give.

use stackrace_foundation::foundation::words::{
    OptionValue::{Amount, OneOf, Word},
    Words,
};

/// drbd.conf(5), section "net". Not on the list: secrets, who wins after a split brain, and what the
/// layer sets (`protocol`, `allow-two-primaries`).
pub(super) const NET: Words = Words {
    tool: "the section net of DRBD",
    manual: "drbd.conf(5)",
    options: &[
        ("congestion-extents", Amount),
        ("congestion-fill", Amount),
        ("connect-int", Amount),
        ("csums-alg", Word),
        ("csums-after-crash-only", OneOf(YES_NO)),
        ("data-integrity-alg", Word),
        ("ko-count", Amount),
        ("max-buffers", Amount),
        ("max-epoch-size", Amount),
        (
            "on-congestion",
            OneOf(&["block", "pull-ahead", "disconnect"]),
        ),
        ("ping-int", Amount),
        ("ping-timeout", Amount),
        ("rcvbuf-size", Amount),
        ("sndbuf-size", Amount),
        ("socket-check-timeout", Amount),
        ("tcp-cork", OneOf(YES_NO)),
        ("timeout", Amount),
        ("unplug-watermark", Amount),
        ("use-rle", OneOf(YES_NO)),
        ("verify-alg", Word),
    ],
};

/// drbd.conf(5), section "disk". Not on the list: what calls handlers (`on-io-error
/// call-local-io-error`, `fencing`).
pub(super) const DISK: Words = Words {
    tool: "the section disk of DRBD",
    manual: "drbd.conf(5)",
    options: &[
        ("al-extents", Amount),
        ("al-updates", OneOf(YES_NO)),
        ("c-delay-target", Amount),
        ("c-fill-target", Amount),
        ("c-max-rate", Amount),
        ("c-min-rate", Amount),
        ("c-plan-ahead", Amount),
        ("disable-write-same", OneOf(YES_NO)),
        ("discard-zeroes-if-aligned", OneOf(YES_NO)),
        ("disk-barrier", OneOf(YES_NO)),
        ("disk-drain", OneOf(YES_NO)),
        ("disk-flushes", OneOf(YES_NO)),
        ("disk-timeout", Amount),
        ("max-bio-bvecs", Amount),
        ("md-flushes", OneOf(YES_NO)),
        ("on-io-error", OneOf(&["pass_on", "detach"])),
        ("read-balancing", Word),
        ("resync-rate", Amount),
        ("rs-discard-granularity", Amount),
        ("size", Amount),
    ],
};

const YES_NO: &[&str] = &["yes", "no"];
