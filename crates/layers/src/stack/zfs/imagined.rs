//! The tools of ZFS as a plan imagines them.

use super::arc::{ARC_MAX, ARC_MIN, ARC_STATS, CHOSEN};
use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    Assembly, Signature, Tool, World, asked, complained, last, said, text_after, word,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

const POOL: &str = "zpool";

/// Every tool that the layers and their undo call.
pub(super) const TOOLS: &[Tool] = &[
    Tool::new("zpool", zpool),
    Tool::new("zfs", zfs),
    Tool::new("zdb", zdb),
    Tool::new(ARC_STATS, arc_stats),
];

/// Statistics of the cache: its limits are those that were set last, or chosen on a machine of 16 GiB.
fn arc_stats(world: &mut World, _: &[OsString]) -> Output {
    let limits = [("c_min", ARC_MIN, 1 << 29), ("c_max", ARC_MAX, 1_u64 << 33)];
    let lines = limits.into_iter().filter_map(|(name, file, chosen)| {
        let set = world.text(Path::new(file))?;
        let bytes = match set.trim() {
            CHOSEN => chosen.to_string(),
            set => set.to_owned(),
        };
        Some(format!("{name} 4 {bytes}\n"))
    });
    said(lines.collect::<String>())
}

fn zpool(world: &mut World, words: &[OsString]) -> Output {
    let (verb, name) = (word(words, 1), last(words));
    match verb.as_str() {
        "create" => create(world, words),
        "list" => {
            // An exported pool is known to its devices alone.
            let standing = world.assembled(POOL).filter(|(_, pool)| !pool.away);
            said(
                standing
                    .map(|(name, _)| format!("{name}\n"))
                    .collect::<String>(),
            )
        }
        "destroy" => world.disassemble(&name),
        "export" if world.is_busy(&name) => complained(1, "pool is busy"),
        "export" | "import" => {
            let members = world.assembly(&name).map(|pool| pool.members.clone());
            let is_there = |device: &OsString| {
                world.is_device(device) || world.file_size(Path::new(device)).is_some()
            };
            if !members.is_some_and(|members| members.iter().all(is_there)) {
                return complained(1, "no such pool available");
            }
            if let Some(pool) = world.assembly(&name) {
                pool.away = verb == "export";
            }
            said("")
        }
        "get" => match world.assembly(&name) {
            // A pool of a plan has all of its disks.
            Some(_) if words.iter().any(|word| word == "health") => said("ONLINE\n"),
            Some(pool) => said(table(&name, &pool.asked, "  ")),
            None => complained(1, "no such pool"),
        },
        _ => said(""),
    }
}

fn create(world: &mut World, words: &[OsString]) -> Output {
    let mut members = match world.members(words) {
        Ok(members) => members,
        Err(answer) => return answer,
    };
    // A pool can lie on files, too.
    let is_file = |word: &&OsString| world.file_size(Path::new(word)).is_some();
    members.extend(words.iter().filter(is_file).cloned());
    // After the options, each of one word: the name, then the topology.
    let mut at = 2;
    while word(words, at).starts_with('-') {
        at += if word(words, at) == "-f" { 1 } else { 2 };
    }
    let name = word(words, at);
    let signature = Signature {
        file_system: "zfs_member".to_string(),
        mark: name.clone(),
        ..Signature::default()
    };
    world.sign(&members, &signature);
    let pool = Assembly {
        tool: POOL,
        members,
        asked: asked(words),
        ..Assembly::default()
    };
    world.assemble(name, pool)
}

/// What `zfs get` lists where it is given nothing, as far as tests ask for it.
const SUPPORTED: &str = "\tPROPERTY       EDIT  INHERIT   VALUES\n
\tchecksum        YES      YES   on | off | fletcher4 | sha256
\tprimarycache    YES      YES   all | none | metadata
\trecordsize      YES      YES   512 to 1M, power of 2\n";

fn zfs(world: &mut World, words: &[OsString]) -> Output {
    if words.len() == 2 {
        return complained(2, SUPPORTED);
    }
    let name = last(words);
    let owner = name.split('/').next().unwrap_or_default();
    let Some(pool) = world.assembly(owner).filter(|pool| !pool.away) else {
        return complained(1, "dataset does not exist");
    };
    match word(words, 1).as_str() {
        "create" => {
            let mut asked = asked(words);
            if let Some(size) = text_after(words, "-V") {
                asked.insert("volsize".to_string(), size);
                pool.gives.push(Path::new("/dev/zvol").join(&name).into());
            }
            pool.parts.insert(name, asked);
            said("")
        }
        "mount" => {
            let asked = pool.parts.get(&name);
            let point = asked.and_then(|asked| asked.get("mountpoint"));
            let point = point.map(PathBuf::from).unwrap_or_default();
            world.mount(OsStr::new(&name), &point, "zfs", "")
        }
        "get" => match pool.parts.get(&name) {
            Some(asked) => said(table(&name, asked, "\t")),
            None => complained(1, "dataset does not exist"),
        },
        _ => said(""),
    }
}

fn zdb(world: &mut World, words: &[OsString]) -> Output {
    let device = OsString::from(last(words));
    let mut pools = world.assembled(POOL);
    let Some((_, pool)) = pools.find(|(_, pool)| pool.members.contains(&device)) else {
        return complained(1, "failed to unpack label 0");
    };
    // 12 is what ZFS chooses for sectors of 4 KiB.
    let ashift = pool.asked.get("ashift").map_or("12", String::as_str);
    said(format!("    vdev_tree:\n        ashift: {ashift}\n"))
}

fn table(name: &str, asked: &BTreeMap<String, String>, between: &str) -> String {
    let line = |(property, value): (&String, &String)| {
        [name, property, value, "local"].join(between) + "\n"
    };
    asked.iter().map(line).collect()
}
