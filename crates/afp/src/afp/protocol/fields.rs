//! What requests and replies share: bits, constants, and descriptions of files.

/// Bits that ask for something about a file or directory. Those that are 8 and lower or 13 and
/// higher mean the same for both.
pub(super) const MODIFIED: u16 = 1 << 3;
pub(super) const FINDER: u16 = 1 << 5;
pub(super) const NODE: u16 = 1 << 8;
pub(super) const FILE_LENGTH: u16 = 1 << 11;
pub(super) const NAME: u16 = 1 << 13;
pub(super) const UNIX: u16 = 1 << 15;

/// Bits of the parameters that are asked for about every file, and about every directory.
pub(super) const OF_FILE: u16 = MODIFIED | NODE | FILE_LENGTH | UNIX;
pub(super) const OF_DIRECTORY: u16 = MODIFIED | NODE | UNIX;

/// Bits that ask about a volume: its number; free, all (bytes) and the block size.
pub(super) const VOLUME_ID: u16 = 1 << 5;
pub(super) const VOLUME_SPACE: u16 = 1 << 9 | 1 << 10 | 1 << 11;

/// Seconds from 1970 to 2000, where AFP's time begins.
pub(super) const EPOCH: i64 = 946_684_800;

/// Says that a name is in UTF-8.
pub(super) const UTF8: u32 = 0x0800_0103;

/// A name in UTF-8, on the wire.
pub(super) const UTF8_NAME: u8 = 3;

/// Mark that makes a file a symbolic link: its type and who made it, in Finder's words.
pub(super) const SYMBOLIC_LINK: &[u8; 8] = b"slnkrhap";

/// The parameters of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileParameters {
    /// Its number, in the server's database of them (CNID).
    pub id: u32,
    /// Set if it is a directory.
    pub is_directory: bool,
    /// Seconds since 1970; whole ones, the protocol has no others.
    pub modified: i64,
    /// Bytes; 0 for a directory.
    pub length: u64,
    /// Owner and mode.
    pub unix: Unix,
    /// Name; empty where it was not asked for.
    pub name: String,
}

/// Owner, group and mode, the file's type among its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unix {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Mode, as `st_mode` in stat(2).
    pub mode: u32,
}

/// Room on a volume, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes of the whole volume.
    pub total: u64,
    /// Bytes of one block.
    pub block: u32,
}

/// `:` for `/` and the other way round.
pub(super) fn swapped(name: &str) -> String {
    let swap = |c| match c {
        ':' => '/',
        '/' => ':',
        other => other,
    };
    // Mac OS uses the colon as separator, Unix the slash.
    name.chars().map(swap).collect()
}
