//! How to do it again: the study as it was run, and the command.

use base64::Engine as _;
use maud::{Markup, html};

use stackrace_base::event::{Observation, shell};
use stackrace_results::record::Record;

/// Name the study is saved under.
const FILE: &str = "study.toml";

/// The command that does a run again from its saved study: the same configurations, rounds, order, data
/// and offsets.
fn command(record: &Record) -> String {
    let decide = &record.head.decide;
    // Rounded: 0.07 is 7 %, not 7.000000000000001 %.
    let share = |share: f64| format!("{} %", (share * 1e8).round() / 1e6);
    let mut argv: Vec<String> = ["stackrace", "run", FILE].map(str::to_owned).to_vec();
    // A study has its sizes twice; the words of the command said which were used.
    if record.head.command.iter().any(|word| word == "--full") {
        argv.push("--full".to_owned());
    }
    // Where it ran is no part of the study, so it is taken from the command line.
    argv.extend(places(&record.head.command));
    // To the millisecond, and no less than it was.
    let limit = |ns: u64| format!("{} s", ns.div_ceil(1_000_000) as f64 / 1e3);
    for (name, value) in [
        ("--seed", Some(record.head.seed.to_string())),
        ("--margin", Some(share(decide.margin))),
        ("--confidence", Some(share(decide.confidence))),
        // The command line may have said another number than the study.
        ("--rounds", Some(decide.rounds_max.to_string())),
        ("--at-most", decide.time_limit_ns().map(limit)),
    ] {
        argv.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    }
    shell(&argv)
}

/// The words of a command that say where its run is made.
fn places(command: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = command.iter();
    while let Some(word) = rest.next() {
        // An option's value comes with `=` or as the next word.
        match word.split_once('=').map_or(&**word, |(name, _)| name) {
            "--lab" | "--sudo" => words.push(word.clone()),
            "--system" | "--memory" | "--on" | "--ssh" if word.contains('=') => {
                words.push(word.clone());
            }
            "--system" | "--memory" | "--on" | "--ssh" => {
                words.push(word.clone());
                words.extend(rest.next().cloned());
            }
            _ => {}
        }
    }
    words
}

/// The study, verbatim, and how to run it again.
pub(super) fn study(record: &Record) -> Markup {
    let head = &record.head;
    // A data address: the page stays one file.
    let text = base64::engine::general_purpose::STANDARD.encode(&head.study);
    let here = head
        .environment
        .iter()
        .find(|fact| fact.name == "working directory");
    html! {
        p {
            "From " code { (head.study_name) } ", seed " (head.seed)
            ", BLAKE3 " code class="hash" { (head.study_hash) } "."
        }
        p { "Started as: " code { (shell(&head.command)) } }
        // Of an imported run there is nothing that stackrace could do again.
        @if !record.imported() && !head.study.is_empty() {
            p {
                "To do it again, "
                a download=(FILE) href={ "data:application/toml;base64," (text) } { "save the study" }
                @if let Some(here) = here { " and go to " code { (here.value) } " on the machine below" }
                ". The seed gives the same order of configurations, the same data and the same offsets:"
            }
            pre class="copy" tabindex="0" { (command(record)) }
        }
        details {
            summary { "The study, verbatim" }
            pre tabindex="0" { (head.study) }
        }
    }
}

/// Instructions to do one trial again: as part of its run.
pub(super) fn trial(record: &Record, trial: &Observation) -> Markup {
    if record.imported() || record.head.study.is_empty() {
        return html! {};
    }
    html! {
        p {
            "To do it again, with " a href="#study" { "the study" } " saved as " code { (FILE) }
            "; it comes as round " (trial.round) ", position " (trial.position + 1) ":"
        }
        pre class="copy" tabindex="0" { (command(record)) }
    }
}

#[cfg(test)]
mod tests {
    use stackrace_base::event::Decide;
    use stackrace_results::record::sample;

    #[test]
    fn a_run_is_made_again_with_its_rounds_and_no_limit_that_it_did_not_have() {
        let mut record = sample::record(&sample::small());
        record.head.decide.rounds_max = 4;
        record.head.decide.time_max_ns = 60_000_000_000;
        let limited = super::command(&record);
        assert!(
            limited.ends_with("--rounds 4 --at-most '60 s'"),
            "{limited}"
        );
        record.head.decide.time_max_ns = Decide::NO_LIMIT_NS;
        let free = super::command(&record);
        assert!(free.ends_with("--rounds 4"), "{free}");
    }

    #[test]
    fn a_run_is_made_again_where_it_was_made() {
        let typed = "stackrace run x --lab --system a --seed 3 --on=b --sudo --html y --memory";
        let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        let again = super::places(&typed).join(" ");
        assert_eq!(again, "--lab --system a --on=b --sudo --memory");
    }
}
