//! Disposable virtual machines: real kernels, real modules, emulated disks, a private network.
//!
//! A guest is made of an [`image`] (kernel and read-only root file system from the distribution's
//! packages, memory over it) and of this program, which is in the first file system. The host
//! commands it over a serial port ([`crate::agent`]). A system that the user brought ([`added`]) is a guest that is
//! asked over ssh. The guest sees nothing of the host, and
//! nothing that it does outlives it. `docs/lab.md` is the user's page.

pub mod added;
mod added_error;
pub mod added_guest;
mod build_tool;
pub mod command;
mod console;
mod cpio;
pub mod description;
mod disk;
pub mod disk_cache;
mod driver;
mod error;
mod facts;
pub mod fault;
pub mod image;
pub mod image_cache;
pub mod kvm_probe;
pub mod machine;
mod one_processor;
pub mod postgresql;
mod short;
mod site;
mod switch;
pub mod system;
pub mod virtual_guest;
mod vmlinux;

pub use command::PROGRAM as QEMU;
pub use command::QEMU_IMG;
pub use error::LabError;
