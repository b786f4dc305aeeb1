//! Costs of levels: added up for each configuration, refused where they cannot be compared.

use super::*;

/// A study of two factors with these levels.
fn with(first: &str, second: &str) -> String {
    format!(
        "[factors]\nblock = [{first}]\nmode = [{second}]\n[[stack]]\ndir = {{ path = \"/srv\" }}\n[[workload]]\n\
         random = {{ mode = \"{{mode}}\", size = \"1 MiB\", block-size = \"{{block}}\" }}\n"
    )
}

const DISKS: &str = "{ label = \"small\", value = 4096, cost = \"73 EUR\" }, { value = 8192, cost = \"120.50 eur\" }";

#[test]
fn a_configuration_costs_what_its_levels_cost() {
    let costs = |first: &str, second: &str| {
        let study = parse("s.toml", with(first, second).as_bytes(), &Kinds::real());
        let study = study.map_err(|errors| all(&errors)).unwrap();
        let costs = study
            .configurations
            .iter()
            .map(|it| Some(it.cost.as_ref()?.words()));
        costs.collect::<Vec<_>>()
    };
    let some = |words: &str| Some(words.to_owned());
    assert_eq!(
        costs(DISKS, "\"read\""),
        [some("73 EUR"), some("120.50 EUR")]
    );
    let mode = "{ value = \"read\", cost = \"0 EUR\" }, { value = \"write\", cost = \"7 EUR\" }";
    let both = ["73 EUR", "80 EUR", "120.50 EUR", "127.50 EUR"].map(some);
    assert_eq!(costs(DISKS, mode), both);
    assert_eq!(costs("4096, 8192", "\"read\""), [None, None]);
}

#[test]
fn costs_that_cannot_be_compared_are_refused() {
    let level = |cost: &str| format!("{{ label = \"small\", value = 4096, cost = {cost} }}");
    let plain = "\"read\"";
    for (levels, second, parts) in [
        (
            level("\"cheap\""),
            plain,
            ["\"cheap\" is no cost", "73 EUR"],
        ),
        (
            level("\"EUR\""),
            plain,
            ["is no cost", "a number and a currency"],
        ),
        (
            level("\"73\""),
            plain,
            ["is no cost", "a number and a currency"],
        ),
        (level("73"), plain, ["a cost is a text", "73 EUR"]),
        (
            format!("{DISKS}, 512"),
            plain,
            ["\"512\" has no cost", "cost = \"0 EUR\""],
        ),
        (
            DISKS.to_owned(),
            "{ value = \"read\", cost = \"5 USD\" }",
            ["a cost in USD beside one in EUR", "in one currency"],
        ),
        (
            DISKS.to_owned(),
            "{ value = \"read\", cost = \"5 EUR per month\" }",
            [
                "a cost in EUR per month beside one in EUR",
                "once or per month",
            ],
        ),
    ] {
        let said = match parse("s.toml", with(&levels, second).as_bytes(), &Kinds::real()) {
            Ok(_) => panic!("not refused: {levels}"),
            Err(errors) => all(&errors),
        };
        for part in parts {
            assert!(said.contains(part), "{part} is not in\n{said}");
        }
    }
}
