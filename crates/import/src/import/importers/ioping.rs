//! ioping 1.x: its final statistics, for people or raw (`-B`).
//!
//! Sizes are in powers of 1024, and a `k` of a count is 1000. ioping cuts a rate below 1000 to a whole number, so
//! that `operations` are computed from the mean latency, of which the rate is the inverse: the pauses between
//! requests (`-i`) are in neither. A raw line has no name: it is known by ten numbers that fit together.

use stackrace_base::event::Fact;
use stackrace_base::printed::text::{Figures, TextLine, agree, bytes_of, end, facts, lines, size};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "ioping",
    summary: "the final statistics of ioping 1.x, or the one raw line of -B",
    recognises: |text| {
        let all = lines(text);
        all.iter()
            .any(|line| title(*line).is_some() || Statistics::raw(*line).is_some())
    },
    read,
};

/// Ends the line before the statistics.
const TITLE: &str = " ioping statistics ---";
/// Stands in the first line of the statistics, `… requests completed in …`.
const COMPLETED: &str = " requests completed in ";
/// Begins the last line of the statistics.
const EXTREMES: &str = "min/avg/max/mdev = ";
/// Counts as ioping writes them.
const COUNTS: [(&str, f64); 5] = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
/// Times as ioping writes them, in ns.
const TIMES: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", NANOS),
    ("min", 60.0 * NANOS),
    ("hour", 3600.0 * NANOS),
];
/// ns of a second.
const NANOS: f64 = 1e9;
/// A mean of printed figures differs by so much from the exact one: three digits each.
const DIGITS: f64 = 0.011;

/// Output of ioping as far as it was read: the target of the statistics, and their first line.
#[derive(Debug, Default)]
struct Output<'a> {
    /// The path, and what it lies on in brackets.
    target: (&'a str, &'a str),
    /// Figures of the first line, with what it did; `None` if not read yet.
    first: Option<(Statistics, &'static str)>,
    generated: bool,
}

/// The figures that both forms have. Times are in ns.
#[derive(Debug, Clone, Copy)]
struct Statistics {
    /// Requests that count: neither the first ones nor any that was too fast or too slow.
    count: f64,
    /// Sum of all their times.
    busy: f64,
    /// B/s.
    speed: PrintedFigure,
    /// Bytes of one request, where the digits tell.
    request: Option<u64>,
    /// Smallest, mean and largest time, and the deviation.
    times: [PrintedFigure; 4],
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let all = lines(text);
    if all.iter().all(|line| title(*line).is_none()) {
        return raw_alone(&all);
    }
    let mut results = Vec::new();
    let mut output: Option<Output<'_>> = None;
    for line in all {
        let known = line.text.contains(COMPLETED) || line.text.contains(EXTREMES);
        match (title(line), output.as_mut()) {
            (Some(_), Some(_)) => return Err(line.refuse("the statistics before it to the end")),
            (Some(target), None) => {
                output = Some(Output {
                    target,
                    ..Output::default()
                });
            }
            (None, Some(open)) => {
                if let Some(result) = open.take(line)? {
                    results.push(result);
                    output = None;
                }
            }
            (None, None) if known => return Err(line.refuse("the line \"--- … ---\" before it")),
            // Single requests, and whatever stands around them.
            (None, None) => {}
        }
    }
    match output {
        Some(_) => Err(end(text, "the line \"min/avg/max/mdev\"")),
        None => Ok(results),
    }
}

/// A text with raw statistics. Of several lines nothing tells whether they are runs, parts of one (`-p`), or its
/// parts and their sum.
fn raw_alone(all: &[TextLine<'_>]) -> Result<Vec<Imported>, ImportError> {
    let mut found = None;
    for line in all {
        let Some(statistics) = Statistics::raw(*line) else {
            continue;
        };
        if found.is_some() {
            return Err(line.refuse("one line of raw statistics in a text"));
        }
        found = Some(statistics);
    }
    let imported = |statistics: Statistics| {
        let note = "raw statistics do not say whether it read or wrote";
        statistics.imported("", Vec::new(), Some(note))
    };
    Ok(found.map(imported).into_iter().collect())
}

/// Path and place of `--- /tmp (ext4 /dev/vda 252.0 GiB) ioping statistics ---`.
fn title(line: TextLine<'_>) -> Option<(&str, &str)> {
    let inside = line.after("--- ")?.strip_suffix(TITLE)?;
    // A path may have brackets too.
    inside.strip_suffix(')')?.rsplit_once(" (")
}

/// Reads `15.6 k`, `1.96 s`: a number and one of these units.
fn amount(text: &str, units: &[(&str, f64)]) -> Option<PrintedFigure> {
    let (digits, unit) = text.split_once(' ').unwrap_or((text, ""));
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some(PrintedFigure::read(digits)? * *factor)
}

fn bytes(text: &str) -> Option<PrintedFigure> {
    let (digits, unit) = text.split_once(' ')?;
    Some(PrintedFigure::read(digits)? * bytes_of(unit)?)
}

/// Returns true if a rate is the one that is printed, which may have lost what is behind the point.
fn same_rate(exact: f64, printed: f64) -> bool {
    agree(exact, printed) || (exact - printed).abs() <= 1.0
}

/// The one power of two that a size may be whose last digits are lost.
fn power_of_two(about: f64) -> Option<u64> {
    let powers = (9..40).map(|shift| 1u64 << shift);
    let near = |power: &u64| {
        let exact = *power as f64;
        (about - exact).abs() <= DIGITS * exact
    };
    powers.into_iter().find(near)
}

impl<'a> Output<'a> {
    /// The next line of it; the last one gives the result.
    fn take(&mut self, line: TextLine<'a>) -> Result<Option<Imported>, ImportError> {
        let text = line.text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let Some((statistics, did)) = &mut self.first else {
            self.first = Some(completed(line)?);
            return Ok(None);
        };
        if !self.generated {
            generated(line, statistics.count)?;
            self.generated = true;
            return Ok(None);
        }
        statistics.extremes(line)?;
        let (path, place) = self.target;
        let environment = facts([("target", path), ("place", place)]);
        Ok(Some(statistics.imported(did, environment, None)))
    }
}

/// Reads `15.6 k requests completed in 1.96 s, 60.9 MiB read, 7.95 k iops, 31.1 MiB/s`.
fn completed(line: TextLine<'_>) -> Result<(Statistics, &'static str), ImportError> {
    let refuse = || line.refuse("… requests completed in …, …, … iops, …/s");
    let (count, rest) = line.text.trim().split_once(COMPLETED).ok_or_else(refuse)?;
    let parts: Vec<&str> = rest.split(", ").collect();
    let [busy, moved, rate, speed] = parts[..] else {
        return Err(refuse());
    };
    let (total, did) = if let Some(total) = moved.strip_suffix(" read") {
        (total, "read")
    } else if let Some(total) = moved.strip_suffix(" written") {
        (total, "write")
    } else {
        (moved, "read and write in turn")
    };
    // Without a point nothing was rounded.
    let exact = !count.contains(['.', ' ']) && !total.contains('.');
    let count = amount(count, &COUNTS).ok_or_else(refuse)?.value;
    let busy = amount(busy, &TIMES).ok_or_else(refuse)?.value;
    let total = bytes(total).ok_or_else(refuse)?.value;
    let rate = rate.strip_suffix(" iops").ok_or_else(refuse)?;
    let rate = amount(rate, &COUNTS).ok_or_else(refuse)?.value;
    let speed = speed
        .strip_suffix("/s")
        .and_then(bytes)
        .ok_or_else(refuse)?;
    if (count > 0.0) != (busy > 0.0) || (count > 0.0) != (total > 0.0) {
        return Err(line.contradicts("itself: some requests took no time, or moved nothing"));
    }
    let mut request = None;
    if count > 0.0 {
        if !same_rate(count / busy * NANOS, rate) {
            return Err(line.contradicts("itself: the rate is not requests by time"));
        }
        // Less than one byte is cut off.
        if !same_rate(total / busy * NANOS, speed.value) {
            return Err(line.contradicts("itself: the speed is not bytes by time"));
        }
        let about = total / count;
        request = match exact && about.fract() == 0.0 {
            true => Some(about as u64),
            false => power_of_two(about),
        };
    }
    let statistics = Statistics {
        count,
        busy,
        speed,
        request,
        times: [PrintedFigure::default(); 4],
    };
    Ok((statistics, did))
}

/// Checks `2 too slow, generated 3 requests in 207.5 ms, 12 KiB, 14 iops, 57.8 KiB/s`: the requests that do
/// not count are in it, and the pauses. It is checked alone, because its rate says how often ioping asked.
fn generated(line: TextLine<'_>, counted: f64) -> Result<(), ImportError> {
    let refuse = || line.refuse("generated … requests in …, …, … iops, …/s");
    let (left_out, rest) = line.text.split_once("generated ").ok_or_else(refuse)?;
    for part in left_out.split_terminator(", ") {
        let part = part.trim();
        let count = part
            .strip_suffix(" too fast")
            .or_else(|| part.strip_suffix(" too slow"));
        count
            .and_then(|count| amount(count, &COUNTS))
            .ok_or_else(refuse)?;
    }
    let parts: Vec<&str> = rest.trim().split(", ").collect();
    let [requests, moved, rate, speed] = parts[..] else {
        return Err(refuse());
    };
    let (count, time) = requests.split_once(" requests in ").ok_or_else(refuse)?;
    let count = amount(count, &COUNTS).ok_or_else(refuse)?.value;
    let time = amount(time, &TIMES).ok_or_else(refuse)?.value;
    let rate = rate.strip_suffix(" iops").ok_or_else(refuse)?;
    let rate = amount(rate, &COUNTS).ok_or_else(refuse)?.value;
    bytes(moved).ok_or_else(refuse)?;
    speed
        .strip_suffix("/s")
        .and_then(bytes)
        .ok_or_else(refuse)?;
    if counted > count && !agree(counted, count) {
        return Err(line.contradicts("the line before it, which has more requests"));
    }
    match time > 0.0 && !same_rate(count / time * NANOS, rate) {
        true => Err(line.contradicts("itself: the rate is not requests by time")),
        false => Ok(()),
    }
}

impl Statistics {
    /// Reads `4 557981 7169 29363007 101867 139495 158691 22610 5 404644108`, if its numbers fit
    /// together.
    fn raw(line: TextLine<'_>) -> Option<Self> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let whole = |word: &&str| PrintedFigure::read(word).filter(|_| !word.contains('.'));
        let numbers: Option<Vec<PrintedFigure>> = words.iter().map(whole).collect();
        let numbers = numbers?;
        let numbers: [PrintedFigure; 10] = numbers.try_into().ok()?;
        let [_, _, _, speed, times @ .., _, _] = numbers;
        let [
            count,
            busy,
            rate,
            per_s,
            min,
            mean,
            max,
            deviation,
            all,
            time,
        ] = numbers.map(|number| number.value);
        // Rounded to whole numbers, each of them.
        let near = |one: f64, other: f64, by: f64| (one - other).abs() <= by;
        let fits = count > 0.0
            && busy > 0.0
            && near(mean * count, busy, count + 1.0)
            && near(count / busy * NANOS, rate, 1.0)
            && min <= mean + 1.0
            && mean <= max + 1.0
            && deviation <= max
            && count <= all
            && busy <= time;
        fits.then(|| Self {
            count,
            busy,
            speed,
            request: power_of_two(per_s * busy / NANOS / count),
            times,
        })
    }

    /// Reads `min/avg/max/mdev = 83.3 us / 160.8 us / 340.3 us / 85.5 us`.
    fn extremes(&mut self, line: TextLine<'_>) -> Result<(), ImportError> {
        let refuse = || line.refuse("min/avg/max/mdev = … / … / … / …");
        let rest = line.after(EXTREMES).ok_or_else(refuse)?;
        let times = rest.split(" / ").map(|word| amount(word, &TIMES));
        let times: Option<Vec<PrintedFigure>> = times.collect();
        let times: Option<[PrintedFigure; 4]> = times.and_then(|times| times.try_into().ok());
        self.times = times.ok_or_else(refuse)?;
        let [min, mean, max, deviation] = self.times.map(|time| time.value);
        let ordered = |small: f64, large: f64| small <= large * (1.0 + DIGITS);
        if !ordered(min, mean) || !ordered(mean, max) || !ordered(deviation, max) {
            return Err(
                line.contradicts("itself: the mean lies between the shortest and the longest")
            );
        }
        if !agree(mean * self.count, self.busy) {
            return Err(line.contradicts("the requests and their time"));
        }
        Ok(())
    }

    /// The result; `did` is what the text says of reading and writing.
    fn imported(&self, did: &str, environment: Vec<Fact>, note: Option<&str>) -> Imported {
        let [min, mean, max, deviation] = self.times;
        let counts = self.count > 0.0 && mean.value > 0.0;
        let any = |figure: PrintedFigure| counts.then_some(figure);
        let several = (self.count > 1.0).then_some(deviation);
        let mut figures = Figures::default();
        figures.time("latency mean", "ns", any(mean));
        figures.rate(
            "operations",
            "op/s",
            PrintedFigure::exact(NANOS).per(mean).and_then(any),
        );
        figures.rate("throughput", "B/s", any(self.speed));
        figures.time("latency min", "ns", any(min));
        figures.time("latency max", "ns", any(max));
        figures.time("latency deviation", "ns", several);
        let mut notes = figures.missing("too few requests counted");
        notes.push(
            "ioping does not say whether it went in order (-L), at random, or with pauses (-i)"
                .to_owned(),
        );
        notes.extend(note.map(str::to_owned));
        let request = self.request.map(size).unwrap_or_default();
        let words = ["ioping", did, &request];
        let words = words.iter().filter(|word| !word.is_empty());
        Imported {
            settings: facts([("request size", request.as_str())]),
            environment,
            notes,
            ..figures.imported("ioping", words.copied().collect::<Vec<_>>().join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{from, golden, has, refused};
    use stackrace_base::event::Fact;
    use stackrace_base::printed::Imported;

    const MIB: f64 = 1_048_576.0;

    fn one(name: &str) -> Imported {
        let [run] = from(&format!("ioping/ioping-1.3_{name}.txt"))
            .try_into()
            .unwrap();
        run
    }

    #[test]
    fn final_statistics_are_read() {
        let run = one("latency");
        assert_eq!(run.workload, "ioping read 4k");
        has(&run, "latency mean", "ns", 476_800.0);
        has(&run, "latency min", "ns", 95_700.0);
        has(&run, "latency max", "ns", 3_460_000.0);
        has(&run, "latency deviation", "ns", 1_060_000.0);
        has(&run, "throughput", "B/s", 8.19 * MIB);
        has(&run, "operations", "op/s", 1e9 / 476_800.0);
        let place = Fact::new("place", "ext4 /dev/vda 252.0 GiB");
        assert_eq!(run.environment, [Fact::new("target", "."), place]);
        assert_eq!(one("quiet").workload, "ioping read 4k");
    }

    #[test]
    fn what_it_did_and_the_size_are_in_the_name() {
        let seek = one("seek");
        assert_eq!(seek.workload, "ioping read 4k");
        has(&seek, "latency max", "ns", 20e6);
        let linear = one("linear");
        assert_eq!(linear.workload, "ioping read 256k");
        has(&linear, "throughput", "B/s", 252.3 * MIB);
        let writes = one("writes");
        assert_eq!(writes.workload, "ioping write 4k");
        has(&writes, "latency mean", "ns", 2_480_000.0);
        let both = one("read-write");
        assert_eq!(both.workload, "ioping read and write in turn 4k");
        has(&both, "throughput", "B/s", 919.7 * 1024.0);
    }

    #[test]
    fn one_raw_line_is_read_to_the_nanosecond() {
        let run = one("batch");
        assert_eq!(run.workload, "ioping 4k");
        has(&run, "latency mean", "ns", 139_495.0);
        has(&run, "latency deviation", "ns", 22_610.0);
        has(&run, "throughput", "B/s", 29_363_007.0);
        has(&one("seek-batch"), "latency max", "ns", 31_331_716.0);
        let text = golden("ioping/ioping-1.3_batch.txt");
        let slower = text.replace(" 158691 ", " 158692 ");
        let why = refused(&format!("{text}{slower}"));
        assert_eq!(why.line, 2);
        assert!(why.next.contains("one line of raw statistics"), "{why:?}");
        // The mean times the requests is no more the time.
        let changed = text.replace(" 139495 ", " 139595 ");
        assert!(refused(&changed).what.starts_with("no known tool"));
    }

    #[test]
    fn where_no_request_counts_there_is_no_figure() {
        for name in ["warmup-only", "too-slow"] {
            let run = one(name);
            assert_eq!(run.values, [None; 6], "{name}");
            let note = &run.notes[0];
            assert!(note.contains("latency mean"), "{note}");
            assert!(note.ends_with("too few requests counted"), "{note}");
        }
    }

    #[test]
    fn figures_that_do_not_fit_together_are_refused() {
        let text = golden("ioping/ioping-1.3_latency.txt");
        for (right, wrong, words) in [
            ("2.10 k iops", "3.10 k iops", "requests by time"),
            ("8.19 MiB/s", "9.19 MiB/s", "bytes by time"),
            ("36 KiB read", "46 KiB read", "bytes by time"),
            ("1 iops", "5 iops", "requests by time"),
            ("generated 10", "generated 8", "more requests"),
            ("476.8 us /", "576.8 us /", "the requests and their time"),
            ("3.46 ms / 1.06", "346 us / 1.06", "the mean lies between"),
            ("mdev = ", "mdev: ", "is not understood"),
            ("2.10 k iops", "2.10 k", "is not understood"),
        ] {
            let changed = text.replacen(right, wrong, 1);
            assert_ne!(changed, text, "{right}");
            let why = refused(&changed);
            assert!(why.what.contains(words), "{wrong}: {why:?}");
        }
    }
}
