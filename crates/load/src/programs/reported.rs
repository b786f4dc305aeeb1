//! Figures that a program prints: found by a pattern, in JSON, or by the importer of a known tool.

use std::sync::{Arc, Mutex, OnceLock};

use regex::Regex;

use super::same_work::{OfCommands, of_command};
use super::{figure_unit, number, ran};
use crate::tools::importers;
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::printed::{Imported, PrintedFigure, told_apart};
use stackrace_base::unit;
use stackrace_import::import;

/// Largest pattern, bytes: what it compiles to grows with it.
const PATTERN_MAX: usize = 2000;
/// Most results that are listed beside the one that decides.
const OTHERS_MAX: usize = 5;
/// Beginning of a pointer into JSON.
const JSON: &str = "json:";

/// Output of a program.
#[derive(Debug, Clone, Copy)]
pub struct Printed<'a> {
    /// Text on standard output.
    pub out: &'a str,
    /// Text on standard error.
    pub errors: &'a str,
}

/// One figure that is looked for in what a program prints.
#[derive(Debug, Clone)]
pub(super) struct ReportedFigure {
    head: MetricHead,
    /// Set if it was said whether more is better.
    directed: bool,
    at: FoundAt,
    stands: Stands,
}

/// Whether the unit that was said stands behind a figure, as the first run that prints it decides.
type Stands = Arc<OnceLock<bool>>;

/// What is known of the figures of one command, for all configurations of a run.
fn stands_of(figure: String) -> Stands {
    static ALL: OfCommands<bool> = Mutex::new(Vec::new());
    of_command(&ALL, figure)
}

/// Place where a figure is found.
#[derive(Debug, Clone)]
enum FoundAt {
    /// The first group of the last match, or all of it where there is no group.
    Pattern(Box<Regex>),
    /// A pointer as RFC 6901 has it, into the whole output.
    Pointer(String),
    /// A metric that the importer of a tool finds.
    Imported(String),
}

impl ReportedFigure {
    /// Reads `NAME=PATTERN`, `NAME=json:/POINTER`, or the name alone of a metric of the tool that
    /// is parsed.
    ///
    /// # Errors
    /// What is wrong with it, and how it is written.
    pub(super) fn new(
        text: &str,
        unit: &str,
        better: Option<Better>,
        parse: Option<&str>,
    ) -> Result<Self, (String, String)> {
        let how = || "write NAME=PATTERN or NAME=json:/POINTER".to_owned();
        let (name, at) = match text.split_once('=') {
            Some((name, rest)) => (name.trim(), Some(rest)),
            None => (text.trim(), None),
        };
        if name.is_empty() {
            return Err((format!("the metric \"{text}\" has no name"), how()));
        }
        let own = parse.filter(|_| at.is_none());
        let name = &own.map_or_else(|| name.to_owned(), |tool| own_name(tool, name));
        let at = match at {
            // A tool that is parsed has names for its figures.
            None if parse.is_some() => FoundAt::Imported(name.clone()),
            None => {
                let what = format!("the metric \"{name}\" does not say where its figure is");
                let example = format!("{name}={name} *([0-9.]+)");
                return Err((
                    what,
                    format!(
                        "say what stands around it in the output (a regular expression), like --metric '{example}' (in a study metrics = ['{example}']), or where in JSON: {name}=json:/POINTER. The name alone is enough where --parse TOOL (parse = \"TOOL\") reads a known tool, such as fio"
                    ),
                ));
            }
            Some(at) => match at.strip_prefix(JSON) {
                Some(pointer) if pointer.starts_with('/') => FoundAt::Pointer(pointer.to_owned()),
                Some(pointer) => {
                    let what = format!("\"{pointer}\" is no pointer into JSON (RFC 6901)");
                    return Err((what, format!("write {JSON}/name/0/name")));
                }
                None => FoundAt::Pattern(Box::new(pattern(at)?)),
            },
        };
        Ok(Self {
            head: MetricHead::new(name, unit, better.unwrap_or(Better::Higher)),
            directed: better.is_some(),
            at,
            stands: Stands::default(),
        })
    }

    /// The same as a figure of a command: what one of its runs prints holds for all of them.
    pub(super) fn of_command(self, command: &str) -> Self {
        let Self { head, at, .. } = &self;
        let stands = stands_of(format!("{command}\n{head:?}\n{at:?}"));
        Self { stands, ..self }
    }

    /// The figure, unless it is bare and another run printed its unit, or the other way round: the bare one may be in
    /// another unit, and nothing tells.
    fn as_before(
        &self,
        found: PrintedFigure,
        after: &str,
        fixed: &str,
    ) -> Result<PrintedFigure, String> {
        let unit = &self.head.unit;
        let stands = figure_unit::stands(after, fixed, unit);
        if stands.is_none_or(|stands| *self.stands.get_or_init(|| stands) == stands) {
            return Ok(found);
        }
        let (own, other) = match stands {
            Some(true) => ("with", "without"),
            _ => ("without", "with"),
        };
        Err(format!(
            "it was printed {own} a unit this time, and {other} one before: a figure without {unit} behind it may be in another unit. Have it print the same unit each time, or JSON, or say it in the pattern, as in ([0-9.]+) {unit}"
        ))
    }

    /// Returns true if an importer finds it.
    pub(super) fn is_imported(&self) -> bool {
        matches!(self.at, FoundAt::Imported(_))
    }

    /// Its name, unit and direction.
    pub(super) fn head(&self) -> &MetricHead {
        &self.head
    }

    /// The figure in what was printed.
    ///
    /// # Errors
    /// It is not there, or is no positive number; a clause.
    pub(super) fn read(
        &self,
        printed: Printed<'_>,
        tool: Option<&str>,
    ) -> Result<PrintedFigure, String> {
        let name = &self.head.name;
        let found = match &self.at {
            FoundAt::Pattern(pattern) => {
                // The last: programs show progress, then the result.
                let fixed = number::behind_group(pattern.as_str());
                let last = |text: &'_ str| {
                    let last = pattern.captures_iter(text).last()?;
                    let group = last.get(1).or(last.get(0))?;
                    let found = number::found(text, group.range(), fixed, &self.head.unit);
                    let behind = &text[group.end()..];
                    Some(found.and_then(|found| self.as_before(found, behind, fixed)))
                };
                let last = last(printed.out).or_else(|| last(printed.errors));
                let last = last.ok_or_else(|| {
                    format!("the pattern of \"{name}\" ({pattern}) is not in what it printed")
                })?;
                last.map_err(|why| format!("the {name}: {why}"))?
            }
            FoundAt::Pointer(pointer) => {
                let json: serde_json::Value = serde_json::from_str(printed.out.trim())
                    .map_err(|error| format!("what it printed is no JSON: {error}"))?;
                let value = json.pointer(pointer).ok_or_else(|| {
                    format!("the JSON that it printed has nothing at {pointer}, the {name}")
                })?;
                let none =
                    || format!("the JSON that it printed has no number at {pointer}, the {name}");
                match (value.as_f64(), value.as_str()) {
                    (Some(value), _) => in_json(printed.out, pointer, value),
                    // Some programs write their numbers as texts.
                    (None, Some(text)) => number::written(text)?.ok_or_else(none)?,
                    (None, None) => return Err(none()),
                }
            }
            FoundAt::Imported(metric) => self.imported(metric, printed, tool)?,
        };
        // Ratios are taken on the log scale.
        match found.value {
            value if value > 0.0 && value.is_finite() => Ok(found),
            // In whole numbers, 0.97 is 0.
            0.0 => Err(format!(
                "the {name} is 0, which has no ratio to another: let it do more, or print more digits"
            )),
            value => Err(format!(
                "the {name} is {value}, which has no ratio to another"
            )),
        }
    }

    fn imported(
        &self,
        metric: &str,
        printed: Printed<'_>,
        tool: Option<&str>,
    ) -> Result<PrintedFigure, String> {
        let all = found_in(printed, tool)?;
        let (head, figure) = all.named(metric)?;
        // The unit stands in every report: a wrong one would be believed.
        if self.head.unit.is_empty() && !head.unit.is_empty() {
            return Err(format!(
                "{metric} is in {0}, and no unit was said: say --unit {0}",
                head.unit
            ));
        }
        if head.unit != self.head.unit {
            return Err(format!(
                "{metric} is in {}, and \"{}\" was said",
                head.unit, self.head.unit
            ));
        }
        if !self.directed && head.better == Better::Lower {
            return Err(format!(
                "a lower {metric} is better, and it was not said: say --better lower"
            ));
        }
        figure.ok_or_else(|| format!("the tool gave no figure for {metric}"))
    }
}

/// A figure that importers find, with what it is; `None` if the tool gave none.
pub(crate) type FoundFigure = (MetricHead, Option<PrintedFigure>);

/// The figures that importers find in a text.
#[derive(Debug, Clone)]
pub struct FoundFigures {
    /// All figures, those of each result behind those of the one before it. Where there are several results, each
    /// name begins with what was done.
    pub figures: Vec<FoundFigure>,
    /// For each result, how many of them are its.
    counts: Vec<usize>,
    /// The tool that printed them, if it was named.
    tool: Option<String>,
}

/// Name of a figure of a tool where every command has one of this name that is measured from outside.
fn own_name(tool: &str, name: &str) -> String {
    match ran::is_of_every_command(name) {
        true => format!("{name} ({tool})"),
        false => name.to_owned(),
    }
}

impl FoundFigures {
    /// The figure of a name.
    ///
    /// # Errors
    /// There is none; a clause with the names that there are.
    pub fn named(&self, name: &str) -> Result<&FoundFigure, String> {
        let tool = self.tool.as_deref();
        let own = tool.map_or_else(|| name.to_owned(), |tool| own_name(tool, name));
        let found = self.figures.iter().find(|(head, _)| head.name == own);
        found.ok_or_else(|| {
            let names = self.figures.iter().map(|(head, _)| head.name.as_str());
            format!(
                "\"{name}\" is not among the figures in what it printed: {}",
                names.collect::<Vec<_>>().join(", ")
            )
        })
    }

    /// Those that have a place in a ratio. Of figures that every command has, and better, only what the tool is judged
    /// by: processor times of two digits are 0 in one trial and not in the next.
    pub fn usable(&self) -> Vec<MetricHead> {
        let tool = self.tool.as_deref().unwrap_or_default();
        let everywhere = ran::heads()
            .into_iter()
            .map(|head| own_name(tool, &head.name));
        let everywhere: Vec<String> = everywhere.collect();
        let usable = self
            .figures
            .iter()
            .enumerate()
            .filter(|(at, (head, figure))| {
                let own = *at == 0 || !everywhere.contains(&head.name);
                // A figure that the tool could not give, or a zero, has no place in a ratio; a name with a sign of
                // equality would be read as a pattern.
                own && !head.name.contains('=') && figure.is_some_and(|figure| figure.value > 0.0)
            });
        usable.map(|(_, (head, _))| head.clone()).collect()
    }

    /// The first figures of all results behind the first one, if there are such.
    pub fn several(&self) -> Option<String> {
        let ends = self.counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        });
        let heads = ends.filter_map(|end| Some(self.figures.get(end)?.0.name.as_str()));
        let heads: Vec<&str> = heads.collect();
        let shown = heads.get(..OTHERS_MAX).unwrap_or(&heads).join("; ");
        let more = if heads.len() > OTHERS_MAX {
            "; …"
        } else {
            ""
        };
        (!heads.is_empty()).then(|| format!("{shown}{more}"))
    }
}

/// Finds the figures in a text.
///
/// # Errors
/// It is not what the tool prints; a clause.
pub fn found_in(printed: Printed<'_>, tool: Option<&str>) -> Result<FoundFigures, String> {
    let results = results_in(printed, tool)?;
    // Two jobs of fio both have a throughput.
    let several = results.len() > 1;
    let names = numbered(told_apart(&results));
    let counts = results.iter().map(|result| result.metrics.len()).collect();
    let mut figures = Vec::new();
    for (result, workload) in results.into_iter().zip(names) {
        for (head, value) in result.metrics.into_iter().zip(result.values) {
            let name = match several {
                // A name with this sign would be read as a pattern.
                true => format!("{workload}: {}", head.name).replace('=', " "),
                false => own_name(result.tool, &head.name),
            };
            figures.push((MetricHead { name, ..head }, value));
        }
    }
    let tool = tool.map(str::to_owned);
    Ok(FoundFigures {
        figures,
        counts,
        tool,
    })
}

/// What a text says against the figures that importers find in it, each once.
pub(super) fn told_in(results: &[Imported]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for note in results.iter().flat_map(|it| &it.against) {
        if !told.contains(note) {
            told.push(note.clone());
        }
    }
    told
}

/// Every result in a text.
///
/// # Errors
/// It is not what the tool prints; a clause.
pub(super) fn results_in(
    printed: Printed<'_>,
    tool: Option<&str>,
) -> Result<Vec<Imported>, String> {
    // dd and time print their results on standard error.
    import::read(importers(), printed.out, tool)
        .or_else(|error| import::read(importers(), printed.errors, tool).map_err(|_| error))
        .map_err(|error| format!("what it printed cannot be read: {error}"))
}

/// Equal names with their place among their like: what a command does three times has three figures.
fn numbered(names: Vec<String>) -> Vec<String> {
    let place = |at: usize| {
        let same = |until: usize| {
            names[..until]
                .iter()
                .filter(|name| **name == names[at])
                .count()
        };
        match same(names.len()) {
            1 => names[at].clone(),
            all => format!("{} ({} of {all})", names[at], same(at) + 1),
        }
    };
    (0..names.len()).map(place).collect()
}

/// Compiles a pattern of lines.
///
/// # Errors
/// What is wrong with it, and what to write.
pub(super) fn pattern(text: &str) -> Result<Regex, (String, String)> {
    let cannot = |why: String| {
        let next = "write a regular expression with one group, as in tps = ([0-9.]+)";
        (format!("the pattern \"{text}\" {why}"), next.to_owned())
    };
    if text.len() > PATTERN_MAX {
        return Err(cannot(format!("is longer than {PATTERN_MAX} bytes")));
    }
    // (?m): what a tool prints comes in lines.
    let compiled = regex::RegexBuilder::new(text)
        .multi_line(true)
        .size_limit(1 << 20)
        .build();
    compiled.map_err(|error| {
        let last = error.to_string();
        let last = last.lines().last().unwrap_or_default().trim();
        cannot(format!("is not understood: {last}"))
    })
}

/// A number of JSON as it is written there: `1.500000` is known better than `1.5`.
fn in_json(text: &str, pointer: &str, value: f64) -> PrintedFigure {
    let name = pointer.rsplit('/').next().unwrap_or_default();
    let pattern = format!(r#""{}"\s*:\s*([-+0-9.eE]+)"#, regex::escape(name));
    let written = Regex::new(&pattern).ok();
    let all = written
        .iter()
        .flat_map(|pattern| pattern.captures_iter(text));
    let same = all.filter_map(|found| {
        let word = found.get(1)?.as_str();
        let read: f64 = word.parse().ok()?;
        (read == value).then(|| unit::written_step(word))?
    });
    // Of several fields of this name with this value, the one with fewest digits: which one it is the
    // value does not tell.
    let step = same.reduce(f64::max);
    let in_full = PrintedFigure::in_full(value);
    PrintedFigure {
        step: step.unwrap_or(in_full.step),
        ..in_full
    }
}
