//! PostMark's command language: what a line means, and the configuration it changes.
//!
//! A command is known by the beginning of its line; its parameter is what follows one character
//! later, whatever that character is. Numbers are read as C's `atoi` reads them. So `set numberx 7`
//! is `set number 7`, and `set number 7x` too: configurations that work with PostMark work here.

use std::fmt::Write as _;

/// The first line PostMark prints. 1.53 prints it too.
pub const BANNER: &str = "PostMark v1.51 : 8/14/01\n";
/// Prompt of an interactive line.
pub const PROMPT: &str = "pm>";
/// The answer to what is no command.
const UNKNOWN: &str = "Eh?\n";

/// A directory for files, and how often it is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Directory as it was given.
    pub path: String,
    /// Weight with which it is chosen among all locations, at least 1.
    pub weight: i32,
}

/// Settings of a run, with PostMark's defaults. Counts are at least 1 but for `subdirectories`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostmarkSettings {
    /// Smallest size of a file, bytes.
    pub size_low: i32,
    /// Largest size of a file, bytes.
    pub size_high: i32,
    /// Files made before the transactions begin.
    pub number: i32,
    /// Begins the sequence of random numbers.
    pub seed: i32,
    /// Number of transactions. Each is a read or an append, and a creation or a deletion.
    pub transactions: i32,
    /// Directories of the files; empty means the working directory.
    pub locations: Vec<Location>,
    /// Directories in each location; 0 means that the files lie in the location itself.
    pub subdirectories: i32,
    /// Bytes of one read.
    pub read_block: i32,
    /// Bytes of one write.
    pub write_block: i32,
    /// Through the C library's streams, not by system calls.
    pub buffering: bool,
    /// Reads among ten reads and appends; -1 means neither read nor append.
    pub bias_read: i32,
    /// Creations among ten creations and deletions; -1 means neither create nor delete.
    pub bias_create: i32,
    /// The report is the long one, not a line of figures.
    pub verbose: bool,
}

impl Default for PostmarkSettings {
    fn default() -> Self {
        Self {
            size_low: 500,
            size_high: 10_000,
            number: 500,
            seed: 42,
            transactions: 500,
            locations: Vec::new(),
            subdirectories: 0,
            read_block: 512,
            write_block: 512,
            buffering: true,
            bias_read: 5,
            bias_create: 5,
            verbose: true,
        }
    }
}

/// Source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Typed at the prompt: `?` and `exit` are known there.
    Prompt,
    /// A configuration file.
    File,
}

/// Answer to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The line was obeyed; nothing is printed.
    Done,
    /// Text to be printed on standard output.
    Say(String),
    /// The line was not obeyed: text to be printed to standard error, after `Error: `.
    Complain(String),
    /// Show the configuration, into a file if one is named.
    Show(Option<String>),
    /// Run, with the report into a file if one is named.
    Run(Option<String>),
    /// Read this configuration file.
    Load(String),
    /// Hand this to the shell.
    Shell(String),
    /// End the shell, or the file that the line stands in.
    Quit,
}

/// Subject of a command.
#[derive(Clone, Copy)]
enum Word {
    Size,
    Number,
    Seed,
    Transactions,
    Location,
    Subdirectories,
    Read,
    Write,
    Buffering,
    BiasRead,
    BiasCreate,
    PostmarkReport,
    Run,
    Load,
    Show,
    Help,
    Quit,
}

/// Every command in the order it is looked for, and what `help` says of it.
const COMMANDS: [(&str, &str, Word); 17] = [
    ("set size", "Sets low and high bounds of files", Word::Size),
    (
        "set number",
        "Sets number of simultaneous files",
        Word::Number,
    ),
    (
        "set seed",
        "Sets seed for random number generator",
        Word::Seed,
    ),
    (
        "set transactions",
        "Sets number of transactions",
        Word::Transactions,
    ),
    (
        "set location",
        "Sets location of working files",
        Word::Location,
    ),
    (
        "set subdirectories",
        "Sets number of subdirectories",
        Word::Subdirectories,
    ),
    ("set read", "Sets read block size", Word::Read),
    ("set write", "Sets write block size", Word::Write),
    (
        "set buffering",
        "Sets usage of buffered I/O",
        Word::Buffering,
    ),
    (
        "set bias read",
        "Sets the chance of choosing read over append",
        Word::BiasRead,
    ),
    (
        "set bias create",
        "Sets the chance of choosing create over delete",
        Word::BiasCreate,
    ),
    (
        "set report",
        "Choose verbose or terse report format",
        Word::PostmarkReport,
    ),
    ("run", "Runs one iteration of benchmark", Word::Run),
    ("load", "Read configuration file", Word::Load),
    ("show", "Displays current configuration", Word::Show),
    ("help", "Prints out available commands", Word::Help),
    ("quit", "Exit program", Word::Quit),
];

impl PostmarkSettings {
    /// Does what a line (without its line feed) asks for, or says what is to be done.
    pub fn obey(&mut self, line: &str, from: From) -> Answer {
        if let Some(command) = line.strip_prefix('!') {
            return Answer::Shell(command.to_owned());
        }
        match (from, line) {
            (From::Prompt, "?") => return Answer::Say(help(None)),
            (From::Prompt, "exit") => return Answer::Quit,
            _ => {}
        }
        let found = COMMANDS.iter().find(|(name, ..)| line.starts_with(name));
        let Some((name, _, word)) = found else {
            return Answer::Say(UNKNOWN.to_owned());
        };
        let mut rest = line[name.len()..].chars();
        let parameter = rest.next().map(|_| rest.as_str());
        match word {
            Word::Run => Answer::Run(parameter.map(str::to_owned)),
            Word::Show => Answer::Show(parameter.map(str::to_owned)),
            Word::Help => Answer::Say(help(parameter)),
            Word::Quit => Answer::Quit,
            Word::Load => match parameter {
                Some(file) => Answer::Load(file.to_owned()),
                None => Answer::Complain("no configuration file specified".to_owned()),
            },
            _ => match self.set(*word, parameter) {
                Ok(()) => Answer::Done,
                Err(complaint) => Answer::Complain(complaint),
            },
        }
    }

    fn set(&mut self, word: Word, parameter: Option<&str>) -> Result<(), String> {
        match word {
            Word::Size => self.set_size(parameter),
            Word::Location => self.set_location(parameter),
            Word::Number => count(&mut self.number, parameter, "invalid number of files"),
            Word::Seed => count(&mut self.seed, parameter, "invalid seed for random numbers"),
            Word::Transactions => {
                let complaint = "no transactions specified";
                count(&mut self.transactions, parameter, complaint)
            }
            Word::Subdirectories => {
                let complaint = "invalid number of subdirectories";
                count(&mut self.subdirectories, parameter, complaint)
            }
            Word::Read => count(&mut self.read_block, parameter, "invalid read block size"),
            Word::Write => count(&mut self.write_block, parameter, "invalid write block size"),
            Word::BiasRead => bias(&mut self.bias_read, parameter),
            Word::BiasCreate => bias(&mut self.bias_create, parameter),
            Word::Buffering => {
                let complaint = "no buffering mode (true/false) specified";
                choice(&mut self.buffering, parameter, ["true", "false"], complaint)
            }
            Word::PostmarkReport => {
                let complaint = "either 'verbose' or 'terse' required";
                choice(
                    &mut self.verbose,
                    parameter,
                    ["verbose", "terse"],
                    complaint,
                )
            }
            Word::Run | Word::Load | Word::Show | Word::Help | Word::Quit => Ok(()),
        }
    }

    fn set_size(&mut self, parameter: Option<&str>) -> Result<(), String> {
        let text = parameter.unwrap_or_default();
        let low = integer(text);
        if low <= 0 {
            return Err("no file size low or high bounds specified".to_owned());
        }
        let high = text.split_once(' ').map_or(0, |(_, high)| integer(high));
        // A bound that is missing or too small makes all files equal.
        (self.size_low, self.size_high) = (low, high.max(low));
        Ok(())
    }

    /// Obeys `DIR [WEIGHT]`, which replaces all locations, `+DIR [WEIGHT]`, which adds one, and
    /// `-DIR`, which takes one away.
    fn set_location(&mut self, parameter: Option<&str>) -> Result<(), String> {
        let text = parameter.ok_or("no directory name specified")?;
        if let Some(path) = text.strip_prefix('-') {
            let found = self.locations.iter().position(|it| it.path == path);
            let at = found.ok_or_else(|| format!("cannot find location '{path}'"))?;
            self.locations.remove(at);
            return Ok(());
        }
        let (path, weight) = match text.rsplit_once(' ') {
            Some((path, weight)) => (path, Some(weight)),
            None => (text, None),
        };
        let path = match path.strip_prefix('+') {
            Some(path) => path,
            None => {
                self.locations.clear();
                path
            }
        };
        let heavy = weight.map_or(1, integer);
        self.locations.push(Location {
            path: path.to_owned(),
            weight: heavy.max(1),
        });
        match weight {
            // The location stays, with a weight of 1: PostMark only complains.
            Some(weight) if heavy <= 0 => Err(format!("ignoring invalid weight '{weight}'")),
            _ => Ok(()),
        }
    }

    /// Returns the text that `show` prints; `here` is the working directory.
    pub fn shown(&self, here: &str) -> String {
        let plural = |more: bool| if more { "ies" } else { "y" };
        let mut text = format!(
            "Current configuration is:\nThe base number of files is {}\nTransactions: {}\n",
            self.number, self.transactions
        );
        let (low, high) = (amount(self.size_low), amount(self.size_high));
        // Writing to memory does not fail.
        let _ = if self.size_low == self.size_high {
            writeln!(text, "Files are {low} in size")
        } else {
            writeln!(text, "Files range between {low} and {high} in size")
        };
        if self.locations.is_empty() {
            let _ = writeln!(text, "Working directory: {here}");
        } else {
            let plural = plural(self.locations.len() > 1);
            let _ = writeln!(text, "Working director{plural}: ");
        }
        for Location { path, weight } in &self.locations {
            let _ = writeln!(text, "\t{path} (weight={weight})");
        }
        if self.subdirectories > 0 {
            let (count, plural) = (self.subdirectories, plural(self.subdirectories > 1));
            let _ = writeln!(text, "{count} subdirector{plural} will be used");
        }
        let _ = write!(
            text,
            "Block sizes are: read={}, write={}\n\
             Biases are: read/append={}, create/delete={}\n\
             {}sing Unix buffered file I/O\n\
             Random number generator seed is {}\n\
             Report format is {}.\n",
            amount(self.read_block),
            amount(self.write_block),
            self.bias_read,
            self.bias_create,
            if self.buffering { "U" } else { "Not u" },
            self.seed,
            if self.verbose { "verbose" } else { "terse" }
        );
        text
    }
}

/// Returns the text that `help` prints of the commands that begin with a word; of all, if none
/// does.
fn help(word: Option<&str>) -> String {
    let begins = |name: &str| name.starts_with(word.unwrap_or_default());
    let none = !COMMANDS.iter().any(|(name, ..)| begins(name));
    let chosen = COMMANDS.iter().filter(|(name, ..)| none || begins(name));
    chosen
        .map(|(name, about, _)| format!("{name} - {about}\n"))
        .collect()
}

/// A number of bytes in words.
fn amount(bytes: i32) -> String {
    let bytes = f64::from(bytes);
    if bytes >= 1_048_576.0 {
        format!("{:.2} megabytes", bytes / 1_048_576.0)
    } else if bytes >= 1024.0 {
        format!("{:.2} kilobytes", bytes / 1024.0)
    } else {
        format!("{bytes:.0} bytes")
    }
}

/// Reads a number as C's `atoi` does on a machine with longs of 64 bits: digits after blanks and a
/// sign, 0 if there are none, the lower 32 bits if there are too many.
fn integer(text: &str) -> i32 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    let value = digits.fold(0i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(sign * i64::from(digit - b'0'))
    });
    value as i32
}

fn count(setting: &mut i32, parameter: Option<&str>, complaint: &str) -> Result<(), String> {
    match integer(parameter.unwrap_or_default()) {
        value if value > 0 => *setting = value,
        _ => return Err(complaint.to_owned()),
    }
    Ok(())
}

fn bias(setting: &mut i32, parameter: Option<&str>) -> Result<(), String> {
    match parameter.map(integer) {
        Some(value) if (-1..=10).contains(&value) => *setting = value,
        _ => {
            let complaint = "no bias specified (0-10 for greater chance,-1 to disable)";
            return Err(complaint.to_owned());
        }
    }
    Ok(())
}

fn choice(
    setting: &mut bool,
    parameter: Option<&str>,
    [yes, no]: [&str; 2],
    complaint: &str,
) -> Result<(), String> {
    match parameter {
        Some(word) if word == yes => *setting = true,
        Some(word) if word == no => *setting = false,
        _ => return Err(complaint.to_owned()),
    }
    Ok(())
}
