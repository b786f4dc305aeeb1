//! The text form of DiskSim's parameter files: blocks of `key = value`, values being numbers, words,
//! lists, or blocks.

/// A value of a parameter file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Anything that is no list and no block: a number, a word, `source FILE`.
    Word(String),
    List(Vec<Value>),
    Block(Block),
}

/// `kind name { key = value, ... }`
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Block {
    pub(super) kind: String,
    entries: Vec<(String, Value)>,
}

impl Value {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Word(word) => word.parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }

    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Self::List(list) => list.iter().map(Self::number).collect(),
            _ => None,
        }
    }
}

impl Block {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        let found = self.entries.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }

    /// The first block of this kind: this one, or one inside it.
    pub(super) fn find(&self, kind: &str) -> Option<&Block> {
        if self.kind == kind {
            return Some(self);
        }
        self.entries.iter().find_map(|(_, value)| match value {
            Value::Block(block) => block.find(kind),
            _ => None,
        })
    }

    /// All blocks inside this one.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.entries.iter().filter_map(|(_, value)| match value {
            Value::Block(block) => Some(block),
            _ => None,
        })
    }
}

/// Reads a whole file as one block without a name.
pub(super) fn parse(text: &str) -> Block {
    let without_comments: String = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""))
        .flat_map(|line| [line, "\n"])
        .collect();
    Reader {
        rest: &without_comments,
        depth: 0,
    }
    .entries()
}

/// Blocks nested deeper than this are left out: no drive has them, and each level takes stack.
const DEEPEST: usize = 20;

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    /// The text up to the next punctuation mark, and the mark; `None` at the end.
    fn token(&mut self) -> (String, Option<char>) {
        let end = self.rest.find(['=', ',', '{', '}', '[', ']']);
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut marks = rest.chars();
        let mark = marks.next();
        self.rest = marks.as_str();
        (words.join(" "), mark)
    }

    /// Reads the entries up to the end of this block.
    fn entries(&mut self) -> Block {
        let (mut block, mut key) = (Block::default(), String::new());
        loop {
            let (text, mark) = self.token();
            let value = match mark {
                Some('=') => {
                    key = text;
                    continue;
                }
                Some('{') => Value::Block(self.block(&text)),
                Some('[') => Value::List(self.list()),
                // The last value before a closing bracket needs no comma.
                _ if !text.is_empty() => Value::Word(text),
                Some(',') => continue,
                _ => return block,
            };
            block.entries.push((std::mem::take(&mut key), value));
            if matches!(mark, None | Some('}' | ']')) {
                return block;
            }
        }
    }

    fn block(&mut self, head: &str) -> Block {
        let kind = head.split(' ').next().unwrap_or("").to_owned();
        if self.depth == DEEPEST {
            return Block::default();
        }
        self.depth += 1;
        let inside = self.entries();
        self.depth -= 1;
        Block { kind, ..inside }
    }

    fn list(&mut self) -> Vec<Value> {
        let inside = self.block("");
        inside.entries.into_iter().map(|(_, value)| value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lists_words_and_comments_are_read() {
        let root = parse(
            "dm_disk A { # a comment = 3\n Seek type = extracted, Size = 8,\n\
             Zones = [ zone { First = 0, Last = 9 }, zone { First = 10, Last = 19 } ],\n\
             # Left out = [ 1, 2 ],\n Times = [ 1.5,\n 2.5 ], Rate = -0.25\n } # end",
        );
        let disk = root.find("dm_disk").unwrap();
        assert_eq!(
            disk.get("Seek type"),
            Some(&Value::Word("extracted".into()))
        );
        assert_eq!(disk.number("Size"), Some(8.0));
        assert_eq!(disk.number("Rate"), Some(-0.25));
        assert_eq!(disk.get("Left out"), None);
        assert_eq!(
            disk.get("Times").and_then(Value::numbers),
            Some(vec![1.5, 2.5])
        );
        let Some(Value::List(zones)) = disk.get("Zones") else {
            panic!("no list")
        };
        let last = |zone: &Value| match zone {
            Value::Block(zone) => zone.number("Last"),
            _ => None,
        };
        assert_eq!(
            zones.iter().map(last).collect::<Vec<_>>(),
            [Some(9.0), Some(19.0)]
        );
    }

    #[test]
    fn text_that_is_no_parameter_file_gives_nothing_and_does_not_crash() {
        for text in ["", "}", "] = {", "a = ", &"x { ".repeat(10_000), "a = [[[{"] {
            assert_eq!(parse(text).find("dm_disk"), None);
        }
    }
}
