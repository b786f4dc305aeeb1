//! Values that travel as text: words of settings that are compared, and texts that are taken apart.

use crate::source::SourceFile;

/// Files that read a setting as text and tell its words apart: a word that is added would fall to
/// whatever the rest of the words falls to, and no compiler says so. `setting::choice` gives values.
pub fn words_compared(file: &SourceFile) -> Vec<String> {
    let code = file.product_code();
    let ends = |c: char| matches!(c, ';' | '{' | '}');
    let mut found = Vec::new();
    for getter in [".text(", ".optional_text("] {
        for (at, _) in code.match_indices(getter) {
            let start = code[..at].rfind(ends).map_or(0, |end| end + 1);
            let end = code[at..].find(ends).map_or(code.len(), |end| at + end);
            let statement = &code[start..end];
            let borrowed = [".as_str()", ".as_deref()"]
                .iter()
                .any(|way| statement.contains(way));
            let compared = ["== \"", "!= \"", "== Some(\"", "!= Some(\""];
            if (statement.contains("match") && borrowed)
                || compared.iter().any(|sign| statement.contains(sign))
            {
                found.push(format!(
                    "word of a setting compared as text: {}",
                    file.path.display()
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new(PathBuf::from("src/a.rs"), text.to_owned())
    }

    #[test]
    fn a_word_of_a_setting_that_is_compared_as_text_is_found() {
        for bad in [
            "fn f() { match settings.text(\"a\")?.as_str() { \"b\" => 1, _ => 2 } }\n",
            "fn f() { let x = settings.text(A)? == \"b\"; }\n",
            "fn f() { if s.optional_text(\"a\")?.as_deref() == Some(\"b\") { g() } }\n",
            "fn f() { matches!(s.optional_text(\"a\")?\n        .as_deref(), Some(\"b\")) }\n",
        ] {
            let found = ["word of a setting compared as text: src/a.rs"];
            assert_eq!(words_compared(&file(bad)), found, "{bad}");
        }
        for good in [
            "fn f() { match settings.optional_text(\"a\")? { Some(a) => a, None => b } }\n",
            "fn f() { let a = settings.text(\"a\")?; }\n",
            "#[test]\nfn f() { assert!(s.text(\"a\")? == \"b\"); }\n",
        ] {
            assert!(words_compared(&file(good)).is_empty(), "{good}");
        }
    }
}
