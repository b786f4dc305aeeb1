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
use std::io::ErrorKind;
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
/// The kernel has no `ublk` driver or refuses; there is no memory; the model cannot be made. The
/// device is gone then.
pub fn serve(
    number: u32,
    like: DeviceShape,
    room: &ContentRoom,
    how: Serving,
    drive: impl FnOnce() -> Result<Box<dyn Drive>, String> + Send + 'static,
) -> Result<ServedDevice, ServeError> {
    serve_through(UblkDriver::open()?, number, like, |dialect| {
        let log = how.logged.then(SharedLog::default);
        let parts = parts(like, room, how, dialect, log.clone())?;
        Ok((start_queue(number, parts, drive)?, log))
    })
}

/// Serves a device through a driver; `queue` begins to take its requests.
fn serve_through(
    driver: impl Commands,
    number: u32,
    like: DeviceShape,
    queue: impl FnOnce(Dialect) -> Result<(Arc<Counters>, Option<SharedLog>), ServeError>,
) -> Result<ServedDevice, ServeError> {
    let mut control = Control::added(driver, number)?;
    let described = Some(abi::parameters(&like, BUFFER_BYTES));
    let started = control
        .command("describe", abi::SET_PARAMETERS, described, 0)
        .and_then(|()| queue(control.dialect))
        .and_then(|queue| {
            let process = u64::from(std::process::id());
            control.command("start", abi::START, None, process)?;
            Ok(queue)
        });
    match started {
        Ok((counters, log)) => Ok(ServedDevice {
            path: PathBuf::from(format!("/dev/ublkb{number}")),
            counters,
            number,
            dialect: control.dialect,
            log,
        }),
        Err(error) => {
            // The error that came first is the one to tell.
            let _ = control.remove();
            Err(error)
        }
    }
}

/// The parts of a device's queue: its first content is put there.
fn parts(
    like: DeviceShape,
    room: &ContentRoom,
    how: Serving,
    dialect: Dialect,
    log: Option<SharedLog>,
) -> Result<QueueParts, ServeError> {
    let mut content = StoredContent::new(like.bytes, room)?;
    let medium = how.medium.unwrap_or_default();
    for (first, length, bytes) in &medium.pieces {
        if bytes.is_empty() {
            content.clear(*first, *length);
        } else if !content.write(*first, bytes) {
            return Err(ServeError::new("fill", "there is no memory left for it"));
        }
    }
    Ok(QueueParts {
        content,
        unreadable: Unreadable::new(medium.unreadable),
        lead: how.lead,
        dialect,
        log,
        room: room.clone(),
    })
}

/// Starts the thread that takes a device's requests, and waits until it takes them.
fn start_queue(
    number: u32,
    parts: QueueParts,
    drive: impl FnOnce() -> Result<Box<dyn Drive>, String> + Send + 'static,
) -> Result<Arc<Counters>, ServeError> {
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
    Ok(counters)
}

/// Ends the serving of a device that nothing uses any more; what it held is gone.
///
/// # Errors
/// The kernel refuses.
pub fn remove(device: &ServedDevice) -> Result<(), ServeError> {
    let (number, dialect) = (device.number, device.dialect);
    let driver = UblkDriver::open()?;
    Control {
        driver,
        number,
        dialect,
    }
    .remove()
}

/// A structure of the kernel's that goes with a command.
type Structure = [u8; 64];

/// Takes commands about devices.
trait Commands {
    /// Gives a command, by its number in the driver's dialect, and waits for its result.
    fn ask(
        &mut self,
        command: u32,
        device: u32,
        structure: Option<Structure>,
        value: u64,
    ) -> Result<(), Errno>;
}

/// A driver, and the device that it is told about.
struct Control<D> {
    driver: D,
    number: u32,
    dialect: Dialect,
}

impl<D: Commands> Control<D> {
    /// Adds a device, and finds out how the driver knows its commands.
    fn added(mut driver: D, number: u32) -> Result<Self, ServeError> {
        let device = abi::device(number, DEPTH, BUFFER_BYTES);
        let mut dialect = Dialect::Encoded;
        let mut add =
            |dialect: Dialect| driver.ask(dialect.word(abi::ADD), number, Some(device), 0);
        let mut added = add(dialect);
        // What an older driver says to a command that it does not know, where no device has the number.
        if let Err(Errno::NODEV | Errno::OPNOTSUPP) = added {
            dialect = Dialect::Plain;
            added = add(dialect);
        }
        added.map_err(|errno| ServeError::new("add", errno))?;
        Ok(Self {
            driver,
            number,
            dialect,
        })
    }

    /// Gives a command and waits for its result; `tried`: what it is for.
    fn command(
        &mut self,
        tried: &'static str,
        command: u32,
        structure: Option<Structure>,
        value: u64,
    ) -> Result<(), ServeError> {
        let command = self.dialect.word(command);
        self.driver
            .ask(command, self.number, structure, value)
            .map_err(|errno| ServeError::new(tried, errno))
    }

    /// Ends the queue, and removes the device. A device that was never started is stopped, too.
    fn remove(mut self) -> Result<(), ServeError> {
        let stopped = self.command("stop", abi::STOP, None, 0);
        stopped.and(self.command("remove", abi::DELETE, None, 0))
    }
}

/// The kernel's driver.
struct UblkDriver(File);

impl UblkDriver {
    fn open() -> Result<Self, ServeError> {
        let file = File::options().read(true).write(true).open(abi::CONTROL);
        let file =
            file.map_err(|error| ServeError::new("open the driver (module ublk_drv) of", error))?;
        Ok(Self(file))
    }
}

impl Commands for UblkDriver {
    fn ask(
        &mut self,
        command: u32,
        device: u32,
        structure: Option<Structure>,
        value: u64,
    ) -> Result<(), Errno> {
        let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        // One for each command: after an error no entry of an earlier one is left in it.
        let mut ring = CommandRing::builder().build(2).map_err(failed)?;
        let mut structure = structure.map(Box::new);
        let (address, length) = structure.as_deref_mut().map_or((0, 0), |bytes| {
            (
                bytes.as_mut_ptr().expose_provenance() as u64,
                bytes.len() as u16,
            )
        });
        let entry = opcode::UringCmd80::new(Fd(self.0.as_raw_fd()), command)
            .cmd(abi::control(device, address, length, value))
            .build();
        // SAFETY: the command names `structure`, which is freed only when the result has come. What
        // fails without one leaves it in memory for good.
        unsafe { ring.submission().push(&entry) }.map_err(|_| Errno::BUSY)?;
        let result = loop {
            if let Some(done) = ring.completion().next() {
                break done.result();
            }
            match ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // The kernel may still use it.
                    std::mem::forget(structure);
                    return Err(failed(error));
                }
            }
        };
        match result {
            0.. => Ok(()),
            errno => Err(Errno::from_raw_os_error(-errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that writes down what it is told, and fails at one command.
    struct Scripted<'a> {
        told: &'a mut Vec<u32>,
        fails_at: u32,
    }

    impl Commands for Scripted<'_> {
        fn ask(
            &mut self,
            command: u32,
            _device: u32,
            _structure: Option<Structure>,
            _value: u64,
        ) -> Result<(), Errno> {
            self.told.push(command);
            match command == self.fails_at {
                true => Err(Errno::PERM),
                false => Ok(()),
            }
        }
    }

    const LIKE: DeviceShape = DeviceShape {
        bytes: 1 << 20,
        logical_sector: 512,
        physical_sector: 4096,
        rotational: false,
        volatile_cache: true,
        discards: true,
    };

    /// The commands that a driver gets which fails at one of them, or whose queue fails.
    fn told(fails_at: u32, queue: bool) -> Vec<u32> {
        let mut told = Vec::new();
        let driver = Scripted {
            told: &mut told,
            fails_at,
        };
        let served = serve_through(driver, 7, LIKE, |_| match queue {
            true => Ok(Default::default()),
            false => Err(ServeError::new("model", "there is none")),
        });
        assert!(served.is_err() || fails_at == 0);
        told
    }

    #[test]
    fn a_device_that_cannot_be_served_is_removed_again() {
        use abi::{ADD, DELETE, SET_PARAMETERS, START, STOP};
        assert_eq!(told(0, true), [ADD, SET_PARAMETERS, START]);
        assert_eq!(told(ADD, true), [ADD]);
        let described = [ADD, SET_PARAMETERS, STOP, DELETE];
        assert_eq!(told(SET_PARAMETERS, true), described);
        assert_eq!(told(u32::MAX, false), described);
        let started = [ADD, SET_PARAMETERS, START, STOP, DELETE];
        assert_eq!(told(START, true), started);
    }
}
