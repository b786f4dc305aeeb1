//! Studies of tests, as text.

/// A study as TOML: title, factors, layers, workloads, rounds. It never ends because it is decided, so
/// that a test knows its rounds. A macro, so that the text can be a constant.
///
/// `study!(two block sizes: TITLE, TIME, ROUNDS)`: random writes into one directory, which need no root.
macro_rules! study {
    (two block sizes: $title:literal, $time:literal, $rounds:literal $(,)?) => {
        study!(
            $title,
            r#"block-size = ["4 KiB", "8 KiB"]"#,
            [r#"dir = { path = "data" }"#],
            [concat!(
                r#"name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", access = "uniform", time = ""#,
                $time,
                r#"" }"#
            )],
            $rounds
        )
    };
    ($title:literal, $factors:literal, [$($layer:literal),+ $(,)?],
     [$($workload:expr),+ $(,)?], $rounds:literal $(,)?) => {
        concat!(
            "title = \"", $title, "\"\n[factors]\n", $factors, "\n",
            $("[[stack]]\n", $layer, "\n",)+
            $("[[workload]]\n", $workload, "\n",)+
            "[decide]\nrounds-at-most = ", $rounds, "\nat-most = \"30 min\"\nuntil = \"never\"\n"
        )
    };
}
