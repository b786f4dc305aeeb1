//! A guest that runs a system which the user brought: reached with ssh, by a port of this machine.
//!
//! Its disk is a file over the image, which goes with it. It is on a network of its own, where nothing but that port
//! leads in and nothing leads out. What it has is not known: so the machine is the plain PC of old, which every system
//! for virtual machines knows, and its BIOS and console are on the serial port, whose last words an error shows.

use super::added::{AddedError, AddedSystem};
use super::command::{self, Accelerator, QEMU_IMG};
use super::console::{last_words, printed_too_much};
use super::error::LabError;
use super::facts;
use super::machine::DIR;
use crate::agent::shell::ShellHost;
use crate::agent::ssh::{Destination, SshError, StopAsked, Way};
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use stackrace_base::event::Fact;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::process::{Process, Streams};
use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{Journal, Undo};
use std::ffi::OsString;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of the only guest of such a machine, in the names of its files.
const NODE: usize = 1;

/// Time a guest may take until it is reached.
const UP: Duration = Duration::from_secs(180);

/// The same where its processor is emulated.
const UP_EMULATED: Duration = Duration::from_secs(900);

/// Time that its ssh server may take after the guest has answered that nothing listens.
const SSH_UP: Duration = Duration::from_secs(120);

/// Interval between two tries to reach it.
const LOOK: Duration = Duration::from_millis(500);

/// Time an ssh server may take for its first word.
const FIRST_WORD: Duration = Duration::from_secs(3);

/// Place of a guest, and the means.
pub struct GuestGround<'a> {
    /// This machine.
    pub host: &'a dyn Host,
    /// Journal that is told first of what is created.
    pub journal: &'a Journal,
    /// An existing directory for the guest's own.
    pub dir: PathBuf,
}

/// What a guest is to be like.
#[derive(Debug, Clone, Copy)]
pub struct GuestWanted {
    /// Memory that its system finds, bytes.
    pub memory_bytes: u64,
    /// Means of running its instructions.
    pub accelerator: Accelerator,
}

/// A guest that runs. It ends when dropped; the journal removes its files.
pub struct AddedGuest {
    system: AddedSystem,
    dir: PathBuf,
    port: u16,
    process: Mutex<Process>,
    wanted: GuestWanted,
    began_ns: u64,
}

/// What listens at the port by which a guest is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listens {
    /// Something that speaks.
    Speaks,
    /// Nothing: the guest says so.
    Nothing,
    /// It is not known: nothing came.
    Unknown,
}

impl AddedGuest {
    /// Starts a guest.
    ///
    /// # Errors
    /// QEMU is missing, or its files cannot be made.
    pub fn start(
        ground: &GuestGround<'_>,
        system: &AddedSystem,
        wanted: GuestWanted,
    ) -> Result<Self, LabError> {
        let dir = ground.dir.join(DIR);
        ground.journal.will("lab", Undo::RemoveTree(dir.clone()))?;
        ground.host.create_dir(&dir)?;
        let over = dir.join(command::file(NODE, "own"));
        ground.host.must(&over_image(system, &over))?;
        // It names this directory in its command line.
        ground.journal.will("lab", Undo::EndMachine(dir.clone()))?;
        let port = free_port().map_err(|error| HostError::path("find a port for", &dir, error))?;
        let words = command(&dir, port, wanted, is_direct(&over));
        let said = command::file(NODE, "qemu");
        let process = Process::start(&argv(words), &dir, Streams::File(&said))?;
        Ok(Self {
            system: system.clone(),
            dir,
            port,
            process: Mutex::new(process),
            wanted,
            began_ns: SystemClock.now_ns(),
        })
    }

    /// Waits until its shell answers.
    ///
    /// # Errors
    /// It does not come up or lets no user in, its shell is of no use, or the user stops it.
    pub fn reach(&self, stop: &StopAsked) -> Result<ShellHost, LabError> {
        let patience = match self.wanted.accelerator {
            Accelerator::Kvm => UP,
            Accelerator::Tcg => UP_EMULATED,
        };
        let after = |from_ns: u64, time: Duration| from_ns.saturating_add(time.as_nanos() as u64);
        let mut until = after(self.began_ns, patience);
        let way = self.way(stop);
        // Once it has said that nothing listens, its network is known to be up.
        let mut answered = false;
        loop {
            let now_ns = SystemClock.now_ns();
            let last = now_ns >= until;
            self.goes_on(stop)?;
            match listens(self.port) {
                Listens::Speaks => match ShellHost::connect(&way) {
                    Ok(host) => return Ok(host),
                    Err(error) => self.refused(error, last)?,
                },
                Listens::Nothing if !answered => {
                    answered = true;
                    until = until.min(after(now_ns, SSH_UP));
                }
                Listens::Nothing | Listens::Unknown => {}
            }
            if last {
                let seconds = Duration::from_nanos(self.boot_ns(now_ns)).as_secs();
                return Err(self.not_reached(answered, seconds).into());
            }
            SystemClock.sleep(LOOK);
        }
    }

    /// Refuses to wait for a guest that has ended, prints without end, or is not wanted any more.
    fn goes_on(&self, stop: &StopAsked) -> Result<(), LabError> {
        if stop.asked() {
            return Err(LabError::Interrupted);
        }
        if let Some(error) = printed_too_much(&self.dir, NODE) {
            return Err(error);
        }
        match self.process.lock().ended() {
            None => Ok(()),
            Some(_) => Err(AddedError::Ended {
                name: self.system.about.name.clone(),
                words: last_words(&self.dir, NODE),
            }
            .into()),
        }
    }

    /// Says why a login came to nothing, unless it may come to something later.
    fn refused(&self, error: SshError, last: bool) -> Result<(), LabError> {
        match error {
            SshError::Unreached { said, .. } if said.contains("Permission denied") => {
                Err(AddedError::Denied {
                    name: self.system.about.name.clone(),
                    login: self.system.about.login.clone(),
                    said,
                }
                .into())
            }
            // A system that still comes up may turn a login away.
            SshError::Unreached { .. } | SshError::Ended { .. } if !last => Ok(()),
            SshError::Stopped { .. } => Err(LabError::Interrupted),
            error => Err(AddedError::from(error).into()),
        }
    }

    fn not_reached(&self, answered: bool, seconds: u64) -> AddedError {
        let name = self.system.about.name.clone();
        let words = last_words(&self.dir, NODE);
        match answered {
            true => AddedError::NoSsh {
                name,
                seconds,
                words,
            },
            false => AddedError::NoAnswer {
                name,
                seconds,
                words,
            },
        }
    }

    /// The way to it. Its host key is new with each start of many images, and its port is QEMU's: who is reached is
    /// sure without it.
    fn way(&self, stop: &StopAsked) -> Way {
        let about = &self.system.about;
        let known = self.dir.join("known").shown().to_string();
        let mut ssh = about.ssh.clone();
        for option in [
            "StrictHostKeyChecking=accept-new".to_owned(),
            format!("UserKnownHostsFile=\"{known}\""),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "ProxyCommand=none".to_owned(),
            "ProxyJump=none".to_owned(),
        ] {
            ssh.extend(["-o".to_owned(), option]);
        }
        Way {
            to: Destination::of_guest(&about.name, &about.login, self.port),
            ssh,
            sudo: false,
            silence_s: None,
            launcher: None,
            named_by: Vec::new(),
            stop: stop.clone(),
        }
    }

    /// Directory of the list of what stands in it, which goes with its own.
    pub fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    /// Facts on it, for the record; `up_ns`: when it was reached, ns of the monotonic clock.
    ///
    /// # Errors
    /// QEMU does not say its version.
    pub fn facts(&self, host: &dyn Host, up_ns: u64) -> Result<Vec<Fact>, LabError> {
        let boot_ns = self.boot_ns(up_ns);
        let image = self.system.image_name();
        let mut all = facts::of_guests(host, &image, self.wanted.accelerator, boot_ns)?;
        all.push(Fact::new("lab command", self.process.lock().command()));
        Ok(all)
    }

    /// Time from its start to then, ns.
    pub fn boot_ns(&self, up_ns: u64) -> u64 {
        up_ns.saturating_sub(self.began_ns)
    }
}

impl Drop for AddedGuest {
    fn drop(&mut self) {
        // It is disposable: there is nothing in it to be shut down in order.
        self.process.lock().kill();
    }
}

/// The command that makes a file over an image, for what a guest writes.
fn over_image(system: &AddedSystem, over: &Path) -> Vec<OsString> {
    let format = &system.about.format;
    let mut words = argv([QEMU_IMG, "create", "-q", "-f", "qcow2", "-F", format, "-b"]);
    words.extend([system.disk().into(), "--".into(), over.into()]);
    words
}

/// Returns true if a file can be written past this machine's page cache.
fn is_direct(path: &Path) -> bool {
    let opened = stackrace_system::direct().and_then(|direct| {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | direct;
        rustix::fs::open(path, flags, Mode::empty())
    });
    opened.is_ok()
}

/// A port of this machine that nothing listens at.
fn free_port() -> std::io::Result<u16> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(free.local_addr()?.port())
}

/// Finds out what listens at a port by which a guest is reached: QEMU itself takes every connection, and ends it when the
/// guest refuses it.
fn listens(port: u16) -> Listens {
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&to, FIRST_WORD) else {
        return Listens::Unknown;
    };
    if stream.set_read_timeout(Some(FIRST_WORD)).is_err() {
        return Listens::Unknown;
    }
    let mut word = [0; 1];
    match stream.read(&mut word) {
        Ok(1..) => Listens::Speaks,
        Ok(0) => Listens::Nothing,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Listens::Nothing,
        Err(_) => Listens::Unknown,
    }
}

/// The command of QEMU. File names are relative to the directory that it starts in.
fn command(dir: &Path, port: u16, wanted: GuestWanted, direct: bool) -> Vec<String> {
    let (own, console) = (command::file(NODE, "own"), command::file(NODE, "console"));
    let cpu = wanted.accelerator.words();
    let memory = wanted.memory_bytes / 1024;
    // What the guest has flushed is on the medium, and what it reads again comes from there, as on a real machine.
    let cache = match direct {
        true => "none",
        false => "writeback",
    };
    let text = format!(
        "{} -nodefaults -no-user-config -no-reboot -display none -machine pc,graphics=off \
         -name stackrace-lab-{NODE} -accel {cpu} -smp 1 -m size={memory}k \
         -boot strict=on,reboot-timeout=1000 \
         -chardev file,id=console,path={console} -serial chardev:console \
         -drive if=none,id=own,file={own},format=qcow2,cache={cache},discard=unmap,werror=report,rerror=report \
         -device virtio-blk-pci,drive=own,bootindex=0 \
         -netdev user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22 \
         -device virtio-net-pci,netdev=net,romfile= \
         -device virtio-rng-pci",
        command::PROGRAM
    );
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    // Names the directory in full: that is how it is found when this program has died.
    words.push("-pidfile".to_owned());
    words.push(dir.join(command::file(NODE, "pid")).display().to_string());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn served(serve: impl FnOnce(TcpStream) + Send + 'static) -> Listens {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        let found = listens(port);
        serving.join().unwrap();
        found
    }

    #[test]
    fn a_guest_without_ssh_is_told_from_one_that_is_not_there() {
        let speaks = served(|mut stream| stream.write_all(b"SSH-2.0-x\r\n").unwrap());
        assert_eq!(speaks, Listens::Speaks);
        assert_eq!(served(drop), Listens::Nothing);
        // Nothing listens: QEMU is not there.
        assert_eq!(listens(free_port().unwrap()), Listens::Unknown);
    }

    #[test]
    fn a_guest_writes_to_a_file_of_its_own_and_reaches_nothing() {
        let wanted = GuestWanted {
            memory_bytes: 1 << 30,
            accelerator: Accelerator::Tcg,
        };
        let words = command(Path::new("/store/machine"), 40022, wanted, true);
        for pair in [
            ["-accel", "tcg,thread=multi"],
            ["-m", "size=1048576k"],
            [
                "-drive",
                "if=none,id=own,file=node-1.own,format=qcow2,cache=none,discard=unmap,werror=report,rerror=report",
            ],
            [
                "-netdev",
                "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:40022-:22",
            ],
            ["-pidfile", "/store/machine/node-1.pid"],
        ] {
            assert!(
                words.windows(2).any(|two| two == pair),
                "{pair:?}: {words:?}"
            );
        }
        // Where the page cache cannot be left out, a flush still reaches the medium.
        let words = command(Path::new("/store/machine"), 40022, wanted, false).join(" ");
        assert!(words.contains("cache=writeback"), "{words}");
    }
}
