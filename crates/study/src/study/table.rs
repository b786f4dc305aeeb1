//! A study as a value, and its text.
//!
//! What the program makes itself, as `compare` does, is made of these tables. The text is written to be
//! shown and kept, and the place of each word in it comes from the writing: [`super::made`] reads the
//! value, not the text, and still shows a refusal at its line.

use stackrace_base::setting::{Refusal, SettingDoc, Settings, Value};

use super::document::{self, Field, Item, ItemKind};

/// A table of a study, or a whole study.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StudyTable {
    fields: Vec<Field>,
}

impl StudyTable {
    /// The table that a text says. Of its comments, those right above a word of the first level stay.
    ///
    /// # Errors
    /// It is no TOML.
    pub fn read(text: &str) -> Result<Self, Vec<Refusal>> {
        document::read(text).map(|fields| Self { fields })
    }

    /// The settings of one layer or workload, none of which has a placeholder.
    pub fn of(settings: &Settings) -> Self {
        let all = settings.settings.iter();
        all.fold(Self::default(), |table, setting| {
            table.value(&setting.name, literal(setting.value.clone()))
        })
    }

    /// The settings of the one layer or workload in it, of the kind with these settings. A table of
    /// anything else has none.
    pub fn settings(&self, docs: impl FnOnce(&str) -> &'static [SettingDoc]) -> Settings {
        let (owner, item) = match self.fields.as_slice() {
            [field] => (field.name.as_str(), field.item.fields()),
            _ => ("", &[][..]),
        };
        document::settings(owner, &(0..0), item, docs(owner), &mut Vec::new())
    }

    /// With a value more.
    #[must_use]
    pub fn value(self, name: &str, value: impl Into<Value>) -> Self {
        self.with(name, node(value.into()), false)
    }

    /// With a value more, where there is one.
    #[must_use]
    pub fn optional(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.value(name, value),
            None => self,
        }
    }

    /// With a table more. Inside of another one it is written on one line.
    #[must_use]
    pub fn table(self, name: &str, table: Self) -> Self {
        self.with(name, ItemKind::Table(table.fields), false)
    }

    /// With a table more, that has a header and lines of its own.
    #[must_use]
    pub fn headed(self, name: &str, table: Self) -> Self {
        self.with(name, ItemKind::Table(table.fields), true)
    }

    /// With a list of tables more.
    #[must_use]
    pub fn tables(self, name: &str, tables: impl IntoIterator<Item = Self>) -> Self {
        let tables = tables.into_iter();
        let items = tables.map(|table| item(ItemKind::Table(table.fields), false));
        self.with(name, ItemKind::List(items.collect()), false)
    }

    /// With a comment above the word that was added last: whole lines, each beginning with `#`.
    #[must_use]
    pub fn comment(mut self, comment: &str) -> Self {
        // Kept with the word: what is written before it does not come between.
        if let Some(last) = self.fields.last_mut() {
            comment.clone_into(&mut last.comment);
        }
        self
    }

    fn with(mut self, name: &str, node: ItemKind, headed: bool) -> Self {
        self.fields.push(field(name, item(node, headed)));
        self
    }

    /// With these values before all others, and in place of those of their names.
    #[must_use]
    pub fn led_by(self, mut first: Self) -> Self {
        let replaced = |field: &Field| first.fields.iter().any(|new| new.name == field.name);
        let kept: Vec<Field> = self.fields.into_iter().filter(|it| !replaced(it)).collect();
        first.fields.extend(kept);
        first
    }

    /// With what stands under a name, if it is a table, changed.
    #[must_use]
    pub fn changed(mut self, name: &str, change: impl FnOnce(Self) -> Self) -> Self {
        // A study that was read may say less than one that was made: what is missing stays so.
        let mut fields = self.fields.iter_mut();
        if let Some(field) = fields.find(|field| field.name == name)
            && let ItemKind::Table(fields) = &mut field.item.node
        {
            let table = change(Self {
                fields: std::mem::take(fields),
            });
            *fields = table.fields;
        }
        self
    }

    /// With the word of another study in place of its own, whose place and comment stay; where the other
    /// has none, it is taken out.
    #[must_use]
    pub fn with_that_of(mut self, name: &str, other: &Self) -> Self {
        match other.fields.iter().find(|field| field.name == name) {
            Some(other) => {
                let own = self.fields.iter_mut().filter(|field| field.name == name);
                own.for_each(|own| own.item = other.item.clone());
            }
            None => self.fields.retain(|field| field.name != name),
        }
        self
    }

    /// The text: values first, then what has a header, each in its order.
    pub fn text(&self) -> String {
        self.clone().placed().0
    }

    /// Its text, and its words with their places in it.
    pub(super) fn placed(mut self) -> (String, Vec<Field>) {
        let mut writer = Writer::default();
        writer.body("", &mut self.fields);
        (writer.text, self.fields)
    }
}

fn field(name: &str, item: Item) -> Field {
    Field {
        name: name.to_owned(),
        name_span: 0..0,
        item,
        comment: String::new(),
    }
}

fn item(node: ItemKind, headed: bool) -> Item {
    Item {
        span: 0..0,
        node,
        headed,
    }
}

fn node(value: Value) -> ItemKind {
    match value {
        Value::List(values) => {
            let items = values.into_iter().map(|value| item(node(value), false));
            ItemKind::List(items.collect())
        }
        value => ItemKind::Value(value),
    }
}

/// A value that has no placeholders, as it stands in a study.
pub fn literal(value: Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(doubled(&text)),
        Value::List(values) => Value::List(values.into_iter().map(literal).collect()),
        plain => plain,
    }
}

/// A text without placeholders: a brace in a study begins one, unless it is doubled.
pub(super) fn doubled(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// A text on one line, as TOML has it. JSON has the same escapes, but for one letter.
pub(super) fn one_line(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    json.replace('\u{7f}', "\\u007f")
}

/// A word in front of a sign of equality, or in a header.
fn key(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => one_line(name),
    }
}

/// A list of tables and nothing else: each can have a header.
fn are_tables(items: &[Item]) -> bool {
    let table = |item: &Item| matches!(item.node, ItemKind::Table(_));
    !items.is_empty() && items.iter().all(table)
}

/// A text under way. Everything written gets its place, as the reader would find it.
#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    /// The lines of a table; `path` is its header, empty for the whole study.
    fn body(&mut self, path: &str, fields: &mut [Field]) {
        let has_header = |item: &Item| match &item.node {
            ItemKind::Table(_) => path.is_empty() || item.headed,
            ItemKind::List(items) => path.is_empty() && are_tables(items),
            ItemKind::Value(_) | ItemKind::Unusable(_) => false,
        };
        // After a header, a line would belong to that table.
        fields.sort_by_key(|field| has_header(&field.item));
        for field in fields {
            if !has_header(&field.item) {
                self.text.push_str(&field.comment);
                self.assignment(field);
                self.text.push('\n');
                continue;
            }
            let name = key(&field.name);
            // A table inside of one of a list belongs to the last of that list.
            let whole = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            let (open, close, tables) = match &mut field.item.node {
                ItemKind::List(items) => ("[[", "]]", items.as_mut_slice()),
                _ => ("[", "]", std::slice::from_mut(&mut field.item)),
            };
            let mut first = None;
            for table in tables {
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                // One comment is about the whole list.
                if first.is_none() {
                    self.text.push_str(&field.comment);
                }
                let start = self.text.len();
                self.text.push_str(&[open, &whole, close].concat());
                table.span = start..self.text.len();
                first.get_or_insert(table.span.clone());
                self.text.push('\n');
                if let ItemKind::Table(fields) = &mut table.node {
                    self.body(&whole, fields);
                }
            }
            // The reader takes the first header of a list for its place.
            let header = first.unwrap_or_default();
            let end = header.end - close.len();
            field.name_span = end - name.len()..end;
            field.item.span = header;
        }
    }

    fn assignment(&mut self, field: &mut Field) {
        let start = self.text.len();
        self.text.push_str(&key(&field.name));
        field.name_span = start..self.text.len();
        self.text.push_str(" = ");
        self.item(&mut field.item);
    }

    fn item(&mut self, item: &mut Item) {
        let start = self.text.len();
        match &mut item.node {
            ItemKind::Value(value) => self.text.push_str(&scalar(value)),
            // Nothing that a study means; it is refused as what it says.
            ItemKind::Unusable(what) => self.text.push_str(&one_line(what)),
            ItemKind::List(items) => {
                // A table takes most of a line.
                let lines = items.iter().any(|it| matches!(it.node, ItemKind::Table(_)));
                self.text.push('[');
                for (at, item) in items.iter_mut().enumerate() {
                    self.text.push_str(match (lines, at) {
                        (true, _) => "\n  ",
                        (false, 0) => "",
                        (false, _) => ", ",
                    });
                    self.item(item);
                    if lines {
                        self.text.push(',');
                    }
                }
                self.text.push_str(if lines { "\n]" } else { "]" });
            }
            ItemKind::Table(fields) => {
                self.text.push('{');
                for (at, field) in fields.iter_mut().enumerate() {
                    self.text.push_str(if at == 0 { " " } else { ", " });
                    self.assignment(field);
                }
                self.text.push_str(" }");
            }
        }
        item.span = start..self.text.len();
    }
}

/// A value that is no list, as TOML has it.
fn scalar(value: &Value) -> String {
    match value {
        Value::Text(text) => toml::Value::String(text.clone()).to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => toml::Value::Float(*number).to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(values) => {
            let values: Vec<String> = values.iter().map(scalar).collect();
            format!("[{}]", values.join(", "))
        }
    }
}
