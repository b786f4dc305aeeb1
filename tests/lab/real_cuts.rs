//! The power of a real machine is cut by commands: guests are such machines here. Their disks have a
//! volatile cache, and what was not flushed is lost when QEMU is killed.

use super::*;

/// One mount option that keeps what was promised, one that does not.
const CUT: &str = r#"
title = "a machine whose power is cut"
seed = 18
[factors]
options = ["barrier=1", "barrier=0"]
[[stack]]
devices = { ids = ["virtio-disk-1"], size = "268435456 B", model = "none" }
[[stack]]
ext4 = { mount = ["{options}"] }
[[workload]]
promises = { idiom = "append-fdatasync", operations = 80, think-time = "20 ms" }
[crash]
cuts = 2
[decide]
rounds-at-most = 1
until = "never"
"#;

/// What is done in the first guest: the study, what it left on the other one, and the record.
fn script(then: &str) -> String {
    let power = stackrace::testing::POWER;
    format!(
        r#"
export HOME=/root STACKRACE_STORE=/root/store
export STACKRACE_SSH='ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
cat >/root/study.toml <<'STUDY'
{CUT}
STUDY
cut='echo cut >{power}; while [ -e {power} ]; do sleep 0.2; done'
on='echo on >{power}; while [ -e {power} ]; do sleep 0.2; done'
asked() {{ /kit/stackrace "$@" --cut "$cut" --restore "$on"; }}
{then}
echo "left $?"
$STACKRACE_SSH root@node2 'ls -A /scratch/state/stackrace/on; wipefs -n /dev/disk/by-id/virtio-disk-1' >/root/left
echo "left behind: [$(cat /root/left)]"
grep '"event":"cut"' /root/store/runs/*/log.jsonl
echo "trials: $(grep -c '"event":"trial"' /root/store/runs/*/log.jsonl)"
"#
    )
}

fn with_power(lying: bool, then: &str) -> (String, Vec<Value>) {
    let (cache, ground) = (cache("image"), Ground::new());
    let program = Path::new(env!("CARGO_BIN_EXE_stackrace"));
    let dirs = (cache.as_path(), ground.path());
    let said = stackrace::testing::with_power((&system(), program), dirs, lying, &script(then));
    let (out, err, _) = said.unwrap();
    assert!(out.contains("left behind: []"), "{out}{err}");
    let lines = out.lines().filter(|line| line.starts_with('{'));
    let log = lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
    let log: Vec<Value> = log.collect();
    assert!(!log.is_empty(), "{out}{err}");
    (format!("{out}{err}"), log)
}

/// Cuts of a configuration that were found to have lost something, and all of them.
fn losses(log: &[Value], configuration: u64) -> (usize, usize) {
    let cuts = of_kind(log, "cut");
    let here = cuts
        .iter()
        .filter(|cut| cut["configuration"] == configuration);
    let lost = here.clone().filter(|cut| {
        let counts = &cut["found"]["counts"];
        cut["found"].is_null() || counts["lost"] != 0 || counts["torn"] != 0
    });
    (lost.count(), here.count())
}

pub(super) fn the_power_of_a_real_machine_is_cut_and_its_promises_are_checked() {
    let (said, log) = with_power(
        false,
        "asked run /root/study.toml --on root@node2; asked resume",
    );
    // Without barriers the journal is not flushed: what it holds is lost with the cache.
    let [(kept, all), (lost, others)] = [losses(&log, 0), losses(&log, 1)];
    assert_eq!((kept, all, others), (0, 2, 2), "{said}");
    assert!(lost > 0, "{said}");
    let once_each = "trials: 2";
    assert!(said.contains(once_each), "speed is measured: {said}");
    for cut in of_kind(&log, "cut") {
        assert_eq!(cut["of"], "root@node2");
        assert!(cut["found"].is_null() || cut["found"]["promised"].as_u64().unwrap() > 0);
    }
}

pub(super) fn a_disk_that_ignores_flushes_is_found_by_cutting_its_power() {
    let (said, log) = with_power(true, "asked run /root/study.toml --on root@node2");
    for configuration in 0..2 {
        let (lost, all) = losses(&log, configuration);
        assert!(all == 2 && lost > 0, "{configuration}: {said}");
    }
}
