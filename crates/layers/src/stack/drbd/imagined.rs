//! The tools of DRBD as a plan imagines them: each end alone, and each finds the other at once.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    Assembly, Tool, World, after, complained, last, said, word,
};
use std::ffi::OsString;
use std::path::Path;

const TOOL: &str = "drbdadm";

/// The state of the connection, and the resource as it was configured.
const CONNECTION: &str = "connection";
const CONFIGURATION: &str = "configuration";

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("drbdadm", drbdadm),
    Tool::new("drbdsetup", drbdsetup),
];

/// `drbdadm --config-file FILE VERB [OPTION] RESOURCE`.
fn drbdadm(world: &mut World, words: &[OsString]) -> Output {
    let (verb, resource) = (word(words, 3), last(words));
    if verb == "up" {
        return up(world, words, resource);
    }
    let Some(replica) = world.assembly(&resource) else {
        return match verb.as_str() {
            "create-md" => said(""),
            _ => complained(10, "Unknown resource"),
        };
    };
    let connection = match verb.as_str() {
        // Forced, this end is the source of a first sync.
        "primary" if words.iter().any(|word| word == "--force") => Some("SyncSource"),
        "disconnect" => Some("StandAlone"),
        _ => None,
    };
    if let Some(connection) = connection {
        let asked = &mut replica.asked;
        asked.insert(CONNECTION.to_string(), connection.to_string());
    }
    match verb.as_str() {
        "cstate" => said(replica.asked[CONNECTION].as_str()),
        "dstate" => said("UpToDate/UpToDate"),
        _ => said(""),
    }
}

fn up(world: &mut World, words: &[OsString], resource: String) -> Output {
    let file = after(words, "--config-file").map(Path::new);
    let text = file.and_then(|file| world.text(file)).cloned();
    let text = text.unwrap_or_default();
    let devices = text.lines().filter_map(|line| {
        let device = line.trim().strip_prefix("device ")?;
        Some(OsString::from(device.trim_end_matches(';')))
    });
    let replica = Assembly {
        tool: TOOL,
        // The file names the same device for each of the two machines.
        gives: devices.take(1).collect(),
        asked: [(CONNECTION, "Connected"), (CONFIGURATION, text.as_str())]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into(),
        ..Assembly::default()
    };
    world.assemble(resource, replica)
}

/// `drbdsetup show RESOURCE` and `drbdsetup down RESOURCE`.
fn drbdsetup(world: &mut World, words: &[OsString]) -> Output {
    let resource = last(words);
    let Some(replica) = world.assembly(&resource) else {
        return complained(10, "Unknown resource");
    };
    if word(words, 1) != "down" {
        return said(replica.asked[CONFIGURATION].as_str());
    }
    if world.is_busy(&resource) {
        return complained(11, "State change failed: Device is held open by someone");
    }
    world.disassemble(&resource)
}
