//! `slow-sectors`, `read-errors`, `dies-at`: what is declared to go wrong with a modelled disk.

use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit::{self, UnitError};
use stackrace_machine::host::DeclaredFault;

/// Settings that declare faults.
pub(super) const SETTINGS: [SettingDoc; 4] = [
    SettingDoc::texts(
        "slow-sectors",
        "",
        "Of a modelled disk: where requests take longer, and by how much, as \"1 GiB to 2 GiB: 300 ms\".",
    ),
    SettingDoc::texts(
        "read-errors",
        "",
        "Of a modelled disk: where reads fail until it is written again, and how long the drive tries, as \"64 MiB to 65 MiB: 7 s\".",
    ),
    SettingDoc::time(
        "dies-at",
        "",
        "Of a modelled disk: how long after it appeared it stops answering; each request to it then fails after 30 s.",
    ),
    SettingDoc::count(
        "faulty-disk",
        "1",
        "Which of the disks has these faults, from 1.",
    ),
];

/// The faults that are declared, each with the number of its disk.
///
/// # Errors
/// There is no such disk, a place is not on it, or a fault is not written as it must be.
pub(super) fn declared(
    settings: &Settings,
    count: u64,
    bytes: u64,
) -> Result<Vec<(u64, DeclaredFault)>, Refusal> {
    let mut faults = Vec::new();
    for text in settings.optional_texts("slow-sectors")?.unwrap_or_default() {
        let (from, to, longer_ns) = place(settings, "slow-sectors", &text, bytes)?;
        faults.push(DeclaredFault::SlowSectors {
            from,
            to,
            longer_ns,
        });
    }
    for text in settings.optional_texts("read-errors")?.unwrap_or_default() {
        let (from, to, longer_ns) = place(settings, "read-errors", &text, bytes)?;
        faults.push(DeclaredFault::ReadErrors {
            from,
            to,
            longer_ns,
        });
    }
    if let Some(after_ns) = settings.optional_time_ns("dies-at")? {
        faults.push(DeclaredFault::DiesAt { after_ns });
    }
    // All faults are of one disk: two failing at once would be a study of its own.
    let disk = settings.count("faulty-disk")?;
    if !(1..=count).contains(&disk) {
        return Err(Refusal::at(
            settings.span_of("faulty-disk"),
            format!("there is no disk {disk} of {count}"),
            format!("write 1 to {count}"),
        ));
    }
    if faults.is_empty() && settings.given("faulty-disk") {
        return Err(Refusal::at(
            settings.span_of("faulty-disk"),
            "no fault is declared",
            "write slow-sectors, read-errors or dies-at, or leave faulty-disk out",
        ));
    }
    Ok(faults.into_iter().map(|fault| (disk, fault)).collect())
}

/// `1 GiB to 2 GiB: 300 ms` on a disk of so many bytes.
fn place(
    settings: &Settings,
    name: &str,
    text: &str,
    bytes: u64,
) -> Result<(u64, u64, u64), Refusal> {
    let refused = |why: String, help: String| Err(Refusal::at(settings.span_of(name), why, help));
    let form = || "write FROM to TO: TIME, like \"64 MiB to 65 MiB: 7 s\"".to_owned();
    let parts = text.split_once(':').and_then(|(range, time)| {
        let (from, to) = range.split_once(" to ")?;
        Some((from.trim(), to.trim(), time.trim()))
    });
    let Some((from, to, time)) = parts else {
        return refused(format!("\"{text}\" names no place and time"), form());
    };
    // Each part in its own words, so that a wrong unit is named.
    let read = || -> Result<(u64, u64, u64), UnitError> {
        let bytes = |text| unit::parse_bytes(text);
        Ok((bytes(from)?, bytes(to)?, unit::parse_time_ns(time)?))
    };
    match read() {
        Err(why) => refused(format!("\"{text}\": {why}"), form()),
        Ok((from, to, _)) if from >= to => refused(
            format!("\"{text}\" is no place: it ends where it begins or before"),
            form(),
        ),
        Ok((_, to, _)) if to > bytes => {
            let bytes = unit::bytes(bytes);
            refused(
                format!("\"{text}\" is not on a disk of {bytes}"),
                format!("write a place below {bytes}"),
            )
        }
        Ok((_, _, 0)) => refused(
            format!("\"{text}\" takes no time"),
            "write how long, like \"300 ms\"".to_owned(),
        ),
        Ok(place) => Ok(place),
    }
}
