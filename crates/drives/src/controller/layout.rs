//! How a RAID controller spreads sectors over its drives.

use serde::{Deserialize, Serialize};

/// The layout of data on the drives of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrayLayout {
    /// RAID 0: spread, no redundancy.
    Stripe,
    /// RAID 1 or RAID 10: drives in pairs, spread over the pairs.
    Mirror,
    /// RAID 5: one drive's worth of parity, rotating over the drives (left-symmetric).
    Parity,
}

/// The place of a run of sectors on one drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) drive: usize,
    pub(super) first: u64,
    pub(super) sectors: u32,
    /// The drive and sector of the parity that covers it, for [`ArrayLayout::Parity`].
    pub(super) parity: Option<usize>,
    /// Number of the stripe, over all data drives.
    pub(super) stripe: u64,
}

/// The spread of an array's sectors over drives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Array {
    pub(super) layout: ArrayLayout,
    pub(super) drives: usize,
    /// Sectors on one drive before the next is taken.
    pub(super) chunk: u64,
}

impl Array {
    /// Drives that hold data in each stripe, redundancy left out.
    pub(super) fn data_drives(&self) -> u64 {
        let drives = self.drives as u64;
        match self.layout {
            ArrayLayout::Stripe => drives,
            ArrayLayout::Mirror => drives / 2,
            ArrayLayout::Parity => drives - 1,
        }
    }

    /// The runs that a range of sectors consists of, in order; of a mirror, those on the first
    /// drive of each pair.
    pub(super) fn pieces(&self, first: u64, sectors: u32) -> impl Iterator<Item = Piece> + use<> {
        let (array, end) = (*self, first + u64::from(sectors));
        let mut at = first;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            // No piece crosses a chunk: the next one is on another drive.
            let stop = end.min((at / array.chunk + 1) * array.chunk);
            let piece = array.piece(at, (stop - at) as u32);
            at = stop;
            Some(piece)
        })
    }

    fn piece(&self, at: u64, sectors: u32) -> Piece {
        let (chunk, inside) = (at / self.chunk, at % self.chunk);
        let (stripe, place) = (chunk / self.data_drives(), chunk % self.data_drives());
        let drives = self.drives as u64;
        let (drive, parity) = match self.layout {
            ArrayLayout::Stripe => (place, None),
            ArrayLayout::Mirror => (place * 2, None),
            ArrayLayout::Parity => {
                // Left-symmetric: data go on behind the parity, so that a long read uses all drives.
                let parity = drives - 1 - stripe % drives;
                ((parity + 1 + place) % drives, Some(parity as usize))
            }
        };
        Piece {
            drive: drive as usize,
            first: stripe * self.chunk + inside,
            sectors,
            parity,
            stripe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn parity_rotates_over_the_drives() {
        let array = Array {
            layout: ArrayLayout::Parity,
            drives: 4,
            chunk: 8,
        };
        let parity: Vec<_> = array.pieces(0, 96).map(|piece| piece.parity).collect();
        let expected = [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0].map(Some);
        assert_eq!(parity, expected);
    }

    proptest! {
        #[test]
        fn each_sector_has_one_place_and_none_is_shared(
            layout in prop::sample::select(vec![
                ArrayLayout::Stripe, ArrayLayout::Mirror, ArrayLayout::Parity,
            ]),
            half in 2_usize..5,
            chunk in 1_u64..20,
            sectors in 1_u32..400,
        ) {
            let array = Array { layout, drives: half * 2, chunk };
            let mut places = BTreeSet::new();
            for piece in array.pieces(0, sectors) {
                prop_assert!(piece.drive < array.drives);
                prop_assert_ne!(piece.parity, Some(piece.drive));
                for sector in piece.first..piece.first + u64::from(piece.sectors) {
                    prop_assert!(places.insert((piece.drive, sector)));
                }
            }
            prop_assert_eq!(places.len(), sectors as usize);
        }
    }
}
