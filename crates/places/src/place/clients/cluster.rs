//! What a Kubernetes cluster has and says, asked with kubectl: its settings, context and rights are those of the user.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_machine::host::{Output, argv, local::LocalHost};

/// The label of what this program makes, and the value it has.
pub(super) const MADE_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "stackrace");

/// The label with the name of the Job that something was made for.
pub(super) const MADE_FOR: &str = "app.kubernetes.io/instance";

/// All kinds of what a run makes there.
const KINDS: &str = "jobs,pods,persistentvolumeclaims";

/// Time that the cluster has to delete them.
const DELETED_WITHIN: &str = "--timeout=3m";

/// The `reclaimPolicy` of classes whose volumes stay.
const RETAIN: &str = "Retain";

/// The cluster of the user's present context.
pub(super) struct Cluster {
    host: LocalHost,
}

/// Most bytes kept of an answer: claims and events of a namespace in use, with what the cluster notes of each.
const SAID_MAX: u64 = 16 << 20;

/// The objects of an answer.
fn understood<T: DeserializeOwned>(words: &[&str], said: &str) -> Result<T, Failure> {
    serde_json::from_str(said).map_err(|error| {
        let words = words.join(" ");
        // What was cut is no JSON, whatever version it is of.
        if said.len() as u64 > SAID_MAX {
            let most = unit::bytes(SAID_MAX);
            return Failure::unable(format!("kubectl {words}: it prints more than {most}"))
                .next("use a namespace with less in it: kubectl config set-context --current --namespace=NAME");
        }
        Failure::unable(format!(
            "kubectl {words}: its answer is not understood: {error}"
        ))
        .next("kubectl version: what is here and what the cluster has should be of one year")
    })
}

/// A list as kubectl prints it.
#[derive(Deserialize)]
struct Listed<T> {
    items: Vec<T>,
}

impl Cluster {
    pub(super) fn new() -> Self {
        Self {
            host: LocalHost::new(Arc::new(|_| ())),
        }
    }

    /// Runs a command to its end, whatever came of it.
    fn output(&self, words: &[&str]) -> Result<Output, Failure> {
        let said = self
            .host
            .exec_keeping(&argv(words.iter().copied()), SAID_MAX);
        said.map_err(|error| Failure::unable(error.to_string()).next(error.next()))
    }

    /// What `kubectl` prints with these words.
    fn said(&self, words: &[&str], next: &str) -> Result<String, Failure> {
        let words = [&["kubectl"], words].concat();
        let said = self.output(&words)?;
        match said.status {
            Some(0) => Ok(said.stdout),
            _ => Err(
                Failure::unable(format!("{}: {}", words.join(" "), last_line(&said.stderr)))
                    .next(next),
            ),
        }
    }

    /// Objects of a kind, or one, as JSON.
    fn read<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T, Failure> {
        let words = [&["get", "--output=json"], words].concat();
        let said = self.said(&words, REACHED)?;
        understood(&words, &said)
    }

    /// A Job by its name; `None` if there is none.
    pub(super) fn job(&self, name: &str) -> Result<Option<Job>, Failure> {
        let words = ["get", "--output=json", "--ignore-not-found", "job", name];
        let said = self.said(&words, REACHED)?;
        if said.trim().is_empty() {
            return Ok(None);
        }
        self.read(&["job", name]).map(Some)
    }

    /// Storage classes; `None` if the user may not list them, who may still use them.
    pub(super) fn classes(&self) -> Option<Vec<StorageClass>> {
        // They belong to no namespace, which many users may not look beyond.
        let listed = self.read::<Listed<StorageClass>>(&["storageclasses"]);
        listed.ok().map(|listed| listed.items)
    }

    /// Pods of a Job.
    pub(super) fn pods(&self, job: &str) -> Result<Vec<Pod>, Failure> {
        // Kubernetes gives this label to every pod of a Job.
        let label = format!("--selector=job-name={job}");
        let listed: Listed<Pod> = self.read(&["pods", &label])?;
        Ok(listed.items)
    }

    /// Claims of the user's namespace.
    pub(super) fn claims(&self) -> Result<Vec<Claim>, Failure> {
        let listed: Listed<Claim> = self.read(&["persistentvolumeclaims"])?;
        Ok(listed.items)
    }

    /// Events of the user's namespace.
    pub(super) fn events(&self) -> Result<Vec<ClusterEvent>, Failure> {
        let listed: Listed<ClusterEvent> = self.read(&["events"])?;
        Ok(listed.items)
    }

    /// Makes what a manifest says.
    pub(super) fn create(&self, manifest: &str) -> Result<(), Failure> {
        // kubectl reads a manifest from its input, which a shell gives it.
        let line = "printf %s \"$1\" | kubectl create --filename=-";
        let said = self.output(&["sh", "-c", line, "kubectl", manifest])?;
        match said.status {
            Some(0) => Ok(()),
            _ => Err(
                Failure::unable(format!("kubectl create: {}", last_line(&said.stderr)))
                    .next("kubectl auth can-i create jobs says whether you may"),
            ),
        }
    }

    /// What this program made for a Job: `job.batch/meter`.
    pub(super) fn ours(&self, job: &str) -> Result<Vec<String>, Failure> {
        let words = ["get", KINDS, &of_job(job), "--output=name"];
        let said = self.said(&words, REACHED)?;
        Ok(said.lines().map(str::to_owned).collect())
    }

    /// Deletes what this program made for a Job, and waits until it is gone; what that was.
    pub(super) fn delete(&self, job: &str) -> Result<Vec<String>, Failure> {
        let objects = self.ours(job)?;
        if !objects.is_empty() {
            // With the Job goes its pod, and with that its claims: what is gone by then was meant to go.
            let words = [
                "delete",
                "--ignore-not-found",
                KINDS,
                &of_job(job),
                DELETED_WITHIN,
            ];
            let deleted = self.said(&words, "");
            deleted.map_err(|failure| {
                let (why, _) = failure.into_parts();
                Failure::unable(format!("the Job {job} is left: {why}"))
                    .next(format!("stackrace clean --clients kubernetes:{job}"))
            })?;
        }
        Ok(objects)
    }
}

/// Advice where the cluster does not answer.
const REACHED: &str = "kubectl cluster-info says whether the cluster is reached, and kubectl config current-context which one it is";

/// What kubectl ends with, which is its reason: before it, each try to reach the cluster has a line of its own.
pub(super) fn last_line(said: &str) -> &str {
    said.trim().lines().last().unwrap_or_default().trim()
}

/// Selects what this program made for a Job.
fn of_job(job: &str) -> String {
    let (key, value) = MADE_BY;
    format!("--selector={key}={value},{MADE_FOR}={job}")
}

/// Name and labels of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    labels: std::collections::BTreeMap<String, String>,
    creation_timestamp: Option<String>,
}

/// A Job, as far as it says who made it.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    metadata: Metadata,
}

impl Job {
    /// Returns true if a run made it.
    pub(super) fn is_ours(&self) -> bool {
        let (key, value) = MADE_BY;
        self.metadata.labels.get(key).is_some_and(|it| it == value)
    }
}

/// A kind of volume that the cluster makes, with the driver that makes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StorageClass {
    metadata: Metadata,
    /// The driver that makes its volumes.
    pub provisioner: String,
    #[serde(default)]
    reclaim_policy: Option<String>,
}

impl StorageClass {
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns true if its volumes stay when their claims are deleted.
    pub(super) fn keeps(&self) -> bool {
        self.reclaim_policy.as_deref() == Some(RETAIN)
    }
}

/// A pod with its volumes, and how far it has come.
#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    metadata: Metadata,
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
    volumes: Vec<Volume>,
    containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    volume_mounts: Vec<Mount>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mount {
    name: String,
    mount_path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    ephemeral: Option<serde_json::Value>,
    persistent_volume_claim: Option<ClaimOfVolume>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimOfVolume {
    claim_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: String,
}

impl Pod {
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(super) fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref()
    }

    pub(super) fn runs(&self) -> bool {
        self.status.phase == "Running"
    }

    /// Returns true if it will not run any more.
    pub(super) fn has_ended(&self) -> bool {
        ["Failed", "Succeeded"].contains(&self.status.phase.as_str())
    }

    /// What its containers wait for, a line each.
    pub(super) fn waits_for(&self) -> Vec<String> {
        let states = self.status.container_statuses.iter();
        let waiting = states.filter_map(|it| it.state.waiting.as_ref());
        let told = waiting.map(|it| told("Pod", self.name(), &it.reason, &it.message));
        told.collect()
    }

    /// Name of the claim that is mounted at a path; `None` if none is.
    pub(super) fn claim_at(&self, path: &Path) -> Option<String> {
        let mut mounts = self.spec.containers.iter().flat_map(|it| &it.volume_mounts);
        let mount = mounts.find(|mount| Path::new(&mount.mount_path) == path)?;
        let mut volumes = self.spec.volumes.iter();
        let volume = volumes.find(|volume| volume.name == mount.name)?;
        match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.clone()),
            // Kubernetes names it so.
            (None, Some(_)) => Some(format!("{}-{}", self.name(), volume.name)),
            (None, None) => None,
        }
    }
}

/// A claim on a volume.
#[derive(Debug, Deserialize)]
pub(super) struct Claim {
    metadata: Metadata,
    #[serde(default)]
    spec: ClaimSpec,
    #[serde(default)]
    status: ClaimStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSpec {
    storage_class_name: Option<String>,
    volume_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimStatus {
    phase: String,
    capacity: Capacity,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Capacity {
    storage: String,
}

impl Claim {
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(super) fn is_bound(&self) -> bool {
        self.status.phase == "Bound"
    }

    pub(super) fn class(&self) -> Option<&String> {
        self.spec.storage_class_name.as_ref()
    }

    pub(super) fn volume(&self) -> Option<&str> {
        self.spec.volume_name.as_deref()
    }

    /// Its size, in the words of the cluster: `10Gi`.
    pub(super) fn size(&self) -> &str {
        match self.status.capacity.storage.as_str() {
            "" => "a size that is not told",
            size => size,
        }
    }
}

/// Something that happened in the cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ClusterEvent {
    metadata: Metadata,
    involved_object: Involved,
    /// One word for it.
    pub reason: String,
    message: String,
    last_timestamp: Option<String>,
    event_time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Involved {
    kind: String,
    name: String,
}

impl ClusterEvent {
    /// Name of the object that it happened to.
    pub(super) fn of(&self) -> &str {
        &self.involved_object.name
    }

    /// When it last happened, in a form that sorts by time.
    pub(super) fn at(&self) -> &str {
        // Which of them a cluster fills in depends on its version.
        let newer = self
            .last_timestamp
            .as_deref()
            .max(self.event_time.as_deref());
        newer
            .max(self.metadata.creation_timestamp.as_deref())
            .unwrap_or_default()
    }

    pub(super) fn told(&self) -> String {
        let of = &self.involved_object;
        told(&of.kind, &of.name, &self.reason, &self.message)
    }
}

/// `Pod meter-0-x: FailedScheduling: no node has room`
fn told(kind: &str, name: &str, reason: &str, message: &str) -> String {
    let said = [reason.trim(), message.trim()];
    let said: Vec<&str> = said.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{kind} {name}: {}", said.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_cut_is_not_taken_for_one_of_another_version() {
        let told = |said: &str| {
            let failed = understood::<Listed<Claim>>(&["get", "events"], said);
            failed.err().unwrap().into_parts().0
        };
        assert!(told("{").contains("is not understood"));
        let cut = " ".repeat(SAID_MAX as usize + 1);
        assert!(told(&cut).contains("prints more than 16 MiB"));
    }
}
