//! mdadm(8) and what the driver says of an array, as a plan imagines them.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    Assembly, Signature, World, after, asked, complained, last, said,
};
use std::collections::BTreeMap;
use std::ffi::OsString;

const TOOL: &str = "mdadm";

pub(super) fn mdadm(world: &mut World, words: &[OsString]) -> Output {
    if let Some(device) = after(words, "--create") {
        return create(world, words, device);
    }
    if words.iter().any(|word| word == "--scan") {
        let lines = world.assembled(TOOL).map(|(uuid, array)| {
            let device = array.gives[0].display();
            format!("ARRAY {device} metadata=1.2 UUID={uuid}\n")
        });
        return said(lines.collect::<String>());
    }
    let device = OsString::from(last(words));
    let mut arrays = world.assembled(TOOL);
    let Some((uuid, array)) = arrays.find(|(_, array)| array.gives.contains(&device)) else {
        return match after(words, "--stop") {
            Some(_) => complained(1, "no such array"),
            None => said(""),
        };
    };
    let uuid = uuid.clone();
    let told = ["level", "raid-devices"].map(|word| array.asked.get(word).cloned());
    let [level, count] = told.map(Option::unwrap_or_default);
    // None of them fails in a plan.
    let at_work = array.members.len();
    // It borrows the world, which stopping an array changes.
    drop(arrays);
    match after(words, "--stop") {
        Some(_) => world.disassemble(&uuid),
        None => said(format!(
            "MD_LEVEL=raid{level}\nMD_DEVICES={count}\n  Active Devices : {at_work}\n"
        )),
    }
}

fn create(world: &mut World, words: &[OsString], device: &OsString) -> Output {
    let members = match world.members(words) {
        Ok(members) => members,
        Err(answer) => return answer,
    };
    let asked = asked(words);
    let uuid = asked.get("uuid").cloned().unwrap_or_default();
    let signature = Signature {
        file_system: "linux_raid_member".to_string(),
        mark: uuid.clone(),
        ..Signature::default()
    };
    world.sign(&members, &signature);
    let array = Assembly {
        tool: TOOL,
        about: about(&asked, members.len()),
        members,
        gives: vec![device.clone()],
        asked,
        ..Assembly::default()
    };
    world.assemble(uuid, array)
}

/// Contents of the files in `/sys/class/block/NAME/md`.
fn about(asked: &BTreeMap<String, String>, members: usize) -> BTreeMap<&'static str, String> {
    let word = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let count: usize = word("raid-devices").parse().unwrap_or(0);
    let kib: u64 = word("chunk").parse().unwrap_or(0);
    // Sectors behind the superblock, or none (md(4)).
    let bitmap = match word("bitmap").as_str() {
        "internal" => "+8",
        _ => "none",
    };
    BTreeMap::from([
        ("md/level", format!("raid{}", word("level"))),
        ("md/raid_disks", count.to_string()),
        ("md/degraded", count.saturating_sub(members).to_string()),
        // /sys counts bytes, mdadm takes KiB.
        ("md/chunk_size", (kib * 1024).to_string()),
        ("md/bitmap/location", bitmap.to_string()),
        ("md/metadata_version", word("metadata")),
        ("md/consistency_policy", policy(asked)),
    ])
}

/// The means of keeping stripes consistent, in the driver's word.
fn policy(asked: &BTreeMap<String, String>) -> String {
    let policy = asked.get("consistency-policy");
    match asked.contains_key("write-journal") {
        true => "journal".to_string(),
        // Without any it is `resync` or `bitmap`, which nothing here asks for.
        false => policy.cloned().unwrap_or_default(),
    }
}
