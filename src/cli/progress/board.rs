//! The live view as lines of text: the race, where the configurations stand, what runs now.
//!
//! Pure: it is given what is known and a width, and reads no clock. What a colour says a mark or a
//! word says too.

use stackrace_base::unit;
use stackrace_show::report::{
    Standing, Standings, Style, Styled, columns_of, cut, cut_at_blank, on_one_line, wrap,
};
use stackrace_study::study::ROUNDS_MAX;

/// Columns that are used at most.
const WIDTH_MAX: usize = 80;
/// Configurations that are shown; the rest are counted.
const ROWS_MAX: usize = 8;
/// Columns of the bar of a round.
const BAR: usize = 12;
/// Heights of a sparkline.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// State of a run at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    /// Round under way, from 1.
    pub(super) round: u32,
    /// Rounds the study allows.
    pub(super) rounds_max: u32,
    /// Trials done in this round, and all of it.
    pub(super) trials: (u64, u64),
    /// Since the run began, s.
    pub(super) elapsed_s: f64,
    /// Time left at most, s; `None` if it cannot be told yet.
    pub(super) left_s: Option<f64>,
    /// Standings of the configurations.
    pub(super) standings: Standings,
    /// Configuration under way, by index.
    pub(super) configuration: usize,
    /// Its workload and part: `random write · measure`.
    pub(super) doing: String,
    /// Since the part began, s.
    pub(super) doing_s: f64,
    /// The rate right now: `312 MB/s`; empty: nothing is counted.
    pub(super) rate: String,
    /// The last rates, oldest first.
    pub(super) recent: Vec<f64>,
}

/// One line, before it is cut to the width and coloured.
struct BoardLine {
    style: Style,
    /// The configuration whose colour its mark has.
    of: Option<usize>,
    text: String,
}

impl BoardLine {
    fn new(style: Style, text: String) -> Self {
        Self {
            style,
            of: None,
            text,
        }
    }
}

/// The lines, none wider than `columns` or [`WIDTH_MAX`].
pub(super) fn lines(board: &Board, columns: usize) -> Styled {
    let width = columns.min(WIDTH_MAX);
    let mut lines = vec![BoardLine::new(Style::Strong, race(board, width))];
    lines.extend(standings(board, width));
    lines.extend(now(board, width).map(|line| BoardLine::new(Style::Plain, line)));
    let mut all = Styled::default();
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            all.add(Style::Plain, "\n");
        }
        // As it will be seen: names of others may hold what is no text.
        let text = on_one_line(&line.text);
        // A row ends with columns, a sentence with words.
        let cut = line
            .of
            .map_or(cut_at_blank as fn(&str, usize) -> String, |_| cut);
        let text = cut(text.trim_end(), width);
        match (line.of, text.char_indices().nth(1)) {
            (Some(of), Some((at, _))) => {
                let (mark, rest) = text.split_at(at);
                all.add(Style::Configuration(of), mark);
                all.add(line.style, rest);
            }
            _ => all.add(line.style, &text),
        }
    }
    all
}

/// `round 3 of at most 12 ▕█████▏ · 41 s elapsed · at most 1 min 20 s left`
fn race(board: &Board, width: usize) -> String {
    let (done, all) = board.trials;
    // A trial that is repeated may push the count beyond what was planned.
    let filled = (done.min(all) as usize * BAR) / all.max(1) as usize;
    let bar = format!("▕{}{}▏", "█".repeat(filled), " ".repeat(BAR - filled));
    let round = round(board.round, board.rounds_max);
    let elapsed = unit::long_time(board.elapsed_s);
    let left = left(board.left_s);
    // What is left says more than what has passed, and both more than the bar.
    let lines = [
        format!("{round} {bar} {elapsed}{left}"),
        format!("{round} · {elapsed}{left}"),
        format!("{round}{left}"),
    ];
    let [_, _, last] = &lines;
    let fitting = lines.iter().find(|line| columns_of(line) <= width);
    fitting.unwrap_or(last).clone()
}

/// `round 3 of at most 12`; of a run that goes on until it is decided, `round 3`.
pub(super) fn round(round: u32, rounds_max: u32) -> String {
    match rounds_max < ROUNDS_MAX {
        true => format!("round {round} of at most {rounds_max}"),
        false => format!("round {round}"),
    }
}

/// Time left at most, after the words before it; empty if it cannot be told yet.
pub(super) fn left(seconds: Option<f64>) -> String {
    seconds.map_or_else(String::new, |seconds| {
        format!(" · at most {} left", unit::long_time(seconds))
    })
}

/// The configurations that can be shown, the one under way always among them.
fn shown(board: &Board) -> Vec<&Standing> {
    let rows = &board.standings.rows;
    let mut shown: Vec<&Standing> = rows.iter().take(ROWS_MAX).collect();
    let running = rows.iter().skip(ROWS_MAX);
    if let Some(row) = running
        .into_iter()
        .find(|row| row.configuration == board.configuration)
    {
        // The one that is measured now is always in sight, at the cost of the last row.
        shown.pop();
        shown.push(row);
    }
    shown
}

/// Standings of the configurations, a line for each.
fn standings(board: &Board, width: usize) -> Vec<BoardLine> {
    let rows = shown(board);
    let widest = |text: fn(&Standing) -> &str| {
        let widths = rows.iter().map(|row| columns_of(text(row)));
        widths.max().unwrap_or(0)
    };
    let (figures, intervals) = (widest(|row| &row.figure), widest(|row| &row.interval));
    // Mark, name, figure, interval and how a configuration left, with two blanks between them.
    let left = |row: &&Standing| {
        let words = row.left.map(|left| format!("  {}", left.short()));
        words.unwrap_or_default()
    };
    let widest_left = rows.iter().map(|row| left(row).len()).max();
    // Kept free before anything has left: names do not jump when the first one does.
    let kept = widest_left.unwrap_or(0).max("  out, round 9".len());
    let room = width.saturating_sub(2 + 2 + figures + 2 + intervals + kept);
    // Names give way first: figures that are cut would be wrong.
    let names = widest(|row| &row.name).min(room.max(8));
    let mut lines = Vec::new();
    if !board.standings.of.is_empty() {
        let text = format!("{} [{}]", board.standings.of, board.standings.interval);
        let parts = wrap(&text, width.saturating_sub(2)).into_iter();
        lines.extend(parts.map(|part| BoardLine::new(Style::Faint, format!("  {part}"))));
    }
    for row in &rows {
        let (mark, style) = match row.left {
            Some(_) => ('○', Style::Faint),
            None if row.configuration == board.configuration => ('▸', Style::Strong),
            None => ('●', Style::Plain),
        };
        let left = left(row);
        let name = cut(&row.name, names);
        let blanks = " ".repeat(names.saturating_sub(columns_of(&name)));
        let text = format!(
            "{mark} {name}{blanks}  {:>figures$}  {:<intervals$}{left}",
            row.figure, row.interval
        );
        lines.push(BoardLine {
            style,
            of: Some(row.configuration),
            text,
        });
    }
    let hidden = board.standings.rows.len() - rows.len();
    if hidden > 0 {
        lines.push(BoardLine::new(Style::Faint, format!("  and {hidden} more")));
    }
    lines
}

/// The trial that runs now, and its throughput as a sparkline.
fn now(board: &Board, width: usize) -> impl Iterator<Item = String> {
    let name = board.standings.rows.iter();
    let name = name
        .into_iter()
        .find(|row| row.configuration == board.configuration)
        .map_or("", |row| row.name.as_str());
    let doing = format!(
        "now {name} · {} · {}",
        board.doing,
        unit::long_time(board.doing_s)
    );
    let room = width.saturating_sub(4 + columns_of(&board.rate) + 1);
    let rate = (!board.rate.is_empty())
        .then(|| format!("    {} {}", board.rate, sparkline(&board.recent, room)));
    std::iter::once(doing).chain(rate)
}

/// The last rates as columns over a common zero, as many as fit.
pub(super) fn sparkline(rates: &[f64], room: usize) -> String {
    let rates = &rates[rates.len().saturating_sub(room)..];
    let most = rates.iter().copied().fold(0.0, f64::max);
    rates
        .iter()
        .map(|rate| {
            let share = if most > 0.0 { rate / most } else { 0.0 };
            // Relative to the highest rate shown: the line tells how steady it is, not how fast.
            SPARKS[((share * 8.0) as usize).min(SPARKS.len() - 1)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_judge::verdict::Left;

    fn row(configuration: usize, name: &str, left: Option<Left>) -> Standing {
        Standing {
            configuration,
            name: name.to_owned(),
            figure: "1.18".to_owned(),
            interval: "[1.02, 1.31]".to_owned(),
            left,
        }
    }

    fn board() -> Board {
        Board {
            round: 5,
            rounds_max: 12,
            trials: (3, 8),
            elapsed_s: 161.0,
            left_s: Some(200.0),
            standings: Standings {
                of: "ratio over all workloads; above 1 is better".to_owned(),
                interval: "95 % interval".to_owned(),
                rows: vec![
                    row(1, "xfs, 4 KiB", None),
                    row(0, "ext4, 4 KiB", None),
                    row(
                        2,
                        "btrfs with a name that does not end anywhere near the edge of it",
                        Some(Left {
                            after: 3,
                            answered: false,
                        }),
                    ),
                ],
            },
            configuration: 1,
            doing: "random read · measure".to_owned(),
            doing_s: 3.4,
            rate: "312 MB/s".to_owned(),
            recent: vec![0.0, 1.0, 2.0, 4.0, 8.0, 6.0, 7.9],
        }
    }

    #[test]
    fn the_board_fits_eighty_columns_and_says_all_without_colour() {
        insta::assert_snapshot!(lines(&board(), 200).plain(), @r"
        round 5 of at most 12 ▕████        ▏ 2 min 41 s · at most 3 min 20 s left
          ratio over all workloads; above 1 is better [95 % interval]
        ▸ xfs, 4 KiB                                    1.18  [1.02, 1.31]
        ● ext4, 4 KiB                                   1.18  [1.02, 1.31]
        ○ btrfs with a name that does not end anywher…  1.18  [1.02, 1.31]  out, round 3
        now xfs, 4 KiB · random read · measure · 3 s
            312 MB/s ▁▂▃▅█▇█
        ");
    }

    #[test]
    fn a_narrow_terminal_breaks_and_cuts_the_board_at_blanks() {
        insta::assert_snapshot!(lines(&board(), 50).plain(), @r"
        round 5 of at most 12 · at most 3 min 20 s left
          ratio over all workloads; above 1 is better
          [95 % interval]
        ▸ xfs, 4 KiB      1.18  [1.02, 1.31]
        ● ext4, 4 KiB     1.18  [1.02, 1.31]
        ○ btrfs with a …  1.18  [1.02, 1.31]  out, round 3
        now xfs, 4 KiB · random read · measure · 3 s
            312 MB/s ▁▂▃▅█▇█
        ");
        let mut long = board();
        long.doing = "random read of the whole device · measure".to_owned();
        let shown = lines(&long, 50).plain();
        let now = shown.lines().find(|line| line.starts_with("now ")).unwrap();
        assert!(now.ends_with(" …") && columns_of(now) <= 50, "{now}");
    }

    #[test]
    fn what_was_answered_is_not_called_out() {
        let mut board = board();
        board.standings.rows[1].left = Some(Left {
            after: 4,
            answered: true,
        });
        let lines = lines(&board, 80).plain();
        assert!(lines.contains("  answered, round 4\n"), "{lines}");
        assert!(lines.contains("  out, round 3\n"), "{lines}");
    }

    #[test]
    fn no_time_left_is_shown_before_it_can_be_told() {
        let unknown = Board {
            left_s: None,
            ..board()
        };
        let shown = lines(&unknown, 80).plain();
        let first = shown.lines().next();
        assert_eq!(
            first,
            Some("round 5 of at most 12 ▕████        ▏ 2 min 41 s")
        );
        let until_decided = Board {
            rounds_max: ROUNDS_MAX,
            ..unknown
        };
        let shown = lines(&until_decided, 80).plain();
        let first = shown.lines().next();
        assert_eq!(first, Some("round 5 ▕████        ▏ 2 min 41 s"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut board = board();
        for more in 3..30 {
            board
                .standings
                .rows
                .push(row(more, "another configuration", None));
        }
        board.configuration = 25;
        for columns in [20, 40, 79, 80, 132] {
            let text = lines(&board, columns).plain();
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.iter().all(|line| columns_of(line) <= columns.min(80)));
            assert!(lines.len() <= ROWS_MAX + 8, "{text}");
            assert_eq!(lines.iter().filter(|line| line.starts_with('▸')).count(), 1);
        }
    }

    #[test]
    fn the_board_is_coloured_and_names_bring_no_colour() {
        let mut board = board();
        board.standings.rows[0].name = "\u{1b}[31mxfs\u{202e}日本語".to_owned();
        let text = lines(&board, 60).render(true);
        assert!(
            text.contains("\u{1b}[38;5;166m▸\u{1b}[0m\u{1b}[1m ␛[31mxfs\u{fffd}日"),
            "{text}"
        );
        for line in lines(&board, 40).plain().lines() {
            assert!(columns_of(line) <= 40, "{line}");
        }
    }

    #[test]
    fn a_sparkline_begins_at_zero_and_shows_the_newest() {
        assert_eq!(sparkline(&[0.0, 4.0, 8.0], 80), "▁▅█");
        assert_eq!(sparkline(&[1.0, 2.0, 8.0, 8.0], 2), "██");
        assert_eq!(sparkline(&[0.0, 0.0], 9), "▁▁");
        assert_eq!(sparkline(&[], 9), "");
    }
}
