//! Many clients of one NFS server, each in a network namespace, all in one guest.

use super::*;

/// How many clients, unless STACKRACE_CLIENTS says so. An emulated processor cannot serve more in time.
const CLIENTS: usize = 8;

/// A number that stands behind a word at the beginning of a line.
fn number(text: &str, word: &str) -> usize {
    let mut lines = text.lines().rev();
    let found = lines.find_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no number {word}: {text}"))
}

#[expect(clippy::disallowed_methods, reason = "the test's own setting")]
pub(crate) fn many_clients_measure_one_nfs_server() {
    cache("image");
    let clients = std::env::var("STACKRACE_CLIENTS").ok();
    let clients = clients.map_or(CLIENTS, |text| text.parse().expect("a number of clients"));
    let ground = Ground::new();
    let script = format!("CLIENTS={clients}\n{MANY}");
    let guest = [
        "--processors",
        "2",
        "--memory",
        "4 GiB",
        "--",
        "bash",
        "-c",
        &script,
    ];
    let words = ["lab", "shell", "--system", &system()];
    let said = ground.stackrace(&[&words[..], &guest].concat());
    said.ended(0);
    let part = |name: &str| {
        let mut parts = said.out.split("\n== ");
        let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
        part.unwrap_or_else(|| panic!("no part {name}: {}{}", said.out, said.err))
    };
    for (name, trials) in [("paced", 10), ("line", 6)] {
        let text = part(name);
        assert!(text.contains("code 0\n"), "{text}");
        assert_eq!(number(text, "complete "), trials, "{text}");
        assert_eq!(number(text, "processes "), clients, "{text}");
    }
    let full = part("line");
    assert!(full.contains("network line to the storage"), "{full}");
    // The slow one, and no other.
    let slow = part("slow");
    assert!(slow.contains("code 0\n"), "{slow}");
    assert!(slow.contains("c3 did "), "{slow}");
    assert_eq!(slow.matches(" did ").count(), 1, "{slow}");
    // A client that is killed ends the run by its name; what was measured is kept, and the run goes on.
    let killed = part("killed");
    assert!(killed.contains("c5: "), "{killed}");
    let codes: Vec<&str> = killed
        .lines()
        .filter(|line| line.starts_with("code "))
        .collect();
    assert!(
        codes.len() == 2 && codes[0] != "code 0" && codes[1] == "code 0",
        "{killed}"
    );
    assert_eq!(part("left").trim(), "");
}
