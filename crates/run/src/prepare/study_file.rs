//! Reads a study, from a file or from the built-in ones, and applies the machines and the decision
//! rule of the command line.

use stackrace_base::unit::InWords;
use std::io::ErrorKind;
use std::path::Path;

use crate::prepare::job_file::{self, Variables};
use stackrace_base::bounded::ByteLimit;
use stackrace_base::event::{Decide, Precision, Until, WorkloadHead};
use stackrace_base::failure::Failure;
use stackrace_base::setting::{Refusal, nearest};
use stackrace_base::unit;
use stackrace_load::programs;
use stackrace_load::workload::{replay, together};
use stackrace_remote::agent::message::Clients;
use stackrace_study::study::{
    self, AskedDrive, HOST, Kinds, ROUNDS_MAX, SYSTEM, Study, StudyError, StudyTable,
};

/// Settings that the command line gives instead of the study.
#[derive(Debug, Default, Clone, Copy)]
pub struct Overrides {
    /// Differences smaller than this do not matter.
    pub margin: Option<f64>,
    /// Confidence that every statement together must have.
    pub confidence: Option<f64>,
    /// Seed of everything random.
    pub seed: Option<u64>,
    /// Time that the run may take, ns.
    pub time_max_ns: Option<u64>,
    /// Number of rounds it may take; without a time, however long they take.
    pub rounds_max: Option<u32>,
    /// True if it goes on until the question is decided.
    pub until_decided: bool,
    /// How well a difference must be known.
    pub precision: Option<Precision>,
    /// True if each workload is to be decided, and not only the overall figure.
    pub each: bool,
}

/// Time of a run that has no limit, ns.
pub const NO_LIMIT_NS: u64 = Decide::NO_LIMIT_NS;

impl Overrides {
    /// Returns true if the time a run is given may end it.
    pub fn ends_by_time(&self) -> bool {
        let unlimited = self.until_decided || self.rounds_max.is_some();
        self.time_max_ns.is_some() || !unlimited
    }

    /// Puts them into a study.
    pub fn apply(&self, study: &mut Study) {
        let decide = &mut study.decide;
        decide.margin = self.margin.unwrap_or(decide.margin);
        decide.confidence = self.confidence.unwrap_or(decide.confidence);
        decide.precision = self.precision.unwrap_or(decide.precision);
        // Before the first round: how the error is shared depends on it.
        if self.each {
            decide.until = Until::Each;
        }
        if self.until_decided {
            until_decided(decide);
        }
        if let Some(rounds) = self.rounds_max {
            decide.rounds_max = rounds;
            decide.time_max_ns = NO_LIMIT_NS;
        }
        // A time that is given limits the rounds, too.
        decide.time_max_ns = self.time_max_ns.unwrap_or(decide.time_max_ns);
        study.seed = self.seed.unwrap_or(study.seed);
    }

    /// A study with a `[decide]` table, changed so that it says the same by itself.
    pub fn written(&self, study: StudyTable) -> StudyTable {
        self.with(study, self.time_max_ns, None)
    }

    /// Returns the same with its limits, too, to be kept and run again. They are not in the text that a run of
    /// `compare` keeps: the sizes of an earlier run fit however many rounds there are.
    pub fn written_with_limits(&self, study: StudyTable) -> StudyTable {
        let time = match self.ends_by_time() {
            true => self.time_max_ns,
            false => Some(NO_LIMIT_NS),
        };
        let most = self.until_decided.then_some(ROUNDS_MAX);
        self.with(study, time, most.or(self.rounds_max))
    }

    fn with(&self, study: StudyTable, time_ns: Option<u64>, rounds: Option<u32>) -> StudyTable {
        let share = |share: Option<f64>| share.map(|share| share.to_string());
        let (direction, within) = match self.precision {
            Some(Precision::Direction) => (Some("direction"), None),
            Some(Precision::Within(within)) => (None, Some(within)),
            Some(Precision::Size) | None => (None, None),
        };
        let decided = StudyTable::default()
            .optional("margin", share(self.margin))
            .optional("confidence", share(self.confidence))
            .optional("precision", direction)
            .optional("within", share(within))
            .optional("until", self.each.then_some("each"))
            .optional("at-most", time_ns.map(unit::whole_time))
            .optional("rounds-at-most", rounds.map(u64::from));
        let seed = StudyTable::default().optional("seed", self.seed);
        study
            .changed("decide", |decide| decide.led_by(decided))
            .led_by(seed)
    }
}

/// Takes time that was spent before the first round off what a run may take; where there is no limit, none arises.
pub fn spend(decide: &mut Decide, ns: u64) {
    if let Some(limit) = decide.time_limit_ns() {
        decide.time_max_ns = limit.saturating_sub(ns).max(1);
    }
}

/// Has a run go on until the question is decided, however many rounds and however long that takes.
pub fn until_decided(decide: &mut Decide) {
    decide.rounds_max = ROUNDS_MAX;
    decide.time_max_ns = NO_LIMIT_NS;
    // It would go on although all is decided.
    if decide.until == Until::Never {
        decide.until = Until::Overall;
    }
}

/// Refuses to go on until a question is decided that a study does not ask.
///
/// # Errors
/// One configuration alone is measured, and nothing is required of it.
pub fn check_question(study: &Study, until_decided: bool) -> Result<(), Failure> {
    let decide = &study.decide;
    let compares = study.configurations.len() > 1;
    if !until_decided || compares || !decide.required.is_empty() || study.crash.is_some() {
        return Ok(());
    }
    let text = "--until-decided, and nothing is to be decided: one configuration is measured, and nothing is required of it";
    Err(Failure::usage(text).next(
        "say what is enough (check DIR --require \"METRIC <= BOUND\", [require] in a study), or end it by --time or --rounds",
    ))
}

/// A study: a file, or one that ships; at full size if asked. Job files that it names, from the directory of the study,
/// become part of its text; `variable` has the environment that they may use.
///
/// # Errors
/// It, or a job file, cannot be read, or is not valid.
pub fn read(name: &str, full: bool, variable: &Variables<'_>) -> Result<Study, Failure> {
    let (name, text) = read_study(name)?;
    let beside = Path::new(&name).parent().unwrap_or(Path::new(""));
    let job = |file: &str| job_file::text_of(&beside.join(file), variable);
    let text = study::with_jobs(&name, text, &job)
        .map_err(|error| Failure::refused(error.render(false)))?;
    // The text as it was written comes first: errors then show the lines of the user's file.
    let study = parse(&name, &text)?;
    if !full {
        return Ok(study);
    }
    parse(&name, &study::full_size(&text))
}

/// The text of a study: a file, or one that ships.
fn read_study(name: &str) -> Result<(String, Vec<u8>), Failure> {
    let path = Path::new(name);
    // A file comes before a study of its name that ships.
    if !path.is_file()
        && let Some((shipped, text)) = study::SHIPPED.iter().find(|(shipped, _)| *shipped == name)
    {
        return Ok((format!("{shipped}.toml"), text.as_bytes().to_vec()));
    }
    match ByteLimit::new(study::TEXT_MAX as u64).read(path) {
        Ok(bytes) => Ok((name.to_owned(), bytes)),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(Failure::refused(format!(
            "cannot read the study {name}: {error}",
            error = error.in_words()
        ))
        .next("check that it is the right file")),
        Err(error) => {
            // Only where it is likely: a path is no misspelt name.
            let near = study::SHIPPED
                .iter()
                .map(|(shipped, _)| (strsim::jaro_winkler(name, shipped), *shipped))
                .filter(|(likeness, _)| *likeness > 0.8)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let next = match near {
                Some((_, near)) => format!("did you mean \"{near}\"? All that ship: "),
                None => {
                    "name a file, or a study that ships, such as demo; all of them: ".to_owned()
                }
            };
            Err(Failure::refused(format!(
                "cannot read the study {name}: {error}",
                error = error.in_words()
            ))
            .next(format!("{next}stackrace show studies")))
        }
    }
}

/// A study, or every error in it.
///
/// # Errors
/// It is not valid.
pub fn parse(name: &str, text: &[u8]) -> Result<Study, Failure> {
    study::parse(name, text, &Kinds::real()).map_err(refused)
}

/// What the user typed that became a word of a study.
pub struct TypedWord {
    /// The option, as it is named in an error.
    pub option: String,
    /// Advice in place of that on a study; `None` if that holds for the option, too.
    pub next: Option<String>,
}

impl From<&str> for TypedWord {
    fn from(option: &str) -> Self {
        Self {
            option: option.to_owned(),
            next: None,
        }
    }
}

/// A study that a command made, or every error in it. `typed` names the option that a word of it came from: the user
/// wrote that, and no line of the study.
///
/// # Errors
/// It is not valid.
pub fn made(
    name: &str,
    table: StudyTable,
    typed: &dyn Fn(&[&str]) -> Option<TypedWord>,
) -> Result<Study, Failure> {
    study::made(name, table, &Kinds::real()).map_err(|errors| {
        let said = errors.into_iter().map(|error| {
            let words: Vec<&str> = error.words.iter().map(String::as_str).collect();
            let (message, help) = (error.refusal.message, error.refusal.help);
            match typed(&words) {
                Some(TypedWord { option, next }) => {
                    (format!("{option}: {message}"), next.unwrap_or(help))
                }
                None => (message, help),
            }
        });
        let (said, mut next): (Vec<String>, Vec<String>) = said.unzip();
        next.retain(|help| !help.is_empty());
        next.dedup();
        Failure::refused(said.join("\n       ")).next(next.join("; "))
    })
}

fn refused(errors: Vec<StudyError>) -> Failure {
    let text: Vec<String> = errors.iter().map(|error| error.render(false)).collect();
    Failure::refused(text.join("\n"))
}

/// The study at the places that the command line names; at one alone, nothing is varied.
///
/// # Errors
/// The study is not valid at these places.
pub fn at_places(study: Study, systems: &[String], hosts: &[String]) -> Result<Study, Failure> {
    let (factor, places) = match hosts {
        [] => (SYSTEM, systems),
        _ => (HOST, hosts),
    };
    if places.is_empty() || (places.len() == 1 && study.places().is_none()) {
        return Ok(study);
    }
    let text = study::in_places(&study.text, factor, places);
    parse(&study.name, text.as_bytes())
}

/// The study on modelled drives that the command line names, in place of its own disks.
///
/// # Errors
/// A drive is named twice, or the study has no disks that it could be.
pub fn on_drives(study: Study, drives: &[AskedDrive]) -> Result<Study, Failure> {
    if drives.is_empty() {
        return Ok(study);
    }
    let twice = |at: usize| drives[..at].iter().any(|one| one.name == drives[at].name);
    if let Some(at) = (0..drives.len()).find(|at| twice(*at)) {
        let name = &drives[at].name;
        return Err(Failure::usage(format!("--drive {name} is given twice")).next("name it once"));
    }
    let text = study::on_drives(&study, drives);
    let text = text.map_err(|refusal| Failure::refused(study.refusal(refusal).render(false)))?;
    parse(&study.name, text.as_bytes())
}

/// The configurations of one place, alone: what is to be checked there. Their indices are not those of
/// the study.
///
/// # Errors
/// The study is not valid.
pub fn part(study: &Study, place: Option<&str>) -> Result<Study, Failure> {
    // Read again, as a study with its stacks and workloads cannot be copied.
    let mut part = parse(&study.name, study.text.as_bytes())?;
    if place.is_some() {
        let mut there = (0..study.configurations.len()).map(|t| study.place_of(t) == place);
        part.configurations.retain(|_| there.next() == Some(true));
    }
    Ok(part)
}

/// Refuses a study whose places are systems of the lab, outside of the lab.
///
/// # Errors
/// Its places are systems of the lab.
pub fn check_not_in_the_lab(study: &Study) -> Result<(), Failure> {
    let Some(factor) = study.places() else {
        return Ok(());
    };
    let error = study.refusal(Refusal::at(
        &factor.span,
        format!("the levels of \"{}\" are systems of the lab", factor.name),
        format!(
            "run it there: {}",
            study::command("run", &study.name, &["--lab"])
        ),
    ));
    Err(Failure::refused(error.render(false)))
}

/// Refuses permission to wipe a disk that no configuration names: a word that would be ignored.
///
/// # Errors
/// The study names no disk of one of these ids.
pub fn check_wipe(study: &Study, wipe: &[String]) -> Result<(), Failure> {
    let configurations = study.configurations.iter();
    let mut named: Vec<&str> = configurations.flat_map(|t| t.stack.disk_ids()).collect();
    named.sort_unstable();
    named.dedup();
    let Some(unnamed) = wipe.iter().find(|id| !named.contains(&id.as_str())) else {
        return Ok(());
    };
    // A disk may be meant by its link: /dev/disk/by-id/ID.
    let word = unnamed.rsplit('/').next().unwrap_or(unnamed);
    let next = match (nearest(word, named.iter().copied()), named.is_empty()) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, false) => format!("the study names {}", named.join(", ")),
        (None, true) => "leave it out: the study names no disks".to_owned(),
    };
    Err(Failure::usage(format!(
        "--wipe {unnamed}: the study names no disk of that id"
    ))
    .next(next))
}

/// Refuses a study that several clients cannot measure together.
///
/// # Errors
/// A stack is more than a directory, or more clients are needed than there are.
pub fn check_clients(study: &Study, clients: &Clients) -> Result<(), Failure> {
    if let Some(factor) = study.places() {
        return Err(Failure::usage(format!(
            "--clients goes with one storage, and this study has a factor \"{}\"",
            factor.name
        ))
        .next("leave the factor out, or --clients"));
    }
    if !study.together.is_empty() {
        return Err(Failure::usage(
            "--clients has all clients do one workload at a time, and this study measures several together",
        )
        .next("leave out together, or --clients"));
    }
    // What one machine builds, another one does not see.
    for configuration in &study.configurations {
        if configuration.stack.existing_directory().is_none() {
            return Err(Failure::refused(format!(
                "--clients measures directories that all clients have mounted, and {} is built by stackrace on one machine",
                configuration.name
            ))
            .next("build it first and mount it on every client; then name it: dir = { path = \"/mnt/...\" }"));
        }
    }
    if let Some(head) = study
        .workload_heads
        .iter()
        .find(|head| !programs::kind(&head.kind).is_some_and(|kind| kind.mergeable))
    {
        return Err(not_by_clients(head));
    }
    // Of the factors, the largest levels count.
    let (count, processes) = study.clients_most();
    let there = clients.names.len();
    if count.is_some_and(|count| count as usize > there) {
        return Err(Failure::usage(format!(
            "the study needs {} clients; --clients names {there}",
            count.unwrap_or(0)
        ))
        .next("name more clients, or fewer in the factor"));
    }
    if processes.is_some_and(|processes| processes > clients.processes) {
        return Err(Failure::usage(format!(
            "the study needs {} processes on each client; --processes says {}",
            processes.unwrap_or(0),
            clients.processes
        ))
        .next("leave --processes out: as many are started as are needed"));
    }
    Ok(())
}

/// Why a workload cannot be measured by several clients together.
fn not_by_clients(head: &WorkloadHead) -> Failure {
    if head.kind == replay::REPLAY {
        return Failure::refused(format!(
            "{} replays one application, and each of several clients would do all that it did",
            head.name
        ))
        .next("replay it on one machine, without --clients");
    }
    Failure::refused(format!(
        "{} reports more than rates and latencies, which cannot be put together over clients",
        head.name
    ))
    .next("use files or shared-file instead")
}

/// Has a study measured by clients: it costs what all of them do, and its rates are also told for the
/// time in which all were at work.
pub fn by_clients(study: &mut Study, clients: &Clients) {
    for index in 0..study.configurations.len() {
        let (count, each) = study.clients_of(index);
        let count = count.map_or(clients.names.len(), |count| count as usize);
        let each = each.unwrap_or(clients.processes) as usize;
        study.configurations[index].processes = count * each;
    }
    // All configurations have the same workloads, so the first one says how many phases they have.
    let first = study.configurations.first();
    let phases = first.map_or_else(Vec::new, |one| {
        let workloads = one.workloads.iter();
        workloads.map(|workload| workload.phases().len()).collect()
    });
    for (head, phases) in study.workload_heads.iter_mut().zip(phases) {
        // Of several phases, each has a window of its own.
        if phases == 1 {
            head.metrics.extend(together::window_heads(&head.metrics));
        }
    }
    // Clients would have to change turns in step.
    study.policy.slices = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Studies that lack something, each refused with lines to add.
    #[test]
    fn lines_that_a_refused_study_is_told_to_add_are_accepted() {
        let whole = "title = \"t\"\n[factors]\nq = [1, 2]\n[[stack]]\ntmpfs = { size = \"{q} GiB\" }\n\
                     [[workload]]\nfiles = { count = 4 }\n[decide]\nrounds-at-most = 3\n";
        let without = |part: &str| whole.replace(part, "");
        let added = |study: &str, table: &str| {
            let refused = parse("s.toml", study.as_bytes())
                .err()
                .map(Failure::into_parts);
            let (text, _) = refused.unwrap_or_default();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let at = lines.iter().position(|line| *line == table);
            let at = at.unwrap_or_else(|| panic!("no lines to add in {text}"));
            lines[at..at + 2].join("\n")
        };
        let study = without("[[stack]]\ntmpfs = { size = \"{q} GiB\" }\n");
        let study = study.replace("count = 4", "count = \"{q}\"");
        let more = added(&study, "[[stack]]");
        assert!(
            parse("s.toml", format!("{study}{more}\n").as_bytes()).is_ok(),
            "{more}"
        );
        let study = without("[[workload]]\nfiles = { count = 4 }\n");
        let more = added(&study, "[[workload]]");
        let again = parse("s.toml", format!("{study}{more}\n").as_bytes());
        assert!(
            again.is_ok(),
            "{more}: {}",
            again
                .err()
                .map_or(String::new(), |failure| failure.render())
        );
    }
}
