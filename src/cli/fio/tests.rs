//! Jobs run, and what is printed of them read again.
