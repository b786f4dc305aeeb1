//! Writes bytes one by one to an I/O port of the processor, without interrupts and without an
//! answer. A guest whose clock counts instructions sends its output this way.

use std::io::{Error, Result, Write};

/// A port that this process may write to.
///
/// A thread has the right only while it writes. With it, the kernel loads a bitmap at each switch to the
/// thread, and the threads it starts inherit that.
#[derive(Debug)]
pub struct OutputPort {
    number: u16,
}

impl OutputPort {
    /// Asks for the port of a number; only root gets it.
    ///
    /// # Errors
    /// The system's; on another architecture than x86-64.
    pub fn open(number: u16) -> Result<Self> {
        let port = Self { number };
        port.allow(true)?;
        port.allow(false)?;
        Ok(port)
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn allow(&self, on: bool) -> Result<()> {
        let (from, count): (libc::c_ulong, libc::c_ulong) = (self.number.into(), 1);
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
            "port {:#x} exists on x86-64 only",
            self.number
        )))
    }
}

impl Write for OutputPort {
    #[cfg(target_arch = "x86_64")]
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.allow(true)?;
        // SAFETY: this thread has the right to this port; the instruction reads `bytes` and nothing
        // else. The direction flag is clear by the ABI.
        unsafe {
            std::arch::asm!(
                "rep outsb",
                in("dx") self.number,
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
        Err(Error::other(format!("no port {:#x}", self.number)))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
