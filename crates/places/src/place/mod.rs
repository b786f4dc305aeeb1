//! The places where a study runs: here, on machines over SSH, on machines with nothing but a shell, by clients,
//! in the lab in real and in virtual time, and on a machine whose power is cut.
//!
//! A place is named once, by the options or by the log of a run that goes on (`asked`), and then carried out in one
//! way. `options` says which option counts at which place.

pub mod asked;
pub mod clients;
pub mod lab_guests;
pub mod lab_options;
pub mod machine_options;
pub mod options;
pub mod power;
pub mod shell;
pub mod ssh;
pub mod taken;
pub mod virtual_lab;
pub mod worker;
pub mod worker_store;
pub mod workers;
