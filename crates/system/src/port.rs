//! Writes bytes one by one to an I/O port of the processor, without interrupts and without an
//! answer. A guest whose clock counts instructions sends its output this way.

use std::io::{Error, Result, Write};

/// The port of QEMU's debug console (`isa-debugcon`).
pub const DEBUG_CONSOLE: u16 = 0xe9;

/// The debug console of the machine this runs on, which takes bytes and answers nothing. Where there
/// is none, nothing is behind the port, and what is written is lost.
///
/// A thread has the right only while it writes. With it, the kernel loads a bitmap at each switch to the
/// thread, and the threads it starts inherit that.
#[derive(Debug)]
pub struct OutputPort(());

impl OutputPort {
    /// Asks for the port; only root gets it.
    ///
    /// # Errors
    /// The system's; on another architecture than x86-64.
    pub fn open() -> Result<Self> {
        let port = Self(());
        port.allow(true)?;
        port.allow(false)?;
        Ok(port)
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn allow(&self, on: bool) -> Result<()> {
        let (from, count): (libc::c_ulong, libc::c_ulong) = (DEBUG_CONSOLE.into(), 1);
        // The call itself, because not every C library has a function for it.
        // SAFETY: this only asks for the right to use the port, or gives it back.
        match unsafe { libc::syscall(libc::SYS_ioperm, from, count, libc::c_int::from(on)) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    fn allow(&self, _on: bool) -> Result<()> {
        Err(Error::other(format!(
            "port {DEBUG_CONSOLE:#x} exists on x86-64 only"
        )))
    }
}

impl Write for OutputPort {
    #[cfg(target_arch = "x86_64")]
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.allow(true)?;
        // SAFETY: this thread has the right to this port, and what is behind it, a console or nothing,
        // touches no memory of ours. The instruction reads `bytes` and nothing else; the direction
        // flag is clear by the ABI.
        unsafe {
            std::arch::asm!(
                "rep outsb",
                in("dx") DEBUG_CONSOLE,
                inout("rsi") bytes.as_ptr() => _,
                inout("rcx") bytes.len() => _,
                options(nostack, preserves_flags, readonly)
            );
        }
        self.allow(false)?;
        Ok(bytes.len())
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn write(&mut self, _bytes: &[u8]) -> Result<usize> {
        Err(Error::other(format!("no port {DEBUG_CONSOLE:#x}")))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
