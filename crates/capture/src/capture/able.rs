//! Whether this kernel, and this process, can record; if not, why, and what to do.

use std::path::Path;

use stackrace_base::event::again_as_root;
use stackrace_base::failure::Failure;
use stackrace_trace::trace::ARCHITECTURE;

/// Oldest kernel that has the ring which events go through.
const OLDEST: (u32, u32) = (5, 8);
/// Rights by their bits (linux/capability.h), of which those of an administrator have both others.
const ADMINISTRATOR: u64 = 1 << 21;
const BPF: u64 = 1 << 39;
const BOTH: u64 = BPF | 1 << 38;
/// The first process name space (linux/proc_ns.h): the kernel side counts processes as it does.
const FIRST_PROCESSES: &str = "pid:[4026531836]";

/// What is known of the kernel and of this process.
#[derive(Debug, Clone)]
pub(super) struct KernelSeen {
    pub(super) release: String,
    pub(super) has_types: bool,
    pub(super) rights: u64,
    pub(super) lockdown: String,
    pub(super) processes: String,
}

impl KernelSeen {
    /// Looks at this machine.
    pub(super) fn now() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processes = std::fs::read_link("/proc/self/ns/pid");
        Self {
            release: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            has_types: Path::new("/sys/kernel/btf/vmlinux").exists(),
            rights: stackrace_system::rights(),
            lockdown: text("/sys/kernel/security/lockdown"),
            processes: processes.map_or(String::new(), |link| link.to_string_lossy().into_owned()),
        }
    }

    /// The column of the numbers of calls, if recording is possible.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn architecture(&self) -> Result<usize, Failure> {
        let Some(architecture) = ARCHITECTURE else {
            let here = std::env::consts::ARCH;
            return Err(Failure::unable(format!(
                "record knows x86_64 and aarch64, and this machine is {here}"
            ))
            .next("record on a machine of one of them"));
        };
        // The cheapest answers first: each names one thing to change.
        let release = &self.release;
        if version(release).is_some_and(|version| version < OLDEST) {
            let (major, minor) = OLDEST;
            return Err(Failure::unable(format!(
                "record needs Linux {major}.{minor} or newer, and this is {release}"
            ))
            .next("boot a newer kernel"));
        }
        if !self.has_types {
            return Err(Failure::unable(format!(
                "the kernel {release} does not describe its types (/sys/kernel/btf/vmlinux is missing)"
            ))
            .next("boot a kernel of the distribution, or one built with CONFIG_DEBUG_INFO_BTF=y"));
        }
        if self
            .lockdown
            .split_whitespace()
            .any(|mode| mode == "[confidentiality]")
        {
            return Err(Failure::unable(
                "the kernel is locked down (confidentiality): no program may look into it",
            )
            .next("boot with lockdown=integrity or none, if the machine's owner allows it"));
        }
        let rights = self.rights;
        if rights & ADMINISTRATOR == 0 && rights & BOTH != BOTH {
            return Err(Failure::unable(
                "record loads programs into the kernel, and this process may not",
            )
            .next(format!(
                "run it as root, in a container on the machine itself: {}",
                again_as_root()
            )));
        }
        if !self.processes.is_empty() && self.processes != FIRST_PROCESSES {
            return Err(Failure::unable(
                "this container numbers processes in its own way, and the kernel side in that of the machine",
            )
            .next("record on the machine itself, by the process's number there; the container must have the directory by the same path"));
        }
        Ok(architecture)
    }
}

/// The first two numbers of a release; none: it has no such numbers, and is not judged.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn able() -> KernelSeen {
        KernelSeen {
            release: "6.12.4-amd64".to_owned(),
            has_types: true,
            rights: ADMINISTRATOR,
            lockdown: "none [integrity] confidentiality\n".to_owned(),
            processes: FIRST_PROCESSES.to_owned(),
        }
    }

    #[test]
    fn each_lack_is_refused_with_the_reason_and_what_to_do() {
        if ARCHITECTURE.is_none() {
            return;
        }
        able().architecture().unwrap();
        let rights = BOTH;
        KernelSeen { rights, ..able() }.architecture().unwrap();
        let cases = [
            (
                KernelSeen {
                    release: "5.4.0".to_owned(),
                    ..able()
                },
                "Linux 5.8 or newer, and this is 5.4.0",
            ),
            (
                KernelSeen {
                    has_types: false,
                    ..able()
                },
                "CONFIG_DEBUG_INFO_BTF",
            ),
            (
                KernelSeen {
                    lockdown: "none integrity [confidentiality]".to_owned(),
                    ..able()
                },
                "locked down",
            ),
            (
                KernelSeen {
                    rights: BPF,
                    ..able()
                },
                "run it as root",
            ),
            (
                KernelSeen {
                    processes: "pid:[4026532000]".to_owned(),
                    ..able()
                },
                "on the machine itself",
            ),
        ];
        for (seen, expected) in cases {
            let refused = seen.architecture().unwrap_err();
            assert_eq!(refused.exit_code(), 4);
            let said = refused.render();
            assert!(said.contains(expected), "{said}");
            assert!(said.contains("next:"), "{said}");
        }
    }
}
