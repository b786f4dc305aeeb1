//! Names whose letters take two columns, or none: lines are measured by what is seen.

use super::{Ground, NO_COLOUR, ground, on_screen};

/// Names of wide letters, of letters with marks of their own, and of pictures, each with the figures of its runs.
const WIDE: [(&str, &str, u32); 3] = [
    ("固態硬碟與機械硬碟的比較測試組合甲", "0.31", 336),
    ("e\u{301}te\u{301} Zu\u{308}rich 🚀 disk", "0.21", 497),
    ("日本語のとても長い名前です", "0.26", 402),
];

/// Imports runs under these names.
fn imported(ground: &Ground) {
    let mut words = vec!["import".to_owned()];
    for (name, seconds, rate) in WIDE {
        let run = |digits: &str| {
            format!(
                "1+0 records in\n1+0 records out\n104857600 bytes copied, {seconds}{digits} s, {rate} MB/s\n"
            )
        };
        let runs = ["112", "223", "334"].map(run);
        let file = ground.write(&format!("{seconds}.txt"), runs.concat());
        words.push(format!("{name}={}", file.display()));
    }
    words.extend(["--title".to_owned(), WIDE.map(|(name, _, _)| name).concat()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    ground.stackrace(&words).ended(0);
}

/// Columns at which the intervals of a table begin, one for each of its rows.
fn brackets(screen: &vt100::Screen) -> Vec<u16> {
    let (rows, columns) = screen.size();
    let place = |row: u16| {
        let text = screen.contents_between(row, 0, row, columns);
        let of_table = text.starts_with("  ") && text.ends_with(']');
        let begins = |column: &u16| {
            screen
                .cell(row, *column)
                .is_some_and(|cell| cell.contents() == "[")
        };
        (0..columns).find(|column| of_table && begins(column))
    };
    (0..rows).filter_map(place).collect()
}

pub(super) fn wide_letters_and_marks_are_measured_by_what_is_seen() {
    let ground = Ground::new();
    imported(&ground);
    let folder = ground.make_dir(WIDE[0].0);
    let folder = folder.to_str().unwrap();
    let load = ["load", folder, "random", "mode=read", "size=64KiB"];
    for columns in [40, 60] {
        for words in [&["report"][..], &["runs"], &["verdict"], &load] {
            let parser = on_screen(&ground, words, columns, &NO_COLOUR);
            let screen = parser.screen();
            let contents = screen.contents();
            let wrapped = (0..screen.size().0).find(|row| screen.row_wrapped(*row));
            assert_eq!(wrapped, None, "{words:?} at {columns}\n{contents}");
            assert!(!contents.contains('\u{fffd}'), "{words:?}: {contents}");
            // Fewer columns have lists in the place of tables.
            if words == ["report"] && columns == 60 {
                // In one column below each other, whatever stands before them.
                let places = brackets(screen);
                assert!(places.len() >= 2, "{contents}");
                assert_eq!(places[0], places[1], "{contents}");
            }
        }
    }
}

/// A mark below a line that the terminal breaks points at nothing.
pub(super) fn an_excerpt_of_a_study_fits_its_terminal() {
    let ground = ground();
    for columns in [30, 40, 60] {
        let parser = on_screen(&ground, &["plan", "wrong.toml"], columns, &NO_COLOUR);
        let screen = parser.screen();
        let contents = screen.contents();
        assert!(contents.contains("^^"), "{contents}");
        let wrapped = (0..screen.size().0).find(|row| screen.row_wrapped(*row));
        assert_eq!(wrapped, None, "at {columns}\n{contents}");
    }
}

/// A line that was broken for 80 columns, and again for 40, has a short rest in its middle.
pub(super) fn no_line_is_broken_twice() {
    let ground = ground();
    for words in [
        &["plan", "wrong.toml"][..],
        &["show", "profile", "source-code"],
        &["show", "layer", "image"],
        &["report", "no-such-run"],
        &["compare", "a", "no such directory"],
    ] {
        for columns in [40, 60] {
            let parser = on_screen(&ground, words, columns, &NO_COLOUR);
            let rows: Vec<String> = parser.screen().rows(0, columns).collect();
            let indent = |row: &str| row.len() - row.trim_start().len();
            for three in rows.windows(3) {
                let [before, row, after] = three else {
                    continue;
                };
                // Prose that goes on above and below it at the same column.
                let prose = indent(row) > 0
                    && [before, after]
                        .iter()
                        .all(|it| indent(it) == indent(row) && it.contains(' '))
                    && after.trim().starts_with(char::is_lowercase)
                    && row.trim().ends_with(char::is_lowercase);
                let next = after.split_whitespace().next().map_or(0, str::len);
                // A figure and its unit stay on one line.
                let fits = row.chars().count() + 12 + next < usize::from(columns);
                assert!(
                    !(prose && fits),
                    "{words:?} at {columns}: {row:?} in {rows:#?}"
                );
            }
        }
    }
}
