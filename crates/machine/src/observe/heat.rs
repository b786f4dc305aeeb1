//! How often processors were slowed down because they were hot: `thermal_throttle` of each of them
//! in `/sys/devices/system/cpu` (x86; other machines have none).

/// Events so far, of cores and of their packages, over all processors; `None` if nothing counts them.
pub(super) fn throttled(cpus: u32, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let mut sum: Option<u64> = None;
    for cpu in 0..cpus {
        for part in ["core", "package"] {
            let path =
                format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{part}_throttle_count");
            if let Some(count) = read(&path).and_then(|text| text.trim().parse::<u64>().ok()) {
                // Some only if at least one counter exists: no counter is not zero events.
                sum = Some(sum.unwrap_or(0).saturating_add(count));
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_counts_is_not_zero() {
        assert_eq!(throttled(4, |_| None), None);
        let one = |path: &str| path.contains("cpu1/").then(|| "3\n".to_owned());
        assert_eq!(throttled(4, one), Some(6));
        assert_eq!(throttled(1, one), None);
    }
}
