//! Which purpose a word means that is not one.

/// Programs and kinds of data, and the purpose that is about them.
const MEANT: [(&str, &[&str]); 13] = [
    (
        "general",
        &["all", "any", "default", "everything", "home", "server"],
    ),
    (
        "database",
        &[
            "db", "mariadb", "mongodb", "mysql", "oltp", "oracle", "redis", "sql", "sqlite",
        ],
    ),
    (
        "postgresql",
        &["pg", "pgbench", "pgsql", "postgres", "timescaledb"],
    ),
    (
        "vm-images",
        &[
            "hypervisor",
            "kvm",
            "libvirt",
            "proxmox",
            "qcow2",
            "qemu",
            "virtualization",
            "vm",
            "vms",
            "vmware",
        ],
    ),
    (
        "containers",
        &["container", "docker", "k8s", "kubernetes", "oci", "podman"],
    ),
    (
        "backup",
        &[
            "archive",
            "backups",
            "bacula",
            "borg",
            "duplicity",
            "restic",
        ],
    ),
    (
        "build",
        &[
            "builds", "cargo", "ci", "compile", "compiler", "gcc", "make",
        ],
    ),
    ("files", &["documents", "nextcloud", "samba", "share"]),
    ("nas-gigabit", &["nas", "gigabit", "ethernet", "1gbe"]),
    (
        "surveillance",
        &["cameras", "cctv", "frigate", "nvr", "zoneminder"],
    ),
    ("mail", &["cyrus", "dovecot", "imap", "maildir", "postfix"]),
    ("photos", &["images", "lightroom", "pictures", "raw"]),
    (
        "video",
        &["editing", "jellyfin", "movies", "plex", "streaming"],
    ),
];

/// The purpose that a word for something else most likely means.
pub fn meant(word: &str) -> Option<&'static str> {
    // Programs are written as their makers write them: PostgreSQL, Plex.
    let word = word.to_lowercase();
    let about = |words: &[&str]| words.contains(&word.as_str());
    let found = MEANT.iter().find(|(_, words)| about(words));
    found.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn a_program_finds_the_purpose_it_belongs_to() {
        assert_eq!(meant("postgres"), Some("postgresql"));
        assert_eq!(meant("MySQL"), Some("database"));
        assert_eq!(meant("docker"), Some("containers"));
        assert_eq!(meant("Plex"), Some("video"));
        assert_eq!(meant("nonsense"), None);
        for (name, _) in MEANT {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
