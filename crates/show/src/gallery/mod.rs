//! A folder of runs as a site that needs no server: what it says of machines, what of that is cut, its pages.
//!
//! Values in, values out: the caller reads the files and writes the site. No figure is taken from words of a log:
//! each verdict is judged anew from the trials, and a log whose own numbers contradict each other is refused.

mod catalogue;
mod cut;
mod entry;
mod fits;
mod page;
mod part;
mod shapes;
mod told;

pub use catalogue::{CATALOGUE, Catalogue, CatalogueEntry};
pub use entry::{GalleryRun, RefusedFile, drives};
pub use page::{GalleryPage, index_page, run_page};
pub use part::MachinePart;
pub use told::MachineWords;

#[cfg(test)]
mod tests;
