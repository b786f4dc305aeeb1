//! A Job that a run makes for itself: a pod with a volume of each storage class that the study names.
//!
//! Kubernetes makes the claims with the pod and deletes them with it (generic ephemeral volumes), so the Job is all
//! that is made here. Every object has the same two labels, by which `clean` finds what a dead run left.

use std::collections::BTreeSet;
use std::time::Duration;

use super::cluster::{Claim, Cluster, ClusterEvent, Pod, StorageClass};
use super::launcher::{self, JobVolume, job_of};
use crate::place::machine_options::{ClientsOptions, SshOptions};
use crate::place::workers::interrupted;
use stackrace_base::event::Fact;
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::{self, ShownPath};
use stackrace_layers::stack::StorageClaim;
use stackrace_remote::agent::ssh::{StopAsked, Way};
use stackrace_run::prepare::observer::Observer;
use stackrace_study::study::{Configuration, Study};

/// Interval between looks at a Job that is not ready.
const LOOK: Duration = Duration::from_secs(1);

/// Most of what the cluster said that is told.
const TOLD_MAX: usize = 4;

/// A Job with the volumes of a study.
#[derive(Debug)]
pub(super) struct ClaimedJob {
    pub job: String,
    claims: Vec<StorageClaim>,
    /// True to be root in its pod.
    pub sudo: bool,
}

/// Volumes that a study wants of storage classes, each once; empty if it wants none.
///
/// # Errors
/// Two of them would be at one path, or some configuration has none.
pub(super) fn claims(study: &Study) -> Result<Vec<StorageClaim>, Failure> {
    let mut claims: Vec<StorageClaim> = Vec::new();
    for claim in study
        .configurations
        .iter()
        .filter_map(|it| it.stack.claim())
    {
        let at_path = claims.iter().find(|known| known.path == claim.path);
        match at_path {
            None => claims.push(claim.clone()),
            Some(known) if known == claim => {}
            Some(known) => {
                return Err(Failure::usage(format!(
                    "the volumes of {} and of {} would both be at {}",
                    of_class(known),
                    of_class(claim),
                    claim.path.shown()
                ))
                .next("give each a path of its own: path = \"/mnt/{class}\", where class is the factor"));
            }
        }
    }
    let mut others = study.configurations.iter().filter(|it| !has_claim(it));
    match others.next() {
        Some(other) if !claims.is_empty() => Err(Failure::usage(format!(
            "{} names no storage-class, and the pod has volumes of storage classes alone",
            other.name
        ))
        .next(
            "give its dir a storage-class and a claim, too: kubectl get storageclass names them",
        )),
        _ => Ok(claims),
    }
}

fn has_claim(configuration: &Configuration) -> bool {
    configuration.stack.claim().is_some()
}

/// `fast, 10 GiB`
fn of_class(claim: &StorageClaim) -> String {
    format!("{}, {}", claim.class, unit::bytes(claim.bytes))
}

/// Refuses a study with storage classes where no cluster makes volumes of them.
///
/// # Errors
/// It names one, and `started` is not the Job of a cluster.
pub fn check(study: &Study, started: Option<&str>) -> Result<(), Failure> {
    let named = study.configurations.iter().find(|it| has_claim(it));
    match (named, started.and_then(job_of)) {
        (Some(configuration), None) => Err(Failure::usage(format!(
            "{} is a volume of a storage class, and only a Kubernetes cluster makes those",
            configuration.name
        ))
        .next("name a Job, which is made for the run: --clients kubernetes:meter; or leave storage-class and claim out, to measure the directory that is there")),
        _ => Ok(()),
    }
}

impl ClaimedJob {
    /// The Job of a study; `None` if the study names no storage class.
    ///
    /// # Errors
    /// No cluster can make it.
    pub(super) fn of(study: &Study, started: &str, sudo: bool) -> Result<Option<Self>, Failure> {
        check(study, Some(started))?;
        let claims = claims(study)?;
        let job = job_of(started).filter(|_| !claims.is_empty());
        let Some(job) = job else {
            return Ok(None);
        };
        let (clients, _) = study.clients_most();
        if clients.is_some_and(|clients| clients > 1) {
            return Err(Failure::usage(
                "the study has several clients, and a volume of a storage class is mounted by one pod alone (ReadWriteOnce)",
            )
            .next("leave the factor clients out; --processes N starts several processes in the pod"));
        }
        let made = Self {
            job: job.to_owned(),
            claims,
            sudo,
        };
        made.manifest(true)?;
        Ok(Some(made))
    }

    /// The Job as Kubernetes reads it; `labelled` as one that this program deletes again.
    ///
    /// # Errors
    /// Kubernetes takes no such name.
    pub(super) fn manifest(&self, labelled: bool) -> Result<String, Failure> {
        let volumes = self.claims.iter().cloned().map(JobVolume::Claimed);
        launcher::manifest(&self.job, 1, &volumes.collect::<Vec<_>>(), labelled)
    }

    /// Makes the Job, or takes the one that the user made, and waits for its volumes and its pod.
    ///
    /// # Errors
    /// A class is not there, a volume is not made in time, or what runs is something else; nothing is left then but
    /// what the error says.
    pub(super) fn up(&self, stop: &StopAsked, observer: &dyn Observer) -> Result<UpJob, Failure> {
        let cluster = Cluster::new();
        let there = cluster.job(&self.job)?;
        if there.as_ref().is_some_and(|job| job.is_ours()) {
            return Err(Failure::refused(format!(
                "the cluster has a Job {} that stackrace made: another run uses it, or left it there",
                self.job
            ))
            .next(format!(
                "wait for that run, or remove what it left: stackrace clean --clients kubernetes:{}",
                self.job
            )));
        }
        // Before anything is made: a misspelt class is waited for in vain.
        let classes = cluster.classes();
        let ours = there.is_none();
        if ours {
            self.check_classes(classes.as_deref())?;
            cluster.create(&self.manifest(true)?)?;
        }
        let told = observer.doing();
        told.now(
            "the cluster makes the volumes and starts the pod",
            &self.job,
        );
        let up = self.awaited(&cluster, stop).and_then(|pod| {
            let claims = cluster.claims()?;
            self.granted(&pod, &claims, classes.as_deref().unwrap_or_default())
        });
        let up = up.map(|granted| UpJob {
            job: self.job.clone(),
            ours,
            granted,
        });
        match up {
            // The user's own Job stays as it is.
            Err(failure) if ours => Err(match cluster.delete(&self.job) {
                Ok(_) => failure,
                Err(left) => also(failure, left),
            }),
            up => up,
        }
    }

    /// Refuses classes that the cluster does not have; one that does not let them be listed is asked for each.
    fn check_classes(&self, known: Option<&[StorageClass]>) -> Result<(), Failure> {
        let Some(known) = known else { return Ok(()) };
        let is_there = |claim: &&StorageClaim| known.iter().any(|it| it.name() == claim.class);
        let Some(claim) = self.claims.iter().find(|claim| !is_there(claim)) else {
            return Ok(());
        };
        let names: Vec<&str> = known.iter().map(StorageClass::name).collect();
        let names = match names.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has {}", names.join(", ")),
        };
        Err(Failure::refused(format!(
            "the cluster has no storage class {}: {names}",
            claim.class
        ))
        .next("name one that it has: kubectl get storageclass"))
    }

    /// Waits until the pod runs.
    fn awaited(&self, cluster: &Cluster, stop: &StopAsked) -> Result<Pod, Failure> {
        let within = self.claims.iter().map(|claim| claim.within_ns).max();
        let until = SystemClock.now_ns().saturating_add(within.unwrap_or(0));
        loop {
            let mut pods = cluster.pods(&self.job)?;
            if let Some(running) = pods.iter().position(Pod::runs) {
                return Ok(pods.swap_remove(running));
            }
            if stop.asked() {
                return Err(interrupted(format!(
                    "stopped before the pod of {} ran: nothing was measured",
                    self.job
                )));
            }
            // A pod of a Job that may not fail is not started again.
            if SystemClock.now_ns() >= until || pods.iter().any(Pod::has_ended) {
                let (claims, events) = (cluster.claims()?, cluster.events()?);
                return Err(self.not_ready(pods.first(), &claims, &events));
            }
            SystemClock.sleep(LOOK);
        }
    }

    /// Says which volume was not made, or that the pod does not run, and what the cluster says of it.
    fn not_ready(&self, pod: Option<&Pod>, claims: &[Claim], events: &[ClusterEvent]) -> Failure {
        let name = pod.map(Pod::name);
        let of_pod = |claim: &StorageClaim| {
            let named = pod.and_then(|pod| pod.claim_at(&claim.path));
            named.unwrap_or_default()
        };
        let is_bound = |claim: &&StorageClaim| {
            let named = of_pod(claim);
            claims.iter().any(|it| it.name() == named && it.is_bound())
        };
        // A pod waits for all its volumes, so the first that is missing is the reason.
        let unbound = self.claims.iter().find(|claim| !is_bound(claim));
        let within = |claim: &StorageClaim| unit::whole_time(claim.within_ns);
        let mut about: BTreeSet<String> = name.map(str::to_owned).into_iter().collect();
        let (mut text, next) = match (unbound, name) {
            (_, None) => {
                about.insert(self.job.clone());
                (
                    format!("the cluster started no pod of the Job {}", self.job),
                    "kubectl get resourcequota,limitrange shows what it permits".to_owned(),
                )
            }
            (Some(claim), Some(_)) => {
                let named = of_pod(claim);
                about.insert(named.clone());
                (
                    format!(
                        "the cluster made no volume of the storage class {} in {}: the claim {named} over {} is not bound",
                        claim.class,
                        within(claim),
                        unit::bytes(claim.bytes)
                    ),
                    format!(
                        "kubectl describe storageclass {}; if it only takes longer: bound-within = \"30 min\"",
                        claim.class
                    ),
                )
            }
            (None, Some(name)) => (
                format!("all volumes are there, and the pod {name} does not run"),
                format!(
                    "if it needs another image or node, change the Job that this prints, and kubectl apply -f it before the run: stackrace plan STUDY --clients kubernetes:{}",
                    self.job
                ),
            ),
        };
        let mut said: Vec<String> = pod.map(Pod::waits_for).unwrap_or_default();
        said.extend(last_of_each(events, &about));
        if said.is_empty() {
            said.push("the cluster has no event that says why".to_owned());
        }
        for line in said.iter().take(TOLD_MAX) {
            text.push_str(&format!("\n       {line}"));
        }
        Failure::unable(text).next(next)
    }

    /// Looks whether the pod really has what the study names, and what it is.
    fn granted(
        &self,
        pod: &Pod,
        claims: &[Claim],
        classes: &[StorageClass],
    ) -> Result<Granted, Failure> {
        let mut granted = Granted {
            facts: vec![Fact::new("pod", pod.name())],
            kept: Vec::new(),
        };
        let node = pod.node().map(|node| Fact::new("node of the pod", node));
        granted.facts.extend(node);
        // A Job of the user's may have been made for another study.
        for asked in &self.claims {
            let named = pod.claim_at(&asked.path).unwrap_or_default();
            let claim = claims.iter().find(|claim| claim.name() == named);
            let class = claim.and_then(Claim::class);
            let Some(claim) = claim.filter(|_| class == Some(&asked.class)) else {
                let path = asked.path.shown();
                let there = match class {
                    Some(class) => format!("a volume of the storage class {class}"),
                    None => "no volume of a storage class".to_owned(),
                };
                return Err(Failure::refused(format!(
                    "the study has a volume of {} at {path}, and the pod {} has {there} there",
                    asked.class,
                    pod.name()
                ))
                .next(format!(
                    "kubectl delete job {}: the run then makes one that fits",
                    self.job
                )));
            };
            let class = classes.iter().find(|class| class.name() == asked.class);
            let volume = claim.volume().unwrap_or("a volume without a name");
            let mut told = format!("{} at {}", claim.size(), asked.path.shown());
            if let Some(class) = class {
                told.push_str(&format!(", made by {}", class.provisioner));
                if class.keeps() {
                    granted.kept.push((asked.class.clone(), volume.to_owned()));
                }
            }
            let name = format!("volume of {}", asked.class);
            granted
                .facts
                .push(Fact::new(name, format!("{volume}, {told}")));
        }
        Ok(granted)
    }
}

/// The last that was said for each reason of each object, newest first.
fn last_of_each(events: &[ClusterEvent], about: &BTreeSet<String>) -> Vec<String> {
    let mut newest: Vec<&ClusterEvent> =
        events.iter().filter(|it| about.contains(it.of())).collect();
    newest.sort_by_key(|event| std::cmp::Reverse(event.at()));
    let mut known = BTreeSet::new();
    newest.retain(|event| known.insert((event.of(), &event.reason)));
    newest.iter().map(|event| event.told()).collect()
}

/// A failure with another one that followed from it.
fn also(failure: Failure, then: Failure) -> Failure {
    let (said, next) = failure.into_parts();
    let (left, clean) = then.into_parts();
    Failure::unable(format!("{said}\n       {left}")).next(match next.is_empty() {
        true => clean,
        false => format!("{clean}; then: {next}"),
    })
}

/// What a pod got for the claims of a study.
#[derive(Debug, Default)]
struct Granted {
    facts: Vec<Fact>,
    /// Class and name of each volume that stays when its claim is deleted.
    kept: Vec<(String, String)>,
}

/// A Job whose pod runs.
pub(super) struct UpJob {
    job: String,
    /// True if the run made it.
    ours: bool,
    granted: Granted,
}

impl UpJob {
    /// What the pod got, for the record.
    pub(super) fn facts(&self) -> Vec<Fact> {
        self.granted.facts.clone()
    }

    /// Deletes what the run made, and tells what stays.
    pub(super) fn down(self, observer: &dyn Observer) {
        if !self.ours {
            let job = &self.job;
            return observer.remark(&format!(
                "the Job {job} is yours, and stays: kubectl delete job {job}"
            ));
        }
        if let Err(left) = Cluster::new().delete(&self.job) {
            let (what, next) = left.into_parts();
            observer.warn(&what, &next);
        }
        // Nothing else tells that they are there, and cost money.
        for (class, volume) in &self.granted.kept {
            let what = format!(
                "the volume {volume} stays: the storage class {class} keeps what is in its volumes (reclaimPolicy: Retain)"
            );
            observer.warn(&what, &format!("kubectl delete persistentvolume {volume}"));
        }
    }
}

/// A Job that a run made, and that is there still.
pub struct LeftJob {
    job: String,
    /// The way to each of its pods that runs.
    pub ways: Vec<Way>,
}

impl LeftJob {
    /// The Job that the command line names; `None` if no run made one of that name.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub fn of(options: ClientsOptions<'_>, ssh: &SshOptions<'_>) -> Result<Option<Self>, Failure> {
        let Some(job) = options.started.and_then(job_of) else {
            return Ok(None);
        };
        let cluster = Cluster::new();
        if cluster.ours(job)?.is_empty() {
            return Ok(None);
        }
        // The pod of a volume that was never made does not run.
        let ways = match (options.started, cluster.pods(job)?.iter().any(Pod::runs)) {
            (Some(started), true) => launcher::launched(started, options, ssh)?.ways,
            _ => Vec::new(),
        };
        Ok(Some(Self {
            job: job.to_owned(),
            ways,
        }))
    }

    /// Deletes it with its pod and its claims, or names what would be deleted.
    ///
    /// # Errors
    /// The cluster does not let it.
    pub fn clean(&self, list: bool) -> Result<Vec<String>, Failure> {
        let cluster = Cluster::new();
        let (done, objects) = match list {
            true => ("would delete", cluster.ours(&self.job)?),
            false => ("deleted", cluster.delete(&self.job)?),
        };
        Ok(objects.iter().map(|it| format!("{done}: {it}")).collect())
    }

    /// Says that it stays as long as a run uses it.
    pub fn in_use(&self) -> String {
        format!("left alone: the Job {}, whose pod a run uses", self.job)
    }
}

#[cfg(test)]
mod tests;
