//! What a mail, a page or a terminal did to a text on its way is undone before anybody reads it.
//!
//! Every step keeps the number of lines, so that a refusal names the line that the user sees.

use super::margin;
use std::borrow::Cow;

/// Lines that only mark where a text begins and ends: of Markdown, HTML, forums and trackers.
const FENCES: [&str; 12] = [
    "<pre>",
    "</pre>",
    "<code>",
    "</code>",
    "<pre><code>",
    "</code></pre>",
    "[code]",
    "[/code]",
    "{code}",
    "{noformat}",
    "{{{",
    "}}}",
];
/// Markdown takes what is indented by so much for a text as it was printed.
const QUOTING: usize = 4;

/// Signs as the source of a page has them, and what is seen there; the last one last, as it may begin another.
const ENTITIES: [(&str, &str); 5] = [
    ("&nbsp;", " "),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&amp;", "&"),
];

/// A list of JSON documents as the documents alone, each sign at its place; `None` if the text is no such list.
pub(super) fn unlisted(text: &str) -> Option<String> {
    let inner = text.trim_start().strip_prefix('[')?;
    inner.trim_start().starts_with('{').then_some(())?;
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let plain = text.chars().map(|c| {
        let meant = escaped;
        escaped = quoted && c == '\\' && !meant;
        match c {
            '"' if !meant => quoted = !quoted,
            _ if quoted => {}
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // The brackets of the list, and what stands between its documents.
        match (c, depth) {
            ('[', 1) | (']', 0) | (',', 1) if !quoted => ' ',
            _ => c,
        }
    });
    Some(plain.collect())
}

/// The text as the tool printed it, as far as the way it came can be seen from all of it.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    let named = margin::named(text);
    let lines = text.split('\n');
    let lines: Vec<&str> = lines.map(|line| margin::without(line, named)).collect();
    let stamp = stamp(&lines);
    let bare = |whole| line(stamp.map_or(whole, |of| of(whole).unwrap_or(whole)));
    let mut lines: Vec<Cow<'_, str>> = lines.into_iter().map(bare).collect();
    if let Some(bare) = margin::unnumbered(&lines) {
        lines = bare
            .into_iter()
            .map(|line| Cow::Owned(line.to_owned()))
            .collect();
    }
    let common = indentation(lines.iter().map(AsRef::as_ref));
    let kept = lines.iter().map(AsRef::as_ref).eq(text.split('\n'));
    if common == 0 && kept {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = lines.iter().map(|line| from(line, common)).collect();
    Cow::Owned(lines.join("\n"))
}

/// The text as it came, but for what takes no column on a screen and what looks like a blank there.
pub(super) fn cleaned(text: &str) -> String {
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(clean).collect();
    lines.join("\n")
}

/// Decodes a mail as it is stored (quoted-printable) into the text that was sent, and for each line of that the
/// number of the line where it begins, from 0. `None` if the text is no such mail.
pub(super) fn decoded(text: &str) -> Option<(String, Vec<usize>)> {
    // Strictly: every "=" has to be of such a mail, so that "rw=read" or a row of "=" shows that it is none.
    if !text.contains("=3D") && !text.contains("=\n") && !text.contains("=\r\n") {
        return None;
    }
    let (mut bytes, mut starts) = (Vec::with_capacity(text.len()), Vec::new());
    let mut goes_on = false;
    for (at, line) in text.split('\n').enumerate() {
        let line = line.trim_end_matches('\r');
        if !goes_on {
            starts.push(at);
        }
        let soft = line.strip_suffix('=');
        let mut parts = soft.unwrap_or(line).split('=');
        bytes.extend(parts.next().unwrap_or_default().bytes());
        for part in parts {
            let code = part.get(..2)?;
            let capital = |c: char| c.is_ascii_digit() || ('A'..='F').contains(&c);
            code.chars().all(capital).then_some(())?;
            bytes.push(u8::from_str_radix(code, 16).ok()?);
            bytes.extend(part[2..].bytes());
        }
        goes_on = soft.is_some();
        if !goes_on {
            bytes.push(b'\n');
        }
    }
    // What follows the last line break is no line.
    bytes.pop();
    Some((String::from_utf8(bytes).ok()?, starts))
}

/// Moves the indented paragraphs of the text to the left, each by its own indentation: a page that
/// was pasted whole has prose around them. `None` if there is no such paragraph.
///
/// Tools indent lines too, so this is only tried on a text that no importer could read.
pub(super) fn paragraphs(text: &str) -> Option<String> {
    // JSON is indented and means nothing by it.
    if text.trim_start().starts_with('{') {
        return None;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let far = |line: &str| width(line) >= QUOTING || line.starts_with('\t');
    let mut moved: Vec<&str> = Vec::with_capacity(lines.len());
    let (mut at, mut any) = (0, false);
    while at < lines.len() {
        let belongs = |line: &&&str| line.trim().is_empty() || far(line);
        let count = lines[at..].iter().take_while(belongs).count();
        if count == 0 {
            moved.push(lines[at]);
            at += 1;
            continue;
        }
        let paragraph = &lines[at..at + count];
        let common = indentation(paragraph.iter().copied());
        any |= common > 0;
        moved.extend(paragraph.iter().map(|line| from(line, common)));
        at += count;
    }
    any.then(|| moved.join("\n"))
}

/// The first of several copies that a text is made of, word for word, and how many they are; a prompt may stand behind
/// the last. `None` if it is no such text.
pub(super) fn once(text: &str) -> Option<(&str, usize)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    // For each word, how many words up to it are those that the text begins with (Knuth, Morris, Pratt).
    let mut lengths: Vec<usize> = vec![0; words.len()];
    for at in 1..words.len() {
        let mut length = lengths[at - 1];
        while length > 0 && words[length] != words[at] {
            length = lengths[length - 1];
        }
        lengths[at] = length + usize::from(words[length] == words[at]);
    }
    let period = words.len() - lengths.last()?;
    let copies = words.len() / period;
    let offset = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    let begins_a_line = |at: usize| text[..at].trim_end_matches([' ', '\t']).ends_with('\n');
    let second = offset(words.get(period)?);
    // Part of a copy in the lines at the end is of a run that was cut off, and is told as such.
    let rest = words
        .get(copies * period)
        .map_or("", |word| &text[offset(word)..]);
    let whole = begins_a_line(second) && !rest.trim_end().contains('\n');
    (copies > 1 && whole).then(|| (&text[..second], copies))
}

/// One line without what was put before it, or between its letters.
fn line(whole: &str) -> Cow<'_, str> {
    let mut text = clean(whole);
    if ENTITIES.iter().any(|(written, _)| text.contains(written)) {
        let plain = ENTITIES
            .iter()
            .fold(text.into_owned(), |text, (written, meant)| {
                text.replace(written, meant)
            });
        text = Cow::Owned(plain);
    }
    if let Some(inner) = unquoted(&text) {
        text = Cow::Owned(inner.to_owned());
    }
    let trimmed = text.trim();
    if FENCES.contains(&trimmed) || is_markdown_fence(trimmed) || is_of_jobs(trimmed) {
        return Cow::Borrowed("");
    }
    // A comment often begins or ends with the fence and the text in one line.
    match trimmed.strip_prefix("```").or(trimmed.strip_suffix("```")) {
        Some(inner) => Cow::Owned(inner.trim_end_matches("```").to_owned()),
        None => text,
    }
}

/// Returns true for what a shell says of its jobs: `[1] 1234` when one begins in the background, `[1]+  Done  …` when it
/// ends well.
fn is_of_jobs(line: &str) -> bool {
    let number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let Some((job, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    let begins = rest.strip_prefix(' ').is_some_and(number);
    // zsh has its sign further behind.
    let ends = rest.trim_start_matches(['+', '-', ' ']).to_lowercase();
    number(job) && (begins || ends.split(' ').next() == Some("done"))
}

/// Function that takes a time of a log off a line; `None` if the line has none.
type Unstamped = fn(&str) -> Option<&str>;

/// Returns what takes the times of a log off its lines, if all of them begin with one.
fn stamp(lines: &[&str]) -> Option<Unstamped> {
    const WAYS: [Unstamped; 4] = [iso, journal, in_brackets, since_boot];
    let mut ways = WAYS.into_iter();
    // Of every line: tools print times too, and not before each line.
    ways.find(|of| {
        // journalctl says "-- Boot …" between its lines.
        let own = |line: &&str| !line.trim().is_empty() && !line.starts_with("-- ");
        let mut lines = lines.iter().copied().filter(own);
        let mut any = false;
        lines.all(|line| {
            any = true;
            of(line).is_some()
        }) && any
    })
}

/// Behind `2026-11-28T17:14:39.123Z `, and the machine and program that journalctl has there.
fn iso(line: &str) -> Option<&str> {
    let form = b"0000-00-00T00:00:00";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form || (*form == b'T' && *byte == b' '),
    };
    let begins = line.len() >= form.len() && line.as_bytes().iter().zip(form).all(fits);
    let rest = begins.then(|| line.get(form.len()..))??;
    let zone = |c: char| c.is_ascii_digit() || ".,:+-Z".contains(c);
    let rest = rest.trim_start_matches(zone);
    Some(unit_of(
        rest.strip_prefix(' ').or(rest.is_empty().then_some(rest))?,
    ))
}

/// Behind `[2026-11-28T17:14:39Z] `, as build servers write it.
fn in_brackets(line: &str) -> Option<&str> {
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    iso(time)?
        .is_empty()
        .then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// Behind `[   12.345678] `, as the kernel and script(1) have it.
fn since_boot(line: &str) -> Option<&str> {
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (whole, part) = time.trim_start().split_once('.')?;
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(part)).then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// Behind `Nov 28 17:14:39 nas fio[123]: `.
fn journal(line: &str) -> Option<&str> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (month, rest) = line.split_once(' ')?;
    let (day, rest) = rest.trim_start().split_once(' ')?;
    let (time, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let digits = |word: &str| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    let clock = time
        .splitn(3, ':')
        .filter(|part| digits(part.split('.').next().unwrap_or("")));
    (MONTHS.contains(&month) && digits(day) && clock.count() == 3).then(|| unit_of(rest))
}

/// Behind the machine and the program with its number, where a line of the journal has them.
fn unit_of(rest: &str) -> &str {
    let behind = || {
        let (_, rest) = rest.split_once(' ')?;
        let (program, rest) = rest.split_once(':')?;
        let number = program.strip_suffix(']')?.rsplit_once('[')?.1;
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        (digits && !program.contains(' ')).then(|| rest.strip_prefix(' ').unwrap_or(rest))
    };
    behind().unwrap_or(rest)
}

/// ```` ```text ````: the language is one word.
fn is_markdown_fence(line: &str) -> bool {
    let rest = line.strip_prefix("```").or(line.strip_prefix("~~~"));
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '`'))
}

/// Returns the text a mail quotes: `> text`, also twice (`>> `, `> > `). `None` if it quotes
/// nothing.
fn unquoted(line: &str) -> Option<&str> {
    // A line that was folded before ">=64=0.0%" of fio begins with this letter, and quotes nothing.
    let quotes = |line: &str| line.starts_with('>') && !line.starts_with(">=");
    if !quotes(line) {
        return None;
    }
    let mut rest = line;
    while quotes(rest) {
        rest = &rest[1..];
        rest = rest.strip_prefix(' ').unwrap_or(rest);
    }
    Some(rest)
}

/// Without colours of a terminal, and with plain blanks where a page had others.
fn clean(line: &str) -> Cow<'_, str> {
    let odd = |c: char| {
        matches!(
            c,
            '\u{1b}' | '\u{a0}' | '\u{202f}' | '\u{200b}' | '\u{feff}'
        )
    };
    if !line.contains(odd) {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // Pages keep columns with blanks that do not break.
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            '\u{200b}' | '\u{feff}' => {}
            '\u{1b}' if letters.next_if_eq(&'[').is_some() => {
                // The sequence ends with its first letter.
                while letters.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                letters.next();
            }
            '\u{1b}' => {}
            letter => plain.push(letter),
        }
    }
    Cow::Owned(plain)
}

/// Bytes of white space that a line begins with.
fn width(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// Bytes of the white space that all lines with words begin with.
fn indentation<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let mut common: Option<&str> = None;
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let own = &line[..width(line)];
        let known = common.unwrap_or(own);
        let same = known.bytes().zip(own.bytes()).take_while(|(a, b)| a == b);
        common = Some(&own[..same.count()]);
    }
    common.map_or(0, str::len)
}

/// A line from a byte on; a blank line may be shorter.
fn from(line: &str, at: usize) -> &str {
    line.get(at..).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::{decoded, once, paragraphs, plain, unlisted};

    #[test]
    fn what_was_put_around_a_text_goes_and_its_lines_stay() {
        let printed = "a: 1\n  b: 2\n\nc\n";
        for (way, pasted) in [
            ("quoted", "> a: 1\n>   b: 2\n>\n> c\n"),
            ("quoted twice", ">> a: 1\n>>   b: 2\n>>\n>> c\n"),
            ("indented", "    a: 1\n      b: 2\n\n    c\n"),
            ("by a tab", "\ta: 1\n\t  b: 2\n\n\tc\n"),
            ("coloured", "\u{1b}[1;32ma\u{1b}[0m: 1\n  b: 2\n\nc\n"),
            ("from a page", "a:\u{a0}1\n\u{a0}\u{a0}b: 2\n\nc\n"),
        ] {
            assert_eq!(plain(pasted), printed, "{way}");
        }
        let fenced = plain("```text\na\n  b\n```");
        assert_eq!(fenced, "\na\n  b\n");
        assert_eq!(plain("  >=64=0.0%\nx"), "  >=64=0.0%\nx");
    }

    #[test]
    fn times_before_each_line_go_and_times_of_a_tool_stay() {
        let printed = "a: 1\n  b: 2\n\nc\n";
        for stamp in [
            "Nov 28 17:14:39 nas fio[123]: ",
            "Nov  8 17:14:39 ",
            "2026-11-28T17:14:39+0100 nas bench.sh[9]: ",
            "2026-11-28T17:14:39.1234567Z ",
            "2026-11-28 17:14:39,123 ",
            "[2026-11-28T17:14:39.123Z] ",
            "[   12.345678] ",
            "bench-1  | ",
            "[pod/fio-x7/fio] ",
            "build\tUNKNOWN STEP\t2026-11-28T17:14:39.1234567Z ",
        ] {
            let logged: String = printed
                .lines()
                .map(|line| format!("{stamp}{line}\n"))
                .collect();
            assert_eq!(plain(&logged), printed, "{stamp}");
        }
        let boot = "-- Boot 12ab --\nNov 28 17:14:39 nas a[1]: a\n";
        assert_eq!(plain(boot), "-- Boot 12ab --\na\n");
        let own = "2026-11-28T17:14:39 begin\na: 1\n";
        assert_eq!(plain(own), own);
        let own = "17:14:39.123 1 2 3\n17:14:40.123 1 2 3\n";
        assert_eq!(plain(own), own);
    }

    #[test]
    fn a_text_that_is_made_of_copies_is_known() {
        assert_eq!(once("a 1\nb 2\n\na 1\n  b 2\n"), Some(("a 1\nb 2\n\n", 2)));
        assert_eq!(once("$ x\n5\n$ x\n5\n$ x\n5\n$ "), Some(("$ x\n5\n", 3)));
        for other in [
            "",
            "a",
            "a 1\n",
            "a a\n",
            "a 1\nb 2\na 1\n",
            "a\nb\nc\na\nb\nc\na\nb\n",
            "a 1\na 2\n",
        ] {
            assert_eq!(once(other), None, "{other}");
        }
    }

    #[test]
    fn a_list_of_documents_is_the_documents() {
        let list = "[\n {\"a\": [1, 2], \"b\": \"],\\\"[\"},\n {\"c\": {}}\n]\n";
        let documents = " \n {\"a\": [1, 2], \"b\": \"],\\\"[\"} \n {\"c\": {}}\n \n";
        assert_eq!(unlisted(list).unwrap(), documents);
        assert_eq!(unlisted("[1, 2]"), None);
        assert_eq!(
            plain("a&nbsp;&lt;&quot;b&quot;&gt; &amp;lt;"),
            "a <\"b\"> &lt;"
        );
    }

    #[test]
    fn what_a_shell_says_of_its_jobs_goes() {
        for line in [
            "[1] 1234",
            "[12] 7",
            "[1]+  Done                    dd if=a of=b",
            "[2]-  Done",
            "[1]  + done       dd",
        ] {
            assert_eq!(plain(&format!("a\n{line}\nb\n")), "a\n\nb\n", "{line}");
        }
        for line in [
            "[1] 12.5",
            "[ 1s ] 5",
            "[1]+  Killed  dd",
            "[1, 2]",
            "[RESULT] 5",
        ] {
            let text = format!("a\n{line}\nb\n");
            assert_eq!(plain(&text), text);
        }
    }

    #[test]
    fn numbers_before_each_line_go() {
        let printed = "a: 1\n  b: 2\n\nc\n";
        type Numbered = fn(usize, &str) -> String;
        let ways: [(&str, Numbered); 7] = [
            ("cat -n", |at, line| format!("{at:6}\t{line}")),
            ("grep -n", |at, line| format!("{at}:{line}")),
            ("grep -Hn", |at, line| format!("log.txt:{at}:{line}")),
            ("an editor", |at, line| format!("{at:4}  {line}")),
            ("a pager", |at, line| format!("{at:3} | {line}")),
            ("a list", |at, line| format!("{at}. {line}")),
            ("a quoted list", |at, line| format!("> {at}: {line}")),
        ];
        for (way, numbered) in ways {
            let lines = printed.lines().enumerate();
            let text: String = lines
                .map(|(at, line)| numbered(at + 9, line) + "\n")
                .collect();
            assert_eq!(plain(&text), printed, "{way}");
        }
        // nl(1) counts no blank lines.
        assert_eq!(
            plain("     1\ta: 1\n     2\t  b: 2\n       \n     3\tc\n").trim_end(),
            "a: 1\n  b: 2\n\nc"
        );
        let found = "3:a: 1\n4:  b: 2\n17:c\n";
        assert_eq!(plain(found), "a: 1\n  b: 2\nc\n");
        for own in [
            "1 2 3\n2 3 4\n",
            "1+0 records in\n2+0 records out\n",
            "1: a\n3: b\n",
            "1: a\n",
        ] {
            assert_eq!(plain(own), own);
        }
    }

    #[test]
    fn a_mail_as_it_is_stored_is_decoded() {
        let (text, starts) = decoded("a=3D1, b=3D=\n2\nc =C2=B5s\n").unwrap();
        assert_eq!(text, "a=1, b=2\nc µs\n");
        assert_eq!(starts, [0, 2, 3]);
        for plain in ["rw=read\nx=\n", "=====\n", "a: 1\n", "dd if=AB of=3Dx\n"] {
            assert_eq!(decoded(plain), None, "{plain}");
        }
    }

    #[test]
    fn paragraphs_are_moved_by_their_own_indentation() {
        let page = "It says:\n\n    a\n      b\n\nand then\n\tc\n";
        assert_eq!(
            paragraphs(page).unwrap(),
            "It says:\n\na\n  b\n\nand then\nc\n"
        );
        assert_eq!(paragraphs("a\n  b\n"), None);
    }
}
