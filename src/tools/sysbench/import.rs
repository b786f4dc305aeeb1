//! sysbench fileio 0.4.12, 0.5 and 1.0: `classic::sysbench` reads them.

use super::parse::parse;
use super::report::{SysbenchReport, metrics, values};
use crate::printed::text::{Figures, facts, size};
use crate::printed::{Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "sysbench",
    summary: "what sysbench fileio 0.4, 0.5 or 1.0 prints when it has run",
    recognises: |text| {
        text.lines().any(|line| line.starts_with("sysbench ")) && text.contains("file")
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
    let block = size(head.block_bytes as u64);
    let threads = head.threads.to_string();
    let files = head.files.to_string();
    let every = head.fsync_every.map(|every| every.to_string());
    Imported {
        tool: "sysbench",
        version: Some(version.trim().to_owned()),
        label: None,
        workload: format!("sysbench {}, {block}, {threads} thread(s)", head.mode),
        kind: "fileio".to_owned(),
        settings: facts([
            ("mode", head.mode.as_str()),
            ("files", files.as_str()),
            ("total size", size(head.total_bytes as u64).as_str()),
            ("block size", block.as_str()),
            ("threads", threads.as_str()),
            (
                "requests between fsyncs",
                every.as_deref().unwrap_or_default(),
            ),
            ("transfer", head.transfer.as_str()),
            ("flags", head.flags.as_str()),
        ]),
        environment: Vec::new(),
        notes: figures.missing("not done, or too small for the digits of the text"),
        metrics: figures.metrics,
        values: figures.values,
    }
}
