//! One look at the results: the comparisons that are asked, made once, and what follows for the rounds to come.
//!
//! The error of a run (1 - confidence) is shared by the overall comparisons and those of single
//! workloads (`shares.rs`), and each comparison spends its share over all rounds, from the third on
//! (`stackrace_stats::looks`). With one workload both are the same and nothing is shared. Comparisons
//! within levels of other factors are shown beside them, not corrected for their number; their text
//! says so.
//!
//! Between two rounds a run waits for this, so what only a report says is left to `judge.rs`.

use stackrace_stats::FIRST_LOOK;

use super::answer::VerdictGrounds;
use super::compared::{AskedPair, on_each_workload, on_figure};
use super::enough::{self, RequiredRow};
use super::evidence::Evidence;
use super::outlook::{self, is_closed, is_known, sizes_known};
use super::shares::Shares;
use super::sides::{Sides, ranked_sides, sides};
use super::statement::{Comparison, ConfigurationRow, More, State, VerdictWord};
use super::table::{ComparedFigure, ObservationTable};
use super::{forecast, headline, rows, sentence};
use stackrace_base::event::{Decide, Precision, RunStarted, Until};

/// The answer after a round.
#[derive(Debug, Clone)]
pub struct CheckAnswer {
    /// Complete rounds it rests on.
    pub rounds: u32,
    /// The answer in plain words, with what would decide that is open.
    pub sentence: String,
    /// The answer alone: it holds, too, when the run has ended.
    pub found: String,
    /// State of the answer to the question asked.
    pub state: State,
    /// Meaning of each primary comparison, over all workloads.
    pub words: Vec<VerdictWord>,
    /// What is open is so because the figures are too coarse, or of too few operations: no number of rounds would
    /// answer it.
    pub too_coarse: bool,
}

/// Most comparisons of which each check says what an earlier one was certain of.
const REMEMBERED_MAX: usize = 8;

/// A look at the results of a run so far.
pub struct Look<'a> {
    pub(super) table: ObservationTable<'a>,
    /// The pairs that the study asks for, over all workloads; each with its comparison.
    pub(super) asked: Vec<AskedPair>,
    pub(super) overall: Vec<Comparison>,
    /// The same pairs on each workload, and pairs within the levels of other factors.
    pub(super) narrower: Vec<AskedPair>,
    pub(super) workloads: Vec<Comparison>,
    /// The best configuration with each other one, over all workloads.
    pub(super) ranked: Vec<AskedPair>,
    pub(super) ranking: Vec<Comparison>,
    rankings: Vec<Vec<Comparison>>,
    pub(super) required: Vec<RequiredRow>,
    pub(super) configurations: Vec<ConfigurationRow>,
    pub(super) state: State,
    pub(super) settled: bool,
    pub(super) too_coarse: bool,
    too_short: bool,
    pub(super) by_workload: bool,
    pub(super) checked_at: Option<u32>,
    pub(super) more: Option<More>,
}

impl<'a> Look<'a> {
    /// Makes every comparison that is asked of the record so far, of which nothing was kept.
    pub fn at(evidence: &'a Evidence<'a>) -> Self {
        Self::of(ObservationTable::new(evidence))
    }

    /// Makes every comparison that is asked of a table.
    pub(super) fn of(table: ObservationTable<'a>) -> Self {
        let evidence = table.evidence;
        let (within, whole): (Vec<Sides>, Vec<Sides>) = sides(&table)
            .into_iter()
            .partition(|pair| !pair.within.is_empty());
        let shares = Shares::of(&table, whole.len());
        let asked = on_figure(&whole, ComparedFigure::Overall, shares.overall);
        let (narrower, workloads) = narrower(&table, &whole, &within, &shares);
        let mut overall = all(&table, &asked);
        // A sentence has no room for more, and a check of hundreds no time.
        if overall.len() <= REMEMBERED_MAX && !evidence.imported {
            let pairs = asked.iter().zip(&mut overall);
            pairs.for_each(|(pair, comparison)| pair.remember(&table, comparison));
        }
        let ranked = ranked_sides(&table, ComparedFigure::Overall);
        let ranked = on_figure(&ranked, ComparedFigure::Overall, shares.overall);
        let ranking = all(&table, &ranked);
        let required = enough::rows(&table);
        // What was imported is looked at once, whole, and never judged.
        let checked = rounds(&table) >= FIRST_LOOK && !evidence.imported;
        let settled = checked && answers(&table, &overall, &ranking, &required);
        let too_short = settled && enough::too_short(&required, &table);
        let ranks = evidence.head.decide.comparison.is_none();
        let mut look = Self {
            rankings: rankings(&table, shares.workload),
            configurations: rows::rows(&table, &overall, ranks),
            state: outlook::state(&table, checked, settled && !too_short),
            settled,
            too_short,
            too_coarse: checked && outlook::too_coarse(&table, &overall, &ranking),
            by_workload: false,
            checked_at: checked.then_some(rounds(&table)),
            more: None,
            table,
            asked,
            overall,
            narrower,
            workloads,
            ranked,
            ranking,
            required,
        };
        rows::as_judged(&look.table, &mut look.configurations, &look.required);
        look.by_workload = headline::by_workload(&look.grounds(), evidence.head).is_some();
        let compared = outlook::more(&look.table, &look.grounds(), shares);
        look.more = enough::longest(enough::more(&look.required, &look.table), compared);
        look
    }

    /// Number of complete rounds.
    pub(super) fn rounds(&self) -> u32 {
        rounds(&self.table)
    }

    /// Every configuration with its primary metrics, best first where a ranking is asked, else in the study's order.
    pub fn configurations(&self) -> &[ConfigurationRow] {
        &self.configurations
    }

    /// The primary comparisons, with the baseline: over all workloads.
    pub fn overall(&self) -> &[Comparison] {
        &self.overall
    }

    /// What it says, for those who follow the run.
    pub fn answer(&self) -> CheckAnswer {
        CheckAnswer {
            rounds: self.rounds(),
            sentence: self.sentence(),
            found: self.found(""),
            state: self.state,
            words: self.overall.iter().map(|c| c.word).collect(),
            too_coarse: self.too_short || self.too_coarse && !self.settled,
        }
    }

    /// The answer in plain words, with what would decide that is open.
    pub(super) fn sentence(&self) -> String {
        let forecast = forecast::forecast(&self.grounds(), self.more.as_ref(), self.table.evidence);
        self.found(&forecast)
    }

    fn found(&self, forecast: &str) -> String {
        sentence::whole(
            &self.grounds(),
            &self.required,
            forecast,
            self.table.evidence,
        )
    }

    pub(super) fn grounds(&self) -> VerdictGrounds<'_> {
        VerdictGrounds {
            state: self.state,
            settled: self.settled,
            too_coarse: self.too_coarse,
            by_workload: self.by_workload,
            rounds: self.rounds(),
            checked_at: self.checked_at,
            confidence: self.table.evidence.head.decide.confidence,
            overall: &self.overall,
            ranking: &self.ranking,
            rankings: &self.rankings,
            workloads: &self.workloads,
            configurations: &self.configurations,
        }
    }

    /// Returns true if the run may stop here, by what is asked of it now: it is answered, or no further round can
    /// answer what is open.
    pub fn may_stop(&self, decide: &Decide) -> bool {
        let settled = self.settled || self.too_coarse;
        let grounds = self.grounds();
        match decide.until {
            Until::Never => false,
            Until::Overall => settled && (self.too_coarse || sizes_known(&grounds, decide)),
            Until::Each => {
                let gone = |c: &Comparison| grounds.dropped(&c.a) || grounds.dropped(&c.b);
                let mut each = self.workloads.iter();
                let closed = |c: &Comparison| is_closed(c) && is_known(c, decide.precision);
                settled && each.all(|c| !c.within.is_empty() || closed(c) || gone(c))
            }
        }
    }

    /// Returns true if it is open whether a configuration that is still measured meets what is required.
    pub fn requires_more(&self) -> bool {
        !enough::closed(&self.required, &self.table)
    }

    /// Configurations to drop after these rounds, so that the next ones go to what is open. None where every
    /// round was asked for, nor after the last round, where it would save nothing. The baseline stays: every
    /// other one is compared with it. `decide` is what is asked of the run now: a resumed run may go on for
    /// longer than it was begun for.
    pub fn to_drop(&self, decide: &Decide) -> Vec<usize> {
        if decide.until == Until::Never || self.rounds() >= decide.rounds_max {
            return Vec::new();
        }
        let mut dropped = match self.table.evidence.ranks() {
            true => self.beaten(decide.precision),
            false => self.answered(decide),
        };
        let live = |t: usize| self.table.live(t);
        dropped.retain(|t| *t != 0 && live(*t) && enough::is_closed(&self.required, *t));
        dropped.sort_unstable();
        dropped
    }

    /// Configurations that the verdict says are worse than the best one: a drop is no further claim and
    /// has no further error. The next one to it stays until it is known by how much.
    fn beaten(&self, precision: Precision) -> Vec<usize> {
        let ranked = self.ranked.iter().map(|pair| pair.sides.b[0]);
        let live = ranked.zip(&self.ranking);
        let live = live.filter(|(t, _)| self.table.live(*t));
        let worse = live.enumerate().filter(|(at, (_, c))| {
            matches!(c.word, VerdictWord::Worse { .. }) && (*at > 0 || is_known(c, precision))
        });
        worse.map(|(_, (t, _))| t).collect()
    }

    /// Configurations whose level's comparison with the first level is decided, and the size of the difference known.
    /// The claim has spent its share of the error up to this check, and no later round can take it back.
    fn answered(&self, decide: &Decide) -> Vec<usize> {
        // Where slices end, the rounds before do not count any more: what was answered may be open again.
        let evidence = self.table.evidence;
        if (0..self.table.workloads()).any(|workload| evidence.in_slices(workload)) {
            return Vec::new();
        }
        let closed = |c: &Comparison| c.word.decides() && is_known(c, decide.precision);
        let done = |at: &usize| {
            closed(&self.overall[*at])
                && (decide.until != Until::Each || self.on_workloads(*at).all(closed))
        };
        let answered = (0..self.asked.len()).filter(done);
        answered
            .flat_map(|at| self.asked[at].sides.b.iter().copied())
            .collect()
    }

    /// Comparisons of an asked pair on each workload; none where there is only one, which is the overall figure.
    fn on_workloads(&self, pair: usize) -> impl Iterator<Item = &Comparison> {
        let workloads = match self.table.workloads() {
            1 => 0,
            several => several,
        };
        (0..workloads).map(move |workload| &self.workloads[workload * self.asked.len() + pair])
    }

    /// Returns true if each round measures all workloads, whatever was found.
    pub(super) fn wants_all(head: &RunStarted) -> bool {
        head.decide.until != Until::Each || head.workloads.len() == 1
    }

    /// The workloads, by index, that further rounds should measure: all while the overall question is
    /// open or a run wants every round; then those on which a comparison is not decided yet. The overall
    /// figure needs every workload of a round.
    pub fn undecided_workloads(&self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.table.workloads()).collect();
        let head = self.table.evidence.head;
        if Self::wants_all(head) {
            return all;
        }
        let decide = &head.decide;
        let open = !outlook::settled(&self.table, &self.overall, &self.ranking)
            && !outlook::too_coarse(&self.table, &self.overall, &self.ranking);
        let required = !enough::closed(&self.required, &self.table);
        if required || open {
            return all;
        }
        // What is dropped is measured no more: its comparisons stay as open as they are.
        let live = |pair: &usize| self.asked[*pair].sides.live(&self.table);
        let live: Vec<usize> = (0..self.asked.len()).filter(live).collect();
        let decided = |w: usize, pair: usize| {
            let compared = &self.workloads[w * self.asked.len() + pair];
            is_closed(compared) && is_known(compared, decide.precision)
        };
        let open = |w: &usize| !live.iter().all(|pair| decided(*w, *pair));
        let undecided: Vec<usize> = all.iter().copied().filter(open).collect();
        // A run that goes on although all is decided measures all.
        if undecided.is_empty() { all } else { undecided }
    }
}

fn rounds(table: &ObservationTable<'_>) -> u32 {
    u32::try_from(table.rounds.len()).unwrap_or(u32::MAX)
}

fn all(table: &ObservationTable<'_>, asked: &[AskedPair]) -> Vec<Comparison> {
    asked.iter().map(|pair| pair.compared(table)).collect()
}

/// The comparisons on each workload, and those within the levels of other factors.
fn narrower(
    table: &ObservationTable<'_>,
    whole: &[Sides],
    within: &[Sides],
    shares: &Shares,
) -> (Vec<AskedPair>, Vec<Comparison>) {
    // A single workload is the overall figure: said once.
    let each = table.workloads() > 1;
    let mut asked = Vec::new();
    if each {
        asked.extend(on_each_workload(table, whole, shares.workload));
    }
    asked.extend(on_figure(within, ComparedFigure::Overall, shares.within));
    if each {
        asked.extend(on_each_workload(table, within, shares.within));
    }
    let compared = all(table, &asked);
    let mut both: Vec<_> = asked.into_iter().zip(compared).collect();
    if table.evidence.imported {
        // Foreign results need not have anything in common.
        both.retain(|(_, comparison)| comparison.ratio.is_some());
    }
    both.into_iter().unzip()
}

/// Returns true if all that is asked has its answer: the comparisons, and what is required.
fn answers(
    table: &ObservationTable<'_>,
    whole: &[Comparison],
    ranking: &[Comparison],
    required: &[RequiredRow],
) -> bool {
    let compared = is_alone(table) || outlook::settled(table, whole, ranking);
    compared && enough::closed(required, table)
}

/// Returns true if one configuration is asked whether it is enough: there is nothing to compare it with.
fn is_alone(table: &ObservationTable<'_>) -> bool {
    table.configurations() == 1 && !table.evidence.head.decide.required.is_empty()
}

/// The best configuration on each workload with each other one; empty unless a ranking of several workloads is asked.
/// Each pair has its share of the error, so the data may choose which one leads.
fn rankings(table: &ObservationTable<'_>, alpha: f64) -> Vec<Vec<Comparison>> {
    if table.workloads() < 2 || !table.evidence.ranks() {
        return Vec::new();
    }
    let figures = (0..table.workloads()).map(ComparedFigure::primary);
    let ranked = figures.map(|figure| {
        let sides = ranked_sides(table, figure);
        all(table, &on_figure(&sides, figure, alpha))
    });
    ranked.collect()
}
