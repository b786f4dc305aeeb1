//! What a check says: how grave it is, in a sentence, with the figures it rests on.

use serde::Serialize;

use stackrace_base::unit;

/// Gravity of a judgement, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The counters do not tell.
    NotJudged,
    /// Nothing to say against the figure.
    Ok,
    /// The figure stands; who reads it must know this.
    Note,
    /// Something else was measured than was asked for.
    NotAsAsked,
    /// The figure cannot be right.
    Invalid,
}

impl Grade {
    /// The word as it is written in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotJudged => "not judged",
            Self::Ok => "ok",
            Self::Note => "note",
            Self::NotAsAsked => "not as asked",
            Self::Invalid => "invalid",
        }
    }
}

/// A figure that a judgement rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvidenceFigure {
    /// Name of what was counted.
    pub name: String,
    /// Its amount.
    pub value: f64,
    /// `B`, `B/s`, `op/s`, `ns`, `share` (1 is all), or empty for a number.
    pub unit: &'static str,
    /// The threshold the value is held against, in the same unit; `None` if it is context.
    pub threshold: Option<f64>,
}

impl EvidenceFigure {
    /// A figure for context.
    pub(super) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            // A sum of nothing is -0, which would be shown with its sign.
            value: value + 0.0,
            unit,
            threshold: None,
        }
    }

    /// The figure that is held against a threshold.
    pub(super) fn against(self, threshold: f64) -> Self {
        Self {
            threshold: Some(threshold),
            ..self
        }
    }

    /// The words as people read them: `bytes read from memory 62 % (threshold 10 %)`.
    pub fn words(&self) -> String {
        let name = &self.name;
        let value = shown(self.value, self.unit);
        match self.threshold {
            Some(threshold) => {
                format!("{name} {value} (threshold {})", shown(threshold, self.unit))
            }
            None => format!("{name} {value}"),
        }
    }
}

/// A value in its unit.
pub(super) fn shown(value: f64, unit: &str) -> String {
    match unit {
        "B" => unit::si_bytes(value),
        "B/s" => unit::bytes_per_second(value),
        "op/s" => unit::operations_per_second(value),
        "ns" => unit::time_ns(value),
        "share" => unit::percent(value),
        // Counts have no decimals.
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

/// The smallest share that has a digit of its own.
const SHARE_SHOWN_MIN: f64 = 0.0001;

/// Things that can set the pace of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The load that an open loop offered, all of which was done.
    OfferedLoad,
    /// The bytes or requests a device completes in a second.
    DeviceRate,
    /// A device that has to move for every request.
    DeviceSeeks,
    /// The network.
    Line,
    /// The program that makes the load.
    Generator,
    /// One thread that is never idle.
    OneCpu,
    /// All processors.
    AllCpus,
    /// Nothing that is full: operations wait for one part after the other.
    NoSinglePart,
}

impl LimitedBy {
    /// The words as they are written after "limited by".
    pub fn words(self) -> &'static str {
        match self {
            Self::OfferedLoad => "offered load",
            Self::DeviceRate => "device rate",
            Self::DeviceSeeks => "device seeks",
            Self::Line => "network line",
            Self::Generator => "load generator",
            Self::OneCpu => "one CPU",
            Self::AllCpus => "all CPUs",
            Self::NoSinglePart => "no single bottleneck",
        }
    }
}

/// Finding of a check in one trial.
#[derive(Debug, Clone)]
pub(super) struct CheckFinding {
    pub(super) grade: Grade,
    /// The limit that sets the pace, if that is what was found.
    pub(super) limit: Option<LimitedBy>,
    /// Strength of the finding, for choosing the trial that is shown.
    pub(super) strength: f64,
    /// True if a trial may show it by chance: then it counts only where at least two trials do, and
    /// half of all.
    pub(super) by_chance: bool,
    /// One clause without a full stop, this trial's figures in it.
    pub(super) sentence: String,
    pub(super) evidence: Vec<EvidenceFigure>,
}

impl CheckFinding {
    /// A judgement whose strength is the value of its first figure.
    pub(super) fn new(grade: Grade, sentence: String, evidence: Vec<EvidenceFigure>) -> Self {
        // The first figure is the one held against the threshold; it tells which trial is the worst.
        let strength = evidence.first().map_or(0.0, |figure| figure.value);
        Self {
            grade,
            limit: None,
            strength,
            by_chance: false,
            sentence,
            evidence,
        }
    }

    /// The same, as what one trial alone may show by chance.
    pub(super) fn by_chance(self) -> Self {
        Self {
            by_chance: true,
            ..self
        }
    }

    /// The same, naming what sets the pace.
    pub(super) fn limiting(self, limit: Option<LimitedBy>) -> Self {
        Self { limit, ..self }
    }
}

/// Judgement of a check on all trials of one configuration on one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// Name of the check.
    pub check: &'static str,
    /// The gravest of all trials.
    pub grade: Grade,
    /// The clause of the trial that shows it most.
    pub sentence: String,
    /// Trials of this grade.
    pub trials: usize,
    /// Trials that could be judged.
    pub of: usize,
    /// Round of the trial that is shown.
    pub round: u32,
    /// Its figures.
    pub evidence: Vec<EvidenceFigure>,
    /// The first of these figures in every trial of this grade.
    #[serde(skip)]
    pub(super) values: Vec<f64>,
    /// Strength of the finding in that trial.
    #[serde(skip)]
    pub(super) strength: f64,
}

impl Judgement {
    /// The sentence, with how many trials it is true of where that is not all of them. The figures
    /// in it are those of the worst of these trials: it says so, and gives the median.
    pub fn words(&self) -> String {
        let sentence = self.with_median();
        match self.trials {
            trials if trials < self.of => {
                format!("{trials} of {} trials: {sentence}", self.of)
            }
            _ => sentence,
        }
    }

    /// `other processes caused up to 99 % (median 90 %) of vda's I/O`; where the figure itself is not
    /// in the sentence: `… (the worst of 5 trials)`; where it is no share: `measured for only 4 ms (median 5 ms); …`.
    fn with_median(&self) -> String {
        let median = stackrace_stats::median(&self.values);
        let (Some(worst), Some(median)) = (self.evidence.first(), median) else {
            return self.sentence.clone();
        };
        let value = shown(worst.value, worst.unit);
        let median = match worst.unit {
            // Too little for its digits says nothing.
            "share" if median == 0.0 => "0 %".to_owned(),
            "share" if median < SHARE_SHOWN_MIN => {
                format!("below {}", unit::percent(SHARE_SHOWN_MIN))
            }
            _ => shown(median, worst.unit),
        };
        // One trial, or trials that agree: the figure speaks for itself.
        if self.grade <= Grade::Ok || self.values.len() < 2 || value == median {
            return self.sentence.clone();
        }
        // The most only where the worst trial has it.
        let highest = self.values.iter().all(|other| *other <= worst.value);
        if worst.unit == "share" && highest && self.sentence.contains(&value) {
            let both = format!("up to {value} (median {median})");
            return self.sentence.replacen(&value, &both, 1);
        }
        if worst.unit != "share" && self.sentence.contains(&value) {
            let both = format!("{value} (median {median})");
            return self.sentence.replacen(&value, &both, 1);
        }
        format!(
            "{} (the worst of {} trials)",
            self.sentence,
            self.values.len()
        )
    }
}
