//! `stackrace man`: the manual pages, one for each command, made from what `--help` is made from.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use super::args;
use super::failure::Failure;
use super::output;
use super::terminal::{print_data, say};

/// Writes all pages to a directory that exists, or prints the first one.
///
/// # Errors
/// The directory does not exist, or a page cannot be written there.
pub(super) fn exec(directory: Option<&Path>) -> Result<u8, Failure> {
    let pages = pages(&args::whole())?;
    let Some(directory) = directory else {
        // `stackrace man | man -l -` reads it without an installation.
        let (_, page) = &pages[0];
        print_data(page);
        return Ok(0);
    };
    // Only a directory that exists: a missing one could be a misspelt name.
    if !directory.is_dir() {
        return Err(output::no_directory(directory));
    }
    for (name, page) in &pages {
        output::write(&directory.join(name), page)?;
    }
    say(&format!("{} pages in {}\n", pages.len(), directory.shown()));
    Ok(0)
}

/// File name and text of each page, the program's own first.
fn pages(program: &Command) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut program = program.clone();
    // A page names whole commands only once clap has put them together.
    program.build();
    let mut all = Vec::new();
    collect(&program, "stackrace", &mut all)?;
    Ok(all)
}

fn collect(command: &Command, name: &str, all: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let mut page = Vec::new();
    // Pages of one version are the same wherever they are made: no date.
    Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("stackrace {}", env!("CARGO_PKG_VERSION")))
        .manual("stackrace")
        .render(&mut page)
        .map_err(|error| {
            Failure::internal(format!(
                "the page {name}: {error}",
                error = error.in_words()
            ))
        })?;
    all.push((format!("{name}.1"), page));
    let shown = |below: &&Command| !below.is_hide_set() && below.get_name() != "help";
    for below in command.get_subcommands().filter(shown) {
        collect(below, &format!("{name}-{}", below.get_name()), all)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn every_command_has_a_page_of_its_own() {
        let pages = pages(&args::whole()).unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "stackrace.1");
        let shown = args::command();
        for command in shown.get_subcommands().filter(|it| !it.is_hide_set()) {
            let name = format!("stackrace-{}.1", command.get_name());
            assert!(names.contains(&name.as_str()), "{name}");
        }
        // Those of commands below commands, too; none of what is hidden.
        assert!(names.contains(&"stackrace-runs-prune.1"), "{names:?}");
        assert!(
            !names.iter().any(|name| name.contains("agent")),
            "{names:?}"
        );
    }

    #[test]
    fn a_page_names_the_whole_command_and_its_options() {
        let pages = pages(&args::whole()).unwrap();
        let (_, page) = pages
            .iter()
            .find(|(name, _)| name == "stackrace-compare.1")
            .unwrap();
        let page = String::from_utf8_lossy(page);
        for part in [".TH STACKRACE-COMPARE 1", ".SH OPTIONS", "margin"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
