//! A machine with nothing but a shell, as the rest of the program knows machines.

use super::about;
use super::line::{NoAnswer, ShellAnswer, ShellLine, digits, lost, unanswered};
use super::mounts::LINUX;
use super::owner::only_root_renames;
use super::program::{self, Timer};
use super::things::{AsksPath, ShellReads, file_name};
use super::{mounts, quoted, quoted_all, room};
use crate::agent::ssh::{Destination, SshError, Way};
use parking_lot::Mutex;
use stackrace_base::event::{CommandRun, Fact, StorageIdentity};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::local::{LocalHost, OUTPUT_MAX, Sink};
use stackrace_machine::host::program::{ProgramCall, ProgramCut, ProgramRun};
use stackrace_machine::host::{
    Filling, Host, HostError, LabDisk, MadeThing, MountInfo, Needs, Output, UserCommands,
    Whereabouts, check_tree, identity, lacking, thing,
};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Exit status of the shell there when something is in the way.
const IN_THE_WAY: i32 = 17;

/// Exit status when something is not what its name says.
const NOT_OURS: i32 = 18;

/// Exit status of a shell for a command that it does not find (POSIX, XCU 2.8.2).
const NOT_FOUND: i32 = 127;

/// Number of tries, and pause between them, for programs that a killed run has left running.
const ORPHAN_TRIES: usize = 50;
const ORPHAN_PAUSE: Duration = Duration::from_millis(100);

/// A machine that is reached, and asked by scripts.
pub struct ShellHost {
    way: Way,
    line: Mutex<Option<ShellLine>>,
    /// Name of the system, as `uname -s` says.
    system: String,
    about: Vec<Fact>,
    /// What tells it from others that are reached by the same name.
    machine: String,
    timer: Timer,
    root: bool,
    /// Directory of a program's outputs while it runs; `None` if no run goes on.
    work: Mutex<Option<PathBuf>>,
    /// Reason the connection broke since it was last asked.
    broke: Mutex<Option<String>>,
    sink: Mutex<Sink>,
    /// Command that removes what is left on it.
    cleaned_by: String,
    user_commands: UserCommands,
}

impl ShellHost {
    /// Connects, and finds out what the machine is and how it can time a program.
    ///
    /// # Errors
    /// It is not reached, has no POSIX shell, or cannot time anything.
    pub fn connect(way: &Way) -> Result<Self, SshError> {
        let digits = digits().map_err(SshError::Here)?;
        let mut line = ShellLine::open(way, &digits, "stackrace-asks")?;
        let mut said = |script: &str| {
            let answer = line.run(script, OUTPUT_MAX as usize);
            let answer = answer.map_err(|why| unanswered(way, &why, script))?;
            Ok::<_, SshError>(String::from_utf8_lossy(&answer.out).trim().to_owned())
        };
        let system = said("uname -s")?;
        let root = said("id -u")? == "0";
        let timer = Timer::of(&said(program::TIMER)?)
            .ok_or_else(|| SshError::NoTimer { to: way.to.clone() })?;
        // BSD and small systems have no such file.
        let machine = said("uname -n; cat /etc/machine-id 2> /dev/null || :")?;
        let about = about::facts(&said(&about::script())?, &timer);
        line.wait_for_ever();
        Ok(Self {
            way: way.clone(),
            line: Mutex::new(Some(line)),
            system,
            about,
            machine: machine.split_whitespace().collect::<Vec<_>>().join(" "),
            timer,
            root,
            work: Mutex::default(),
            broke: Mutex::default(),
            sink: Mutex::new(Arc::new(|_| ())),
            cleaned_by: about::cleaned_by(way),
            user_commands: UserCommands::default(),
        })
    }

    /// What tells it from others that are reached by the same name: its own name, and the id that its system was given
    /// when it was installed.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Facts on it, for the record.
    pub fn facts(&self) -> &[Fact] {
        &self.about
    }

    /// Warning for the reader of its figures.
    pub fn warning(&self) -> String {
        let (by, hidden) = (self.timer.described(), about::not_observed(&self.about));
        let to = &self.way.to;
        format!(
            "{to}: measured over its own shell, without this program there ({by}); not observed: {hidden}"
        )
    }

    /// Place of the machine, as it was asked for.
    pub fn to(&self) -> &Destination {
        &self.way.to
    }

    /// Sets the sink that is told of every command from here on.
    pub fn tell(&self, sink: Sink) {
        *self.sink.lock() = sink;
    }

    /// Sets the directory of the outputs of measured programs from here on.
    pub fn works_in(&self, directory: &Path) {
        *self.work.lock() = Some(directory.to_path_buf());
    }

    /// The directory for what is there for a while.
    ///
    /// # Errors
    /// There is none.
    pub fn temporary(&self) -> Result<PathBuf, HostError> {
        let script = "cd \"${TMPDIR:-/tmp}\" && pwd -P";
        let text = self.text(
            "find the directory for temporary files",
            Path::new("/tmp"),
            script,
        )?;
        Ok(PathBuf::from(text.trim_end()))
    }

    /// Runs a script over the line; a line that broke before is made anew.
    fn ask(&self, script: &str, kept_max: usize) -> Result<ShellAnswer, HostError> {
        let mut line = self.line.lock();
        if line.is_none() {
            let opened = ShellLine::open(&self.way, &digits()?, "stackrace-asks");
            let mut opened = opened.map_err(|error| self.lost(&error.to_string()))?;
            opened.wait_for_ever();
            *line = Some(opened);
        }
        let answer = match line.as_mut() {
            Some(line) => line.run(script, kept_max),
            None => Err(NoAnswer::GivenUp),
        };
        // Nothing is asked a second time: what was under way when the line broke has failed.
        answer.map_err(|why| {
            *line = None;
            match why {
                NoAnswer::Broken(said) => self.lost(&said),
                NoAnswer::GivenUp | NoAnswer::NoShell => self.lost("it was not waited for"),
            }
        })
    }

    /// Commands that find things again there.
    fn reads(&self) -> ShellReads<'_> {
        ShellReads {
            host: self,
            numbered: self.system == LINUX,
        }
    }

    fn lost(&self, said: &str) -> HostError {
        let error = lost(&self.way.to, said);
        *self.broke.lock() = Some(error.to_string());
        error
    }

    fn error(&self, said: impl Into<String>, next: &str, kind: ErrorKind) -> HostError {
        HostError::Elsewhere {
            host: self.way.to.to_string(),
            said: said.into(),
            next: next.to_owned(),
            kind,
        }
    }

    /// Runs something on a path that has to succeed; returns what it printed.
    fn text(&self, what: &'static str, path: &Path, script: &str) -> Result<String, HostError> {
        let answer = self.ask(script, OUTPUT_MAX as usize)?;
        let cannot = |kind, why: &str| {
            let said = format!("cannot {what} {}: {why}", path.shown());
            self.error(said, "", kind)
        };
        match answer.status {
            0 => Ok(String::from_utf8_lossy(&answer.out).into_owned()),
            IN_THE_WAY => Err(cannot(ErrorKind::AlreadyExists, "it exists already")),
            NOT_OURS => Err(HostError::NotOurs {
                path: path.to_path_buf(),
                why: "it is a link, or no directory".to_owned(),
            }),
            status if answer.errors.is_empty() => {
                let why = format!("the shell says {status}, and nothing else");
                Err(cannot(ErrorKind::Other, &why))
            }
            _ if answer.errors.contains("ead-only file system") => {
                Err(HostError::path(what, path, ErrorKind::ReadOnlyFilesystem))
            }
            _ => Err(cannot(ErrorKind::Other, answer.errors.trim())),
        }
    }

    fn act(&self, what: &'static str, path: &Path, script: &str) -> Result<(), HostError> {
        self.text(what, path, script).map(drop)
    }

    /// Returns true if a test of the shell holds; one that cannot be asked does not.
    fn holds(&self, test: &str) -> bool {
        self.ask(test, 0).is_ok_and(|answer| answer.status == 0)
    }

    fn unsupported(&self, what: &str) -> HostError {
        let said = format!("{what} is not possible over a shell");
        self.error(said, "leave --agent none out", ErrorKind::Unsupported)
    }

    /// A program that was ended, with the end of what it said until then.
    fn with_last_words(&self, ran: ProgramRun, work: &Path) -> ProgramRun {
        let [stdout, stderr] = program::last_words(work).map(|script| {
            let said = self.ask(&script, OUTPUT_MAX as usize);
            said.map_or_else(
                |_| String::new(),
                |said| String::from_utf8_lossy(&said.out).into(),
            )
        });
        ProgramRun {
            stdout,
            stderr,
            ..ran
        }
    }

    /// Refuses, as root, a way that another user could lead elsewhere: every directory on it has to be root's, and
    /// written to by others only where they cannot rename what is not theirs.
    fn only_root_leads(&self, path: &Path) -> Result<(), HostError> {
        for directory in path.ancestors() {
            let script = format!("ls -ldn {}", quoted(directory.as_os_str()));
            let shown = self.text("look at", directory, &script)?;
            if !only_root_renames(&shown) {
                let shown = shown
                    .split_whitespace()
                    .take(3)
                    .collect::<Vec<_>>()
                    .join(" ");
                return Err(self.error(
                    format!(
                        "another user could rename what is in {} ({shown})",
                        directory.shown()
                    ),
                    "as root, name a directory that only root can write to, or log in as its owner",
                    ErrorKind::PermissionDenied,
                ));
            }
        }
        Ok(())
    }
}

impl AsksPath for ShellHost {
    fn printed(&self, path: &Path, script: &str) -> Option<String> {
        self.text("look at", path, script).ok()
    }
}

impl Host for ShellHost {
    fn name(&self) -> &str {
        "there"
    }

    fn is_here(&self) -> bool {
        false
    }

    fn lost(&self) -> Option<String> {
        self.broke.lock().take()
    }

    fn system(&self) -> Result<String, HostError> {
        Ok(self.system.clone())
    }

    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError> {
        let began = SystemClock.now_ns();
        // From no directory of the user's, as on this machine.
        let script = format!("cd / && {}", quoted_all(argv));
        let answer = self.ask(&script, OUTPUT_MAX as usize)?;
        let tool = argv.first().cloned().unwrap_or_default();
        if answer.status == NOT_FOUND && !self.holds(&format!("command -v {}", quoted(&tool))) {
            let said = format!("{} is not installed", tool.shown());
            return Err(self.error(said, "install it there", ErrorKind::NotFound));
        }
        let mut stdout = String::from_utf8_lossy(&answer.out).into_owned();
        if answer.dropped > 0 {
            stdout.push_str(&format!(
                "\n[{} more bytes were not kept]\n",
                answer.dropped
            ));
        }
        let output = Output {
            status: Some(answer.status),
            stdout,
            stderr: answer.errors,
        };
        let tell = Arc::clone(&self.sink.lock());
        tell(CommandRun {
            host: self.way.to.to_string(),
            argv: argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            status: output.status,
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
            // With the way there and back: it is what the run waited.
            elapsed_ns: SystemClock.now_ns().saturating_sub(began),
        });
        Ok(output)
    }

    fn run_program(&self, call: &ProgramCall<'_>) -> Result<ProgramRun, HostError> {
        let Some(work) = self.work.lock().clone() else {
            return Err(self.unsupported("a program outside of a run"));
        };
        let name = format!("stackrace-works-in-{}", file_name(&work));
        let opened = ShellLine::open(&self.way, &digits()?, &name);
        let mut line = opened.map_err(|error| self.lost(&error.to_string()))?;
        line.wait_for_ever();
        let ran = program::run(&mut line, &self.timer, &work, call);
        // Its end ends whatever the program began and left running.
        drop(line);
        let ran = ran.map_err(|why| match why {
            program::NotRun::Broken(said) => self.lost(&said),
            program::NotRun::Wrong(said) => self.error(said, "", ErrorKind::InvalidData),
        });
        match self.outlive(&file_name(&work))? {
            Some(left) => Err(self.error(
                format!("a program of the trial does not end: {left}"),
                "end it there",
                ErrorKind::ResourceBusy,
            )),
            None => ran.map(|ran| match ran.cut {
                Some(ProgramCut::TimeOver) => self.with_last_words(ran, &work),
                _ => ran,
            }),
        }
    }

    fn missing(&self, needs: &Needs) -> Vec<HostError> {
        let finds = |tool: &str| Ok(self.holds(&format!("command -v {}", quoted(tool.as_ref()))));
        let missing = lacking(self, needs, &finds).unwrap_or_else(|error| vec![error]);
        let named = missing.into_iter().map(|error| match error {
            // The name of Debian's package says nothing on another system.
            HostError::ToolMissing { tool, .. } => self.error(
                format!("{tool} is not installed"),
                "install it there",
                ErrorKind::NotFound,
            ),
            HostError::NeedsRoot => self.error(
                "this needs the rights of root",
                &format!("log in as root: --on {}", self.way.to.as_root()),
                ErrorKind::PermissionDenied,
            ),
            other => other,
        });
        named.collect()
    }

    fn is_root(&self) -> bool {
        self.root
    }

    fn user_commands(&self) -> Option<&UserCommands> {
        // The record with the study is here, so that they can be looked up again.
        Some(&self.user_commands)
    }

    fn create_dir(&self, path: &Path) -> Result<(), HostError> {
        let p = quoted(path.as_os_str());
        // mkdir refuses what is there, links included; its words differ from system to system.
        let script = format!(
            "mkdir {p} || {{ [ ! -e {p} ] && [ ! -h {p} ] || exit {IN_THE_WAY}; exit 1; }}"
        );
        self.act("create directory", path, &script)
    }

    fn create_file(&self, path: &Path, bytes: u64, filling: Filling) -> Result<(), HostError> {
        let p = quoted(path.as_os_str());
        // set -C: the shell opens it with O_EXCL, so that nothing is written over.
        let new = format!(
            "( set -C; : > {p} ) 2>/dev/null || {{ [ ! -e {p} ] && [ ! -h {p} ] || exit {IN_THE_WAY}; exit 1; }}"
        );
        let fill = room::filled(&p, bytes, filling);
        // dd(1) says on standard error what it copied, also where nothing is wrong.
        self.act("create", path, &format!("{new}; {fill}"))
    }

    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        self.act(
            "remove",
            path,
            &format!("rm -f {}", quoted(path.as_os_str())),
        )
    }

    fn remove_dir(&self, path: &Path) -> Result<(), HostError> {
        let p = quoted(path.as_os_str());
        self.act("remove", path, &format!("[ ! -e {p} ] || rmdir {p}"))
    }

    fn remove_tree(&self, path: &Path) -> Result<(), HostError> {
        check_tree(path, &self.mounts().unwrap_or_default())?;
        let p = quoted(path.as_os_str());
        // -xdev: another file system is never entered. Its directory is not empty then, or busy, and
        // stays with a complaint.
        let script = format!(
            "[ -e {p} ] || [ -h {p} ] || exit 0; \
             [ ! -h {p} ] && [ -d {p} ] || exit {NOT_OURS}; \
             find {p} -xdev ! -type d -exec rm -f {{}} +; \
             find {p} -xdev -depth -type d -exec rmdir {{}} +; [ ! -e {p} ]"
        );
        self.act("remove", path, &script)
    }

    fn write_text(&self, path: &Path, text: &str) -> Result<(), HostError> {
        let p = quoted(path.as_os_str());
        let script = format!("[ -f {p} ] && printf %s {} > {p}", quoted(text.as_ref()));
        self.act("write to", path, &script)
    }

    fn sync_file_system(&self, path: &Path) -> Result<(), HostError> {
        // POSIX can sync everything or nothing.
        self.act("sync", path, "sync")
    }

    fn read_text(&self, path: &Path) -> Result<String, HostError> {
        self.text("read", path, &format!("cat {}", quoted(path.as_os_str())))
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>, HostError> {
        let script = format!("ls -A {}", quoted(path.as_os_str()));
        let text = self.text("list", path, &script)?;
        let mut names: Vec<OsString> = text.lines().map(OsString::from).collect();
        names.sort();
        Ok(names)
    }

    fn answers(&self) -> Result<(), HostError> {
        self.ask("true", 0).map(drop)
    }

    fn exists(&self, path: &Path) -> bool {
        let p = quoted(path.as_os_str());
        self.holds(&format!("[ -e {p} ] || [ -h {p} ]"))
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.holds(&format!("[ -d {} ]", quoted(path.as_os_str())))
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf, HostError> {
        let p = quoted(path.as_os_str());
        let script = format!(
            "[ -e {p} ] && if [ -d {p} ]; then cd {p} && pwd -P; else printf '%s\\n' {p}; fi"
        );
        let text = self.text("find", path, &script)?;
        Ok(PathBuf::from(text.trim_end_matches('\n')))
    }

    fn own_way_to(&self, directory: &Path) -> Result<PathBuf, HostError> {
        let path = self.canonical(directory)?;
        if self.root {
            self.only_root_leads(&path)?;
        }
        Ok(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, HostError> {
        let text = self.text(
            "ask for the free space of",
            path,
            &format!("df -P -k {}", quoted(path.as_os_str())),
        )?;
        let free = room::free_bytes(&text);
        free.ok_or_else(|| {
            self.error(
                format!("df says nothing of {}", path.shown()),
                "",
                ErrorKind::InvalidData,
            )
        })
    }

    fn mounts(&self) -> Result<Vec<MountInfo>, HostError> {
        let command = mounts::command(&self.system);
        let answer = self.ask(command, usize::MAX)?;
        match answer.status {
            0 => Ok(mounts::parse(&self.system, &answer.out)),
            _ => Err(self.error(
                format!("`{command}` shows no mounts: {}", answer.errors),
                "",
                ErrorKind::Unsupported,
            )),
        }
    }

    fn mount_of(&self, path: &Path) -> Result<MountInfo, HostError> {
        let path = self.canonical(path)?;
        // What the system does not tell is not known, and the record says so.
        let all = self.mounts().unwrap_or_default();
        Ok(mounts::seen(all, &path).unwrap_or_else(mounts::unknown))
    }

    fn identity_of(&self, directory: &Path) -> Result<StorageIdentity, HostError> {
        let path = self.canonical(directory)?;
        let ask = |script: &str| self.text("look at", &path, script).ok();
        let mount = mounts::seen(self.mounts().unwrap_or_default(), &path);
        let boot = self.read_text(Path::new(identity::BOOT)).ok();
        mounts::identity(mount.as_ref(), boot, &ask, &path)
    }

    fn thing_at(&self, path: &Path) -> Option<MadeThing> {
        thing::at(&self.reads(), path)
    }

    fn find_thing(&self, thing: &MadeThing, path: &Path) -> Whereabouts {
        thing::find(&self.reads(), thing, path)
    }

    fn cleaned_by(&self) -> &str {
        &self.cleaned_by
    }

    fn holders(&self, _path: &Path) -> Vec<String> {
        Vec::new()
    }

    fn outlive(&self, _run: &str) -> Result<Option<String>, HostError> {
        let Some(work) = self.work.lock().clone() else {
            return Ok(None);
        };
        let script = program::left(&work, &file_name(&work));
        for _ in 0..ORPHAN_TRIES {
            let answer = self.ask(&script, OUTPUT_MAX as usize)?;
            let left = String::from_utf8_lossy(&answer.out).trim().to_owned();
            if left.is_empty() {
                return Ok(None);
            }
            self.pause(ORPHAN_PAUSE);
        }
        let answer = self.ask(&script, OUTPUT_MAX as usize)?;
        let left = String::from_utf8_lossy(&answer.out).trim().to_owned();
        Ok((!left.is_empty()).then(|| format!("process group {left}")))
    }

    fn lab_disk(&self, _disk: &LabDisk) -> Result<PathBuf, HostError> {
        Err(HostError::OutsideLab)
    }

    fn end_machine(&self, _directory: &Path) -> Result<(), HostError> {
        Err(self.unsupported("ending a virtual machine"))
    }

    fn running(&self, _program: &str) -> Result<Option<String>, HostError> {
        Err(self.unsupported("looking for a process by its name"))
    }

    fn listener(&self, _port: u16) -> Result<Option<String>, HostError> {
        Err(self.unsupported("looking for who listens at a port"))
    }

    fn end_daemon(&self, _program: &str, _mark: &str) -> Result<(), HostError> {
        Err(self.unsupported("ending a server"))
    }

    fn pause(&self, duration: Duration) {
        SystemClock.sleep(duration);
    }

    fn nonce(&self) -> Result<String, HostError> {
        LocalHost::new(Arc::new(|_| ())).nonce()
    }
}
