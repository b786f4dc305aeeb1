//! A file system that is in use: filled to a level with files that stay, and aged by rewriting and deleting them.
//!
//! Both layers stand on a file system that the stack makes, and hand it on. What they write lies beside the
//! directory of the workload, and ends with the file system. The same seed gives the same files, byte for byte.

mod profile;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod work;

use profile::PROFILE;
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    Gives, GivesKind, Layer, LayerError, LayerKind, Setup, StandingLayer, Takes, filesystem,
};
use stackrace_machine::host::{Host, Needs, argv};
use stackrace_system::extents::pieces_of;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use work::{Aged, AskedAge, Room};

/// Fullest level: beyond it no trial has room, and file systems keep some for themselves.
const FULLEST: f64 = 0.98;

/// Files whose extents are counted at most: the rest is like them.
const LOOKED_AT: usize = 20_000;

/// How far the level may be from what was asked, as a part of the file system: tables of its own take room too.
const OFF: f64 = 0.05;

const TO: SettingDoc = SettingDoc::share(
    "to",
    "80 %",
    "How full the file system is, as df(1) counts, before the first trial.",
);

const WITHIN: SettingDoc = SettingDoc::time(
    "within",
    "1 h",
    "Longest time; what cannot be reached in it is refused some seconds after the beginning.",
);

/// The layer `fill` of a study.
pub(super) const FILL: LayerKind = LayerKind {
    name: "fill",
    summary: "A file system that is filled to a level with files that stay.",
    settings: &[TO, PROFILE.doc, WITHIN],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "fill = { to = \"80 %\" }",
    parse: |settings| parse(&FILL, settings, 0.0),
    shapes: &[&[
        "loop = { size = \"1 GiB\" }",
        "xfs = {}",
        "fill = { to = \"50 %\", profile = \"home-2004\" }",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::FILL,
    ..LayerKind::EMPTY
};

/// The layer `age` of a study.
pub(super) const AGE: LayerKind = LayerKind {
    name: "age",
    summary: "A file system that is filled, and aged by files that are rewritten, deleted and made anew.",
    settings: &[
        SettingDoc::number(
            "written",
            "5",
            "How many times its capacity is written after it was filled.",
        ),
        TO,
        PROFILE.doc,
        WITHIN,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "age = { written = 5, to = \"80 %\" }",
    parse: |settings| {
        let times = settings.number("written")?;
        if !(times > 0.0 && times <= 1000.0) {
            return Err(settings.refuse(
                "written",
                format!("a file system is not aged by writing {times} times its capacity"),
                "write a number up to 1000, or take fill",
            ));
        }
        // With no files there is nothing to rewrite.
        if settings.share("to")? == 0.0 {
            return Err(settings.refuse(
                "to",
                "an empty file system is not aged",
                "write how full it is, like \"80 %\"",
            ));
        }
        parse(&AGE, settings, times)
    },
    shapes: &[&[
        "loop = { size = \"1 GiB\" }",
        "ext4 = {}",
        "age = { written = 2, profile = \"images\" }",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::AGE,
    ..LayerKind::EMPTY
};

struct Ageing {
    kind: &'static LayerKind,
    asked: AskedAge,
    profile: &'static str,
}

fn parse(
    kind: &'static LayerKind,
    settings: &Settings,
    times: f64,
) -> Result<Box<dyn Layer>, Refusal> {
    // Nothing is full to the last block: the file system keeps some.
    let to = settings.share("to")?;
    if to > FULLEST {
        return Err(settings.refuse(
            "to",
            format!(
                "a file system that is {} full has no room for a trial",
                percent(to)
            ),
            format!("write at most \"{}\"", percent(FULLEST)),
        ));
    }
    // Kept as its word too, which is all that a plan says of it.
    let profile = settings.choice(PROFILE)?;
    let asked = AskedAge {
        to,
        times,
        profile,
        within: Duration::from_nanos(settings.lasting_ns("within")?),
    };
    Ok(Box::new(Ageing {
        kind,
        asked,
        profile: PROFILE.word(profile),
    }))
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0).replace(".0 %", " %")
}

/// What lies there now.
fn described(asked: &AskedAge, aged: &Aged, room: Room) -> Vec<Fact> {
    // From what was written, and not from the profile: small file systems have no large files.
    let mut sizes: Vec<u64> = aged.files.iter().map(|file| file.bytes).collect();
    sizes.sort_unstable();
    let bytes: u64 = sizes.iter().sum();
    let count = sizes.len().max(1) as u64;
    let middle = sizes.get(sizes.len() / 2).copied().unwrap_or_default();
    let mut facts = vec![
        Fact::new(
            "full",
            format!("{} of {}", percent(room.full()), unit::bytes(room.all)),
        ),
        Fact::new(
            "files",
            format!(
                "{}, median {}, mean {}",
                sizes.len(),
                unit::bytes(middle),
                unit::bytes(bytes / count)
            ),
        ),
        Fact::new("content", aged.digest()),
    ];
    if asked.times > 0.0 {
        let times = aged.written.saturating_sub(bytes) as f64 / room.all.max(1) as f64;
        facts.push(Fact::new(
            "written",
            format!("{times:.1} times the capacity"),
        ));
    }
    facts.extend(pieces(aged));
    facts
}

/// In how many pieces the files lie; `None` where the file system does not tell.
fn pieces(aged: &Aged) -> Option<Fact> {
    let each = aged.files.iter().take(LOOKED_AT);
    // One that does not tell tells of no file.
    let counted = each.map(|file| pieces_of(&aged.path(file)).ok());
    let mut counted: Vec<u64> = counted.collect::<Option<_>>()?;
    counted.sort_unstable();
    let most = counted.last()?;
    let at = |part: usize| counted[(counted.len() - 1) * part / 100];
    let mean = counted.iter().sum::<u64>() as f64 / counted.len() as f64;
    Some(Fact::new(
        "pieces of a file",
        format!(
            "mean {mean:.2}, median {}, 99 % up to {}, most {most}",
            at(50),
            at(99)
        ),
    ))
}

/// How large the pieces of free space are, as the tools of ext4 and XFS tell; `None` of other file systems, and
/// without the tools.
fn free_space(host: &dyn Host, root: &Path, block: u64) -> Option<Fact> {
    let mount = host.mount_of(root).ok()?;
    // Both only read, also of what is mounted.
    let ask: Vec<OsString> = match &*mount.file_system {
        "ext2" | "ext3" | "ext4" => argv(["e2freefrag"]),
        "xfs" => argv(["xfs_db", "-r", "-c", "freesp -s"]),
        _ => return None,
    };
    let ask = [ask, vec![mount.source]].concat();
    let told = host.exec(&ask).ok()?.stdout;
    let mean = mean_free(&told, block)?;
    Some(Fact::new(
        "free space",
        format!("in pieces of mean {}", unit::bytes(mean)),
    ))
}

/// Bytes of a mean piece of free space: `Avg. free extent: 12 KB` of e2freefrag(8), `average free extent size
/// 12.5` of xfs_db(8), in blocks of the file system.
fn mean_free(told: &str, block: u64) -> Option<u64> {
    told.lines().find_map(|line| {
        if let Some(rest) = line.trim().strip_prefix("Avg. free extent:") {
            let kib: u64 = rest.trim().strip_suffix("KB")?.trim().parse().ok()?;
            return kib.checked_mul(1024);
        }
        let blocks: f64 = line
            .trim()
            .strip_prefix("average free extent size")?
            .trim()
            .parse()
            .ok()?;
        Some((blocks * block as f64) as u64)
    })
}

impl Layer for Ageing {
    fn of_kind(&self) -> &'static LayerKind {
        self.kind
    }

    fn describe_asked(&self) -> String {
        let full = format!(
            "{} full of files as in {}",
            percent(self.asked.to),
            self.profile
        );
        match self.asked.times > 0.0 {
            true => format!(
                "{full}, its capacity written {} times since",
                self.asked.times
            ),
            false => full,
        }
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        let mut kinds = below.iter().map(|layer| layer.kind());
        if let Some(other) = kinds.find(|kind| [FILL.name, AGE.name].contains(kind)) {
            return Err(format!(
                "{other} below fills the same file system: leave one of the two out"
            ));
        }
        filesystem::not_theirs(self.kind(), below)
    }

    fn returns(&self) -> bool {
        true
    }

    /// What was written back before the first trial is still there.
    fn bring_back(
        &self,
        _setup: &mut Setup<'_>,
        below: Gives,
    ) -> Result<StandingLayer, LayerError> {
        Ok(StandingLayer::new(self.kind(), Vec::new(), below))
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            ..Needs::default()
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let root = filesystem::own_root(below)?;
        let host = setup.host();
        if !host.is_here() {
            return Err(LayerError::refused(
                format!("{} works on the machine of the workload alone", self.kind()),
                format!(
                    "put {} above the layer that reaches the other machine",
                    self.kind()
                ),
            ));
        }
        // It ends with the file system that it lies in.
        let directory = root.join("filled");
        host.create_dir(&directory)?;
        let mut facts = vec![Fact::new("profile", self.asked.profile.source)];
        // A plan imagines the directory, and nothing is written there.
        if let Some(held) = host.hold_dir(&directory)? {
            let stopped = || setup.is_stopped();
            let aged = Aged::made(held.path(), &self.asked, setup.seed(), &stopped)?;
            let room = Room::of(held.path())?;
            let off = (room.full() - self.asked.to).abs();
            if off > OFF && !aged.files.is_empty() {
                return Err(LayerError::refused(
                    format!(
                        "the file system is {} full although {} was asked for",
                        percent(room.full()),
                        percent(self.asked.to)
                    ),
                    "take a larger one: in a small one its own tables take much of the room",
                ));
            }
            // Counted when all is written back: before, no file has its place yet.
            facts.extend(described(&self.asked, &aged, room));
            facts.extend(free_space(host, &root, room.block));
        }
        Ok(StandingLayer::new(self.kind(), facts, Gives::Mounted(root)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};

    #[test]
    fn what_cannot_be_reached_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("fill = { to = \"100 %\" }", "100 % full has no room"),
            ("age = { written = 0 }", "not aged by writing 0"),
            ("age = { written = 5, to = \"99 %\" }", "99 % full"),
            ("fill = { profile = \"web\" }", "web"),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
        let disk = "loop = { size = \"1 GiB\" }";
        let twice = [disk, "ext4 = {}", "age = {}", "fill = {}"].map(layer);
        let (at, why) = Stack::new(twice.into()).err().unwrap();
        assert_eq!(at, 3);
        assert!(why.starts_with("age below fills"), "{why}");
        let theirs = ["dir = { path = \"/srv\" }", "fill = {}"].map(layer);
        assert_eq!(Stack::new(theirs.into()).err().unwrap().0, 1);
    }

    /// Lines of e2freefrag of e2fsprogs 1.47 and of xfs_db of xfsprogs 6.1.
    #[test]
    fn the_tools_of_file_systems_tell_how_large_pieces_of_free_space_are() {
        let ext = "Min. free extent: 4 KB \nMax. free extent: 8 KB\nAvg. free extent: 6 KB\n";
        assert_eq!(mean_free(ext, 1024), Some(6144));
        let xfs = "total free extents 10\ntotal free blocks 25\naverage free extent size 2.5\n";
        assert_eq!(mean_free(xfs, 4096), Some(10240));
        assert_eq!(mean_free(xfs, 1024), Some(2560));
        assert_eq!(mean_free("nothing", 4096), None);
    }
}
