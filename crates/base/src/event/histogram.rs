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

/// Beginning of a count that negates to nothing: nine bytes of it are the largest number there is,
/// which the library negates without looking. Counts of ours are far below.
const NO_COUNT: [u8; 9] = [0xff; 9];

/// Below this many operations a 99.9th percentile rests on fewer than ten of them.
pub const OPERATIONS_FOR_P999: u64 = 10_000;

/// Returns true if ten of so many values lie above the quantile of this share: of fewer values it would be the largest
/// one under another name.
pub fn has_quantile(values: u64, share: f64) -> bool {
    // 0.01 x 1000 is computed as 10.00…1.
    values as f64 * (1.0 - share) >= 10.0 - 1e-6
}

/// A quantile; `None` of too few values ([`has_quantile`]).
pub fn quantile(histogram: &Histogram<u64>, share: f64) -> Option<u64> {
    has_quantile(histogram.len(), share).then(|| histogram.value_at_quantile(share))
}

/// The 99.9th percentile; `None` of fewer than [`OPERATIONS_FOR_P999`].
pub fn p999(histogram: &Histogram<u64>) -> Option<u64> {
    quantile(histogram, 0.999)
}

/// The text of a histogram as it is written. Writing into memory cannot fail; an empty text would say it did.
pub fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => base64::engine::general_purpose::STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// The histogram that a text holds; `None` if nothing can be read, or nothing is in it.
pub fn decoded(text: &str) -> Option<Histogram<u64>> {
    let plain = plain(text)?;
    // An empty one says nothing, and has no percentiles.
    let histogram = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .ok()?;
    (!histogram.is_empty()).then_some(histogram)
}

/// An empty histogram with the bounds of those in a log.
pub fn empty() -> Option<Histogram<u64>> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS_MAX as u8).ok()
}

/// Adds the histogram that a text holds to a sum; `None` if nothing can be read, or nothing is in it, and the sum is as
/// it was. The same as to decode and to add, but the thirty thousand counts that are nearly all zero are not laid out
/// for each of a thousand trials.
pub fn add(text: &str, sum: &mut Histogram<u64>) -> Option<()> {
    let counts = counts(&plain(text)?)?;
    if counts.is_empty() {
        return None;
    }
    for (value, count) in counts {
        // No latency is longer than the sum's scale, so each has its place.
        let _ = sum.record_n(value, count);
    }
    Some(())
}

/// Latencies and their counts, those with a count alone, from the form V2 of HdrHistogram: numbers in
/// LEB128 with the sign in the lowest bit; one below zero stands for so many zeros.
fn counts(plain: &[u8]) -> Option<Vec<(u64, u64)>> {
    let (length, digits, lowest) = (word(plain, 4)? as usize, word(plain, 12)?, long(plain, 16)?);
    if (digits, lowest) != (DIGITS_MAX, 1) {
        return None;
    }
    let mut rest = plain.get(40..40_usize.checked_add(length)?)?;
    let mut counts = Vec::new();
    let mut index = 0_u64;
    while !rest.is_empty() {
        let number = number(&mut rest)?;
        let number = (number >> 1) as i64 ^ -((number & 1) as i64);
        match u64::try_from(number) {
            Ok(0) => index += 1,
            Ok(count) => {
                counts.push((value(index)?, count));
                index += 1;
            }
            Err(_) => index = index.checked_add(number.unsigned_abs())?,
        }
    }
    Some(counts)
}

/// The next number of a text in LEB128, at most nine bytes, of which the last one is taken whole.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        let bits = if at < 8 { byte & 0x7f } else { *byte };
        number |= u64::from(bits) << (7 * at);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

/// The lowest latency that is counted at a place: 2,048 of a nanosecond each, then 1,024 to each
/// doubling (HdrHistogram with three digits); `None` if no latency is that long.
fn value(index: u64) -> Option<u64> {
    const HALF: u64 = 1024;
    let doubling = (index / HALF).saturating_sub(1);
    let place = index - doubling * HALF;
    // Beyond this many doublings it is longer than any, and its bits would be lost.
    let value = (doubling <= 40).then(|| place << doubling)?;
    (value <= LATENCY_NS_MAX).then_some(value)
}

/// A number of four bytes in a histogram without its deflation.
fn word(plain: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*plain.get(at..)?.first_chunk()?))
}

/// One of eight bytes.
fn long(plain: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*plain.get(at..)?.first_chunk()?))
}

/// The histogram of a text without its deflation; `None` if it is none, or larger than any of ours. The library takes
/// memory as its header says before it looks at the rest, so the header is looked at first.
fn plain(text: &str) -> Option<Vec<u8>> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .ok()?;
    // Two words (what it is; bytes that follow), the second histogram inside them.
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(bytes.get(8..)?)
        .take(HISTOGRAM_BYTES_MAX)
        .read_to_end(&mut plain)
        .ok()?;
    let whole = word(&plain, 4)? as usize <= plain.len();
    let (digits, highest) = (word(&plain, 12)?, long(&plain, 24)?);
    let counts = plain.windows(NO_COUNT.len()).all(|bytes| bytes != NO_COUNT);
    (whole && counts && digits <= DIGITS_MAX && highest <= LATENCY_NS_MAX).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_ten_values_above_it() {
        for (share, least) in [(0.95, 200), (0.99, 1000), (0.999, OPERATIONS_FOR_P999)] {
            assert!(
                has_quantile(least, share) && !has_quantile(least - 1, share),
                "{share}"
            );
        }
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(5, 60).unwrap();
        assert_eq!(quantile(&histogram, 0.99), None);
        histogram.record_n(5, 940).unwrap();
        assert_eq!(quantile(&histogram, 0.99), Some(5));
    }

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

    proptest::proptest! {
        #[test]
        fn a_histogram_is_added_as_the_library_adds_it(values in proptest::collection::vec((0..=LATENCY_NS_MAX, 1..1000_u64), 1..40), large in 0..5_u32) {
            let mut histogram = empty().unwrap();
            for (value, count) in values {
                // Latencies of all sizes: drawn alone, nearly all would be minutes.
                let value = (value >> (large * 10)).max(1);
                histogram.record_n(value, count).unwrap();
            }
            let text = encoded(&histogram);
            let (mut sum, mut expected) = (empty().unwrap(), empty().unwrap());
            for _ in 0..2 {
                add(&text, &mut sum).unwrap();
                expected.add(decoded(&text).unwrap()).unwrap();
            }
            proptest::prop_assert_eq!(sum, expected);
        }
    }

    #[test]
    fn a_place_beyond_the_scale_is_no_latency() {
        assert_eq!((value(2047), value(2048)), (Some(2047), Some(2048)));
        assert_eq!(value(2049), Some(2050));
        // One bit more than fits would be lost, and an hour would count as nothing.
        for doubling in 33..200 {
            assert_eq!(value(1024 * (doubling + 1)), None, "{doubling}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_added_to_nothing() {
        let nothing = encoded(&empty().unwrap());
        for text in ["", "not base64!", "AAAA", &nothing] {
            let mut sum = empty().unwrap();
            assert!(add(text, &mut sum).is_none());
            assert!(sum.is_empty());
        }
    }
}
