//! The second machine in this kernel.

use super::Ended;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::{Host, argv};
use std::sync::Arc;

/// Commands there see another name, and the first machine keeps its own.
pub(super) fn the_second_machine_has_a_name_of_its_own() -> Ended {
    let [first, second] = [LocalHost::new, LocalHost::second].map(|make| make(Arc::new(|_| {})));
    let name = |host: &LocalHost| host.exec(&argv(["uname", "-n"])).map(|said| said.stdout);
    let before = name(&first).unwrap();
    // Not every root may: a container takes the right away.
    let there = name(&second).map_err(|_| "needs the right to give a process another host name")?;
    assert_eq!(there, "node2\n");
    assert_eq!(name(&first).unwrap(), before);
    assert_ne!(before, there, "this machine is called like the second one");
    let ends = second.line().unwrap().map(|end| end.to_string());
    assert_eq!(ends, ["127.0.0.1", "127.0.0.2"]);
    assert!(first.line().is_err());
    Ok(())
}
