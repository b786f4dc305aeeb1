//! Content to write: it compresses and repeats exactly as requested, at almost no cost per write.
//!
//! A pool of random pages is generated once. Each write takes the next bytes of the pool, and each
//! 512-byte sector of it gets a unique 8-byte stamp. So data never repeats at any granularity a
//! storage layer uses, yet a 4 KiB write costs eight stores instead of 4 KiB of random numbers.
//! Compressible data keeps only a share of each 4 KiB random; duplicates reuse the bytes and stamps
//! of an earlier write.
//!
//! What a store finds depends on how far it looks. Between two stamps the bytes of a pool come
//! again after the pool's length. File systems compress records of 4 KiB to 1 MiB, each by itself,
//! and find nothing in random content; a compressor with a window longer than the pool (`zstd
//! --long` over a whole file) finds nearly everything. A copy is a whole write (of files: up to
//! 128 KiB, aligned): a store sees it if it compares blocks of that size, or aligned parts of it,
//! and not if it compares larger ones.
//!
//! A [`ContentPool`] hands out one write after the other; `FileContent` is a pool in which each
//! byte of a file follows from the file's number, so that every writer of the file writes the same.
//!
//! Two phases with the same seed write the same bytes. Give each its own seed, or deduplicating
//! storage will find duplicates.

mod pool;
mod rates;

pub use pool::{ContentPool, POOL_BYTES, SECTOR};
pub use rates::{ContentRate, rates};

pub(crate) use pool::{FileContent, UNIT};
