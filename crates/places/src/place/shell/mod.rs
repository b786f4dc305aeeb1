//! Machines that have nothing but a shell: this program runs here, its commands there.

pub mod marks;
pub mod store;
pub mod study;
pub mod worker;
