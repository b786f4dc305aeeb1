//! Parameters of the kernel as sysctl(8) sets them: set on the machine that the stack stands on, read back, and
//! written back when the stack is torn down.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{Kind, Refusal, SettingDoc, Settings};
use stackrace_foundation::foundation::parameter::{self, AskedParameter, OfMachine, SetsMachine};
use stackrace_foundation::foundation::{
    Danger, GivesKind, Layer, LayerError, LayerKind, Setup, Takes,
};
use stackrace_machine::host::{Host, HostError};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The word in a study.
const NAME: &str = "sysctl";

/// Where the kernel keeps them.
const KERNEL: &str = "/proc/sys";

/// Sysctls that a study may set: vm.rst and net.rst of the kernel (admin-guide/sysctl). Not on the list is what
/// says who may do what, what the machine does when it fails, and what other programs of it could not bear.
const SETTINGS: &[SettingDoc] = &[
    SettingDoc::bytes(
        "vm.dirty_bytes",
        "",
        "Dirty bytes at which a program that writes has to write back itself; at least 8 KiB.",
    ),
    SettingDoc::count(
        "vm.dirty_ratio",
        "",
        "The same as percents of the memory that can be dirty.",
    ),
    SettingDoc::bytes(
        "vm.dirty_background_bytes",
        "",
        "Dirty bytes at which the kernel begins to write back.",
    ),
    SettingDoc::count(
        "vm.dirty_background_ratio",
        "",
        "The same as percents of the memory that can be dirty.",
    ),
    SettingDoc::count(
        "vm.dirty_expire_centisecs",
        "",
        "Age at which dirty data are written back, hundredths of a second.",
    ),
    SettingDoc::count(
        "vm.dirty_writeback_centisecs",
        "",
        "How often the kernel looks for them, hundredths of a second; 0: never.",
    ),
    SettingDoc::count(
        "vm.dirtytime_expire_seconds",
        "",
        "Age at which a file's times alone are written back, seconds.",
    ),
    SettingDoc::count(
        "vm.swappiness",
        "",
        "0 to 200: how readily memory of programs is swapped out before the page cache shrinks.",
    ),
    SettingDoc::count(
        "vm.vfs_cache_pressure",
        "",
        "Percents: how readily cached names and inodes are dropped; 100 is the kernel's own.",
    ),
    SettingDoc::count(
        "vm.page-cluster",
        "",
        "Pages read from swap at once, as a power of two.",
    ),
    SettingDoc::bytes(
        "net.core.rmem_max",
        "",
        "Most bytes of a socket's buffer for what it receives.",
    ),
    SettingDoc::bytes(
        "net.core.wmem_max",
        "",
        "Most bytes of a socket's buffer for what it sends.",
    ),
];

/// Least and most of each, in the order of [`SETTINGS`]. The kernel takes a ratio and a pressure of 0, and then hardly
/// works.
const LIMITS: [(u64, u64); 12] = [
    (8 << 10, u64::MAX),
    (1, 100),
    (1, u64::MAX),
    (1, 100),
    (1, INT_MAX),
    (0, INT_MAX),
    (0, INT_MAX),
    (0, 200),
    (1, INT_MAX),
    (0, 31),
    (4 << 10, INT_MAX),
    (8 << 10, INT_MAX),
];

/// Most that the kernel keeps in most of them.
const INT_MAX: u64 = i32::MAX as u64;

/// Pairs of which the kernel sets one to 0 when the other is written: then 0 cannot be written back.
const PAIRS: [[&str; 2]; 2] = [
    ["vm.dirty_bytes", "vm.dirty_ratio"],
    ["vm.dirty_background_bytes", "vm.dirty_background_ratio"],
];

/// The layer `sysctl` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "Parameters of the kernel (sysctl), set while the stack stands.",
    settings: SETTINGS,
    takes: Takes::Anything,
    gives: GivesKind::Directory,
    example: "sysctl = { \"vm.dirty_bytes\" = \"64 MiB\" }",
    parse,
    undo: &[WRITE_BACK, WRITE_BACK_SINCE],
    shapes: &[
        &[
            "loop = { size = \"1 GiB\", count = 2 }",
            "sysctl = { \"vm.dirty_bytes\" = \"64 MiB\", \"vm.dirty_background_bytes\" = \"16 MiB\" }",
            "btrfs = {}",
        ],
        &[
            "tmpfs = { size = \"1 MiB\" }",
            "sysctl = { \"vm.swappiness\" = 10 }",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// Writes a sysctl back, if another one, or the same, still is what was written: of a name, our value, the name
/// to write, its value.
const WRITE_BACK: UndoKind = UndoKind {
    layer: NAME,
    name: "write-back",
    params: &[Param::Name, Param::Name, Param::Name, Param::Name],
    undo: write_back,
};

/// The same with a proof that the machine was not started since, which comes first.
const WRITE_BACK_SINCE: UndoKind = UndoKind {
    name: "write-back-since-start",
    params: &[
        Param::Path,
        Param::Name,
        Param::Name,
        Param::Name,
        Param::Name,
    ],
    undo: |host, of| parameter::since_start(host, of, write_back),
    ..WRITE_BACK
};

fn write_back(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let [name, ours, to, before] = [0, 1, 2, 3].map(|at| text(of, at));
    // Nothing else below /proc/sys is written, whatever a journal says.
    match [name, to].iter().all(|name| is_known(name)) {
        true => parameter::write_back(host, (&place(name), ours), (&place(to), before)),
        false => Ok(()),
    }
}

fn is_known(name: &str) -> bool {
    SETTINGS.iter().any(|doc| doc.name == name)
}

/// `vm.swappiness` → `/proc/sys/vm/swappiness`.
fn place(name: &str) -> PathBuf {
    Path::new(KERNEL).join(name.replace('.', "/"))
}

struct Sysctl {
    values: Vec<(&'static str, String)>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let mut values: Vec<(&'static str, u64)> = Vec::new();
    for (doc, (least, most)) in SETTINGS.iter().zip(LIMITS) {
        // Sizes may be given with a unit; the kernel has all as numbers.
        let value = match doc.kind {
            Kind::Bytes => settings.optional_bytes(doc.name)?,
            _ => settings.optional_count(doc.name)?,
        };
        if let Some(value) = value {
            let value = settings.within(doc.name, value, least..=most)?;
            values.push((doc.name, value));
        }
    }
    if values.is_empty() {
        return Err(Refusal::at(
            &settings.span,
            "sysctl sets nothing",
            "write sysctl = { \"vm.swappiness\" = 10 }, or leave it out",
        ));
    }
    // Each alone may be right, and two of them not.
    let given = |name: &str| values.iter().find(|(known, _)| *known == name);
    for [bytes, ratio] in PAIRS {
        if given(bytes).is_some() && given(ratio).is_some() {
            return Err(settings.refuse(
                ratio,
                format!(
                    "the kernel keeps one of {bytes} and {ratio}: the one that is written last"
                ),
                "leave one of them out",
            ));
        }
        // The kernel takes it, and goes by half of the other value.
        for name in [bytes, ratio] {
            let of_writers = name.replace("_background", "");
            let (Some((_, begins)), Some((_, stops))) = (given(name), given(&of_writers)) else {
                continue;
            };
            if name != of_writers && begins >= stops {
                return Err(settings.refuse(
                    name,
                    format!("with {name} = {begins} and {of_writers} = {stops} the kernel takes half of the second in place of the first"),
                    format!("write a {name} below {stops}"),
                ));
            }
        }
    }
    let values = values.into_iter();
    Ok(Box::new(OfMachine(Sysctl {
        values: values
            .map(|(name, value)| (name, value.to_string()))
            .collect(),
    })))
}

impl SetsMachine for Sysctl {
    const KIND: &'static LayerKind = &KIND;
    const ONE: &'static str = "two layers sysctl set the same machine: write both in one";

    fn asked(&self) -> String {
        let each = self
            .values
            .iter()
            .map(|(name, value)| format!("{name} = {value}"));
        format!("the kernel with {}", each.collect::<Vec<_>>().join(", "))
    }

    fn dangers(&self, host: &dyn Host) -> Vec<Danger> {
        let refused = |what: String, next: &str| Danger::Refused(LayerError::refused(what, next));
        // Containers often see them and may not set them, root or not.
        let read_only = host
            .mount_of(Path::new(KERNEL))
            .is_ok_and(|mount| mount.options.iter().any(|option| option == "ro"));
        if read_only {
            return vec![refused(
                format!("{KERNEL} may only be read here"),
                "run the study outside of the container, or with --lab",
            )];
        }
        // All that are missing at once: a user who corrects a study wants the whole list.
        let names = self.values.iter().map(|(name, _)| *name);
        let lacking = names.filter(|name| !host.exists(&place(name)));
        lacking
            .map(|name| {
                refused(
                    format!("this kernel has no {name}"),
                    "leave it out, or run the study with --lab",
                )
            })
            .collect()
    }

    fn set(&self, setup: &mut Setup<'_>) -> Result<Vec<Fact>, LayerError> {
        let mut facts = Vec::new();
        for (name, value) in &self.values {
            set(setup, name, value)?;
            facts.push(Fact::new(*name, value.clone()));
        }
        Ok(facts)
    }
}

/// Sets one until the stack is torn down.
fn set(setup: &mut Setup<'_>, name: &str, value: &str) -> Result<(), LayerError> {
    let proof = setup.prove(NAME)?;
    let host = setup.host();
    let asked = AskedParameter {
        name: name.to_owned(),
        path: place(name),
        value,
    };
    asked.set(setup, |before| {
        let (to, before) = counterpart(host, name, before)?;
        let [name, value, to, before] = [name, value, to, &before].map(OsString::from);
        let words = [proof.into(), name, value, to, before];
        Ok(Some(WRITE_BACK_SINCE.of(words).into()))
    })
}

/// What brings back the state before: the value itself, or that of its counterpart where it was 0.
fn counterpart<'a>(
    host: &dyn Host,
    name: &'a str,
    before: &str,
) -> Result<(&'a str, String), HostError> {
    let pair = PAIRS.into_iter().find(|pair| pair.contains(&name));
    match pair.map(|pair| pair[usize::from(pair[0] == name)]) {
        Some(other) if before == "0" => Ok((other, parameter::now(host, &place(other))?)),
        _ => Ok((name, before.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::{layer, site, stack, try_layer};
    use stackrace_machine::host::Filling;
    use stackrace_machine::host::plan::Fault;
    use stackrace_machine::journal::Journal;

    #[test]
    fn what_no_kernel_keeps_is_refused_before_anything_is_set() {
        for (line, said) in [
            ("sysctl = {}", "sets nothing"),
            ("sysctl = { \"vm.dirty_ratio\" = 101 }", "between 1 and 100"),
            ("sysctl = { \"kernel.panic\" = 1 }", "kernel.panic"),
            (
                "sysctl = { \"vm.dirty_bytes\" = \"64 MiB\", \"vm.dirty_ratio\" = 10 }",
                "keeps one of",
            ),
            (
                "sysctl = { \"vm.dirty_ratio\" = 10, \"vm.dirty_background_ratio\" = 10 }",
                "takes half",
            ),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
        let swap = "sysctl = { \"vm.swappiness\" = 1 }";
        let twice = ["tmpfs = { size = \"1 MiB\" }", swap, swap].map(layer);
        assert!(
            Stack::new(twice.into())
                .err()
                .unwrap()
                .1
                .contains("write both in one")
        );
        let (at, why) = Stack::new([swap].map(layer).into()).err().unwrap();
        assert_eq!(at, 0);
        assert!(why.contains("put it on loop"), "{why}");
    }

    /// 0 is no value that could be written there: the kernel sets it when the ratio is written.
    #[test]
    fn what_was_a_ratio_is_one_again() {
        let scratch = tempfile::tempdir().unwrap();
        let host = crate::stack::imagined(Fault::Never);
        for (name, value) in [("vm.dirty_bytes", "0"), ("vm.dirty_ratio", "20")] {
            host.write_text(&place(name), value).unwrap();
        }
        let journal = Journal::nowhere();
        let site = site(&host, &journal, scratch.path());
        let shape = stack(&[
            "tmpfs = { size = \"1 MiB\" }",
            "sysctl = { \"vm.dirty_bytes\" = \"64 MiB\" }",
        ]);
        let standing = shape.set_up(&site).unwrap();
        standing.tear_down(&site).unwrap();
        let steps: Vec<String> = host.steps().iter().map(|step| step.shown()).collect();
        let back = "echo 20 '>' /proc/sys/vm/dirty_ratio";
        assert!(steps.iter().any(|step| step.ends_with(back)), "{steps:#?}");
        assert!(
            !steps[2..].iter().any(|step| step.starts_with("echo 0 ")),
            "{steps:#?}"
        );
    }

    /// The machine has set its values anew by then.
    #[test]
    fn nothing_is_written_back_after_a_restart() {
        let host = crate::stack::imagined(Fault::Never);
        let swappiness = place("vm.swappiness");
        host.write_text(&swappiness, "10").unwrap();
        let proof = Path::new("/run/.stackrace-{id}-sysctl");
        let [name, ours, before] = ["vm.swappiness", "10", "60"].map(OsString::from);
        let of = [proof.into(), name.clone(), ours, name, before];
        (WRITE_BACK_SINCE.undo)(&host, &of).unwrap();
        assert_eq!(host.read_text(&swappiness).unwrap(), "10");
        host.create_dir(Path::new("/run")).ok();
        host.create_file(proof, 0, Filling::Sparse).unwrap();
        (WRITE_BACK_SINCE.undo)(&host, &of).unwrap();
        assert_eq!(host.read_text(&swappiness).unwrap(), "60");
    }

    #[test]
    fn nothing_but_a_sysctl_of_the_list_is_written_back() {
        let host = crate::stack::imagined(Fault::Never);
        let of = ["vm.swappiness", "1", "kernel.panic", "1"].map(OsString::from);
        host.write_text(&place("vm.swappiness"), "1").unwrap();
        (WRITE_BACK.undo)(&host, &of).unwrap();
        assert_eq!(host.steps().len(), 1);
    }
}
