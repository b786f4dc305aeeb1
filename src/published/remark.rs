//! What a careful reader would say of the figures, each found by a check over the data.
//!
//! A check knows no study: it looks at figures and stated numbers, and is silent where the data
//! give it no reason to speak.

use super::card::Card;
use super::ratio::{contrasts, on};
use super::table::{Figure, Reading, Table, distinct};
use crate::unit;

/// A remark, and the check that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Name of the check: `single-run`.
    pub(crate) check: &'static str,
    /// One or two sentences.
    pub(crate) text: String,
}

/// Per cent of one processor from which a figure is the processor's.
const CPU_BOUND: f64 = 95.0;
/// Below this many seconds bonnie++ 1.03 gives no rate, unless it is built otherwise.
const BRIEF_S: f64 = 0.5;
/// An elapsed time times its rate may be off by this factor from its peers': rates leave out what
/// elapsed times hold (start, end), and trees are not copied at one speed.
const CONTRADICTION: f64 = 1.2;
/// From this share of the line's rate on, the line is what was measured.
const LINE_SHARE: f64 = 0.9;
/// So many times the seeks its disks did in the same run is no work of disks.
const NO_SEEK: f64 = 10.0;
/// A figure of a processor may differ by this factor from the median of its peers.
const OUTLIER: f64 = 1.5;
/// What cannot depend on a factor, and differs by less, shows what chance does.
const CONTROL: f64 = 1.05;

type Check = fn(&Card, &Table) -> Vec<String>;

/// Every check, in the order a reader needs them.
pub(super) const ALL: &[(&str, Check)] = &[
    ("no-figures", no_figures),
    ("single-run", single_run),
    ("contradiction", contradiction),
    ("stated-size", stated_size),
    ("confounded", confounded),
    ("order", order),
    ("cpu", cpu),
    ("outlier", outlier),
    ("too-short", too_short),
    ("brief", brief),
    ("memory", memory),
    ("size", size),
    ("line", line),
    ("below-line", below_line),
    ("rounding", rounding),
    ("control", control),
    ("placement", placement),
    ("resilver", resilver),
    ("rotation", rotation),
];

/// Everything the checks find.
pub(crate) fn remarks(card: &Card, table: &Table) -> Vec<Remark> {
    ALL.iter()
        .flat_map(|(check, find)| {
            find(card, table)
                .into_iter()
                .map(|text| Remark { check, text })
        })
        .collect()
}

/// Figures, by their places, that say nothing of storage: the processor was the limit, the phase
/// was too brief, or the figure contradicts another.
pub(crate) fn unfit(table: &Table) -> Vec<usize> {
    let odd = contradictions(table);
    table
        .figures
        .iter()
        .enumerate()
        .filter(|(at, figure)| {
            cpu_bound(figure) || is_brief(figure) || odd.iter().any(|odd| odd.figures.contains(at))
        })
        .map(|(at, _)| at)
        .collect()
}

fn cpu_bound(figure: &Figure) -> bool {
    figure
        .cpu_percent
        .is_some_and(|percent| percent >= CPU_BOUND)
}

fn is_brief(figure: &Figure) -> bool {
    figure.seconds().is_some_and(|seconds| seconds < BRIEF_S)
}

/// `sequential create (8 of 8)`: how many of each metric's figures something holds for.
fn counts(table: &Table, holds: impl Fn(&Figure) -> bool) -> String {
    let mut texts = Vec::new();
    for (workload, metric) in table.metrics() {
        let of: Vec<&Figure> = table.of_metric(workload, metric).collect();
        let n = of.iter().filter(|figure| holds(figure)).count();
        if n > 0 {
            texts.push(format!("{} ({n} of {})", on(workload, metric), of.len()));
        }
    }
    texts.join(", ")
}

fn no_figures(_: &Card, table: &Table) -> Vec<String> {
    if !table.figures.is_empty() {
        return Vec::new();
    }
    vec![
        "no figures were published, only plots: nothing can be recomputed, and what is read off a \
         logarithmic axis is no figure"
            .to_owned(),
    ]
}

fn single_run(_: &Card, table: &Table) -> Vec<String> {
    let cells = distinct(
        table
            .figures
            .iter()
            .map(|figure| (&figure.workload, &figure.metric.name, &figure.levels)),
    );
    if cells.is_empty() || cells.len() < table.figures.len() {
        return Vec::new();
    }
    vec![format!(
        "each of the {} figures was published once: chance and effect cannot be told apart, and \
         no interval can be given",
        table
            .figures
            .iter()
            .filter(|figure| !figure.derived())
            .count()
    )]
}

/// An elapsed time and a rate of the same trial that cannot both be right.
struct Contradiction {
    figures: [usize; 2],
    /// What the elapsed time should be by the rate, seconds.
    implied_s: f64,
    factor: f64,
}

/// The work of a load is the same in every treatment: elapsed times rate must be, too.
fn contradictions(table: &Table) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for workload in table.workloads() {
        let pairs = elapsed_and_rate(table, workload);
        let Some(work) = median(pairs.iter().map(|(_, s, rate)| s * rate).collect()) else {
            continue;
        };
        for (figures, seconds, rate) in pairs {
            let factor = seconds * rate / work;
            if factor.max(1.0 / factor) > CONTRADICTION {
                let implied_s = work / rate;
                found.push(Contradiction {
                    figures,
                    implied_s,
                    factor,
                });
            }
        }
    }
    found
}

/// Elapsed times of a load with the rate published beside each: places, seconds, B/s.
fn elapsed_and_rate(table: &Table, workload: &str) -> Vec<([usize; 2], f64, f64)> {
    let figures = || {
        table
            .figures
            .iter()
            .enumerate()
            .filter(|(_, f)| f.workload == workload)
    };
    figures()
        .filter(|(_, figure)| figure.metric.name == "elapsed")
        .filter_map(|(at, elapsed)| {
            let (rate_at, rate) = figures().find(|(_, other)| {
                other.levels == elapsed.levels && other.metric.unit == "B/s" && !other.derived()
            })?;
            Some(([at, rate_at], elapsed.value()?, rate.value()?))
        })
        .collect()
}

fn contradiction(card: &Card, table: &Table) -> Vec<String> {
    contradictions(table)
        .into_iter()
        .map(|odd| {
            let [elapsed, rate] = odd.figures.map(|at| &table.figures[at]);
            format!(
                "{} of {}: an elapsed time of {:.1} s and a rate of {} contradict each other by a \
                 factor of {:.2}: by the rate, and the work of the other treatments, it took \
                 {:.0} s. Both are left out of the conclusions",
                elapsed.workload,
                card.treatment(&elapsed.levels),
                elapsed.value().unwrap_or(f64::NAN),
                unit::bytes_per_second(rate.value().unwrap_or(f64::NAN)),
                odd.factor.max(1.0 / odd.factor),
                odd.implied_s,
            )
        })
        .collect()
}

/// Bytes stated for a load, against its elapsed times times its rates.
fn stated_size(card: &Card, table: &Table) -> Vec<String> {
    let mut texts = Vec::new();
    for (workload, stated) in card.stated.bytes {
        let work = median(
            elapsed_and_rate(table, workload)
                .iter()
                .map(|(_, s, rate)| s * rate)
                .collect(),
        );
        let Some(ratio) = work.map(|work| work / *stated as f64) else {
            continue;
        };
        if ratio.max(1.0 / ratio) > 1.03 {
            texts.push(format!(
                "{workload}: {:.1} GB are stated; elapsed times and rates make {:.2} GB, {ratio:.2} \
                 times that (a unit of 2^30 instead of 10^9 bytes would be {:.2})",
                *stated as f64 / 1e9,
                ratio * *stated as f64 / 1e9,
                (1_u64 << 30) as f64 / 1e9
            ));
        }
    }
    texts
}

/// Two levels measured on different machines, or on different amounts of data.
fn confounded(card: &Card, table: &Table) -> Vec<String> {
    let mut texts = Vec::new();
    for contrast in contrasts(card, table) {
        let [a, b] = contrast.figures.map(|at| &table.figures[at]);
        let what = format!(
            "{} {} against {}",
            card.factors[contrast.factor].name, contrast.b, contrast.a
        );
        if a.machine != b.machine {
            texts.push(format!(
                "{what}: measured on two machines ({} and {}), so that the ratio is theirs too",
                b.machine, a.machine
            ));
        }
        if let (Some(x), Some(y)) = (a.data_bytes, b.data_bytes)
            && x != y
        {
            texts.push(format!(
                "{what}: measured on {} and {} of data",
                unit::bytes(y),
                unit::bytes(x)
            ));
        }
    }
    distinct(texts.into_iter())
}

/// DRBD's protocols wait for less the earlier their letter: a figure of writes that rises from A
/// to C shows what chance (or another cause) does.
fn order(card: &Card, table: &Table) -> Vec<String> {
    let Some(at) = card
        .factors
        .iter()
        .position(|factor| factor.name == "drbd_protocol")
    else {
        return Vec::new();
    };
    let rates = |protocol: &str| -> Vec<f64> {
        table
            .figures
            .iter()
            .filter(|f| f.levels[at] == protocol && f.metric.name == "block output")
            .filter(|f| f.levels.iter().all(|level| level != "gfs2"))
            .filter_map(Figure::value)
            .collect()
    };
    let (least, most) = (rates("A"), rates("C"));
    let (Some(a), Some(c)) = (super::geometric_mean(&least), super::geometric_mean(&most)) else {
        return Vec::new();
    };
    if a >= c {
        return Vec::new();
    }
    vec![format!(
        "protocol C, which waits for the peer's disk, wrote {:.2} times as fast as protocol A, \
         which waits for neither: no protocol can do that, so differences of this size are chance \
         here",
        c / a
    )]
}

fn cpu(_: &Card, table: &Table) -> Vec<String> {
    let bound = counts(table, cpu_bound);
    if bound.is_empty() {
        return Vec::new();
    }
    let mut texts = vec![format!(
        "the processor, not the storage, was the limit (%CP of {CPU_BOUND:.0} or more): {bound}"
    )];
    for metric in ["per-character output", "per-character input"] {
        let of: Vec<&Figure> = table
            .figures
            .iter()
            .filter(|f| f.metric.name == metric)
            .collect();
        if of.iter().all(|figure| cpu_bound(figure)) && !of.is_empty() {
            let block = metric.replace("per-character", "block");
            texts.push(format!(
                "{metric} differs by a factor of {:.2} between treatments where {block} differs \
                 by {:.2}: it measures how fast the processor handles characters",
                spread(of.iter().filter_map(|f| f.value())),
                spread(
                    table
                        .figures
                        .iter()
                        .filter(|f| f.metric.name == block)
                        .filter_map(Figure::value)
                ),
            ));
        }
    }
    let over = table
        .figures
        .iter()
        .filter(|f| is_brief(f) && f.cpu_percent.is_some_and(|p| p > 100.0));
    let highest = over
        .clone()
        .filter_map(|f| f.cpu_percent)
        .fold(0.0, f64::max);
    if highest > 0.0 {
        texts.push(format!(
            "{} figures report more than 100 % of one processor (up to {highest:.0} %) for a \
             single thread: their phases are shorter than the clock of processor time can tell",
            over.count()
        ));
    }
    texts
}

/// Where the processor is the limit all treatments are alike; one that is not was disturbed.
fn outlier(card: &Card, table: &Table) -> Vec<String> {
    let mut texts = Vec::new();
    for (workload, metric) in table.metrics() {
        let of: Vec<&Figure> = table.of_metric(workload, metric).collect();
        let values: Vec<f64> = of.iter().filter_map(|figure| figure.value()).collect();
        let Some(middle) = median(values).filter(|_| of.iter().all(|figure| cpu_bound(figure)))
        else {
            continue;
        };
        for figure in of {
            let Some(value) = figure.value() else {
                continue;
            };
            if (value / middle).max(middle / value) > OUTLIER {
                texts.push(format!(
                    "{metric} of {}: {} where the middle treatment has {}, with the processor as the limit in \
                     both: something else ran, and a single run cannot show it",
                    card.treatment(&figure.levels),
                    unit::operations_per_second(value),
                    unit::operations_per_second(middle)
                ));
            }
        }
    }
    texts
}

fn too_short(_: &Card, table: &Table) -> Vec<String> {
    let short = counts(table, |figure| figure.reading == Reading::TooShort);
    if short.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "+++++ is not 0 and not fast: the phase was over in less than {BRIEF_S} s, too short for \
         a rate: {short}"
    )]
}

fn brief(_: &Card, table: &Table) -> Vec<String> {
    let brief = counts(table, is_brief);
    let shortest = table
        .figures
        .iter()
        .filter(|figure| is_brief(figure))
        .filter_map(Figure::seconds)
        .reduce(f64::min);
    let Some(shortest) = shortest else {
        return Vec::new();
    };
    vec![format!(
        "rates over less than {BRIEF_S} s, where bonnie++ by default gives none (the shortest took \
         {}): {brief}",
        unit::time_ns(shortest * 1e9)
    )]
}

/// Files created, looked up and deleted faster than the same disks seek: memory did it.
fn memory(_: &Card, table: &Table) -> Vec<String> {
    let seeks = |figure: &Figure| {
        table
            .figures
            .iter()
            .find(|f| f.metric.name == "random seeks" && f.levels == figure.levels)
            .and_then(Figure::value)
    };
    let times = |figure: &Figure| -> Option<f64> {
        let of_files = ["create", "stat", "delete"]
            .iter()
            .any(|word| figure.metric.name.ends_with(word));
        Some(figure.value().filter(|_| of_files)? / seeks(figure)?)
    };
    let cached: Vec<f64> = table
        .figures
        .iter()
        .filter_map(times)
        .filter(|times| *times > NO_SEEK)
        .collect();
    let mut texts = Vec::new();
    if let Some(least) = cached.iter().copied().reduce(f64::min) {
        texts.push(format!(
            "files were created, looked up or deleted {least:.0} to {:.0} times as often as the same \
             disks seek in the same run: this is memory, not disks: {}",
            cached.iter().copied().fold(0.0, f64::max),
            counts(table, |figure| times(figure).is_some_and(|times| times > NO_SEEK))
        ));
    }
    let slow: Vec<&Figure> = table
        .figures
        .iter()
        .filter(|figure| times(figure).is_some_and(|times| times < 3.0))
        .collect();
    if !slow.is_empty() {
        texts.push(format!(
            "{} figures of files are at {:.1} to {:.1} times the seeks of the same run: here every \
             operation went to a disk or over the network",
            slow.len(),
            slow.iter()
                .filter_map(|f| times(f))
                .fold(f64::INFINITY, f64::min),
            slow.iter().filter_map(|f| times(f)).fold(0.0, f64::max),
        ));
    }
    texts
}

/// Data that memory can hold a good part of.
fn size(card: &Card, table: &Table) -> Vec<String> {
    let Some(memory) = card.stated.memory_bytes else {
        return Vec::new();
    };
    let stated = card
        .stated
        .bytes
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), *bytes));
    let measured = table
        .figures
        .iter()
        .filter_map(|figure| Some((figure.workload.clone(), figure.data_bytes?)));
    // What a load moved is said beside its figures, where there are any.
    let stated = stated.filter(|_| table.figures.is_empty());
    distinct(measured.chain(stated))
        .into_iter()
        .filter(|(_, bytes)| (*bytes as f64) < 1.9 * memory as f64)
        .map(|(workload, bytes)| {
            format!(
                "{workload}: {} of data, {:.2} times the memory of {}: memory can hold much of it, \
                 so that what is not read cold and written through is partly the cache's",
                unit::bytes(bytes),
                bytes as f64 / memory as f64,
                unit::bytes(memory)
            )
        })
        .collect()
}

/// Whether a load crosses the line, and in which direction writes do.
fn crosses(card: &Card, figure: &Figure) -> bool {
    figure.metric.unit == "B/s" && !card.factors.iter().any(|f| f.name == "drbd_protocol")
}

fn line(card: &Card, table: &Table) -> Vec<String> {
    let Some(line) = card.stated.line else {
        return Vec::new();
    };
    let share = |figure: &Figure| figure.value().unwrap_or(0.0) / line;
    let mut texts = Vec::new();
    let at_line =
        |figure: &Figure| crosses(card, figure) && (LINE_SHARE..=1.0).contains(&share(figure));
    if table.figures.iter().any(at_line) {
        texts.push(format!(
            "at {:.0} % or more of what the line carries ({}), so that the line was measured and \
             storage may be faster: {}",
            LINE_SHARE * 100.0,
            unit::bytes_per_second(line),
            counts(table, at_line)
        ));
    }
    let above = |figure: &Figure| crosses(card, figure) && share(figure) > 1.0;
    if table.figures.iter().any(above) {
        texts.push(format!(
            "faster than the line ({}), so that it did not cross it; the client's cache answered: {}",
            unit::bytes_per_second(line),
            counts(table, above)
        ));
    }
    texts
}

/// Replicated writes slower than both the line and the same disks alone.
fn below_line(card: &Card, table: &Table) -> Vec<String> {
    let (Some(line), Some(at)) = (
        card.stated.line,
        card.factors
            .iter()
            .position(|factor| factor.name == "drbd_protocol"),
    ) else {
        return Vec::new();
    };
    let best = |replicated: bool| {
        table
            .figures
            .iter()
            .filter(|f| f.metric.name == "block output" && (f.levels[at] != "none") == replicated)
            .filter_map(Figure::value)
            .reduce(f64::max)
    };
    let (Some(alone), Some(mirrored)) = (best(false), best(true)) else {
        return Vec::new();
    };
    if mirrored > 0.7 * line.min(alone) {
        return Vec::new();
    }
    vec![format!(
        "the fastest replicated block output, {}, is {:.0} % of the line and {:.0} % of the disks \
         alone: neither was the limit, so waiting (a flush, a round trip) was",
        unit::bytes_per_second(mirrored),
        mirrored / line * 100.0,
        mirrored / alone * 100.0
    )]
}

/// Whole numbers so small that rounding moves their ratios.
fn rounding(_: &Card, table: &Table) -> Vec<String> {
    let coarse = |figure: &Figure| {
        figure.original == "1/s" && figure.value().is_some_and(|v| v.fract() == 0.0 && v < 20.0)
    };
    let least = table
        .figures
        .iter()
        .filter(|f| coarse(f))
        .filter_map(Figure::value)
        .reduce(f64::min);
    let Some(least) = least else {
        return Vec::new();
    };
    vec![format!(
        "rates given as whole numbers below 20 a second: rounding alone is up to ±{:.0} % of them: {}",
        50.0 / least,
        counts(table, coarse)
    )]
}

/// A metric that hardly moves over the levels of a factor others move by far.
fn control(card: &Card, table: &Table) -> Vec<String> {
    let all = contrasts(card, table);
    let unfit = unfit(table);
    let mut texts = Vec::new();
    for (factor, about) in card.factors.iter().enumerate() {
        let of: Vec<_> = all
            .iter()
            .filter(|c| c.factor == factor && !c.figures.iter().any(|at| unfit.contains(at)))
            .collect();
        let off = |ratio: f64| ratio.max(1.0 / ratio);
        if !of.iter().any(|contrast| off(contrast.ratio) > 2.0) {
            continue;
        }
        let names = distinct(of.iter().map(|contrast| contrast.on()));
        let still: Vec<String> = names
            .into_iter()
            .filter(|on| {
                let mut of = of.iter().filter(|contrast| contrast.on() == *on);
                of.clone().count() > 1 && of.all(|contrast| off(contrast.ratio) < CONTROL)
            })
            .collect();
        if !still.is_empty() {
            texts.push(format!(
                "{} moves other figures more than twofold and these by less than {:.0} %, a \
                 control: chance is about that large here: {}",
                about.name,
                (CONTROL - 1.0) * 100.0,
                still.join(", ")
            ));
        }
    }
    texts
}

/// Copies of one file that differ for every reader alike: where they lie differs, not who reads.
fn placement(card: &Card, table: &Table) -> Vec<String> {
    let Some(factor) = card
        .factors
        .iter()
        .position(|f| f.name == "source_written_by")
    else {
        return Vec::new();
    };
    let all = contrasts(card, table);
    let of: Vec<_> = all.iter().filter(|c| c.factor == factor).collect();
    let low = of.iter().map(|c| c.ratio).fold(f64::INFINITY, f64::min);
    let high = of.iter().map(|c| c.ratio).fold(0.0, f64::max);
    let Some(first) = of
        .first()
        .filter(|_| of.len() > 2 && (high < 1.0 || low > 1.0))
    else {
        return Vec::new();
    };
    let off = |ratio: f64| (ratio.recip() - 1.0).abs() * 100.0;
    let (least, most) = (off(low).min(off(high)), off(low).max(off(high)));
    vec![format!(
        "every reader took {least:.0} to {most:.0} % {} over the copies not made by {}: where a \
         copy lies on the disks decides that, not the system that reads it",
        if high < 1.0 { "longer" } else { "less" },
        first.a
    )]
}

/// The rate a redundant pool fills a new disk at, and the rate it reads at meanwhile.
fn resilver(card: &Card, _: &Table) -> Vec<String> {
    let Some([written, seconds, scan, allocated]) = card.stated.resilver else {
        return Vec::new();
    };
    let fits = (allocated / seconds / scan).max(scan * seconds / allocated) < 1.1;
    vec![format!(
        "the resilver wrote {} to the new disk; the stated {} is how fast the {:.2} TB allocated \
         were scanned{}",
        unit::bytes_per_second(written / seconds),
        unit::bytes_per_second(scan),
        allocated / 1e12,
        if fits {
            format!(
                " ({} by the time stated)",
                unit::bytes_per_second(allocated / seconds)
            )
        } else {
            format!(
                ", which contradicts the time stated ({})",
                unit::bytes_per_second(allocated / seconds)
            )
        }
    )]
}

/// Stated rates that a cache should have lifted.
fn rotation(card: &Card, _: &Table) -> Vec<String> {
    let rate = |name: &str| {
        card.stated
            .about
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, rate)| *rate)
    };
    let (Some(read), Some(write)) = (rate("random read"), rate("random write")) else {
        return Vec::new();
    };
    if write >= read {
        return Vec::new();
    }
    vec![format!(
        "durable random writes at {:.2} times random reads: a battery-backed cache should answer \
         them without the disk, so it was off, passed by, or each write needed more than one \
         access",
        write / read
    )]
}

fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    high / low
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
