//! What a replica that lost its peer is taken for.

use crate::stack::testing::{site, stack};
use stackrace_machine::host::plan::Fault;
use stackrace_machine::host::{Host, argv};
use stackrace_machine::journal::Journal;

#[test]
fn a_replica_that_lost_its_peer_is_another_storage() {
    let scratch = tempfile::tempdir().unwrap();
    let host = crate::stack::imagined(Fault::Never);
    let journal = Journal::nowhere();
    let site = site(&host, &journal, scratch.path());
    let shape = stack(&["loop = { size = \"1 GiB\" }", "drbd = {}", "ext4 = {}"]);
    let standing = shape.set_up(&site).unwrap();
    assert_eq!(standing.changed(&host), None);
    let up = host.steps().into_iter().map(|step| step.argv);
    let mut asked = up.filter(|words| words.iter().any(|word| word == "cstate"));
    let mut lost = asked.next_back().unwrap();
    let word = lost.iter().position(|word| word == "cstate").unwrap();
    lost.splice(word..=word, argv(["disconnect"]));
    host.must(&lost).unwrap();
    let why = standing.changed(&host).unwrap();
    assert!(why.starts_with("the connection of DRBD was "), "{why}");
    assert!(why.contains("is now StandAlone"), "{why}");
    standing.tear_down(&site).unwrap();
}
