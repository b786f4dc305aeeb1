//! Every importer.

mod dbench;
mod dd;
mod elbencho;
mod hyperfine;
mod io500;
mod ioping;
mod ior;
mod iozone;
mod mdtest;
mod pgbench;
mod phoronix;
mod time;
mod tiotest;
mod vdbench;

pub(super) use dd::is_of_dd;

use stackrace_base::printed::Importer;

/// Every importer but those of the classic tools, alphabetical.
pub const ALL: &[Importer] = &[
    dbench::IMPORTER,
    dd::IMPORTER,
    elbencho::IMPORTER,
    hyperfine::IMPORTER,
    io500::IMPORTER,
    ioping::IMPORTER,
    ior::IMPORTER,
    iozone::IMPORTER,
    mdtest::IMPORTER,
    pgbench::IMPORTER,
    phoronix::IMPORTER,
    time::IMPORTER,
    tiotest::IMPORTER,
    vdbench::IMPORTER,
];
