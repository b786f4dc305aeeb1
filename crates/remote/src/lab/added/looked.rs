//! Whether a file is a disk that a PC can start from: looked at before anything is copied or started.

use super::super::command::QEMU_IMG;
use super::super::error::LabError;
use super::AddedError;
use serde::Deserialize;
use stackrace_machine::host::{Host, HostError, argv};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a sector.
const SECTOR: usize = 512;

/// Bytes of it that are program; the rest describes partitions.
const PROGRAM: usize = 440;

/// The last bytes of a sector that a BIOS starts.
const SIGNED: [u8; 2] = [0x55, 0xaa];

/// First bytes of files that are packed, and what unpacks them.
const PACKED: [(&[u8], &str); 5] = [
    (b"\xfd7zXZ\0", "unxz --keep"),
    (b"\x1f\x8b", "gunzip --keep"),
    (b"\x28\xb5\x2f\xfd", "unzstd --keep"),
    (b"BZh", "bunzip2 --keep"),
    (b"PK\x03\x04", "unzip"),
];

/// Formats that are kept.
const FORMATS: [&str; 2] = ["raw", "qcow2"];

/// An image that the lab can keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedImage {
    /// The whole path of the file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Bytes of it that take room: the rest are holes.
    pub held_bytes: u64,
    /// Its format, as QEMU names it.
    pub format: String,
}

/// What `qemu-img info` says.
#[derive(Debug, Deserialize)]
struct Info {
    format: String,
    #[serde(rename = "backing-filename")]
    backing: Option<String>,
    #[serde(rename = "format-specific")]
    specific: Option<Specific>,
}

#[derive(Debug, Deserialize)]
struct Specific {
    data: SpecificData,
}

#[derive(Debug, Deserialize)]
struct SpecificData {
    #[serde(rename = "data-file")]
    file: Option<String>,
}

impl LookedImage {
    /// Looks at a file; `work` is a directory for what is read of it.
    ///
    /// # Errors
    /// It cannot be read, or a guest could not start from it.
    pub fn of(host: &dyn Host, path: &Path, work: &Path) -> Result<Self, LabError> {
        let failed = |error| HostError::path("read", path, error);
        // Whole, so that no name is taken for an option or for a protocol.
        let path = std::path::absolute(path).map_err(failed)?;
        let mut file = File::open(&path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            let why = "it is no file";
            return Err(AddedError::NoSystem { path, why }.into());
        }
        let mut begins = Vec::new();
        let first = (&mut file).take(SECTOR as u64).read_to_end(&mut begins);
        first.map_err(failed)?;
        if let Some((_, unpack)) = PACKED.iter().find(|(magic, _)| begins.starts_with(magic)) {
            return Err(AddedError::Packed { path, unpack }.into());
        }
        let mut info = argv([QEMU_IMG, "info", "--output=json", "--"]);
        info.push(path.clone().into());
        let info = host.must(&info)?.stdout;
        let format = whole(&path, &info)?;
        let sector = work.join("sector");
        let mut read = argv([
            QEMU_IMG, "dd", "-f", &format, "-O", "raw", "bs=512", "count=1",
        ]);
        for (word, path) in [("if=", &path), ("of=", &sector)] {
            let mut word = std::ffi::OsString::from(word);
            word.push(path);
            read.push(word);
        }
        host.must(&read)?;
        let bytes =
            std::fs::read(&sector).map_err(|error| HostError::path("read", &sector, error))?;
        starts(&bytes).map_err(|why| {
            let path = path.clone();
            AddedError::NoSystem { path, why }
        })?;
        Ok(Self {
            path,
            bytes: about.len(),
            // `stat` counts blocks of 512 bytes, whatever the file system's are.
            held_bytes: about.len().min(about.blocks() * 512),
            format,
        })
    }
}

/// The format of an image that is a whole disk, by what `qemu-img info` says of it.
fn whole(path: &Path, info: &str) -> Result<String, AddedError> {
    let path = path.to_owned();
    let Ok(info) = serde_json::from_str::<Info>(info) else {
        let why = "qemu-img does not say what it is";
        return Err(AddedError::NoSystem { path, why });
    };
    if !FORMATS.contains(&info.format.as_str()) {
        let format = info.format;
        return Err(AddedError::Format { path, format });
    }
    // The other file could be any file of this machine, and change at any time.
    let other = info.backing.or(info.specific.and_then(|it| it.data.file));
    match other {
        Some(other) => Err(AddedError::Part { path, other }),
        None => Ok(info.format),
    }
}

/// Refuses a disk that a BIOS does not start, by its first sector.
fn starts(sector: &[u8]) -> Result<(), &'static str> {
    if sector.get(SECTOR - SIGNED.len()..SECTOR) != Some(&SIGNED[..]) {
        return Err("its first sector is not that of a disk with a system");
    }
    match sector[..PROGRAM].iter().all(|&byte| byte == 0) {
        true => Err(
            "its first sector has no program, so that it is made for UEFI alone or for another processor",
        ),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_sector_without_a_program_or_its_mark_is_refused() {
        let mut sector = vec![0; SECTOR];
        assert!(starts(&sector).unwrap_err().contains("not that of a disk"));
        assert!(starts(&[]).is_err() && starts(&sector[..100]).is_err());
        sector[510..].copy_from_slice(&SIGNED);
        assert!(starts(&sector).unwrap_err().contains("UEFI"));
        // The list of partitions is no program.
        sector[PROGRAM + 6] = 0x80;
        assert!(starts(&sector).is_err());
        sector[0] = 0xeb;
        assert_eq!(starts(&sector), Ok(()));
    }

    #[test]
    fn an_image_is_whole_or_names_the_file_it_lacks() {
        let path = Path::new("/images/a");
        let whole = |info: &str| whole(path, info);
        assert_eq!(whole(r#"{"format": "raw"}"#).unwrap(), "raw");
        let plain = r#"{"format": "qcow2", "virtual-size": 5,
                        "format-specific": {"type": "qcow2", "data": {"compat": "1.1"}}}"#;
        assert_eq!(whole(plain).unwrap(), "qcow2");
        let other = |other: &str| {
            let (path, other) = (path.to_owned(), other.to_owned());
            Err(AddedError::Part { path, other })
        };
        assert_eq!(
            whole(r#"{"format": "qcow2", "backing-filename": "/etc/shadow"}"#),
            other("/etc/shadow")
        );
        assert_eq!(
            whole(
                r#"{"format": "qcow2", "format-specific": {"type": "qcow2", "data": {"data-file": "x"}}}"#
            ),
            other("x")
        );
        let refused = whole(r#"{"format": "vmdk"}"#).unwrap_err();
        assert!(
            refused
                .next()
                .contains("qemu-img convert -O qcow2 /images/a")
        );
        assert!(whole("").is_err());
    }
}
