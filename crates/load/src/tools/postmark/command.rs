//! `stackrace postmark`: PostMark's shell, as scripts know it.
//!
//! Standard output is PostMark's to the byte; what goes wrong is said on standard error. Each
//! location gets a directory of our own for the time of a run, in a journal before it is made: so
//! nothing of the user's can be in the way, Ctrl-C leaves nothing behind, and `stackrace clean`
//! finds what a killed run left. A run in which an operation fails ends there, without a report.

use stackrace_base::event::again;
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_engine::Control;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stackrace_engine::files::AtEnd;
use stackrace_engine::postmark::{self as engine, PostMarkOutcome, PostMarkPlan, PostMarkProgress};
use stackrace_engine::{PhaseEnd, PhaseOutcome};

use clap::{Args, FromArgMatches};

use super::super::tool::{Console, ToolCommand};
use super::language::{Answer, BANNER, From, PROMPT, PostmarkSettings};
use super::options::{COMMANDS, PostmarkOptions, ReportVersion};
use super::report::{Tally, Version, metrics, values};
use super::unasked;
use super::workload::tally as postmark_tally;
use crate::workload::SLICE_NS;
use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::{self, Failure};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::SystemClock;
use stackrace_base::unit;
use stackrace_machine::host::{self, Host, local::LocalHost};
use stackrace_machine::journal::{Journal, Undo};

/// A file of commands, or one line of them.
const COMMANDS_MAX: ByteLimit = ByteLimit::new(1 << 20);

/// `stackrace postmark`, for [`super::TOOL`].
pub(super) const COMMAND: ToolCommand = ToolCommand {
    arguments: |command| {
        PostmarkOptions::augment_args(command)
            .about(
                "Drop-in for PostMark 1.51: its command language and its output; reads commands from \
                 standard input, as PostMark does, after CONFIG or .pmrc",
            )
            .after_long_help(COMMANDS)
    },
    run: |words, console| {
        let options = PostmarkOptions::from_arg_matches(words)
            .map_err(|error| Failure::usage(error.to_string()))?;
        exec(*console, options)
    },
};

fn exec(console: Console<'_>, verb: PostmarkOptions) -> Result<u8, Failure> {
    let mut shell = Shell {
        console,
        configuration: PostmarkSettings::default(),
        version: match verb.version {
            ReportVersion::First => Version::V1_51,
            ReportVersion::Last => Version::V1_53,
        },
        real_time: verb.real_time,
        host: LocalHost::new(Arc::new(|_| ())),
        interrupt: Arc::default(),
        running: Arc::default(),
        catching: false,
        code: 0,
    };
    // Before the banner: a file that is refused ends the program, and then nothing was printed.
    let commands = match verb.configuration {
        Some(path) => {
            let read = COMMANDS_MAX.read(&path).map_err(|error| {
                let why = format!(
                    "cannot read the configuration {}: {error}",
                    path.shown(),
                    error = error.in_words()
                );
                Failure::refused(why).next("name a file of PostMark commands")
            })?;
            Some((path.display().to_string(), read))
        }
        None => unasked::read(COMMANDS_MAX)?.map(|read| (unasked::NAME.to_owned(), read)),
    };
    console.print(BANNER);
    if let Some((name, commands)) = commands {
        console.print(&reading(&name));
        if shell.obey_all(&commands) == Flow::End {
            return Ok(shell.code);
        }
    }
    shell.converse()?;
    Ok(shell.code)
}

fn reading(path: &dyn std::fmt::Display) -> String {
    format!("Reading configuration from file '{path}'\n")
}

/// Decision to go on or to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    End,
}

/// The shell and what it has been told.
struct Shell<'a> {
    console: Console<'a>,
    configuration: PostmarkSettings,
    version: Version,
    real_time: bool,
    host: LocalHost,
    interrupt: Arc<Interrupt>,
    /// Set while there is a run that Ctrl-C has to stop.
    running: Arc<AtomicBool>,
    /// Set if Ctrl-C is caught.
    catching: bool,
    /// Exit code the program will end with.
    code: u8,
}

impl Shell<'_> {
    /// Asks for lines until there are no more.
    fn converse(&mut self) -> Result<(), Failure> {
        let mut lines = std::io::stdin().lock();
        loop {
            self.console.print(PROMPT);
            let line = COMMANDS_MAX.line(&mut lines).map_err(|error| {
                let why = format!(
                    "standard input cannot be read: {error}",
                    error = error.in_words()
                );
                match error.kind() {
                    ErrorKind::FileTooLarge => {
                        Failure::refused(why).next("write one command a line")
                    }
                    _ => Failure::internal(why),
                }
            })?;
            match line {
                Some(line) if self.obey(&line, From::Prompt) == Flow::On => {}
                _ => return Ok(()),
            }
        }
    }

    /// Obeys the lines of a file.
    fn obey_all(&mut self, commands: &[u8]) -> Flow {
        let mut lines = commands.split_inclusive(|byte| *byte == b'\n');
        match lines.any(|line| self.obey(line, From::File) == Flow::End) {
            true => Flow::End,
            false => Flow::On,
        }
    }

    fn obey(&mut self, line: &[u8], from: From) -> Flow {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        match self
            .configuration
            .obey(&String::from_utf8_lossy(line), from)
        {
            Answer::Done => {}
            Answer::Say(text) => self.console.print(&text),
            Answer::Complain(why) => self.complain(&why),
            Answer::Show(file) => {
                let here = std::env::current_dir().unwrap_or_default();
                let shown = self.configuration.shown(&here.display().to_string());
                self.deliver(&shown, file.as_deref());
            }
            Answer::Load(file) => match COMMANDS_MAX.read(Path::new(&file)) {
                Ok(commands) => {
                    self.console.print(&reading(&file));
                    // Its `quit` ends the file, not the shell.
                    if self.obey_all(&commands) == Flow::End && self.interrupt.raised() {
                        return Flow::End;
                    }
                }
                Err(error) if error.kind() == ErrorKind::FileTooLarge => self.complain(&format!(
                    "cannot read configuration file '{file}': {error}",
                    error = error.in_words()
                )),
                Err(_) => self.complain(&format!("cannot read configuration file '{file}'")),
            },
            Answer::Shell(command) => self.hand_over(&command),
            Answer::Run(file) => return self.run(file.as_deref()),
            Answer::Quit => return Flow::End,
        }
        Flow::On
    }

    /// Has the shell do something in the directory we are in.
    fn hand_over(&self, command: &str) {
        if command.trim().is_empty() {
            return self.complain(
                "a shell within the shell is not offered: leave with quit, or name a command",
            );
        }
        let here = std::env::current_dir().unwrap_or_default();
        // Commands start in `/`, PostMark's in the directory it was started in. Path and command
        // are arguments, so that no character of the path means anything to the shell.
        let script = "cd -- \"$1\" && eval \"$2\"";
        let words = ["sh", "-c", script, "sh"].map(AsRef::as_ref);
        let argv = host::argv(
            words
                .into_iter()
                .chain([here.as_os_str(), command.as_ref()]),
        );
        match self.host.exec(&argv) {
            Ok(output) => {
                self.console.print(&output.stdout);
                self.console.error(&output.stderr);
            }
            Err(error) => self.complain(&error.to_string()),
        }
    }

    /// Makes one run and its report. After Ctrl-C there is nothing left to do.
    fn run(&mut self, file: Option<&str>) -> Flow {
        if let Err(failure) = self.catch() {
            self.fail(&failure);
            return Flow::End;
        }
        self.running.store(true, Ordering::SeqCst);
        // Filled inside: the report is printed when the files are gone, as by then nothing can go
        // wrong.
        let mut done = None;
        let ran = (self.console.temporary)(&self.host, &mut |journal, id| {
            let plan = self.prepare(journal, id)?;
            done = Some(self.perform(&plan)?);
            Ok(())
        });
        self.running.store(false, Ordering::SeqCst);
        match (ran, done) {
            (Err(failure), _) => self.fail(&failure),
            (Ok(()), Some((ran, began_ns))) => self.report(&ran, began_ns, file),
            (Ok(()), None) => {}
        }
        match self.interrupt.raised() {
            true => {
                self.code = failure::INTERRUPTED;
                Flow::End
            }
            false => Flow::On,
        }
    }

    fn fail(&mut self, failure: &Failure) {
        self.console.error(&format!("\n{}", failure.render()));
        self.code = failure.exit_code();
    }

    /// Catches Ctrl-C from the first run on.
    fn catch(&mut self) -> Result<(), Failure> {
        if self.catching {
            return Ok(());
        }
        let (interrupt, running) = (Arc::clone(&self.interrupt), Arc::clone(&self.running));
        let error = self.console.error;
        // Not the console's handler: between two runs there is nothing to clean up, and Ctrl-C
        // ends the shell at once.
        ctrlc::set_handler(move || {
            if !running.load(Ordering::SeqCst) || interrupt.raised() {
                std::process::exit(i32::from(failure::INTERRUPTED));
            }
            interrupt.raise();
            let clean = again(&["clean"]);
            let next = format!("again: stop at once, and `{clean}` removes them");
            error(&format!("\nstopping: removing the files ({next})\n"));
        })
        .map_err(|error| {
            Failure::unable(format!(
                "cannot start a thread that waits for Ctrl-C: {error}"
            ))
            .next(failure::THREADS)
        })?;
        self.catching = true;
        Ok(())
    }

    /// Directories of our own, and what is to be done in them.
    fn prepare(&self, journal: &Journal, id: &str) -> Result<PostMarkPlan, Failure> {
        let asked = &self.configuration;
        let count = |value: i32| u32::try_from(value).unwrap_or(0);
        let given = asked.locations.iter();
        let mut wanted: Vec<(&str, i32)> = given.map(|it| (it.path.as_str(), it.weight)).collect();
        // Without a location PostMark works where it was started, with names that have no
        // directory.
        if wanted.is_empty() {
            wanted.push(("", 1));
        }
        let mut locations = Vec::new();
        for (number, (path, weight)) in wanted.into_iter().enumerate() {
            // What was given stays the beginning of every path: it is looked up with each file.
            let path = Path::new(path).join(format!(".stackrace-postmark-{id}-{number}"));
            let whole = std::path::absolute(&path).map_err(|error| {
                Failure::refused(format!(
                    "{}: {error}",
                    path.shown(),
                    error = error.in_words()
                ))
            })?;
            journal
                .will("postmark", Undo::RemoveTree(whole.clone()))
                .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
            self.host
                .create_dir(&whole)
                .map_err(|error| Failure::refused(error.to_string()).next(error.next()))?;
            let weight = count(weight);
            locations.push(engine::PostMarkLocation { path, weight });
        }
        let bias = |value: i32| u32::try_from(value).ok();
        Ok(PostMarkPlan {
            locations,
            subdirectories: count(asked.subdirectories),
            files: count(asked.number),
            transactions: count(asked.transactions),
            size_low: count(asked.size_low),
            size_high: count(asked.size_high),
            read_block: count(asked.read_block),
            write_block: count(asked.write_block),
            buffered: asked.buffering,
            bias_read: bias(asked.bias_read),
            bias_create: bias(asked.bias_create),
            seed: count(asked.seed),
            at_end: AtEnd::Return,
        })
    }

    /// Runs it with PostMark's signs of life; when it began, by the wall clock.
    fn perform(&self, plan: &PostMarkPlan) -> Result<(PostMarkOutcome, u64), Failure> {
        let control = Control::ended_by(self.interrupt.stop_flag());
        let mut began_ns = 0;
        let mut notice = |notice| {
            // PostMark takes its first time here, after its directories were made.
            if notice == PostMarkProgress::Creating {
                began_ns = SystemClock.unix_ns();
            }
            // A reader that has gone must not end the program here: the files would stay.
            (self.console.print_on)(sign(notice, plan.subdirectories > 1));
        };
        let ran = plan
            .run(SLICE_NS, &control, &mut notice)
            .map_err(|error| Failure::trial(error.to_string()))?;
        match &ran.outcome.error {
            Some(error) => Err(Failure::trial(error.to_string())
                .next("no report is printed of a run in which an operation failed")),
            None => Ok((ran, began_ns)),
        }
    }

    fn report(&self, ran: &PostMarkOutcome, began_ns: u64, file: Option<&str>) {
        // PostMark prints no report then; it has said "out of files!" already.
        if ran.outcome.ended != PhaseEnd::Complete || ran.out_of_files {
            return;
        }
        let transactions = u64::try_from(self.configuration.transactions).unwrap_or(0);
        let tally = Tally {
            began_ns,
            read_as_float: ran.read_as_float,
            written_as_float: ran.written_as_float,
            ..postmark_tally(&ran.outcome, transactions)
        };
        let report = match self.configuration.verbose {
            true => tally.verbose(self.version),
            false => tally.terse(self.version),
        };
        self.deliver(&report, file);
        if self.real_time {
            self.console.error(&in_real_time(&tally, &ran.outcome));
        }
    }

    fn complain(&self, why: &str) {
        self.console.error(&format!("Error: {why}\n"));
    }

    /// Appends to a file, or prints if there is none or it cannot be written.
    fn deliver(&self, text: &str, file: Option<&str>) {
        let Some(file) = file else {
            return self.console.print(text);
        };
        let opened = OpenOptions::new().create(true).append(true).open(file);
        if let Err(error) = opened.and_then(|mut opened| opened.write_all(text.as_bytes())) {
            self.complain(&format!("Cannot direct output to file '{file}'"));
            self.console
                .error(&format!("       {error}\n", error = error.in_words()));
            self.console.print(text);
        }
    }
}

/// Text that PostMark prints at a point of a run.
fn sign(notice: PostMarkProgress, subdirectories: bool) -> &'static str {
    match notice {
        PostMarkProgress::MakingDirectories => "Creating subdirectories...",
        PostMarkProgress::Creating if subdirectories => "Done\nCreating files...",
        PostMarkProgress::Creating => "Creating files...",
        PostMarkProgress::Transacting => "Done\nPerforming transactions",
        PostMarkProgress::Tenth => ".",
        PostMarkProgress::OutOfFiles => {
            "out of files!\nFor this workload, either increase the number of files or\n\
             decrease the number of transactions.\n"
        }
        PostMarkProgress::TransactionsDone => "Done\n",
        PostMarkProgress::Deleting => "Deleting files...",
        PostMarkProgress::RemovingDirectories => "Done\nDeleting subdirectories...",
        PostMarkProgress::Done => "Done\n",
    }
}

/// The figures without PostMark's rounding.
fn in_real_time(tally: &Tally, outcome: &PhaseOutcome) -> String {
    let mut text = "In real time:\n".to_owned();
    for (head, value) in metrics().iter().zip(values(&tally.report())) {
        let shown = match (value.map(|figure| figure.value), head.unit.as_str()) {
            (None, _) => "none".to_owned(),
            (Some(value), "B/s") => unit::bytes_per_second(value),
            (Some(value), "op/s") => unit::operations_per_second(value),
            (Some(value), _) => unit::time_ns(value * 1e9),
        };
        text.push_str(&format!("\t{:<20} {shown}\n", head.name));
    }
    for kind in &outcome.ops {
        let at = |quantile| unit::time_ns(kind.latency.value_at_quantile(quantile) as f64);
        text.push_str(&format!(
            "\t{:<20} {} at the median, {} at the 99th percentile, {} at most\n",
            format!("{} latency", kind.op.name()),
            at(0.5),
            at(0.99),
            unit::time_ns(kind.latency.max() as f64)
        ));
    }
    text
}
