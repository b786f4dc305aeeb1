//! Disposable virtual machines: real kernels, real modules, emulated disks, a private network.
//!
//! A guest is made of an [`image`] (kernel and read-only root file system from the distribution's
//! packages, memory over it) and of this program, which is in the first file system. The host
//! commands it over a serial port ([`crate::agent`]). The guest sees nothing of the host, and
//! nothing that it does outlives it. `docs/lab.md` is the user's page.

pub(crate) mod command;
mod cpio;
pub(crate) mod description;
mod disk;
pub(crate) mod disk_cache;
mod driver;
mod error;
pub(crate) mod fault;
pub(crate) mod image;
pub(crate) mod machine;
mod one_processor;
pub(crate) mod postgresql;
mod short;
mod site;
mod switch;
pub(crate) mod system;
pub(crate) mod virtual_guest;
mod vmlinux;

pub(crate) use command::PROGRAM as QEMU;
pub(crate) use error::LabError;
