//! Every card makes a drive, states its sources, and does what is claimed of the product.

use super::*;

/// Bytes of a modelled SSD: its timing does not depend on it, and 4 GiB of mapping is little memory.
const SSD_BYTES: u64 = 4 << 30;

fn cards() -> impl Iterator<Item = (Card, &'static str)> {
    CARDS.iter().map(|text| {
        let card = Card::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        (card, *text)
    })
}

#[test]
fn every_card_makes_a_drive_and_says_where_each_value_comes_from() {
    for (card, _) in cards() {
        let drive = card.drive(0, SSD_BYTES);
        assert!(drive.is_ok(), "{}: {:?}", card.model(), drive.err());
        let values = card.values();
        assert!(values.len() >= 7, "{}", card.model());
        let all = values.iter().all(|value| value.source.len() > 10);
        assert!(all, "{}", card.model());
    }
}

#[test]
fn no_two_cards_have_one_name() {
    let mut models: Vec<String> = cards().map(|(card, _)| card.model().to_owned()).collect();
    models.sort();
    let count = models.len();
    models.dedup();
    assert_eq!(models.len(), count);
}

/// The goal for cards made of data sheets alone: within 15 %.
#[test]
fn a_drive_does_what_is_claimed_of_the_product() {
    let mut far = Vec::new();
    for (card, _) in cards() {
        for claim in card.claims() {
            let modelled = card.modelled(claim, SSD_BYTES).unwrap();
            let ratio = modelled / claim.value;
            let line = format!(
                "{} {} {} KiB, queue depth {}: claimed {}, modelled {modelled:.0}, ratio {ratio:.2}",
                card.model(),
                claim.load.words(),
                claim.block,
                claim.queue_depth,
                claim.value
            );
            println!("{line}");
            if !(0.85..=1.15).contains(&ratio) {
                far.push(line);
            }
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
}

#[test]
fn a_card_of_an_unknown_kind_is_refused() {
    for text in ["", "kind = \"tape\"", "kind = 3"] {
        assert!(Card::parse(text).is_err());
    }
}

#[test]
fn a_card_that_was_written_reads_as_itself() {
    for (card, text) in cards() {
        assert_eq!(Card::parse(&card.text()).as_ref(), Ok(&card), "{text}");
    }
}

#[test]
fn a_wrong_value_is_named_with_its_line_and_the_keys_there_are() {
    let (_, text) = cards().next().unwrap();
    let line = text
        .lines()
        .position(|line| line.starts_with("rpm"))
        .unwrap()
        + 1;
    let misspelt = text.replacen("\nrpm =", "\nrpn =", 1);
    let message = Card::parse(&misspelt).unwrap_err().to_string();
    assert!(
        message.contains(&format!("line {line}")) && message.contains("`rpm`"),
        "{message}"
    );
    let lines: String = text
        .lines()
        .filter(|line| !line.starts_with("rpm"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let message = Card::parse(&lines).unwrap_err().to_string();
    assert!(message.contains("missing field `rpm`"), "{message}");
}
