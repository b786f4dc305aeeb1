//! Files that the user names for results: `--html FILE`, `--output FILE`.
//!
//! A name may lead anywhere: to a device, a pipe, a link, or a file of another user. Only a regular
//! file of the caller is replaced; devices and pipes are written to; all else is refused, and
//! before a run begins rather than after it.

use super::failure::Failure;
use super::terminal::{StandardOutput, print_data};
use rustix::fs::{Access, FileType, OFlags, access};
use stackrace_base::event::again;
use stackrace_base::unit::{InWords, ShownPath};
use std::fs::{File, Metadata, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Names of standard output. They are compared as text: where the shell has redirected standard
/// output to a file, `/dev/stdout` leads to that file, and replacing it would lose what the shell
/// writes there.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Kind of thing that a name leads to.
#[derive(Debug, PartialEq, Eq)]
enum Destination {
    /// The standard output of this process.
    StandardOutput,
    /// A character device or a pipe: opened and written to, never replaced.
    Stream(PathBuf),
    /// A regular file, replaced as a whole, or a new one; with the permissions to keep.
    File(PathBuf, Option<u32>),
}

/// Returns true if a name means standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    STANDARD_OUTPUT.iter().any(|name| Path::new(name) == path)
}

/// Refuses a name that cannot be written to, without writing.
///
/// # Errors
/// When it is a directory, a block device, a socket, a file of another user, or lies where the
/// caller may not write.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    destination(path).map(|_| ())
}

/// The failure of a directory for several files that is not there.
pub(super) fn no_directory(dir: &Path) -> Failure {
    let make = ["mkdir".as_ref(), "-p".as_ref(), dir.as_os_str()];
    Failure::usage(format!("{} is no directory", dir.shown())).next(format!(
        "{}, or name one that exists",
        stackrace_base::event::shell(&make)
    ))
}

/// Refuses, before a run begins, a report that could not be written at its end.
///
/// # Errors
/// As [`check`]; and for standard output, which gets the verdict.
pub(super) fn check_before_run(html: Option<&Path>) -> Result<(), Failure> {
    match html {
        Some(path) if is_standard_output(path) => Err(Failure::usage(
            "--html: the verdict is printed to standard output, so the page cannot go there",
        )
        .next(format!(
            "afterwards: {}",
            again(&["report", "last", "--html", "-"])
        ))),
        Some(path) => check(path),
        None => Ok(()),
    }
}

/// Writes bytes to what a name leads to. A regular file is written beside its name and renamed, so
/// that an old one is never half overwritten.
///
/// # Errors
/// As [`check`], and when writing fails; an old file is then as it was.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::internal(format!(
            "cannot write {}: {error}",
            path.shown(),
            error = error.in_words()
        ))
        .next("check the space that is left, or name another file")
    };
    match destination(path)? {
        Destination::StandardOutput => {
            print_data(bytes);
            Ok(())
        }
        Destination::Stream(stream) => open_stream(&stream)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(failed),
        Destination::File(file, mode) => replace(&file, mode, bytes).map_err(failed),
    }
}

/// Opens what a name leads to, for lines that are written as they come; a regular file is emptied.
///
/// # Errors
/// As [`check`], and when it cannot be opened.
pub(super) fn open(path: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::internal(format!(
            "cannot write {}: {error}",
            path.shown(),
            error = error.in_words()
        ))
        .next("name another file")
    };
    Ok(match destination(path)? {
        Destination::StandardOutput => Box::new(StandardOutput),
        Destination::Stream(stream) => Box::new(open_stream(&stream).map_err(failed)?),
        Destination::File(file, _) => {
            let opened = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                // The name may have been pointed elsewhere since it was looked at.
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(file);
            Box::new(opened.map_err(failed)?)
        }
    })
}

fn destination(path: &Path) -> Result<Destination, Failure> {
    let refused =
        |why: &str, next: &str| Err(Failure::refused(format!("{} {why}", path.shown())).next(next));
    if is_standard_output(path) {
        return Ok(Destination::StandardOutput);
    }
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return new_file(path),
        Err(error) => {
            return refused(
                &format!("cannot be looked at: {error}", error = error.in_words()),
                "name another file",
            );
        }
    };
    let kind = found.file_type();
    // Before the owner is asked: the advice for a directory differs.
    if kind.is_dir() {
        return refused("is a directory", "name a file in it");
    }
    if kind.is_char_device() || kind.is_fifo() {
        return Ok(Destination::Stream(path.to_owned()));
    }
    if !kind.is_file() {
        return refused(
            "is neither a file, a pipe nor a character device",
            "name a regular file: a disk is never written as a report",
        );
    }
    // Root could replace it. A file of another user that root replaces would belong to root
    // afterwards.
    if found.uid() != rustix::process::geteuid().as_raw() {
        return refused(
            "belongs to another user and is not replaced",
            "name another file, or remove that one yourself",
        );
    }
    existing_file(path, &found)
}

fn existing_file(path: &Path, found: &Metadata) -> Result<Destination, Failure> {
    // A link stays a link: what it leads to is replaced.
    let file = std::fs::canonicalize(path).map_err(|error| {
        Failure::refused(format!(
            "{} cannot be followed: {error}",
            path.shown(),
            error = error.in_words()
        ))
        .next("name another file")
    })?;
    // A new file takes its place, so what counts is the right to write to the directory.
    writable(&file)?;
    Ok(Destination::File(file, Some(found.mode() & 0o777)))
}

fn new_file(path: &Path) -> Result<Destination, Failure> {
    // A link that leads nowhere may be pointed anywhere before the file is made.
    if path.is_symlink() {
        return Err(Failure::refused(format!(
            "{} is a link to a file that does not exist",
            path.shown()
        ))
        .next("remove the link, or name another file"));
    }
    if path.file_name().is_none() {
        return Err(Failure::usage(format!(
            "{} is not a file name",
            path.shown()
        )));
    }
    writable(path)?;
    Ok(Destination::File(path.to_owned(), None))
}

/// The directory a file lies in.
fn directory(file: &Path) -> &Path {
    let parent = file.parent().unwrap_or(Path::new("."));
    if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    }
}

/// Refuses a file whose directory does not exist or cannot be written.
fn writable(file: &Path) -> Result<(), Failure> {
    let directory = directory(file);
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        Failure::refused(format!(
            "cannot write {}: the directory {}: {}",
            file.shown(),
            directory.shown(),
            error.in_words()
        ))
        .next("create the directory, or name a file where you may write")
    })
}

/// Opens a device or a pipe, and makes sure that it still is one.
fn open_stream(path: &Path) -> std::io::Result<File> {
    let file = std::fs::OpenOptions::new()
        .write(true)
        // A terminal that is opened must not become the one that sends us Ctrl-C.
        .custom_flags(OFlags::NOCTTY.bits() as i32)
        .open(path)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    // The name may have been pointed elsewhere since it was looked at.
    if kind == FileType::CharacterDevice || kind == FileType::Fifo {
        Ok(file)
    } else {
        Err(std::io::Error::other("it is no longer a pipe or a device"))
    }
}

fn replace(file: &Path, mode: Option<u32>, bytes: &[u8]) -> std::io::Result<()> {
    // 0666 less the umask for a new file, as any program creates one; random names and O_EXCL keep
    // others from placing a link where the temporary file will be.
    let mut part = tempfile::Builder::new()
        .prefix(".stackrace-")
        .suffix(".part")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory(file))?;
    part.write_all(bytes)?;
    if let Some(mode) = mode {
        part.as_file()
            .set_permissions(Permissions::from_mode(mode))?;
    }
    // A rename: a reader sees the old page or the new one, never half of one.
    part.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_device_is_written_to_and_stays_a_device() {
        write(Path::new("/dev/null"), b"report").unwrap();
        let kind = std::fs::metadata("/dev/null").unwrap().file_type();
        assert!(kind.is_char_device());
    }

    #[test]
    fn a_pipe_gets_the_bytes_and_stays_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        let reader = pipe.clone();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            File::open(reader)
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            text
        });
        write(&pipe, b"report").unwrap();
        assert_eq!(reader.join().unwrap(), "report");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("report.html");
        std::fs::write(&file, "an older, longer report").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_target_of_a_link_is_replaced_and_the_link_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn what_cannot_be_written_is_refused_beforehand() {
        let dir = tempfile::tempdir().unwrap();
        let dangling = dir.path().join("dangling");
        symlink(dir.path().join("nowhere"), &dangling).unwrap();
        for wrong in [
            dir.path().to_owned(),
            dir.path().join("missing/report.html"),
            dangling,
            PathBuf::from(".."),
        ] {
            assert!(check(&wrong).is_err(), "{}", wrong.display());
        }
        assert!(check(&dir.path().join("new.html")).is_ok());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        // /proc/version belongs to root; as root, a file given to another user takes its place.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("theirs");
        std::fs::write(&file, "theirs").unwrap();
        let theirs = if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
            file
        } else {
            PathBuf::from("/etc/passwd")
        };
        let error = format!("{:?}", check(&theirs).unwrap_err());
        assert!(error.contains("another user"), "{error}");
    }
}
