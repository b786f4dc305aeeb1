//! Clients that a scheduler starts: a real Slurm of four nodes on this machine, and Open MPI.

use super::clients::{SHARED, each_of_trials, went_on};
use super::*;

/// A controller and four nodes, each a process of this test.
struct Slurm(Vec<Child>);

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in &mut self.0 {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Slurm {
    /// Starts one. Skips the test where it is not installed, or cannot know its users.
    #[expect(
        clippy::disallowed_methods,
        reason = "what is measured through is a process"
    )]
    fn start(ground: &Ground) -> Self {
        needs::root();
        for daemon in ["/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/srun"] {
            if !Path::new(daemon).exists() {
                needs::skip("needs Slurm (apt install slurmctld slurmd slurm-client munge)");
            }
        }
        if !Path::new("/run/munge/munge.socket.2").exists() {
            needs::skip("needs munge, which knows Slurm's users (service munge start)");
        }
        let here = ground.path().to_str().unwrap();
        let host = tool("hostname", &["-s"]);
        let host = host.trim();
        let ports: Vec<String> = (0..5).map(|_| free_port().to_string()).collect();
        let nodes = (1..=4).map(|node| {
            let port = &ports[node];
            format!("NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1\n")
        });
        let nodes: String = nodes.collect();
        ground.make_dir("slurm");
        ground.write(
            "slurm.conf",
            format!(
                "ClusterName=t\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nAuthType=auth/munge\n\
                 StateSaveLocation={here}/slurm\nSlurmdSpoolDir={here}/slurm/%n\n\
                 SlurmctldPidFile={here}/slurm/ctld.pid\nSlurmdPidFile={here}/slurm/%n.pid\n\
                 ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
                 MpiDefault=none\nSlurmctldPort={}\n{nodes}\
                 PartitionName=p Nodes=n[1-4] Default=YES State=UP OverSubscribe=YES\n",
                ports[0]
            ),
        );
        let configuration = format!("{here}/slurm.conf");
        let start = |words: &[&str]| {
            let log = fs::File::create(ground.path().join(format!("{}.log", words.len()))).unwrap();
            Command::new(format!("/usr/sbin/{}", words[0]))
                .args(&words[1..])
                .args(["-D", "-f", &configuration])
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn()
                .unwrap()
        };
        let mut daemons = vec![start(&["slurmctld"])];
        for node in ["n1", "n2", "n3", "n4"] {
            daemons.push(start(&["slurmd", "-N", node]));
        }
        let slurm = Self(daemons);
        until(|| {
            let mut sinfo = Command::new("sinfo");
            let said = sinfo
                .args(["-h", "-o", "%t %D"])
                .env("SLURM_CONF", &configuration);
            let said = said.output().unwrap();
            String::from_utf8_lossy(&said.stdout).trim() == "idle 4"
        });
        slurm
    }
}

/// Two directories of the ground, and the study of them.
fn with_shared_directories() -> Ground {
    let ground = Ground::new();
    for name in ["here", "there", "home"] {
        ground.make_dir(name);
    }
    let study = SHARED.replace("GROUND", ground.path().to_str().unwrap());
    ground.write("study.toml", study);
    ground
}

/// The program, which copies itself into this ground: its clients have the home of this machine.
fn at_home(ground: &Ground, words: &[&str]) -> Command {
    let mut program = ground.program(words);
    for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME"] {
        program.env(name, ground.path().join("home"));
    }
    program
}

/// The program within an allocation of all four nodes, which it keeps if one of them fails.
#[expect(
    clippy::disallowed_methods,
    reason = "what is measured through is a process"
)]
fn in_allocation(ground: &Ground, words: &[&str]) -> Command {
    // The environment of the ground's program, under salloc.
    let program = at_home(ground, words);
    let mut salloc = Command::new("salloc");
    let own = env!("CARGO_BIN_EXE_stackrace");
    salloc.args(["-N4", "-Q", "--no-kill", own]);
    salloc.args(program.get_args());
    for (name, value) in program.get_envs() {
        value.map(|value| salloc.env(name, value));
    }
    if let Some(directory) = program.get_current_dir() {
        salloc.current_dir(directory);
    }
    salloc.env("SLURM_CONF", ground.path().join("slurm.conf"));
    salloc
}

#[expect(clippy::disallowed_methods, reason = "Slurm's tools are processes")]
pub(crate) fn a_drained_node_goes_on_and_one_that_goes_down_ends_the_run_by_name() {
    let ground = with_shared_directories();
    let _slurm = Slurm::start(&ground);
    let set = |state: &str| {
        let mut scontrol = Command::new("scontrol");
        let state = format!("state={state}");
        let words = ["update", "nodename=n3", &state, "reason=test"];
        let done = scontrol
            .args(words)
            .env("SLURM_CONF", ground.path().join("slurm.conf"))
            .status();
        assert!(done.unwrap().success(), "{state}");
    };
    let words = ["run", "study.toml", "--rounds", "1000", "--clients", "srun"];
    let mut command = in_allocation(&ground, &words);
    let out = fs::File::create(ground.path().join("out")).unwrap();
    command.stderr(out.try_clone().unwrap()).stdout(out);
    let mut running = command.spawn().unwrap();
    let mut measured = |at_least: usize| {
        until(|| {
            assert_eq!(running.try_wait().unwrap(), None, "it has ended");
            of_kind(&log(&ground), "trial").len() >= at_least
        });
    };
    measured(2);
    set("drain");
    // What runs on a drained node goes on.
    let drained = of_kind(&log(&ground), "trial").len();
    measured(drained + 3);
    set("down");
    assert!(!running.wait().unwrap().success());
    let before = log(&ground);
    let ended = of_kind(&before, "run-ended")[0];
    assert_eq!(ended["reason"], "failed", "{ended}");
    let detail = ended["detail"].as_str().unwrap();
    assert!(detail.contains("n3"), "{detail}");
    for trial in of_kind(&before, "trial") {
        let state = &trial["ended"]["state"];
        assert!(state == "complete" || trial["clients"].is_null(), "{trial}");
    }
    set("resume");
    let resumed = in_allocation(&ground, &["resume", "--rounds", "1"]).output();
    Said::of(&resumed.unwrap()).ended(0);
    went_on(&ground, &before);
}

pub(crate) fn nodes_of_a_slurm_allocation_are_clients() {
    let ground = with_shared_directories();
    let _slurm = Slurm::start(&ground);
    let configuration = ground.path().join("slurm.conf");
    let outside = Said::of(
        &at_home(&ground, &["run", "study.toml", "--clients", "srun"])
            .env("SLURM_CONF", &configuration)
            .env_remove("SLURM_JOB_NODELIST")
            .output()
            .unwrap(),
    );
    outside.ended(3).err_has("not inside a Slurm allocation");
    let inside = |words: &[&str]| Said::of(&in_allocation(&ground, words).output().unwrap());
    let planned = inside(&["plan", "study.toml", "--clients", "srun"]);
    planned.ended(0);
    for node in ["n1", "n2", "n3", "n4"] {
        assert!(
            planned.out.contains(&format!("--nodelist={node}")),
            "{}",
            planned.out
        );
    }
    inside(&["run", "study.toml", "--clients", "srun"]).ended(0);
    each_of_trials(&ground, 4);
    let many = fs::read_to_string(ground.path().join("study.toml")).unwrap();
    ground.write(
        "many.toml",
        many.replace("place = [", "clients = [1, 5]\nplace = ["),
    );
    inside(&["run", "many.toml", "--clients", "srun"])
        .ended(2)
        .err_has("needs 5 clients; --clients names 4");
}

pub(crate) fn hosts_of_a_host_file_are_clients_of_open_mpi() {
    let ground = with_shared_directories();
    if !Path::new("/usr/bin/mpirun").exists() {
        needs::skip("needs Open MPI (apt install openmpi-bin)");
    }
    let host = tool("hostname", &[]);
    ground.write("hosts", format!("{}\nlocalhost slots=2\n", host.trim()));
    let said = at_home(&ground, &["run", "study.toml", "--clients", "mpirun:hosts"])
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .unwrap();
    Said::of(&said).ended(0);
    each_of_trials(&ground, 2);
}
