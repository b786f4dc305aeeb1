//! The configuration on the storage where a replayed application was recorded.

use stackrace_base::unit::listed_names;

use super::design::Configuration;

/// Most configurations that a refusal names.
const NAMED_MAX: usize = 8;

/// Index of the configuration that a workload, by its index, names as the place of its recording; `None` if it names none.
///
/// # Errors
/// It is none of them, or not one alone: why, and what to do.
pub(super) fn place(
    workload: usize,
    configurations: &[Configuration],
) -> Result<Option<usize>, (String, String)> {
    let homes = configurations.iter();
    let mut homes: Vec<&str> = homes
        .filter_map(|one| one.workloads[workload].home())
        .collect();
    homes.dedup();
    let home = match homes[..] {
        [] => return Ok(None),
        [home] => home,
        // An application is recorded in one place: a placeholder would call each of them that.
        _ => {
            let help = "write the name of one configuration, without a placeholder";
            return Err((
                "the home of a recorded application varies".to_owned(),
                help.to_owned(),
            ));
        }
    };
    let all = || configurations.iter().enumerate();
    if let Some((at, _)) = all().find(|(_, one)| one.name == home) {
        return Ok(Some(at));
    }
    let with_level = all().filter(|(_, one)| one.levels.iter().any(|level| level == home));
    let with_level: Vec<usize> = with_level.map(|(at, _)| at).collect();
    let names = |of: &[usize]| {
        let named = of.iter().take(NAMED_MAX);
        let names = named.map(|at| format!("\"{}\"", configurations[*at].name));
        let names: Vec<String> = names.collect();
        format!("name one of them: {}", listed_names(&names))
    };
    match with_level[..] {
        [at] => Ok(Some(at)),
        [] => Err((
            format!("no configuration is called \"{home}\""),
            names(&all().map(|(at, _)| at).collect::<Vec<_>>()),
        )),
        _ => Err((
            format!(
                "{} configurations have the level \"{home}\"",
                with_level.len()
            ),
            names(&with_level),
        )),
    }
}
