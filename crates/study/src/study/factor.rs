//! What is varied: factors, their levels, and the combinations of levels.

use std::collections::HashSet;

use stackrace_base::event::Price;
use stackrace_base::setting::{Refusal, Span, Value, listed, unknown_word};

use super::design::{Factor, Level};
use super::document::{Field, Item, ItemKind};
use super::one_line;

/// Factors a study may have: as many of two levels would make far more configurations than it may have.
const FACTORS_MAX: usize = 64;
/// Longest name of a factor and label of a level, bytes (a path is one): every configuration bears them.
const NAME_MAX: usize = 4096;

/// Configurations a study may have. A round tries them all: more is a slip of the pen, and it must be
/// refused before memory is spent on it.
pub(super) const CONFIGURATIONS_MAX: usize = 4096;

/// Layers and workloads of all configurations together: each is made and checked.
const PARTS_MAX: usize = 65_536;

/// Words of a level that is written as a table.
const LEVEL_WORDS: [&str; 3] = ["label", "value", "cost"];

const LEVEL_EXAMPLE: &str = "{ label = \"journal\", value = [\"-O\", \"has_journal\"] }";

/// Reads the table `[factors]`; what is wrong with it is added to the refusals.
pub(super) fn factors(text: &str, item: &Item, refusals: &mut Vec<Refusal>) -> Vec<Factor> {
    let fields = match item.table("factors", "filesystem = [\"ext4\", \"xfs\"]") {
        Ok(fields) => fields,
        Err(refusal) => {
            refusals.push(refusal);
            return Vec::new();
        }
    };
    // The first one too many is named; those before it are still read, so that their mistakes show
    // as well.
    if let Some(field) = fields.get(FACTORS_MAX) {
        refusals.push(Refusal::at(
            &field.name_span,
            format!("a study has at most {FACTORS_MAX} factors"),
            "take out those of one level, or ask two smaller questions",
        ));
    }
    let fields = fields.iter().take(FACTORS_MAX);
    let factors: Vec<Factor> = fields.map(|field| factor(text, field, refusals)).collect();
    check_costs(&factors, refusals);
    factors
}

/// A factor without levels is returned too: naming it elsewhere is then no second mistake.
fn factor(text: &str, field: &Field, refusals: &mut Vec<Refusal>) -> Factor {
    let mut factor = Factor {
        name: field.name.clone(),
        span: field.name_span.clone(),
        levels: Vec::new(),
    };
    if field.name.len() > NAME_MAX {
        let message = format!("the name of a factor has at most {NAME_MAX} letters");
        refusals.push(Refusal::at(&field.name_span, message, "shorten it"));
        // The name would be repeated in every refusal about this factor.
        factor.name.clear();
        return factor;
    }
    if field.name.is_empty() || field.name.contains(['{', '}']) {
        refusals.push(Refusal::at(
            &field.name_span,
            format!("\"{}\" cannot name a factor", field.name),
            "use letters, digits and hyphens",
        ));
    }
    refusals.extend(one_line::check(&field.name, "the name of a factor", &field.name_span).err());
    let ItemKind::List(items) = &field.item.node else {
        refusals.push(Refusal::at(
            &field.item.span,
            format!(
                "the levels of factor \"{}\" are a list, not {}",
                field.name,
                field.item.what()
            ),
            format!("write {} = [\"one level\", \"another\"]", field.name),
        ));
        return factor;
    };
    if items.is_empty() {
        refusals.push(Refusal::at(
            &field.item.span,
            format!("factor \"{}\" has no level", field.name),
            format!("write {} = [\"one level\", \"another\"]", field.name),
        ));
    }
    if let Some(item) = items.get(CONFIGURATIONS_MAX) {
        refusals.push(Refusal::at(
            &item.span,
            format!("a factor has at most {CONFIGURATIONS_MAX} levels"),
            "take out levels",
        ));
    }
    for item in items.iter().take(CONFIGURATIONS_MAX) {
        match level(text, item, refusals) {
            Ok(level) => {
                refusals.extend(on_one_line(&level));
                add_level(&mut factor, level, refusals);
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    factor
}

/// The refusal of a level that would be shown on several lines.
fn on_one_line(level: &Level) -> Option<Refusal> {
    let refusal = one_line::check(&level.label, "a level", &level.span).err()?;
    // The value itself may be a script of many lines.
    let label = "label it: { label = \"its name\", value = ... }";
    Some(match level.labelled {
        true => refusal,
        false => Refusal::at(&level.span, refusal.message, label),
    })
}

fn add_level(factor: &mut Factor, level: Level, refusals: &mut Vec<Refusal>) {
    // Two equal levels would be compared with each other, which takes rounds and tells nothing. With
    // labels it is meant: to see how large the noise is.
    let twice = factor.levels.iter().find(|other| {
        other.label == level.label
            || (!other.labelled && !level.labelled && other.value == level.value)
    });
    if let Some(twice) = twice {
        refusals.push(Refusal::at(
            &level.span,
            format!(
                "factor \"{}\" has the level \"{}\" twice",
                factor.name, twice.label
            ),
            "remove one; to compare a level with itself, label the two: \
             { label = \"xfs again\", value = \"xfs\" }",
        ));
        return;
    }
    factor.levels.push(level);
}

fn level(text: &str, item: &Item, refusals: &mut Vec<Refusal>) -> Result<Level, Refusal> {
    let ItemKind::Table(fields) = &item.node else {
        return plain_level(text, item, None);
    };
    for field in fields {
        if !LEVEL_WORDS.contains(&field.name.as_str()) {
            refusals.push(unknown_word(
                &field.name_span,
                &format!("a level has no \"{}\"", field.name),
                &field.name,
                LEVEL_WORDS.into_iter(),
                "a level has",
            ));
        }
    }
    let find = |name: &str| fields.iter().find(|field| field.name == name);
    let cost = find("cost").map(cost).transpose()?;
    let (label, Some(value)) = (find("label"), find("value")) else {
        return Err(incomplete(item));
    };
    let level = match label.map(|label| &label.item.node) {
        Some(ItemKind::Value(Value::Text(label))) if !label.trim().is_empty() => {
            plain_level(text, &value.item, Some(label.clone()))
        }
        // Written as a table for its cost.
        None if cost.is_some() => plain_level(text, &value.item, None),
        None => Err(incomplete(item)),
        Some(_) => Err(Refusal::at(
            label.map_or(&item.span, |label| &label.item.span),
            "a label is a text of at least one letter",
            format!("write it like {LEVEL_EXAMPLE}"),
        )),
    };
    level.map(|level| Level { cost, ..level })
}

fn incomplete(item: &Item) -> Refusal {
    Refusal::at(
        &item.span,
        "a level written as a table needs a label and a value",
        format!("write it like {LEVEL_EXAMPLE}"),
    )
}

/// The cost of a level.
fn cost(field: &Field) -> Result<Price, Refusal> {
    let span = &field.item.span;
    let Value::Text(text) = field.item.value()? else {
        return Err(Refusal::at(
            span,
            "a cost is a text",
            "write cost = \"73 EUR\"",
        ));
    };
    Price::read(&text).map_err(|why| Refusal::at(span, why.what, why.next))
}

/// Refuses costs that cannot be compared: of some levels of a factor only, in two currencies, once and a month.
fn check_costs(factors: &[Factor], refusals: &mut Vec<Refusal>) {
    let levels = || factors.iter().flat_map(|factor| &factor.levels);
    let first = levels().find_map(|level| level.cost.as_ref());
    let other = levels().find(|level| {
        let pair = level.cost.as_ref().zip(first);
        pair.is_some_and(|(cost, first)| !cost.is_like(first))
    });
    if let (Some(level), Some(first)) = (other, first) {
        let cost = level.cost.as_ref().map_or_else(String::new, Price::unit);
        let message = format!("a cost in {cost} beside one in {}", first.unit());
        refusals.push(Refusal::at(
            &level.span,
            message,
            "write all costs in one currency, once or per month: nothing is converted",
        ));
    }
    for factor in factors {
        let without = factor.levels.iter().find(|level| level.cost.is_none());
        if let Some(level) = without.filter(|_| factor.levels.iter().any(|it| it.cost.is_some())) {
            refusals.push(Refusal::at(
                &level.span,
                format!(
                    "\"{}\" has no cost, and other levels of {} have",
                    level.label, factor.name
                ),
                format!(
                    "write {{ label = \"{}\", value = …, cost = \"0 EUR\" }}",
                    level.label
                ),
            ));
        }
    }
}

fn plain_level(text: &str, item: &Item, label: Option<String>) -> Result<Level, Refusal> {
    let value = item.value()?;
    if let Value::List(values) = &value
        && let Some(odd) = values.iter().find(|v| !matches!(v, Value::Text(_)))
    {
        return Err(Refusal::at(
            &item.span,
            format!(
                "a level that is a list is a list of texts, and {} is in it",
                odd.what()
            ),
            "write it like [\"-O\", \"has_journal\"]",
        ));
    }
    // Remembered, because names of configurations show a chosen label alone and other values with
    // their factor.
    let labelled = label.is_some();
    let label = label.unwrap_or_else(|| match &value {
        Value::List(values) if values.is_empty() => "none".to_owned(),
        // Numbers and flags are labelled as they were written: 0x10 stays 0x10.
        Value::Integer(_) | Value::Float(_) | Value::Flag(_) => {
            text.get(item.span.clone()).unwrap_or_default().to_owned()
        }
        Value::Text(_) | Value::List(_) => value.as_words(),
    });
    if label.trim().is_empty() {
        return Err(Refusal::at(
            &item.span,
            "an empty level cannot be told apart in a report",
            "label it: { label = \"default\", value = \"\" }",
        ));
    }
    if label.len() > NAME_MAX {
        return Err(Refusal::at(
            &item.span,
            format!("the label of a level has at most {NAME_MAX} letters"),
            "label it: { label = \"many options\", value = [\"…\"] }",
        ));
    }
    Ok(Level {
        label,
        value,
        labelled,
        cost: None,
        span: item.span.clone(),
    })
}

/// Some levels of some factors: what `when` and `[[exclude]]` name.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection(Vec<(usize, Vec<usize>)>);

impl Selection {
    /// Reads `{ filesystem = "xfs", block-size = ["4 KiB", "8 KiB"] }`.
    pub(super) fn read(fields: &[Field], factors: &[Factor], refusals: &mut Vec<Refusal>) -> Self {
        let mut selection = Vec::new();
        for field in fields {
            match find_factor(factors, &field.name, &field.name_span)
                .and_then(|index| Ok((index, chosen(&factors[index], &field.item)?)))
            {
                Ok(choice) => selection.push(choice),
                Err(refusal) => refusals.push(refusal),
            }
        }
        Self(selection)
    }

    /// Returns true if a combination of levels (one index a factor) is in it.
    pub(super) fn holds(&self, levels: &[usize]) -> bool {
        self.0
            .iter()
            .all(|(factor, chosen)| chosen.contains(&levels[*factor]))
    }

    /// The factors it names.
    pub(super) fn factors(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|(factor, _)| *factor)
    }
}

/// Index of a factor by name.
pub(super) fn find_factor(factors: &[Factor], name: &str, span: &Span) -> Result<usize, Refusal> {
    factors
        .iter()
        .position(|factor| factor.name == name)
        .ok_or_else(|| {
            unknown_word(
                span,
                &format!("there is no factor \"{name}\""),
                name,
                factors.iter().map(|factor| factor.name.as_str()),
                "factors of this study",
            )
        })
}

/// Levels a value names: one level, or a list of them.
fn chosen(factor: &Factor, item: &Item) -> Result<Vec<usize>, Refusal> {
    if factor.levels.is_empty() {
        // Refused where it is written; saying that it lacks this level too would be an echo.
        return Ok(Vec::new());
    }
    match &item.node {
        ItemKind::List(items) => {
            // A list may itself be a level.
            if let Ok(index) = chosen_level(factor, item) {
                return Ok(vec![index]);
            }
            if items.is_empty() {
                return Err(Refusal::at(
                    &item.span,
                    format!("no level of factor \"{}\" is named", factor.name),
                    format!("its levels: {}", labels(factor)),
                ));
            }
            items
                .iter()
                .map(|item| chosen_level(factor, item))
                .collect()
        }
        _ => chosen_level(factor, item).map(|index| vec![index]),
    }
}

fn chosen_level(factor: &Factor, item: &Item) -> Result<usize, Refusal> {
    let value = item.value()?;
    let found = factor.levels.iter().position(|level| match &value {
        // A user writes what stands in the file (the value) or what stands in reports (the label).
        Value::Text(text) => *text == level.label || value == level.value,
        _ => value == level.value,
    });
    // As it was written: the refusal shows what stands in the file.
    let words = value.as_words();
    found.ok_or_else(|| {
        unknown_word(
            &item.span,
            &format!("factor \"{}\" has no level \"{words}\"", factor.name),
            &words,
            factor.levels.iter().map(|level| level.label.as_str()),
            "its levels",
        )
    })
}

fn labels(factor: &Factor) -> String {
    listed(factor.levels.iter().map(|level| level.label.as_str()))
}

/// Every combination of levels that is not excluded, the last factor changing fastest. `parts`:
/// layers and workloads each of them has.
///
/// # Errors
/// Too many, or none left.
pub(super) fn combinations(
    factors: &[Factor],
    span: Option<&Span>,
    excluded: &[Selection],
    parts: usize,
) -> Result<Vec<Vec<usize>>, Refusal> {
    // Counted before any combination is built: the product of ten short lists may not fit into
    // memory.
    let count = factors.iter().fold(1_usize, |count, factor| {
        count.saturating_mul(factor.levels.len())
    });
    if count > CONFIGURATIONS_MAX {
        let count = match count {
            usize::MAX => "more than 10¹⁸".to_owned(),
            count => count.to_string(),
        };
        let counts: Vec<String> = factors
            .iter()
            .map(|factor| format!("{} {}", factor.levels.len(), factor.name))
            .collect();
        return Err(Refusal {
            span: span.cloned(),
            message: format!(
                "the factors make {count} combinations ({}); a study has at most {CONFIGURATIONS_MAX}",
                counts.join(" x ")
            ),
            help: "take out levels, or ask two smaller questions".to_owned(),
        });
    }
    let combinations: Vec<Vec<usize>> = (0..count)
        .map(|index| combination(factors, index))
        .filter(|levels| !excluded.iter().any(|selection| selection.holds(levels)))
        .collect();
    if combinations.is_empty() {
        return Err(Refusal {
            span: span.cloned(),
            message: "every combination of levels is excluded".to_owned(),
            help: "remove an [[exclude]]".to_owned(),
        });
    }
    // Each layer and workload is parsed in every combination, so that this product is what checking
    // a study costs.
    let all_parts = combinations.len().saturating_mul(parts);
    if all_parts > PARTS_MAX {
        return Err(Refusal {
            span: span.cloned(),
            message: format!(
                "{} configurations of up to {parts} layers and workloads are {all_parts} of them; a study has at most {PARTS_MAX}",
                combinations.len()
            ),
            help: "take out levels or workloads, or ask two smaller questions".to_owned(),
        });
    }
    Ok(combinations)
}

fn combination(factors: &[Factor], index: usize) -> Vec<usize> {
    let mut rest = index;
    let mut levels = vec![0; factors.len()];
    for (level, factor) in levels.iter_mut().zip(factors).rev() {
        // The last factor varies fastest, as nested loops in the order of the file would do.
        *level = rest % factor.levels.len();
        rest /= factor.levels.len();
    }
    levels
}

/// Names of configurations, each different from all others.
pub(super) fn names(factors: &[Factor], combinations: &[Vec<usize>]) -> Vec<String> {
    let short = named(factors, combinations, |factor, level| match level.value {
        _ if level.labelled => level.label.clone(),
        Value::Text(_) | Value::List(_) => level.label.clone(),
        Value::Integer(_) | Value::Float(_) | Value::Flag(_) => {
            format!("{}={}", factor.name, level.label)
        }
    });
    let different: HashSet<&String> = short.iter().collect();
    if different.len() == short.len() {
        return short;
    }
    // Labels with commas in them can collide; names of factors cannot.
    named(factors, combinations, |factor, level| {
        format!("{}=\"{}\"", factor.name, level.label)
    })
}

fn named(
    factors: &[Factor],
    combinations: &[Vec<usize>],
    name: impl Fn(&Factor, &Level) -> String,
) -> Vec<String> {
    combinations
        .iter()
        .map(|levels| {
            let parts: Vec<String> = factors
                .iter()
                .zip(levels)
                .map(|(factor, level)| name(factor, &factor.levels[*level]))
                .collect();
            parts.join(", ")
        })
        .collect()
}
