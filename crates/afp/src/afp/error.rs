//! Why a request to an AFP server failed.

use super::codes::{AfpCommand, meaning};

/// The reason for which a request to an AFP server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AfpError {
    /// The server refused the command with this code (negative).
    #[error("the AFP server refused {0:?} with {1}{meaning}", meaning = because(*.1))]
    Refused(AfpCommand, i32),
    /// The connection is lost.
    #[error("the AFP connection is lost: {0}")]
    Broken(String),
    /// The server's reply breaks the protocol.
    #[error("malformed reply from the AFP server: {0}")]
    Malformed(&'static str),
}

/// The meaning of a code, to follow it in a sentence.
fn because(code: i32) -> String {
    match meaning(code) {
        "" => String::new(),
        meaning => format!(": {meaning}"),
    }
}
