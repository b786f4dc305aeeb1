//! `stackrace lab` and `stackrace run --lab`: disposable virtual machines.
//!
//! A study is run whole inside one guest, by this same program; every event of its run comes out as
//! it happens and is kept here like that of any other run, so that whatever becomes of the guest,
//! what was measured until then is on this machine's disk.

mod images;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::Setting;
use super::afp;
use super::args::{LabShell, LabVerb, Run};
use super::clean;
use super::execute;
use super::failure::{self, Failure};
use super::progress::Progress;
use crate::event::{Ended, Event, Fact, Line};
use crate::host::{LabDisk, argv, local::LocalHost};
use crate::journal::Journal;
use crate::lab::LabError;
use crate::lab::guest;
use crate::lab::machine::{self, Accelerator, Description, Machine, SCRATCH_DIR, Site};
use crate::record::{Record, Store, run_id};
use crate::run::{Interrupt, Ledger, Shared, TrialStart, Watcher};
use crate::study::{Provision, Study};
use crate::time::{Clock, SystemClock};
use crate::unit;
use crate::verdict::{self, Evidence};

/// Name of the fact that says a run was made in the lab.
pub(super) const LAB: &str = "lab";

/// What a guest's scratch disk holds besides what the study asks for, bytes.
const SCRATCH_OVER: u64 = 1 << 30;

/// Where in the store it is kept which accelerator works here.
const ACCELERATOR: &str = "lab-accelerator";

/// This program, whatever became of its file.
const PROGRAM: &str = "/proc/self/exe";

/// `stackrace lab`.
pub(super) fn exec(setting: &Setting, verb: LabVerb) -> Result<u8, Failure> {
    match verb {
        LabVerb::Build { systems, zfs } => images::build(setting, &systems, zfs),
        LabVerb::List => images::list(setting),
        LabVerb::Shell(verb) => shell(setting, &verb),
        LabVerb::Clean { all } => images::remove(all),
        LabVerb::Agent => guest::serve().map(|()| 0).map_err(Failure::internal),
        LabVerb::MountAfp(verb) => afp::exec(&verb),
    }
}

fn cannot(error: LabError) -> Failure {
    Failure::new(failure::CANNOT, error.to_string()).next(error.next())
}

fn quiet_host() -> LocalHost {
    LocalHost::new(Arc::new(|_| ()))
}

fn tell(setting: &Setting, text: &str) {
    if !setting.quiet {
        super::error(&format!("{text}\n"));
    }
}

/// Calls with what a machine is made with, and the accelerator that works; whatever is made is gone
/// when this returns.
fn in_the_lab<T>(
    setting: &Setting,
    system: &str,
    work: impl FnOnce(&Site<'_>, Accelerator) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let host = quiet_host();
    let (image, zfs) = images::of(system)?;
    let known = setting.store()?.join(ACCELERATOR);
    clean::passing(setting, &host, |journal, id| {
        let site = Site {
            host: &host,
            journal,
            dir: clean::passing_dir(setting, id)?,
            image: &image,
            zfs: zfs.as_ref(),
            program: Path::new(PROGRAM),
        };
        let accelerator = machine::accelerator(&site, &known).map_err(cannot)?;
        work(&site, accelerator)
    })
}

fn memory(text: &str) -> Result<u64, Failure> {
    unit::parse_bytes(text).map_err(|why| Failure::usage(format!("--memory: {why}")))
}

fn shell(setting: &Setting, verb: &LabShell) -> Result<u8, Failure> {
    let interactive = verb.command.is_empty();
    let description = Description {
        nodes: verb.nodes,
        memory_bytes: memory(&verb.memory)?,
        disks: shell_disks(verb)?,
        shell_on: interactive.then_some(1),
        ..Description::default()
    };
    in_the_lab(setting, &verb.system, |site, accelerator| {
        let mut machine = Machine::start(site, &description, accelerator).map_err(cannot)?;
        if interactive {
            machine.wait(1).map_err(cannot)?;
            return Ok(0);
        }
        tell(setting, &up(&machine));
        let node = machine.node(1).map_err(cannot)?;
        let output = node.exec(&verb.command).map_err(cannot)?;
        super::print(&output.stdout);
        super::error(&output.stderr);
        Ok(output
            .status
            .and_then(|status| u8::try_from(status).ok())
            .unwrap_or(1))
    })
}

/// `lab: up in 4.1 s (tcg)`.
fn up(machine: &Machine) -> String {
    format!(
        "lab: up in {} ({})",
        unit::time_ns(machine.boot_ns() as f64),
        machine.accelerator().name()
    )
}

fn shell_disks(verb: &LabShell) -> Result<Vec<LabDisk>, Failure> {
    let sectors = verb
        .sectors
        .split_once('/')
        .and_then(|(logical, physical)| {
            let [logical, physical] = [logical, physical].map(|text| text.trim().parse().ok());
            Some((logical?, physical?))
        });
    let Some((logical_sector, physical_sector)) = sectors else {
        let sectors = &verb.sectors;
        return Err(
            Failure::usage(format!("--sectors {sectors} makes no sense"))
                .next("write 512/512, 512/4096 or 4096/4096"),
        );
    };
    let disks = verb.disks.iter().zip(1..).map(|(text, number)| {
        let bytes =
            unit::parse_bytes(text).map_err(|why| Failure::usage(format!("--disk: {why}")))?;
        Ok(LabDisk {
            serial: format!("disk-{number}"),
            bytes,
            logical_sector,
            physical_sector,
            rate: None,
            requests: None,
        })
    });
    disks.collect()
}

/// `stackrace run --lab`.
pub(super) fn run(setting: &Setting, study: &Study, verb: &Run) -> Result<u8, Failure> {
    let nodes = study.treatments.iter().map(|t| t.stack.nodes());
    let description = Description {
        nodes: nodes.max().unwrap_or(1),
        memory_bytes: memory(&verb.memory)?,
        disks: disks(study)?,
        scratch_bytes: scratch(study),
        ..Description::default()
    };
    let interrupt = Arc::new(Interrupt::default());
    execute::catch_interrupt(
        &interrupt,
        "the guest lowers what stands, then the verdict so far",
        "`stackrace clean` removes the machine",
    )?;
    let store = setting.open_store()?;
    let (relay, ended) = in_the_lab(setting, &verb.system, |site, accelerator| {
        let machine = Machine::start(site, &description, accelerator).map_err(cannot)?;
        tell(setting, &up(&machine));
        let mut relay = Relay {
            setting,
            study,
            store: &store,
            facts: machine.facts().to_vec(),
            accelerator,
            kept: None,
        };
        let ended = follow(&machine, study, verb, &interrupt, &mut relay);
        Ok((relay, ended))
    })?;
    relay.finish(ended, verb)
}

/// The disks of all treatments, each once.
fn disks(study: &Study) -> Result<Vec<LabDisk>, Failure> {
    let mut disks: Vec<LabDisk> = Vec::new();
    for treatment in &study.treatments {
        for disk in treatment.stack.lab_disks() {
            if !disks.contains(&disk) {
                disks.push(disk);
            } else if study.policy.provision == Provision::Once {
                return Err(Failure::refused(
                    "the stacks of this study stand all at once, and two treatments ask for the same disks of the lab",
                )
                .next("write provision = \"each-round\", or give each treatment disks of another size"));
            }
        }
    }
    Ok(disks)
}

/// Bytes of disk the guest needs for itself; none: its memory will do.
fn scratch(study: &Study) -> Option<u64> {
    let needed = study.treatments.iter().map(|treatment| {
        let needed = treatment.stack.disk_needed();
        needed.iter().map(|(_, bytes)| *bytes).sum::<u64>()
    });
    let needed: u64 = match study.policy.provision {
        Provision::Once => needed.sum(),
        Provision::EachRound => needed.max().unwrap_or(0),
    };
    // A file system keeps a twentieth for itself.
    (needed > 0).then(|| (needed + needed / 10 + SCRATCH_OVER).next_multiple_of(1 << 20))
}

/// Runs the study in the guest and hands every event to the relay.
fn follow(
    machine: &Machine,
    study: &Study,
    verb: &Run,
    interrupt: &Interrupt,
    relay: &mut Relay<'_>,
) -> Result<crate::host::Output, LabError> {
    let node = machine.node(1)?;
    let store = if scratch(study).is_some() {
        for number in 1..=machine.nodes() {
            machine.node(number)?.make_scratch()?;
        }
        format!("{SCRATCH_DIR}/store")
    } else {
        "/run/store".to_string()
    };
    let name = Path::new(&study.name).file_name().unwrap_or_default();
    let path = format!("/run/study/{}", name.to_string_lossy());
    node.write(&path, &study.text)?;
    let mut command: Vec<OsString> =
        argv(["/kit/stackrace", "--store", &store, "--quiet", "run", &path]);
    let deciding = &verb.deciding;
    let asked = [
        ("--at-most", &verb.at_most),
        ("--margin", &deciding.margin),
        ("--confidence", &deciding.confidence),
        ("--seed", &deciding.seed.map(|seed| seed.to_string())),
    ];
    for (option, value) in asked {
        if let Some(value) = value {
            command.extend(argv([option, value]));
        }
    }
    if deciding.decide {
        command.push("--decide".into());
    }
    node.follow(&command, &store, &|| interrupt.raised(), &mut |text| {
        relay.line(text).map_err(LabError::Refused)
    })
}

/// Keeps on this machine what happens in the guest.
struct Relay<'a> {
    setting: &'a Setting,
    study: &'a Study,
    store: &'a Store,
    facts: Vec<Fact>,
    accelerator: Accelerator,
    /// None: the run has not begun.
    kept: Option<Kept>,
}

struct Kept {
    ledger: Shared,
    progress: Progress,
    _journal: Journal,
}

impl Relay<'_> {
    /// One line of the guest's log.
    fn line(&mut self, text: &str) -> Result<(), String> {
        let line: Line = serde_json::from_str(text)
            .map_err(|error| format!("a line of the guest's log is damaged: {error}"))?;
        let Some(kept) = &self.kept else {
            self.kept = Some(self.begin(line.event)?);
            return Ok(());
        };
        let event = line.event;
        kept.ledger
            .lock()
            .append(event.clone())
            .map_err(|error| error.to_string())?;
        self.show(kept, &event);
        Ok(())
    }

    /// The run begins: it gets an id of this machine, and says where it is made.
    fn begin(&self, event: Event) -> Result<Kept, String> {
        let Event::RunStarted(mut head) = event else {
            return Err("the guest's log does not begin with its run".to_string());
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        head.run = run_id(&clock.today(), execute::entropy());
        head.command.clone_from(&self.setting.command);
        head.study_name.clone_from(&self.study.name);
        head.environment
            .retain(|fact| fact.name != execute::BEGUN_IN);
        head.environment.extend(self.facts.iter().cloned());
        let run = head.run.clone();
        let words = |error: crate::record::RecordError| error.to_string();
        let (log, line) = self.store.create_run(*head, clock).map_err(words)?;
        let record = Record::begin(line).ok_or("the run's first line is not its head")?;
        let ledger = Shared::new(Ledger::new(log, self.store.index(), record));
        let journal = Journal::create(&self.store.run_dir(&run).join("journal.jsonl"))
            .map_err(|error| error.to_string())?;
        let text = caution(self.accelerator).to_string();
        ledger
            .lock()
            .append(Event::Warned { text })
            .map_err(words)?;
        Ok(Kept {
            progress: execute::progress(self.setting, self.study, self.store, &ledger),
            ledger,
            _journal: journal,
        })
    }

    fn show(&self, kept: &Kept, event: &Event) {
        let begins = |round: u32, treatment: usize, workload: usize| {
            kept.progress.begins(&TrialStart {
                round,
                treatment,
                workload: Some(workload),
                part: "in the lab",
                control: None,
            });
        };
        match event {
            Event::StackRaised {
                round, treatment, ..
            } => begins(*round, *treatment, 0),
            Event::Trial(trial) => {
                if let Ended::Failed { error } = &trial.ended {
                    let treatment = &self.study.treatments[trial.treatment].name;
                    kept.progress.warned(&format!("{treatment}: {error}"));
                }
                if trial.workload + 1 < self.study.workload_heads.len() {
                    begins(trial.round, trial.treatment, trial.workload + 1);
                }
            }
            Event::Looked { .. } => {
                let verdict = {
                    let ledger = kept.ledger.lock();
                    verdict::judge(&Evidence::of(ledger.record()))
                };
                kept.progress.looked(&verdict);
            }
            Event::Warned { text } => kept.progress.warned(text),
            _ => {}
        }
    }

    /// The verdict, and the exit code the guest's program gave.
    fn finish(
        self,
        ended: Result<crate::host::Output, LabError>,
        verb: &Run,
    ) -> Result<u8, Failure> {
        let Some(kept) = &self.kept else {
            return Err(match ended {
                Ok(output) => {
                    let code = output.status.and_then(|status| u8::try_from(status).ok());
                    let said = output.stderr.trim_end();
                    Failure::new(code.unwrap_or(1), said.trim_start_matches("error: "))
                }
                Err(error) => cannot(error),
            });
        };
        let code = match ended {
            Ok(output) => output.status.and_then(|status| u8::try_from(status).ok()),
            Err(error) => {
                let detail = format!("the lab: {error}; what was measured until then is kept");
                kept.progress.warned(&detail);
                let reason = "failed".to_string();
                let event = Event::RunEnded { reason, detail };
                kept.ledger.lock().append(event).map_err(execute::broken)?;
                Some(failure::TRIAL_FAILED)
            }
        };
        kept.progress.end();
        let ledger = kept.ledger.lock();
        let record = ledger.record();
        let verdict = verdict::judge(&Evidence::of(record));
        execute::show(
            self.setting,
            record,
            &verdict,
            &verb.output,
            Some(execute::ANSWER_LINES),
        )?;
        execute::where_it_is(self.setting, self.store, &ledger);
        Ok(code.unwrap_or(1))
    }
}

/// What a reader of figures from the lab must know.
fn caution(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Kvm => {
            "measured in the lab, on emulated disks: compare these figures with each other only"
        }
        Accelerator::Tcg => {
            "measured in the lab under software emulation of the processor, on emulated disks: \
             what the processor limits is many times slower than on bare metal; compare these \
             figures with each other only, and best where the disks were the limit"
        }
    }
}
