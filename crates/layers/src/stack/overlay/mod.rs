//! Union mounts as containers have them (overlayfs): read-only lower layers, and one upper layer that takes
//! what is written.
//!
//! All layers lie in the file system below. Whatever a trial lays out gets into the upper layer, where it is
//! written over as in any directory. With `content = "lower"` it is copied below before the clock starts, as
//! the content of an image is, and a file is copied up when it is first opened for writing.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit::ShownPath;
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, OneOf},
    Words,
};
use stackrace_foundation::foundation::{
    Gives, GivesKind, LaidOutData, Layer, LayerError, LayerKind, Memory, Setup, StandingLayer,
    Takes, filesystem, options,
};
use stackrace_machine::host::imagined::{Tool, mount_without_device};
use stackrace_machine::host::{Host, Needs, argv};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The word in a study, and the kernel's name.
const NAME: &str = "overlay";

/// Most lower layers: mount(2) takes all their paths in one page of memory.
const LAYERS_MAX: u64 = 16;

/// Where the module keeps what is in force unless an option says otherwise.
const PARAMETERS: &str = "/sys/module/overlay/parameters";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Upper,
    Lower,
}

const CONTENT: ChoiceDoc<Content> = choice!(
    "content",
    ["upper" => Content::Upper, "lower" => Content::Lower],
    "upper",
    "Where a trial's data lie when its clock starts: in the upper layer, or in the lowest one, from which a file is copied up when it is first opened for writing (takes room for the data three times).",
);

/// The layer `overlay` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A union mount (overlayfs) as containers have it: lower layers, and an upper one that takes writes.",
    settings: &[
        CONTENT.doc,
        SettingDoc::count("layers", "1", "How many lower layers."),
        options::MOUNT,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "overlay = { content = \"lower\", mount = [\"metacopy=on\"] }",
    words: &[&MOUNT],
    parse,
    imagined: &[Tool::new("mount.overlay", mount_without_device)],
    shapes: &[
        &[
            "loop = { size = \"1 GiB\" }",
            "xfs = {}",
            "overlay = { content = \"lower\", layers = 3 }",
        ],
        &[
            "tmpfs = { size = \"1 MiB\" }",
            "overlay = { mount = [\"volatile\"] }",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// Documentation/filesystems/overlayfs.rst of the kernel. Not on the list: directories (`lowerdir`,
/// `upperdir`, `workdir`), who may see attributes (`userxattr`), checks of files that something else signs
/// (`verity`), and `xino`, which does nothing where all layers lie in one file system.
const MOUNT: Words = Words {
    tool: "a mount of overlayfs",
    manual: "overlayfs.rst of the kernel",
    options: &[
        ("index", OneOf(ON_OFF)),
        ("metacopy", OneOf(ON_OFF)),
        ("nfs_export", OneOf(ON_OFF)),
        ("redirect_dir", OneOf(&["on", "off", "follow", "nofollow"])),
        ("uuid", OneOf(&["on", "off", "auto", "null"])),
        ("volatile", Alone),
    ],
};

const ON_OFF: &[&str] = &["on", "off"];

struct Overlay {
    content: Content,
    layers: u64,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let layers = settings.count("layers")?;
    if !(1..=LAYERS_MAX).contains(&layers) {
        return Err(Refusal::at(
            settings.span_of("layers"),
            format!("{layers} lower layers cannot be mounted"),
            format!("write 1 to {LAYERS_MAX}"),
        ));
    }
    let layer = Overlay {
        content: settings.choice(CONTENT)?,
        layers,
        mount: options::mount(settings, &MOUNT)?,
    };
    // The kernel leaves a mark in the directory of work, and refuses the second mount.
    if layer.is_volatile() && layer.content == Content::Lower {
        return Err(Refusal::at(
            settings.span_of("mount"),
            "the kernel mounts a volatile upper layer once, and content = \"lower\" mounts it anew before each phase",
            "leave out \"volatile\", or content",
        ));
    }
    Ok(Box::new(layer))
}

/// Where everything lies in the file system below.
struct Places {
    /// Lower layers, the topmost first, as mount(8) takes them.
    lower: Vec<PathBuf>,
    upper: PathBuf,
    work: PathBuf,
    /// Where the next lowest layer is put together.
    next: PathBuf,
}

impl Overlay {
    fn is_volatile(&self) -> bool {
        self.mount.iter().any(|option| option == "volatile")
    }

    fn places(&self, root: &Path) -> Places {
        Places {
            lower: (1..=self.layers)
                .rev()
                .map(|number| root.join(format!("lower-{number}")))
                .collect(),
            upper: root.join("upper"),
            work: root.join("worked"),
            next: root.join("next"),
        }
    }

    /// Mounts all layers; where, and what is in force.
    fn mounted(&self, setup: &mut Setup<'_>, root: &Path) -> Result<StandingLayer, LayerError> {
        let places = self.places(root);
        let lower: Vec<String> = places
            .lower
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        let mut given = vec![
            format!("lowerdir={}", lower.join(":")),
            format!("upperdir={}", places.upper.to_string_lossy()),
            format!("workdir={}", places.work.to_string_lossy()),
        ];
        given.extend(self.mount.iter().cloned());
        // A volatile upper layer is never mounted a second time: the kernel refuses it.
        let memory = match self.is_volatile() {
            true => Memory::Yes,
            false => Memory::No,
        };
        let source = OsString::from(setup.name(NAME));
        let merged = setup.mount(NAME, &source, &given, memory)?;
        if self.content == Content::Lower {
            let (before, after) = places.folding(&merged);
            setup.folds(before, after);
        }
        let host = setup.host();
        let lies = match self.content {
            Content::Upper => "the upper layer: nothing is copied up",
            Content::Lower => {
                "the lowest layer: a file is copied up when it is first opened for writing"
            }
        };
        let mut facts = vec![
            Fact::new("lower layers", self.layers.to_string()),
            Fact::new("data of trials in", lies),
        ];
        let unshown = not_shown(host, &host.mount_of(&merged)?.options);
        facts.extend(filesystem::mount_facts(
            host,
            &merged,
            NAME,
            &self.mount,
            &unshown,
        )?);
        Ok(StandingLayer::new(NAME, facts, Gives::Mounted(merged)))
    }
}

impl Places {
    /// The commands that make the lowest layer of all that is seen: those before the union is unmounted,
    /// and those after. A copy, and not the upper layer itself: that one also says what is deleted.
    fn folding(&self, merged: &Path) -> (Vec<Vec<OsString>>, Vec<Vec<OsString>>) {
        let command = |words: &[&str], paths: &[&Path]| {
            let mut command = argv(words.iter().copied());
            command.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
            command
        };
        let remove = ["rm", "--recursive", "--force"];
        // There is at least one.
        let lowest = self.lower.last().map_or(merged, PathBuf::as_path);
        let whole = "--no-target-directory";
        let before = vec![
            command(&remove, &[&self.next]),
            command(&["cp", "--archive", whole], &[merged, &self.next]),
        ];
        let after = vec![
            command(&remove, &[lowest, &self.upper, &self.work]),
            command(&["mv", whole], &[&self.next, lowest]),
            command(&["mkdir"], &[&self.upper, &self.work]),
        ];
        (before, after)
    }
}

/// Options in force that the table of mounts leaves out: it has those alone that differ from the module's
/// parameters.
fn not_shown(host: &dyn Host, shown: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for name in ["index", "metacopy", "nfs_export", "redirect_dir"] {
        let begin = format!("{name}=");
        if shown.iter().any(|option| option.starts_with(&begin)) {
            continue;
        }
        let parameter = host.read_text(&Path::new(PARAMETERS).join(name));
        match parameter.as_deref().map(str::trim) {
            Ok("Y") => all.push(format!("{begin}on")),
            Ok("N") => all.push(format!("{begin}off")),
            // A kernel without it says nothing, and then it is not known.
            _ => {}
        }
    }
    // Kernels since 6.17 show it under another name.
    if shown.iter().any(|option| option == "fsync=volatile") {
        all.push("volatile".to_owned());
    }
    all
}

/// The root of the file system below.
///
/// # Errors
/// It is none of ours, or its path has signs that mount(8) reads as the end of a path.
fn root_of(below: Gives) -> Result<PathBuf, LayerError> {
    let root = filesystem::own_root(below)?;
    let text = root.to_str();
    if text.is_none_or(|text| text.contains([':', ',', '\\', '"'])) {
        return Err(LayerError::refused(
            format!(
                "overlayfs takes a sign in the name of {} for its end",
                root.shown()
            ),
            "put the store in a directory without : , \\ and \" in its name",
        ));
    }
    Ok(root)
}

impl Layer for Overlay {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        let of = match self.layers {
            1 => "one lower layer".to_owned(),
            layers => format!("{layers} lower layers"),
        };
        let kind = format!(
            "overlayfs on {of}, data in the {} layer",
            CONTENT.word(self.content)
        );
        filesystem::asked(&kind, &[], &self.mount)
    }

    /// Refuses a directory of the user's: what is done to layers is done as root, by their paths.
    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        if below.last().is_some_and(|layer| layer.kind() == NAME) {
            return Err("overlay cannot stand on overlay: the kernel takes no upper layer there, so put it on the file system below".to_owned());
        }
        filesystem::not_theirs(NAME, below)
    }

    fn laid_out_data(&self) -> LaidOutData {
        match self.content {
            Content::Upper => LaidOutData::Stay,
            Content::Lower => LaidOutData::CopiedUp,
        }
    }

    /// Data that get into the lowest layer are written once more.
    fn written_below(&self, bytes: u64, _devices: usize) -> u64 {
        match self.content {
            Content::Upper => bytes,
            Content::Lower => bytes.saturating_mul(2),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some(NAME),
            ..Needs::as_root(&["mount", "umount", "cp", "mv", "rm", "mkdir"], &[])
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let root = root_of(below)?;
        let places = self.places(&root);
        // They end with the file system that they lie in.
        for path in places.lower.iter().chain([&places.upper, &places.work]) {
            setup.host().create_dir(path)?;
        }
        self.mounted(setup, &root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("overlay = { layers = 17 }", "17 lower layers"),
            (
                "overlay = { content = \"lower\", mount = [\"volatile\"] }",
                "mounts a volatile upper layer once",
            ),
            (
                "overlay = { mount = [\"lowerdir=/etc\"] }",
                "\"lowerdir=/etc\" is no word",
            ),
            (
                "overlay = { mount = [\"index=yes\"] }",
                "\"yes\" is no value",
            ),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
        let on_theirs = ["dir = { path = \"/srv\" }", "overlay = {}"].map(layer);
        let (at, why) = Stack::new(on_theirs.into()).err().unwrap();
        assert_eq!(at, 1);
        assert!(why.contains("a file system that the stack makes"), "{why}");
    }

    #[test]
    fn a_path_that_mount_would_cut_is_refused() {
        for path in ["/a:b", "/a,b", "/a\\b"] {
            assert!(root_of(Gives::Mounted(path.into())).is_err(), "{path}");
        }
        assert!(root_of(Gives::Mounted("/a b".into())).is_ok());
    }
}
