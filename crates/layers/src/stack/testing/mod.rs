//! Layers with the real tools, on this machine: each test says what is missing where it cannot run.
//!
//! Rust's test harness cannot ignore a test while it runs, so these are a list, which
//! `tests/machine.rs` runs and reports.

mod between;
mod disk_users;
mod guard_table;
mod guarded;
mod layers;
mod pools;
mod repointed;
mod second;

use super::*;
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, Settings};
use stackrace_foundation::foundation::{Expected, RealStack};
use stackrace_machine::host::Host;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::journal::Journal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Nothing if the test ran, else what it needs and this machine lacks.
pub(super) type Ended = Result<(), String>;

/// A test's name, and the test.
pub(super) type NamedTest = (&'static str, fn() -> Ended);

/// A test that is one case of a table.
pub(super) type NamedCase = (String, Box<dyn Fn() -> Ended + Send>);

/// Everything that may be on a disk or use it.
pub use guard_table::cases as guarded_cases;

/// Tests of more than one layer, by name; those of a single one are its own ([`RealStack`]).
pub const ON_MACHINE: &[NamedTest] = &[
    (
        "guarded::a_physical_volume_alone_and_in_a_group",
        guarded::a_physical_volume_alone_and_in_a_group,
    ),
    (
        "guarded::two_file_systems_at_once",
        guarded::two_file_systems_at_once,
    ),
    ("guarded::an_encrypted_device", guarded::an_encrypted_device),
    (
        "guarded::a_member_of_an_array",
        guarded::a_member_of_an_array,
    ),
    ("guarded::partition_tables", guarded::partition_tables),
    ("guarded::a_pool", guarded::a_pool),
    (
        "guarded::what_is_in_use_is_refused_with_permission_too",
        guarded::what_is_in_use_is_refused_with_permission_too,
    ),
    (
        "guarded::another_disk_than_the_one_named_is_refused",
        guarded::another_disk_than_the_one_named_is_refused,
    ),
    (
        "guarded::a_disk_is_blank_again_when_its_stack_is_lowered",
        guarded::a_disk_is_blank_again_when_its_stack_is_lowered,
    ),
    (
        "guarded::what_was_made_by_others_since_is_left_alone",
        guarded::what_was_made_by_others_since_is_left_alone,
    ),
    (
        "guarded::an_id_that_leads_elsewhere_after_the_check",
        repointed::an_id_that_leads_elsewhere_after_the_check,
    ),
    (
        "guarded::an_id_that_is_pointed_to_and_fro_during_40_set_ups",
        repointed::an_id_that_is_pointed_to_and_fro_during_40_set_ups,
    ),
    (
        "guarded::what_others_do_between_check_and_format",
        between::what_others_do_between_check_and_format,
    ),
    (
        "guarded::a_disk_that_changes_before_its_stack_stands",
        between::a_disk_that_changes_before_its_stack_stands,
    ),
    (
        "guarded::a_disk_that_is_opened_while_it_is_wiped",
        between::a_disk_that_is_opened_while_it_is_wiped,
    ),
    (
        "guarded::what_is_in_use_is_not_given_back",
        between::what_is_in_use_is_not_given_back,
    ),
    (
        "guarded::a_path_that_leads_to_another_disk_meanwhile",
        between::a_path_that_leads_to_another_disk_meanwhile,
    ),
    (
        "guarded::two_ids_of_one_disk",
        repointed::two_ids_of_one_disk,
    ),
    (
        "guarded::a_disk_is_held_until_its_stack_is_torn_down",
        repointed::a_disk_is_held_until_its_stack_is_torn_down,
    ),
    ("guarded::ext2", || {
        guarded::recognised(
            &["mkfs.ext2"],
            "mkfs.ext2 -q -L photos DEVICE",
            "ext2 \"photos\"",
        )
    }),
    ("guarded::ext3", || {
        guarded::recognised(&["mkfs.ext3"], "mkfs.ext3 -q DEVICE", "ext3")
    }),
    ("guarded::ext4", || {
        guarded::recognised(&["mkfs.ext4"], "mkfs.ext4 -q DEVICE", "ext4")
    }),
    ("guarded::xfs", || {
        guarded::recognised(&["mkfs.xfs"], "mkfs.xfs -q DEVICE", "xfs")
    }),
    ("guarded::btrfs", || {
        guarded::recognised(&["mkfs.btrfs"], "mkfs.btrfs -q DEVICE", "btrfs")
    }),
    ("guarded::f2fs", || {
        guarded::recognised(&["mkfs.f2fs"], "mkfs.f2fs -q DEVICE", "f2fs")
    }),
    ("guarded::swap", || {
        guarded::recognised(&["mkswap"], "mkswap DEVICE", "swap")
    }),
    (
        "layers::an_existing_directory_needs_no_root",
        layers::an_existing_directory_needs_no_root,
    ),
    (
        "layers::a_stack_whose_program_died_is_undone_from_the_journal",
        layers::a_stack_whose_program_died_is_undone_from_the_journal,
    ),
    (
        "layers::a_refused_option_is_an_error_and_nothing_is_left",
        layers::a_refused_option_is_an_error_and_nothing_is_left,
    ),
    (
        "layers::a_relative_path_leads_a_formatting_tool_nowhere",
        layers::a_relative_path_leads_a_formatting_tool_nowhere,
    ),
    (
        "layers::a_busy_stack_is_not_forced_down",
        layers::a_busy_stack_is_not_forced_down,
    ),
    (
        "layers::odd_paths_are_raised_and_undone",
        layers::odd_paths_are_raised_and_undone,
    ),
    ("pools::every_topology", pools::every_topology),
    (
        "pools::properties_are_read_back",
        pools::properties_are_read_back,
    ),
    (
        "pools::log_and_cache_take_the_last_devices",
        pools::log_and_cache_take_the_last_devices,
    ),
    (
        "pools::a_property_that_is_refused_leaves_nothing",
        pools::a_property_that_is_refused_leaves_nothing,
    ),
    (
        "pools::another_ashift_than_asked_is_an_error",
        pools::another_ashift_than_asked_is_an_error,
    ),
    (
        "pools::a_pool_whose_program_died_is_undone_from_the_journal",
        pools::a_pool_whose_program_died_is_undone_from_the_journal,
    ),
    (
        "pools::a_file_system_on_a_volume",
        pools::a_file_system_on_a_volume,
    ),
    (
        "second::the_second_machine_has_a_name_of_its_own",
        second::the_second_machine_has_a_name_of_its_own,
    ),
    (
        "smb::one_client_at_one_address",
        smb::testing::one_client_at_one_address,
    ),
];

/// Sets one stack of a layer up, uses it, and checks what was read back.
pub fn set_up_for_real(real: RealStack) -> Ended {
    whole_life(real.layers, |standing| {
        let device = standing.devices().first();
        let name = device.map_or("", String::as_str);
        assert!(name.starts_with(real.device), "{name}");
        assert_eq!(device.is_none(), real.device.is_empty());
        for (layer, name, expected) in real.expected {
            let facts = &standing.facts()[*layer].facts;
            let found = Fact::value_of(facts, name);
            let is_so = match expected {
                Expected::Is(value) => found == Some(*value),
                Expected::Has(words) => found.is_some_and(|found| found.contains(words)),
                Expected::Lacks(words) => found.is_some_and(|found| !found.contains(words)),
                Expected::There => found.is_some(),
                Expected::Absent => found.is_none(),
            };
            assert!(is_so, "{name} is {found:?}, and {expected:?}: {facts:#?}");
        }
    })
}

/// Settings from one line of TOML, the way a study gives them.
pub(super) fn settings(line: &str) -> Settings {
    written::settings(ALL, line).unwrap()
}

pub(super) fn try_layer(line: &str) -> Result<Box<dyn Layer>, Refusal> {
    written::layer(ALL, line)
}

pub(super) fn layer(line: &str) -> Box<dyn Layer> {
    try_layer(line).unwrap()
}

pub(super) fn stack(lines: &[&str]) -> Stack {
    Stack::new(lines.iter().map(|line| layer(line)).collect()).unwrap()
}

pub(super) fn site<'a>(host: &'a dyn Host, journal: &'a Journal, scratch: &Path) -> Site<'a> {
    Site {
        host,
        journal,
        scratch: scratch.to_path_buf(),
        tag: "r1-t0".to_string(),
        seed: 7,
        wipe: &[],
        undo: undo_kinds(),
        interrupt: None,
    }
}

/// A scratch directory that shows what was left in it.
pub(super) struct Ground {
    _base: tempfile::TempDir,
    pub(super) scratch: PathBuf,
    pub(super) host: LocalHost,
}

/// A place for this stack, or what this machine lacks for it.
pub(super) fn ground(stack: &Stack) -> Result<Ground, String> {
    let host = LocalHost::new(Arc::new(|_| {}));
    let missing = stack
        .layers
        .iter()
        .flat_map(|layer| host.missing(&layer.needs()))
        .next();
    if let Some(missing) = missing {
        return Err(missing.to_string());
    }
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap().join("mnt");
    std::fs::create_dir(&scratch).unwrap();
    Ok(Ground {
        _base: base,
        scratch,
        host,
    })
}

impl Ground {
    pub(super) fn journal(&self) -> PathBuf {
        self.scratch.with_file_name("journal.jsonl")
    }

    /// No mount, no loop device, no file of this test is there any more.
    pub(super) fn assert_nothing_left(&self) {
        let mounts = self.host.mounts().unwrap();
        assert!(
            mounts
                .iter()
                .all(|m| !m.mount_point.starts_with(&self.scratch))
        );
        for name in self.host.list(Path::new("/sys/block")).unwrap() {
            let file = Path::new("/sys/block").join(name).join("loop/backing_file");
            let file = self.host.read_text(&file).unwrap_or_default();
            assert!(!Path::new(&file).starts_with(&self.scratch), "{file}");
        }
        assert_eq!(self.host.list(&self.scratch).unwrap(), [""; 0]);
    }
}

pub(super) fn value<'a>(facts: &'a [Fact], name: &str) -> &'a str {
    Fact::value_of(facts, name).unwrap_or_else(|| panic!("no {name} in {facts:#?}"))
}

/// Sets a stack up, checks it, writes, settles with a remount, reads back, tears it down.
pub(super) fn whole_life(lines: &[&str], look: impl FnOnce(&StandingStack)) -> Ended {
    let stack = stack(lines);
    let ground = ground(&stack)?;
    let journal = Journal::create(&ground.journal()).unwrap();
    let site = site(&ground.host, &journal, &ground.scratch);
    let standing = stack.set_up(&site).unwrap();
    let directory = standing.directory().to_path_buf();
    assert_eq!(ground.host.list(&directory).unwrap(), [""; 0]);
    assert_eq!(standing.facts().len(), lines.len());
    look(&standing);
    std::fs::write(directory.join("data"), vec![7; 100_000]).unwrap();
    let settled = standing.settle(&site, false, true).unwrap();
    let in_memory = lines[0].starts_with("tmpfs");
    let ours = !lines[0].starts_with("dir");
    assert_eq!(settled.remounted, ours && !in_memory);
    assert_eq!(settled.caches, "none");
    assert_eq!(
        std::fs::read(directory.join("data")).unwrap(),
        vec![7; 100_000]
    );
    // The directory itself: a path by a descriptor may lead to what another thread opens next.
    let there = directory.canonicalize().unwrap();
    standing.tear_down(&site).unwrap();
    assert!(!there.exists());
    assert!(journal.pending().is_empty());
    ground.assert_nothing_left();
    Ok(())
}
