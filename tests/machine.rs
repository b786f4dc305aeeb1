//! Layers on this machine: each stack is set up, used and torn down with the real tools.

use std::process::ExitCode;

use stackrace_test_needs as needs;

fn main() -> ExitCode {
    needs::run(stackrace::testing::on_machine().map(|(name, test)| {
        let run = move || {
            if let Err(reason) = test() {
                needs::skip(reason);
            }
        };
        (name, run)
    }))
}
