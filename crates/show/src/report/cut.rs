//! A text cut so that it can still be read: after a sentence, a clause or an item, with no bracket left open.

use super::screen::{is_typed, wrap};

/// Letters of a quoted command that are kept where room is short: its beginning, and its end.
const COMMAND_KEPT: (usize, usize) = (40, 20);

/// A text whose long quoted commands have lost their middle, but for those that the reader is to type.
pub(super) fn with_short_commands(text: &str) -> String {
    let (first, last) = COMMAND_KEPT;
    let parts = text.split('`').enumerate().map(|(at, part)| {
        let letters: Vec<char> = part.chars().collect();
        // Every second part stands between two marks.
        if at % 2 == 0 || is_typed(part) || letters.len() <= first + last + 3 {
            return part.to_owned();
        }
        let (begins, ends) = (&letters[..first], &letters[letters.len() - last..]);
        let text = |letters: &[char]| letters.iter().collect::<String>();
        format!("{} … {}", text(begins).trim_end(), text(ends).trim_start())
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The longest beginning of a text that fits with what comes behind it, and ends where a sentence, a clause or an item
/// of it ends; `None` if not even the first one fits.
pub(super) fn beginning(
    text: &str,
    behind: &str,
    width: usize,
    lines_max: usize,
) -> Option<String> {
    let mut open = 0_i32;
    let mut quoted = false;
    let mut ends = Vec::new();
    // Where no clause is short enough, what stands in brackets is left out.
    let mut before_brackets = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '`' => quoted = !quoted,
            '(' | '[' if !quoted => open += 1,
            ')' | ']' if !quoted => open -= 1,
            _ => {}
        }
        // A command ends no sentence, whatever it is made of.
        if quoted {
            continue;
        }
        let rest = &text[at..];
        // A full stop within a number or a name has no blank behind it.
        if open == 0 && rest.starts_with(". ") {
            // What is counted behind a semicolon goes on with the sentence.
            ends.push(if behind.starts_with(';') { at } else { at + 1 });
        } else if open == 0 && (rest.starts_with("; ") || rest.starts_with(" · ")) {
            ends.push(at);
        } else if open == 0 && rest.starts_with(" (") {
            before_brackets.push(format!("{} …{behind}", &text[..at]));
        }
    }
    let texts = ends.iter().rev().map(|end| {
        // A list of which a part is left out must not look whole.
        let stop = match behind.is_empty() && text[*end..].starts_with(';') {
            true => "; …",
            false => "",
        };
        format!("{}{stop}{behind}", &text[..*end])
    });
    let mut fitting = texts
        .chain(before_brackets.into_iter().rev())
        .filter(|text| wrap(text, width).len() <= lines_max);
    fitting.next()
}

/// The brackets that close those a text leaves open.
pub(super) fn closed(text: &str) -> String {
    let mut open = Vec::new();
    for letter in text.chars() {
        match letter {
            '(' => open.push(')'),
            '[' => open.push(']'),
            ')' | ']' if open.last() == Some(&letter) => drop(open.pop()),
            _ => {}
        }
    }
    open.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_leaves_no_bracket_open() {
        let text =
            "a failed in round 3 (cannot open /srv/data.0: permission denied [as root]) of 9";
        assert_eq!(beginning(text, "", 30, 1).unwrap(), "a failed in round 3 …");
        let behind = beginning(text, "; 2 more notes", 40, 1);
        assert_eq!(behind.unwrap(), "a failed in round 3 …; 2 more notes");
        assert_eq!(beginning(text, "", 10, 1), None);
        let sentences = "There is time for one of five. All of them need more, and here is how";
        let behind = beginning(sentences, "; 2 more notes", 50, 1);
        assert_eq!(
            behind.unwrap(),
            "There is time for one of five; 2 more notes"
        );
        let alone = beginning(sentences, "", 40, 1);
        assert_eq!(alone.unwrap(), "There is time for one of five.");
        assert_eq!(closed("a (b [c"), "])");
        assert_eq!(closed("a (b [c])"), "");
    }

    #[test]
    fn a_command_to_type_keeps_its_middle() {
        let (ours, other) = ("stackrace resume ", "mkfs -t xfs ");
        let long = "x".repeat(80);
        let said = with_short_commands(&format!("`{ours}{long}` and `{other}{long}`"));
        assert!(said.contains(&format!("`{ours}{long}`")), "{said}");
        assert!(said.contains(" … "), "{said}");
    }
}
