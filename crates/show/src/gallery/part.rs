//! The parts of what a log can say of a machine, each cut or published as a whole.

/// Part of a machine that a log can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachinePart {
    /// Names and addresses of machines.
    Host,
    /// Names of users.
    User,
    /// Files and directories.
    Paths,
    /// Serial numbers, UUIDs, and other numbers that one device alone has.
    Serials,
    /// Kernel and distribution.
    Kernel,
}

impl MachinePart {
    /// All of them, in the order they are listed.
    pub const ALL: [Self; 5] = [
        Self::Host,
        Self::User,
        Self::Paths,
        Self::Serials,
        Self::Kernel,
    ];

    /// The word it is asked for by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::User => "user",
            Self::Paths => "paths",
            Self::Serials => "serials",
            Self::Kernel => "kernel",
        }
    }

    /// One of them, as it stands in the place of what was cut.
    pub(super) fn one(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::User => "user",
            Self::Paths => "path",
            Self::Serials => "serial",
            Self::Kernel => "kernel",
        }
    }
}
