//! Calls that take a name or an open file.

use stackrace_engine::replay::{On, ReplayCall};
use stackrace_trace::trace::{Code, NO_FOLLOW, Operation};

/// Returns true if a call is meant for a link itself. Of the others a name leads to what is asked for.
pub(super) fn is_still(operation: &Operation) -> bool {
    let may = matches!(operation.code, Code::Stat | Code::Owner | Code::Times);
    may && operation.flags & NO_FOLLOW != 0
}

/// A call that takes a name or an open file.
pub(super) fn on_either(operation: &Operation, on: On) -> ReplayCall {
    let length = operation.length;
    match operation.code {
        Code::Stat => ReplayCall::Stat { on },
        Code::GetExtended => ReplayCall::GetExtended { on },
        Code::Mode => ReplayCall::Mode {
            on,
            mode: operation.flags as u32,
        },
        Code::Owner => ReplayCall::Owner { on },
        Code::Times => ReplayCall::Times { on },
        Code::SetExtended => ReplayCall::SetExtended { on, length },
        Code::Truncate => ReplayCall::Truncate { on, length },
        _ => ReplayCall::Nothing,
    }
}
