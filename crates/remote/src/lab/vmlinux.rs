//! The kernel proper, cut out of a `bzImage`: a virtual machine that starts it directly need not
//! emulate its unpacking.
//!
//! Where the packed kernel lies is said by the header of the x86 boot protocol from version 2.08 on
//! (Documentation/arch/x86/boot.rst): `setup_sects` at 0x1f1, `payload_offset` at 0x248 and
//! `payload_length` at 0x24c, both relative to the protected-mode code.

use super::error::LabError;
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::{Host, HostError, argv};
use std::path::Path;

/// Compression of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    /// Compressed with XZ.
    Xz,
    /// Compressed with Zstandard.
    Zstandard,
}

/// Makes `vmlinux` of `vmlinuz`, in a working directory.
///
/// # Errors
/// The file is no kernel of that form, or its packer is missing.
pub(super) fn unpack(host: &dyn Host, work: &Path) -> Result<(), LabError> {
    let path = work.join("vmlinuz");
    let image = std::fs::read(&path).map_err(|error| HostError::path("read", &path, error))?;
    let (packed, packing) =
        packed(&image).map_err(|why| LabError::Refused(format!("{}: {why}", path.shown())))?;
    let (suffix, tool) = match packing {
        Packing::Xz => ("xz", vec!["xz", "--decompress"]),
        Packing::Zstandard => ("zst", vec!["zstd", "--decompress", "--rm", "--quiet"]),
    };
    let packed_path = work.join(format!("vmlinux.{suffix}"));
    std::fs::write(&packed_path, packed)
        .map_err(|error| HostError::path("write", &packed_path, error))?;
    let mut command = argv(tool);
    command.push(packed_path.into());
    host.must(&command)?;
    Ok(())
}

/// The packed kernel in a `bzImage`, and how it is packed.
///
/// # Errors
/// What is wrong with the file.
fn packed(image: &[u8]) -> Result<(&[u8], Packing), String> {
    let short = || "it ends too soon".to_string();
    let long = |at: usize| -> Result<usize, String> {
        let bytes = image.get(at..at + 4).ok_or_else(short)?;
        let bytes = <[u8; 4]>::try_from(bytes).map_err(|_| short())?;
        Ok(u32::from_le_bytes(bytes) as usize)
    };
    if image.get(0x202..0x206) != Some(b"HdrS") {
        return Err("it is no Linux kernel".to_string());
    }
    let version = image.get(0x206..0x208).ok_or_else(short)?;
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version < 0x0208 {
        return Err(format!("its boot protocol {version:#x} is too old"));
    }
    // A `setup_sects` of 0 means 4.
    let setup_sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let begin = (setup_sectors + 1) * 512 + long(0x248)?;
    let payload = image.get(begin..begin + long(0x24c)?).ok_or_else(short)?;
    let packing = match payload {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstandard,
        _ => return Err("it is packed neither by xz nor by zstd".to_string()),
    };
    // The last four bytes are the size when unpacked; the packers do not know them.
    let end = payload.len().checked_sub(4).ok_or_else(short)?;
    Ok((&payload[..end], packing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_where_the_header_says() {
        let mut image = vec![0_u8; 512 * 3 + 0x40];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
        image[0x248..0x24c].copy_from_slice(&0x10_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&14_u32.to_le_bytes());
        image[1040..1054].copy_from_slice(b"\xfd7zXZ\0data\x04\x03\x02\x01");
        let found = packed(&image);
        assert_eq!(found, Ok((&b"\xfd7zXZ\0data"[..], Packing::Xz)));
        image[1040] = 0;
        assert!(packed(&image).unwrap_err().contains("neither"));
        for length in 0..1054 {
            assert!(packed(&image[..length]).is_err(), "{length}");
        }
        image[0x202] = 0;
        assert!(packed(&image).unwrap_err().contains("no Linux"));
    }
}
