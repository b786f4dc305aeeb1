//! The files of a gallery, written so that a kill at any moment leaves a site that works, and nothing of others is lost.
//!
//! The list of the gallery (`gallery.json`) says which files were made, and with which content. Before anything is
//! replaced it names the old content and the new one, so that the next run knows both as its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path};

use super::failure::Failure;
use super::output;
use stackrace_base::bounded::ByteLimit;
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_show::gallery::{CATALOGUE, Catalogue, CatalogueEntry};

/// The page of all runs.
pub(super) const INDEX: &str = "index.html";
/// Largest file of a site that is read back, bytes.
const FILE_MAX: ByteLimit = ByteLimit::new(1 << 30);

/// Writes the files of a site; those of an earlier one that are not in it any more are removed.
///
/// # Errors
/// A file is there that this program did not make, or the system refuses.
pub(super) fn write(
    out: &Path,
    files: &BTreeMap<String, Vec<u8>>,
    runs: Vec<CatalogueEntry>,
) -> Result<(), Failure> {
    let old = earlier(out)?;
    let new: BTreeMap<String, Vec<String>> = files
        .iter()
        .map(|(name, bytes)| (name.clone(), vec![hash(bytes)]))
        .collect();
    // All are looked at before the first is touched.
    for (name, hashes) in &new {
        is_ours(&out.join(name), old.get(name), hashes)?;
        make_folder(&out.join(name))?;
    }
    list(out, runs.clone(), both(&old, &new))?;
    // The page of all runs last: what it leads to is there.
    let (last, rest): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| *name == INDEX);
    for (name, bytes) in rest.into_iter().chain(last) {
        let path = out.join(name);
        if content(&path)?.as_ref() != Some(&hash(bytes)) {
            output::write(&path, bytes)?;
        }
    }
    let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
    for (name, hashes) in gone {
        let path = out.join(name);
        // One that was changed since is the user's own.
        if content(&path)?.is_some_and(|hash| hashes.contains(&hash)) {
            fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
        }
    }
    list(out, runs, new)
}

fn list(
    out: &Path,
    runs: Vec<CatalogueEntry>,
    files: BTreeMap<String, Vec<String>>,
) -> Result<(), Failure> {
    let text = Catalogue::new(runs, files).written();
    let text = text.map_err(|why| Failure::internal(format!("the list of the gallery: {why}")))?;
    output::write(&out.join(CATALOGUE), &text)
}

/// The files of an earlier site; none if there is none.
fn earlier(out: &Path) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let path = out.join(CATALOGUE);
    let bytes = match FILE_MAX.read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(failed("read", &path, &error)),
    };
    let read = Catalogue::read(&bytes).map_err(|why| {
        Failure::refused(format!("{}: {why}, and it would be replaced", path.shown()))
            .next("name another directory: -o OUT")
    })?;
    // A list from elsewhere names no file outside.
    let inside = |name: &String| {
        let mut parts = Path::new(name).components();
        parts.all(|part| matches!(part, Component::Normal(_)))
    };
    Ok(read
        .files
        .into_iter()
        .filter(|(name, _)| inside(name))
        .collect())
}

fn both(
    old: &BTreeMap<String, Vec<String>>,
    new: &BTreeMap<String, Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let mut both = old.clone();
    for (name, hashes) in new {
        both.entry(name.clone())
            .or_default()
            .extend(hashes.iter().cloned());
    }
    both
}

/// Refuses to replace a file with a content that this program did not give it.
fn is_ours(path: &Path, made: Option<&Vec<String>>, new: &[String]) -> Result<(), Failure> {
    let Some(found) = content(path)? else {
        return Ok(());
    };
    let known = made.is_some_and(|made| made.contains(&found));
    match known || new.contains(&found) {
        true => Ok(()),
        false => Err(Failure::refused(format!(
            "{} is there, and not as `stackrace gallery` made it",
            path.shown()
        ))
        .next("move it away, or name another directory: -o OUT")),
    }
}

/// Hash of what lies at a path; `None` if nothing does.
fn content(path: &Path) -> Result<Option<String>, Failure> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("look at", path, &error)),
        Ok(about) if !about.is_file() => Err(Failure::refused(format!(
            "{} is there, and it is no regular file",
            path.shown()
        ))
        .next("move it away, or name another directory: -o OUT")),
        Ok(_) => {
            let bytes = FILE_MAX
                .read(path)
                .map_err(|error| failed("read", path, &error))?;
            Ok(Some(hash(&bytes)))
        }
    }
}

/// Makes the folder of a file; one that is a link would lead elsewhere.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    match folder.is_symlink() {
        false => Ok(()),
        true => Err(Failure::refused(format!("{} is a link", folder.shown()))
            .next("name the directory that it leads to: -o OUT")),
    }
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn failed(tried: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::refused(format!(
        "cannot {tried} {}: {}",
        path.shown(),
        error.in_words()
    ))
    .next("name a directory where you may write: -o OUT")
}
