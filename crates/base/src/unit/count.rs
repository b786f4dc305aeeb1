//! Whole numbers for people: their thousands are set apart.

/// A whole number: `999`, `1,050`, `114,376`.
pub fn count(number: u64) -> String {
    thousands(&number.to_string())
}

/// A number with so many decimals, its thousands set apart.
pub(super) fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let sign = if value < 0.0 && text.contains(|c: char| ('1'..='9').contains(&c)) {
        "-"
    } else {
        ""
    };
    match text.split_once('.') {
        Some((whole, part)) => format!("{sign}{}.{part}", thousands(whole)),
        None => format!("{sign}{}", thousands(&text)),
    }
}

/// The digits of a whole number without a sign, a comma between each three of them.
fn thousands(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Words for a count of a thing: `1 trial`, `2,000 trials`.
pub fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(number as u64))
}

#[cfg(test)]
mod tests {
    use super::super::{Rounded, decimals, digits, far};
    use super::*;

    #[test]
    fn thousands_are_set_apart_wherever_a_number_has_them() {
        for (number, said) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (15_517, "15,517"),
            (114_376, "114,376"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), said);
        }
        assert_eq!(counted(1, "trial"), "1 trial");
        assert_eq!(counted(4000, "trial"), "4,000 trials");
        assert_eq!((&*digits(1391.2), &*digits(-1391.2)), ("1,391", "-1,391"));
        assert_eq!((&*digits(999.4), &*digits(12.34)), ("999", "12.3"));
        assert_eq!(far(12_060.0), "10,000");
        assert_eq!(decimals(1299.5, 2, Rounded::Nearest), "1,299.50");
        assert_eq!(decimals(4233.2, 0, Rounded::Up), "4,234");
        assert_eq!(decimals(-0.001, 2, Rounded::Nearest), "0.00");
    }
}
