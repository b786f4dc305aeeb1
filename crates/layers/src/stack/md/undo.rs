//! Stops an array whose UUID stackrace chose.

use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{Param, UndoKind, text, until_free};
use std::ffi::OsString;

/// Stops the array of a UUID.
pub(super) const STOP: UndoKind = UndoKind::new("md", "stop-array", &[Param::Uuid], stop);

/// Stops an array by its UUID; one that does not stand is fine.
fn stop(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let uuid = text(of, 0);
    // The name in /dev/md may be gone although the array stands.
    let scan = host.must(&argv(["mdadm", "--detail", "--scan"]))?;
    for device in arrays(&scan.stdout, uuid) {
        until_free(host, &argv(["mdadm", "--stop", device]))?;
    }
    Ok(())
}

/// Devices of a UUID in lines like `ARRAY /dev/md/x metadata=1.2 UUID=01234567:89abcdef:…`.
fn arrays<'a>(scan: &'a str, uuid: &str) -> Vec<&'a str> {
    let of_uuid = |line: &&str| {
        let mut words = line.split(' ');
        words.any(|word| {
            word.strip_prefix("UUID=")
                .is_some_and(|found| digits(found) == digits(uuid))
        })
    };
    scan.lines()
        .filter(of_uuid)
        .filter_map(|line| {
            // One that udev put together in part holds its members all the same.
            let line = line.strip_prefix("INACTIVE-").unwrap_or(line);
            line.strip_prefix("ARRAY ")?.split(' ').next()
        })
        .collect()
}

/// A UUID without the hyphens or colons each tool groups its digits with.
fn digits(uuid: &str) -> String {
    uuid.replace([':', '-'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `mdadm --detail --scan` 4.2 (mdadm(8), mdadm.conf(5)).
    #[test]
    fn an_array_is_found_by_its_uuid_however_the_digits_are_grouped() {
        let scan = concat!(
            "ARRAY /dev/md/a metadata=1.2 name=a UUID=01234567:89abcdef:80000000:00000001\n",
            "INACTIVE-ARRAY /dev/md127 metadata=1.2 UUID=01234567:89abcdef:80000000:00000001\n",
            "ARRAY /dev/md/b metadata=1.2 name=b UUID=01234567:89abcdef:80000000:00000002\n",
        );
        let uuid = "01234567-89ab-cdef-8000-000000000001";
        assert_eq!(arrays(scan, uuid), ["/dev/md/a", "/dev/md127"]);
        assert!(arrays(scan, "01234567").is_empty());
    }
}
