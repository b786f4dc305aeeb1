//! A study as a value: what is written of it is read as the same again.

use super::*;
use crate::study::document::{self, Field, Item, ItemKind};

/// Every word with its place, and the place of what it stands for.
fn places(fields: &[Field]) -> Vec<String> {
    fn of(item: &Item, places: &mut Vec<String>) {
        places.push(format!("{:?}", item.span));
        match &item.node {
            ItemKind::List(items) => items.iter().for_each(|item| of(item, places)),
            ItemKind::Table(fields) => {
                for field in fields {
                    places.push(format!("{} {:?}", field.name, field.name_span));
                    of(&field.item, places);
                }
            }
            ItemKind::Value(_) | ItemKind::Unusable(_) => {}
        }
    }
    let mut places = Vec::new();
    for field in fields {
        places.push(format!("{} {:?}", field.name, field.name_span));
        of(&field.item, &mut places);
    }
    places
}

/// Writes a table and reads it: the same words, at the places that the writer says.
fn written(table: &StudyTable) -> String {
    let (text, fields) = table.clone().placed();
    let again = document::read(&text).unwrap_or_else(|why| panic!("{text}\n{why:?}"));
    assert_eq!(places(&again), places(&fields), "{text}");
    assert_eq!(again, fields, "{text}");
    text
}

/// All that a study means; its seed follows from the text.
fn meaning(study: &Study) -> String {
    let factors = study.factors.iter().map(|factor| {
        let levels = factor.levels.iter();
        let levels = levels.map(|it| (it.label.clone(), it.value.clone(), it.labelled));
        (factor.name.clone(), levels.collect::<Vec<_>>())
    });
    let configurations = study.configurations.iter().map(|one| {
        let layers = one.stack.layers.iter().map(|layer| layer.describe_asked());
        let layers: Vec<_> = layers.collect();
        let work = one.workloads.iter().map(|work| work.summary());
        (one.name.clone(), layers, work.collect::<Vec<_>>())
    });
    format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        study.title,
        study.question,
        study.decide,
        study.policy,
        study.workload_heads,
        study.crash.is_some(),
        factors.collect::<Vec<_>>(),
        configurations.collect::<Vec<_>>(),
    )
}

#[test]
fn every_study_that_ships_is_the_same_when_it_was_written_and_read_again() {
    for (name, text) in SHIPPED {
        let parsed = |text: &str| parse(name, text.as_bytes(), &Kinds::real());
        let table = StudyTable::read(text).unwrap();
        let again = written(&table);
        // What was left out of this program is in the text all the same.
        let Ok(study) = parsed(text) else { continue };
        let read = parsed(&again).unwrap_or_else(|errors| panic!("{again}\n{}", all(&errors)));
        assert_eq!(meaning(&read), meaning(&study), "{name}");
        // The value itself is the same study as its text.
        let made = made(name, table, &Kinds::real()).ok().unwrap();
        assert_eq!(meaning(&made), meaning(&study), "{name}");
        assert_eq!((made.text, made.seed), (again, read.seed), "{name}");
    }
}

fn value() -> impl Strategy<Value = stackrace_base::setting::Value> {
    use stackrace_base::setting::Value;
    let one = prop_oneof![
        any::<String>().prop_map(Value::Text),
        "[\"'\\\\\n\r\t\u{7f}{} a]{0,12}".prop_map(Value::Text),
        any::<i64>().prop_map(Value::Integer),
        prop::num::f64::NORMAL.prop_map(Value::Float),
        any::<bool>().prop_map(Value::Flag),
    ];
    one.prop_recursive(2, 12, 4, |one| {
        prop::collection::vec(one, 0..4).prop_map(Value::List)
    })
}

fn table(values: std::collections::BTreeMap<String, stackrace_base::setting::Value>) -> StudyTable {
    let values = values.into_iter();
    values.fold(StudyTable::default(), |table, (name, value)| {
        table.value(&name, value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_of_any_words_and_values_are_read_as_they_were_written(
        [a, b, c] in [(); 3].map(|()| prop::collection::btree_map("[a-c\"\u{7f}\n. é]{0,3}", value(), 0..4)),
        comment in "(# [a-z ]{0,5}\n){0,2}",
    ) {
        let (a, b, c) = (table(a), table(b), table(c));
        let whole = StudyTable::default()
            .table("first", a.clone())
            .tables("second", [a.clone().table("in", b.clone()), b.clone()])
            .tables("third", [a.clone().headed("of its own", c.clone()).value("after", 1_u64)])
            .value("title", "the words before a table")
            .comment(&comment)
            .table("fourth", c.clone().tables("levels", [a, b, c]));
        written(&whole);
    }
}

#[test]
fn a_refusal_of_a_study_that_was_made_shows_the_line_of_its_text() {
    let wrong = StudyTable::default().value("size-min", "4 MiBB");
    let directory = StudyTable::default().value("path", "/srv");
    let workload = StudyTable::default()
        .value("name", "w")
        .headed("files", wrong);
    let table = StudyTable::default()
        .tables("stack", [StudyTable::default().table("dir", directory)])
        .tables("workload", [workload]);
    let text = table.text();
    let as_made = made("made", table, &Kinds::real()).err().unwrap();
    let as_read = parse("made", text.as_bytes(), &Kinds::real())
        .err()
        .unwrap();
    assert!(
        all(&as_made).contains("size-min = \"4 MiBB\""),
        "{}",
        all(&as_made)
    );
    assert_eq!(all(&as_made), all(&as_read));
}

#[test]
fn values_that_lead_a_table_take_the_place_of_those_of_their_names() {
    let table = StudyTable::read("# why\ntitle = \"t\"\n[decide]\nmargin = 1\nuntil = \"each\"\n");
    let first = StudyTable::default().value("margin", "2 %");
    let seed = StudyTable::default().value("seed", 7_u64);
    let changed = table
        .unwrap()
        .changed("decide", |decide| decide.led_by(first))
        .led_by(seed);
    let text = "seed = 7\n# why\ntitle = \"t\"\n\n[decide]\nmargin = \"2 %\"\nuntil = \"each\"\n";
    assert_eq!(changed.text(), text);
    let untold = changed.with_that_of("title", &StudyTable::default());
    assert!(!untold.text().contains("title"));
}
