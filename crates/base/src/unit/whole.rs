//! Times as a person types them into a study.

/// A time as [`super::parse_time_ns`] reads it, in the largest unit of which it is a whole number: `5 min`, `90 s`.
pub fn whole_time(ns: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    let unit = UNITS
        .into_iter()
        .find(|(_, size)| ns > 0 && ns.is_multiple_of(*size));
    let (unit, size) = unit.unwrap_or(("ns", 1));
    format!("{} {unit}", ns / size)
}
