//! What is compared: layers from the devices up to the directory the workload runs in.
//!
//! A layer takes what the one below gives (nothing, or devices) and gives devices or a directory.
//! It is *raised* (each creation journalled before it happens), *described* (read back from the
//! system, never copied from the study), *settled* between trials and *lowered* from the journal
//! alone. A new layer is one file here and one line in [`ALL`].

mod afp;
mod bcachefs;
mod btrfs;
mod build;
mod common;
mod composition;
mod devices;
mod dir;
mod drbd;
mod error;
mod ext;
mod f2fs;
mod gfs2;
mod gives;
mod identity;
mod lab_disks;
mod layer;
mod loops;
mod lvm;
mod md;
mod nfs;
mod setup;
mod site;
mod smb;
mod standing;
#[expect(clippy::unwrap_used, reason = "tests")]
mod testing;
mod tmpfs;
mod xfs;
mod zfs;

pub(crate) use composition::{Stack, missing};
pub(crate) use error::StackError;
pub(crate) use gives::{Danger, GivesKind, Takes};
pub(crate) use layer::{Layer, LayerKind};
pub(crate) use site::Site;
pub(crate) use standing::StandingStack;
pub(crate) use testing::ON_MACHINE;
#[cfg(test)]
pub(crate) use {
    error::LayerError,
    gives::{Gives, StandingLayer},
    setup::Setup,
};

use crate::event::Fact;
use common::{block, guard, options};

/// Every kind of layer, alphabetical.
pub(crate) const ALL: &[LayerKind] = &[
    afp::KIND,
    zfs::BARE,
    bcachefs::KIND,
    btrfs::KIND,
    zfs::DATASET,
    devices::KIND,
    dir::KIND,
    drbd::KIND,
    ext::EXT2,
    ext::EXT3,
    ext::EXT4,
    f2fs::KIND,
    gfs2::KIND,
    lab_disks::KIND,
    loops::KIND,
    lvm::KIND,
    md::KIND,
    nfs::KIND,
    smb::KIND,
    tmpfs::KIND,
    xfs::KIND,
    zfs::POOL,
    zfs::VOLUME,
];

/// Everything that reads what the tools and the kernel print, on one text.
pub(crate) fn read_back(text: &str) -> Vec<Fact> {
    let mut facts = xfs::sections(text);
    facts.extend(ext::header(text));
    facts.extend(btrfs::lines("space", text));
    facts.extend(
        btrfs::profile_of(text, "Data")
            .iter()
            .map(|profile| Fact::new("profile", *profile)),
    );
    let words: Vec<String> = text.split(',').map(str::to_string).collect();
    let (asked, in_force) = words.split_at(words.len().min(8));
    facts.extend(options::missing(asked, in_force));
    facts.push(Fact::new("scheduler", block::chosen(text)));
    let properties = [zfs::lines(text), zfs::table(text)].concat();
    facts.extend(zfs::facts(&[], &properties));
    facts.extend(zfs::ashift(text).map(|ashift| Fact::new("ashift", ashift.to_string())));
    facts.push(Fact::new("layout", zfs::layout(text, "")));
    facts.extend(bcachefs::options_of(text));
    facts.extend(md::exported(text));
    facts.extend(lvm::reported(text).iter().flatten().map(lvm::Volume::fact));
    facts.extend(guard::pool_of(text).map(|pool| Fact::new("pool", pool)));
    facts.extend(tmpfs::available(text).map(|bytes| Fact::new("free", bytes.to_string())));
    facts
}

#[cfg(test)]
mod tests;
