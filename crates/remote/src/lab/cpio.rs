//! An archive the kernel unpacks as its first file system: cpio, format `newc`
//! (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel).

use std::io::{self, Write};

/// Kinds of entries, as in `st_mode`.
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// Writes an archive, entry after entry.
pub(super) struct Archive<W> {
    out: W,
    inode: u32,
}

impl<W: Write> Archive<W> {
    /// Begins an archive with what the kernel opens before the first program: the console.
    pub(super) fn new(out: W) -> io::Result<Self> {
        let mut archive = Self { out, inode: 0 };
        archive.directory("dev")?;
        archive.entry("dev/console", CHARACTER_DEVICE | 0o600, (5, 1), &[])?;
        Ok(archive)
    }

    /// A directory; its parents have to be there.
    pub(super) fn directory(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, DIRECTORY | 0o755, (0, 0), &[])
    }

    /// A file that may be executed; its directory has to be there.
    pub(super) fn program(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.entry(name, FILE | 0o755, (0, 0), content)
    }

    /// Writes the entry that ends the archive.
    pub(super) fn end(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        Ok(self.out)
    }

    fn entry(
        &mut self,
        name: &str,
        mode: u32,
        device: (u32, u32),
        content: &[u8],
    ) -> io::Result<()> {
        self.inode += 1;
        let size = u32::try_from(content.len())
            .map_err(|_| io::Error::other(format!("{name} is larger than 4 GiB")))?;
        let name_size = name.len() as u32 + 1;
        write!(self.out, "070701")?;
        // Inode, mode, owner, group, links, time, size, device, special device, name, checksum.
        let fields = [
            self.inode, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0,
        ];
        for field in fields {
            write!(self.out, "{field:08x}")?;
        }
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(110 + name_size)?;
        self.out.write_all(content)?;
        self.pad(size)
    }

    /// Header with name, and content, each end at a multiple of four.
    fn pad(&mut self, length: u32) -> io::Result<()> {
        let zeros = [0; 3];
        self.out
            .write_all(&zeros[..(length.next_multiple_of(4) - length) as usize])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Names and contents of an archive, read by the definition of the format.
    pub(in crate::lab) fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            let start = (110 + name_size).next_multiple_of(4);
            let content = bytes[start..start + size].to_vec();
            bytes = &bytes[(start + size).next_multiple_of(4)..];
            if name == "TRAILER!!!" {
                assert!(bytes.is_empty());
                return entries;
            }
            entries.push((name, mode, content));
        }
    }

    #[test]
    fn an_archive_reads_back() {
        let mut archive = Archive::new(Vec::new()).unwrap();
        archive.directory("kit").unwrap();
        archive.program("kit/a", b"12345").unwrap();
        archive.program("init", b"").unwrap();
        let entries = read(&archive.end().unwrap());
        let names: Vec<&str> = entries.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["dev", "dev/console", "kit", "kit/a", "init"]);
        assert_eq!(entries[3].1, 0o100_755);
        assert_eq!(entries[3].2, b"12345");
    }
}
