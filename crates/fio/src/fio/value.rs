//! Numbers, sizes and times as fio writes them.

/// Factor of a size, by its suffix. `base` is that of `k`: 1024, or 1000 with `kb_base=1000`, where
/// `ki` is the other one.
fn factor(suffix: &str, base: u64) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    // fio(1): "B" is optional, so `kB` is `k`, and case does not matter.
    let prefix = lower.strip_suffix('b').unwrap_or(&lower);
    let (letter, base) = match (lower.strip_suffix("ib"), prefix.strip_suffix('i')) {
        // 1000 and 1024 change places: by default fio's `k` is 1024 and its `kib` 1000, against SI
        // and IEC, for old scripts.
        (Some(letter), _) => (letter, 2024 - base),
        // `ki` without the letter is `k`: fio 3.33 does so, whatever its manual says.
        (None, Some(letter)) => (letter, base),
        (None, None) => (prefix, base),
    };
    let power = ["k", "m", "g", "t", "p"]
        .iter()
        .position(|it| *it == letter);
    match (letter, power) {
        ("", _) if prefix.is_empty() => Some(1),
        (_, Some(power)) => base.checked_pow(power as u32 + 1),
        _ => None,
    }
}

/// The digits a text begins with, as a number, and the rest.
fn leading(text: &str) -> Option<(u64, &str)> {
    if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        // "b" is a digit here and not the unit: digits are taken as far as they go.
        let end = hex.find(|c: char| !c.is_ascii_hexdigit());
        let (digits, rest) = hex.split_at(end.unwrap_or(hex.len()));
        return Some((u64::from_str_radix(digits, 16).ok()?, rest));
    }
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((digits.parse().ok()?, rest))
}

/// A size: `4096`, `4k`, `0x1000`, `1mib`. Bytes.
pub(super) fn bytes(text: &str, base: u64) -> Option<u64> {
    let (number, suffix) = leading(text)?;
    number.checked_mul(factor(suffix, base)?)
}

/// A time: `10`, `10s`, `500ms`, `1h`, `00:01:30`, in `unit_ns` where it has no unit. ns.
pub(super) fn time_ns(text: &str, unit_ns: u64) -> Option<u64> {
    if text.contains(':') {
        let mut seconds: u64 = 0;
        for part in text.split(':') {
            let (number, rest) = leading(part)?;
            if !rest.is_empty() {
                return None;
            }
            // Each part is 60 times the one behind it; there are no days.
            seconds = seconds.checked_mul(60)?.checked_add(number)?;
        }
        return seconds.checked_mul(1_000_000_000);
    }
    let (number, unit) = leading(text)?;
    let ns = match unit.to_ascii_lowercase().as_str() {
        "" => unit_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_manual() {
        for word in [
            "4096", "4096b", "4096B", "4k", "4kb", "4kB", "4K", "4KB", "0x1000",
        ] {
            assert_eq!(bytes(word, 1024), Some(4096), "{word}");
        }
        assert_eq!(bytes("1mib", 1024), Some(1_000_000));
        assert_eq!(bytes("1mib", 1000), Some(1 << 20));
        assert_eq!(bytes("1mi", 1024), Some(1 << 20));
        assert_eq!(bytes("1mi", 1000), Some(1_000_000));
        assert_eq!(bytes("1m", 1000), Some(1_000_000));
        assert_eq!(bytes("1TiB", 1000), Some(1 << 40));
        for wrong in ["", "k", "4x", "-1", "1.5g", "i", "4ib", "99999999999p"] {
            assert_eq!(bytes(wrong, 1024), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_those_of_the_manual() {
        let second = 1_000_000_000;
        assert_eq!(time_ns("10", second), Some(10 * second));
        assert_eq!(time_ns("10", 1000), Some(10_000));
        assert_eq!(time_ns("2m", second), Some(120 * second));
        assert_eq!(time_ns("250ms", second), Some(second / 4));
        assert_eq!(time_ns("00:01:30", second), Some(90 * second));
        for wrong in ["", "s", "1x", "1:xx", "99999999999999999999"] {
            assert_eq!(time_ns(wrong, second), None, "{wrong}");
        }
    }
}
