//! The tool that brings the resources of DRBD up, and asks how they are.

use super::ends::{End, port};
use stackrace_base::event::Fact;
use stackrace_foundation::foundation::LayerError;
use stackrace_machine::host::{Host, argv, argv_at};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Words that ask how a resource is, and what the answers are called.
const SAID: [(&str, &str); 3] = [
    ("cstate", "connection"),
    ("role", "roles"),
    ("dstate", "disks"),
];

/// Number of times, and pause between them, that it is looked whether the machines have found each
/// other.
const LOOKS: usize = 150;
const LOOK: Duration = Duration::from_millis(200);

/// The tool with its words for one resource.
pub(super) struct Admin {
    /// The file with its configuration.
    pub(super) file: PathBuf,
    /// The name of the resource.
    pub(super) resource: String,
}

impl Admin {
    /// The command with these words.
    pub(super) fn command(&self, words: &[&str]) -> Vec<OsString> {
        let mut command = argv_at(["drbdadm", "--config-file"], &self.file);
        command.extend(argv(words.iter().copied()));
        command.push(self.resource.clone().into());
        command
    }

    /// Runs the command with these words, and returns what it says.
    ///
    /// # Errors
    /// It fails.
    pub(super) fn run(&self, host: &dyn Host, words: &[&str]) -> Result<String, LayerError> {
        let output = host.must(&self.command(words))?;
        Ok(output.stdout.trim().to_string())
    }

    /// Waits until the tool says what is wanted.
    ///
    /// # Errors
    /// It says something else to the end.
    pub(super) fn until(
        &self,
        host: &dyn Host,
        word: &str,
        wanted: &[&str],
    ) -> Result<String, LayerError> {
        let mut found = self.run(host, &[word])?;
        for _ in 0..LOOKS {
            if wanted.contains(&found.as_str()) {
                return Ok(found);
            }
            host.pause(LOOK);
            found = self.run(host, &[word])?;
        }
        Err(LayerError::refused(
            format!(
                "{word} of the replicated device is {found}, not {}",
                wanted.join(" or ")
            ),
            "see what the kernel says: dmesg | tail",
        ))
    }

    /// Facts about the present state of the resource.
    ///
    /// # Errors
    /// It cannot be asked.
    pub(super) fn facts(&self, host: &dyn Host) -> Result<Vec<Fact>, LayerError> {
        let said = |(word, name): (&str, &str)| Ok(Fact::new(name, self.run(host, &[word])?));
        SAID.into_iter().map(said).collect()
    }
}

/// The error that the machines have not found each other, with what there has to be between them.
pub(super) fn unconnected(error: LayerError, ends: &[End; 2]) -> LayerError {
    let port = port(ends);
    let [here, there] = [&ends[0], &ends[1]].map(|end| format!("{}:{port}", end.address));
    LayerError::refused(
        format!("the machines cannot connect to each other: {error}"),
        format!(
            "let TCP through between {here} and {there}, both ways, and see dmesg | tail on both"
        ),
    )
}
