//! Which options of the command line belong to which places: none is ever ignored.
//!
//! A command works at one of seven places, and some options mean something at a few of them only.
//! [`OPTIONS`] has every option of every command that works at a place. One that was typed and would be
//! ignored is refused with the reason, before anything is touched. A test reads the parser's own list of
//! options, so that a new one without a row here fails.

use stackrace_base::event::RunPlace;
use stackrace_base::failure::Failure;
use stackrace_study::study::{HOST, Study};

use crate::place::machine_options::MachineOptions;

/// Place where a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedPlace {
    /// This machine.
    Here,
    /// Machines over SSH, with this program on them.
    Ssh,
    /// Machines that have nothing but a shell.
    Shell,
    /// Several clients of one storage.
    Clients,
    /// Guests of the lab, in real time.
    Lab,
    /// Guests of the lab, in virtual time.
    Virtual,
    /// A machine whose power is really cut.
    RealCut,
}

use AskedPlace::{Clients, Here, Lab, RealCut, Shell, Ssh, Virtual};

/// Every place.
pub const PLACES: [AskedPlace; 7] = [Here, Ssh, Shell, Clients, Lab, Virtual, RealCut];

/// Both clocks of the lab.
const GUESTS: &[AskedPlace] = &[Lab, Virtual];
/// Every place but guests of the lab.
const MACHINES: &[AskedPlace] = &[Here, Ssh, Shell, Clients, RealCut];
/// Every place but several clients.
const NO_CLIENTS: &[AskedPlace] = &[Here, Ssh, Shell, Lab, Virtual, RealCut];

/// An option, and where it would be ignored.
#[derive(Debug)]
pub struct PlacedOption {
    /// Name of the option as it is typed, without its dashes.
    pub name: &'static str,
    /// Commands that this row is about; if empty, all that have the option.
    commands: &'static [&'static str],
    /// Places where it would be ignored, and why; at all others it is used.
    refused: &'static [(&'static [AskedPlace], &'static str)],
}

/// An option that is used wherever its command works.
const fn everywhere(name: &'static str) -> PlacedOption {
    of(&[], name, &[])
}

/// An option of some commands.
const fn of(
    commands: &'static [&'static str],
    name: &'static str,
    refused: &'static [(&'static [AskedPlace], &'static str)],
) -> PlacedOption {
    PlacedOption {
        name,
        commands,
        refused,
    }
}

/// Words for an option of the lab outside of it.
const NEEDS_LAB: &str = "is for guests of the lab, and this does not run in them";
/// Words for an option that belongs to a cut of the power.
const NO_GUESTS: &str = "is for real machines: guests of the lab are cut without a command";
const NO_SHARED: &str = "is for stacks on one machine, and clients share a storage";
const NO_TRACE: &str = "is for one machine: several clients would each do what one application did";
const NO_SHELL_CUT: &str = "is for machines with this program on them";
/// Words for the ways to other machines where there are none.
const REACHED: &str = "says how other machines are reached, and none is named";
const NO_LOGIN: &str = "is for other machines: guests of the lab are reached without it";

/// Every option of the commands that work at a place, by name; of two rows the one that names the command
/// counts.
pub const OPTIONS: &[PlacedOption] = &[
    of(
        &[],
        "agent",
        &[
            (&[Here], "is for other machines, and none is named"),
            (
                &[Clients],
                "is for machines that --on names: clients need this program",
            ),
            (
                GUESTS,
                "is for machines that --on names: guests of the lab need this program",
            ),
        ],
    ),
    // A row for one command stands before the one for all others.
    of(
        &["clean"],
        "allow-commands",
        &[(
            &[Ssh, Clients],
            "goes with this machine, or with --agent none: the layer script stands on no other machine",
        )],
    ),
    everywhere("allow-commands"),
    of(
        &["resume", "run"],
        "anyway",
        &[
            (
                GUESTS,
                "is for directories of yours, and no other run measures in a guest of the lab",
            ),
            (
                &[RealCut],
                "is for a run beside another one, and a machine whose power is cut has one alone",
            ),
        ],
    ),
    everywhere("anyway"),
    of(&[], "arrivals", &[(&[Clients], NO_TRACE)]),
    of(
        &[],
        "back-within",
        &[
            (GUESTS, NO_GUESTS),
            (&[Clients], NO_SHARED),
            (&[Shell], NO_SHELL_CUT),
        ],
    ),
    everywhere("better"),
    everywhere("cleanup"),
    of(
        &[],
        "clients",
        &[
            (
                GUESTS,
                "names machines of yours, and guests of the lab have a storage of their own",
            ),
            (
                &[RealCut],
                "is for one storage of several machines, and the power of one machine is cut",
            ),
        ],
    ),
    of(&[], "clock", &[(MACHINES, NEEDS_LAB)]),
    everywhere("cold"),
    everywhere("confidence"),
    of(
        &[],
        "cut",
        &[
            (GUESTS, NO_GUESTS),
            (&[Clients], NO_SHARED),
            (&[Shell], NO_SHELL_CUT),
        ],
    ),
    everywhere("decide"),
    everywhere("disk"),
    of(
        &[],
        "drive",
        &[
            (MACHINES, NEEDS_LAB),
            (
                &[Lab],
                "is for virtual time, in which alone drives are modelled",
            ),
        ],
    ),
    everywhere("each"),
    everywhere("events"),
    everywhere("find-rate"),
    everywhere("fio"),
    everywhere("for"),
    everywhere("full"),
    everywhere("gallery"),
    of(&[], "home", &[(&[Clients], NO_TRACE)]),
    everywhere("html"),
    everywhere("json"),
    of(
        &[],
        "jobs",
        &[
            (MACHINES, NEEDS_LAB),
            (
                &[Lab],
                "goes with virtual time: in real time, machines side by side disturb each other",
            ),
        ],
    ),
    everywhere("json"),
    of(&[], "lab", &[(MACHINES, NEEDS_LAB)]),
    everywhere("like"),
    everywhere("list"),
    everywhere("margin"),
    of(&[], "memory", &[(MACHINES, NEEDS_LAB)]),
    everywhere("metric"),
    everywhere("more-time"),
    everywhere("no-sync"),
    of(
        &[],
        "nodes-allocated",
        &[(NO_CLIENTS, "says who the clients are, and none are started")],
    ),
    of(
        &[],
        "on",
        &[
            (&[Clients], "is not needed: --clients names all machines"),
            (
                GUESTS,
                "is for real machines, and guests of the lab are none",
            ),
        ],
    ),
    everywhere("parse"),
    of(
        &[],
        "peer",
        &[
            (
                &[Shell],
                "is for machines with this program on them: --agent none is for stacks on one machine",
            ),
            (&[Clients], "is not needed: --clients names all machines"),
            (
                GUESTS,
                "is for real machines, and guests of the lab are none",
            ),
            (
                &[RealCut],
                "is for stacks of several machines, and the power of one machine is cut",
            ),
        ],
    ),
    everywhere("prepare"),
    everywhere("print-study"),
    of(
        &["clean"],
        "processes",
        &[(
            PLACES_OF_CLEAN,
            "says how much is measured, and nothing is: each client is cleaned once",
        )],
    ),
    of(
        &[],
        "processes",
        &[(
            NO_CLIENTS,
            "is for clients of one storage, and none are named",
        )],
    ),
    everywhere("cost"),
    everywhere("quick"),
    of(&[], "replay", &[(&[Clients], NO_TRACE)]),
    everywhere("require"),
    of(
        &[],
        "restore",
        &[
            (GUESTS, NO_GUESTS),
            (&[Clients], NO_SHARED),
            (&[Shell], NO_SHELL_CUT),
        ],
    ),
    everywhere("rounds"),
    everywhere("seed"),
    everywhere("size"),
    of(&[], "ssh", &[(&[Here], REACHED), (GUESTS, NO_LOGIN)]),
    of(&[], "ssh-always", &[(&[Here], REACHED), (GUESTS, NO_LOGIN)]),
    of(
        &[],
        "sudo",
        &[
            (&[Here], "is for other machines, and none is named"),
            (
                &[Shell],
                "is not used with --agent none: what it starts there could not be ended. Log in as root",
            ),
            (GUESTS, NO_LOGIN),
        ],
    ),
    of(&[], "system", &[(MACHINES, NEEDS_LAB)]),
    everywhere("time"),
    of(
        &[],
        "together",
        &[(
            &[Clients],
            "is for one machine: each client does one workload at a time",
        )],
    ),
    everywhere("trial-time"),
    everywhere("unit"),
    everywhere("until-decided"),
    everywhere("warm"),
    of(
        &[],
        "wipe",
        &[
            (
                GUESTS,
                "is for disks of yours, and those of the lab hold nothing",
            ),
            (
                &[Clients],
                "is for disks that are set up, and clients measure directories that are there",
            ),
            (
                &[Shell],
                "needs this program on the machine: with --agent none no disk that holds something is written over",
            ),
        ],
    ),
    everywhere("with"),
    everywhere("within"),
];

/// Places where `clean` works.
const PLACES_OF_CLEAN: &[AskedPlace] = &[Here, Ssh, Shell, Clients];

/// The commands that work at a place, and at which ones.
pub const COMMANDS: [(&str, &[AskedPlace]); 7] = [
    ("check", &[Here]),
    ("clean", PLACES_OF_CLEAN),
    ("compare", &[Here, Clients]),
    ("load", &[Here]),
    ("plan", &[Here, Ssh, Shell, Clients, Lab, Virtual]),
    ("resume", &PLACES),
    ("run", &PLACES),
];

/// Names the places where an option of a command is not used, for `--help`: ` [not with --clients, --lab]`; empty if it
/// is used at all places of the command.
pub fn help_words(command: &str, name: &str) -> String {
    let of_command = COMMANDS.iter().find(|(known, _)| *known == command);
    let (Some((_, places)), Some(row)) = (of_command, row(command, name)) else {
        return String::new();
    };
    let (mut used, mut refused): (Vec<AskedPlace>, Vec<AskedPlace>) = places
        .iter()
        .partition(|place| row.unused_at(**place).is_none());
    // Those that name a place themselves are explained by what they are.
    let mut words = PLACES.iter().flat_map(|place| place.words().split(' '));
    if words.any(|word| word.strip_prefix("--") == Some(name)) {
        return String::new();
    }
    if refused.is_empty() || used.is_empty() {
        return String::new();
    }
    let listed = |places: &mut Vec<AskedPlace>| {
        // Most readers know `--lab`; its two clocks matter where only one is meant.
        let both = GUESTS.iter().all(|guest| places.contains(guest));
        if both {
            places.retain(|place| !GUESTS.contains(place));
        }
        let names = places.iter().map(|place| place.words());
        names
            .chain(both.then_some("--lab"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    // The shorter list of the two is read at once.
    match used.len() <= refused.len() {
        true => format!(" [only with: {}]", listed(&mut used)),
        false => format!(" [not with: {}]", listed(&mut refused)),
    }
}

/// Finds the row of an option of a command; `None` if there is none.
fn row(command: &str, name: &str) -> Option<&'static PlacedOption> {
    let named = |one: &&PlacedOption| one.name == name;
    let own = |one: &&PlacedOption| one.commands.contains(&command);
    let mut rows = OPTIONS.iter().filter(named);
    rows.clone()
        .find(own)
        .or_else(|| rows.find(|one| one.commands.is_empty()))
}

impl PlacedOption {
    /// Returns why it would be ignored at a place; `None` if it is used there, or refused by what it is about.
    fn unused_at(&self, place: AskedPlace) -> Option<&'static str> {
        let mut refused = self.refused.iter();
        let (_, why) = refused.find(|(places, _)| places.contains(&place))?;
        Some(why)
    }
}

/// A command as it was typed, and its options by name, without those that a default or a variable of the environment
/// gave.
#[derive(Debug, Clone, Default)]
pub struct TypedOptions {
    /// Name of the command as it is typed: `run`.
    pub command: String,
    /// Its options, without their dashes.
    pub names: Vec<String>,
}

impl TypedOptions {
    /// Returns true if an option was typed, by its name without dashes.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|typed| typed == name)
    }

    /// Refuses an option that would be ignored at a place.
    ///
    /// # Errors
    /// Which one, and why it means nothing there.
    pub fn check(&self, place: AskedPlace) -> Result<(), Failure> {
        for name in &self.names {
            let Some(row) = row(&self.command, name) else {
                // A test keeps the table whole; an option that it lacks must not pass for a used one.
                return Err(Failure::internal(format!("--{name} belongs to no place")));
            };
            if let Some(why) = row.unused_at(place) {
                let refused = Failure::usage(format!("--{name} {why}"));
                return Err(refused.next(format!("leave --{name} out")));
            }
        }
        Ok(())
    }
}

impl AskedPlace {
    /// The place of a run that goes on.
    pub fn on_record(place: &RunPlace) -> Self {
        match place {
            RunPlace::Here { .. } => Here,
            RunPlace::Ssh(_) => Ssh,
            RunPlace::Shell(_) => Shell,
            RunPlace::Clients { .. } => Clients,
            RunPlace::Lab(_) => Lab,
            RunPlace::Virtual(_) => Virtual,
            RunPlace::RealCut(_) => RealCut,
        }
    }

    /// The place that the options name for a study; `lab`: in the lab, and whether its clock is virtual;
    /// `power`: the power is really cut.
    pub fn of(
        study: &Study,
        machines: &MachineOptions<'_>,
        lab: Option<bool>,
        power: bool,
    ) -> Self {
        let hosts = study.places().is_some_and(|factor| factor.name == HOST);
        // The lab has machines of its own, and a cut names the only one: neither asks where the study would run.
        match lab {
            Some(true) => Virtual,
            Some(false) => Lab,
            None if power => RealCut,
            None => Self::of_machines(machines, hosts),
        }
    }

    /// The place that the options alone name; `hosts`: a study names machines, too.
    pub fn of_machines(machines: &MachineOptions<'_>, hosts: bool) -> Self {
        let elsewhere = hosts || !machines.on.is_empty() || !machines.peers.is_empty();
        match machines.clients.started {
            // Clients are named with their own option, so they count before the machines of `--on`.
            Some(_) => Clients,
            None if machines.agentless => Shell,
            None if elsewhere => Ssh,
            None => Here,
        }
    }

    /// Names the place as `--help` and the documentation do: by the option that stands for it.
    fn words(self) -> &'static str {
        match self {
            Here => "this machine",
            Ssh => "--on",
            Shell => "--agent none",
            Clients => "--clients",
            Lab => "--lab in real time",
            Virtual => "--lab in virtual time",
            RealCut => "--cut",
        }
    }
}

/// Returns true if an option of a command is in the table.
#[cfg(any(test, feature = "testing"))]
pub fn has_row(command: &str, name: &str) -> bool {
    row(command, name).is_some()
}

/// The table for people: every option that some place refuses, a row each.
#[cfg(any(test, feature = "testing"))]
pub fn as_markdown() -> String {
    let mut text = String::from("| |");
    for place in PLACES {
        text.push_str(&match place {
            Here => format!(" {} |", place.words()),
            // The option is code.
            _ => format!(" `{}` |", place.words()),
        });
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(PLACES.len()));
    text.push('\n');
    for row in OPTIONS.iter().filter(|row| !row.refused.is_empty()) {
        // Hidden ones: variables of the environment set them.
        if ["nodes-allocated", "ssh-always"].contains(&row.name) {
            continue;
        }
        let of = row.commands.join(", ");
        let of = if of.is_empty() {
            of
        } else {
            format!(" of {of}")
        };
        text.push_str(&format!("| `--{}`{of} |", row.name));
        // Where none of its commands works it is not used either.
        let works = |place: &AskedPlace| {
            let mut commands = COMMANDS.iter();
            commands.any(|(command, places)| {
                let of_row = row.commands.is_empty() || row.commands.contains(command);
                of_row && places.contains(place)
            })
        };
        for place in PLACES {
            let used = works(&place) && row.unused_at(place).is_none();
            text.push_str(if used { " used |" } else { " – |" });
        }
        text.push('\n');
    }
    text
}
