//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const FILL: Tried = Tried {
    real: &[RealStack {
        name: "fill",
        layers: &[
            "loop = { size = \"96 MiB\" }",
            "ext4 = {}",
            "fill = { to = \"50 %\" }",
        ],
        device: "loop",
        expected: &[
            (2, "full", Expected::Has("50")),
            (2, "profile", Expected::Has("FAST 2011")),
            (2, "pieces of a file", Expected::Has("mean ")),
            (2, "free space", Expected::Has("mean ")),
        ],
    }],
    kills: &[KillStack::on_one(
        "fill",
        ("64 MiB", 1),
        &["ext4 = {}", "fill = { to = \"50 %\" }"],
    )],
    ..Tried::NOWHERE
};

pub(super) const AGE: Tried = Tried {
    real: &[RealStack {
        name: "age",
        layers: &[
            "loop = { size = \"320 MiB\" }",
            "xfs = {}",
            "age = { written = 1, to = \"60 %\" }",
        ],
        device: "loop",
        expected: &[
            (2, "written", Expected::Has("times the capacity")),
            (2, "pieces of a file", Expected::Has("mean ")),
            (2, "free space", Expected::Has("mean ")),
        ],
    }],
    ..Tried::NOWHERE
};
