//! The build of this program that makes a run in virtual time: it serves the drives in each guest.

use std::path::Path;

use super::made_on::hash_of;
use stackrace_base::event::Fact;
use stackrace_base::failure::Failure;
use stackrace_study::study::{self, Study};

/// This program, whatever became of its file.
pub(super) const PROGRAM: &str = "/proc/self/exe";

/// Fact on the build of this program: it serves the drives in each guest, so its instructions are part of every figure.
pub(super) const BUILD: &str = "build of stackrace";

/// The build of this program, as it is on record.
pub(super) fn of_this() -> String {
    hash_of(Path::new(PROGRAM))[..16].to_owned()
}

/// Refuses to continue with another build of this program than the run was begun with, as with another image: rounds of
/// both would be compared as if one program had made them.
///
/// # Errors
/// It is another one.
pub(super) fn check(study: &Study, known: &[Fact], build: &str) -> Result<(), Failure> {
    // Runs from before this was recorded go on.
    let begun = known.iter().find(|fact| fact.name == BUILD);
    if begun.is_none_or(|begun| begun.value == build) {
        return Ok(());
    }
    let text = "the run was begun by another build of stackrace, which took other instructions to serve the drives: \
                the log would not go on as it began";
    Err(Failure::refused(text).next(format!(
        "resume it with the program that began it, or begin anew: {}",
        study::command("run", &study.name, &["--lab"])
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_run::prepare::study_file;

    #[test]
    fn a_run_goes_on_with_the_build_that_began_it_and_no_other() {
        let text = b"title = \"t\"\n[[stack]]\ntmpfs = { size = \"1 GiB\" }\n[[workload]]\nfiles = { count = 4 }\n\
                     [decide]\nrounds-at-most = 3\n";
        let study = study_file::parse("t.toml", text).unwrap();
        let known = [Fact::new(BUILD, "0123456789abcdef")];
        assert!(check(&study, &known, "0123456789abcdef").is_ok());
        assert!(check(&study, &[], "0123456789abcdef").is_ok());
        let refused = check(&study, &known, "fedcba9876543210").unwrap_err();
        assert!(
            refused.render().contains("another build of stackrace"),
            "{}",
            refused.render()
        );
    }
}
