//! The environment, by the name of a variable.

/// A variable of the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the room that reads the environment"
)]
pub(super) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}
