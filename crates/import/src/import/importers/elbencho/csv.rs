//! elbencho's CSV: a line of names, then a line for each phase.

use std::borrow::Cow;

use super::phase::Phase;
use stackrace_base::printed::ImportError;
use stackrace_base::printed::text::TextLine;

/// Columns without which it is no such file.
const NEEDED: [&str; 12] = [
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "operation",
    "time ms [last]",
    "entries/s [last]",
    "IOPS [last]",
    "MiB/s [last]",
    "entries [last]",
    "MiB [last]",
];

/// Returns true if a line is that of the names.
pub(super) fn is_head(line: TextLine<'_>) -> bool {
    line.text.starts_with("ISO date,") && line.text.contains(",operation,")
}

/// Every phase of a file.
///
/// # Errors
/// Lines that do not fit the names, names that are missing, a last line that may have been cut off.
pub(super) fn read<'a>(all: &[TextLine<'a>]) -> Result<Vec<Phase<'a>>, ImportError> {
    let (mut names, mut phases): (Vec<&str>, Vec<Phase<'_>>) = (Vec::new(), Vec::new());
    for (at, line) in all.iter().copied().enumerate() {
        if is_head(line) {
            names = line.text.trim_end().split(',').collect();
            if let Some(missing) = NEEDED.iter().find(|name| !names.contains(name)) {
                return Err(line.refuse(format!("a column \"{missing}\"")));
            }
            continue;
        }
        if line.text.trim().is_empty() {
            continue;
        }
        if names.is_empty() {
            return Err(line.refuse("the line of names (ISO date,label,…) before it"));
        }
        // Without a line break the last cell may have been cut off.
        if at + 1 == all.len() {
            return Err(line.refuse("a line break at the end of the file"));
        }
        phases.push(phase(line, &names)?);
    }
    Ok(phases)
}

fn phase<'a>(line: TextLine<'a>, names: &[&'a str]) -> Result<Phase<'a>, ImportError> {
    let text = line.text.trim_end();
    // The command line is the last column and may have commas of its own.
    let cells: Vec<&str> = match names.last() {
        Some(&"command") => text.splitn(names.len(), ',').collect(),
        _ => text.split(',').collect(),
    };
    if cells.len() != names.len() {
        return Err(line.refuse(format!("{} cells, not {}", names.len(), cells.len())));
    }
    let cells = names.iter().zip(cells);
    Ok(Phase {
        line,
        cells: cells
            .map(|(name, cell)| (Cow::Borrowed(*name), Cow::Borrowed(cell)))
            .collect(),
    })
}
