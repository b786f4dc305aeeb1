#![forbid(unsafe_code)]
//! stackrace: which storage configuration should I choose, and how sure can I be?
//!
//! All rooms, of this package and of those in `crates/`, in the order of an answer's path.
//! `docs/architecture.md` says which package has which, and which room may use which.
//!
//! The path of an answer:
//!
//! | room | what it does |
//! |---|---|
//! | [`study`] | a question and its design: TOML with places → configurations |
//! | [`purpose`] | what people use storage for, as lists of workloads |
//! | [`plan`] | order of the rounds, commands, duration, what it needs |
//! | [`prepare`] | everything between the words of a command line and the first trial |
//! | [`place`] | the places where a study runs |
//! | [`execute`] | a study carried out or carried on |
//! | [`run`] | the study in execution |
//! | [`stack`] | layers: raise, describe, settle, lower |
//! | [`workload`] | what is done to a stack, with exact semantics |
//! | [`tools`] | bonnie++, fio, PostMark, sysbench: all there is of each |
//! | [`programs`] | workloads that other programs carry out |
//! | [`observe`] | what the system counts meanwhile |
//! | [`import`] | printed results of other tools, read into trials |
//! | [`record`] | the append-only log of a run, and its index |
//! | [`crash`] | what is there after a power cut, against what was promised |
//! | [`audit`] | what spoils or limits a figure |
//! | [`published`] | five published studies as data |
//! | [`verdict`] | comparisons judged |
//! | [`tables`] | tables written as CSV, JSON or Parquet |
//! | [`export`] | what goes into the tables for other programs |
//! | [`gallery`] | a folder of runs as a site without a server |
//! | [`report`] | terminal, Markdown, CSV, JSON, HTML |
//! | [`web`] | the live page |
//! | [`team`] | runs of many people in one PostgreSQL |
//! | [`capture`] | an application recorded |
//! | [`trace`] | what was recorded, its file, its critical path |
//! | [`cli`] | the command line |
//!
//! Beside it:
//!
//! | room | what it does |
//! |---|---|
//! | [`event`] | the one vocabulary of what happened |
//! | [`unit`] | bytes, times and shares: parsed, and written for people |
//! | [`time`] | wall clock and monotonic clock |
//! | [`setting`] | settings of layers and workloads |
//! | [`failure`] | errors for the user, with advice and exit code |
//! | [`interrupt`] | Ctrl-C |
//! | [`bounded`] | what others send, read up to a limit |
//! | [`owned`] | the only one who opens files of the store |
//! | [`appendlog`] | a file of JSON lines that survives a power failure |
//! | [`printed`] | what an importer needs: texts taken apart |
//! | [`video`] | what each video format needs of a storage |
//! | [`host`] | the only one who starts processes |
//! | [`journal`] | what exists because of us |
//! | [`agent`] | this program on another machine, asked over a line |
//! | [`lab`] | disposable virtual machines |
//! | [`afp`] | a client for AFP |
//! | `testing` | a check for every parser; only tests have it |
//!
//! [`study`]: stackrace_study::study
//! [`purpose`]: stackrace_study::purpose
//! [`plan`]: stackrace_study::plan
//! [`stack`]: stackrace_layers::stack
//! [`workload`]: stackrace_load::workload
//! [`tools`]: stackrace_load::tools
//! [`programs`]: stackrace_load::programs
//! [`observe`]: stackrace_machine::observe
//! [`import`]: stackrace_import::import
//! [`record`]: stackrace_results::record
//! [`crash`]: stackrace_run::crash
//! [`audit`]: stackrace_judge::audit
//! [`published`]: stackrace_judge::published
//! [`verdict`]: stackrace_judge::verdict
//! [`tables`]: stackrace_results::tables
//! [`export`]: stackrace_show::export
//! [`gallery`]: stackrace_show::gallery
//! [`report`]: stackrace_show::report
//! [`web`]: stackrace_show::web
//! [`team`]: stackrace_show::team
//! [`event`]: stackrace_base::event
//! [`unit`]: stackrace_base::unit
//! [`time`]: stackrace_base::time
//! [`setting`]: stackrace_base::setting
//! [`failure`]: stackrace_base::failure
//! [`interrupt`]: stackrace_base::interrupt
//! [`bounded`]: stackrace_base::bounded
//! [`owned`]: stackrace_base::owned
//! [`appendlog`]: stackrace_base::appendlog
//! [`printed`]: stackrace_base::printed
//! [`video`]: stackrace_base::video
//! [`host`]: stackrace_machine::host
//! [`journal`]: stackrace_machine::journal
//! [`agent`]: stackrace_remote::agent
//! [`lab`]: stackrace_remote::lab
//! [`prepare`]: stackrace_run::prepare
//! [`execute`]: stackrace_run::execute
//! [`run`]: stackrace_run::run
//! [`place`]: stackrace_places::place
//! [`afp`]: stackrace_afp::afp
//! [`capture`]: stackrace_capture::capture
//! [`trace`]: stackrace_trace::trace

mod cli;
mod commands;
mod sizes;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;

/// Stack of the thread that does the work: that of a first thread, bytes.
const STACK: usize = 8 << 20;

/// Runs the program on the process's arguments.
///
/// The work is done on a second thread, and the first one only waits for that: the kernel gives a signal
/// to the first thread whatever that does, and a call to storage that does not answer would keep it.
pub fn main() -> std::process::ExitCode {
    cli::keep_own_rights();
    cli::stay_free();
    let work = std::thread::Builder::new()
        .name("work".to_owned())
        .stack_size(STACK);
    match work.spawn(cli::main).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        // It has said so itself; the status is that of any program that does.
        Ok(Err(_panicked)) => std::process::ExitCode::from(101),
        // A limit on threads: what follows says more about it, if it needs some.
        Err(_) => cli::main(),
    }
}
