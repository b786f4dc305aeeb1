//! Every check, registered in one line each.

use super::check::AuditCheck;
use super::{
    behind, cached, cold, compressed, device, durable, generator, group, heat, holes, impossible,
    line, memory, neighbours, pause, processor, short, squeezed, steady, stolen,
};

/// The checks in any order: what counts is the priority each one states.
pub(super) const REGISTERED: &[AuditCheck] = &[
    behind::CHECK,
    cached::CHECK,
    cold::CHECK,
    compressed::CHECK,
    device::CHECK,
    durable::CHECK,
    generator::CHECK,
    group::CHECK,
    heat::CHECK,
    holes::CHECK,
    impossible::CHECK,
    line::CHECK,
    memory::CHECK,
    neighbours::CHECK,
    pause::CHECK,
    processor::CHECK,
    short::CHECK,
    squeezed::CHECK,
    steady::CHECK,
    stolen::CHECK,
];

/// Every check, by priority: first what makes a figure impossible, then what makes it another
/// figure than was asked for, then what limits it, last what disturbed it.
pub fn checks() -> Vec<&'static AuditCheck> {
    by_priority(REGISTERED.iter())
}

/// The checks that say something of a run, in virtual time or not. A guest there runs nothing but the
/// program and its stack: what else keeps its processor busy, so that the program has to wait, are the stack's
/// servers and threads and the drives' models, and no neighbour.
pub(super) fn checks_of(in_virtual_time: bool) -> Vec<&'static AuditCheck> {
    let mut checks = checks();
    if in_virtual_time {
        let of_others = [neighbours::CHECK.name, pause::CHECK.name];
        checks.retain(|check| !of_others.contains(&check.name));
    }
    checks
}

/// Checks in the order that counts, however they were registered.
pub(super) fn by_priority<'a>(checks: impl Iterator<Item = &'a AuditCheck>) -> Vec<&'a AuditCheck> {
    let mut checks: Vec<&AuditCheck> = checks.collect();
    checks.sort_by_key(|check| check.priority);
    checks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_has_its_own_name_and_priority_and_asks_a_question() {
        let names: BTreeSet<&str> = REGISTERED.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), REGISTERED.len());
        let priorities: Vec<u8> = checks().iter().map(|check| check.priority).collect();
        let expected: Vec<u8> = (1..).take(REGISTERED.len()).collect();
        assert_eq!(priorities, expected, "each rank from 1 is taken once");
        assert!(REGISTERED.iter().all(|check| check.question.ends_with('?')));
    }

    /// The limit that is named where there are several: the device before the generator before the
    /// network before the processor.
    #[test]
    fn the_checks_of_limits_have_the_priorities_that_are_documented() {
        let limits = checks().into_iter().filter(|check| check.limits);
        let names: Vec<&str> = limits.map(|check| check.name).collect();
        assert_eq!(names, ["device", "generator", "line", "processor"]);
    }
}
