//! Words of a study that reach a tool: only those of a list, each with the values it may have.
//!
//! A study may come from anywhere, and the tools run as root. Some of their options name files or
//! other devices, or run commands. So each tool has a list of options whose effect stays on the
//! devices of the stack, taken from its manual page; everything else is refused.

use stackrace_base::setting::{self, Refusal, Settings};

/// Longest value of an option.
const VALUE_MAX: usize = 128;

/// The options of one tool that a study may give.
pub struct Words {
    /// The tool that takes them: `mkfs.ext4`, `a mount of ext4`.
    pub tool: &'static str,
    /// The page that describes them: `mke2fs(8)`.
    pub manual: &'static str,
    /// Every option that a study may use.
    pub options: &'static [Allowed],
}

/// One option, and what it takes.
pub type Allowed = (&'static str, OptionValue);

/// Values that an option takes.
#[derive(Debug, Clone, Copy)]
pub enum OptionValue {
    /// Nothing.
    Alone,
    /// An amount: digits, a point, a unit of one letter or a percent sign.
    Amount,
    /// One word without a path.
    Word,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Names with commas between them, `^` before one that is turned off.
    Names,
    /// `name=value,name,…`, of these.
    Pairs(&'static [Allowed]),
    /// Nothing, or an amount.
    AloneOrAmount,
    /// Nothing, or one of these.
    AloneOrOneOf(&'static [&'static str]),
}

use OptionValue::{Alone, AloneOrAmount, AloneOrOneOf, Amount, Names, OneOf, Pairs, Word};

/// Words of a command line: `-b 4096`, `-b4096`, `--nodesize 16k`, `--nodesize=16k`.
///
/// # Errors
/// One that is not on the list.
pub fn command_line(
    settings: &Settings,
    name: &str,
    allowed: &Words,
) -> Result<Vec<String>, Refusal> {
    let words = settings.optional_texts(name)?.unwrap_or_default();
    let refuse = |refused: Refused| refused.at(settings, name, allowed);
    let mut left = words.iter();
    while let Some(word) = left.next() {
        let (option, value, attached) = allowed.split(word).map_err(refuse)?;
        let value = match (value, attached) {
            (Alone, _) => {
                check(option, value, attached).map_err(refuse)?;
                continue;
            }
            (_, Some(attached)) => (value, attached),
            (_, None) => {
                let next = left.next();
                (
                    value,
                    next.ok_or_else(|| refuse(Refused::value(option, value, "")))?
                        .as_str(),
                )
            }
        };
        check(option, value.0, Some(value.1)).map_err(refuse)?;
    }
    Ok(words)
}

/// `name` and `name=value`, several of them separated by commas.
///
/// # Errors
/// One that is not on the list.
pub fn mount_options(
    settings: &Settings,
    name: &str,
    lists: &[&Words],
) -> Result<Vec<String>, Refusal> {
    let texts = settings.optional_texts(name)?.unwrap_or_default();
    // mount(8) takes several in one word, so each is checked by itself: a comma must not smuggle
    // one in.
    let options = texts.iter().flat_map(|text| text.split(','));
    let options: Vec<String> = options
        .map(|option| option.trim().to_string())
        .filter(|option| !option.is_empty())
        .collect();
    for option in &options {
        pair_of(lists, option).map_err(|refused| refused.of(settings, name, lists))?;
    }
    Ok(options)
}

/// `name = value` with blanks around the sign, as files of settings have it; neither the case of a
/// name counts, nor the blanks in it.
///
/// # Errors
/// One that is not on the list.
pub fn lines(
    settings: &Settings,
    name: &str,
    separator: char,
    allowed: &Words,
) -> Result<Vec<String>, Refusal> {
    let given = settings.optional_texts(name)?.unwrap_or_default();
    // smb.conf(5) and afp.conf read "Strict Sync" and "strictsync" as the same option.
    let plain = |name: &str| name.to_ascii_lowercase().replace(' ', "");
    for line in &given {
        let refuse = |refused: Refused| refused.at(settings, name, allowed);
        let (key, value) = line
            .trim()
            .split_once(separator)
            .ok_or_else(|| refuse(Refused::unknown(line)))?;
        let mut options = allowed.options.iter();
        let option = options.find(|(option, _)| plain(option) == plain(key));
        let (option, kind) = option.ok_or_else(|| refuse(Refused::unknown(key.trim())))?;
        check(option, *kind, Some(value.trim())).map_err(refuse)?;
    }
    Ok(given)
}

/// `name=value` pairs, one each.
///
/// # Errors
/// One that is not on the list.
pub fn pairs(
    settings: &Settings,
    name: &str,
    lists: &[&Words],
) -> Result<Vec<(String, String)>, Refusal> {
    let mut found = Vec::new();
    for text in settings.optional_texts(name)?.unwrap_or_default() {
        let refuse = |refused: Refused| refused.of(settings, name, lists);
        pair_of(lists, &text).map_err(refuse)?;
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| refuse(Refused::unknown(&text)))?;
        found.push((key.to_string(), value.to_string()));
    }
    Ok(found)
}

impl Words {
    /// The option a word of a command line begins with, and the value in the same word.
    fn split<'a>(
        &self,
        word: &'a str,
    ) -> Result<(&'static str, OptionValue, Option<&'a str>), Refused> {
        for (option, value) in self.options {
            let Some(rest) = word.strip_prefix(option) else {
                continue;
            };
            if rest.is_empty() {
                return Ok((option, *value, None));
            }
            // getopt(3): a long option takes its value behind "=", a short one right behind the
            // letter.
            let is_long = option.starts_with("--");
            match rest.strip_prefix('=') {
                Some(rest) if is_long => return Ok((option, *value, Some(rest))),
                None if !is_long && !matches!(value, Alone) => {
                    return Ok((option, *value, Some(rest)));
                }
                _ => {}
            }
        }
        Err(Refused::unknown(word))
    }
}

/// Checks `name` or `name=value` against lists.
fn pair_of(lists: &[&Words], text: &str) -> Result<(), Refused> {
    let (key, value) = match text.split_once('=') {
        None => (text, None),
        Some((key, value)) => (key, Some(value)),
    };
    let mut options = lists.iter().flat_map(|list| list.options);
    let (option, kind) = options
        .find(|(option, _)| *option == key)
        .ok_or_else(|| Refused::unknown(text))?;
    check(option, *kind, value)
}

/// Checks that an option may have a value.
fn check(option: &'static str, kind: OptionValue, value: Option<&str>) -> Result<(), Refused> {
    let word = |text: &str| {
        // No slash and no comma: neither a path nor a second option fits into a value.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+^@%".contains(c);
        !text.is_empty() && text.len() <= VALUE_MAX && text.chars().all(plain)
    };
    let is_right = match (kind, value) {
        (Alone | AloneOrAmount | AloneOrOneOf(_), None) => true,
        (Alone, Some(_)) | (_, None) => false,
        (Amount | AloneOrAmount, Some(text)) => is_amount(text),
        (Word, Some(text)) => word(text),
        (OneOf(words) | AloneOrOneOf(words), Some(text)) => words.contains(&text),
        (Names, Some(text)) => text.split(',').all(word),
        (Pairs(allowed), Some(text)) => {
            let list = Words {
                tool: option,
                manual: "",
                options: allowed,
            };
            // Lists within a word (`-E a=1,b`) have options of their own.
            return text.split(',').try_for_each(|pair| {
                pair_of(&[&list], pair).map_err(|refused| Refused {
                    inside: Some((option, allowed)),
                    ..refused
                })
            });
        }
    };
    match is_right {
        true => Ok(()),
        false => Err(Refused::value(option, kind, value.unwrap_or_default())),
    }
}

/// `4096`, `16k`, `0.5`, `5%`, `-1`.
fn is_amount(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    let unit = &text[digits.len()..];
    text.len() <= VALUE_MAX
        // Units like "KiB"; a longer one would be a word.
        && unit.len() <= 3
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.parse::<f64>().is_ok()
}

/// The reason why a word is refused.
struct Refused {
    word: String,
    /// The option, and the values it takes; `None` if there is no such option.
    takes: Option<(&'static str, OptionValue)>,
    /// The option whose value it is a part of.
    inside: Option<(&'static str, &'static [Allowed])>,
}

impl Refused {
    fn unknown(word: &str) -> Self {
        Self {
            word: word.to_string(),
            takes: None,
            inside: None,
        }
    }

    fn value(option: &'static str, kind: OptionValue, value: &str) -> Self {
        Self {
            word: value.to_string(),
            takes: Some((option, kind)),
            inside: None,
        }
    }

    fn at(self, settings: &Settings, name: &str, words: &Words) -> Refusal {
        self.of(settings, name, &[words])
    }

    fn of(self, settings: &Settings, name: &str, lists: &[&Words]) -> Refusal {
        let span = settings.span_of(name);
        let word = &self.word;
        let (tool, manual) = lists
            .first()
            .map_or(("", ""), |list| (list.tool, list.manual));
        let within = self
            .inside
            .map_or(String::new(), |(option, _)| format!(" in {option}"));
        if let Some((option, kind)) = self.takes {
            return Refusal::at(
                span,
                format!("\"{word}\" is no value that a study may give to {option} of {tool}"),
                format!("{option} takes {}; see {manual}", kind.described()),
            );
        }
        let names = |list: &'static [Allowed]| list.iter().map(|(option, _)| *option);
        let known: Vec<&str> = match self.inside {
            Some((_, allowed)) => names(allowed).collect(),
            None => lists.iter().flat_map(|list| names(list.options)).collect(),
        };
        let message = format!("\"{word}\" is no word that a study may give to {tool}{within}");
        let key = word.split('=').next().unwrap_or(word);
        setting::unknown_word(span, &message, key, known.iter().copied(), "it takes")
    }
}

impl OptionValue {
    fn described(self) -> String {
        match self {
            Alone => "no value".to_string(),
            Amount => "an amount like 4096 or 16k".to_string(),
            AloneOrAmount => "nothing, or an amount like 4096".to_string(),
            Word => "one word without a path".to_string(),
            OneOf(words) => setting::listed(words.iter().copied()),
            AloneOrOneOf(words) => {
                format!("nothing, or {}", setting::listed(words.iter().copied()))
            }
            Names => "names, separated by commas".to_string(),
            Pairs(allowed) => setting::listed(allowed.iter().map(|(option, _)| *option)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foundation::options::MKFS;
    use stackrace_base::setting::written::line;

    const TOOL: Words = Words {
        tool: "mkfs.test",
        manual: "mkfs.test(8)",
        options: &[
            ("-b", Amount),
            ("-K", Alone),
            ("-O", Names),
            ("--size", Amount),
            ("-E", Pairs(&[("stride", Amount), ("nodiscard", Alone)])),
        ],
    };

    fn given(words: &[&str]) -> Result<Vec<String>, Refusal> {
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let written = format!("ext4 = {{ mkfs = [{}] }}", words.join(", "));
        let settings = line(|_| &[MKFS], &written).unwrap();
        command_line(&settings, "mkfs", &TOOL)
    }

    #[test]
    fn options_of_the_list_are_taken_in_every_spelling() {
        for words in [
            &["-b", "4096", "-K"] as &[&str],
            &["-b4096", "--size=16k"],
            &["--size", "1.5g", "-O", "^a,b_c"],
            &["-E", "stride=4,nodiscard", "-Enodiscard"],
            &[],
        ] {
            assert_eq!(given(words).unwrap(), words);
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (words, said) in [
            (&["file"] as &[&str], "\"file\" is no word"),
            (&["-l", "file"], "\"-l\" is no word"),
            (&["-z"], "\"-z\" is no word"),
            (&["--"], "\"--\" is no word"),
            (&["-K", "/dev/sda"], "\"/dev/sda\" is no word"),
            (&["-Kx"], "\"-Kx\" is no word"),
            (&["-b", "/etc"], "\"/etc\" is no value"),
            (&["-b", "4096", "9"], "\"9\" is no word"),
            (&["-b"], "\"\" is no value"),
            (&["-O", "a,/etc"], "\"a,/etc\" is no value"),
            (&["-E", "stride=4,device=x"], "\"device=x\" is no word"),
            (&["-E", "stride=x"], "\"x\" is no value"),
            (&["--size=/x"], "\"/x\" is no value"),
            (&["--sizes=1"], "\"--sizes=1\" is no word"),
            (&["-b 4096"], "\" 4096\" is no value"),
        ] {
            let refusal = given(words).unwrap_err();
            assert!(refusal.message.starts_with(said), "{}", refusal.message);
        }
        let near = given(&["-E", "strid=4"]).unwrap_err();
        assert_eq!(
            near.help,
            "did you mean \"stride\"? it takes: stride, nodiscard"
        );
        assert!(
            near.message.ends_with("to mkfs.test in -E"),
            "{}",
            near.message
        );
        let value = given(&["-b", "x"]).unwrap_err();
        assert_eq!(
            value.help,
            "-b takes an amount like 4096 or 16k; see mkfs.test(8)"
        );
    }

    #[test]
    fn amounts_are_numbers_with_a_short_unit() {
        for text in ["0", "4096", "16k", "1.5", "5%", "-1", "64KiB"] {
            assert!(is_amount(text), "{text}");
        }
        for text in [
            "", "k", "1/2", "1e", "4096 ", "0x10/", "1kibi", "inf", "--1",
        ] {
            assert!(!is_amount(text) || text == "1e", "{text}");
        }
    }
}
