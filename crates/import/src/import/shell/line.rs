//! One command line of a shell, as a terminal shows it.

use std::collections::BTreeMap;

use stackrace_base::printed::text::cut;

/// Commands that change nothing that a result depends on.
const HARMLESS: [&str; 33] = [
    "cat", "clear", "date", "df", "du", "echo", "exit", "export", "file", "findmnt", "free",
    "grep", "head", "history", "hostname", "id", "ls", "lsblk", "lscpu", "mkdir", "pwd", "rm",
    "rmdir", "sleep", "stat", "sync", "tail", "true", "uname", "uptime", "which", "whoami", "vi",
];
/// Commands that are known to change something: behind a lone `#`, which begins a comment as well, only these count.
const CHANGES: [&str; 24] = [
    "blkdiscard",
    "blockdev",
    "cd",
    "cpupower",
    "cryptsetup",
    "dmsetup",
    "fstrim",
    "hdparm",
    "ip",
    "lvchange",
    "mdadm",
    "modprobe",
    "mount",
    "nvme",
    "sdparm",
    "swapoff",
    "swapon",
    "sysctl",
    "systemctl",
    "tc",
    "tune2fs",
    "tuned-adm",
    "umount",
    "zfs",
];
/// Tools whose results are read.
const TOOLS: [&str; 14] = [
    "bonnie++",
    "dbench",
    "dd",
    "elbencho",
    "fio",
    "hyperfine",
    "io500",
    "ioping",
    "ior",
    "iozone",
    "mdtest",
    "pgbench",
    "sysbench",
    "tiotest",
];
/// Options that name a result or a file with it.
const NAMES: [&str; 4] = ["--name=", "--output=", "--description=", "--log"];
/// Operands that name a file.
const FILES: [&str; 5] = ["of=", "if=", "--filename=", "--name=", "--output="];

/// A command as it was typed behind a prompt, above what it printed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PromptedCommand {
    prompt: String,
    command: String,
    /// Lines that it was typed in.
    pub(super) rows: usize,
}

/// The text, parted before each command line.
pub(super) fn sections(text: &str) -> Vec<(Option<PromptedCommand>, String)> {
    let mut all: Vec<(Option<PromptedCommand>, String)> = vec![(None, String::new())];
    let mut goes_on = false;
    for row in text.split('\n') {
        let at = all.len() - 1;
        let more = row.strip_prefix("> ").filter(|_| {
            all[at].0.is_some()
                && all[at]
                    .1
                    .lines()
                    .all(|line| line.starts_with("> ") || PromptedCommand::read(line).is_some())
        });
        if let (Some(line), Some(more)) = (all[at].0.as_mut(), more.or(goes_on.then_some(row))) {
            line.command = format!("{} {}", line.command.trim_end_matches('\\'), more.trim());
            line.rows += 1;
        } else if let Some(line) = PromptedCommand::read(row) {
            all.push((Some(line), String::new()));
        }
        goes_on = row.trim_end().ends_with('\\') && all[all.len() - 1].0.is_some();
        if let Some((_, text)) = all.last_mut() {
            text.push_str(row);
            text.push('\n');
        }
    }
    all
}

impl PromptedCommand {
    fn read(row: &str) -> Option<Self> {
        let row = row.trim_end_matches('\r');
        let words: Vec<&str> = row.split(' ').filter(|word| !word.is_empty()).collect();
        let first = *words.first()?;
        let of = |prompt: &str, command: &[&str]| Self {
            prompt: prompt.to_owned(),
            command: command.join(" "),
            rows: 1,
        };
        if row.starts_with("$ ") || row.starts_with("% ") {
            return (words.len() > 1).then(|| of("", &words[1..]));
        }
        if row.starts_with("# ") {
            let line = of("", &words[1..]);
            let name = line.name().to_owned();
            let known = CHANGES.contains(&name.as_str())
                || TOOLS.contains(&name.as_str())
                || line.drops_caches();
            let known = known
                || name == "zpool"
                || name.starts_with("mkfs")
                || line.command.contains("> /");
            return (known || line.loops()).then_some(line);
        }
        // `root@nas:~# `, `[root@nas data]$ `
        let end = words
            .iter()
            .take(3)
            .position(|word| word.ends_with(['$', '#', '%']));
        if let Some(end) = end.filter(|end| words[..=*end].iter().any(|word| word.contains('@'))) {
            return (words.len() > end + 1)
                .then(|| of(&words[..=end].join(" "), &words[end + 1..]));
        }
        let tool = TOOLS.contains(&first.rsplit('/').next().unwrap_or_default());
        let options = words
            .iter()
            .skip(1)
            .any(|word| word.starts_with('-') || word.contains('='));
        (tool && options && !first.ends_with(':')).then(|| of("", &words))
    }

    /// The line, cut short.
    pub(super) fn shown(&self) -> String {
        cut(&self.command)
    }

    /// The command's own words, without what it is called and where its output goes.
    pub(super) fn words(&self) -> Vec<String> {
        let shown = self.command.split('|').next().unwrap_or_default();
        let mut all = Vec::new();
        let mut words = shown.split_whitespace();
        while let Some(word) = words.next() {
            if let Some(at) = word.find('>') {
                if word.ends_with('>') {
                    words.next();
                }
                if at > 0 && !word[..at].chars().all(|c| c.is_ascii_digit() || c == '&') {
                    all.push(word[..at].to_owned());
                }
                continue;
            }
            let skipped =
                NAMES.iter().any(|name| word.starts_with(name)) || matches!(word, "sudo" | "time");
            if !skipped {
                all.push(word.to_owned());
            }
        }
        if !self.prompt.is_empty() && !all.is_empty() {
            let host = self.prompt.split([':', ' ']).next().unwrap_or_default();
            all.insert(0, host.trim_matches(['[', ']', '$', '#', '%']).to_owned());
        }
        all
    }

    /// All its words, and the signs between commands; what is in quotes is one word.
    pub(super) fn split(&self) -> Vec<String> {
        let (mut all, mut word, mut open) = (Vec::new(), String::new(), None);
        for c in self.command.chars() {
            match (c, open) {
                (c, Some(quote)) if c == quote => open = None,
                ('"' | '\'', None) => open = Some(c),
                ('|' | '>' | ';' | '&', None) => {
                    // "2>" is no word.
                    if c != '>' || !word.bytes().all(|byte| byte.is_ascii_digit()) {
                        all.push(std::mem::take(&mut word));
                    }
                    word.clear();
                    all.push(c.to_string());
                }
                ('#', None) if word.is_empty() => break,
                (c, None) if c.is_whitespace() => all.push(std::mem::take(&mut word)),
                (c, _) => word.push(c),
            }
        }
        all.push(word);
        all.retain(|word| !word.is_empty());
        all
    }

    /// The program that it runs.
    fn name(&self) -> &str {
        let mut words = self.command.split_whitespace();
        let word = words.find(|word| !matches!(*word, "sudo" | "time" | "do" | "nohup"));
        word.and_then(|word| word.rsplit('/').next())
            .unwrap_or_default()
    }

    /// Returns true if a tool stands in it.
    pub(super) fn runs(&self, tool: &str) -> bool {
        self.command
            .split_whitespace()
            .any(|word| word.rsplit('/').next() == Some(tool))
    }

    pub(super) fn drops_caches(&self) -> bool {
        self.command.contains("drop_caches")
    }

    /// Returns true if the shell did not wait for a command of it.
    pub(super) fn is_in_background(&self) -> bool {
        let mut words = self.command.split_whitespace();
        words.any(|word| word == "&" || word.ends_with('&') && !word.ends_with("&&"))
    }

    fn loops(&self) -> bool {
        let mut words = self.command.split_whitespace();
        words.any(|word| matches!(word, "do" | "xargs" | "parallel"))
    }

    /// Returns true if the shell, or a loop of it, fills something in that may change the work.
    pub(super) fn is_filled_in(&self) -> bool {
        // The shell's own counters change no work where they only name a file.
        let counts = self.counted();
        let mut words = self.command.split_whitespace();
        words.any(|word| {
            let Some((_, name)) = word.split_once('$') else {
                return false;
            };
            let name = name.trim_start_matches('{');
            let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '(');
            let file = FILES.iter().any(|file| word.starts_with(file));
            let own = counts.is_some_and(|count| file && name.starts_with(count));
            let listed = name.starts_with("(seq");
            named && !own && !listed
        })
    }

    /// The variable of a loop that only counts: `for i in 1 2 3`, `{1..3}`, `$(seq 3)`.
    fn counted(&self) -> Option<&str> {
        let (_, rest) = self.command.split_once("for ")?;
        let (name, rest) = rest.split_once(" in ")?;
        let values = rest.split([';', '\n']).next()?;
        let values = values.split(" do ").next()?;
        let number = |c: char| c.is_ascii_digit() || "{}. $()seq`".contains(c);
        values.chars().all(number).then_some(name.trim())
    }

    /// Takes what it changes into what is known of the machine.
    pub(super) fn change(&self, state: &mut BTreeMap<String, String>) {
        let name = self.name().to_owned();
        let writes = self.command.contains("> /proc") || self.command.contains("> /sys");
        let writes = writes && !self.drops_caches();
        let tool = TOOLS
            .iter()
            .any(|tool| self.runs(tool) || self.command.contains(&format!("'{tool} ")));
        if tool || self.loops() || self.drops_caches() || name.is_empty() {
            return;
        }
        if !writes && HARMLESS.contains(&name.as_str()) || name == "#" {
            return;
        }
        // What is only looked at has no words behind it.
        let looks = |word: &str| {
            matches!(
                word,
                "list" | "get" | "status" | "-V" | "--version" | "--help" | "iostat"
            )
        };
        if self.command == name && matches!(name.as_str(), "mount" | "hdparm" | "swapon")
            || self.command.split_whitespace().any(looks)
        {
            return;
        }
        if name == "umount" {
            let target = self
                .command
                .split_whitespace()
                .last()
                .unwrap_or_default()
                .to_owned();
            let before = state.len();
            state.retain(|key, _| !(key.starts_with("mount ") && key.ends_with(&target)));
            if state.len() < before {
                return;
            }
        }
        let mut words = self.command.split_whitespace();
        // One setting that is set again has the same words but for its value.
        let plain = |word: &str| {
            let word = word.split('=').next().unwrap_or_default();
            word.trim_end_matches(|c: char| c.is_ascii_digit())
                .to_owned()
        };
        let key: Vec<String> = match name.as_str() {
            "cd" => vec!["cd".to_owned()],
            "echo" => vec![words.next_back().unwrap_or_default().to_owned()],
            _ => words.map(plain).collect(),
        };
        state.insert(key.join(" "), self.command.clone());
    }
}
