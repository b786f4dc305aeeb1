//! Two runs in the same directories at the same time, also on another machine, and where one goes on.

use super::*;

/// Two directories, for as long as a test needs.
fn study_of(ground: &Ground, rounds: u32, shell: bool) {
    let here = ground.path().to_str().unwrap();
    let text = match shell {
        false => DIRECTORIES.to_owned(),
        true => DIRECTORIES.replace(
            "files = { count = 5 }",
            "[workload.command]\nrun = \"echo x > f && sleep 1.1\"",
        ),
    };
    let text = text.replace("GROUND", here);
    let text = text.replace("most = 1\n", &format!("most = {rounds}\n"));
    ground.write(&format!("{rounds}.toml"), text);
}

/// Each way to measure on this machine as another one, with the options that every command needs.
fn ways(ground: &Ground, server: &Server) -> [Vec<String>; 3] {
    let to = server.to();
    let clients = know_clients(ground, server, 2);
    [
        vec!["--on".into(), to.clone()],
        vec!["--clients".into(), clients],
        vec!["--on".into(), to, "--agent".into(), "none".into()],
    ]
}

/// A way to measure, with a store for each study: another user has one, too.
struct Asked<'a> {
    ground: &'a Ground,
    way: &'a [String],
    shell: bool,
    at: usize,
}

impl Asked<'_> {
    fn store(&self, rounds: u32) -> String {
        format!("{rounds}-{}", self.at)
    }

    /// The program that runs the study of so many rounds.
    fn run(&self, rounds: u32, more: &[&str]) -> Command {
        let (study, store) = (format!("{rounds}.toml"), self.store(rounds));
        let mut words = vec!["run", &study, "--store", &store];
        words.extend(self.way.iter().map(String::as_str));
        words.extend(more);
        if self.shell {
            words.push("--allow-commands");
        }
        program(self.ground, &words)
    }

    fn again(&self, more: &[&str]) -> Said {
        Said::of(&self.run(1, more).output().unwrap())
    }

    /// What runs have in the directories, but for a look at whether clients share them.
    fn private(&self) -> usize {
        let places = ["here", "there"].map(|name| self.ground.path().join(name));
        let names = places.iter().flat_map(|place| fs::read_dir(place).unwrap());
        let names = names.map(|name| name.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.contains("-mark-")).count()
    }
}

pub(super) fn two_runs_in_the_same_directories_on_another_machine_are_refused() {
    let (ground, server) = with_directories();
    for (at, way) in ways(&ground, &server).iter().enumerate() {
        let shell = way.contains(&"--agent".to_owned());
        let asked = Asked {
            ground: &ground,
            way,
            shell,
            at,
        };
        study_of(&ground, 1, shell);
        study_of(&ground, 1000, shell);
        let mut first = asked.run(1000, &[]);
        let first = first.stdout(Stdio::null()).stderr(Stdio::null());
        let mut first = first.spawn().unwrap();
        until(|| {
            assert_eq!(first.try_wait().unwrap(), None, "{way:?}");
            asked.private() > 0
        });
        let told = "another run of stackrace measures in";
        let refused = asked.again(&[]);
        let refused = refused.ended(3).err_has(told);
        refused.err_has("127.0.0.1").err_has("--anyway");
        asked.again(&["--anyway"]).ended(0);
        let runs = fs::read_dir(ground.path().join(asked.store(1)).join("runs"));
        let run = runs.unwrap().flatten().next().unwrap().path();
        let log = fs::read_to_string(run.join("log.jsonl")).unwrap();
        assert!(log.contains(told), "{way:?}: it is kept with the result");
        signal(i32::try_from(first.id()).unwrap(), Signal::INT);
        first.wait().unwrap();
        // It is free again, and nothing is left.
        asked.again(&[]).ended(0);
        assert_eq!(asked.private(), 0, "{way:?}");
    }
}
