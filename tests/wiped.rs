//! A drive that is measured by writing over it: only with its own name repeated, never in use, and left for others.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ground, Said, quietly, tool};
use stackrace_test_needs as needs;

/// A loop device that stands for an SSD, with a link that lasts.
struct Drive {
    ground: Ground,
    device: String,
    link: PathBuf,
}

impl Drive {
    fn new() -> Self {
        needs::root_and_loop_devices();
        let ground = Ground::new();
        let image = ground.path().join("drive.img");
        fs::File::create(&image).unwrap().set_len(1 << 30).unwrap();
        let device = tool("losetup", &["--find", "--show", image.to_str().unwrap()]);
        let device = device.trim().to_owned();
        let name = Path::new(&device).file_name().unwrap().to_str().unwrap();
        fs::write(format!("/sys/block/{name}/queue/rotational"), "0").unwrap();
        let link = ground.path().join("ata-DRIVE_1");
        std::os::unix::fs::symlink(&device, &link).unwrap();
        Self {
            ground,
            device,
            link,
        }
    }

    fn measure(&self, device: &Path, repeated: &str) -> Said {
        let output = self.ground.path().join("mine.toml");
        self.ground.stackrace(&[
            "drive",
            "measure",
            device.to_str().unwrap(),
            "--wipe",
            repeated,
            "-o",
            output.to_str().unwrap(),
        ])
    }

    /// The beginning of what it holds.
    fn begins_with(&self) -> Vec<u8> {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let file = fs::File::open(&self.device).unwrap();
        file.take(1 << 20).read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn name(&self) -> String {
        let name = Path::new(&self.device).file_name().unwrap();
        name.to_str().unwrap().to_owned()
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        quietly("umount", &[&self.device]);
        quietly("losetup", &["--detach", &self.device]);
    }
}

fn nothing_is_written_unless_the_name_of_an_unused_drive_is_repeated() {
    let drive = Drive::new();
    tool("mkfs.ext4", &["-q", "-L", "photos", &drive.device]);
    let before = drive.begins_with();
    let wrong = drive.measure(&drive.link, "ata-DRIVE_2");
    wrong
        .ended(3)
        .err_has("is not the name of")
        .err_has("--wipe ata-DRIVE_1");
    let kernel = drive.measure(Path::new(&drive.device), &drive.name());
    kernel.ended(3).err_has("is no name that lasts");
    let point = drive.ground.make_dir("point");
    tool("mount", &[&drive.device, point.to_str().unwrap()]);
    let mounted = drive.measure(&drive.link, "ata-DRIVE_1");
    mounted.ended(3).err_has("in use").err_has("is mounted at");
    tool("umount", &[point.to_str().unwrap()]);
    fs::write(format!("/sys/block/{}/queue/rotational", drive.name()), "1").unwrap();
    let turns = drive.measure(&drive.link, "ata-DRIVE_1");
    turns
        .ended(3)
        .err_has("it turns")
        .err_has("leave out --wipe");
    let label = tool("blkid", &["-s", "LABEL", "-o", "value", &drive.device]);
    assert_eq!(label.trim(), "photos");
    // A mount changes counters of the file system alone.
    assert_eq!(before.len(), drive.begins_with().len());
    assert!(!drive.ground.path().join("mine.toml").exists());
}

fn a_drive_that_was_given_up_is_written_over_and_left_for_others() {
    let drive = Drive::new();
    tool("mkfs.ext4", &["-q", "-L", "photos", &drive.device]);
    let said = drive.measure(&drive.link, "ata-DRIVE_1");
    said.ended(0);
    let card = fs::read_to_string(drive.ground.path().join("mine.toml")).unwrap();
    assert!(
        card.contains("64 small writes") || card.contains("a flush takes"),
        "{card}"
    );
    let holds = drive.begins_with();
    assert!(holds.starts_with(b"stackrace used this device and left it"));
    // Written over everywhere, with nothing that compresses.
    let noise = &holds[8192..];
    let zeros = noise.iter().filter(|byte| **byte == 0).count();
    assert!(zeros < noise.len() / 64, "{zeros}");
    let check = drive.ground.stackrace(&[
        "drive",
        "check",
        drive.ground.path().join("mine.toml").to_str().unwrap(),
        drive.link.to_str().unwrap(),
    ]);
    check.ended(0);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        nothing_is_written_unless_the_name_of_an_unused_drive_is_repeated,
        a_drive_that_was_given_up_is_written_over_and_left_for_others,
    ]
}
