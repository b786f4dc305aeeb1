//! What a study will do, before it does anything.
//!
//! A plan is data: the commands that would be run, what is measured, what it costs in bytes and
//! time, and how small a difference could be told. Nothing here touches the machine; what must be
//! known of it comes in as [`MachineFacts`], and what is only assumed is said to be assumed.

mod build;
mod content;
mod costs;
mod duration;
mod lint;
mod order;
mod render;

#[cfg(test)]
mod tests;

pub use build::room;
pub use content::{Bounds, FILLS, MachineFacts, Plan, StorageSpeed, VirtualTime};
pub use order::{order, order_within};
pub use render::COLUMNS;
