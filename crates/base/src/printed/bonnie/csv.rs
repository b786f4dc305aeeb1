//! Reads one CSV line of bonnie++.

use super::field::{
    chunk_bytes, data_words, figure, files_words, latency_ns, misread, size_mib, small, whole,
};
use super::report::{BonnieFigure, BonnieFiles, BonnieLayout, BonnieReport, Cell, Data, Made};
use crate::printed::ImportError;

/// The fields of a CSV line, taken one after the other.
struct Fields<'a> {
    rest: std::str::Split<'a, char>,
    line: usize,
    /// Number of the field taken last, from 1.
    number: usize,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> &'a str {
        self.number += 1;
        self.rest.next().unwrap_or_default()
    }

    fn wrong(&self, field: &str, what: &str) -> ImportError {
        let what = format!("field {} is {field:?}, not {what}", self.number);
        misread(self.line, what, "give the line as bonnie++ printed it")
    }

    /// The next field as something that may be missing.
    fn may<T>(
        &mut self,
        read: fn(&str) -> Option<T>,
        what: &str,
    ) -> Result<Option<T>, ImportError> {
        match self.next() {
            "" => Ok(None),
            field => read(field).map(Some).ok_or_else(|| self.wrong(field, what)),
        }
    }

    /// The next two as the rate and the processor of a phase.
    fn figure(&mut self) -> Result<Option<BonnieFigure>, ImportError> {
        let rate = self.next();
        let read = match rate {
            "" | "+++++" => None,
            rate => Some(figure(rate).ok_or_else(|| self.wrong(rate, "a rate"))?),
        };
        let cpu = self.next();
        match (rate, read, cpu) {
            ("", _, "") => Ok(None),
            ("+++++", _, "+++") => Ok(Some(BonnieFigure::TooFast)),
            (_, Some(per_s), cpu) => {
                let cpu_percent = small(cpu).ok_or_else(|| self.wrong(cpu, "a percentage"))?;
                Ok(Some(BonnieFigure::Rate { per_s, cpu_percent }))
            }
            _ => Err(self.wrong(cpu, "what belongs to the field before it")),
        }
    }

    fn figures(&mut self, cells: &mut [Cell]) -> Result<(), ImportError> {
        for cell in cells {
            cell.figure = self.figure()?;
        }
        Ok(())
    }
}

/// One line of CSV, which has this number in its text.
///
/// # Errors
/// It cannot be understood.
pub fn csv_line(text: &str, line: usize) -> Result<BonnieReport, ImportError> {
    let mut fields = Fields {
        rest: text.split(','),
        line,
        number: 0,
    };
    let count = text.split(',').count();
    // 1.03 names no format: its first field is the machine, so only the number of fields tells.
    // The format of 2.00 calls itself 1.98.
    let layout = match (text.split(',').next().unwrap_or_default(), count) {
        ("1.96", 48) => BonnieLayout::V1_96,
        ("1.97", 48) => BonnieLayout::V1_97,
        ("1.98", 50) => BonnieLayout::V2_00,
        ("1.96" | "1.97" | "1.98", _) | (_, ..27 | 28..) => {
            return Err(misread(
                line,
                format!(
                    "{count} fields: bonnie++ 1.03 prints 27, 1.96 and 1.97 print 48, 2.00 prints 50"
                ),
                "take commas out of the machine's name; lines of 1.96 without I/O lack fields and cannot be told apart",
            ));
        }
        (_, 27) => return csv_1_03(fields),
    };
    csv_later(layout, &mut fields)
}

fn csv_1_03(mut fields: Fields<'_>) -> Result<BonnieReport, ImportError> {
    let name = fields.next().to_owned();
    let data = fields.may(|text| data_words(text).map(|(data, _)| data), "a size")?;
    let mut cells = [Cell::default(); 12];
    fields.figures(&mut cells[..6])?;
    let files = fields.may(files_words, "a number of files")?;
    fields.figures(&mut cells[6..])?;
    Ok(BonnieReport {
        layout: BonnieLayout::V1_03,
        program: "1.03".to_owned(),
        name,
        concurrency: 1,
        seed: None,
        data,
        files,
        cells,
        left_out: None,
    })
}

fn csv_later(layout: BonnieLayout, fields: &mut Fields<'_>) -> Result<BonnieReport, ImportError> {
    // The format, which has chosen the layout already.
    fields.next();
    let program = fields.next().to_owned();
    let name = fields.next().to_owned();
    let concurrency = fields.may(small, "a number of copies")?.unwrap_or(1);
    let seed = Some(fields.next().to_owned()).filter(|seed| !seed.is_empty());
    let size = fields.may(size_mib, "a size")?;
    let chunk = fields.may(chunk_bytes, "a chunk")?;
    // Format 1.98 put two fields in here: 50 columns instead of 48.
    let (seeks, seekers) = match layout {
        BonnieLayout::V2_00 => (
            fields.may(small, "a number of seeks")?,
            fields.may(small, "a number of seekers")?,
        ),
        BonnieLayout::V1_03 | BonnieLayout::V1_96 | BonnieLayout::V1_97 => (None, None),
    };
    let mut cells = [Cell::default(); 12];
    fields.figures(&mut cells[..6])?;
    let files = csv_files(fields)?;
    fields.figures(&mut cells[6..])?;
    for cell in &mut cells {
        cell.latency_ns = fields.may(latency_ns, "a latency")?;
    }
    Ok(BonnieReport {
        layout,
        program,
        name,
        concurrency,
        seed,
        data: size.map(|size_mib| Data {
            size_mib,
            chunk,
            seeks,
            seekers,
        }),
        files,
        cells,
        left_out: None,
    })
}

/// Five fields that speak of files. Where the number of directories is missing it stands in the
/// field behind it, which is named after the chunk's size.
fn csv_files(fields: &mut Fields<'_>) -> Result<Option<BonnieFiles>, ImportError> {
    let number = fields.may(whole, "a number of files")?;
    let max = fields.next();
    let links = match max {
        "link" => Some(Made::HardLinks),
        "symlink" => Some(Made::SymbolicLinks),
        _ => None,
    };
    let max = match (max, links) {
        ("", _) | (_, Some(_)) => 0,
        (max, None) => whole(max).ok_or_else(|| fields.wrong(max, "a size"))?,
    };
    let min = fields.may(whole, "a size")?.unwrap_or(0);
    let directories = fields.may(small, "a number of directories")?;
    let behind = fields.may(small, "a number of directories")?;
    Ok(number.map(|number| BonnieFiles {
        number,
        made: links.unwrap_or(Made::Sizes { max, min }),
        directories: directories.or(behind).unwrap_or(1),
    }))
}
