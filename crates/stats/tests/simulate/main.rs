//! Whole studies with a planted truth.

#[path = "../../examples/validate/coarse.rs"]
mod coarse;
#[path = "../../examples/validate/factorial.rs"]
mod factorial;
mod figures;
#[path = "../../examples/validate/pair.rs"]
mod pair;
mod rules;
#[path = "../../examples/validate/trial.rs"]
mod trial;
#[path = "../../examples/validate/world.rs"]
mod world;
