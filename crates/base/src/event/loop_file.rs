//! The file below a loop device, as a value that is compared.

use serde::{Deserialize, Serialize};

/// The file below a loop device, whose own number is another one each time.
///
/// A field that the system does not tell is `None` and is never compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopFile {
    /// Its path; the file that stood there is meant, wherever it is by now.
    pub path: String,
    /// Device number of the file system that it lies on: major, minor.
    pub device: (u32, u32),
    /// Its number in that file system; 0 if it was removed there, or only its path is told.
    pub inode: u64,
    /// Its size: one that is cut off under its mount holds something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The file system that holds it, below any other loop devices: `tmpfs`, `ext4` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// True if the device reads and writes it past the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_io: Option<bool>,
    /// Size of the device's logical sectors, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_bytes: Option<u32>,
}

impl LoopFile {
    /// The file as far as its path alone tells it.
    pub fn at(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// Returns true if it is the same file, as far as both tell it.
    pub(super) fn is_same(&self, now: &Self) -> bool {
        let same = match self.inode == 0 || now.inode == 0 {
            true => self.path == now.path,
            false => (self.device, self.inode) == (now.device, now.inode),
        };
        let cut_off = self.bytes.zip(now.bytes).is_some_and(|(was, is)| was != is);
        same && !cut_off
    }

    /// How its device was set up, and how it is now, in the words of losetup(8); `None` if both are alike.
    pub(super) fn changed(&self, now: &Self) -> Option<(String, String)> {
        fn both<T: PartialEq>(
            was: Option<T>,
            now: Option<T>,
            said: fn(T) -> String,
        ) -> Option<[String; 2]> {
            let (was, now) = was.zip(now).filter(|(was, now)| was != now)?;
            Some([was, now].map(said))
        }
        let direct = both(self.direct_io, now.direct_io, |direct| {
            format!("--direct-io={}", if direct { "on" } else { "off" })
        });
        let sectors = both(self.sector_bytes, now.sector_bytes, |bytes| {
            format!("--sector-size={bytes}")
        });
        let all: Vec<[String; 2]> = direct.into_iter().chain(sectors).collect();
        let side = |at: usize| {
            let words: Vec<&str> = all.iter().map(|both| both[at].as_str()).collect();
            format!("from a loop device with {}", words.join(" "))
        };
        (!all.is_empty()).then(|| (side(0), side(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_io_and_sectors_of_the_device_are_compared_where_both_are_known() {
        let set_up = |direct_io, sector_bytes| LoopFile {
            direct_io,
            sector_bytes,
            ..LoopFile::at("/a.img")
        };
        let (was, now) = (
            set_up(Some(false), Some(512)),
            set_up(Some(true), Some(512)),
        );
        let said = ["off", "on"].map(|how| format!("from a loop device with --direct-io={how}"));
        assert_eq!(was.changed(&now), Some(said.into()));
        let (_, is) = was.changed(&set_up(Some(true), Some(4096))).unwrap();
        assert_eq!(
            is,
            "from a loop device with --direct-io=on --sector-size=4096"
        );
        assert_eq!(was.changed(&set_up(None, None)), None);
        assert_eq!(was.changed(&was), None);
    }
}
