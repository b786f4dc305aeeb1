//! Reports as bonnie++ 1.03 and 2.00 print them, byte for byte.

use super::report::{
    BonnieColumn, BonnieFigure, BonnieFiles, BonnieLayout, BonnieReport, CHUNK, Cell, Data, Made,
    SEEKS,
};

/// The names of the columns of 1.03.
const HEADER_1_03: &str = "name,file_size,putc,putc_cpu,put_block,put_block_cpu,rewrite,rewrite_cpu,getc,getc_cpu,get_block,get_block_cpu,seeks,seeks_cpu,num_files,seq_create,seq_create_cpu,seq_stat,seq_stat_cpu,seq_del,seq_del_cpu,ran_create,ran_create_cpu,ran_stat,ran_stat_cpu,ran_del,ran_del_cpu";
/// The header of columns that 2.00 prints: 48 names for 50 columns.
const HEADER_2_00: &str = "format_version,bonnie_version,name,concurrency,seed,file_size,io_chunk_size,putc,putc_cpu,put_block,put_block_cpu,rewrite,rewrite_cpu,getc,getc_cpu,get_block,get_block_cpu,seeks,seeks_cpu,num_files,max_size,min_size,num_dirs,file_chunk_size,seq_create,seq_create_cpu,seq_stat,seq_stat_cpu,seq_del,seq_del_cpu,ran_create,ran_create_cpu,ran_stat,ran_stat_cpu,ran_del,ran_del_cpu,putc_latency,put_block_latency,rewrite_latency,getc_latency,get_block_latency,seeks_latency,seq_create_latency,seq_stat_latency,seq_del_latency,ran_create_latency,ran_stat_latency,ran_del_latency";

/// Width of what stands before the first rate of a row.
pub(super) const FIELD: usize = 19;
/// Most characters of what 2.00 says of the data in that field.
const DATA_MAX: usize = 15;

/// The first line of `-x` with more than one run, with its line break.
pub(super) fn csv_header(layout: BonnieLayout) -> String {
    match layout {
        BonnieLayout::V1_03 => format!("{HEADER_1_03}\n"),
        BonnieLayout::V1_96 | BonnieLayout::V1_97 | BonnieLayout::V2_00 => {
            format!("{HEADER_2_00}\n")
        }
    }
}

/// Prints one line of CSV, with its line break: 27 columns as 1.03, otherwise 50 as 2.00. Phases we
/// measured that took less than `too_fast_ns` are `+++++`.
pub fn csv(report: &BonnieReport, too_fast_ns: u64) -> String {
    let fields = match report.layout {
        BonnieLayout::V1_03 => fields_1_03(report, too_fast_ns),
        BonnieLayout::V1_96 | BonnieLayout::V1_97 | BonnieLayout::V2_00 => {
            fields_2_00(report, too_fast_ns)
        }
    };
    fields.join(",") + "\n"
}

fn fields_1_03(report: &BonnieReport, too_fast_ns: u64) -> Vec<String> {
    let size = report.data.as_ref().map(size_and_chunk);
    let mut fields = vec![report.name.clone(), size.unwrap_or_default()];
    let (data, files) = BonnieColumn::ALL.split_at(6);
    fields.extend(csv_pairs(report, data, too_fast_ns));
    fields.push(report.files.as_ref().map(files_words).unwrap_or_default());
    fields.extend(csv_pairs(report, files, too_fast_ns));
    fields
}

fn fields_2_00(report: &BonnieReport, too_fast_ns: u64) -> Vec<String> {
    let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    let data = report.data.as_ref();
    let mut fields = vec![
        // The format, not the version of the program: 2.00 writes 1.98 here.
        "1.98".to_owned(),
        report.program.clone(),
        report.name.clone(),
        report.concurrency.to_string(),
        report.seed.clone().unwrap_or_default(),
        data.map(|data| size(data.size_mib)).unwrap_or_default(),
        data.and_then(|data| data.chunk)
            .map(chunk)
            .unwrap_or_default(),
        number(data.and_then(|data| data.seeks)),
        number(data.and_then(|data| data.seekers)),
    ];
    let (data, files) = BonnieColumn::ALL.split_at(6);
    fields.extend(csv_pairs(report, data, too_fast_ns));
    let some = |number: u64| match number {
        0 => String::new(),
        number => number.to_string(),
    };
    fields.extend(match &report.files {
        None => [const { String::new() }; 5],
        Some(all) => {
            let (max, min) = match all.made {
                Made::Sizes { max, min } => (some(max), some(min)),
                Made::HardLinks => ("link".to_owned(), String::new()),
                Made::SymbolicLinks => ("symlink".to_owned(), String::new()),
            };
            let directories = match all.directories {
                1 => String::new(),
                several => several.to_string(),
            };
            // One field late, as in the original, and the chunk's size nowhere: programs that read
            // 1.98 expect them so.
            [all.number.to_string(), max, min, String::new(), directories]
        }
    });
    fields.extend(csv_pairs(report, files, too_fast_ns));
    fields.extend(report.cells.iter().map(latency));
    fields
}

/// The two fields of each column.
fn csv_pairs(report: &BonnieReport, columns: &[BonnieColumn], too_fast_ns: u64) -> Vec<String> {
    let pair = |column: &BonnieColumn| {
        let cell = report.cells[*column as usize];
        let Some(figure) = cell.figure else {
            return [String::new(), String::new()];
        };
        match shown(figure, too_fast_ns) {
            None => ["+++++".to_owned(), "+++".to_owned()],
            Some((per_s, cpu)) => {
                let rate = match column {
                    BonnieColumn::Seeks if report.layout == BonnieLayout::V1_03 => {
                        format!("{per_s:.1}")
                    }
                    BonnieColumn::Seeks => seeks(per_s),
                    // Cut off, not rounded, as the original does in CSV.
                    _ => format!("{:.0}", per_s.trunc()),
                };
                [rate, cpu.to_string()]
            }
        }
    };
    columns.iter().flat_map(pair).collect()
}

/// The rate and the whole percents of a processor; `None` is shown as `+++++`.
fn shown(figure: BonnieFigure, too_fast_ns: u64) -> Option<(f64, u64)> {
    let cpu = figure.cpu_percent().unwrap_or_default().value as u64;
    match figure {
        BonnieFigure::TooFast => None,
        // At least 1 ns, also with --too-fast 0: there is no rate over no time.
        BonnieFigure::Measured { elapsed_ns, .. } if elapsed_ns < too_fast_ns.max(1) => None,
        BonnieFigure::Garbage { shown, .. } => Some((shown as f64, cpu)),
        BonnieFigure::Rate { .. } | BonnieFigure::Measured { .. } => {
            figure.per_s().map(|per_s| (per_s.value, cpu))
        }
    }
}

/// Seeks have a decimal below a thousand.
fn seeks(per_s: f64) -> String {
    if per_s >= 1000.0 {
        format!("{per_s:.0}")
    } else {
        format!("{per_s:.1}")
    }
}

/// Prints a size: `1G`, `1100M`.
fn size(mib: u64) -> String {
    if mib.is_multiple_of(1024) {
        format!("{}G", mib / 1024)
    } else {
        format!("{mib}M")
    }
}

/// Prints a chunk: `64k`, `512`.
fn chunk(bytes: u64) -> String {
    if bytes >= 1024 {
        format!("{}k", bytes / 1024)
    } else {
        bytes.to_string()
    }
}

/// A chunk that is worth a word.
fn unusual_chunk(data: &Data) -> Option<String> {
    data.chunk.filter(|bytes| *bytes != CHUNK).map(chunk)
}

/// Prints `512M:64k`, as 1.03 says it.
fn size_and_chunk(data: &Data) -> String {
    match unusual_chunk(data) {
        Some(chunk) => format!("{}:{chunk}", size(data.size_mib)),
        None => size(data.size_mib),
    }
}

/// Prints `1G:64k:2:20000`, as 2.00 says it: size, chunk, concurrency, seeks; the usual left out.
fn data_words(data: &Data, concurrency: u32) -> String {
    let unusual = |number: Option<u32>, usual: u32| {
        let number = number.filter(|number| *number != usual);
        number.map(|number| number.to_string()).unwrap_or_default()
    };
    let words = [
        size(data.size_mib),
        unusual_chunk(data).unwrap_or_default(),
        unusual(Some(concurrency), 1),
        unusual(data.seeks, SEEKS),
    ];
    words.join(":").trim_end_matches(':').to_owned()
}

/// Prints `8:16384:512/4`.
fn files_words(files: &BonnieFiles) -> String {
    let mut words = files.number.to_string();
    match files.made {
        Made::Sizes { max: 0, .. } => {}
        Made::Sizes { max, min } => words.push_str(&format!(":{max}:{min}")),
        Made::HardLinks => words.push_str(":link"),
        Made::SymbolicLinks => words.push_str(":symlink"),
    }
    if files.directories > 1 {
        words.push_str(&format!("/{}", files.directories));
    }
    words
}

/// Prints a latency with its unit; empty if there is none.
fn latency(cell: &Cell) -> String {
    let Some(ns) = cell.latency_ns else {
        return String::new();
    };
    // The limits are the original's, in whole microseconds: up to 99999 it prints us, up to
    // 99999999 ms, so that five digits are enough.
    match ns.value as u64 {
        0 => String::new(),
        ns @ 99_999_999_001.. => format!("{}s", ns / 1_000_000_000),
        ns @ 99_999_001.. => format!("{}ms", ns / 1_000_000),
        ns => format!("{}us", (ns / 1000).max(1)),
    }
}

/// A rate as a row shows it, right-aligned in five.
pub(super) fn text_rate(layout: BonnieLayout, column: BonnieColumn, per_s: f64) -> String {
    let old = matches!(
        layout,
        BonnieLayout::V1_03 | BonnieLayout::V1_96 | BonnieLayout::V1_97
    );
    let mib = per_s / 1024.0;
    match column {
        BonnieColumn::Seeks => format!("{:>5}", seeks(per_s)),
        _ if old || !column.moves_data() => format!("{:5.0}", per_s.trunc()),
        _ if per_s < 10_000.0 => format!("{:4.0}k", per_s.trunc()),
        _ if mib < 100.0 => format!("{mib:4.1}m"),
        // Half up; `{:.0}` alone would round half to even.
        _ if mib < 1000.0 => format!("{:4.0}m", (mib + 0.5).floor()),
        _ => format!("{:4.1}g", mib / 1024.0),
    }
}

/// The table, with its line breaks. Phases we measured that took less than `too_fast_ns` are
/// `+++++`.
pub fn text(report: &BonnieReport, too_fast_ns: u64) -> String {
    let mut text = String::new();
    let old = report.layout == BonnieLayout::V1_03;
    let version = format!("Version {:>5}       ", report.program);
    let (data, files) = BonnieColumn::ALL.split_at(6);
    if let Some(said) = &report.data {
        text.push_str(&version);
        text.push_str("------Sequential Output------ --Sequential Input- --Random-\n");
        text.push_str(&" ".repeat(FIELD + 1));
        text.push_str("-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n");
        text.push_str(match (old, unusual_chunk(said)) {
            (true, None) => "Machine        Size",
            (true, Some(_)) => "Machine   Size:chnk",
            (false, _) => "Name:Size etc      ",
        });
        // 2.00 has the unit behind each rate, so its titles have none.
        let unit = if old { " K/sec %CP" } else { "  /sec %CP" };
        text.push_str(&unit.repeat(5));
        text.push_str("  /sec %CP\n");
        let words = match old {
            true => size_and_chunk(said),
            false => data_words(said, report.concurrency),
        };
        text.push_str(&field(&report.name, &words));
        row(&mut text, report, data, too_fast_ns);
    }
    match (&report.files, &report.data) {
        (Some(said), with_data) => {
            let (version, name) = match (old, with_data) {
                // 1.03 prints version and machine once, above the data.
                (true, Some(_)) => (" ".repeat(FIELD + 1), String::new()),
                _ => (version, cut(&report.name, FIELD)),
            };
            text.push_str(&format!(
                "{version}------Sequential Create------ --------Random Create--------\n\
                 {name:<FIELD$} -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--\n",
            ));
            text.push_str(match said.made {
                Made::Sizes { max: 0, .. } => "              files",
                Made::Sizes { min: 1.., .. } => "files:max:min      ",
                _ => "files:max          ",
            });
            text.push_str(&"  /sec %CP".repeat(6));
            text.push_str(&format!("\n{:>FIELD$}", files_words(said)));
            row(&mut text, report, files, too_fast_ns);
        }
        // 2.00 ends a table without files with an empty line.
        (None, _) if !old => text.push('\n'),
        (None, _) => {}
    }
    text
}

/// The figures of a row, and its latencies below it.
fn row(text: &mut String, report: &BonnieReport, columns: &[BonnieColumn], too_fast_ns: u64) {
    for column in columns {
        let figure = report.cells[*column as usize].figure;
        let Some(figure) = figure else {
            text.push_str(&" ".repeat(10));
            continue;
        };
        match shown(figure, too_fast_ns) {
            None => text.push_str(" +++++ +++"),
            Some((per_s, cpu)) => {
                let rate = text_rate(report.layout, *column, per_s);
                text.push_str(&format!(" {rate} {cpu:3}"));
            }
        }
    }
    text.push('\n');
    if report.layout != BonnieLayout::V1_03 {
        text.push_str("Latency          ");
        for column in columns {
            let latency = latency(&report.cells[*column as usize]);
            text.push_str(&format!(" {latency:>9}"));
        }
        text.push('\n');
    }
}

/// A name and what is said of the data, the latter whole as far as the field allows.
fn field(name: &str, words: &str) -> String {
    let words = cut(words, DATA_MAX);
    let room = FIELD - words.chars().count() - 1;
    format!("{:<room$} {words}", cut(name, room))
}

/// Cuts a text to at most so many characters.
fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}
