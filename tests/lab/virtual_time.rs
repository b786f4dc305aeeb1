//! Runs in virtual time: the same study gives the same log, byte for byte.

use super::*;

/// Both file systems on a modelled disk, as short as a study can be.
const MODELLED: &str = r#"
title = "a modelled disk"
seed = 7
[factors]
filesystem = ["ext4", "xfs"]
[[stack]]
lab-disks = { model = "seagate-st3000dm001", size = "2 GiB" }
[[stack]]
"{filesystem}" = {}
[[workload]]
files = { count = 50 }
[decide]
rounds-at-most = 2
until = "never"
"#;

/// The same, with a second workload in each guest.
fn two_trials_a_guest() -> String {
    let second = r#"[[workload]]
random = { mode = "read", size = "4 MiB", access = "uniform", operations = 50, time = "1 min" }
[decide]"#;
    MODELLED.replace("[decide]", second)
}

/// The only log of a new store, and what stands beside it.
fn made(jobs: &str) -> (String, Value) {
    let ground = Ground::new();
    let study = ground.write("study.toml", MODELLED);
    let study = study.to_str().unwrap();
    let said = ground.stackrace(&["run", study, "--lab", "--jobs", jobs]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let runs = fs::read_dir(ground.store().join("runs")).unwrap();
    let run = runs.map(|entry| entry.unwrap().path()).next().unwrap();
    let beside = fs::read(run.join("made-on.json")).unwrap();
    (
        fs::read_to_string(run.join("log.jsonl")).unwrap(),
        serde_json::from_slice(&beside).unwrap(),
    )
}

/// The second workload goes on for as long as the first one reads, in one guest.
pub(super) fn workloads_at_the_same_time_are_measured_in_virtual_time() {
    let ground = Ground::new();
    let both = r#"[[workload]]
name = "backup"
sequential = { mode = "read", size = "16 MiB", passes = 0, time = "1 min" }
[[workload]]
name = "database"
random = { mode = "read", size = "4 MiB", access = "uniform", operations = 50, time = "1 min" }"#;
    let study = MODELLED.replace("[[workload]]\nfiles = { count = 50 }", both);
    let study = format!("together = [\"database\", \"backup\"]\n{study}");
    ground.write("study.toml", study);
    ground.stackrace(&["run", "study.toml", "--lab"]).ended(0);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 8);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        let beside = 1 - trial["workload"].as_u64().unwrap();
        assert_eq!(trial["beside"]["workloads"], serde_json::json!([beside]));
        assert!(trial["elapsed_ns"].as_u64().unwrap() < 60_000_000_000);
    }
}

/// However many guests run side by side, and however busy the machine is meanwhile.
pub(super) fn the_log_does_not_depend_on_the_number_of_jobs() {
    let (one, _) = made("1");
    for jobs in ["2", "4"] {
        let (log, beside) = made(jobs);
        let lines = one.lines().zip(log.lines());
        // A line, not a whole log: it says what differs.
        for (expected, line) in lines {
            assert_eq!(line, expected, "with --jobs {jobs}");
        }
        assert_eq!(log.len(), one.len(), "with --jobs {jobs}");
        assert_eq!(beside["jobs"].to_string(), jobs);
    }
    let complete = one
        .lines()
        .filter(|line| line.contains(r#""state":"complete""#));
    assert_eq!(complete.count(), 4);
}

/// DRBD between two disks of a guest, beside one disk alone; and a share of a peer.
const IN_ONE_KERNEL: &str = r#"
title = "two machines in one kernel"
seed = 7
[factors]
stack = ["replicated", "nfs", "smb"]
[[stack]]
lab-disks = { model = "hitachi-hds721010kla330", size = "1 GiB" }
[[stack]]
when = { stack = "replicated" }
drbd = { protocol = "C", rate = "10 MB", delay = "2 ms" }
[[stack]]
ext4 = {}
[[stack]]
when = { stack = "nfs" }
nfs = { rate = "10 MB", delay = "2 ms" }
[[stack]]
when = { stack = "smb" }
smb = { rate = "10 MB", delay = "2 ms" }
[[workload]]
files = { count = 20, fsync = true }
[decide]
compare = "stack"
rounds-at-most = 1
until = "never"
"#;

/// The line is as fast as declared in every guest, and the log is the same however many run at once.
pub(super) fn two_machines_in_one_kernel_have_the_line_that_was_declared() {
    cache("image");
    let made = |jobs: &str| {
        let ground = Ground::new();
        ground.write("study.toml", IN_ONE_KERNEL);
        let args = ["run", "study.toml", "--lab", "--jobs", jobs];
        ground.stackrace(&args).ended(0);
        assert_eq!(ground.left(), Vec::<String>::new());
        log(&ground)
    };
    let log = made("1");
    assert_eq!(measured(&log).len(), 3);
    let raised = of_kind(&log, "stack-set-up");
    let measured: Vec<&str> = raised
        .iter()
        .flat_map(|line| line["layers"].as_array().unwrap())
        .flat_map(|layer| layer["facts"].as_array().unwrap())
        .filter(|fact| fact["name"] == "line to the peer")
        .map(|fact| fact["value"].as_str().unwrap())
        .collect();
    assert_eq!(measured.len(), 3, "{raised:?}");
    for line in measured {
        // The guest's clock is part of the model: unlike real time, it says the same everywhere.
        let rate: f64 = line.split(' ').next().unwrap().parse().unwrap();
        // Headers of packets, up to a twentieth, and two round trips are in it.
        assert!((9.2e6..=10.0e6).contains(&rate), "{line}");
        let (_, trip) = line.split_once("round trips ").unwrap();
        let trip: f64 = trip.trim_end_matches(" ms").parse().unwrap();
        assert!((4.0..4.5).contains(&trip), "{line}");
    }
    assert_eq!(made("2"), log);
}

/// What each trial of a log has measured, by its place in the design.
fn measured(log: &[Value]) -> std::collections::BTreeMap<[u64; 3], Value> {
    let trials = of_kind(log, "trial");
    let found: std::collections::BTreeMap<_, _> = trials
        .iter()
        .map(|trial| {
            assert_eq!(trial["ended"]["state"], "complete", "{trial}");
            let place = ["round", "configuration", "workload"];
            let place = place.map(|word| trial[word].as_u64().unwrap());
            (place, trial["phases"].clone())
        })
        .collect();
    assert_eq!(found.len(), trials.len(), "a place was filled twice");
    found
}

/// The trials that are missing are those of the run that was not killed, to the last digit.
pub(super) fn a_killed_run_in_virtual_time_goes_on_as_if_nothing_had_happened() {
    let whole = Ground::new();
    whole.write("study.toml", two_trials_a_guest());
    let args = ["run", "study.toml", "--lab", "--jobs", "1"];
    whole.stackrace(&args).ended(0);
    let expected = measured(&log(&whole));
    assert_eq!(expected.len(), 8);

    let ground = Ground::new();
    ground.write("study.toml", two_trials_a_guest());
    // An odd number: the third guest still has a workload to do.
    let after = killed_and_resumed(&ground, &args, "trial", 5);
    assert_eq!(of_kind(&after, "run-resumed").len(), 1);
    assert_eq!(measured(&after), expected);
}

/// A disk whose middle is slow, one whose middle cannot be read until it is written, and a mirror of
/// which one disk dies. What the guest sees of them is what the commands end with.
const FAULTY: &str = r#"
title = "declared faults"
seed = 7
[factors]
fault = ["slow", "unreadable", "dead"]
[[stack]]
when = { fault = "slow" }
lab-disks = { model = "seagate-st3000dm001", size = "2 GiB", slow-sectors = "1536 MiB to 1537 MiB: 300 ms" }
[[stack]]
when = { fault = "unreadable" }
lab-disks = { model = "seagate-st3000dm001", size = "2 GiB", read-errors = "1536 MiB to 1537 MiB: 2 s" }
[[stack]]
when = { fault = "dead" }
lab-disks = { model = "seagate-st3000dm001", size = "256 MiB", count = 2, dies-at = "60 s", faulty-disk = 2 }
[[stack]]
when = { fault = "dead" }
md = { raid = 1 }
[[stack]]
ext4 = {}
[[workload]]
[workload.command]
time-limit = "5 min"
run = '''
# In hundredths of a second.
now() {{ read up rest </proc/uptime; echo ${{up%.*}}${{up#*.}}; }}
# The 4 KiB at a place of the first disk, from the disk itself.
at() {{ dd if=/dev/ublkb0 of=/dev/null iflag=direct bs=4k count=1 skip=$1 2>/dev/null; }}
took() {{ from=$(now); at $1; code=$?; took=$(($(now) - from)); return $code; }}
middle=393216
case {fault} in
slow)
    took $middle && [ $took -ge 30 ] && took $((middle + 256)) && [ $took -lt 30 ]
    ;;
unreadable)
    took $middle && exit 1
    [ $took -ge 200 ] || exit 2
    dd if=/dev/zero of=/dev/ublkb0 oflag=direct bs=4k count=1 seek=$middle 2>/dev/null || exit 3
    # What was written is there again, and its neighbour is not.
    at $middle && ! at $((middle + 1))
    ;;
dead)
    grep -q "\[UU\]" /proc/mdstat || exit 1
    files=0
    until grep -q "\[U_\]" /proc/mdstat; do
        files=$((files + 1))
        echo $files >file-$files && sync file-$files || exit 2
        # Longer than the disk lives and is waited for.
        [ $files -lt 300 ] || exit 3
        sleep 1
    done
    # Nothing that was written before or meanwhile is lost.
    echo 3 >/proc/sys/vm/drop_caches
    for file in $(seq $files); do [ "$(cat file-$file)" = $file ] || exit 4; done
    ;;
esac
'''
[decide]
compare = "fault"
rounds-at-most = 1
until = "never"
"#;

/// Slow sectors, sectors that cannot be read and a drive that dies, as a guest's kernel meets them.
pub(super) fn declared_faults_happen_in_a_guest() {
    cache("image");
    let ground = Ground::new();
    ground.write("study.toml", FAULTY);
    let said = ground.stackrace(&["run", "study.toml", "--lab", "--allow-commands"]);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 3, "{}{}", said.out, said.err);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
    said.ended(0);
    // The dead disk is torn down like the others.
    assert_eq!(of_kind(&log, "stack-torn-down").len(), 3);
    assert_eq!(ground.left(), Vec::<String>::new());
}

/// Each configuration has a guest of its own system, and what differs between the systems is on record.
pub(super) fn systems_race_in_virtual_time_among_them_xen_and_an_older_kernel() {
    systems(&["debian-13", "debian-13-xen", "debian-12"]);
    let ground = Ground::new();
    let study = MODELLED.replace(
        "[factors]\nfilesystem = [\"ext4\", \"xfs\"]",
        "[factors]\nfilesystem = [\"ext4\"]\nsystem = [\"debian-13\", \"debian-13-xen\", \"debian-12\"]",
    );
    ground.write("study.toml", &study);
    ground
        .stackrace(&["run", "study.toml", "--lab"])
        .ended(0)
        .err_has("virtual time");
    let log = log(&ground);
    assert_eq!(measured(&log).len(), 6);
    let environment = log[0]["environment"].as_array().unwrap();
    let fact = |name: &str| {
        let found = environment.iter().find(|fact| fact["name"] == name);
        found.map(|fact| fact["value"].as_str().unwrap().to_owned())
    };
    for system in ["debian-13", "debian-13-xen", "debian-12"] {
        let image = fact(&format!("lab image on {system}")).unwrap();
        assert!(image.starts_with(&format!("{system}-")), "{image}");
    }
    // Debian builds this one without the driver that serves the drives: it is the recipe's.
    let kernel = fact("kernel on debian-12").unwrap();
    assert!(kernel.starts_with("Linux 6.1."), "{kernel}");
    // Xen says so itself: the kernel found it there.
    assert_eq!(fact("hypervisor on debian-13-xen").as_deref(), Some("xen"));
    assert_eq!(fact("hypervisor on debian-13"), None);
}

/// A sync took 2.0 ms when it was recorded; here it takes 0.3 ms and 26 ms.
pub(super) fn handed_work_keeps_its_order_and_its_results_on_drives_much_slower_and_faster() {
    let trace = crate::replay::kept("handed");
    let study = format!(
        r#"[factors]
storage = ["sata-ssd-protected", "seagate-st3000dm001"]
[[stack]]
lab-disks = {{ model = "{{storage}}", size = "2 GiB" }}
[[stack]]
ext4 = {{}}
[[workload]]
replay = {{ trace = "{}" }}
[decide]
rounds-at-most = 2
until = "never"
"#,
        trace.display()
    );
    let ground = Ground::new();
    ground.write("study.toml", study);
    ground.stackrace(&["run", "study.toml", "--lab"]).ended(0);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 4);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        let replayed = &trial["phases"][0]["replayed"];
        assert_eq!(
            *replayed,
            serde_json::json!({ "calls": 101, "differing": 0 })
        );
    }
}

/// A guest has no files of this machine but those that its workloads read; and its kernel is another one than this.
pub(super) fn a_guest_records_an_application_and_replays_a_trace_of_this_machine() {
    let ground = crate::record::able();
    crate::record::recorded(&ground, crate::record::PLANTED, "app.trace");
    let trace = ground.path().join("app.trace");
    let works = format!(
        r#"[[workload]]
name = "recorded"
[workload.command]
run = "/kit/stackrace record --below . --cost '1000 %' -o /tmp/a.trace -- sh -c 'echo x > f; sync f' && /kit/stackrace trace info /tmp/a.trace"
[[workload]]
name = "replayed"
replay = {{ trace = "{}" }}"#,
        trace.display()
    );
    let study = MODELLED.replace("[[workload]]\nfiles = { count = 50 }", &works);
    ground.write("study.toml", study);
    let words = ["run", "study.toml", "--lab", "--allow-commands"];
    ground.stackrace(&words).ended(0);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 8);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
}
