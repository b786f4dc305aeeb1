//! Job files read, and refused.
