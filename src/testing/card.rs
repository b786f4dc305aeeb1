//! The card of a drive, which a user names as a file.

use stackrace_drives::Card;

/// A card is refused with a reason, or can be written and read again, and says what the drive is.
pub fn card(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let card = match Card::parse(&text) {
        Ok(card) => card,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let written = card.text();
    match Card::parse(&written) {
        // By their texts: what is no number differs from itself.
        Ok(again) => assert_eq!(again.text(), written),
        Err(error) => panic!("{error}: {written}"),
    }
    let _ = (card.identity(), card.capacity(), card.cache_sectors());
}
