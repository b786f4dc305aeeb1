//! Job files of fio in the text of a study.

use super::super::design::Kinds;
use super::super::{parse, with_jobs};

const STACK: &str = "[factors]\nn = [1, 2]\n[[stack]]\ndir = { path = \"/srv/{n}\" }\n";

/// The text of a study of these workloads with its job files.
fn whole(workloads: &str) -> Result<String, String> {
    let text = format!("{STACK}{workloads}");
    let read = |file: &str| match file {
        "a.fio" => Ok("[x]\nrw=randread\nsize=1m\ndescription={}\"\n".to_owned()),
        "bad.fio" => Ok("[x]\nfilename=/dev/sda\n".to_owned()),
        _ => Err(("it is missing".to_owned(), "name another".to_owned())),
    };
    let bytes = with_jobs("s.toml", text.into_bytes(), &read);
    bytes
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .map_err(|error| error.render(false))
}

#[test]
fn a_job_file_becomes_part_of_the_study_however_it_is_written() {
    for workloads in [
        "[[workload]]\nfio = { job = \"a.fio\" }\n",
        "[[workload]]\nfio = { job = \"a.fio\", time-limit = \"1 min\" }\n",
        "[[workload]]\nfio.job = \"a.fio\"\nname = \"w\"\n",
        "[[workload]]\nname = \"w\"\n[workload.fio]\njob = \"a.fio\"\ndisk = \"1 MiB\"\n",
        "[[workload]]\nname = \"v\"\nfio = { job = \"a.fio\" }\n[[workload]]\nname = \"w\"\nfio = { job = 'a.fio' }\n",
    ] {
        let text = whole(workloads).unwrap();
        let study = parse("s.toml", text.as_bytes(), &Kinds::real());
        let study = study.unwrap_or_else(|errors| panic!("{}", errors[0].render(false)));
        for workload in &study.configurations[0].workloads {
            assert_eq!(workload.metrics()[0].name, "operations", "{workloads}");
        }
        // Once it has its jobs, there is nothing to be read.
        let again = with_jobs("s.toml", text.clone().into_bytes(), &|_| {
            panic!("read again")
        });
        assert_eq!(again.unwrap(), text.into_bytes());
    }
}

#[test]
fn a_job_with_commands_is_resumed_with_permission_for_them() {
    let head = |options: &str| {
        let job = format!("[x]\\nrw=randread\\nsize=1m\\n{options}");
        let text = whole("[[workload]]\nfio = { job = \"a.fio\" }\n").unwrap();
        let text = text.replace("[x]\\nrw=randread\\nsize=1m\\n", &job);
        let text = text.replace("[x]\nrw=randread\nsize=1m\n", &job.replace("\\n", "\n"));
        let study = parse("s.toml", text.as_bytes(), &Kinds::real());
        let study = study.unwrap_or_else(|errors| panic!("{}", errors[0].render(false)));
        study.workload_heads[0].gives_commands
    };
    assert!(!head(""));
    assert!(head("exec_prerun=true\\n"));
}

#[test]
fn what_is_wrong_with_a_job_file_is_told_where_the_study_names_it() {
    let missing = whole("[[workload]]\nfio = { job = \"none.fio\" }\n").unwrap_err();
    assert!(
        missing.contains("it is missing") && missing.contains("s.toml:6"),
        "{missing}"
    );
    let varied = whole("[[workload]]\nfio = { job = \"{n}.fio\" }\n").unwrap_err();
    assert!(varied.contains("a factor cannot vary it"), "{varied}");
    let bad = whole("[[workload]]\nfio = { job = \"bad.fio\" }\n").unwrap();
    let errors = parse("s.toml", bad.as_bytes(), &Kinds::real())
        .err()
        .unwrap();
    let said = errors[0].render(false);
    assert!(said.contains("bad.fio:2: filename=/dev/sda"), "{said}");
    assert!(said.contains("s.toml:6"), "{said}");
}
