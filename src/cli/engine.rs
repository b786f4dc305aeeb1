//! `stackrace show engine`: what the load generator costs and may use on this machine, measured now.

use serde_json::json;
use stackrace_engine::clock::Clock;

use crate::observe;
use crate::unit;

/// Measurements of the generator: the smallest is the one least disturbed.
const TIMES: usize = 3;

/// What the generator itself costs, ns per operation.
pub(super) fn own_ns() -> f64 {
    let all = std::iter::repeat_with(stackrace_engine::self_cost).take(TIMES);
    all.fold(f64::MAX, f64::min)
}

/// Measures, for at most half a second, and says what was found.
pub(super) fn render(as_json: bool) -> String {
    let clock = Clock::calibrated();
    let own_ns = own_ns();
    // The time the measurement above took is what the clocks are compared over.
    let apart = clock.disagreement();
    let ring = stackrace_engine::io_uring_allowed();
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
        });
        return format!("{object:#}\n");
    }
    let clock = match clock.name() {
        "tsc" => format!(
            "time-stamp counter, {:.0} ppm off the monotonic clock",
            apart * 1e6
        ),
        name => format!("{name}: the time-stamp counter is not invariant here"),
    };
    let ring = match ring {
        Ok(()) => "available".to_owned(),
        Err(refusal) => format!("{refusal}\n           next: {}", refusal.next()),
    };
    format!(
        "kernel     {kernel}\n\
         generator  {} per operation, every latency recorded, no I/O\n\
         clock      {clock}\n\
         io_uring   {ring}\n",
        unit::time_ns(own_ns),
    )
}
