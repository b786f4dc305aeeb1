//! What guests are made of: built, listed, found by the name of the system, removed.

use stackrace_base::event::{LeftBehind, again};
use stackrace_base::unit::{InWords, ShownPath};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::LabBuild;
use super::failure::{Failure, INTERRUPTED};
use super::interrupt::catch_interrupt;
use super::setting::Setting;
use super::terminal::{error, print, say};
use super::variable::{base_dir, home};
use super::words::unknown;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::unit;
use stackrace_layers::stack;
use stackrace_machine::host::Host;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::journal::Journal;
use stackrace_places::place::lab_guests::{Images, SystemImage, unable};
use stackrace_remote::lab::added::{self, AddedError, AddedSystem};
use stackrace_remote::lab::image::{self, Builder, Image, Stocked};
use stackrace_remote::lab::image_cache::ImageCache;
use stackrace_remote::lab::system::{self, System};
use stackrace_remote::lab::{machine, postgresql};
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::temporary;

/// Directory of images for every user of a machine; root puts them there.
const SHARED: &str = "/var/cache/stackrace/lab";

/// The images of this machine.
fn cache(host: &dyn Host) -> Result<ImageCache, Failure> {
    Ok(ImageCache {
        dir: cache_dir(host)?,
        of_layers: stack::packages(),
    })
}
/// Task that is left after a second Ctrl-C.
const LEFT: LeftBehind = LeftBehind {
    clean: &["clean"],
    told: "removes what was made",
    resumes: false,
};

/// Directory that images are kept in.
fn cache_dir(host: &dyn Host) -> Result<PathBuf, Failure> {
    let shared = PathBuf::from(SHARED);
    // Root's images serve all users, so that not each of them builds its own.
    let serves_all = host.is_root() || host.is_dir(&shared);
    match base_dir("XDG_CACHE_HOME") {
        None if serves_all => Ok(shared),
        _ => own_dir(),
    }
}

/// Directory of the images that are this user's alone: in a system that was added one logs in with a key of the user's.
///
/// # Errors
/// There is no place for them.
pub(super) fn own_dir() -> Result<PathBuf, Failure> {
    let cache = base_dir("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")));
    cache
        .map(|cache| cache.join("stackrace/lab"))
        .ok_or_else(|| {
            Failure::usage("no place for images: HOME is not set, or not a whole path")
                .next("name one, and repeat the command: export XDG_CACHE_HOME=/var/tmp/cache")
        })
}

/// Systems that guests can have on this machine.
pub(super) struct LabSystems {
    /// Names of those that were added.
    added: Vec<String>,
}

impl LabSystems {
    /// Looks which there are.
    pub(super) fn now() -> Self {
        Self { added: added() }
    }

    /// The means to find their images.
    pub(super) fn images(&self) -> Images<'_> {
        Images {
            made: &of,
            added: &|name| added::find(&own_dir()?, name).map_err(unable),
            added_names: &self.added,
        }
    }
}

/// Names of systems that were added.
pub(super) fn added() -> Vec<String> {
    own_dir().map_or(Vec::new(), |dir| added::names(&dir))
}

/// Images of this machine, where there is a place for them.
pub(super) fn place() -> Option<ImageCache> {
    cache(&quiet_host()).ok()
}

fn all(names: &[String]) -> Result<Vec<&'static System>, Failure> {
    names.iter().map(|name| named(name)).collect()
}

fn named(name: &str) -> Result<&'static System, Failure> {
    system::named(name).ok_or_else(|| {
        let added = added();
        if added.iter().any(|known| known == name) {
            // It is not the lab that built it, and nothing of this program is in it.
            return Failure::refused(format!(
                "{name} was added, and is for runs in real time alone"
            ))
            .next(format!(
                "measure in it: {}",
                again(&["run", "STUDY", "--lab", "--system", name])
            ));
        }
        let names = system::ALL.iter().map(|system| system.name);
        let names: Vec<&str> = names.chain(added.iter().map(String::as_str)).collect();
        unknown("system of the lab", name, &names)
    })
}

/// Parts that the guests of a system are made of: its image and, where they were built, its ZFS
/// modules and PostgreSQL.
///
/// # Errors
/// When there is no such system: the nearest is named. When its image was not built: how to.
pub(super) fn of(name: &str) -> Result<SystemImage, Failure> {
    let system = named(name)?;
    let cache = cache(&quiet_host())?;
    let image = image::find(&cache, system).map_err(unable)?;
    let zfs = image::find_zfs(&cache, &image).map_err(unable)?;
    Ok(SystemImage {
        postgresql: postgresql::find(&cache, system).map_err(unable)?,
        system,
        image,
        zfs,
    })
}

/// Carries out `stackrace lab build`; gives its exit code.
pub(super) fn build(setting: &Setting, asked: &LabBuild) -> Result<u8, Failure> {
    let systems = all(&asked.systems)?;
    let host = quiet_host();
    let cache = cache(&host)?;
    std::fs::create_dir_all(&cache.dir).map_err(|error| {
        Failure::refused(format!(
            "cannot make {}: {error}",
            cache.dir.shown(),
            error = error.in_words()
        ))
    })?;
    let interrupt = Arc::new(Interrupt::default());
    catch_interrupt(&interrupt, "what was made is removed", LEFT)?;
    let built = temporary::work(&setting.session, &host, |journal, id| {
        let builder = Builder {
            stopped: &|| interrupt.raised(),
            host: &host,
            journal,
            cache: &cache,
            mark: id,
        };
        for system in systems {
            setting.remark(&format!("{system}: root file system and kernel …"));
            let image = builder.image(system).map_err(unable)?;
            print(&line(system.name, &image));
            if asked.zfs {
                setting.remark(&format!("{system}: ZFS modules …"));
                let zfs = builder.zfs(system, &image).map_err(unable)?;
                print(&line(system.name, &zfs));
            }
            if asked.postgresql {
                setting.remark(&format!("{system}: PostgreSQL …"));
                let postgresql = builder.postgresql(system, &image).map_err(unable)?;
                print(&line(system.name, &postgresql));
            }
        }
        Ok(0)
    });
    match built {
        Err(failure) if interrupt.raised() => {
            error(&failure.render());
            Ok(INTERRUPTED)
        }
        built => built,
    }
}

/// `debian-13        debian-13-57ab01c9f3d2, 312 MB, Linux 6.12.57+deb13-amd64, /var/…`.
fn line(what: &str, image: &Image) -> String {
    format!(
        "{what:<15}  {}, {}, Linux {}, {}\n",
        image.name(),
        unit::bytes(image.bytes()),
        image.kernel(),
        image.dir().shown()
    )
}

fn stocked(stocked: &Stocked) -> String {
    match stocked {
        Stocked::Used(system, image) => line(system.name, image),
        Stocked::Spare(image) => line("spare", image),
        Stocked::Unneeded(image) => line("unneeded", image),
        Stocked::Damaged(dir) => format!("{:<15}  {}\n", "damaged", dir.shown()),
    }
}

/// Carries out `stackrace lab list`; gives its exit code.
pub(super) fn list(setting: &Setting) -> Result<u8, Failure> {
    let cache = cache(&quiet_host())?;
    let stock = image::stock(&cache);
    let mut text: String = stock.iter().map(stocked).collect();
    for system in system::ALL {
        let dir = cache.dir_of(system);
        if !stock.iter().any(|stocked| stocked.dir() == dir) {
            let what = system.name;
            text.push_str(&format!("{what:<15}  not built: {}\n", system.build()));
        }
    }
    text.push_str(&added_lines());
    for machine in temporary::dirs(&setting.session)? {
        for dir in machine::dirs_in(&machine) {
            let state = match Journal::look(&machine.join("journal.jsonl")) {
                // A journal that can be locked belongs to a process that is gone.
                Ok(_) => format!("left behind, `{}` removes it", again(&["clean"])),
                Err(_) => "running".to_owned(),
            };
            text.push_str(&format!(
                "{:<15}  {}, {state}, {}\n",
                "machine",
                unit::bytes(machine::bytes_in(&dir)),
                dir.shown()
            ));
        }
    }
    if stock
        .iter()
        // Advice only where there is something to do.
        .any(|stocked| matches!(stocked, Stocked::Unneeded(_) | Stocked::Damaged(_)))
    {
        text.push_str("what is unneeded or damaged, `stackrace lab clean` removes\n");
    }
    say(&text);
    Ok(0)
}

/// A line for each system that was added; every image is read.
fn added_lines() -> String {
    let Ok(dir) = own_dir() else {
        return String::new();
    };
    let lines = added::names(&dir).into_iter().map(|name| {
        let found = added::find(&dir, &name);
        let whole = found.and_then(|found| match found {
            Some(system) => system.verify().map(|()| system),
            None => Err(AddedError::Damaged(name.clone()).into()),
        });
        match whole {
            Ok(system) => added_line(&system),
            Err(error) => format!("{name:<15}  added, {error}; {}\n", error.next()),
        }
    });
    lines.collect()
}

/// `freebsd-14       freebsd-14-57ab01c9f3d2, 4.2 GB, FreeBSD 14.1-RELEASE amd64, added, /var/…`.
pub(super) fn added_line(system: &AddedSystem) -> String {
    let about = &system.about;
    format!(
        "{:<15}  {}, {}, {}, added, {}\n",
        about.name,
        system.image_name(),
        unit::bytes(about.bytes),
        about.described,
        system.dir().shown()
    )
}

/// Carries out `stackrace lab clean`; gives its exit code.
pub(super) fn remove(names: &[String]) -> Result<u8, Failure> {
    let cache = cache(&quiet_host())?;
    let known = added();
    // A damaged one, too: it goes by its name.
    let (added, names): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| known.contains(name));
    let systems = all(&names)?;
    for name in &added {
        remove_dir(&added::dir_of(&own_dir()?, name))?;
        print(&format!("removed {name}, which was added\n"));
    }
    let mut stock = image::stock(&cache);
    stock.retain(|stocked| match stocked {
        // An image that is in use goes only by its name.
        Stocked::Used(system, _) => systems.contains(system),
        // No image is left that could need them.
        Stocked::Spare(_) => system::ALL.iter().all(|system| systems.contains(&system)),
        Stocked::Unneeded(_) | Stocked::Damaged(_) => true,
    });
    for each in &stock {
        remove_dir(each.dir())?;
        print(&format!("removed {}", stocked(each)));
    }
    if stock.is_empty() && added.is_empty() {
        print("nothing to remove\n");
    }
    Ok(0)
}

fn remove_dir(dir: &Path) -> Result<(), Failure> {
    std::fs::remove_dir_all(dir).map_err(|error| {
        Failure::internal(format!(
            "cannot remove {}: {error}",
            dir.shown(),
            error = error.in_words()
        ))
    })
}

fn quiet_host() -> LocalHost {
    LocalHost::new(Arc::new(|_| ()))
}
