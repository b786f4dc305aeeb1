//! The importer of sysbench: reports of fileio 0.4, 0.5 and 1.0 become results.

use super::lines::has_results;
use super::parse::parse;
use super::report::{SysbenchReport, metrics, values};
use stackrace_base::printed::text::{Figures, facts, size};
use stackrace_base::printed::{Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "sysbench",
    summary: "what sysbench fileio 0.4, 0.5 or 1.0 prints when it has run",
    recognises: |text| {
        let banner = |line: &str| line.trim().starts_with("sysbench ");
        // Results alone, because the beginning may be cut off; and a banner alone, so that the
        // user learns why a run without results is refused.
        has_results(text) || text.lines().any(banner) && text.contains("file")
    },
    read: |text| Ok(parse(text)?.iter().map(imported).collect()),
};

fn imported(report: &SysbenchReport) -> Imported {
    let head = &report.head;
    let figures = Figures {
        metrics: metrics(),
        values: values(report),
    };
    let version = head.banner.split(':').next().unwrap_or_default();
    let block = match head.block_bytes > 0.0 {
        true => size(head.block_bytes as u64),
        false => String::new(),
    };
    // 0: that line was cut off.
    let said = |count: u64| {
        if count > 0 {
            count.to_string()
        } else {
            String::new()
        }
    };
    let total = (head.total_bytes > 0.0).then(|| size(head.total_bytes as u64));
    let (threads, files) = (said(head.threads), said(head.files));
    let mut notes = Vec::new();
    let workload = if head.mode.is_empty() || head.threads == 0 || head.block_bytes == 0.0 {
        notes.push("the beginning of the text is missing, and how it was run with it".to_owned());
        "sysbench fileio".to_owned()
    } else {
        format!("sysbench {}, {block}, {threads} thread(s)", head.mode)
    };
    if report.cut_off {
        notes.push("the end of the text is missing".to_owned());
    }
    notes.extend(figures.missing("not done, not in the text, or too small for its digits"));
    let every = head.fsync_every.map(|every| every.to_string());
    Imported {
        version: Some(version.trim().to_owned()).filter(|version| !version.is_empty()),
        kind: "fileio".to_owned(),
        settings: facts([
            ("mode", head.mode.as_str()),
            ("files", files.as_str()),
            ("total size", total.as_deref().unwrap_or_default()),
            ("block size", block.as_str()),
            ("threads", threads.as_str()),
            (
                "requests between fsyncs",
                every.as_deref().unwrap_or_default(),
            ),
            ("transfer", head.transfer.as_str()),
            ("flags", head.flags.as_str()),
        ]),
        notes,
        ..figures.imported("sysbench", workload)
    }
}
