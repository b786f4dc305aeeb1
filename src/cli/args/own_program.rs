//! A command to compare with.

use std::path::PathBuf;

use clap::Args;

use crate::commands::own_program::{OwnJob, OwnProgram};
use stackrace_base::failure::Failure;
use stackrace_base::setting::Settings;
use stackrace_run::prepare::job_file::{self, Variables};

/// `stackrace compare DIR DIR -- COMMAND`.
#[derive(Debug, Args)]
#[command(next_help_heading = "A workload, a job of fio or a command of your own")]
pub(crate) struct OwnProgramArgs {
    /// Compare with this workload alone, with settings as `load` takes them: git, "build files=100",
    /// "postgresql scale=10"; see `stackrace show workloads`
    #[arg(long, value_name = "WORKLOAD", conflicts_with_all = ["purpose", "size", "like", "command"])]
    with: Option<String>,
    /// Compare with this job file of fio, by the fio that is installed: all figures of its report. The
    /// job may name no file outside of the directory that it runs in
    #[arg(long, value_name = "JOB.fio", group = "program", conflicts_with_all = ["purpose", "size", "like", "with"])]
    fio: Option<PathBuf>,
    /// Compare with this command: one word is a shell command, several are a program and its
    /// arguments. It runs in an empty directory ({dir} or $STACKRACE_DIR) and must exit with 0
    #[arg(last = true, value_name = "COMMAND", group = "program", conflicts_with_all = ["purpose", "size", "like"])]
    command: Vec<String>,
    /// Shell command to run before each trial; it is not timed, and caches are dropped after it
    #[arg(long, value_name = "LINE", requires = "command")]
    prepare: Option<String>,
    /// Shell command to run after each trial; it is not timed
    #[arg(long, value_name = "LINE", requires = "command")]
    cleanup: Option<String>,
    /// A figure that the command prints: NAME=REGEX (its first group in the last match),
    /// NAME=json:/POINTER, or with --parse a NAME of the tool; may be given several times, the
    /// first is primary
    #[arg(long, value_name = "NAME=WHERE", requires = "command")]
    metric: Vec<String>,
    /// Unit of each --metric, in their order, or one for all
    #[arg(long, value_name = "UNIT", requires = "metric")]
    unit: Vec<String>,
    /// Which direction of each --metric is better: higher or lower [default: higher]
    #[arg(long, value_name = "WAY", requires = "metric")]
    better: Vec<String>,
    /// Read the command's output as that of this tool (fio, bonnie++, sysbench, postmark, pgbench
    /// …)
    #[arg(long, value_name = "TOOL", requires = "command")]
    parse: Option<String>,
    /// End a trial that takes longer; it has failed [default: 10 min]
    #[arg(long, value_name = "TIME", requires = "program")]
    trial_time: Option<String>,
    /// Stop the clock when the command ends, even if its data are not on the storage yet
    #[arg(long, requires = "command")]
    no_sync: bool,
    /// Disk space that it needs [default: 64 MiB, or what the sizes of a job say]
    #[arg(long, value_name = "BYTES", requires = "program")]
    disk: Option<String>,
}

impl OwnProgramArgs {
    /// The workload, job or command; none: the workloads of a purpose are compared. `typed` reads a workload
    /// as it is typed, `variable` has the environment, which a job may use.
    ///
    /// # Errors
    /// There is no such workload, its settings are wrong, or the job file cannot be read.
    pub(crate) fn given(
        self,
        typed: &dyn Fn(&str) -> Result<Settings, Failure>,
        variable: &Variables<'_>,
    ) -> Result<Option<OwnProgram>, Failure> {
        let given = self.with.is_some() || self.fio.is_some() || !self.command.is_empty();
        let read = |file: PathBuf| {
            let text = job_file::read(&file, variable)?;
            Ok(OwnJob { file, text })
        };
        let fio = self.fio.map(read).transpose()?;
        Ok(given.then_some(OwnProgram {
            workload: self.with.as_deref().map(typed).transpose()?,
            fio,
            command: self.command,
            prepare: self.prepare,
            cleanup: self.cleanup,
            metrics: self.metric,
            units: self.unit,
            better: self.better,
            parse: self.parse,
            trial_time: self.trial_time,
            no_sync: self.no_sync,
            disk: self.disk,
        }))
    }
}
