//! Numbers and texts drawn from bytes, for checks of functions that take no text.

/// The bytes that are left. Without any, every number is 0 and every text is empty.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(super) fn u32(&mut self) -> u32 {
        // Four bytes always fit.
        self.number(4) as u32
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.number(8)
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.bytes(bytes)
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// Any float, NaN and the infinities included.
    pub(super) fn f64(&mut self) -> f64 {
        f64::from_bits(self.u64())
    }

    /// A number below `bound`, which is at most 256.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.u8()) % bound
    }

    /// A number of up to so many bits; each number of bits is equally likely.
    pub(super) fn up_to_bits(&mut self, bits: u32) -> u64 {
        let width = u32::from(self.u8()) % (bits + 1);
        self.u64() & 1u64.checked_shl(width).map_or(u64::MAX, |bound| bound - 1)
    }

    /// Up to 31 bytes, lossy where they are no UTF-8.
    pub(super) fn text(&mut self) -> String {
        let length = self.below(32);
        String::from_utf8_lossy(self.bytes(length)).into_owned()
    }

    /// Up to `most` floats.
    pub(super) fn floats(&mut self, most: usize) -> Vec<f64> {
        let count = self.below(most.min(255) + 1);
        (0..count).map(|_| self.f64()).collect()
    }
}
