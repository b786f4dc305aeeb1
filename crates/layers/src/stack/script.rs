//! Storage that the user's own commands bring up and take down: a FUSE file system, a network block
//! device, a volume of a cloud.
//!
//! The commands are the study's, so a study with this layer runs only where the user permits its
//! commands. The journal never holds one: its entry names the mount point, which carries a mark of the
//! run, and the digest of the tear-down command. `clean` and `resume` look the command up in the run's
//! record, show it, and run it only if the user says so again.

use super::dir;
use stackrace_base::event::{Fact, shell};
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_base::unit::ShownPath;
use stackrace_foundation::foundation::{
    Gives, GivesKind, Layer, LayerCommand, LayerError, LayerKind, Setup, StandingLayer, Takes,
    place,
};
use stackrace_machine::host::imagined::{Tool, World, last, said, word};
use stackrace_machine::host::{Host, HostError, Needs, Output, UserCommand, argv, digest};
use stackrace_machine::journal::{Param, Undo, UndoKind, text};
use std::ffi::OsString;
use std::path::Path;

/// The word in a study.
const NAME: &str = "script";

/// Purpose of each command; also the shell's name for it in its messages.
const SET_UP: &str = "set-up";
const TEAR_DOWN: &str = "tear-down";
const DESCRIBE: &str = "describe";
const DROP_CACHES: &str = "drop-caches";

/// The variable of the environment that names the directory to mount at. `STACKRACE_DIR` would have a
/// daemon ended with the trial's commands.
const MOUNT: &str = "STACKRACE_MOUNT";

/// The setting for the longest that a command may take.
const LIMIT: &str = "limit";

/// Seconds that a command may take before timeout(1) ends it, unless the study says otherwise.
const LIMIT_S: u32 = 900;
/// Longest of these limits, s: a day. A command that never ends would hold up the machine for good.
const LIMIT_MAX_S: u32 = 86_400;

/// Most lines of what `describe` prints that are kept as facts, and most characters of each.
const FACTS_MAX: usize = 64;
const FACT_LENGTH_MAX: usize = 1000;

/// Storage of the user's own commands.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "Storage that commands of your own mount at $STACKRACE_MOUNT and take down again.",
    settings: &[
        SettingDoc::text(
            SET_UP,
            "",
            "For sh: mounts the storage at the empty directory $STACKRACE_MOUNT.",
        )
        .required(),
        SettingDoc::text(
            TEAR_DOWN,
            "",
            "For sh: takes it down again; must also succeed where nothing stands any more.",
        )
        .required(),
        SettingDoc::text(
            DESCRIBE,
            "",
            "For sh: prints what it got, a line `name: value` each.",
        ),
        SettingDoc::text(
            DROP_CACHES,
            "",
            "For sh, before each trial: drops caches that this machine's kernel does not hold.",
        ),
        SettingDoc::time(
            LIMIT,
            "15 min",
            "Longest that each of these commands may take, whole seconds up to a day; then it is ended.",
        ),
    ],
    takes: Takes::Nothing,
    gives: GivesKind::Directory,
    example: "script = { set-up = \"mount -t tmpfs none $STACKRACE_MOUNT\", tear-down = \"! mountpoint -q $STACKRACE_MOUNT || umount $STACKRACE_MOUNT\" }",
    parse,
    undo: &[TAKE_DOWN],
    imagined: &[Tool::new("timeout", imagined)],
    reads: &[told],
    over_shell: OverShell::Runs,
    shapes: &[&[
        "script = { set-up = \"mine up\", tear-down = \"mine down\", describe = \"mine say\", drop-caches = \"mine cold\" }",
    ]],
    ..LayerKind::EMPTY
};

/// Runs the tear-down command whose digest an entry holds, if the user permits it.
const TAKE_DOWN: UndoKind =
    UndoKind::new(NAME, "tear-down", &[Param::Path, Param::Digest], take_down);

#[derive(Debug)]
struct Script {
    set_up: String,
    tear_down: String,
    describe: Option<String>,
    drop_caches: Option<String>,
    limit_s: u32,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let needed = |name: &str| match settings.optional_text(name)? {
        Some(line) if !line.trim().is_empty() => Ok(line),
        _ => Err(Refusal::at(
            settings.span_of(name),
            format!("script needs \"{name}\""),
            format!("give a command: {name} = \"…\""),
        )),
    };
    Ok(Box::new(Script {
        set_up: needed(SET_UP)?,
        tear_down: needed(TEAR_DOWN)?,
        describe: settings.optional_text(DESCRIBE)?,
        drop_caches: settings.optional_text(DROP_CACHES)?,
        limit_s: limit(settings)?,
    }))
}

/// Seconds that each command may take.
fn limit(settings: &Settings) -> Result<u32, Refusal> {
    const SECOND: u64 = 1_000_000_000;
    let Some(ns) = settings.optional_time_ns(LIMIT)? else {
        return Ok(LIMIT_S);
    };
    // timeout(1) takes 0 for no limit at all.
    let whole = u32::try_from(ns / SECOND).ok();
    let whole = whole.filter(|s| ns % SECOND == 0 && (1..=LIMIT_MAX_S).contains(s));
    whole.ok_or_else(|| {
        Refusal::at(
            settings.span_of(LIMIT),
            "the limit of a command is 1 s to 1 d, in whole seconds",
            "write it like limit = \"30 min\"",
        )
    })
}

/// A command as it is started, with its limit in seconds; `what` is the name that the shell gives itself in its messages.
fn command(what: &str, (line, limit_s): (&str, u32), mount: &Path) -> Vec<OsString> {
    let mut variable = OsString::from(format!("{MOUNT}="));
    variable.push(mount);
    let mut command = argv(["env"]);
    command.push(variable);
    command.extend(argv([
        "timeout",
        &limit_s.to_string(),
        "sh",
        "-c",
        line,
        what,
    ]));
    command.push(mount.into());
    command
}

/// A failure with the command as the study has it: what surrounds it is long, and hides the reason.
fn as_written(error: LayerError, line: &str) -> LayerError {
    match error {
        LayerError::Host(HostError::Failed { output, .. }) => LayerError::Host(HostError::Failed {
            command: line.to_owned(),
            output,
        }),
        LayerError::Host(HostError::TimedOut { limit_s, .. }) => {
            LayerError::Host(HostError::TimedOut {
                command: line.to_owned(),
                limit_s,
            })
        }
        other => other,
    }
}

/// Digest of the command of the study with which alone an entry of a journal can be undone; `None` if it takes none.
pub fn command_digest(undo: &Undo) -> Option<&str> {
    match undo {
        Undo::Layer(entry) if entry.layer() == NAME => entry.digest(),
        _ => None,
    }
}

impl Layer for Script {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        format!("what `{}` mounts", self.set_up)
    }

    fn needs(&self) -> Needs {
        Needs {
            tools: &["env", "sh", "timeout"],
            ..Needs::default()
        }
    }

    fn commands(&self) -> Vec<LayerCommand<'_>> {
        let given = |what, line| LayerCommand {
            what,
            line,
            undoes: what == TEAR_DOWN,
            limit_s: self.limit_s,
        };
        let mut all = vec![
            given(SET_UP, self.set_up.as_str()),
            given(TEAR_DOWN, self.tear_down.as_str()),
        ];
        all.extend(self.describe.as_deref().map(|line| given(DESCRIBE, line)));
        let cold = self.drop_caches.as_deref();
        all.extend(cold.map(|line| given(DROP_CACHES, line)));
        all
    }

    fn set_up(&self, setup: &mut Setup<'_>, _below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let Some(commands) = host.user_commands() else {
            return Err(LayerError::refused(
                format!(
                    "the commands of script run on this machine, not on {}",
                    host.name()
                ),
                "put script on the first machine of the stack",
            ));
        };
        // That the study's commands are permitted was checked before any stack is set up.
        commands.know([(self.tear_down.clone(), self.limit_s)], true);
        let mount = setup.mount_point()?;
        let undo = TAKE_DOWN.of([mount.clone().into(), digest(&self.tear_down).into()]);
        let made = setup.make(undo, &command(SET_UP, (&self.set_up, self.limit_s), &mount));
        made.map_err(|error| as_written(error, &self.set_up))?;
        if place::mounted_at(host, &mount)?.is_none() {
            return Err(LayerError::refused(
                format!(
                    "`{}` succeeded, and nothing is mounted at {}",
                    self.set_up,
                    mount.shown()
                ),
                format!("let it mount at ${MOUNT}: mount --bind, if it mounts elsewhere"),
            ));
        }
        if let Some(line) = &self.drop_caches {
            setup.gets_cold_by(command(DROP_CACHES, (line, self.limit_s), &mount));
        }
        // The storage may be there before and after: what is made in it is removed by name, not with it.
        let mut standing = dir::private_in(setup, &mount, NAME)?;
        if let Some(line) = &self.describe {
            let output = host.must(&command(DESCRIBE, (line, self.limit_s), &mount));
            let output = output.map_err(|error| as_written(error.into(), line))?;
            standing.facts.facts.extend(told(&output.stdout));
        }
        Ok(standing)
    }
}

/// Facts that `describe` printed: one for each line, by the name before its first colon.
fn told(text: &str) -> Vec<Fact> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let short = |text: &str| {
        text.trim()
            .chars()
            .take(FACT_LENGTH_MAX)
            .collect::<String>()
    };
    let facts = lines.map(|line| match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Fact::new(short(name), short(value)),
        _ => Fact::new("described as", short(line)),
    });
    facts.take(FACTS_MAX).collect()
}

/// Takes down what stands at a mount point of ours with the command of a digest.
///
/// # Errors
/// The command is not known or not permitted, or it fails.
fn take_down(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let mount = Path::new(&of[0]);
    let found = host
        .user_commands()
        .map_or(UserCommand::Unknown, |commands| commands.find(text(of, 1)));
    // A command of a study runs as root: also to undo, only with permission.
    let why = match found {
        UserCommand::Permitted(line, limit_s) => {
            let command = command(TEAR_DOWN, (&line, limit_s), mount);
            return host.must(&command).map(drop);
        }
        UserCommand::Unpermitted(line, limit_s) => format!(
            "it takes a command of the study, which has not been permitted: {}\n  next: read it, then \
             say the same with --allow-commands",
            shell(&command(TEAR_DOWN, (&line, limit_s), mount))
        ),
        UserCommand::Unknown => format!(
            "the record of its run does not have the command any more\n  next: take down what is \
             mounted at {} yourself",
            mount.shown()
        ),
    };
    Err(HostError::Unpermitted { why })
}

/// The commands of a study as a plan imagines them: `timeout 900 sh -c LINE set-up MOUNT`.
fn imagined(world: &mut World, words: &[OsString]) -> Output {
    let mount = last(words);
    match word(words, words.len().saturating_sub(2)).as_str() {
        SET_UP => world.mount(NAME.as_ref(), Path::new(&mount), NAME, ""),
        TEAR_DOWN => {
            // It must succeed where nothing stands, too.
            world.unmount(Path::new(&mount));
            said("")
        }
        _ => said(""),
    }
}
