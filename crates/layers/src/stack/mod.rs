//! What is compared: layers from the devices up to the directory the workload runs in.
//!
//! A layer takes what the one below gives (nothing, or devices) and gives devices or a directory.
//! It is *set up* (each creation journalled before it happens), *described* (read back from the
//! system, never copied from the study), *settled* between trials and *torn down* from the journal
//! alone. What layers share is in `foundation`. A layer is one file or folder here, with its undo, its
//! tools as a plan imagines them, its packages and the stacks it is tested with, and one line in
//! [`ALL`].

mod afp;
mod aged;
mod bcache;
mod bcachefs;
mod btrfs;
mod build;
mod commands;
mod composition;
mod devices;
mod dir;
mod drbd;
mod examined;
mod exfat;
mod ext;
mod f2fs;
mod gfs2;
mod governor;
mod ground;
mod image;
mod iscsi;
mod jfs;
mod lab_disks;
mod loops;
mod lvm;
mod mapped;
mod md;
mod mergerfs;
mod native;
mod nbd;
mod nfs;
mod nilfs2;
mod nvme_tcp;
mod overlay;
mod packed;
mod queue;
mod script;
mod served;
mod smb;
mod standing;
mod sysctl;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::unwrap_used, reason = "tests")]
mod testing;
mod tmpfs;
mod written;
mod xfs;
mod zfs;

pub use commands::ShownCommands;
pub use composition::{Stack, missing};
pub use devices::given_up;
pub use examined::Examined;
pub use ground::{covered, exchanged_below, first_look, looked_again};
pub use script::command_digest;
pub use stackrace_foundation::foundation::LayerError;
pub use stackrace_foundation::foundation::{
    CutOf, Danger, FileData, GivesKind, Inspection, LaidOutData, Layer, LayerCommand, LayerKind,
    Site, StackError, StorageClaim, Takes,
};
#[cfg(any(test, feature = "testing"))]
pub use stackrace_foundation::foundation::{Gives, Setup, StandingLayer};
pub use standing::StandingStack;
#[cfg(any(test, feature = "testing"))]
pub use testing::{ON_MACHINE, guarded_cases, set_up_for_real};

use stackrace_base::event::LayerFacts;
use stackrace_foundation::foundation::{block, line, one_kernel, place};
use stackrace_machine::host::plan::{Fault, PlanHost};
use stackrace_machine::host::{Host, Package};
use stackrace_machine::journal::{
    self, EntryId, Journal, JournalError, Undo, UndoKind, UndoReport,
};
use std::path::Path;
use std::sync::LazyLock;

/// The word of modelled disks, which `run --drive` puts in place of others.
pub const MODELLED_DISKS: &str = lab_disks::KIND.name;

/// Every kind of layer, alphabetical.
pub const ALL: &[LayerKind] = &[
    afp::KIND,
    aged::AGE,
    zfs::BARE,
    bcache::KIND,
    bcachefs::KIND,
    btrfs::KIND,
    zfs::DATASET,
    devices::KIND,
    dir::KIND,
    drbd::KIND,
    packed::EROFS,
    exfat::KIND,
    ext::EXT2,
    ext::EXT3,
    ext::EXT4,
    f2fs::KIND,
    aged::FILL,
    gfs2::KIND,
    governor::KIND,
    image::KIND,
    mapped::INTEGRITY,
    iscsi::KIND,
    jfs::KIND,
    lab_disks::KIND,
    loops::KIND,
    mapped::LUKS,
    lvm::KIND,
    md::KIND,
    mergerfs::KIND,
    native::KIND,
    nbd::KIND,
    nfs::KIND,
    nilfs2::KIND,
    nvme_tcp::KIND,
    overlay::KIND,
    queue::KIND,
    script::KIND,
    smb::KIND,
    packed::SQUASHFS,
    sysctl::KIND,
    tmpfs::KIND,
    mapped::VDO,
    mapped::WRITECACHE,
    xfs::KIND,
    zfs::POOL,
    zfs::VOLUME,
];

/// Block devices that a file, a directory or a device lies on, by their names in `/proc/diskstats`: its
/// own first, then the whole disks below. Empty where there are none, or they cannot be found out.
pub fn devices_under(host: &dyn Host, path: &Path) -> Vec<String> {
    let own = block::kernel_name(host, path);
    let mut devices =
        match path.starts_with("/dev") && host.exists(&Path::new("/sys/class/block").join(&own)) {
            true => vec![own],
            false => host
                .mount_of(path)
                .map_or(Vec::new(), |mount| block::under_mount(host, &mount)),
        };
    for disk in block::disks(host, &devices) {
        if !devices.contains(&disk) {
            devices.push(disk);
        }
    }
    devices
}

/// Facts about what each layer of a standing stack got, and where its data will lie.
pub fn facts(host: &dyn Host, stack: &StandingStack) -> Vec<LayerFacts> {
    let mut facts = stack.facts().to_vec();
    // This process sees the files of its own machine alone.
    if !host.is_here() {
        return facts;
    }
    facts.extend(place::facts(host, stack.directory(), stack.has_mounts()));
    facts
}

/// The ways all layers undo what only their own tools can undo.
pub fn undo_kinds() -> &'static [&'static UndoKind] {
    static KINDS: LazyLock<Vec<&UndoKind>> = LazyLock::new(|| {
        let kinds = ALL.iter().flat_map(|kind| kind.undo);
        kinds
            .chain([&line::CLEAR, &one_kernel::SEVER, &one_kernel::GIVE_UP])
            .collect()
    });
    &KINDS
}

/// Undoes everything that is pending in a journal.
///
/// # Errors
/// As [`journal::undo_all`].
pub fn undo_all(host: &dyn Host, journal: &Journal) -> Result<UndoReport, JournalError> {
    journal::undo_all(host, journal, undo_kinds())
}

/// Returns what is pending in a journal, newest first, checked as before it is undone.
///
/// # Errors
/// As [`journal::undo_all`], before anything is undone.
pub fn check_all(journal: &Journal) -> Result<Vec<Undo>, JournalError> {
    journal::check_all(journal, undo_kinds())
}

/// Undoes those of these entries that are pending in a journal.
///
/// # Errors
/// As [`journal::undo_all`].
pub fn undo_entries(
    host: &dyn Host,
    journal: &Journal,
    ids: &[EntryId],
) -> Result<UndoReport, JournalError> {
    journal::undo_entries(host, journal, ids, undo_kinds())
}

/// An imagined machine that has the programs of all layers, and fails as told.
pub fn imagined(fault: Fault) -> PlanHost {
    let tools = ALL.iter().flat_map(|kind| kind.imagined);
    PlanHost::new(tools.chain(line::IMAGINED).copied().collect(), fault)
}

/// The commands of a layer, from its set-up to its removal, on an imagined machine.
pub fn commands(kind: &LayerKind) -> Option<ShownCommands> {
    commands::of(ALL, kind, &|| imagined(Fault::Never), undo_kinds())
}

/// Finds what a machine has of all that the layers need, without changing anything.
pub fn examined(host: &dyn Host) -> Vec<Examined> {
    examined::of(ALL, host)
}

/// Treatment of data by the file system of that name, as its layer says; of one that no layer
/// makes, nothing is known.
pub fn file_data(file_system: &str) -> FileData {
    let kind = ALL.iter().find(|kind| kind.name == file_system);
    kind.map_or(FileData::UNKNOWN, |kind| kind.data)
}

/// Packages that layers need: those of each layer behind those of the one before.
pub fn packages() -> Vec<Package> {
    let all = ALL.iter().flat_map(|kind| kind.packages);
    all.copied().collect()
}

/// Everything that reads what the tools and the kernel print, on one text.
#[cfg(any(test, feature = "testing"))]
pub fn read_back(text: &str) -> Vec<stackrace_base::event::Fact> {
    use stackrace_base::event::Fact;
    use stackrace_foundation::foundation::{guard, options};
    let of_layers = ALL.iter().flat_map(|kind| kind.reads);
    let mut facts: Vec<Fact> = of_layers.flat_map(|read| read(text)).collect();
    let words: Vec<String> = text.split(',').map(str::to_string).collect();
    let (asked, in_force) = words.split_at(words.len().min(8));
    facts.extend(options::missing(asked, in_force));
    facts.push(Fact::new("scheduler", block::chosen(text)));
    facts.extend(guard::pool_of(text).map(|pool| Fact::new("pool", pool)));
    facts
}

#[cfg(test)]
mod tests;
