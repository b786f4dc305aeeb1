//! Logarithms and powers with the same last digit on every processor.
//!
//! Those of `f64` are the C library's. It has one version for processors that multiply and add in one step and another for
//! the rest, and their last digits differ; so do those of another C library. The functions of
//! [libm](https://docs.rs/libm) are in Rust and part of the program: the same record gives the same figures everywhere.

pub use libm::{exp, expm1 as exp_m1, log as ln, log1p as ln_1p, log10, pow};

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 20,000 values each: every bit counts.
    #[test]
    fn every_bit_is_the_same_on_every_processor() {
        let mut sums = [0u64; 4];
        for at in 1..20_000u32 {
            let x = f64::from(at) / 1024.0;
            let values = [ln(x), exp(x), pow(x, 0.7), exp_m1(x)];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = sum.rotate_left(5) ^ value.to_bits();
            }
        }
        // Those of `f64` give other values on a Nehalem than on processors with fused multiply-add.
        assert_eq!(
            sums,
            [
                0xaf08_7bbf_156e_a8a8,
                0x95d8_f18c_7afc_08f5,
                0x4e1b_1369_5a5c_b02e,
                0x2189_39ed_c421_b66d,
            ]
        );
    }
}
