//! Whether the network line that the data take sets the pace. How fast it is comes from a fact `line
//! NAME` of the run's environment or of the trial's stack, and from the network interfaces of the
//! machines, of which several clients have one each.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, LimitedBy, shown};
use super::limit::limit;
use super::reading::{TrialReading, WINDOW_NS_MIN};
use stackrace_base::event::InterfaceCounted;
use stackrace_base::unit;

/// Share of its rate at which a line is full: frames and headers take 5 to 10 %.
const LINE_SHARE: f64 = 0.90;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "line",
    question: "Was the network line full?",
    limits: true,
    priority: 13,
    judge,
};

/// Less than this share of what a machine's processes moved went through an interface: its bytes are
/// not theirs.
const OWN_SHARE: f64 = 0.5;

/// A line, and what went over it in the direction that was busier.
struct Loaded {
    /// `to the peer`, `eth0`, `eth0 of c2`.
    name: String,
    /// The traffic it carries, in words.
    words: String,
    /// The same, B/s.
    bytes_per_s: f64,
    /// The traffic it carried, B/s.
    moved_per_s: f64,
}

impl Loaded {
    fn share(&self) -> f64 {
        self.moved_per_s / self.bytes_per_s
    }
}

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let window = reading.window_ns()?;
    let mut lines = of_stack(reading, window);
    let interfaces = interfaces(reading, window);
    let also_full = interfaces.iter().filter(|line| line.share() >= LINE_SHARE);
    let also_full = also_full.count().saturating_sub(1);
    lines.extend(interfaces);
    // Data take all lines, and the fullest one sets the pace.
    let line = lines
        .iter()
        .max_by(|a, b| a.share().total_cmp(&b.share()))?;
    let evidence = vec![
        EvidenceFigure::new("of what the line can carry", line.share(), "share")
            .against(LINE_SHARE),
        EvidenceFigure::new("moved over it", line.moved_per_s, "B/s"),
        EvidenceFigure::new(line.words.clone(), line.bytes_per_s, "B/s"),
    ];
    let by = (line.share() >= LINE_SHARE).then_some(LimitedBy::Line);
    let grade = if by.is_some() { Grade::Note } else { Grade::Ok };
    let mut sentence = format!(
        "network line {} {} full, {}",
        line.name,
        unit::percent(line.share()),
        shown(line.moved_per_s, "B/s")
    );
    if by.is_some() && also_full > 0 {
        let more = unit::counted(also_full, "more line");
        sentence.push_str(&format!(", and {more} as well"));
    }
    Some(CheckFinding::new(grade, sentence, evidence).limiting(by))
}

/// The lines that the run and its stack know of, with what the processes of all machines moved.
fn of_stack(reading: &TrialReading<'_>, window_ns: f64) -> Vec<Loaded> {
    let counted = &reading.trial.counted;
    let own = counted.line.as_ref().and_then(limit);
    // A line carries both directions at once: the fuller one counts.
    let bytes = (counted.fetched_bytes as f64).max(counted.sent_bytes as f64);
    let moved_per_s = (bytes * 1e9 / window_ns).max(at_work(reading, bytes));
    let limits = reading.limits.iter().chain(&own);
    let lines = limits.filter(|limit| limit.line).map(|limit| Loaded {
        name: limit.device.clone(),
        words: limit.words.clone(),
        bytes_per_s: limit.bytes_per_s,
        moved_per_s,
    });
    lines.collect()
}

/// B/s that moved while all clients were at work, in the busiest phase, of `bytes` that moved in all; 0:
/// there are no clients. Before and after that time some of them leave the line to the others.
fn at_work(reading: &TrialReading<'_>, bytes: f64) -> f64 {
    let Some(clients) = &reading.trial.clients else {
        return 0.0;
    };
    let phases = || clients.each.iter().flat_map(|part| &part.phases);
    let all: f64 = phases().map(|phase| phase.bytes as f64).sum();
    // What came from caches went over no line.
    let moved = if all > 0.0 {
        (bytes / all).min(1.0)
    } else {
        0.0
    };
    let rates = clients.phases.iter().enumerate().map(|(at, phase)| {
        let of_each = clients.each.iter().filter_map(|part| part.phases.get(at));
        let bytes: f64 = of_each.map(|phase| phase.window_bytes).sum();
        bytes * moved * 1e9 / (phase.window_ns as f64).max(WINDOW_NS_MIN)
    });
    rates.fold(0.0, f64::max)
}

/// The network interfaces of each machine that measured, where they say how fast they are.
fn interfaces(reading: &TrialReading<'_>, window_ns: f64) -> Vec<Loaded> {
    let trial = reading.trial;
    let Some(clients) = &trial.clients else {
        let bytes = reading.read_bytes().max(reading.written_bytes());
        let loaded = |it| loaded(it, "", bytes, window_ns);
        return trial.counted.interfaces.iter().filter_map(loaded).collect();
    };
    // The first process of a client speaks for its machine.
    let machines = clients.each.iter().filter(|part| part.process == 1);
    let of_each = machines.flat_map(|machine| {
        let mine = clients
            .each
            .iter()
            .filter(|part| part.client == machine.client);
        let bytes = mine.flat_map(|part| &part.phases).map(|it| it.bytes as f64);
        // Read or written: a phase of clients does one of them.
        let bytes: f64 = bytes.sum();
        let window = machine.counted.window_ns.map_or(window_ns, |ns| ns as f64);
        let interfaces = machine.counted.interfaces.iter();
        interfaces.filter_map(move |it| loaded(it, &machine.client, bytes, window))
    });
    of_each.collect()
}

/// An interface as a line, if the data went over it.
fn loaded(it: &InterfaceCounted, client: &str, bytes: f64, window_ns: f64) -> Option<Loaded> {
    let moved = (it.received_bytes as f64).max(it.sent_bytes as f64);
    let bytes_per_s = it.bytes_per_s.filter(|rate| *rate > 0)? as f64;
    (moved >= OWN_SHARE * bytes && window_ns > 0.0).then(|| Loaded {
        name: match client {
            "" => it.interface.clone(),
            client => format!("{} of {client}", it.interface),
        },
        words: unit::bits_per_s(bytes_per_s),
        bytes_per_s,
        moved_per_s: moved * 1e9 / window_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::super::limit::Limit;
    use super::super::sample::{operation, reading, trial};
    use super::*;
    use stackrace_base::event::{
        ClientPart, ClientPhase, ClientsTogether, CommonPhase, Counted, Fact, Observation,
    };

    #[test]
    fn a_line_is_full_at_nine_tenths_of_its_rate() {
        let mut trial = trial();
        let limits = [Limit {
            device: "eth0".to_owned(),
            bytes_per_s: 125e6,
            words: "1 Gbit/s".to_owned(),
            line: true,
        }];
        for (bytes, full) in [(112_499_999, false), (112_500_000, true)] {
            trial.counted.fetched_bytes = bytes;
            let reading = TrialReading {
                limits: &limits,
                ..reading(&trial)
            };
            let limit = judge(&reading).unwrap().limit;
            assert_eq!(limit, full.then_some(LimitedBy::Line));
        }
        assert!(judge(&reading(&trial)).is_none(), "it has no line");
        trial.counted.line = Some(Fact::of_older_log(
            "line to the peer",
            "125000000 B/s, measured",
        ));
        let limit = judge(&reading(&trial)).unwrap().limit;
        assert_eq!(limit, Some(LimitedBy::Line));
    }

    /// An interface of 1 Gbit/s that received so much.
    fn gigabit(received_bytes: u64) -> InterfaceCounted {
        InterfaceCounted {
            interface: "eth0".to_owned(),
            received_bytes,
            sent_bytes: 1_000_000,
            bytes_per_s: Some(125_000_000),
        }
    }

    #[test]
    fn a_full_interface_is_the_limit_if_the_data_went_over_it() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 100, 1_100_000)];
        for (received, limit) in [(118_000_000, Some(LimitedBy::Line)), (60_000_000, None)] {
            trial.counted.interfaces = vec![gigabit(received)];
            let found = judge(&reading(&trial)).unwrap();
            assert_eq!(found.limit, limit, "{}", found.sentence);
        }
        // Of 1.1 GB that were read, most came from elsewhere.
        trial.phases[0].operations = vec![operation("read", 1000, 1_100_000)];
        trial.counted.interfaces = vec![gigabit(118_000_000)];
        assert!(judge(&reading(&trial)).is_none());
    }

    #[test]
    fn of_many_clients_the_one_with_the_fullest_line_is_named() {
        let part = |client: &str, process, received| ClientPart {
            client: client.to_owned(),
            process,
            phases: vec![ClientPhase {
                bytes: 50_000_000,
                ..ClientPhase::default()
            }],
            counted: Counted {
                window_ns: Some(1_000_000_000),
                interfaces: vec![gigabit(received)],
                ..Counted::default()
            },
            ..ClientPart::default()
        };
        let mut trial = trial();
        let said = |trial: &Observation| judge(&reading(trial)).unwrap();
        let one = [part("c1", 1, 60_000_000), part("c2", 1, 119_000_000)];
        trial.clients = Some(ClientsTogether {
            // A second process sees the same interface: the machine has it once.
            each: [&one[..], &[part("c2", 2, 119_000_000)]].concat(),
            ..ClientsTogether::default()
        });
        let found = said(&trial);
        assert_eq!(found.limit, Some(LimitedBy::Line));
        assert_eq!(
            found.sentence,
            "network line eth0 of c2 95 % full, 119 MB/s"
        );
        let both = [part("c1", 1, 113_000_000), part("c2", 1, 119_000_000)];
        trial.clients = Some(ClientsTogether {
            each: both.to_vec(),
            ..ClientsTogether::default()
        });
        let sentence = said(&trial).sentence;
        assert!(
            sentence.ends_with("119 MB/s, and 1 more line as well"),
            "{sentence}"
        );
    }

    #[test]
    fn the_line_to_the_storage_is_looked_at_while_all_clients_were_at_work() {
        let part = |client: &str, window_bytes| ClientPart {
            client: client.to_owned(),
            process: 1,
            phases: vec![ClientPhase {
                bytes: 50_000_000,
                window_bytes,
                ..ClientPhase::default()
            }],
            ..ClientPart::default()
        };
        let mut trial = trial();
        trial.counted.line = Some(Fact::of_older_log(
            "line to the storage",
            "125000000 B/s, x",
        ));
        trial.counted.fetched_bytes = 100_000_000;
        let mut said = |window_bytes| {
            trial.clients = Some(ClientsTogether {
                each: vec![part("c1", window_bytes), part("c2", 50_000_000.0)],
                phases: vec![CommonPhase {
                    window_ns: 800_000_000,
                    ..CommonPhase::default()
                }],
            });
            judge(&reading(&trial)).unwrap().limit
        };
        // 80 % in the whole second; while both were at work, 95 and 85 %.
        assert_eq!(said(45_000_000.0), Some(LimitedBy::Line));
        assert_eq!(said(35_000_000.0), None);
    }
}
