//! Whether KVM executes anything: found out by a guest of three instructions.
//!
//! Some hypervisors offer /dev/kvm, let it be opened and make machines, and fail at the first instruction.

use super::command::{Accelerator, PROGRAM};
use stackrace_machine::host::{Host, argv};

/// Bytes of a BIOS, which ends where the processor begins.
const BIOS_BYTES: usize = 64 << 10;

/// Place where a processor begins, from the end of the BIOS.
const BEGINNING: usize = 16;

/// Value that the guest writes to the port that ends it.
const SAID: u8 = 0x10;

/// The guest: write to the port, then wait for ever.
const GUEST: [u8; 5] = [0xb0, SAID, 0xe6, 0xf4, 0xf4];

/// Exit status of QEMU when the guest wrote that, as its `isa-debug-exit` makes it.
const EXECUTED: i32 = ((SAID as i32) << 1) | 1;

/// Longest time it may take, s.
const TIME: &str = "10";

/// Returns true if a guest executes instructions with KVM; `None` if it cannot be tried, for lack of QEMU or of a place
/// for its file.
pub fn executes(host: &dyn Host) -> Option<bool> {
    let file = tempfile::NamedTempFile::new().ok()?;
    std::fs::write(file.path(), bios()).ok()?;
    // With the processor that guests get: what KVM cannot give them, QEMU dies of.
    let head = ["timeout", TIME, PROGRAM, "-machine", "pc", "-accel"];
    let kvm = Accelerator::Kvm.words().split(' ');
    let rest = ["-nodefaults", "-display", "none", "-no-reboot", "-m", "16"];
    let exit = ["-device", "isa-debug-exit,iobase=0xf4,iosize=0x01", "-bios"];
    let mut command = argv(head.into_iter().chain(kvm).chain(rest).chain(exit));
    command.push(file.path().into());
    let ended = host.exec(&command).ok()?.status;
    // 127: there is no such program.
    (ended != Some(127)).then_some(ended == Some(EXECUTED))
}

/// A BIOS that is the guest.
fn bios() -> Vec<u8> {
    let mut bytes = vec![0xf4; BIOS_BYTES];
    let at = BIOS_BYTES - BEGINNING;
    bytes[at..at + GUEST.len()].copy_from_slice(&GUEST);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_lies_where_a_processor_begins() {
        let bios = bios();
        assert_eq!(bios.len(), BIOS_BYTES);
        assert_eq!(&bios[BIOS_BYTES - 16..][..5], GUEST);
        assert_eq!(EXECUTED, 33);
    }
}
