//! Where configurations are tried, as a factor of the study.
//!
//! Two names of factors have a meaning: the levels of `system` are systems of the lab, those of
//! `host` machines over SSH. Everything else of a factor holds for them as well: a comparison, a
//! `when`, an `[[exclude]]`, a label.

use std::path::Path;

use super::design::{Factor, Study};
use super::error::StudyError;

use stackrace_base::setting::{Refusal, Value};

/// The factor whose levels are systems of the lab.
pub const SYSTEM: &str = "system";
/// The factor whose levels are machines over SSH.
pub const HOST: &str = "host";

/// Returns true if a factor of this name says where a configuration is tried.
pub(super) fn is_place(name: &str) -> bool {
    [SYSTEM, HOST].contains(&name)
}

/// Refuses levels that are no places.
pub(super) fn check(factors: &[Factor], refusals: &mut Vec<Refusal>) {
    let mut places = factors.iter().filter(|factor| is_place(&factor.name));
    // Most studies run on one machine.
    let Some(first) = places.next() else { return };
    for level in &first.levels {
        if !matches!(level.value, Value::Text(_)) {
            refusals.push(Refusal::at(
                &level.span,
                format!("a {} is named by a text", first.name),
                "write it like \"debian-13\" (a system of the lab) or \"root@host\"",
            ));
        }
    }
    if let Some(second) = places.next() {
        refusals.push(Refusal::at(
            &second.span,
            "a configuration is tried on a system of the lab or on a host, not on both",
            format!("take {} or {} out", first.name, second.name),
        ));
    }
}

impl Study {
    /// The factor that says where configurations are tried; `None` if all are tried at one place.
    pub fn places(&self) -> Option<&Factor> {
        self.factors.iter().find(|factor| is_place(&factor.name))
    }

    /// The level of that factor in a configuration.
    pub fn place_of(&self, configuration: usize) -> Option<&str> {
        let factor = self.factors.iter().position(|f| is_place(&f.name))?;
        Some(&self.configurations.get(configuration)?.levels[factor])
    }

    /// Its file's name, without directories.
    pub fn file_name(&self) -> String {
        let name = Path::new(&self.name).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// A refusal of something in its text, shown at its place there.
    pub fn refusal(&self, refusal: Refusal) -> StudyError {
        let (file, text) = (self.name.as_str().into(), self.text.as_str().into());
        StudyError::new(&file, &text, refusal, Vec::new())
    }
}
