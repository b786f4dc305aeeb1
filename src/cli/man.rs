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
    let page = page(command, name).map_err(|error| {
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

/// One page. Its synopsis is the usage that `--help` shows: that of the library leaves out values and what is repeated.
fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // Pages of one version are the same wherever they are made: no date.
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("stackrace {}", env!("CARGO_PKG_VERSION")))
        .manual("stackrace");
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    let usage = command.clone().help_template("{usage}").render_help();
    let usage = usage.to_string().replace('-', "\\-");
    text.extend_from_slice(format!(".SH SYNOPSIS\n{}\n", usage.trim_end()).as_bytes());
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    let mut below = command.get_subcommands();
    if below.any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    if command.get_after_long_help().is_some() || command.get_after_help().is_some() {
        man.render_extra_section(&mut text)?;
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut text)?;
    }
    Ok(text)
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
    fn the_synopsis_of_each_page_is_the_usage_of_its_help() {
        let pages = pages(&args::whole()).unwrap();
        let synopsis = |name: &str| {
            let (_, page) = pages.iter().find(|(page, _)| page == name).unwrap();
            let page = String::from_utf8_lossy(page).into_owned();
            let (_, rest) = page.split_once(".SH SYNOPSIS\n").unwrap();
            let line = rest.lines().next().unwrap();
            line.replace("\\-", "-")
        };
        let compare = "stackrace compare [OPTIONS] <DIR>... [-- <COMMAND>...]";
        assert_eq!(synopsis("stackrace-compare.1"), compare);
        let prune = "stackrace runs prune [OPTIONS] --keep <N>";
        assert_eq!(synopsis("stackrace-runs-prune.1"), prune);
        let load = "stackrace load [OPTIONS] <PLACE> <WORKLOAD> [NAME=VALUE]...";
        assert_eq!(synopsis("stackrace-load.1"), load);
        assert_eq!(
            synopsis("stackrace-lab.1"),
            "stackrace lab [OPTIONS] <COMMAND>"
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
