//! What the command line asks of a study, written into its text: so the record of a run says all of it.

use super::design::Study;
use super::document::{self, Field, Item, ItemKind};
use super::table::{doubled, one_line};

use stackrace_base::setting::{Refusal, Span, Value};
use stackrace_layers::stack::{self, MODELLED_DISKS};

/// The factor whose levels are drives that the command line names.
const DRIVE: &str = "drive";

/// The text of a valid study, its places named by the command line.
pub fn in_places(text: &str, factor: &str, places: &[String]) -> String {
    // A list of texts is written the same in TOML and in JSON.
    with_levels(
        text,
        factor,
        &serde_json::to_string(places).unwrap_or_default(),
    )
}

/// The text of a valid study with a factor that has these levels, in place of its own where it has one
/// of that name. Levels are a list as TOML writes it.
fn with_levels(text: &str, factor: &str, levels: &str) -> String {
    let fields = document::read(text).unwrap_or_default();
    let factors = fields.iter().find(|field| field.name == "factors");
    let table = factors.map_or(&[][..], |field| field.item.fields());
    let (span, new) = match (
        table.iter().find(|field| field.name == factor),
        table.last(),
    ) {
        (Some(named), _) => (named.item.span.clone(), levels.to_owned()),
        (None, Some(last)) => {
            let end = last.item.span.end;
            let before = between(text, factors);
            (end..end, format!("{before}{factor} = {levels}"))
        }
        (None, None) => {
            let end = text.len();
            (end..end, format!("\n[factors]\n{factor} = {levels}\n"))
        }
    };
    [&text[..span.start], &new, &text[span.end..]].concat()
}

/// Text between two factors: of `[factors]`, `factors = { … }`, or `factors.name = …`.
fn between(text: &str, factors: Option<&Field>) -> &'static str {
    let after = factors.map_or("", |field| text[field.name_span.end..].trim_start());
    match after.chars().next() {
        // factors = { a = [...] } goes on in the same braces.
        Some('=') => ", ",
        // factors.a = [...] needs the whole name again.
        Some('.') => "\nfactors.",
        // [factors] is a table: a further line.
        _ => "\n",
    }
}

/// A drive that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedDrive {
    /// The word of its card.
    pub name: String,
    /// The text of its card; `None` if it ships with the program.
    pub own: Option<String>,
}

impl AskedDrive {
    /// Returns the text a layer writes for it.
    fn model(&self) -> String {
        match &self.own {
            Some(text) => doubled(text),
            None => self.name.clone(),
        }
    }

    /// Returns the text a factor writes for it.
    fn level(&self) -> String {
        let name = one_line(&self.name);
        match &self.own {
            Some(text) => format!("{{ label = {name}, value = {} }}", one_line(text)),
            None => name,
        }
    }
}

/// The text of a valid study whose disks are all modelled, as one of these drives; several become a
/// factor.
///
/// # Errors
/// No layer of it is a disk, it compares drives itself, or it has a factor of that name.
pub fn on_drives(study: &Study, drives: &[AskedDrive]) -> Result<String, Refusal> {
    let text = study.text.as_str();
    let fields = document::read(text).unwrap_or_default();
    let disks = disks(&fields)?;
    own_drives(&disks)?;
    let several = drives.len() > 1;
    let own = study.factors.iter().find(|factor| factor.name == DRIVE);
    if let Some(own) = own.filter(|_| several) {
        return Err(Refusal::at(
            &own.span,
            format!("several --drive become a factor \"{DRIVE}\", and the study has one"),
            "name one drive, or give the study's factor another name",
        ));
    }
    let model = match several {
        true => format!("{{{DRIVE}}}"),
        false => drives.iter().map(AskedDrive::model).collect(),
    };
    let mut edits: Vec<(Span, String)> = Vec::new();
    for disk in disks {
        edits.push((
            disk.name_span.start..disk.item.span.end,
            modelled(text, disk, &model)?,
        ));
    }
    let names: Vec<&str> = drives.iter().map(|drive| drive.name.as_str()).collect();
    edits.push(with_words(
        &fields,
        "title",
        &study.title,
        &format!("(on {})", names.join(" and ")),
    ));
    edits.push(with_words(&fields, "question", "", &note(&names)));
    // From the end to the beginning: an edit then moves none that is still to be made.
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut text = text.to_owned();
    for (span, new) in edits {
        text.replace_range(span, &new);
    }
    let text = without_unused_sizes(study, text);
    Ok(match several {
        true => {
            let levels: Vec<String> = drives.iter().map(AskedDrive::level).collect();
            with_levels(&text, DRIVE, &format!("[{}]", levels.join(", ")))
        }
        false => text,
    })
}

/// A text without the sizes that only the settings of the replaced disks used.
fn without_unused_sizes(study: &Study, mut text: String) -> String {
    let fields = document::read(&text).unwrap_or_default();
    let sizes = fields.iter().find(|field| field.name == "sizes");
    let sizes = sizes.map_or(&[][..], |field| field.item.fields());
    for size in sizes.iter().rev() {
        let used = format!("{{{}}}", size.name);
        if study.text.contains(&used) && !text.contains(&used) {
            let before = text[..size.name_span.start].trim_end();
            let after = text[size.item.span.end..].trim_start();
            // Between braces, a comma goes with it.
            let (start, end) = match (before.ends_with(','), after.strip_prefix(',')) {
                (_, Some(after)) => (size.name_span.start, text.len() - after.len()),
                (true, None) => (before.len() - 1, size.item.span.end),
                (false, None) => (size.name_span.start, size.item.span.end),
            };
            text.replace_range(start..end, "");
        }
    }
    text
}

/// The settings of a layer that modelled drives in its place keep; `None` if it is no disk. The others
/// say how fast a disk is or where its file lies: the drive's card answers that.
fn kept_by_drives(layer: &Field) -> &'static [&'static str] {
    let kind = stack::ALL.iter().find(|kind| kind.name == layer.name);
    kind.map_or(&[], |kind| kind.kept_by_drives)
}

/// The layers of a study that are disks.
fn disks(fields: &[Field]) -> Result<Vec<&Field>, Refusal> {
    let stack = fields.iter().find(|field| field.name == "stack");
    let layers = match stack.map(|field| &field.item.node) {
        Some(ItemKind::List(layers)) => layers.as_slice(),
        _ => &[],
    };
    let layers = layers.iter().flat_map(Item::fields);
    let disks: Vec<&Field> = layers
        .filter(|layer| !kept_by_drives(layer).is_empty())
        .collect();
    if disks.is_empty() {
        return Err(Refusal::at(
            &stack.map_or(0..0, |field| field.name_span.clone()),
            "no layer of this study is a disk that a modelled drive could replace",
            "take one whose stack begins with such disks: stackrace run ext4-vs-xfs --lab --drive NAME",
        ));
    }
    Ok(disks)
}

/// Refuses disks that differ in their model: with one for all, nothing would be compared.
fn own_drives(disks: &[&Field]) -> Result<(), Refusal> {
    let mut models = disks
        .iter()
        .flat_map(|disk| disk.item.fields())
        .filter(|setting| setting.name == "model");
    let word = |setting: &Field| match &setting.item.node {
        ItemKind::Value(Value::Text(word)) => word.clone(),
        _ => String::new(),
    };
    let Some(first) = models.next() else {
        return Ok(());
    };
    let one = word(first);
    let other = match one.contains('{') {
        true => Some(first),
        false => models.find(|setting| word(setting) != one),
    };
    other.map_or(Ok(()), |setting| {
        Err(Refusal::at(
            &setting.item.span,
            "this study compares drives itself: --drive would make them all the same",
            "write other models into a copy of it: stackrace show studies NAME > mine.toml",
        ))
    })
}

/// A layer as disks of this model, with what a modelled disk keeps of it.
fn modelled(text: &str, layer: &Field, model: &str) -> Result<String, Refusal> {
    if !text[layer.item.span.clone()].starts_with('{') {
        return Err(Refusal::at(
            &layer.name_span,
            "--drive replaces disks that are written in one pair of braces",
            format!("write it like {} = {{ size = \"1 GiB\" }}", layer.name),
        ));
    }
    let settings = layer.item.fields();
    let has_model = settings.iter().any(|setting| setting.name == "model");
    let kept = kept_by_drives(layer);
    let mut written = format!("{MODELLED_DISKS} = {{ model = {}", one_line(model));
    for setting in settings {
        // What stands beside a model is about a modelled disk already.
        if setting.name != "model" && (has_model || kept.contains(&setting.name.as_str())) {
            let words = &text[setting.name_span.start..setting.item.span.end];
            written.push_str(&format!(", {words}"));
        }
    }
    Ok(written + " }")
}

/// Writes the sentence in the question of the study about its disks, which its own words do not
/// know of.
fn note(names: &[&str]) -> String {
    format!(
        "Here its disks are models of {}, in virtual time, in place of those that the study names (--drive): the figures are the models'.",
        names.join(" and of ")
    )
}

/// The edit that puts words behind those of a text of the study, or of what stands for it where it has
/// none.
fn with_words(fields: &[Field], name: &str, instead: &str, words: &str) -> (Span, String) {
    let field = fields.iter().find(|field| field.name == name);
    match field.map(|field| (&field.item.span, &field.item.node)) {
        Some((span, ItemKind::Value(Value::Text(own)))) => {
            (span.clone(), one_line(&format!("{own} {words}")))
        }
        _ => {
            let whole = format!("{instead} {words}");
            (0..0, format!("{name} = {}\n", one_line(whole.trim())))
        }
    }
}
