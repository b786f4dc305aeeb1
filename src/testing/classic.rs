//! Reports of the classic tools.

use crate::classic::bonnie::{csv, metrics, notes, parse, text, values};

/// What bonnie++ prints: what is read prints, as a table and as CSV; a refusal has its place.
pub fn bonnie(data: &[u8]) {
    let Ok(shown) = std::str::from_utf8(data) else {
        return;
    };
    match parse(shown) {
        Ok(reports) => {
            assert!(!reports.is_empty());
            for report in reports {
                let values = values(&report);
                assert_eq!(values.len(), metrics().len());
                assert!(
                    values
                        .iter()
                        .flatten()
                        .all(|value| value.is_finite() && *value >= 0.0)
                );
                assert!(notes(&report).iter().all(|note| !note.is_empty()));
                assert!(!text(&report, 0).is_empty());
                let line = csv(&report, 0);
                if let Ok(again) = parse(&line) {
                    assert_eq!(csv(&again[0], 0), line, "{shown:?}");
                }
            }
        }
        Err(error) => {
            assert!(
                error.line >= 1 && error.line <= shown.lines().count() + 1,
                "{error}"
            );
            assert!(!error.what.is_empty() && !error.next.is_empty());
        }
    }
}
