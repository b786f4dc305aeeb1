//! Trees of C sources that follow from a seed: something for git to clone and for cc to compile.

use std::fmt::Write as _;
use std::path::Path;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::workload::{WorkloadError, trouble_at};
use stackrace_base::setting::{Refusal, Settings};
use stackrace_base::unit;

/// Files of one directory: about as many as in a directory of Linux's sources.
const PER_DIRECTORY: u64 = 20;
/// Lines of a function.
const STEPS: usize = 6;

/// Least bytes of a source: one function.
const LEAST: u64 = 256;

/// The setting `file-size`: about how large a source is, bytes.
///
/// # Errors
/// It is smaller than one function, or larger than `most`.
pub(super) fn file_bytes(settings: &Settings, most: u64) -> Result<u64, Refusal> {
    let bytes = settings.bytes("file-size")?;
    match (LEAST..=most).contains(&bytes) {
        true => Ok(bytes),
        false => Err(Refusal::at(
            settings.span_of("file-size"),
            format!(
                "file-size must be between {} and {}",
                unit::bytes(LEAST),
                unit::bytes(most)
            ),
            "",
        )),
    }
}

/// Writes so many sources of about so many bytes below a directory, in directories of their own; each
/// compiles alone. Returns their names.
///
/// # Errors
/// Something cannot be written.
pub(super) fn write_tree(
    root: &Path,
    files: u64,
    bytes: u64,
    seed: u64,
) -> Result<Vec<String>, WorkloadError> {
    let failed = trouble_at;
    let mut names = Vec::new();
    for file in 0..files {
        let directory = root.join(format!("d{}", file / PER_DIRECTORY));
        std::fs::create_dir_all(&directory).map_err(|error| failed(&directory, error))?;
        let name = format!("d{}/f{file}.c", file / PER_DIRECTORY);
        let path = root.join(&name);
        // Each file has a stream of its own, so that more files leave the first ones as they are.
        let text = source(file, bytes, seed ^ (file << 20));
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
        names.push(name);
    }
    Ok(names)
}

/// Makes one source: functions that call each other, as a compiler and git find them in real ones.
pub(super) fn source(file: u64, bytes: u64, seed: u64) -> String {
    let mut draw = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n");
    let mut function = 0_u64;
    while (text.len() as u64) < bytes || function == 0 {
        let _ = writeln!(
            text,
            "/* Step {function} of part {file}: mixes its argument with {:#x}. */\nlong part{file}_{function}(long value)\n{{\n    long kept[8] = {{0}};",
            draw.next_u64() >> 32
        );
        // Arithmetic, branches and loops in turn: a compiler has something to do with each.
        for step in 0..STEPS {
            let drawn = draw.next_u64();
            let (slot, shift, factor) =
                (drawn & 7, 1 + (drawn >> 8) % 30, 3 + (drawn >> 20) % 1000);
            let _ = match step % 3 {
                0 => writeln!(
                    text,
                    "    kept[{slot}] += value * {factor} + (value >> {shift});"
                ),
                1 => writeln!(
                    text,
                    "    if (value % {factor} == {slot}) value ^= kept[{slot}];"
                ),
                _ => writeln!(
                    text,
                    "    for (int i = 0; i < {shift}; i++) value += kept[i & 7] + i;"
                ),
            };
        }
        let back = match function {
            0 => "value".to_owned(),
            // Only what stands above it: the file needs no declarations.
            _ => format!("part{file}_{}(value)", draw.next_u64() % function),
        };
        let _ = writeln!(text, "    return {back};\n}}\n");
        function += 1;
    }
    text
}
