//! Trees invented after real ones: how many files of which kinds and sizes, in what directories.
//!
//! Sizes are not drawn: of `n` files of a kind, file `i` has the size below which a share of
//! `(i + 0.5) / n` of the kind lies. So entries and bytes are the same for every seed; the seed
//! says which file has which size, lies where and holds what. All numbers are in [`ALL`].
//!
//! Units: bytes; shares of one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::build::Fill;
use super::entry::{EntryKind, TreeEntry};
use crate::spec::Content;
use stackrace_system::draw::Draw;

/// Purpose of the seed for a profile.
const PROFILE: u64 = 0x7072_6f66_0000_0000;
/// Photos of one import.
const IMPORT: u64 = 25;
/// Messages of one mailbox.
const MAILBOX: u64 = 500;
/// Most files or times the size a profile is scaled to.
pub const SCALE_MAX: f64 = 10.0;

/// A tree to invent after a real one.
#[derive(Debug)]
pub struct Profile {
    /// The word in a study.
    pub name: &'static str,
    /// Description, one clause.
    pub summary: &'static str,
    /// Origin of the numbers.
    pub source: &'static str,
    /// The kinds of file in it.
    pub parts: &'static [ProfilePart],
    /// Directories of the nested tree, if files lie in one.
    pub directories: u64,
    /// Components of the deepest of them.
    pub depth_max: usize,
    /// Symbolic links in the nested tree, to files of it.
    pub symlinks: u64,
    /// The quantity that the scale multiplies.
    pub scales: Scales,
}

/// The quantity that a scale multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    /// The number of files of each kind (at least 1), of directories and links; sizes stay.
    Files,
    /// The size of each file; their number stays.
    Sizes,
}

/// One kind of file.
#[derive(Debug)]
pub struct ProfilePart {
    /// Kind of the files, in words.
    pub what: &'static str,
    /// Number of files.
    pub files: u64,
    /// Place of the files.
    pub home: Placement,
    /// Beginning of their names; a number and `ending` follow.
    pub prefix: &'static str,
    /// End of their names.
    pub ending: &'static str,
    /// Permission bits.
    pub mode: u32,
    /// Share of files below a size, and the size, bytes; straight on logarithmic paper between.
    pub sizes: &'static [(f64, u64)],
    /// Size before over size after compression.
    pub compress_ratio: f64,
}

/// The place of the files of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// One directory; the empty one is the root.
    At(&'static str),
    /// The directory of their import, `below/year/month/day/import`, 25 photos each.
    Dated {
        /// The part of the library.
        below: &'static str,
        /// Files that belong to one photo.
        per_photo: u64,
        /// Each photo has a directory of its own in that of its import.
        own: bool,
    },
    /// Anywhere in the nested tree.
    Nested,
    /// The directory `cur` of a mailbox, 500 messages each.
    Mailbox,
}

const fn at(below: &'static str) -> Placement {
    Placement::At(below)
}

const fn photo(below: &'static str, per_photo: u64, own: bool) -> Placement {
    Placement::Dated {
        below,
        per_photo,
        own,
    }
}

/// One line of the table.
#[expect(clippy::too_many_arguments, reason = "a line of a table of constants")]
const fn part(
    what: &'static str,
    files: u64,
    home: Placement,
    prefix: &'static str,
    ending: &'static str,
    mode: u32,
    compress_ratio: f64,
    sizes: &'static [(f64, u64)],
) -> ProfilePart {
    ProfilePart {
        what,
        files,
        home,
        prefix,
        ending,
        mode,
        sizes,
        compress_ratio,
    }
}

/// Every profile, alphabetical.
#[rustfmt::skip]
pub const ALL: &[Profile] = &[
    Profile {
        name: "mail",
        summary: "20,000 messages in the maildirs of 40 mailboxes",
        source: "maildir as Dovecot lays it out; sizes assumed: half below 8 KB, one in a hundred \
                 above 2 MB (attachments in base64)",
        parts: &[
            part("messages", 20_000, Placement::Mailbox, "1385000000.M", ".host:2,S", 0o600, 1.5,
                &[(0.0, 700), (0.25, 3_000), (0.5, 8_000), (0.75, 30_000), (0.9, 120_000),
                  (0.99, 2_000_000), (1.0, 20_000_000)]),
        ],
        directories: 0, depth_max: 0, symlinks: 0, scales: Scales::Files,
    },
    Profile {
        name: "os-image",
        summary: "the files of an operating system: programs, libraries, headers, manuals",
        source: "a quarter of /usr without /usr/local of a Debian 12 machine with compilers, scanned \
                 2026-11-21: 114,376 files, 5.7 GB, 15,517 directories, 5,509 links; ratios by zlib at \
                 level 1 in blocks of 128 KiB",
        parts: &[
            part("text and other", 6_470, Placement::Nested, "", ".txt", 0o644, 2.9,
                &[(0.0, 0), (0.1, 232), (0.25, 651), (0.5, 1_338), (0.75, 3_477), (0.9, 14_870),
                  (0.97, 71_320), (0.99, 268_836), (0.999, 3_018_739), (1.0, 145_959_730)]),
            part("sources and headers", 8_175, Placement::Nested, "", ".h", 0o644, 3.7, SOURCES),
            part("packed: manuals, pictures", 7_275, Placement::Nested, "", ".gz", 0o644, 1.06,
                &[(0.0, 0), (0.1, 468), (0.25, 741), (0.5, 1_192), (0.75, 1_783), (0.9, 3_676),
                  (0.97, 15_737), (0.99, 78_482), (0.999, 1_542_995), (1.0, 70_311_666)]),
            part("objects and data", 5_983, Placement::Nested, "", ".bin", 0o644, 2.8,
                &[(0.0, 8), (0.1, 650), (0.25, 1_979), (0.5, 5_044), (0.75, 16_153), (0.9, 50_761),
                  (0.97, 156_451), (0.99, 370_975), (0.999, 6_030_624), (1.0, 31_252_892)]),
            part("programs and libraries", 691, Placement::Nested, "", "", 0o755, 2.3,
                &[(0.0, 496), (0.1, 14_504), (0.25, 18_504), (0.5, 35_240), (0.75, 113_608),
                  (0.9, 544_176), (0.97, 2_995_512), (0.99, 25_762_552), (0.999, 117_308_864),
                  (1.0, 296_700_760)]),
        ],
        directories: 3_879, depth_max: 12, symlinks: 1_377, scales: Scales::Files,
    },
    Profile {
        name: "photo-library",
        summary: "1,000 photos in a library: originals, previews, thumbnails, versions, databases",
        source: "directories as Aperture 3 lays out a library; sizes assumed for cameras of 10 to 16 \
                 megapixels",
        parts: &[
            part("originals", 1_000, photo("Masters", 1, false), "IMG_", ".JPG", 0o644, 1.0,
                &[(0.0, 1_500_000), (0.5, 5_800_000), (0.9, 12_000_000), (1.0, 28_000_000)]),
            part("previews", 1_000, photo("Previews", 1, true), "preview_", ".jpg", 0o644, 1.0,
                &[(0.0, 150_000), (0.5, 700_000), (0.9, 1_600_000), (1.0, 3_000_000)]),
            part("thumbnails", 2_000, photo("Thumbnails", 2, true), "thumb_", ".jpg", 0o644, 1.0,
                &[(0.0, 4_000), (0.5, 25_000), (0.9, 120_000), (1.0, 250_000)]),
            part("versions", 2_000, photo("Database/Versions", 2, true), "Version-", ".apversion",
                0o644, 3.0, &[(0.0, 2_000), (0.5, 5_000), (0.9, 12_000), (1.0, 60_000)]),
            part("databases", 6, at("Database/apdb"), "Library-", ".apdb", 0o644, 2.5,
                &[(0.0, 2_000_000), (0.5, 30_000_000), (1.0, 200_000_000)]),
            part("property lists", 20, at("Database/Albums"), "", ".plist", 0o644, 4.0,
                &[(0.0, 400), (1.0, 40_000)]),
        ],
        directories: 0, depth_max: 0, symlinks: 0, scales: Scales::Files,
    },
    Profile {
        name: "source-code",
        summary: "9,000 source files, texts and built objects in a tree of 900 directories",
        source: "sizes and ratio of the 32,700 source files, sizes of the texts, of the scan of \
                 os-image",
        parts: &[
            part("sources", 8_000, Placement::Nested, "", ".c", 0o644, 3.7, SOURCES),
            part("texts", 900, Placement::Nested, "", ".md", 0o644, 2.9,
                &[(0.0, 0), (0.1, 232), (0.25, 651), (0.5, 1_338), (0.75, 3_477), (0.9, 14_870),
                  (0.97, 71_320), (1.0, 268_836)]),
            part("packed objects of the history", 100, at("history"), "pack-", ".pack", 0o444, 1.0,
                &[(0.0, 1_000), (0.5, 40_000), (0.9, 2_000_000), (1.0, 60_000_000)]),
        ],
        directories: 900, depth_max: 8, symlinks: 20, scales: Scales::Files,
    },
    Profile {
        name: "ten-large",
        summary: "ten files of 100 MB to 1 GB that do not compress",
        source: "100 MB, 200 MB … 1 GB",
        parts: &[
            part("large files", 10, at(""), "large-", ".mov", 0o644, 1.0, &[
                (0.05, 100_000_000), (0.15, 200_000_000), (0.25, 300_000_000), (0.35, 400_000_000),
                (0.45, 500_000_000), (0.55, 600_000_000), (0.65, 700_000_000), (0.75, 800_000_000),
                (0.85, 900_000_000), (0.95, 1_000_000_000)]),
        ],
        directories: 0, depth_max: 0, symlinks: 0, scales: Scales::Sizes,
    },
];

/// Sizes of source files as scanned.
const SOURCES: &[(f64, u64)] = &[
    (0.0, 0),
    (0.1, 621),
    (0.25, 1_462),
    (0.5, 3_495),
    (0.75, 9_941),
    (0.9, 28_094),
    (0.97, 71_706),
    (0.99, 128_023),
    (0.999, 486_482),
    (1.0, 6_103_911),
];

/// The profile of that name.
pub fn by_name(name: &str) -> Option<&'static Profile> {
    ALL.iter().find(|profile| profile.name == name)
}

impl ProfilePart {
    /// The size below which a share of the files lies, bytes.
    fn size(&self, share: f64) -> f64 {
        let above = self.sizes.iter().position(|(below, _)| *below >= share);
        let above = above.unwrap_or(self.sizes.len() - 1);
        let (right, high) = self.sizes[above];
        let (left, low) = self.sizes[above.saturating_sub(1)];
        // Below the first point of the table there is nothing to interpolate.
        if right <= left {
            return high as f64;
        }
        let part = ((share - left) / (right - left)).clamp(0.0, 1.0);
        // Straight in the logarithm; one more and one less, because of files that are empty.
        let (low, high) = ((low as f64).ln_1p(), (high as f64).ln_1p());
        (low + (high - low) * part).exp_m1()
    }
}

impl Profile {
    /// The tree at a scale (above 0, at most [`SCALE_MAX`]), sorted by path, which puts parents
    /// before their children, and what its files are filled with.
    pub fn tree(&self, scale: f64, seed: u64) -> (Vec<TreeEntry>, Fill) {
        let mut planter = TreeBuilder {
            random: Draw::new(seed, PROFILE),
            entries: BTreeMap::new(),
            nested: vec![PathBuf::new()],
        };
        let (count, size) = match self.scales {
            Scales::Files => (scale, 1.0),
            Scales::Sizes => (1.0, scale),
        };
        planter.nest(times(self.directories, count), self.depth_max);
        let mut files = Vec::new();
        for (number, part) in (0..).zip(self.parts) {
            planter.plant(part, times(part.files, count), size, number, &mut files);
        }
        planter.link(times(self.symlinks, count), &files);
        let contents = self.parts.iter().map(|part| match part.compress_ratio {
            ratio if ratio <= 1.0 => Content::Random,
            ratio => Content::Shaped {
                ratio,
                duplicates: 0.0,
            },
        });
        let which = planter.entries.values().map(|(_, _, part)| *part).collect();
        let fill = Fill {
            contents: contents.collect(),
            which,
        };
        let entry = |(path, (kind, mode, _))| TreeEntry { path, kind, mode };
        (planter.entries.into_iter().map(entry).collect(), fill)
    }
}

/// Scales a number; at least one, unless the number is 0.
fn times(number: u64, scale: f64) -> u64 {
    ((number as f64 * scale).round() as u64).max(u64::from(number > 0))
}

/// A tree in the making.
struct TreeBuilder {
    random: Draw,
    /// Kind of each entry, its mode, and the position of its part.
    entries: BTreeMap<PathBuf, (EntryKind, u32, u8)>,
    /// The directories of the nested tree, its root included.
    nested: Vec<PathBuf>,
}

impl TreeBuilder {
    /// Each directory lies in any of those above the depth limit.
    fn nest(&mut self, directories: u64, depth_max: usize) {
        // Directories may also lie in the root itself.
        let mut parents = vec![0];
        for number in 0..directories {
            let parent = parents[self.random.below(parents.len() as u64) as usize];
            let name = self.word(&format!("-{number:x}"));
            let path = self.nested[parent].join(name);
            if path.components().count() < depth_max {
                parents.push(self.nested.len());
            }
            self.directory(&path);
            self.nested.push(path);
        }
    }

    /// Four to twelve letters and an end that makes them unique.
    fn word(&mut self, end: &str) -> String {
        let length = 4 + self.random.below(9);
        let letter = |_| char::from(b'a' + self.random.below(26) as u8);
        (0..length).map(letter).chain(end.chars()).collect()
    }

    fn directory(&mut self, path: &Path) {
        let mut path = path;
        while !path.as_os_str().is_empty() && !self.entries.contains_key(path) {
            let entry = (EntryKind::Directory, 0o755, 0);
            self.entries.insert(path.to_path_buf(), entry);
            path = path.parent().unwrap_or(Path::new(""));
        }
    }

    /// Makes `count` files of a part.
    fn plant(
        &mut self,
        part: &ProfilePart,
        count: u64,
        scale: f64,
        number: u8,
        files: &mut Vec<PathBuf>,
    ) {
        // The quantiles of the table, so that a small tree has its spread, too. Only the order is
        // drawn.
        let size = |index| {
            let size = part.size((index as f64 + 0.5) / count as f64) * scale;
            size.round() as u64
        };
        let mut sizes: Vec<u64> = (0..count).map(size).collect();
        // Fisher and Yates: each order is equally likely.
        for last in (1..sizes.len()).rev() {
            let other = self.random.below(last as u64 + 1) as usize;
            sizes.swap(last, other);
        }
        for (index, bytes) in (0..).zip(sizes) {
            let home = self.home(part.home, index);
            let mut name = match part.home {
                Placement::Nested => self.word(&format!("-{index:x}")),
                _ => format!("{}{index:06}", part.prefix),
            };
            name.push_str(part.ending);
            if part.home == Placement::Mailbox {
                // As Dovecot does, so that the size is known without looking.
                name = name.replace(":2,S", &format!(",S={bytes}:2,S"));
            }
            self.directory(&home);
            let path = home.join(name);
            if part.home == Placement::Nested {
                files.push(path.clone());
            }
            let entry = (EntryKind::File { bytes }, part.mode, number);
            self.entries.insert(path, entry);
        }
    }

    fn home(&mut self, home: Placement, index: u64) -> PathBuf {
        match home {
            Placement::At(below) => below.into(),
            Placement::Dated {
                below,
                per_photo,
                own,
            } => {
                let photo = index / per_photo;
                let import = photo / IMPORT;
                // An import every eleven days of a calendar of 30 days a month.
                let day = import * 11;
                let (year, month, day) = (2004 + day / 360, day / 30 % 12 + 1, day % 30 + 1);
                let mut path = PathBuf::from(format!(
                    "{below}/{year}/{month:02}/{day:02}/{year}{month:02}{day:02}-{:06}",
                    120_000 + import % 60
                ));
                if own {
                    path.push(format!("photo-{photo:016x}"));
                }
                path
            }
            Placement::Nested => {
                let number = self.random.below(self.nested.len() as u64) as usize;
                self.nested[number].clone()
            }
            Placement::Mailbox => {
                let maildir = format!("user-{:03}/Maildir", index / MAILBOX);
                // A maildir has three directories; what has been read lies in `cur`.
                for beside in ["new", "tmp"] {
                    self.directory(&Path::new(&maildir).join(beside));
                }
                Path::new(&maildir).join("cur")
            }
        }
    }

    /// Symbolic links in the nested tree, to files of it.
    fn link(&mut self, count: u64, files: &[PathBuf]) {
        for number in 0..count {
            let home = self.home(Placement::Nested, 0);
            let file = self.random.below(files.len() as u64) as usize;
            let up = home.components().map(|_| OsStr::new(".."));
            let target = up.collect::<PathBuf>().join(&files[file]);
            let path = home.join(self.word(&format!("-{number:x}.link")));
            self.entries
                .insert(path, (EntryKind::Symlink { target }, 0o777, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::entry::check;
    use crate::tree::total_bytes;

    /// Entries and bytes at a scale, whatever the seed; those of scale 1 are in the documentation
    /// of the workloads.
    #[test]
    fn entries_and_bytes_are_those_documented_for_every_seed() {
        let found: Vec<_> = ALL
            .iter()
            .flat_map(|profile| [(profile, 1.0), (profile, 0.01)])
            .map(|(profile, scale)| {
                let (entries, _) = profile.tree(scale, 1);
                let (other, _) = profile.tree(scale, 2);
                let totals = (entries.len(), total_bytes(&entries));
                assert_eq!(totals, (other.len(), total_bytes(&other)));
                assert_ne!(entries, other, "{}: the seed changes nothing", profile.name);
                (profile.name, scale, totals.0, totals.1)
            })
            .collect();
        let documented = [
            ("mail", 1.0, 20_200, 3_077_643_517),
            ("mail", 0.01, 205, 29_932_868),
            ("os-image", 1.0, 33_850, 1_720_409_074),
            ("os-image", 0.01, 340, 5_380_123),
            ("photo-library", 1.0, 9_421, 8_131_418_129),
            ("photo-library", 0.01, 115, 107_668_535),
            ("source-code", 1.0, 9_921, 316_249_685),
            ("source-code", 0.01, 101, 1_101_325),
            ("ten-large", 1.0, 10, 5_500_000_000),
            ("ten-large", 0.01, 10, 55_000_000),
        ];
        assert_eq!(found, documented);
    }

    #[test]
    fn a_profile_is_a_tree_that_can_be_built_the_same_each_time() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
        for profile in ALL {
            let (entries, fill) = profile.tree(0.05, 7);
            assert!((&entries, &fill) == (&profile.tree(0.05, 7).0, &profile.tree(0.05, 7).1));
            check(&entries, Path::new("/")).unwrap();
            let depth = entries.iter().map(|e| e.path.components().count()).max();
            assert!(depth <= Some(profile.depth_max.max(7) + 1), "{depth:?}");
        }
    }

    #[test]
    fn each_kind_of_file_has_its_number_its_sizes_and_its_content() {
        for profile in ALL {
            let (entries, fill) = profile.tree(1.0, 3);
            for (number, part) in profile.parts.iter().enumerate() {
                let of = |at: &usize| usize::from(fill.which[*at]) == number;
                let mut sizes: Vec<u64> = (0..entries.len())
                    .filter(of)
                    .filter_map(|at| match entries[at].kind {
                        EntryKind::File { bytes } => Some(bytes),
                        _ => None,
                    })
                    .collect();
                sizes.sort_unstable();
                assert_eq!(sizes.len() as u64, part.files, "{}", part.what);
                let (least, most) = (part.sizes[0].1, part.sizes[part.sizes.len() - 1].1);
                assert!(sizes.iter().all(|size| (least..=most).contains(size)));
                let known = part.sizes.iter().find(|(share, _)| *share == 0.5);
                if let Some((_, median)) = known {
                    let found = sizes[sizes.len() / 2] as f64;
                    let near = (found / *median as f64 - 1.0).abs();
                    assert!(near < 0.2 || sizes.len() < 20, "{}: {found}", part.what);
                }
            }
        }
    }

    #[test]
    fn a_scale_changes_the_number_of_files_or_their_sizes() {
        let large = by_name("ten-large").unwrap();
        let sizes = |scale| total_bytes(&large.tree(scale, 0).0);
        assert_eq!((sizes(1.0), sizes(0.01)), (5_500_000_000, 55_000_000));
        assert_eq!(large.tree(0.01, 0).0.len(), 10);
        assert!(by_name("nothing").is_none());
    }
}
