//! Reports of dd as people have them.

use super::*;
use crate::import::tests::{golden, has, refused};

fn names(text: &str) -> Vec<String> {
    let results = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    results.into_iter().map(|result| result.workload).collect()
}

/// A report of 1 GiB in blocks of 1 MiB.
fn report(seconds: &str, rate: &str) -> String {
    format!(
        "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, {seconds} s, {rate}\n"
    )
}

#[test]
fn other_operands_are_other_work() {
    assert_eq!(
        names(&golden("dd/coreutils-8_flags.txt")),
        [
            "dd write 1G in blocks of 1M",
            "dd write 1G in blocks of 1M, conv=fdatasync",
            "dd write 1G in blocks of 1M, oflag=direct"
        ]
    );
    assert_eq!(
        names(&golden("dd/coreutils-8_opposite-a.txt")),
        [
            "dd write 1G in blocks of 1M, oflag=direct",
            "dd read 1G in blocks of 1M, iflag=direct"
        ]
    );
    let zfs = read(&golden("dd/coreutils-8_server-client.txt")).unwrap();
    let names: Vec<&str> = zfs.iter().map(|it| it.workload.as_str()).collect();
    assert_eq!(
        names,
        [
            "dd write 2000M in blocks of 1M",
            "dd read 2000M in blocks of 1M",
            "dd read 1721M in blocks of 1M"
        ]
    );
    assert!(
        zfs[2]
            .notes
            .iter()
            .any(|note| note.contains("1721 of the 2000")),
        "{:?}",
        zfs[2].notes
    );
}

#[test]
fn every_implementation_is_read() {
    for (file, seconds, rate) in [
        ("coreutils-5.2", 3.612_123, 283_489_792.0),
        ("coreutils-6_seconds", 84.3058, 1_804_599_296.0 / 84.3058),
        ("busybox-1.35", 0.817_983, 1_073_741_824.0 / 0.817_983),
        ("toybox-android", 3.006, 1_048_576_000.0 / 3.006),
        ("freebsd-13", 0.353_491, 3_037_536_639.0),
        ("coreutils-8_german", 0.009_137_92, 967_789.0 / 0.009_137_92),
        ("coreutils-9_french", 0.5, 2.0 * 1_073_741_824.0),
        ("coreutils-9_chinese", 0.5, 2.0 * 1_073_741_824.0),
        ("coreutils-9_japanese", 0.5, 2.0 * 1_073_741_824.0),
    ] {
        let results = read(&golden(&format!("dd/{file}.txt")));
        let results = results.unwrap_or_else(|error| panic!("{file}: {error}"));
        let result = results.last().unwrap();
        has(result, "elapsed", "s", seconds);
        has(result, "throughput", "B/s", rate);
    }
}

#[test]
fn a_language_that_is_not_known_is_refused_with_what_to_do() {
    let polish = "1024+0 przeczytanych recordów\n1024+0 zapisanych recordów\nskopiowane 1073741824 bajty (1,1 GB, 1,0 GiB), 0,5 s, 2,1 GB/s\n";
    let misread = refused(polish);
    assert!(misread.next.contains("LC_ALL=C"), "{misread}");
    assert_eq!(misread.line, 3);
}

#[test]
fn commands_belong_to_the_reports_after_them() {
    let (one, two) = (report("2", "537 MB/s"), report("4", "268 MB/s"));
    let write = "dd if=/dev/zero of=t bs=1M count=1024";
    let read = "dd if=t of=/dev/null bs=1M";
    let (w, r) = ("dd write 1G in blocks of 1M", "dd read 1G in blocks of 1M");
    assert_eq!(names(&format!("$ {write}; {read}\n{one}{two}")), [w, r]);
    assert_eq!(names(&format!("{write}\n{read}\n{one}{two}")), [w, r]);
    let looped = format!("$ for i in 1 2; do {read}; done\n{one}{two}");
    assert_eq!(names(&looped), [r, r]);
    let folded = format!("$ dd if=t \\\n    of=/dev/null bs=1M\n{one}");
    assert_eq!(names(&folded), [r]);
    // Two reports behind one command: whose is which is not said.
    let unsaid = format!("$ {write}\n{two}{one}");
    assert_eq!(names(&unsaid), ["dd 1G in blocks of 1M"; 2]);
}

/// One whose blocks or number of them are others is of another run.
#[test]
fn a_command_that_cannot_have_made_a_report_is_not_its() {
    let of = |command: &str| {
        let text = format!(
            "$ dd if=/dev/zero of=t {command}\n{}",
            report("4", "268 MB/s")
        );
        let [result] = read(&text).unwrap().try_into().unwrap();
        (result.workload, result.notes)
    };
    for other in ["bs=1k count=1024", "bs=1M count=10", "bs=4M"] {
        let (workload, notes) = of(other);
        assert_eq!(workload, "dd 1G in blocks of 1M", "{other}");
        assert!(notes[0].contains("other blocks"), "{other}: {notes:?}");
    }
    for own in [
        "bs=1M",
        "bs=1M count=1024",
        "ibs=4k obs=1M",
        "bs=1M count=1073741824 iflag=count_bytes",
    ] {
        let (workload, notes) = of(own);
        assert!(
            workload.starts_with("dd write 1G in blocks of 1M"),
            "{own}: {workload}"
        );
        assert!(notes.is_empty(), "{own}: {notes:?}");
    }
}

#[test]
fn blocks_below_a_kibibyte_are_those_of_the_command() {
    let text = "$ dd if=/dev/zero of=t bs=512 count=1000 oflag=dsync\n1000+0 records in\n1000+0 records out\n512000 bytes (512 kB, 500 KiB) copied, 1.1 s, 465 kB/s\n";
    let results = read(text).unwrap();
    assert_eq!(
        results[0].workload,
        "dd write 500k in blocks of 512B, oflag=dsync"
    );
    assert!(results[0].notes.is_empty(), "{results:?}");
}

#[test]
fn reports_of_one_command_under_way_are_one_result() {
    let text = "$ dd if=/dev/zero of=t bs=1M count=1024\n300+0 records in\n300+0 records out\n314572800 bytes (315 MB, 300 MiB) copied, 3.1 s, 101 MB/s\n"
        .to_owned()
        + &report("10", "107 MB/s");
    let results = read(&text).unwrap();
    assert_eq!(results.len(), 1);
    has(&results[0], "elapsed", "s", 10.0);
    assert!(results[0].notes[0].contains("under way"), "{results:?}");
}

/// Text that `kill -USR1` makes dd print, without the command: `at` has whole records and
/// seconds.
fn under_way(at: &[(u64, f64)]) -> String {
    let one = |(records, seconds): &(u64, f64)| {
        let bytes = records << 20;
        let rate = bytes as f64 / seconds / 1e6;
        format!(
            "{records}+0 records in\n{records}+0 records out\n{bytes} bytes copied, {seconds} s, {rate:.1} MB/s\n"
        )
    };
    at.iter().map(one).collect()
}

#[test]
fn reports_under_way_without_a_command_are_one_result_or_said_to_be_doubtful() {
    let one = read(&under_way(&[(311, 3.1), (633, 6.2), (1024, 10.0)])).unwrap();
    assert_eq!(one.len(), 1);
    has(&one[0], "elapsed", "s", 10.0);
    assert!(
        one[0]
            .notes
            .iter()
            .any(|note| note.starts_with("2 report(s)"))
    );
    // One after the other, each of them with its own reports.
    let two = under_way(&[(311, 3.1), (1024, 10.0), (299, 2.9), (1024, 9.8)]);
    let elapsed: Vec<f64> = read(&two)
        .unwrap()
        .iter()
        .map(|it| it.values[1].unwrap().value)
        .collect();
    assert_eq!(elapsed, [10.0, 9.8]);
    let commands = format!("$ dd if=t of=/dev/null bs=1M; dd of=t if=/dev/zero bs=1M\n{two}");
    assert_eq!(
        names(&commands),
        ["dd read 1G in blocks of 1M", "dd write 1G in blocks of 1M"]
    );
    // 256, 512 and 1024 may be what three commands asked for.
    let open = read(&under_way(&[(256, 3.1), (512, 6.2), (1024, 10.0)])).unwrap();
    assert_eq!(open.len(), 3);
    let doubtful = |it: &Imported| it.notes.iter().any(|note| note.contains("USR1"));
    assert_eq!(
        open.iter().map(doubtful).collect::<Vec<_>>(),
        [true, true, false]
    );
}

#[test]
fn progress_that_a_terminal_left_standing_is_no_result() {
    let progress = "536870912 bytes (537 MB, 512 MiB) copied, 5 s, 107 MB/s\n";
    let whole = report("10", "107 MB/s");
    assert_eq!(names(&format!("{progress}{whole}")).len(), 1);
    // A result whose records were cut off is no progress.
    let cut = progress.replace("5 s", "5.01 s");
    assert_eq!(refused(&format!("{cut}{whole}")).line, 1);
    assert_eq!(refused(&format!("{whole}{progress}")).line, 4);
}

#[test]
fn progress_of_a_bsd_is_no_result() {
    let progress = "  495976448 bytes (496 MB, 473 MiB) transferred 2.002s, 248 MB/s\n  1005584384 bytes (1006 MB, 959 MiB) transferred 4.004s, 251 MB/s\n";
    let end = "1000+0 records in\n1000+0 records out\n1048576000 bytes transferred in 4.172731 secs (251292479 bytes/sec)\n";
    let results = read(&format!("{progress}{end}")).unwrap();
    assert_eq!(results.len(), 1);
    has(&results[0], "elapsed", "s", 4.172_731);
    // Progress beyond the end is of another run.
    let beyond = progress.replace("4.004s", "4.9s");
    assert_eq!(refused(&format!("{beyond}{end}")).line, 2);
    assert_eq!(refused(progress).line, 1);
}

#[test]
fn lines_of_ioping_are_none_of_its_results() {
    let ioping = golden("ioping/ioping-1.3_latency.txt");
    let one = names(&(report("10", "107 MB/s") + &ioping));
    assert_eq!(one, ["dd 1G in blocks of 1M"]);
    assert_eq!(names(&(ioping + &report("10", "107 MB/s"))), one);
}

#[test]
fn a_run_that_moved_nothing_has_no_rate_and_says_so() {
    let text = "0+0 records in\n0+0 records out\n0 bytes copied, 0.000162378 s, 0.0 kB/s\n";
    let results = read(text).unwrap();
    assert!(results[0].notes[0].contains("no bytes"), "{results:?}");
}

#[test]
fn figures_that_are_none_are_refused() {
    let good = report("10", "107 MB/s");
    for (right, wrong) in [
        ("10 s", "nan s"),
        ("10 s", "inf s"),
        ("10 s", "-10 s"),
        ("10 s", "0 s"),
        ("10 s", "1,0,0 s"),
        ("107 MB/s", "Infinity B/s"),
        ("107 MB/s", "107 MiB/h"),
        ("1073741824 bytes", "1,073,741,824 bytes"),
        ("1024+0 records in", "1024+x records in"),
    ] {
        let text = good.replacen(right, wrong, 1);
        assert!(read(&text).is_err(), "{wrong}");
    }
    // A rate of 2²⁰ bytes where 10⁶ stand is another figure.
    assert!(read(&good.replace("107 MB/s", "120 MB/s")).is_err());
}

/// People copy the one line that has the rate.
#[test]
fn the_last_line_alone_is_a_result() {
    for (line, seconds) in [
        (
            "524288000 bytes (524 MB, 500 MiB) copied, 1.23457 s, 425 MB/s",
            1.23457,
        ),
        (
            "524288000 bytes (524 MB) copied, 1.23457 seconds, 425 MB/s",
            1.23457,
        ),
        (
            "524288000 bytes transferred in 1.234570 secs (424672558 bytes/sec)",
            1.23457,
        ),
    ] {
        let alone =
            crate::import::tests::read(line, None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(alone.len(), 1, "{line}");
        assert_eq!(alone[0].workload, "dd 500M");
        has(&alone[0], "elapsed", "s", seconds);
        assert!(
            alone[0].notes[0].contains("only the last line"),
            "{alone:?}"
        );
        let command = "$ dd if=/dev/zero of=t bs=1M count=500 oflag=direct\n";
        let [shown] = names(&format!("{command}{line}\n")).try_into().unwrap();
        assert_eq!(shown, "dd write 500M in blocks of 1M, oflag=direct");
        let other = command.replace("500", "50");
        assert_eq!(names(&format!("{other}{line}\n")), ["dd 500M"]);
    }
    // A round number of seconds is progress that a terminal left standing.
    assert_eq!(
        refused("524288000 bytes (524 MB, 500 MiB) copied, 5 s, 105 MB/s").line,
        1
    );
    let runs = [1.5, 1.6, 1.7]
        .map(|s| format!("524288000 bytes copied, {s} s, {:.0} MB/s\n", 524.288 / s));
    assert_eq!(names(&runs.concat()).len(), 3);
}

#[test]
fn a_run_that_was_too_short_for_a_rate_is_refused_with_the_cause() {
    for line in [
        "1024 bytes (1.0 kB, 1.0 KiB) copied, 0 s, Infinity B/s",
        "1024 bytes transferred in 0.000000 secs (inf bytes/sec)",
    ] {
        let text = format!("2+0 records in\n2+0 records out\n{line}\n");
        let why = refused(&text);
        assert!(why.what.contains("too short for a rate"), "{why}");
        assert!(why.next.contains("larger count="), "{why}");
        assert!(!why.next.contains("LC_ALL"), "{why}");
    }
}

#[test]
fn whole_records_have_the_same_bytes_each() {
    let text = "500+0 records in\n499+0 records out\n524288000 bytes (524 MB, 500 MiB) copied, 1.5 s, 350 MB/s\n";
    let why = refused(text);
    assert!(
        why.contradiction && why.what.contains("499 whole records"),
        "{why}"
    );
    let own = text
        .replace("524288000", "523239424")
        .replace("500 MiB", "499 MiB")
        .replace("524 MB", "523 MB")
        .replace("350", "349");
    assert_eq!(names(&own).len(), 1);
}

/// Languages, interruptions, progress and spellings in texts as people have them.
#[test]
fn forms_from_the_field_are_read() {
    let whole = |words: [&str; 3]| {
        let [taken, given, copied] = words;
        format!(
            "$ dd if=/dev/zero of=t bs=1M count=1024 conv=fdatasync\n1024+0 {taken}\n1024+0 {given}\n1073741824 {copied}, 9,52337 s, 113 MB/s\n"
        )
    };
    for words in [
        [
            "Datensätze ein",
            "Datensätze aus",
            "Bytes (1,1 GB, 1,0 GiB) kopiert",
        ],
        [
            "enregistrements lus",
            "enregistrements écrits",
            "octets (1,1 GB) copiés",
        ],
        [
            "записей получено",
            "записей отправлено",
            "байт (1,1 GB, 1,0 GiB) скопирован",
        ],
        [
            "registros leídos",
            "registros escritos",
            "bytes (1,1 GB, 1,0 GiB) copied",
        ],
        [
            "record dentro",
            "record fuori",
            "byte (1,1 GB, 1,0 GiB) copiati",
        ],
        [
            "records gelezen",
            "records geschreven",
            "bytes (1,1 GB, 1,0 GiB) gekopieerd",
        ],
    ] {
        let text = whole(words);
        let results = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        has(&results[0], "elapsed", "s", 9.523_37);
        assert_eq!(
            results[0].workload,
            "dd write 1G in blocks of 1M, conv=fdatasync"
        );
    }
    let stopped = "$ dd if=/dev/sda of=/dev/null bs=1M\n^C1200+0 records in\n1199+0 records out\n1257242624 bytes (1.3 GB, 1.2 GiB) copied, 6.1 s, 206 MB/s\n";
    let stopped = read(stopped).unwrap();
    assert!(stopped[0].notes[0].contains("stopped"), "{stopped:?}");
    let spelled = |block: &str| {
        let command =
            format!("root@pve:~# dd if=/dev/zero of=/tank/t bs={block} count=1k oflag=dsync\n");
        read(&(command + &report("35.2", "30.5 MB/s")))
            .unwrap()
            .remove(0)
    };
    assert_eq!(spelled("1M").workload, spelled("1048576").workload);
    assert_eq!(spelled("1M").settings, spelled("1024k").settings);
}
