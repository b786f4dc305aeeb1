//! An API server that is none: enough of Kubernetes for the real kubectl to make a Job, look at its pod and its
//! claims, and delete them.
//!
//! It is its own controllers: with a Job come its pod and the claims of that pod, and with it they go. The class
//! `slow` never makes a volume.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The class of which no volume is ever made.
pub(super) const SLOW: &str = "slow";

/// Group and resources with their kinds.
const RESOURCES: [(&str, &str, &str); 5] = [
    ("api/v1", "pods", "Pod"),
    ("api/v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ("api/v1", "events", "Event"),
    ("apis/batch/v1", "jobs", "Job"),
    ("apis/storage.k8s.io/v1", "storageclasses", "StorageClass"),
];

/// Everything it has: the resource of each object, and the object.
type Objects = Vec<(&'static str, Value)>;

/// A server of this process; it ends with it.
pub(super) struct Server {
    pub(super) port: u16,
    objects: Arc<Mutex<Objects>>,
    /// Method and path of each request that changes something.
    changes: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let class = |name: &str, policy: &str| {
            let driver = format!("{name}.csi.example");
            let class = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": name}, "provisioner": driver, "reclaimPolicy": policy
            });
            ("storageclasses", class)
        };
        let classes = vec![
            class("fast", "Delete"),
            class("cheap", "Retain"),
            class(SLOW, "Delete"),
        ];
        let server = Self {
            port,
            objects: Arc::new(Mutex::new(classes)),
            changes: Arc::default(),
        };
        let (objects, changes) = (Arc::clone(&server.objects), Arc::clone(&server.changes));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (objects, changes) = (Arc::clone(&objects), Arc::clone(&changes));
                std::thread::spawn(move || answer(connection, &objects, &changes));
            }
        });
        server
    }

    /// Names of what there is besides classes and events.
    pub(super) fn made(&self) -> Vec<String> {
        let objects = self.objects.lock().unwrap();
        let made = objects
            .iter()
            .filter(|(resource, _)| !["storageclasses", "events"].contains(resource));
        made.map(|(resource, it)| format!("{resource}/{}", name_of(it)))
            .collect()
    }

    /// Requests that changed something.
    pub(super) fn changes(&self) -> Vec<String> {
        self.changes.lock().unwrap().clone()
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Answers one request; the connection ends with it.
fn answer(connection: TcpStream, objects: &Mutex<Objects>, changes: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap_or_default();
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return;
    };
    let (method, target) = (method.to_owned(), target.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap_or_default();
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if method != "GET" {
        changes.lock().unwrap().push(format!("{method} {target}"));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let replied = discovery(path)
        .or_else(|| of_objects(&method, (path, query), &body, &mut objects.lock().unwrap()));
    let (status, value) = replied.unwrap_or_else(|| not_found(path));
    let text = value.to_string();
    let _ = write!(
        reader.get_mut(),
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
}

type Reply = (&'static str, Value);

fn not_found(path: &str) -> Reply {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": format!("{path} not found")
    });
    ("404 Not Found", status)
}

/// Says which kinds of objects there are.
fn discovery(path: &str) -> Option<Reply> {
    let group = |name: &str| {
        let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    let value = match path {
        "/version" => json!({"major": "1", "minor": "32", "gitVersion": "v1.32.0"}),
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/apis" => json!({
            "kind": "APIGroupList", "apiVersion": "v1",
            "groups": [group("batch"), group("storage.k8s.io")]
        }),
        _ => {
            let of = path.strip_prefix('/')?;
            let known = RESOURCES.iter().filter(|(group, ..)| *group == of);
            let resources: Vec<Value> = known
                .map(|(_, name, kind)| {
                    json!({
                        "name": name, "singularName": kind.to_lowercase(), "kind": kind,
                        "namespaced": *kind != "StorageClass",
                        "verbs": ["create", "delete", "get", "list", "watch"]
                    })
                })
                .collect();
            if resources.is_empty() {
                return None;
            }
            let version = of.strip_prefix("apis/").or(of.strip_prefix("api/"));
            json!({
                "kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": version, "resources": resources
            })
        }
    };
    Some(("200 OK", value))
}

/// Reads, makes and deletes objects.
fn of_objects(
    method: &str,
    (path, query): (&str, &str),
    body: &[u8],
    objects: &mut Objects,
) -> Option<Reply> {
    let (resource, kind, name) = RESOURCES.iter().find_map(|(group, resource, kind)| {
        let rest = path.strip_prefix('/')?.strip_prefix(group)?;
        let rest = rest.strip_prefix("/namespaces/default").unwrap_or(rest);
        let name = rest.strip_prefix('/')?.strip_prefix(resource)?;
        Some((*resource, *kind, name.trim_start_matches('/')))
    })?;
    let at = objects
        .iter()
        .position(|(of, it)| *of == resource && name_of(it) == name);
    match (method, name) {
        ("GET", "") => {
            let labels = selector(query);
            let chosen = objects.iter().filter(|(of, it)| {
                let has =
                    |(key, value): &(String, String)| it["metadata"]["labels"][key] == **value;
                *of == resource && labels.iter().all(has)
            });
            let items: Vec<Value> = chosen.map(|(_, it)| it.clone()).collect();
            let version = match resource {
                "jobs" => "batch/v1",
                "storageclasses" => "storage.k8s.io/v1",
                _ => "v1",
            };
            let list = json!({
                "apiVersion": version, "kind": format!("{kind}List"), "metadata": {}, "items": items
            });
            Some(("200 OK", list))
        }
        ("GET", _) => Some(("200 OK", objects[at?].1.clone())),
        ("POST", "") => {
            let mut job: Value = serde_json::from_slice(body).unwrap();
            job["metadata"]["uid"] = "1".into();
            job["metadata"]["namespace"] = "default".into();
            objects.push((resource, job.clone()));
            with_pod(&job, objects);
            Some(("201 Created", job))
        }
        ("DELETE", _) => {
            let gone = objects.remove(at?).1;
            if resource == "jobs" {
                // What belongs to it goes with it.
                objects.retain(|(of, _)| ["storageclasses", "events"].contains(of));
            }
            Some(("200 OK", gone))
        }
        _ => None,
    }
}

/// Labels of `labelSelector=a%3Db%2Cc%3Dd`.
fn selector(query: &str) -> Vec<(String, String)> {
    let asked = query
        .split('&')
        .find_map(|it| it.strip_prefix("labelSelector="));
    let asked = asked.unwrap_or_default();
    let plain = asked
        .replace("%2F", "/")
        .replace("%3D", "=")
        .replace("%2C", ",");
    let each = plain.split(',').filter_map(|it| it.split_once('='));
    each.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The pod of a Job with its claims; none is bound that waits for a slow class, and its pod waits with it.
fn with_pod(job: &Value, objects: &mut Objects) {
    let template = &job["spec"]["template"];
    let name = format!("{}-0-abcde", name_of(job));
    let volumes = template["spec"]["volumes"].as_array().unwrap();
    let mut all_bound = true;
    for volume in volumes {
        let claimed = &volume["ephemeral"]["volumeClaimTemplate"];
        let class = claimed["spec"]["storageClassName"].as_str().unwrap();
        let size = &claimed["spec"]["resources"]["requests"]["storage"];
        assert!(size.is_string(), "a size is a text: {size}");
        let bound = class != SLOW;
        all_bound &= bound;
        let of_pod = format!("{name}-{}", volume["name"].as_str().unwrap());
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": claimed["metadata"], "spec": claimed["spec"],
            "status": {"phase": if bound { "Bound" } else { "Pending" }}
        });
        claim["metadata"]["name"] = of_pod.clone().into();
        claim["metadata"]["namespace"] = "default".into();
        if bound {
            claim["spec"]["volumeName"] = format!("pvc-of-{class}").into();
            claim["status"]["capacity"] = json!({"storage": size});
        } else {
            objects.push(("events", event(&of_pod)));
        }
        objects.push(("persistentvolumeclaims", claim));
    }
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"],
        "status": {"phase": if all_bound { "Running" } else { "Pending" }}
    });
    pod["metadata"]["name"] = name.into();
    pod["metadata"]["namespace"] = "default".into();
    pod["metadata"]["labels"]["job-name"] = job["metadata"]["name"].clone();
    pod["spec"]["nodeName"] = "node-one".into();
    objects.push(("pods", pod));
}

/// What a provisioner says that cannot make a volume.
fn event(claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{claim}.1"), "namespace": "default"},
        "involvedObject": {"kind": "PersistentVolumeClaim", "name": claim},
        "reason": "ProvisioningFailed", "message": "the pool is full", "type": "Warning",
        "lastTimestamp": "2026-01-01T00:00:00Z"
    })
}
