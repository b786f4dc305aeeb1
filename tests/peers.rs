//! Whether the published comparison with other tools is the one that was measured.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test that cannot read the page has failed, starts the bench, and says when it is skipped"
)]

use std::path::Path;
use std::process::Command;

/// What `bench/peers` prints with these options; nothing where there is no Python.
fn printed(options: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = Command::new("python3")
        .arg("bench/peers")
        .args(options)
        .current_dir(root)
        .output();
    let Ok(ran) = ran else {
        println!("skipped: no python3");
        return None;
    };
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "bench/peers {options:?}: {errors}");
    Some(String::from_utf8(ran.stdout).unwrap())
}

#[test]
fn the_page_shows_the_figures_that_are_kept() {
    let kept = ["--from", "bench/results/peers.json", "--markdown"];
    let Some(section) = printed(&kept) else {
        return;
    };
    let page = std::fs::read_to_string("docs/performance.md").unwrap();
    assert!(
        page.contains(section.trim()),
        "docs/performance.md is not what bench/results/peers.json says: \
         run bench/peers --from bench/results/peers.json --publish"
    );
}

#[test]
fn every_part_has_command_lines_without_measuring() {
    let Some(commands) = printed(&["--commands"]) else {
        return;
    };
    for part in [
        "cached", "uring", "zram", "files", "data", "start", "memory", "layout",
    ] {
        assert!(
            commands.contains(&format!("# {part}: ")),
            "{part} is not there"
        );
    }
}
