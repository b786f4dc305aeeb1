//! Job files and command lines, read into sections of options with their places.

use std::rc::Rc;

use super::known::{find, nearest};
use super::place::{JobError, OptionPlace};

/// Characters of a foreign word that a refusal shows.
const SHOWN: usize = 60;
/// Jobs of one text, at most.
const SECTIONS_MAX: usize = 1024;

/// One option as it was given.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// The option's name, whatever it was called.
    pub(super) name: &'static str,
    /// Its value; `None` if it stood alone.
    pub(super) value: Option<String>,
    pub(super) place: OptionPlace,
}

/// One job as it was given: what was said of all jobs until then, and of it.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// Word it began with: its files are called so, whatever its name is then.
    pub(super) title: String,
    pub(super) name: String,
    pub(super) place: OptionPlace,
    pub(super) global: Rc<Vec<Given>>,
    pub(super) own: Vec<Given>,
}

/// One `--name=value` or `-name value` of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Name without the dashes.
    pub name: String,
    /// Its value; `None` if it stood alone.
    pub value: Option<String>,
}

/// Jobs, in the order they were given: first those of a command line, then those of files.
#[derive(Debug, Default)]
pub struct Sections {
    global: Rc<Vec<Given>>,
    pub(super) all: Vec<Section>,
    /// Refusals of what is not understood. All the rest is read too, so that it is said at once.
    pub(super) refused: Vec<JobError>,
}

/// The beginning of a foreign word on one line, without what would steer a terminal.
pub(super) fn shown(word: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let end = if word.chars().nth(SHOWN).is_some() {
        "…"
    } else {
        ""
    };
    word.chars().take(SHOWN).map(plain).collect::<String>() + end
}

/// The part of the job file that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Nothing has begun yet.
    Nothing,
    /// Options of all jobs that follow.
    Global,
    /// The last job.
    Job,
}

impl Sections {
    /// Reads the jobs of a command line: what stands before the first `name` is said of all jobs,
    /// those of files too. What is not understood is kept for [`super::jobs`].
    pub fn arguments(&mut self, switches: &[Switch]) {
        let mut open = false;
        for switch in switches {
            if let Err(refusal) = self.argument(switch, &mut open) {
                self.refused.push(refusal);
            }
        }
    }

    fn argument(&mut self, switch: &Switch, open: &mut bool) -> Result<(), JobError> {
        let place = OptionPlace::Argument;
        let option = find(&switch.name)
            .ok_or_else(|| unknown(&place, &format!("--{}", shown(&switch.name)), &switch.name))?;
        // On the command line `name` begins a job.
        if option.name == "name" {
            let name = switch.value.clone().unwrap_or_default();
            *open = self.begin(name, place)?;
            return Ok(());
        }
        let given = Given {
            name: option.name,
            value: switch.value.clone(),
            place,
        };
        self.give(given, *open);
        Ok(())
    }

    /// Reads the jobs of a file; `variable` gives the value of an environment variable. What is not
    /// understood is kept for [`super::jobs`].
    pub fn file(&mut self, file: &str, text: &str, variable: &dyn Fn(&str) -> Option<String>) {
        let mut inside = Inside::Nothing;
        for (number, line) in text.lines().enumerate() {
            let place = OptionPlace::Line {
                file: file.to_owned(),
                line: number + 1,
            };
            let line = line.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if let Err(refusal) = self.line(line, place, &mut inside, variable) {
                self.refused.push(refusal);
            }
        }
    }

    fn line(
        &mut self,
        line: &str,
        place: OptionPlace,
        inside: &mut Inside,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), JobError> {
        if let Some(rest) = line.strip_prefix('[') {
            // What follows a broken beginning belongs to no job before it.
            *inside = Inside::Global;
            let name = rest.strip_suffix(']').filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| {
                let what = format!("\"{}\" is not the beginning of a job", shown(line));
                JobError::at(&place, what, "write [name], or [global]")
            })?;
            if self.begin(name.to_owned(), place)? {
                *inside = Inside::Job;
            }
            return Ok(());
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
            None => (line, None),
        };
        let option = find(name).ok_or_else(|| unknown(&place, &shown(name), name))?;
        if *inside == Inside::Nothing {
            let what = format!("{name} stands before the first job");
            return Err(JobError::at(
                &place,
                what,
                "write [global] or [name] above it",
            ));
        }
        let value = value.map(|value| expand(value, &place, variable));
        let value = value.transpose()?;
        // In a file the brackets begin a job; `name` gives it another name, and its files keep that
        // of the brackets. In [global] it names nothing, as with fio: the report shows it.
        if option.name == "name" && *inside == Inside::Job {
            return self.rename(value.unwrap_or_default(), &place);
        }
        let given = Given {
            name: option.name,
            value,
            place,
        };
        self.give(given, *inside == Inside::Job);
        Ok(())
    }

    /// Leaves out every job but those of these names.
    ///
    /// # Errors
    /// A name no job has.
    pub fn only(&mut self, names: &[String]) -> Result<(), JobError> {
        for name in names {
            if !self.all.iter().any(|section| section.title == *name) {
                let what = format!("there is no job \"{}\" for --section", shown(name));
                let all: Vec<&str> = self.all.iter().map(|it| it.title.as_str()).collect();
                let next = format!("choose among: {}", all.join(", "));
                return Err(JobError::at(&OptionPlace::Argument, what, next));
            }
        }
        if !names.is_empty() {
            self.all.retain(|section| names.contains(&section.title));
        }
        Ok(())
    }

    /// Begins a job; whether it is one (and not what is said of all).
    fn begin(&mut self, name: String, place: OptionPlace) -> Result<bool, JobError> {
        if name.is_empty() {
            return Err(JobError::at(
                &place,
                "a job has no name",
                "write --name=NAME",
            ));
        }
        if name == "global" {
            return Ok(false);
        }
        if self.all.len() == SECTIONS_MAX {
            let what = format!("there are more than {SECTIONS_MAX} jobs");
            return Err(JobError::at(
                &place,
                what,
                "write numjobs=N for jobs that are alike",
            ));
        }
        self.all.push(Section {
            title: name.clone(),
            name,
            place,
            global: Rc::clone(&self.global),
            own: Vec::new(),
        });
        Ok(true)
    }

    fn rename(&mut self, name: String, place: &OptionPlace) -> Result<(), JobError> {
        match self.all.last_mut() {
            Some(section) if !name.is_empty() => section.name = name,
            _ => {
                return Err(JobError::at(
                    place,
                    "`name=` has no name",
                    "write name=NAME",
                ));
            }
        }
        Ok(())
    }

    /// Takes an option for the job that is open, or for all that follow.
    fn give(&mut self, given: Given, open: bool) {
        match self.all.last_mut() {
            Some(section) if open => section.own.push(given),
            // What a job before has of them stays what it was.
            _ => Rc::make_mut(&mut self.global).push(given),
        }
    }
}

fn unknown(place: &OptionPlace, said: &str, name: &str) -> JobError {
    JobError::at(place, format!("{said} is not supported"), nearest(name))
}

/// A value with `${NAME}` replaced by the environment's.
fn expand(
    value: &str,
    place: &OptionPlace,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, JobError> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        // What a variable holds is not searched again, so that this ends.
        let (name, after) = after.split_once('}').ok_or_else(|| {
            let what = format!("\"{}\" has ${{ without }}", shown(value));
            JobError::at(place, what, "write ${NAME}")
        })?;
        let found = variable(name).ok_or_else(|| {
            let what = format!("the environment has no variable {}", shown(name));
            JobError::at(
                place,
                what,
                format!("set it: {}=… stackrace fio …", shown(name)),
            )
        })?;
        text = text + before + &found;
        rest = after;
    }
    text.push_str(rest);
    // fio computes with these; as they stand they would become a part of a file's name.
    for keyword in ["$pagesize", "$mb_memory", "$ncpus"] {
        if text.contains(keyword) {
            let what = format!("{keyword} is not supported");
            return Err(JobError::at(place, what, "write the number"));
        }
    }
    Ok(text)
}
