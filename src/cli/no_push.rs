//! Stands for `stackrace push` and `serve --from` where the program was built without PostgreSQL.

use std::sync::Arc;

use super::args::Push;
use super::failure::Failure;
use super::setting::Setting;
use stackrace_results::record::RunSource;

/// Says that this program was built without PostgreSQL.
pub(super) fn exec(_: &Setting, _: &Push) -> Result<u8, Failure> {
    Err(missing())
}

/// Says the same, where the runs of a team were to be shown.
pub(super) fn runs_of(_: &str) -> Result<(Arc<dyn RunSource>, String), Failure> {
    Err(missing())
}

fn missing() -> Failure {
    Failure::unable("this stackrace was built without PostgreSQL")
        .next("build it with: cargo install --path . --features full")
}
