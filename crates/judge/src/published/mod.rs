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

pub(crate) use card::{ALL, Card};
pub(crate) use conclusion::conclusions;
pub(crate) use counterpart::{FactorPair, MetricPair};
pub(crate) use ratio::{PublishedRatio, comparisons, geometric_mean};
pub(crate) use remark::{remarks, unfit};
pub(crate) use table::{PublishedFigure, PublishedTable, PublishedValue, distinct};

/// The study of that name.
pub(crate) fn by_name(name: &str) -> Option<&'static Card> {
    ALL.iter().find(|card| card.name == name)
}
