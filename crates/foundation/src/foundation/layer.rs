//! What a layer is: one kind of it as a study's author sees it, and one layer with its settings.

use crate::foundation::cut::CutOf;
use crate::foundation::error::LayerError;
use crate::foundation::gives::{Below, Danger, Gives, GivesKind, StandingLayer, Takes};
use crate::foundation::identity::Identity;
use crate::foundation::inspection::Inspection;
use crate::foundation::setup::Setup;
use crate::foundation::words::Words;
use stackrace_base::event::Fact;
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_machine::host::imagined::Tool;
use stackrace_machine::host::{LabDisk, Needs, Package};
use stackrace_machine::journal::UndoKind;
use std::path::{Path, PathBuf};

/// One kind of layer, as a study's author sees it.
pub struct LayerKind {
    /// The word in a study.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Every setting that a study may give it.
    pub settings: &'static [SettingDoc],
    /// Things it takes from the layer below, whatever its settings.
    pub takes: Takes,
    /// Things it gives to the layer above.
    pub gives: GivesKind,
    /// One line of TOML that works.
    pub example: &'static str,
    /// Makes a layer of settings that have been checked against `settings`.
    pub parse: fn(&Settings) -> Result<Box<dyn Layer>, Refusal>,
    /// The words of tools that a study may give.
    pub words: &'static [&'static Words],
    /// Packages with its programs; the lab's guests have them all.
    pub packages: &'static [Package],
    /// Ways in which it undoes what only its own tools can undo.
    pub undo: &'static [UndoKind],
    /// Its programs as a plan imagines them.
    pub imagined: &'static [Tool],
    /// Treatment of data by its file system; unknown for other layers.
    pub data: FileData,
    /// Functions that read what its tools print: none of them may fail on any text.
    pub reads: &'static [fn(&str) -> Vec<Fact>],
    /// Settings that disks keep in whose place `run --drive` puts modelled drives. Of any other
    /// layer, none.
    pub kept_by_drives: &'static [&'static str],
    /// The way to have it on a machine with nothing but a shell.
    pub over_shell: OverShell,
    /// Whole stacks with it: those that show its commands. In tests, every step of each fails once.
    pub shapes: &'static [TriedStack],
    /// The other stacks it is tested with.
    #[cfg(any(test, feature = "testing"))]
    pub tried: super::testing::Tried,
}

impl LayerKind {
    /// A kind that has nothing of its own yet; what is required is empty.
    pub const EMPTY: Self = Self {
        name: "",
        summary: "",
        settings: &[],
        takes: Takes::Nothing,
        gives: GivesKind::Directory,
        example: "",
        // Tests set up every example, so that a kind which keeps this is found.
        parse: |settings| Err(Refusal::at(&settings.span, "this layer cannot be made", "")),
        words: &[],
        packages: &[],
        undo: &[],
        imagined: &[],
        data: FileData::UNKNOWN,
        reads: &[],
        kept_by_drives: &[],
        over_shell: OverShell::Never,
        shapes: &[],
        #[cfg(any(test, feature = "testing"))]
        tried: super::testing::Tried::NOWHERE,
    };
}

/// What becomes of data that a trial laid out, when its clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaidOutData {
    /// They are where they were, and can be written over.
    Stay,
    /// They can be read, and nothing else.
    OnlyRead,
    /// A file is copied when it is first opened for writing.
    CopiedUp,
}

/// Treatment of the data of files by a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileData {
    /// True if it writes over a block where it lies: data that are written over stay laid out as
    /// they were.
    pub in_place: bool,
    /// True if it caches them in the kernel's page cache and nowhere else.
    pub page_cache_alone: bool,
}

impl FileData {
    /// Treatment by a file system of which neither is known.
    pub const UNKNOWN: Self = Self {
        in_place: false,
        page_cache_alone: false,
    };
    /// Treatment by those that write in place and leave caching to the kernel.
    pub const IN_PLACE: Self = Self {
        in_place: true,
        page_cache_alone: true,
    };
}

/// One of the disks that the imagined machine of the tests has.
pub const ON_A_DISK: &str =
    "devices = { ids = [\"disk-of-test-1\"], size = \"1 GiB\", model = \"TEST\" }";
/// Two of the disks that the imagined machine of the tests has.
pub const ON_TWO_DISKS: &str = "devices = { ids = [\"disk-of-test-1\", \"disk-of-test-2\"], size = \"1 GiB\", model = \"TEST\" }";

/// Layers as a study writes them, one line each, bottom up.
pub type TriedStack = &'static [&'static str];

/// A volume that a cluster makes of one of its storage classes, and mounts into the pod that measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageClaim {
    /// Name of the class.
    pub class: String,
    /// Bytes that are asked for.
    pub bytes: u64,
    /// The directory at which the pod has it.
    pub path: PathBuf,
    /// Time that the cluster has to make it, ns.
    pub within_ns: u64,
}

/// A command that a study gives to a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerCommand<'a> {
    /// The setting that holds it.
    pub what: &'static str,
    /// The command, for sh.
    pub line: &'a str,
    /// True if it takes down what another one set up: `clean` may have to run it.
    pub undoes: bool,
    /// Most seconds that it may take.
    pub limit_s: u32,
}

/// One layer with its settings.
pub trait Layer: Send + Sync {
    /// Its kind, as the list of all layers has it.
    fn of_kind(&self) -> &'static LayerKind;
    /// The word in a study.
    fn kind(&self) -> &'static str {
        self.of_kind().name
    }
    /// Kind and what matters to its neighbours: `loop, count = 4`.
    fn brief(&self) -> String {
        self.kind().to_string()
    }
    /// One line for the plan: what is asked for.
    fn describe_asked(&self) -> String;
    /// Things it takes with these settings.
    fn takes(&self) -> Takes {
        self.of_kind().takes
    }
    /// Number of devices it gives; `None` if it gives no devices.
    fn devices_given(&self) -> Option<usize> {
        (self.gives() == GivesKind::Devices).then_some(1)
    }
    /// Returns true if it gives the very devices that it takes, however many they are.
    fn passes_devices_on(&self) -> bool {
        false
    }
    /// Returns true if it sets something that all stacks of a machine share.
    fn sets_the_machine(&self) -> bool {
        false
    }
    /// Bytes that it writes to so many devices below for this many that are written to it, once.
    fn written_below(&self, bytes: u64, _devices: usize) -> u64 {
        bytes
    }
    /// The kind of thing that the layer above gets: devices, a directory or a pool.
    fn gives(&self) -> GivesKind {
        self.of_kind().gives
    }
    /// Place of what it takes.
    fn below(&self) -> Below {
        Below::Here
    }
    /// Returns true if both machines may write what it gives at once.
    fn is_shared(&self) -> bool {
        false
    }
    /// What becomes of data that a trial laid out, when its clock starts.
    fn laid_out_data(&self) -> LaidOutData {
        LaidOutData::Stay
    }
    /// Number of machines on which the workload runs at once, each in a directory of its own.
    fn loaded_from(&self) -> usize {
        1
    }
    /// Number of machines it needs.
    fn nodes(&self) -> usize {
        // Otherwise what it takes stands on the peer, or on both machines.
        if self.below() == Below::Here { 1 } else { 2 }
    }
    /// The reason why its machines cannot be in one kernel, as a clause; `None` if they can.
    fn apart(&self) -> Option<String> {
        None
    }
    /// A layer it cannot do without somewhere below, or with settings that one does not have: why
    /// not.
    ///
    /// # Errors
    /// One clause.
    fn accepts(&self, _below: &[Box<dyn Layer>]) -> Result<(), String> {
        Ok(())
    }
    /// The commands that the study gives it; they run only if the user permits them.
    fn commands(&self) -> Vec<LayerCommand<'_>> {
        Vec::new()
    }
    /// Needs that must be met before it can be set up, on each machine it stands on.
    fn needs(&self) -> Needs;
    /// Needs of the machine of its server, if it has one: the peer if what it takes stands there,
    /// else this machine.
    fn server_needs(&self) -> Option<Needs> {
        None
    }
    /// The directory of the user's that it measures as it is; `None` if it makes something.
    fn existing_directory(&self) -> Option<&Path> {
        None
    }
    /// The volume of a storage class that the directory is to be; `None` if it is there by itself.
    fn claim(&self) -> Option<&StorageClaim> {
        None
    }
    /// Directory in which it needs disk, and the bytes; an empty path is the site's scratch directory.
    fn disk_needed(&self) -> Option<(PathBuf, u64)> {
        None
    }
    /// A directory of the user's that it lies in, and that has to stay the same one; `None` if it
    /// lies in none.
    fn named_directory(&self) -> Option<PathBuf> {
        let (directory, _) = self.disk_needed()?;
        (!directory.as_os_str().is_empty()).then_some(directory)
    }
    /// The disks it is told to write over.
    fn disks(&self) -> &[Identity] {
        &[]
    }
    /// Contents of devices it would write over, on this machine as it is now.
    fn dangers(&self, _machine: &Inspection<'_>) -> Vec<Danger> {
        Vec::new()
    }
    /// Disks the virtual machine has to be started with; only the lab gives any.
    fn lab_disks(&self) -> Vec<LabDisk> {
        Vec::new()
    }
    /// Builds it on what is below, then reads back what was really obtained.
    ///
    /// # Errors
    /// When the system refuses, or what was obtained is not what was asked for. What was created
    /// until then is in the journal and undone by the caller.
    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError>;
    /// Returns true if it can be brought back after a power cut.
    fn returns(&self) -> bool {
        false
    }
    /// The part that a power cut hits, where that is not all that the stack stands on.
    fn cut_of(&self) -> Option<CutOf> {
        None
    }
    /// Brings it back after a power cut as an administrator would: assembles, imports, mounts, and
    /// repairs only what is refused otherwise ([`Setup::repair`]). Names are drawn as they were when
    /// it was set up.
    ///
    /// # Errors
    /// The system refuses, also after a repair.
    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        // Most layers went with the power, and stand as before once they are set up again.
        if self.returns() {
            return self.set_up(setup, below);
        }
        let why = format!("{} cannot be brought back after a power cut", self.kind());
        Err(LayerError::refused(why, ""))
    }
}
