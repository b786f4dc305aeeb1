//! The lines of a job of fio: names in brackets, and options below them.

use super::value;

/// Sections whose name begins so hold for all jobs after them.
const GLOBAL: &str = "global";

/// Why a job is not given to fio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFault {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
    /// What to write instead.
    pub next: String,
}

impl JobFault {
    pub(super) fn at(line: usize, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
            next: next.into(),
        }
    }
}

/// One option, as it is written.
#[derive(Debug, Clone)]
pub(super) struct JobOption<'a> {
    /// Number of its line, from 1.
    pub(super) line: usize,
    /// Its name, in lower case, by the name that fio's manual has first.
    pub(super) name: String,
    /// As fio reads it: without the comment behind it.
    pub(super) value: &'a str,
    /// All that stands behind the sign of equality.
    pub(super) whole: &'a str,
}

/// What stands below one name in brackets.
#[derive(Debug, Clone, Default)]
pub(super) struct JobSection<'a> {
    pub(super) line: usize,
    pub(super) name: &'a str,
    /// Its own options.
    pub(super) own: Vec<JobOption<'a>>,
    /// Those of `[global]` before it.
    inherited: Vec<JobOption<'a>>,
}

/// Whether what stands below a name holds for all jobs after it.
pub(super) fn is_global(name: &str) -> bool {
    // As fio compares it: [globals] holds for all jobs, too.
    name.starts_with(GLOBAL)
}

/// Longest line, bytes: fio reads lines in pieces of 4096 or 8192 bytes, by version.
const LINE_MAX: usize = 4000;

/// The sections of a job, in their order.
pub(super) fn sections<'a>(text: &'a str, faults: &mut Vec<JobFault>) -> Vec<JobSection<'a>> {
    let mut sections: Vec<JobSection<'a>> = Vec::new();
    let mut global: Vec<JobOption<'a>> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        // What stands behind is a line of its own for fio, and what hides it here would not hide it there.
        if text.len() > LINE_MAX {
            faults.push(JobFault::at(
                index + 1,
                "this line is longer than fio reads at once",
                format!("write lines of at most {LINE_MAX} bytes"),
            ));
            continue;
        }
        let (line, text) = (index + 1, text.trim());
        if text.is_empty() || text.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = text.strip_prefix('[') {
            let name = name.rsplit_once(']').map_or(name, |(name, _)| name);
            if let Some(before) = sections.last().filter(|one| is_global(one.name)) {
                global.extend(before.own.iter().cloned());
            }
            sections.push(JobSection {
                line,
                name,
                own: Vec::new(),
                inherited: global.clone(),
            });
            continue;
        }
        if text.contains("${") {
            faults.push(JobFault::at(
                line,
                "the environment of stackrace does not have this variable",
                "set it, or write its value into the job",
            ));
        }
        if text.starts_with("include") {
            let what = "include reads another file, which would not be kept with the study";
            faults.push(JobFault::at(
                line,
                what,
                "write the lines of that file in its place",
            ));
            continue;
        }
        match sections.last_mut() {
            Some(section) => section.own.push(option(line, text)),
            None => {
                let what = "this option stands before the first name in brackets";
                faults.push(JobFault::at(line, what, "write [global] above it"));
            }
        }
    }
    sections
}

fn option(line: usize, text: &str) -> JobOption<'_> {
    let (name, whole) = text.split_once('=').unwrap_or((text, ""));
    let end = |text: &str| text.find([';', '#']).unwrap_or(text.len());
    // Dashes are those of a command line: fio refuses them, and what is checked must not depend on that.
    let name = name[..end(name)]
        .trim()
        .trim_start_matches('-')
        .to_ascii_lowercase();
    let name = match name.as_str() {
        "readwrite" => "rw".to_owned(),
        "iomem" => "mem".to_owned(),
        "nr_files" => "nrfiles".to_owned(),
        "wait_for_previous" => "stonewall".to_owned(),
        _ => name,
    };
    JobOption {
        line,
        name,
        value: whole[..end(whole)].trim(),
        whole: whole.trim(),
    }
}

impl JobSection<'_> {
    /// All options that hold for it; of two of one name the last one does.
    pub(super) fn all(&self) -> impl Iterator<Item = &JobOption<'_>> {
        self.inherited.iter().chain(&self.own)
    }

    /// The last value of an option: that of the section, or that of `[global]`.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let mut all = self.own.iter().rev().chain(self.inherited.iter().rev());
        all.find(|one| one.name == name).map(|one| one.value)
    }

    /// Whether an option is on: without a value it is.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value != "0")
    }

    /// What is moved by its word for `rw`; where it verifies, what it wrote is read, too.
    pub(super) fn directions(&self) -> Vec<&'static str> {
        let mode = self.value("rw").unwrap_or("read");
        let mode = mode.split([':', ',']).next().unwrap_or_default();
        let unified = self.value("unified_rw_reporting").unwrap_or("none");
        if matches!(unified, "1" | "" | "mixed") {
            return vec!["mixed"];
        }
        match mode {
            "write" | "randwrite" if self.is_on("verify") => vec!["read", "write"],
            "write" | "randwrite" => vec!["write"],
            "trim" | "randtrim" => vec!["trim"],
            "rw" | "randrw" | "readwrite" => vec!["read", "write"],
            "trimwrite" | "randtrimwrite" => vec!["write", "trim"],
            _ => vec!["read"],
        }
    }

    /// Bytes of its files; none: not said in numbers.
    pub(super) fn bytes(&self) -> Option<u64> {
        let base = match self.value("kb_base") {
            Some("1000") => 1000,
            _ => 1024,
        };
        let size = value::bytes(self.value("size")?, base)?;
        let clones = self
            .value("numjobs")
            .map_or(Some(1), |it| it.parse().ok())?;
        // Clones share files that have a name.
        match self.value("filename") {
            Some(_) => Some(size),
            None => size.checked_mul(clones),
        }
    }
}
