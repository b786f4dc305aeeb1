//! Adds a device and starts it.

use super::abi;
use super::content::StoredContent;
use super::device::{Counters, DeviceShape, Dialect, ServeError, ServedDevice, Serving};
use super::log::{SharedLog, Unreadable};
use super::queue::{BUFFER_BYTES, CommandRing, DEPTH, Queue, QueueParts};
use super::room::ContentRoom;
use io_uring::opcode;
use io_uring::types::Fd;
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;

use stackrace_drives::Drive;

/// Serves the block device of a number (`/dev/ublkb0` is that of 0) until the process ends.
///
/// `drive` makes the model, on the thread that will ask it. What is written takes of `room`; a
/// write for which there is none fails (ENOSPC). A log takes of its memory, too.
///
/// # Errors
/// The kernel has no `ublk` driver or refuses; there is no memory; the model cannot be made.
pub fn serve(
    number: u32,
    like: DeviceShape,
    room: &ContentRoom,
    how: Serving,
    drive: impl FnOnce() -> Result<Box<dyn Drive>, String> + Send + 'static,
) -> Result<ServedDevice, ServeError> {
    let mut control = Control::open()?;
    control.add(number)?;
    let mut parameters = abi::parameters(&like, BUFFER_BYTES);
    let set = abi::SET_PARAMETERS;
    control.command("describe", set, number, Some(&mut parameters), 0)?;
    let mut content = StoredContent::new(like.bytes, room)?;
    let medium = how.medium.unwrap_or_default();
    for (first, length, bytes) in &medium.pieces {
        if bytes.is_empty() {
            content.clear(*first, *length);
        } else if !content.write(*first, bytes) {
            return Err(ServeError::new("fill", "there is no memory left for it"));
        }
    }
    let log = how.logged.then(SharedLog::default);
    let parts = QueueParts {
        content,
        unreadable: Unreadable::new(medium.unreadable),
        lead: how.lead,
        dialect: control.dialect,
        log: log.clone(),
        room: room.clone(),
    };
    let counters = Arc::new(Counters::default());
    let counted = Arc::clone(&counters);
    let (told, ready) = channel();
    let thread = std::thread::Builder::new().name(format!("drive {number}"));
    let serving = move || {
        let queue = drive()
            .map_err(|why| ServeError::new("model", why))
            .and_then(|drive| Queue::open(number, drive, parts, counted));
        match queue {
            Ok(mut queue) => {
                let _ = told.send(Ok(()));
                // Ends with the process, or with the device: nothing is left to be told then.
                let _ = queue.serve();
            }
            Err(error) => drop(told.send(Err(error))),
        }
    };
    thread
        .spawn(serving)
        .map_err(|error| ServeError::new("start a thread for", error))?;
    ready
        .recv()
        .map_err(|error| ServeError::new("wait for", error))??;
    let process = u64::from(std::process::id());
    control.command("start", abi::START, number, None, process)?;
    Ok(ServedDevice {
        path: PathBuf::from(format!("/dev/ublkb{number}")),
        counters,
        number,
        dialect: control.dialect,
        log,
    })
}

/// Ends the serving of a device that nothing uses any more; what it held is gone.
///
/// # Errors
/// The kernel refuses.
pub fn remove(device: &ServedDevice) -> Result<(), ServeError> {
    let mut control = Control::open()?;
    control.dialect = device.dialect;
    control.command("stop", abi::STOP, device.number, None, 0)?;
    control.command("remove", abi::DELETE, device.number, None, 0)
}

/// The device that takes commands about devices.
struct Control {
    file: File,
    ring: CommandRing,
    dialect: Dialect,
}

impl Control {
    fn open() -> Result<Self, ServeError> {
        let file = File::options().read(true).write(true).open(abi::CONTROL);
        let file =
            file.map_err(|error| ServeError::new("open the driver (module ublk_drv) of", error))?;
        let ring = CommandRing::builder().build(2);
        let ring = ring.map_err(|error| ServeError::new("get an io_uring for", error))?;
        Ok(Self {
            file,
            ring,
            dialect: Dialect::Encoded,
        })
    }

    /// Adds a device, and finds out how the driver knows its commands.
    fn add(&mut self, number: u32) -> Result<(), ServeError> {
        let mut device = abi::device(number, DEPTH, BUFFER_BYTES);
        let mut added = self.ask(abi::ADD, number, Some(&mut device), 0);
        // What an older driver says to a command that it does not know, where no device has the number.
        if let Err(Errno::NODEV | Errno::OPNOTSUPP) = added {
            self.dialect = Dialect::Plain;
            added = self.ask(abi::ADD, number, Some(&mut device), 0);
        }
        added.map_err(|errno| ServeError::new("add", errno))
    }

    /// Gives a command and waits for its result; `tried`: what it is for.
    fn command(
        &mut self,
        tried: &'static str,
        command: u32,
        device: u32,
        structure: Option<&mut [u8; 64]>,
        value: u64,
    ) -> Result<(), ServeError> {
        self.ask(command, device, structure, value)
            .map_err(|errno| ServeError::new(tried, errno))
    }

    fn ask(
        &mut self,
        command: u32,
        device: u32,
        structure: Option<&mut [u8; 64]>,
        value: u64,
    ) -> Result<(), Errno> {
        let command = self.dialect.word(command);
        let (address, length) = structure.map_or((0, 0), |bytes| {
            (
                bytes.as_mut_ptr().expose_provenance() as u64,
                bytes.len() as u16,
            )
        });
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), command)
            .cmd(abi::control(device, address, length, value))
            .build();
        // SAFETY: the command names `structure`, which is borrowed until the result has come.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::BUSY)?;
        while let Err(error) = self.ring.submit_and_wait(1) {
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
            }
        }
        let done = self.ring.completion().next();
        match done.map_or(0, |done| done.result()) {
            0.. => Ok(()),
            errno => Err(Errno::from_raw_os_error(-errno)),
        }
    }
}
