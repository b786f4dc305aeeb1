//! Histograms as the log holds them: HdrHistogram V2, deflated, base64.

use std::io::Read;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Significant digits of a histogram, largest latency (one hour), and bytes of one without its
/// deflation: no more of either is ever written (`docs/formats/log.md`).
const DIGITS_MAX: u32 = 3;
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const HISTOGRAM_BYTES_MAX: u64 = 1 << 20;

/// What only a count that negates to nothing begins with: nine bytes of it are the largest number
/// there is, which the library negates without looking. Counts of ours are far below.
const NO_COUNT: [u8; 9] = [0xff; 9];

/// As it is written. Writing into memory cannot fail; an empty text would say it did.
pub(crate) fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => base64::engine::general_purpose::STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// The histogram that a text holds; none: nothing that can be read, or nothing is in it.
pub(crate) fn decoded(text: &str) -> Option<Histogram<u64>> {
    // An empty one says nothing, and has no percentiles.
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .ok()?;
    let plain = inflated(&bytes)?;
    let histogram = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .ok()?;
    (!histogram.is_empty()).then_some(histogram)
}

/// The histogram without its deflation; none: it is none, or larger than any of ours. The library
/// takes memory as its header says before it looks at the rest, so the header is looked at first.
fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    // Two words (what it is; bytes that follow), the second histogram inside them.
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(bytes.get(8..)?)
        .take(HISTOGRAM_BYTES_MAX)
        .read_to_end(&mut plain)
        .ok()?;
    let word = |at: usize| Some(u32::from_be_bytes(plain.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_be_bytes(plain.get(at..at + 8)?.try_into().ok()?));
    let whole = word(4)? as usize <= plain.len();
    let (digits, highest) = (word(12)?, long(24)?);
    let counts = plain.windows(NO_COUNT.len()).all(|bytes| bytes != NO_COUNT);
    (whole && counts && digits <= DIGITS_MAX && highest <= LATENCY_NS_MAX).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_no_histogram() {
        for text in ["", "not base64!", "AAAA"] {
            assert!(decoded(text).is_none());
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, LATENCY_NS_MAX, 3).unwrap();
        (1..=1000_u64).for_each(|value| histogram.record(value * value).unwrap());
        assert_eq!(decoded(&encoded(&histogram)), Some(histogram));
    }
}
