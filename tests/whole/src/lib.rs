//! All rooms of all packages as one crate, so that the compiler finds code that the program never reaches.
//!
//! In a package of its own, whatever is `pub` counts as used. Here only `main` does.
//! `cargo check -p stackrace-whole --features rooms` looks; `.ci/run` does so. Without the feature
//! this crate is empty: whatever goes through all packages need not read every room twice.
//! The feature `testing` of the packages is off: what only tests use stands behind it.
//! `tests/tidy` holds this list against the packages.
#![cfg(feature = "rooms")]
#![forbid(unsafe_code)]
#![deny(unused)]
#![expect(
    unreachable_pub,
    unused_imports,
    reason = "what one package shows to another, and to its tests, is private here"
)]

extern crate self as stackrace_afp;
extern crate self as stackrace_base;
extern crate self as stackrace_capture;
extern crate self as stackrace_fio;
extern crate self as stackrace_foundation;
extern crate self as stackrace_import;
extern crate self as stackrace_judge;
extern crate self as stackrace_layers;
extern crate self as stackrace_load;
extern crate self as stackrace_machine;
extern crate self as stackrace_options;
extern crate self as stackrace_places;
extern crate self as stackrace_remote;
extern crate self as stackrace_results;
extern crate self as stackrace_run;
extern crate self as stackrace_show;
extern crate self as stackrace_study;
extern crate self as stackrace_trace;

// crates/base/src
#[path = "../../../crates/base/src/appendlog.rs"]
mod appendlog;
#[path = "../../../crates/base/src/bounded.rs"]
mod bounded;
#[path = "../../../crates/base/src/event/mod.rs"]
mod event;
#[path = "../../../crates/base/src/failure.rs"]
mod failure;
#[path = "../../../crates/base/src/interrupt.rs"]
mod interrupt;
#[path = "../../../crates/base/src/owned/mod.rs"]
mod owned;
#[path = "../../../crates/base/src/printed/mod.rs"]
mod printed;
#[path = "../../../crates/base/src/private.rs"]
mod private;
#[path = "../../../crates/base/src/setting/mod.rs"]
mod setting;
#[path = "../../../crates/base/src/time.rs"]
mod time;
#[path = "../../../crates/base/src/unit/mod.rs"]
mod unit;
#[path = "../../../crates/base/src/video.rs"]
mod video;

// crates/results/src
#[path = "../../../crates/results/src/record/mod.rs"]
mod record;
#[path = "../../../crates/results/src/tables/mod.rs"]
mod tables;

// crates/machine/src
#[path = "../../../crates/machine/src/host/mod.rs"]
mod host;
#[path = "../../../crates/machine/src/journal/mod.rs"]
mod journal;
#[path = "../../../crates/machine/src/observe/mod.rs"]
mod observe;

// crates/trace/src
#[path = "../../../crates/trace/src/trace/mod.rs"]
mod trace;

// crates/capture/src
#[path = "../../../crates/capture/src/capture/mod.rs"]
mod capture;

// crates/afp/src
#[path = "../../../crates/afp/src/afp/mod.rs"]
mod afp;

// crates/foundation/src
#[path = "../../../crates/foundation/src/foundation/mod.rs"]
mod foundation;

// crates/layers/src
#[path = "../../../crates/layers/src/stack/mod.rs"]
mod stack;

// crates/import/src
#[path = "../../../crates/import/src/import/mod.rs"]
mod import;

// crates/fio/src
#[path = "../../../crates/fio/src/fio/mod.rs"]
mod fio;

// crates/load/src
#[path = "../../../crates/load/src/programs/mod.rs"]
mod programs;
#[path = "../../../crates/load/src/tools/mod.rs"]
mod tools;
#[path = "../../../crates/load/src/workload/mod.rs"]
mod workload;

// crates/study/src
#[path = "../../../crates/study/src/plan/mod.rs"]
mod plan;
#[path = "../../../crates/study/src/purpose/mod.rs"]
mod purpose;
#[path = "../../../crates/study/src/study/mod.rs"]
mod study;

// crates/judge/src
#[path = "../../../crates/judge/src/audit/mod.rs"]
mod audit;
#[path = "../../../crates/judge/src/published/mod.rs"]
mod published;
#[path = "../../../crates/judge/src/verdict/mod.rs"]
mod verdict;

// crates/show/src
#[path = "../../../crates/show/src/export/mod.rs"]
mod export;
#[path = "../../../crates/show/src/gallery/mod.rs"]
mod gallery;
#[path = "../../../crates/show/src/report/mod.rs"]
mod report;
#[cfg(feature = "postgresql")]
#[path = "../../../crates/show/src/team/mod.rs"]
mod team;
#[path = "../../../crates/show/src/web/mod.rs"]
mod web;

// crates/options/src
#[path = "../../../crates/options/src/options/mod.rs"]
mod options;

// crates/remote/src
#[path = "../../../crates/remote/src/agent/mod.rs"]
mod agent;
#[path = "../../../crates/remote/src/lab/mod.rs"]
mod lab;

// crates/run/src
#[path = "../../../crates/run/src/crash/mod.rs"]
mod crash;
#[path = "../../../crates/run/src/execute/mod.rs"]
mod execute;
#[path = "../../../crates/run/src/prepare/mod.rs"]
mod prepare;
#[path = "../../../crates/run/src/run/mod.rs"]
mod run;

// crates/places/src
#[path = "../../../crates/places/src/place/mod.rs"]
mod place;

// src
#[path = "../../../src/cli/mod.rs"]
mod cli;
#[path = "../../../src/commands/mod.rs"]
mod commands;
#[path = "../../../src/sizes/mod.rs"]
mod sizes;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[path = "../../../src/testing/mod.rs"]
pub mod testing;

/// Where the program begins, as in `src/lib.rs`.
pub fn main() -> std::process::ExitCode {
    cli::keep_own_rights();
    cli::stay_free();
    cli::main()
}

/// What only tests inside of packages use, though the program carries it: no gate can take it out without
/// one at every layer. Nothing else may be unused.
pub fn only_tests_use(layer: &stack::LayerKind) -> usize {
    // Tests ask of every kind of layer: are its words described?
    let of_layer = layer.words.len();
    // Tests make the imagined machine fail at a step.
    let faults = [
        host::plan::Fault::Refused(1),
        host::plan::Fault::DiedBefore(1),
        host::plan::Fault::DiedAfter(1),
    ];
    // Tests of `load` ask which sources repeat each other.
    let repeated = printed::find(&[]);
    of_layer + faults.len() + repeated.counts.len()
}
