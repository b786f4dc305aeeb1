//! Guests in virtual time: their clock counts instructions, and nothing reaches them while it runs.
//!
//! QEMU is told to take one instruction for one nanosecond (`-icount`), and to jump to the next timer
//! where the guest idles. Then the same orders give the same words, byte for byte, on every machine,
//! however busy it is. A device that answers "after a while" would break that: so the root file system
//! comes with the kernel, orders by a device that answers at once, drives are served by the guest
//! itself, and what it says leaves through a polled port ([`crate::agent::polled`]).

use super::command::{self, PROGRAM};
use super::console::{PortInMessage, last_words, printed_too_much, why_stopped};
use super::error::LabError;
use super::machine::DIR;
use super::one_processor::keeping_to_one;
use super::postgresql;
use super::site::{MachineSite, check_libc, write_first};
use crate::agent::frame::WireFrame;
use crate::agent::polled::{GuestOrders, ORDERS_NAME, PIPE_BYTES, PolledReader};
use crate::agent::window::WINDOW_BYTES;
use rustix::fs::{Mode, OFlags};
use stackrace_base::unit;
use stackrace_machine::host::drives::CONTENT_BYTES;
use stackrace_machine::host::process::{Process, Streams};
use stackrace_machine::host::{HostError, argv};
use stackrace_machine::journal::Undo;
use stackrace_system::port::DEBUG_CONSOLE;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

/// Description of the guest's processor, for every page that shows a figure.
pub const PROCESSOR: &str = "1 GIPS: one instruction takes 1 ns";

/// Time when every guest's clock begins.
const EPOCH: &str = "2026-01-01";

/// Two processor features by which the kernel would copy byte by byte: an instruction for each, where a real
/// processor moves a cache line. And RDSEED: RDRAND stays and is enough for the kernel, which without it would
/// gather randomness from its clock for most of a second. QEMU draws these numbers from the seed it is given.
const WITHOUT: &str = "-rdseed,-erms,-fsrm";

/// One more under a hypervisor: its guest's kernel is a program to the processor, and QEMU (7.2) lets
/// it return from an interrupt with the rights of the hypervisor, which this feature forbids.
const WITHOUT_BESIDE_HYPERVISOR: &str = ",-smap";

/// Options of a hypervisor: the scheduler that was its default in 2008, and where to write.
const HYPERVISOR_TOLD: &str = "console=com1 com1=115200,8n1 sched=credit";

/// Name of the kernel's file in the directory of guests.
const KERNEL: &str = "vmlinux";

/// The file that keeps what is written to a guest's drives and does not fit into its memory.
const CONTENT: &str = "content";
/// Time in which QEMU is gone after it closed a port.
const ENDING: Duration = Duration::from_secs(2);

/// The file systems that come with the kernel are kept twice while it starts.
const COPIES: u64 = 2;

/// The guests that run at the same time.
#[derive(Debug, Clone, Copy)]
pub struct SideBySide {
    /// The guest's place among them, from 0; no two have the same.
    pub place: usize,
    /// Greatest number of guests.
    pub guests: usize,
}

impl SideBySide {
    /// A guest that runs alone.
    pub const ALONE: Self = Self {
        place: 0,
        guests: 1,
    };
}

/// Things that guests in virtual time are made of, in a directory of its own.
pub struct VirtualLab<'a> {
    site: &'a MachineSite<'a>,
    dir: PathBuf,
    first_bytes: u64,
    /// Memory of each guest, beside what its image takes, bytes.
    memory_bytes: u64,
}

impl<'a> VirtualLab<'a> {
    /// Makes the directory, and in it what every guest starts from.
    ///
    /// # Errors
    /// The program does not run there, or the directory cannot be made.
    pub fn begin(site: &'a MachineSite<'a>, memory_bytes: u64) -> Result<Self, LabError> {
        check_libc(site)?;
        let dir = site.dir.join(DIR);
        site.journal.will("lab", Undo::RemoveTree(dir.clone()))?;
        site.host.create_dir(&dir)?;
        let first = dir.join("first");
        let failed = |error| HostError::path("write", &first, error);
        write_first(site, &first, true).map_err(failed)?;
        let first_bytes = first.metadata().map_err(failed)?.len();
        // A hypervisor is told of the kernel in a list of files, where blanks and commas mean something.
        let kernel = dir.join(KERNEL);
        std::os::unix::fs::symlink(site.image.file("vmlinux"), &kernel)
            .map_err(|error| HostError::path("make", &kernel, error))?;
        // One entry for all guests, because all of them name this directory in their command line.
        site.journal.will("lab", Undo::EndMachine(dir.clone()))?;
        Ok(Self {
            site,
            dir,
            first_bytes,
            memory_bytes,
        })
    }

    /// Memory of each guest, bytes.
    pub fn guest_bytes(&self) -> u64 {
        (self.memory_bytes + COPIES * self.first_bytes).next_multiple_of(1 << 20)
    }

    /// Starts a guest of a number that no other one has. Where `window` is given, guest and this
    /// program share memory, which holds that at first.
    ///
    /// # Errors
    /// QEMU is missing, or refuses.
    pub fn start(
        &self,
        number: usize,
        seed: u64,
        orders: &GuestOrders,
        window: Option<&[u8]>,
        beside: SideBySide,
    ) -> Result<VirtualGuest, LabError> {
        if let Some(content) = window {
            self.put(number, content)?;
        }
        let text =
            serde_json::to_vec(orders).map_err(|error| LabError::Refused(error.to_string()))?;
        let path = self.dir.join(command::file(number, "orders"));
        std::fs::write(&path, text).map_err(|error| HostError::path("write", &path, error))?;
        let port = self.dir.join(command::file(number, "port"));
        let pipe = || -> std::io::Result<File> {
            stackrace_system::make_pipe(&port)?;
            // A pipe is opened for reading alone only without waiting for the other end.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let pipe = rustix::fs::open(&port, flags, Mode::empty())?;
            stackrace_system::widen_pipe(&pipe, PIPE_BYTES)?;
            Ok(File::from(pipe))
        };
        let pipe = pipe().map_err(|error| HostError::path("make the port", &port, error))?;
        let said = command::file(number, "qemu");
        let mut words = self.command(number, seed);
        words.extend(shared_words(CONTENT, number, CONTENT_BYTES));
        if window.is_some() {
            words.extend(shared_words("window", number, WINDOW_BYTES));
        }
        let words = argv(words);
        let start = || Process::start(&words, &self.dir, Streams::File(&said));
        let process = keeping_to_one(beside.place, beside.guests, start)?;
        Ok(VirtualGuest {
            process,
            pipe: PolledReader::new(PortInMessage(
                pipe.try_clone()
                    .map_err(|error| HostError::path("open the port", &port, error))?,
            )),
            ready: pipe,
            dir: self.dir.clone(),
            number,
            place: beside.place,
        })
    }

    /// Makes the memory that a guest shares, with this in it.
    fn put(&self, number: usize, content: &[u8]) -> Result<(), LabError> {
        let path = self.dir.join(command::file(number, "window"));
        let failed = |error| HostError::path("write", &path, error);
        let mut bytes = (content.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(content);
        if bytes.len() as u64 > WINDOW_BYTES {
            return Err(LabError::Refused(format!(
                "{} of writes do not fit into the memory shared with a guest, {}: let the workload write less",
                unit::bytes(bytes.len() as u64),
                unit::bytes(WINDOW_BYTES)
            )));
        }
        std::fs::write(&path, bytes).map_err(failed)?;
        let file = File::options().write(true).open(&path).map_err(failed)?;
        // The rest is a hole: what nothing was put into takes no disk.
        file.set_len(WINDOW_BYTES).map_err(failed)?;
        Ok(())
    }

    fn command(&self, number: usize, seed: u64) -> Vec<String> {
        let file = |what| command::file(number, what);
        let mut words: Vec<String> = vec![PROGRAM.to_owned()];
        let mut add = |text: String| words.extend(text.split(' ').map(str::to_owned));
        add("-nodefaults -no-user-config -no-reboot -display none".to_owned());
        add("-machine q35,sata=off,smbus=off,usb=off -accel tcg".to_owned());
        // Recording makes QEMU's main loop wait while the guest executes. Without it, on a busy host, that
        // loop may see the processor idle before its instructions are counted, and a timer comes early
        // (about one guest in 30). What is recorded is not needed.
        add("-icount shift=0,sleep=off,align=off,rr=record,rrfile=/dev/null".to_owned());
        add(format!(
            "-rtc base={EPOCH},clock=vm -seed {}",
            seed & 0xffff_ffff
        ));
        let without = match self.site.image.hypervisor() {
            Some(_) => WITHOUT_BESIDE_HYPERVISOR,
            None => "",
        };
        add(format!(
            "-cpu max,{WITHOUT}{without} -smp 1 -m {}k",
            self.guest_bytes() / 1024
        ));
        add(format!(
            "-chardev file,id=console,path={} -serial chardev:console",
            file("console")
        ));
        add(format!("-chardev file,id=port,path={}", file("port")));
        add(format!(
            "-device isa-debugcon,iobase={DEBUG_CONSOLE:#x},chardev=port"
        ));
        add(format!(
            "-fw_cfg name={ORDERS_NAME},file={}",
            file("orders")
        ));
        words.extend(self.what_starts());
        // Names the directory in full: that is how the guest is found when this program has died.
        words.push("-pidfile".to_owned());
        words.push(self.dir.join(file("pid")).display().to_string());
        words
    }
}

impl VirtualLab<'_> {
    /// The words for what starts first: the kernel, or a hypervisor with the kernel as its first guest.
    fn what_starts(&self) -> Vec<String> {
        let hypervisor = self.site.image.hypervisor();
        // The first guest's output goes through the hypervisor.
        let console = match hypervisor {
            Some(_) => "hvc0",
            None => "ttyS0",
        };
        // The processor's own timer would first be measured for 0.1 s of reading the clock again and again,
        // for which the host takes a third of all the time a guest needs to start: the HPET is exact. An
        // emulated processor does not speculate: what kernels do against that would be instructions for nothing.
        // The kernel would test each of its ciphers: a fifth of what a guest does until it is up.
        let mut told = format!(
            "console={console} quiet panic=-1 rdinit=/init lab.virtual lab.node=1 lab.nodes=1 nokaslr \
             norandmaps clocksource=tsc tsc=reliable nolapic_timer mitigations=off random.trust_bootloader=off \
             random.trust_cpu=on cryptomgr.notests"
        );
        if self.site.zfs.is_some() {
            told.push_str(" lab.zfs");
        }
        if self.site.postgresql.is_some() {
            told.push_str(postgresql::TOLD);
        }
        let (kernel, first, told) = match hypervisor {
            Some(hypervisor) => (
                hypervisor.display().to_string(),
                format!("{KERNEL} {told},first"),
                HYPERVISOR_TOLD.to_owned(),
            ),
            None => (KERNEL.to_owned(), "first".to_owned(), told),
        };
        let words = ["-kernel", &kernel, "-initrd", &first, "-append", &told];
        words.map(str::to_owned).to_vec()
    }
}

/// Options that give a guest the memory in a file, which QEMU makes if it is not there: full of holes, so it takes as
/// much of the disk as was written to it.
fn shared_words(what: &str, number: usize, bytes: u64) -> Vec<String> {
    let file = command::file(number, what);
    let backend = format!("memory-backend-file,id={what},share=on,mem-path={file},size={bytes}");
    let device = format!("ivshmem-plain,memdev={what}");
    ["-object", &backend, "-device", &device]
        .map(str::to_owned)
        .to_vec()
}

/// A guest under way. It ends when dropped.
pub struct VirtualGuest {
    process: Process,
    pipe: PolledReader<PortInMessage>,
    /// The same pipe, to wait for.
    ready: File,
    dir: PathBuf,
    number: usize,
    place: usize,
}

impl AsFd for VirtualGuest {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl VirtualGuest {
    /// Its place among those that run at the same time.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Returns the error if it ended without having opened its port: QEMU refused. Or if it prints without end.
    pub fn refused(&mut self) -> Option<LabError> {
        if self.process.ended().is_none() {
            return printed_too_much(&self.dir, self.number);
        }
        Some(LabError::NotUp(last_words(&self.dir, self.number)))
    }

    /// Data the guest put into the memory that it shares.
    ///
    /// # Errors
    /// It has none, or it cannot be read.
    pub fn window(&self) -> Result<Vec<u8>, LabError> {
        let path = self.dir.join(command::file(self.number, "window"));
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            let mut head = [0; 8];
            file.read_exact(&mut head)?;
            let mut content = Vec::new();
            // A guest cannot make this program read more than there is.
            file.take(u64::from_le_bytes(head).min(WINDOW_BYTES))
                .read_to_end(&mut content)?;
            Ok(content)
        };
        read().map_err(|error| HostError::path("read", &path, error).into())
    }

    /// The guest's next message, and its clock then, ns; `None` if it was only let go on. To be called when its port
    /// can be read: then this waits for the rest of a frame at most, and not for what the guest does before the next
    /// one, while which other guests would stand still.
    ///
    /// # Errors
    /// The guest has ended; its last words.
    pub fn read(&mut self) -> Result<Option<(u64, WireFrame)>, LabError> {
        let failed = |error| HostError::path("listen to the guest in", &self.dir, error);
        // There is something to read, so the guest's end is open: waiting for the rest of it ends at
        // the latest with the guest.
        rustix::fs::fcntl_setfl(&self.ready, OFlags::RDONLY)
            .map_err(|errno| failed(errno.into()))?;
        if self.pipe.go_on().map_err(failed)? {
            return Ok(None);
        }
        match self.pipe.read().map_err(failed)? {
            Some(said) => Ok(Some(said)),
            None => {
                let ended = self.process.ended_within(ENDING);
                Err(why_stopped(ended, &self.dir, self.number))
            }
        }
    }
}

impl Drop for VirtualGuest {
    fn drop(&mut self) {
        // There is nothing in a guest to be shut down in order.
        self.process.kill();
        for what in ["orders", "port", "pid", "window", CONTENT] {
            // What cannot be removed now goes with the directory.
            let _ = std::fs::remove_file(self.dir.join(command::file(self.number, what)));
        }
    }
}
