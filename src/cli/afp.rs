//! `stackrace lab mount-afp`: a volume of an AFP server, mounted by a process of its own that serves
//! it until it is unmounted.

use stackrace_base::unit::{InWords, ShownPath};
use std::fs::File;
use std::io::{Read, Seek};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::MountAfp;
use super::failure::Failure;
use stackrace_afp::afp::AfpMount;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_machine::host::process::{Process, Streams};
use stackrace_machine::host::{Host, argv, local::LocalHost};

/// This program, whatever became of its file.
const PROGRAM: &str = "/proc/self/exe";

/// Number of looks whether the volume is mounted, and the pause between two.
const LOOKS: usize = 1500;
const LOOK: Duration = Duration::from_millis(20);

/// Mounts and returns, or serves.
pub(super) fn exec(verb: &MountAfp) -> Result<u8, Failure> {
    if verb.serve {
        let mount = AfpMount::new(verb.server, &verb.volume, &verb.point);
        mount.and_then(AfpMount::serve).map_err(Failure::refused)?;
        return Ok(0);
    }
    let failed = |error: std::io::Error| Failure::internal(error.in_words());
    let point = std::fs::canonicalize(&verb.point).map_err(|error| {
        Failure::usage(format!(
            "no directory {}: {error}",
            verb.point.shown(),
            error = error.in_words()
        ))
    })?;
    // The server outlives this process, so that a pipe would break: what it says goes to memory that
    // both have open.
    let memory = stackrace_system::memory_file("said");
    let mut said = File::from(memory.map_err(|errno| failed(errno.into()))?);
    let mut command = argv([PROGRAM, "lab", "mount-afp", "--serve"]);
    command.extend(argv([verb.server.to_string(), verb.volume.clone()]));
    command.push(point.clone().into());
    let mut server = Process::start(&command, Path::new("/"), Streams::Open(&said))
        .map_err(|error| Failure::internal(error.to_string()))?;
    for _ in 0..LOOKS {
        // As mount(8) does: the command returns when the directory can be used.
        if is_mounted(verb.server, &point)? {
            return Ok(0);
        }
        if server.ended().is_some() {
            let mut text = String::new();
            said.rewind().map_err(failed)?;
            said.read_to_string(&mut text).map_err(failed)?;
            // This process prints the word itself.
            let text = text.trim_start_matches("error: ").trim_end().to_string();
            return Err(Failure::refused(text));
        }
        SystemClock.sleep(LOOK);
    }
    Err(Failure::refused(format!(
        "{} did not appear at {}",
        verb.volume,
        point.shown()
    )))
}

fn is_mounted(server: SocketAddr, point: &Path) -> Result<bool, Failure> {
    let mounts = LocalHost::new(Arc::new(|_| ())).mounts();
    let mounts = mounts.map_err(|error| Failure::internal(error.to_string()))?;
    let ours = format!("afp://{server}/");
    Ok(mounts.iter().any(|mount| {
        mount.mount_point == point && mount.source.to_string_lossy().starts_with(&ours)
    }))
}
