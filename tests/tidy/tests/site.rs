//! The documentation as a site: no page is missing, no link is broken, nothing of others is replaced.

#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]
#![expect(
    clippy::disallowed_methods,
    reason = "the script is started as a user starts it"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use stackrace_test_needs::{find, group, run, tests, tool};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A small repository with what the README leads to, and a page that nothing leads to.
fn small(readme: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("docs/new")).unwrap();
    fs::write(root.path().join("README.md"), readme).unwrap();
    fs::write(
        root.path().join("docs/a.md"),
        "# Page `a`\n## One heading\n",
    )
    .unwrap();
    fs::write(root.path().join("docs/new/alone.md"), "# Alone\n").unwrap();
    root
}

fn site(arguments: &[&Path]) -> Output {
    Command::new(tool("python3"))
        .arg(checkout().join("packaging/site"))
        .args(arguments)
        .output()
        .unwrap()
}

fn summary(root: &Path) -> String {
    let done = site(&["--summary".as_ref(), "--from".as_ref(), root]);
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

fn every_page_is_in_the_site_once() {
    let root = checkout();
    let mut all = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut all);
    let said = summary(&root);
    for page in all {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        assert_eq!(said.matches(&format!("]({name})")).count(), 1, "{name}");
    }
}

fn a_page_that_nothing_leads_to_is_in_the_site_and_a_new_folder_is_a_part() {
    let said = summary(small("# Small\n[a](docs/a.md)\n").path());
    assert!(said.contains("- [Page a](docs/a.md)\n"), "{said}");
    let part = "# docs/new\n\n- [Alone](docs/new/alone.md)\n";
    assert!(said.contains(part), "{said}");
}

/// A gallery with one page, as the program lists it.
fn gallery(root: &Path) -> PathBuf {
    let folder = root.join("made");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("index.html"), "<h1>Results</h1>").unwrap();
    fs::write(folder.join("secret.txt"), "mine").unwrap();
    let list = "{\"gallery\":1,\"runs\":[],\"files\":{\"index.html\":[\"ab\"]}}";
    fs::write(folder.join("gallery.json"), list).unwrap();
    folder
}

fn a_gallery_is_taken_in_by_one_link_and_a_folder_that_is_none_is_refused() {
    let root = small("# Small\n");
    let made = gallery(root.path());
    let with = |folder: &Path| {
        site(&[
            "--summary".as_ref(),
            "--from".as_ref(),
            root.path(),
            "--gallery".as_ref(),
            folder,
        ])
    };
    let said = String::from_utf8(with(&made).stdout).unwrap();
    assert_eq!(said.matches("[Results](gallery.md)").count(), 1, "{said}");
    assert!(!summary(root.path()).contains("gallery"));
    let refused = with(&root.path().join("docs"));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("is no gallery") && said.contains("next: stackrace gallery LOGS -o"),
        "{said}"
    );
    fs::remove_file(made.join("index.html")).unwrap();
    assert_eq!(
        with(&made).status.code(),
        Some(1),
        "a file of it is missing"
    );
}

fn the_gallery_is_in_the_site_and_nothing_else_of_its_folder() {
    mdbook();
    let root = small("# Small\n");
    let (made, out) = (gallery(root.path()), root.path().join("out"));
    let done = site(&[
        "--from".as_ref(),
        root.path(),
        "--gallery".as_ref(),
        &made,
        &out,
    ]);
    assert!(done.status.success(), "{done:?}");
    assert!(out.join("gallery/index.html").is_file());
    assert!(!out.join("gallery/secret.txt").exists());
}

fn without_mdbook_it_says_what_to_install_and_writes_nothing() {
    let root = small("# Small\n");
    // What is in PATH may be a script that starts the real one, and would need PATH itself.
    let asked = Command::new(tool("python3"))
        .args(["-c", "import sys; print(sys.executable, end='')"])
        .output()
        .unwrap();
    let python = String::from_utf8(asked.stdout).unwrap();
    let empty = root.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let out = root.path().join("out");
    let done = Command::new(python)
        .arg(checkout().join("packaging/site"))
        .arg(&out)
        .env("PATH", &empty)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("next: cargo install mdbook --locked"),
        "{said}"
    );
    assert!(!out.exists());
}

/// A program in the place of mdbook would not show what mdbook makes of a link.
fn mdbook() {
    if find("mdbook").is_none() {
        stackrace_test_needs::skip("needs mdbook: cargo install mdbook --locked");
    }
}

fn the_whole_site_is_built_and_its_links_lead_somewhere() {
    mdbook();
    let made = tempfile::tempdir().unwrap();
    let out = made.path().join("site");
    // The second one replaces the first.
    for _ in 0..2 {
        let done = site(&[&out]);
        assert!(done.status.success(), "{done:?}");
    }
    assert!(out.join("index.html").is_file());
    let left = fs::read_dir(made.path()).unwrap().count();
    assert_eq!(left, 1, "only the site stays");
}

fn a_link_to_no_page_or_no_heading_stops_the_build() {
    mdbook();
    let root = small("# Small\n[a](docs/a.md#one-heading) [b](docs/a.md#none) [c](docs/c.md)\n");
    let out = root.path().join("out");
    let done = site(&["--from".as_ref(), root.path(), &out]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("docs/a.html#none: there is no such heading"),
        "{said}"
    );
    assert!(said.contains("docs/c.html leads nowhere"), "{said}");
    assert!(!said.contains("one-heading"), "{said}");
    assert!(!out.exists());
}

fn a_folder_of_others_is_not_replaced() {
    mdbook();
    let root = small("# Small\n");
    let out = root.path().join("docs");
    let done = site(&["--from".as_ref(), root.path(), &out]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("packaging/site did not make it"), "{said}");
    assert!(out.join("a.md").is_file());
}

fn main() -> ExitCode {
    run(vec![group(
        "site",
        tests![
            every_page_is_in_the_site_once,
            a_page_that_nothing_leads_to_is_in_the_site_and_a_new_folder_is_a_part,
            a_gallery_is_taken_in_by_one_link_and_a_folder_that_is_none_is_refused,
            the_gallery_is_in_the_site_and_nothing_else_of_its_folder,
            without_mdbook_it_says_what_to_install_and_writes_nothing,
            the_whole_site_is_built_and_its_links_lead_somewhere,
            a_link_to_no_page_or_no_heading_stops_the_build,
            a_folder_of_others_is_not_replaced
        ],
    )])
}
