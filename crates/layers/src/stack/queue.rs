//! Settings of the queues of block devices, as the kernel has them in `/sys/block`: set on the devices below,
//! read back, and written back when the stack is torn down.

use crate::stack::common::{block, filesystem};
use crate::stack::error::LayerError;
use crate::stack::gives::{DEVICES_MAX, Gives, GivesKind, StandingLayer, Takes};
use crate::stack::layer::{Expected, KillStack, Layer, LayerKind, RealStack, Tried};
use crate::stack::setup::Setup;
use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_machine::host::{Host, HostError, Needs};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The word in a study.
const NAME: &str = "queue";

/// queue-sysfs.rst of the kernel; what each file is called there, and in words.
const SCHEDULER: &str = "scheduler";
const READ_AHEAD: &str = "read_ahead_kb";
const REQUESTS: &str = "nr_requests";
const WRITEBACK: &str = "wbt_lat_usec";
const ROTATIONAL: &str = "rotational";
const FILES: [&str; 5] = [SCHEDULER, READ_AHEAD, REQUESTS, WRITEBACK, ROTATIONAL];

/// Unit of reading ahead.
const PAGE: u64 = 4096;

const CHOSEN: ChoiceDoc<&'static str> = choice!(
    "scheduler",
    [
        "none" => "none",
        "mq-deadline" => "mq-deadline",
        "kyber" => "kyber",
        "bfq" => "bfq",
    ],
    "",
    "The scheduler, one of those that the kernel has.",
);

/// The layer `queue` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "Queue settings of the devices below: set, read back, and written back when the stack goes.",
    settings: &[
        CHOSEN.doc,
        SettingDoc::bytes(
            "read-ahead",
            "",
            "Most bytes read ahead, a multiple of 4 KiB.",
        ),
        SettingDoc::count("requests", "", "How many requests the queue holds."),
        SettingDoc::time(
            "wbt",
            "",
            "Latency that writing back from the page cache keeps reads below; \"0 s\" switches that off.",
        ),
        SettingDoc::flag(
            "rotational",
            "",
            "Whether file systems take the devices for rotating disks.",
        ),
    ],
    takes: Takes::Devices {
        min: 1,
        max: DEVICES_MAX,
    },
    gives: GivesKind::Devices,
    example: "queue = { scheduler = \"none\", read-ahead = \"128 KiB\" }",
    parse,
    undo: &[RESTORE],
    tried: Tried {
        on_devices: &[(1, &["queue = { scheduler = \"none\" }"])],
        shapes: &[&[
            "loop = { size = \"1 GiB\", count = 2 }",
            "queue = { scheduler = \"mq-deadline\", read-ahead = \"1 MiB\", requests = 64, rotational = true }",
            "btrfs = {}",
        ]],
        real: &[RealStack {
            name: NAME,
            layers: &[
                "loop = { size = \"64 MiB\" }",
                "queue = { scheduler = \"none\", read-ahead = \"1 MiB\", rotational = true }",
                "ext4 = {}",
            ],
            device: "loop",
            expected: &[
                (1, "read_ahead_kb", Expected::Is("1024")),
                (1, "rotational", Expected::Is("1")),
                (1, "scheduler", Expected::Is("none")),
            ],
        }],
        kills: &[KillStack::on_one(
            NAME,
            ("64 MiB", 1),
            &["queue = { read-ahead = \"1 MiB\" }", "ext4 = {}"],
        )],
        ..Tried::NOWHERE
    },
    ..LayerKind::EMPTY
};

/// Writes one value back, if it still is what was written: of a device, a file, our value, the value before.
const RESTORE: UndoKind = UndoKind {
    layer: NAME,
    name: "restore",
    params: &[Param::Name, Param::Name, Param::Name, Param::Name],
    undo: restore,
};

fn restore(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let [device, file, ours, before] = [0, 1, 2, 3].map(|at| text(of, at));
    // Nothing else in /sys is written, whatever a journal says.
    let known = FILES.contains(&file);
    let path = place(device, file);
    if known && host.exists(&path) && value(&host.read_text(&path)?) == ours {
        host.write_text(&path, before)?;
    }
    Ok(())
}

fn place(device: &str, file: &str) -> PathBuf {
    Path::new("/sys/block")
        .join(device)
        .join("queue")
        .join(file)
}

/// `[none] mq-deadline` → `none`; other files hold nothing but the value.
fn value(text: &str) -> &str {
    block::chosen(text.trim())
}

struct Queue {
    /// Files and what is written to each, the scheduler first: it resets others.
    values: Vec<(&'static str, String)>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let mut values = Vec::new();
    let chosen = settings.optional_choice(CHOSEN)?;
    values.extend(chosen.map(|name| (SCHEDULER, name.to_owned())));
    if let Some(bytes) = settings.optional_bytes("read-ahead")? {
        if !bytes.is_multiple_of(PAGE) || bytes == 0 {
            return Err(Refusal::at(
                settings.span_of("read-ahead"),
                format!("{bytes} bytes are no whole pages of 4 KiB, to which the kernel rounds"),
                "write read-ahead = \"128 KiB\"",
            ));
        }
        values.push((READ_AHEAD, (bytes / 1024).to_string()));
    }
    if let Some(requests) = settings.optional_count("requests")? {
        if requests < 4 {
            return Err(Refusal::at(
                settings.span_of("requests"),
                format!("the kernel makes no queue of {requests} requests"),
                "write at least 4",
            ));
        }
        values.push((REQUESTS, requests.to_string()));
    }
    if let Some(ns) = settings.optional_time_ns("wbt")? {
        // A part of a microsecond would be cut off, and 0 switches the throttling off.
        if !ns.is_multiple_of(1000) {
            return Err(Refusal::at(
                settings.span_of("wbt"),
                "the kernel takes whole microseconds for wbt",
                "write wbt = \"2 ms\", or \"0 s\" to switch it off",
            ));
        }
        values.push((WRITEBACK, (ns / 1000).to_string()));
    }
    if settings.given("rotational") {
        let flag = settings.flag("rotational")?;
        values.push((ROTATIONAL, u8::from(flag).to_string()));
    }
    if values.is_empty() {
        return Err(Refusal::at(
            &settings.span,
            "queue says nothing of the queue",
            "write queue = { scheduler = \"none\" }, or leave it out",
        ));
    }
    Ok(Box::new(Queue { values }))
}

impl Layer for Queue {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn describe_asked(&self) -> String {
        let each = self.values.iter();
        let each = each.map(|(file, value)| format!("{file} {value}"));
        format!(
            "the queues below with {}",
            each.collect::<Vec<_>>().join(", ")
        )
    }

    fn takes(&self) -> Takes {
        KIND.takes
    }

    fn devices_given(&self) -> Option<usize> {
        Some(1)
    }

    fn passes_devices_on(&self) -> bool {
        true
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        // The upper one would win, and the lower one say what is not so.
        match below.last().is_some_and(|layer| layer.kind() == NAME) {
            true => {
                Err("two layers queue set the same devices: write both settings in one".to_owned())
            }
            false => Ok(()),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            ..Needs::default()
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let mut facts: Vec<Fact> = Vec::new();
        for device in &devices {
            let name = block::kernel_name(setup.host(), &device.path);
            for (file, asked) in &self.values {
                let path = place(&name, file);
                set(setup, &name, file, asked)?;
                let found = setup.host().read_text(&path)?;
                let found = value(&found);
                if found != asked {
                    return Err(LayerError::refused(
                        format!("{file} of {name} is {found} although {asked} was asked"),
                        "ask for a value that the kernel takes as it is",
                    ));
                }
                // All are set alike, and each was looked at.
                if !facts.iter().any(|fact| fact.name == *file) {
                    facts.push(Fact::new(*file, found));
                }
            }
        }
        Ok(StandingLayer::new(NAME, facts, Gives::Devices(devices)))
    }
}

/// Sets one value of a device until the stack is torn down.
fn set(setup: &mut Setup<'_>, device: &str, file: &str, asked: &str) -> Result<(), LayerError> {
    let path = place(device, file);
    let known = setup.host().read_text(&path).map_err(|_| {
        LayerError::refused(
            format!("{device} has no {file} that could be set"),
            "leave it out: this kernel or this device does not have it",
        )
    })?;
    let before = value(&known);
    // Without an entry where nothing changes: undoing would take back what others set meanwhile.
    if before == asked {
        return Ok(());
    }
    let words = [device, file, asked, before].map(OsString::from);
    setup.will(RESTORE.of(words))?;
    setup.host().write_text(&path, asked).map_err(|error| {
        LayerError::refused(
            format!("{file} of {device} cannot be {asked}: {error}"),
            format!("write one that it has: {}", known.trim()),
        )
    })
}

#[cfg(test)]
mod tests {

    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};

    #[test]
    fn what_no_queue_takes_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("queue = {}", "says nothing"),
            ("queue = { read-ahead = \"5 KiB\" }", "no whole pages"),
            ("queue = { requests = 3 }", "no queue of 3"),
            ("queue = { scheduler = \"cfq\" }", "cfq"),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
    }

    #[test]
    fn as_many_devices_are_above_as_below() {
        let queue = "queue = { scheduler = \"none\" }";
        let two = "loop = { size = \"1 GiB\", count = 2 }";
        assert!(Stack::new([two, queue, "btrfs = {}"].map(layer).into()).is_ok());
        let (at, why) = Stack::new([two, queue, "ext4 = {}"].map(layer).into())
            .err()
            .unwrap();
        assert_eq!(at, 2);
        assert!(why.ends_with("gives 2"), "{why}");
    }
}
