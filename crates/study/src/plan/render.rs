//! A plan as text for a terminal.

use stackrace_base::event::{Precision, Until};
use stackrace_base::unit::ShownPath;
use stackrace_base::unit::{self, counted};

use stackrace_stats::{PASSES_MAX, WINDOW};

use super::content::{Bounds, FILLS, LintWeight, NOISES, Plan, PlannedConfiguration};

/// Columns of a line where nothing is known of the terminal.
pub const COLUMNS: usize = 80;
/// Fewest columns that are laid out for.
const COLUMNS_MIN: usize = 36;
/// Stacks whose commands are shown; beyond that one would not read them, and the data of the plan
/// has them all.
const STACKS_SHOWN: usize = 64;
/// Configurations whose place in the first round is shown.
const ORDER_SHOWN: usize = 8;

impl Plan {
    /// The plan as text, in lines of at most `columns`; never more than [`COLUMNS`].
    pub fn render(&self, columns: usize) -> String {
        let mut page = Page {
            text: String::new(),
            columns: columns.clamp(COLUMNS_MIN, COLUMNS),
        };
        page.fold("", "", &format!("{} ({})", self.title, self.study_name));
        if let Some(question) = &self.question {
            page.fold("", "", question);
        }
        page.blank();
        self.render_size(&mut page);
        self.render_stacks(&mut page);
        self.render_workloads(&mut page);
        self.render_cost(&mut page);
        self.render_looks(&mut page);
        self.render_lints(&mut page);
        page.text
    }

    fn render_size(&self, page: &mut Page) {
        let configurations = self.configurations.len();
        let workloads = self.workloads.len();
        page.fold(
            "",
            "",
            &format!(
                "{} x {} = {} a round; at most {}",
                counted(configurations, "configuration"),
                counted(workloads, "workload"),
                counted(configurations * workloads, "trial"),
                counted(self.decide.rounds_max as usize, "round"),
            ),
        );
        let asked = match (&self.decide.comparison, self.comparisons) {
            (_, 0) => "one configuration: it is described, and nothing is compared".to_owned(),
            (Some(factor), _) => {
                format!("comparison: each level of {factor} with the first one")
            }
            (None, _) => "which configuration is best".to_owned(),
        };
        page.fold("", "  ", &asked);
        if let Some(places) = &self.places {
            let text = format!(
                "{}, the factor {}: {}; one configuration is tried at a time",
                counted(places.levels.len(), "place"),
                places.factor,
                places.levels.join(", ")
            );
            page.fold("", "  ", &text);
        }
        let order: Vec<&str> = self
            .first_order
            .iter()
            .take(ORDER_SHOWN)
            .map(|index| self.configurations[*index].name.as_str())
            .collect();
        let more = match self.first_order.len() > ORDER_SHOWN {
            true => " …",
            false => "",
        };
        let first = match self.workload_by_workload {
            true => "rounds go workload by workload; the first workload of the first round",
            false => "first round",
        };
        let order = order.join("; ");
        let text = format!("{first} in this order (seed {}): {order}{more}", self.seed);
        page.fold("", "  ", &text);
    }

    /// Configurations with the same layers are shown together, with the commands of the first.
    fn render_stacks(&self, page: &mut Page) {
        page.blank();
        page.line("STACKS");
        // Configurations often differ in their workloads only: a stack is then shown once, with all
        // its names.
        let mut groups: Vec<Vec<&PlannedConfiguration>> = Vec::new();
        for configuration in &self.configurations {
            match groups
                .iter_mut()
                .find(|group| group[0].layers == configuration.layers)
            {
                Some(group) => group.push(configuration),
                None => groups.push(vec![configuration]),
            }
        }
        for group in groups.iter().take(STACKS_SHOWN) {
            let names: Vec<&str> = group.iter().map(|one| one.name.as_str()).collect();
            page.fold("  ", "  ", &names.join("; "));
            for layer in &group[0].layers {
                page.fold("    ", "      ", layer);
            }
            for command in &group[0].commands {
                match command.strip_prefix('#') {
                    Some(_) => page.fold("    ", "      ", command),
                    None => page.command(command),
                }
            }
        }
        if groups.len() > STACKS_SHOWN {
            let more = counted(groups.len() - STACKS_SHOWN, "more stack");
            page.fold(
                "  ",
                "  ",
                &format!("… and {more}; --json shows the commands of all"),
            );
        }
    }

    fn render_workloads(&self, page: &mut Page) {
        page.blank();
        page.line("WORKLOADS");
        for workload in &self.workloads {
            let head = &workload.head;
            let metric = head
                .metrics
                .first()
                .map_or("", |metric| metric.name.as_str());
            let weight = match head.weight {
                1.0 => String::new(),
                weight => format!(", weight {weight}"),
            };
            page.fold(
                "  ",
                "    ",
                &format!("{} (by {metric}{weight})", head.name),
            );
            page.fold("    ", "    ", &head.summary);
            if let Some(slices) = workload.slices {
                let each = unit::time_ns(slices.slice_ns as f64);
                let also = match slices.on_trial {
                    true => {
                        "; the first three rounds also measure each in one go, and slices stay only where both agree"
                    }
                    false => "",
                };
                let text = format!("the configurations take turns of {each}{also}");
                page.fold("    ", "    ", &text);
            }
        }
    }

    fn render_cost(&self, page: &mut Page) {
        page.blank();
        page.line("COST");
        let moved = &self.moved;
        let more = match moved.open_ended {
            true => ", plus workloads that run for a fixed time",
            false => "",
        };
        page.fold(
            "  moves   ",
            "          ",
            &format!(
                "at most {} a trial, {} a round, {} in all{more}",
                unit::bytes(moved.trial_bytes),
                unit::bytes(moved.round_bytes),
                unit::bytes(moved.total_bytes)
            ),
        );
        self.render_precondition(page, more);
        page.fold(
            "  data    ",
            "          ",
            &format!(
                "{} at once in the largest trial",
                unit::bytes(moved.data_bytes)
            ),
        );
        for need in &self.disk {
            let free = match need.free_bytes {
                Some(free) => format!("{} free", unit::bytes(free)),
                None => "free space not known".to_owned(),
            };
            page.fold(
                "  room    ",
                "          ",
                &format!(
                    "{} at once in {} ({free})",
                    unit::bytes(need.needed_bytes),
                    need.path.shown()
                ),
            );
        }
        self.render_time(page);
        self.render_virtual_time(page);
    }

    /// Prints how long it takes, and what that is based on.
    fn render_time(&self, page: &mut Page) {
        let time = &self.time;
        let ends = match (self.decide.until, self.decide.precision) {
            (Until::Never, _) => "does not end early",
            (_, Precision::Direction) => "ends as soon as it is decided",
            (_, _) => "ends as soon as it is decided and the size is known",
        };
        let limit = self.decide.time_limit_ns().map_or_else(String::new, |ns| {
            format!("at most {} allowed; ", unit::long_time(ns as f64 / 1e9))
        });
        page.fold(
            "  time    ",
            "          ",
            &format!(
                "a round {}, the run {}{}; {limit}{ends}",
                between(time.round_seconds),
                between(time.run_seconds),
                match self.virtual_time {
                    Some(_) => " of virtual time",
                    None => "",
                }
            ),
        );
        if !time.unknown.is_empty() {
            page.fold(
                "          ",
                "          ",
                &format!("unknown, and added to this: {}", time.unknown.join(", ")),
            );
        }
        page.fold(
            "          ",
            "          ",
            &format!("assumed: {}", time.assumed),
        );
    }

    /// Prints what virtual time costs in real minutes and in memory.
    fn render_virtual_time(&self, page: &mut Page) {
        let Some(cost) = &self.virtual_time else {
            return;
        };
        let text = format!(
            "expected {} here, {} a round, {} side by side; a busy machine takes longer, and \
             no figure changes",
            between(cost.wall_seconds),
            counted(cost.guests, "guest"),
            cost.jobs
        );
        page.fold("  wall    ", "          ", &text);
        let (least, most) = cost.content_bytes;
        let text = format!(
            "the drives of a guest hold {} to {}, copies and parity included; there is room for {} in its \
             memory and for {} on this machine's disk",
            unit::bytes(least),
            unit::bytes(most),
            unit::bytes(cost.room_bytes),
            unit::bytes(cost.disk_bytes)
        );
        page.fold("  memory  ", "          ", &text);
    }

    /// Prints what preconditioning moves; `more`: what is moved by the clock, on top of what is
    /// counted.
    fn render_precondition(&self, page: &mut Page, more: &str) {
        let Some(before) = &self.moved.precondition else {
            return;
        };
        let when = match before.each_round {
            true => "in each round",
            false => "before the first round",
        };
        page.fold(
            "  before  ",
            "          ",
            &format!(
                "preconditioning on top of that, {when}: each stack written over {FILLS} times, \
                 then each workload {WINDOW} to {PASSES_MAX} times until it is steady; at \
                 least {}, at most {}{more}",
                unit::bytes(before.least_bytes),
                unit::bytes(before.most_bytes)
            ),
        );
    }

    fn render_looks(&self, page: &mut Page) {
        let Some(first) = self.looks.first() else {
            return;
        };
        page.blank();
        page.line("CHECKS");
        page.fold(
            "  ",
            "  ",
            &format!(
                "Smallest difference that can be shown after this many rounds, with {} confidence for all statements \
                 together ({} of error for each comparison at a check):",
                unit::percent(self.decide.confidence),
                unit::percent(first.alpha)
            ),
        );
        let heads = NOISES.map(|noise| format!("noise {:.0} %", noise * 100.0));
        page.line(&row("rounds", &heads));
        for look in &self.looks {
            let cells = look.detectable.map(|difference| match difference {
                Some(difference) if difference < 10.0 => unit::percent(difference),
                _ => "-".to_owned(),
            });
            page.line(&row(&look.rounds.to_string(), &cells));
        }
        page.fold(
            "  ",
            "  ",
            "Noise: standard deviation of the ratio of two configurations from round to round. \
             A difference of this size is found in about half of all runs, a larger one more often.",
        );
    }

    fn render_lints(&self, page: &mut Page) {
        if self.lints.is_empty() {
            return;
        }
        page.blank();
        for lint in &self.lints {
            let word = match lint.weight {
                LintWeight::Problem => "problem: ",
                LintWeight::Note => "note: ",
            };
            page.fold(word, "  ", &lint.text);
        }
    }
}

fn row(head: &str, cells: &[String; 3]) -> String {
    let [a, b, c] = cells;
    format!("  {head:>6}  {a:>11}  {b:>11}  {c:>11}")
}

fn between(seconds: Bounds) -> String {
    let least = unit::long_time(seconds.least);
    let most = unit::long_time(seconds.most);
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

struct Page {
    text: String,
    columns: usize,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.line("");
    }

    /// A paragraph: `first` before its first line, `next` before the others.
    fn fold(&mut self, first: &str, next: &str, text: &str) {
        for line in folded(first, next, text, self.columns) {
            self.line(&line);
        }
    }

    /// A command, broken so that it can still be pasted.
    fn command(&mut self, command: &str) {
        let lines = folded("    $ ", "        ", command, self.columns - 2);
        let last = lines.len() - 1;
        for (index, line) in lines.iter().enumerate() {
            match index == last {
                true => self.line(line),
                false => self.line(&format!("{line} \\")),
            }
        }
    }
}

/// Lines of at most `columns`, broken at spaces; a longer word is left whole.
fn folded(first: &str, next: &str, text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    let mut empty = true;
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let width = lines[last].chars().count() + usize::from(!empty) + word.chars().count();
        if !empty && width > columns {
            lines.push(format!("{next}{word}"));
            continue;
        }
        if !empty {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
        empty = false;
    }
    lines
}
