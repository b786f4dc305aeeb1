//! Whatever stands before every line of a text and belongs to none: its number, or the name of what printed it.

use std::borrow::Cow;

/// Fewest lines whose common beginning is taken for a name: two may agree by chance.
const NAMED_MIN: usize = 3;

/// Bytes that name what printed a text, the same before each line: `bench-1  | ` of containers, `[pod/x] `, the job
/// and step of a build with a tab behind each; 0 if there is no such name.
pub(super) fn named(text: &str) -> usize {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else { return 0 };
    let mut common = first.len();
    let mut count = 1;
    for line in lines {
        let same = first.bytes().zip(line.bytes()).take_while(|(a, b)| a == b);
        common = common.min(same.count());
        count += 1;
    }
    let begins = first.get(..common).unwrap_or_default();
    let end = ["| ", "] ", "\t"]
        .iter()
        .filter_map(|end| Some(begins.rfind(end)? + end.len()))
        .max();
    let name = end.map_or("", |end| &begins[..end]);
    match count >= NAMED_MIN && is_name(name) {
        true => name.len(),
        false => 0,
    }
}

/// Returns true if a beginning is a name: a word in brackets, before a line, or before tabs. Rules of tables are none.
fn is_name(begins: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c))
    };
    if let Some(fields) = begins.strip_suffix('\t') {
        // Of one word alone a table may be made.
        let mut fields = fields.split('\t');
        return fields.clone().count() == 2 && fields.all(|field| field.split(' ').all(word));
    }
    let named = match begins.strip_suffix("| ") {
        Some(name) => name.trim_end(),
        None => begins
            .trim_end()
            .trim_start_matches('[')
            .trim_end_matches(']'),
    };
    word(named)
}

/// A line without what [`named`] found; a blank one may be shorter.
pub(super) fn without(line: &str, named: usize) -> &str {
    line.get(named..)
        .unwrap_or(if named == 0 { line } else { "" })
}

/// For each line, whether it begins a line of the tool: with a number or the mark of a mail, which lines that were folded
/// afterwards do not have. `None` if all of them begin so, or none.
pub(super) fn begins(lines: &[&str]) -> Option<Vec<bool>> {
    let quoted = |line: &&str| line.starts_with('>') && !line.starts_with(">=");
    let ways = [numbered(lines), lines.iter().map(quoted).collect()];
    let of_some = |begins: &Vec<bool>| {
        let own = || {
            begins
                .iter()
                .zip(lines)
                .filter(|(_, line)| !line.trim().is_empty())
        };
        let count = own().filter(|(begins, _)| **begins).count();
        count >= NAMED_MIN && count < own().count() && own().next().is_some_and(|it| *it.0)
    };
    ways.into_iter().find(of_some)
}

/// For each line, whether it has the number that follows the one before it.
fn numbered(lines: &[&str]) -> Vec<bool> {
    let mut last: Option<u64> = None;
    let follows = |line: &&str| {
        let found = number(line).map(|(number, _)| number);
        let next = last.map_or(found, |last| last.checked_add(1));
        let follows = found.is_some() && found == next;
        last = if follows { found } else { last };
        follows
    };
    lines.iter().map(follows).collect()
}

/// The lines without their numbers, if each but the blank ones has the one that follows the number before it, or a later
/// one, as those have that grep(1) found.
pub(super) fn unnumbered<'a>(lines: &'a [Cow<'_, str>]) -> Option<Vec<&'a str>> {
    let file = file_before_numbers(lines)?;
    let (mut bare, mut last) = (Vec::with_capacity(lines.len()), None);
    let (mut gaps, mut found, mut close) = (false, true, false);
    for line in lines {
        // nl(1) gives blank lines no number.
        let rest = line.strip_prefix(file).unwrap_or(line);
        if rest.trim().is_empty() {
            bare.push("");
            continue;
        }
        let (number, text) = number(rest)?;
        let follows = last.is_none_or(|last: u64| last.checked_add(1) == Some(number));
        gaps |= !follows;
        found &= rest.strip_suffix(text) == Some(format!("{number}:").as_str());
        close |= text.starts_with(|c: char| !c.is_whitespace());
        if last.is_some_and(|last| last >= number) {
            return None;
        }
        last = Some(number);
        bare.push(text);
    }
    // A list of a tool's own has a blank behind each number.
    if gaps && !(found && close) {
        return None;
    }
    let numbered = lines.iter().filter(|line| !line.trim().is_empty()).count();
    (numbered > 1).then_some(bare)
}

/// The name of a file that grep(1) has before each number, with its colon; empty if there is none.
fn file_before_numbers<'a>(lines: &'a [Cow<'_, str>]) -> Option<&'a str> {
    let first = lines.iter().find(|line| !line.trim().is_empty())?;
    if number(first).is_some() {
        return Some("");
    }
    let (file, _) = first.split_once(':')?;
    (!file.contains(' ')).then(|| &first[..=file.len()])
}

/// The number before a line, and the line behind its sign: `12: `, `12.`, `12 | `, `12\t`, `12  `.
fn number(line: &str) -> Option<(u64, &str)> {
    let text = line.trim_start();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let number = number.parse().ok()?;
    if rest.is_empty() {
        return Some((number, rest));
    }
    if let Some(rest) = rest.strip_prefix('\t') {
        return Some((number, rest));
    }
    let sign = |c: char| [':', '|', ')', '.', '│'].contains(&c);
    let after = rest.trim_start_matches(' ');
    match after.strip_prefix(sign) {
        // `1.5 s` is a figure.
        Some(text)
            if !(after.starts_with('.') && text.starts_with(|c: char| c.is_ascii_digit())) =>
        {
            Some((number, text))
        }
        // Columns of figures have one blank, too.
        _ => rest.strip_prefix("  ").map(|text| (number, text)),
    }
}
