//! Amounts as people write them, and the command line.

use stackrace_base::unit;

/// Bytes, times, shares and sizes with weights: what is read is in its range, and comes back when it is shown.
pub fn unit(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match unit::parse_bytes(text) {
        Ok(bytes) => {
            assert!(bytes < 1 << 53);
            assert_eq!(unit::parse_bytes(&format!("{bytes} B")), Ok(bytes));
            let shown = unit::bytes(bytes);
            if let Ok(again) = unit::parse_bytes(&shown) {
                let off = again.abs_diff(bytes) as f64;
                assert!(off <= 0.05 * bytes as f64, "{bytes} is shown as {shown}");
            }
        }
        Err(sentence) => assert!(!sentence.what.is_empty()),
    }
    match unit::parse_time_ns(text) {
        Ok(ns) => {
            assert!(ns < 1 << 53);
            assert_eq!(unit::parse_time_ns(&format!("{ns} ns")), Ok(ns));
            assert!(!unit::time_ns(ns as f64).is_empty());
        }
        Err(sentence) => assert!(!sentence.what.is_empty()),
    }
    match unit::parse_share(text) {
        Ok(share) => {
            assert!(share.is_finite() && share >= 0.0, "{text:?} is {share}");
            assert!(!unit::percent(share).is_empty());
        }
        Err(sentence) => assert!(!sentence.what.is_empty()),
    }
    match unit::parse_weights(text) {
        Ok(weights) => {
            assert!(weights.iter().any(|&(_, weight)| weight > 0), "{text:?}");
            let each = weights
                .iter()
                .map(|(bytes, weight)| format!("{bytes} B:{weight}"));
            let shown = each.collect::<Vec<_>>().join(", ");
            assert_eq!(unit::parse_weights(&shown), Ok(weights), "{text:?}");
        }
        Err(sentence) => assert!(!sentence.what.is_empty()),
    }
    if let Ok(number) = text.trim().parse::<f64>() {
        for shown in [
            unit::bytes_per_second(number),
            unit::operations_per_second(number),
            unit::time_ns(number),
            unit::percent(number),
            unit::long_time(number),
        ] {
            assert!(!shown.is_empty());
        }
    }
}

/// A command line, its words separated by line breaks.
pub fn arguments(data: &[u8]) {
    crate::cli::understands(data.split(|&byte| byte == b'\n'));
}

/// Whether the program understands a command line, the words behind its name; nothing is done.
pub fn is_understood(words: &[String]) -> bool {
    crate::cli::understands(words.iter().map(|word| word.as_bytes()))
}

/// Whether `files = { count = 4 }` names a layer or a workload with settings that it has; none: it names neither.
pub fn is_entry(entry: &str) -> Option<Result<(), String>> {
    let (name, rest) = entry.split_once(" = {")?;
    let layers = stackrace_layers::stack::ALL.iter();
    let layer = layers
        .filter(|kind| kind.name == name)
        .map(|kind| kind.settings);
    let workloads = stackrace_load::programs::workloads().iter();
    let workload = workloads
        .filter(|kind| kind.name == name)
        .map(|kind| kind.settings);
    let docs = layer.chain(workload).next()?;
    // A comma may stand in a list, too: what is behind it is no setting then.
    let pairs = rest
        .split(',')
        .filter_map(|pair| pair.trim().split_once(" = "));
    let word = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let mut names = pairs.map(|(name, _)| name.trim()).filter(|name| word(name));
    Some(
        match names.find(|name| docs.iter().all(|doc| doc.name != *name)) {
            Some(unknown) => Err(format!("{name} has no setting {unknown}")),
            None => Ok(()),
        },
    )
}
