//! A disk that fails while it is in use: its file lies in a file system in user space that is a part
//! of the test, and refuses every write after so many bytes.

use super::*;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

/// How long the kernel believes what it was told.
const TRUSTED: Duration = Duration::from_secs(1);

/// The files of a directory behind it.
struct Failing {
    behind: PathBuf,
    /// Paths by number.
    nodes: Mutex<HashMap<u64, PathBuf>>,
    /// Bytes that may still be written.
    left: Arc<AtomicU64>,
    /// Writes wait until it is unset; so does everything behind them.
    hangs: Arc<AtomicBool>,
    /// Set by a write that waits.
    reached: Arc<AtomicBool>,
}

impl Failing {
    fn path(&self, inode: INodeNo) -> Result<PathBuf, Errno> {
        match inode.0 {
            1 => Ok(self.behind.clone()),
            number => self
                .nodes
                .lock()
                .unwrap()
                .get(&number)
                .cloned()
                .ok_or(Errno::ENOENT),
        }
    }

    fn described(&self, path: &Path) -> Result<FileAttr, Errno> {
        let about = path.symlink_metadata()?;
        let number = if path == self.behind { 1 } else { about.ino() };
        self.nodes
            .lock()
            .unwrap()
            .insert(number, path.to_path_buf());
        Ok(FileAttr {
            ino: INodeNo(number),
            size: about.len(),
            blocks: about.blocks(),
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind: match about.is_dir() {
                true => FileType::Directory,
                false => FileType::RegularFile,
            },
            perm: (about.mode() & 0o7777) as u16,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn entry(&self, made: Result<PathBuf, Errno>, reply: ReplyEntry) {
        match made.and_then(|path| self.described(&path)) {
            Ok(about) => reply.entry(&TRUSTED, &about, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn opened(&self, inode: INodeNo) -> Result<fs::File, Errno> {
        let path = self.path(inode)?;
        Ok(fs::OpenOptions::new().read(true).write(true).open(path)?)
    }
}

fn ended(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Failing {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(self.path(parent).map(|path| path.join(name)), reply);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.path(inode).and_then(|path| self.described(&path)) {
            Ok(about) => reply.attr(&TRUSTED, &about),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let done = match size {
            Some(size) => self.opened(inode).and_then(|file| Ok(file.set_len(size)?)),
            None => Ok(()),
        };
        let path = done.and_then(|()| self.path(inode));
        match path.and_then(|path| self.described(&path)) {
            Ok(about) => reply.attr(&TRUSTED, &about),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = self.path(parent).and_then(|path| {
            let path = path.join(name);
            fs::DirBuilder::new().mode(mode).create(&path)?;
            Ok(path)
        });
        self.entry(made, reply);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self.path(parent).and_then(|path| {
            let path = path.join(name);
            let mut options = fs::OpenOptions::new();
            options
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&path)?;
            self.described(&path)
        });
        match made {
            Ok(about) => {
                let flags = FopenFlags::empty();
                reply.created(&TRUSTED, &about, Generation(0), FileHandle(0), flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.path(parent);
        ended(
            path.and_then(|path| Ok(fs::remove_file(path.join(name))?)),
            reply,
        );
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.path(parent);
        ended(
            path.and_then(|path| Ok(fs::remove_dir(path.join(name))?)),
            reply,
        );
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; size as usize];
        let read = self.opened(inode);
        match read.and_then(|file| Ok(file.read_at(&mut bytes, offset)?)) {
            Ok(count) => reply.data(&bytes[..count]),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        while self.hangs.load(Ordering::Relaxed) {
            self.reached.store(true, Ordering::Relaxed);
            wait(10);
        }
        let taken = |left: u64| left.checked_sub(data.len() as u64);
        let fails = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        if fails.is_err() {
            self.left.store(0, Ordering::Relaxed);
            return reply.error(Errno::EIO);
        }
        let written = self.opened(inode);
        match written.and_then(|file| Ok(file.write_all_at(data, offset)?)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.path(inode).and_then(|path| Ok(fs::read_dir(path)?));
        let listed = match listed {
            Ok(listed) => listed,
            Err(errno) => return reply.error(errno),
        };
        for (entry, next) in listed.flatten().zip(1..).skip(offset as usize) {
            let kind = match entry.path().is_dir() {
                true => FileType::Directory,
                false => FileType::RegularFile,
            };
            let number = entry.metadata().map_or(0, |about| about.ino());
            if reply.add(INodeNo(number), next, kind, entry.file_name()) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = 1 << 20;
        reply.statfs(blocks, blocks, blocks, 1000, 1000, 4096, 255, 4096);
    }
}

/// A mounted directory of which the files take so many bytes more, and then fail.
struct FailingDisk {
    left: Arc<AtomicU64>,
    hangs: Arc<AtomicBool>,
    reached: Arc<AtomicBool>,
    _mounted: BackgroundSession,
}

impl FailingDisk {
    fn mount(ground: &Ground) -> Self {
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let (hangs, reached) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let files = Failing {
            behind: ground.make_dir("behind"),
            nodes: Mutex::default(),
            left: Arc::clone(&left),
            hangs: Arc::clone(&hangs),
            reached: Arc::clone(&reached),
        };
        let point = ground.make_dir("failing");
        Self {
            left,
            hangs,
            reached,
            _mounted: fuser::spawn_mount(files, point, &Config::default()).unwrap(),
        }
    }

    fn takes(&self, bytes: u64) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    fn hangs(&self, whether: bool) {
        self.hangs.store(whether, Ordering::Relaxed);
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        // A test that failed must not wait for it: it is unmounted after this.
        self.hangs(false);
    }
}

/// A disk that stays, and one that fails in the middle of a trial.
const FAILING: &str = r#"
title = "Does a disk that fails stop the rest?"
[factors]
place = ["healthy", "failing"]
[[stack]]
loop = { size = "64 MiB", directory = "{place}", laid-out = "no", direct-io = false }
[[stack]]
ext4 = {}
[[workload]]
name = "random writes"
random = { mode = "write", size = "4 MiB", access = "uniform", fsync-every = 1, time = "2 s" }
[decide]
rounds-at-most = 4
at-most = "10 min"
until = "never"
"#;

/// Whether the configuration at this place is measured now, after its data were laid out.
fn measures(ground: &Ground, configuration: u64) -> bool {
    let runs = fs::read_dir(ground.store().join("runs")).into_iter();
    let mut told = runs.flatten().flatten().map(|run| run.path());
    let told = told.find_map(|run| fs::read(run.join("now.json")).ok());
    let Ok(now) = serde_json::from_slice::<Value>(&told.unwrap_or_default()) else {
        return false;
    };
    let part = now["part"].as_str().unwrap_or("set up");
    now["configuration"] == configuration
        && !["set up", "prepare", "settle"].contains(&part)
        && now["ops"].as_u64() > Some(0)
}

pub(crate) fn a_disk_that_fails_in_a_trial_fails_that_trial_alone_and_is_measured_once_mended() {
    needs::root_and_loop_devices();
    if !Path::new("/dev/fuse").exists() {
        needs::skip("needs FUSE");
    }
    let ground = Ground::new();
    ground.make_dir("healthy");
    let disk = FailingDisk::mount(&ground);
    ground.write("failing.toml", FAILING);
    let begun = |log: &Log| !log.0.is_empty();
    let mut child = start_until(&ground, &["run", "failing.toml"], begun);
    let failing = Log::of(&ground).configuration("failing");
    while !measures(&ground, failing) {
        assert!(child.try_wait().unwrap().is_none(), "ended too early");
        wait(2);
    }
    disk.takes(0);
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(5).err_has("failed");
    let log = Log::of(&ground);
    let healthy = log.configuration("healthy");
    let failures = log.failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    let (configuration, error) = &failures[0];
    assert_eq!(*configuration, failing);
    let words = ["Input/output error", "Read-only file system"];
    assert!(words.iter().any(|words| error.contains(words)), "{error}");
    assert_eq!(log.trials("complete"), [(1, healthy, 0)]);
    assert_eq!(ground.left(), [""; 0]);
    disk.takes(u64::MAX);
    let said = ground.stackrace(&["resume"]);
    said.ended(0);
    assert!(!said.out.contains("No verdict"), "{}", said.out);
    let words = "failing failed in round 1 and was tried again after `resume`";
    let folded: Vec<&str> = said.out.split_whitespace().collect();
    assert!(folded.join(" ").contains(words), "{}", said.out);
    let log = Log::of(&ground);
    // The round in which it failed is measured again, too.
    assert_eq!(log.trials("complete"), design(4, 2, 1));
    assert_eq!(log.failures().len(), 1, "the failure stays on record");
    assert_eq!(ground.left(), [""; 0]);
}

/// Reads what the program says on standard error until the words are among it.
pub(super) fn said_until(errors: &mut impl std::io::Read, words: &str) -> String {
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(words) {
        let mut byte = [0];
        errors.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

pub(crate) fn storage_that_hangs_is_named_and_keeps_neither_ctrl_c_nor_clean() {
    needs::root_and_loop_devices();
    if !Path::new("/dev/fuse").exists() {
        needs::skip("needs FUSE");
    }
    let ground = Ground::new();
    let disk = FailingDisk::mount(&ground);
    let other = ground.make_dir("other");
    let load = |place: &'static str| {
        let words = "random mode=write size=64MiB passes=0 time=100s";
        let words: Vec<&str> = words.split(' ').collect();
        [&["load", place], &words[..]].concat()
    };
    // Both places hold what a dead process left.
    for (place, path) in [("failing", ground.path().join("behind")), ("other", other)] {
        let left = |_: &Log| fs::read_dir(&path).unwrap().count() > 0;
        kill(start_until(&ground, &load(place), left));
    }
    disk.hangs(true);
    let mut child = start_until(&ground, &load("failing"), |_| true);
    while !disk.reached.load(Ordering::Relaxed) {
        wait(10);
    }
    let process = pid(&child);
    let interrupt = || rustix::process::kill_process(process, Signal::INT).unwrap();
    interrupt();
    let mut errors = child.stderr.take().unwrap();
    said_until(&mut errors, "stopping");
    let named = said_until(&mut errors, "does not return");
    assert!(
        named.contains("write of ") && named.contains("failing/"),
        "{named}"
    );
    interrupt();
    said_until(&mut errors, "stopped at once");
    // What does not answer is named, and the other place is cleaned all the same.
    let said = ground.stackrace(&["clean"]);
    said.ended(4).err_has("waiting for storage");
    let lines: Vec<&str> = said.out.lines().collect();
    let of = |fate: &str, place: &str| {
        let both = |line: &&&str| line.starts_with(fate) && line.contains(place);
        lines.iter().filter(both).count()
    };
    assert_eq!(of("undone: remove ", "/other/"), 1, "{}", said.out);
    assert_eq!(of("not undone: remove ", "/failing/"), 1, "{}", said.out);
    assert!(said.out.contains("does not return"), "{}", said.out);
    // The kernel keeps a process whose request a file system in user space has taken.
    disk.hangs(false);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let said = ground.stackrace(&["clean"]);
    said.ended(0);
    assert!(said.out.contains("/failing/"), "{}", said.out);
}

pub(crate) fn the_second_ctrl_c_ends_the_command_while_storage_hangs_with_and_without_a_terminal() {
    needs::root_and_loop_devices();
    if !Path::new("/dev/fuse").exists() {
        needs::skip("needs FUSE");
    }
    for terminal in [true, false] {
        let ground = Ground::new();
        let disk = FailingDisk::mount(&ground);
        disk.hangs(true);
        let words = "load failing random mode=write size=64MiB passes=0 time=100s";
        let words: Vec<&str> = words.split(' ').collect();
        let (mut child, _terminal) = start(&ground, &words, terminal);
        while !disk.reached.load(Ordering::Relaxed) {
            wait(10);
        }
        let works = behind(&child);
        let process = pid(&child);
        let interrupt = || rustix::process::kill_process(process, Signal::INT).unwrap();
        interrupt();
        let mut errors = child.stderr.take().unwrap();
        said_until(&mut errors, "does not return");
        interrupt();
        // Who waits for it is free, although the kernel keeps what worked.
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(rustix::process::test_kill_process(works).is_ok(), "kept");
        disk.hangs(false);
        while rustix::process::test_kill_process(works).is_ok() {
            wait(10);
        }
        let said = ground.stackrace(&["clean"]);
        said.ended(0);
        assert!(said.out.contains("/failing/"), "{}", said.out);
    }
}

pub(crate) fn a_log_that_is_cut_while_the_run_goes_on_ends_it_without_a_verdict() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.write("slow.toml", SLOW);
    let child = start_measuring(&ground);
    let run = fs::read_dir(ground.store().join("runs")).unwrap().next();
    let log = run.unwrap().unwrap().path().join("log.jsonl");
    let file = fs::OpenOptions::new().write(true).open(log).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(1).err_has("another program changed");
    assert!(said.out.contains("No verdict"), "{}", said.out);
    assert_eq!(ground.left(), [""; 0]);
}
