//! Whole runs that measure something else than storage, and must say so.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::{Ground, Said};
use serde_json::Value;
use stackrace_test_needs as needs;

/// One run at a time: each would be a neighbour of the others.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A study of one configuration and one workload.
fn study(stack: &str, workload: &str, more: &str) -> String {
    let stack: String = stack
        .lines()
        .map(|layer| format!("[[stack]]\n{}\n", layer.trim()))
        .collect();
    format!(
        "title = \"What is measured?\"\n{stack}[[workload]]\nname = \"work\"\n{workload}\n[decide]\nrounds-at-most = 2\nat-most = \"10 min\"\nuntil = \"never\"\n{more}"
    )
}

/// What the audit of a finished run says.
struct Audit(Value);

impl Audit {
    fn of(ground: &Ground) -> Self {
        let said = ground.stackrace(&["report", "--format", "json"]);
        said.ended(0);
        Self(serde_json::from_str(&said.out).unwrap())
    }

    fn run(ground: &Ground, study: &str) -> Self {
        ground.write("audit.toml", study);
        ground.stackrace(&["run", "audit.toml"]).ended(0);
        assert_eq!(ground.left(), [""; 0]);
        Self::of(ground)
    }

    fn cell(&self) -> &Value {
        &self.0["audit"]["cells"][0]
    }

    #[track_caller]
    fn judgement(&self, check: &str) -> &Value {
        let judgements = self.cell()["judgements"].as_array().unwrap();
        let found = judgements.iter().find(|said| said["check"] == check);
        found.unwrap_or_else(|| panic!("no {check} in {:#}", self.cell()))
    }

    #[track_caller]
    fn says(&self, check: &str, grade: &str, words: &str) {
        let judgement = self.judgement(check);
        let sentence = judgement["sentence"].as_str().unwrap();
        assert_eq!(judgement["grade"], grade, "{judgement:#}");
        assert!(sentence.contains(words), "no {words:?} in {judgement:#}");
    }

    #[track_caller]
    fn limited_by(&self, limit: &str) {
        assert_eq!(self.cell()["limited_by"], limit, "{:#}", self.cell());
    }

    /// How busy a processor is and how even a rate is depends on the moment: a run that shows another
    /// limit than the one to be seen is done again, twice at most. The last one counts.
    fn until_limited_by(limit: &str, run: impl Fn() -> Self) -> Self {
        let mut last = run();
        for _ in 0..2 {
            if last.cell()["limited_by"] != limit {
                last = run();
            }
        }
        last
    }

    /// Skips the test if other processes used so much of the machine that no limit can be expected.
    fn skip_if_disturbed(&self) {
        if self.judgement("neighbours")["grade"] != "ok" {
            needs::skip("other processes used this machine meanwhile");
        }
    }

    /// Figure of a check whose name contains these words.
    #[track_caller]
    fn figure(&self, check: &str, words: &str) -> f64 {
        let judgement = self.judgement(check);
        let mut evidence = judgement["evidence"].as_array().unwrap().iter();
        let found = evidence.find(|figure| figure["name"].as_str().unwrap().contains(words));
        found.unwrap_or_else(|| panic!("no {words:?} in {judgement:#}"))["value"]
            .as_f64()
            .unwrap()
    }
}

/// A few megabytes on a machine of many, and the caches are not dropped.
fn data_that_fits_into_memory_is_read_from_the_page_cache_at_the_pace_of_a_processor() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let ground = Ground::new();
    let study = study(
        "loop = { size = \"320 MiB\" }\next4 = {}",
        "random = { mode = \"read\", size = \"32 MiB\", access = \"uniform\", time = \"1500 ms\" }",
        "[trial]\ndrop-caches = false\nremount = false\n",
    );
    let audit = Audit::until_limited_by("one-cpu", || Audit::run(&ground, &study));
    // Another process of this machine may drop caches meanwhile: not all of it need be in memory.
    let words = "of the bytes read came from the page cache, not from storage";
    audit.says("page cache", "note", words);
    assert!(audit.figure("page cache", "that came from memory") > 0.5);
    let (data, memory) = (
        audit.figure("page cache", "working set"),
        audit.figure("page cache", "memory of the machine"),
    );
    assert!(0.0 < data && data < memory, "{data} of {memory}");
    // Every form of the report says it, and what limited it.
    let report = |format: &str| ground.stackrace(&["report", "--format", format]).out;
    for format in ["terminal", "markdown", "html"] {
        let text = report(format)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains(words), "{format}: {text}");
    }
    assert!(report("terminal").contains("Limited by"));
    assert!(report("csv").contains("page cache: note"));
    audit.skip_if_disturbed();
    audit.limited_by("one-cpu");
}

fn zeros_on_a_compressing_file_system_are_no_writes() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let run = |content: &str| {
        let ground = Ground::new();
        let study = study(
            "loop = { size = \"640 MiB\" }\nbtrfs = { compression = \"zstd:1\" }",
            &format!(
                "sequential = {{ mode = \"write\", size = \"96 MiB\", content = \"{content}\" }}"
            ),
            "",
        );
        Audit::run(&ground, &study)
    };
    run("zero").says("compression", "note", "compressed or deduplicated away");
    assert_eq!(run("random").judgement("compression")["grade"], "ok");
}

fn what_is_synced_is_durable_and_what_is_not_is_not() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let run = |durability: &str| {
        let ground = Ground::new();
        let study = study(
            "loop = { size = \"320 MiB\" }\next4 = {}",
            &format!("sequential = {{ mode = \"write\", size = \"32 MiB\", {durability} }}"),
            "",
        );
        Audit::run(&ground, &study)
    };
    let synced = run("fsync-every = 1");
    assert_eq!(synced.judgement("durability")["grade"], "ok");
    assert!(synced.figure("durability", "fsyncs") >= 32.0);
    assert!(synced.figure("durability", "flushes") >= 32.0);
    let unsynced = run("fsync-at-end = false");
    unsynced.says("durability", "note", "not durable");
    assert_eq!(unsynced.figure("durability", "fsyncs"), 0.0);
}

/// A control group that may read so many bytes a second from one disk; removed when dropped.
struct Throttled {
    group: PathBuf,
}

impl Throttled {
    /// Skips the test where the kernel has no such groups.
    fn new(test: &str, place: &Path, bytes_per_s: u64) -> Self {
        let groups = Path::new("/sys/fs/cgroup/blkio");
        if !groups.join("blkio.throttle.read_bps_device").exists() {
            needs::skip("needs control groups of version 1 with blkio");
        }
        let disk = disk_of(place);
        let Some(disk) = disk else {
            needs::skip("the test's files are not on a disk");
        };
        let group = groups.join(format!("stackrace-test-{}-{test}", std::process::id()));
        fs::create_dir(&group).unwrap();
        let throttled = Self { group };
        let limit = format!("{disk} {bytes_per_s}");
        fs::write(
            throttled.group.join("blkio.throttle.read_bps_device"),
            limit,
        )
        .unwrap();
        throttled
    }

    /// Runs the program in the group.
    #[expect(
        clippy::disallowed_methods,
        reason = "a shell enters the group before it becomes the program"
    )]
    fn run(&self, ground: &Ground, args: &[&str]) -> Said {
        let program = ground.program(args);
        let output = Command::new("sh")
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.group.join("tasks"))
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(ground.path())
            .output()
            .unwrap();
        Said::of(&output)
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

/// Number of the whole disk that a directory lies on: `254:0`.
fn disk_of(place: &Path) -> Option<String> {
    let number = fs::metadata(place).unwrap().dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let own = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let own = own.canonicalize().ok()?;
    let disk = match own.join("partition").exists() {
        true => own.parent()?,
        false => &own,
    };
    Some(fs::read_to_string(disk.join("dev")).ok()?.trim().to_owned())
}

/// The same reads from a throttled disk: by way of a loop device, which waits for it, and directly,
/// where requests are held back before the disk ever sees them. Small requests to the loop device
/// would look like those to a disk that moves for each.
fn a_throttled_disk_is_a_limit_of_the_device() {
    needs::root_and_loop_devices();
    let _alone = alone();
    let run = |name: &str, stack: &str, block_size: &str, queue_depth: u32| {
        let ground = Ground::new();
        ground.make_dir("data");
        let throttled = Throttled::new(name, ground.path(), 4_000_000);
        let work = format!(
            "random = {{ mode = \"read\", size = \"32 MiB\", block-size = \"{block_size}\", queue-depth = {queue_depth}, direct = true, access = \"uniform\", time = \"5 s\" }}"
        );
        ground.write("audit.toml", study(stack, &work, ""));
        throttled.run(&ground, &["run", "audit.toml"]).ended(0);
        Audit::of(&ground)
    };
    let until_seen = |name: &str, stack: &str, block_size: &str, queue_depth: u32| {
        Audit::until_limited_by("device-rate", || run(name, stack, block_size, queue_depth))
    };
    let below = "loop = { size = \"320 MiB\" }\next4 = {}";
    let below = until_seen("below", below, "512 KiB", 8);
    let before = "dir = { path = \"data\" }";
    let before = until_seen("before", before, "16 KiB", 32);
    below.skip_if_disturbed();
    below.limited_by("device-rate");
    assert!(below.figure("device", "busy") >= 0.95);
    before.skip_if_disturbed();
    before.limited_by("device-rate");
    before.says(
        "device",
        "ok",
        "held back at an even rate before the device",
    );
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        data_that_fits_into_memory_is_read_from_the_page_cache_at_the_pace_of_a_processor,
        zeros_on_a_compressing_file_system_are_no_writes,
        what_is_synced_is_durable_and_what_is_not_is_not,
        a_throttled_disk_is_a_limit_of_the_device,
    ]
}
