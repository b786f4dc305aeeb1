//! One's own ratios beside those of a published study.
//!
//! A ratio is put beside another where its factor, both levels, the levels of the other factors both
//! studies vary, and the metric stand for each other by the study's counterpart. What has no partner
//! is listed, not left out. Each interval holds by itself at the run's confidence (as comparisons
//! within levels do): all of them together hold with less.

use super::evidence::Evidence;
use super::statement::Interval;
use super::table::{ComparedFigure, ObservationTable};
use super::unpaired;
use crate::published::{self, Card, FactorPair, MetricPair, PublishedRatio, distinct};
use serde::Serialize;
use stackrace_base::event::{ConfigurationHead, RunStarted};

/// One's own ratios beside the published ones.
#[derive(Debug, Clone, Serialize)]
pub struct Beside {
    /// Name of the published study.
    pub study: String,
    /// Stand-ins for what cannot be built.
    pub stands_in: String,
    /// Each ratio that has a partner.
    pub rows: Vec<BesideRow>,
    /// Parts without a partner, a sentence each.
    pub unmatched: Vec<String>,
}

/// Two ratios that stand for each other.
#[derive(Debug, Clone, Serialize)]
pub struct BesideRow {
    /// `lzo against none`.
    pub own: String,
    /// `lz4 against off`.
    pub published: String,
    /// Own levels of the other factors both vary; empty if there are none.
    pub within: String,
    /// Own workload and metric.
    pub own_on: String,
    /// Published load and metric.
    pub published_on: String,
    /// Own ratio, above 1: better; `None` if there are too few rounds.
    pub ratio: Option<Interval>,
    /// The published ratio, a geometric mean where several have this partner.
    pub published_ratio: f64,
    /// Number of published ratios that is.
    pub published_count: usize,
    /// True if the published ratio lies inside the own interval; `None` if there is no interval.
    pub inside: Option<bool>,
    /// A figure behind the published ratio is no figure of storage (see its remarks).
    pub remarked: bool,
}

/// Puts the ratios of a run beside the published ones.
///
/// # Errors
/// The published data are damaged: the line and what is wrong with it.
pub fn beside(evidence: &Evidence<'_>, card: &Card) -> Result<Beside, String> {
    let figures = published::PublishedTable::of(card)?;
    let comparisons = published::comparisons(card, &figures);
    let matching = Matching {
        card,
        head: evidence.head,
        table: ObservationTable::new(evidence),
        unfit: published::unfit(&figures),
        figures,
        comparisons,
        alpha: 1.0 - evidence.head.decide.confidence,
    };
    let pairs = matching.factors();
    let rows: Vec<BesideRow> = pairs
        .iter()
        .flat_map(|(pair, own, theirs)| matching.rows_of(pair, *own, *theirs))
        .collect();
    Ok(Beside {
        study: card.name.to_owned(),
        stands_in: card.counterpart.stands_in.to_owned(),
        unmatched: matching.unmatched(&rows),
        rows,
    })
}

struct Matching<'a> {
    card: &'a Card,
    head: &'a RunStarted,
    table: ObservationTable<'a>,
    figures: published::PublishedTable,
    comparisons: Vec<PublishedRatio>,
    /// Figures, by place, that are none of storage.
    unfit: Vec<usize>,
    alpha: f64,
}

impl Matching<'_> {
    /// Factors both studies vary: the pair, the place in the run, the place in the card.
    fn factors(&self) -> Vec<(&'static FactorPair, usize, usize)> {
        let pairs = self.card.counterpart.factors.iter();
        pairs
            .filter_map(|pair| {
                let own = self.head.factors.iter().position(|name| name == pair.own)?;
                let theirs = self
                    .card
                    .factors
                    .iter()
                    .position(|f| f.name == pair.published)?;
                Some((pair, own, theirs))
            })
            .collect()
    }

    fn rows_of(&self, pair: &FactorPair, own: usize, theirs: usize) -> Vec<BesideRow> {
        let others: Vec<(&FactorPair, usize, usize)> = self
            .factors()
            .into_iter()
            .filter(|(_, at, _)| *at != own)
            .collect();
        let places = distinct(self.head.configurations.iter().map(|configuration| {
            others
                .iter()
                .map(|(_, at, _)| configuration.levels[*at].as_str())
                .collect::<Vec<_>>()
        }));
        let of = self
            .comparisons
            .iter()
            .filter(|comparison| comparison.factor == theirs);
        let mut rows = Vec::new();
        // One pair of levels was published for many loads and levels of the other factors. The
        // loops below take them apart again.
        for (b, a) in distinct(of.map(|comparison| (comparison.b.as_str(), comparison.a.as_str())))
        {
            let level = |wanted: &str| {
                pair.levels
                    .iter()
                    .find(|(_, theirs)| *theirs == wanted)
                    .map(|(own, _)| *own)
            };
            // What is left out by any `continue` here has no row, so `unmatched` lists it.
            let (Some(own_b), Some(own_a)) = (level(b), level(a)) else {
                continue;
            };
            for place in &places {
                // The same place in the published study: a level for each factor both vary.
                let published: Option<Vec<(usize, &str)>> = others
                    .iter()
                    .zip(place)
                    .map(|((pair, _, theirs), own)| {
                        let level = pair.levels.iter().find(|(level, _)| level == own)?;
                        Some((*theirs, level.1))
                    })
                    .collect();
                let Some(published) = published else { continue };
                let sides = self.sides(own, own_a, own_b, &others, place);
                for metric in self.card.counterpart.metrics {
                    let here: Vec<&PublishedRatio> = self
                        .comparisons
                        .iter()
                        .filter(|c| c.factor == theirs && (c.b.as_str(), c.a.as_str()) == (b, a))
                        .filter(|c| on(metric, c))
                        .filter(|c| {
                            // The two figures of a ratio differ in its own factor alone: either has
                            // the other levels.
                            let levels = &self.figures.figures[c.figures[1]].levels;
                            published.iter().all(|(at, level)| levels[*at] == *level)
                        })
                        .collect();
                    rows.extend(self.row(metric, &sides, &here).map(|row| BesideRow {
                        own: format!("{own_b} against {own_a}"),
                        published: format!("{b} against {a}"),
                        within: place.join(", "),
                        ..row
                    }));
                }
            }
        }
        rows
    }

    /// Own configurations of both levels, pair by pair, everything else equal.
    fn sides(
        &self,
        own: usize,
        a: &str,
        b: &str,
        others: &[(&FactorPair, usize, usize)],
        place: &[&str],
    ) -> Vec<(usize, usize)> {
        let configurations = &self.head.configurations;
        let equal = |x: &ConfigurationHead, y: &ConfigurationHead| {
            let mut levels = x.levels.iter().zip(&y.levels).enumerate();
            levels.all(|(at, (x, y))| at == own || x == y)
        };
        let here = |configuration: &ConfigurationHead| {
            let mut at = others.iter().zip(place);
            at.all(|((_, at, _), level)| configuration.levels[*at] == *level)
        };
        let mut sides = Vec::new();
        for (at, configuration) in configurations.iter().enumerate() {
            if configuration.levels[own] == a && here(configuration) {
                let partner = configurations
                    .iter()
                    .position(|t| t.levels[own] == b && equal(t, configuration));
                sides.extend(partner.map(|partner| (at, partner)));
            }
        }
        sides
    }

    /// One row without its names of levels; `None` if one of the two sides is missing.
    fn row(
        &self,
        metric: &MetricPair,
        sides: &[(usize, usize)],
        theirs: &[&PublishedRatio],
    ) -> Option<BesideRow> {
        let workloads = &self.head.workloads;
        let workload = workloads.iter().position(|w| w.name == metric.own.0)?;
        let at = workloads[workload]
            .metrics
            .iter()
            .position(|m| m.name == metric.own.1)?;
        let ratios: Vec<f64> = theirs.iter().map(|comparison| comparison.ratio).collect();
        let published_ratio = published::geometric_mean(&ratios).filter(|_| !sides.is_empty())?;
        let better = workloads[workload].metrics[at].better;
        // A round counts with all of its pairs or not at all. With the pairs that happen to be
        // there, the mix of levels would change from round to round.
        let figure = ComparedFigure::Metric {
            workload,
            metric: at,
        };
        let (logs, steps): (Vec<f64>, Vec<f64>) = (0..self.table.rounds.len())
            .filter_map(|round| {
                let (mut sum, mut step) = (0.0, 0.0);
                for (a, b) in sides {
                    let value = |t: usize| self.table.value(t, workload, at, round);
                    sum += better.oriented_ln(value(*b)?) - better.oriented_ln(value(*a)?);
                    step += self.table.apart(&[*a, *b], figure, round);
                }
                let pairs = sides.len() as f64;
                Some((sum / pairs, step / pairs))
            })
            .unzip();
        // Without a margin the interval is the two-sided one, whatever it says.
        let said = stackrace_stats::state_in_order(
            &logs,
            None,
            unpaired::coarser(&steps, &[]),
            self.alpha,
            0.0,
        );
        let ratio = said.map(|said| Interval::from(said.ratio));
        Some(BesideRow {
            own: String::new(),
            published: String::new(),
            within: String::new(),
            own_on: format!("{}: {}", metric.own.0, metric.own.1),
            published_on: theirs
                .first()
                .map_or(String::new(), |comparison| comparison.on()),
            ratio,
            published_ratio,
            published_count: ratios.len(),
            inside: ratio.map(|own| (own.low..=own.high).contains(&published_ratio)),
            remarked: theirs
                .iter()
                .flat_map(|c| c.figures)
                .any(|at| self.unfit.contains(&at)),
        })
    }

    /// Lists the parts without a partner, on either side.
    fn unmatched(&self, rows: &[BesideRow]) -> Vec<String> {
        // Without figures every list below would only repeat that.
        if self.figures.figures.is_empty() {
            return vec!["no figures were published, only plots".to_owned()];
        }
        let mut lists = self.unmatched_levels();
        let used = |name: &str| {
            rows.iter()
                // `own_on` is `workload: metric`; the colon keeps `read` from matching
                // `read-random`.
                .any(|row| row.own_on.starts_with(&format!("{name}: ")))
        };
        let workloads = self
            .head
            .workloads
            .iter()
            .map(|workload| workload.name.clone());
        lists.push((
            "workloads of this run without a published partner",
            workloads.filter(|name| !used(name)).collect(),
        ));
        let used = |on: &String| rows.iter().any(|row| row.published_on == *on);
        lists.push((
            "published figures without a partner here",
            self.comparisons
                .iter()
                .map(PublishedRatio::on)
                .filter(|on| !used(on))
                .collect(),
        ));
        lists
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what}: {}", distinct(names.into_iter()).join(", ")))
            .collect()
    }

    /// Factors and levels that have no partner, on either side.
    fn unmatched_levels(&self) -> Vec<(&'static str, Vec<String>)> {
        let pairs = self.factors();
        let own = |name: &String| pairs.iter().any(|(pair, _, _)| pair.own == name);
        let theirs = |name: &str| pairs.iter().any(|(pair, _, _)| pair.published == name);
        let mut own_levels = Vec::new();
        let mut their_levels = Vec::new();
        for (pair, own, at) in &pairs {
            let levels = self
                .head
                .configurations
                .iter()
                .map(|configuration| &configuration.levels[*own]);
            let unknown = levels.filter(|level| !pair.levels.iter().any(|(own, _)| own == level));
            own_levels.extend(unknown.map(|level| format!("{} {level}", pair.own)));
            let levels = self.card.factors[*at]
                .levels
                .iter()
                // An empty level says that the factor does not apply there.
                .filter(|level| !level.is_empty());
            let unknown = levels.filter(|level| !pair.levels.iter().any(|(_, l)| l == *level));
            their_levels.extend(unknown.map(|level| format!("{} {level}", pair.published)));
        }
        let factors = self.head.factors.iter().filter(|name| !own(name)).cloned();
        let published = self.card.factors.iter().map(|factor| factor.name);
        let published = published.filter(|name| !theirs(name)).map(str::to_owned);
        vec![
            (
                "factors of this run that the published study did not vary",
                factors.collect(),
            ),
            (
                "published factors that this run does not vary",
                published.collect(),
            ),
            ("levels of this run without a published partner", own_levels),
            ("published levels without a partner here", their_levels),
        ]
    }
}

fn on(metric: &MetricPair, comparison: &PublishedRatio) -> bool {
    let (workload, name) = metric.published;
    // A published load may carry a version: `bonnie++ 1.03e`.
    comparison.workload.starts_with(workload) && comparison.metric.name == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{Better, MetricHead, WorkloadHead};
    use stackrace_results::record::{Record, sample};

    fn workload(name: &str) -> WorkloadHead {
        let metric = |name: &str, unit: &str, better| MetricHead {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
        };
        WorkloadHead {
            name: name.to_owned(),
            kind: "made up".to_owned(),
            summary: "made up".to_owned(),
            weight: 1.0,
            drawn_sizes: None,
            level: None,
            operations: None,
            gives_commands: false,
            imported: None,
            recorded: None,
            metrics: vec![
                metric(
                    if name == "video" {
                        "write throughput"
                    } else {
                        "throughput"
                    },
                    "B/s",
                    Better::Higher,
                ),
                metric("operations", "op/s", Better::Higher),
                metric("elapsed", "s", Better::Lower),
            ],
        }
    }

    /// XFS and ext4 with two databases; ext4 writes video at 0.85 of XFS, whatever the database.
    fn record(rounds: u32) -> Record {
        let configuration = |filesystem: &str, database: &str| {
            let levels = vec![filesystem.to_owned(), database.to_owned()];
            (levels.join(", "), levels)
        };
        sample::record(&sample::SampleShape {
            title: "made up",
            factors: vec!["filesystem", "database"],
            configurations: vec![
                configuration("xfs", "on the volume"),
                configuration("xfs", "on tmpfs"),
                configuration("ext4", "on the volume"),
                configuration("ext4", "on tmpfs"),
                configuration("btrfs", "on tmpfs"),
            ],
            workloads: vec![
                workload("video"),
                workload("copy-small-tree"),
                workload("else"),
            ],
            comparison: Some("filesystem"),
            rounds,
            speed: |configuration, _| if configuration > 1 { 85e6 } else { 100e6 },
        })
    }

    fn besides(record: &Record) -> Beside {
        beside(
            &Evidence::of(record),
            published::by_name("netatalk-cnid").unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn ratios_stand_beside_those_of_the_same_levels() {
        let beside = besides(&record(5));
        let of = |own: &str, on: &str| -> Vec<&BesideRow> {
            beside
                .rows
                .iter()
                .filter(|row| row.own == own && row.own_on == on)
                .collect()
        };
        let video = of("ext4 against xfs", "video: write throughput");
        assert_eq!(video.len(), 2);
        assert_eq!(video[0].within, "on the volume");
        assert!((video[0].published_ratio - 88.5 / 103.5).abs() < 1e-9);
        assert!((video[1].published_ratio - 88.4 / 105.1).abs() < 1e-9);
        let own = video[0].ratio.unwrap();
        assert!((0.8..0.9).contains(&own.estimate), "{own:?}");
        assert_eq!(
            video[0].inside,
            Some(own.low <= 88.5 / 103.5 && 88.5 / 103.5 <= own.high)
        );
        // Nearly three times as fast there, and no difference here: far outside.
        let tree = of(
            "on tmpfs against on the volume",
            "copy-small-tree: throughput",
        );
        assert_eq!(tree.len(), 2);
        assert!((tree[0].published_ratio - 13.964 / 5.485).abs() < 1e-9);
        assert_eq!(tree[0].inside, Some(false));
        // A time counts the other way round.
        let elapsed = of("on tmpfs against on the volume", "copy-small-tree: elapsed");
        assert!((elapsed[0].published_ratio - 1566.561 / 673.519).abs() < 1e-9);
    }

    #[test]
    fn own_ratios_are_those_of_a_naive_computation() {
        let record = record(5);
        let value = |round: u32, configuration: usize| {
            let trial = record.trials().find(|trial| {
                (trial.round, trial.configuration, trial.workload) == (round, configuration, 0)
            });
            trial.unwrap().metrics[0].unwrap()
        };
        let product: f64 = (1..=5)
            .map(|round| value(round, 2) / value(round, 0))
            .product();
        let beside = besides(&record);
        let row = beside
            .rows
            .iter()
            .find(|row| row.own_on == "video: write throughput")
            .unwrap();
        assert!((row.ratio.unwrap().estimate - product.powf(0.2)).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_partner_is_listed() {
        let text = besides(&record(5)).unmatched.join("\n");
        for words in [
            "filesystem btrfs",
            "published partner: else",
            "postmark: append",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(
            besides(&record(2))
                .rows
                .iter()
                .all(|row| row.ratio.is_none() && row.inside.is_none())
        );
        let record = record(5);
        let other =
            |name: &str| beside(&Evidence::of(&record), published::by_name(name).unwrap()).unwrap();
        assert!(other("zfs-three-os").rows.is_empty());
        assert!(other("zfs-block-size").unmatched[0].contains("only plots"));
    }

    #[test]
    fn counterparts_name_levels_and_metrics_that_exist() {
        for card in published::ALL {
            let table = published::PublishedTable::of(card).unwrap();
            for pair in card.counterpart.factors {
                let factor = card
                    .factors
                    .iter()
                    .find(|f| f.name == pair.published)
                    .unwrap();
                assert!(
                    pair.levels
                        .iter()
                        .all(|(_, level)| factor.levels.contains(level))
                );
            }
            for metric in card.counterpart.metrics {
                let metrics = table.metrics();
                let mut found = metrics.iter().filter(|(workload, name)| {
                    workload.starts_with(metric.published.0) && *name == metric.published.1
                });
                assert!(
                    found.next().is_some(),
                    "{}: {:?}",
                    card.name,
                    metric.published
                );
            }
        }
    }
}
