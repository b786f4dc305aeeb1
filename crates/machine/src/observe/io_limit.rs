//! Limits that a control group puts on the I/O of this program.

use std::path::Path;

/// Files of version 1 of control groups that name a device and its limit.
const THROTTLES: &[&str] = &[
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

/// The first limit of this program's group or of one above it, as the kernel writes it: `io.max:
/// 8:16 rbps=2097152`; `None` if nothing is limited, as far as it can be read.
pub(super) fn io_limit(read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    read("/proc/self/cgroup")?.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let (root, files): (_, &[&str]) = match controllers {
            "" => ("/sys/fs/cgroup", &["io.max"]),
            some if some.split(',').any(|one| one == "blkio") => {
                ("/sys/fs/cgroup/blkio", THROTTLES)
            }
            _ => return None,
        };
        // A container may see its own group as the root, whatever it is called outside.
        Path::new(group).ancestors().find_map(|group| {
            let group = group.to_string_lossy();
            let of_file = |file: &&str| {
                let text = read(&format!("{root}{}/{file}", group.trim_end_matches('/')))?;
                let limit = text.lines().next()?.trim();
                (!limit.is_empty()).then(|| format!("{file}: {limit}"))
            };
            files.iter().find_map(of_file)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<String> {
        io_limit(&|path| {
            let mut files = files.iter();
            let known = files.find(|(known, _)| *known == path);
            known.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn limits_of_both_versions_are_found_in_the_group_and_above_it() {
        let two = ("/proc/self/cgroup", "0::/user/job\n");
        let max = "8:16 rbps=2097152 wbps=max riops=max wiops=max\n";
        let limit = Some(format!("io.max: {}", max.trim()));
        assert_eq!(
            found(&[two, ("/sys/fs/cgroup/user/job/io.max", max)]),
            limit
        );
        assert_eq!(found(&[two, ("/sys/fs/cgroup/user/io.max", max)]), limit);
        assert_eq!(found(&[two, ("/sys/fs/cgroup/io.max", max)]), limit);
        assert_eq!(
            found(&[two, ("/sys/fs/cgroup/user/job/io.max", "\n")]),
            None
        );
        assert_eq!(found(&[two, ("/sys/fs/cgroup/other/io.max", max)]), None);
        let one = ("/proc/self/cgroup", "4:cpu:/job\n3:blkio:/job\n");
        let writes = "/sys/fs/cgroup/blkio/job/blkio.throttle.write_iops_device";
        assert_eq!(
            found(&[one, (writes, "7:0 100\n")]),
            Some("blkio.throttle.write_iops_device: 7:0 100".to_owned())
        );
        assert_eq!(found(&[one]), None);
        assert_eq!(found(&[]), None);
    }
}
