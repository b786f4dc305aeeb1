//! A study's text as a tree of tables, lists and values, each with its place.
//!
//! The TOML crate sorts a table by its words; a study is read, and complained about, in the order
//! it was written. Everything below works on this tree and never sees the crate again.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use stackrace_base::setting::{GivenSetting, Refusal, SettingDoc, Settings, Span, Value};

/// One word of a table and what it stands for.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) name_span: Span,
    pub(super) item: Item,
    /// Comment on the lines right above; of words of the first level alone.
    pub(super) comment: String,
}

/// Something written, and where.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) span: Span,
    pub(super) node: ItemKind,
    /// True of a table inside of another one that is to be written under a header of its own.
    pub(super) headed: bool,
}

// Two are the same wherever they stand, and however they are laid out.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.item.node, &self.comment)
            == (&other.name, &other.item.node, &other.comment)
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

/// Kinds of item that can be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemKind {
    /// A text, a number or a flag.
    Value(Value),
    /// An array, or tables with one header: `[…]`, `[[…]]`.
    List(Vec<Item>),
    /// `{…}`, `[…]` as a header.
    Table(Vec<Field>),
    /// TOML that a study has no use for; what it is.
    Unusable(&'static str),
}

/// The word that stands at a place, behind those of the tables around it; empty if there is none.
pub(super) fn words_at(fields: &[Field], place: &Span) -> Vec<String> {
    fn find(fields: &[Field], at: usize, words: &mut Vec<String>) -> bool {
        fields.iter().any(|field| {
            words.push(field.name.clone());
            // A table with a header has its words outside of its own place.
            let found = within(&field.item, at, words)
                || field.name_span.contains(&at)
                || field.item.span.contains(&at);
            if !found {
                words.pop();
            }
            found
        })
    }
    fn within(item: &Item, at: usize, words: &mut Vec<String>) -> bool {
        match &item.node {
            ItemKind::Table(fields) => find(fields, at, words),
            ItemKind::List(items) => items.iter().any(|item| within(item, at, words)),
            ItemKind::Value(_) | ItemKind::Unusable(_) => false,
        }
    }
    let mut words = Vec::new();
    find(fields, place.start, &mut words);
    words
}

/// Reads TOML.
///
/// # Errors
/// Everything that is no TOML.
pub(super) fn read(text: &str) -> Result<Vec<Field>, Vec<Refusal>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let mut fields = fields(table.get_ref());
        for field in &mut fields {
            field.comment = comment_above(text, field.name_span.start);
        }
        return Ok(fields);
    }
    // What was recovered is not looked at: complaints about it would mostly be echoes.
    Err(errors
        .iter()
        .map(|error| match error.message().trim_end() {
            // The library has two ways to say this, and neither says of what.
            "recursion limit" | "cannot recurse further; max recursion depth met" => Refusal {
                span: error.span(),
                message: "values are nested too deep here".to_owned(),
                help: "check that it is the right file: a study needs no more than four levels"
                    .to_owned(),
            },
            said => Refusal {
                span: error.span(),
                message: said.replace('\n', ", "),
                help: String::new(),
            },
        })
        .collect())
}

/// The lines right above the one of this place that are comments, as they are written.
fn comment_above(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    // A blank line ends it: what stands above that is about more than this word.
    let above = text[..line].split_inclusive('\n').rev();
    let comment: usize = above
        .take_while(|line| line.starts_with('#'))
        .map(str::len)
        .sum();
    text[line - comment..line].to_owned()
}

fn fields(table: &DeTable<'_>) -> Vec<Field> {
    let mut fields: Vec<Field> = table
        .iter()
        .map(|(name, value)| Field {
            name: name.get_ref().to_string(),
            name_span: name.span(),
            item: item(value),
            comment: String::new(),
        })
        .collect();
    // Back into the order of the text, which the crate does not keep.
    fields.sort_by_key(|field| field.name_span.start);
    fields
}

fn item(value: &Spanned<DeValue<'_>>) -> Item {
    let node = match value.get_ref() {
        DeValue::String(text) => ItemKind::Value(Value::Text(text.to_string())),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            // Kept as unusable instead of refused here: only the reader of the setting knows what is
            // meant at this place.
            .map_or(ItemKind::Unusable("a number beyond 64 bits"), |number| {
                ItemKind::Value(Value::Integer(number))
            }),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(ItemKind::Unusable("no number"), |number| {
                ItemKind::Value(Value::Float(number))
            }),
        DeValue::Boolean(flag) => ItemKind::Value(Value::Flag(*flag)),
        DeValue::Datetime(_) => ItemKind::Unusable("a date or a time of day"),
        DeValue::Array(items) => ItemKind::List(items.iter().map(item).collect()),
        DeValue::Table(table) => ItemKind::Table(fields(table)),
    };
    Item {
        span: value.span(),
        node,
        headed: false,
    }
}

impl Item {
    /// Names its kind, for a message.
    pub(super) fn what(&self) -> &'static str {
        match &self.node {
            ItemKind::Value(value) => value.what(),
            ItemKind::List(_) => "a list",
            ItemKind::Table(_) => "a table",
            ItemKind::Unusable(what) => what,
        }
    }

    /// The words of a table; none of anything else.
    pub(super) fn fields(&self) -> &[Field] {
        match &self.node {
            ItemKind::Table(fields) => fields,
            _ => &[],
        }
    }

    /// The value; a list is one if everything in it is.
    ///
    /// # Errors
    /// The table or the unusable thing in it.
    pub(super) fn value(&self) -> Result<Value, Refusal> {
        match &self.node {
            ItemKind::Value(value) => Ok(value.clone()),
            ItemKind::List(items) => {
                let values: Result<Vec<Value>, Refusal> = items.iter().map(Self::value).collect();
                values.map(Value::List)
            }
            ItemKind::Table(_) | ItemKind::Unusable(_) => Err(Refusal::at(
                &self.span,
                format!("a value must stand here, not {}", self.what()),
                "write a text, a number, true, false, or a list of these",
            )),
        }
    }

    /// The table's fields.
    ///
    /// # Errors
    /// It is no table.
    pub(super) fn table(&self, owner: &str, example: &str) -> Result<&[Field], Refusal> {
        match &self.node {
            ItemKind::Table(fields) => Ok(fields),
            _ => Err(Refusal::at(
                &self.span,
                format!("{owner} is a table, not {}", self.what()),
                format!("write it like {example}"),
            )),
        }
    }
}

/// The words of a table as settings.
///
/// # Errors
/// Adds what is no value to `refusals`; the rest is still returned.
pub(super) fn settings<'a>(
    owner: &str,
    span: &Span,
    fields: impl IntoIterator<Item = &'a Field>,
    docs: &'static [SettingDoc],
    refusals: &mut Vec<Refusal>,
) -> Settings {
    let mut settings = Vec::new();
    for field in fields {
        match field.item.value() {
            Ok(value) => settings.push(GivenSetting {
                name: field.name.clone(),
                value,
                span: field.item.span.clone(),
                name_span: field.name_span.clone(),
            }),
            Err(refusal) => refusals.push(refusal),
        }
    }
    Settings {
        owner: owner.to_owned(),
        span: span.clone(),
        settings,
        docs,
    }
}
