//! A directory the user has: whatever it lies on is measured as it is, and left as it was.

use crate::stack::zfs;
use stackrace_base::event::Fact;
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_base::unit::{ShownPath, bytes};
use stackrace_foundation::foundation::{
    Gives, GivesKind, Layer, LayerError, LayerKind, Setup, StandingLayer, StorageClaim, Takes,
    block, line,
};
use stackrace_machine::host::{Host, HostError, MountInfo, Needs, argv};
use std::path::{Path, PathBuf};

/// Settings of a volume that Kubernetes makes.
const CLASS: &str = "storage-class";
const CLAIM: &str = "claim";
const BOUND_WITHIN: &str = "bound-within";

/// Most characters of a name of Kubernetes.
const NAME_MAX: usize = 253;

/// An existing directory.
pub(super) const KIND: LayerKind = LayerKind {
    name: "dir",
    summary: "An existing directory: a private subdirectory is made in it and removed afterwards.",
    settings: &[
        SettingDoc::text("path", "", "The directory.").required(),
        SettingDoc::bytes(
            "line",
            "",
            "Bytes per second that the network line to the storage carries, if you know: \"1.25 GB\" is 10 Gbit/s. The audit says when it was full.",
        ),
        SettingDoc::text(
            CLASS,
            "",
            "The StorageClass of Kubernetes that the directory is a volume of: made for the run, mounted at `path` into its pod (--clients kubernetes:JOB), deleted afterwards.",
        ),
        SettingDoc::bytes(CLAIM, "", "Size of that volume."),
        SettingDoc::time(
            BOUND_WITHIN,
            "5 min",
            "Longest that the cluster may take to make it and to start the pod.",
        ),
    ],
    takes: Takes::Nothing,
    gives: GivesKind::Directory,
    example: "dir = { path = \"/srv\" }",
    parse,
    over_shell: OverShell::Runs,
    shapes: &[
        &["dir = { path = \"/tmp\" }"],
        &["dir = { path = \"/tmp\", line = \"1.25 GB\" }"],
        &["dir = { path = \"/tmp\", storage-class = \"fast\", claim = \"10 GiB\" }"],
    ],
    ..LayerKind::EMPTY
};

struct Dir {
    path: PathBuf,
    /// Rate of the line to the storage, B/s.
    line: Option<u64>,
    /// The volume that it is; `None` if it is there by itself.
    claim: Option<StorageClaim>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let line = settings.optional_bytes("line")?;
    if line == Some(0) {
        return Err(Refusal::at(
            settings.span_of("line"),
            "a line carries more than 0 bytes per second",
            "write line = \"125 MB\" for 1 Gbit/s, or leave it out",
        ));
    }
    match settings.optional_text("path")? {
        Some(path) if !path.is_empty() => Ok(Box::new(Dir {
            claim: claim(settings, Path::new(&path))?,
            path: path.into(),
            line,
        })),
        _ => Err(Refusal::at(
            settings.span_of("path"),
            "dir needs the path of a directory",
            "write path = \"/srv\"",
        )),
    }
}

/// The volume that a study asks for.
fn claim(settings: &Settings, path: &Path) -> Result<Option<StorageClaim>, Refusal> {
    let class = settings.optional_text(CLASS)?;
    let bytes = settings.optional_bytes(CLAIM)?;
    let Some(class) = class else {
        let mut unused = [CLAIM, BOUND_WITHIN].into_iter();
        return match unused.find(|name| settings.given(name)) {
            None => Ok(None),
            Some(name) => Err(settings.refuse(
                name,
                format!("{name} goes with {CLASS}, which makes the volume"),
                format!("write {CLASS} = \"standard\" beside it, or leave {name} out"),
            )),
        };
    };
    let sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit();
    let inner = class.chars().all(|it| sign(it) || it == '-' || it == '.');
    if !(inner && class.starts_with(sign) && class.ends_with(sign) && class.len() <= NAME_MAX) {
        return Err(settings.refuse(
            CLASS,
            "Kubernetes has no such name for a storage class",
            "kubectl get storageclass names those there are",
        ));
    }
    // A pod has its volumes where its image says nothing of other directories.
    if !path.is_absolute() || path.parent().is_none() {
        return Err(settings.refuse(
            "path",
            "a pod has its volume at an absolute path below /",
            "write path = \"/mnt/fast\"",
        ));
    }
    match bytes {
        Some(bytes) if bytes > 0 => Ok(Some(StorageClaim {
            class,
            bytes,
            path: path.to_owned(),
            within_ns: settings.lasting_ns(BOUND_WITHIN)?,
        })),
        _ => Err(settings.refuse(
            CLAIM,
            format!("{CLASS} makes a volume, and {CLAIM} does not say how large"),
            format!("write {CLAIM} = \"10 GiB\""),
        )),
    }
}

impl Layer for Dir {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        let path = self.path.shown();
        match &self.claim {
            None => format!("the directory {path}"),
            Some(claim) => format!(
                "a volume of the storage class {}, {}, at {path}",
                claim.class,
                bytes(claim.bytes)
            ),
        }
    }

    fn claim(&self) -> Option<&StorageClaim> {
        self.claim.as_ref()
    }

    fn existing_directory(&self) -> Option<&Path> {
        Some(&self.path)
    }

    /// Nothing of its own: as much as the trial's data need.
    fn disk_needed(&self) -> Option<(PathBuf, u64)> {
        Some((self.path.clone(), 0))
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn set_up(&self, setup: &mut Setup<'_>, _below: Gives) -> Result<StandingLayer, LayerError> {
        let path = usable(setup.host(), &self.path)?;
        private_in(setup, &path, self.kind()).map(|it| self.with_asked(it))
    }

    fn returns(&self) -> bool {
        true
    }

    /// Starting the machine has brought back what it lies on.
    fn bring_back(
        &self,
        setup: &mut Setup<'_>,
        _below: Gives,
    ) -> Result<StandingLayer, LayerError> {
        let path = usable(setup.host(), &self.path)?;
        let private = path.join(setup.name(self.kind()));
        let host = setup.host();
        // It was synced with all that is in it before the first operation.
        if !host.is_dir(&private) {
            let text = format!("{} is gone", private.shown());
            return Err(LayerError::refused(text, ""));
        }
        standing(host, &path, private, self.kind()).map(|it| self.with_asked(it))
    }
}

impl Dir {
    /// Adds what the study says of the storage.
    fn with_asked(&self, mut standing: StandingLayer) -> StandingLayer {
        let fact = |rate| Fact::rate(line::DECLARED, rate, "as the study says");
        standing.facts.facts.extend(self.line.map(fact));
        if let Some(claim) = &self.claim {
            let facts = &mut standing.facts.facts;
            facts.push(Fact::new("storage class", &claim.class));
            facts.push(Fact::new("claim", bytes(claim.bytes)));
        }
        standing
    }
}

/// A private directory in one that is there, and what that one lies on; `layer` makes it.
///
/// # Errors
/// Nothing can be made there.
pub(super) fn private_in(
    setup: &mut Setup<'_>,
    path: &Path,
    layer: &str,
) -> Result<StandingLayer, LayerError> {
    let host = setup.host();
    let private = path.join(setup.name(layer));
    setup
        .create_tree(&private)
        .map_err(|error| read_only(error, path))?;
    standing(host, path, private, layer)
}

/// A private directory, with what the one around it lies on.
fn standing(
    host: &dyn Host,
    path: &Path,
    private: PathBuf,
    layer: &str,
) -> Result<StandingLayer, LayerError> {
    let mount = host.mount_of(path)?;
    // Counters of devices, and what `/sys` says of them, are read by this process alone.
    let devices = match host.is_here() {
        true => block::under_mount(host, &mount),
        false => Vec::new(),
    };
    let disks = block::disks(host, &devices);
    let mut facts = vec![
        Fact::new("directory", path.to_string_lossy()),
        Fact::new("file system", &mount.file_system),
        Fact::new("mounted from", mount.source.to_string_lossy()),
        Fact::new("mounted at", mount.mount_point.to_string_lossy()),
        Fact::new("mount options in force", mount.options.join(",")),
    ];
    facts.extend(sync_of(host, &mount));
    if mount.file_system == "zfs" {
        facts.extend(zfs::limit_of_cache(host));
    }
    facts.extend(disks.iter().map(|disk| block::fact(host, disk)));
    if host.is_here() {
        facts.extend(block::kernel(host));
    }
    Ok(StandingLayer {
        devices,
        disks,
        ..StandingLayer::new(layer, facts, Gives::Private(private))
    })
}

/// The way ZFS treats requests to sync where the directory lies; `None` if it is no ZFS, or does
/// not say.
fn sync_of(host: &dyn Host, mount: &MountInfo) -> Option<Fact> {
    if mount.file_system != "zfs" {
        return None;
    }
    let mut get = argv(["zfs", "get", "-H", "-o", "value", "sync"]);
    get.push(mount.source.clone());
    // Without the tool the directory can be measured all the same.
    let told = host.must(&get).ok()?;
    Some(Fact::new("sync", told.stdout.trim()))
}

/// The directory, absolute and without links.
///
/// # Errors
/// When it does not exist or is something else.
pub(super) fn usable(host: &dyn Host, path: &Path) -> Result<PathBuf, LayerError> {
    if !host.exists(path) {
        return Err(LayerError::refused(
            format!("{} does not exist", path.shown()),
            "create it, or name another directory",
        ));
    }
    if !host.is_dir(path) {
        return Err(LayerError::refused(
            format!("{} is not a directory", path.shown()),
            "name a directory",
        ));
    }
    Ok(host.own_way_to(path)?)
}

/// Says in plain words that nothing can be written there.
fn read_only(error: LayerError, path: &Path) -> LayerError {
    match error {
        LayerError::Host(HostError::Path {
            kind: std::io::ErrorKind::ReadOnlyFilesystem,
            ..
        }) => LayerError::refused(
            format!("{} is mounted read-only", path.shown()),
            "mount it writable, or name another directory",
        ),
        other => other,
    }
}
