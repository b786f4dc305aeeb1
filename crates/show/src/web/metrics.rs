//! `/metrics`: what is on record, for Prometheus and its like (OpenMetrics).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::cache::Judged;
use super::frame;
use super::http::HttpResponse;
use super::site::WebSite;
use stackrace_judge::verdict::Interval;

/// Studies that have figures, those that ran last: each of them keeps a record in memory.
const STUDIES_MAX: usize = 20;

/// Every metric with what it means, in the order of the page. All are gauges.
const METRICS: [(&str, &str); 6] = [
    ("stackrace_runs", "Runs on record, by stage."),
    (
        "stackrace_latest_run",
        "The newest run of a study with a complete round; always 1.",
    ),
    ("stackrace_latest_rounds", "Complete rounds of that run."),
    (
        "stackrace_latest_failed_trials",
        "Trials of that run that failed.",
    ),
    (
        "stackrace_latest_ratio",
        "Overall figure of a configuration over the first one, above 1 is better.",
    ),
    (
        "stackrace_latest_value",
        "Primary metric of a configuration in a workload, in its unit.",
    ),
];

/// The page monitoring reads, in the text format of OpenMetrics.
pub(super) fn page(site: &WebSite) -> HttpResponse {
    let runs = match site.cache.list() {
        Ok(runs) => runs,
        Err(error) => return frame::sorry(site, 500, &error.to_string()),
    };
    // Every stage, also with 0: an alert cannot watch a series that comes and goes.
    let mut stages = BTreeMap::from(
        [
            "running",
            "finished",
            "interrupted",
            "failed",
            "not ended",
            "unreadable",
        ]
        .map(|stage| (stage, 0)),
    );
    let mut text = MetricsText::default();
    let mut seen = HashSet::new();
    let mut latest = Vec::new();
    for (run, stage) in &runs {
        *stages.entry(stage.word()).or_default() += 1;
        // The newest first: an older run of a study would be a second value of one series.
        if run.rounds > 0 && latest.len() < STUDIES_MAX && seen.insert(&run.title) {
            latest.push((run, stage));
        }
    }
    for (stage, count) in stages {
        text.sample(0, &[("stage", stage)], f64::from(count));
    }
    let ids: Vec<&str> = latest.iter().map(|(run, _)| run.run.as_str()).collect();
    let outlines = site.cache.outlines(&ids);
    for (run, stage) in latest {
        // One that cannot be read is missing.
        let mut read = outlines.iter();
        let Some(judged) = read.find(|judged| judged.record.head.run == run.run) else {
            continue;
        };
        let labels = [
            ("study", &*run.title),
            ("run", &*run.run),
            ("stage", stage.word()),
        ];
        text.sample(1, &labels, 1.0);
        text.sample(2, &labels[..1], run.rounds as f64);
        text.sample(3, &labels[..1], judged.record.failures().count() as f64);
        figures(&mut text, &run.title, judged);
    }
    // The type is OpenMetrics 1.0, which Prometheus asks for since 2.5.
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    HttpResponse::new(200, kind, text.whole())
}

/// Writes the findings of the newest run of a study.
fn figures(text: &mut MetricsText, study: &str, judged: &Arc<Judged>) {
    for row in &judged.verdict.configurations {
        let labels = [("study", study), ("configuration", &*row.name)];
        if let Some(ratio) = &row.overall {
            text.interval(4, &labels, ratio);
        }
        for cell in row.cells.iter().filter(|cell| cell.primary) {
            let Some(value) = &cell.value else { continue };
            let more = [
                ("workload", &*cell.workload_name),
                ("metric", &*cell.metric.name),
                ("unit", &*cell.metric.unit),
            ];
            text.interval(5, &[&labels[..], &more[..]].concat(), value);
        }
    }
}

/// The samples of each metric: all of one stand together.
#[derive(Default)]
struct MetricsText([String; METRICS.len()]);

impl MetricsText {
    fn sample(&mut self, metric: usize, labels: &[(&str, &str)], value: f64) {
        // An end of an interval that could not be had is missing, never a number.
        if !value.is_finite() {
            return;
        }
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let name = METRICS[metric].0;
        let line = format!("{name}{{{}}} {value}\n", labels.join(","));
        self.0[metric].push_str(&line);
    }

    fn interval(&mut self, metric: usize, labels: &[(&str, &str)], value: &Interval) {
        for (bound, value) in [
            ("estimate", value.estimate),
            ("low", value.low),
            ("high", value.high),
        ] {
            self.sample(metric, &[labels, &[("bound", bound)]].concat(), value);
        }
    }

    fn whole(self) -> String {
        let mut text = String::new();
        for ((name, help), samples) in METRICS.iter().zip(self.0) {
            text.push_str(&format!(
                "# TYPE {name} gauge\n# HELP {name} {help}\n{samples}"
            ));
        }
        // Without it the text was cut off.
        text + "# EOF\n"
    }
}

/// The value of a label.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
        .replace(|letter: char| letter.is_control(), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_where_it_should() {
        let mut text = MetricsText::default();
        text.sample(0, &[("stage", "a\"} 1\nb\\")], 2.0);
        text.sample(0, &[("stage", "c")], f64::NAN);
        let whole = text.whole();
        assert!(
            whole.contains("stackrace_runs{stage=\"a\\\"} 1\\nb\\\\\"} 2\n# TYPE"),
            "{whole}"
        );
        assert!(whole.ends_with("# EOF\n"));
    }

    #[test]
    fn the_board_asks_for_metrics_that_exist() {
        let board = include_str!("../../../../docs/grafana.json");
        let panels: serde_json::Value = serde_json::from_str(board).unwrap();
        assert!(panels["panels"].as_array().unwrap().len() > 3);
        let word = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '_');
        let mut asked: Vec<&str> = board
            .split(word)
            .filter(|word| word.starts_with("stackrace_"))
            .collect();
        asked.sort_unstable();
        asked.dedup();
        for name in &asked {
            assert!(METRICS.iter().any(|(known, _)| known == name), "{name}");
        }
        for (known, _) in METRICS {
            assert!(asked.contains(&known), "the board shows {known} nowhere");
        }
    }
}
