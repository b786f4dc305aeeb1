//! `stackrace published`: the published studies, recomputed from their data.

use super::args::Published;
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::{print_styled, say};
use super::words::unknown;
use stackrace_judge::published::{self, Card};
use stackrace_show::report;

pub(super) fn exec(setting: &Setting, verb: &Published) -> Result<u8, Failure> {
    let Some(name) = &verb.name else {
        say(&list());
        return Ok(0);
    };
    let card = find(name)?;
    let form = if verb.json { "json" } else { &*verb.format };
    if !report::PUBLISHED_FORMS.contains(&form) {
        return Err(unknown("form", form, &report::PUBLISHED_FORMS));
    }
    let page = report::published(card, form, setting.screen)
        .map_err(|why| Failure::internal(format!("the data of {name}: {why}")))?;
    print_styled(&page, setting.colour);
    Ok(0)
}

/// The study of that name, or which there are.
pub(super) fn find(name: &str) -> Result<&'static Card, Failure> {
    let names: Vec<&str> = published::ALL.iter().map(|card| card.name).collect();
    published::by_name(name).ok_or_else(|| unknown("published study", name, &names))
}

fn list() -> String {
    published::ALL
        .iter()
        .map(|card| format!("{:<15} {}  {}\n", card.name, card.year, card.title))
        .collect()
}
