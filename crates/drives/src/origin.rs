//! Where a value of a card comes from.

use serde::{Deserialize, Serialize};

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The maker's data sheet or manual; the source quotes it.
    DataSheet,
    /// A data sheet is remembered to say so; it was not looked up again.
    Recalled,
    /// Measured on such a drive.
    Measured,
    /// Chosen so that the model agrees with something measured on such a drive.
    Fitted,
    /// The value was not published: this is usual for drives of this kind.
    Assumed,
}

impl Origin {
    /// The origin as tables and cards name it.
    pub fn words(self) -> &'static str {
        match self {
            Self::DataSheet => "data sheet",
            Self::Recalled => "recalled",
            Self::Measured => "measured",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        }
    }
}
