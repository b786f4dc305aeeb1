//! The names of a set's files and directories, spelled out without allocation.

use std::ffi::CStr;

use stackrace_system::draw::scramble;

/// Bytes of `d000000/`, which stand before a file's name where the look-up begins at the root.
const HOME_BYTES: usize = 8;
/// Bytes of a file's name: a letter and 16 hexadecimal digits.
const NAME_BYTES: usize = 17;

/// One of the names a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// The one it was made with.
    Made,
    /// The one it was given instead.
    Renamed,
    /// The one it was given besides.
    Linked,
}

/// Room for one name and the zero byte behind it.
pub(super) struct NameBuffer([u8; HOME_BYTES + NAME_BYTES + 1]);

impl NameBuffer {
    pub(super) fn new() -> NameBuffer {
        let mut room = [0; HOME_BYTES + NAME_BYTES + 1];
        (room[0], room[HOME_BYTES - 1]) = (b'd', b'/');
        NameBuffer(room)
    }

    /// One name of the file with this number, below its directory if one is given.
    pub(super) fn write(&mut self, file: u64, which: NameKind, directory: Option<u32>) -> &CStr {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let start = match directory {
            Some(directory) => {
                self.number(directory);
                0
            }
            None => HOME_BYTES,
        };
        self.0[HOME_BYTES] = match which {
            NameKind::Made => b'f',
            NameKind::Renamed => b'r',
            NameKind::Linked => b'l',
        };
        // A bijection: no two files share a name.
        let number = scramble(file);
        for digit in 0..16 {
            self.0[HOME_BYTES + 1 + digit] = DIGITS[(number >> (60 - digit * 4)) as usize & 15];
        }
        CStr::from_bytes_with_nul(&self.0[start..]).unwrap_or_default()
    }

    /// The name of a directory.
    pub(super) fn write_directory(&mut self, directory: u32) -> &CStr {
        self.number(directory);
        // Ends the name here. A buffer used this way must not be used for file names: it has lost
        // the slash.
        self.0[HOME_BYTES - 1] = 0;
        CStr::from_bytes_with_nul(&self.0[..HOME_BYTES]).unwrap_or_default()
    }

    /// `d` and the directory's number in six decimal digits.
    fn number(&mut self, mut directory: u32) {
        for place in self.0[1..HOME_BYTES - 1].iter_mut().rev() {
            *place = b'0' + (directory % 10) as u8;
            directory /= 10;
        }
    }
}

/// The same as [`NameBuffer::write_directory`], for those who are in no hurry.
pub(super) fn directory_name(directory: u32) -> String {
    format!("d{directory:06}")
}
