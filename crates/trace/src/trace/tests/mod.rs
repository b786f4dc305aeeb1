//! Whole traces: written, read, damaged, cut; and events of a kernel that becomes operations.

mod events;
mod files;
mod naming;

use super::*;

/// Where the traces of these tests say that they come from.
fn origin() -> TraceOrigin {
    TraceOrigin {
        program: "0.1.0".to_owned(),
        kernel: "6.18.0".to_owned(),
        architecture: "x86_64".to_owned(),
        file_system: "ext4".to_owned(),
        processors: 2,
        cost_limit: 500,
        cut: false,
    }
}

/// A trace of these operations.
fn written(names: &Names, entries: &[KeptEntry], operations: &[Operation]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &origin()).unwrap();
    writer.tree(names, entries).unwrap();
    let threads = operations
        .iter()
        .map(|operation| operation.thread + 1)
        .max();
    for operation in operations {
        writer.push(names, *operation).unwrap();
    }
    let ending = Ending {
        stopped: Some(StopReason::Ended),
        operations: operations.len() as u64,
        threads: threads.unwrap_or_default().into(),
        elapsed_ns: 1000,
        ..Ending::default()
    };
    writer.finish(names, &ending).unwrap()
}

type Everything = (Vec<KeptEntry>, Vec<Operation>, Option<Ending>);

/// Everything that a trace holds.
fn read(bytes: &[u8]) -> Result<Everything, TraceError> {
    let mut reader = TraceReader::new(bytes)?;
    let (mut entries, mut operations, mut ending) = (Vec::new(), Vec::new(), None);
    while let Some(part) = reader.next_part()? {
        match part {
            Part::Tree(more) => entries.extend(more),
            Part::Resident(_) => {}
            Part::Operations(more) => operations.extend(more),
            Part::Ending(end) => ending = Some(end),
        }
    }
    Ok((entries, operations, ending))
}
