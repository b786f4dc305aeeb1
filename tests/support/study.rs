//! Studies of tests, as text.

/// A study as TOML: title, factors, layers, workloads, rounds. It never ends because it is decided, so
/// that a test knows its rounds. A macro, so that the text can be a constant.
macro_rules! study {
    ($title:literal, $factors:literal, [$($layer:literal),+ $(,)?],
     [$($workload:literal),+ $(,)?], $rounds:literal $(,)?) => {
        concat!(
            "title = \"", $title, "\"\n[factors]\n", $factors, "\n",
            $("[[stack]]\n", $layer, "\n",)+
            $("[[workload]]\n", $workload, "\n",)+
            "[decide]\nrounds-at-most = ", $rounds, "\nat-most = \"30 min\"\nuntil = \"never\"\n"
        )
    };
}
