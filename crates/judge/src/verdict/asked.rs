//! Answers to what a study did not ask: any comparison, metric or workload of stored results.
//!
//! The rounds and the looks are those of the study, so stopping early stays paid for; the error is
//! shared over everything asked at once. A look at the results before choosing cannot be
//! paid for, so every such answer is marked as chosen after the run.

use serde::Serialize;
use stackrace_stats::FIRST_LOOK;

use super::compared::on_figure;
use super::enough::RequiredRow;
use super::evidence::Evidence;
use super::judge::judge;
use super::sentence;
use super::sides::{Sides, factor_sides, sides};
use super::statement::Comparison;
use super::table::{ComparedFigure, ObservationTable};
use stackrace_base::event::{RunStarted, again};
use stackrace_base::unit::counted;
use stackrace_results::record::Record;

/// A question; what is left out is as the study has it.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Sides that are set against each other.
    pub sought: Option<Sought>,
    /// Name of a metric; `None` for the overall figure and each workload's primary metric.
    pub metric: Option<String>,
    /// Name of a workload; `None` for all.
    pub workload: Option<String>,
    /// Differences smaller than this ratio do not matter.
    pub margin: Option<f64>,
    /// Probability that everything answered at once holds together.
    pub confidence: Option<f64>,
}

/// Sides that are set against each other.
#[derive(Debug, Clone)]
pub enum Sought {
    /// `A,B`: two configurations, or two levels of one factor; B against A.
    Comparison(String),
    /// Every level of a factor against its first.
    Factor(String),
}

impl Question {
    /// Returns true if nothing is asked but what the study asks.
    fn is_the_study_s(&self) -> bool {
        self.sought.is_none()
            && self.metric.is_none()
            && self.workload.is_none()
            && self.margin.is_none()
            && self.confidence.is_none()
    }
}

/// The answer of a run to a question.
#[derive(Debug, Clone, Serialize)]
pub struct RunAnswer {
    /// Id of the run.
    pub run: String,
    /// The title as its study gives it.
    pub title: String,
    /// Another tool measured it: no verdict follows.
    pub imported: bool,
    /// The question, or a part of it, was not the study's: exploratory.
    pub chosen_after: bool,
    /// Number of comparisons that share the error, over all runs asked at once; of the study's own
    /// question, how many it has.
    pub family: usize,
    /// All of them hold together with at least this probability.
    pub confidence: f64,
    /// Differences smaller than this ratio do not matter.
    pub margin: f64,
    /// Complete rounds.
    pub rounds: u32,
    /// Complete rounds at the check the statements hold at; `None` if there are too few rounds.
    pub checked_at: Option<u32>,
    /// A sentence for each comparison; of the study's own question, its verdict.
    pub sentences: Vec<String>,
    /// The comparisons, with ratios and intervals.
    pub comparisons: Vec<Comparison>,
    /// What the study requires, a row for each configuration and bound; empty if it requires nothing, or something else
    /// was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<RequiredRow>,
    /// Notes the reader must know before believing the figures.
    pub notes: Vec<String>,
}

/// The reason a run cannot answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionError {
    /// Id of the run.
    pub run: String,
    /// `configuration`, `factor`, `metric`, `workload`.
    pub what: &'static str,
    /// The name as it was asked.
    pub name: String,
    /// The names that the run has.
    pub valid: Vec<String>,
}

/// Asks every run the same.
///
/// # Errors
/// A run does not have what is asked about.
pub fn ask(records: &[Record], question: &Question) -> Result<Vec<RunAnswer>, QuestionError> {
    // The study's own question keeps its shares of the error (`shares.rs`). Asked by the rules
    // below, it would get other intervals than the report.
    if question.is_the_study_s() {
        return Ok(records.iter().map(own).collect());
    }
    let mut asked = Vec::new();
    // Every question is turned into comparisons before any is answered: each share of the error
    // depends on how many there are in all runs together.
    for record in records {
        let mut head = record.head.clone();
        head.decide.margin = question.margin.unwrap_or(head.decide.margin);
        head.decide.confidence = question.confidence.unwrap_or(head.decide.confidence);
        let part = Asked::of(record, &head, question)?;
        asked.push((record, head, part));
    }
    let family = asked.iter().map(|(_, _, part)| part.family()).sum();
    let answers = asked.iter();
    Ok(answers
        .map(|(record, head, part)| part.answer(record, head, family))
        .collect())
}

/// The study's own verdict.
fn own(record: &Record) -> RunAnswer {
    let verdict = judge(&Evidence::of(record));
    let mut sentences = vec![verdict.sentence];
    sentences.extend(verdict.details);
    // Comparisons within levels hold each on its own, so they are not part of the family.
    let whole = verdict
        .workloads
        .into_iter()
        .filter(|c| c.within.is_empty());
    let comparisons: Vec<Comparison> = verdict.overall.into_iter().chain(whole).collect();
    RunAnswer {
        run: record.head.run.clone(),
        title: record.head.title.clone(),
        imported: record.imported(),
        chosen_after: false,
        family: comparisons.len(),
        confidence: verdict.confidence,
        margin: verdict.margin,
        rounds: verdict.rounds,
        checked_at: verdict.checked_at,
        sentences,
        comparisons,
        required: verdict.required,
        notes: verdict.notes,
    }
}

/// A question in terms of a run.
struct Asked {
    sides: Vec<Sides>,
    figures: Vec<ComparedFigure>,
    /// True if the best of more than two configurations is asked for: the data decide which pairs matter.
    ranked: bool,
}

impl Asked {
    fn of(record: &Record, head: &RunStarted, question: &Question) -> Result<Self, QuestionError> {
        let evidence = Evidence::of(record);
        let table = ObservationTable::new(&evidence);
        let sides = match &question.sought {
            Some(Sought::Comparison(words)) => vec![two_sides(head, words)?],
            Some(Sought::Factor(name)) if head.factors.contains(name) => factor_sides(head, name),
            Some(Sought::Factor(name)) => {
                return Err(unanswerable(head, "factor", name, head.factors.iter()));
            }
            None => sides(&table),
        };
        let ranked = question.sought.is_none() && head.decide.comparison.is_none();
        Ok(Self {
            sides: sides.into_iter().filter(|s| s.within.is_empty()).collect(),
            figures: figures(head, question)?,
            ranked: ranked && head.configurations.len() > 2,
        })
    }

    /// Comparisons that share the error: of a ranking every pair, since any could have been asked.
    fn family(&self) -> usize {
        let others = self.sides.len();
        let sides = if self.ranked {
            others * (others + 1) / 2
        } else {
            others
        };
        sides * self.figures.len()
    }

    fn answer(&self, record: &Record, head: &RunStarted, family: usize) -> RunAnswer {
        let mut evidence = Evidence::of(record);
        evidence.head = head;
        // The verdict itself is not used: its error is shared by the study's comparisons, not by
        // these.
        let rounds = u32::try_from(evidence.rounds.len()).unwrap_or(u32::MAX);
        let notes = judge(&evidence).notes;
        let table = ObservationTable::new(&evidence);
        // Bonferroni: right however the metrics of the same trials depend on each other.
        let alpha = (1.0 - head.decide.confidence) / family.max(1) as f64;
        let comparisons: Vec<Comparison> = self
            .figures
            .iter()
            .flat_map(|figure| on_figure(&self.sides, *figure, alpha))
            .map(|pair| {
                let mut compared = pair.compared(&table);
                pair.complete(&table, &mut compared);
                compared
            })
            .collect();
        RunAnswer {
            run: head.run.clone(),
            title: head.title.clone(),
            imported: evidence.imported,
            chosen_after: true,
            family,
            confidence: head.decide.confidence,
            margin: head.decide.margin,
            rounds,
            checked_at: (rounds >= FIRST_LOOK && !evidence.imported).then_some(rounds),
            sentences: match comparisons.is_empty() {
                true => vec![compares_nothing(head)],
                false => comparisons
                    .iter()
                    .map(|comparison| sentence::answer(comparison, head))
                    .collect(),
            },
            comparisons,
            required: Vec::new(),
            notes,
        }
    }
}

/// What is said where there is one configuration, and so nothing to answer.
fn compares_nothing(head: &RunStarted) -> String {
    format!(
        "This run compares nothing: it has {}. Its figures: `{}`.",
        counted(head.configurations.len(), "configuration"),
        again(&["report", &head.run])
    )
}

fn unanswerable<'a>(
    head: &RunStarted,
    what: &'static str,
    name: &str,
    valid: impl Iterator<Item = &'a String>,
) -> QuestionError {
    QuestionError {
        run: head.run.clone(),
        what,
        name: name.to_owned(),
        valid: crate::published::distinct(valid.cloned()),
    }
}

/// `A,B`. Names of configurations may have commas: every comma is tried, configurations before levels.
fn two_sides(head: &RunStarted, words: &str) -> Result<Sides, QuestionError> {
    let places = words.match_indices(',').map(|(at, _)| at);
    let pairs: Vec<(&str, &str)> = places
        .map(|at| (words[..at].trim(), words[at + 1..].trim()))
        .collect();
    let configuration = |name: &str| head.configurations.iter().position(|t| t.name == name);
    // A configuration against itself has the ratio 1 in every round and an interval of no width.
    let configurations = pairs
        .iter()
        .find_map(|(a, b)| Some((configuration(a)?, configuration(b)?)))
        .filter(|(a, b)| a != b);
    if let Some((a, b)) = configurations {
        return Ok(Sides::of_two(head, a, b));
    }
    let levels = pairs
        .iter()
        .find_map(|(a, b)| (0..head.factors.len()).find_map(|at| of_levels(head, at, a, b)));
    levels.ok_or_else(|| {
        let known = |name: &&str| {
            let level =
                |t: &stackrace_base::event::ConfigurationHead| t.levels.iter().any(|l| l == name);
            configuration(name).is_some() || head.configurations.iter().any(level)
        };
        // The message names the half that is unknown. Of several commas the first one parts the
        // halves.
        let wrong = match pairs.first() {
            Some((a, b)) => [a, b].into_iter().find(|name| !known(name)),
            None => None,
        };
        let names = head
            .configurations
            .iter()
            .map(|configuration| &configuration.name);
        let levels = head
            .configurations
            .iter()
            .flat_map(|configuration| &configuration.levels);
        // Both are there, or only one is named.
        let pair = "pair A,B of different configurations or levels of one factor";
        let single = pairs.is_empty() && !known(&words);
        unanswerable(
            head,
            match wrong.is_some() || single {
                true => "configuration or level",
                false => pair,
            },
            wrong.copied().unwrap_or(words),
            names.chain(levels),
        )
    })
}

/// Two levels of a factor, over all combinations of the others that have both.
fn of_levels(head: &RunStarted, factor: usize, a: &str, b: &str) -> Option<Sides> {
    let others = |t: usize| {
        let levels = head.configurations[t].levels.iter().enumerate();
        levels.filter(|(at, _)| *at != factor).collect::<Vec<_>>()
    };
    let of = |level: &str| {
        let all = 0..head.configurations.len();
        let level = level.to_owned();
        all.filter(move |t| head.configurations[*t].levels[factor] == level)
    };
    let (mut side_a, mut side_b) = (Vec::new(), Vec::new());
    for t in of(a).filter(|_| a != b) {
        // Equal in everything else: otherwise the ratio holds the effect of a third factor, too.
        if let Some(partner) = of(b).find(|partner| others(*partner) == others(t)) {
            side_a.push(t);
            side_b.push(partner);
        }
    }
    (!side_a.is_empty()).then(|| Sides {
        a: side_a,
        b: side_b,
        a_name: a.to_owned(),
        b_name: b.to_owned(),
        within: String::new(),
    })
}

/// The figures it is asked on.
fn figures(head: &RunStarted, question: &Question) -> Result<Vec<ComparedFigure>, QuestionError> {
    let workloads: Vec<usize> = (0..head.workloads.len())
        .filter(|w| {
            question
                .workload
                .as_ref()
                .is_none_or(|name| *name == head.workloads[*w].name)
        })
        .collect();
    if let (Some(name), []) = (&question.workload, workloads.as_slice()) {
        let names = head.workloads.iter().map(|workload| &workload.name);
        return Err(unanswerable(head, "workload", name, names));
    }
    let Some(name) = &question.metric else {
        let mut figures: Vec<ComparedFigure> = workloads
            .iter()
            .map(|w| ComparedFigure::primary(*w))
            .collect();
        // With one workload the overall figure is its primary metric and would be asked twice.
        if question.workload.is_none() && head.workloads.len() > 1 {
            figures.insert(0, ComparedFigure::Overall);
        }
        return Ok(figures);
    };
    let named = |workload: &usize| {
        let metrics = &head.workloads[*workload].metrics;
        let metric = metrics.iter().position(|metric| metric.name == *name)?;
        Some(ComparedFigure::Metric {
            workload: *workload,
            metric,
        })
    };
    // Workloads without the metric are passed over; only if all lack it is the name wrong.
    let figures: Vec<ComparedFigure> = workloads.iter().filter_map(named).collect();
    if figures.is_empty() {
        let metrics = workloads.iter().flat_map(|w| &head.workloads[*w].metrics);
        return Err(unanswerable(
            head,
            "metric",
            name,
            metrics.map(|metric| &metric.name),
        ));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::statement::VerdictWord;
    use stackrace_results::record::sample;

    fn question() -> Question {
        Question::default()
    }

    fn comparison(words: &str) -> Option<Sought> {
        Some(Sought::Comparison(words.to_owned()))
    }

    #[test]
    fn without_a_question_the_study_s_own_is_answered() {
        let record = sample::record(&sample::small());
        let verdict = judge(&Evidence::of(&record));
        let answers = ask(&[record], &question()).unwrap();
        assert!(!answers[0].chosen_after);
        assert_eq!(answers[0].sentences[0], verdict.sentence);
        assert_eq!(answers[0].comparisons[..1], verdict.overall[..]);
    }

    /// The same comparison as the study's, asked alone: a smaller family, so a narrower interval.
    #[test]
    fn what_is_asked_afterwards_says_so_and_shares_its_error_over_what_is_asked() {
        let record = sample::record(&sample::small());
        let own = judge(&Evidence::of(&record));
        let browse = Question {
            sought: comparison("ext4,xfs"),
            workload: Some("browse".to_owned()),
            ..question()
        };
        let one = ask(std::slice::from_ref(&record), &browse)
            .unwrap()
            .remove(0);
        assert!(one.chosen_after && one.family == 1 && one.comparisons.len() == 1);
        assert_eq!(one.checked_at, Some(5));
        let width = |c: &Comparison| c.ratio.map(|ratio| ratio.high / ratio.low).unwrap();
        let known = own
            .workloads
            .iter()
            .find(|c| c.workload == "browse")
            .unwrap();
        assert_eq!(known.rounds, one.comparisons[0].rounds);
        assert!(width(&one.comparisons[0]) < width(known));
        let twice = ask(&[record.clone(), record], &browse).unwrap();
        assert_eq!((twice.len(), twice[0].family), (2, 2));
        assert!(width(&twice[0].comparisons[0]) > width(&one.comparisons[0]));
    }

    #[test]
    fn either_side_may_be_the_baseline_and_any_metric_may_be_asked() {
        let record = sample::record(&sample::small());
        let turned = Question {
            sought: comparison("xfs, ext4"),
            metric: Some("elapsed".to_owned()),
            workload: Some("import".to_owned()),
            ..question()
        };
        let answer = ask(&[record], &turned).unwrap().remove(0);
        let found = &answer.comparisons[0];
        assert_eq!((found.a.as_str(), found.b.as_str()), ("xfs", "ext4"));
        assert!(matches!(found.word, VerdictWord::Worse { .. }), "{found:?}");
        assert!(
            answer.sentences[0].starts_with("import, elapsed: xfs is 1.16 x as fast as ext4 ("),
            "{:?}",
            answer.sentences
        );
    }

    /// 24 configurations whose names have commas, and levels of either factor.
    #[test]
    fn configurations_and_levels_are_found_by_their_names() {
        let record = sample::record(&sample::sweep());
        let asked = |words: &str| {
            let question = Question {
                sought: comparison(words),
                ..question()
            };
            let answer = ask(std::slice::from_ref(&record), &question)?.remove(0);
            Ok::<Comparison, QuestionError>(answer.comparisons[0].clone())
        };
        let one = asked("ext4, 4 KiB,xfs, 4 KiB").unwrap();
        assert_eq!(
            (one.a.as_str(), one.b.as_str()),
            ("ext4, 4 KiB", "xfs, 4 KiB")
        );
        let all = asked("ext4,xfs").unwrap();
        assert_eq!((all.a.as_str(), all.b.as_str()), ("ext4", "xfs"));
        assert!(matches!(all.word, VerdictWord::Better { .. }), "{all:?}");
        assert_eq!(asked("4 KiB,8 KiB").unwrap().b, "8 KiB");
        let wrong = asked("ext4,zfs").unwrap_err();
        assert_eq!(
            (wrong.what, wrong.name.as_str()),
            ("configuration or level", "zfs")
        );
        assert!(wrong.valid.contains(&"xfs".to_owned()));
        assert_eq!(asked("ext4,ext4").unwrap_err().name, "ext4,ext4");
    }

    #[test]
    fn a_factor_asks_for_all_of_its_levels() {
        let record = sample::record(&sample::sweep());
        let factor = |name: &str| Question {
            sought: Some(Sought::Factor(name.to_owned())),
            ..question()
        };
        let answer = ask(std::slice::from_ref(&record), &factor("block-size")).unwrap();
        assert_eq!((answer[0].comparisons.len(), answer[0].family), (11, 11));
        let wrong = ask(&[record], &factor("blocksize")).unwrap_err();
        assert_eq!((wrong.what, wrong.valid.len()), ("factor", 2));
    }

    /// Of three configurations every pair might have been the leader and another.
    #[test]
    fn a_ranking_pays_for_every_pair() {
        let record = sample::record(&sample::workload_sweep());
        let wider = Question {
            margin: Some(0.10),
            metric: Some("throughput".to_owned()),
            ..question()
        };
        let answer = ask(&[record], &wider).unwrap().remove(0);
        assert_eq!(answer.comparisons.len(), 2 * 5);
        assert_eq!((answer.family, answer.margin), (3 * 5, 0.10));
    }

    #[test]
    fn a_run_of_one_configuration_says_that_it_compares_nothing_and_where_its_figures_are() {
        let shape = sample::SampleShape {
            configurations: vec![("d".into(), vec!["d".into()])],
            comparison: None,
            ..sample::small()
        };
        let record = sample::record(&shape);
        let asked = Question {
            metric: Some("throughput".to_owned()),
            ..question()
        };
        let said = ask(&[record], &asked).unwrap().remove(0).sentences;
        assert!(
            said[0].contains("compares nothing: it has 1 configuration."),
            "{said:?}"
        );
        assert!(said[0].contains("stackrace report "), "{said:?}");
    }

    #[test]
    fn an_unknown_name_is_told_with_the_valid_ones() {
        let record = sample::record(&sample::small());
        let of = |question: Question| ask(std::slice::from_ref(&record), &question).unwrap_err();
        let wrong = of(Question {
            metric: Some("iops".to_owned()),
            ..question()
        });
        assert_eq!(wrong.what, "metric");
        assert_eq!(wrong.valid.len(), 4);
        let wrong = of(Question {
            workload: Some("imports".to_owned()),
            ..question()
        });
        assert_eq!((wrong.what, wrong.valid.len()), ("workload", 3));
    }
}
