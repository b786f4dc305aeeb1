//! Names of the directories of a comparison: as short as they can be told apart.

use std::path::{Component, Path};

use stackrace_base::unit;

/// What each of the directories is called in the study and its reports.
pub(crate) fn of<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let paths: Vec<&Path> = paths.collect();
    // A report names a directory in each line: a line break in its name is a sign there.
    let names = short(&paths);
    names.iter().map(|name| unit::signs(name)).collect()
}

/// The last parts of the paths where they differ and can be read; else what lies between the parts that all of them
/// begin and end with (`/srv/a/data` and `/srv/b/data` are `a` and `b`); else the whole paths.
fn short(paths: &[&Path]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths.iter().map(|path| parts_of(path)).collect();
    let last = parts.iter().map(|parts| parts.last().cloned());
    let last: Vec<String> = last.map(Option::unwrap_or_default).collect();
    let shortest = parts.iter().map(Vec::len).min().unwrap_or(0);
    let in_all = |at: &dyn Fn(&[String]) -> Option<String>| {
        let mut each = parts.iter().map(|parts| at(parts));
        let first = each.next().flatten();
        first.is_some() && each.all(|part| part == first)
    };
    let begin = (0..shortest).take_while(|at| in_all(&|parts| parts.get(*at).cloned()));
    let begin = begin.count();
    let from_end = |parts: &[String], at: usize| parts.iter().rev().nth(at).cloned();
    let end = (0..shortest - begin).take_while(|at| in_all(&|parts| from_end(parts, *at)));
    let end = end.count();
    let between = parts.iter();
    let between = between.map(|parts| parts[begin..parts.len() - end].join("/"));
    let whole = || {
        let texts = paths.iter().map(|path| path.to_string_lossy());
        texts.map(|text| text.into_owned()).collect()
    };
    [last, between.collect()]
        .into_iter()
        .find(|names| tell_apart(names))
        .unwrap_or_else(whole)
}

fn parts_of(path: &Path) -> Vec<String> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    parts.collect()
}

/// Returns true if each can be read, and no two are the same.
fn tell_apart(names: &[String]) -> bool {
    let read = names.iter().all(|name| !name.trim().is_empty());
    read && (1..names.len()).all(|at| !names[..at].contains(&names[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(paths: &[&str]) -> Vec<String> {
        short(&paths.iter().map(Path::new).collect::<Vec<_>>())
    }

    #[test]
    fn directories_are_named_by_what_tells_them_apart() {
        assert_eq!(named(&["/srv/ext4", "/mnt/xfs"]), ["ext4", "xfs"]);
        let six = ["a", "b", "c", "d", "e", "f"];
        let paths = six.map(|name| format!("/srv/pool/{name}/data"));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(named(&paths), six);
        assert_eq!(
            named(&["/srv/a/data", "/srv/b/data", "/srv/b/other"]),
            ["a/data", "b/data", "b/other"]
        );
        assert_eq!(named(&["/srv/a/x", "/mnt/a/x"]), ["srv", "mnt"]);
        // Nothing is left of the shorter one.
        assert_eq!(named(&["/data", "/data/data"]), ["/data", "/data/data"]);
        assert_eq!(named(&["/", "/a"]), ["/", "/a"]);
        assert_eq!(named(&["/a"]), ["a"]);
        assert_eq!(named(&["/"]), ["/"]);
    }
}
