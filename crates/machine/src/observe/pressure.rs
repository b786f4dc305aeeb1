//! Pressure stall information: how long some task waited for a resource (`/proc/pressure/*`).

/// Total time at least one task was stalled, ns (the `some` line counts microseconds).
pub(super) fn parse(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line
        .split_whitespace()
        .find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_some_is_taken() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.03 total=731793\nfull avg10=0.00 avg60=0.00 avg300=0.02 total=649106\n";
        assert_eq!(parse(text), Some(731_793_000));
        assert_eq!(parse(""), None);
    }
}
