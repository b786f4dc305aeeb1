//! What configurations cost, and what they do for the money.

use super::content::{self, TextRow, TextTable};
use super::figure;
use stackrace_base::event::{Better, Price, RunStarted};
use stackrace_judge::verdict::{ConfigurationRow, Interval, Verdict};

/// The cost of a configuration; `None` if the study does not say it, or it is nothing.
pub(super) fn of<'a>(head: &'a RunStarted, row: &ConfigurationRow) -> Option<&'a Price> {
    let cost = head.configurations.get(row.configuration)?.cost.as_ref();
    cost.filter(|cost| cost.amount > 0.0)
}

/// The overall figure of a configuration for the money, 1 for the baseline; `None` if it has none, or no cost.
pub(super) fn for_money(
    head: &RunStarted,
    verdict: &Verdict,
    row: &ConfigurationRow,
) -> Option<Interval> {
    let baseline = verdict.configurations.iter().find(|row| row.baseline)?;
    let share = of(head, baseline)?.amount / of(head, row)?.amount;
    let overall = row.overall?;
    Some(Interval {
        estimate: overall.estimate * share,
        low: overall.low * share,
        high: overall.high * share,
    })
}

/// Costs with the performance and what of it there is for the money; `None` if the study has no costs.
pub(super) fn table(head: &RunStarted, verdict: &Verdict) -> Option<TextTable> {
    let mut rows: Vec<&ConfigurationRow> = verdict.configurations.iter().collect();
    let cost = |row: &ConfigurationRow| head.configurations.get(row.configuration)?.cost.as_ref();
    rows.retain(|row| cost(row).is_some());
    let first = cost(rows.first()?)?;
    let costs: Vec<&Price> = rows.iter().filter_map(|row| cost(row)).collect();
    let amount = |row: &ConfigurationRow| cost(row).map_or(0.0, |cost| cost.amount);
    rows.sort_by(|a, b| amount(a).total_cmp(&amount(b)));
    // A figure that is better where it is higher can be bought; of several workloads there is the ratio.
    let bought = match &head.workloads[..] {
        [one] => one.metrics.first().filter(|it| it.better == Better::Higher),
        _ => None,
    };
    let cells = |row: &&ConfigurationRow| {
        let money = for_money(head, verdict, row);
        let [ratio, _] = content::overall_texts(row);
        let mut cells = vec![
            content::configuration_name(row),
            cost(row).map_or_else(String::new, |cost| cost.words_beside(costs.iter().copied())),
            ratio,
            money.map_or_else(
                || figure::MISSING.to_owned(),
                |it| figure::ratio(it.estimate),
            ),
        ];
        if let Some(metric) = bought {
            let value = content::primary(row, 0).and_then(|cell| cell.value);
            let each = value.zip(of(head, row));
            let each = each.and_then(|(value, cost)| cost.buys(&metric.unit, value.estimate));
            cells.push(each.unwrap_or_else(|| figure::MISSING.to_owned()));
        }
        TextRow {
            configuration: Some(row.configuration),
            ..TextRow::of(cells)
        }
    };
    let mut names = vec!["configuration", "cost", "ratio", "for the money"];
    names.extend(bought.map(|metric| metric.name.as_str()));
    Some(TextTable {
        title: format!("Cost in {}", first.unit()),
        note: "Cheapest first. For the money: the ratio divided by the ratio of the costs; 1 is the baseline.".to_owned(),
        head: names.into_iter().map(str::to_owned).collect(),
        text: Vec::new(),
        rows: rows.iter().map(cells).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    #[test]
    fn the_cheapest_comes_first_with_what_it_does_for_the_money() {
        let mut record = sample::record(&sample::small());
        let plain = judge(&Evidence::of(&record));
        assert!(table(&record.head, &plain).is_none());
        let amounts = ["200 EUR", "100 EUR", "400 EUR"];
        for (configuration, cost) in record.head.configurations.iter_mut().zip(amounts) {
            configuration.cost = Some(Price::read(cost).unwrap());
        }
        let verdict = judge(&Evidence::of(&record));
        let table = table(&record.head, &verdict).unwrap();
        assert_eq!(table.title, "Cost in EUR");
        assert_eq!(table.rows[0].cells[1], "100 EUR");
        // Half of the baseline's cost doubles the ratio.
        let row = &verdict.configurations[1];
        let money = for_money(&record.head, &verdict, row).unwrap();
        let factor = 200.0
            / record.head.configurations[row.configuration]
                .cost
                .as_ref()
                .unwrap()
                .amount;
        assert!((money.estimate / row.overall.unwrap().estimate - factor).abs() < 1e-9);
        let widths = table.rows.iter().map(|row| row.cells.len());
        assert!(widths.into_iter().all(|width| width == table.head.len()));
    }
}
