//! The server of NFS as a plan imagines it.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    Assembly, Tool, World, complained, last, mount_without_device, said, text_after, word,
};
use std::ffi::OsString;

const EXPORT: &str = "exportfs";

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("mount.nfs", mount_without_device),
    Tool::new("mount.nfs4", mount_without_device),
    Tool {
        // It comes and goes with the driver: nothing of a stack is left with it.
        name: "mount.nfsd",
        run: |_, _| said(""),
    },
    Tool::new("rpcbind", |world, _| world.start("rpcbind", &[111])),
    Tool::new("rpc.mountd", |world, _| world.start("rpc.mountd", &[])),
    Tool {
        name: "rpc.nfsd",
        // The last word is how many threads there shall be.
        run: |world, words| match last(words).as_str() {
            "0" => world.end("nfsd"),
            _ => world.start("nfsd", &[2049]),
        },
    },
    Tool::new("exportfs", exportfs),
];

/// `exportfs -o OPTIONS CLIENT:DIRECTORY`, the list of that (`-s`), and its end (`-u`).
fn exportfs(world: &mut World, words: &[OsString]) -> Output {
    let place = last(words);
    match word(words, 1).as_str() {
        "-o" => {
            let options = text_after(words, "-o").unwrap_or_default();
            let export = Assembly {
                tool: EXPORT,
                asked: [("options".to_string(), options)].into(),
                ..Assembly::default()
            };
            world.assemble(place, export)
        }
        "-u" => match world.assembly(&place) {
            Some(_) => world.disassemble(&place),
            None => complained(1, "Could not find what to unexport"),
        },
        // As the server prints it: the directory first, then the client.
        "-s" => {
            let lines = world.assembled(EXPORT).map(|(place, export)| {
                let (client, directory) = place.split_once(':').unwrap_or_default();
                format!("{directory}  {client}({})\n", export.asked["options"])
            });
            said(lines.collect::<String>())
        }
        _ => said(""),
    }
}
