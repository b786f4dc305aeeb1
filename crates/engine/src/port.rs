//! Writes bytes one by one to an I/O port of the processor, without interrupts and without an
//! answer. A guest whose clock counts instructions sends its output this way.

use std::io::{Error, Result, Write};

/// A port that this process may write to.
#[derive(Debug)]
pub struct OutputPort {
    number: u16,
}

impl OutputPort {
    /// Asks for the port of a number; only root gets it.
    ///
    /// # Errors
    /// The system's; on another architecture than x86-64.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn open(number: u16) -> Result<Self> {
        let (from, count, on): (libc::c_ulong, libc::c_ulong, libc::c_int) = (number.into(), 1, 1);
        // The call itself, because not every C library has a function for it.
        // SAFETY: this only asks for the right to use the port.
        match unsafe { libc::syscall(libc::SYS_ioperm, from, count, on) } {
            0 => Ok(Self { number }),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Asks for the port of a number; only root gets it.
    ///
    /// # Errors
    /// The system's; on another architecture than x86-64.
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub fn open(number: u16) -> Result<Self> {
        Err(Error::other(format!(
            "port {number:#x} exists on x86-64 only"
        )))
    }
}

impl Write for OutputPort {
    #[cfg(target_arch = "x86_64")]
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // SAFETY: `open` asked for the right to this port, which is the whole thread's; the
        // instruction reads `bytes` and nothing else. The direction flag is clear by the ABI.
        unsafe {
            std::arch::asm!(
                "rep outsb",
                in("dx") self.number,
                inout("rsi") bytes.as_ptr() => _,
                inout("rcx") bytes.len() => _,
                options(nostack, preserves_flags, readonly)
            );
        }
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
