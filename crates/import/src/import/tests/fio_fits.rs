//! What fio says twice has to fit, in its normal output as in its JSON; and what it says against its own figures
//! comes with them.

use super::*;

/// A text with one part of it exchanged.
#[track_caller]
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not in the text");
    text.replacen(from, to, 1)
}

/// A text to be changed.
#[derive(Clone, Copy)]
enum Which {
    Sequential,
    Mixed,
    Grouped,
    Queued,
}

/// Statements of a text, and what contradicts another one in their place.
const WRONG: &[(Which, &str, &str)] = &[
    // The same rate in powers of 1024 and of 1000.
    (
        Which::Sequential,
        "BW=1365MiB/s (1432MB/s)",
        "BW=1365MB/s (1432MiB/s)",
    ),
    (
        Which::Sequential,
        "BW=1365MiB/s (1432MB/s)",
        "BW=1365MiB/s (1365MB/s)",
    ),
    (
        Which::Sequential,
        "BW=1365MiB/s (1432MB/s)",
        "BW=1432MiB/s (1432MB/s)",
    ),
    (
        Which::Sequential,
        "BW=1365MiB/s (1432MB/s)",
        "BW=1365MiB/s (1432MiB/s)",
    ),
    (
        Which::Sequential,
        "BW=1365MiB/s (1432MB/s)",
        "BW=1302MiB/s (1365MB/s)",
    ),
    (
        Which::Mixed,
        "BW=19.1MiB/s (20.0MB/s)",
        "BW=19.1MiB/s (19.1MB/s)",
    ),
    // Times of other units.
    (
        Which::Mixed,
        "     lat (usec): min=55",
        "     lat (nsec): min=55",
    ),
    (
        Which::Mixed,
        "     lat (usec): min=55",
        "     lat (msec): min=55",
    ),
    (
        Which::Mixed,
        "    clat (usec): min=55",
        "    clat (msec): min=55",
    ),
    (
        Which::Mixed,
        "    clat (usec): min=55",
        "    clat (nsec): min=55",
    ),
    (Which::Mixed, "avg=188.57", "avg=88.57"),
    (
        Which::Mixed,
        "     lat (usec): min=55, max=3657",
        "     lat (usec): min=55, max=2657",
    ),
    (Which::Queued, "     lat (usec)", "     lat (msec)"),
    (Which::Queued, "avg=226.25", "avg=326.25"),
    (Which::Queued, "    slat (usec)", "    slat (msec)"),
    // Percentiles beyond the largest, and of another unit.
    (Which::Mixed, "99.99th=[ 3654]", "99.99th=[ 9654]"),
    (
        Which::Mixed,
        "clat percentiles (usec)",
        "clat percentiles (msec)",
    ),
    (
        Which::Mixed,
        "clat percentiles (usec)",
        "clat percentiles (nsec)",
    ),
    (
        Which::Grouped,
        "sync percentiles (usec)",
        "sync percentiles (msec)",
    ),
    // The summary of the group.
    (
        Which::Sequential,
        "READ: bw=1365MiB/s (1432MB/s)",
        "READ: bw=136MiB/s (143MB/s)",
    ),
    (
        Which::Sequential,
        "1365MiB/s-1365MiB/s",
        "136MiB/s-136MiB/s",
    ),
    (
        Which::Sequential,
        "io=1024MiB (1074MB)",
        "io=102MiB (107MB)",
    ),
    (Which::Sequential, "run=750-750msec", "run=7500-7500msec"),
    (Which::Sequential, "   READ: bw=", "  WRITE: bw="),
    (Which::Mixed, "  WRITE: bw=", "   READ: bw="),
];

#[test]
fn normal_output_that_contradicts_itself_is_refused_at_the_line() {
    let sequential = golden("fio/fio-3.39_seqread_normal.txt");
    let mixed = golden("fio/fio-3.33_unified-both_normal.txt");
    let grouped = golden("fio/fio-3.33_group_fsync_normal.txt");
    let queued = golden("fio/fio-3.39_randwrite_verify_normal.txt");
    for (which, from, to) in WRONG {
        let text = match which {
            Which::Sequential => &sequential,
            Which::Mixed => &mixed,
            Which::Grouped => &grouped,
            Which::Queued => &queued,
        };
        let text = changed(text, from, to);
        let at = text.find(to).unwrap();
        let line = text[..at].matches('\n').count() + 1;
        let why = refused(&text);
        assert!(
            why.contradiction || why.next.contains("expected"),
            "{to}: {why}"
        );
        // Percentiles of another unit show in their rows.
        assert!(
            (line..=line + 4).contains(&why.line),
            "{to}: line {line}: {why}"
        );
    }
}

/// A whole summary whose figures agree with each other, and not with the jobs above it.
#[test]
fn a_group_whose_rate_is_not_that_of_its_jobs_is_refused() {
    let text = golden("fio/fio-3.39_seqread_normal.txt");
    let at = text.find("   READ: bw=").unwrap();
    let end = at + text[at..].find('\n').unwrap();
    let tenth = "   READ: bw=136MiB/s (143MB/s), 136MiB/s-136MiB/s (143MB/s-143MB/s), io=102MiB (107MB), run=750-750msec";
    let why = refused(&format!("{}{tenth}{}", &text[..at], &text[end..]));
    assert!(why.what.contains("the jobs of the group"), "{why}");
}

#[test]
fn only_versions_that_drop_digits_are_said_to_drop_them() {
    let new = golden("fio/fio-3.33_slower-than-one_normal.txt");
    let wrong = changed(&new, "IOPS=0", "IOPS=9");
    assert!(refused(&wrong).what.contains("contradicts IOPS=9"));
    let old = golden("fio/fio-3.25_10.98k_normal.txt");
    assert!(read(&old, None).is_ok());
    for (version, iops) in [
        ("fio-3.33", "IOPS=10.0k"),
        ("fio-3.26", "IOPS=10.0k"),
        ("fio-3.33", "IOPS=109k"),
        ("fio-3.25", "IOPS=109k"),
        ("fio-3.25", "IOPS=9.0k"),
        ("fio-3.25", "IOPS=1.0k"),
    ] {
        let text = changed(&old, "fio-3.25", version);
        let text = text.replace("IOPS=10.0k", iops);
        let why = refused(&text);
        assert!(why.what.contains(iops), "{version} {iops}: {why}");
        assert!(
            !why.to_string().contains("drop digits"),
            "{version} {iops}: {why}"
        );
    }
}

/// Nothing says which of the two is wrong: blocks may have other sizes than the job's.
#[test]
fn more_operations_than_the_bytes_allow_are_told_of() {
    let text = golden("fio/fio-3.39_seqread_normal.txt");
    let text = changed(&text, "IOPS=1365", "IOPS=13.7k");
    let text = changed(&text, "total=1024,", "total=10240,");
    let found = read(&text, None).unwrap();
    let told = |note: &String| note.contains("10240 operations of 1M");
    assert!(found[0].notes.iter().any(told), "{:?}", found[0].notes);
    let json = golden("fio/fio-3.33_bs-4k.json");
    let halved = json.replace("\"bs\" : \"4k\"", "\"bs\" : \"2k\"");
    let found = read(&halved, None).unwrap();
    let told = |note: &String| note.contains("operations of 2k are 2M");
    assert!(found[0].notes.iter().any(told), "{:?}", found[0].notes);
}

#[test]
fn json_that_contradicts_itself_is_refused() {
    let text = golden("fio/fio-3.33_bs-4k.json");
    let number = |name: &str| {
        let at = text.find(&format!("\"{name}\" : ")).unwrap();
        let line = text[at..].lines().next().unwrap();
        line.trim_end_matches(',').to_owned()
    };
    for (name, value) in [
        ("runtime", "0"),
        ("bw", "1"),
        ("bw_bytes", "1"),
        ("iops", "1.5"),
        ("99.990000", "999999999"),
    ] {
        let wrong = changed(&text, &number(name), &format!("\"{name}\" : {value}"));
        let why = refused(&wrong);
        assert!(!why.next.is_empty(), "{name}: {why}");
    }
    let clat = text.find("\"clat_ns\"").unwrap();
    let (head, tail) = text.split_at(clat);
    let mean = tail.find("\"mean\" : ").unwrap();
    let end = mean + tail[mean..].find(',').unwrap();
    // Above the largest of the whole, of which it is a part.
    let wrong = format!("{head}{}\"mean\" : 99.0{}", &tail[..mean], &tail[end..]);
    assert!(refused(&wrong).what.contains("contradict each other"));
}

#[test]
fn what_fio_says_against_its_figures_comes_with_them() {
    let has_note = |text: &str, part: &str| {
        let found = read(text, None).unwrap_or_else(|why| panic!("{part}: {why}"));
        let told = |note: &String| note.contains(part);
        assert!(
            found[0].notes.iter().any(told),
            "{part}: {:?}",
            found[0].notes
        );
    };
    let normal = golden("fio/fio-3.39_seqread_normal.txt");
    let issued = "short=0,0,0,0 dropped=0,0,0,0";
    has_note(
        &changed(&normal, issued, "short=5,0,0,0 dropped=0,0,0,0"),
        "5 read operation(s) moved less",
    );
    has_note(
        &changed(&normal, issued, "short=0,0,0,0 dropped=7,0,0,0"),
        "7 read operation(s) were dropped",
    );
    let summary = "\nRun status group";
    for said in [
        "  steadystate  : attained=no, bw=1365MiB/s (1432MB/s), iops=1365, iops mean dev=12.345%",
        "  errors    : total=3, first_error=5/<Input/output error>",
    ] {
        let text = changed(&normal, summary, &format!("{said}\n{summary}"));
        let part = match said.contains("attained") {
            true => "did not reach the steady state",
            false => "total=3",
        };
        has_note(&text, part);
    }
    for said in [
        "verify: bad header rand_seed 123, wanted 456 at file x.0.0 offset 0, length 4096",
        "verify: bad magic header 0, wanted acca at file x.0.0 offset 0, length 4096",
        "crc32c: verify failed at file x.0.0 offset 0, length 4096",
        "fio: bad pattern block offset 0",
        "fio: pid=123, err=5/file:io_u.c:1845, func=io_u error, error=Input/output error",
        "fio: io_u error on file x.0.0: Input/output error: read offset=0, buflen=4096",
    ] {
        has_note(&format!("{said}\n{normal}"), &said[..30]);
        let json = golden("fio/fio-3.33_bs-4k.json");
        has_note(&format!("{said}\n{json}"), &said[..30]);
    }
    let json = golden("fio/fio-3.33_bs-4k.json");
    has_note(
        &changed(&json, "\"short_ios\" : 0", "\"short_ios\" : 4"),
        "4 read operation(s)",
    );
    has_note(
        &changed(&json, "\"drop_ios\" : 0", "\"drop_ios\" : 4"),
        "were dropped",
    );
    has_note(
        &changed(
            &json,
            "\"groupid\" : 0,",
            "\"groupid\" : 0, \"total_err\" : 3,",
        ),
        "3 error(s)",
    );
    has_note(
        &changed(
            &json,
            "\"groupid\" : 0,",
            "\"groupid\" : 0, \"steadystate\" : {\"ss\" : \"iops:0.3%\", \"attained\" : 0},",
        ),
        "did not reach the steady state",
    );
}

/// A report with few digits too: it has the process, or the time, of the one before it.
#[test]
fn a_report_that_was_pasted_twice_is_one() {
    for name in [
        "fio-3.39_null_randread_gtodreduce.txt",
        "fio-3.39_seqread_normal.txt",
        "fio-3.33_slower-than-one_normal.txt",
        "fio-3.33_bs-4k.json",
        "fio-3.33_two_jobs.json",
    ] {
        let text = golden(&format!("fio/{name}"));
        let once = read(&text, None).unwrap();
        let again = format!("first:\n{text}\nand the same again:\n{text}");
        let found = read(&again, None).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(found.len(), once.len(), "{name}");
        let told = |note: &String| note.contains("a copy is no repetition");
        assert!(
            found[0].notes.iter().any(told),
            "{name}: {:?}",
            found[0].notes
        );
    }
}
