//! What the kernel shows and takes as files: directories that it fills, facts about devices, drivers.

use super::parameters::{BEFORE, CONFIGFS, is_parameter};
use super::{Tool, World};
use crate::host::Output;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

impl World {
    /// Answer of a driver when one of its files is read; `None` if no tool stands for the file.
    pub(in crate::host) fn answered(&mut self, file: &Path) -> Option<String> {
        let answer = (self.driver(file)?.run)(self, &[file.into()]);
        (answer.status == Some(0)).then_some(answer.stdout)
    }

    /// Writes a text to a file; the answer of its driver, if it has one.
    pub(in crate::host) fn write(&mut self, path: &Path, text: &str) -> Option<Output> {
        let answer = self
            .driver(path)
            .map(|driver| (driver.run)(self, &[path.into(), text.into()]));
        self.texts.insert(path.to_path_buf(), text.to_string());
        answer
    }

    /// The driver that answers for a file: by its name, or that of a directory above.
    fn driver(&self, file: &Path) -> Option<Tool> {
        let mut tools = self.tools.iter().filter(|tool| tool.name.starts_with('/'));
        tools.find(|tool| file.starts_with(tool.name)).copied()
    }

    /// Text of a file of `/sys` about an imagined device, or of a parameter of the kernel.
    pub(in crate::host) fn in_sys(&self, path: &Path) -> Option<String> {
        if is_parameter(path) {
            let written = self.texts.get(path).cloned();
            // The real value is not known in a plan; the word stands for it in the shown commands.
            return Some(written.unwrap_or_else(|| BEFORE.to_string()));
        }
        let below = path
            .strip_prefix("/sys/block")
            .or_else(|_| path.strip_prefix("/sys/class/block"))
            .ok()?;
        let mut parts = below.components();
        let name = parts.next()?.as_os_str();
        let about = parts.as_path().to_str()?;
        let written = self.texts.get(path).cloned();
        let is_named = |device: &OsString| Path::new(device).file_name() == Some(name);
        if let Some((_, device)) = self.devices.iter().find(|(device, _)| is_named(device)) {
            return written.or_else(|| device.about.get(about).cloned());
        }
        let mut assemblies = self.assemblies.values();
        let gives = assemblies.find(|assembly| assembly.gives.iter().any(is_named))?;
        // Of what is given nothing looks at the size, but it has to have one.
        let size = || (about == "size").then(|| (1 << 21).to_string());
        written
            .or_else(|| gives.about.get(about).cloned())
            .or_else(size)
    }

    /// What is imagined in a directory that the kernel fills; `None` if it is another one.
    pub(in crate::host) fn listed(&self, directory: &Path) -> Option<Vec<OsString>> {
        let names = |paths: Vec<&Path>| {
            let names = paths.into_iter().filter_map(Path::file_name);
            names.map(OsStr::to_os_string).collect()
        };
        if directory == Path::new("/sys/block") {
            let standing = self.assemblies.values().filter(|assembly| !assembly.away);
            let given = standing.flat_map(|assembly| &assembly.gives);
            return Some(names(
                self.devices.keys().chain(given).map(Path::new).collect(),
            ));
        }
        let made = self.dirs.iter().chain(self.files.keys());
        let inside = made.filter(|path| path.parent() == Some(directory));
        let inside = inside.map(PathBuf::as_path).collect();
        directory.starts_with(CONFIGFS).then(|| names(inside))
    }
}
