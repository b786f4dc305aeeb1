//! How a command names a study.

use std::path::Path;

use super::shipped::SHIPPED;
use stackrace_base::event::again;

/// A command on the study of this name, as it works when it is typed: `stackrace run four-drives --lab`.
pub fn command(verb: &str, name: &str, options: &[&str]) -> String {
    again(&[&[verb, word(name)], options].concat())
}

/// The word that means this study: its file, or the name of one that ships, which has no file here.
fn word(name: &str) -> &str {
    let mut all = SHIPPED.iter().map(|(shipped, _)| *shipped);
    let shipped = all.find(|shipped| format!("{shipped}.toml") == name);
    // A file comes before a study of its name that ships.
    shipped
        .filter(|_| !Path::new(name).is_file())
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_a_study_that_ships_by_its_name_and_a_file_by_its_path() {
        let of = |name| command("run", name, &["--lab"]);
        assert_eq!(of("four-drives.toml"), "stackrace run four-drives --lab");
        assert_eq!(of("mine.toml"), "stackrace run mine.toml --lab");
        assert_eq!(of("my own.toml"), "stackrace run 'my own.toml' --lab");
        assert_eq!(of("dir/demo.toml"), "stackrace run dir/demo.toml --lab");
    }
}
