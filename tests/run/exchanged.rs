//! Storage that is exchanged while it is measured, and things of a run that are moved or hidden: nothing
//! counts that was measured elsewhere, and nothing is called gone that is only not at its path.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::support::quietly;

/// Two directories, set up anew in each round.
const PLACES: &str = study!(
    "Two places",
    r#"place = ["one", "two"]"#,
    [r#"dir = { path = "{place}" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", access = "uniform", time = "200 ms" }"#],
    12
);

/// Mounts a file system in memory.
fn mount_memory(point: &Path) {
    let point = point.to_str().unwrap();
    tool("mount", &["-t", "tmpfs", "-o", "size=64m", "memory", point]);
}

/// What a test mounted, which goes with it however it ends.
pub(crate) struct Unmounted(pub(crate) PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        // Lazily: a trial may be at work in it.
        for _ in 0..3 {
            quietly("umount", &["-l", self.0.to_str().unwrap()]);
        }
    }
}

/// Two file systems in memory.
pub(crate) fn two_memories(ground: &Ground) -> [Unmounted; 2] {
    ground.write("places.toml", PLACES);
    ["one", "two"].map(|name| {
        let path = ground.make_dir(name);
        mount_memory(&path);
        Unmounted(path)
    })
}

/// Two plain directories.
pub(crate) fn two_directories(ground: &Ground) {
    ground.write("places.toml", PLACES);
    ground.make_dir("one");
    ground.make_dir("two");
}

/// Runs the study and exchanges something after its second round; what it said and has on record.
pub(crate) fn exchanged_by(ground: &Ground, exchange: impl FnOnce()) -> (Said, Log) {
    let two_rounds = |log: &Log| log.all("round-finished").len() >= 2;
    let child = start_until(ground, &["run", "places.toml", "--anyway"], two_rounds);
    exchange();
    let said = Said::of(&child.wait_with_output().unwrap());
    (said, Log::of(ground))
}

/// The second place is out, for the reason that begins like this, and none of its trials after that counts.
pub(crate) fn is_out(said: &Said, log: &Log, reasons: &[&str]) {
    let two = log.configuration("two");
    let failures = log.failures();
    assert_eq!(failures.len(), 1, "{failures:?}\n{}{}", said.out, said.err);
    assert_eq!(failures[0].0, two);
    for reason in reasons {
        assert!(failures[0].1.contains(reason), "{failures:?}");
    }
    // Advice is what comes next, and no part of the verdict.
    let verdict = said.out.split("\n\n").next().unwrap();
    assert!(!verdict.contains("bring back"), "{verdict}");
    // The verdict says what it is: another storage, or the same one mounted or set otherwise.
    let changed = [
        "mounted",
        "read_ahead",
        "attributes",
        " of loop",
        "huge",
        "property",
    ];
    let changed = reasons
        .iter()
        .any(|reason| changed.iter().any(|word| reason.contains(word)));
    if changed {
        assert!(!verdict.contains("exchanged"), "{verdict}");
    }
    let advice = match changed {
        true => "mount and set it as it was",
        false => "bring back what was there",
    };
    let next = said
        .out
        .split_once(&format!("\nnext     {advice}, then:\n"));
    // In a line of its own, which can be copied.
    let command = next.map(|(_, command)| command.trim_start());
    assert!(
        command.is_some_and(|command| command.starts_with("stackrace resume ")),
        "{}",
        said.out
    );
    // With values, and not only in words.
    let trials = log.all("trial");
    let failed = trials
        .iter()
        .find(|trial| trial["ended"]["state"] == "failed");
    let before = &failed.unwrap()["exchanged"]["before"];
    let first = log.all("stack-set-up").into_iter();
    let mut first = first.filter(|up| up["configuration"] == two);
    assert_eq!(before, &first.next().unwrap()["lies_on"][0]);
    assert!(before["directory"].as_str().unwrap().ends_with("/two"));
    // Each trial that counts was set up on what the first one was.
    let ups = log.all("stack-set-up").into_iter();
    for up in ups.filter(|up| up["configuration"] == two) {
        assert_eq!(&up["lies_on"][0], before);
    }
    let failed_in = failed.unwrap()["round"].as_u64().unwrap();
    let complete = log.trials("complete");
    let later = |(round, of, _): &&(u64, u64, u64)| *of == two && *round >= failed_in;
    assert_eq!(complete.iter().find(later), None);
}

pub(crate) fn storage_that_is_unmounted_between_rounds_is_out_and_comes_back_with_resume() {
    needs::root();
    let ground = Ground::new();
    let [_one, two] = two_memories(&ground);
    let image = ground.path().join("two.img");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let (image, point) = (image.to_str().unwrap(), two.0.to_str().unwrap());
    tool("mkfs.ext4", &["-q", "-F", image]);
    tool("umount", &[point]);
    tool("mount", &["-o", "loop", image, point]);
    let (said, log) = exchanged_by(&ground, || drop(tool("umount", &["-l", point])));
    is_out(&said, &log, &["was on ext4 (/dev/loop", "and is now on "]);
    // Something else in its place is not what was measured.
    mount_memory(&two.0);
    let second = log.configuration("two");
    let of_two = |log: &Log| {
        let mut trials = log.trials("complete");
        trials.retain(|trial| trial.1 == second);
        trials
    };
    let resumed = ground.stackrace(&["resume"]);
    // What a trial under way left on it cannot be removed before it is back.
    let told = ["the storage was exchanged", "(ext4) is not mounted"];
    let told = told.iter().any(|told| resumed.err.contains(told));
    assert!(told, "{}", resumed.err);
    assert_eq!(of_two(&Log::of(&ground)), of_two(&log));
    tool("umount", &[point]);
    tool("mount", &["-o", "loop", image, point]);
    ground.stackrace(&["resume"]).ended(0);
    let last = of_two(&Log::of(&ground)).into_iter().map(|trial| trial.0);
    assert_eq!(last.max(), Some(12));
    assert_eq!(ground.left(), [""; 0]);
}

/// A mirror that loses a disk writes less for each write, and looks faster.
pub(crate) fn a_mirror_that_loses_a_disk_in_mid_trial_fails_and_says_so() {
    needs::root_and_loop_devices();
    needs::tool("mkfs.btrfs");
    let ground = Ground::new();
    let study = study!(
        "a mirror",
        r#"profile = ["raid1"]"#,
        [
            r#"loop = { size = "256 MiB", count = 3 }"#,
            r#"btrfs = { profile = "{profile}" }"#
        ],
        [r#"random = { mode = "write", size = "1 MiB", access = "uniform", time = "5 s" }"#],
        1
    );
    ground.write("mirror.toml", study);
    let stands = |log: &Log| !log.all("stack-set-up").is_empty();
    let mut child = start_until(&ground, &["run", "mirror.toml"], stands);
    until_measuring(&mut child, &ground, 1);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let here = ground.path().canonicalize().unwrap();
    let mut mounts = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let ours = mounts.find(|mount| mount.starts_with(here.to_str().unwrap()));
    tool("btrfs", &["device", "remove", "3", ours.unwrap()]);
    let said = Said::of(&child.wait_with_output().unwrap());
    let log = Log::of(&ground);
    let failures = log.failures();
    let [(_, why)] = &failures[..] else {
        panic!("{failures:?}\n{}{}", said.out, said.err);
    };
    let told = "the file system was on 3 devices without errors when the stack was set up, and is now on 2 devices \
                without errors: it is another storage";
    assert!(why.contains(told), "{why}");
    assert!(log.trials("complete").is_empty());
    assert_eq!(ground.left(), [""; 0]);
}

pub(crate) fn storage_that_is_mounted_over_is_out() {
    needs::root();
    let ground = Ground::new();
    let [_one, two] = two_memories(&ground);
    let (said, log) = exchanged_by(&ground, || mount_memory(&two.0));
    is_out(
        &said,
        &log,
        &["was on tmpfs (memory, device", "is now on tmpfs"],
    );
}

/// Two places, of which the second is a file system in the image `two.img`; the loop device below it.
fn second_on_an_image(ground: &Ground) -> ([Unmounted; 2], String) {
    needs::root_and_loop_devices();
    let places = two_memories(ground);
    let (image, point) = (ground.path().join("two.img"), &places[1].0);
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let (image, point) = (image.to_str().unwrap(), point.to_str().unwrap());
    tool("mkfs.ext4", &["-q", "-F", image]);
    tool("umount", &[point]);
    tool("mount", &["-o", "loop", image, point]);
    let device = tool("findmnt", &["-n", "-o", "SOURCE", point]);
    (places, device.trim().to_owned())
}

/// It has the UUID, the numbers and the times of the one before, and comes while nothing holds that one.
pub(crate) fn a_loop_device_whose_number_a_copy_of_its_image_took_is_out() {
    let ground = Ground::new();
    let ([_one, two], device) = second_on_an_image(&ground);
    ground.write(
        "places.toml",
        PLACES.replace("rounds-at-most = 12", "rounds-at-most = 2"),
    );
    ground
        .stackrace(&["run", "places.toml", "--anyway"])
        .ended(0);
    let point = two.0.to_str().unwrap();
    let (image, copy) = (
        ground.path().join("two.img"),
        ground.path().join("copy.img"),
    );
    tool("umount", &[point]);
    fs::copy(&image, &copy).unwrap();
    // The number is free for anybody until then, another test too: it gives it back.
    while !quietly("losetup", &[&device, copy.to_str().unwrap()])
        .status
        .success()
    {
        wait(50);
    }
    tool("mount", &[&device, point]);
    // Nothing of it can be asked but what the kernel keeps.
    fs::remove_file(&copy).unwrap();
    let said = ground.stackrace(&["resume", "--rounds", "2"]);
    tool("umount", &[point]);
    quietly("losetup", &["-d", &device]);
    is_out(
        &said,
        &Log::of(&ground),
        &["two.img", "and is now on ", "copy.img"],
    );
    tool("mount", &["-o", "loop", image.to_str().unwrap(), point]);
    ground.stackrace(&["resume", "--rounds", "1"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

/// The kernel keeps both until nothing uses them.
pub(crate) fn a_loop_device_that_is_given_up_under_its_mount_is_the_same_storage() {
    let ground = Ground::new();
    let ([_one, _two], device) = second_on_an_image(&ground);
    let (said, log) = exchanged_by(&ground, || {
        tool("losetup", &["-d", &device]);
        fs::remove_file(ground.path().join("two.img")).unwrap();
    });
    said.ended(0);
    assert_eq!(log.failures(), []);
    assert_eq!(log.trials("complete").len(), 24);
    assert_eq!(ground.left(), [""; 0]);
}

pub(crate) fn an_image_that_is_cut_off_under_its_mount_is_out() {
    let ground = Ground::new();
    let ([_one, _two], _) = second_on_an_image(&ground);
    let image = ground.path().join("two.img");
    let (said, log) = exchanged_by(&ground, || {
        let image = fs::File::options().write(true).open(&image).unwrap();
        image.set_len(0).unwrap();
    });
    is_out(&said, &log, &["two.img of 64 MiB", "and is now on "]);
    assert_eq!(ground.left(), [""; 0]);
}

/// A file system in memory, mounted as that of a server: what the table of mounts says of it is all that tells.
pub(crate) fn a_share_that_goes_away_is_out_and_another_of_its_server_is_not_it() {
    needs::root();
    let ground = Ground::new();
    let [_one, two] = two_memories(&ground);
    let point = two.0.to_str().unwrap();
    let share = |export: &str| {
        tool("umount", &["-l", point]);
        let source = format!("nas:/{export}");
        tool("mount", &["-t", "tmpfs", "-o", "size=64m", &source, point]);
    };
    share("export");
    let (said, log) = exchanged_by(&ground, || share("other"));
    is_out(&said, &log, &["nas:/export", "is now on", "nas:/other"]);
    let trials = log.all("trial");
    let failed = trials
        .iter()
        .find(|trial| trial["ended"]["state"] == "failed");
    let exchanged = &failed.unwrap()["exchanged"];
    for (seen, export) in [("before", "/export"), ("now", "/other")] {
        let remote = serde_json::json!({ "server": "nas", "export": export });
        assert_eq!(exchanged[seen]["remote"], remote, "{exchanged}");
    }
}

/// The configuration that comes second is set up when the first one's trial is over.
pub(crate) fn storage_that_is_mounted_over_before_its_first_trial_is_out() {
    needs::root();
    let ground = Ground::new();
    let both = two_memories(&ground);
    ground.write("places.toml", PLACES.replace("200 ms", "3 s"));
    let first = |log: &Log| !log.all("stack-set-up").is_empty();
    let child = start_until(&ground, &["run", "places.toml", "--anyway"], first);
    let up = Log::of(&ground).all("stack-set-up")[0]["configuration"].clone();
    let second = usize::from(up == Log::of(&ground).configuration("one"));
    mount_memory(&both[second].0);
    let said = Said::of(&child.wait_with_output().unwrap());
    let log = Log::of(&ground);
    let failures = log.failures();
    assert_eq!(failures.len(), 1, "{failures:?}\n{}{}", said.out, said.err);
    let told = ["the storage was exchanged", "is now on tmpfs"];
    for told in told {
        assert!(failures[0].1.contains(told), "{failures:?}");
    }
    let complete = log.trials("complete").into_iter();
    let mut of_second = complete.filter(|trial| up != trial.1);
    assert_eq!(of_second.next(), None);
}

pub(crate) fn storage_that_becomes_read_only_is_said_to_be_so() {
    needs::root();
    let ground = Ground::new();
    let [_one, two] = two_memories(&ground);
    let point = two.0.to_str().unwrap();
    let (said, log) = exchanged_by(&ground, || {
        // Busy while a file is open for writing.
        while !quietly("mount", &["-o", "remount,ro", point])
            .status
            .success()
        {
            wait(1);
        }
    });
    is_out(
        &said,
        &log,
        &["was mounted writable and is now mounted read-only"],
    );
    tool("mount", &["-o", "remount,rw", point]);
    ground.stackrace(&["clean"]).ended(0);
}

pub(crate) fn a_directory_that_another_one_replaces_is_out() {
    let ground = Ground::new();
    two_directories(&ground);
    let [two, other] = [ground.path().join("two"), ground.make_dir("other")];
    let (said, log) = exchanged_by(&ground, || {
        // At one moment: there is never no directory of this name.
        let swap = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, &two, rustix::fs::CWD, &other, swap).unwrap();
    });
    is_out(&said, &log, &["/two is another directory than before"]);
}

pub(crate) fn a_directory_that_a_file_replaces_is_said_to_be_a_file() {
    let ground = Ground::new();
    two_directories(&ground);
    let [two, file] = ["two", "file"].map(|name| ground.path().join(name));
    fs::write(&file, "a file").unwrap();
    let (said, log) = exchanged_by(&ground, || {
        let swap = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, &two, rustix::fs::CWD, &file, swap).unwrap();
    });
    is_out(&said, &log, &["/two was on ", " and is a file now"]);
}

pub(crate) fn a_directory_that_a_link_replaces_is_out() {
    let ground = Ground::new();
    two_directories(&ground);
    let other = ground.make_dir("other");
    let [two, away] = ["two", "away"].map(|name| ground.path().join(name));
    let (said, log) = exchanged_by(&ground, || {
        fs::rename(&two, &away).unwrap();
        symlink(&other, &two).unwrap();
    });
    is_out(&said, &log, &["the storage was exchanged"]);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
}

pub(crate) fn a_program_of_ones_own_is_not_timed_on_exchanged_storage() {
    needs::root();
    let ground = Ground::new();
    let [one, two] = two_memories(&ground);
    let [one, two] = [&one, &two].map(|memory| memory.0.to_str().unwrap());
    let words = [
        "compare",
        one,
        two,
        "--anyway",
        "--rounds",
        "8",
        "--",
        "sleep 0.2",
    ];
    let two_rounds = |log: &Log| log.all("round-finished").len() >= 2;
    let child = start_until(&ground, &words, two_rounds);
    tool("umount", &["-l", two]);
    let said = Said::of(&child.wait_with_output().unwrap());
    is_out(
        &said,
        &Log::of(&ground),
        &["was on tmpfs", "and is now on "],
    );
}

pub(crate) fn sizes_that_were_found_on_exchanged_storage_are_not_used() {
    needs::root();
    let ground = Ground::new();
    let [one, two] = two_memories(&ground);
    let words = ["compare", one.0.to_str().unwrap(), two.0.to_str().unwrap()];
    let mut child = ground
        .program(&[&words[..], &["--anyway", "--time", "20 s"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while fs::read_dir(&two.0).unwrap().count() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it did not probe");
        wait(1);
    }
    mount_memory(&two.0);
    let said = Said::of(&child.wait_with_output().unwrap());
    assert_ne!(said.code, Some(0));
    assert_eq!(said.out, "", "an answer");
    said.err_has("is hidden: something is mounted at");
    // It was never begun.
    assert_eq!(Log::of(&ground).0.len(), 0);
    tool("umount", &[two.0.to_str().unwrap()]);
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

/// One stack on loop devices, in the store or in a directory of the user's.
const LOOPS: &str = study!(
    "On loop devices",
    r#"filesystem = ["ext4", "ext2"]"#,
    [
        r#"loop = { size = "32 MiB", laid-out = "no" DIRECTORY }"#,
        r#""{filesystem}" = {}"#
    ],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", access = "uniform", time = "1 s" }"#],
    6
);

/// Starts it, and waits until a stack stands in its second round.
fn standing(ground: &Ground, directory: &str) -> Child {
    ground.write("loops.toml", LOOPS.replace("DIRECTORY", directory));
    let stands = |log: &Log| log.all("stack-set-up").len() >= 3;
    start_until(ground, &["run", "loops.toml"], stands)
}

pub(crate) fn a_store_that_was_moved_has_all_results_and_is_cleaned_where_it_is() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let child = standing(&ground, "");
    let moved = ground.path().join("moved");
    fs::rename(ground.store(), &moved).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(1).err_has("it has all results");
    // One thing to do next, and not two.
    let next = format!("{}{}", said.out, said.err);
    let next = next
        .lines()
        .filter(|line| line.trim_start().starts_with("next"));
    assert_eq!(next.count(), 1, "{}{}", said.out, said.err);
    let moved = moved.to_str().unwrap();
    said.err_has(&format!("stackrace clean --store {moved}"));
    assert!(!said.err.contains("lost"), "{}", said.err);
    // The old place was not made again.
    assert!(!ground.store().exists());
    ground.stackrace(&["clean", "--store", moved]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
    ground.stackrace(&["resume", "--store", moved]).ended(0);
}

/// Moves a directory of loop files away and back, or hides it by a mount.
fn not_at_its_path(hide: impl FnOnce(&Path), show: impl FnOnce(&Path), why: &str) {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let disks = ground.make_dir("disks");
    let child = standing(&ground, r#", directory = "disks""#);
    hide(&disks);
    let said = Said::of(&child.wait_with_output().unwrap());
    assert_ne!(said.code, Some(0));
    said.err_has("the storage was exchanged").err_has(why);
    let cleaned = ground.stackrace(&["clean"]);
    cleaned.ended(4);
    let told = format!("{}{}", cleaned.out, cleaned.err);
    assert!(
        told.contains("it is not gone") && told.contains(why),
        "{told}"
    );
    assert!(told.contains("then: stackrace clean"), "{told}");
    show(&disks);
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

pub(crate) fn disks_whose_directory_was_moved_are_not_called_gone() {
    let away = |disks: &Path| disks.with_file_name("away");
    not_at_its_path(
        |disks| fs::rename(disks, away(disks)).unwrap(),
        |disks| fs::rename(away(disks), disks).unwrap(),
        "was moved to",
    );
}

pub(crate) fn disks_that_a_mount_hides_are_not_called_gone() {
    not_at_its_path(
        mount_memory,
        |disks| drop(tool("umount", &[disks.to_str().unwrap()])),
        "is hidden: something is mounted at",
    );
}

pub(crate) fn a_program_that_renames_its_directory_leaves_nothing_unsaid() {
    let ground = Ground::new();
    two_directories(&ground);
    let renames = r#"cd ..; mv "$(pwd)" "$(pwd)x"; sleep 0.1"#;
    let words = [
        "compare", "one", "two", "--anyway", "--rounds", "3", "--", renames,
    ];
    let said = ground.stackrace(&words);
    assert_ne!(said.code, Some(0), "{}{}", said.out, said.err);
    let cleaned = ground.stackrace(&["clean"]);
    cleaned.ended(4);
    assert!(
        cleaned.out.contains("it was moved to"),
        "{}{}",
        cleaned.out,
        cleaned.err
    );
    for left in ground.left() {
        let left = PathBuf::from(left);
        let name = left.file_name().unwrap().to_str().unwrap();
        fs::rename(&left, left.with_file_name(name.trim_end_matches('x'))).unwrap();
    }
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

/// The image of a file system, copied while it is mounted, is what its disk would hold after a power cut.
pub(crate) fn after_a_power_cut_nothing_is_there_that_the_journal_calls_undone() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let [one, two] = ["one", "two"].map(|name| Mounted::ext4(&ground, name, 64));
    ground.write(
        "places.toml",
        PLACES.replace("rounds-at-most = 12", "rounds-at-most = 2"),
    );
    ground
        .stackrace(&["run", "places.toml", "--anyway"])
        .ended(0);
    for place in [one, two] {
        let image = place.path.with_extension("img");
        let cut = place.path.with_extension("cut");
        fs::copy(&image, &cut).unwrap();
        let point = place.path.clone();
        drop(place);
        tool(
            "mount",
            &["-o", "loop", cut.to_str().unwrap(), point.to_str().unwrap()],
        );
        let _mounted = Unmounted(point);
        assert_eq!(ground.left(), [""; 0]);
    }
}
