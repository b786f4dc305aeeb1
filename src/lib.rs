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
//! | [`study`] | a question and its design: TOML with places → configurations |
//! | [`purpose`] | what people use storage for, as lists of workloads |
//! | [`plan`] | order of the rounds, commands, duration, what it needs |
//! | [`stack`] | layers: raise, describe, settle, lower |
//! | [`workload`] | what is done to a stack, with exact semantics |
//! | [`tools`] | bonnie++, fio, PostMark, sysbench: all there is of each |
//! | [`programs`] | workloads that other programs carry out: any command, servers, the originals |
//! | [`session`] | what a command does around a run: preflight, orchestration |
//! | [`run`] | the study in execution |
//! | [`observe`] | what the system counts meanwhile |
//! | [`event`] | the one vocabulary of what happened |
//! | [`printed`] | what an importer needs: texts taken apart |
//! | [`import`] | printed results of other tools, read into trials |
//! | [`record`] | the append-only log of a run, and its index |
//! | [`crash`] | what is there after a power cut, against what was promised |
//! | [`audit`] | what spoils or limits a figure |
//! | [`published`] | five published studies as data |
//! | [`verdict`] | comparisons judged |
//! | [`export`] | what goes into the tables for other programs |
//! | [`tables`] | tables written as CSV, JSON or Parquet |
//! | [`report`] | terminal, Markdown, CSV, JSON, HTML |
//! | [`web`] | the live page |
//! | [`cli`] | the command line |
//!
//! Beside the path: [`owned`] (the only one who opens files of the store), [`host`] (the only one who starts processes), [`journal`] (what exists because
//! of us), [`agent`] (this program on another machine, asked over a line), [`lab`] (disposable virtual
//! machines), [`afp`] (a client for AFP), [`setting`], [`time`], [`mod@unit`], [`video`]; [`testing`] has a check for every parser.

mod afp;
mod agent;
mod appendlog;
mod audit;
mod bounded;
mod cli;
mod crash;
mod event;
mod export;
mod failure;
mod host;
mod import;
mod interrupt;
mod journal;
mod lab;
mod observe;
mod owned;
mod plan;
mod printed;
mod programs;
mod published;
mod purpose;
mod record;
mod report;
mod run;
mod session;
mod setting;
mod stack;
mod study;
mod tables;
#[cfg(feature = "postgresql")]
mod team;
#[doc(hidden)]
pub mod testing;
mod time;
mod tools;
mod unit;
mod verdict;
mod video;
mod web;
mod workload;

/// Runs the program on the process's arguments.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
