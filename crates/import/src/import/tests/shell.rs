//! Results of other command lines, or behind what changed the machine, are no repetitions.

use super::*;
use stackrace_base::printed::{Design, ImportSource};

fn report(seconds: &str) -> String {
    format!(
        "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, {seconds} s, {:.0} MB/s\n",
        1_073.741_824 / seconds.parse::<f64>().unwrap()
    )
}

/// The names of the workloads of a text.
fn names(text: &str) -> Vec<String> {
    let source: ImportSource = source(None, "log.txt", text.to_owned(), None)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let design = Design::of(&[source], "2026-11-22T00:00:00Z");
    design.workloads.into_iter().map(|head| head.name).collect()
}

/// Each command with a report below it.
fn session(commands: &[&str]) -> String {
    let mut text = String::new();
    for (at, command) in commands.iter().enumerate() {
        text.push_str(command);
        text.push('\n');
        if command.contains("dd ") {
            text.push_str(&report(&format!("{}.5123", at + 2)));
        }
    }
    text
}

const DD: &str = "# dd if=/dev/zero of=/t bs=1M count=1024";

#[test]
fn what_changes_the_machine_parts_the_results() {
    for (one, other) in [
        (
            "# zfs set sync=always tank/a",
            "# zfs set sync=disabled tank/a",
        ),
        ("# hdparm -W0 /dev/sda", "# hdparm -W1 /dev/sda"),
        (
            "# mount -o sync /dev/vdb1 /mnt",
            "# mount -o remount,async /mnt",
        ),
        (
            "# sysctl -w vm.dirty_ratio=5",
            "# sysctl -w vm.dirty_ratio=50",
        ),
        (
            "# echo none > /sys/block/a/queue/scheduler",
            "# echo bfq > /sys/block/a/queue/scheduler",
        ),
    ] {
        let found = names(&session(&[one, DD, other, DD]));
        assert_eq!(found.len(), 2, "{other}: {found:?}");
        assert!(found[1].contains(&other[2..]), "{found:?}");
        // The first state again is the first work again; what is mounted anew is taken for something new.
        let again = if one.contains("mount") { 3 } else { 2 };
        let back = session(&[one, DD, other, DD, one, DD]);
        assert!(names(&back).len() <= again, "{one}");
    }
}

#[test]
fn what_changes_nothing_parts_no_results() {
    for between in [
        "# sync",
        "$ sleep 10",
        "$ date",
        "$ rm /t",
        "$ ls -l /t",
        "# a second time",
        "$ df -h",
    ] {
        let found = names(&session(&[DD, between, DD, between, DD]));
        assert_eq!(found, ["dd write 1G in blocks of 1M"], "{between}");
    }
    let mounted = session(&[
        "# mount /dev/a /mnt",
        DD,
        "# umount /mnt",
        "# mount /dev/a /mnt",
        DD,
    ]);
    assert_eq!(names(&mounted).len(), 1);
}

#[test]
fn results_of_a_loop_over_what_the_shell_fills_in_are_not_pooled() {
    let reports = [report("2.5123"), report("20.123")].concat();
    for command in [
        "$ for f in direct dsync; do dd if=/dev/zero of=t bs=1M count=1024 oflag=$f; done",
        "$ for d in /mnt/ssd /mnt/hdd; do dd if=/dev/zero of=$d/t bs=1M count=1024; done",
        "$ for d in a b; do\n> dd if=/dev/zero of=$d bs=1M count=1024\n> done",
    ] {
        let found = names(&format!("{command}\n{reports}"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].ends_with("result=1 of 2"), "{found:?}");
    }
    for command in [
        "$ for i in 1 2; do dd if=/dev/zero of=t bs=1M count=1024; done",
        "$ for i in $(seq 2); do dd if=/dev/zero of=t$i bs=1M count=1024; done",
    ] {
        assert_eq!(
            names(&format!("{command}\n{reports}")).len(),
            1,
            "{command}"
        );
    }
    let set = [
        "$ O=oflag=direct",
        "$ dd if=/dev/zero of=t bs=1M count=1024 $O",
        "$ O=",
        "$ dd if=/dev/zero of=t bs=1M count=1024 $O",
    ];
    assert_eq!(names(&session(&set)).len(), 2);
}

#[test]
fn dd_elsewhere_is_other_work() {
    for other in ["ssh beta", "chroot /srv", "docker exec box"] {
        let command = DD.replace("dd if", &format!("{other} dd if"));
        assert_eq!(names(&session(&[DD, &command])).len(), 2, "{other}");
    }
}

#[test]
fn results_of_other_command_lines_are_told_apart_by_the_words_that_differ() {
    let text = golden("fio/fio-3.39_seqread_normal.txt");
    // Every rate a tenth, in ten times the time.
    let slow = text
        .replace(
            "IOPS=1365, BW=1365MiB/s (1432MB/s)(1024MiB/750msec)",
            "IOPS=136, BW=137MiB/s (143MB/s)(1024MiB/7500msec)",
        )
        .replace(
            "bw=1365MiB/s (1432MB/s), 1365MiB/s-1365MiB/s (1432MB/s-1432MB/s)",
            "bw=137MiB/s (143MB/s), 137MiB/s-137MiB/s (143MB/s-143MB/s)",
        )
        .replace("run=750-750msec", "run=7500-7500msec");
    let of = |one: &str, other: &str| {
        names(&format!(
            "$ fio --rw=read --bs=1M {one}\n{text}\n$ fio --rw=read --bs=1M {other}\n{slow}"
        ))
    };
    assert_eq!(
        of("--direct=0", "--direct=1"),
        ["fio read 1M, direct=0", "fio read 1M, direct=1"]
    );
    let same = of("--direct=1 --output=a", "--direct=1 --output=b");
    assert_eq!(same, ["fio read 1M"]);
}

/// The names of the workloads of several files of one configuration.
fn names_of_files(texts: &[String]) -> Vec<String> {
    let sources = texts.iter().enumerate().map(|(at, text)| {
        let file = format!("{at}.txt");
        source(Some("a".to_owned()), &file, text.clone(), None)
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    });
    let sources: Vec<ImportSource> = sources.collect();
    let design = Design::of(&sources, "2026-11-22T00:00:00Z");
    design.workloads.into_iter().map(|head| head.name).collect()
}

#[test]
fn a_command_line_in_another_file_is_other_work_as_in_the_same_one() {
    for (file, command, other) in [
        (
            "fio/fio-3.39_seqread_normal.txt",
            "fio --name=seqr --rw=read",
            "--direct=1",
        ),
        (
            "fio/fio-3.39_seqread_normal.txt",
            "fio --name=seqr --rw=read",
            "--rate=10m",
        ),
        ("ioping/ioping-1.3_seek.txt", "ioping -c 10 /srv/test", "-D"),
    ] {
        let text = |command: &str| format!("$ {command}\n{}", golden(file));
        let changed = format!("{command} {other}");
        let found = names_of_files(&[text(command), text(&changed)]);
        let word = other.trim_start_matches("--");
        assert_eq!(found.len(), 2, "{file}: {found:?}");
        assert!(found.iter().any(|name| name.contains(word)), "{found:?}");
        // What does not say how it was run is no repetition of what does.
        if !file.starts_with("fio") {
            continue;
        }
        let found = names_of_files(&[text(&changed), golden(file)]);
        assert_eq!(found.len(), 2, "{file}: {found:?}");
        assert!(
            found.iter().any(|name| name.contains("not told")),
            "{found:?}"
        );
    }
}

#[test]
fn a_command_in_the_background_is_noted() {
    let text = session(&["$ dd if=/dev/zero of=/t bs=1M count=1024 &"]);
    let jobs =
        text.replacen('\n', "\n[1] 1234\n", 1) + "[1]+  Done                    dd if=/dev/zero\n";
    for text in [text, jobs] {
        let results = read(&text, None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(results[0].workload, "dd write 1G in blocks of 1M");
        let noted = results[0]
            .notes
            .iter()
            .any(|note| note.contains("in the background"));
        assert!(noted, "{:?}", results[0].notes);
    }
}
