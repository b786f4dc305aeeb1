//! Files that root obeys: whose store is used, what a journal may ask for, and what stays untouched.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]
#![expect(
    clippy::disallowed_methods,
    reason = "what must not be touched is made by tools and processes"
)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Ground, Said, tool};
use stackrace_test_needs as needs;

/// A user who is not root.
const MALLORY: u32 = 54_321;

/// Digits that a journal of these tests says it drew.
const MARK: &str = "0123456789abcdef";

/// Work in a directory that takes no root and a moment.
const SMALL: &str = study!(
    "Small",
    r#"block-size = ["4 KiB", "8 KiB"]"#,
    [r#"dir = { path = "data" }"#],
    [r#"random = { mode = "write", size = "1 MiB", block-size = "{block-size}", time = "TIME" }"#],
    2
);

/// Makes a journal with these entries, as a run of the store that died.
fn journal(ground: &Ground, run: &str, lines: &[String]) -> PathBuf {
    let dir = ground.store().join("runs").join(run);
    fs::create_dir_all(&dir).unwrap();
    let mut text = format!("{{\"journal\":3,\"run\":\"{run}\"}}\n{{\"mark\":\"{MARK}\"}}\n");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    let path = dir.join("journal.jsonl");
    fs::write(&path, text).unwrap();
    path
}

fn entry(undo: &str) -> String {
    format!("{{\"entry\":1,\"group\":\"a\",\"undo\":{undo}}}")
}

/// `clean` has to leave everything alone, to say why, and to exit with 4.
#[track_caller]
fn left_alone(ground: &Ground, why: &str) {
    for words in [&["clean", "--list"][..], &["clean"]] {
        let said = ground.stackrace(words);
        assert!(
            said.out.contains("left alone: "),
            "{words:?} {}{}",
            said.out,
            said.err
        );
        assert!(said.out.contains(why), "no {why:?} in {}", said.out);
        said.ended(4);
    }
}

/// Things of others, of each kind that a journal can name.
struct Canaries {
    root: PathBuf,
    device: String,
    process: Child,
}

impl Canaries {
    fn new(ground: &Ground) -> Self {
        let root = ground.make_dir("theirs");
        fs::create_dir(root.join("photos")).unwrap();
        fs::create_dir(root.join("empty")).unwrap();
        fs::write(root.join("photos/one"), "a photo").unwrap();
        fs::write(root.join("number"), "7").unwrap();
        fs::create_dir(root.join("mnt")).unwrap();
        let disk = root.join("disk");
        fs::File::create(&disk).unwrap().set_len(16 << 20).unwrap();
        tool(
            "mkfs.ext4",
            &["-q", "-F", "-L", "canary", disk.to_str().unwrap()],
        );
        let device = tool("losetup", &["--find", "--show", disk.to_str().unwrap()]);
        let at = root.join("mnt");
        tool("mount", &["-t", "tmpfs", "tmpfs", at.to_str().unwrap()]);
        fs::write(at.join("two"), "another photo").unwrap();
        let process = Command::new("sleep")
            .arg("1000")
            .env("STACKRACE_STACK", "")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            root,
            device: device.trim().to_owned(),
            process,
        }
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().to_owned()
    }

    /// Undos that a careless program would carry out, each with the kind of canary it is for.
    fn attacks(&self) -> Vec<String> {
        let device = &self.device;
        let by_path = [
            ("remove-file", "photos/one"),
            ("remove-dir", "empty"),
            ("remove-tree", "photos"),
            ("unmount", "mnt"),
            ("end-machine", "photos"),
        ];
        let mut undos: Vec<String> = by_path
            .iter()
            .map(|(kind, name)| format!("{{\"{kind}\":\"{}\"}}", self.path(name)))
            .collect();
        for mark in ["", "c", "canary"] {
            undos.push(format!(
                "{{\"blank\":{{\"device\":\"{device}\",\"mark\":\"{mark}\"}}}}"
            ));
        }
        undos.push(format!(
            "{{\"write-back\":{{\"file\":\"{}\",\"ours\":\"7\",\"before\":\"8\"}}}}",
            self.path("number")
        ));
        for mark in ["", ".stackrace-"] {
            undos.push(format!(
                "{{\"end-process\":{{\"program\":\"sleep\",\"mark\":\"{mark}\"}}}}"
            ));
        }
        undos.push(format!(
            "{{\"layer\":{{\"name\":\"loop\",\"undo\":\"detach\",\"of\":[\"{}\"]}}}}",
            self.path("disk")
        ));
        undos
    }

    #[track_caller]
    fn assert_untouched(&mut self) {
        assert_eq!(fs::read(self.root.join("photos/one")).unwrap(), b"a photo");
        assert_eq!(
            fs::read(self.root.join("mnt/two")).unwrap(),
            b"another photo"
        );
        assert_eq!(fs::read(self.root.join("number")).unwrap(), b"7");
        assert!(self.root.join("empty").is_dir());
        let loops = tool("losetup", &["--associated", &self.path("disk")]);
        assert!(loops.contains(&self.device), "the loop device is gone");
        let found = tool("blkid", &["--probe", &self.device]);
        assert!(found.contains("canary"), "{found}");
        assert!(
            self.process.try_wait().unwrap().is_none(),
            "the process was ended"
        );
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("umount").arg(self.root.join("mnt")).status();
        let _ = Command::new("losetup")
            .args(["--detach", &self.device])
            .status();
    }
}

fn a_journal_that_asks_for_what_its_run_did_not_create_touches_nothing() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let mut canaries = Canaries::new(&ground);
    for undo in needs::attacks(canaries.attacks()) {
        // Neither a place that the journal makes up nor a mark of its own gives it a right.
        let place = format!("{{\"place\":\"{}\"}}", canaries.root.display());
        let path = journal(&ground, "hostile", &[place, entry(&undo)]);
        left_alone(&ground, "asks for something that its run did not create");
        canaries.assert_untouched();
        let before = fs::metadata(&path).unwrap().len();
        assert!(before > 0, "the journal was cut");
    }
}

/// What is the run's own goes, also when another journal of the store is hostile.
fn one_hostile_journal_does_not_keep_the_others_from_being_cleaned() {
    let ground = Ground::new();
    let theirs = ground.write("photo", "x");
    let name = format!(".stackrace-load-{MARK}");
    let ours = ground.make_dir(&name);
    let place = format!("{{\"place\":\"{}\"}}", ground.path().display());
    let undo = |kind: &str, path: &Path| entry(&format!("{{\"{kind}\":\"{}\"}}", path.display()));
    journal(&ground, "a", &[place.clone(), undo("remove-file", &theirs)]);
    journal(&ground, "b", &[place, undo("remove-tree", &ours)]);
    let said = ground.stackrace(&["clean"]);
    said.ended(4);
    assert!(said.out.contains("undone: remove "), "{}", said.out);
    assert!(theirs.exists() && !ours.exists());
}

fn a_store_that_is_not_roots_own_is_refused() {
    needs::root();
    let ground = Ground::new();
    let photo = ground.write("photo", "x");
    let path = journal(&ground, "r", &[]);
    let run = path.parent().unwrap().to_owned();
    for (what, mode, owner) in needs::attacks([
        (ground.store(), 0o777, 0),
        (ground.store(), 0o755, MALLORY),
        (ground.store().join("runs"), 0o775, 0),
        (run.clone(), 0o777, 0),
        (run, 0o755, MALLORY),
        (path.clone(), 0o666, 0),
        (path, 0o644, MALLORY),
    ]) {
        let before = fs::metadata(&what).unwrap();
        fs::set_permissions(&what, PermissionsExt::from_mode(mode)).unwrap();
        chown(&what, Some(owner), None).unwrap();
        for words in [&["clean"][..], &["clean", "--list"]] {
            let said = ground.stackrace(words);
            assert!(
                [Some(3), Some(4)].contains(&said.code),
                "{what:?}: {:?}",
                said.code
            );
            let text = said.out + &said.err;
            assert!(text.contains(&*what.to_string_lossy()), "{text}");
            assert!(text.contains("next: "), "no advice in {text}");
        }
        assert!(photo.exists());
        fs::set_permissions(&what, PermissionsExt::from_mode(before.mode())).unwrap();
        chown(&what, Some(before.uid()), None).unwrap();
    }
    assert_eq!(
        ground.stackrace(&["clean"]).ended(0).out,
        "nothing to clean\n"
    );
}

fn a_directory_above_the_store_that_others_write_is_refused() {
    needs::root();
    let ground = Ground::new();
    let above = ground.make_dir("above");
    fs::set_permissions(&above, PermissionsExt::from_mode(0o777)).unwrap();
    let store = above.join("store");
    let said = Command::new(env!("CARGO_BIN_EXE_stackrace"))
        .args(["report", "--store", store.to_str().unwrap()])
        .output()
        .unwrap();
    let said = Said::of(&said);
    said.ended(3)
        .err_has("can be written by other users")
        .err_has("chmod go-w");
    assert!(!store.exists());
}

fn listing_and_cleaning_change_no_file_that_is_no_journal() {
    let ground = Ground::new();
    let diary = ground.write("diary", "dear diary\nthe last line has no end");
    let dir = ground.store().join("runs/r");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("journal.jsonl");
    symlink(&diary, &path).unwrap();
    left_alone(&ground, "is a link");
    fs::remove_file(&path).unwrap();
    fs::copy(&diary, &path).unwrap();
    left_alone(&ground, "this line is not valid");
    fs::write(&path, "no line at all").unwrap();
    left_alone(&ground, "this line is not valid");
    assert_eq!(fs::read(&path).unwrap(), b"no line at all");
    fs::remove_file(&path).unwrap();
    tool("mkfifo", &[path.to_str().unwrap()]);
    left_alone(&ground, "is no regular file");
    let text = fs::read_to_string(&diary).unwrap();
    assert_eq!(text, "dear diary\nthe last line has no end");
}

fn listing_leaves_a_torn_journal_as_it_is() {
    let ground = Ground::new();
    let path = journal(&ground, "r", &["{\"entry\":1,\"gro".to_owned()]);
    let mut text = fs::read(&path).unwrap();
    text.pop();
    fs::write(&path, &text).unwrap();
    let said = ground.stackrace(&["clean", "--list"]);
    assert_eq!(said.ended(0).out, "nothing to clean\n");
    assert_eq!(fs::read(&path).unwrap(), text);
}

/// A finished run, and where it is.
fn finished(ground: &Ground) -> PathBuf {
    finished_by(ground, &mut ground.program(&["run", "small.toml"]))
}

fn finished_by(ground: &Ground, run: &mut Command) -> PathBuf {
    ground.make_dir("data");
    ground.write("small.toml", SMALL.replace("TIME", "10 ms"));
    Said::of(&run.output().unwrap()).ended(0);
    run_dir(ground).unwrap()
}

fn run_dir(ground: &Ground) -> Option<PathBuf> {
    let runs = fs::read_dir(ground.store().join("runs")).ok()?;
    runs.flatten().map(|run| run.path()).next()
}

fn what_a_run_leaves_is_for_its_user_alone() {
    let ground = Ground::new();
    let run = ground.program(&["run", "small.toml"]);
    // A umask that takes all rights takes none from the user's own store.
    let mut masked = Command::new("sh");
    masked.args(["-c", "umask 0777; exec \"$@\"", "sh"]);
    masked.arg(run.get_program()).args(run.get_args());
    let run = finished_by(&ground, masked.current_dir(ground.path()));
    let mut seen = 0;
    for dir in [ground.store(), ground.store().join("runs"), run] {
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700, "{dir:?}");
        for file in fs::read_dir(&dir).unwrap().map(|file| file.unwrap()) {
            let about = file.metadata().unwrap();
            let mode = if about.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(about.mode() & 0o777, mode, "{:?}", file.path());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} files");
}

/// Each file of a run as a link to a file of others, and as a FIFO: refused at once, nothing written.
fn links_and_fifos_in_the_place_of_files_are_refused() {
    let ground = Ground::new();
    let run = finished(&ground);
    let victim = ground.write("victim", "theirs");
    let id = run.file_name().unwrap().to_str().unwrap().to_owned();
    for (file, words) in needs::attacks([
        (run.join("log.jsonl"), &["report", &*id][..]),
        (run.join("log.jsonl"), &["resume", &id]),
        (run.join("journal.jsonl"), &["resume", &id]),
        (ground.store().join("stackrace.db"), &["reindex"]),
    ]) {
        let kept = ground.path().join("kept");
        fs::rename(&file, &kept).unwrap();
        symlink(&victim, &file).unwrap();
        let said = ground.stackrace(words);
        assert_ne!(said.code, Some(0), "{words:?} {}", said.out);
        said.err_has("is a link");
        fs::remove_file(&file).unwrap();
        tool("mkfifo", &[file.to_str().unwrap()]);
        let said = ground.stackrace(words);
        assert_ne!(said.code, Some(0), "{words:?}");
        said.err_has("is no regular file");
        fs::remove_file(&file).unwrap();
        fs::rename(&kept, &file).unwrap();
    }
    // A line that a kill tore is kept beside the log: not through a link.
    let log = run.join("log.jsonl");
    let text = [fs::read(&log).unwrap(), b"{\"torn".to_vec()].concat();
    fs::write(&log, &text).unwrap();
    symlink(&victim, run.join("log.torn")).unwrap();
    ground.stackrace(&["resume"]).err_has("is a link");
    assert_eq!(
        fs::read(&log).unwrap(),
        text,
        "cut before the rest was kept"
    );
    assert_eq!(fs::read(&victim).unwrap(), b"theirs");
}

fn a_log_that_names_another_run_is_refused() {
    let ground = Ground::new();
    let run = finished(&ground);
    let id = run.file_name().unwrap().to_str().unwrap().to_owned();
    let log = run.join("log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(
        &log,
        text.replacen(&format!("\"run\":\"{id}\""), "\"run\":\"../../x\"", 1),
    )
    .unwrap();
    for words in [["report", &id], ["resume", &id]] {
        let said = ground.stackrace(&words);
        assert_ne!(said.code, Some(0), "{words:?}");
        said.err_has("says that it is the log of the run");
    }
    assert!(!ground.path().join("x").exists());
}

fn a_damaged_index_is_rebuilt() {
    needs::tool("python3");
    let ground = Ground::new();
    finished(&ground);
    let index = ground.store().join("stackrace.db");
    let whole = fs::read(&index).unwrap();
    for damaged in [
        b"no database".to_vec(),
        whole[..whole.len() / 2].to_vec(),
        // The first page is whole: it can be opened, and fails where it is used.
        [&whole[..4096], &vec![0xa5; whole.len() - 4096]].concat(),
    ] {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(ground.store().join(format!("stackrace.db{suffix}")));
        }
        fs::write(&index, damaged).unwrap();
        ground.stackrace(&["reindex"]).ended(0);
        let count = tool_of_index(&ground);
        assert_eq!(count, "4", "trials in the index");
    }
}

/// Number of trials in the index, by SQLite's own program where it is installed.
fn tool_of_index(ground: &Ground) -> String {
    let index = ground.store().join("stackrace.db");
    let script = "import sqlite3,sys;print(sqlite3.connect(sys.argv[1]).execute('select count(*) from trials').fetchone()[0])";
    let said = tool("python3", &["-c", script, index.to_str().unwrap()]);
    said.trim().to_owned()
}

/// Starts a run that goes on for a while, and waits until it has a stack.
fn under_way(ground: &Ground) -> Child {
    ground.make_dir("data");
    ground.write("slow.toml", SMALL.replace("TIME", "3 s"));
    let child = ground
        .program(&["run", "slow.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stands = || {
        let log = run_dir(ground).map(|run| fs::read_to_string(run.join("log.jsonl")));
        log.is_some_and(|log| log.is_ok_and(|log| log.contains("stack-set-up")))
    };
    while !stands() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn a_run_whose_directory_is_removed_gives_an_error_and_no_verdict() {
    let ground = Ground::new();
    let child = under_way(&ground);
    fs::remove_dir_all(run_dir(&ground).unwrap()).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(1).err_has("was removed while the run went on");
    assert_eq!(said.out, "", "a verdict without a record");
    assert_eq!(ground.left(), [""; 0]);
}

/// What can be opened can be locked, and a lock would keep the owner's own commands waiting.
fn another_user_can_lock_nothing_of_a_run() {
    needs::root();
    needs::tool("flock");
    let ground = Ground::new();
    let run = finished(&ground);
    fs::set_permissions(ground.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for file in ["log.jsonl", "journal.jsonl", "study.toml"] {
        let tried = Command::new("flock")
            .args(["--nonblock", "--shared"])
            .arg(run.join(file))
            .arg("true")
            .uid(MALLORY)
            .gid(MALLORY)
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(words.contains("Permission denied"), "{file}: {words}");
    }
}

/// The directory of another user is swapped for a link to where a tree of the same name is.
fn a_directory_swapped_for_a_link_leads_clean_nowhere() {
    needs::root();
    let ground = Ground::new();
    fs::set_permissions(ground.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let name = format!(".stackrace-load-{MARK}");
    let theirs = ground.make_dir("home");
    chown(&theirs, Some(MALLORY), None).unwrap();
    let bench = theirs.join("bench");
    let precious = ground.make_dir("precious");
    fs::create_dir(precious.join(&name)).unwrap();
    fs::write(precious.join(&name).join("photo"), "x").unwrap();
    symlink(&precious, &bench).unwrap();
    lchown(&bench, Some(MALLORY), None).unwrap();
    let place = format!("{{\"place\":\"{}\"}}", bench.display());
    let tree = format!("{{\"remove-tree\":\"{}\"}}", bench.join(&name).display());
    journal(&ground, "r", &[place, entry(&tree)]);
    let said = ground.stackrace(&["clean"]);
    said.ended(4);
    assert!(said.out.contains("is a link"), "{}", said.out);
    assert!(precious.join(&name).join("photo").exists());
    // A link of root's own is followed.
    lchown(&bench, Some(0), None).unwrap();
    ground.stackrace(&["clean"]).ended(0);
    assert!(!precious.join(&name).exists() && precious.exists());
}

/// Ids of the runs of a ground, as a program reads them.
fn ids(ground: &Ground) -> Vec<String> {
    let said = ground.stackrace(&["runs", "--json"]);
    said.ended(0);
    let runs: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let ids = runs.as_array().unwrap().iter();
    ids.map(|run| run["run"].as_str().unwrap().to_owned())
        .collect()
}

/// Only what is named goes, and only once all of it is understood.
fn runs_are_removed_by_name_and_never_by_mistake() {
    let ground = Ground::new();
    finished(&ground);
    let first = ids(&ground).remove(0);
    for _ in 0..2 {
        ground.stackrace(&["run", "small.toml"]).ended(0);
    }
    let all = ids(&ground);
    assert_eq!(all.len(), 3);
    // One mistyped id keeps the others, too.
    let said = ground.stackrace(&["runs", "rm", &first, "1999"]);
    said.ended(2).err_has("no run begins with \"1999\"");
    assert_eq!(ids(&ground), all);
    ground
        .stackrace(&["runs", "tag", &first, "before-upgrade"])
        .ended(0);
    // Without --yes nothing goes; what has a tag stays anyway.
    let said = ground.stackrace(&["runs", "prune", "--keep", "1"]);
    said.ended(0);
    assert_eq!(said.out.matches("would remove").count(), 1, "{}", said.out);
    assert!(!said.out.contains(&first), "{}", said.out);
    assert_eq!(ids(&ground), all);
    ground
        .stackrace(&["runs", "prune", "--keep", "1", "--yes"])
        .ended(0);
    let left = ids(&ground);
    assert_eq!(left.len(), 2);
    assert!(left.contains(&first));
    // A tag names the run wherever an id does.
    ground.stackrace(&["report", "before-upgrade"]).ended(0);
    ground.stackrace(&["runs", "rm", "before-upgrade"]).ended(0);
    assert!(!ids(&ground).contains(&first));
    assert!(!ground.store().join("runs").join(&first).exists());
}

/// Its journal is all that knows what a dead run left.
fn a_run_that_left_something_is_not_removed_before_clean() {
    let ground = Ground::new();
    let dir = finished(&ground);
    let run = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let journal = dir.join("journal.jsonl");
    let kept = fs::read_to_string(&journal).unwrap();
    let pending = entry("{\"remove-dir\":\"/nowhere\"}").replace(":1,", ":9999,");
    fs::write(&journal, format!("{kept}{pending}\n")).unwrap();
    let said = ground.stackrace(&["runs", "rm", &run]);
    said.ended(3).err_has("stackrace clean");
    assert_eq!(ids(&ground), std::slice::from_ref(&run));
    fs::write(&journal, kept).unwrap();
    ground.stackrace(&["runs", "rm", &run]).ended(0);
    assert_eq!(ids(&ground), [""; 0]);
}

/// A run that goes on is not removed under its own feet.
fn a_run_that_goes_on_is_neither_removed_nor_pruned() {
    let ground = Ground::new();
    let child = under_way(&ground);
    let run = ids(&ground).remove(0);
    ground
        .stackrace(&["runs", "rm", &run])
        .ended(3)
        .err_has("another process is writing");
    let said = ground.stackrace(&["runs", "prune", "--keep", "0", "--yes"]);
    said.ended(0);
    assert_eq!(said.out, "nothing to remove\n");
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(0);
    assert_eq!(ids(&ground), [run]);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        runs_are_removed_by_name_and_never_by_mistake,
        a_run_that_left_something_is_not_removed_before_clean,
        a_run_that_goes_on_is_neither_removed_nor_pruned,
        a_journal_that_asks_for_what_its_run_did_not_create_touches_nothing,
        one_hostile_journal_does_not_keep_the_others_from_being_cleaned,
        a_store_that_is_not_roots_own_is_refused,
        a_directory_above_the_store_that_others_write_is_refused,
        listing_and_cleaning_change_no_file_that_is_no_journal,
        listing_leaves_a_torn_journal_as_it_is,
        what_a_run_leaves_is_for_its_user_alone,
        links_and_fifos_in_the_place_of_files_are_refused,
        a_log_that_names_another_run_is_refused,
        a_damaged_index_is_rebuilt,
        a_run_whose_directory_is_removed_gives_an_error_and_no_verdict,
        another_user_can_lock_nothing_of_a_run,
        a_directory_swapped_for_a_link_leads_clean_nowhere,
    ]
}
