//! Advice on misspelt words: the nearest of those that are known.

use super::value::{Refusal, Span};

/// Longest word that is compared with others, bytes.
const WORD_MAX: usize = 64;

/// Longest list in a message, bytes.
const LIST_MAX: usize = 2000;

/// The word of a list nearest to a misspelt one; `None` if nothing is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Other tools write block_size or "block size": those are no spelling mistakes.
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    // Comparing costs the product of the lengths, and a word of this length is no misspelt name.
    if word.len() > WORD_MAX {
        return None;
    }
    let word = plain(word);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= WORD_MAX)
        .map(|candidate| (distance(&word, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| {
            let letters = candidate.chars().count();
            *distance <= wrong_at_most(word.chars().count().min(letters)) && *distance < letters
        })
        // Of several that are as near, the one that begins like it.
        .min_by(|(one, near), (other, also)| {
            let like = |candidate: &str| strsim::jaro_winkler(&word, &plain(candidate));
            let likest = || like(also).total_cmp(&like(near));
            one.cmp(other).then_with(likest)
        })
        .map(|(_, candidate)| candidate)
}

/// Letters of a word that may be wrong: beyond that advice is noise (`cifs` is no misspelt `nfs`, `ai` no `mail`).
fn wrong_at_most(letters: usize) -> usize {
    match letters {
        // Of two letters, one is half of the word.
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        longer => longer / 3,
    }
}

/// Letters that differ; the beginning of a word counts as one letter off the whole.
pub(super) fn distance(word: &str, candidate: &str) -> usize {
    // A word of one or two letters begins too many others.
    match word.len() >= 3 && candidate.starts_with(word) {
        true => usize::from(word != candidate),
        false => strsim::damerau_levenshtein(word, candidate),
    }
}

/// Words joined by commas; those that make the list longer than anybody reads are counted.
pub fn listed<'a>(mut words: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::new();
    for word in words.by_ref() {
        // A study may define hundreds of names, and all would be listed.
        if list.len() + word.len() > LIST_MAX {
            list.push_str(&format!(" … and {} more", 1 + words.count()));
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(word);
    }
    list
}

/// Refuses a word that is not in a list: names the nearest one and lists them all.
pub fn unknown_word<'a>(
    span: &Span,
    message: &str,
    word: &str,
    candidates: impl Iterator<Item = &'a str> + Clone,
    list_name: &str,
) -> Refusal {
    let list = match listed(candidates.clone()) {
        all if all.is_empty() => format!("{list_name}: none"),
        all => format!("{list_name}: {all}"),
    };
    let help = match nearest(word, candidates) {
        Some(near) => format!("did you mean \"{near}\"? {list}"),
        None => list,
    };
    Refusal::at(span, message, help)
}
