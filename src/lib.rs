#![forbid(unsafe_code)]
#![expect(
    rustdoc::private_intra_doc_links,
    reason = "the map of the rooms is for those who work in them"
)]
//! stackrace: which storage configuration should I choose, and how sure can I be?
//!
//! The rooms, in the order of an answer's path; `docs/architecture.md` says which may use which.
//!
//! | room | what it does |
//! |---|---|
//! | [`study`](stackrace_study::study) | a question and its design: TOML with places → configurations |
//! | [`purpose`](stackrace_study::purpose) | what people use storage for, as lists of workloads |
//! | [`plan`](stackrace_study::plan) | order of the rounds, commands, duration, what it needs |
//! | [`stack`](stackrace_layers::stack) | layers: raise, describe, settle, lower |
//! | [`workload`](stackrace_load::workload) | what is done to a stack, with exact semantics |
//! | [`tools`](stackrace_load::tools) | bonnie++, fio, PostMark, sysbench: all there is of each |
//! | [`programs`](stackrace_load::programs) | workloads that other programs carry out: any command, servers, the originals |
//! | [`session`] | what a command does around a run: preflight, orchestration |
//! | [`run`] | the study in execution |
//! | [`observe`](stackrace_machine::observe) | what the system counts meanwhile |
//! | [`event`](stackrace_base::event) | the one vocabulary of what happened |
//! | [`printed`](stackrace_base::printed) | what an importer needs: texts taken apart |
//! | [`import`](stackrace_load::import) | printed results of other tools, read into trials |
//! | [`record`](stackrace_results::record) | the append-only log of a run, and its index |
//! | [`crash`](stackrace_load::crash) | what is there after a power cut, against what was promised |
//! | [`audit`](stackrace_judge::audit) | what spoils or limits a figure |
//! | [`published`](stackrace_judge::published) | five published studies as data |
//! | [`verdict`](stackrace_judge::verdict) | comparisons judged |
//! | [`export`](stackrace_show::export) | what goes into the tables for other programs |
//! | [`tables`](stackrace_results::tables) | tables written as CSV, JSON or Parquet |
//! | [`report`](stackrace_show::report) | terminal, Markdown, CSV, JSON, HTML |
//! | [`web`](stackrace_show::web) | the live page |
//! | [`cli`] | the command line |
//!
//! Beside the path: [`owned`](stackrace_base::owned) (the only one who opens files of the store), [`host`](stackrace_machine::host) (the only one who starts processes), [`journal`](stackrace_machine::journal) (what exists because
//! of us), [`agent`](stackrace_places::agent) (this program on another machine, asked over a line), [`lab`](stackrace_places::lab) (disposable virtual
//! machines), [`afp`](stackrace_afp::afp) (a client for AFP), [`setting`](stackrace_base::setting), [`time`](stackrace_base::time), [`unit`](stackrace_base::unit), [`video`](stackrace_base::video); [`testing`] has a check for every parser.

mod cli;
mod run;
mod session;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;

/// Runs the program on the process's arguments.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
