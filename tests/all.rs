//! All tests of whole runs, as one program: it is linked once, and `cargo test --test all remote::` runs those of
//! one file. The files run one after another, as each has the machine for itself.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[macro_use]
#[path = "support/study.rs"]
mod study;
mod support;

mod advice;
mod attacks;
mod audit;
mod bonnie;
mod cli;
mod corpus;
mod docs;
mod endless;
mod export;
mod fio;
mod gallery;
mod gate;
mod habits;
mod import;
mod lab;
mod load;
mod load_told;
mod longer;
mod machine;
mod names;
mod outputs;
mod pauses;
mod peers;
mod postmark;
mod programs;
mod published;
mod record;
mod refusals;
mod remote;
mod replay;
mod run;
mod says;
mod serve;
mod store;
mod swapped;
mod team;
mod terminal;
mod traps;
mod verdict;
mod wiped;

use std::process::ExitCode;

use stackrace_test_needs as needs;

fn main() -> ExitCode {
    needs::run(vec![
        needs::group("added", remote::added::tests()),
        needs::group("advice", advice::tests()),
        needs::group("attacks", attacks::tests()),
        needs::group("audit", audit::tests()),
        needs::group("bonnie", bonnie::tests()),
        needs::group("cli", cli::tests()),
        needs::group("corpus", corpus::tests()),
        needs::group("docs", docs::tests()),
        needs::group("endless", endless::tests()),
        needs::group("export", export::tests()),
        needs::group("fio", fio::tests()),
        needs::group("gallery", gallery::tests()),
        needs::group("gate", gate::tests()),
        needs::group("habits", habits::tests()),
        needs::group("import", import::tests()),
        needs::group("lab", lab::tests())
            .if_asked("starts virtual machines: cargo test --test all -- --ignored lab::"),
        needs::group("load", load::tests()),
        needs::group("load_told", load_told::tests()),
        needs::group("longer", longer::tests()),
        needs::group("machine", machine::tests()),
        needs::group("names", names::tests()),
        needs::group("outputs", outputs::tests()),
        needs::group("pauses", pauses::tests()),
        needs::group("peers", peers::tests()),
        needs::group("postmark", postmark::tests()),
        needs::group("programs", programs::tests()),
        needs::group("published", published::tests()),
        needs::group("record", record::tests()),
        needs::group("refusals", refusals::tests()),
        needs::group("remote", remote::tests()),
        needs::group("remote::kubernetes", remote::kubernetes::tests()),
        needs::group("replay", replay::tests()),
        needs::group("run", run::tests()),
        needs::group("says", says::tests()),
        needs::group("serve", serve::tests()),
        needs::group("store", store::tests()),
        needs::group("swapped", swapped::tests()),
        needs::group("team", team::tests()),
        needs::group("terminal", terminal::tests()),
        needs::group("traps", traps::tests()),
        needs::group("verdict", verdict::tests()),
        needs::group("wiped", wiped::tests()),
    ])
}
