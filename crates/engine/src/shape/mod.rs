//! Which operation comes next: kind, file, offset, size.
//!
//! A [`OpSequence`] is one worker's share of the phase: an endless, deterministic sequence of [`BlockStep`]s
//! that follows from the [`Spec`], its seed and the worker's number alone. No memory grows with
//! the size of the files, and no step allocates.
//!
//! Only whole blocks are visited: what is left at the end of a file, smaller than a block, is not
//! touched. Random blocks lie at multiples of [`Spec::align`], else of their own size; sequential
//! streams leave no gaps.

mod blocks;
mod mix;
mod permutation;
mod share;
mod sizes;
mod stream;
mod zipf;

use std::num::NonZeroU32;

pub use blocks::BlockMap;
pub use mix::Mix;
pub use permutation::Permutation;
pub use share::{BlockStep, WorkerShare};
pub use sizes::Sizes;
pub use stream::SequentialStream;
pub use zipf::Zipf;

use crate::error::StartError;
use crate::outcome::Op;
use crate::spec::{AccessPattern, FilePart, Spec};
use stackrace_system::draw::{Draw, derive};
use stackrace_system::memory::CachePadded;

/// The choice of a block of one size.
#[derive(Debug, Clone)]
enum Chooser {
    Uniform,
    /// Block `permutation(next)` of pass `pass`; `next` steps by the number of workers.
    OncePerPass {
        permutation: Permutation,
        next: u64,
        first: u64,
        step: u64,
        pass: u64,
        seed: u64,
    },
    Zipf {
        zipf: Zipf,
        scatter: Permutation,
    },
    /// Rank `(blocks - 1) * u^exponent`, as fio defines it, scattered.
    Pareto {
        exponent: f64,
        scatter: Permutation,
    },
    /// `spare`: the second number each Box-Muller transform yields.
    Normal {
        deviation: f64,
        spare: Option<f64>,
    },
    HotCold {
        hot: u64,
        threshold: u64,
    },
}

/// All blocks of one size.
#[derive(Debug, Clone)]
struct Field {
    blocks: BlockMap,
    chooser: Chooser,
}

/// One worker's sequence of operations.
#[derive(Debug, Clone)]
pub struct OpSequence {
    mix: Mix,
    sizes: Sizes,
    draw: Draw,
    order: BlockOrder,
    part: Option<FilePart>,
}

#[derive(Debug, Clone)]
enum BlockOrder {
    Stream(SequentialStream),
    /// One field for each block size. All workers' are laid out by one thread, side by side.
    Random(Vec<CachePadded<Field>>),
}

/// Purposes the phase's seed is used for.
const PURPOSE_ORDER: u64 = 0x6f72_6465_7200_0000;
const PURPOSE_MIX: u64 = 0x6d69_7800_0000_0000;
const PURPOSE_SIZES: u64 = 0x7369_7a65_0000_0000;
const PURPOSE_SCATTER: u64 = 0x7363_6174_7400_0000;
const PURPOSE_PASS: u64 = 0x7061_7373_0000_0000;

/// Number of times that a normal deviate outside the range is drawn again before a uniform one
/// takes its place. Matters only for deviations of many times the range, whose limit is uniform
/// anyway.
const REDRAWS: u32 = 64;

impl OpSequence {
    /// The sequence of one share of a phase.
    ///
    /// # Errors
    /// [`StartError::Spec`] if the numbers make no sense or the files hold too few blocks.
    pub fn new(spec: &Spec, share: &WorkerShare) -> Result<OpSequence, StartError> {
        check(spec)?;
        let stop = spec.stop.ops;
        // The exact shares below count over the whole phase, so each worker must know where its
        // part begins.
        let begin = stop.map_or(0, |total| share.operations_before(total));
        let end = stop.map_or(u64::MAX, |total| begin + share.operations(total));
        let worker = u64::from(share.worker);
        let mix_draw = Draw::new(spec.seed, PURPOSE_MIX | worker);
        let mix = Mix::new(spec.read_share, begin..end, mix_draw);
        let size_seed = derive(spec.seed, PURPOSE_SIZES | worker);
        let size_draw = |link| Draw::new(size_seed, link as u64);
        let sizes = Sizes::new(&spec.block_sizes, begin..end, size_draw);
        let order = match spec.access {
            AccessPattern::Sequential => {
                BlockOrder::Stream(SequentialStream::new(spec, sizes.all(), share)?)
            }
            access => {
                let field = |size: &u32| Field::new(spec, *size, access, share).map(CachePadded);
                BlockOrder::Random(sizes.all().iter().map(field).collect::<Result<_, _>>()?)
            }
        };
        let draw = Draw::new(spec.seed, PURPOSE_ORDER | worker);
        Ok(OpSequence {
            mix,
            sizes,
            draw,
            order,
            part: spec.part,
        })
    }

    /// Draws the next operation: read or write, where, how many bytes.
    #[inline(always)]
    pub fn step(&mut self) -> BlockStep {
        let op = if self.mix.chooses() {
            Op::Read
        } else {
            Op::Write
        };
        let size_index = self.sizes.index();
        let size = self.sizes.all()[size_index];
        let (target, offset) = match &mut self.order {
            BlockOrder::Stream(stream) => stream.advance(size),
            BlockOrder::Random(fields) => fields[size_index].0.choose(&mut self.draw),
        };
        // Other processes have the bytes in between.
        let offset = match self.part {
            None => offset,
            Some(part) => part.offset(offset),
        };
        BlockStep {
            op,
            target,
            size,
            offset,
        }
    }
}

impl Iterator for OpSequence {
    type Item = BlockStep;

    /// Returns the next step; never `None`.
    fn next(&mut self) -> Option<BlockStep> {
        Some(self.step())
    }
}

/// Refuses what cannot be carried out.
fn check(spec: &Spec) -> Result<(), StartError> {
    let refuse = |what: String, next| Err(StartError::Spec { what, next });
    if spec.block_sizes.is_empty() || spec.block_sizes.iter().all(|(_, weight)| *weight == 0) {
        return refuse(
            "no block size has a weight".to_owned(),
            "give at least one block size",
        );
    }
    if spec.block_sizes.iter().any(|(size, _)| *size == 0) {
        return refuse(
            "a block size is 0 bytes".to_owned(),
            "give block sizes above 0",
        );
    }
    if !(0.0..=1.0).contains(&spec.read_share) {
        let what = format!("the share of reads is {}", spec.read_share);
        return refuse(what, "give a share from 0 to 1");
    }
    let open_unit = |value: f64| value > 0.0 && value < 1.0;
    let sound = match spec.access {
        AccessPattern::Sequential | AccessPattern::Uniform | AccessPattern::OncePerPass => true,
        AccessPattern::Zipf(exponent) => exponent > 0.0 && exponent.is_finite(),
        AccessPattern::Pareto(h) => open_unit(h),
        AccessPattern::Normal(deviation) => deviation > 0.0 && deviation.is_finite(),
        AccessPattern::HotCold { hot_range, hot_ops } => open_unit(hot_range) && open_unit(hot_ops),
    };
    if !sound {
        let what = format!("{:?} has a parameter out of range", spec.access);
        return refuse(
            what,
            "give a Zipf exponent or deviation above 0, shares between 0 and 1",
        );
    }
    if spec.access == AccessPattern::OncePerPass && spec.block_sizes.len() > 1 {
        let what = format!(
            "each block once per pass, with {} block sizes",
            spec.block_sizes.len()
        );
        return refuse(
            what,
            "give a single block size: blocks of different sizes overlap",
        );
    }
    spec.align.map_or(Ok(()), |align| check_align(spec, align))
}

/// Refuses an alignment that cannot be kept.
fn check_align(spec: &Spec, align: NonZeroU32) -> Result<(), StartError> {
    let refuse = |what: String, next| Err(StartError::Spec { what, next });
    let largest = spec.block_sizes.iter().map(|(size, _)| *size).max();
    match spec.access {
        AccessPattern::Sequential => refuse(
            format!("an alignment of {align} bytes for sequential access"),
            "leave the alignment out: sequential blocks follow each other without gaps",
        ),
        AccessPattern::OncePerPass if largest > Some(align.get()) => refuse(
            format!("each block once per pass, with blocks that overlap at {align} bytes apart"),
            "give an alignment of at least the block size",
        ),
        _ => Ok(()),
    }
}

impl Field {
    fn new(
        spec: &Spec,
        size: u32,
        access: AccessPattern,
        share: &WorkerShare,
    ) -> Result<Field, StartError> {
        let stride = spec.align.map_or(size, NonZeroU32::get);
        let blocks = BlockMap::every(&spec.targets, u64::from(size), u64::from(stride));
        let count = blocks.count();
        if count == 0 {
            return Err(StartError::Spec {
                what: format!("a block of {size} bytes fits into no file"),
                next: "lower the block size, or make the files larger",
            });
        }
        let scatter = || Permutation::new(count, derive(spec.seed, PURPOSE_SCATTER));
        let chooser = match access {
            // The first has an order of its own.
            AccessPattern::Sequential | AccessPattern::Uniform => Chooser::Uniform,
            AccessPattern::OncePerPass => {
                // Worker k takes the positions k, k + workers, …: together each one once.
                let (first, step) = (u64::from(share.worker), u64::from(share.workers));
                if count < step {
                    return Err(StartError::Spec {
                        what: format!("{count} blocks cannot be shared by {step} workers"),
                        next: "use fewer threads or a smaller queue depth, or make the files larger",
                    });
                }
                let permutation = pass_permutation(count, spec.seed, 0);
                let seed = spec.seed;
                Chooser::OncePerPass {
                    permutation,
                    next: first,
                    first,
                    step,
                    pass: 0,
                    seed,
                }
            }
            AccessPattern::Zipf(exponent) => Chooser::Zipf {
                zipf: Zipf::new(count, exponent),
                scatter: scatter(),
            },
            AccessPattern::Pareto(h) => Chooser::Pareto {
                exponent: h.ln() / (1.0 - h).ln(),
                scatter: scatter(),
            },
            AccessPattern::Normal(deviation) => Chooser::Normal {
                deviation,
                spare: None,
            },
            // A single block cannot be parted into hot and cold.
            AccessPattern::HotCold { .. } if count == 1 => Chooser::Uniform,
            AccessPattern::HotCold { hot_range, hot_ops } => {
                // At least one block on each side, or a draw below 0 would be needed.
                let hot = ((count as f64 * hot_range).ceil() as u64).clamp(1, count - 1);
                // A draw of 64 bits is below this with the probability asked for.
                Chooser::HotCold {
                    hot,
                    threshold: (hot_ops * 2f64.powi(64)) as u64,
                }
            }
        };
        Ok(Field { blocks, chooser })
    }

    /// The most common choice is tested first, so that it costs one comparison. A `match` with many
    /// arms becomes a jump table, and the processor mispredicts that jump after each system call.
    #[inline(always)]
    fn choose(&mut self, draw: &mut Draw) -> (u32, u64) {
        if let Chooser::Uniform = self.chooser {
            return self.blocks.locate(draw.below(self.blocks.count()));
        }
        self.choose_unevenly(draw)
    }

    fn choose_unevenly(&mut self, draw: &mut Draw) -> (u32, u64) {
        let count = self.blocks.count();
        let index = match &mut self.chooser {
            Chooser::Uniform => draw.below(count),
            Chooser::OncePerPass {
                permutation,
                next,
                first,
                step,
                pass,
                seed,
            } => {
                if *next >= count {
                    *pass += 1;
                    *next = *first;
                    *permutation = pass_permutation(count, *seed, *pass);
                }
                let index = permutation.apply(*next);
                *next += *step;
                index
            }
            Chooser::Zipf { zipf, scatter } => scatter.apply(zipf.rank(draw)),
            Chooser::Pareto { exponent, scatter } => {
                let rank = (count - 1) as f64 * draw.unit().powf(*exponent);
                // Rounding may reach the number of blocks itself.
                scatter.apply((rank as u64).min(count - 1))
            }
            Chooser::Normal { deviation, spare } => normal(draw, count, *deviation, spare),
            Chooser::HotCold { hot, threshold } => {
                if draw.bits() < *threshold {
                    draw.below(*hot)
                } else {
                    *hot + draw.below(count - *hot)
                }
            }
        };
        self.blocks.locate(index)
    }
}

/// The order of one pass: the same for all workers, another one each time.
fn pass_permutation(count: u64, seed: u64, pass: u64) -> Permutation {
    Permutation::new(count, derive(seed, PURPOSE_PASS).wrapping_add(pass))
}

/// A block near the middle, by the Box-Muller transform; deviates outside the range are redrawn.
fn normal(draw: &mut Draw, count: u64, deviation: f64, spare: &mut Option<f64>) -> u64 {
    let blocks = count as f64;
    for _ in 0..REDRAWS {
        let deviate = spare.take().unwrap_or_else(|| {
            let radius = (-2.0 * (1.0 - draw.unit()).ln()).sqrt();
            let (sine, cosine) = (std::f64::consts::TAU * draw.unit()).sin_cos();
            *spare = Some(radius * sine);
            radius * cosine
        });
        let position = blocks * (0.5 + deviation * deviate);
        if (0.0..blocks).contains(&position) {
            return (position as u64).min(count - 1);
        }
    }
    // So wide a deviation that nearly all lie outside is uniform.
    draw.below(count)
}

#[cfg(test)]
mod tests;
