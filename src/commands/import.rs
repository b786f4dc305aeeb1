//! What other tools printed becomes a run like any other, except that nothing was measured and no
//! verdict is given.

use stackrace_base::unit::InWords;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use stackrace_base::bounded::ByteLimit;
use stackrace_base::event::Event;
use stackrace_base::failure::Failure;
use stackrace_base::printed::{self, ImportSource};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_import::import;
use stackrace_judge::verdict::{self, Evidence};
use stackrace_load::tools;
use stackrace_results::record::{RecordError, Store};
use stackrace_run::execute::FinishedRun;
use stackrace_run::prepare::context::unrecorded;
use stackrace_run::prepare::context::{Context, entropy};
use stackrace_run::run::{Ledger, Reason, SharedLedger};

/// Largest text that is read; it goes into the log as it is.
const TEXT_MAX: ByteLimit = ByteLimit::new(16 << 20);

/// Reads files, `[NAME=]FILE` each, or `-` for standard input, and keeps them as a run.
///
/// # Errors
/// Every file that cannot be read; the store does not take the run.
pub(crate) fn run(
    context: &Context,
    files: &[String],
    tool: Option<&str>,
    title: Option<String>,
) -> Result<FinishedRun, Failure> {
    let (mut sources, mut refusals) = (Vec::new(), Vec::new());
    // `-` and `NAME=-` both mean standard input.
    let of_stdin = |word: &&String| matches!(word.rsplit('=').next(), Some("-"));
    if files.iter().filter(of_stdin).count() > 1 {
        let what = "error: - stands twice: standard input can be read once";
        refusals.push(format!(
            "{what}\n  next: write the texts to files and name them"
        ));
        return Err(Failure::refused(refusals.join("\n")));
    }
    for word in files {
        match source(word, tool) {
            Ok(source) => sources.push(source),
            Err(refusal) => refusals.push(refusal),
        }
    }
    // All of them at once: a user with twenty files mends them in one go.
    if !refusals.is_empty() {
        return Err(Failure::refused(refusals.join("\n")));
    }
    let title = title.unwrap_or_else(|| printed::title(&sources));
    let store = context.open_store()?;
    let ledger = keep(&store, &sources, title, context.command.clone()).map_err(unrecorded)?;
    let verdict = verdict::judge(&Evidence::of(ledger.record()));
    Ok(FinishedRun {
        store,
        ledger: SharedLedger::new(ledger),
        verdict,
        ended: Ok(Reason::Rounds),
    })
}

/// Returns one file and what is read from it, or why it is refused.
fn source(word: &str, tool: Option<&str>) -> Result<ImportSource, String> {
    let (name, file) = match word.split_once('=') {
        // A file whose own name has a `=` is meant as it is.
        Some((name, file)) if !Path::new(word).exists() => (Some(name), file),
        _ => (None, word),
    };
    let shown = match file {
        "-" => "standard input",
        file => file,
    };
    let refused = |what: &str, next: &str| format!("error: {shown}: {what}\n  next: {next}");
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(refused("its name is empty", "write NAME=FILE"));
    }
    let bytes = match file {
        "-" => TEXT_MAX.read_from(std::io::stdin().lock()),
        file => TEXT_MAX.read(Path::new(file)),
    };
    let bytes = bytes.map_err(|error| {
        let next = match error.kind() {
            ErrorKind::FileTooLarge => "give it the results alone",
            _ => "name an existing file",
        };
        refused(
            &format!("cannot be read: {error}", error = error.in_words()),
            next,
        )
    })?;
    let text = plain_text(bytes).ok_or_else(|| {
        let next = "give it the whole of what the tool printed";
        refused("this is no whole text in UTF-16", next)
    })?;
    let name = name.map(|name| name.trim().to_owned());
    import::source(tools::importers(), name, shown, text, tool).map_err(|error| {
        format!(
            "error: {shown}:{}: {}\n  next: {}",
            error.line, error.what, error.next
        )
    })
}

/// A text in UTF-8; with its mark at the beginning, in UTF-16, as shells of Windows write files; or else in Latin-1, as
/// older systems do. `None` if it is UTF-16 that was cut off.
fn plain_text(bytes: Vec<u8>) -> Option<String> {
    let unit = match bytes.get(..2) {
        Some([0xff, 0xfe]) => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
        Some([0xfe, 0xff]) => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
        _ => None,
    };
    if let Some(unit) = unit {
        let (pairs, odd) = bytes[2..].as_chunks::<2>();
        let text = String::from_utf16(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>());
        // An odd byte at the end is half of a character: the text was cut off.
        return text.ok().filter(|_| odd.is_empty());
    }
    // Digits and units are the same bytes in both; only words of other languages are not.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect());
    // The mark of the byte order is none of the tool's text.
    let mark = '\u{feff}';
    Some(text.strip_prefix(mark).map(str::to_owned).unwrap_or(text))
}

/// Writes what was imported as a run of its own.
///
/// # Errors
/// The store does not take it.
pub(crate) fn keep(
    store: &Store,
    sources: &[ImportSource],
    title: String,
    command: Vec<String>,
) -> Result<Ledger, RecordError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let design = printed::Design::of(sources, &clock.today());
    let head = design.head(String::new(), title, command);
    let (log, record) = store.begin_run(head, &clock, entropy)?;
    let mut ledger = Ledger::new(log, store.index(), record);
    for event in design.events() {
        ledger.append(event)?;
    }
    let verdict = verdict::judge(&Evidence::of(ledger.record()));
    ledger.append(Event::Checked {
        rounds: verdict.rounds,
        sentence: verdict.sentence,
        dropped: Vec::new(),
        whole: Vec::new(),
    })?;
    ledger.append(Event::RunEnded {
        reason: "imported".to_owned(),
        detail: "nothing was measured".to_owned(),
    })?;
    Ok(ledger)
}

#[cfg(test)]
mod tests {
    use super::plain_text;

    #[test]
    fn a_file_of_a_windows_shell_is_the_text_that_was_printed() {
        let text = "Throughput: 5 µs\r\n";
        let le = |unit: u16| unit.to_le_bytes();
        let utf16: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(text.encode_utf16().flat_map(le))
            .collect();
        assert_eq!(plain_text(utf16.clone()).unwrap(), text);
        let marked = [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat();
        assert_eq!(plain_text(marked).unwrap(), text);
        assert_eq!(plain_text(utf16[..5].to_vec()), None, "half a character");
    }

    #[test]
    fn a_file_of_an_older_system_has_its_letters_and_all_figures() {
        let german = b"1890+1 Datens\xe4tze ein\n0,5 \xb5s\n".to_vec();
        assert_eq!(
            plain_text(german).unwrap(),
            "1890+1 Datens\u{e4}tze ein\n0,5 \u{b5}s\n"
        );
    }
}
