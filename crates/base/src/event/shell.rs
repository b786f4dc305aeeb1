//! Commands as they are shown: each can be pasted into a shell, and stays on its line.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use stackrace_system::shown::is_no_name;

/// A command as it can be pasted into a shell, where every word means the same, on one line.
pub fn shell<W: AsRef<OsStr>>(argv: &[W]) -> String {
    let words = argv.iter().map(|word| quoted(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it back unchanged.
fn quoted(word: &OsStr) -> String {
    // Letters of other alphabets are quoted: what they mean to a shell depends on its locale.
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+^{}".contains(c);
    // A shell would make several words of `{a,b}` and of `{1..3}`.
    let several = |text: &str| text.contains('{') && (text.contains(',') || text.contains(".."));
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(bare) && !several(text) => {
            text.to_owned()
        }
        // Inside single quotes a shell changes nothing; a single quote itself must stand outside of them.
        Some(text) if !text.chars().any(is_no_name) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => escaped(word.as_bytes()),
    }
}

/// Bytes between `$'` and `'` (POSIX.1-2024, XCU 2.2.4): a line break or a sign that reverses a line would make the
/// command another one for the eye.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str(r"\n"),
                '\t' => text.push_str(r"\t"),
                '\'' | '\\' => text.extend(['\\', letter]),
                letter if is_no_name(letter) => {
                    let mut own = [0; 4];
                    octal(letter.encode_utf8(&mut own).as_bytes(), &mut text);
                }
                letter => text.push(letter),
            }
        }
        octal(chunk.invalid(), &mut text);
    }
    text.push('\'');
    text
}

/// Three digits for each byte: what follows is no part of the number.
fn octal(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        text.push_str(&format!("\\{byte:03o}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let words = [
            "mount",
            "-o",
            "rw,noatime",
            "it's",
            "",
            "a b",
            "$x",
            "{a,b}",
            "{a}",
        ];
        let shown = r"mount -o rw,noatime 'it'\''s' '' 'a b' '$x' '{a,b}' {a}";
        assert_eq!(shell(&words), shown);
    }

    #[test]
    fn a_command_stays_on_its_line_whatever_is_in_it() {
        let words: [&[u8]; 4] = [
            b"a\nVERDICT  b is faster",
            "up\u{202e}down\u{200b}".as_bytes(),
            b"\xff1\x1b[1m",
            br"it's\n",
        ];
        let words = words.map(OsStr::from_bytes);
        assert_eq!(
            shell(&words),
            concat!(
                r"$'a\nVERDICT  b is faster' $'up\342\200\256down\342\200\213' ",
                r"$'\3771\033[1m' 'it'\''s\n'"
            )
        );
    }
}
