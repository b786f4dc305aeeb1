//! The stacks that it is tested with.

use stackrace_foundation::foundation::Tried;

pub(super) const TRIED: Tried = Tried {
    changes: &["losetup"],
    standing: "losetup --list --noheadings | grep -F $places",
    ..Tried::NOWHERE
};
