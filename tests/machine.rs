//! Layers on this machine: each stack is set up, used and torn down with the real tools.

use stackrace_test_needs as needs;

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    let tests = stackrace::testing::on_machine().map(|(name, test)| {
        let run = move || {
            if let Err(reason) = test() {
                needs::skip(reason);
            }
        };
        (name, Box::new(run) as needs::Run)
    });
    tests.collect()
}
