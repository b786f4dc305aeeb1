//! `stackrace fio` as the real program, and beside the real fio: the same jobs do the same number of
//! operations on files of the same names and sizes.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[expect(
    dead_code,
    reason = "what other tests are pointed at is not needed here"
)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;
use stackrace_test_needs as needs;
use support::{Ground, Said};

/// The program in a directory of its own.
fn stackrace(ground: &Ground, words: &[&str]) -> Said {
    let mut command = ground.program(&[]);
    command.arg("fio").args(words);
    Said::of(&command.output().unwrap())
}

/// What the original prints in a directory. Skips the test where it is not installed.
fn original(at: &Path, words: &[&str]) -> String {
    let fio = needs::tool("fio");
    #[expect(clippy::disallowed_methods, reason = "the original is a process")]
    let output = Command::new(fio)
        .args(words)
        .current_dir(at)
        .output()
        .unwrap();
    let said = Said::of(&output);
    said.ended(0);
    said.out
}

/// Names and sizes of all files below a directory, but for those in which fio keeps how far it
/// verified.
fn files(below: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(name, bytes)| {
                (
                    format!("{}/{name}", path.file_name().unwrap().to_str().unwrap()),
                    bytes,
                )
            }));
        } else {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            found.insert(name, fs::metadata(&path).unwrap().len());
        }
    }
    found.retain(|name, _| !name.ends_with("-verify.state"));
    found
}

/// Of each job: its name, its group, and operations and bytes; a mixed job's are added up, because
/// fio draws each of its operations.
fn done(json: &str) -> Vec<(String, u64, Vec<u64>)> {
    let document: Value = serde_json::from_str(&json[json.find('{').unwrap()..]).unwrap();
    let of = |job: &Value| {
        let figure = |direction: &str, name: &str| job[direction][name].as_u64().unwrap();
        let options = [&document["global options"], &job["job options"]];
        let mode = options.iter().rev().find_map(|it| it["rw"].as_str());
        let mixed = mode.is_some_and(|mode| mode.ends_with("rw"));
        let pair = |name| [figure("read", name), figure("write", name)];
        let figures = ["total_ios", "io_bytes"].map(pair);
        let figures = figures.map(|[read, write]| match mixed {
            true => vec![read + write],
            false => vec![read, write],
        });
        let name = job["jobname"].as_str().unwrap().to_owned();
        (name, job["groupid"].as_u64().unwrap(), figures.concat())
    };
    document["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(of)
        .collect()
}

/// Job files in which the number of operations follows from what is asked.
const JOBS: [(&str, &str); 9] = [
    (
        "clones with several files each",
        "[global]\nsize=1m\nbs=4k\n[one]\nrw=randrw\nnumjobs=2\nnrfiles=2\nfsync=8\n\
         [two]\nstonewall\nrw=write\ngroup_reporting\nnumjobs=2\nend_fsync=1\n",
    ),
    (
        "later globals add to those before",
        "; a comment\n[global]\nsize=256k\nbs=8k\n[x]\nrw=write # and another\nio_size=128k\n\
         fallocate=none\n[global]\nbs=16k\n[y]\nrw=randread\nbs=32k\n[z]\nrw=write\n",
    ),
    (
        "sizes that do not divide",
        "[a]\nrw=randread\nsize=1001k\nbs=16k\n[b]\nrw=write\nsize=100k\nnrfiles=3\n\
         file_service_type=sequential\n",
    ),
    (
        "passes, shares and limits",
        "[global]\nsize=512k\n[a]\nrw=randread\nloops=3\n[b]\nrw=randwrite\nnumber_ios=5\n\
         [c]\nrw=read\nio_size=50%\n[d]\nrw=write\nio_size=1m\n[e]\nrw=randread\nio_size=10k\n",
    ),
    (
        "distributions and repeats",
        "[global]\nsize=256k\nrw=randread\n[a]\nnorandommap\n[b]\nrandom_distribution=zipf:1.2\n\
         [c]\nrandom_distribution=pareto:0.2\n[d]\nrandom_distribution=normal:20\n",
    ),
    (
        "written and read back",
        "[global]\nsize=256k\nverify=crc32c\n[a]\nrw=write\n[b]\nrw=randwrite\nbs=8k\n\
         [c]\nrw=randwrite\ndo_verify=0\n",
    ),
    (
        "names of files",
        "[global]\nsize=64k\nrw=write\nfile_service_type=sequential\n[a]\nfilename=p:q\\:r\n\
         [b]\nfilename_format=$jobname-$filenum-of-$jobnum\nnumjobs=2\nnrfiles=2\n\
         [c]\nname=renamed\n[d]\nfilesize=32k\nnrfiles=2\nsize=128k\n",
    ),
    (
        "sizes of reads and of writes, and sizes with other units",
        "[global]\nbs=4k,8k\n[a]\nrw=read\nsize=64k\n[b]\nrw=write\nsize=0x10000\n\
         [c]\nrw=write\nkb_base=1024\nsize=64k\nbs=4k\n[d]\nrw=read\nreadwrite=write\nsize=40kB\n",
    ),
    (
        "queues, and what is left on disk",
        "[global]\nsize=256k\nrw=randwrite\nbs=4k\nfallocate=truncate\n[a]\nioengine=libaio\n\
         iodepth=16\ndirect=1\n[b]\nioengine=psync\nbuffered=0\n[c]\nunlink=1\n[d]\noverwrite=1\n",
    ),
];

fn the_same_jobs_do_the_same_as_in_the_original() {
    for (what, text) in JOBS {
        let words = ["--output-format=json", "../jobs.fio"];
        let (ours, theirs) = (Ground::new(), Ground::new());
        for ground in [&ours, &theirs] {
            ground.make_dir("data");
            ground.write("jobs.fio", text);
        }
        let expected = original(&theirs.path().join("data"), &words);
        let mut command = ours.program(&[]);
        command.arg("fio").args(words);
        command.current_dir(ours.path().join("data"));
        let run = Said::of(&command.output().unwrap());
        run.ended(0);
        assert_eq!(
            done(&run.out),
            done(&expected),
            "{what}: operations and bytes"
        );
        assert_eq!(
            files(&ours.path().join("data")),
            files(&theirs.path().join("data")),
            "{what}: names and sizes"
        );
    }
}

/// Old scripts without a job file, in either way options are written.
fn a_command_line_does_the_same_as_in_the_original() {
    for words in [
        "--name=x --rw=randread --bs=4k --size=1m --directory=data",
        "-directory=data -rw=write -size=1m -bs 8k -thread -name=x -numjobs 2",
        "--directory=data --size=64k --name=x --bs=8k --rw=write --name=y --size=32k",
        "--name=global --size=64k --directory=data --name=x --rw=write --name=y --rw=randread",
        "--directory=data:more --rw=write --size=64k --name=x --numjobs=3",
        "--rw=randwrite --size=64k --name=x --filename=data/f --name=y --filename=data/g --size=8k",
    ] {
        let words: Vec<&str> = ["--output-format=json"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        let (ours, theirs) = (Ground::new(), Ground::new());
        for ground in [&ours, &theirs] {
            ground.make_dir("data");
            ground.make_dir("more");
        }
        let expected = original(theirs.path(), &words);
        let run = stackrace(&ours, &words);
        run.ended(0);
        assert_eq!(done(&run.out), done(&expected), "{words:?}");
        assert_eq!(files(ours.path()), files(theirs.path()), "{words:?}");
    }
}

/// What was asked of time is kept, however small the data.
fn a_job_based_on_time_uses_all_of_it() {
    let ground = Ground::new();
    let run = stackrace(
        &ground,
        &[
            "--output-format=json",
            "--name=x",
            "--rw=randread",
            "--size=64k",
            "--time_based",
            "--runtime=300ms",
        ],
    );
    run.ended(0);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    let read = &document["jobs"][0]["read"];
    assert!(read["runtime"].as_f64().unwrap() >= 300.0, "{}", run.out);
    assert!(read["total_ios"].as_u64().unwrap() > 16, "{}", run.out);
}

/// What would harm existing data is refused, and nothing is touched.
fn what_only_is_read_is_never_written_to() {
    let ground = Ground::new();
    let file = ground.write("mine", "x".repeat(8192));
    let read = ["--name=x", "--filename=mine", "--rw=read"];
    stackrace(&ground, &read).ended(0);
    let longer = [&read[..], &["--size=64k"]].concat();
    stackrace(&ground, &longer)
        .ended(1)
        .err_has("mine holds 8192 bytes, and 65536 are to be used");
    let written = ["--readonly", "--name=x", "--filename=mine", "--rw=write"];
    stackrace(&ground, &written)
        .ended(1)
        .err_has("--readonly forbids it");
    let laid_out = ["--readonly", "--name=y", "--rw=read", "--size=64k"];
    stackrace(&ground, &laid_out).ended(1);
    assert_eq!(fs::read_to_string(file).unwrap(), "x".repeat(8192));
    assert_eq!(files(ground.path()).len(), 1);
}

fn a_block_device_is_never_written_to() {
    let readable = ["/dev/vda", "/dev/sda", "/dev/loop0"]
        .into_iter()
        .find(|it| fs::File::open(it).is_ok());
    let Some(device) = readable else {
        needs::skip("needs a block device that may be read");
    };
    let ground = Ground::new();
    let words = ["--name=x", "--rw=randwrite", "--size=4k", "--filename"];
    stackrace(&ground, &[&words[..], &[device]].concat())
        .ended(1)
        .err_has("a block device is not written to");
}

/// The report goes where it is asked for, in both layouts, and `import` reads them as one run.
fn a_report_of_both_layouts_can_be_imported() {
    let ground = Ground::new();
    ground.write(
        "j.fio",
        "[x]\nrw=randwrite\nsize=256k\nfsync=4\nrate_iops=1000\n",
    );
    let run = stackrace(
        &ground,
        &["--output=o.txt", "--output-format=normal,json", "j.fio"],
    );
    run.ended(0);
    assert_eq!(run.out, "");
    ground
        .stackrace(&["import", "--as", "fio", "o.txt"])
        .ended(0);
}

/// The most used program that draws fio's results draws ours: queue depths side by side, in three
/// dimensions, and the distribution of latencies.
#[expect(
    clippy::disallowed_methods,
    reason = "`.ci/run` says where the program is, and the program is a process"
)]
fn fio_plot_draws_what_is_reported() {
    let plotter = match std::env::var_os("STACKRACE_FIO_PLOT") {
        Some(path) => path.into(),
        None => needs::tool("fio-plot"),
    };
    let ground = Ground::new();
    for depth in ["1", "4"] {
        let words = format!(
            "--name=r --rw=randread --bs=4k --size=1m --numjobs=2 --group_reporting --iodepth={depth} \
             --ioengine=io_uring --time_based --runtime=1200ms --output-format=json+ --output=q{depth}.json"
        );
        stackrace(&ground, &words.split(' ').collect::<Vec<_>>()).ended(0);
    }
    for (name, kind) in [
        ("depths", "-l"),
        ("both", "-L -t iops"),
        ("latencies", "-H -d 4 -n 2"),
    ] {
        let numjobs = if name == "depths" { " -n 2" } else { "" };
        let words = format!("-i . -T title -r randread -o {name}.png {kind}{numjobs}");
        #[expect(
            clippy::disallowed_methods,
            reason = "the program that draws is a process"
        )]
        let drawn = Command::new(&plotter)
            .args(words.split(' '))
            .env("MPLBACKEND", "Agg")
            .current_dir(ground.path())
            .output();
        // Its Python may be in a home that this user may not enter.
        let Ok(drawn) = drawn else {
            needs::skip("needs a fio-plot that this user may start");
        };
        let said = Said::of(&drawn);
        let image = fs::read(ground.path().join(format!("{name}.png")));
        let image = image.unwrap_or_else(|_| panic!("{name}: {}{}", said.out, said.err));
        assert!(
            image.starts_with(b"\x89PNG") && image.len() > 10_000,
            "{name}"
        );
    }
}

fn main() -> ExitCode {
    needs::run(needs::tests![
        the_same_jobs_do_the_same_as_in_the_original,
        a_command_line_does_the_same_as_in_the_original,
        a_job_based_on_time_uses_all_of_it,
        what_only_is_read_is_never_written_to,
        a_block_device_is_never_written_to,
        a_report_of_both_layouts_can_be_imported,
        fio_plot_draws_what_is_reported,
    ])
}
