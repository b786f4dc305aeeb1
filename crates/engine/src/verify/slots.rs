//! What verification needs of a way to the files: the buffer of each operation.

/// A device or ring with a buffer of its own for each operation under way, which it writes from
/// and reads into.
pub(crate) trait Slots {
    /// The first bytes of a slot whose operation is not under way.
    fn buffer(&mut self, slot: usize, bytes: usize) -> &mut [u8];
}
