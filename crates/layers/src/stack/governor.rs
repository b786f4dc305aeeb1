//! The governor of the processors' clock (cpufreq): set on every processor, read back, and written back when the
//! stack is torn down.

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, choice};
use stackrace_foundation::foundation::parameter::{self, AskedParameter, OfMachine, SetsMachine};
use stackrace_foundation::foundation::{Danger, GivesKind, LayerError, LayerKind, Setup, Takes};
use stackrace_machine::host::{Host, HostError};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The word in a study.
const NAME: &str = "governor";

/// Processors that the machine may have, as `0-7`.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// The governor that leaves the clock to the user.
const OF_THE_USER: &str = "userspace";

/// cpufreq.rst of the kernel (admin-guide/pm).
const CHOSEN: ChoiceDoc<&'static str> = choice!(
    "name",
    [
        "performance" => "performance",
        "powersave" => "powersave",
        "ondemand" => "ondemand",
        "conservative" => "conservative",
        "schedutil" => "schedutil",
    ],
    "performance",
    "The governor, one of those that the driver has.",
);

/// The layer `governor` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "The governor of the processors' clock, set while the stack stands.",
    settings: &[CHOSEN.doc],
    takes: Takes::Anything,
    gives: GivesKind::Directory,
    example: "governor = { name = \"performance\" }",
    parse: |settings| {
        let name = settings.choice(CHOSEN)?;
        Ok(Box::new(OfMachine(Governor { name })))
    },
    undo: &[WRITE_BACK, WRITE_BACK_SINCE],
    shapes: &[&[
        "loop = { size = \"1 GiB\" }",
        "ext4 = {}",
        "governor = { name = \"powersave\" }",
    ]],
    ..LayerKind::EMPTY
};

/// Writes a governor back, if it still is what was written: of a processor, ours, the one before.
const WRITE_BACK: UndoKind = UndoKind {
    layer: NAME,
    name: "write-back",
    params: &[Param::Name, Param::Name, Param::Name],
    undo: write_back,
};

/// The same with a proof that the machine was not started since, which comes first.
const WRITE_BACK_SINCE: UndoKind = UndoKind {
    name: "write-back-since-start",
    params: &[Param::Path, Param::Name, Param::Name, Param::Name],
    undo: |host, of| parameter::since_start(host, of, write_back),
    ..WRITE_BACK
};

fn write_back(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let [processor, ours, before] = [0, 1, 2].map(|at| text(of, at));
    let number = processor.strip_prefix("cpu").unwrap_or_default();
    // Nothing else in /sys is written, whatever a journal says.
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    let path = place(processor);
    parameter::write_back(host, (&path, ours), (&path, before))
}

fn place(processor: &str) -> PathBuf {
    let all = Path::new("/sys/devices/system/cpu");
    all.join(processor).join("cpufreq/scaling_governor")
}

/// `0-3` → `cpu0` to `cpu3`; `0` → `cpu0`.
fn processors(possible: &str) -> Vec<String> {
    // A list with gaps gives some that are not there, which are left out below.
    let last = possible.trim().rsplit(['-', ',']).next();
    let last = last.and_then(|last| last.parse::<u32>().ok());
    let numbers = 0..=last.unwrap_or_default();
    numbers.map(|number| format!("cpu{number}")).collect()
}

struct Governor {
    name: &'static str,
}

/// Processors whose clock has a governor.
fn governed(host: &dyn Host) -> Vec<String> {
    let possible = host.read_text(Path::new(POSSIBLE)).unwrap_or_default();
    let mut all = processors(&possible);
    all.retain(|processor| host.exists(&place(processor)));
    all
}

fn no_governor() -> LayerError {
    LayerError::refused(
        "the processors of this machine have no governor (cpufreq)",
        "leave governor out: in a virtual machine the clock is the host's",
    )
}

impl SetsMachine for Governor {
    const KIND: &'static LayerKind = &KIND;
    const ONE: &'static str = "the processors have one governor: leave one of the two out";

    fn asked(&self) -> String {
        format!("the processors' clock by the governor {}", self.name)
    }

    fn dangers(&self, host: &dyn Host) -> Vec<Danger> {
        let all = governed(host);
        let Some(first) = all.first() else {
            return vec![Danger::Refused(no_governor())];
        };
        let list = place(first).with_file_name("scaling_available_governors");
        let has = host.read_text(&list).unwrap_or_default();
        // An old driver may not list them: then setting tells.
        match has.trim().is_empty() || has.split_whitespace().any(|name| name == self.name) {
            true => Vec::new(),
            false => vec![Danger::Refused(LayerError::refused(
                format!(
                    "the driver of the processors' clock has no governor {}",
                    self.name
                ),
                format!("write one of: {}", has.trim()),
            ))],
        }
    }

    fn set(&self, setup: &mut Setup<'_>) -> Result<Vec<Fact>, LayerError> {
        let all = governed(setup.host());
        // On a peer nothing was looked at before.
        if all.is_empty() {
            return Err(no_governor());
        }
        // Several may share one clock: then the first sets it for all, and the rest find it set.
        for processor in &all {
            let asked = AskedParameter {
                name: format!("governor of {processor}"),
                path: place(processor),
                value: self.name,
            };
            // Its clock is in another file, which changes with the governor: it could not be brought back.
            if parameter::now(setup.host(), &asked.path).is_ok_and(|now| now == OF_THE_USER) {
                return Err(LayerError::refused(
                    format!("{processor} has the clock that a user chose (governor {OF_THE_USER})"),
                    "leave governor out, or give the processors another governor first",
                ));
            }
            let proof = setup.prove(NAME)?;
            asked.set(setup, |before| {
                let [processor, ours, before] = [processor, self.name, before].map(OsString::from);
                let words = [proof.into(), processor, ours, before];
                Ok(Some(WRITE_BACK_SINCE.of(words).into()))
            })?;
        }
        Ok(vec![
            Fact::new("governor", self.name),
            Fact::new("processors with it", all.len().to_string()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::testing::{site, stack};
    use stackrace_machine::host::plan::Fault;
    use stackrace_machine::journal::Journal;

    #[test]
    fn every_processor_that_may_be_there_is_looked_at() {
        assert_eq!(processors("0\n"), ["cpu0"]);
        assert_eq!(processors("0-2\n"), ["cpu0", "cpu1", "cpu2"]);
        assert_eq!(processors(""), ["cpu0"]);
    }

    #[test]
    fn a_clock_that_a_user_chose_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let host = crate::stack::imagined(Fault::Never);
        host.write_text(&place("cpu0"), OF_THE_USER).unwrap();
        let journal = Journal::nowhere();
        let site = site(&host, &journal, scratch.path());
        let shape = stack(&["tmpfs = { size = \"1 MiB\" }", "governor = {}"]);
        let said = shape.set_up(&site).err().unwrap().to_string();
        assert!(said.contains("that a user chose"), "{said}");
        assert_eq!(host.read_text(&place("cpu0")).unwrap(), OF_THE_USER);
    }

    #[test]
    fn nothing_but_a_processors_governor_is_written_back() {
        let host = crate::stack::imagined(Fault::Never);
        for processor in ["cpu", "../module", "cpu0x"] {
            let of = [processor, "{before}", "x"].map(OsString::from);
            (WRITE_BACK.undo)(&host, &of).unwrap();
        }
        assert!(host.steps().is_empty());
    }
}
