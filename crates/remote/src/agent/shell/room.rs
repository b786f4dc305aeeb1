//! How a file gets its size, and how much room is left: dd and df as POSIX (2018, XCU) has them.

use stackrace_machine::host::Filling;

/// Bytes of one block that is written.
const BLOCK: u64 = 1 << 20;

/// The commands that give a new, empty file its bytes; `path` is a word of the shell.
pub(super) fn filled(path: &str, bytes: u64, filling: Filling) -> String {
    if bytes == 0 {
        return "true".to_owned();
    }
    let from = match filling {
        Filling::Written { .. } => "/dev/urandom",
        Filling::Sparse => {
            return format!(
                "dd if=/dev/zero of={path} bs=1 seek={} count=1 conv=notrunc",
                bytes - 1
            );
        }
        Filling::Allocated => "/dev/zero",
    };
    let (blocks, rest) = (bytes / BLOCK, bytes % BLOCK);
    let mut commands = Vec::new();
    // Never count=0: POSIX leaves open whether that copies nothing, or all there is, and these sources
    // have no end.
    if blocks > 0 {
        commands.push(format!(
            "dd if={from} of={path} bs={BLOCK} count={blocks} conv=notrunc"
        ));
    }
    if rest > 0 {
        commands.push(format!(
            "dd if={from} of={path} bs=1 seek={} count={rest} conv=notrunc",
            blocks * BLOCK
        ));
    }
    commands.push("sync".to_owned());
    commands.join(" && ")
}

/// Free bytes by what `df -P -k FILE` prints; `None` if that cannot be read.
pub(super) fn free_bytes(text: &str) -> Option<u64> {
    // Filesystem 1024-blocks Used Available Capacity Mounted on. A name of either end may have blanks.
    let words: Vec<&str> = text.lines().next_back()?.split_whitespace().collect();
    let capacity = words.iter().position(|word| word.ends_with('%'))?;
    let kib = words.get(capacity.checked_sub(1)?)?.parse::<i64>().ok()?;
    // Less than zero where root has filled what is kept for it: FreeBSD and NetBSD print that.
    Some(u64::try_from(kib).unwrap_or(0).saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_filled_without_a_count_of_zero() {
        let filled = |bytes| filled("f", bytes, Filling::Allocated);
        let blocks = "dd if=/dev/zero of=f bs=1048576 count=2 conv=notrunc";
        let rest = |at| format!("dd if=/dev/zero of=f bs=1 seek={at} count=5 conv=notrunc");
        assert_eq!(filled(2 * BLOCK), format!("{blocks} && sync"));
        let both = format!("{blocks} && {} && sync", rest(2 * BLOCK));
        assert_eq!(filled(2 * BLOCK + 5), both);
        assert_eq!(filled(5), format!("{} && sync", rest(0)));
        assert_eq!(filled(0), "true");
    }

    #[test]
    fn free_space_is_read_as_posix_prints_it() {
        let head = "Filesystem 1024-blocks Used Available Capacity Mounted on\n";
        for (line, free) in [
            ("/dev/sda1 1000 200 800 20% /", Some(800 << 10)),
            ("map auto home 1000 200 800 20% /a b%/c", Some(800 << 10)),
            // Beyond what users may fill, on FreeBSD and NetBSD.
            ("/dev/md0 1000 1010 -90 110% /mnt", Some(0)),
            ("tank/data 1000 200 - 20% /", None),
            ("", None),
        ] {
            assert_eq!(free_bytes(&format!("{head}{line}")), free, "{line}");
        }
    }
}
