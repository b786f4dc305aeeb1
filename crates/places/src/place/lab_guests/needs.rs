//! What a study needs of the lab: looked at before the first guest starts, and told by `plan`.

use stackrace_base::unit::ShownPath;
use std::path::Path;
use std::sync::Arc;

use crate::place::lab_guests::{Guest, Images, SystemImage};
use crate::place::virtual_lab::{self, LabDrives};
use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_machine::host::{Host, HostError, Needs, argv, is_of, local::LocalHost};
use stackrace_remote::lab::image::wants_zfs;
use stackrace_remote::lab::system::System;
use stackrace_remote::lab::{command, postgresql, system};
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::preflight;
use stackrace_run::prepare::study_file::part;
use stackrace_study::study::Study;

/// Lists what is missing for a study in the lab, all of it, each with what to do; empty if nothing is.
pub fn missing(
    context: &Context,
    study: &Study,
    guests: &[Guest],
    images: Images<'_>,
) -> Vec<String> {
    let host = LocalHost::new(Arc::new(|_| ()));
    // Without QEMU nothing else matters, but the user gets the whole list at once.
    let tools = host.missing(&Needs {
        tools: &[command::PROGRAM],
        ..Needs::default()
    });
    let lines = tools
        .iter()
        .map(|error| format!("{error}; {}", error.next()));
    let mut lines: Vec<String> = lines.collect();
    for guest in guests {
        let part = match part(study, guest.place.as_deref()) {
            Ok(part) => part,
            Err(failure) => {
                lines.push(joined(failure, &[]));
                continue;
            }
        };
        // Whatever the image has: the guests run this very program.
        for line in left_out(&needs(&part)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        match (images.made)(&guest.system) {
            Ok(image) => {
                let needs = needs(&part);
                lines.extend(of_image(&needs, &image));
                if let Some(kernel) = GuestKernel::of(&host, &image, &needs) {
                    lines.extend(kernel.lacks(&needs, image.system));
                }
            }
            // It is built with all that the study needs, and not twice.
            Err(failure) => lines.push(joined(failure, &needs(&part))),
        }
    }
    // The plan of a run in virtual time counts the content of modelled drives itself.
    if virtual_lab::disks(study) == LabDrives::Emulated {
        lines.extend(no_room(context, study));
    }
    lines
}

/// A failure as one line; the command that builds an image gets what else is needed.
fn joined(failure: Failure, needs: &[Needs]) -> String {
    let (text, next) = failure.into_parts();
    let mut line = format!("{text}; {next}");
    if system::ALL
        .iter()
        .any(|system| next.ends_with(&system.build()))
    {
        for (_, option) in additions(needs) {
            line.push_str(&format!(" {option}"));
        }
    }
    line
}

/// Lists what is built beside an image for such needs, each with the option of `lab build`.
fn additions(needs: &[Needs]) -> Vec<(&'static str, &'static str)> {
    let zfs = needs
        .iter()
        .any(wants_zfs)
        .then_some(("the ZFS modules", "--zfs"));
    let postgresql = needs.iter().any(postgresql::wanted);
    let postgresql = postgresql.then_some(("PostgreSQL", "--postgresql"));
    zfs.into_iter().chain(postgresql).collect()
}

/// Refuses a study that the lab cannot carry out, before the first guest starts.
///
/// # Errors
/// All that is missing.
pub fn check(
    context: &Context,
    study: &Study,
    guests: &[Guest],
    images: Images<'_>,
) -> Result<(), Failure> {
    let missing = missing(context, study, guests, images);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Failure::unable(missing.join("\n"))),
    }
}

/// Lists the needs of the stacks and the workloads of a study.
fn needs(study: &Study) -> Vec<Needs> {
    let each = study.configurations.iter().flat_map(|one| {
        let stack = one.stack.needs().into_iter().map(|(_, _, needs)| needs);
        let workloads = one.workloads.iter().map(|workload| workload.needs());
        stack.chain(workloads).collect::<Vec<Needs>>()
    });
    let mut all: Vec<Needs> = Vec::new();
    for needs in each {
        // Configurations share most of their layers; each lack is said once.
        if !all.contains(&needs) {
            all.push(needs);
        }
    }
    all
}

/// Parts of this program that the study needs and that were left out when it was built.
fn left_out(needs: &[Needs]) -> impl Iterator<Item = String> {
    let parts = needs.iter().filter_map(|needs| needs.part);
    let left_out = parts.filter(|part| !part.built).map(HostError::NotBuilt);
    left_out.map(|error| format!("{error}; {}", error.next()))
}

/// Lists what the guests of a system lack.
fn of_image(needs: &[Needs], image: &SystemImage) -> Vec<String> {
    let system = image.system;
    let mut lines: Vec<String> = Vec::new();
    let mut build = additions(needs);
    build.retain(|(_, option)| match *option {
        "--zfs" => image.zfs.is_none(),
        _ => image.postgresql.is_none(),
    });
    if !build.is_empty() {
        let what: Vec<&str> = build.iter().map(|(what, _)| *what).collect();
        let options: Vec<&str> = build.iter().map(|(_, option)| *option).collect();
        lines.push(format!(
            "the study needs {}, which the lab does not have for {system}; build it once: {} {}",
            what.join(" and "),
            system.build(),
            options.join(" ")
        ));
    }
    for package in needs.iter().flat_map(|needs| needs.packages) {
        let line = match package.only_on {
            Some(only) if !system.has(package) => {
                format!(
                    "{system} has no {}; take another system: --system {only}",
                    package.name
                )
            }
            // Pinned ones and those of the layers above are in no list of packages.
            None if !postgresql::has(package)
                && package.pinned.is_none()
                && image.image.package(package.name).is_none() =>
            {
                format!(
                    "guests of the lab have no {}; run the study without --lab, on a machine that has it",
                    package.name
                )
            }
            _ => continue,
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Prints those lines of lists in an image that have what is asked for: whole lists are longer than what is kept of
/// a command.
const FOUND: &str = r#"unsquashfs -cat "$@" | grep -E "$0""#;
/// The driver of the disks of guests, which every kernel of the lab has.
const DISKS: &str = "virtio_blk";

/// The lines that are needed, as an expression of grep.
fn wanted(needs: &[Needs]) -> String {
    let modules = needs.iter().flat_map(|needs| needs.drivers);
    let modules = modules.map(|driver| driver.module);
    let systems = needs.iter().filter_map(|needs| needs.file_system);
    let names = systems.chain(modules).chain([DISKS]);
    let lines = names.map(|name| {
        let file = name.replace(['-', '_'], "[-_]");
        format!(r"^([^:]*/)?{file}\.ko|^alias fs-{name} ")
    });
    lines.collect::<Vec<_>>().join("|")
}

/// What the kernel of an image can load, read from the image before a guest is started.
struct GuestKernel {
    /// Release of the kernel: `6.12.118+deb13-amd64`.
    release: String,
    /// Paths of its modules, those that are built in too, and their other names, one a line.
    lists: String,
}

impl GuestKernel {
    /// Reads what the lists of an image have of what is needed; `None` if the tool is missing, or the image has them
    /// elsewhere: then the guest itself tells.
    fn of(host: &dyn Host, image: &SystemImage, needs: &[Needs]) -> Option<Self> {
        let release = image.image.kernel().to_owned();
        let root = image.image.dir().join("root.squashfs");
        let mut words = argv(["sh", "-c", FOUND, &wanted(needs)]);
        words.push(root.into_os_string());
        for list in ["modules.dep", "modules.builtin", "modules.alias"] {
            words.push(format!("usr/lib/modules/{release}/{list}").into());
        }
        let mut lists = host.must(&words).ok()?.stdout;
        // Lists without it were not read.
        lists.lines().any(|line| is_of(line, DISKS)).then_some(())?;
        // What needs no device and is known here is a part of every kernel, in no list of modules.
        let known = host.read_text(Path::new("/proc/filesystems"));
        for line in known.unwrap_or_default().lines() {
            if let Some(("nodev", name)) = line.split_once('\t') {
                lists.push_str(&format!("alias fs-{name} kernel\n"));
            }
        }
        Some(Self { release, lists })
    }

    fn has(&self, module: &str) -> bool {
        self.lists.lines().any(|line| is_of(line, module))
    }

    /// Returns true if it knows a file system, under the name of another one's module too: ext2 is ext4's.
    fn knows(&self, file_system: &str) -> bool {
        let alias = format!("alias fs-{file_system} ");
        self.has(file_system) || self.lists.lines().any(|line| line.starts_with(&alias))
    }

    /// Lists what it lacks of such needs, each with what to do.
    fn lacks(&self, needs: &[Needs], system: &System) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        // Modules of ZFS are a layer of their own, which is asked for elsewhere.
        for needs in needs.iter().filter(|needs| !wants_zfs(needs)) {
            let file_system = needs.file_system.filter(|name| !self.knows(name));
            let file_system = file_system.map(|name| format!("the file system {name}"));
            let drivers = needs.drivers.iter();
            let drivers = drivers.filter(|driver| !self.has(driver.module));
            let drivers = drivers.map(|driver| driver.what.to_owned());
            for what in file_system.into_iter().chain(drivers) {
                let line = format!(
                    "the kernel of {system} ({}) has no module for {what}; take another system: --system NAME \
                     (stackrace lab list), or run the study without --lab, on a machine that has it",
                    self.release
                );
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }
}

/// Says that the files of the guests do not fit where runs are kept; `None` if they do.
fn no_room(context: &Context, study: &Study) -> Option<String> {
    let needed = study.trial_disk_bytes();
    let free = preflight::free_for_runs(context).ok()?;
    let store = context.store_dir().ok();
    let store = store.as_deref().unwrap_or(Path::new("the store"));
    (needed > free).then(|| {
        format!(
            "{} has {} free, and the disks of a guest take {}; free space there, or name another place: --store DIR",
            store.shown(),
            unit::bytes(free),
            unit::bytes(needed)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(layer: &str) -> Study {
        let text = format!(
            "title = \"t\"\n[[stack]]\nloop = {{ size = \"1 GiB\" }}\n[[stack]]\n{layer}\n\
             [[workload]]\nfiles = {{ count = 10 }}\n"
        );
        let kinds = stackrace_study::study::Kinds::real();
        stackrace_study::study::parse("t.toml", text.as_bytes(), &kinds).unwrap()
    }

    /// A list of modules alone has a hundred kilobytes.
    #[test]
    fn what_stands_late_in_a_long_list_is_found() {
        let list = "unsquashfs() { i=0; while [ $i -lt 4000 ]; do i=$((i + 1)); \
                    echo kernel/drivers/some/long/path/to/module-$i.ko:; done; \
                    echo kernel/drivers/block/virtio_blk.ko:; echo kernel/drivers/md/dm-mod.ko.xz:; \
                    echo alias fs-ext3 ext4; }; ";
        let needs = needs(&with("ext3 = {}"));
        let said = LocalHost::new(Arc::new(|_| ()))
            .must(&argv([
                "sh",
                "-c",
                &format!("{list}{FOUND}"),
                &wanted(&needs),
            ]))
            .unwrap();
        let kernel = GuestKernel {
            release: "6.12.1-lab".to_owned(),
            lists: said.stdout,
        };
        assert!(
            kernel.knows("ext3") && kernel.has(DISKS),
            "{}",
            kernel.lists
        );
        assert!(!kernel.has("dm_mod"), "what is not asked for is left out");
    }

    #[test]
    fn what_the_kernel_of_an_image_lacks_is_told_by_name() {
        let kernel = GuestKernel {
            release: "6.12.1-lab".to_owned(),
            lists: "kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\nkernel/fs/ext4/ext4.ko\n\
                    kernel/drivers/md/dm-mod.ko\nalias fs-ext2 ext4\nalias fs-xfs xfs\n"
                .to_owned(),
        };
        let stack = |line: &str| kernel.lacks(&needs(&with(line)), &system::ALL[0]);
        for known in ["xfs = {}", "ext2 = {}", "ext4 = {}"] {
            let lacks = stack(known);
            let lacks = lacks.iter().filter(|line| line.contains("file system"));
            assert_eq!(lacks.count(), 0, "{known}");
        }
        let lacks = stack("f2fs = {}");
        assert!(
            lacks
                .iter()
                .any(|line| line.contains("the file system f2fs")),
            "{lacks:?}"
        );
    }
}
