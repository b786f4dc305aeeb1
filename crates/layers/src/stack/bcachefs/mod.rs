//! Bcachefs on one or more devices, its options read back from the superblock.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, AloneOrAmount, Amount, OneOf, Word},
    Words,
};
use stackrace_foundation::foundation::{
    Gives, GivesKind, Layer, LayerError, LayerKind, Memory, Setup, StandingLayer, Takes,
    filesystem, options,
};
use stackrace_machine::host::imagined::{Signature, Tool, World, complained, last, said, word};
use stackrace_machine::host::{Host, Needs, Output, Package, argv};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The layer `bcachefs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "bcachefs",
    summary: "Bcachefs on one or more devices, where kernel and tools have it.",
    settings: &[
        SettingDoc::count(
            "replicas",
            "1",
            "On how many devices each block of data and metadata lies.",
        ),
        SettingDoc::choice(
            "compression",
            &["none", "lz4", "gzip", "zstd"],
            "none",
            "How data are compressed.",
        ),
        options::MKFS,
        options::MOUNT,
    ],
    takes: Takes::at_least(1),
    gives: GivesKind::Directory,
    example: "bcachefs = { replicas = 2, compression = \"lz4\" }",
    words: &[&MKFS, &MOUNT],
    parse,
    // Debian 13 lacks the tools: these are Ubuntu's (24.04).
    packages: &[Package {
        only_on: Some("debian-13"),
        pinned: Some([
            "http://archive.ubuntu.com/ubuntu/pool/universe/b/bcachefs-tools/bcachefs-tools_24+really1.3.4-2build2_amd64.deb",
            "351dcfb3c14daf6967fe36bfe5b98742b53515dd2a2339cb0f1fd07d25832334",
        ]),
        ..Package::new("bcachefs-tools", &["bcachefs"])
    }],
    imagined: &[Tool::new("bcachefs", imagined)],
    reads: &[options_of],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// bcachefs(8), "format". Not on the list: what reads files (`--source`), asks for a password
/// (`--encrypted`), or is set by the layer (`--replicas`, `--compression`).
const MKFS: Words = Words {
    tool: "bcachefs format",
    manual: "bcachefs(8)",
    options: &[
        ("--background_compression", Word),
        ("--block_size", Amount),
        ("--btree_node_size", Amount),
        ("--bucket_size", Amount),
        ("--data_checksum", OneOf(CHECKSUMS)),
        ("--data_replicas", Amount),
        ("--discard", Alone),
        ("--encoded_extent_max", Amount),
        ("--errors", OneOf(&["continue", "ro", "panic"])),
        ("--gc_reserve_percent", Amount),
        ("--metadata_checksum", OneOf(CHECKSUMS)),
        ("--metadata_replicas", Amount),
        ("--str_hash", OneOf(&["crc32c", "crc64", "siphash"])),
    ],
};

/// Checksums of bcachefs(8).
const CHECKSUMS: &[&str] = &["none", "crc32c", "crc64", "xxhash"];

/// bcachefs(8), "Mount options". Not on the list: what leaves changes or checks out
/// (`norecovery`, `nochanges`), and what repairs (`fsck`).
const MOUNT: Words = Words {
    tool: "a mount of bcachefs",
    manual: "bcachefs(8)",
    options: &[
        ("background_compression", Word),
        ("btree_node_mem_ptr_optimization", Amount),
        ("compression", Word),
        ("data_checksum", OneOf(CHECKSUMS)),
        ("discard", AloneOrAmount),
        ("errors", OneOf(&["continue", "ro", "panic"])),
        ("journal_flush_delay", Amount),
        ("journal_flush_disabled", AloneOrAmount),
        ("journal_reclaim_delay", Amount),
        ("metadata_checksum", OneOf(CHECKSUMS)),
        ("writeback_timeout", Amount),
    ],
};

struct Bcachefs {
    replicas: usize,
    compression: String,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let replicas = settings.count("replicas")?;
    // The format has room for four (BCH_REPLICAS_MAX).
    if !(1..=4).contains(&replicas) {
        return Err(Refusal::at(
            settings.span_of("replicas"),
            format!("replicas must be between 1 and 4, not {replicas}"),
            "write 1 to 4",
        ));
    }
    Ok(Box::new(Bcachefs {
        replicas: usize::try_from(replicas).unwrap_or(1),
        compression: settings.text("compression")?,
        mkfs: options::mkfs(settings, &MKFS)?,
        mount: options::mount(settings, &MOUNT)?,
    }))
}

impl Bcachefs {
    fn command(&self) -> Vec<String> {
        let mut command = vec![
            "bcachefs".to_string(),
            "format".to_string(),
            format!("--replicas={}", self.replicas),
            format!("--compression={}", self.compression),
        ];
        command.extend(self.mkfs.iter().cloned());
        command
    }

    /// The options in the superblock of the first device.
    fn read_back(&self, host: &dyn Host, device: &Path) -> Result<Vec<Fact>, LayerError> {
        let show = argv(["bcachefs", "show-super"].map(OsStr::new));
        // One device is enough: each member has the options of all.
        let shown = host.must(&[show, vec![device.into()]].concat())?;
        // The superblock, and not the command: an option of the mkfs words may have set the same
        // field again.
        let facts = options_of(&shown.stdout);
        let replicas = self.replicas.to_string();
        for (name, asked) in [
            ("data_replicas", &replicas),
            ("metadata_replicas", &replicas),
            ("compression", &self.compression),
        ] {
            let found = Fact::value_of(&facts, name).unwrap_or("nothing");
            if found != asked {
                return Err(LayerError::refused(
                    format!("the superblock has {name} = {found} although {asked} was asked for"),
                    "",
                ));
            }
        }
        Ok(facts)
    }
}

/// The options `bcachefs show-super` prints, up to the next section; of a choice printed as
/// `none [crc32c] xxhash`, what is chosen.
pub(super) fn options_of(text: &str) -> Vec<Fact> {
    let chosen = |value: &str| {
        let (_, rest) = value.split_once('[')?;
        rest.split_once(']').map(|(word, _)| word.to_string())
    };
    text.lines()
        .skip_while(|line| !line.starts_with("Options"))
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| {
            let value = value.trim();
            Fact::new(name.trim(), chosen(value).unwrap_or(value.to_string()))
        })
        .collect()
}

impl Layer for Bcachefs {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("bcachefs, replicas = {}", self.replicas)
    }

    fn describe_asked(&self) -> String {
        let kind = format!(
            "bcachefs, replicas {}, compression {}",
            self.replicas, self.compression
        );
        filesystem::asked(&kind, &self.mkfs, &self.mount)
    }

    fn takes(&self) -> Takes {
        Takes::at_least(self.replicas)
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some("bcachefs"),
            ..Needs::as_root(&["bcachefs", "wipefs", "mount", "umount"], KIND.packages)
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let uuid = |uuid: &str| vec![format!("--uuid={uuid}")];
        filesystem::format(setup, &self.command(), uuid, &devices)?;
        let mut source = OsString::new();
        for (index, device) in devices.iter().enumerate() {
            // Members of one file system stand in the source with colons between them
            // (bcachefs(8)).
            source.push(if index > 0 { ":" } else { "" });
            source.push(&device.path);
        }
        let root = setup.mount("bcachefs", &source, &self.mount, Memory::No)?;
        let host = setup.host();
        let mut facts = self.read_back(host, &devices[0].path)?;
        facts.extend(filesystem::mount_facts(
            host,
            &root,
            "bcachefs",
            &self.mount,
            &[],
        )?);
        Ok(filesystem::standing(
            host,
            self.kind(),
            root,
            facts,
            &devices,
        ))
    }
}

/// `bcachefs format` and `bcachefs show-super` as a plan imagines them.
fn imagined(world: &mut World, words: &[OsString]) -> Output {
    if word(words, 1) == "format" {
        let option = |name: &str| {
            let mut words = words.iter().map(|word| word.to_string_lossy());
            let value = words.find_map(|word| word.strip_prefix(name).map(str::to_string));
            value.unwrap_or_default()
        };
        let signature = Signature {
            file_system: "bcachefs".to_string(),
            mark: option("--uuid="),
            notes: [
                ("replicas", option("--replicas=")),
                ("compression", option("--compression=")),
            ]
            .into(),
        };
        world.sign(words, &signature);
        return said("");
    }
    match world.signature(last(words).as_ref()) {
        Some(Signature { notes, .. }) => said(format!(
            "Options for this superblock:\n data_replicas: {0}\n metadata_replicas: {0}\n compression: {1}\n",
            notes["replicas"], notes["compression"]
        )),
        None => complained(1, "not a bcachefs superblock"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of bcachefs-tools 1.3.3 about a file system that Linux 6.12 had mounted, shortened.
    #[test]
    fn the_options_of_the_superblock_become_facts() {
        let facts = options_of(concat!(
            "External UUID:                              11111111-2222-3333-4444-555555555555\n",
            "Version:                                    1.13: (unknown version)\n",
            "Compat features:                            alloc_info,alloc_metadata\n",
            "\n",
            "Options:\n",
            "  block_size:                               512 B\n",
            "  errors:                                   continue [ro] panic \n",
            "  data_replicas:                            2\n",
            "  data_checksum:                            none [crc32c] crc64 xxhash \n",
            "  compression:                              lz4\n",
            "\n",
            "members_v2 (size 256):\n",
            "  Device:                                   0\n",
            "    Label:                                  (none)\n",
        ));
        let expected = [
            ("block_size", "512 B"),
            ("errors", "ro"),
            ("data_replicas", "2"),
            ("data_checksum", "crc32c"),
            ("compression", "lz4"),
        ];
        assert_eq!(facts, expected.map(|(name, value)| Fact::new(name, value)));
    }
}
