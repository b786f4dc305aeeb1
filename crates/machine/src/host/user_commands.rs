//! Commands that a study gives to take down what it set up, as far as this process knows them.
//!
//! A journal holds no command, only the digest of one. What the digest means is looked up here: a stack
//! that is set up says its commands, and `clean` and `resume` read them from the run's record. Whether
//! one may run is for the user to say.

use std::sync::{Mutex, PoisonError};

/// Commands of a study that are known on one machine.
#[derive(Debug, Default)]
pub struct UserCommands {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    commands: Vec<(String, u32)>,
    permitted: bool,
}

/// Meaning of a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserCommand {
    /// A command that the user permitted, and most seconds that it may take.
    Permitted(String, u32),
    /// A command that the user has not permitted, and the same of it.
    Unpermitted(String, u32),
    /// No command that is known.
    Unknown,
}

impl UserCommands {
    /// Adds commands, each with the most seconds that it may take; `permitted` says whether the user allows all that are known to run.
    pub fn know(&self, commands: impl IntoIterator<Item = (String, u32)>, permitted: bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.commands.extend(commands);
        known.permitted = permitted;
    }

    /// The command of a digest.
    pub fn find(&self, wanted: &str) -> UserCommand {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let commands = known.commands.iter();
        let of_digest = commands.filter(|(command, _)| digest(command) == wanted);
        // Several configurations may give one command: the longest of their limits ends none too early.
        match of_digest.max_by_key(|(_, limit_s)| *limit_s) {
            Some((command, limit_s)) if known.permitted => {
                UserCommand::Permitted(command.clone(), *limit_s)
            }
            Some((command, limit_s)) => UserCommand::Unpermitted(command.clone(), *limit_s),
            None => UserCommand::Unknown,
        }
    }
}

/// Digest that stands for a command in a journal: 64 hexadecimal digits (BLAKE3).
pub fn digest(command: &str) -> String {
    blake3::hash(command.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_only_if_it_is_known_and_permitted() {
        let commands = UserCommands::default();
        let wanted = digest("umount x");
        assert_eq!(commands.find(&wanted), UserCommand::Unknown);
        commands.know(
            [("umount x".to_string(), 9), ("umount x".to_string(), 60)],
            false,
        );
        let unpermitted = UserCommand::Unpermitted("umount x".to_string(), 60);
        assert_eq!(commands.find(&wanted), unpermitted);
        commands.know([], true);
        let permitted = UserCommand::Permitted("umount x".to_string(), 60);
        assert_eq!(commands.find(&wanted), permitted);
        assert_eq!(commands.find(&digest("umount y")), UserCommand::Unknown);
    }
}
