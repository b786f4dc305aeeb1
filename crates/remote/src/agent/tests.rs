//! Workers in this process, and a coordinator between them.

use super::connection::{Closing, Connection, ConnectionError, Conversation, Task};
use super::frame::{FrameKind, WireFrame};
use super::message::{
    Assignment, COORDINATOR, CleanAnswer, ExecRequest, FIRST, PeerAddress, PhaseOrder, PlanAnswer,
    TurnReply, TurnRequest, WorkerReply, WorkerRequest,
};
use super::remote_host::{Peer, RemoteHost};
use super::router::Router;
use super::worker::{self, AskedCleaning, Duties, WorkerRefusal};
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::local::Sink;
use stackrace_machine::host::{CLEAN, Daemon, Filling, Host, argv};
use stackrace_machine::journal::{Journal, Undo, undo_all};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Duties of a worker of these tests.
struct Idle {
    /// Told when a conversation of turns ends.
    ended: Mutex<Sender<()>>,
}

impl Duties for Idle {
    fn plan(&self, _: &Arc<Connection>, _: Assignment) -> Result<PlanAnswer, WorkerRefusal> {
        Err(WorkerRefusal {
            code: 3,
            text: "no study".to_owned(),
            next: "write one".to_owned(),
        })
    }

    fn clean(
        &self,
        _: &Arc<Connection>,
        _: PathBuf,
        _: Vec<PeerAddress>,
        _: AskedCleaning,
    ) -> Result<CleanAnswer, WorkerRefusal> {
        panic!("a worker that fails");
    }

    fn turns(&self, _: &Arc<Connection>, _: Assignment, task: Task) -> Result<(), WorkerRefusal> {
        for _ in task.requests {}
        self.ended.lock().unwrap().send(()).unwrap();
        Ok(())
    }

    fn take(&self, _: &[PathBuf]) -> Vec<String> {
        Vec::new()
    }

    fn phases(&self, _: &PhaseOrder, _: Task) {}
}

fn idle() -> (Idle, Receiver<()>) {
    let (sender, receiver) = channel();
    let ended = Mutex::new(sender);
    (Idle { ended }, receiver)
}

/// One stack's coordinator with its connections, and the end of the first machine's worker.
struct Stack {
    router: Arc<Router>,
    connections: Vec<Arc<Connection>>,
    first: Arc<Connection>,
    /// Told when turns of the second machine end.
    second_ended: Receiver<()>,
}

/// A worker that asks its peer, whose worker is in this process as well.
fn stack(patience: Duration) -> Stack {
    let router = Router::new(patience);
    let (ours, theirs) = UnixStream::pair().unwrap();
    struct Nothing;
    impl super::connection::Service for Nothing {
        fn serve(&self, _: &Arc<Connection>, _: WorkerRequest, _: Task) {}
    }
    let reader = theirs.try_clone().unwrap();
    let first = Connection::to_coordinator(Closing(theirs), Arc::new(Nothing));
    let listening = Arc::clone(&first);
    std::thread::spawn(move || listening.listen(reader));
    let reader = ours.try_clone().unwrap();
    let why = |_: Option<&str>| ConnectionError::new("the first is gone");
    let to_first = router.connect(1, reader, Closing(ours), Box::new(why));
    let (duties, second_ended) = idle();
    let to_second = second(&router, duties);
    Stack {
        router,
        connections: vec![to_first, to_second],
        first,
        second_ended,
    }
}

/// The connection to a second machine.
fn second(router: &Arc<Router>, duties: Idle) -> Arc<Connection> {
    worker::connect(duties, router, 2, "the second is gone").unwrap()
}

fn peer(stack: &Stack) -> Peer {
    let address = PeerAddress {
        name: "node2".to_owned(),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        directory: Some(PathBuf::from("/nowhere/.stackrace-peer-1")),
    };
    Peer::all(&stack.first, vec![address]).remove(0)
}

fn silent() -> Sink {
    Arc::new(|_| ())
}

fn opened(connection: &Arc<Connection>, machine: u32) -> Conversation {
    let request = WorkerRequest::Turn(TurnRequest::Open(Box::default()));
    let turns = connection.open(machine, &request).unwrap();
    // Frames keep their order: once this is answered, the machine has begun with the turns.
    let hello = connection.open(machine, &WorkerRequest::Hello).unwrap();
    hello.receive().unwrap();
    turns
}

#[test]
fn a_peer_does_what_a_host_does_and_says_where_it_failed() {
    let stack = stack(Duration::ZERO);
    let log = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&log);
    let peer = peer(&stack).host(Arc::new(move |run| kept.lock().unwrap().push(run)), CLEAN);
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    let made = base.join("made");
    peer.create_dir(&made).unwrap();
    assert!(made.is_dir() && peer.is_dir(&made));
    let error = peer.create_dir(&made).unwrap_err();
    assert!(error.is_already_there());
    assert!(error.to_string().starts_with("node2: "), "{error}");
    let file = made.join("text");
    peer.create_file(&file, 0, Filling::Sparse).unwrap();
    peer.write_text(&file, "a \"b\"\nc").unwrap();
    assert_eq!(peer.read_text(&file).unwrap(), "a \"b\"\nc");
    assert_eq!(peer.list(&made).unwrap(), ["text"]);
    let mount = peer.mount_of(&made).unwrap();
    assert!(made.starts_with(&mount.mount_point));
    let failed = peer.must(&argv(["sh", "-c", "echo no >&2; exit 3"]));
    assert!(failed.unwrap_err().to_string().contains("status 3: no"));
    let missing = peer.exec(&argv(["no-such-program"])).unwrap_err();
    assert!(missing.to_string().contains("node2"), "{missing}");
    peer.end_daemon("no-such-daemon", "no-such-mark").unwrap();
    assert_eq!(peer.running("no-such-daemon").unwrap(), None);
    let daemon = Daemon {
        program: "no-such-daemon",
        port: Some(peer.measured_at().unwrap().port()),
    };
    let taken = peer.check_free(&daemon).unwrap_err().to_string();
    let me = format!("(process {}) listens at port", std::process::id());
    assert!(
        taken.starts_with("node2: ") && taken.contains(&me),
        "{taken}"
    );
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 1, "what ran is recorded, once");
    assert_eq!((&*log[0].host, log[0].status), ("node2", Some(3)));
}

#[test]
fn what_was_moved_on_a_peer_is_not_called_undone() {
    let stack = stack(Duration::ZERO);
    let base = tempfile::tempdir().unwrap();
    let place = base.path().canonicalize().unwrap().join("place");
    std::fs::create_dir(&place).unwrap();
    let peers: Vec<Box<dyn Host>> = vec![Box::new(peer(&stack).host(silent(), CLEAN))];
    let host = LocalHost::new(silent()).with_peers(peers);
    let there = host.peer(2).unwrap();
    let journal = Journal::nowhere();
    journal.draw("0123456789abcdef").unwrap();
    let path = place.join(".stackrace-r1-t0-0123456789abcdef-tree");
    let undo = Undo::on(2, there, Undo::RemoveTree(path.clone()));
    let id = journal.will("a", undo.clone()).unwrap();
    there.create_dir(&path).unwrap();
    journal.made(&host, id).unwrap();
    // The thing itself, then a directory above it.
    let (renamed, away) = (path.with_extension("x"), place.with_file_name("away"));
    for (from, to) in [(&path, &renamed), (&place, &away)] {
        std::fs::rename(from, to).unwrap();
        let report = undo_all(&host, &journal, &[]).unwrap();
        assert_eq!(report.undone, []);
        let why = &report.failed[0].1;
        let told = format!(
            "was moved to {}; move it back, then: stackrace clean --peer node2",
            to.display()
        );
        assert!(why.contains(&told), "no {told} in {why}");
        std::fs::rename(to, from).unwrap();
    }
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!(report.undone, [undo]);
    assert!(!path.exists());
}

#[test]
fn commands_on_a_peer_belong_to_the_run_of_its_directory() {
    let stack = stack(Duration::ZERO);
    let whose = argv(["sh", "-c", "echo $STACKRACE_RUN"]);
    let said = peer(&stack)
        .host(silent(), CLEAN)
        .exec(&whose)
        .unwrap()
        .stdout;
    assert!(said.starts_with(".stackrace-peer-1 in session "), "{said}");
    let direct = RemoteHost::direct("node2", &stack.connections[1]);
    assert_eq!(direct.exec(&whose).unwrap().stdout, "\n");
}

#[test]
fn the_line_to_a_peer_is_measured() {
    let stack = stack(Duration::ZERO);
    let peer = peer(&stack).host(silent(), CLEAN);
    let speed = peer.measure_line(300_000).unwrap().unwrap();
    assert_eq!(speed.bytes, 300_000);
    assert!(peer.line().unwrap().iter().all(IpAddr::is_loopback));
    let other = peer.measure_line_to(&peer, 300_000).unwrap().unwrap();
    assert!(other.rate.is_finite() && other.rate > 0.0);
}

#[test]
fn what_is_asked_at_the_same_time_is_answered_as_it_is_done() {
    let stack = stack(Duration::ZERO);
    let command = |script: &str| {
        WorkerRequest::Exec(ExecRequest::Command {
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            run: None,
        })
    };
    let slow = stack.first.open(2, &command("sleep 3")).unwrap();
    let quick = stack.first.open(2, &command("echo done")).unwrap();
    let WorkerReply::Output(output) = quick.receive().unwrap() else {
        panic!("no output");
    };
    assert_eq!(output.stdout, "done\n");
    assert!(slow.receive_within(Duration::ZERO).unwrap().is_none());
}

#[test]
fn a_refusal_keeps_its_code_and_a_worker_that_fails_answers() {
    let stack = stack(Duration::ZERO);
    let host = RemoteHost::direct("node2", &stack.connections[1]);
    let assignment = Assignment::default();
    let refused = host.value::<PlanAnswer>(ExecRequest::Plan { assignment });
    let refused = refused.unwrap_err();
    assert_eq!(refused.to_string(), "node2: no study");
    assert_eq!(refused.next(), "write one");
    let failed = host.value::<CleanAnswer>(ExecRequest::Clean {
        store: PathBuf::new(),
        peers: Vec::new(),
        list: true,
        named_by: Vec::new(),
    });
    assert!(failed.unwrap_err().to_string().contains("a bug"));
}

#[test]
fn a_coordinator_takes_no_requests() {
    let stack = stack(Duration::ZERO);
    let request = WorkerRequest::Exec(ExecRequest::Operation(
        stackrace_machine::host::verb::Verb::IsRoot,
    ));
    let reply = stack.first.open(COORDINATOR, &request).unwrap().receive();
    assert!(
        matches!(reply, Ok(WorkerReply::Refused { .. })),
        "{reply:?}"
    );
    let reply = stack.first.open(9, &request).unwrap().receive();
    let Ok(WorkerReply::Undelivered { why, may_return }) = reply else {
        panic!("delivered: {reply:?}");
    };
    assert!(why.contains("number 9") && !may_return);
}

/// The other end of a connection, which sends what it likes.
fn hostile(router: &Arc<Router>, machine: u32) -> (Arc<Connection>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let reader = ours.try_clone().unwrap();
    let why = |_: Option<&str>| ConnectionError::new("given up");
    let connection = router.connect(machine, reader, Closing(ours), Box::new(why));
    (connection, theirs)
}

#[test]
fn a_peer_cannot_ask_the_first_machine_nor_another_peer() {
    let stack = stack(Duration::ZERO);
    let (connection, mut peer) = hostile(&stack.router, 3);
    let made = tempfile::tempdir().unwrap();
    for to in [2, FIRST] {
        let made = made.path().join(to.to_string());
        let request = WorkerRequest::Exec(ExecRequest::Command {
            argv: vec!["touch".to_owned(), made.display().to_string()],
            run: None,
        });
        let frame = WireFrame::new(FrameKind::Request, to, 7, &request).unwrap();
        frame.write(&mut peer).unwrap();
        let answer = WireFrame::read(&mut peer).unwrap().unwrap();
        let reply: WorkerReply = serde_json::from_slice(&answer.message).unwrap();
        assert!(
            matches!(&reply, WorkerReply::Refused { text, .. } if text.contains("Only the first")),
            "{reply:?}"
        );
        assert!(!made.exists());
    }
    drop(connection);
}

#[test]
fn a_machine_that_sends_replies_without_end_is_given_up() {
    let router = Router::new(Duration::ZERO);
    let (connection, mut other) = hostile(&router, FIRST);
    let request = WorkerRequest::Turn(TurnRequest::Open(Box::default()));
    let talk = connection.open(COORDINATOR, &request).unwrap();
    let asked = WireFrame::read(&mut other).unwrap().unwrap();
    let warned = WorkerReply::Turn(TurnReply::Warned {
        text: "a".repeat(1 << 20),
    });
    let frame = WireFrame::new(FrameKind::Reply, COORDINATOR, asked.conversation, &warned);
    let frame = frame.unwrap();
    // It takes what it is asked: else asking would wait for room.
    let mut asked = other.try_clone().unwrap();
    std::thread::spawn(move || std::io::copy(&mut asked, &mut std::io::sink()));
    let sending = std::thread::spawn(move || {
        let sent = (0..100).take_while(|_| frame.write(&mut other).is_ok());
        sent.count()
    });
    while connection.open(COORDINATOR, &WorkerRequest::Hello).is_ok() {
        assert!(!sending.is_finished(), "everything was taken");
        std::thread::yield_now();
    }
    let mut got = 0;
    while talk.receive().is_ok() {
        got += 1;
    }
    assert!((64..70).contains(&got), "{got} MiB wait");
    drop((talk, connection));
    assert!(sending.join().unwrap() < 100);
}

#[test]
fn a_conversation_that_is_dropped_ends_there_and_so_does_one_whose_machine_is_lost() {
    let stack = stack(Duration::ZERO);
    drop(opened(&stack.first, 2));
    stack.second_ended.recv().unwrap();
    // The first machine is lost: nothing on the second wants to know any more.
    let talk = opened(&stack.first, 2);
    let mut connections = stack.connections.into_iter();
    drop(connections.next());
    stack.second_ended.recv().unwrap();
    let lost = talk.receive().unwrap_err();
    assert_eq!(lost.why, "Lost the connection to the coordinator.");
    assert!(stack.first.open(2, &WorkerRequest::Hello).is_err());
}

#[test]
fn a_machine_that_is_lost_fails_what_was_under_way_and_may_come_back() {
    for patience in [Duration::ZERO, Duration::from_secs(60)] {
        let mut stack = stack(patience);
        let talk = opened(&stack.first, 2);
        drop(stack.connections.pop());
        let lost = talk.receive().unwrap_err();
        let why = "The coordinator closed the connection.";
        assert_eq!(lost.why, why);
        let peer = peer(&stack).host(silent(), CLEAN);
        // Told once, also to what asked nothing of it, and without a word to it.
        assert_eq!([peer.lost(), peer.lost()], [Some(why.to_owned()), None]);
        if patience.is_zero() {
            let error = peer.mounts().unwrap_err().to_string();
            assert_eq!(error, format!("node2: cannot be reached: {why}"));
            continue;
        }
        // Asked while it is away, answered when it is back.
        let mounts = std::thread::spawn(move || peer.mounts().map(|mounts| mounts.len()));
        let (duties, _ended) = idle();
        stack.connections.push(second(&stack.router, duties));
        assert!(mounts.join().unwrap().unwrap() > 0);
    }
}
