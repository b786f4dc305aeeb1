//! What an entry may ask for, and whether it proves to be of its run.

use super::entry::Undo;
use super::layer::UndoKind;
use super::proof::{HIDDEN, Proof, is_plain};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Parameters of the kernel that a run may set and write back.
const PARAMETERS: [&str; 4] = [
    "/sys/module/zfs/parameters/zfs_vdev_max_auto_ashift",
    "/sys/module/zfs/parameters/zfs_arc_min",
    "/sys/module/zfs/parameters/zfs_arc_max",
    "/sys/class/net/lo/mtu",
];

/// Most digits of such a parameter.
const PARAMETER_DIGITS: usize = 20;

/// Directory in which an entry says that something is created, if the run has not said so yet.
pub(super) fn new_place(proof: &Proof, undo: &Undo) -> Option<PathBuf> {
    match undo {
        Undo::OnPeer { undo, .. } => new_place(&proof.there(), undo),
        Undo::RemoveFile(path)
        | Undo::RemoveDir(path)
        | Undo::RemoveTree(path)
        | Undo::Unmount(path)
        | Undo::EndMachine(path) => proof.place_of(path),
        _ => None,
    }
}

/// Returns true if an entry may be carried out; `kinds` are the ways of all layers, `None` means
/// that it is only written, by this program itself.
pub(super) fn accepts(proof: &Proof, undo: &Undo, kinds: Option<&[&UndoKind]>) -> bool {
    match undo {
        Undo::RemoveFile(path)
        | Undo::RemoveDir(path)
        | Undo::RemoveTree(path)
        | Undo::Unmount(path)
        | Undo::EndMachine(path) => proof.is_ours(path),
        Undo::Blank { device, mark } => {
            is_device(device) && (proof.is_name(mark) || proof.is_uuid(mark))
        }
        Undo::WriteBack { file, ours, before } => {
            PARAMETERS.iter().any(|known| file == Path::new(known))
                && [ours, before].into_iter().all(|text| is_number(text))
        }
        // The whole environment variable is compared with it.
        Undo::EndProcess { program, mark } => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !program.is_empty()
                && program.chars().all(plain)
                && mark.starts_with(HIDDEN)
                && mark
                    .rsplit('-')
                    .next()
                    .is_some_and(|end| proof.has_mark(end))
        }
        Undo::Layer(entry) => kinds.is_none_or(|kinds| entry.kind(kinds, proof).is_some()),
        // One machine away at most: a chain of machines is nothing this program writes, and would
        // undo on machines that the user did not name.
        Undo::OnPeer { undo, .. } => {
            !matches!(**undo, Undo::OnPeer { .. }) && accepts(&proof.there(), undo, kinds)
        }
    }
}

/// Returns true if a path is that of a device; a plan writes `{disk x}`.
fn is_device(path: &Path) -> bool {
    (is_plain(path) && path.starts_with("/dev")) || path.as_os_str().as_bytes().starts_with(b"{")
}

fn is_number(text: &str) -> bool {
    // What a plan reads of a parameter.
    if text == "{before}" {
        return true;
    }
    !text.is_empty() && text.len() <= PARAMETER_DIGITS && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof() -> Proof {
        let mut proof = Proof::default();
        proof.add_mark("0123456789abcdef");
        proof
    }

    #[test]
    fn nothing_but_a_known_parameter_is_written_back() {
        let write = |file: &str, before: &str| {
            accepts(
                &proof(),
                &Undo::WriteBack {
                    file: file.into(),
                    ours: "12".to_string(),
                    before: before.to_string(),
                },
                None,
            )
        };
        assert!(write(PARAMETERS[0], "16"));
        assert!(!write(PARAMETERS[0], "16\nroot::0:0"));
        assert!(!write("/etc/shadow", "16") && !write("/proc/sys/kernel/panic", "16"));
    }

    #[test]
    fn a_process_and_a_signature_need_the_mark() {
        let end = |mark: &str| Undo::EndProcess {
            program: "sshd".to_string(),
            mark: mark.to_string(),
        };
        let proof = proof();
        assert!(accepts(
            &proof,
            &end(".stackrace-r1-t0-0123456789abcdef"),
            None
        ));
        for theirs in ["", ".stackrace-", ".stackrace-x", "0123456789abcdef"] {
            assert!(!accepts(&proof, &end(theirs), None), "{theirs}");
        }
        let blank = |device: &str, mark: &str| Undo::Blank {
            device: device.into(),
            mark: mark.to_string(),
        };
        assert!(accepts(
            &proof,
            &blank("/dev/sdb", "0123456789abcdef8000000000000001"),
            None
        ));
        assert!(!accepts(&proof, &blank("/dev/sdb", "0"), None));
        assert!(!accepts(
            &proof,
            &blank("/srv/x", "0123456789abcdef8000000000000001"),
            None
        ));
    }
}
