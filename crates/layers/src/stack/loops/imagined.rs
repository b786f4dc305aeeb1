//! losetup(8) as a plan imagines it.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    ImaginedDevice, World, after, complained, last, said, text_after,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) fn losetup(world: &mut World, words: &[OsString]) -> Output {
    if let Some(file) = after(words, "--associated") {
        let devices = world.devices_on(Path::new(file)).into_iter();
        let lines = devices.map(|name| format!("{}\n", name.display()));
        return said(lines.collect::<String>());
    }
    if let Some(device) = after(words, "--detach") {
        return world.detach(device);
    }
    let file = PathBuf::from(last(words));
    let Some(bytes) = world.file_size(&file) else {
        return complained(1, "No such file or directory");
    };
    let name = format!("{{loop {}}}", world.draw());
    let sector = text_after(words, "--sector-size").unwrap_or_else(|| "512".to_string());
    let direct = words.iter().any(|word| word == "--direct-io=on");
    let about = [
        ("size", (bytes / 512).to_string()),
        ("queue/logical_block_size", sector.clone()),
        ("queue/physical_block_size", sector),
        ("loop/dio", u8::from(direct).to_string()),
        ("loop/backing_file", file.display().to_string()),
    ];
    let device = ImaginedDevice {
        file: Some(file),
        about: about.into(),
        ..ImaginedDevice::default()
    };
    world.attach(&name, device);
    said(format!("{name}\n"))
}
