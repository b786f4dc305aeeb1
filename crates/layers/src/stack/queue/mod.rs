//! Settings of the queues of block devices, as the kernel has them in `/sys/block`: set on the devices below,
//! read back, and written back when the stack is torn down.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_foundation::foundation::parameter::{self, AskedParameter};
use stackrace_foundation::foundation::{
    Gives, GivesKind, Layer, LayerError, LayerKind, Setup, StandingLayer, Takes, block, filesystem,
};
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

/// Requests that a loop device itself holds (`hw_queue_depth` of the driver); a scheduler may hold more.
const LOOP_DEPTH: u64 = 128;

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
    takes: Takes::at_least(1),
    gives: GivesKind::Devices,
    example: "queue = { scheduler = \"none\", read-ahead = \"128 KiB\" }",
    parse,
    undo: &[RESTORE, RESCHEDULE, RESTORE_SINCE, RESCHEDULE_SINCE],
    shapes: &[&[
        "loop = { size = \"1 GiB\", count = 2 }",
        "queue = { scheduler = \"mq-deadline\", read-ahead = \"1 MiB\", requests = 64, rotational = true }",
        "btrfs = {}",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// Writes one value back, if it still is what was written: of a device, a file, our value, the value before.
const RESTORE: UndoKind = UndoKind::new(
    NAME,
    "restore",
    &[Param::Name, Param::Name, Param::Name, Param::Name],
    restore,
);

/// Brings a scheduler back, and then what changes with it: of a device, our scheduler, the one before, the
/// requests and the latency before.
const RESCHEDULE: UndoKind = UndoKind::new(
    NAME,
    "restore-scheduler",
    &[
        Param::Name,
        Param::Name,
        Param::Name,
        Param::Name,
        Param::Name,
    ],
    reschedule,
);

/// As [`RESTORE`], with a proof that the machine was not started since, which comes first.
const RESTORE_SINCE: UndoKind = UndoKind::new(
    NAME,
    "restore-since-start",
    &[
        Param::Path,
        Param::Name,
        Param::Name,
        Param::Name,
        Param::Name,
    ],
    |host, of| parameter::since_start(host, of, restore),
);

/// As [`RESCHEDULE`], with such a proof.
const RESCHEDULE_SINCE: UndoKind = UndoKind::new(
    NAME,
    "restore-scheduler-since-start",
    &[
        Param::Path,
        Param::Name,
        Param::Name,
        Param::Name,
        Param::Name,
        Param::Name,
    ],
    |host, of| parameter::since_start(host, of, reschedule),
);

/// Values that the kernel sets anew when the scheduler changes.
const RESET: [&str; 2] = [REQUESTS, WRITEBACK];

/// Stands in an entry for a value that the device does not have.
const ABSENT: &str = "absent";

fn restore(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let [device, file, ours, before] = [0, 1, 2, 3].map(|at| text(of, at));
    // Nothing else in /sys is written, whatever a journal says.
    if !FILES.contains(&file) {
        return Ok(());
    }
    let path = place(device, file);
    parameter::write_back(host, (&path, ours), (&path, before))
}

fn reschedule(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let [device, ours, before] = [0, 1, 2].map(|at| text(of, at));
    let path = place(device, SCHEDULER);
    parameter::write_back(host, (&path, ours), (&path, before))?;
    // With a scheduler of others since, the rest is theirs too.
    if !host.exists(&path) || parameter::now(host, &path)? != before {
        return Ok(());
    }
    // Behind the scheduler: it may be the only one that takes so many.
    for (file, before) in RESET.into_iter().zip([3, 4].map(|at| text(of, at))) {
        let path = place(device, file);
        if before != ABSENT && parameter::now(host, &path)? != before {
            host.write_text(&path, before)?;
        }
    }
    Ok(())
}

fn place(device: &str, file: &str) -> PathBuf {
    Path::new(block::DISKS)
        .join(device)
        .join("queue")
        .join(file)
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
                format!(
                    "{bytes} bytes is not a whole number of pages of 4 KiB, and the kernel would round it"
                ),
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
            "queue sets nothing",
            "write queue = { scheduler = \"none\" }, or leave it out",
        ));
    }
    Ok(Box::new(Queue { values }))
}

impl Layer for Queue {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        let each = self.values.iter();
        let each = each.map(|(file, value)| format!("{file} {value}"));
        format!(
            "the queues below with {}",
            each.collect::<Vec<_>>().join(", ")
        )
    }

    fn passes_devices_on(&self) -> bool {
        true
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        // The upper one would win, and the lower one say what is not so.
        let kind = below.last().map(|layer| layer.kind());
        if kind == Some(NAME) {
            return Err(
                "two layers queue set the same devices: write both settings in one".to_owned(),
            );
        }
        let asked = |file: &str| self.values.iter().find(|(known, _)| *known == file);
        let requests = asked(REQUESTS).and_then(|(_, value)| value.parse::<u64>().ok());
        let bare = asked(SCHEDULER).is_some_and(|(_, value)| value == "none");
        match kind == Some("loop") && bare && requests > Some(LOOP_DEPTH) {
            true => Err(format!(
                "without a scheduler a loop device holds {LOOP_DEPTH} requests: write requests = {LOOP_DEPTH}, or another scheduler"
            )),
            false => Ok(()),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            ..Needs::default()
        }
    }

    fn returns(&self) -> bool {
        true
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let mut facts: Vec<Fact> = Vec::new();
        for device in &devices {
            let name = block::kernel_name(setup.host(), &device.path);
            // What a change of the scheduler resets is written back with it, and not by itself.
            let mut switched = false;
            for (file, asked) in &self.values {
                let path = place(&name, file);
                let before = parameter::now(setup.host(), &path).ok();
                set(setup, &name, (file, asked), switched)?;
                switched |= *file == SCHEDULER && before.as_deref() != Some(asked);
                // All are set alike, and each was looked at.
                if !facts.iter().any(|fact| fact.name == *file) {
                    facts.push(Fact::new(*file, asked.clone()));
                }
            }
        }
        Ok(StandingLayer::new(NAME, facts, Gives::Devices(devices)))
    }
}

/// Sets one value of a device until the stack is torn down; `switched` if its scheduler was changed before.
fn set(
    setup: &mut Setup<'_>,
    device: &str,
    (file, value): (&'static str, &str),
    switched: bool,
) -> Result<(), LayerError> {
    let asked = AskedParameter {
        name: format!("{file} of {device}"),
        path: place(device, file),
        value,
    };
    let proof = setup.prove(NAME)?;
    let host = setup.host();
    asked.set(setup, |before| {
        if file == SCHEDULER {
            let [requests, latency] = RESET.map(|file| {
                let now = parameter::now(host, &place(device, file));
                now.unwrap_or_else(|_| ABSENT.to_owned())
            });
            let [device, value, before, requests, latency] =
                [device, value, before, &requests, &latency].map(OsString::from);
            let words = [proof.into(), device, value, before, requests, latency];
            return Ok(Some(RESCHEDULE_SINCE.of(words).into()));
        }
        // What the old scheduler had comes back with it.
        if switched && RESET.contains(&file) {
            return Ok(None);
        }
        let [device, file, value, before] = [device, file, value, before].map(OsString::from);
        let words = [proof.into(), device, file, value, before];
        Ok(Some(RESTORE_SINCE.of(words).into()))
    })
}

#[cfg(test)]
mod tests {

    use crate::stack::Stack;
    use crate::stack::testing::{layer, site, stack, try_layer};
    use stackrace_machine::host::plan::Fault;
    use stackrace_machine::journal::Journal;

    #[test]
    fn what_no_queue_takes_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("queue = {}", "sets nothing"),
            (
                "queue = { read-ahead = \"5 KiB\" }",
                "not a whole number of pages",
            ),
            ("queue = { requests = 3 }", "no queue of 3"),
            ("queue = { scheduler = \"cfq\" }", "cfq"),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
    }

    /// Requests of the scheduler before are not taken by ours: it goes first.
    #[test]
    fn the_scheduler_is_written_back_before_the_requests() {
        let scratch = tempfile::tempdir().unwrap();
        let host = crate::stack::imagined(Fault::Never);
        let journal = Journal::nowhere();
        let site = site(&host, &journal, scratch.path());
        let queue = "queue = { scheduler = \"none\", requests = 64 }";
        let shape = stack(&["loop = { size = \"1 GiB\" }", queue, "ext4 = {}"]);
        let standing = shape.set_up(&site).unwrap();
        standing.tear_down(&site).unwrap();
        let steps: Vec<String> = host.steps().iter().map(|step| step.shown()).collect();
        let written = steps.iter().filter(|step| step.starts_with("echo "));
        let ends: Vec<&str> = written.filter_map(|step| step.rsplit('/').next()).collect();
        let files = ["scheduler", "nr_requests", "scheduler", "nr_requests"];
        assert_eq!(ends.len(), 4, "{steps:#?}");
        assert!(
            ends.iter()
                .zip(files)
                .all(|(end, file)| end.starts_with(file)),
            "{ends:?}"
        );
    }

    #[test]
    fn as_many_devices_are_above_as_below() {
        let queue = "queue = { scheduler = \"none\" }";
        let many = "queue = { scheduler = \"none\", requests = 129 }";
        let on_loop = ["loop = { size = \"1 GiB\" }", many, "ext4 = {}"].map(layer);
        let (_, why) = Stack::new(on_loop.into()).err().unwrap();
        assert!(why.contains("holds 128 requests"), "{why}");
        let two = "loop = { size = \"1 GiB\", count = 2 }";
        assert!(Stack::new([two, queue, "btrfs = {}"].map(layer).into()).is_ok());
        let (at, why) = Stack::new([two, queue, "ext4 = {}"].map(layer).into())
            .err()
            .unwrap();
        assert_eq!(at, 2);
        assert!(why.ends_with("gives 2"), "{why}");
    }
}
