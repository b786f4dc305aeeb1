//! Jobs read, and refused, before fio is given them.

use super::job::FioJob;

/// Names and directions of the jobs that the report of a job has.
fn reported(text: &str) -> Vec<(String, Vec<&'static str>)> {
    let job = FioJob::read(text).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    let jobs = job.reported.into_iter();
    jobs.map(|one| (one.name, one.directions)).collect()
}

#[test]
fn the_jobs_of_a_report_are_known_before_fio_runs() {
    let text = "; a comment\n[global]\nsize=1m\nrw=randread # inherited\n[one]\nnumjobs=2\n[two]\nname = called\nstonewall\nreadwrite=randrw:2\n";
    let one = || ("one".to_owned(), vec!["read"]);
    assert_eq!(
        reported(text),
        [one(), one(), ("called".to_owned(), vec!["read", "write"])]
    );
    let grouped =
        "[global]\ngroup_reporting\nnumjobs=$ncpus\n[a]\nrw=write\n[b]\nrw=read\n[c]\nnew_group\n";
    assert_eq!(
        reported(grouped),
        [
            ("a".to_owned(), vec!["read", "write"]),
            ("c".to_owned(), vec!["read"])
        ]
    );
    // A later [global] adds to the earlier one, and [globals] is one.
    let later = "[global]\nrw=write\n[a]\n[globals]\nverify=md5\n[b]\n[c]\nstats=0\n";
    assert_eq!(
        reported(later),
        [
            ("a".to_owned(), vec!["write"]),
            ("b".to_owned(), vec!["read", "write"])
        ]
    );
}

#[test]
fn the_room_of_a_job_is_what_its_sizes_say() {
    let bytes = |text: &str| FioJob::read(text).unwrap().bytes;
    assert_eq!(
        bytes("[a]\nsize=1m\nnumjobs=4\n[b]\nsize=4k\n"),
        (4 << 20) + 4096
    );
    assert_eq!(bytes("[a]\nsize=1m\nnumjobs=4\nfilename=one\n"), 1 << 20);
    assert_eq!(bytes("[a]\nsize=50%\n"), 0);
}

/// Line and reason of the first fault of a job with these options.
fn refused(options: &str) -> Option<(usize, String)> {
    let text = format!("[global]\nsize=1m\n[x]\nrw=write\n{options}\n");
    let faults = FioJob::read(&text).err()?;
    assert!(faults.iter().all(|fault| !fault.next.is_empty()));
    faults
        .into_iter()
        .next()
        .map(|fault| (fault.line, fault.what))
}

#[test]
fn a_job_that_names_a_place_elsewhere_is_refused_with_its_line() {
    for options in [
        "filename=/dev/sda",
        "filename=a:/dev/sda",
        "filename=a\\:/dev/sda",
        "filename = \"/dev/sda\"",
        "FILENAME=/dev/sda",
        "--filename=/dev/sda",
        "filename=x#/dev/sda:/dev/sdb",
        "filename=../x",
        "filename=a/../../x",
        "filename=-",
        "filename=~/x",
        "directory=/tmp",
        "directory=.:/tmp",
        "directory=..",
        "directory=sub",
        "directory=.:sub",
        "filename_format=/tmp/$jobname.$jobnum",
        "filename_format=../$jobname",
        "opendir=.",
        "write_bw_log=/tmp/log",
        "write_lat_log=../log",
        "write_iops_log=/tmp/log",
        "write_hist_log=/tmp/log",
        "read_iolog=/etc/passwd",
        "write_iolog=/tmp/io",
        "replay_redirect=/dev/sda",
        "merge_blktrace_file=/tmp/m",
        "aux-path=/tmp",
        "mem=mmaphuge:/mnt/huge/file",
        "iomem=mmapshared:/tmp/file",
        "buffer_pattern='/etc/shadow'",
        "verify_pattern=0xff\"a\"'/etc/shadow'",
        "name=../../x",
        "ioengine=external:/tmp/engine.so",
        "ioengine=/tmp/engine.so",
        "ioengine=net",
        "ioengine=rdma",
        "ioengine=libblkio",
        "ioengine=exec",
        "ioengine=sg",
        "ioengine=rbd",
        "include other.fio",
        "include /etc/x",
        "fill_device=1",
        "fill_fs",
        "ioscheduler=none",
        "cgroup=x",
        "daemonize=/tmp/pid",
        "server=tcp",
        "client=host",
        "filename=${DISK}",
        "an_option_of_next_year=/etc/x",
    ] {
        let (line, what) = refused(options).unwrap_or_else(|| panic!("{options} is taken"));
        assert_eq!(line, 5, "{options}: {what}");
    }
    assert!(FioJob::read("[../../x]\nrw=write\n").is_err());
    assert!(FioJob::read("[/dev/sda]\nrw=write\n").is_err());
    assert_eq!(FioJob::read("rw=write\n[x]\n").unwrap_err()[0].line, 1);
}

#[test]
fn a_job_that_stays_in_its_directory_is_fios_business() {
    for options in [
        "filename=a:b",
        "filename=sub/a ; not /dev/sda",
        "directory=.",
        "directory=./",
        "write_bw_log=log",
        "write_bw_log",
        "buffer_pattern=0xdeadface\"abcd\"-12'pattern'",
        "mem=mmaphuge",
        "ioengine=io_uring",
        "fill_device=0",
        "an_option_of_next_year=x",
        "bssplit=4k/60:64k/40",
        "random_distribution=zoned:50/5:30/15:20/",
        "description=/dev/sda",
        "verify=crc32c",
        "bs=2300",
        "create_on_open=1",
    ] {
        assert_eq!(refused(options), None, "{options}");
    }
}

#[test]
fn commands_are_told_and_no_name_adds_one() {
    let commands = "exec_prerun=rm -rf a # b\nexec_postrun=true\n";
    let job = FioJob::read(&format!("[global]\n{commands}[x]\nrw=read\n")).unwrap();
    assert_eq!(job.commands, ["rm -rf a # b", "true"]);
    for name in ["[x; id]\n", "[x]\nname=$(id)\n", "[x]\nname=a b\n"] {
        let text = format!("[global]\n{commands}{name}");
        let faults = FioJob::read(&text).unwrap_err();
        assert_eq!(faults[0].line, 4, "{name}");
        FioJob::read(name).unwrap();
    }
}

/// fio reads the rest of a long line as a line of its own.
#[test]
fn nothing_hides_behind_a_comment_that_is_longer_than_fio_reads() {
    let comment = format!(";{}exec_prerun=touch owned", "A".repeat(8190));
    let (line, why) = refused(&format!("size=1m\n{comment}")).unwrap();
    assert_eq!(line, 6);
    assert!(why.contains("longer than fio reads"), "{why}");
}
