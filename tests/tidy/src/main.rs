//! `bench/house`: the figures of a checkout, or of two side by side.

#![expect(clippy::print_stderr, reason = "a program that prints")]
#![expect(
    clippy::disallowed_methods,
    reason = "asks git for the files of a commit, and reads its own arguments"
)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use stackrace_tidy::figures::{Checkout, FILE_LINES, FUNCTION_LINES, list};
use stackrace_tidy::rules;

const USAGE: &str = "\
Measures the source: lines, sizes, circles, names, comments, words, duplicates.

  bench/house                  the figures of the work tree
  bench/house --rev COMMIT     those of a commit beside those of the work tree
  bench/house --list           each thing that is counted, with its place
  bench/house --exceptions     what the rules do not allow, as tests/tidy/exceptions.txt lists it
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench/house: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(".");
    match words.as_slice() {
        [] => table(&[("now", measure(root, "HEAD")?)]),
        ["--rev", revision] => {
            let folder = tempfile::tempdir()?;
            unpack(revision, folder.path())?;
            let before = measure(folder.path(), revision)?;
            table(&[(*revision, before), ("now", measure(root, "HEAD")?)]);
        }
        ["--list"] => {
            let checkout = Checkout::read(root)?;
            print(&list(&checkout));
            print(&rules::empty_docs(&checkout));
        }
        ["--exceptions"] => print(&rules::broken(&Checkout::read(root)?)),
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// Writes the files of a commit into a folder.
fn unpack(revision: &str, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut archive = Command::new("git")
        .args(["archive", revision])
        .stdout(Stdio::piped())
        .spawn()?;
    let stream = archive.stdout.take().ok_or("git archive has no output")?;
    let unpacked = Command::new("tar")
        .arg("-x")
        .arg("-C")
        .arg(folder)
        .stdin(stream)
        .status()?;
    if archive.wait()?.success() && unpacked.success() {
        Ok(())
    } else {
        Err(format!("git does not know the commit {revision}").into())
    }
}

/// Figures by name, in the order they are shown.
type Figures = Vec<(String, String)>;

fn measure(root: &Path, revision: &str) -> Result<Figures, Box<dyn std::error::Error>> {
    let checkout = Checkout::read(root)?;
    let mut figures: Figures = Vec::new();
    let mut add = |name: &str, value: String| figures.push((name.to_owned(), value));

    let rooms = checkout.rooms();
    let product: usize = rooms.values().map(|lines| lines.product).sum();
    let all: usize = rooms.values().map(|lines| lines.all).sum();
    add("lines of Rust", all.to_string());
    add(
        "product lines (no tests, blanks, comments)",
        product.to_string(),
    );

    let functions = checkout.functions();
    let long = functions
        .iter()
        .filter(|function| function.lines > FUNCTION_LINES)
        .count();
    add("functions", functions.len().to_string());
    add(
        &format!("functions > {FUNCTION_LINES} lines"),
        format!("{long} ({:.2} %)", percent(long, functions.len())),
    );
    let files = checkout.long_files();
    add(
        &format!("files > {FILE_LINES} product lines"),
        files
            .iter()
            .filter(|(_, product, _)| *product > FILE_LINES)
            .count()
            .to_string(),
    );
    add(
        &format!("files > {FILE_LINES} lines"),
        files.len().to_string(),
    );
    add("circles between rooms", circles(&checkout.room_circles()));
    add("circles between files", circles(&checkout.file_circles()));
    let inline: usize = rooms.values().map(|lines| lines.inline_comments).sum();
    add(
        "inline comments per 100 product lines",
        format!("{:.1}", percent(inline, product)),
    );
    add(
        "lines with whoever, nobody, somebody",
        checkout.vague_words().len().to_string(),
    );
    let twins = checkout.twin_types();
    let types: usize = twins.values().map(Vec::len).sum();
    add(
        "names that two visible types have",
        format!("{} ({types} types)", twins.len()),
    );
    let duplicates = checkout.duplicates();
    let lines: usize = duplicates.iter().map(|(_, lines)| lines).sum();
    add(
        "runs of six lines and more that are elsewhere, too",
        format!("{} ({lines} lines)", duplicates.len()),
    );
    add("commits with a body", bodies(revision)?);
    for (room, lines) in rooms {
        figures.push((
            format!("  {room}: product, all, comments per 100"),
            format!("{} {} {:.1}", lines.product, lines.all, lines.density()),
        ));
    }
    Ok(figures)
}

fn percent(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of lines are small")]
    let (part, whole) = (part as f64, whole.max(1) as f64);
    100.0 * part / whole
}

fn circles(groups: &[Vec<String>]) -> String {
    let members: usize = groups.iter().map(Vec::len).sum();
    match groups.len() {
        0 => "0".to_owned(),
        count => format!("{count} ({members} in them)"),
    }
}

/// The share of commits that say more than a subject: of all, and of the last fifty.
fn bodies(revision: &str) -> Result<String, Box<dyn std::error::Error>> {
    let output = Command::new("git")
        .args(["log", "--no-merges", "--format=%b%x00", revision])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let with: Vec<bool> = text
        .split('\0')
        .map(|body| !body.trim().is_empty())
        .collect();
    // Behind the last separator is no commit.
    let with = &with[..with.len().saturating_sub(1)];
    let share = |some: &[bool]| percent(some.iter().filter(|body| **body).count(), some.len());
    let last = &with[..with.len().min(50)];
    Ok(format!(
        "{:.0} % (last 50: {:.0} %)",
        share(with),
        share(last)
    ))
}

/// The figures, one line each, a column for each checkout.
fn table(columns: &[(&str, Figures)]) {
    let mut names: Vec<&str> = Vec::new();
    let mut cells: BTreeMap<(&str, usize), &str> = BTreeMap::new();
    for (column, (_, figures)) in columns.iter().enumerate() {
        for (name, value) in figures {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
            cells.insert((name, column), value);
        }
    }
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let line = |first: &str, rest: Vec<&str>| {
        let cells: Vec<String> = rest.iter().map(|cell| format!("{cell:>18}")).collect();
        format!("{first:<width$}  {}", cells.join("  ").trim_end())
    };
    let mut lines = vec![line("", columns.iter().map(|(head, _)| *head).collect())];
    for name in &names {
        let row = (0..columns.len())
            .map(|column| cells.get(&(*name, column)).copied().unwrap_or("-"))
            .collect();
        lines.push(line(name, row));
    }
    print(&lines);
}

/// Prints lines. A reader that has seen enough, such as `head`, is no error.
fn print(lines: &[String]) {
    let mut text = lines.join("\n");
    text.push('\n');
    let _ = std::io::stdout().write_all(text.as_bytes());
}
