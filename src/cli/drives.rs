//! `stackrace show drives`: the modelled drives, and where each value of them comes from.

use std::fmt::Write as _;

use stackrace_drives::{Card, Claim, Load};

use super::words::unknown;
use stackrace_base::failure::Failure;
use stackrace_show::report::wrap;

/// Bytes of a modelled SSD that a claim is tried on: its timing does not depend on its size, and
/// the mapping of a small one takes little memory.
const SSD_BYTES: u64 = 4 << 30;
/// Columns of the text.
const WIDTH: usize = 80;

/// All drives, a line each; or one of them, whole.
pub(super) fn text(name: Option<&str>) -> Result<String, Failure> {
    let broken = |error| Failure::internal(format!("a card of a drive: {error}"));
    let cards: Vec<Card> = Card::all_shipped().collect();
    let Some(name) = name else {
        let line =
            |card: &Card| format!("{:<25} {:<13} {}\n", card.model(), card.kind(), card.name());
        let lines: String = cards.iter().map(line).collect();
        return Ok(format!(
            "{lines}\nThese are models, not measurements. `stackrace show drives NAME` says where each value\ncomes from, and how the model does beside published figures. A study asked of one:\nstackrace run ext4-vs-xfs --lab --drive NAME\n"
        ));
    };
    let Some(card) = cards.iter().find(|card| card.model() == name) else {
        let names: Vec<&str> = cards.iter().map(Card::model).collect();
        return Err(unknown("drive", name, &names));
    };
    let (model, name, kind) = (card.model(), card.name(), card.kind());
    let mut shown = format!("{model}: {name}\n{kind}, modelled; {}\n\n", card.units());
    for value in card.values() {
        let _ = writeln!(
            shown,
            "  {} = {} ({})",
            value.name,
            value.value,
            value.from.words()
        );
        for line in wrap(&value.source, WIDTH - 6) {
            let _ = writeln!(shown, "      {line}");
        }
    }
    for claim in card.claims() {
        // What the maker promises stands beside what the model does: so a reader can judge it.
        let modelled = card.modelled(claim, SSD_BYTES).map_err(broken)?;
        shown.push_str(&beside(claim, modelled));
    }
    Ok(shown)
}

/// A published figure beside the model's.
fn beside(claim: &Claim, modelled: f64) -> String {
    let unit = match claim.load {
        Load::SequentialRead | Load::SequentialWrite => "MB/s",
        Load::RandomRead | Load::RandomWrite => "requests/s",
    };
    let load = claim.load.words();
    let (block, depth, value) = (claim.block, claim.queue_depth, claim.value);
    let off = (modelled / value - 1.0) * 100.0;
    format!(
        "\n  {load}, {block} KiB, queue depth {depth}: {value:.0} {unit} ({}), model {modelled:.0} ({off:+.0} %)\n      {}\n",
        claim.from.words(),
        claim.source
    )
}
