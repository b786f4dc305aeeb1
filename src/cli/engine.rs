//! `stackrace show engine`: what the load generator costs and may use on this machine, measured now.

use serde_json::json;
use stackrace_engine::clock::FastClock;
use stackrace_engine::content::ContentRate;

use stackrace_base::unit;
use stackrace_machine::observe;

/// Operations over which the generator is measured for `show engine`.
const MANY: u64 = 200_000;
/// The same beside a load, which may itself be over in a few milliseconds.
const FEW: u64 = 5_000;

/// Cost of the generator itself beside a load, ns per operation.
pub(super) fn own_ns() -> f64 {
    stackrace_engine::least_self_cost(FEW)
}

/// Measures, for at most half a second, and says what was found.
pub(super) fn render(as_json: bool) -> String {
    let clock = FastClock::calibrated();
    let own_ns = stackrace_engine::least_self_cost(MANY);
    // The time the measurement above took is what the clocks are compared over.
    let apart = clock.disagreement();
    let ring = stackrace_engine::io_uring_allowed();
    let rates = stackrace_engine::content::rates();
    let kernel = observe::kernel();
    if as_json {
        let ring = match &ring {
            Ok(()) => json!({ "available": true, "why": null, "next": null }),
            Err(refusal) => json!({
                "available": false,
                "why": refusal.to_string(),
                "next": refusal.next(),
            }),
        };
        let object = json!({
            "kernel": kernel,
            "generator_ns_per_operation": own_ns,
            "clock": clock.name(),
            "clock_disagreement": apart,
            "io_uring": ring,
            "content": rates.unwrap_or_default().iter().map(|rate| json!({
                "kind": rate.kind,
                "block_bytes": rate.block_bytes,
                "bytes_per_second": rate.bytes_per_second,
            })).collect::<Vec<_>>(),
        });
        return format!("{object:#}\n");
    }
    let clock = match clock.name() {
        "tsc" => format!(
            "time-stamp counter, {:.0} ppm off the monotonic clock",
            apart * 1e6
        ),
        name => format!("{name}: processor or kernel does not vouch for the time-stamp counter"),
    };
    let ring = match ring {
        Ok(()) => "available".to_owned(),
        Err(refusal) => format!("{refusal}\n           next: {}", refusal.next()),
    };
    let rates = match rates {
        Ok(rates) => content(&rates),
        Err(error) => format!("\ncontent: {error}\n  next: {}\n", error.next()),
    };
    format!(
        "kernel     {kernel}\n\
         generator  {} per operation, every latency recorded, no I/O\n\
         clock      {clock}\n\
         io_uring   {ring}\n{rates}",
        unit::time_ns(own_ns),
    )
}

/// Speed at which one core makes what is written: a line for each kind, a column for each size of write.
/// Of a kind with one figure alone it stands in the first column.
fn content(rates: &[ContentRate]) -> String {
    // Far above any storage: a reader must see that none takes part.
    let mut text = format!("\n{:<33}", "content in memory, by one core");
    let kinds: Vec<&[ContentRate]> = rates.chunk_by(|a, b| a.kind == b.kind).collect();
    // All kinds have the same block sizes; those of the first are the head of the table.
    for rate in kinds.iter().take(1).copied().flatten() {
        text.push_str(&format!("{:>11}", unit::bytes(rate.block_bytes as u64)));
    }
    for kind in kinds {
        text.push_str(&format!("\n  {:<31}", kind[0].kind));
        for rate in kind {
            let rate = unit::bytes_per_second(rate.bytes_per_second);
            text.push_str(&format!("{rate:>11}"));
        }
    }
    text.push_str("\n  (made ready before it is written: no storage takes part)\n");
    text
}
