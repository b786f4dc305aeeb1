//! The live page of the real program, asked over real HTTP: who is let in, what is shown, what it takes
//! of the machine, and that nothing is done that was not allowed.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

mod control;
mod limits;
mod pages;
pub(crate) mod server;

/// The tests of this folder.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    let files = [control::tests(), limits::tests(), pages::tests()];
    files.into_iter().flatten().collect()
}
