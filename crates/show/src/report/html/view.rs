//! Charts of different units and the switch between them.
//!
//! The switch is a group of radio buttons and a rule of the style sheet: no script. A browser that
//! does not know the rule, and a reader without styles, has all charts below each other.

use maud::{Markup, html};

use crate::report::chart::{Gallery, Plot};

/// Charts that are shown without opening anything.
const OPEN_MAX: usize = 12;

/// A chart and what it shows.
pub(super) struct Chart {
    /// True if it shows what its workload is judged by.
    pub(super) primary: bool,
    /// Unit of the metric it shows.
    pub(super) unit: String,
    /// The plot itself.
    pub(super) plot: Plot,
}

/// Views the reader can switch to: class, words, unit of the metrics.
const VIEWS: [(&str, &str, &str); 3] = [
    ("rate", "MB/s", "B/s"),
    ("operations", "IOPS", "op/s"),
    ("latency", "latency", "ns"),
];

/// Returns true if figures of this unit have a view of their own.
pub(super) fn has_view(unit: &str) -> bool {
    VIEWS.iter().any(|(_, _, known)| *known == unit)
}

impl Chart {
    fn class(&self) -> String {
        // The style sheet's rules hide what lacks the chosen class.
        let mut class = String::from("view");
        if self.primary {
            class.push_str(" primary");
        }
        if let Some((name, _, _)) = VIEWS.iter().find(|(_, _, unit)| *unit == self.unit) {
            class.push(' ');
            class.push_str(name);
        }
        class
    }
}

/// The charts of a section with their switch, if there is something to switch.
pub(super) fn charts(section: &str, charts: Vec<Chart>, gallery: &Gallery) -> Markup {
    let shown = |of: &dyn Fn(&Chart) -> bool| charts.iter().filter(|chart| of(chart)).count();
    let primary = shown(&|chart| chart.primary);
    let mut views = vec![("primary", "what is judged")];
    for (name, words, unit) in VIEWS {
        if shown(&|chart| chart.unit == unit) > 0 {
            views.push((name, words));
        }
    }
    views.push(("all", "all"));
    let open = primary <= OPEN_MAX;
    html! {
        // Nothing to switch if all charts are primary, or none is.
        @if charts.len() > primary && primary > 0 {
            fieldset class="switch" {
                legend { "Show" }
                @for (at, (name, words)) in views.iter().enumerate() {
                    label {
                        input type="radio" name={ (section) "-view" } value=(name) checked[at == 0];
                        " " (words)
                    }
                }
            }
        }
        @if open { (facets(charts, gallery)) } @else {
            details {
                summary { (charts.len()) " charts" }
                (facets(charts, gallery))
            }
        }
    }
}

fn facets(charts: Vec<Chart>, gallery: &Gallery) -> Markup {
    html! {
        // All of them are in the page, also those that the switch hides: paper shows what is chosen.
        div class="facets" {
            @for chart in charts { div class=(chart.class()) { (gallery.captioned(chart.plot)) } }
        }
    }
}
