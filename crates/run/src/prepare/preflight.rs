//! What a study needs before its first trial: checked, or planned, and nothing touched.

use stackrace_base::unit::{InWords, ShownPath};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::prepare::context::Context;
use stackrace_base::failure::{Failure, next_line};
use stackrace_base::unit;
use stackrace_layers::stack::{self, Danger, Inspection, Site, Stack, StackError};
use stackrace_machine::host::plan::{Fault, PlanHost, Step};
use stackrace_machine::host::{Host, HostError, advised, local::LocalHost};
use stackrace_machine::journal::Journal;
use stackrace_study::plan::{MachineFacts, Plan, StorageSpeed};
use stackrace_study::study::{self, Configuration, Policy, Study};
use stackrace_system::limit;

/// Refuses a study that cannot be run on this machine, before anything is created.
///
/// # Errors
/// A directory is missing, the machine lacks something or has no room, or a disk may not be written
/// over.
pub fn check(context: &Context, study: &Study, wipe: &[String]) -> Result<(), Failure> {
    check_planned(context, study, wipe, &plan(context, study, true)?)
}

/// Refuses the same of a study whose plan for this machine is known.
///
/// # Errors
/// As [`check`].
pub fn check_planned(
    context: &Context,
    study: &Study,
    wipe: &[String],
    plan: &Plan,
) -> Result<(), Failure> {
    // In this order: the room in a directory that is missing says nothing.
    check_places(context, study)?;
    check_machine(context, study)?;
    check_plan(plan)?;
    check_dangers(study, wipe)
}

/// Refuses what a plan calls a problem: one list for both.
///
/// # Errors
/// All of it.
pub fn check_plan(plan: &Plan) -> Result<(), Failure> {
    let problems: Vec<&str> = plan.problems().collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::refused(problems.join("\n       ")).next(format!(
            "change the study; `{}` shows it whole",
            study::command("plan", &plan.study_name, &[])
        ))),
    }
}

/// Returns true if a stack lies on a directory or disk of the user's.
fn uses_own(stack: &Stack) -> bool {
    let mut layers = stack.layers.iter();
    layers.any(|layer| layer.named_directory().is_some()) || stack.disk_ids().next().is_some()
}

/// Plans what a study would do; `here`: on this machine, else on one of which nothing is known.
///
/// # Errors
/// There is no place for results.
pub fn plan(context: &Context, study: &Study, here: bool) -> Result<Plan, Failure> {
    if !here {
        return plan_elsewhere(context, study, ElsewhereFacts::default());
    }
    on_this_machine(context, study, |machine| {
        let mut plan = Plan::of(study, machine);
        let chosen = study.policy.slices.is_some_and(|slices| slices.writes);
        if !chosen && stackrace_machine::observe::io_limit().is_some() {
            plan.workloads.iter_mut().for_each(|one| one.slices = None);
        }
        add_refused(&mut plan, &context.host(Arc::new(|_| ())), study);
        plan
    })
}

/// Known facts of a machine that is not this one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ElsewhereFacts {
    /// Speed of its storage.
    pub speed: StorageSpeed,
    /// Size of its memory, bytes; `None` if it is not known.
    pub memory_bytes: Option<u64>,
}

/// Plans what a study would do on a machine that is not this one: what this one lacks, or has, says nothing of it.
///
/// # Errors
/// There is no place for results.
pub fn plan_elsewhere(
    context: &Context,
    study: &Study,
    known: ElsewhereFacts,
) -> Result<Plan, Failure> {
    on_this_machine(context, study, |machine| {
        // A directory or disk of the user's is looked at there: that it is not here is no problem.
        let commands = |at: usize, one: &Configuration| match uses_own(&one.stack) {
            true => Ok(Vec::new()),
            false => (machine.commands)(at, one),
        };
        let facts = MachineFacts {
            commands: &commands,
            missing: &|| Vec::new(),
            free_bytes: &|_| None,
            speed: known.speed,
            memory_bytes: known.memory_bytes,
            scratch: machine.scratch,
        };
        let mut plan = Plan::of(study, &facts);
        add_unread(&mut plan, study);
        plan
    })
}

/// Refuses a study that a machine which has nothing but a shell cannot carry out, before anything is
/// touched there.
///
/// # Errors
/// A directory is missing, the machine lacks something or has no room.
pub fn check_there(host: &dyn Host, study: &Study) -> Result<(), Failure> {
    check_places_on(host, study, 1, "")?;
    let machine = Inspection::new(host, &[]);
    for configuration in &study.configurations {
        for danger in configuration.stack.dangers(&machine) {
            if let Danger::Refused(error) = danger {
                return Err(Failure::refused(error.to_string()).next(error.next()));
            }
        }
    }
    // What is made for a while is small but for the disks, whose room is looked at by their directory.
    on_machine(host, Path::new("/tmp"), study, |machine| {
        let missing = (machine.missing)();
        if !missing.is_empty() {
            return Err(Failure::unable(missing.join("\n")));
        }
        check_programs(host, study)?;
        check_room(study, machine, 1, "")?;
        check_plan(&Plan::of(study, machine))
    })
}

/// Plans what a study would do on a machine that has nothing but a shell.
///
/// # Errors
/// A directory that it names is missing there.
pub fn plan_there(host: &dyn Host, scratch: &Path, study: &Study) -> Result<Plan, Failure> {
    check_places_on(host, study, 1, "")?;
    let mut plan = on_machine(host, scratch, study, |machine| Plan::of(study, machine));
    add_refused(&mut plan, host, study);
    Ok(plan)
}

/// Plans the same for a machine that is not asked: its system is known, and nothing else.
pub fn plan_unasked(system: &str, scratch: &Path, study: &Study) -> Plan {
    let host = stack::imagined(Fault::Never).of_system(system, []);
    on_machine(&host, scratch, study, |machine| {
        let facts = MachineFacts {
            commands: machine.commands,
            missing: &|| Vec::new(),
            free_bytes: &|_| None,
            speed: machine.speed,
            memory_bytes: None,
            scratch: machine.scratch,
        };
        Plan::of(study, &facts)
    })
}

/// Lists what is on the disks a study names, and what speaks against writing over them.
pub fn dangers(study: &Study, wipe: &[String]) -> Vec<Danger> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let configurations = study.configurations.iter();
    let mut all = Stack::named_twice(configurations.map(|one| &one.stack), &host);
    let machine = Inspection::new(&host, wipe);
    for configuration in &study.configurations {
        for danger in configuration.stack.dangers(&machine) {
            // Configurations often name the same disk.
            if !all.contains(&danger) {
                all.push(danger);
            }
        }
    }
    all
}

/// Puts the dangers into words; empty where nothing is lost and nothing speaks against it.
pub fn dangers_text(study: &Study) -> String {
    let dangers = dangers(study, &[]);
    let lines = dangers.iter().map(|danger| match danger {
        Danger::Lost(what) => format!("would be lost {what}\n"),
        Danger::Refused(error) => format!("refused: {error}\n{}", next_line(2, &error.next())),
    });
    match dangers.is_empty() {
        true => String::new(),
        false => format!(
            "\nDisks and settings that are named\n{}",
            lines.collect::<String>()
        ),
    }
}

/// Refuses a study that names a disk which may not be written over, before anything is touched.
pub fn check_dangers(study: &Study, wipe: &[String]) -> Result<(), Failure> {
    for danger in dangers(study, wipe) {
        if let Danger::Refused(error) = danger {
            return Err(Failure::refused(error.to_string()).next(error.next()));
        }
    }
    Ok(())
}

/// The steps that set up, settle and tear down one configuration, imagined by the host of plans; a line that
/// begins with `#` says what the next ones are for.
fn commands(
    host: &PlanHost,
    scratch: &Path,
    policy: &Policy,
    index: usize,
    configuration: &Configuration,
) -> Result<Vec<String>, String> {
    let journal = Journal::nowhere();
    let site = Site {
        host,
        journal: &journal,
        scratch: scratch.to_owned(),
        tag: format!("r1-t{index}"),
        seed: 0,
        wipe: &[],
        undo: stack::undo_kinds(),
        interrupt: None,
    };
    // The store itself is part of every run and says nothing of the stack.
    let of_stack = |step: &&Step| {
        let path = step.argv.last();
        !path.is_some_and(|path| scratch.starts_with(path))
    };
    let mut known = 0;
    let mut news = || -> Vec<String> {
        let steps = host.steps();
        let new = steps[known..].iter().filter(of_stack).map(Step::shown);
        let new = new.collect();
        known = steps.len();
        new
    };
    let words = |error: StackError| error.to_string();
    let standing = configuration.stack.set_up(&site).map_err(words)?;
    let mut lines = news();
    standing
        .settle(&site, policy.drop_caches, policy.remount)
        .map_err(words)?;
    lines.push("# before each phase".to_owned());
    lines.extend(news());
    standing.tear_down(&site).map_err(words)?;
    lines.push("# when its trials of the round are done".to_owned());
    lines.extend(news());
    Ok(lines)
}

/// Calls with what must be known of this machine.
fn on_this_machine<T>(
    context: &Context,
    study: &Study,
    with: impl FnOnce(&MachineFacts<'_>) -> T,
) -> Result<T, Failure> {
    let host = context.host(Arc::new(|_| ()));
    let scratch = context.store_dir()?.join("runs").join("RUN").join("mnt");
    Ok(on_machine(&host, &scratch, study, with))
}

/// The host of plans in the place of a machine: of its system, with the directories that the study names.
fn imagined_for(host: &dyn Host, stacks: &Stack) -> PlanHost {
    let imagined = match stacks.is_modelled() {
        // Its machines are in one kernel.
        true => stack::imagined(Fault::Never).in_one_kernel(),
        false => stack::imagined(Fault::Never),
    };
    match host.is_here() {
        true => imagined,
        // They were found there before.
        false => {
            let places = stacks.disk_needed_on(1).into_iter().map(|(place, _)| place);
            imagined.of_system(&host.system().unwrap_or_default(), places)
        }
    }
}

/// Returns true if the lab could have what this machine lacks: the stacks of a study are made from nothing, and use no
/// directory or disk of the user's.
fn lab_would_do(study: &Study) -> bool {
    let mut stacks = study.configurations.iter().map(|one| &one.stack);
    !stacks.any(uses_own) && study.places().is_none()
}

/// Calls `with` with the facts of a machine.
fn on_machine<T>(
    host: &dyn Host,
    scratch: &Path,
    study: &Study,
    with: impl FnOnce(&MachineFacts<'_>) -> T,
) -> T {
    with(&MachineFacts {
        commands: &|index, configuration| {
            let imagined = imagined_for(host, &configuration.stack);
            commands(&imagined, scratch, &study.policy, index, configuration)
        },
        missing: &|| {
            let stacks = study
                .configurations
                .iter()
                .map(|configuration| &configuration.stack);
            let mut missing = stack::missing(stacks, host);
            let configurations = study.configurations.iter();
            for workload in configurations.flat_map(|one| &one.workloads) {
                let lacking = host.missing(&workload.needs());
                let new = |error: &HostError| !missing.contains(error);
                let new: Vec<HostError> = lacking.into_iter().filter(new).collect();
                missing.extend(new);
            }
            let lab = || study::command("run", &study.name, &["--lab"]);
            let lab = lab_would_do(study).then(lab);
            advised(host, &missing, lab.as_deref())
        },
        free_bytes: &|path| free_bytes(host, path),
        speed: StorageSpeed::Unknown,
        memory_bytes: host
            .is_here()
            .then(stackrace_machine::observe::memory_bytes)
            .flatten(),
        scratch,
    })
}

/// What workloads refuse of what they will be given, though all programs are there.
fn refused_by_workloads(host: &dyn Host, study: &Study) -> Vec<String> {
    let workloads = study.configurations.iter().flat_map(|one| &one.workloads);
    let mut refused: Vec<String> = workloads.filter_map(|one| one.refused_on(host)).collect();
    // Configurations mostly have the same workloads.
    refused.dedup();
    refused
}

fn add_refused(plan: &mut Plan, host: &dyn Host, study: &Study) {
    for why in refused_by_workloads(host, study) {
        plan.add_problem(why);
    }
}

/// Files that workloads read are needed here as well, where results are put together: which figures there are follows
/// from them.
fn add_unread(plan: &mut Plan, study: &Study) {
    for why in unread(study) {
        plan.add_problem(why);
    }
}

fn unread(study: &Study) -> BTreeSet<String> {
    let workloads = study.configurations.iter().flat_map(|one| &one.workloads);
    let files = workloads.flat_map(|one| one.reads());
    let unread = files.filter_map(|file| {
        let error = std::fs::metadata(&file).err()?;
        let (file, error) = (file.shown(), error.in_words());
        Some(format!(
            "{file} is needed on this machine, too: {error}; copy it to this path"
        ))
    });
    // Configurations mostly have the same workloads.
    unread.collect()
}

/// Refuses a study whose workloads refuse what they will be given.
fn check_programs(host: &dyn Host, study: &Study) -> Result<(), Failure> {
    let refused = refused_by_workloads(host, study);
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::refused(refused.join("\n")).next("change what the program is given")),
    }
}

/// Refuses a study this machine cannot carry out, before anything is created.
pub fn check_machine(context: &Context, study: &Study) -> Result<(), Failure> {
    check_limits(true)?;
    on_this_machine(context, study, |machine| {
        let missing = (machine.missing)();
        // All that is missing at once: it can be installed in one go.
        if !missing.is_empty() {
            return Err(Failure::unable(missing.join("\n")));
        }
        let host = context.host(Arc::new(|_| ()));
        check_programs(&host, study)?;
        check_room(study, machine, 1, "")?;
        for node in 2..=host.nodes() {
            let peer = host
                .peer(node)
                .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
            let scratch = peer.own_scratch().unwrap_or(machine.scratch);
            let there = MachineFacts {
                free_bytes: &|path| free_bytes(peer, path),
                scratch,
                ..*machine
            };
            check_room(study, &there, node, &format!("{}: ", peer.name()))?;
        }
        Ok(())
    })?
}

/// Refuses to begin under a limit with which each step fails in another place; `many` threads are tried.
///
/// # Errors
/// The limit, and how it is raised.
pub fn check_limits(many: bool) -> Result<(), Failure> {
    limit::too_low(many).map_or(Ok(()), |low| Err(Failure::refused(low.said).next(low.next)))
}

/// Refuses a study that needs more room than there is on a machine of its stacks.
fn check_room(
    study: &Study,
    machine: &MachineFacts<'_>,
    node: usize,
    called: &str,
) -> Result<(), Failure> {
    for need in stackrace_study::plan::room(study, machine, node) {
        let Some(free) = need.free_bytes.filter(|free| need.needed_bytes > *free) else {
            continue;
        };
        let (needed, free) = (unit::bytes(need.needed_bytes), unit::bytes(free));
        return Err(Failure::refused(format!(
            "{called}{} has {free} free; this study needs {needed} there",
            need.path.shown()
        ))
        .next("free space there, or make the study's devices or data smaller"));
    }
    Ok(())
}

/// Bytes that may be written where runs are kept; a system that does not say is taken at its word later.
///
/// # Errors
/// There is no place for results.
pub fn free_for_runs(context: &Context) -> Result<u64, Failure> {
    let host = context.host(Arc::new(|_| ()));
    Ok(free_bytes(&host, &context.store_dir()?).unwrap_or(u64::MAX))
}

/// Returns what is free at a place, or where it would be made.
fn free_bytes(host: &dyn Host, path: &Path) -> Option<u64> {
    // What does not exist yet will lie where its nearest ancestor does.
    let there = path.ancestors().find(|path| host.is_dir(path))?;
    host.free_bytes(there).ok()
}

/// Refuses a study that names a place where no directory is, before anything is created.
fn check_places(context: &Context, study: &Study) -> Result<(), Failure> {
    let host = context.host(Arc::new(|_| ()));
    check_places_on(&host, study, 1, "")?;
    for node in 2..=host.nodes() {
        // A peer that cannot be had is refused by `check_machine`.
        if let Ok(peer) = host.peer(node) {
            check_places_on(peer, study, node, &format!("{}: ", peer.name()))?;
        }
    }
    Ok(())
}

fn check_places_on(
    host: &dyn Host,
    study: &Study,
    node: usize,
    called: &str,
) -> Result<(), Failure> {
    for configuration in &study.configurations {
        for (place, _) in configuration.stack.disk_needed_on(node) {
            // An empty path is the run's own directory, which is made.
            if place.as_os_str().is_empty() {
                continue;
            }
            if host.is_dir(&place) {
                check_open(host, &place, called)?;
                continue;
            }
            let what = if host.exists(&place) {
                "is not a directory"
            } else {
                "does not exist"
            };
            return Err(
                Failure::refused(format!("{called}{} {what}", place.shown()))
                    .next("name an existing directory"),
            );
        }
    }
    Ok(())
}

/// Refuses a directory in which nothing can be made, before a trial finds that out.
fn check_open(host: &dyn Host, place: &Path, called: &str) -> Result<(), Failure> {
    // Where the user stands is told by its whole path.
    let whole = host.canonical(place).unwrap_or_else(|_| place.to_owned());
    let Some(error) = host.closed(&whole) else {
        return Ok(());
    };
    let next = match place == Path::new(".") {
        true => "go to a directory that you may write to (cd), and start it there",
        false => "name a directory that you may write to",
    };
    Err(Failure::refused(format!("{called}{error}")).next(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::study_file::parse;
    use stackrace_study::study::{SHIPPED, left_out};

    #[test]
    fn a_plan_knows_the_commands_of_every_study_that_ships() {
        for (name, text) in SHIPPED {
            let study = match (parse(name, text.as_bytes()), left_out(text)) {
                (Ok(study), _) => study,
                (Err(_), Some(_)) => continue,
                (Err(_), None) => panic!("{name} cannot be read"),
            };
            for (index, configuration) in study.configurations.iter().enumerate() {
                let here = LocalHost::new(Arc::new(|_| ()));
                let imagined = imagined_for(&here, &configuration.stack);
                let scratch = Path::new("/srv/mnt");
                let shown = commands(&imagined, scratch, &study.policy, index, configuration);
                let lines =
                    shown.unwrap_or_else(|why| panic!("{name}: {}: {why}", configuration.name));
                assert!(lines.len() > 2, "{name}: {}: {lines:?}", configuration.name);
            }
        }
    }
    #[test]
    fn a_trace_that_is_not_here_is_needed_where_results_are_put_together() {
        let base = tempfile::tempdir().unwrap();
        let trace = base.path().join("app.trace");
        let text = format!(
            "title = \"t\"\n[factors]\nfs = [\"ext4\", \"xfs\"]\n[[stack]]\nloop = {{ size = \"1 GiB\" }}\n\
             [[stack]]\n\"{{fs}}\" = {{}}\n[[workload]]\nname = \"app\"\nreplay = {{ trace = \"{}\" }}\n",
            trace.display()
        );
        let study = parse("own", text.as_bytes()).unwrap_or_else(|why| panic!("{}", why.render()));
        let said: Vec<String> = unread(&study).into_iter().collect();
        let expected = "app.trace is needed on this machine, too: No such file or directory";
        assert!(said.len() == 1 && said[0].contains(expected), "{said:?}");
        std::fs::write(&trace, "").unwrap();
        assert!(unread(&study).is_empty());
    }
}
