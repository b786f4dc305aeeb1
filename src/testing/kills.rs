//! The stacks in which the program is killed, as the layers declare them.

use stackrace_layers::stack;

/// One stack, and the study that sets it up.
#[derive(Debug, Clone)]
pub struct Kill {
    /// What the test calls it.
    pub name: &'static str,
    /// Its layers as a study writes them.
    pub toml: String,
}

/// The stacks that can be set up on so many machines of a system of the lab.
pub fn kills(machines: usize, system: &str) -> Vec<Kill> {
    let server = if machines > 1 { "peer" } else { "same" };
    let kinds = stack::ALL.iter().filter(|kind| {
        let packages = kind.packages.iter();
        let mut only_on = packages.filter_map(|package| package.only_on);
        only_on.all(|only| only == system)
    });
    let stacks = kinds.flat_map(|kind| kind.tried.kills);
    let stacks = stacks.filter(|stack| stack.machines.contains(&machines));
    stacks
        .map(|stack| {
            let (size, count) = stack.disks;
            // A hole in a file is made at once, and the memory that guests keep files in has no direct I/O.
            let disks = format!(
                "loop = {{ size = \"{size}\", count = {count}, laid-out = \"no\", direct-io = false }}"
            );
            let disks = (count > 0).then_some(disks);
            let layers = stack.layers.iter().map(|line| line.replace("{server}", server));
            let layers = disks.into_iter().chain(layers);
            let toml = layers.map(|line| format!("[[stack]]\n{line}\n")).collect();
            Kill {
                name: stack.name,
                toml,
            }
        })
        .collect()
}

/// Programs of layers that change something, which are what the program is killed at.
pub fn kill_changes() -> String {
    let changes = stack::ALL.iter().flat_map(|kind| kind.tried.changes);
    changes.copied().collect::<Vec<_>>().join(" ")
}

/// Lines for a shell that print what of any layer stands.
pub fn kill_standing() -> String {
    let lines = stack::ALL.iter().map(|kind| kind.tried.standing);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}
