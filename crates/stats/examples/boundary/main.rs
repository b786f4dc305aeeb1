//! The error of looking after every round, by numerical integration: the table of
//! `crates/stats/src/looks.rs`.
//!
//! `boundary [NODES]` prints one line for each nominal level: the probability that a Student's t of
//! no difference is ever beyond that level, in two directions and in one. `bench/boundary` puts the
//! lines into the source.
//!
//! Only the direction of the vector of differences matters to t. With `c` the cosine between the
//! first n differences and (1, …, 1), and `a = c √n`, the next difference is an angle `φ` whose
//! density is proportional to `cos^(n-1) φ`, independent of `c`, and the next cosine is
//! `√((1 + a²) / (n + 1)) · cos(φ - arctan(1/a))`. So the probability of ever being beyond the
//! bound, as a function of the present t, follows backwards from round to round by one integral.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose output is its table"
)]

use stackrace_stats::looks::{FIRST_LOOK, weight};
use stackrace_stats::t_quantile;

/// The last round that is integrated; beyond it stands a bound.
const LAST: u32 = 960;
/// Points of the Gauss-Legendre rule of one piece of the integral.
const POINTS: usize = 32;

/// Whether a claim can be made in two directions or in one.
#[derive(Clone, Copy, PartialEq)]
enum Sides {
    Two,
    One,
}

fn main() {
    let nodes = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let nodes: usize = nodes.unwrap_or(300);
    let rule = gauss_legendre(POINTS);
    // A quarter of a decade from level to level.
    for step in 2..=28 {
        let level = 10.0_f64.powf(-f64::from(step) / 4.0);
        let [two, one] = [Sides::Two, Sides::One].map(|sides| ever(level, sides, nodes, &rule));
        println!("    ({level:.6e}, {two:.6e}, {one:.6e}),");
        eprintln!("{level:.3e} two {:.4} one {:.4}", level / two, level / one);
    }
}

/// How large t is at the bound of a look.
fn bound(level: f64, sides: Sides, n: u32) -> f64 {
    let tail = match sides {
        Sides::Two => level * weight(n) / 2.0,
        Sides::One => level * weight(n),
    };
    (-t_quantile(tail, f64::from(n - 1))).max(0.0)
}

/// The logarithm of the probability of a future beyond the bound, at equal steps of `asinh(t)`. It
/// falls fast with the distance from the bound, so its logarithm is what is interpolated.
struct Future {
    low: f64,
    step: f64,
    logarithms: Vec<f64>,
}

impl Future {
    fn at(&self, t: f64) -> f64 {
        let place =
            ((t.asinh() - self.low) / self.step).clamp(0.0, (self.logarithms.len() - 1) as f64);
        let left = (place as usize).min(self.logarithms.len() - 2);
        let share = place - left as f64;
        (self.logarithms[left] * (1.0 - share) + self.logarithms[left + 1] * share).exp()
    }
}

/// The probability that t is ever beyond the bound of its look.
fn ever(level: f64, sides: Sides, nodes: usize, rule: &[(f64, f64)]) -> f64 {
    let mut later: Option<Future> = None;
    for n in (FIRST_LOOK..LAST).rev() {
        let (here, next) = (bound(level, sides, n), bound(level, sides, n + 1));
        let low = lowest(here, sides, n);
        let step = (here.asinh() - low) / (nodes - 1) as f64;
        let value = |at: usize| {
            let t = (low + step * at as f64).sinh();
            one_more(t, n, next, sides, later.as_ref(), rule)
                .max(1e-300)
                .ln()
        };
        let logarithms = (0..nodes).map(value).collect();
        later = Some(Future {
            low,
            step,
            logarithms,
        });
    }
    let first = bound(level, sides, FIRST_LOOK);
    let low = lowest(first, sides, FIRST_LOOK);
    let future = later.expect("there are rounds after the first look");
    // The first t has two degrees of freedom: its density is (2 + t²)^(-3/2).
    let (begin, end) = (low, first.asinh());
    let pieces = 40;
    let width = (end - begin) / f64::from(pieces);
    let mut inside = 0.0;
    for piece in 0..pieces {
        let left = begin + width * f64::from(piece);
        for (x, weight) in rule {
            let t = (left + width * x).sinh();
            let density = (2.0 + t * t).powf(-1.5) * (1.0 + t * t).sqrt();
            inside += width * weight * density * future.at(t);
        }
    }
    level + inside + beyond(level, sides)
}

/// The lowest t that is followed, as `asinh(t)`: without a bound below, all but what is lost there
/// is too far away to matter.
fn lowest(bound: f64, sides: Sides, n: u32) -> f64 {
    match sides {
        Sides::Two => -bound.asinh(),
        Sides::One => t_quantile(1e-13, f64::from(n - 1)).asinh(),
    }
}

/// The probability of being beyond the bound with the next round or later, from `t` after `n`.
fn one_more(
    t: f64,
    n: u32,
    next_bound: f64,
    sides: Sides,
    later: Option<&Future>,
    rule: &[(f64, f64)],
) -> f64 {
    let count = f64::from(n);
    let a = t / (t * t + count - 1.0).sqrt() * count.sqrt();
    let length = ((1.0 + a * a) / (count + 1.0)).sqrt();
    // The angle at which the next cosine is largest in size.
    let turn = (1.0 / a).atan();
    let edge = next_bound / (next_bound * next_bound + count).sqrt();
    let limit = std::f64::consts::FRAC_PI_2.min(12.0 / count.sqrt());
    let may_exceed = sides == Sides::Two || a > 0.0;
    let out = (may_exceed && length > edge)
        .then(|| (edge / length).acos())
        .map(|reach| {
            (
                (turn - reach).clamp(-limit, limit),
                (turn + reach).clamp(-limit, limit),
            )
        });
    let scale = angle_scale(n);
    let weight_at = |angle: f64| scale * angle.cos().powi(n as i32 - 1);
    let next_t = |angle: f64| {
        let cosine = (a * angle.cos() + angle.sin()) / (count + 1.0).sqrt();
        cosine * count.sqrt() / (1.0 - cosine * cosine).max(1e-300).sqrt()
    };
    let integral = |from: f64, to: f64, value: &dyn Fn(f64) -> f64| -> f64 {
        let part = |(x, weight): &(f64, f64)| {
            let angle = from + (to - from) * x;
            (to - from) * weight * weight_at(angle) * value(angle)
        };
        rule.iter().map(part).sum()
    };
    let inside = |from: f64, to: f64| match later {
        Some(future) if to > from => {
            // Two halves: what is just inside the bound changes fast.
            let middle = from.midpoint(to);
            let value = |angle: f64| future.at(next_t(angle));
            integral(from, middle, &value) + integral(middle, to, &value)
        }
        _ => 0.0,
    };
    match out {
        None => inside(-limit, limit),
        Some((from, to)) => inside(-limit, from) + integral(from, to, &|_| 1.0) + inside(to, limit),
    }
}

/// What makes `cos^(n-1)` a density on (-π/2, π/2): Γ((n+1)/2) / (√π Γ(n/2)).
fn angle_scale(n: u32) -> f64 {
    // Γ(x + 1/2) / Γ(x) by steps of 1 from where it is known.
    let mut ratio = if n.is_multiple_of(2) {
        std::f64::consts::PI.sqrt() / 2.0
    } else {
        1.0 / std::f64::consts::PI.sqrt()
    };
    let mut x = if n.is_multiple_of(2) { 1.0 } else { 0.5 };
    while x < f64::from(n) / 2.0 - 0.25 {
        ratio *= (x + 0.5) / x;
        x += 1.0;
    }
    ratio / std::f64::consts::PI.sqrt()
}

/// More than the probability of being beyond the bound after the last round that is integrated:
/// for each doubling of rounds that of a Brownian motion, with the level its rounds begin at
/// (James, James and Siegmund, Biometrika 74, 1987).
fn beyond(level: f64, sides: Sides) -> f64 {
    let doublings = (0..20_u32).map(|doubling| {
        let level = level * weight(LAST << doubling);
        let tail = if sides == Sides::Two {
            level / 2.0
        } else {
            level
        };
        let b = -t_quantile(tail, f64::INFINITY);
        let density = (-b * b / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let both = density * ((b - 1.0 / b) * std::f64::consts::LN_2 + 4.0 / b);
        if sides == Sides::Two {
            both
        } else {
            both / 2.0
        }
    });
    doublings.sum()
}

/// Places in (0, 1) and weights of the Gauss-Legendre rule.
fn gauss_legendre(points: usize) -> Vec<(f64, f64)> {
    let n = points as f64;
    let root = |at: usize| {
        let mut x = (std::f64::consts::PI * (at as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 0.0;
        for _ in 0..100 {
            let (mut p, mut before) = (1.0, 0.0);
            for k in 1..=points {
                let k = k as f64;
                (p, before) = (((2.0 * k - 1.0) * x * p - (k - 1.0) * before) / k, p);
            }
            slope = n * (x * p - before) / (x * x - 1.0);
            x -= p / slope;
        }
        ((1.0 - x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..points).map(root).collect()
}
