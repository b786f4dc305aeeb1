//! The numbers of AFP: commands, result codes and what they mean.

/// Number of the directory at the root of every volume.
pub(super) const ROOT: u32 = 2;

/// Longest name, bytes.
pub(super) const NAME_MAX: u32 = 255;

/// A code that is no failure: the file ends before what was asked for does.
pub(super) const EOF: i32 = -5009;

/// Codes that something is made of.
pub(super) const ACCESS_DENIED: i32 = -5000;
pub(super) const DENY_CONFLICT: i32 = -5006;
pub(super) const DIRECTORY_NOT_EMPTY: i32 = -5007;
pub(super) const DISK_FULL: i32 = -5008;
pub(super) const FILE_BUSY: i32 = -5010;
pub(super) const OBJECT_EXISTS: i32 = -5017;
pub(super) const OBJECT_NOT_FOUND: i32 = -5018;
pub(super) const CALL_NOT_SUPPORTED: i32 = -5024;
pub(super) const OBJECT_TYPE: i32 = -5025;
pub(super) const TOO_MANY_FILES: i32 = -5026;
pub(super) const DIRECTORY_NOT_FOUND: i32 = -5029;
pub(super) const VOLUME_LOCKED: i32 = -5031;
pub(super) const OBJECT_LOCKED: i32 = -5032;

/// The meaning of a code; empty if it is not one that is met here.
pub(super) fn meaning(code: i32) -> &'static str {
    match code {
        ACCESS_DENIED => "access denied",
        -5002 => "it does not let guests in",
        -5003 => "it does not speak this version",
        DENY_CONFLICT => "another one has it open",
        DIRECTORY_NOT_EMPTY => "the directory is not empty",
        DISK_FULL => "the disk is full",
        FILE_BUSY => "the file is open",
        -5014 => "it does not say why",
        OBJECT_EXISTS => "it is there already",
        OBJECT_NOT_FOUND => "it is not there",
        -5019 => "a parameter is wrong",
        -5023 => "the user is not let in",
        CALL_NOT_SUPPORTED => "it cannot do that",
        OBJECT_TYPE => "it is of another kind",
        TOO_MANY_FILES => "too many files are open",
        -5027 => "it is going down",
        DIRECTORY_NOT_FOUND => "the directory is not there",
        VOLUME_LOCKED => "the volume is read-only",
        OBJECT_LOCKED => "it is locked",
        _ => "",
    }
}

/// The commands that a server can be given, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum AfpCommand {
    /// Ends the use of a volume.
    CloseVol = 2,
    /// Closes a file.
    CloseFork = 4,
    /// Makes a directory.
    CreateDir = 6,
    /// Makes an empty file.
    CreateFile = 7,
    /// Removes a file, or a directory that is empty.
    Delete = 8,
    /// Describes a volume.
    GetVolParms = 17,
    /// Says who we are.
    Login = 18,
    /// Ends the session.
    Logout = 20,
    /// Gives a file or directory another place and name.
    MoveAndRename = 23,
    /// Begins the use of a volume.
    OpenVol = 24,
    /// Opens a file.
    OpenFork = 26,
    /// Sets a file's length.
    SetForkParms = 31,
    /// Describes a file or directory.
    GetFileDirParms = 34,
    /// Sets times and privileges.
    SetFileDirParms = 35,
    /// Reads bytes of an open file.
    ReadExt = 60,
    /// Writes bytes into an open file.
    WriteExt = 61,
    /// Lists a directory.
    EnumerateExt2 = 68,
    /// Makes a directory last.
    SyncDir = 78,
    /// Makes a file last.
    SyncFork = 79,
}
