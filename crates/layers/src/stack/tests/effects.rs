//! What a layer does to figures: raised by a stack, with a control beside it.

use crate::stack::testing::{site, stack};
use stackrace_base::event::{FactFigure, LayerEffect};
use stackrace_machine::host::plan::Fault;
use stackrace_machine::journal::Journal;

/// Effects that the layers of a stack tell of.
fn effects(lines: &[&str]) -> Vec<LayerEffect> {
    let scratch = tempfile::tempdir().unwrap();
    let host = crate::stack::imagined(Fault::Never);
    let journal = Journal::nowhere();
    let site = site(&host, &journal, scratch.path());
    let standing = stack(lines).set_up(&site).unwrap();
    let facts = standing.facts().iter().flat_map(|layer| &layer.facts);
    let told = facts.filter_map(|fact| match fact.figure {
        Some(FactFigure::Effect(effect)) => Some(effect),
        _ => None,
    });
    let told = told.collect();
    standing.tear_down(&site).unwrap();
    told
}

#[test]
fn each_effect_is_told_by_the_stack_that_has_it_and_by_no_control() {
    let one = "loop = { size = \"1 GiB\" }";
    let two = "loop = { size = \"1 GiB\", count = 2 }";
    for (bottom, layer, effect) in [
        (one, "integrity = {}", Some(LayerEffect::WrittenTwice)),
        (one, "integrity = { mode = \"bitmap\" }", None),
        (two, "writecache = {}", Some(LayerEffect::EmptyCache)),
        (two, "bcache = {}", Some(LayerEffect::EmptyCache)),
        (two, "md = { raid = 1 }", None),
        (
            one,
            "nbd = { server = \"same\" }",
            Some(LayerEffect::NoNetwork),
        ),
        (
            one,
            "nbd = { flush = false }",
            Some(LayerEffect::FlushesKept),
        ),
        (one, "nbd = {}", None),
        (
            one,
            "iscsi = { server = \"same\" }",
            Some(LayerEffect::NoNetwork),
        ),
        (one, "iscsi = {}", None),
    ] {
        let told = effects(&[bottom, layer, "ext4 = {}"]);
        assert_eq!(told, Vec::from_iter(effect), "{layer}");
    }
    let shared = [one, "ext4 = {}", "nfs = { server = \"same\" }"];
    assert_eq!(effects(&shared), [LayerEffect::NoNetwork]);
}
