//! `{factor}` inside a value: which factors it names, and what it becomes in one configuration.
//!
//! A text that is nothing but `{factor}` becomes the level itself, number or list as it is; inside
//! a longer text the level is written out. `{{` and `}}` are literal braces.

use stackrace_base::setting::{Refusal, Span, Value};

use super::design::Factor;
use super::factor::find_factor;

/// A value whose placeholders are known to name factors.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Template {
    /// Nothing to replace.
    Plain(Value),
    /// The level of one factor.
    Level(usize),
    /// Text and levels in turn.
    Text(Vec<TemplatePart>),
    /// A list; a level that is a list becomes several elements of it.
    List(Vec<Template>),
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TemplatePart {
    /// Text as written.
    Literal(String),
    /// The level of one factor, written out.
    Level(usize),
}

impl Template {
    /// Finds the placeholders of a value.
    ///
    /// # Errors
    /// An unknown factor, or a brace that is not closed.
    pub(super) fn new(value: &Value, span: &Span, factors: &[Factor]) -> Result<Self, Refusal> {
        match value {
            Value::Text(text) if text.contains(['{', '}']) => {
                let parts = parts(text, span, factors)?;
                Ok(match parts.as_slice() {
                    // Alone, a placeholder keeps the kind of its level: a number stays a number.
                    [TemplatePart::Level(factor)] => Self::Level(*factor),
                    [TemplatePart::Literal(text)] => Self::Plain(Value::Text(text.clone())),
                    _ => Self::Text(parts),
                })
            }
            Value::List(values) => {
                let list: Result<Vec<Self>, Refusal> = values
                    .iter()
                    .map(|value| Self::new(value, span, factors))
                    .collect();
                list.map(Self::List)
            }
            Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Flag(_) => {
                Ok(Self::Plain(value.clone()))
            }
        }
    }

    /// The value with the levels of one configuration (one index a factor).
    pub(super) fn fill(&self, factors: &[Factor], levels: &[usize]) -> Value {
        let level = |factor: usize| &factors[factor].levels[levels[factor]].value;
        match self {
            Self::Plain(value) => value.clone(),
            Self::Level(factor) => level(*factor).clone(),
            Self::Text(parts) => Value::Text(
                parts
                    .iter()
                    .map(|part| match part {
                        TemplatePart::Literal(text) => text.clone(),
                        TemplatePart::Level(factor) => level(*factor).as_words(),
                    })
                    .collect(),
            ),
            Self::List(list) => {
                let mut values = Vec::new();
                for template in list {
                    match (template, template.fill(factors, levels)) {
                        // A level of several options is spliced in: nested lists mean nothing to a
                        // tool.
                        (Self::Level(_), Value::List(several)) => values.extend(several),
                        (_, value) => values.push(value),
                    }
                }
                Value::List(values)
            }
        }
    }

    /// Bytes and elements of the value in the configuration where it is longest.
    pub(super) fn size_max(&self, factors: &[Factor]) -> usize {
        let level = |factor: usize| {
            let levels = factors[factor].levels.iter();
            levels.map(|level| level.value.size()).max().unwrap_or(0)
        };
        match self {
            Self::Plain(value) => value.size(),
            Self::Level(factor) => level(*factor),
            Self::Text(parts) => parts
                .iter()
                .map(|part| match part {
                    TemplatePart::Literal(text) => text.len(),
                    TemplatePart::Level(factor) => level(*factor),
                })
                .sum(),
            Self::List(list) => list
                .iter()
                .map(|template| 1 + template.size_max(factors))
                .sum(),
        }
    }

    /// The factors it names.
    pub(super) fn factors(&self) -> Vec<usize> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Level(factor) => vec![*factor],
            Self::Text(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    TemplatePart::Literal(_) => None,
                    TemplatePart::Level(factor) => Some(*factor),
                })
                .collect(),
            Self::List(list) => list.iter().flat_map(Self::factors).collect(),
        }
    }
}

fn parts(text: &str, span: &Span, factors: &[Factor]) -> Result<Vec<TemplatePart>, Refusal> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        let after = &rest[at + 1..];
        // A doubled brace stands for itself.
        if let Some(after) = after.strip_prefix(brace) {
            literal.push_str(brace);
            rest = after;
            continue;
        }
        let end = after.find(['{', '}']);
        let (true, Some(end)) = (
            brace == "{",
            end.filter(|end| after[*end..].starts_with('}')),
        ) else {
            return Err(Refusal::at(
                span,
                format!("a \"{brace}\" in this text has no partner"),
                "write {factor} for the level of a factor, {{ or }} for a brace itself",
            ));
        };
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
        }
        parts.push(TemplatePart::Level(find_factor(
            factors,
            &after[..end],
            span,
        )?));
        rest = &after[end + 1..];
    }
    literal.push_str(rest);
    if !literal.is_empty() || parts.is_empty() {
        parts.push(TemplatePart::Literal(literal));
    }
    Ok(parts)
}
