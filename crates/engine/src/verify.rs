//! Whether what is read is what was written.
