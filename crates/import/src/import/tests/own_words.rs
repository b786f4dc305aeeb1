//! What a tool says of itself has to fit its figures, and names its work.

use super::*;

fn refusal(file: &str, from: &str, to: &str) -> ImportError {
    let text = golden(file);
    assert!(text.contains(from), "{file}: {from}");
    read(&text, None).unwrap_or_else(|error| panic!("{file}: {error}"));
    match read(&text.replacen(from, to, 1), None) {
        Err(refused) => refused,
        Ok(_) => panic!("{file}: {to} was taken"),
    }
}

#[test]
fn rates_of_an_old_sysbench_are_what_it_did_over_its_time() {
    for (from, to) in [
        (" 5216.65 Requests/sec", " 95216.65 Requests/sec"),
        ("(81.51Mb/sec)", "(652.08Mb/sec)"),
        ("  0.3834s", "  38.34s"),
    ] {
        let refused = refusal("sysbench/sysbench-0.4.12_rndrw.txt", from, to);
        assert!(refused.what.contains("over the time"), "{to}: {refused}");
    }
}

#[test]
fn rows_of_ior_move_the_amount_that_it_says() {
    for (from, to) in [
        ("3.90       178.42 ", "3.90       17.842 "),
        ("filesize  : 321 GiB", "filesize  : 32.1 GiB"),
    ] {
        let refused = refusal("ior/ior-3.3.0.txt", from, to);
        assert!(
            refused.what.contains("aggregate filesize"),
            "{to}: {refused}"
        );
    }
}

#[test]
fn the_sizes_in_the_head_of_ior_are_those_of_its_tables() {
    for (from, to, size) in [
        (
            "xfersize            : 262144 bytes",
            "xfersize            : 1 MiB",
            "xfersize",
        ),
        (
            "blocksize           : 1 MiB",
            "blocksize           : 2 MiB",
            "blocksize",
        ),
        ("1048576   262144 ", "1048576  1048576 ", "xfersize"),
    ] {
        let refused = refusal("ior/ior-4.0.0rc1.txt", from, to);
        assert!(refused.contradiction, "{refused}");
        assert!(refused.what.contains(size), "{to}: {refused}");
    }
}

#[test]
fn ior_run_otherwise_is_other_work() {
    let text = golden("ior/ior-3.3.0.txt");
    let command = |text: &str| {
        let result = read(text, None).unwrap().swap_remove(0);
        Fact::value_of(&result.settings, "command")
            .unwrap_or_default()
            .to_owned()
    };
    let own = command(&text);
    assert!(own.contains(" -e "), "{own}");
    assert_ne!(own, command(&text.replacen(" -e ", " ", 1)));
    assert!(!own.contains("-o"), "{own}");
}

#[test]
fn sizes_of_reads_and_writes_are_named_where_they_differ() {
    let text = golden("fio/fio-3.41_randrw_normal.txt");
    let announced = text.lines().find(|line| line.contains("(W) ")).unwrap();
    let (before, rest) = announced.split_once("(W) ").unwrap();
    let (_, after) = rest.split_once(',').unwrap();
    let other = text.replace(announced, &format!("{before}(W) 64.0KiB-64.0KiB,{after}"));
    let name = |text: &str| read(text, None).unwrap()[0].workload.clone();
    assert!(name(&other).contains(",64k"), "{}", name(&other));
    assert!(!name(&text).contains(",4k"), "{}", name(&text));
    let json = golden("fio/fio-3.33_bs-4k.json");
    for (option, block) in [
        ("\"bsrange\" : \"4k-64k\"", "4k-64k"),
        ("\"bssplit\" : \"4k/50:64k/50\"", "4k/50:64k/50"),
    ] {
        let name = name(&json.replace("\"bs\" : \"4k\"", option));
        assert!(name.contains(block), "{name}");
    }
}

#[test]
fn a_tool_that_is_not_read_is_said_to_be_none() {
    for text in [
        "1.00GiB 0:00:02 [ 428MiB/s] [=====>] 100%\n",
        "/dev/sda:\n Timing cached reads:   20000 MB in  2.00 seconds = 10000.00 MB/sec\n",
    ] {
        let refused = read(text, None).unwrap_err();
        assert!(
            refused.what.contains("stackrace does not read"),
            "{refused}"
        );
        assert!(refused.next.contains("--metric"), "{refused}");
    }
}

#[test]
fn a_block_that_was_read_and_not_written_is_told_in_every_language() {
    let text = "dd: t: Eingabe-/Ausgabefehler\n12+0 Datensätze ein\n11+0 Datensätze aus\n11534336 Bytes (12 MB, 11 MiB) kopiert, 0,349 s, 33,0 MB/s\n";
    let notes = &read(text, None).unwrap()[0].notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("between reading and writing")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|note| note.contains("Eingabe-/Ausgabefehler")),
        "{notes:?}"
    );
}
