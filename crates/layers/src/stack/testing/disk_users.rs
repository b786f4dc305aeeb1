//! Uses that people make of disks, for as long as a test lasts.

use super::guarded::Disk;
use stackrace_machine::host::{Host, argv};
use std::any::Any;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A loop device of a test.
pub(super) struct Loop {
    pub(super) path: PathBuf,
}

impl Loop {
    pub(super) fn on(disk: &Disk, file: &Path, offset: u64) -> Self {
        let (offset, file) = (offset.to_string(), file.to_string_lossy());
        let words = ["losetup", "--find", "--show", "--offset", &offset, &file];
        let made = disk.host.must(&argv(words.map(String::from))).unwrap();
        Self {
            path: PathBuf::from(made.stdout.trim()),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run(&["losetup", "--detach", &self.path.to_string_lossy()]);
    }
}

/// A mount of a test.
pub(super) struct Mount {
    point: PathBuf,
    _on: Option<Box<dyn Any>>,
}

impl Mount {
    fn of(disk: &Disk, device: &Path, on: Option<Box<dyn Any>>) -> Self {
        let point = disk.base.path().join("mnt");
        std::fs::create_dir(&point).unwrap();
        // The kernel writes to what it may write to at times of its own; that is not what is tested.
        disk.run(&format!(
            "mount -o ro {} {}",
            device.display(),
            point.display()
        ));
        Self { point, _on: on }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run(&["umount", &self.point.to_string_lossy()]);
    }
}

/// Runs a command by which a test takes back what it made, in whatever way it ends.
///
/// Other programs open block devices for a moment: udev, or a search for signatures beside the test.
/// A device that is busy is therefore tried again for a minute.
#[expect(clippy::disallowed_methods, reason = "a test takes back what it made")]
pub(super) fn run(words: &[&str]) {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let ended = std::process::Command::new(words[0])
            .args(&words[1..])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        if said.contains("busy") && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        }
        assert!(
            ended.status.success() || std::thread::panicking(),
            "{words:?}: {said}"
        );
        return;
    }
}

pub(super) fn mounted(disk: &Disk) -> Box<dyn Any> {
    disk.run("mkfs.ext4 -q DEVICE");
    Box::new(Mount::of(disk, &disk.device, None))
}

/// Btrfs gives its mounts a number of their own: only the path tells.
pub(super) fn mounted_btrfs(disk: &Disk) -> Box<dyn Any> {
    disk.run("mkfs.btrfs -q DEVICE");
    Box::new(Mount::of(disk, &disk.device, None))
}

/// Only the number tells.
pub(super) fn mounted_by_another_path(disk: &Disk) -> Box<dyn Any> {
    disk.run("mkfs.ext4 -q DEVICE");
    let path = another_path(disk);
    Box::new(Mount::of(disk, &path, None))
}

/// A process that is ended with the test.
pub(super) struct Process(Child);

impl Process {
    /// Runs a line of a shell until the test ends, and waits until it says that it is ready.
    #[expect(
        clippy::disallowed_methods,
        reason = "a user of the disk is another process"
    )]
    fn of(program: &str, words: &[&str]) -> Self {
        let mut child = std::process::Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        is_ready(&mut child);
        Self(child)
    }

    /// A process that opens a device once it is told to go on.
    pub(super) fn waiting(device: &Path) -> Self {
        let line = format!(
            "echo ready; read go; exec 3<{}; echo ready; read end",
            device.display()
        );
        Self::of("sh", &["-c", &line])
    }

    /// Tells it to, and waits until it has.
    pub(super) fn goes_on(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        is_ready(&mut self.0);
    }
}

/// Waits until a process says so.
fn is_ready(process: &mut Child) {
    let mut ready = [0; 6];
    let said = process.stdout.as_mut().unwrap();
    said.read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

pub(super) fn mounted_elsewhere(disk: &Disk) -> Box<dyn Any> {
    disk.run("mkfs.ext4 -q DEVICE");
    let point = disk.base.path().join("mnt");
    std::fs::create_dir(&point).unwrap();
    let line = format!(
        "mount -o ro {} {} && echo ready && read end",
        disk.device.display(),
        point.display()
    );
    let words = ["--mount", "--propagation", "private", "sh", "-c", &line];
    Box::new(Process::of("unshare", &words))
}

/// Tells the kernel of a partition.
fn partition(disk: &Disk) -> (PathBuf, Partition) {
    disk.run("addpart DEVICE 1 2048 200000");
    let part = PathBuf::from(format!("{}p1", disk.device.display()));
    (part, Partition(disk.device.clone()))
}

pub(super) fn opened_partition(disk: &Disk) -> Box<dyn Any> {
    let (part, partition) = partition(disk);
    // In the order in which they end.
    Box::new((opened(&part, "<"), partition))
}

pub(super) fn mounted_partition(disk: &Disk) -> Box<dyn Any> {
    let (part, partition) = partition(disk);
    disk.run(&format!("mkfs.ext4 -q {}", part.display()));
    Box::new(Mount::of(disk, &part, Some(Box::new(partition))))
}

/// A partition that the kernel was told of.
pub(super) struct Partition(PathBuf);

impl Drop for Partition {
    fn drop(&mut self) {
        run(&["delpart", &self.0.to_string_lossy(), "1"]);
    }
}

pub(super) fn looped(disk: &Disk, offset: u64) -> Box<dyn Any> {
    Box::new(Loop::on(disk, &disk.device, offset))
}

pub(super) fn looped_and_mounted(disk: &Disk) -> Box<dyn Any> {
    let device = Loop::on(disk, &disk.device, 1 << 20);
    disk.run(&format!("mkfs.ext4 -q {}", device.path.display()));
    let path = device.path.clone();
    Box::new(Mount::of(disk, &path, Some(Box::new(device))))
}

pub(super) fn opened(device: &Path, how: &str) -> Process {
    let line = format!("exec 3{how}{}; echo ready; read end", device.display());
    Process::of("sh", &["-c", &line])
}

/// A second node of the device.
pub(super) fn another_path(disk: &Disk) -> PathBuf {
    let number = disk.host.fix_device(&disk.device).unwrap().number.unwrap();
    let path = disk.base.path().join("disk");
    disk.run(&format!(
        "mknod {} b {} {}",
        path.display(),
        number.major,
        number.minor
    ));
    path
}

pub(super) fn opened_by_another_path(disk: &Disk) -> Box<dyn Any> {
    Box::new(opened(&another_path(disk), "<>"))
}

pub(super) fn only_read(disk: &Disk) -> Box<dyn Any> {
    disk.run("blockdev --setro DEVICE");
    Box::new(OnlyRead(disk.device.to_string_lossy().into_owned()))
}

/// The kernel keeps this for whatever lies on the loop device next.
struct OnlyRead(String);

impl Drop for OnlyRead {
    fn drop(&mut self) {
        run(&["blockdev", "--setrw", &self.0]);
    }
}

pub(super) fn held(disk: &Disk) -> Box<dyn Any> {
    let mut options = std::fs::OpenOptions::new();
    let excl = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap();
    options.read(true).custom_flags(excl);
    Box::new(options.open(&disk.device).unwrap())
}

pub(super) fn swapping(disk: &Disk) -> Box<dyn Any> {
    disk.run("mkswap --quiet DEVICE");
    let device = disk.device.to_string_lossy().into_owned();
    match disk.host.must(&argv(["swapon", &device])) {
        Ok(_) => Box::new(Swap(device)),
        Err(error) => Box::new(format!("this kernel does not swap to it: {error}")),
    }
}

/// Swap space in use.
pub(super) struct Swap(String);

impl Drop for Swap {
    fn drop(&mut self) {
        run(&["swapoff", &self.0]);
    }
}

pub(super) fn mapped(disk: &Disk) -> Box<dyn Any> {
    if !Path::new("/sys/class/misc/device-mapper").exists() {
        return Box::new("the kernel lacks mapped devices (dm)".to_string());
    }
    let name = format!("of-test-{}", disk.host.nonce().unwrap());
    let table = format!("0 2048 linear {} 0", disk.device.display());
    let words = ["dmsetup", "create", &name, "--table", &table].map(String::from);
    disk.host.must(&argv(words)).unwrap();
    Box::new(Mapped(name))
}

/// A mapped device.
pub(super) struct Mapped(String);

impl Drop for Mapped {
    fn drop(&mut self) {
        run(&["dmsetup", "remove", &self.0]);
    }
}
