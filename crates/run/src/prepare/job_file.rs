//! Job files of fio: read, with the variables of the environment that they name.

use stackrace_base::unit::{InWords, ShownPath};
use std::ffi::OsString;
use std::path::Path;

use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::Failure;
use stackrace_load::programs::fio::JOB_MAX;

/// A variable of the environment, by its name.
pub type Variables<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// The text of a job file, as it will be kept: what its `${NAME}` stand for is written in their place, because
/// another machine, or a later day, has another environment.
///
/// # Errors
/// It cannot be read, or is no text.
pub fn read(path: &Path, variable: &Variables<'_>) -> Result<String, Failure> {
    text_of(path, variable).map_err(|(what, next)| Failure::refused(what).next(next))
}

/// Reads the text as [`read`] does; errors are what is wrong and what to do.
pub fn text_of(path: &Path, variable: &Variables<'_>) -> Result<String, (String, String)> {
    let refused = |why: &dyn std::fmt::Display| {
        let what = format!("cannot read the job file {}: {why}", path.shown());
        (what, "name a job file of fio".to_owned())
    };
    let bytes = ByteLimit::new(JOB_MAX as u64).read(path);
    let bytes = bytes.map_err(|error| refused(&error.in_words()))?;
    let text = String::from_utf8(bytes).map_err(|error| refused(&error))?;
    Ok(expanded(&text, variable))
}

/// A job with the values of the variables that it names; those that there are not stay, and are refused.
fn expanded(text: &str, variable: &Variables<'_>) -> String {
    let mut whole = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else {
                break;
            };
            whole.push_str(before);
            // A value of several lines would be more options than this one.
            let value = variable(name).and_then(|value| value.into_string().ok());
            match value.filter(|value| !value.contains('\n')) {
                Some(value) => whole.push_str(&value),
                None => whole.push_str(&format!("${{{name}}}")),
            }
            rest = behind;
        }
        whole.push_str(rest);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_there_are_become_their_values() {
        let variable = |name: &str| match name {
            "SIZE" => Some("4m".into()),
            "LINES" => Some("a\nfilename=/dev/sda".into()),
            _ => None,
        };
        let text = "[x]\nsize=${SIZE} bs=${BS}\nname=${LINES}\nrw=${\n";
        let expected = "[x]\nsize=4m bs=${BS}\nname=${LINES}\nrw=${\n";
        assert_eq!(expanded(text, &variable), expected);
    }
}
