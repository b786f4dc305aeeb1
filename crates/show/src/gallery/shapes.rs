//! Words that name a machine or a person by their shape alone: paths, serial numbers, addresses.

use super::part::MachinePart;

/// Roots of paths that are the same on every machine.
const EVERYWHERE: [&str; 7] = ["bin", "lib", "lib64", "proc", "sbin", "sys", "usr"];
/// First letters of names below `/dev/disk/by-id`; behind them stand model and serial number.
const BY_ID: [&str; 7] = ["ata-", "mmc-", "nvme-", "scsi-", "usb-", "virtio-", "wwn-"];
/// What stands before the `//` of a page of the web; that of a share names a machine.
const WEB: [&str; 2] = ["http:", "https:"];
/// Characters of a UUID, and where its hyphens are.
const UUID: usize = 36;
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// Beginning of a World Wide Name, and its hexadecimal digits.
const WWN: &str = "0x";
const WWN_DIGITS: usize = 16;

/// Returns true if a name of something can begin behind this character.
pub(super) fn begins_behind(before: Option<char>) -> bool {
    before.is_none_or(|before| !before.is_alphanumeric() && !matches!(before, '_' | '-' | '.'))
}

/// Returns true if a name of something ends before this character.
pub(super) fn ends_before(next: Option<char>) -> bool {
    next.is_none_or(|next| !next.is_alphanumeric() && !matches!(next, '_' | '-'))
}

/// The word that a text begins with, if its shape says of what it is: its part and its bytes. `before` is all that stands
/// before the text.
pub(super) fn at(text: &str, before: &str) -> Option<(MachinePart, usize)> {
    // The address of a page is the same for everybody.
    let page = text.starts_with("//") && WEB.iter().any(|scheme| before.ends_with(scheme));
    let before = before.chars().next_back();
    let path = || Some((MachinePart::Paths, path(text, before).filter(|_| !page)?));
    let serial = || Some((MachinePart::Serials, serial(text, before)?));
    let address = || Some((MachinePart::Host, address(text, before)?));
    path().or_else(serial).or_else(address)
}

/// Bytes of an absolute path that says something of its machine.
fn path(text: &str, before: Option<char>) -> Option<usize> {
    if !text.starts_with('/') || !path_begins_behind(before) {
        return None;
    }
    let end = text.find(ends_path).unwrap_or(text.len());
    // The full stop of a sentence is no part of it.
    let path = text[..end].trim_end_matches(['.', '/', '?', '!']);
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let (root, below) = (parts.next()?, parts.next());
    // Names of devices are the kernel's; those of volumes are chosen by people.
    let device = root == "dev" && (parts.next().is_none() || below == Some("disk"));
    (!device && !EVERYWHERE.contains(&root)).then_some(path.len())
}

/// `MB/s` and `1/2` are none: a path stands alone, or behind a mark.
fn path_begins_behind(before: Option<char>) -> bool {
    before.is_none_or(|before| {
        before.is_whitespace()
            || !before.is_alphanumeric()
                && !matches!(before, '/' | '.' | '_' | '-' | ')' | '+' | '%')
    })
}

fn ends_path(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`,;:()[]{}<>|=&".contains(c)
}

/// Bytes of a UUID, of a World Wide Name, or of a name with a serial number in it.
fn serial(text: &str, before: Option<char>) -> Option<usize> {
    if !begins_behind(before) {
        return None;
    }
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.' | ':' | '+'));
    let word = text[..end.unwrap_or(text.len())].trim_end_matches(['.', ':']);
    let by_id = BY_ID.iter().any(|begin| word.starts_with(begin)) && has_serial(word);
    (by_id || is_uuid(word) || is_wwn(word)).then_some(word.len())
}

/// `nvme-ssd` is the name of a model; a serial number has digits and capitals behind its last mark.
fn has_serial(word: &str) -> bool {
    let last = word.rsplit(['_', '-', '.']).next().unwrap_or_default();
    last.len() > 3 && last.chars().any(|c| c.is_ascii_digit())
}

fn is_uuid(word: &str) -> bool {
    let fits = |(at, c): (usize, char)| match HYPHENS.contains(&at) {
        true => c == '-',
        false => c.is_ascii_hexdigit(),
    };
    word.len() == UUID && word.chars().enumerate().all(fits)
}

fn is_wwn(word: &str) -> bool {
    let digits = word.strip_prefix(WWN).unwrap_or_default();
    digits.len() == WWN_DIGITS && digits.chars().all(|c| c.is_ascii_hexdigit())
}

/// Bytes of an IPv4 address of a machine that is not this one.
fn address(text: &str, before: Option<char>) -> Option<usize> {
    if !begins_behind(before) {
        return None;
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let word = text[..end.unwrap_or(text.len())].trim_end_matches('.');
    let address: std::net::Ipv4Addr = word.parse().ok()?;
    // `1.2.3.4.5` is a version.
    let next = text[word.len()..].chars().next();
    (!address.is_loopback() && !address.is_unspecified() && ends_before(next)).then_some(word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(MachinePart, &str)> {
        let mut found = Vec::new();
        let mut skip = 0;
        for (place, _) in text.char_indices() {
            if place < skip {
                continue;
            }
            if let Some((part, length)) = at(&text[place..], &text[..place]) {
                found.push((part, &text[place..place + length]));
                skip = place + length;
            }
        }
        found
    }

    #[test]
    fn paths_serial_numbers_and_addresses_are_found_by_their_shape() {
        let paths = |text: &'static str| (MachinePart::Paths, text);
        assert_eq!(
            found("write of /home/ann/disk 1 at \"/srv/a.img\" failed: see /mnt/b."),
            [
                paths("/home/ann/disk"),
                paths("/srv/a.img"),
                paths("/mnt/b")
            ]
        );
        assert_eq!(found("box:/export"), [paths("/export")]);
        assert_eq!(found("smb://nas/ann"), [paths("//nas/ann")]);
        assert_eq!(
            found("/dev/mapper/ann-home"),
            [paths("/dev/mapper/ann-home")]
        );
        let serial = "virtual disk ata-ACME_900_S3X1NB0K512 of 0x5000c500a1b2c3d4";
        let serials: Vec<&str> = found(serial).into_iter().map(|(_, text)| text).collect();
        assert_eq!(serials, ["ata-ACME_900_S3X1NB0K512", "0x5000c500a1b2c3d4"]);
        let uuid = "15857c30-558c-4ab9-906e-af215bcc1570";
        assert_eq!(found(uuid), [(MachinePart::Serials, uuid)]);
        assert_eq!(
            found("line to 10.0.0.2:22"),
            [(MachinePart::Host, "10.0.0.2")]
        );
    }

    #[test]
    fn what_names_no_machine_is_left() {
        for text in [
            "212 MB/s and 1/2 of op/s",
            "/dev/sda",
            "/dev/disk",
            "/usr/sbin/mkfs.xfs",
            "/proc/sys/vm",
            "/",
            "nvme-ssd",
            "sata-ssd",
            "127.0.0.1",
            "version 6.12.0",
            "1.2.3.4.5",
            "rw,noatime",
            "2026-11-21T1405-k3f9",
            "see https://example.org/docs/zfs, http://example.org",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
