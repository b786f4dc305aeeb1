//! What the command line asks of a study.

use super::*;
use stackrace_drives::CARDS;

/// A place named beside a study is one more of its factors, however those are written.
#[test]
fn places_named_beside_a_study_are_a_factor_of_it() {
    let workload = "[[workload]]\nrandom = { block-size = \"4 KiB\", time = \"5 s\" }\n";
    let disk = "[[stack]]\nloop = { size = \"2 GiB\" }\n";
    let rest = format!("{disk}[[stack]]\next4 = {{}}\n{workload}");
    let used = format!(
        "{disk}[[stack]]\nwhen = {{ one = 1 }}\next4 = {{}}\n\
         [[stack]]\nwhen = {{ one = 2 }}\nxfs = {{}}\n{workload}"
    );
    for text in [
        rest,
        format!("[factors]\none = [1, 2] # a comment\n{used}"),
        format!("factors = {{ one = [1, 2] }}\n{used}"),
        format!("factors.one = [1, 2]\n{used}"),
        format!("[factors]\nsystem = [\"x\"]\none = [1, 2]\n{used}"),
    ] {
        let before = good(&text);
        let places = ["debian-12", "it's \"the\" \\ other"].map(str::to_owned);
        let after = good(&in_places(&text, SYSTEM, &places));
        let labels: Vec<String> = after
            .places()
            .unwrap()
            .levels
            .iter()
            .map(|l| l.label.clone())
            .collect();
        assert_eq!(labels, places, "{text}");
        let others = |study: &Study| -> Vec<Vec<String>> {
            let others = study.factors.iter().filter(|factor| factor.name != SYSTEM);
            others
                .map(|f| f.levels.iter().map(|l| l.label.clone()).collect())
                .collect()
        };
        assert_eq!(others(&after), others(&before), "{text}");
        let tried: Vec<_> = (0..after.configurations.len())
            .map(|t| after.place_of(t).unwrap())
            .collect();
        let half = after.configurations.len() / 2;
        for place in &places {
            assert_eq!(tried.iter().filter(|tried| *tried == place).count(), half);
        }
    }
}

const WORK: &str =
    "[[workload]]\nrandom = { mode = \"read\", size = \"64 MiB\", time = \"5 s\" }\n";

/// A drive that ships.
fn shipped(name: &str) -> AskedDrive {
    AskedDrive {
        name: name.to_owned(),
        own: None,
    }
}

/// A drive of the user's own: the card of one that ships, called otherwise.
fn own(name: &str) -> AskedDrive {
    let card = CARDS.iter().find(|card| card.contains("\"wd-wd30efrx\""));
    AskedDrive {
        name: name.to_owned(),
        own: Some(
            card.unwrap()
                .replace("\"wd-wd30efrx\"", &format!("{name:?}")),
        ),
    }
}

/// A study, read as the program reads it, with its disks on these drives.
fn driven(text: &str, drives: &[AskedDrive]) -> Result<Study, String> {
    let real = |text: &str| {
        parse("file.toml", text.as_bytes(), &Kinds::real()).map_err(|errors| all(&errors))
    };
    let study = real(text)?;
    match on_drives(&study, drives) {
        Ok(text) => real(&text),
        Err(refusal) => Err(study.refusal(refusal).render(false)),
    }
}

#[test]
fn a_drive_takes_the_place_of_a_file_or_of_an_emulated_disk_and_keeps_size_and_count() {
    for (disks, wanted) in [
        (
            "loop = { size = \"2 GiB\", directory = \"/x\", laid-out = \"written\" }",
            "{ model = \"aws-gp3\", size = \"2 GiB\" }",
        ),
        (
            "lab-disks = { count = 1, size = \"1 GiB\", rate = \"60 MB\", requests = 9, latency = \"1 ms\" }",
            "{ model = \"aws-gp3\", count = 1, size = \"1 GiB\" }",
        ),
        (
            "lab-disks = { size = \"1 GiB\", model = \"sata-ssd\", cache = \"off\" }",
            "{ model = \"aws-gp3\", size = \"1 GiB\", cache = \"off\" }",
        ),
    ] {
        let text = format!("title = \"?\"\n[[stack]]\n{disks}\n[[stack]]\next4 = {{}}\n{WORK}");
        let study = driven(&text, &[shipped("aws-gp3")]).unwrap();
        assert!(
            study.text.contains(&format!("lab-disks = {wanted}\n")),
            "{}",
            study.text
        );
        assert_eq!(study.configurations.len(), 1);
        assert_eq!(study.title, "? (on aws-gp3)");
        let question = study.question.unwrap();
        assert!(
            question.contains("models of aws-gp3, in virtual time"),
            "{question}"
        );
    }
}

#[test]
fn a_size_that_only_the_replaced_disks_used_is_left_out() {
    let size = |name: &str, value: &str| format!("{name} = {{ scaled = {value}, full = {value} }}");
    let (a, b, c) = (
        size("rate", "\"9 MB\""),
        size("disk", "\"1 GiB\""),
        size("requests", "9"),
    );
    let rest = format!(
        "[[stack]]\nlab-disks = {{ size = \"{{disk}}\", rate = \"{{rate}}\", requests = \"{{requests}}\" }}\n[[stack]]\next4 = {{}}\n{WORK}"
    );
    for sizes in [
        format!("sizes = {{ {a}, {b}, {c} }}\n"),
        format!("[sizes]\n{a}   # as measured\n{b}\n{c}\n"),
    ] {
        let study = driven(
            &format!("title = \"?\"\n{sizes}{rest}"),
            &[shipped("aws-gp3")],
        );
        let text = study.unwrap().text;
        assert!(
            text.contains("disk = {") && !text.contains("requests") && !text.contains("9 MB"),
            "{text}"
        );
    }
}

#[test]
fn several_drives_are_a_factor_beside_those_of_the_study() {
    let work = "mode = \"read\", size = \"64 MiB\", block-size";
    let text = GOOD.replace("block-size = \"{", &format!("{work} = \"{{"));
    let study = driven(&text, &[shipped("wd-wd30efrx"), shipped("sata-ssd")]).unwrap();
    let names: Vec<&str> = study
        .factors
        .iter()
        .map(|factor| factor.name.as_str())
        .collect();
    assert_eq!(names, ["filesystem", "block-size", "drive"]);
    assert_eq!(study.configurations.len(), 6);
    assert_eq!(study.decide.comparison.as_deref(), Some("filesystem"));
    let told = study.question.unwrap();
    assert!(told.contains("wd-wd30efrx and of sata-ssd"), "{told}");
}

#[test]
fn a_card_of_the_users_own_is_in_the_study_and_bears_no_name_of_another() {
    let text = format!(
        "title = \"?\"\n[[stack]]\nloop = {{ size = \"1 GiB\" }}\n[[stack]]\next4 = {{}}\n{WORK}"
    );
    let told = |study: &Study, at: usize| study.configurations[at].stack.layers[0].describe_asked();
    let one = driven(&text, &[own("mine")]).unwrap();
    assert_eq!(
        told(&one, 0),
        "1 disk of the lab, 1 GiB of a modelled mine (own card)"
    );
    let two = driven(&text, &[own("mine"), shipped("wd-wd30efrx")]).unwrap();
    assert_eq!(two.configurations[0].name, "mine");
    assert_eq!(told(&two, 0), told(&one, 0));
    assert_eq!(
        told(&two, 1),
        "1 disk of the lab, 1 GiB of a modelled wd-wd30efrx"
    );
    let refused = |drive: AskedDrive| driven(&text, &[drive]).err().unwrap_or_default();
    assert!(refused(own("sata-ssd")).contains("a card that ships is called sata-ssd already"));
    assert!(refused(own("My Disk")).contains("no drive is called"));
    let broken = AskedDrive {
        own: Some("kind = \"disk\"\nmodel = \"mine\"\n".to_owned()),
        ..own("mine")
    };
    assert!(refused(broken).contains("this text is no card of a drive"));
}

#[test]
fn a_study_without_disks_or_with_drives_of_its_own_is_refused_at_its_place() {
    let refused =
        |text: &str, drives: &[AskedDrive]| driven(text, drives).err().unwrap_or_default();
    let of = |stack: &str| format!("title = \"?\"\n{stack}{WORK}");
    let without = refused(
        &of("[[stack]]\ndir = { path = \"/x\" }\n"),
        &[shipped("aws-gp3")],
    );
    assert!(
        without.contains("no layer of this study is a disk"),
        "{without}"
    );
    assert!(without.contains("file.toml:2:"), "{without}");
    let two = of("[factors]\nof = [1, 2]\n\
         [[stack]]\nwhen = { of = 1 }\nlab-disks = { model = \"aws-gp3\", size = \"1 GiB\" }\n\
         [[stack]]\nwhen = { of = 2 }\nlab-disks = { model = \"sata-ssd\", size = \"1 GiB\" }\n\
         [[stack]]\next4 = {}\n");
    assert!(refused(&two, &[shipped("wd-wd30efrx")]).contains("compares drives itself"));
    let own = of("[factors]\ndrive = [\"ext4\", \"xfs\"]\n\
         [[stack]]\nloop = { size = \"1 GiB\" }\n[[stack]]\n\"{drive}\" = {}\n");
    assert!(driven(&own, &[shipped("aws-gp3")]).is_ok());
    assert!(
        refused(&own, &[shipped("aws-gp3"), shipped("sata-ssd")]).contains("and the study has one")
    );
    let header = of("[[stack]]\nloop.size = \"1 GiB\"\n[[stack]]\next4 = {}\n");
    assert!(refused(&header, &[shipped("aws-gp3")]).contains("one pair of braces"));
}

#[test]
fn the_studies_that_ship_run_on_another_drive_or_say_why_not() {
    for (name, text) in SHIPPED {
        // What is left out of a program cannot be asked for.
        if left_out(text).is_some() {
            continue;
        }
        let said = driven(text, &[shipped("seagate-st16000nm001g")]).err();
        let wanted = match *name {
            "demo" => Some("no layer of this study is a disk"),
            "cloud-volume" | "full-and-old" | "scheduler" | "smr-or-cmr" => {
                Some("compares drives itself")
            }
            _ => None,
        };
        match (said, wanted) {
            (Some(said), Some(wanted)) => assert!(said.contains(wanted), "{name}: {said}"),
            (said, wanted) => assert_eq!(said.as_deref(), wanted, "{name}"),
        }
    }
}

/// Systems of one machine, started one after the other: a run for each, compared later.
#[test]
fn a_comparison_of_hosts_may_have_one_host() {
    let text = GOOD.replacen("[factors]", "[factors]\nhost = [\"here\"]", 1);
    let text = text.replacen("compare = \"filesystem\"", "compare = \"host\"", 1);
    assert_eq!(good(&text).places().unwrap().levels.len(), 1);
}
