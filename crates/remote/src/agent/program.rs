//! This program as a file that another machine can run, or cannot.

use std::path::Path;

/// This program, whatever became of its file.
const OURSELVES: &str = "/proc/self/exe";

/// This program as it is copied to another machine.
pub struct Program {
    /// The whole executable file.
    pub bytes: Vec<u8>,
    /// Its BLAKE3 hash, in hexadecimal digits.
    pub hash: String,
}

impl Program {
    /// The program that runs.
    ///
    /// # Errors
    /// The system's.
    pub fn own() -> std::io::Result<Self> {
        let bytes = std::fs::read(Path::new(OURSELVES))?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        Ok(Self { bytes, hash })
    }
}

/// The newest version of glibc a program names (`GLIBC_2.34`); `None` if it is static.
pub fn libc_needed(program: &[u8]) -> Option<(u32, u32)> {
    let mark = b"GLIBC_";
    // A program is tens of megabytes, and each machine of a run asks: not byte by byte.
    memchr::memmem::find_iter(program, mark)
        .filter_map(|at| {
            let rest = &program[at + mark.len()..];
            let end = rest
                .iter()
                .position(|byte| !b"0123456789.".contains(byte))?;
            version(std::str::from_utf8(&rest[..end]).ok()?)
        })
        .max()
}

/// Major and minor version of a package or a library: `2.36-9+deb12u9` → (2, 36).
pub fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_c_library_named_is_the_one_needed() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_PRIVATE\0GLIBC_2.9\0";
        assert_eq!(libc_needed(program), Some((2, 34)));
        assert_eq!(libc_needed(b"nothing"), None);
        assert_eq!(version("2.36-9+deb12u9"), Some((2, 36)));
    }
}
