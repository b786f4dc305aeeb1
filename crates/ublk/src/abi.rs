//! Numbers and structures of the kernel's `ublk` driver (`linux/ublk_cmd.h`), as bytes.
//!
//! Commands travel in the 80 bytes of a large submission entry. All numbers are the machine's own
//! (little-endian on x86-64, the one architecture of the lab).

/// Device through which devices are added and removed.
pub(super) const CONTROL: &str = "/dev/ublk-control";

/// `_IOWR('u', number, size)` of `asm-generic/ioctl.h`.
const fn read_write(number: u32, size: u32) -> u32 {
    (3 << 30) | (size << 16) | ((b'u' as u32) << 8) | number
}

/// Bytes of a control command.
const CONTROL_BYTES: usize = 32;
/// Bytes of a queue command.
const QUEUE_BYTES: usize = 16;

/// Adds a device.
pub(super) const ADD: u32 = read_write(0x04, CONTROL_BYTES as u32);
/// Removes a device.
pub(super) const DELETE: u32 = read_write(0x05, CONTROL_BYTES as u32);
/// Makes the block device appear.
pub(super) const START: u32 = read_write(0x06, CONTROL_BYTES as u32);
/// Makes the block device disappear, and its queue end.
pub(super) const STOP: u32 = read_write(0x07, CONTROL_BYTES as u32);
/// Says what the device is like.
pub(super) const SET_PARAMETERS: u32 = read_write(0x08, CONTROL_BYTES as u32);
/// Waits for a first request in a slot.
pub(super) const FETCH: u32 = read_write(0x20, QUEUE_BYTES as u32);
/// Completes the request in a slot, and waits for the next one.
pub(super) const COMMIT_AND_FETCH: u32 = read_write(0x21, QUEUE_BYTES as u32);

/// The commands of [`Descriptor::operation`].
pub(super) const READ: u8 = 0;
pub(super) const WRITE: u8 = 1;
pub(super) const FLUSH: u8 = 2;
pub(super) const DISCARD: u8 = 3;
pub(super) const WRITE_ZEROES: u8 = 5;

/// The flag of a write that has to be durable when it completes.
const FUA: u32 = 1 << 13;

/// Bytes of the kernel's description of one request.
pub(super) const DESCRIPTOR_BYTES: usize = 24;

/// Attributes that a device states of itself.
const ROTATIONAL: u32 = 1 << 1;
const VOLATILE_CACHE: u32 = 1 << 2;
const TAKES_FUA: u32 = 1 << 3;

/// Parts of the parameters that are filled in.
const BASIC: u32 = 1;
const DISCARDS: u32 = 1 << 1;

/// One request as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) operation: u8,
    pub(super) durable: bool,
    pub(super) sectors: u32,
    pub(super) first: u64,
}

impl Descriptor {
    /// Reads the kernel's 24 bytes.
    pub(super) fn of(bytes: [u8; DESCRIPTOR_BYTES]) -> Self {
        let word = |at: usize| {
            let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_ne_bytes(four)
        };
        Self {
            operation: (word(0) & 0xff) as u8,
            durable: word(0) & FUA != 0,
            sectors: word(4),
            first: u64::from(word(8)) | u64::from(word(12)) << 32,
        }
    }
}

/// A control command about a device; `address` and `length` name a structure in our memory.
pub(super) fn control(device: u32, address: u64, length: u16, value: u64) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[0..4].copy_from_slice(&device.to_ne_bytes());
    // No queue in particular.
    bytes[4..6].copy_from_slice(&u16::MAX.to_ne_bytes());
    bytes[6..8].copy_from_slice(&length.to_ne_bytes());
    bytes[8..16].copy_from_slice(&address.to_ne_bytes());
    bytes[16..24].copy_from_slice(&value.to_ne_bytes());
    bytes
}

/// A command for a slot of queue 0: the result of the request in it, and where the data of the next
/// one go.
pub(super) fn slot(tag: u16, result: i32, buffer: u64) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[2..4].copy_from_slice(&tag.to_ne_bytes());
    bytes[4..8].copy_from_slice(&result.to_ne_bytes());
    bytes[8..16].copy_from_slice(&buffer.to_ne_bytes());
    bytes
}

/// `ublksrv_ctrl_dev_info` of a device with one queue.
pub(super) fn device(number: u32, depth: u16, buffer_bytes: u32) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[0..2].copy_from_slice(&1_u16.to_ne_bytes());
    bytes[2..4].copy_from_slice(&depth.to_ne_bytes());
    bytes[8..12].copy_from_slice(&buffer_bytes.to_ne_bytes());
    bytes[12..16].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// `ublk_params` with the basic part and that of discards.
pub(super) fn parameters(like: &super::device::DeviceShape, buffer_bytes: u32) -> [u8; 64] {
    let mut bytes = [0; 64];
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    let mut attributes = 0;
    if like.rotational {
        attributes |= ROTATIONAL;
    }
    if like.volatile_cache {
        attributes |= VOLATILE_CACHE | TAKES_FUA;
    }
    put(0, 64);
    put(4, BASIC | if like.discards { DISCARDS } else { 0 });
    put(8, attributes);
    put(16, buffer_bytes / 512);
    if like.discards {
        put(44, 4096);
        // The largest multiple of 4 KiB that a count of sectors holds.
        put(48, u32::MAX / 8 * 8);
        put(52, u32::MAX / 8 * 8);
        put(56, 1);
    }
    // Sizes are powers of two, and the kernel takes their exponents.
    bytes[12] = like.logical_sector.trailing_zeros() as u8;
    bytes[13] = like.physical_sector.trailing_zeros() as u8;
    bytes[15] = like.physical_sector.trailing_zeros() as u8;
    bytes[24..32].copy_from_slice(&(like.bytes / 512).to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceShape, Dialect};

    #[test]
    fn commands_have_the_numbers_of_the_kernels_header() {
        // As `UBLK_U_CMD_ADD_DEV` and its like come out of the C compiler.
        assert_eq!(ADD, 0xc020_7504);
        assert_eq!(START, 0xc020_7506);
        assert_eq!(SET_PARAMETERS, 0xc020_7508);
        assert_eq!(FETCH, 0xc010_7520);
        assert_eq!(COMMIT_AND_FETCH, 0xc010_7521);
        // `UBLK_CMD_ADD_DEV` and `UBLK_IO_COMMIT_AND_FETCH_REQ` of the older header.
        let plain = |command| Dialect::Plain.word(command);
        assert_eq!((plain(ADD), plain(COMMIT_AND_FETCH)), (0x04, 0x21));
        assert_eq!(Dialect::Encoded.word(ADD), ADD);
    }

    #[test]
    fn a_request_is_read_from_its_description() {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes[0..4].copy_from_slice(&(1_u32 | 1 << 13).to_ne_bytes());
        bytes[4..8].copy_from_slice(&8_u32.to_ne_bytes());
        bytes[8..16].copy_from_slice(&0x1_0000_0002_u64.to_ne_bytes());
        let found = Descriptor::of(bytes);
        let expected = Descriptor {
            operation: WRITE,
            durable: true,
            sectors: 8,
            first: 0x1_0000_0002,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_disk_says_what_it_is() {
        let like = DeviceShape {
            bytes: 3_000_592_982_016,
            logical_sector: 512,
            physical_sector: 4096,
            rotational: true,
            volatile_cache: true,
            discards: false,
        };
        let bytes = parameters(&like, 524_288);
        assert_eq!(bytes[12..16], [9, 12, 0, 12]);
        assert_eq!(bytes[8], 2 | 4 | 8);
        assert_eq!(bytes[4], 1);
        assert_eq!(bytes[24..32], (3_000_592_982_016_u64 / 512).to_ne_bytes());
    }
}
