//! The page's styles for a picture: its own rules, with every colour written out.
//!
//! A page says colours by CSS variables. Programs that draw SVG alone (Inkscape, LibreOffice, resvg)
//! know none, so each rule is written once for each colour that it can have.

/// Classes that set the colour of what is in them, and the variable that has it. What a row has of its
/// own comes first: a series in it counts more.
const COLOURED: [(&str, &str); 9] = [
    ("row", "soft"),
    ("s0", "s0"),
    ("s1", "s1"),
    ("s2", "s2"),
    ("s3", "s3"),
    ("s4", "s4"),
    ("s5", "s5"),
    ("s6", "s6"),
    ("s7", "s7"),
];

/// The rules of the page's style sheet that are about charts, without variables, on white.
pub(super) fn resolved(page: &str) -> String {
    let colours = colours(page);
    let mut style = String::from(".paper { fill: #fff; }\n");
    for (selector, body) in page.lines().filter_map(rule) {
        if !body.contains("var(--c)") {
            style.push_str(&format!("{selector} {{ {} }}\n", filled(body, &colours)));
            continue;
        }
        for (class, variable) in COLOURED {
            let body = body.replace("var(--c)", &format!("var(--{variable})"));
            let selectors = scoped(selector, class).join(", ");
            style.push_str(&format!("{selectors} {{ {} }}\n", filled(&body, &colours)));
        }
    }
    style
}

/// Selector and body of a line that is a rule for charts.
fn rule(line: &str) -> Option<(&str, &str)> {
    let (selector, body) = line.split_once(" {")?;
    let body = body.strip_suffix('}')?.trim();
    let about_charts = ["svg ", ".series ", ".mark"];
    // A picture has nothing to point at or to click on.
    let still = !selector.contains(':') && !body.contains("cursor");
    (still && about_charts.iter().any(|begin| selector.starts_with(begin)))
        .then(|| (selector.trim_start_matches("svg "), body))
}

/// The selector, where the class stands around it or on one of its own parts.
fn scoped(selector: &str, class: &str) -> Vec<String> {
    let parts: Vec<&str> = selector.split(' ').collect();
    let on_part = (0..parts.len()).map(|at| {
        let mut parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        parts[at].push_str(&format!(".{class}"));
        parts.join(" ")
    });
    std::iter::once(format!(".{class} {selector}"))
        .chain(on_part)
        .collect()
}

/// Name and value of each variable of the light page.
fn colours(page: &str) -> Vec<(&str, &str)> {
    // The first block is that of the light page; those of the dark one and of paper follow.
    let (_, block) = page.split_once(":root {").unwrap_or_default();
    let (block, _) = block.split_once('}').unwrap_or_default();
    block
        .split(';')
        .filter_map(|line| line.trim().strip_prefix("--")?.split_once(": "))
        .collect()
}

fn filled(body: &str, colours: &[(&str, &str)]) -> String {
    let mut body = body.to_owned();
    for (name, value) in colours {
        // Letters have a rim in the colour of what is behind them: here always white.
        let value = match *name {
            "page" | "card" => "#fff",
            _ => value,
        };
        body = body.replace(&format!("var(--{name})"), value);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_left_and_every_colour_is_there() {
        let style = resolved(super::super::super::html::STYLE);
        assert!(!style.contains("var("), "{style}");
        for part in [
            ".s3 .mark, .mark.s3 { fill: #b0568f; stroke: #b0568f;",
            ".s7 .series .line, .series.s7 .line, .series .line.s7 {",
            ".row .whisker, .whisker.row { stroke: #5b6470;",
            "text { font: 12px",
            ".limit text { fill: #b0420a; }",
        ] {
            assert!(style.contains(part), "{part}: {style}");
        }
    }
}
