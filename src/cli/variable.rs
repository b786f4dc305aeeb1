//! The environment, by the name of a variable.

/// A variable of the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the room that reads the environment"
)]
pub(super) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// A directory that a variable of the XDG specification names. A relative path is passed over, as the
/// specification says: it would be another directory in each place.
pub(super) fn base_dir(name: &str) -> Option<std::path::PathBuf> {
    let named = variable(name).map(std::path::PathBuf::from);
    named.filter(|dir| dir.is_absolute())
}

/// The user's home directory, if it is known by its whole path: a relative one, too, is another one in each place.
pub(super) fn home() -> Option<std::path::PathBuf> {
    base_dir("HOME")
}
