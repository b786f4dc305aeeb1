//! `stackrace bonnie++`: takes the options of bonnie++, does what it does, prints what it prints.
//!
//! Files lie in the same directory as the original's, under names that begin with `.stackrace-`.
//! They are in a journal before they are made, so that Ctrl-C or `stackrace clean` removes them.
//! The thread that does the work takes the rights of the user of `-u`; the waiting thread keeps
//! root's rights to clean up.

use stackrace_base::event::LeftBehind;
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_engine::Control;
use std::path::Path;
use std::sync::Arc;

use stackrace_engine::bonnie::{BonniePlan, BonnieVersion, CHARACTERS, FileKind, Phase};
use stackrace_engine::{PhaseEnd, PhaseOutcome};

use super::super::tool::{Console, ToolCommand, raw_command, raw_words};
use super::options;
use super::options::BonnieOptions;
use super::print::{csv, csv_header, text};
use super::report::{self as classic, BonnieFiles, BonnieLayout, BonnieReport, Cell, Data};
use super::user::{self, WorkUser};
use super::workload::{cell, columns, memory_mib, usual_size_mib};
use crate::workload::SLICE_NS;
use stackrace_base::failure::{self, Failure};
use stackrace_base::interrupt::Interrupt;
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_machine::journal::{Journal, Undo};

/// All options, in our words.
const HELP: &str = include_str!("help.txt");
/// Whatever is wrong with a command line, the originals exit with this.
const REFUSED: u8 = 1;
/// Memory the originals count for each file's name, bytes.
const NAME_BYTES_1_03: u64 = 30;
const NAME_BYTES_2_00: u64 = 37;

/// Reason why nothing was begun, in the words of the original where it has any.
enum Refusal {
    /// A mistake in the options: the usage is printed behind it.
    Usage(String),
    /// The machine does not allow it: the usage would not help.
    Message(String),
}

/// `stackrace bonnie++`, for [`super::TOOL`].
pub(super) const COMMAND: ToolCommand = ToolCommand {
    arguments: |command| {
        let about = "Drop-in for bonnie++ 2.00 and 1.03: its options and its output";
        raw_command(command, about, "The options of bonnie++; --help lists them")
    },
    run: |matches, console| exec(console, &raw_words(matches)),
};

fn exec(console: &Console<'_>, words: &[String]) -> Result<u8, Failure> {
    // Looked for before the other options are read, so that help comes beside a wrong option, too.
    if words.iter().any(|word| word == "--help") {
        console.print(HELP);
        return Ok(0);
    }
    // Its only command is getent: nothing that a plan or a record would have to show.
    let host = LocalHost::new(Arc::new(|_| ()));
    let asked = options::read(words)
        .map_err(Refusal::Usage)
        .and_then(|mut options| {
            options.quiet |= console.quiet;
            let who = who(console, &host, &options)?;
            let asked = CheckedOptions::new(options, who)?;
            Ok(asked)
        });
    match asked {
        Ok(asked) => asked.run_all(console, &host),
        Err(Refusal::Usage(why)) => {
            console.error(&format!("{why}\n{HELP}"));
            Ok(REFUSED)
        }
        Err(Refusal::Message(why)) => {
            console.error(&format!("{why}\n"));
            Ok(REFUSED)
        }
    }
}

/// The user that does the work; `None` means the caller. Root must name one.
fn who(
    console: &Console<'_>,
    host: &dyn Host,
    options: &BonnieOptions,
) -> Result<Option<WorkUser>, Refusal> {
    let own = rustix::process::geteuid();
    let Some(user) = &options.user else {
        // Refused by the original, too: a mistake in a program that removes files must not have
        // root's rights.
        return match own.is_root() {
            true => Err(Refusal::Usage(
                "You must use the \"-u\" switch when running as root.".to_owned(),
            )),
            false => Ok(None),
        };
    };
    let group = options.group.as_deref();
    let who = user::find(host, user, group).map_err(Refusal::Message)?;
    if !options.quiet {
        console.error(&format!("Using uid:{}, gid:{}.\n", who.uid, who.gid));
    }
    // Users who name themselves change nothing: setgroups(2) needs CAP_SETGID and would fail.
    Ok((own.is_root() || own.as_raw() != who.uid).then_some(who))
}

/// Options as asked for, checked against the machine.
struct CheckedOptions {
    options: BonnieOptions,
    who: Option<WorkUser>,
    size_mib: u64,
}

impl CheckedOptions {
    fn new(options: BonnieOptions, who: Option<WorkUser>) -> Result<CheckedOptions, Refusal> {
        let ram_mib = options.ram_mib.unwrap_or_else(memory_mib);
        let size_mib = options.size_mib.unwrap_or_else(|| usual_size_mib(ram_mib));
        // -c says how many copies run at the same time, so their data count together.
        let whole = size_mib * u64::from(options.concurrency);
        // With less the page cache answers the reads. With -r 0 the right side is 0: no check.
        if size_mib > 0 && whole < 2 * ram_mib {
            return Err(Refusal::Usage(format!(
                "File size should be double RAM for good results, RAM is {ram_mib}M."
            )));
        }
        let name_bytes = match options.version {
            BonnieVersion::V1_03 => NAME_BYTES_1_03,
            BonnieVersion::V2_00 => NAME_BYTES_2_00,
        };
        // -n counts files in units of 1024, so units times bytes are KiB.
        let names_kib = options.files * name_bytes;
        if ram_mib > 0 && names_kib * 2 > ram_mib * 1024 {
            return Err(Refusal::Message(format!(
                "When testing {}K of files in {ram_mib} MiB of RAM the system is likely to\n\
                 start paging Bonnie++ data and the test will give suspect\n\
                 results, use less files or install more RAM for this test.",
                options.files
            )));
        }
        if !options.directory.is_dir() {
            return Err(Refusal::Usage(format!(
                "Can't change to directory \"{}\".",
                options.directory.shown()
            )));
        }
        Ok(CheckedOptions {
            options,
            who,
            size_mib,
        })
    }

    /// The plan, with files of this name in this directory.
    fn plan(&self, directory: &Path, name: String, seed: u64) -> BonniePlan {
        let options = &self.options;
        BonniePlan {
            directory: directory.to_owned(),
            name,
            version: options.version,
            bytes: self.size_mib << 20,
            chunk: options.chunk,
            characters: options.characters_mib.map_or(CHARACTERS, |mib| mib << 20),
            seeks: options.seeks,
            seekers: options.seekers,
            files: options.files * classic::FILES_UNIT,
            made: options.made,
            directories: options.directories,
            file_chunk: options.file_chunk,
            fsync: options.fsync,
            direct: options.direct,
            content: options.content,
            seed,
        }
    }

    /// Makes all runs, and prints their reports.
    fn run_all(&self, console: &Console<'_>, host: &LocalHost) -> Result<u8, Failure> {
        // `stackrace clean` reads the journal in another process and another directory.
        let directory = std::fs::canonicalize(&self.options.directory)
            .map_err(|error| Failure::internal(error.in_words()))?;
        let interrupt = Arc::new(Interrupt::default());
        (console.catch_interrupt)(&interrupt, "the files are removed", LeftBehind::FILES)?;
        let seed = self
            .options
            .seed
            // The upper half: at most ten digits, which the CSV shows and -z takes back.
            .unwrap_or_else(|| (console.entropy)() >> 32);
        let runs = self.options.runs.unwrap_or(1);
        if runs > 1 {
            // As the original: no header above a single line.
            console.print(&csv_header(self.layout()));
        }
        let mut code = 0;
        (console.temporary)(host, &mut |journal, id| {
            let name = format!(".stackrace-bonnie-{id}");
            for run in 0..u64::from(runs) {
                // Another seed for each run: with one seed, -x would repeat the same seeks and
                // names.
                let plan = self.plan(&directory, name.clone(), seed.wrapping_add(run));
                // Before any file exists: a kill in between leaves an entry too many, never a
                // file.
                write_journal(journal, &plan)?;
                let Some(cells) = self.run_once(console, &plan, &interrupt)? else {
                    code = failure::INTERRUPTED;
                    break;
                };
                self.show(console, &self.report(&plan, seed, cells));
            }
            Ok(())
        })?;
        Ok(code)
    }

    /// Runs all phases on a thread of its own; `None` if it was interrupted.
    fn run_once(
        &self,
        console: &Console<'_>,
        plan: &BonniePlan,
        interrupt: &Interrupt,
    ) -> Result<Option<[Cell; 12]>, Failure> {
        let work = || {
            // For good, so that nothing started by this thread has root's rights back.
            if let Some(who) = self.who {
                user::become_user(who).map_err(|why| Failure::unable(why).next("become root"))?;
            }
            // Looked at only after the data are removed: they go after a failure or Ctrl-C, too.
            let result = self.phases(console, plan, interrupt);
            plan.remove_data()
                .map_err(|error| Failure::internal(error.to_string()))?;
            result
        };
        let done = std::thread::scope(|scope| scope.spawn(work).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn phases(
        &self,
        console: &Console<'_>,
        plan: &BonniePlan,
        interrupt: &Interrupt,
    ) -> Result<Option<[Cell; 12]>, Failure> {
        let mut cells = [Cell::default(); 12];
        for (column, phase) in columns(plan, self.options.characters_mib == Some(0)) {
            self.tell(console, starting(plan.version, phase));
            let control = Control::ended_by(interrupt.stop_flag());
            let outcome = plan.run(phase, SLICE_NS, &control);
            // An interrupted phase has a rate, but not of the work its column stands for.
            if control.stopped() {
                return Ok(None);
            }
            let outcome = outcome.and_then(whole).map_err(|error| {
                let next = "see whether the disk is full, and whether the user may write there";
                Failure::internal(format!("{}: {error}", column.name())).next(next)
            })?;
            // One "done..." for each seeker that ends, as the original prints them.
            if phase == Phase::Seeks {
                self.tell(console, &"done...".repeat(plan.seekers as usize));
                self.tell(console, "\n");
            } else {
                // The originals put a full stop behind phases of files, and none behind data.
                let end = match column.moves_data() {
                    true => "done\n",
                    false => "done.\n",
                };
                self.tell(console, end);
            }
            cells[column as usize] = cell(plan, phase, &outcome);
        }
        Ok(Some(cells))
    }

    /// Progress, on standard error.
    fn tell(&self, console: &Console<'_>, text: &str) {
        if !self.options.quiet {
            console.error(text);
        }
    }

    fn layout(&self) -> BonnieLayout {
        match self.options.version {
            BonnieVersion::V1_03 => BonnieLayout::V1_03,
            BonnieVersion::V2_00 => BonnieLayout::V2_00,
        }
    }

    fn report(&self, plan: &BonniePlan, seed: u64, cells: [Cell; 12]) -> BonnieReport {
        let options = &self.options;
        let chunk = plan.chunk as u64;
        let host = || {
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned()
        };
        BonnieReport {
            // As the originals call themselves, so that programs that read their CSV take ours.
            program: match options.version {
                BonnieVersion::V1_03 => "1.03e",
                BonnieVersion::V2_00 => "2.00a",
            }
            .to_owned(),
            name: options.name.clone().unwrap_or_else(host),
            concurrency: options.concurrency,
            seed: Some(seed.to_string()),
            data: (self.size_mib > 0).then_some(Data {
                size_mib: self.size_mib,
                // The column is empty for the usual chunk.
                chunk: (chunk != classic::CHUNK).then_some(chunk),
                seeks: Some(options.seeks),
                seekers: Some(options.seekers),
            }),
            files: (options.files > 0).then_some(BonnieFiles {
                number: options.files,
                made: match options.made {
                    FileKind::Files { min, max } => classic::Made::Sizes { max, min },
                    FileKind::HardLinks => classic::Made::HardLinks,
                    FileKind::SymbolicLinks => classic::Made::SymbolicLinks,
                },
                directories: options.directories,
            }),
            ..BonnieReport::new(self.layout(), cells)
        }
    }

    /// Shows one run: a table and a line of CSV; of several only the lines.
    fn show(&self, console: &Console<'_>, report: &BonnieReport) {
        let limit_ns = self.options.too_fast_ns;
        if self.options.runs.is_none() {
            let table = text(report, limit_ns);
            // With -q only CSV goes to standard output, so that `>> file.csv` works (bonnie++(8)).
            match self.options.quiet {
                true => console.error(&table),
                false => console.print(&table),
            }
        }
        console.print(&csv(report, limit_ns));
    }
}

/// Writes to the journal which files and directories the run will create.
fn write_journal(journal: &Journal, plan: &BonniePlan) -> Result<(), Failure> {
    // Data files by name, as they lie in the user's directory. The many files have a directory of
    // their own, which goes as a whole.
    let data = plan.data_files().into_iter().map(Undo::RemoveFile);
    for undo in data.chain([Undo::RemoveTree(plan.file_directory())]) {
        journal
            .will("bonnie++", undo)
            .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    }
    Ok(())
}

/// An outcome that is complete, or the error that ended it.
fn whole(outcome: PhaseOutcome) -> Result<PhaseOutcome, stackrace_engine::OpError> {
    match (outcome.ended, &outcome.error) {
        (PhaseEnd::Failed, Some(error)) => Err(error.clone()),
        _ => Ok(outcome),
    }
}

/// Message when a phase begins.
fn starting(version: BonnieVersion, phase: Phase) -> &'static str {
    match (phase, version) {
        (Phase::WriteCharacters, BonnieVersion::V1_03) => "Writing with putc()...",
        (Phase::WriteCharacters, BonnieVersion::V2_00) => "Writing a byte at a time...",
        (Phase::WriteBlocks, _) => "Writing intelligently...",
        (Phase::Rewrite, _) => "Rewriting...",
        (Phase::ReadCharacters, BonnieVersion::V1_03) => "Reading with getc()...",
        (Phase::ReadCharacters, BonnieVersion::V2_00) => "Reading a byte at a time...",
        (Phase::ReadBlocks, _) => "Reading intelligently...",
        (Phase::Seeks, _) => "start 'em...",
        (Phase::CreateSequential, _) => "Create files in sequential order...",
        (Phase::StatSequential, _) => "Stat files in sequential order...",
        (Phase::DeleteSequential, _) => "Delete files in sequential order...",
        (Phase::CreateRandom, _) => "Create files in random order...",
        (Phase::StatRandom, _) => "Stat files in random order...",
        (Phase::DeleteRandom, _) => "Delete files in random order...",
    }
}
