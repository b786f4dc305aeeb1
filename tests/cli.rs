//! What the program says, word for word: help, lists, refusals. `TRYCMD=overwrite` accepts changes.

#[test]
fn texts_are_as_written() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cli/*.trycmd");
}
