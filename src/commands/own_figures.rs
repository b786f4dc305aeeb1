//! The figures of a tool that a command runs: what they are is known when it has printed them once.

use super::own_program::OwnProgram;
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::failure::Failure;
use stackrace_load::programs::{FoundFigures, Printed, found_in};

impl OwnProgram {
    /// Returns true if all its figures are those that the importer of its tool finds.
    pub(super) fn asks_a_tool(&self) -> bool {
        self.parse.is_some() && !self.metrics.iter().any(|metric| metric.contains('='))
    }

    /// The same without figures, to see what it prints.
    pub(super) fn without_figures(&self) -> Self {
        Self {
            metrics: Vec::new(),
            units: Vec::new(),
            better: Vec::new(),
            ..self.clone()
        }
    }

    /// Adds the figures that its tool prints, or those of them that were asked for, with their units and directions;
    /// and what is to be said where one of several results decides.
    pub(super) fn with_found(
        &self,
        [out, errors]: &[String; 2],
    ) -> Result<(Self, Option<String>), Failure> {
        let refused = |why: String| {
            Failure::refused(format!("`{}`: {why}", self.name()))
                .next("let the command print what the tool prints, or name figures with --metric")
        };
        let found = found_in(Printed { out, errors }, self.parse.as_deref()).map_err(refused)?;
        let heads = match self.metrics.is_empty() {
            true => found.usable(),
            false => self.asked(&found).map_err(refused)?,
        };
        let Some(first) = heads.first() else {
            return Err(refused(
                "it printed no figure that can be compared".to_owned(),
            ));
        };
        let several = found.several().filter(|_| self.metrics.is_empty());
        let of_several = several.as_ref().map(|_| first.name.clone());
        let several = several.map(|others| {
            format!(
                "`{}` prints several results, and {} decides. The report has all of them; --metric takes another one: {others}",
                self.name(),
                first.name
            )
        });
        let direction = |head: &MetricHead| match head.better {
            Better::Higher => "higher".to_owned(),
            Better::Lower => "lower".to_owned(),
        };
        let better = heads.iter().map(direction).collect();
        let own = Self {
            units: heads.iter().map(|head| head.unit.clone()).collect(),
            // What was said goes before what the importer says.
            better: match self.better.as_slice() {
                [] => better,
                said => said.to_vec(),
            },
            metrics: heads.into_iter().map(|head| head.name).collect(),
            judged_by: self.judged_by.clone().or(of_several),
            ..self.clone()
        };
        Ok((own, several))
    }

    /// The figures that were asked for, as the importer knows them.
    fn asked(&self, found: &FoundFigures) -> Result<Vec<MetricHead>, String> {
        let heads = self.metrics.iter().enumerate().map(|(at, asked)| {
            let asked = asked.trim();
            let (head, figure) = found.named(asked)?;
            let said = match self.units.as_slice() {
                [one] => Some(one),
                all => all.get(at),
            };
            if let Some(said) = said.filter(|said| **said != head.unit) {
                return Err(format!(
                    "{asked} is in {}, and \"{said}\" was said",
                    head.unit
                ));
            }
            match figure {
                Some(figure) if figure.value > 0.0 => Ok(head.clone()),
                Some(_) => Err(format!(
                    "the {asked} is 0, which has no ratio to another: let it do more"
                )),
                None => Err(format!("the tool gave no figure for {asked}")),
            }
        });
        heads.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(tool: &str, metrics: &[&str]) -> OwnProgram {
        OwnProgram {
            parse: Some(tool.to_owned()),
            metrics: metrics.iter().map(|&name| name.to_owned()).collect(),
            ..OwnProgram::default()
        }
    }

    fn found(own: &OwnProgram, printed: &str) -> (OwnProgram, Option<String>) {
        let found = own.with_found(&[String::new(), printed.to_owned()]);
        found.unwrap_or_else(|why| panic!("{why:?}"))
    }

    const DD: &str = "1024+0 records in\n1024+0 records out\n\
                      1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10 s, 107 MB/s\n";

    /// Every command has an elapsed time that is measured from outside; a tool has its own one.
    #[test]
    fn what_a_tool_says_of_its_time_is_a_figure_of_its_own() {
        let gnu = "0.00user 0.01system 0:01.50elapsed 0%CPU (0avgtext+0avgdata 2048maxresident)k\n\
                   0inputs+0outputs (0major+120minor)pagefaults 0swaps\n";
        for (printed, metrics) in [
            (gnu, &["elapsed (time)", "largest resident set"][..]),
            (
                "\nreal\t0m0.103s\nuser\t0m0.000s\nsys\t0m0.000s\n",
                &["elapsed (time)"],
            ),
            ("real 0.10\nuser 0.00\nsys 0.00\n", &["elapsed (time)"]),
        ] {
            let (of_time, _) = found(&own("time", &[]), printed);
            assert_eq!(
                (of_time.metrics.as_slice(), of_time.judged_by),
                (
                    &metrics.iter().map(|&it| it.to_owned()).collect::<Vec<_>>()[..],
                    None
                )
            );
            let (asked, _) = found(&own("time", &["elapsed"]), printed);
            assert_eq!(
                (asked.metrics, asked.better),
                (vec!["elapsed (time)".to_owned()], vec!["lower".to_owned()])
            );
        }
        let (of_dd, several) = found(&own("dd", &[]), DD);
        assert_eq!(several, None);
        assert_eq!(of_dd.metrics, ["throughput"]);
    }

    const FIO: &str = include_str!("../../tests/golden/fio/fio-3.39_randrw_jsonplus.json");

    #[test]
    fn a_figure_that_is_named_has_the_unit_and_the_direction_of_the_importer() {
        let name = "fio randrw 4k, iodepth 16: read: read latency mean";
        let (latency, several) = found(&own("fio", &[name]), FIO);
        assert_eq!(
            (latency.units, latency.better, several),
            (vec!["ns".to_owned()], vec!["lower".to_owned()], None)
        );
        for (metric, unit, expected) in [
            ("latency", None, "not among the figures"),
            (name, Some("ms"), "is in ns, and \"ms\" was said"),
        ] {
            let asked = OwnProgram {
                units: unit.into_iter().map(str::to_owned).collect(),
                ..own("fio", &[metric])
            };
            let why = asked.with_found(&[FIO.to_owned(), String::new()]);
            let why = format!("{:?}", why.err());
            assert!(why.replace('\\', "").contains(expected), "{why}");
        }
    }

    #[test]
    fn the_one_of_several_results_that_decides_is_named_with_the_others() {
        let (fio, several) = found(&own("fio", &[]), FIO);
        let first = "fio randrw 4k, iodepth 16: read: operations";
        assert_eq!(fio.judged_by.as_deref(), Some(first));
        let several = several.unwrap();
        assert!(
            several.contains(&format!("and {first} decides")),
            "{several}"
        );
        assert!(several.contains("write: operations"), "{several}");
    }
}
