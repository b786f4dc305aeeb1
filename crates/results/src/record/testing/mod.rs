//! Made-up runs, for the tests of this package and of others.

#[expect(clippy::unwrap_used, reason = "only tests make up runs")]
pub mod sample;
pub mod sample_cuts;
