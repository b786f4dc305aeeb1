//! Fifteen ways to measure something else than was asked, each raised for real on loop devices, and each
//! with a control beside it that must not be flagged. Stolen time cannot be raised without a hypervisor:
//! its trap and control are recorded trials, in `crates/judge/src/audit/across/unequal.rs`.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::support::Ground;
use serde_json::Value;
use stackrace_test_needs as needs;

/// One run at a time: each would be a neighbour of the others.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that looks like a disk of its own: two images in it share no device.
const MEMORY: &str = "/dev/shm";

#[expect(
    clippy::disallowed_methods,
    reason = "the test raises what is to be found"
)]
fn command(words: &[&str], variables: &[(&str, &str)]) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
}

/// An ext4 file system on a loop device, unmounted when dropped.
struct Disk {
    image: PathBuf,
    mounted: PathBuf,
}

impl Disk {
    /// Of 96 MiB, in a folder, mounted below a ground.
    fn new(ground: &Ground, name: &str, folder: &Path, options: &str) -> Self {
        Self::made(ground, name, folder, options, &[])
    }

    fn made(
        ground: &Ground,
        name: &str,
        folder: &Path,
        options: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let unique = ground.path().file_name().unwrap().to_str().unwrap();
        let image = folder.join(format!("{unique}-{name}.img"));
        fs::File::create(&image).unwrap().set_len(96 << 20).unwrap();
        let mounted = ground.make_dir(name);
        let disk = Self { image, mounted };
        let (image, mounted) = (disk.image.to_str().unwrap(), disk.mounted.to_str().unwrap());
        command(&["mkfs.ext4", "-q", "-F", image], variables);
        let options = format!("loop,{options}");
        command(&["mount", "-o", &options, image, mounted], &[]);
        disk
    }

    /// Its device, as control groups name it: `7:3`.
    fn number(&self) -> String {
        let number = fs::metadata(&self.mounted).unwrap().dev();
        format!(
            "{}:{}",
            rustix::fs::major(number),
            rustix::fs::minor(number)
        )
    }
}

impl Drop for Disk {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the test raised is taken down"
    )]
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mounted).output();
        let _ = fs::remove_file(&self.image);
    }
}

const WRITES: &str = "sequential = { mode = \"write\", size = \"8 MiB\" }";

/// A study of two directories.
fn write_study(ground: &Ground, [a, b]: [&Path; 2], workload: &str, rounds: u32) {
    let text = format!(
        "title = \"Which is faster?\"\n[factors]\ndirectory = [{{ label = \"one\", value = \"{}\" }}, {{ label = \"other\", value = \"{}\" }}]\n[[stack]]\ndir = {{ path = \"{{directory}}\" }}\n[[workload]]\nname = \"work\"\n{workload}\n[decide]\nrounds-at-most = {rounds}\nat-most = \"10 min\"\nuntil = \"never\"\n",
        a.display(),
        b.display()
    );
    ground.write("traps.toml", text);
}

/// What the audit of the last run says of differences: check and sentence.
fn told(ground: &Ground) -> Vec<(String, String)> {
    let said = ground.stackrace(&["report", "--format", "json"]);
    let report: Value = serde_json::from_str(&said.ended(0).out).unwrap();
    let unlike = report["audit"]["unlike"].as_array().unwrap();
    let word = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    let told = unlike.iter();
    told.map(|one| (word(one, "check"), word(one, "sentence")))
        .filter(|(check, _)| check != "bottlenecks")
        .collect()
}

fn compared(ground: &Ground, sides: [&Path; 2]) -> Vec<(String, String)> {
    write_study(ground, sides, WRITES, 1);
    ground.stackrace(&["run", "traps.toml"]).ended(0);
    told(ground)
}

#[track_caller]
fn only(told: &[(String, String)], check: &str, words: &str) {
    let [(found, sentence)] = told else {
        panic!("one difference, {check}, and not {told:?}");
    };
    assert_eq!(found, check, "{told:?}");
    assert!(sentence.contains(words), "no {words:?} in {told:?}");
}

/// The control of seven traps: two file systems that were made, mounted and filled alike, on two disks.
fn two_equal_file_systems_on_two_disks_differ_in_nothing() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let ground = Ground::new();
    let [a, b] = ["a", "b"].map(|name| Disk::new(&ground, name, Path::new(MEMORY), "relatime"));
    assert_eq!(compared(&ground, [&a.mounted, &b.mounted]), []);
}

fn mount_options_that_differ_are_named() {
    needs::root_and_loop_devices();
    let _alone = alone();
    for (option, words) in [
        ("sync", "every write waits for the disk"),
        ("noatime", "a read may write a time stamp"),
        ("nobarrier", "fsync is faster, and not durable"),
    ] {
        let ground = Ground::new();
        let a = Disk::new(&ground, "a", Path::new(MEMORY), "rw");
        let b = Disk::new(&ground, "b", Path::new(MEMORY), option);
        let told = compared(&ground, [&a.mounted, &b.mounted]);
        only(&told, "mount options", words);
        assert!(
            told[0].1.contains(&format!("other with {option}")),
            "{told:?}"
        );
    }
}

fn a_full_file_system_beside_an_empty_one_is_named() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let ground = Ground::new();
    let [a, b] = ["a", "b"].map(|name| Disk::new(&ground, name, Path::new(MEMORY), "rw"));
    fs::write(b.mounted.join("full"), vec![7; 50 << 20]).unwrap();
    let told = compared(&ground, [&a.mounted, &b.mounted]);
    only(&told, "fill level", "the file system of other is ");
}

fn an_old_file_system_beside_a_new_one_is_named() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let ground = Ground::new();
    let a = Disk::new(&ground, "a", Path::new(MEMORY), "rw");
    let then = [("E2FSPROGS_FAKE_TIME", "1500000000")];
    let b = Disk::made(&ground, "b", Path::new(MEMORY), "rw", &then);
    let told = compared(&ground, [&a.mounted, &b.mounted]);
    only(&told, "age", "the file system of other was made ");
}

fn two_stacks_on_one_disk_are_named() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let ground = Ground::new();
    let [a, b] = ["a", "b"].map(|name| Disk::new(&ground, name, ground.path(), "rw"));
    let told = compared(&ground, [&a.mounted, &b.mounted]);
    if told.is_empty() && !on_a_disk(ground.path()) {
        needs::skip("the test's files are not on a disk");
    }
    only(&told, "one disk", "were on one disk at the same time");
}

/// Whether a directory lies on a block device.
fn on_a_disk(place: &Path) -> bool {
    let number = fs::metadata(place).unwrap().dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists()
}

/// Its control is the trap before: two stacks beside each other are on neither's own disk.
fn a_stack_and_the_disk_it_lies_on_are_named() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let ground = Ground::new();
    let below = Disk::new(&ground, "below", Path::new(MEMORY), "rw");
    let above = ground.make_dir("above");
    let image = below.mounted.join("image");
    fs::File::create(&image).unwrap().set_len(48 << 20).unwrap();
    let (file, mounted) = (image.to_str().unwrap(), above.to_str().unwrap());
    command(&["mkfs.ext4", "-q", "-F", file], &[]);
    command(&["mount", "-o", "loop", file, mounted], &[]);
    write_study(
        &ground,
        [&below.mounted, &above],
        "sequential = { mode = \"write\", size = \"4 MiB\" }",
        1,
    );
    let said = ground.stackrace(&["run", "traps.toml"]);
    command(&["umount", mounted], &[]);
    said.ended(0);
    let told = told(&ground);
    let own = told.iter().find(|(check, _)| check == "own backing disk");
    let words = "other is a stack on one: its data lie on loop";
    assert!(
        own.is_some_and(|(_, sentence)| sentence.contains(words)),
        "{told:?}"
    );
}

/// A run on two disks, with another process that writes to the second one as long as the run goes on, or without.
fn with_a_neighbour(disturbed: bool, work: &str, rounds: u32) -> Ground {
    let ground = Ground::new();
    let [a, b] = ["a", "b"].map(|name| Disk::new(&ground, name, Path::new(MEMORY), "rw"));
    write_study(&ground, [&a.mounted, &b.mounted], work, rounds);
    let going = Arc::new(AtomicBool::new(disturbed));
    let (until, file) = (Arc::clone(&going), b.mounted.join("neighbour"));
    let neighbour = std::thread::spawn(move || {
        let block = vec![7_u8; 4 << 20];
        while until.load(Ordering::SeqCst) {
            let written = fs::write(&file, &block);
            let synced = fs::File::open(&file).and_then(|file| file.sync_all());
            assert!(written.is_ok() && synced.is_ok());
        }
    });
    let said = ground.stackrace(&["run", "traps.toml"]);
    going.store(false, Ordering::SeqCst);
    neighbour.join().unwrap();
    said.ended(0);
    ground
}

fn a_neighbour_of_one_disk_is_named_and_one_of_none_is_not() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let work = "random = { mode = \"read\", size = \"8 MiB\", access = \"uniform\", direct = true, time = \"300 ms\" }";
    let run = |disturbed| told(&with_a_neighbour(disturbed, work, 4));
    let mine = |told: Vec<(String, String)>| {
        let mut all = told.into_iter();
        all.find(|(_, sentence)| sentence.contains("I/O of other processes disturbed"))
    };
    let disturbed = run(true);
    let Some((_, sentence)) = mine(disturbed.clone()) else {
        panic!("the neighbour is not named: {disturbed:?}");
    };
    let words = "I/O of other processes disturbed 4 of 4 trials of other";
    assert!(sentence.contains(words), "{sentence}");
    assert_eq!(mine(run(false)), None);
}

/// A synced file of 4 KiB that takes another one's place makes ext4 write five times as much.
fn synced_writes_are_no_neighbour_of_themselves_and_who_writes_beside_them_is_one() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let work = "promises = { idiom = \"replace\", operations = 500, think-time = \"6 ms\" }";
    // The share of each disk's bytes that others caused, in the one trial on it.
    let foreign = |disturbed| -> Vec<f64> {
        let ground = with_a_neighbour(disturbed, work, 1);
        let said = ground.stackrace(&["report", "--format", "json"]);
        let report: Value = serde_json::from_str(&said.ended(0).out).unwrap();
        let cells = report["audit"]["cells"].as_array().unwrap().iter();
        let judged = cells.flat_map(|cell| cell["judgements"].as_array().unwrap());
        let judged = judged.filter(|one| one["check"] == "neighbours");
        judged
            .map(|one| {
                let first = &one["evidence"][0];
                assert!(first["name"].as_str().unwrap().starts_with("I/O of loop"));
                first["value"].as_f64().unwrap()
            })
            .collect()
    };
    assert_eq!(foreign(false), [0.0, 0.0]);
    let [one, other] = foreign(true)[..] else {
        panic!("two disks");
    };
    assert_eq!(one, 0.0);
    assert!(other > 0.1, "{other}");
}

/// A control group whose reads from one device become slower with every round.
struct Throttled(PathBuf);

impl Drop for Throttled {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a shell enters the group before it becomes the program"
)]
fn a_disk_that_becomes_slower_over_the_rounds_is_named_and_a_steady_one_is_not() {
    needs::root_and_loop_devices();
    let groups = Path::new("/sys/fs/cgroup/blkio");
    if !groups.join("blkio.throttle.read_bps_device").exists() {
        needs::skip("needs control groups of version 1 with blkio");
    }
    let _alone = alone();
    let run = |factor: f64| {
        let ground = Ground::new();
        let [a, b] = ["a", "b"].map(|name| Disk::new(&ground, name, Path::new(MEMORY), "rw"));
        let group = Throttled(groups.join(format!("stackrace-traps-{}", std::process::id())));
        fs::create_dir(&group.0).unwrap();
        let limit = |round: usize| {
            let rate = 40e6 * factor.powi(i32::try_from(round).unwrap());
            for disk in [(&a, 40e6), (&b, rate)] {
                let line = format!("{} {:.0}", disk.0.number(), disk.1);
                fs::write(group.0.join("blkio.throttle.read_bps_device"), line).unwrap();
            }
        };
        limit(0);
        let work = "sequential = { mode = \"read\", size = \"16 MiB\", block-size = \"256 KiB\", direct = true }";
        write_study(&ground, [&a.mounted, &b.mounted], work, 8);
        let program = ground.program(&["run", "traps.toml"]);
        let mut child = Command::new("sh")
            // Without a sight of its own limit, which would be noticed each time that it changes: a disk says nothing.
            .args([
                "-c",
                "echo $$ > \"$0\" && exec unshare --mount sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"' sh \"$@\"",
            ])
            .arg(group.0.join("tasks"))
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(ground.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut known = 0;
        while child.try_wait().unwrap().is_none() {
            let rounds = rounds_done(&ground.store());
            if rounds > known {
                known = rounds;
                limit(rounds);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        told(&ground)
    };
    let drift = |told: &[(String, String)]| {
        let mut all = told.iter();
        all.find(|(check, _)| check == "drift")
            .map(|one| one.1.clone())
    };
    let slower = run(0.8);
    let sentence = drift(&slower).expect("the drift is not named");
    assert!(sentence.contains("work: other became"), "{sentence}");
    assert!(
        sentence.contains("worse from the first round"),
        "{sentence}"
    );
    assert_eq!(drift(&run(1.0)), None);
}

/// Rounds that are finished in the only run of a store.
fn rounds_done(store: &Path) -> usize {
    let runs = fs::read_dir(store.join("runs"))
        .into_iter()
        .flatten()
        .flatten();
    let logs = runs.filter_map(|run| fs::read_to_string(run.path().join("log.jsonl")).ok());
    logs.map(|log| log.matches("\"round-finished\"").count())
        .sum()
}

/// Remarks of the audit of a load.
fn loaded(ground: &Ground, file: &Path) -> Vec<(String, String)> {
    let file = file.to_str().unwrap();
    let words = [
        "load",
        file,
        "random",
        "mode=read",
        "time=300ms",
        "--cold",
        "--json",
    ];
    let load: Value = serde_json::from_str(&ground.stackrace(&words).ended(0).out).unwrap();
    let remarks = load["audit"]["remarks"].as_array().unwrap().iter();
    let word = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    remarks
        .map(|one| (word(one, "check"), word(one, "sentence")))
        .collect()
}

fn reads_of_holes_and_of_unwritten_extents_are_named_and_those_of_data_are_not() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let ground = Ground::new();
    let disk = Disk::new(&ground, "disk", ground.path(), "rw");
    let [hole, reserved, data] = ["hole", "reserved", "data"].map(|name| disk.mounted.join(name));
    fs::File::create(&hole).unwrap().set_len(16 << 20).unwrap();
    command(&["fallocate", "-l", "16M", reserved.to_str().unwrap()], &[]);
    fs::write(&data, vec![7; 16 << 20]).unwrap();
    let of = |file: &Path| {
        let remarks = loaded(&ground, file).into_iter();
        remarks
            .filter(|(check, _)| check == "holes")
            .map(|one| one.1)
            .collect::<Vec<_>>()
    };
    assert!(
        of(&hole)[0].contains("100 % of the data to read are holes:"),
        "{:?}",
        of(&hole)
    );
    assert!(
        of(&reserved)[0].contains("unwritten extents"),
        "{:?}",
        of(&reserved)
    );
    assert_eq!(of(&data), [""; 0]);
    // The terminal shows it too.
    let words = [
        "load",
        hole.to_str().unwrap(),
        "random",
        "mode=read",
        "time=300ms",
    ];
    let said = ground.stackrace(&words);
    assert!(
        said.ended(0).out.contains("holes, not as asked"),
        "{}",
        said.out
    );
}

/// What the checks of single trials say of a study of one stack, by name.
fn judged(stack: &str, workload: &str, more: &str, check: &str) -> (String, String) {
    let ground = Ground::new();
    let text = format!(
        "title = \"What is measured?\"\n{stack}[[workload]]\nname = \"work\"\n{workload}\n[decide]\nrounds-at-most = 1\nat-most = \"10 min\"\nuntil = \"never\"\n{more}"
    );
    ground.write("traps.toml", text);
    ground.stackrace(&["run", "traps.toml"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
    let said = ground.stackrace(&["report", "--format", "json"]);
    let report: Value = serde_json::from_str(&said.ended(0).out).unwrap();
    let judgements = report["audit"]["cells"][0]["judgements"]
        .as_array()
        .unwrap();
    let found = judgements.iter().find(|said| said["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no {check} in {judgements:#?}"));
    let word = |name: &str| found[name].as_str().unwrap().to_owned();
    (word("grade"), word("sentence"))
}

fn reads_of_compressed_data_are_named_and_those_of_random_data_are_not() {
    needs::root_and_loop_devices();
    needs::tool("mkfs.btrfs");
    let _alone = alone();
    let stack = "[[stack]]\nloop = { size = \"640 MiB\" }\n[[stack]]\nbtrfs = { compression = \"zstd:1\" }\n";
    let run = |content: &str| {
        let work = format!(
            "sequential = {{ mode = \"read\", size = \"32 MiB\", content = \"{content}\" }}"
        );
        judged(stack, &work, "", "compressed reads")
    };
    let (grade, sentence) = run("zero");
    assert_eq!(grade, "note");
    assert!(
        sentence.contains("of the data to read are compressed"),
        "{sentence}"
    );
    assert_eq!(run("random").0, "ok");
}

fn reads_from_the_page_cache_are_named_and_those_of_a_dropped_cache_are_not() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let stack = "[[stack]]\nloop = { size = \"320 MiB\" }\n[[stack]]\next4 = {}\n";
    let work = "sequential = { mode = \"read\", size = \"32 MiB\" }";
    let warm = "[trial]\ndrop-caches = false\nremount = false\n";
    let (grade, sentence) = judged(stack, work, warm, "page cache");
    assert_eq!(grade, "note");
    assert!(sentence.contains("came from the page cache"), "{sentence}");
    assert_eq!(judged(stack, work, "", "page cache").0, "ok");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        two_equal_file_systems_on_two_disks_differ_in_nothing,
        mount_options_that_differ_are_named,
        a_full_file_system_beside_an_empty_one_is_named,
        an_old_file_system_beside_a_new_one_is_named,
        two_stacks_on_one_disk_are_named,
        a_stack_and_the_disk_it_lies_on_are_named,
        a_neighbour_of_one_disk_is_named_and_one_of_none_is_not,
        synced_writes_are_no_neighbour_of_themselves_and_who_writes_beside_them_is_one,
        a_disk_that_becomes_slower_over_the_rounds_is_named_and_a_steady_one_is_not,
        reads_of_holes_and_of_unwritten_extents_are_named_and_those_of_data_are_not,
        reads_of_compressed_data_are_named_and_those_of_random_data_are_not,
        reads_from_the_page_cache_are_named_and_those_of_a_dropped_cache_are_not,
    ]
}
