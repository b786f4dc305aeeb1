//! Where a value of a card comes from.

use serde::{Deserialize, Serialize};

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The maker's data sheet or manual; the source quotes it.
    DataSheet,
    /// What a data sheet is remembered to say; it was not looked up again.
    Recalled,
    /// Measured on such a drive.
    Measured,
    /// Chosen so that the model agrees with something measured on such a drive.
    Fitted,
    /// It was not published: what is usual for drives of this kind.
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
