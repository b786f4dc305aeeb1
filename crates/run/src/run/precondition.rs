//! Preconditioning: a stack brought to its steady state before it is measured.
//!
//! After the SNIA Solid State Storage Performance Test Specification. First, whatever the workload:
//! twice the capacity is written from beginning to end. Capacity is what the data of the largest
//! trial take, as one file: more of a file system is never used. Then the workload itself, again
//! and again, until the last five values of its primary metric differ by no more than 20 % and
//! the line through them rises or falls by no more than 10 % of their mean, for at most 25 passes.
//! A pass is a complete trial (data laid out, stack settled, phases, files removed), but only its
//! figure is kept. The measured trial comes after the five steady passes and is not one of them.

use stackrace_engine::spec::{Content, IoTarget};
use stackrace_stats::{PASSES_MAX, steady_after};

use super::runner::failed;
use super::trial::{Before, Trial};
use stackrace_base::event::{Ended, Observation, Preconditioned};
use stackrace_study::plan::FILLS;

impl Trial<'_> {
    /// Writes `capacity` bytes over, then does passes until they are steady.
    ///
    /// # Errors
    /// How the trial ended that cannot follow.
    pub(super) fn precondition(
        &self,
        capacity: u64,
        observation: &mut Observation,
    ) -> Result<Preconditioned, Ended> {
        let clock = &self.executor.clock;
        let began = clock.now_ns();
        if capacity > 0 {
            self.write_over(capacity)?;
        }
        let mut done = Preconditioned {
            written_bytes: capacity.saturating_mul(FILLS.into()),
            ..Preconditioned::default()
        };
        // What could not be had is not level either.
        let mut figures: Vec<f64> = Vec::new();
        for number in (1..).take(PASSES_MAX) {
            let pass = Trial {
                before: Before::Pass(number),
                ..*self
            };
            let pass = pass.run();
            // What a pass was taken away from is missing to the trial as well.
            observation.exchanged = pass.exchanged;
            match pass.ended {
                Ended::Complete => {}
                Ended::Interrupted => return Err(Ended::Interrupted),
                Ended::Failed { error } => {
                    return Err(not_steady(format!("pass {number}: {error}")));
                }
            }
            let figure = pass.metrics.first().copied().flatten();
            done.passes.push(figure);
            figures.push(figure.unwrap_or(f64::NAN));
            // Asked after each pass: the window is the last five, whatever came before.
            done.steady = steady_after(&figures).is_some();
            if done.steady {
                break;
            }
        }
        done.elapsed_ns = clock.now_ns().saturating_sub(began);
        Ok(done)
    }

    /// Writes a file of so many bytes [`FILLS`] times, each time to the device, and removes it.
    fn write_over(&self, bytes: u64) -> Result<(), Ended> {
        let host = self.executor.host;
        let directory = self.standing.directory().join(".stackrace-fill");
        let path = directory.join("data");
        host.create_dir(&directory).map_err(not_steady)?;
        let control = self.begins("precondition");
        for turn in 0..u64::from(FILLS) {
            let target = IoTarget {
                path: path.clone(),
                bytes,
            };
            // Other data each time: storage that keeps the same block once would write them once.
            let seed = self.seed().wrapping_add(turn);
            let written = stackrace_engine::lay_out(&[target], Content::Random, seed, &control);
            written.map_err(|error| {
                let first = match self.standing.others().is_empty() {
                    true => "",
                    false => "node1: ",
                };
                not_steady(format!("{first}{error}; {}", error.next()))
            })?;
            if control.stopped() {
                return Err(Ended::Interrupted);
            }
        }
        host.remove_tree(&directory).map_err(not_steady)
    }
}

fn not_steady(error: impl std::fmt::Display) -> Ended {
    failed(format!("preconditioning: {error}"))
}
