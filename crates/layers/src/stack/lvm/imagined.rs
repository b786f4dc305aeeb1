//! The tools of LVM as a plan imagines them.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    Assembly, Signature, Tool, World, asked, complained, last, said, word,
};
use std::ffi::OsString;
use std::path::PathBuf;

const GROUP: &str = "vgcreate";

/// Every tool that the layer, its undo and the guard of disks call.
pub(super) const TOOLS: &[Tool] = &[
    Tool::new("pvcreate", pvcreate),
    Tool::new("pvs", |_, _| {
        complained(5, "Failed to find physical volume")
    }),
    Tool::new("vgcreate", vgcreate),
    Tool::new("vgs", |world, _| {
        let lines = world
            .assembled(GROUP)
            .map(|(name, _)| format!("  {name}\n"));
        said(lines.collect::<String>())
    }),
    Tool::new("vgremove", |world, words| world.disassemble(&last(words))),
    Tool::new("lvcreate", lvcreate),
    Tool::new("lvconvert", |world, words| match group_of(world, words) {
        Some(group) => {
            group.1.asked.extend(asked(words));
            said("")
        }
        None => complained(5, "Volume group not found"),
    }),
    Tool::new("lvs", lvs),
];

fn pvcreate(world: &mut World, words: &[OsString]) -> Output {
    let answer = world.untouched(words.last());
    if answer.status == Some(0) {
        let signature = Signature {
            file_system: "LVM2_member".to_string(),
            mark: asked(words).remove("uuid").unwrap_or_default(),
            ..Signature::default()
        };
        world.sign(&words[words.len() - 1..], &signature);
    }
    answer
}

fn vgcreate(world: &mut World, words: &[OsString]) -> Output {
    let members = match world.members(words) {
        Ok(members) => members,
        Err(answer) => return answer,
    };
    // The name is the word before the first device.
    let first = words.iter().position(|word| world.is_device(word));
    let name = word(words, first.unwrap_or(1) - 1);
    let group = Assembly {
        tool: GROUP,
        members,
        ..Assembly::default()
    };
    world.assemble(name, group)
}

/// The group that a word names, alone or before the name of a volume.
fn group_of<'a>(world: &'a mut World, words: &[OsString]) -> Option<(String, &'a mut Assembly)> {
    let names: Vec<String> = world
        .assembled(GROUP)
        .map(|(name, _)| name.clone())
        .collect();
    let mut words = words.iter().map(|word| word.to_string_lossy());
    let name = words.find_map(|word| {
        let group = word.split('/').next()?;
        names.iter().find(|name| *name == group)
    })?;
    Some((name.clone(), world.assembly(name)?))
}

fn lvcreate(world: &mut World, words: &[OsString]) -> Output {
    let asked = asked(words);
    let Some((group, assembly)) = group_of(world, words) else {
        return complained(5, "Volume group not found");
    };
    let name = asked.get("name").cloned().unwrap_or_default();
    let path = PathBuf::from("/dev").join(group).join(&name);
    assembly.gives.push(path.into());
    // Only this volume is read back.
    if name == "data" {
        assembly.asked.extend(asked);
    }
    said("")
}

/// The volumes as `lvs --reportformat json` gives them.
fn lvs(world: &mut World, words: &[OsString]) -> Output {
    let Some(group) = world.assembly(&last(words)) else {
        return complained(5, "Volume group not found");
    };
    let asked = |name: &str, default: &str| {
        let word = group.asked.get(name).cloned();
        word.unwrap_or_else(|| default.to_string())
    };
    let kib: u64 = asked("stripesize", "0")
        .trim_end_matches('k')
        .parse()
        .unwrap_or(0);
    let size = (1 << 30).to_string();
    let volumes = serde_json::json!([
        {
            "lv_name": "data",
            "segtype": asked("type", "linear"),
            "stripes": asked("stripes", "1"),
            "stripe_size": (kib * 1024).to_string(),
            "cache_mode": asked("cachemode", ""),
            "lv_size": size,
            "origin": "",
        },
        {"lv_name": "[pool]", "segtype": "thin-pool", "lv_size": size, "origin": ""},
        // Always there: a layer without a snapshot does not look for one.
        {"lv_name": "snapshot", "segtype": "linear", "lv_size": size, "origin": "data"},
    ]);
    said(serde_json::json!({"report": [{"lv": volumes}]}).to_string())
}
