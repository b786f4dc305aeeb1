//! One file for what each command does around a run. Nothing here prints.

pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod crash_show;
pub(crate) mod doctor;
pub(crate) mod gallery;
pub(crate) mod gallery_runs;
pub(crate) mod import;
pub(crate) mod leftovers;
pub(crate) mod load;
pub(crate) mod load_target;
pub(crate) mod longer;
mod own_figures;
pub(crate) mod own_program;
mod probe;
pub(crate) mod remove;
pub(crate) mod required;
pub(crate) mod room;
pub(crate) mod standing;
#[cfg(test)]
mod tests;
pub(crate) mod warned;
pub(crate) mod watched;
