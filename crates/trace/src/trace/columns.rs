//! Operations as columns of numbers of variable length, and the frames around them.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::call::Code;
use super::error::TraceError;
use super::operation::Operation;

/// First bytes of a trace; its version follows.
pub(super) const MAGIC: &[u8; 16] = b"stackrace trace\n";
/// Most operations of a block.
pub(super) const BLOCK: usize = 64 << 10;
/// Largest frame, packed and not.
pub(super) const FRAME: u32 = 32 << 20;
/// Length of what stands before a frame: kind, two lengths, check sum.
pub(super) const FRAME_HEAD: usize = 1 + 4 + 4 + 32;
/// Largest time, ns: sums of two do not overflow.
pub(super) const TIME: u64 = 1 << 60;

/// Kinds of frames.
pub(super) const ORIGIN: u8 = 1;
pub(super) const TREE: u8 = 2;
pub(super) const OPERATIONS: u8 = 3;
pub(super) const ENDING: u8 = 4;
pub(super) const RESIDENT: u8 = 5;

/// Writes a frame and gives its check sum.
pub(super) fn write_frame(
    out: &mut impl Write,
    kind: u8,
    body: &[u8],
) -> Result<(blake3::Hash, u64), TraceError> {
    // The recorder shares the processor with the application: fast, not small.
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(body)?;
    let packed = packed.finish()?;
    let length = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).ok();
        length
            .filter(|length| *length <= FRAME)
            .ok_or_else(|| TraceError::Impossible {
                part: 0,
                why: "it is longer than a part may be".to_owned(),
            })
    };
    let mut head = vec![kind];
    head.extend(length(&packed)?.to_le_bytes());
    head.extend(length(body)?.to_le_bytes());
    let sum = summed(&head, &packed);
    head.extend(sum.as_bytes());
    out.write_all(&head)?;
    out.write_all(&packed)?;
    Ok((sum, (head.len() + packed.len()) as u64))
}

/// Check sum of a frame: of its head and its packed bytes.
pub(super) fn summed(head: &[u8], packed: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(packed);
    hasher.finalize()
}

/// Unpacks the body of a frame; none: it is not as long as it says.
pub(super) fn unpack(packed: &[u8], length: u32) -> Option<Vec<u8>> {
    // Room for what it says only as far as the packed bytes can hold it: deflate packs 1032 to 1 at best.
    let room = (length as usize).min(packed.len().saturating_mul(1032));
    let mut body = Vec::with_capacity(room);
    let mut decoder = DeflateDecoder::new(packed).take(u64::from(length) + 1);
    decoder.read_to_end(&mut body).ok()?;
    (body.len() == length as usize).then_some(body)
}

/// Appends a number, seven bits a byte.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A difference as a number: small ones of both signs are small.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Bytes that are read one after the other.
#[derive(Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next number; none: there is none, or it has more than 64 bits.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            // Only one bit is left of 64.
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The next number, at most so large.
    pub(super) fn at_most(&mut self, most: u64) -> Option<u64> {
        self.number().filter(|number| *number <= most)
    }

    /// So many bytes, or none where there are fewer.
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Columns of a block beside code and start: how each is read from an operation, and set.
type Column = (fn(&Operation) -> u64, fn(&mut Operation, u64) -> Option<()>);

macro_rules! column {
    ($field:ident) => {
        (
            |operation| u64::from(operation.$field),
            |operation, number| {
                operation.$field = number.try_into().ok()?;
                Some(())
            },
        )
    };
}

const COLUMNS: [Column; 14] = [
    column!(thread),
    column!(duration),
    column!(gap_queued),
    column!(gap_blocked),
    column!(queued),
    column!(blocked),
    (
        |operation| zigzag(operation.result),
        |operation, number| {
            operation.result = unzigzag(number);
            Some(())
        },
    ),
    column!(handle),
    column!(path),
    column!(second),
    column!(offset),
    column!(length),
    column!(flags),
    column!(cause),
];

/// Appends a block of operations.
pub(super) fn put_operations(out: &mut Vec<u8>, operations: &[Operation]) {
    put(out, operations.len() as u64);
    out.extend(operations.iter().map(|operation| operation.code as u8));
    // Each block begins anew, so that it can be read without those before it.
    let mut before = 0;
    for operation in operations {
        put(out, zigzag(operation.start.wrapping_sub(before) as i64));
        before = operation.start;
    }
    // A column of like numbers packs far better than a row of unlike ones.
    for (read, _) in COLUMNS {
        for operation in operations {
            put(out, read(operation));
        }
    }
}

/// Reads a block of operations; else says what is wrong.
pub(super) fn take_operations(bytes: &mut Bytes<'_>) -> Result<Vec<Operation>, String> {
    let short = || "it ends within its operations".to_owned();
    let count = bytes.at_most(BLOCK as u64);
    let count = count.ok_or_else(|| format!("it has more than {BLOCK} operations"))?;
    // One byte each: a count that is not there is found before memory is taken.
    let codes = bytes.take(count as usize).ok_or_else(short)?;
    let mut found = Vec::with_capacity(codes.len());
    let mut start = 0_u64;
    for code in codes {
        let code = Code::of(*code).ok_or_else(|| format!("there is no operation {code}"))?;
        let later = unzigzag(bytes.number().ok_or_else(short)?);
        // A difference too large for a time gives a time that the reader refuses.
        start = start.wrapping_add(later as u64);
        found.push(Operation::of(code, 0, start));
    }
    for (_, set) in COLUMNS {
        for operation in &mut found {
            let number = bytes.number().ok_or_else(short)?;
            set(operation, number).ok_or_else(|| format!("{number} is too large for its place"))?;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_read_as_it_was_written(number: u64, sign: i64) {
            let mut written = Vec::new();
            put(&mut written, number);
            put(&mut written, zigzag(sign));
            let mut bytes = Bytes(&written);
            prop_assert_eq!(bytes.number(), Some(number));
            prop_assert_eq!(bytes.number().map(unzigzag), Some(sign));
            prop_assert_eq!(bytes.number(), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = take_operations(&mut Bytes(&bytes));
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        assert_eq!(Bytes(&[0xff; 9]).number(), None);
        let mut eleven = vec![0x80; 10];
        eleven.push(1);
        assert_eq!(Bytes(&eleven).number(), None);
    }

    #[test]
    fn a_frame_that_unpacks_to_more_than_it_says_is_refused() {
        let mut out = Vec::new();
        write_frame(&mut out, ORIGIN, &[0; 1000]).unwrap();
        let packed = &out[FRAME_HEAD..];
        assert!(unpack(packed, 1000).is_some());
        assert!(unpack(packed, 999).is_none());
        assert!(unpack(packed, u32::MAX).is_none());
    }
}
