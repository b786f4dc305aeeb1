//! What the classic tools print.

use crate::classic::sysbench;

/// A report of sysbench: refused with a place in the text, or read, printed and read again the same.
pub fn sysbench(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let reports = match sysbench::parse(&text) {
        Ok(reports) => reports,
        Err(misread) => {
            assert!(
                misread.line >= 1 && misread.line <= text.lines().count() + 2,
                "{misread}"
            );
            assert!(!misread.what.is_empty() && !misread.next.is_empty());
            return;
        }
    };
    for report in reports {
        let values = sysbench::values(&report);
        assert_eq!(values.len(), sysbench::metrics().len());
        assert!(
            values
                .iter()
                .flatten()
                .all(|value| value.is_finite() && *value > 0.0)
        );
        let steps: String = report
            .intermediate
            .iter()
            .map(sysbench::intermediate)
            .collect();
        let printed = sysbench::head(&report.head)
            + sysbench::started(report.head.layout)
            + &steps
            + &sysbench::results(&report);
        assert!(printed.starts_with("sysbench "), "{printed}");
    }
}
