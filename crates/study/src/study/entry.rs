//! One `[[stack]]` or `[[workload]]`: a kind, its settings, and what becomes of them in one
//! configuration.

use stackrace_base::setting::{GivenSetting, Refusal, SettingDoc, Settings, Span, Value};

use super::design::Factor;
use super::document::{self, Field, Item, ItemKind};
use super::factor::Selection;
use super::placeholder::Template;

/// Longest settings of one entry with their placeholders replaced, bytes: every configuration has them.
const FILLED_MAX: usize = 8192;

/// An entry as written, its placeholders known to name factors.
pub(super) struct StudyEntry {
    /// Configurations it applies to.
    pub(super) when: Selection,
    /// The kind, possibly with placeholders.
    pub(super) kind: Template,
    /// Place where the kind is written.
    pub(super) kind_span: Span,
    /// Place where the whole entry is written.
    pub(super) span: Span,
    /// The settings as written, and the template of each.
    raw: Settings,
    templates: Vec<Template>,
}

/// The tables of `[[name]]`, each with its place.
pub(super) fn tables<'a>(
    name: &str,
    example: &str,
    item: &'a Item,
    refusals: &mut Vec<Refusal>,
) -> Vec<(&'a Span, &'a [Field])> {
    let ItemKind::List(items) = &item.node else {
        refusals.push(Refusal::at(
            &item.span,
            format!("{name} is a list of tables, not {}", item.what()),
            format!("write [[{name}]] with two brackets, then {example}"),
        ));
        return Vec::new();
    };
    let mut tables = Vec::new();
    for item in items {
        match item.table(name, &format!("[[{name}]] {example}")) {
            Ok(fields) => tables.push((&item.span, fields)),
            Err(refusal) => refusals.push(refusal),
        }
    }
    tables
}

/// Reads the one field of an entry that names its kind.
///
/// `others`: the fields that do not, to tell a misplaced setting from a second kind.
pub(super) fn read(
    what: &str,
    example: &str,
    span: &Span,
    kinds: &[&Field],
    when: Selection,
    factors: &[Factor],
    refusals: &mut Vec<Refusal>,
) -> Option<StudyEntry> {
    let field = match kinds {
        [field] => field,
        [] => {
            refusals.push(Refusal::at(
                span,
                format!("this [[{what}]] does not say of which kind it is"),
                format!("write it like {example}"),
            ));
            return None;
        }
        [_, second, ..] => {
            refusals.push(Refusal::at(
                &second.name_span,
                format!(
                    "one [[{what}]] names one kind, and \"{}\" is a second one",
                    second.name
                ),
                format!("give it a [[{what}]] of its own, or move it into the braces of the first"),
            ));
            return None;
        }
    };
    let name = Value::Text(field.name.clone());
    let kind = keep(Template::new(&name, &field.name_span, factors), refusals);
    let table = keep(
        field.item.table(&format!("\"{}\"", field.name), example),
        refusals,
    );
    let (kind, table) = (kind?, table?);
    let raw = document::settings(&field.name, &field.item.span, table, &[], refusals);
    let mut templates = Vec::new();
    for setting in &raw.settings {
        templates.extend(keep(
            Template::new(&setting.value, &setting.span, factors),
            refusals,
        ));
    }
    let size: usize = templates
        .iter()
        .map(|template| template.size_max(factors))
        .sum();
    if size > FILLED_MAX {
        refusals.push(Refusal::at(
            &field.name_span,
            format!(
                "the settings of this {what} are longer than {FILLED_MAX} bytes in a configuration"
            ),
            "shorten them, or the levels their placeholders stand for",
        ));
        return None;
    }
    // A setting that was refused leaves a hole; half an entry would be checked against defaults.
    (templates.len() == table.len()).then(|| StudyEntry {
        when,
        kind,
        kind_span: field.name_span.clone(),
        span: span.clone(),
        raw,
        templates,
    })
}

/// The value, or a line in the list of refusals.
pub(super) fn keep<T>(result: Result<T, Refusal>, refusals: &mut Vec<Refusal>) -> Option<T> {
    result.map_err(|refusal| refusals.push(refusal)).ok()
}

impl StudyEntry {
    /// The kind in one configuration.
    pub(super) fn kind_in(&self, factors: &[Factor], levels: &[usize]) -> String {
        self.kind.fill(factors, levels).as_words()
    }

    /// The settings in one configuration.
    pub(super) fn settings_in(
        &self,
        factors: &[Factor],
        levels: &[usize],
        docs: &'static [SettingDoc],
    ) -> Settings {
        let settings = self
            .raw
            .settings
            .iter()
            .zip(&self.templates)
            .map(|(setting, template)| GivenSetting {
                value: template.fill(factors, levels),
                // The place stays that of the template, which is where the user has to look.
                ..setting.clone()
            })
            .collect();
        Settings {
            owner: self.kind_in(factors, levels),
            span: self.raw.span.clone(),
            settings,
            docs,
        }
    }

    /// Place where a setting is written; that of the entry's kind, if it is not.
    pub(super) fn place_of(&self, setting: &str) -> &Span {
        let mut all = self.raw.settings.iter();
        let found = all.find(|given| given.name == setting);
        found.map_or(&self.kind_span, |given| &given.span)
    }

    /// Every factor it depends on, some of them perhaps more than once.
    pub(super) fn factors(&self) -> Vec<usize> {
        let mut factors: Vec<usize> = self.when.factors().collect();
        factors.extend(self.kind.factors());
        factors.extend(self.templates.iter().flat_map(Template::factors));
        factors
    }

    /// Returns true if a setting is not the same in every configuration.
    pub(super) fn varies(&self, name: &str) -> bool {
        let mut settings = self.raw.settings.iter().zip(&self.templates);
        let named = settings.find(|(setting, _)| setting.name == name);
        named.is_some_and(|(_, template)| !template.factors().is_empty())
    }

    /// The factors whose levels can have caused a refusal at this place.
    pub(super) fn factors_at(&self, span: Option<&Span>) -> Vec<usize> {
        let value = self
            .raw
            .settings
            .iter()
            .zip(&self.templates)
            .find(|(setting, _)| Some(&setting.span) == span);
        match value {
            Some((_, template)) => template.factors(),
            None => self.kind.factors(),
        }
    }
}
