//! The text of a study read from top to bottom.

use std::collections::HashSet;
use std::path::Path;

use stackrace_base::event::{Decide, WorkloadHead};
use stackrace_base::setting::{Refusal, SettingDoc, Settings, unknown_word};
use stackrace_base::unit;
use stackrace_load::workload::WorkloadKind;

use super::clients;
use super::configuration::{ConfigurationBuilder, WorkloadEntry};
use super::crash::{self, CrashPlan};
use super::decide;
use super::design::{Configuration, Factor, Kinds, Policy, Study};
use super::document::{self, Field};
use super::entry::{self, StudyEntry, keep};
use super::error::{self, LevelRefusal, StudyError};
use super::factor::{self, Selection};
use super::one_line;
use super::place;
use super::require;
use super::size;
use super::table::StudyTable;
use super::together;
use super::words::{CRASH_DOCS, DECIDE_DOCS, TOP_DOCS, TRIAL_DOCS};
use super::workloads;

/// Longest text of a study, bytes.
pub const TEXT_MAX: usize = 256 << 10;
/// Words a study begins with.
const TOP: &[&str] = &[
    "title", "question", "scale", "seed", "together", "sizes", "factors", "exclude", "stack",
    "workload", "require", "decide", "trial", "crash",
];

const STACK_EXAMPLE: &str = "dir = { path = \"/srv\" }";

/// Reads a study; `name` is where it came from.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text.
pub fn parse(name: &str, bytes: &[u8], kinds: &Kinds<'_>) -> Result<Study, Vec<StudyError>> {
    if bytes.len() > TEXT_MAX {
        return Err(too_long(name, bytes.len()));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            // Without a text there is no snippet to show, so the place is told in words.
            let at = error.valid_up_to();
            let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            let message =
                format!("{name} is not UTF-8 text: byte {at}, in line {line}, is no letter");
            return Err(without_place(name, message, "save the file as UTF-8"));
        }
    };
    let fields = document::read(text).map_err(plain);
    let study = fields.and_then(|fields| Reader::read(name, text, fields, kinds));
    study.map_err(|findings| error::listed(name, text, findings))
}

/// A study that the program made itself: its text is written from it, and not read.
///
/// # Errors
/// Everything that is wrong with it, in the order of its text.
pub fn made(name: &str, table: StudyTable, kinds: &Kinds<'_>) -> Result<Study, Vec<StudyError>> {
    let (text, fields) = table.placed();
    // What is kept must be read again: by another machine, and by `resume`.
    if text.len() > TEXT_MAX {
        return Err(too_long(name, text.len()));
    }
    let written = fields.clone();
    let study = Reader::read(name, &text, fields, kinds);
    study.map_err(|findings| {
        let mut errors = error::listed(name, &text, findings);
        for error in &mut errors {
            let place = error.refusal.span.as_ref();
            error.words = place.map_or_else(Vec::new, |place| document::words_at(&written, place));
        }
        errors
    })
}

fn too_long(name: &str, bytes: usize) -> Vec<StudyError> {
    let message = format!(
        "{name} is longer than a study can be ({} of at most {})",
        unit::bytes(bytes as u64),
        unit::bytes(TEXT_MAX as u64)
    );
    without_place(name, message, "check that it is the right file")
}

/// A refusal of a text that cannot be shown.
fn without_place(name: &str, message: String, help: &str) -> Vec<StudyError> {
    let refusal = Refusal {
        span: None,
        message,
        help: help.to_owned(),
    };
    error::listed(name, "", plain(vec![refusal]))
}

/// The fields of a study by word, and what is wrong so far.
struct Reader<'a> {
    kinds: &'a Kinds<'a>,
    fields: &'a [Field],
    refusals: Vec<Refusal>,
}

impl<'a> Reader<'a> {
    /// Reads a study from its words; `text` is what their places are about.
    fn read(
        name: &str,
        text: &str,
        mut fields: Vec<Field>,
        kinds: &Kinds<'_>,
    ) -> Result<Study, Vec<LevelRefusal>> {
        let mut refusals = Vec::new();
        // Before anything else is read: a size may stand in place of any value.
        size::replace(&mut fields, &mut refusals);
        let mut reader = Reader {
            kinds,
            fields: &fields,
            refusals,
        };
        let (top, words) = reader.top();
        let factors = reader.factors(text);
        let excluded = reader.excluded(&factors);
        let (stack, stack_whole) = reader.whole_stack(&factors);
        let workload = reader.field("workload");
        let workloads = workloads::read(workload, kinds.workloads, &factors, &mut reader.refusals);
        let mut decide = reader.decide(&factors);
        let policy = reader.policy();
        let crash = reader.crash(&workloads);
        reader.all_used(&factors, &stack, &workloads);
        let combinations = reader.combinations(&factors, &excluded, stack.len() + workloads.len());
        // Entries are checked in every configuration even where something else is wrong already.
        let mut builder = ConfigurationBuilder::new(kinds, &factors, &stack, &workloads);
        builder.stack_whole = stack_whole;
        let (mut configurations, mut heads) = (Vec::new(), Vec::new());
        if let Some(combinations) = &combinations {
            reader.all_present(&factors, &stack, combinations);
            let names = factor::names(&factors, combinations);
            configurations = builder.configurations(combinations, names);
            heads = builder.heads(&mut configurations);
        }
        reader.stand_apart(policy.as_ref(), &configurations);
        let required = reader.field("require");
        let required = (required, &*heads, &*configurations);
        require::read(required, &mut decide, &mut reader.refusals);
        let of = (&mut *heads, &*configurations, &policy, &crash);
        let together = reader.together(&words, &workloads, of);
        let mut findings = plain(reader.refusals);
        findings.extend(builder.findings());
        let (Some(decide), Some(policy), true) = (decide, policy, findings.is_empty()) else {
            return Err(findings);
        };
        Ok(Study {
            name: name.to_owned(),
            text: text.to_owned(),
            title: top.title.unwrap_or_else(|| unit::signs(&stem(name))),
            question: top.question,
            factors,
            configurations,
            workload_heads: heads,
            decide,
            policy,
            crash,
            together,
            // From the text: the same study gives the same order, data and offsets everywhere.
            seed: top.seed.unwrap_or_else(|| seed_of(text)),
        })
    }

    fn field(&self, name: &str) -> Option<&'a Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    fn top(&mut self) -> (Top, Settings) {
        for field in self.fields {
            if !TOP.contains(&field.name.as_str()) {
                self.refusals.push(unknown_word(
                    &field.name_span,
                    &format!("a study has no \"{}\"", field.name),
                    &field.name,
                    TOP.iter().copied(),
                    "a study has",
                ));
            }
        }
        let words = self
            .fields
            .iter()
            .filter(|field| TOP_DOCS.iter().any(|doc| doc.name == field.name));
        let settings = document::settings("a study", &(0..0), words, TOP_DOCS, &mut self.refusals);
        self.refusals.extend(settings.check_all());
        let title = settings.optional_text("title").ok().flatten();
        let span = settings.span_of("title");
        let checked = one_line::check(title.as_deref().unwrap_or_default(), "the title", span);
        self.refusals.extend(checked.err());
        let top = Top {
            title,
            question: settings.optional_text("question").ok().flatten(),
            seed: settings.optional_count("seed").ok().flatten(),
        };
        (top, settings)
    }

    /// The combinations of levels that are left; `None` if a factor has none, or they are too many for so many layers and
    /// workloads.
    fn combinations(
        &mut self,
        factors: &[Factor],
        excluded: &[Selection],
        parts: usize,
    ) -> Option<Vec<Vec<usize>>> {
        // Nothing times anything is nothing: that is refused where the factor is read.
        if factors.iter().any(|factor| factor.levels.is_empty()) {
            return None;
        }
        let span = self.field("factors").map(|field| &field.name_span);
        keep(
            factor::combinations(factors, span, excluded, parts),
            &mut self.refusals,
        )
    }

    /// Reads the workloads that are measured at once, by index, and says so in their heads.
    fn together(
        &mut self,
        words: &Settings,
        workloads: &[WorkloadEntry],
        (heads, configurations, policy, crash): (
            &mut [WorkloadHead],
            &[Configuration],
            &Option<Policy>,
            &Option<CrashPlan>,
        ),
    ) -> Vec<usize> {
        // Of workloads that are wrong there is no telling what they do.
        if configurations.is_empty() || heads.len() < workloads.len() {
            return Vec::new();
        }
        let kind = |name: &str| self.kinds.workloads.iter().find(|kind| kind.name == name);
        let all = workloads.iter();
        let known = together::Known {
            workloads: all.map(|it| (it.name.as_str(), kind(&it.kind))).collect(),
            configurations,
            policy: policy.as_ref(),
            cut: crash.is_some(),
        };
        let all = keep(together::read(words, &known), &mut self.refusals).unwrap_or_default();
        together::told(heads, &all);
        all
    }

    fn factors(&mut self, text: &str) -> Vec<Factor> {
        match self.field("factors") {
            Some(field) => {
                let factors = factor::factors(text, &field.item, &mut self.refusals);
                place::check(&factors, &mut self.refusals);
                factors
            }
            None => Vec::new(),
        }
    }

    fn excluded(&mut self, factors: &[Factor]) -> Vec<Selection> {
        let Some(field) = self.field("exclude") else {
            return Vec::new();
        };
        // Shown in every refusal about the table, so that a user sees one correct line.
        let example = "filesystem = \"xfs\"";
        let tables = entry::tables("exclude", example, &field.item, &mut self.refusals);
        let mut excluded = Vec::new();
        for (span, fields) in tables {
            if fields.is_empty() {
                self.refusals.push(Refusal::at(
                    span,
                    "an empty [[exclude]] leaves everything out",
                    format!("write [[exclude]] {example}"),
                ));
            }
            let before = self.refusals.len();
            let selection = Selection::read(fields, factors, &mut self.refusals);
            // Half understood it would leave out too much.
            if self.refusals.len() == before && !fields.is_empty() {
                excluded.push(selection);
            }
        }
        excluded
    }

    /// The layers, and true if none is missing: with one missing, every rule about neighbours would complain
    /// of what is only a consequence.
    fn whole_stack(&mut self, factors: &[Factor]) -> (Vec<StudyEntry>, bool) {
        // Whatever was wrong before says nothing of the layers.
        let before = self.refusals.len();
        let stack = self.stack(factors);
        (stack, self.refusals.len() == before)
    }

    fn stack(&mut self, factors: &[Factor]) -> Vec<StudyEntry> {
        let Some(field) = self.field("stack") else {
            self.refusals.push(Refusal {
                span: None,
                message: "the study has no [[stack]]".to_owned(),
                help: format!(
                    "say what it is to build, from the bottom up:\n[[stack]]\n{STACK_EXAMPLE}"
                ),
            });
            return Vec::new();
        };
        let tables = entry::tables("stack", STACK_EXAMPLE, &field.item, &mut self.refusals);
        if tables.is_empty() {
            self.refusals.push(Refusal::at(
                &field.item.span,
                "the stack has no layer",
                format!("write\n[[stack]]\n{STACK_EXAMPLE}"),
            ));
        }
        let mut entries = Vec::new();
        for (span, fields) in tables {
            let (when, kinds): (Vec<&Field>, Vec<&Field>) =
                fields.iter().partition(|field| field.name == "when");
            let mut selection = Selection::default();
            for field in when {
                let table = field.item.table("when", "when = { filesystem = \"ext4\" }");
                if let Some(fields) = keep(table, &mut self.refusals) {
                    selection = Selection::read(fields, factors, &mut self.refusals);
                }
            }
            let refusals = &mut self.refusals;
            entries.extend(entry::read(
                "stack",
                STACK_EXAMPLE,
                span,
                &kinds,
                selection,
                factors,
                refusals,
            ));
        }
        entries
    }

    /// Returns the words of a table of settings, checked; `None` if something is wrong with them.
    fn words(
        &mut self,
        name: &str,
        example: &str,
        docs: &'static [SettingDoc],
    ) -> Option<Settings> {
        let owner = format!("[{name}]");
        let Some(field) = self.field(name) else {
            return Some(document::settings(
                &owner,
                &(0..0),
                [],
                docs,
                &mut self.refusals,
            ));
        };
        let before = self.refusals.len();
        let table = keep(field.item.table(&owner, example), &mut self.refusals)?;
        let settings =
            document::settings(&owner, &field.item.span, table, docs, &mut self.refusals);
        self.refusals.extend(settings.check_all());
        (self.refusals.len() == before).then_some(settings)
    }

    fn decide(&mut self, factors: &[Factor]) -> Option<Decide> {
        let words = self.words("decide", "[decide] margin = \"5 %\"", DECIDE_DOCS)?;
        let decided = decide::decide(&words);
        let mut decide = keep(decided, &mut self.refusals);
        if let Some(name) = words.optional_text("compare").ok().flatten() {
            let compared = decide::comparison(&name, words.span_of("compare"), factors);
            keep(compared, &mut self.refusals);
            if let Some(decide) = &mut decide {
                decide.comparison = Some(name);
            }
        }
        decide
    }

    /// Refuses stacks that stand at the same time and of which one sets the machine that all stand on.
    fn stand_apart(&mut self, policy: Option<&Policy>, configurations: &[Configuration]) {
        // One after the other, each has the machine to itself.
        let together = policy.is_some_and(Policy::stand_together) && configurations.len() > 1;
        let mut layers = configurations.iter().flat_map(|one| &one.stack.layers);
        let Some(layer) = layers.find(|layer| together && layer.sets_the_machine()) else {
            return;
        };
        // Where the order is said, if it is.
        self.refusals.push(Refusal {
            span: self.field("trial").map(|field| field.name_span.clone()),
            message: format!(
                "{} sets the whole machine, and with this order all stacks stand on it at once",
                layer.kind()
            ),
            help:
                "leave provision and order out: each configuration then has the machine in its turn"
                    .to_owned(),
        });
    }

    fn policy(&mut self) -> Option<Policy> {
        let words = self.words("trial", "[trial] remount = true", TRIAL_DOCS)?;
        keep(decide::policy(&words), &mut self.refusals)
    }

    /// Reads the plan by which the power is cut; `None` if nothing is said of it, or something is
    /// wrong with it.
    fn crash(&mut self, workloads: &[WorkloadEntry]) -> Option<CrashPlan> {
        let span = &self.field("crash")?.name_span;
        let words = self.words("crash", "[crash] cuts = 20", CRASH_DOCS)?;
        let plan = keep(crash::plan(&words), &mut self.refusals);
        // Whatever the factors make of its settings, the kind of a workload is the same everywhere.
        let among = |kind: &&WorkloadKind| workloads.iter().any(|it| it.kind == kind.name);
        let kinds = self.kinds.workloads.iter().filter(among);
        if let Some((message, help)) = crash::refused_workloads(kinds) {
            self.refusals.push(Refusal::at(span, message, help));
        }
        plan
    }

    /// A factor nothing depends on would compare a storage with itself under two names.
    fn all_used(&mut self, factors: &[Factor], stack: &[StudyEntry], workloads: &[WorkloadEntry]) {
        let entries = stack
            .iter()
            .chain(workloads.iter().map(|workload| &workload.entry));
        // A factor that nothing uses would multiply the trials, and its levels would differ by noise
        // alone.
        let used: HashSet<usize> = entries.flat_map(StudyEntry::factors).collect();
        if !self.refusals.is_empty() {
            // An entry that could not be read may be the one that uses it.
            return;
        }
        clients::check(factors, &used, &mut self.refusals);
        for (index, factor) in factors.iter().enumerate() {
            let known =
                place::is_place(&factor.name) || clients::is_number_of_clients(&factor.name);
            if !used.contains(&index) && !known {
                self.refusals.push(Refusal::at(
                    &factor.span,
                    format!("no layer and no workload uses factor \"{}\"", factor.name),
                    format!(
                        "write \"{{{}}}\" where its level belongs, or a `when`",
                        factor.name
                    ),
                ));
            }
        }
    }

    /// A level without a configuration, or a layer without one, is a slip in `when` or `[[exclude]]`.
    fn all_present(
        &mut self,
        factors: &[Factor],
        stack: &[StudyEntry],
        combinations: &[Vec<usize>],
    ) {
        for (index, factor) in factors.iter().enumerate() {
            for (number, level) in factor.levels.iter().enumerate() {
                if !combinations.iter().any(|levels| levels[index] == number) {
                    self.refusals.push(Refusal::at(
                        &level.span,
                        format!(
                            "every configuration with {} {} is excluded",
                            factor.name, level.label
                        ),
                        "take the level out, or narrow an [[exclude]]",
                    ));
                }
            }
        }
        for entry in stack {
            if !combinations.iter().any(|levels| entry.when.holds(levels)) {
                self.refusals.push(Refusal::at(
                    &entry.kind_span,
                    "this layer is in no configuration",
                    "widen its `when`, narrow an [[exclude]], or take it out",
                ));
            }
        }
    }
}

/// Head of the study: what stands before the first table.
struct Top {
    title: Option<String>,
    question: Option<String>,
    seed: Option<u64>,
}

fn plain(refusals: Vec<Refusal>) -> Vec<LevelRefusal> {
    refusals
        .into_iter()
        .map(|refusal| (refusal, Vec::new()))
        .collect()
}

fn stem(name: &str) -> String {
    Path::new(name).file_stem().map_or_else(
        || name.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

/// A seed from the text; 32 bits, so that a person can type it.
fn seed_of(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    // 32 bits, so that the seed is short enough to be typed.
    hash.as_bytes()[..4]
        .iter()
        .fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}
