//! What a command does around a run: everything between the words of a command line and the first
//! trial, and nothing that is printed.
//!
//! `cli` reads arguments and prints; here is what they ask for. A study is read and put at its places
//! (`study_file`), checked against the machine before anything is touched (`preflight`), and run to its
//! end (`execute`) or continued (`resume`): in the lab, over SSH or here (`run_place`). What leaves
//! this room is data, events and failures; while it works it tells an [`Observer`].

pub(crate) mod asked_place;
pub(crate) mod clean;
pub(crate) mod clients;
pub(crate) mod compare;
mod context;
pub(crate) mod control;
mod crash;
pub(crate) mod crash_show;
pub(crate) mod doctor;
pub(crate) mod execute;
mod first_round;
pub(crate) mod import;
pub(crate) mod job_file;
pub(crate) mod lab_needs;
pub(crate) mod lab_options;
pub(crate) mod lab_run;
pub(crate) mod leftovers;
pub(crate) mod load;
pub(crate) mod load_target;
pub(crate) mod machine_options;
pub(crate) mod machines;
mod observer;
pub(crate) mod own_program;
mod peers;
pub(crate) mod permission;
mod places;
pub(crate) mod preflight;
mod real_cuts;
pub(crate) mod remove;
pub(crate) mod resume;
pub(crate) mod run_place;
mod shape;
mod shell_marks;
mod shell_store;
mod shell_study;
mod shell_worker;
mod sizes;
mod sizing;
pub(crate) mod study_file;
mod taken;
pub(crate) mod temporary;
pub(crate) mod virtual_clock;
mod virtual_made_on;
pub(crate) mod virtual_plan;
pub(crate) mod virtual_run;
mod virtual_turns;
mod watched;
pub(crate) mod worker;
mod worker_store;

pub(crate) use context::{Context, entropy};
pub(crate) use execute::FinishedRun;
pub(crate) use observer::{Observer, Preparation, WatchedRun};
pub(crate) use resume::Stopped;
