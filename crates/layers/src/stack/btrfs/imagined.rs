//! The tools of Btrfs as a plan imagines them.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{Signature, World, complained, last, said, text_after};
use std::ffi::OsString;
use std::path::Path;

/// `mkfs.btrfs`, which remembers where data and metadata are to go.
pub(super) fn format(world: &mut World, words: &[OsString]) -> Output {
    let profile = |option| text_after(words, option).unwrap_or_else(|| "single".to_string());
    let signature = Signature {
        file_system: "btrfs".to_string(),
        mark: text_after(words, "--uuid").unwrap_or_default(),
        notes: [
            ("data", profile("--data")),
            ("metadata", profile("--metadata")),
        ]
        .into(),
    };
    world.sign(words, &signature);
    said("")
}

/// `btrfs filesystem df -b PATH`, as far as the layer reads it, and `btrfs device scan --forget`.
pub(super) fn btrfs(world: &mut World, words: &[OsString]) -> Output {
    if words.iter().any(|word| word == "--forget") {
        return said("");
    }
    match world.signature_at(Path::new(&last(words))) {
        Some(signature) => said(format!(
            "Data, {}: total=0, used=0\nMetadata, {}: total=0, used=0\n",
            signature.notes["data"], signature.notes["metadata"]
        )),
        None => complained(1, "not a btrfs filesystem"),
    }
}
