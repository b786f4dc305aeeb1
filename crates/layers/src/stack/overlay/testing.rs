//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[
        RealStack {
            name: "overlay",
            layers: &[
                "loop = { size = \"64 MiB\" }",
                "ext4 = {}",
                "overlay = { mount = [\"redirect_dir=on\", \"index=off\"] }",
            ],
            device: "loop",
            expected: &[
                (
                    2,
                    "mount options in force",
                    Expected::Has("redirect_dir=on"),
                ),
                (2, "mount option not as asked", Expected::Absent),
                (
                    2,
                    "data of trials in",
                    Expected::Has("nothing is copied up"),
                ),
            ],
        },
        RealStack {
            name: "overlay_lower",
            layers: &[
                "loop = { size = \"64 MiB\" }",
                "ext4 = {}",
                "overlay = { content = \"lower\", layers = 3, mount = [\"metacopy=on\"] }",
            ],
            device: "loop",
            expected: &[
                (2, "lower layers", Expected::Is("3")),
                (2, "mount options in force", Expected::Has("metacopy=on")),
            ],
        },
    ],
    kills: &[KillStack::on_one(
        "overlay",
        ("64 MiB", 1),
        &["ext4 = {}", "overlay = { content = \"lower\" }"],
    )],
    ..Tried::NOWHERE
};
