//! What a layer needs of a machine: programs, drivers, servers.

/// Things that must be there before a layer can be raised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Rights of root.
    pub root: bool,
    /// Programs.
    pub tools: &'static [&'static str],
    /// Packages that hold those of the programs that not every Linux has.
    pub packages: &'static [Package],
    /// A file system the kernel must know.
    pub file_system: Option<&'static str>,
    /// Drivers of the kernel.
    pub drivers: &'static [Driver],
    /// Servers that are started: none of them may run there already.
    pub daemons: &'static [Daemon],
    /// True if it has to be inside the lab.
    pub lab: bool,
    /// A part of this program that can be left out when it is built.
    pub part: Option<ProgramPart>,
}

impl Needs {
    /// Rights of root, and these programs, with the packages that hold those that not every Linux has.
    pub const fn as_root(tools: &'static [&'static str], packages: &'static [Package]) -> Self {
        Self {
            root: true,
            tools,
            packages,
            file_system: None,
            drivers: &[],
            daemons: &[],
            lab: false,
            part: None,
        }
    }
}

/// A part of this program that can be left out when it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramPart {
    /// The part in words: `the AFP client`.
    pub name: &'static str,
    /// True if this program has it.
    pub built: bool,
}

/// A package of the distribution (Debian's name), in the image of the lab's guests too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The name that the distribution gives it.
    pub name: &'static str,
    /// Programs that it installs.
    pub programs: &'static [&'static str],
    /// The only system of the lab that has it; `None` if all have.
    pub only_on: Option<&'static str>,
    /// Its source and its SHA-256, where the distribution of that system lacks it.
    pub pinned: Option<[&'static str; 2]>,
}

impl Package {
    /// A package that every system has.
    pub const fn new(name: &'static str, programs: &'static [&'static str]) -> Self {
        Self {
            name,
            programs,
            only_on: None,
            pinned: None,
        }
    }
}

/// A driver of the kernel that a layer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Driver {
    /// The module as `modprobe` takes it.
    pub module: &'static str,
    /// A path that is there once it is loaded.
    pub shown_by: &'static str,
    /// The driver in words: `arrays (md)`.
    pub what: &'static str,
}

/// A server of which a machine has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Daemon {
    /// Its program, or its threads, by the name the kernel has: at most 15 characters.
    pub program: &'static str,
    /// Port at which it listens, TCP or UDP; `None` means nowhere, or where others may.
    pub port: Option<u16>,
}
