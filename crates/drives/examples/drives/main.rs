//! How well the models do, and how fast they are: `bench/drives` runs this.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

#[path = "../../tests/disksim/mod.rs"]
mod disksim;
mod measure;
mod mechanisms;
mod sensitivity;
mod speed;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use disksim::{Import, import};
use stackrace_drives::trace::{Fit, Measured, replay, trace};
use stackrace_drives::{Card, DiskCard, Nanos};

const USAGE: &str = "usage: bench/drives --from DIR [--cards OUT] | --mechanisms DIR | --measure DIR [MODEL] | --speed | --sensitivity";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--from", folder] => from(Path::new(folder), None),
        ["--from", folder, "--cards", out] => from(Path::new(folder), Some(Path::new(out))),
        ["--mechanisms", folder] => mechanisms::mechanisms(Path::new(folder)),
        ["--measure", folder] => measure::all(Path::new(folder), None),
        ["--measure", folder, model] => measure::all(Path::new(folder), Some(model)),
        ["--speed"] => speed::speed(),
        ["--sensitivity"] => sensitivity::sensitivity(),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A file as it is, or unpacked.
fn unpacked(path: &Path) -> Result<String, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let packed = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let ending = path.extension().and_then(|ending| ending.to_str());
    let mut plain = Vec::new();
    match ending {
        Some("xz") => lzma_rs::xz_decompress(&mut packed.as_slice(), &mut plain)
            .map_err(|error| wrong(format!("{error:?}")))?,
        Some("gz") => {
            let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
            std::io::Read::read_to_end(&mut reader, &mut plain)
                .map_err(|error| wrong(error.to_string()))?;
        }
        _ => plain = packed,
    }
    String::from_utf8(plain).map_err(|error| wrong(error.to_string()))
}

/// The traces of a folder by the name of their drive.
fn traces(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let file = path.file_name()?.to_str()?;
            let (name, _) = file.split_once(".trace")?;
            Some((name.to_owned(), path.clone()))
        })
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(format!(
            "{}: there is no file NAME.trace, .trace.xz or .trace.gz",
            folder.display()
        ));
    }
    Ok(found)
}

fn imported(folder: &Path, name: &str) -> Result<Import, String> {
    let beside = |ending: &str| text(&folder.join(format!("{name}.{ending}")));
    let topology = beside("parv").unwrap_or_default();
    let specification = beside("diskspecs").or_else(|error| {
        if topology.is_empty() {
            Err(error)
        } else {
            Ok(topology.clone())
        }
    })?;
    // Names come from the files: only of files beside them.
    let open = |file: &str| match Path::new(file).file_name() {
        Some(file) => text(&folder.join(file)),
        None => Err(format!("{file} is no file name")),
    };
    import(name, &specification, &topology, &open).map_err(|error| format!("{name}: {error}"))
}

fn fit(card: &DiskCard, trace: &[Measured]) -> Result<Fit, String> {
    let mut disk = card
        .disk(0)
        .map_err(|error| format!("{}: {error}", card.model))?;
    let measured: Vec<Nanos> = trace.iter().map(|one| one.service).collect();
    Fit::of(&measured, &replay(&mut disk, trace)).ok_or_else(|| "the trace is empty".to_owned())
}

/// Every drive of a folder: its card beside its trace, with all parameters and with those a data
/// sheet has.
fn from(folder: &Path, cards: Option<&Path>) -> Result<(), String> {
    println!(
        "{:<14} {:>8} {:>9} {:>9} {:>8} {:>9} {:>9} {:>7} | {:>9} {:>8}",
        "drive",
        "requests",
        "measured",
        "modelled",
        "demerit",
        "distance",
        "RMS error",
        "tail",
        "modelled",
        "demerit"
    );
    println!(
        "{:<14} {:>8} {:>9} {:>9} {:>8} {:>9} {:>9} {:>7} | {:>18}",
        "", "", "mean ms", "mean ms", "%", "ms", "ms", "%", "from data sheet"
    );
    let mut notes = Vec::new();
    for (name, path) in traces(folder)? {
        match line(folder, &name, &path, cards) {
            Ok((line, missing)) => {
                println!("{line}");
                notes.extend(missing.into_iter().map(|note| format!("{name}: {note}")));
            }
            Err(problem) => notes.push(problem),
        }
    }
    for note in notes {
        println!("{note}");
    }
    Ok(())
}

fn line(
    folder: &Path,
    name: &str,
    path: &Path,
    cards: Option<&Path>,
) -> Result<(String, Vec<String>), String> {
    let trace = trace(&unpacked(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    let Import { card, missing, .. } = imported(folder, name)?;
    let whole = fit(&card, &trace)?;
    let sheet = fit(
        &card.as_data_sheet().map_err(|error| error.to_string())?,
        &trace,
    )?;
    if let Some(out) = cards {
        let file = out.join(format!("{name}.toml"));
        std::fs::write(&file, Card::Disk(Box::new(card)).text())
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let ms = 1e6;
    Ok((
        format!(
            "{name:<14} {:>8} {:>9.2} {:>9.2} {:>8.1} {:>9.3} {:>9.2} {:>+7.1} | {:>9.2} {:>8.1}",
            whole.requests,
            whole.measured / ms,
            whole.modelled / ms,
            whole.demerit * 100.0,
            whole.distance / ms,
            whole.error / ms,
            whole.worst_tenth * 100.0,
            sheet.modelled / ms,
            sheet.demerit * 100.0
        ),
        missing,
    ))
}
