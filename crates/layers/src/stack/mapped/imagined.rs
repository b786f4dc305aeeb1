//! cryptsetup(8), integritysetup(8) and dmsetup(8) as a plan imagines them.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    Assembly, Signature, Tool, World, asked, complained, last, said, text_after, word,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Every mapped device, whichever tool made it.
const OPENED: &str = "dmsetup";

/// Every tool that the layer `luks` and the undo of all call.
pub(super) const LUKS: &[Tool] = &[
    Tool::new("cryptsetup", cryptsetup),
    Tool::new("dmsetup", dmsetup),
];

/// What the layer `integrity` calls besides.
pub(super) const INTEGRITY: &[Tool] = &[Tool::new("integritysetup", integritysetup)];

/// What the layer `vdo` calls besides.
pub(super) const VDO: &[Tool] = &[Tool::new("vdoformat", |world, words| {
    // As for every format: what is in use is not written over.
    let answer = world.untouched(words.last());
    let signature = Signature {
        file_system: "vdo".to_string(),
        ..Signature::default()
    };
    world.sign(&words[words.len() - 1..], &signature);
    answer
})];

fn integritysetup(world: &mut World, words: &[OsString]) -> Output {
    if word(words, 1) == "format" {
        let answer = world.untouched(words.last());
        if answer.status == Some(0) {
            let asked = asked(words);
            let told = |name: &str| asked.get(name).cloned().unwrap_or_default();
            let signature = Signature {
                file_system: "DM_integrity".to_string(),
                notes: ["tag-size", "sector-size"]
                    .map(|name| (name, told(name)))
                    .into(),
                ..Signature::default()
            };
            world.sign(&words[words.len() - 1..], &signature);
        }
        return answer;
    }
    let [.., device, name] = words else {
        return complained(1, "bad usage");
    };
    let Some(header) = world.signature(device).cloned() else {
        return complained(1, "Device is not a valid INTEGRITY device.");
    };
    let given = |option: &str| words.iter().any(|word| word == option);
    // The header does not have the mode: it counts as it is given now.
    let letter = match (
        given("--integrity-bitmap-mode"),
        given("--integrity-no-journal"),
    ) {
        (true, _) => "B",
        (_, true) => "D",
        _ => "J",
    };
    let note = |what: &str| header.notes.get(what).cloned().unwrap_or_default();
    let table = format!(
        "0 2048 integrity 7:0 0 {} {letter} 2 block_size:{} internal_hash:{}\n",
        note("tag-size"),
        note("sector-size"),
        asked(words).get("integrity").cloned().unwrap_or_default()
    );
    mapped(world, std::slice::from_ref(device), name, table)
}

/// `dmsetup create NAME --table "0 SECTORS writecache s ORIGIN CACHE BLOCK 4 …"`, or `"0 SECTORS vdo V4 DEVICE …"`.
fn create(world: &mut World, words: &[OsString]) -> Output {
    let table = text_after(words, "--table").unwrap_or_default();
    let (mut shown, mut found) = (table.clone() + "\n", Vec::new());
    let target = [" writecache s ", " vdo V4 "];
    let rest = target.iter().find_map(|target| table.split_once(target));
    let (_, mut rest) = rest.unwrap_or_default();
    // Names of imagined devices have blanks in them: where one ends, what follows is no device any more.
    while let Some(name) = (1..=rest.len())
        .filter(|end| rest.is_char_boundary(*end))
        .map(|end| &rest[..end])
        .find(|name| world.is_device(name.as_ref()))
    {
        // The kernel tells of devices by their numbers.
        shown = shown.replace(name, &format!("7:{}", found.len()));
        found.push(OsString::from(name));
        rest = rest[name.len()..].trim_start();
    }
    match found.is_empty() {
        true => complained(1, "Invalid device"),
        false => mapped(world, &found, &word(words, 2).into(), shown),
    }
}

fn mapped(world: &mut World, devices: &[OsString], name: &OsString, table: String) -> Output {
    let members = match world.members(devices) {
        Ok(members) => members,
        Err(answer) => return answer,
    };
    let name = name.to_string_lossy();
    let device = Assembly {
        tool: OPENED,
        members,
        gives: vec![format!("/dev/mapper/{name}").into()],
        asked: BTreeMap::from([("table".to_string(), table)]),
        ..Assembly::default()
    };
    world.assemble(name, device)
}

fn cryptsetup(world: &mut World, words: &[OsString]) -> Output {
    match word(words, 1).as_str() {
        "luksFormat" => format(world, words),
        _ => open(world, words),
    }
}

fn format(world: &mut World, words: &[OsString]) -> Output {
    let answer = world.untouched(words.last());
    if answer.status == Some(0) {
        let asked = asked(words);
        let told = |name: &str| asked.get(name).cloned().unwrap_or_default();
        let signature = Signature {
            file_system: "crypto_LUKS".to_string(),
            mark: told("uuid"),
            notes: ["cipher", "key-size", "sector-size", "type"]
                .map(|name| (name, told(name)))
                .into(),
        };
        world.sign(&words[words.len() - 1..], &signature);
    }
    answer
}

fn open(world: &mut World, words: &[OsString]) -> Output {
    let [.., device, name] = words else {
        return complained(1, "bad usage");
    };
    let key = text_after(words, "--key-file").unwrap_or_default();
    if world.file_size(Path::new(&key)).is_none() {
        return complained(1, "Failed to open key file.");
    }
    let members = match world.members(std::slice::from_ref(device)) {
        Ok(members) => members,
        Err(answer) => return answer,
    };
    let Some(header) = world.signature(device).cloned() else {
        return complained(1, "Device is not a valid LUKS device.");
    };
    let name = name.to_string_lossy();
    let note = |what: &str| header.notes.get(what).cloned().unwrap_or_default();
    let version = note("type").to_uppercase();
    let about = BTreeMap::from([("dm/uuid", format!("CRYPT-{version}-{}-{name}", header.mark))]);
    let opened = Assembly {
        tool: OPENED,
        members,
        gives: vec![format!("/dev/mapper/{name}").into()],
        asked: BTreeMap::from([("table".to_string(), table(words, note))]),
        about,
        ..Assembly::default()
    };
    world.assemble(name, opened)
}

/// The line that the kernel would tell of the mapping.
fn table(words: &[OsString], note: impl Fn(&str) -> String) -> String {
    let options = words.iter().filter_map(|word| word.to_str());
    let mut more: Vec<String> = options
        .filter_map(|word| match word.strip_prefix("--perf-") {
            Some(way) => Some(way.to_string()),
            None => (word == "--allow-discards").then(|| "allow_discards".to_string()),
        })
        .collect();
    let sector = note("sector-size");
    if !["", "512"].contains(&sector.as_str()) {
        more.push(format!("sector_size:{sector}"));
    }
    let bits: u64 = note("key-size").parse().unwrap_or_default();
    format!(
        "0 2048 crypt {} :{}:logon:cryptsetup:key 0 7:0 32768 {} {}\n",
        note("cipher"),
        bits / 8,
        more.len(),
        more.join(" ")
    )
}

fn dmsetup(world: &mut World, words: &[OsString]) -> Output {
    match word(words, 1).as_str() {
        "create" => return create(world, words),
        // Refused while it is mounted or a part of something, as by the kernel.
        "remove" => return world.disassemble(&last(words)),
        _ => {}
    }
    let mut opened = world.assembled(OPENED);
    if word(words, 1) == "ls" {
        let lines = opened.map(|(name, _)| format!("{name}\t(254:0)\n"));
        return said(lines.collect::<String>());
    }
    let name = last(words);
    match opened.find(|(known, _)| **known == name) {
        Some((_, device)) => said(device.asked.get("table").cloned().unwrap_or_default()),
        None => complained(1, "Device does not exist."),
    }
}
