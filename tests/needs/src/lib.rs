//! Tests that need something of the machine: a user, a tool, a device.
//!
//! Rust's own test harness knows only "passed" and "failed" while a test runs. A test target that uses
//! this one (`harness = false` in Cargo.toml) also knows "ignored": a test calls [`skip`], or one of the
//! functions that ask for something, and is reported as ignored with the reason.
//!
//! ```no_run
//! fn a_file_system_is_made() {
//!     stackrace_test_needs::root_and_loop_devices();
//!     stackrace_test_needs::tool("mkfs.ext4");
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let tests = stackrace_test_needs::tests![a_file_system_is_made];
//!     stackrace_test_needs::run(vec![stackrace_test_needs::group("layers", tests)])
//! }
//! ```

#![forbid(unsafe_code)]

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The work of a test.
pub type Run = Box<dyn FnOnce() + Send>;

/// A test: its name and its work.
pub type Test = (String, Run);

/// The list of tests of a file, by the names of their functions.
#[macro_export]
macro_rules! tests {
    ($($test:ident),* $(,)?) => {
        vec![$((stringify!($test).to_owned(), Box::new($test) as $crate::Run)),*]
    };
}

/// Why a test cannot run here; travels as the payload of an unwinding.
struct Skipped(String);

/// Ends the test that calls it: it cannot run here, and this is why.
pub fn skip(reason: impl Display) -> ! {
    // Not `panic!`: that would print a message and a backtrace for something that is no failure.
    resume_unwind(Box::new(Skipped(reason.to_string())))
}

/// What a test tries, one by one, counted for `bench/attacks`.
#[derive(Debug)]
pub struct Attacks<I> {
    list: I,
    under_way: bool,
    held: usize,
}

/// Counts what a test tries in a loop over this list. At its end it prints
/// `attacks: 5 held, 0 failed`: one held when the next is asked for, and failed when the test panics.
pub fn attacks<L: IntoIterator>(list: L) -> Attacks<L::IntoIter> {
    Attacks {
        list: list.into_iter(),
        under_way: false,
        held: 0,
    }
}

impl<I: Iterator> Iterator for Attacks<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.held += usize::from(self.under_way);
        let next = self.list.next();
        self.under_way = next.is_some();
        next
    }
}

impl<I> Attacks<I> {
    fn line(&self) -> String {
        let failed = usize::from(self.under_way);
        format!("attacks: {} held, {failed} failed", self.held)
    }
}

impl<I> Drop for Attacks<I> {
    fn drop(&mut self) {
        print(&self.line());
    }
}

/// Skips the test unless it runs as root.
pub fn root() {
    if !is_root() {
        skip("needs root");
    }
}

/// Whether this is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Skips the test unless it runs as root and the kernel has loop devices.
pub fn root_and_loop_devices() {
    if !is_root() || !Path::new("/dev/loop-control").exists() {
        skip("needs root and loop devices");
    }
}

/// Skips the test unless this program is installed; returns where it is.
pub fn tool(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| skip(format!("needs {name}")))
}

/// Where a program is: in `PATH` or in the directories of system tools, which ordinary users often
/// lack in theirs.
#[expect(clippy::disallowed_methods, reason = "tools are found as a shell does")]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Skips the test unless the account that runs it may run commands over SSH: sshd starts the login
/// shell of the account, which refuses for many accounts of services.
#[expect(clippy::disallowed_methods, reason = "the shell is tried")]
pub fn login_shell() {
    let id = rustix::process::geteuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let shell = accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&id.as_str())).then(|| fields.get(6).map(|it| (*it).to_owned()))?
    });
    let works = shell.is_some_and(|shell| {
        Command::new(shell)
            .args(["-c", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    if !works {
        skip("needs an account with a login shell");
    }
}

/// The tests of one file.
pub struct Group {
    name: &'static str,
    tests: Vec<Test>,
    unless_asked: Option<&'static str>,
}

/// Tests that bear the name of their file: `name::test`.
pub fn group(name: &'static str, tests: Vec<Test>) -> Group {
    Group {
        name,
        tests,
        unless_asked: None,
    }
}

impl Group {
    /// The same tests, run only with `--ignored` or `--include-ignored`; without, all give `reason`.
    pub fn if_asked(self, reason: &'static str) -> Self {
        let unless_asked = Some(reason);
        Self {
            unless_asked,
            ..self
        }
    }
}

/// Runs the tests that the command line asks for, one group after another: the tests of a group may run at once,
/// and have the machine for themselves.
pub fn run(groups: Vec<Group>) -> ExitCode {
    let arguments = Arguments::from_args();
    let skipped = Arc::new(Mutex::new(Vec::new()));
    let mut failed = false;
    for group in groups {
        let trials = trials(group, &arguments, &skipped);
        if !trials.is_empty() {
            failed |= libtest_mimic::run(&arguments, trials).has_failed();
        }
    }
    // Those that could not run once more at the end, where they are seen.
    let mut list = skipped.lock().unwrap_or_else(PoisonError::into_inner);
    list.sort();
    for line in list.iter() {
        print(&format!("not run: {line}"));
    }
    ExitCode::from(if failed { 101 } else { 0 })
}

/// What a group has for this command line.
fn trials(group: Group, arguments: &Arguments, skipped: &Arc<Mutex<Vec<String>>>) -> Vec<Trial> {
    let asked = arguments.ignored || arguments.include_ignored;
    let not_asked = group.unless_asked.filter(|_| !asked);
    // With `--ignored` the harness runs nothing but tests that bear the flag.
    let flagged = group.unless_asked.is_some() && arguments.ignored;
    if arguments.ignored && !flagged {
        return Vec::new();
    }
    let named = group
        .tests
        .into_iter()
        .map(|(name, run)| (format!("{}::{name}", group.name), run));
    named
        .filter(|(name, _)| is_wanted(name, arguments))
        .map(|(name, run)| {
            let (skipped, named) = (Arc::clone(skipped), name.clone());
            let run = move || not_asked.map_or_else(run, |reason| skip(reason));
            Trial::ignorable_test(name, move || {
                let completion = completed(run)?;
                if let Completion::Ignored {
                    reason: Some(reason),
                } = &completion
                {
                    let mut list = skipped.lock().unwrap_or_else(PoisonError::into_inner);
                    list.push(format!("{named}: {reason}"));
                }
                Ok(completion)
            })
            .with_ignored_flag(flagged)
        })
        .collect()
}

/// Whether the filter of the command line lets a name through. The harness filters again; a group of which nothing
/// is left is not begun.
fn is_wanted(name: &str, arguments: &Arguments) -> bool {
    arguments
        .filter
        .as_ref()
        .is_none_or(|filter| match arguments.exact {
            true => name == filter,
            false => name.contains(filter.as_str()),
        })
}

#[expect(clippy::print_stdout, reason = "a test harness prints its summary")]
fn print(line: &str) {
    println!("{line}");
}

/// Runs one test to its end.
fn completed(test: impl FnOnce()) -> Result<Completion, Failed> {
    match catch_unwind(AssertUnwindSafe(test)) {
        Ok(()) => Ok(Completion::Completed),
        Err(payload) => match payload.downcast::<Skipped>() {
            Ok(skipped) => Ok(Completion::ignored_with(skipped.0)),
            Err(payload) => Err(message(&*payload).into()),
        },
    }
}

/// What a panic said.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    match text {
        Some(text) => format!("the test panicked: {text}"),
        None => "the test panicked".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(test: impl FnOnce()) -> Option<String> {
        match completed(test).ok()? {
            Completion::Ignored { reason } => reason,
            Completion::Completed => None,
        }
    }

    #[test]
    fn a_test_without_its_tool_is_ignored_with_the_reason() {
        let said = reason(|| {
            tool("no-such-tool-anywhere");
        });
        assert_eq!(said.as_deref(), Some("needs no-such-tool-anywhere"));
    }

    #[test]
    fn a_test_with_its_tool_runs() {
        let mut ran = false;
        let ended = completed(|| {
            tool("sh");
            ran = true;
        });
        assert!(matches!(ended, Ok(Completion::Completed)));
        assert!(ran);
    }

    #[test]
    fn attacks_are_counted_and_the_one_that_panics_failed() {
        let mut tried = attacks(["one", "two", "three"]);
        assert_eq!(tried.line(), "attacks: 0 held, 0 failed");
        assert_eq!(tried.nth(1), Some("two"));
        assert_eq!(tried.line(), "attacks: 1 held, 1 failed");
        assert_eq!(tried.by_ref().count(), 1);
        assert_eq!(tried.line(), "attacks: 3 held, 0 failed");
    }

    #[test]
    fn a_test_that_panics_fails_with_its_message() {
        let ended = completed(|| resume_unwind(Box::new("two is not three")));
        let failed = ended.err().unwrap();
        assert_eq!(
            failed.message(),
            Some("the test panicked: two is not three")
        );
    }
}
