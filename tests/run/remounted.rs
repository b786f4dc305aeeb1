//! Storage that stays the same and is mounted otherwise, and what it is in the end.

use std::path::Path;

use super::*;

fn storage_that_is_mounted_with_other_options_is_out_and_comes_back_with_resume() {
    needs::root();
    let ground = Ground::new();
    let [_one, two] = two_memories(&ground);
    let point = two.0.to_str().unwrap();
    let remount = |options: &str| {
        tool("mount", &["-o", &format!("remount,{options}"), point]);
    };
    let (said, log) = exchanged_by(&ground, || remount("huge=always"));
    let told = "/two was mounted without huge=always and is now mounted with huge=always";
    is_out(&said, &log, &[told]);
    // Also between a run and its resume, where it changed in another way.
    remount("huge=never,noatime");
    let of_two = |log: &Log| {
        let two = log.configuration("two");
        let complete = log.trials("complete").into_iter();
        complete.filter(|trial| trial.1 == two).count()
    };
    let before = of_two(&log);
    let resumed = ground.stackrace(&["resume"]);
    resumed.err_has("/two was mounted with relatime and is now mounted with noatime");
    assert_eq!(of_two(&Log::of(&ground)), before);
    // What changes no figure is no other storage.
    remount("strictatime");
    remount("relatime,nosuid,size=65m");
    ground.stackrace(&["resume"]).ended(0);
    assert!(of_two(&Log::of(&ground)) > before);
    assert_eq!(ground.left(), [""; 0]);
}

/// An ext4 in a file, mounted from a loop device.
fn mount_image(image: &Path, point: &Path) -> Unmounted {
    fs::File::create(image).unwrap().set_len(64 << 20).unwrap();
    tool("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
    mounted_image(image, point)
}

/// A file system in a file, mounted from a loop device.
fn mounted_image(image: &Path, point: &Path) -> Unmounted {
    let words = [
        "-o",
        "loop",
        image.to_str().unwrap(),
        point.to_str().unwrap(),
    ];
    tool("mount", &words);
    Unmounted(point.to_owned())
}

fn storage_whose_loop_device_goes_another_way_to_its_file_is_out() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    two_directories(&ground);
    let two = ground.path().join("two");
    let _mounted = mount_image(&ground.path().join("two.img"), &two);
    let device = tool("findmnt", &["-no", "SOURCE", two.to_str().unwrap()]);
    let (said, log) = exchanged_by(&ground, || {
        drop(tool("losetup", &["--direct-io=on", device.trim()]));
    });
    let [was, is] = ["off", "on"].map(|how| format!("from a loop device with --direct-io={how}"));
    let told = format!("/two was mounted {was} and is now mounted {is}");
    is_out(&said, &log, &[&told]);
}

/// What tuned, udev or a container sets in mid-run: the mount stays as it was.
fn storage_that_is_set_otherwise_is_out_with_both_values() {
    needs::root_and_loop_devices();
    needs::tool("chattr");
    type Setting = fn(&str, &Path);
    let changes: [(Setting, &str); 3] = [
        (
            |device, _| drop(tool("blockdev", &["--setra", "0", device])),
            "read_ahead_kb of ",
        ),
        (
            |_, two| drop(tool("chattr", &["+S", two.to_str().unwrap()])),
            "the list of attributes (lsattr -d) was none and is now S",
        ),
        (
            |device, _| write_cache(device, "write through"),
            // The kernel sets the read-ahead anew with it.
            " of loop",
        ),
    ];
    for (set, told) in changes {
        let ground = Ground::new();
        two_directories(&ground);
        let two = ground.path().join("two");
        let _mounted = mount_image(&ground.path().join("two.img"), &two);
        let device = tool("findmnt", &["-no", "SOURCE", two.to_str().unwrap()]);
        // A loop device keeps it for the next one that takes its number.
        write_cache(device.trim(), "write back");
        let (said, log) = exchanged_by(&ground, || set(device.trim(), &two));
        write_cache(device.trim(), "write back");
        is_out(&said, &log, &[told]);
    }
}

/// What no option of the mount shows: properties of Btrfs, and what ext4 was tuned with in between.
fn storage_whose_file_system_is_set_otherwise_is_out_with_both_values() {
    needs::root_and_loop_devices();
    for name in ["mkfs.btrfs", "btrfs", "tune2fs"] {
        needs::tool(name);
    }
    let ground = Ground::new();
    two_directories(&ground);
    let two = ground.path().join("two");
    let image = ground.path().join("two.img");
    fs::File::create(&image)
        .unwrap()
        .set_len(128 << 20)
        .unwrap();
    tool("mkfs.btrfs", &["-q", "-f", image.to_str().unwrap()]);
    let mounted = mounted_image(&image, &two);
    // Of two kinds of compression the attributes say nothing.
    let compress = |how: &str| {
        let words = ["property", "set", two.to_str().unwrap(), "compression", how];
        drop(tool("btrfs", &words));
    };
    compress("lzo");
    let (said, log) = exchanged_by(&ground, || compress("zstd"));
    let told = [
        "the property compression of ",
        "/two was lzo and is now zstd",
    ];
    is_out(&said, &log, &told);
    drop(mounted);

    let ground = Ground::new();
    two_directories(&ground);
    let two = ground.path().join("two");
    let image = ground.path().join("two.img");
    let mounted = mount_image(&image, &two);
    let _first = exchanged_by(&ground, || {});
    drop(mounted);
    tool(
        "tune2fs",
        &["-o", "journal_data_writeback", image.to_str().unwrap()],
    );
    let _mounted = mounted_image(&image, &two);
    let resumed = ground.stackrace(&["resume", "--rounds", "1"]);
    resumed.err_has("/two was data=ordered and is now data=writeback");
}

fn write_cache(device: &str, how: &str) {
    let name = device.rsplit('/').next().unwrap();
    fs::write(format!("/sys/block/{name}/queue/write_cache"), how).unwrap();
}

/// The image lies in a file system of its own, whose options count as well.
fn storage_whose_file_lies_on_what_is_mounted_otherwise_is_out() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    two_directories(&ground);
    let two = ground.path().join("two");
    let below = ground.make_dir("below");
    tool(
        "mount",
        &[
            "-t",
            "tmpfs",
            "-o",
            "size=96m",
            "below",
            below.to_str().unwrap(),
        ],
    );
    let _below = Unmounted(below.clone());
    let _mounted = mount_image(&below.join("two.img"), &two);
    let (said, log) = exchanged_by(&ground, || {
        tool(
            "mount",
            &["-o", "remount,huge=always", below.to_str().unwrap()],
        );
    });
    is_out(&said, &log, &["/below was ", "huge=always"]);
}

fn a_file_system_on_a_file_in_memory_is_memory() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let [memory, point, disk] = ["memory", "point", "disk"].map(|name| ground.make_dir(name));
    let words = [
        "-t",
        "tmpfs",
        "-o",
        "size=96m",
        "memory",
        memory.to_str().unwrap(),
    ];
    tool("mount", &words);
    let _below = Unmounted(memory.clone());
    let _mounted = mount_image(&memory.join("a.img"), &point);
    let directories = ["compare", point.to_str().unwrap(), disk.to_str().unwrap()];
    ground
        .stackrace(&directories)
        .err_has("is ext4 on a file in tmpfs (memory, lost at power-off)");
}

/// The kernel shows an overlay's options otherwise from its second mount on.
const OVERLAY: &str = study!(
    "A union",
    r#"kind = ["plain", "overlay"]"#,
    [
        r#"loop = { size = "32 MiB", laid-out = "no" }"#,
        "ext4 = {}",
        r#"when = { kind = "overlay" }
overlay = {}"#
    ],
    ["files = { count = 20 }"],
    2
);

fn an_overlay_that_is_mounted_again_between_trials_is_the_same_storage() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.write("union.toml", OVERLAY);
    ground.stackrace(&["run", "union.toml"]).ended(0);
    assert_eq!(Log::of(&ground).trials("complete").len(), 4);
    assert_eq!(ground.left(), [""; 0]);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        storage_that_is_mounted_with_other_options_is_out_and_comes_back_with_resume,
        storage_whose_loop_device_goes_another_way_to_its_file_is_out,
        storage_that_is_set_otherwise_is_out_with_both_values,
        storage_whose_file_system_is_set_otherwise_is_out_with_both_values,
        storage_whose_file_lies_on_what_is_mounted_otherwise_is_out,
        a_file_system_on_a_file_in_memory_is_memory,
        an_overlay_that_is_mounted_again_between_trials_is_the_same_storage,
    ]
}
