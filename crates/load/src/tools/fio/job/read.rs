//! The options of one job by their names: the last that was said counts.

use std::ops::RangeInclusive;

use super::super::language::{Given, Section, shown};
use super::super::place::JobError;
use super::super::value;
use super::resolved::Extent;

/// Reads a job's options by name, with those of `[global]` before its own.
pub(super) struct Reader<'a> {
    section: &'a Section,
    /// Factor that `k` stands for.
    base: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(section: &'a Section) -> Result<Self, JobError> {
        let mut reader = Self {
            section,
            base: 1024,
        };
        reader.base = match reader.text("kb_base") {
            None | Some("1024") => 1024,
            Some(_) => {
                let what = "kb_base other than 1024 is not supported";
                return Err(reader.refuse(
                    "kb_base",
                    what,
                    "leave it out, and write sizes in bytes",
                ));
            }
        };
        Ok(reader)
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &'a Given> {
        // A job's own options come behind those of all jobs, so that the last one counts.
        self.section.global.iter().chain(&self.section.own)
    }

    fn last(&self, name: &str) -> Option<&'a Given> {
        self.all().rfind(|given| given.name == name)
    }

    /// Returns the one of these that was said last.
    pub(super) fn last_of(&self, names: &[&str]) -> Option<&'static str> {
        let last = self.all().rfind(|given| names.contains(&given.name))?;
        Some(last.name)
    }

    /// Counts how often an option was given.
    pub(super) fn times(&self, name: &str) -> usize {
        self.all().filter(|given| given.name == name).count()
    }

    /// Options said of all jobs, and of this one, in order; what stood alone is 1.
    pub(super) fn options(&self) -> [Vec<(String, String)>; 2] {
        let pairs = |all: &[Given]| {
            let pair = |given: &Given| {
                let value = given.value.clone().unwrap_or_else(|| "1".to_owned());
                (given.name.to_owned(), value)
            };
            all.iter().map(pair).collect()
        };
        [pairs(&self.section.global), pairs(&self.section.own)]
    }

    /// A refusal at the option, or at the job where it was not given.
    pub(super) fn refuse(
        &self,
        name: &str,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> JobError {
        let place = self.last(name).map_or(&self.section.place, |it| &it.place);
        let what = format!("{} (job {})", what.into(), shown(&self.section.name));
        JobError::at(place, what, next)
    }

    /// Refuses an option's value.
    fn wrong(&self, name: &str, word: &str, next: impl Into<String>) -> JobError {
        self.refuse(
            name,
            format!("{name}={} is not understood", shown(word)),
            next,
        )
    }

    /// A word; what stands alone is empty.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        let given = self.last(name)?;
        Some(given.value.as_deref().unwrap_or_default())
    }

    /// Yes or no; what stands alone is yes.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, JobError> {
        let Some(given) = self.last(name) else {
            return Ok(None);
        };
        match given.value.as_deref() {
            None | Some("1") => Ok(Some(true)),
            Some("0") => Ok(Some(false)),
            Some(word) => Err(self.wrong(name, word, "write 1 or 0")),
        }
    }

    pub(super) fn count_in(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, JobError> {
        let Some(word) = self.text(name) else {
            return Ok(None);
        };
        match value::count(word) {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let next = match *range.end() {
                    u64::MAX => "write a whole number".to_owned(),
                    end => format!("write a whole number from {} to {end}", range.start()),
                };
                Err(self.wrong(name, word, next))
            }
        }
    }

    pub(super) fn percent(&self, name: &str) -> Result<Option<u64>, JobError> {
        let word = self.text(name).map(|word| word.trim_end_matches('%'));
        match word.map(|word| (word, value::count(word))) {
            None => Ok(None),
            Some((_, Some(number))) if number <= 100 => Ok(Some(number)),
            Some((word, _)) => Err(self.wrong(name, word, "write a whole number from 0 to 100")),
        }
    }

    /// A size in bytes as it stands in a value, in the words of this job.
    pub(super) fn size(&self, name: &str, word: &str) -> Result<u64, JobError> {
        let size = value::bytes(word, self.base);
        size.ok_or_else(|| self.wrong(name, word, "write a size: 4096, 4k, 64m, 1g"))
    }

    pub(super) fn bytes(&self, name: &str) -> Result<Option<u64>, JobError> {
        let word = self.text(name);
        word.map(|word| self.size(name, word)).transpose()
    }

    /// Reads an amount above nothing: bytes, or percent of what there is.
    pub(super) fn extent(&self, name: &str) -> Result<Option<Extent>, JobError> {
        let Some(word) = self.text(name) else {
            return Ok(None);
        };
        let extent = match word.strip_suffix('%') {
            Some(number) => match value::count(number) {
                Some(percent @ 1..=100) => Extent::Percent(percent),
                _ => return Err(self.wrong(name, word, "write from 1% to 100%")),
            },
            None => Extent::Bytes(self.size(name, word)?),
        };
        if extent == Extent::Bytes(0) {
            return match name {
                // fio's default: as much as `size`.
                "io_size" => Ok(None),
                _ => Err(self.refuse(
                    name,
                    format!("{name}=0 measures nothing"),
                    "write a size: 64m",
                )),
            };
        }
        Ok(Some(extent))
    }

    pub(super) fn time_ns(&self, name: &str, unit_ns: u64) -> Result<Option<u64>, JobError> {
        let Some(word) = self.text(name) else {
            return Ok(None);
        };
        let time = value::time_ns(word, unit_ns);
        let time = time.ok_or_else(|| self.wrong(name, word, "write a time: 10, 500ms, 2m"))?;
        Ok(Some(time))
    }
}
