//! The command line of fio: its own options, those of jobs, and the names of job files.

use std::path::PathBuf;

use super::known::is_flag;
use super::language::Switch;
use super::place::{JobError, OptionPlace};

/// Options of the program, not of a job, that have a value.
const VALUED: [&str; 4] = ["section", "output", "output-format", "eta"];
/// And that have none.
const PLAIN: [&str; 6] = ["parse-only", "readonly", "help", "h", "version", "v"];

/// Options of a command line.
#[derive(Debug, Default)]
pub(super) struct FioOptions {
    pub(super) help: bool,
    pub(super) version: bool,
    /// Check the jobs and stop.
    pub(super) parse_only: bool,
    /// Refuse whatever writes.
    pub(super) read_only: bool,
    pub(super) normal: bool,
    pub(super) json: bool,
    /// JSON has the bins of the latencies, too.
    pub(super) bins: bool,
    /// File the report goes to; `None` means standard output.
    pub(super) output: Option<PathBuf>,
    /// Jobs to do; empty means all.
    pub(super) sections: Vec<String>,
    /// Options of jobs, in order.
    pub(super) switches: Vec<Switch>,
    /// Job files, in order.
    pub(super) files: Vec<String>,
}

fn refuse<T>(what: String, next: &str) -> Result<T, JobError> {
    Err(JobError::at(&OptionPlace::Argument, what, next))
}

impl FioOptions {
    /// Reads a command line: `--name=value`, `-name=value` and `-name value`.
    pub(super) fn read(words: &[String]) -> Result<Self, JobError> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let switch = word.strip_prefix("--").or(word.strip_prefix('-'));
            // "-" alone is no option but a job file: standard input.
            let Some(switch) = switch.filter(|switch| !switch.is_empty()) else {
                options.files.push(word.clone());
                continue;
            };
            let (name, mut value) = match switch.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (switch, None),
            };
            // fio's parser (getopt_long_only) takes "-iodepth 4" for "--iodepth=4". Only an option
            // that needs a value may take the next word, which is else a job file.
            if value.is_none() && !is_flag(name) && !PLAIN.contains(&name) {
                value = words.next().cloned();
            }
            if VALUED.contains(&name) {
                let Some(value) = value else {
                    return refuse(format!("--{name} has no value"), "write --NAME=VALUE");
                };
                options.valued(name, value)?;
            } else if PLAIN.contains(&name) {
                options.plain(name);
            } else {
                let name = name.to_owned();
                options.switches.push(Switch { name, value });
            }
        }
        options.normal |= !options.json;
        Ok(options)
    }

    fn valued(&mut self, name: &str, value: String) -> Result<(), JobError> {
        match name {
            "section" => self.sections.push(value),
            "output" => self.output = Some(value.into()),
            "eta" if matches!(value.as_str(), "never" | "auto") => {}
            "eta" => {
                let what = format!("--eta={value} is not supported");
                return refuse(what, "write --eta=never: nothing is shown while jobs run");
            }
            _ => {
                for format in value.split(',') {
                    match format {
                        "normal" => self.normal = true,
                        "json" => self.json = true,
                        "json+" => (self.json, self.bins) = (true, true),
                        _ => {
                            let what = format!("--output-format={format} is not supported");
                            return refuse(what, "choose among: normal, json, json+");
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn plain(&mut self, name: &str) {
        match name {
            "parse-only" => self.parse_only = true,
            "readonly" => self.read_only = true,
            "version" | "v" => self.version = true,
            _ => self.help = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> FioOptions {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        FioOptions::read(&words).unwrap()
    }

    /// The same command as manuals write it in either way.
    #[test]
    fn one_dash_and_two_are_the_same() {
        let one = read("-filename=a -direct=1 -iodepth 4 -thread -rw=randread -name=x");
        let two = read("--filename=a --direct=1 --iodepth=4 --thread --rw=randread --name=x");
        assert_eq!(one.switches, two.switches);
        assert_eq!(one.switches[3].value, None);
        assert_eq!(one.switches.len(), 6);
    }

    #[test]
    fn output_options_choose_format_and_file() {
        let options = read("--output-format=json,normal --output=o.json a.fio --section=x b.fio");
        assert!(options.json && options.normal);
        assert_eq!(options.files, ["a.fio", "b.fio"]);
        assert_eq!(options.sections, ["x"]);
        assert!(!read("--output-format=json a").normal);
        assert!(!read("--output-format=json a").bins);
        let plus = read("--output-format=json+ a");
        assert!(plus.json && plus.bins && !plus.normal);
        assert!(read("a.fio").normal);
    }
}
