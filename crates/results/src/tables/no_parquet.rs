//! Stands for Parquet where the program was built without it.

use super::column::DataTable;

/// Says that this program was built without the format.
pub(super) fn render(_: &DataTable) -> Result<Vec<u8>, &'static str> {
    Err(
        "built without Parquet (cargo install --path . --features full); CSV and JSON hold the same",
    )
}
