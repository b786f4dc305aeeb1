//! What excludes each other: options that are understood, but not together.

use stackrace_engine::spec::NameCall;

use super::super::place::JobError;
use super::read::Reader;
use super::resolved::Engine;

/// Refuses options together with others that no phase keeps.
pub(super) fn check(reader: &Reader<'_>, engine: Engine, read_share: f64) -> Result<(), JobError> {
    let given = |names: &[&'static str]| reader.last_of(names);
    let refuse = |name: &str, what: String, next: &str| Err(reader.refuse(name, what, next));
    if given(&["ramp_time"]).is_some()
        && let Some(other) = given(&["rate", "rate_iops", "thinktime", "verify"])
    {
        let what = format!("ramp_time with {other} is not supported");
        return refuse("ramp_time", what, "leave out one of them");
    }
    if given(&["flow"]).is_some()
        && let Some(other) = given(&["rate", "rate_iops", "thinktime", "startdelay", "wait_for"])
    {
        let what = format!("flow with {other} is not supported: one would wait for the other");
        return refuse("flow", what, "leave out one of them");
    }
    let moved = reader.text("rw").is_some_and(|rw| rw.contains(':'));
    if given(&["verify"]).is_some()
        && let Some(other) =
            given(&["offset", "offset_increment", "zonemode"]).or(moved.then_some("rw"))
    {
        let what =
            format!("verify with {other} is not supported: it checks files from their beginning");
        return refuse("verify", what, "leave out one of them");
    }
    if (moved || given(&["zonemode"]).is_some())
        && let Some(other) = given(&["offset", "offset_increment"])
    {
        let what = format!("{other} with gaps or zones is not supported");
        return refuse(other, what, "leave it out");
    }
    calls(reader, engine, read_share)
}

/// Refuses what engines that move no data do not do.
fn calls(reader: &Reader<'_>, engine: Engine, read_share: f64) -> Result<(), JobError> {
    let refuse = |name: &str, what: String, next: &str| Err(reader.refuse(name, what, next));
    if engine.moves_data() || engine == Engine::Null {
        return Ok(());
    }
    let word = reader.text("ioengine").unwrap_or_default();
    let others = [
        "verify",
        "fsync",
        "fdatasync",
        "end_fsync",
        "fsync_on_close",
        "ramp_time",
    ];
    if let Some(other) = reader.last_of(&others) {
        let what = format!("{other} with ioengine={word} is not supported: no data is moved");
        return refuse(other, what, "leave it out");
    }
    if read_share > 0.0 && read_share < 1.0 {
        let what = format!("ioengine={word} with reads and writes together is not supported");
        return refuse("rw", what, "write rw=read or rw=write");
    }
    match engine {
        Engine::Length if read_share > 0.0 => {
            let what = "ioengine=ftruncate sets lengths: it only writes".to_owned();
            refuse("ioengine", what, "write rw=write")
        }
        Engine::Names(NameCall::Delete) => match reader.last_of(&["loops", "time_based"]) {
            Some(other) => {
                let what = format!("{other} with ioengine=filedelete: a file is deleted once");
                refuse(other, what, "leave it out")
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}
