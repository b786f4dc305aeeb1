//! Reading what others wrote: never more of it than was agreed.
//!
//! A file that was named by mistake, an endless device, another machine: none of them may take the
//! memory of this one. Everything that reads from outside says here how much it takes.

use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;

use crate::unit;

/// The most bytes that are read of one text, file or line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimit(u64);

impl ByteLimit {
    /// A limit of so many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// The system's; [`ErrorKind::FileTooLarge`], which says the limit, for what is larger or has no
    /// end.
    pub fn read(self, path: &Path) -> io::Result<Vec<u8>> {
        self.read_from(File::open(path)?)
    }

    /// Reads a stream to its end.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_from(self, stream: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One byte more shows that there is more.
        stream.take(self.0 + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > self.0 {
            true => Err(self.exceeded("it")),
            false => Ok(bytes),
        }
    }

    /// The next line without its line break; `None` if the stream has ended.
    ///
    /// # Errors
    /// As [`Self::read`]; how much of the line is then left unread is not said.
    pub fn line(self, stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut limited = stream.take(self.0 + 1);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        // The last line of a stream may have no break; one that fills the limit was cut off.
        } else if line.len() as u64 > self.0 {
            return Err(self.exceeded("a line"));
        }
        Ok(Some(line))
    }

    fn exceeded(self, what: &str) -> io::Error {
        let text = format!("{what} is larger than {}", unit::bytes(self.0));
        io::Error::new(ErrorKind::FileTooLarge, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: ByteLimit = ByteLimit::new(4);

    #[test]
    fn a_text_is_read_up_to_its_limit() {
        assert_eq!(FOUR.read_from(&b"1234"[..]).unwrap(), b"1234");
        let refused = FOUR.read_from(&b"12345"[..]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::FileTooLarge);
        assert_eq!(refused.to_string(), "it is larger than 4 B");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let refused = ByteLimit::new(1 << 20).read(Path::new("/dev/zero"));
        assert_eq!(refused.unwrap_err().to_string(), "it is larger than 1 MiB");
        FOUR.line(&mut io::BufReader::new(io::repeat(b'a')))
            .unwrap_err();
    }

    #[test]
    fn lines_are_read_one_by_one() {
        let mut stream = &b"1234\n\n12"[..];
        let mut next = || FOUR.line(&mut stream).unwrap();
        assert_eq!(next(), Some(b"1234".to_vec()));
        assert_eq!(next(), Some(Vec::new()));
        assert_eq!(next(), Some(b"12".to_vec()));
        assert_eq!(next(), None);
    }
}
