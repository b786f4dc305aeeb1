//! What a load says of itself, as the real program.

use crate::support::{Ground, Mounted};
use stackrace_test_needs as needs;

/// Of a phase in which nothing was done: its time says nothing of the storage.
fn a_phase_that_did_nothing_has_its_error_and_no_figures() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    // Blocks of ext4 are never shared.
    let mounted = Mounted::ext4(&ground, "data", 32);
    let words = ["copy-file", "size=1MiB", "method=reflink"];
    let said = ground.stackrace(&[&["load", mounted.text()], &words[..]].concat());
    said.ended(5);
    assert!(said.out.contains("failed     "), "{}", said.out);
    assert!(said.out.contains("not supported"), "{}", said.out);
    assert!(!said.out.contains("B/s"), "{}", said.out);
}

fn whole_blocks_are_written_and_told() {
    let ground = Ground::new();
    ground.make_dir("data");
    let words = ["load", "data", "sequential", "mode=write", "size=10MB"];
    let said = ground.stackrace(&words);
    said.ended(0);
    assert!(
        said.out.contains("a new file of 9 MiB once"),
        "{}",
        said.out
    );
}

fn no_video_format_is_judged_by_less_than_a_second() {
    let ground = Ground::new();
    ground.make_dir("data");
    let said = ground.stackrace(&["load", "data", "stream-video", "size=8MiB", "loops=1"]);
    said.ended(0);
    let all: Vec<&str> = said.out.split_whitespace().collect();
    let all = all.join(" ");
    assert!(all.contains("no video format is judged"), "{all}");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_phase_that_did_nothing_has_its_error_and_no_figures,
        whole_blocks_are_written_and_told,
        no_video_format_is_judged_by_less_than_a_second,
    ]
}
