//! An encrypted device: LUKS on dm-crypt, read back from the kernel's own table.
//!
//! The key is a random file of ours that only its owner can read. It is removed with the stack, so
//! nothing brings the data back after a power cut.

use crate::stack::mapped::{
    MAPPER, Mapped, Maps, REMOVE, imagined, path_of, same, table, words_of,
};
use stackrace_base::event::{Fact, FactFigure, LayerEffect};
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    Device, GivesKind, Layer, LayerError, LayerKind, ON_A_DISK, Setup, Takes, block,
};
use stackrace_machine::host::{Driver, Filling, Host, Package, argv};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of the key file.
const KEY_BYTES: u64 = 64;

/// Rounds of PBKDF2, the fewest that cryptsetup takes: the key is random, so that slow guessing of
/// passwords has nothing to protect.
const ROUNDS: &str = "1000";

const VERSION: ChoiceDoc<u8> = choice!(
    "version",
    ["1" => 1, "2" => 2],
    "2",
    "Version of the header.",
);

/// Each cipher with the sizes of its key in bits; the last one is taken unless given.
const CIPHERS: [(&str, &[u64]); 6] = [
    ("aes-xts-plain64", &[256, 512]),
    ("aes-cbc-essiv:sha256", &[128, 192, 256]),
    ("serpent-xts-plain64", &[256, 512]),
    ("twofish-xts-plain64", &[256, 512]),
    ("xchacha12,aes-adiantum-plain64", &[256]),
    ("xchacha20,aes-adiantum-plain64", &[256]),
];

/// Settings that are words of the kernel's table, with the option of cryptsetup-open(8).
const WAYS: [(&str, &str, &str); 3] = [
    ("discards", "allow_discards", "--allow-discards"),
    (
        "no-read-workqueue",
        "no_read_workqueue",
        "--perf-no_read_workqueue",
    ),
    (
        "no-write-workqueue",
        "no_write_workqueue",
        "--perf-no_write_workqueue",
    ),
];

/// The layer `luks` of a study.
pub(in crate::stack) const KIND: LayerKind = LayerKind {
    name: "luks",
    summary: "An encrypted device (LUKS, dm-crypt) under a random key that goes with it.",
    settings: &[
        VERSION.doc,
        SettingDoc::choice(
            "cipher",
            &[
                CIPHERS[0].0,
                CIPHERS[1].0,
                CIPHERS[2].0,
                CIPHERS[3].0,
                CIPHERS[4].0,
                CIPHERS[5].0,
            ],
            CIPHERS[0].0,
            "Cipher, mode and initial vector, as cryptsetup(8) and /proc/crypto name them.",
        ),
        SettingDoc::count("key-size", "", "Bits of the key: XTS takes two keys.")
            .computed("512 with XTS, otherwise 256"),
        SettingDoc::bytes(
            "sector-size",
            "512 B",
            "Bytes that are encrypted at once: 512, 1024, 2048 or 4096; version 1 has 512 only.",
        ),
        SettingDoc::flag(
            WAYS[0].0,
            "false",
            "Whether discards reach the device below.",
        ),
        SettingDoc::flag(
            WAYS[1].0,
            "false",
            "Whether reads are decrypted at once, and not by a queue of the kernel.",
        ),
        SettingDoc::flag(
            WAYS[2].0,
            "false",
            "Whether writes are encrypted at once, and not by a queue of the kernel.",
        ),
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    example: "luks = { sector-size = \"4 KiB\", no-read-workqueue = true, no-write-workqueue = true }",
    parse,
    packages: PACKAGES,
    // Of all mapped devices, also those of the layers beside it.
    undo: &[REMOVE],
    imagined: imagined::LUKS,
    reads: &[|text| {
        let table = words_of(text, TARGET).and_then(|words| Table::of(&words));
        table.map_or(Vec::new(), |table| table.facts())
    }],
    shapes: &[
        &[
            "loop = { size = \"1 GiB\", count = 2 }",
            "md = { raid = 1 }",
            "luks = { version = \"1\" }",
            "lvm = {}",
            "xfs = {}",
        ],
        &[
            ON_A_DISK,
            "luks = { sector-size = \"4 KiB\", discards = true, no-read-workqueue = true, no-write-workqueue = true }",
            "luks = {}",
            "ext4 = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: super::testing::LUKS,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[
    Package::new("cryptsetup-bin", &["cryptsetup"]),
    super::DMSETUP,
];

/// The kernel's word.
const TARGET: &str = "crypt";

struct Luks {
    version: u8,
    cipher: String,
    key_bits: u64,
    sector: u64,
    /// Words of the kernel's table that are asked for, in the order of [`WAYS`].
    ways: Vec<&'static str>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let (version, cipher) = (settings.choice(VERSION)?, settings.text("cipher")?);
    let known = CIPHERS.iter().find(|(name, _)| *name == cipher);
    let sizes = known.map_or(&[] as &[u64], |(_, sizes)| sizes);
    // The default of cryptsetup is chosen when it is built: the size is always given.
    let largest = sizes.last().copied().unwrap_or_default();
    let key_bits = settings.optional_count("key-size")?.unwrap_or(largest);
    if !sizes.contains(&key_bits) {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        return Err(settings.refuse(
            "key-size",
            format!("{cipher} has no key of {key_bits} bits"),
            format!("write one of: {}", sizes.join(", ")),
        ));
    }
    let sector = block::sector(settings, "sector-size")?;
    // LUKS1 has no place for another size in its header.
    if version == 1 && sector != 512 {
        return Err(settings.refuse(
            "sector-size",
            "version 1 has sectors of 512 B only",
            "leave sector-size out, or write version = 2",
        ));
    }
    let mut ways = Vec::new();
    for (name, word, _) in WAYS {
        if settings.flag(name)? {
            ways.push(word);
        }
    }
    Ok(Box::new(Mapped(Luks {
        version,
        cipher,
        key_bits,
        sector,
        ways,
    })))
}

impl Luks {
    /// Formats the device below: with a header that holds the volume's key under ours.
    fn format(&self, device: &Path, key: &Path, uuid: &str) -> Vec<OsString> {
        let version = format!("luks{}", self.version);
        let mut words = argv(["cryptsetup", "luksFormat", "--batch-mode"]);
        words.extend(argv(["--type", &version, "--uuid", uuid]));
        words.extend(argv(["--cipher", &self.cipher]));
        words.extend(argv(["--key-size", &self.key_bits.to_string()]));
        words.extend(argv(["--pbkdf-force-iterations", ROUNDS]));
        if self.version == 2 {
            // Version 1 has PBKDF2 alone, and no choice of sectors.
            words.extend(argv(["--pbkdf", "pbkdf2"]));
            words.extend(argv(["--sector-size", &self.sector.to_string()]));
        }
        words.extend(argv(["--key-file"]));
        words.extend([key.into(), device.into()]);
        words
    }

    fn open(&self, device: &Path, key: &Path, name: &str) -> Vec<OsString> {
        let mut words = argv(["cryptsetup", "open", "--type", "luks"]);
        for (_, word, option) in WAYS {
            if self.ways.contains(&word) {
                words.push(option.into());
            }
        }
        words.extend(argv(["--key-file"]));
        words.extend([key.into(), device.into(), name.into()]);
        words
    }
}

/// Tells of a cipher with AES whether the processor has instructions for it: without them it is many
/// times slower. `None` for other ciphers, and where the processor tells nothing.
fn aes(about: &str, cipher: &str) -> Option<Fact> {
    if !cipher.starts_with("aes-") {
        return None;
    }
    // `flags` on x86, `Features` on ARM.
    let flags = about.lines().find_map(|line| {
        let (name, flags) = line.split_once(':')?;
        ["flags", "Features"]
            .contains(&name.trim())
            .then_some(flags)
    })?;
    let has = flags.split_whitespace().any(|flag| flag == "aes");
    Some(match has {
        true => Fact::new("AES instructions", "yes"),
        false => Fact::new("AES instructions", "no: AES is slow here")
            .with(FactFigure::Effect(LayerEffect::SlowCipher)),
    })
}

/// What a line of `dmsetup table` says of a mapping of dm-crypt.
struct Table {
    cipher: String,
    key_bits: u64,
    /// Bytes.
    sector: u64,
    /// Optional words but the size of sectors, sorted.
    ways: Vec<String>,
}

impl Table {
    /// `CIPHER KEY 0 7:0 32768 2 allow_discards sector_size:4096`; the kernel writes the key as zeros, or as
    /// the name it has in the keyring: `:64:logon:cryptsetup:…`.
    fn of(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let [cipher, key, _, _, _, more @ ..] = words.as_slice() else {
            return None;
        };
        let in_keyring = key.strip_prefix(':');
        let bits = match in_keyring.and_then(|key| key.split(':').next()?.parse::<u64>().ok()) {
            Some(bytes) => bytes.saturating_mul(8),
            None => (key.len() as u64).saturating_mul(4),
        };
        let size = |word: &&str| word.strip_prefix("sector_size:")?.parse().ok();
        // The first of them is their number.
        let more = more.get(1..).unwrap_or_default();
        let mut ways: Vec<String> = more
            .iter()
            .filter(|word| size(word).is_none())
            .map(ToString::to_string)
            .collect();
        ways.sort_unstable();
        Some(Self {
            cipher: (*cipher).to_string(),
            key_bits: bits,
            // The kernel leaves its own size out.
            sector: more.iter().find_map(size).unwrap_or(512),
            ways,
        })
    }

    fn facts(&self) -> Vec<Fact> {
        let ways = match self.ways.is_empty() {
            true => "none".to_string(),
            false => self.ways.join(", "),
        };
        vec![
            Fact::new("cipher", self.cipher.clone()),
            Fact::new("key size", format!("{} bits", self.key_bits)),
            Fact::new("sector size", unit::bytes(self.sector)),
            Fact::new("words of dm-crypt", ways),
        ]
    }
}

impl Maps for Luks {
    const KIND: &'static LayerKind = &KIND;

    const DRIVERS: &'static [Driver] = &[
        MAPPER,
        Driver {
            module: "dm_crypt",
            shown_by: "/sys/module/dm_crypt",
            what: "encrypted devices (dm-crypt)",
        },
    ];
    const TOOLS: &'static [&'static str] = &["cryptsetup", "dmsetup", "wipefs", "blkid"];

    fn asked(&self) -> String {
        let mut text = format!(
            "encrypted (LUKS{}), {}, key {} bits, sectors {}",
            self.version,
            self.cipher,
            self.key_bits,
            unit::bytes(self.sector)
        );
        for (name, word, _) in WAYS {
            if self.ways.contains(&word) {
                text.push_str(&format!(", {name}"));
            }
        }
        text
    }

    /// Its header bears a mark of ours, by which a disk can be wiped again.
    fn accepts(&self, _below: &[Box<dyn Layer>]) -> Result<(), String> {
        Ok(())
    }

    fn map(
        &self,
        setup: &mut Setup<'_>,
        devices: &[Device],
        name: &str,
    ) -> Result<Vec<Fact>, LayerError> {
        let (host, device, uuid) = (setup.host(), &devices[0], setup.uuid());
        // A plan draws words instead of digits.
        let seed = u64::from_str_radix(&host.nonce()?, 16).unwrap_or_default();
        let key: PathBuf = setup.scratch()?.join(setup.name(&format!("key-{name}")));
        // Random digits that no record has; never on a command line, which every user can read.
        setup.create_file(&key, KEY_BYTES, Filling::Written { seed })?;
        // A disk keeps its header when the key is gone.
        if setup.is_outlived() {
            setup.will_carry(device, &uuid)?;
        }
        host.must(&self.format(&device.path, &key, &uuid))?;
        let open = self.open(&device.path, &key, name);
        setup.make(REMOVE.of([name.into()]), &open)?;
        Ok(Vec::new())
    }

    /// Reads back what the kernel maps, and by which code it encrypts.
    fn read_back(&self, host: &dyn Host, name: &str) -> Result<Vec<Fact>, LayerError> {
        let words = table(host, name, TARGET)?;
        let Some(table) = Table::of(&words) else {
            return Err(LayerError::refused(
                "what dmsetup printed is no table of dm-crypt",
                "",
            ));
        };
        let about = Path::new("/sys/class/block").join(block::kernel_name(host, &path_of(name)));
        let uuid = host.read_text(&about.join("dm/uuid"))?;
        // The kernel lists them in an order of its own.
        let mut ways: Vec<&str> = self.ways.clone();
        ways.sort_unstable();
        // `CRYPT-LUKS2-UUID-NAME`.
        let version = uuid.split('-').nth(1).unwrap_or_default().to_string();
        // What was not taken would be measured under the wrong name.
        let asked = |value: &dyn std::fmt::Display| value.to_string();
        let each = [
            ("version", version.clone(), format!("LUKS{}", self.version)),
            ("cipher", table.cipher.clone(), self.cipher.clone()),
            (
                "a key of bits",
                asked(&table.key_bits),
                asked(&self.key_bits),
            ),
            ("sectors of", asked(&table.sector), asked(&self.sector)),
            ("words", table.ways.join(" "), ways.join(" ")),
        ];
        same(name, &each)?;
        let mut facts = vec![Fact::new("header", version)];
        facts.extend(table.facts());
        let about = host.read_text(Path::new("/proc/cpuinfo"));
        facts.extend(aes(&about.unwrap_or_default(), &self.cipher));
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of dmsetup(8) as documented in dm-crypt.rst of the kernel.
    #[test]
    fn the_kernels_table_is_understood_with_the_key_in_either_form() {
        let ring = "0 32768 crypt aes-xts-plain64 :64:logon:cryptsetup:01-d0 0 7:0 32768 2 no_read_workqueue sector_size:4096\n";
        let of = |line: &str| Table::of(&words_of(line, TARGET)?);
        let table = of(ring).unwrap();
        assert_eq!((table.key_bits, table.sector), (512, 4096));
        assert_eq!(table.ways, ["no_read_workqueue"]);
        let zeros = format!(
            "0 8 crypt aes-cbc-essiv:sha256 {} 0 7:0 4096",
            "0".repeat(64)
        );
        let table = of(&zeros).unwrap();
        assert_eq!((table.key_bits, table.sector), (256, 512));
        assert!(table.ways.is_empty());
        assert!(of("0 8 linear 7:0 0").is_none());
    }

    #[test]
    fn a_size_that_a_cipher_does_not_have_is_refused_with_those_it_has() {
        let refused = |line: &str| {
            let settings = crate::stack::testing::settings(line);
            parse(&settings).map(|_| ()).unwrap_err()
        };
        let key = refused("luks = { key-size = 192 }");
        assert_eq!(key.help, "write one of: 256, 512");
        let sector = refused("luks = { version = \"1\", sector-size = \"4 KiB\" }");
        assert_eq!(sector.message, "version 1 has sectors of 512 B only");
        let odd = refused("luks = { sector-size = \"8 KiB\" }");
        assert_eq!(odd.message, "sectors of 8192 B are not possible");
    }

    #[test]
    fn a_processor_without_instructions_for_the_cipher_is_told() {
        let slow = FactFigure::Effect(LayerEffect::SlowCipher);
        let figure = |about: &str, cipher: &str| aes(about, cipher).map(|fact| fact.figure);
        let [with, without] = ["flags\t: fpu aes sse\n", "Features\t: fp asimd\n"];
        assert_eq!(figure(without, "aes-xts-plain64"), Some(Some(slow)));
        assert_eq!(figure(with, "aes-xts-plain64"), Some(None));
        assert_eq!(figure(without, "serpent-xts-plain64"), None);
    }
}
