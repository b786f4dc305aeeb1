//! Data that stay where they are from one trial to the next, and whether they are still what they were.

use stackrace_base::unit::ShownPath;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use stackrace_engine::spec::Content;

/// Use that a workload makes of the data it laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataUse {
    /// The data are only read.
    Read,
    /// The data are written over, and neither their number nor their sizes change.
    Rewritten,
    /// The data are made, moved or removed, or their content must be known: each trial needs its
    /// own.
    Spent,
}

/// Layout of the data in the directory of a workload of block I/O.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataLayout {
    /// Number of files.
    pub files: u32,
    /// Size of each, bytes.
    pub file_bytes: u64,
    /// Content of the files.
    pub content: Content,
}

/// Number of blocks, of all files together, that are looked at.
const SAMPLES: u64 = 16;
/// Size of one of them, bytes.
const SAMPLE_BYTES: u64 = 4096;

/// Data that were laid out: files with their sizes, and a checksum of a sample of what they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptData {
    sizes: BTreeMap<std::ffi::OsString, u64>,
    sample: Option<blake3::Hash>,
}

impl KeptData {
    /// Looks at what lies in a directory of a trial; with `sampled`, also at what is in it.
    ///
    /// # Errors
    /// The system's; something in it is no file.
    pub fn of(directory: &Path, sampled: bool) -> io::Result<Self> {
        let mut sizes = BTreeMap::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            // A kept set is plain files; anything else was put there by others.
            if !metadata.is_file() {
                let name = entry.path();
                return Err(io::Error::other(format!("{} is no file", name.shown())));
            }
            sizes.insert(entry.file_name(), metadata.len());
        }
        let sample = match sampled {
            // A sample, because reading all of it would fill the page cache and take as long as
            // laying it out.
            true => Some(sample(directory, &sizes)?),
            false => None,
        };
        Ok(Self { sizes, sample })
    }

    /// Returns true if a directory still holds this.
    pub fn is_in(&self, directory: &Path) -> bool {
        Self::of(directory, self.sample.is_some()).is_ok_and(|now| now == *self)
    }
}

/// The checksum of blocks that lie evenly over all files.
fn sample(directory: &Path, sizes: &BTreeMap<std::ffi::OsString, u64>) -> io::Result<blake3::Hash> {
    let total: u64 = sizes.values().sum();
    let mut hasher = blake3::Hasher::new();
    let mut block = [0; SAMPLE_BYTES as usize];
    let mut begins = 0;
    for (name, size) in sizes {
        let mut file = None;
        for number in 0..SAMPLES {
            // Where the sample of that number lies in all files as one.
            let at = (u128::from(total) * u128::from(number) / u128::from(SAMPLES)) as u64;
            let Some(at) = at.checked_sub(begins).filter(|at| at < size) else {
                continue;
            };
            let file = match &file {
                Some(file) => file,
                None => file.insert(File::open(directory.join(name))?),
            };
            let bytes = SAMPLE_BYTES.min(size - at) as usize;
            file.read_exact_at(&mut block[..bytes], at)?;
            hasher.update(&block[..bytes]);
        }
        begins += size;
    }
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..3_u8 {
            let path = directory.path().join(format!("data.{number}"));
            std::fs::write(path, vec![number + 1; 100_000]).unwrap();
        }
        directory
    }

    #[test]
    fn what_was_not_touched_is_still_there() {
        let directory = laid_out();
        for sampled in [true, false] {
            let kept = KeptData::of(directory.path(), sampled).unwrap();
            assert!(kept.is_in(directory.path()));
        }
    }

    #[test]
    fn a_file_that_is_gone_shorter_added_or_of_other_content_is_noticed() {
        let path = |directory: &tempfile::TempDir, name: &str| directory.path().join(name);
        type Change = fn(&Path);
        let changes: [(&str, Change); 4] = [
            ("data.1", |path| std::fs::remove_file(path).unwrap()),
            ("data.1", |path| std::fs::write(path, [2; 99_999]).unwrap()),
            ("more", |path| std::fs::write(path, "").unwrap()),
            ("data.1", |path| {
                std::fs::write(path, vec![0; 100_000]).unwrap()
            }),
        ];
        for (number, (name, change)) in changes.into_iter().enumerate() {
            let directory = laid_out();
            let kept = KeptData::of(directory.path(), true).unwrap();
            let sizes = KeptData::of(directory.path(), false).unwrap();
            change(&path(&directory, name));
            assert!(!kept.is_in(directory.path()), "change {number}");
            // Other content alone is no matter where it is written over.
            assert_eq!(
                sizes.is_in(directory.path()),
                number == 3,
                "change {number}"
            );
        }
    }

    #[test]
    fn a_directory_inside_is_not_kept() {
        let directory = laid_out();
        std::fs::create_dir(directory.path().join("inside")).unwrap();
        assert!(KeptData::of(directory.path(), true).is_err());
    }
}
