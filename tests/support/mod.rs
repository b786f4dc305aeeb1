//! The real program in a directory of its own, and small file systems to point it at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory on a disk (not in memory), the program's store in it, and proof of what is left.
pub(crate) struct Ground {
    dir: tempfile::TempDir,
}

/// What the program said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("stackrace-test-")
            .tempdir_in("/var/tmp")
            .unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// The program with this ground's store; it works in this ground.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program under test is a process"
    )]
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stackrace"));
        // What follows `--` is another program's.
        let own = args.iter().position(|arg| *arg == "--");
        let (own, others) = args.split_at(own.unwrap_or(args.len()));
        command.args(own);
        // A test may name another store, such as one that it moved.
        if !own.contains(&"--store") {
            command.arg("--store").arg(self.store());
        }
        command
            .args(others)
            .env_remove("STACKRACE_STORE")
            // The defaults of whom it is that runs the tests are not those of the tests.
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn stackrace(&self, args: &[&str]) -> Said {
        Said::of(&self.program(args).output().unwrap())
    }

    /// Writes a file and gives back its name.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn make_dir(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    }

    /// Every mount, loop device and file of the program's that is still in this ground.
    pub(crate) fn left(&self) -> Vec<String> {
        let here = self.path().to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut left: Vec<String> = mounts
            .lines()
            .filter(|line| line.contains(here) && line.contains("/.stackrace-"))
            .map(|line| format!("mount {line}"))
            .collect();
        for device in fs::read_dir("/sys/block").unwrap() {
            let file = device.unwrap().path().join("loop/backing_file");
            let file = fs::read_to_string(file).unwrap_or_default();
            if file.contains(here) && file.contains("/.stackrace-") {
                left.push(format!("loop device on {file}"));
            }
        }
        marked(self.path(), &mut left);
        left
    }
}

/// A failed test leaves nothing either.
impl Drop for Ground {
    fn drop(&mut self) {
        if self.store().exists() && !self.left().is_empty() {
            let _ = self.program(&["clean"]).output();
        }
    }
}

/// Names of files of the program's below a directory.
fn marked(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(".stackrace-")
        {
            found.push(entry.path().display().to_string());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            marked(&entry.path(), found);
        }
    }
}

impl Said {
    #[track_caller]
    pub(crate) fn of(output: &Output) -> Self {
        let said = Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        };
        // Rust's own words for an error of the system; ours are `InWords`.
        for text in [&said.out, &said.err] {
            assert!(!text.contains(" (os error "), "{text}");
        }
        said
    }

    /// The exit code, with all that was said where it is another one.
    #[track_caller]
    pub(crate) fn ended(&self, code: i32) -> &Self {
        assert_eq!(
            self.code,
            Some(code),
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    pub(crate) fn err_has(&self, part: &str) -> &Self {
        assert!(self.err.contains(part), "no {part:?} in\n{}", self.err);
        self
    }
}

/// An ext4 file system on a loop device, mounted in a ground.
pub(crate) struct Mounted {
    pub(crate) path: PathBuf,
}

impl Mounted {
    pub(crate) fn ext4(ground: &Ground, name: &str, mib: u64) -> Self {
        let image = ground.path().join(format!("{name}.img"));
        let path = ground.make_dir(name);
        fs::File::create(&image)
            .unwrap()
            .set_len(mib << 20)
            .unwrap();
        tool("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
        tool(
            "mount",
            &[
                "-o",
                "loop",
                image.to_str().unwrap(),
                path.to_str().unwrap(),
            ],
        );
        Self { path }
    }

    pub(crate) fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        quietly("umount", &[self.text()]);
    }
}

/// Runs a tool that has to succeed, and gives back what it said.
pub(crate) fn tool(name: &str, args: &[&str]) -> String {
    let output = quietly(name, args);
    assert!(
        output.status.success(),
        "{name} {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the program is pointed at is made by tools"
)]
pub(crate) fn quietly(name: &str, args: &[&str]) -> Output {
    Command::new(name).args(args).output().unwrap()
}
