//! What this machine can do, found out without changing anything.

use serde::Serialize;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_base::unit::InWords;
use stackrace_layers::stack;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::{
    Host, HostError, MOUNT_PROC, Needs, Package, known_packages, sees_the_kernel,
};
use stackrace_machine::observe::{self, Pulse, Snapshot};
use stackrace_places::place::lab_guests::ACCELERATOR;
use stackrace_remote::lab::command::Accelerator;
use stackrace_remote::lab::image_cache::ImageCache;
use stackrace_remote::lab::machine::accelerator_found;
use stackrace_remote::lab::system::System;
use stackrace_remote::lab::{command, image, kvm_probe, postgresql, system};
use stackrace_run::prepare::clean;
use stackrace_run::prepare::context::Context;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time for which the machine is listened to.
const LISTENED: Duration = Duration::from_secs(3);
/// Pause between two pieces of work that are timed meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// Abilities of this machine.
#[derive(Debug, Serialize)]
pub(crate) struct Health {
    /// Kernel, processor, memory and their like, by name.
    pub(crate) machine: Vec<(String, String)>,
    /// True if this is root.
    pub(crate) root: bool,
    /// View of the kernel (`/proc`); without it nothing is said of layers, and nothing is listened to.
    pub(crate) kernel: Ability,
    /// Asynchronous I/O, or the reason why it does not work.
    pub(crate) io_uring: Ability,
    /// Hardware virtualisation for the guests of the lab.
    pub(crate) kvm: Ability,
    /// Directory of the runs.
    pub(crate) store: StoreRoom,
    /// State of each kind of layer.
    pub(crate) layers: Vec<LayerHealth>,
    /// Needs of the parts of this program beside the layers: the lab, other machines, `afp`.
    pub(crate) parts: Vec<PartHealth>,
    /// Images of the lab's systems.
    pub(crate) images: Vec<PartHealth>,
    /// Packages that hold what is missing, by Debian's names.
    pub(crate) install: Vec<&'static str>,
    /// True if apt is there to install them.
    pub(crate) apt: bool,
    /// Things that dead runs left behind, a line each.
    pub(crate) left: Vec<String>,
    /// Noise of the machine; `None` if it was not listened to.
    pub(crate) noise: Option<Noise>,
}

/// Something that is there, or why it is not.
#[derive(Debug, Serialize)]
pub(crate) struct Ability {
    /// True if it is there.
    pub(crate) available: bool,
    /// Reason why it is not there, or what is not known yet, one clause.
    pub(crate) why: Option<String>,
    /// Advice; empty if nothing helps.
    pub(crate) next: String,
}

impl Ability {
    fn of(found: Result<(), (String, String)>) -> Self {
        let (why, next) = match found {
            Ok(()) => (None, String::new()),
            Err((why, next)) => (Some(why), next),
        };
        Self {
            available: why.is_none(),
            why,
            next,
        }
    }
}

/// Directory of the runs, and the room there.
#[derive(Debug, Serialize)]
pub(crate) struct StoreRoom {
    /// The directory; `None` if no place is named.
    pub(crate) path: Option<String>,
    /// Free bytes there; `None` if they cannot be found out.
    pub(crate) free_bytes: Option<u64>,
    /// The block devices it lies on, its own first.
    pub(crate) devices: Vec<String>,
}

/// Something that is missing, and what to do.
#[derive(Debug, Serialize)]
pub(crate) struct Lack {
    /// The missing thing, one clause.
    pub(crate) what: String,
    /// Advice; empty if nothing helps.
    pub(crate) next: String,
    /// The part of a system that would mend it.
    #[serde(skip)]
    pub(crate) mends: Mends,
}

/// The part of a system that mends a lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mends {
    /// One that is installed, with the command of its advice.
    Package,
    /// One that has what the running one does not know.
    Kernel,
    /// Neither.
    Else,
}

/// One kind of layer.
#[derive(Debug, Serialize)]
pub(crate) struct LayerHealth {
    /// The word in a study.
    pub(crate) layer: &'static str,
    /// True if it needs the rights of root.
    pub(crate) root: bool,
    /// Number of machines that it needs.
    pub(crate) machines: usize,
    /// Things that are missing, the rights of root left out.
    pub(crate) missing: Vec<Lack>,
}

/// Something that only some studies need, such as the lab.
#[derive(Debug, Serialize)]
pub(crate) struct PartHealth {
    /// Its name, as it is shown.
    pub(crate) part: String,
    /// Programs, modules and rights that it lacks; empty if it works.
    pub(crate) missing: Vec<Lack>,
}

/// Activity of the machine while this program asked nothing of it.
#[derive(Debug, Serialize)]
pub(crate) struct Noise {
    /// Length of that time, s.
    pub(crate) seconds: f64,
    /// Part of the processors' time that others used.
    pub(crate) others_cpu: f64,
    /// Part of it that the hypervisor took away.
    pub(crate) steal: f64,
    /// Part of the time in which a task waited for I/O; `None` if the kernel does not say.
    pub(crate) io_pressure: Option<f64>,
    /// B/s that the devices of the store read and wrote.
    pub(crate) device_bytes_per_second: f64,
    /// Share by which the slowest tenth of equal pieces of work took longer than the fastest.
    pub(crate) spread: f64,
}

/// Looks at this machine. `cache` is where the lab's images are; listening takes three seconds.
pub(crate) fn examine(context: &Context, cache: Option<&ImageCache>, listen: bool) -> Health {
    let host = context.host(Arc::new(|_| ()));
    let seen = sees_the_kernel();
    // What is not seen would be told as what the kernel does not know.
    let examined = match seen {
        true => stack::examined(&host),
        false => Vec::new(),
    };
    let parts = parts(&host);
    // Packages alone do not help a layer that the kernel lacks, too.
    let mended = examined
        .iter()
        .filter(|one| one.missing.iter().all(|error| error.package().is_some()));
    let lacking = mended.flat_map(|one| &one.missing);
    let install = install(&host, lacking.chain(parts.iter().flat_map(|part| &part.1)));
    let store = room(context, &host);
    let machine = observe::environment().into_iter();
    Health {
        machine: machine.map(|fact| (fact.name, fact.value)).collect(),
        root: host.is_root(),
        kernel: Ability::of(match seen {
            true => Ok(()),
            false => Err((
                "is not mounted, so mounts and what the kernel can do are not known".to_owned(),
                MOUNT_PROC.to_owned(),
            )),
        }),
        io_uring: Ability::of(
            stackrace_engine::io_uring_allowed().map_err(|error| (error.to_string(), error.next())),
        ),
        kvm: kvm(&host, context),
        noise: (listen && seen).then(|| noise(&store.devices)),
        store,
        layers: examined
            .iter()
            .map(|one| LayerHealth {
                layer: one.layer,
                root: one.root,
                machines: one.machines,
                missing: one.missing.iter().map(lack).collect(),
            })
            .collect(),
        parts: parts
            .iter()
            .map(|(part, missing)| PartHealth {
                part: (*part).to_owned(),
                missing: missing.iter().map(lack).collect(),
            })
            .collect(),
        images: cache.map_or(Vec::new(), images),
        install,
        apt: tool(&host, &["apt-get"]).is_empty(),
        left: left(context),
    }
}

fn lack(error: &HostError) -> Lack {
    Lack {
        what: error.to_string(),
        next: error.next(),
        mends: match error {
            HostError::KernelLacks { .. } => Mends::Kernel,
            error if error.in_package() => Mends::Package,
            _ => Mends::Else,
        },
    }
}

/// Checks what is missing of some programs.
fn tool(host: &LocalHost, tools: &'static [&'static str]) -> Vec<HostError> {
    host.missing(&Needs {
        tools,
        ..Needs::default()
    })
}

fn parts(host: &LocalHost) -> Vec<(&'static str, Vec<HostError>)> {
    let mut build = host.missing(&Needs {
        // That root is needed is added once, below.
        root: false,
        ..image::NEEDS
    });
    if !host.is_root() {
        build.push(HostError::NeedsRoot);
    }
    vec![
        ("guests of the lab", tool(host, &[command::PROGRAM])),
        ("images of the lab built here", build),
        ("other machines (--on, --peer)", tool(host, &["ssh"])),
    ]
}

/// Returns what guests have shown where /dev/kvm can be opened: some hypervisors offer it, and no guest starts.
fn tried(host: &LocalHost, context: &Context) -> Ability {
    // Without a store no guest can have been tried.
    let known = context.store_dir().map(|dir| dir.join(ACCELERATOR)).ok();
    let executes = || kvm_probe::executes(host);
    match known.and_then(|known| accelerator_found(host, &known)) {
        Some(Accelerator::Kvm) => Ability::of(Ok(())),
        // No whole guest was tried: an instruction that is not executed says enough.
        None if executes() != Some(false) => Ability {
            available: true,
            why: Some(
                "/dev/kvm can be opened; whether a kernel starts with it, the first guest of the lab shows"
                    .to_owned(),
            ),
            next: String::new(),
        },
        Some(Accelerator::Tcg) | None => Ability::of(Err((
            "/dev/kvm is there, but no guest runs with it: guests of the lab are emulated, many times slower"
                .to_owned(),
            "enable nested guests in the hypervisor".to_owned(),
        ))),
    }
}

/// Checks if guests of the lab run on the processor itself.
fn kvm(host: &LocalHost, context: &Context) -> Ability {
    let opened = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm");
    let error = match opened {
        Ok(_) => return tried(host, context),
        Err(error) => error,
    };
    Ability::of(Err(match error.kind() {
        std::io::ErrorKind::PermissionDenied => (
            "this user may not open /dev/kvm".to_owned(),
            "join its group: sudo adduser $USER kvm".to_owned(),
        ),
        std::io::ErrorKind::NotFound => (
            "there is no /dev/kvm: guests of the lab are emulated, many times slower".to_owned(),
            "enable virtualisation in the firmware, or nested guests in the hypervisor".to_owned(),
        ),
        _ => (
            format!("/dev/kvm: {error}", error = error.in_words()),
            String::new(),
        ),
    }))
}

/// Examines the directory of the runs, or the place where it will be.
fn room(context: &Context, host: &LocalHost) -> StoreRoom {
    let path = context.store_dir().ok();
    // The store is made by the first run.
    let there = path
        .as_deref()
        .and_then(|path| path.ancestors().find(|path| host.exists(path)))
        // A file in the way is no place, whatever is free around it.
        .filter(|path| host.is_dir(path));
    StoreRoom {
        free_bytes: there.and_then(|there| host.free_bytes(there).ok()),
        devices: there.map_or(Vec::new(), |there| stack::devices_under(host, there)),
        path: path.map(|path| path.display().to_string()),
    }
}

/// Checks if each system of the lab has its image.
fn images(cache: &ImageCache) -> Vec<PartHealth> {
    let missing = |system: &'static System| {
        let error = image::find(cache, system).err()?;
        Some(Lack {
            what: error.to_string(),
            next: format!("build it: {}", system.build()),
            mends: Mends::Else,
        })
    };
    let each = system::ALL.iter().flat_map(|system| {
        let part = PartHealth {
            part: system.name.to_owned(),
            missing: missing(system).into_iter().collect(),
        };
        std::iter::once(part).chain(additions(cache, system))
    });
    each.collect()
}

/// Lists what was built beside an image that is there, and what some studies would lack.
fn additions(cache: &ImageCache, system: &'static System) -> Vec<PartHealth> {
    let Ok(found) = image::find(cache, system) else {
        return Vec::new();
    };
    let zfs = matches!(image::find_zfs(cache, &found), Ok(Some(_)));
    let postgresql = matches!(postgresql::find(cache, system), Ok(Some(_)));
    let both = [
        ("ZFS", zfs, "--zfs"),
        ("PostgreSQL", postgresql, "--postgresql"),
    ];
    let each = both.into_iter().map(|(what, built, option)| PartHealth {
        part: format!("{what} in {system}"),
        missing: match built {
            true => Vec::new(),
            false => vec![Lack {
                what: format!("studies that need {what} find none in guests of {system}"),
                next: format!("build it: {} {option}", system.build()),
                mends: Mends::Else,
            }],
        },
    });
    each.collect()
}

/// The packages that this system has of what is missing, each once, by name.
fn install<'a>(
    host: &LocalHost,
    missing: impl Iterator<Item = &'a HostError>,
) -> Vec<&'static str> {
    let release = host.read_text(Path::new("/etc/os-release"));
    let release = release.unwrap_or_default();
    let field = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let system = format!("{}-{}", field("ID="), field("VERSION_ID="));
    let has = |package: &Package| {
        // A pinned package is one that the distribution lacks.
        package.pinned.is_none() && package.only_on.is_none_or(|only| only == system)
    };
    let missing: Vec<HostError> = missing.cloned().collect();
    // What no source of this system has is no advice.
    let known = known_packages(host, &missing);
    let offered = |package: &Package| {
        known
            .as_ref()
            .is_none_or(|known| known.contains(package.name))
    };
    let packages = missing.iter().filter_map(HostError::package);
    let packages = packages.filter(has).filter(offered);
    let mut names: Vec<&str> = packages.map(|package| package.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Lists what dead runs left, as `stackrace clean --list` says it; a run that goes on is none.
fn left(context: &Context) -> Vec<String> {
    let look = clean::Cleaning {
        list: true,
        allow_commands: false,
    };
    match clean::clean(context, look) {
        Ok(found) => found
            .iter()
            .filter(|one| one.is_left() || matches!(one, clean::Cleaned::Listed(_)))
            .map(ToString::to_string)
            .collect(),
        // A store that is no place for results is told where results are asked for.
        Err(_) => Vec::new(),
    }
}

/// Operations of a piece of work that is timed again and again.
const SELF_COST_OPERATIONS: u64 = 200_000;

/// Listens to the machine.
fn noise(devices: &[String]) -> Noise {
    let pulse = Pulse::begin(Vec::new);
    let before = Snapshot::take(devices);
    let (began, mut costs) = (SystemClock.now_ns(), Vec::new());
    while SystemClock.now_ns() - began < LISTENED.as_nanos() as u64 {
        // Equal pieces of work: what makes one of them slower is not in it.
        costs.push(stackrace_engine::self_cost(SELF_COST_OPERATIONS));
        SystemClock.sleep(PAUSE);
    }
    let mut counted = before.until_now(devices);
    pulse.end(&mut counted);
    let ns = (SystemClock.now_ns() - began) as f64;
    let all_ns = ns * f64::from(counted.cpus.max(1));
    let own_ns = counted.cpu_user_ns as f64 + counted.cpu_system_ns as f64;
    let bytes = counted
        .devices
        .iter()
        .map(|device| device.read_bytes + device.written_bytes);
    Noise {
        seconds: ns / 1e9,
        // The machine's counter has steps of 10 ms, ours is finer: the difference may be below 0.
        others_cpu: ((counted.cpu_machine_busy_ns as f64 - own_ns) / all_ns).max(0.0),
        steal: counted.cpu_steal_ns as f64 / all_ns,
        io_pressure: counted.pressure_io_ns.map(|waited| waited as f64 / ns),
        // A disk below a device counts the same bytes again.
        device_bytes_per_second: bytes.max().unwrap_or(0) as f64 / (ns / 1e9),
        spread: spread(&mut costs),
    }
}

/// Returns the share by which the most expensive tenth cost more than the least.
fn spread(costs: &mut [f64]) -> f64 {
    costs.sort_unstable_by(f64::total_cmp);
    match (costs.first(), costs.get(costs.len() * 9 / 10)) {
        (Some(least), Some(most)) if *least > 0.0 => most / least - 1.0,
        _ => 0.0,
    }
}

impl Noise {
    /// Says what this means for measurements, in sentences that begin small.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut above = |value: f64, limit: f64, sentence: String| {
            if value > limit {
                words.push(sentence);
            }
        };
        let part = unit::percent;
        above(
            self.others_cpu,
            0.10,
            format!(
                "other processes used {} of the processors",
                part(self.others_cpu)
            ),
        );
        above(
            self.steal,
            0.01,
            format!(
                "the hypervisor took {} of the processors away",
                part(self.steal)
            ),
        );
        let waited = self.io_pressure.unwrap_or(0.0);
        above(
            waited,
            0.05,
            format!("tasks waited for I/O for {} of the time", part(waited)),
        );
        let rate = self.device_bytes_per_second;
        above(
            rate,
            1_048_576.0,
            format!(
                "the disk of the store was in use: {}",
                unit::bytes_per_second(rate)
            ),
        );
        above(
            self.spread,
            0.25,
            format!(
                "a tenth of equal pieces of work took {} longer than the fastest",
                part(self.spread)
            ),
        );
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_piece_of_many_is_no_spread_and_a_fifth_of_them_is() {
        let mut quiet = [vec![100.0; 19], vec![200.0]].concat();
        assert!(spread(&mut quiet).abs() < 1e-9);
        let mut noisy = [vec![100.0; 8], vec![150.0; 2]].concat();
        assert!((spread(&mut noisy) - 0.5).abs() < 1e-9);
        assert!(spread(&mut []).abs() < 1e-9);
    }

    #[test]
    fn a_quiet_machine_has_nothing_to_say_and_a_busy_one_has() {
        let mut noise = Noise {
            seconds: 3.0,
            others_cpu: 0.02,
            steal: 0.0,
            io_pressure: None,
            device_bytes_per_second: 4096.0,
            spread: 0.05,
        };
        assert!(noise.words().is_empty());
        noise.others_cpu = 0.5;
        noise.io_pressure = Some(0.2);
        assert_eq!(noise.words().len(), 2);
    }
}
