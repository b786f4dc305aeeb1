//! The names of the files: a number, random characters before or after it, perhaps a directory.

use std::ffi::CStr;

use super::{BonniePlan, BonnieVersion};
use stackrace_system::draw::{Draw, derive};

/// Bytes of the longest name: `00000/`, ten digits, twelve characters, the zero byte behind it; in
/// 1.03 a number above seven digits is no longer than that.
const BYTES: usize = 6 + 10 + EXTRA + 1;
/// Most random characters.
const EXTRA: usize = 12;
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Purposes of the seed: names, sizes, and the orders of looking up and of removing.
const NAMES: u64 = 0x626f_6e6e_6965_0000;
const SIZES: u64 = 0x626f_6e6e_6965_0010;
const STAT: u64 = 0x626f_6e6e_6965_0020;
const DELETE: u64 = 0x626f_6e6e_6965_0030;

/// One of the two halves of the file phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameStyle {
    /// The number stands first: names are created in ascending order.
    Sequential,
    /// The number stands last.
    Random,
}

/// One name, relative to the directory of all files.
#[derive(Clone, Copy)]
pub(super) struct FileName {
    room: [u8; BYTES],
    pub(super) directory: u32,
}

impl FileName {
    fn new(text: &str, directory: u32) -> FileName {
        let mut room = [0; BYTES];
        let text = &text.as_bytes()[..text.len().min(BYTES - 1)];
        room[..text.len()].copy_from_slice(text);
        FileName { room, directory }
    }

    pub(super) fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.room).unwrap_or_default()
    }
}

/// The name of a directory.
pub(super) fn directory(number: u32) -> String {
    format!("{number:05}")
}

/// All names, in order of creation.
pub(super) fn names(plan: &BonniePlan, style: NameStyle) -> Vec<FileName> {
    let mut draw = Draw::new(derive(plan.seed, NAMES), style as u64);
    // As in the originals, which change directories one name too late: the first directories get
    // one name more, the last one the rest.
    let share = plan.files / u64::from(plan.directories) + 1;
    let mut text = String::new();
    (0..plan.files)
        .map(|number| {
            let home = if plan.directories > 1 {
                (number / share) as u32
            } else {
                0
            };
            text.clear();
            if plan.directories > 1 {
                text.push_str(&directory(home));
                text.push('/');
            }
            let extra: String = (0..draw.below(EXTRA as u64 + 1))
                .map(|_| char::from(LETTERS[draw.below(62) as usize]))
                .collect();
            let digits = match plan.version {
                BonnieVersion::V1_03 => format!("{number:07}"),
                BonnieVersion::V2_00 => format!("{number:010x}"),
            };
            match style {
                NameStyle::Sequential => text.extend([digits, extra]),
                NameStyle::Random => text.extend([extra, digits]),
            }
            FileName::new(&text, home)
        })
        .collect()
}

/// All names in the order in which they are looked up at random.
pub(super) fn for_stat(plan: &BonniePlan) -> Vec<FileName> {
    let mut names = names(plan, NameStyle::Random);
    swap_about(&mut names, &mut Draw::new(derive(plan.seed, STAT), 0));
    names
}

/// All names in the order in which they are removed at random.
pub(super) fn for_delete(plan: &BonniePlan) -> Vec<FileName> {
    let mut names = for_stat(plan);
    swap_about(&mut names, &mut Draw::new(derive(plan.seed, DELETE), 0));
    names
}

/// Swaps each name with any other, as the originals do; not every order is equally likely.
fn swap_about(names: &mut [FileName], draw: &mut Draw) {
    for index in 0..names.len() {
        let other = draw.below(names.len() as u64) as usize;
        names.swap(index, other);
    }
}

/// Sizes of the files of one half, in order of creation.
pub(super) fn sizes(
    plan: &BonniePlan,
    style: NameStyle,
    min: u64,
    max: u64,
) -> impl Iterator<Item = u64> {
    let mut draw = Draw::new(derive(plan.seed, SIZES), style as u64);
    std::iter::repeat_with(move || {
        if min == max {
            max
        } else {
            min + draw.below(max - min + 1)
        }
    })
}
