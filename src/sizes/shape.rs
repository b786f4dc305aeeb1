//! How the time of a comparison is divided: which workloads, how long a trial, what there is no time
//! for.

use stackrace_stats::FIRST_LOOK;

use crate::sizes::sizing::SizedPart;
use stackrace_base::event;
use stackrace_base::failure::Failure;
use stackrace_base::unit::{self, listed};
use stackrace_study::purpose::{Purpose, SizedBy, WorkloadSize};

/// Rounds that the trials are sized for.
const ROUNDS: f64 = 20.0;
/// Fewer rounds than this are not worth a further workload.
const ROUNDS_LEAST: f64 = 12.0;
/// Rounds where something is required: longer trials, whose quantiles are of more operations.
const ROUNDS_REQUIRED: f64 = 9.0;
/// Share of the rounds that is still enough to keep a workload that was tried: how long its trials take is an estimate.
const ROUNDS_KEPT: f64 = 0.8;
/// Seconds a trial measures at least, with a fifth to spare: what is shorter than 1 s says little of
/// what lasts.
const TRIAL_SECONDS: f64 = 1.2;
/// Seconds a trial measures at most.
const TRIAL_SECONDS_MOST: f64 = 30.0;
/// Seconds from the end of a trial to the start of the next one, where the data are there.
const BETWEEN: f64 = 0.02;
/// A directory that takes so many times as long as the fastest one is named where time is short.
const FAR_SLOWER: f64 = 2.0;
/// One MiB, bytes.
const MEBIBYTE: f64 = 1_048_576.0;
/// Share of the time given to measuring; the rest is preparing, settling and recording.
pub(crate) const MEASURING_SHARE: f64 = 0.8;

/// Division of the time of a comparison.
pub(crate) struct Shape {
    purpose: &'static Purpose,
    /// The time it may take, s.
    time: f64,
    sides: usize,
    /// The workloads there is time for if no trial takes longer than it must, by their indices in the
    /// purpose.
    pub(crate) parts: Vec<usize>,
    /// Seconds that one trial is to measure.
    pub(crate) seconds: f64,
    /// Fewest rounds that must fit the time.
    rounds: u32,
    /// True if no workload may be left out: something is required of each.
    all_needed: bool,
}

impl Shape {
    /// The shape of a comparison that may take so long.
    pub(crate) fn of(purpose: &'static Purpose, time_ns: u64, sides: usize) -> Self {
        let time = time_ns as f64 / 1e9;
        let all = purpose.parts;
        let fits = time * MEASURING_SHARE / (ROUNDS_LEAST * TRIAL_SECONDS * sides as f64);
        let mut parts: Vec<usize> = (0..all.len()).collect();
        // The heaviest stay, in the purpose's order.
        parts.sort_by(|a, b| all[*b].weight.total_cmp(&all[*a].weight));
        // 5.0 is computed as 4.999… of some times.
        parts.truncate((fits + 1e-6).max(1.0) as usize);
        parts.sort_unstable();
        Self::with(purpose, (time, parts), sides)
    }

    /// The shape of a comparison that no time ends: nothing is left out, and trials last as if the time were given.
    pub(crate) fn whole(purpose: &'static Purpose, time_ns: u64, sides: usize) -> Self {
        let parts = (0..purpose.parts.len()).collect();
        Self::with(purpose, (time_ns as f64 / 1e9, parts), sides)
    }

    /// Returns the same with those workloads alone of which something is required; none of them is left out.
    pub(crate) fn needing(self, parts: Vec<usize>) -> Self {
        let seconds = self.each(ROUNDS_REQUIRED, parts.len());
        Self {
            parts,
            seconds,
            all_needed: true,
            ..self
        }
    }

    fn with(purpose: &'static Purpose, (time, parts): (f64, Vec<usize>), sides: usize) -> Self {
        let shape = Self {
            purpose,
            time,
            sides,
            parts,
            seconds: TRIAL_SECONDS,
            rounds: FIRST_LOOK,
            all_needed: false,
        };
        Self {
            seconds: shape.each(ROUNDS, shape.parts.len()),
            ..shape
        }
    }

    /// The same where so many rounds are asked for at most: who asks for fewer than a verdict takes wants none.
    pub(crate) fn for_rounds(self, at_most: Option<u32>) -> Self {
        Self {
            rounds: at_most.map_or(FIRST_LOOK, |rounds| rounds.min(FIRST_LOOK)),
            ..self
        }
    }

    /// Seconds of a trial so that so many rounds of so many workloads fit.
    fn each(&self, rounds: f64, parts: usize) -> f64 {
        let each = self.time * MEASURING_SHARE / (rounds * (self.sides * parts) as f64);
        each.clamp(TRIAL_SECONDS, TRIAL_SECONDS_MOST)
    }

    /// The time, s, that `check` must be given so that the trials of so many workloads last so long; `None` if no time
    /// makes them last that long.
    pub(crate) fn time_required(trial_seconds: f64, parts: usize) -> Option<f64> {
        let time = trial_seconds * ROUNDS_REQUIRED * parts as f64 / MEASURING_SHARE;
        (trial_seconds <= TRIAL_SECONDS_MOST).then_some(time)
    }

    /// The workloads with the least there is, where their sizes are not known.
    pub(crate) fn unsized_parts(&self) -> Vec<SizedPart> {
        let unsized_part = |index: &usize| SizedPart {
            index: *index,
            size: WorkloadSize {
                seconds: self.seconds,
                ..WorkloadSize::LEAST
            },
            seconds: self.seconds * self.sides as f64,
            lays_out_seconds: 0.0,
            slowest: None,
        };
        self.parts.iter().map(unsized_part).collect()
    }

    /// Returns those of the sized workloads that there is time for; on slow storage their trials take longer than they
    /// were to.
    ///
    /// # Errors
    /// There is no time for a single verdict.
    pub(crate) fn fitting(
        &self,
        mut sized: Vec<SizedPart>,
        sides: &[&str],
        command: &[String],
    ) -> Result<Vec<SizedPart>, Failure> {
        let measuring = self.time * MEASURING_SHARE;
        let rounds = |sized: &[SizedPart]| measuring / round_seconds(sized);
        let too_few = |sized: &[SizedPart]| rounds(sized) < ROUNDS_LEAST * ROUNDS_KEPT;
        while !self.all_needed && sized.len() > 1 && too_few(&sized) {
            let weight = |part: &SizedPart| self.purpose.parts[part.index].weight;
            let least = sized.iter().map(weight).fold(f64::INFINITY, f64::min);
            // The last of them, as the first ones say most.
            let last = sized.iter().rposition(|part| weight(part) <= least);
            sized.remove(last.unwrap_or(0));
        }
        if rounds(&sized) < f64::from(self.rounds) {
            return Err(self.too_slow(&sized, sides, command));
        }
        Ok(sized)
    }

    /// The refusal where the workloads that stay leave no time for a verdict: which directory is the slow
    /// one, and what would fit.
    fn too_slow(&self, sized: &[SizedPart], sides: &[&str], command: &[String]) -> Failure {
        let (part, round) = (&sized[0], round_seconds(sized));
        let needed = ROUNDS_LEAST * round / MEASURING_SHARE;
        // Sides that differ by less are no reason: all of them lack time.
        let slow = part.slowest.filter(|slow| slow.times >= FAR_SLOWER);
        let (who, why) = match slow.and_then(|slow| Some((sides.get(slow.side)?, slow.times))) {
            Some((side, times)) => (
                (*side).to_owned(),
                format!(" ({side} takes {times:.0} times as long as the fastest)"),
            ),
            None => ("this storage".to_owned(), String::new()),
        };
        let kind = &self.purpose.parts[part.index];
        let rounds = match self.rounds {
            FIRST_LOOK => format!("a verdict takes {FIRST_LOOK} rounds at least"),
            1 => "1 round is asked for".to_owned(),
            few => format!("{few} rounds are asked for"),
        };
        let text = format!(
            "{who} is too slow for {}: one round of {} takes about {}{why}, and {rounds}; with all that is done around them this needs about {}",
            minutes(self.time),
            listed(&self.names(sized)),
            unit::long_time(round),
            minutes(rounded_up(needed)),
        );
        let mut next = with_time(command, needed);
        // What would leave time for the rounds, in whole MiB.
        let fits = self.time * MEASURING_SHARE / (ROUNDS_LEAST * round);
        let mebibytes = ((part.size.bytes * part.size.passes) as f64 * fits / MEBIBYTE) as u64;
        if kind.sized_by == SizedBy::Bytes && mebibytes > 0 {
            let less = format!("{mebibytes}MiB");
            let mut words = without(command, &["--size"], &[]);
            if let Some(program) = words.first_mut() {
                *program = "stackrace".to_owned();
            }
            words.extend(["--size".to_owned(), less]);
            next.push_str(&format!(
                "\n    or, with less in each trial: {}",
                event::shell(&words)
            ));
        }
        Failure::refused(text).next(next)
    }

    fn names(&self, sized: &[SizedPart]) -> Vec<&'static str> {
        let name = |part: &SizedPart| self.purpose.parts[part.index].name;
        sized.iter().map(name).collect()
    }

    /// Returns how much longer trials may last, as a factor, so that whole rounds fill the seconds
    /// that are `left`: of a few rounds, what is left over is a large share of the time.
    pub(crate) fn longer(&self, sized: &[SizedPart], left: f64) -> f64 {
        let round = round_seconds(sized) + BETWEEN * (sized.len() * self.sides) as f64;
        let laid_out: f64 = sized.iter().map(|part| part.lays_out_seconds).sum();
        let left = left - laid_out;
        let rounds = (left / round).floor();
        match (f64::from(FIRST_LOOK)..ROUNDS_LEAST).contains(&rounds) {
            true => left / (rounds * round),
            false => 1.0,
        }
    }

    /// Says which workloads of the purpose there is no time for, how long all of them would take, and the command for
    /// that; `None` if all of them are in it.
    pub(crate) fn left_out(
        &self,
        names: &[&str],
        round_seconds: f64,
        command: &[String],
    ) -> Option<String> {
        let all = names.len() == self.purpose.parts.len();
        // What nothing is required of was not asked for.
        if all || names.is_empty() || self.all_needed {
            return None;
        }
        // What was left out is taken to be as slow as what stays.
        let each = (round_seconds / names.len() as f64).max(TRIAL_SECONDS * self.sides as f64);
        let whole = each * self.purpose.parts.len() as f64;
        let needed = ROUNDS_LEAST * whole / MEASURING_SHARE;
        Some(format!(
            "in {} there is time for {} of {} workloads: {}. All of them need about {}: {}",
            minutes(self.time),
            names.len(),
            self.purpose.parts.len(),
            listed(names),
            minutes(rounded_up(needed)),
            with_time(command, needed)
        ))
    }
}

/// Seconds that a round takes with workloads of these sizes.
pub(crate) fn round_seconds(sized: &[SizedPart]) -> f64 {
    sized.iter().map(|part| part.seconds).sum()
}

/// A time as it was asked for: "20 s", "2.5 min".
fn minutes(seconds: f64) -> String {
    match seconds < 60.0 {
        true => format!("{seconds:.0} s"),
        false => format!("{} min", (seconds / 6.0).round() / 10.0),
    }
}

/// Rounds seconds up to whole half minutes.
fn rounded_up(seconds: f64) -> f64 {
    // 180 s are computed as 180.00…1.
    ((seconds - 1e-6) / 30.0).ceil() * 30.0
}

/// The words of a command without these options, those with a value and those without. What stands behind `--` is a
/// command of the user's, with options of its own.
pub(crate) fn without(command: &[String], valued: &[&str], flags: &[&str]) -> Vec<String> {
    let mut left = Vec::new();
    let mut words = command.iter();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        if word == "--" {
            left.push(word.clone());
            left.extend(words.by_ref().cloned());
        } else if valued.contains(&name) {
            if name == word {
                words.next();
            }
        } else if !flags.contains(&name) {
            left.push(word.clone());
        }
    }
    left
}

/// The command with another time.
pub(crate) fn with_time(command: &[String], seconds: f64) -> String {
    // A first impression brings a time of its own.
    let mut words = without(command, &["--time"], &["--quick"]);
    if let Some(program) = words.first_mut() {
        *program = "stackrace".to_owned();
    }
    let at = words.iter().position(|word| word == "--");
    let time = ["--time".to_owned(), format!("{:.0} s", rounded_up(seconds))];
    let at = at.unwrap_or(words.len());
    words.splice(at..at, time);
    event::shell(&words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::sizing::SlowestSide;
    use stackrace_study::purpose;

    const SECOND: u64 = 1_000_000_000;

    fn command() -> Vec<String> {
        let words = [
            "/usr/bin/stackrace",
            "compare",
            "/a b",
            "/c",
            "--time",
            "60 s",
        ];
        words.map(str::to_owned).to_vec()
    }

    #[test]
    fn what_no_time_ends_leaves_out_nothing() {
        for purpose in purpose::ALL {
            let shape = Shape::whole(purpose, 30 * SECOND, 2);
            assert_eq!(shape.parts.len(), purpose.parts.len());
            assert!(shape.seconds >= TRIAL_SECONDS);
        }
    }

    #[test]
    fn twelve_rounds_of_trials_longer_than_a_second_fit_the_time() {
        for (seconds, parts) in [(20, 1), (60, 1), (90, 2), (120, 3), (180, 5), (3600, 5)] {
            let shape = Shape::of(&purpose::ALL[0], seconds * SECOND, 2);
            assert_eq!(shape.parts.len(), parts, "{seconds} s");
            assert!(shape.seconds > 1.0);
            let round = shape.seconds * (2 * parts) as f64;
            let rounds = seconds as f64 / round;
            assert!(seconds < 60 || rounds >= 12.0, "{seconds} s: {rounds}");
            assert!(rounds < 26.0, "{seconds} s: {rounds}");
        }
    }

    #[test]
    fn what_weighs_least_is_left_out_first() {
        let database = purpose::find("database").unwrap();
        let shape = Shape::of(database, 60 * SECOND, 2);
        assert_eq!(shape.parts, [0]);
        let shape = Shape::of(purpose::find("video").unwrap(), 100 * SECOND, 2);
        assert_eq!(shape.parts, [0, 1]);
    }

    #[test]
    fn nothing_is_left_out_of_what_is_required() {
        let shape = || Shape::of(&purpose::ALL[0], 60 * SECOND, 1).needing(vec![0, 4]);
        assert!((shape().seconds - 2.67).abs() < 0.01);
        let slow = |seconds: f64| {
            let parts = shape().unsized_parts().into_iter();
            let parts = parts.map(|part| SizedPart { seconds, ..part }).collect();
            shape().fitting(parts, &["/a"], &command())
        };
        assert_eq!(slow(5.0).ok().unwrap().len(), 2);
        let refused = slow(10.0).err().unwrap().render();
        assert!(
            refused.contains("one round of streaming write and streaming read takes about 20"),
            "{refused}"
        );
        assert!(refused.contains("--time '300 s'"), "{refused}");
        assert_eq!(
            shape().left_out(&["streaming write", "streaming read"], 4.0, &command()),
            None
        );
    }

    #[test]
    fn what_there_is_time_for_is_named_with_the_command_for_all_of_it() {
        let shape = Shape::of(&purpose::ALL[0], 60 * SECOND, 2);
        let said = shape.left_out(&["streaming write"], 2.4, &command());
        assert_eq!(
            said.unwrap(),
            "in 1 min there is time for 1 of 5 workloads: streaming write. All of them need about 3 min: \
             stackrace compare '/a b' /c --time '180 s'"
        );
        let all: Vec<&str> = purpose::ALL[0].parts.iter().map(|part| part.name).collect();
        assert_eq!(shape.left_out(&all, 12.0, &command()), None);
    }

    #[test]
    fn slow_storage_gets_fewer_workloads_and_then_the_command_with_more_time() {
        let shape = Shape::of(&purpose::ALL[0], 120 * SECOND, 2);
        let slow = |seconds: f64| {
            let parts = shape.unsized_parts().into_iter();
            parts
                .map(|part| SizedPart { seconds, ..part })
                .collect::<Vec<_>>()
        };
        let kept = |seconds| shape.fitting(slow(seconds), &["/a b", "/c"], &command());
        assert_eq!(kept(2.4).ok().unwrap().len(), 3);
        assert_eq!(kept(4.0).ok().unwrap().len(), 2);
        assert_eq!(kept(20.0).ok().unwrap().len(), 1);
        let refused = kept(40.0).err().unwrap().render();
        assert!(refused.contains("needs about 10 min"), "{refused}");
        assert!(refused.contains("--time '600 s'"), "{refused}");
    }

    #[test]
    fn a_time_is_given_in_place_of_the_one_that_was_and_the_users_command_stays() {
        let command = "stackrace compare a --time 20s --quick b -- ./load --time 30 --quick";
        let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
        assert_eq!(
            with_time(&command, 90.0),
            "stackrace compare a b --time '90 s' -- ./load --time 30 --quick"
        );
        let sized = "a --size 64GiB b --size=1GiB".split(' ').map(str::to_owned);
        let sized: Vec<String> = sized.collect();
        assert_eq!(without(&sized, &["--size"], &[]), ["a", "b"]);
    }

    #[test]
    fn where_time_is_short_the_slow_side_is_named_and_less_work_is_offered() {
        let shape = Shape::of(&purpose::ALL[0], 60 * SECOND, 2);
        let mut parts = shape.unsized_parts();
        parts.truncate(1);
        parts[0].seconds = 40.0;
        parts[0].size.bytes = 1 << 30;
        parts[0].slowest = Some(SlowestSide {
            side: 1,
            times: 14.2,
        });
        let sides = ["/a b", "/c"];
        let refused = shape.fitting(parts.clone(), &sides, &command());
        let refused = refused.err().unwrap().render();
        assert!(
            refused.contains("error: /c is too slow for 1 min")
                && refused.contains("(/c takes 14 times as long as the fastest)"),
            "{refused}"
        );
        if shape.purpose.parts[parts[0].index].sized_by == SizedBy::Bytes {
            assert!(refused.contains("--size 102MiB"), "{refused}");
        }
        // Who asks for one round gets it where it fits.
        let one = Shape::of(&purpose::ALL[0], 60 * SECOND, 2).for_rounds(Some(1));
        assert_eq!(
            one.fitting(parts.clone(), &sides, &command())
                .ok()
                .unwrap()
                .len(),
            1
        );
        // Sides that are about as fast: it is the time that is short.
        parts[0].slowest = Some(SlowestSide {
            side: 1,
            times: 1.3,
        });
        let refused = shape.fitting(parts, &sides, &command()).err().unwrap();
        assert!(refused.render().contains("this storage is too slow"));
    }
}
