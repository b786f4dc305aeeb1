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

fn what_works_on_bare_devices_alone_is_refused_before_anything_is_made() {
    let ground = Ground::new();
    ground.make_dir("data");
    for words in [
        ["mend-pool", "topology=mirror"],
        ["migrate-pool", "files=10"],
    ] {
        let said = ground.stackrace(&[&["load", "data"], &words[..]].concat());
        said.ended(3).err_has("works on bare devices");
        said.err_has("nothing was changed");
    }
}

fn what_exists_is_no_file_of_the_workloads_and_few_operations_have_no_percentile() {
    let ground = Ground::new();
    let path = ground.write("some", "stackrace, 16 B\n".repeat(4096));
    let path = path.to_str().unwrap();
    for (workload, words) in [
        ("random", "random reads of 4 KiB in the first 64 KiB"),
        ("sequential", "read the first 64 KiB once"),
    ] {
        let said = ground.stackrace(&["load", path, workload, "mode=read", "block-size=4KiB"]);
        said.ended(0);
        assert!(said.out.starts_with(words), "{}", said.out);
        let row = said.out.lines().find(|line| line.starts_with("read   "));
        let row = row.unwrap();
        assert_eq!(row.matches(" – ").count(), 2, "p99 and p99.9: {row}");
    }
}

fn a_search_that_finds_no_rate_says_what_to_change() {
    let ground = Ground::new();
    ground.make_dir("data");
    let words = "find-rate mode=read size=1MiB time=400ms step=20ms direct=false";
    let words: Vec<&str> = words.split(' ').collect();
    let said = ground.stackrace(&[&["load", "data"], &words[..], &["bound=p50 <= 1 ns"]].concat());
    said.ended(5).err_has("next: raise the bound");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_phase_that_did_nothing_has_its_error_and_no_figures,
        a_search_that_finds_no_rate_says_what_to_change,
        what_exists_is_no_file_of_the_workloads_and_few_operations_have_no_percentile,
        what_works_on_bare_devices_alone_is_refused_before_anything_is_made,
        whole_blocks_are_written_and_told,
        no_video_format_is_judged_by_less_than_a_second,
    ]
}
