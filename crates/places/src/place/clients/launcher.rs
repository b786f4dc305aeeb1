//! How clients are started: over ssh, or by the scheduler that a cluster has.
//!
//! Each process of a client is one command of the launcher, whose input and output are the connection:
//! nothing listens on any machine, and no port has to be open.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cluster::{MADE_BY, MADE_FOR};
use crate::place::machine_options::{ClientsOptions, SshOptions};
use stackrace_base::failure::Failure;
use stackrace_layers::stack::StorageClaim;
use stackrace_machine::host::{Host, argv, local::LocalHost};
use stackrace_remote::agent::ssh::{Destination, StopAsked, Way};
use stackrace_remote::agent::watch::ORPHAN_S;

/// Syntax of all launchers.
const WAYS: &str =
    "write it like ssh:HOST,HOST or srun or srun:NODE,NODE or mpirun:HOSTFILE or kubernetes:PODS";

/// Clients by their names, and the way to each.
pub(super) struct Launched {
    pub names: Vec<String>,
    pub ways: Vec<Way>,
}

/// Reads `ssh:HOST,HOST`, `srun`, `mpirun:HOSTFILE` and their like.
///
/// # Errors
/// It is none of them; the allocation or the file names no machine.
pub(super) fn launched(
    started: &str,
    options: ClientsOptions<'_>,
    ssh: &SshOptions<'_>,
) -> Result<Launched, Failure> {
    let (launcher, list) = started.split_once(':').unwrap_or((started, ""));
    let given: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    let given: Vec<String> = given.into_iter().filter(|name| !name.is_empty()).collect();
    if launcher != "ssh" && ssh.typed {
        return Err(Failure::usage(format!(
            "--ssh goes with clients that ssh starts, and {launcher} starts these"
        ))
        .next("leave --ssh out"));
    }
    // Who they are is known from the list, or what the launcher knows itself.
    let names = match (launcher, given.is_empty()) {
        ("srun", true) => allocated(options.allocation)?,
        ("mpirun", false) => hosts_of(Path::new(list))?,
        ("kubernetes", false) => pods(list)?,
        ("ssh" | "srun", false) => given,
        _ => {
            return Err(Failure::usage(format!(
                "--clients {started}: it is not said how the clients are started, or who they are"
            ))
            .next(WAYS));
        }
    };
    let ways = names.iter().map(|name| {
        let way = match launcher {
            "ssh" => ssh.way("--clients", name)?,
            _ => Way {
                named_by: Vec::new(),
                to: Destination::parse(name)
                    .map_err(|why| Failure::usage(format!("--clients: {why}")))?,
                ssh: Vec::new(),
                sudo: ssh.sudo,
                silence_s: None,
                launcher: Some(prefix(launcher, name)),
                stop: StopAsked::default(),
            },
        };
        Ok(Way {
            silence_s: Some(ORPHAN_S),
            // Cleaned like it was started: not every launcher's names are known to ssh.
            named_by: ssh.naming("--clients", started),
            ..way
        })
    });
    let ways = ways.collect::<Result<_, Failure>>()?;
    Ok(Launched { names, ways })
}

/// Name of the Job whose pods are clients; `None` if they are no pods.
pub(super) fn job_of(started: &str) -> Option<&str> {
    started.strip_prefix("kubernetes:")
}

/// Words that run the words behind them on one machine.
fn prefix(launcher: &str, name: &str) -> Vec<String> {
    let words: &[&str] = match launcher {
        // A step of its own, also where other steps of the job have all processors; what it prints
        // comes at once and as it is.
        "srun" => &[
            "srun",
            "--overlap",
            "--nodes=1",
            "--ntasks=1",
            "--unbuffered",
            "--quiet",
        ],
        "mpirun" => &["mpirun", "-n", "1", "--bind-to", "none", "--oversubscribe"],
        _ => &["kubectl", "exec", "--stdin", "--quiet"],
    };
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    // Behind all options, because kubectl takes what follows as the command.
    match launcher {
        "srun" => words.push(format!("--nodelist={name}")),
        "mpirun" => words.extend(["--host".to_owned(), name.to_owned()]),
        _ => words.extend([name.to_owned(), "--".to_owned()]),
    }
    words
}

/// The nodes of the Slurm allocation that this runs in.
fn allocated(allocation: Option<&str>) -> Result<Vec<String>, Failure> {
    let Some(nodes) = allocation else {
        return Err(Failure::refused(
            "--clients srun: this is not inside a Slurm allocation (SLURM_JOB_NODELIST is not set)",
        )
        .next("salloc -N 4, then again; or name the nodes: --clients srun:n1,n2"));
    };
    lines(&["scontrol", "show", "hostnames", nodes])
}

/// The hosts of a host file of Open MPI: the first word of each line.
fn hosts_of(file: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::refused(format!(
            "cannot read the host file {}: {error}",
            file.shown(),
            error = error.in_words()
        ))
        .next("name a file with one host on each line: --clients mpirun:FILE")
    })?;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let hosts = lines.filter_map(|line| line.split_whitespace().next());
    let hosts: Vec<String> = hosts.map(str::to_owned).collect();
    match hosts.is_empty() {
        true => Err(Failure::refused(format!("{} names no host", file.shown()))
            .next("write one host on each line")),
        false => Ok(hosts),
    }
}

/// The running pods of a job.
fn pods(job: &str) -> Result<Vec<String>, Failure> {
    // Kubernetes gives this label to every pod of a Job.
    let label = format!("--selector=job-name={job}");
    let names = "--output=jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}";
    let running = "--field-selector=status.phase=Running";
    lines(&["kubectl", "get", "pods", &label, running, names])
}

/// The lines that a command prints.
fn lines(words: &[&str]) -> Result<Vec<String>, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let failed =
        |why: String| Failure::unable(format!("{}: {}", words.join(" "), why.trim())).next(WAYS);
    let said = host.exec(&argv(words.iter().map(|word| (*word).to_owned())));
    let said = said.map_err(|error| Failure::unable(error.to_string()).next(error.next()))?;
    // Its own words say what is missing.
    if said.status != Some(0) {
        return Err(failed(said.stderr));
    }
    let names: Vec<String> = said.stdout.split_whitespace().map(str::to_owned).collect();
    match names.is_empty() {
        true => Err(failed("it names no client".to_owned())),
        false => Ok(names),
    }
}

/// Something that every pod of a Job has mounted.
pub(super) enum JobVolume {
    /// A claim of the user's, at this path.
    Given(PathBuf),
    /// A volume that is made with the pod, and deleted with it.
    Claimed(StorageClaim),
}

/// A Job whose pods wait to be clients: all it does is stay. Each directory is a volume of its own. `labelled`: with
/// the labels by which this program finds what it made.
///
/// # Errors
/// Kubernetes takes no such name.
pub(super) fn manifest(
    job: &str,
    count: usize,
    volumes: &[JobVolume],
    labelled: bool,
) -> Result<String, Failure> {
    let sign = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let inner = job.chars().all(|letter| sign(letter) || letter == '-');
    // Pods are named after their Job, its number and a word of five letters.
    if !(inner && job.starts_with(sign) && job.ends_with(sign) && job.len() <= JOB_NAME_MAX) {
        return Err(Failure::usage(format!(
            "--clients kubernetes:{job}: Kubernetes takes no such name for a Job"
        ))
        .next("write small letters, digits and hyphens, 52 at most: kubernetes:storage-clients"));
    }
    let (key, value) = MADE_BY;
    let labels = match labelled {
        true => format!("{{ {key}: {value}, {MADE_FOR}: {job} }}"),
        false => "{}".to_owned(),
    };
    let (mut mounts, mut listed) = (String::new(), String::new());
    for (number, volume) in (1..).zip(volumes) {
        let (path, source) = match volume {
            JobVolume::Given(path) => (path, given(number, path, count)),
            JobVolume::Claimed(claim) => (&claim.path, claimed(claim, &labels)),
        };
        let path = quoted(&path.shown().to_string());
        mounts.push_str(&format!(
            "        - {{ name: storage-{number}, mountPath: {path} }}\n"
        ));
        listed.push_str(&format!("      - name: storage-{number}\n{source}"));
    }
    Ok(format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {job}
  labels: {labels}
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  backoffLimit: 0
  template:
    metadata:
      labels: {labels}
    spec:
      restartPolicy: Never
      # It does nothing that would have to end in order.
      terminationGracePeriodSeconds: 0
      # One client on each node.
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {{ matchLabels: {{ job-name: {job} }} }}
      containers:
      - name: client
        # Any image with sh, sleep and the C library that this program needs.
        image: debian:12
        command: [sleep, infinity]
        volumeMounts:
{mounts}      volumes:
{listed}"
    ))
}

/// A text of JSON is one of YAML, whatever signs are in it.
fn quoted(text: &str) -> serde_json::Value {
    serde_json::Value::from(text)
}

/// The claim of the user's that a directory is, with the modes that it must allow; one pod alone needs less.
fn given(number: usize, path: &Path, count: usize) -> String {
    let modes = match count {
        1 => "ReadWriteOnce or ReadWriteMany",
        _ => "ReadWriteMany",
    };
    let path = quoted(&path.shown().to_string());
    format!(
        "        persistentVolumeClaim: {{ claimName: CLAIM-{number} }}  # yours for {path}: {modes}\n"
    )
}

/// A claim that Kubernetes makes with the pod.
fn claimed(claim: &StorageClaim, labels: &str) -> String {
    let (class, bytes) = (quoted(&claim.class), claim.bytes);
    format!(
        "        ephemeral:
          volumeClaimTemplate:
            metadata:
              labels: {labels}
            spec:
              accessModes: [ReadWriteOnce]
              storageClassName: {class}
              resources: {{ requests: {{ storage: \"{bytes}\" }} }}\n"
    )
}

/// Characters of a Job's name that leave room for the names of its pods, which Kubernetes limits to 63.
const JOB_NAME_MAX: usize = 52;

#[cfg(test)]
mod tests {
    use super::*;

    const SSH: SshOptions<'_> = SshOptions {
        command: "ssh",
        typed: false,
        sudo: false,
    };

    fn names(started: &str) -> Result<Vec<String>, String> {
        let read = launched(started, ClientsOptions::default(), &SSH);
        read.map(|read| read.names)
            .map_err(|failure| failure.render())
    }

    #[test]
    fn every_way_to_start_clients_is_read_and_no_other() {
        assert_eq!(names("ssh:a, root@b:22").unwrap(), ["a", "root@b:22"]);
        assert_eq!(names("srun:n1,n2").unwrap(), ["n1", "n2"]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# hosts\nh1 slots=4\n\nh2\n").unwrap();
        let started = format!("mpirun:{}", file.path().display());
        assert_eq!(names(&started).unwrap(), ["h1", "h2"]);
        for wrong in ["", "ssh", "ssh:", "rsh:a", "a,b", "mpirun", "kubernetes"] {
            let said = names(wrong).unwrap_err();
            assert!(said.contains("ssh:HOST"), "{wrong}: {said}");
        }
        assert!(names("srun").unwrap_err().contains("SLURM_JOB_NODELIST"));
        assert!(names("mpirun:/nowhere").unwrap_err().contains("/nowhere"));
        // What begins with a hyphen would be an option of the launcher.
        assert!(names("srun:--help").is_err());
    }

    #[test]
    fn every_directory_is_mounted_into_every_pod() {
        let directories = ["/mnt/a", "/mnt/b: #1 \"x\""];
        let directories = directories.map(|path| JobVolume::Given(path.into()));
        let job = manifest("meter", 2, &directories, false).unwrap();
        for part in [
            "- { name: storage-1, mountPath: \"/mnt/a\" }",
            "- { name: storage-2, mountPath: \"/mnt/b: #1 \\\"x\\\"\" }",
            "{ claimName: CLAIM-1 }  # yours for \"/mnt/a\": ReadWriteMany",
            "{ claimName: CLAIM-2 }",
        ] {
            assert!(job.contains(part), "{part}: {job}");
        }
        let alone = manifest("meter", 1, &directories, false).unwrap();
        assert!(alone.contains("ReadWriteOnce or ReadWriteMany"), "{alone}");
        let long = "x".repeat(53);
        for name in ["", "Meter", "-a", "a-", "a_b", "a: b", &long] {
            assert!(manifest(name, 2, &directories, false).is_err(), "{name}");
        }
    }

    #[test]
    fn a_claim_is_made_with_its_pod_and_has_the_labels_by_which_it_is_found() {
        let claim = |labelled| {
            let claim = StorageClaim {
                class: "fast".to_owned(),
                bytes: 10 << 30,
                path: "/mnt/fast".into(),
                within_ns: 1,
            };
            manifest("meter", 1, &[JobVolume::Claimed(claim)], labelled).unwrap()
        };
        let ours = claim(true);
        for part in [
            "mountPath: \"/mnt/fast\"",
            "accessModes: [ReadWriteOnce]",
            "storageClassName: \"fast\"",
            "storage: \"10737418240\"",
        ] {
            assert!(ours.contains(part), "{part}: {ours}");
        }
        // The Job, its pod and its claim.
        let label =
            "{ app.kubernetes.io/managed-by: stackrace, app.kubernetes.io/instance: meter }";
        assert_eq!(ours.matches(label).count(), 3, "{ours}");
        // What the user applies is the user's.
        assert!(!claim(false).contains("managed-by"));
    }

    #[test]
    fn each_launcher_runs_one_command_on_one_machine() {
        assert_eq!(prefix("srun", "n1").last().unwrap(), "--nodelist=n1");
        assert_eq!(prefix("mpirun", "h1").last().unwrap(), "h1");
        let kubectl = prefix("kubernetes", "clients-0-x").join(" ");
        assert_eq!(kubectl, "kubectl exec --stdin --quiet clients-0-x --");
    }
}
