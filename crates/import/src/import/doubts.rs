//! Warnings, errors and interruptions that a text itself tells of: they stand beside its figures,
//! whichever tool printed them.

use stackrace_base::printed::Imported;
use stackrace_base::printed::text::{cut, lines};

/// Words that no tool prints of a run that went well.
const WORDS: [&str; 23] = [
    "abort",
    "aborted",
    "aborting",
    "degraded",
    "error",
    "errors",
    "failed",
    "failure",
    "fatal",
    "forcing",
    "incomplete",
    "interrupt",
    "interrupted",
    "invalid",
    "killed",
    "sigint",
    "sigterm",
    "terminated",
    "terminating",
    "timeout",
    "unreliable",
    "warning",
    "warnings",
];
/// Several words, or signs.
const PHRASES: [&str; 19] = [
    "]+  exit ",
    "]-  exit ",
    "^c",
    "no space left",
    "non-zero status",
    "not valid",
    "timed out",
    "queue depth will be capped",
    "time limit is exceeded",
    "verify: bad ",
    "verify type mismatch",
    "bad pattern block",
    "attained=no",
    "cannot open",
    "core dumped",
    "no such file",
    "permission denied",
    "read-only file system",
    "segmentation fault",
];
/// Most doubts that are said of one text: more would hide the first.
const NOTES_MAX: usize = 5;

/// Adds to each result what the text says against it.
pub(super) fn note(text: &str, results: &mut [Imported]) {
    for doubt in found(text) {
        for result in results.iter_mut() {
            // An importer that knows its tool has said it in better words.
            if !result.notes.iter().any(|note| note.contains(&doubt)) {
                let note = format!("the text says: {doubt}");
                result.against.push(note.clone());
                result.notes.push(note);
            }
        }
    }
}

fn found(text: &str) -> Vec<String> {
    let mut doubts: Vec<String> = Vec::new();
    for line in lines(text) {
        let plain = line.text.trim();
        if doubts.len() == NOTES_MAX {
            break;
        }
        if is_prose(plain) && is_doubt(plain) {
            let doubt = cut(plain);
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
    }
    doubts
}

/// Returns true if a line is in words: keys of JSON, tags, and tables of figures say "error" of
/// none.
fn is_prose(line: &str) -> bool {
    // `[12] open … failed`, `[1]+  Exit 1`: a number of a process, or of a job.
    let numbered = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let numbered = numbered.is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    numbered || !line.starts_with(['"', '{', '}', '<', '[', ']', '|', '$', '#', '%'])
}

fn is_doubt(line: &str) -> bool {
    // What comes behind points of progress is a word of its own.
    let small = line.to_lowercase().replace("..", " ");
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '=' | '.' | '/');
    let words = small.split(|c| !word(c)).filter(|word| !word.is_empty());
    // "0 failed", as pgbench ends its lines of progress, is none.
    let mut before = "";
    let mut said = words.map(|found| {
        let none = std::mem::replace(&mut before, found) == "0";
        !none && WORDS.contains(&found.trim_matches(['.', '-', '=']))
    });
    // These say nothing of how many there were.
    // dd names itself only where it complains, in whichever language.
    let complains = small.starts_with("dd: ");
    if complains || PHRASES.iter().any(|phrase| small.contains(phrase)) || has_error_number(&small)
    {
        return true;
    }
    if !said.any(|said| said) {
        return false;
    }
    // "errors: 0 (0.00 per sec.)" is none.
    let mut numbers = small
        .split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .filter(|number| number.contains(|c: char| c.is_ascii_digit()))
        .peekable();
    let counted = numbers.peek().is_some() && small.contains([':', '=']);
    !(counted && numbers.all(|number| number.trim_matches(['0', '.']).is_empty()))
}

/// Returns true for `err=5/file:…` and `err= 5`, and not for `err= 0`.
fn has_error_number(line: &str) -> bool {
    line.split("err=").skip(1).any(|rest| {
        let digits = rest.trim_start().trim_start_matches('-');
        digits.starts_with(|c: char| ('1'..='9').contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::found;

    #[test]
    fn what_a_text_says_against_itself_is_found() {
        for line in [
            "fio: terminating on signal 2",
            "^C1024+0 records in",
            "dd: error writing 't': No space left on device",
            "WARNING: The file size is inconsistent",
            "FATAL: The --max-time limit has expired, forcing shutdown...",
            "Warning: Statistical outliers were detected.",
            "progress: 5.0 s, 1023.4 tps, lat 9.7 ms stddev 3.1, 10 failed",
            "pgbench: error: client 2 aborted in command 5",
            "verify: bad header rand_seed 123, wanted 456 at file x.0.0 offset 0",
            "fio: pid=123, err=5/file:io_u.c:1845, func=io_u, what=Input/output",
            "x: (groupid=0, jobs=1): err= 5 (file:io_u.c:1845)",
            "steadystate  : attained=no, iops=5",
            "dd: Fehler beim Schreiben von 't': Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
            "dd: erreur d'écriture de 't': Aucun espace disponible sur le périphérique",
            "dd: t: Eingabe-/Ausgabefehler",
            "Performing transactions.....Error: cannot open /srv/test/12 for writing",
            "Error: cannot open /srv/test/12 for writing",
            "iozone: t: Read-only file system",
            "[1]+  Exit 1                  dd if=/dev/zero of=t",
            "[12] open ./clients/x failed for handle 1 (No such file or directory)",
        ] {
            assert_eq!(found(&format!("a: 5\n{line}\n")).len(), 1, "{line}");
        }
        for line in [
            "errors: 0 (0.00 per sec.)",
            "number of failed transactions: 0 (0.000%)",
            "progress: 5.0 s, 1023.4 tps, lat 9.7 ms stddev 3.1, 0 failed",
            "\"error\" : 22,",
            "$ fio --continue_on_error=all --error=1",
            "Time limit exceeded, exiting...",
            "[ 2s ] reads: 1.00 MiB/s errors: 5",
            "[1]+  Done                    dd if=/dev/zero of=t",
            "x: (groupid=0, jobs=1): err= 0: pid=1",
        ] {
            assert!(found(line).is_empty(), "{line}");
        }
    }
}
