//! Whether the data, the ratios and the remarks are what they should be.
