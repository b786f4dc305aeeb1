//! Charts as SVG text: axes, forest, rounds, lines. No scripts, no fonts, no clock.
//!
//! Colours are CSS variables (`--s0` … `--s7`), so that one drawing serves a light page, a dark one
//! and paper; every series also has a marker of its own shape. A name may be of any length: it has
//! as many lines as it takes.
//!
//! Units: user units of the SVG (a "px" at natural size).

mod axis;
mod bars;
mod caption;
mod drawing;
mod forest;
mod labels;
mod line;
mod rounds;
mod spark;

pub(super) use axis::{Axis, Scale};
pub(super) use bars::{BarGroup, BarRow, bars};
pub(super) use drawing::{Gallery, LegendEntry, Plot, SERIES_MAX, room, swatch};
pub(super) use forest::{ForestGroup, ForestRow, forest, verdict_entry};
pub(super) use line::{ChartLine, LineChart, line};
pub(super) use rounds::{RoundsRow, rounds};
pub(super) use spark::spark;
