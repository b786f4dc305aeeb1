//! What a study may ask of a machine that has nothing but a shell.

use stackrace_base::failure::Failure;
use stackrace_base::setting::OverShell;
use stackrace_layers::stack;
use stackrace_load::programs;
use stackrace_study::study::Study;

/// Refuses a study that asks for what cannot be had over a shell, before anything is touched.
///
/// # Errors
/// What it asks for, and the nearest that can be had.
pub fn check(study: &Study) -> Result<(), Failure> {
    let wrong = wrong(study);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::refused(format!(
            "with --agent none this study cannot be run:\n  {}",
            wrong.join("\n  ")
        ))
        .next("change the study, or leave --agent none out where the machine is a Linux like this one")),
    }
}

/// Lists what a study asks for that cannot be had over a shell, and the nearest that can be had.
pub fn wrong(study: &Study) -> Vec<String> {
    let mut wrong = Vec::new();
    for configuration in &study.configurations {
        let layers = &configuration.stack.layers;
        for layer in layers
            .iter()
            .filter(|layer| layer_over_shell(layer.kind()) != OverShell::Runs)
        {
            wrong.push(format!(
                "the layer {} needs this program there; {}",
                layer.kind(),
                nearest_layer(layer.kind())
            ));
        }
        if configuration.stack.nodes() > 1 {
            // The other machines would have to be reached from there, where no key of the user's is.
            wrong.push("its stack stands on several machines; use one".to_owned());
        }
    }
    for head in study
        .workload_heads
        .iter()
        .filter(|head| workload_over_shell(&head.kind) != OverShell::Runs)
    {
        wrong.push(format!(
            "the workload {} ({}) needs this program there; {}",
            head.name,
            head.kind,
            nearest_workload(&head.kind)
        ));
    }
    if study.policy.precondition {
        // It writes the whole device in the blocks of the workload, and waits until the speed is steady.
        wrong.push("preconditioning needs this program there; leave it out".to_owned());
    }
    if !study.together.is_empty() {
        wrong.push(
            "workloads at the same time need this program there; leave out together".to_owned(),
        );
    }
    if study.crash.is_some() {
        wrong.push("power cuts are made in the lab alone; leave [crash] out".to_owned());
    }
    // Configurations mostly have the same layers.
    wrong.sort();
    wrong.dedup();
    wrong
}

fn nearest_layer(kind: &str) -> String {
    nearest(
        layer_over_shell(kind),
        "are dir, on storage that is there, and script, with commands of your own",
    )
}

fn nearest_workload(kind: &str) -> String {
    nearest(
        workload_over_shell(kind),
        "is command, with a program that is installed there",
    )
}

/// The advice for a kind; `otherwise` where nothing of its own is said.
fn nearest(way: OverShell, otherwise: &str) -> String {
    match way {
        OverShell::Nearest(setting) => format!("the nearest is {setting}"),
        OverShell::Runs | OverShell::Never => format!("the nearest {otherwise}"),
    }
}

/// The way to have a layer there.
fn layer_over_shell(kind: &str) -> OverShell {
    let kind = stack::ALL.iter().find(|known| known.name == kind);
    kind.map_or(OverShell::Never, |kind| kind.over_shell)
}

/// The way to have a workload there.
fn workload_over_shell(kind: &str) -> OverShell {
    programs::kind(kind).map_or(OverShell::Never, |kind| kind.over_shell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::plan::Fault;
    use stackrace_run::prepare::preflight;
    use stackrace_run::prepare::study_file;
    use std::path::{Path, PathBuf};

    fn refused(layer: &str, workload: &str) -> Option<String> {
        let text = format!(
            "[factors]\na = [1, 2]\n[[stack]]\n{layer}\n[[workload]]\n{workload}\n[decide]\nrounds-at-most = 3\n"
        );
        let study = study_file::parse("s.toml", text.as_bytes());
        let study = study.map_err(Failure::into_parts).unwrap();
        check(&study).err().map(|failure| failure.into_parts().0)
    }

    #[test]
    fn advice_names_layers_and_settings_that_exist() {
        let of_layers = stack::ALL.iter().map(|kind| kind.over_shell);
        let of_workloads = programs::workloads().iter().map(|kind| kind.over_shell);
        let advice = of_layers.chain(of_workloads).filter_map(|way| match way {
            OverShell::Nearest(advice) => Some(advice),
            OverShell::Runs | OverShell::Never => None,
        });
        for advice in advice {
            // What stands in it of a study is read as one.
            let Some(end) = advice.find('}') else {
                continue;
            };
            let line = &advice[..=end];
            let refused = match line.starts_with("command") {
                true => refused("dir = { path = \"/srv/{a}\" }", line),
                false => refused(
                    &line.replace("1 GiB", "{a} GiB"),
                    "command = { run = \"x\" }",
                ),
            };
            assert_eq!(refused, None, "{advice}");
        }
    }

    #[test]
    fn what_needs_this_program_is_refused_with_the_nearest_that_does_not() {
        let dir = "dir = { path = \"/srv/{a}\" }";
        let command = "command = { run = \"dd if=/dev/zero of=f\" }";
        assert_eq!(refused(dir, command), None);
        let engine = refused(dir, "files = { count = 5 }").unwrap();
        assert!(
            engine.contains("the workload files (files) needs this program there"),
            "{engine}"
        );
        let random = refused(
            dir,
            "random = { mode = \"write\", size = \"1 MiB\", time = \"{a} s\" }",
        );
        assert!(random.unwrap().contains("parse = \"fio\""));
        let tmpfs = refused("tmpfs = { size = \"{a} MiB\" }", command).unwrap();
        assert!(
            tmpfs.contains("the layer tmpfs needs this program there; the nearest are dir"),
            "{tmpfs}"
        );
    }

    /// The published studies of several systems, as their users would plan them.
    #[test]
    fn the_studies_for_hosts_of_the_users_parse_and_plan() {
        for (name, text, place, system) in [
            (
                "zfs-three-os",
                include_str!("../../../../../studies/hosts/zfs-three-os.toml"),
                "/tank/stackrace",
                "SunOS",
            ),
            (
                "zfs-block-size",
                include_str!("../../../../../studies/hosts/zfs-block-size.toml"),
                "/tank/stackrace",
                "FreeBSD",
            ),
            (
                "netatalk-cnid",
                include_str!("../../../../../studies/hosts/netatalk-cnid.toml"),
                "/Volumes/cnid-default",
                "Darwin",
            ),
        ] {
            let study = study_file::parse(name, text.as_bytes());
            let study = study.map_err(Failure::into_parts).unwrap();
            assert!(check(&study).is_ok(), "{name}");
            let places = [place, "/Volumes/cnid-var", "/Volumes/cnid-tmp"].map(PathBuf::from);
            let host = stack::imagined(Fault::Never).of_system(system, places);
            let plan = preflight::plan_there(&host, Path::new("/tmp/x/mnt"), &study);
            let plan = plan
                .map_err(Failure::into_parts)
                .unwrap()
                .render(stackrace_study::plan::COLUMNS);
            assert!(!plan.contains("cannot be set up"), "{plan}");
            assert!(
                plan.contains(&format!("$ mkdir {place}/.stackrace-")),
                "{plan}"
            );
            assert!(
                !plan.contains("/proc/") && !plan.contains("sync --"),
                "{plan}"
            );
            assert!(text.contains("FILL IN") && text.contains("docs/platforms.md"));
        }
    }
}
