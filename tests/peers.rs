//! Whether the published comparison with other tools is the one that was measured.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot read the page has failed, and starts the bench"
)]

use std::path::Path;
use std::process::Command;

use stackrace_test_needs as needs;

/// What `bench/peers` prints with these options. Skips the test where there is no Python.
fn printed(options: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = Command::new("python3")
        .arg("bench/peers")
        .args(options)
        .current_dir(root)
        .output();
    let Ok(ran) = ran else {
        needs::skip("needs python3");
    };
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "bench/peers {options:?}: {errors}");
    String::from_utf8(ran.stdout).unwrap()
}

fn the_page_shows_the_figures_that_are_kept() {
    let kept = ["--from", "bench/results/peers.json", "--markdown"];
    let section = printed(&kept);
    let page = std::fs::read_to_string("docs/performance.md").unwrap();
    assert!(
        page.contains(section.trim()),
        "docs/performance.md is not what bench/results/peers.json says: \
         run bench/peers --from bench/results/peers.json --publish"
    );
}

fn every_part_has_command_lines_without_measuring() {
    let commands = printed(&["--commands"]);
    for part in [
        "cached", "uring", "zram", "files", "data", "start", "memory", "layout",
    ] {
        assert!(
            commands.contains(&format!("# {part}: ")),
            "{part} is not there"
        );
    }
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        the_page_shows_the_figures_that_are_kept,
        every_part_has_command_lines_without_measuring,
    ]
}
