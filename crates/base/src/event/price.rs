//! What a configuration costs, as the study says it: no price is shipped, and no currency converted.

use serde::{Deserialize, Serialize};

use crate::unit::{self, Rounded, UnitError};

/// A price, once or a month.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// The number in front of the currency; at least 0.
    pub amount: f64,
    /// Currency as it is written: `EUR`.
    pub currency: String,
    /// True if it is paid each month.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub monthly: bool,
}

/// Words behind a price that is paid each month.
const MONTHLY: [&str; 4] = ["per month", "a month", "/month", "/ month"];

/// Decimals of the smallest amount that is written out.
const DECIMALS_MAX: usize = 12;

/// Returns true for `1.299`: the point stands between thousands in half of the world.
fn is_perhaps_thousands(number: &str) -> bool {
    let parts = number.split_once('.');
    parts.is_some_and(|(whole, rest)| {
        // 0.125 cannot be thousands, nor can four digits before the point.
        rest.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0')
    })
}

impl Price {
    /// Reads `73 EUR` and `12 EUR per month`.
    ///
    /// # Errors
    /// It has no number, no currency, or something else behind.
    pub fn read(text: &str) -> Result<Self, UnitError> {
        let unfit = || UnitError {
            what: format!("\"{}\" is no cost", text.trim()),
            next: "write a number and a currency: \"73 EUR\", \"12.50 EUR per month\"".to_owned(),
        };
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, rest) = trimmed.split_at(end.ok_or_else(unfit)?);
        let amount: f64 = number.parse().map_err(|_| unfit())?;
        // Half of Europe writes 1.000 where others write 1,000: a thousandth of a cost must not decide in silence.
        if is_perhaps_thousands(number) {
            let (thousands, rest) = number.split_once('.').unwrap_or((number, ""));
            return Err(UnitError {
                what: format!("\"{trimmed}\" may mean thousands, or three decimals"),
                next: format!("write {thousands}{rest} for thousands, {number}0 for decimals"),
            });
        }
        let rest = rest.trim();
        let paid = MONTHLY.iter().find_map(|words| rest.strip_suffix(words));
        let currency = paid.unwrap_or(rest).trim();
        let signs = |c: char| c.is_alphabetic() || "€$£¥₹".contains(c);
        if currency.is_empty() || !currency.chars().all(signs) || !amount.is_finite() {
            return Err(unfit());
        }
        Ok(Self {
            amount,
            // One currency is written in two ways more easily than two are alike.
            currency: currency.to_uppercase(),
            monthly: paid.is_some(),
        })
    }

    /// The currency, and how often it is paid: `EUR per month`.
    pub fn unit(&self) -> String {
        let monthly = if self.monthly { " per month" } else { "" };
        format!("{}{monthly}", self.currency)
    }

    /// As [`Price::read`] takes it, with all its digits and no sign between thousands: for a study's file.
    pub fn exact(&self) -> String {
        let amount = self.amount.to_string();
        // Three decimals may mean thousands; four do not.
        let more = if is_perhaps_thousands(&amount) {
            "0"
        } else {
            ""
        };
        format!("{amount}{more} {}", self.unit())
    }

    /// `73 EUR`, `12.50 EUR per month`
    pub fn words(&self) -> String {
        self.words_beside([self])
    }

    /// The same with as many decimals as any of these needs: amounts that stand below each other are compared by eye.
    pub fn words_beside<'a>(&self, all: impl IntoIterator<Item = &'a Self>) -> String {
        let needed = all.into_iter().map(Self::decimals).max();
        let amount = unit::decimals(self.amount, needed.unwrap_or(0), Rounded::Nearest);
        format!("{amount} {}", self.unit())
    }

    /// Decimals that it is written with: none where it is whole, else hundredths.
    fn decimals(&self) -> usize {
        let whole_in = |part: f64| ((self.amount * part).round() / part - self.amount).abs() < 1e-9;
        match self.amount {
            _ if whole_in(1.0) => 0,
            // A gigabyte or an hour may cost less than a cent, and what costs something is never written as 0.
            amount if amount < 1.0 && !whole_in(100.0) => {
                let shown = |decimals: &usize| amount * 10_f64.powi(*decimals as i32) >= 1.0;
                (3..DECIMALS_MAX).find(shown).unwrap_or(DECIMALS_MAX)
            }
            _ => 2,
        }
    }

    /// Returns true if both can be added.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.currency, self.monthly) == (&other.currency, other.monthly)
    }

    /// The sum of costs that are alike; `None` of none.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        all.cloned().reduce(|sum, one| Self {
            amount: sum.amount + one.amount,
            ..sum
        })
    }

    /// So much of a metric for one unit of the currency: `2.90 MB/s per EUR`; `None` if it costs nothing.
    pub fn buys(&self, metric_unit: &str, value: f64) -> Option<String> {
        let each =
            (self.amount > 0.0).then(|| unit::of_metric(metric_unit, value / self.amount))?;
        Some(format!("{each} per {}", self.currency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_a_number_and_a_currency() {
        let words = |text| Price::read(text).map(|cost| cost.words());
        assert_eq!(words("73 EUR").unwrap(), "73 EUR");
        assert_eq!(
            words(" 12.50 eur per month").unwrap(),
            "12.50 EUR per month"
        );
        assert_eq!(words("12€/month").unwrap(), "12 € per month");
        for wrong in [
            "EUR",
            "73",
            "",
            "EUR 73",
            "-3 EUR",
            "1,299 EUR",
            "73 EUR a week",
            "1.2.3 EUR",
            "cheap",
        ] {
            let why = words(wrong).unwrap_err();
            assert!(why.next.contains("73 EUR"), "{wrong}");
        }
    }

    #[test]
    fn an_amount_is_read_back_as_it_was_written() {
        for text in [
            "12000 EUR",
            "1234567.89 EUR per month",
            "0.0042 EUR",
            "0.00005 EUR",
            // Three decimals, which alone may mean thousands.
            "12.1250 EUR",
            "99999999999999999999999 JPY",
        ] {
            let price = Price::read(text).unwrap();
            assert_eq!(Price::read(&price.exact()), Ok(price), "{text}");
        }
        assert_eq!(Price::read("0.00005 EUR").unwrap().words(), "0.00005 EUR");
    }

    #[test]
    fn a_point_between_thousands_is_not_taken_for_decimals() {
        for (text, thousands, decimals) in [
            ("1.000 EUR", "1000", "1.0000"),
            ("12.500 EUR", "12500", "12.5000"),
        ] {
            let why = Price::read(text).unwrap_err();
            for meant in [thousands, decimals] {
                assert!(why.next.contains(meant), "{}", why.next);
                Price::read(&format!("{meant} EUR")).unwrap();
            }
        }
        Price::read("0.125 EUR").unwrap();
    }

    #[test]
    fn amounts_beside_each_other_have_as_many_decimals() {
        let all = ["73 EUR", "120.5 EUR", "0.1 EUR"].map(|text| Price::read(text).unwrap());
        let words = all.each_ref().map(|one| one.words_beside(&all));
        assert_eq!(words, ["73.00 EUR", "120.50 EUR", "0.10 EUR"]);
        let alone = all.each_ref().map(Price::words);
        assert_eq!(alone, ["73 EUR", "120.50 EUR", "0.10 EUR"]);
        assert_eq!(Price::read("0.0042 EUR").unwrap().words(), "0.004 EUR");
    }

    #[test]
    fn costs_are_added_and_divided() {
        let all = [
            Price::read("73 EUR").unwrap(),
            Price::read("27.5 EUR").unwrap(),
        ];
        let sum = Price::sum(all.iter()).unwrap();
        assert_eq!(sum.words(), "100.50 EUR");
        assert_eq!(Price::sum([].iter()), None);
        assert_eq!(sum.buys("B/s", 201e6).unwrap(), "2.00 MB/s per EUR");
        assert_eq!(Price::read("0 EUR").unwrap().buys("B/s", 1.0), None);
        assert!(!all[0].is_like(&Price::read("1 EUR per month").unwrap()));
        assert!(!all[0].is_like(&Price::read("1 USD").unwrap()));
    }
}
