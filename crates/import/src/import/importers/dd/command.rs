//! The command line of dd, where a text shows it: what was read and written, and how.

use std::collections::BTreeMap;

use stackrace_base::printed::text::size;

/// Operands of dd, of GNU and of BSD.
const OPERANDS: [&str; 16] = [
    "if", "of", "bs", "ibs", "obs", "cbs", "count", "skip", "seek", "iseek", "oseek", "iflag",
    "oflag", "conv", "status", "speed",
];
/// Operands that are amounts, which may be spelled in many ways.
const AMOUNTS: [&str; 4] = ["bs", "ibs", "obs", "cbs"];
/// Commands that run another one in another class, on other processors, under limits, or on another machine.
const RUNNERS: [&str; 16] = [
    "cgexec",
    "chroot",
    "chrt",
    "cpulimit",
    "docker",
    "ip",
    "kubectl",
    "ionice",
    "nice",
    "nsenter",
    "numactl",
    "podman",
    "ssh",
    "strace",
    "systemd-run",
    "taskset",
];
/// Files that give bytes without storage behind them.
const SOURCES: [&str; 5] = [
    "/dev/zero",
    "/dev/urandom",
    "/dev/random",
    "/dev/full",
    "/dev/arandom",
];
/// Files that take bytes without storage behind them.
const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// One `dd …`, its operands in one spelling.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DdCommand {
    operands: BTreeMap<&'static str, String>,
    /// Prompt before it, as `user@host …`; empty if there is none.
    pub(super) prompt: String,
    /// What it was run with that changes how it reads and writes: `ionice -c3`; empty if nothing.
    with: String,
    /// Set if caches were emptied before it.
    pub(super) after_dropping: bool,
    /// Set if a loop of the shell may run it many times.
    pub(super) repeats: bool,
    /// A word that dd would refuse, so that the line was no such command, or was broken within a word.
    pub(super) unread: Option<String>,
}

/// Every `dd` in a line of a shell, in order.
pub(super) fn commands(line: &str) -> Vec<DdCommand> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_dd = |word: &str| {
        let word = word.trim_start_matches(['(', '`', '"', '\'', '$']);
        matches!(word.rsplit('/').next(), Some("dd" | "gdd"))
    };
    let mut all = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| is_dd(word)) {
        let mut command = DdCommand {
            prompt: prompt(&words[..at]),
            with: with(&words[..at]),
            after_dropping: words[..at].iter().any(|word| word.contains("drop_caches")),
            repeats: words[..at].contains(&"do"),
            ..DdCommand::default()
        };
        command.take(&words[at + 1..]);
        // The word alone is prose, or a note on it.
        if !command.operands.is_empty() {
            all.push(command);
        }
    }
    all
}

/// Reads `root@nas:~#`, `[root@nas data]$`: from the word with the @ on, without its brackets.
fn prompt(before: &[&str]) -> String {
    let Some(at) = before.iter().position(|word| word.contains('@')) else {
        return String::new();
    };
    let end = before[at..]
        .iter()
        .position(|word| word.ends_with(['$', '#', '%', '>']));
    let words = before[at..].get(..=end.unwrap_or(0)).unwrap_or_default();
    let plain = words.join(" ");
    plain
        .trim_matches(['[', ']', '$', '#', '%', '>', ' '])
        .to_owned()
}

/// Words before a dd from the command on that runs it in another class, on other processors, or elsewhere.
fn with(before: &[&str]) -> String {
    let ends = |word: &&str| word.ends_with([';', '&', '|', '$', '#', '%', '>', '(']);
    let begin = before.iter().rposition(ends).map_or(0, |at| at + 1);
    let own = &before[begin..];
    let is_runner = |word: &&str| RUNNERS.contains(&word.rsplit('/').next().unwrap_or_default());
    own.iter()
        .position(is_runner)
        .map_or(String::new(), |at| own[at..].join(" "))
}

/// Returns true if a line has an operand of dd and no `dd`: the rest of a command that was folded.
pub(super) fn goes_on(line: &str) -> bool {
    line.split_whitespace().any(is_operand) && commands(line).is_empty()
}

fn is_operand(word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or_default();
    OPERANDS.contains(&name) && !value.is_empty()
}

/// Returns true if the value of an operand ends in the name of another.
fn glued(word: &str) -> bool {
    let names = word.rsplit_once('=').map_or("", |(names, _)| names);
    OPERANDS.into_iter().any(|name| {
        let before = names.strip_suffix(name);
        // A file may be called so: "of=/mnt/bs=1M".
        before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

impl DdCommand {
    /// Takes the words behind `dd` as far as they are its own.
    fn take(&mut self, words: &[&str]) {
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            // `>file` and `</dev/zero` stand for of= and if=; `2>&1` for nothing here.
            if let Some(name) = word.strip_prefix("1>").or(word.strip_prefix('>')) {
                let file = if name.is_empty() {
                    words.next()
                } else {
                    Some(name)
                };
                self.set("of", file.unwrap_or_default());
                continue;
            }
            if let Some(name) = word.strip_prefix('<') {
                let file = if name.is_empty() {
                    words.next()
                } else {
                    Some(name)
                };
                self.set("if", file.unwrap_or_default());
                continue;
            }
            let plain: String = word.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
            let ends = plain.find([';', '&', '|', ')', '`', '>']);
            let own = &plain[..ends.unwrap_or(plain.len())];
            let known = match own.split_once('=') {
                Some((name, value)) => self.set(name, value),
                None => own.starts_with("--"),
            };
            if !known {
                // What follows one word that is none is prose, unless it is an operand or the end.
                let next = words.next();
                let broken = next.is_none_or(is_operand)
                    && !own.is_empty()
                    && own
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "/._-,=".contains(c));
                self.unread = (broken && ends.is_none()).then(|| own.to_owned());
                return;
            }
            // Two operands without the blank between them (`bs=1Mcount=9`), or one that goes on elsewhere.
            if own.ends_with(['=', ',']) || own.split('=').count() > 2 && glued(own) {
                self.unread = Some(own.to_owned());
            }
            if ends.is_some() {
                return;
            }
        }
    }

    /// Sets an operand, its value in one spelling; returns true if dd has one of this name.
    fn set(&mut self, name: &str, value: &str) -> bool {
        let Some(name) = OPERANDS.into_iter().find(|known| *known == name) else {
            return false;
        };
        let value = if AMOUNTS.contains(&name) {
            bytes(value).map_or_else(|| value.to_owned(), size)
        } else if matches!(name, "iflag" | "oflag" | "conv") {
            // Lists whose order says nothing.
            let mut flags: Vec<&str> = value.split(',').filter(|flag| !flag.is_empty()).collect();
            flags.sort_unstable();
            flags.join(",")
        } else {
            value.to_owned()
        };
        // What it shows while it runs changes no work.
        if name != "status" && !value.is_empty() {
            self.operands.insert(name, value);
        }
        true
    }

    /// Returns an operand's value; empty if it was not given.
    pub(super) fn operand(&self, name: &str) -> &str {
        self.operands.get(name).map_or("", String::as_str)
    }

    /// Names what was done to storage: `write`, `read`, `copy`; `move` where neither side is
    /// storage.
    pub(super) fn direction(&self) -> &'static str {
        let (from, to) = (self.operand("if"), self.operand("of"));
        // Without a name it is a pipe, which is no storage either.
        let made = from.is_empty() || SOURCES.contains(&from);
        let lost = to.is_empty() || SINKS.contains(&to);
        match (made, lost) {
            (true, false) => "write",
            (false, true) => "read",
            (false, false) => "copy",
            (true, true) => "move",
        }
    }

    /// The operands, and what stands around them, that change what is done, as they are written: `oflag=direct, conv=fdatasync`.
    pub(super) fn flags(&self) -> String {
        let named = ["iflag", "oflag", "conv", "skip", "seek", "iseek", "oseek"];
        let given = named.into_iter().filter(|name| {
            let value = self.operand(name);
            !value.is_empty() && value != "0"
        });
        let mut all = given.fold(String::new(), |all, name| {
            format!("{all}, {name}={}", self.operand(name))
        });
        if !self.with.is_empty() {
            all.push_str(&format!(", {}", self.with));
        }
        if self.after_dropping {
            all.push_str(", caches emptied before");
        }
        all
    }

    /// The operands that are settings, by name.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        // The amount is what was moved, which is told apart already.
        let told = self.operands.iter().filter(|(name, _)| **name != "count");
        let told = told.map(|(name, value)| (*name, value.as_str()));
        told.chain([("prompt", self.prompt.as_str())])
    }

    /// Bytes of a block where reads and writes have the same; `None` if it does not say.
    pub(super) fn whole_block(&self) -> Option<u64> {
        bytes(self.operand("bs"))
    }

    /// Blocks that it asks for; `None` if there is no limit, or it counts bytes.
    pub(super) fn blocks_asked(&self) -> Option<u64> {
        let of_bytes = self
            .operand("iflag")
            .split(',')
            .any(|flag| flag == "count_bytes");
        let asked = self.operand("count").parse();
        asked.ok().filter(|_| !of_bytes)
    }

    /// Bytes of a block as asked for; `None` if it does not say, or not in one number.
    pub(super) fn block(&self) -> Option<u64> {
        let word = ["bs", "obs", "ibs"]
            .into_iter()
            .map(|name| self.operand(name))
            .find(|word| !word.is_empty())?;
        bytes(word)
    }
}

/// Bytes of an amount as dd takes it: `4k`, `4096`, `1MiB`, `1MB` (10⁶), `8x512`.
pub(super) fn bytes(word: &str) -> Option<u64> {
    word.split(['x', '*']).try_fold(1u64, |product, factor| {
        let digits = factor.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &factor[digits.len()..];
        let scale: u64 = match unit.to_ascii_lowercase().as_str() {
            // Capital: bytes (coreutils 9), and what `size` writes; small: blocks of 512.
            "b" if unit == "B" => 1,
            "" | "c" => 1,
            "w" => 2,
            "b" => 512,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "k" | "ki" | "kib" => 1 << 10,
            "m" | "mi" | "mib" => 1 << 20,
            "g" | "gi" | "gib" => 1 << 30,
            "t" | "ti" | "tib" => 1 << 40,
            _ => return None,
        };
        let number: u64 = digits.parse().ok()?;
        product.checked_mul(number.checked_mul(scale)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> DdCommand {
        let mut all = commands(line);
        assert_eq!(all.len(), 1, "{line}");
        all.remove(0)
    }

    #[test]
    fn one_setting_has_one_spelling() {
        for word in ["1M", "1048576", "1024k", "1MiB", "1024x1024", "2048b"] {
            let command = one(&format!("$ dd if=/dev/zero of=t bs={word} count=4"));
            assert_eq!(command.operand("bs"), "1M", "{word}");
        }
        assert_eq!(bytes("1MB"), Some(1_000_000));
        for word in ["512", "512B", "1b", "1x512", "256w"] {
            let command = one(&format!("$ dd if=/dev/zero of=t bs={word} count=4"));
            assert_eq!(command.whole_block(), Some(512), "{word}");
        }
        let flags = |line| one(line).flags();
        assert_eq!(
            flags("dd of=t if=/dev/zero oflag=direct,dsync conv=fsync,notrunc status=none"),
            flags("sudo dd if=/dev/zero of=t conv=notrunc,fsync oflag=dsync,direct 2>&1 | tail")
        );
    }

    #[test]
    fn the_direction_is_where_storage_stands() {
        for (line, direction) in [
            ("# dd if=/dev/zero of=./2g bs=1M count=2000", "write"),
            ("# dd of=/dev/zero if=./2g bs=1M count=2000", "read"),
            ("dd if=/dev/sda of=/dev/null bs=1M", "read"),
            ("dd if=a of=b", "copy"),
            ("dd </dev/zero >t bs=1M count=1", "write"),
            ("dd if=/dev/zero of=/dev/null count=1", "move"),
            ("tar c . | dd of=/mnt/t bs=1M", "write"),
        ] {
            assert_eq!(one(line).direction(), direction, "{line}");
        }
        assert!(commands("I ran dd on it, and then").is_empty());
    }

    #[test]
    fn a_word_that_dd_would_refuse_is_not_passed_over() {
        for (line, word) in [
            ("$ dd if=/dev/zero of=/mnt/tes tfile bs=1M count=9", "tfile"),
            ("$ dd if=/dev/zero of=t bs=1M count=10 24", "24"),
            ("$ dd if=/dev/zero of=t bs=1Mcount=1024", "bs=1Mcount=1024"),
            ("$ dd if=/dev/zero of=toflag=direct", "of=toflag=direct"),
        ] {
            assert_eq!(one(line).unread.as_deref(), Some(word), "{line}");
        }
        for line in [
            "$ dd if=/dev/zero of=/mnt/bs=1M/t count=9",
            "I ran dd if=/dev/zero of=t count=9 and got this",
            "$ dd if=/dev/zero of=t bs=1M # on the first disk",
            "$ dd if=/dev/zero of=t bs=1M | tail",
        ] {
            assert_eq!(one(line).unread, None, "{line}");
        }
    }

    #[test]
    fn what_a_command_is_run_with_is_part_of_the_work() {
        for (line, flags) in [
            (
                "me@nas:~$ sudo ionice -c3 dd if=t of=/dev/null",
                ", ionice -c3",
            ),
            (
                "# sync; /usr/bin/nice -n 5 dd if=t of=/dev/null",
                ", /usr/bin/nice -n 5",
            ),
            ("# nice true; dd if=t of=/dev/null", ""),
            (
                "# echo 3 > /proc/sys/vm/drop_caches; dd if=t of=/dev/null",
                ", caches emptied before",
            ),
        ] {
            assert_eq!(one(line).flags(), flags, "{line}");
        }
    }

    #[test]
    fn several_commands_of_a_line_are_told_apart() {
        let all =
            commands("dd if=/dev/zero of=t bs=1M count=9 && sync; dd if=t of=/dev/null bs=1M");
        let directions: Vec<&str> = all.iter().map(DdCommand::direction).collect();
        assert_eq!(directions, ["write", "read"]);
        assert!(one("for i in 1 2 3; do dd if=t of=/dev/null; done").repeats);
        assert_eq!(
            one("[root@nas data]# dd if=t of=/dev/null").prompt,
            "root@nas data"
        );
    }
}
