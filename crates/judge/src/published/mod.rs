//! Five published studies as data: what was asked, on what, every figure, and what follows.
//!
//! The text of the studies stays with their authors; here are facts and figures. Nothing that can
//! be computed is written down: ratios, conclusions and remarks follow from the data each time, by
//! the same rules for every study.

mod card;
mod conclusion;
mod counterpart;
mod ratio;
mod remark;
mod table;
#[cfg(test)]
mod tests;

pub use card::{ALL, Card};
pub use conclusion::conclusions;
pub use counterpart::{FactorPair, MetricPair};
pub use ratio::{PublishedRatio, comparisons, geometric_mean};
pub use remark::{remarks, unfit};
pub use table::{PublishedFigure, PublishedTable, PublishedValue, distinct};

/// The study of that name.
pub fn by_name(name: &str) -> Option<&'static Card> {
    ALL.iter().find(|card| card.name == name)
}
