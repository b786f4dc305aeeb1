//! What content costs per write, beside copying the same bytes out of memory.
//!
//! `cargo run --release --example floor_content -p stackrace-engine [-- --json]`; min, median and
//! max of interleaved rounds: GB/s per core (10^9 B/s) and ns per 4 KiB. No figure is asserted:
//! this is for reading.

use stackrace_engine::content::{ContentRate, rates};

const ROUNDS: usize = 9;

/// Min, median and max over the rounds.
fn spread(
    rounds: &[Vec<ContentRate>],
    row: usize,
    figure: impl Fn(&ContentRate) -> f64,
) -> [f64; 3] {
    let mut figures: Vec<f64> = rounds.iter().map(|rates| figure(&rates[row])).collect();
    figures.sort_by(f64::total_cmp);
    [figures[0], figures[ROUNDS / 2], figures[ROUNDS - 1]]
}

#[expect(clippy::print_stdout, reason = "an example's output is its purpose")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let json = std::env::args().any(|word| word == "--json");
    let rounds = (0..ROUNDS)
        .map(|_| rates())
        .collect::<Result<Vec<_>, _>>()?;
    if !json {
        println!(
            "{:<32} {:>8}  {:>26}  {:>22}",
            "content", "bytes", "GB/s", "ns per 4 KiB"
        );
    }
    for (row, rate) in rounds[0].iter().enumerate() {
        let ContentRate {
            kind, block_bytes, ..
        } = rate;
        let gigabytes = spread(&rounds, row, |rate| rate.bytes_per_second / 1e9);
        let ns = spread(&rounds, row, ContentRate::ns_per_4_kib);
        let [least, median, most] = gigabytes;
        let [ns_least, ns_median, ns_most] = ns;
        if json {
            println!(
                "{{\"content\":\"{kind}\",\"block_bytes\":{block_bytes},\"rounds\":{ROUNDS},\
                 \"gb_per_s\":{{\"min\":{least:.3},\"median\":{median:.3},\"max\":{most:.3}}},\
                 \"ns_per_4_kib\":{{\"min\":{ns_least:.3},\"median\":{ns_median:.3},\"max\":{ns_most:.3}}}}}"
            );
        } else {
            println!(
                "{kind:<32} {block_bytes:>8}  {least:>8.1} {median:>8.1} {most:>8.1}  \
                 {ns_least:>6.1} {ns_median:>7.1} {ns_most:>7.1}"
            );
        }
    }
    Ok(())
}
