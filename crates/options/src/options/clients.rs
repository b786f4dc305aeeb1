//! Options of runs that several clients make together.

use std::time::Duration;

/// The clients of one storage.
#[derive(Debug, clap::Args)]
pub struct ClientsArgs {
    /// Measure with all these clients at the same time: the directories must be the same storage on
    /// each of them. Started over ssh, on the nodes of a Slurm allocation (or srun:NODE,...), on the
    /// hosts of a host file, in the pods of a Job, which is made for the run if the study names storage
    /// classes. This program is copied there
    #[arg(
        long = "clients",
        value_name = "ssh:HOST,...|srun|mpirun:FILE|kubernetes:JOB"
    )]
    pub started: Option<String>,
    /// Processes on each client [default: 1, or what the study's factor `processes` needs]
    // Of clients: without clients there are none.
    #[arg(long, value_name = "N", requires = "started", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub processes: Option<u32>,
    /// A Slurm allocation.
    #[command(flatten)]
    pub allocation: Allocation,
}

/// A Slurm allocation, which Slurm says itself.
#[derive(Debug, clap::Args)]
pub struct Allocation {
    /// Machines of the job, as Slurm writes them
    // Slurm sets the variable; the option is for it alone.
    #[arg(long, hide = true, env = "SLURM_JOB_NODELIST", hide_env = true)]
    nodes_allocated: Option<String>,
}

impl Allocation {
    /// Its nodes, as Slurm writes them; none: this runs in none.
    pub fn nodes(&self) -> Option<&str> {
        self.nodes_allocated.as_deref()
    }
}

/// Arguments of `stackrace agent serve`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Serving {
    /// End after so many seconds without a word from the coordinator
    #[arg(long, value_name = "SECONDS")]
    silence: Option<u32>,
}

impl Serving {
    /// Time without a word after which a client is waited for no more; `None` if there is no such limit.
    pub fn silence(self) -> Option<Duration> {
        self.silence
            .map(|seconds| Duration::from_secs(seconds.into()))
    }
}
