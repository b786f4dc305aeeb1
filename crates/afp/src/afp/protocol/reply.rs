//! Replies as they are understood: bytes from outside, refused where they make no sense.

use super::super::error::AfpError;
use super::fields::{
    EPOCH, FileParameters, NAME, OF_DIRECTORY, OF_FILE, Space, Unix, VOLUME_ID, VOLUME_SPACE,
    swapped,
};

/// A reply that is being read.
#[derive(Debug, Clone, Copy)]
struct Reading<'a>(&'a [u8]);

impl<'a> Reading<'a> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], AfpError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u8(&mut self) -> Result<u8, AfpError> {
        Ok(u8::from_be_bytes(self.bytes()?))
    }

    fn u16(&mut self) -> Result<u16, AfpError> {
        Ok(u16::from_be_bytes(self.bytes()?))
    }

    fn u32(&mut self) -> Result<u32, AfpError> {
        Ok(u32::from_be_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, AfpError> {
        Ok(u64::from_be_bytes(self.bytes()?))
    }

    fn part(&mut self, length: usize) -> Result<&'a [u8], AfpError> {
        let (part, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(part)
    }
}

const SHORT: AfpError = AfpError::Malformed("it ends too soon");

/// The number of a volume that was opened.
pub(in crate::afp) fn volume(reply: &[u8]) -> Result<u16, AfpError> {
    let mut reading = Reading(reply);
    match reading.u16()? {
        VOLUME_ID => reading.u16(),
        _ => Err(AfpError::Malformed("not what was asked of the volume")),
    }
}

/// The room on a volume.
pub(in crate::afp) fn space(reply: &[u8]) -> Result<Space, AfpError> {
    let mut reading = Reading(reply);
    if reading.u16()? != VOLUME_SPACE {
        return Err(AfpError::Malformed("not what was asked of the volume"));
    }
    Ok(Space {
        free: reading.u64()?,
        total: reading.u64()?,
        block: reading.u32()?,
    })
}

/// The number of a directory that was made.
pub(in crate::afp) fn created(reply: &[u8]) -> Result<u32, AfpError> {
    Reading(reply).u32()
}

/// A file that was opened: its number among those that are open, and what it is.
pub(in crate::afp) fn opened(reply: &[u8]) -> Result<(u16, FileParameters), AfpError> {
    let mut reading = Reading(reply);
    let bits = reading.u16()?;
    let fork = reading.u16()?;
    Ok((fork, parameters(reading.0, bits, false)?))
}

/// Reads the place at which the next byte would be written.
pub(in crate::afp) fn written(reply: &[u8]) -> Result<u64, AfpError> {
    Reading(reply).u64()
}

/// Reads the parameters of a file or directory.
pub(in crate::afp) fn described(reply: &[u8]) -> Result<FileParameters, AfpError> {
    let mut reading = Reading(reply);
    let (of_file, of_directory) = (reading.u16()?, reading.u16()?);
    let is_directory = reading.u8()? & IS_DIRECTORY != 0;
    reading.u8()?;
    let bits = if is_directory { of_directory } else { of_file };
    parameters(reading.0, bits, is_directory)
}

/// Bit of a directory, in the byte that says what an entry is.
const IS_DIRECTORY: u8 = 0x80;

/// The entries of a directory.
pub(in crate::afp) fn listed(reply: &[u8]) -> Result<Vec<FileParameters>, AfpError> {
    let mut reading = Reading(reply);
    let (of_file, of_directory) = (reading.u16()?, reading.u16()?);
    let count = reading.u16()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        // The length counts itself, the kind and a byte of nothing.
        let length = usize::from(reading.u16()?);
        let is_directory = reading.u8()? & IS_DIRECTORY != 0;
        reading.u8()?;
        let about = reading.part(length.checked_sub(4).ok_or(SHORT)?)?;
        let bits = if is_directory { of_directory } else { of_file };
        let entry = parameters(about, bits, is_directory)?;
        if entry.name.is_empty() || entry.name == "." || entry.name == ".." {
            return Err(AfpError::Malformed("an entry without a name"));
        }
        // A name from the network must not lead out of its directory.
        if entry.name.contains(['/', '\0']) {
            return Err(AfpError::Malformed("a name that cannot be one here"));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Reads the parameters that the bits say are there, in their order. Texts are at the end, by their
/// distance from the beginning.
fn parameters(bytes: &[u8], bits: u16, is_directory: bool) -> Result<FileParameters, AfpError> {
    let asked = if is_directory { OF_DIRECTORY } else { OF_FILE };
    // The bits say which fields follow: with others, every offset would be wrong.
    if bits & !NAME != asked {
        return Err(AfpError::Malformed("not what was asked of the file"));
    }
    let mut reading = Reading(bytes);
    let modified = i64::from(reading.u32()?.cast_signed()) + EPOCH;
    let id = reading.u32()?;
    let length = if is_directory { 0 } else { reading.u64()? };
    let mut name = String::new();
    if bits & NAME != 0 {
        let at = usize::from(reading.u16()?);
        reading.u32()?;
        let mut text = Reading(bytes.get(at..).ok_or(SHORT)?);
        text.u32()?;
        let length = usize::from(text.u16()?);
        let text = std::str::from_utf8(text.part(length)?);
        name = swapped(text.map_err(|_| AfpError::Malformed("a name that is not UTF-8"))?);
    }
    let unix = Unix {
        uid: reading.u32()?,
        gid: reading.u32()?,
        mode: reading.u32()?,
    };
    Ok(FileParameters {
        id,
        is_directory,
        modified,
        length,
        unix,
        name,
    })
}

/// Reads any bytes as every kind of reply: each is understood or refused.
#[cfg(any(test, feature = "testing"))]
pub fn check(bytes: &[u8]) {
    let _ = (volume(bytes), space(bytes), created(bytes), written(bytes));
    let _ = (opened(bytes), described(bytes));
    for entry in listed(bytes).unwrap_or_default() {
        assert!(!entry.name.contains(['/', '\0']));
    }
}
