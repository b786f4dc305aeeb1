//! What is written: bytes that compress and repeat exactly as much as asked, at no cost per write.
//!
//! A pool of random pages is generated once. A write is taken from the pool where the last one
//! ended, and each 512-byte sector of it gets an 8-byte stamp no other sector has. So data never
//! repeats at any granularity a storage layer could use, yet a 4 KiB write costs eight stores
//! instead of 4 KiB of random numbers. Compressible data keeps only a share of each 4 KiB random;
//! duplicates take the place and the stamps of an earlier write again.
//!
//! What a store finds depends on how far it looks. Between two stamps the bytes of a pool come
//! again after the pool's length. File systems compress records of 4 KiB to 1 MiB, each by itself,
//! and find nothing in random content; a compressor with a window longer than the pool (`zstd
//! --long` over a whole file) finds nearly everything. A copy is a whole write (of files: up to
//! 128 KiB, aligned): a store sees it if it compares blocks of that size, or aligned parts of it,
//! and not if it compares larger ones.
//!
//! A [`ContentPool`] hands out one write after the other; `FileContent` is a pool in which each byte of
//! a file follows from the file's number, so that whoever writes the file writes the same.
//!
//! Two phases with the same seed write the same bytes: give each its own seed, or a store that
//! finds duplicates finds them.

mod pool;
mod rates;

pub use pool::{ContentPool, POOL_BYTES, SECTOR};
pub use rates::{ContentRate, rates};

pub(crate) use pool::{FileContent, UNIT};
