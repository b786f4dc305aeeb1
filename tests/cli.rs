//! What the program says, word for word: help, lists, refusals. `TRYCMD=overwrite` accepts changes.

fn texts_are_as_written() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cli/*.trycmd");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![texts_are_as_written]
}
