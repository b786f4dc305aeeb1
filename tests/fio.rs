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
        let trims = figure("trim", "total_ios");
        let options = [&document["global options"], &job["job options"]];
        let mode = options.iter().rev().find_map(|it| it["rw"].as_str());
        let mixed = mode.is_some_and(|mode| mode.ends_with("rw"));
        let pair = |name| {
            [
                figure("read", name),
                figure("write", name) + figure("trim", name),
            ]
        };
        // Of sizes that are drawn only the bytes are known.
        let drawn = options
            .iter()
            .any(|it| !it["bssplit"].is_null() || !it["bsrange"].is_null());
        let operations = if drawn { "io_bytes" } else { "total_ios" };
        let figures = [operations, "io_bytes"].map(pair);
        let figures = figures.map(|[read, write]| match mixed {
            true => vec![read + write],
            false => vec![read, write],
        });
        let name = job["jobname"].as_str().unwrap().to_owned();
        let mut figures = figures.concat();
        // A trim is no write.
        figures.push(trims);
        (name, job["groupid"].as_u64().unwrap(), figures)
    };
    document["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(of)
        .collect()
}

/// Job files in which the number of operations follows from what is asked. The file `there` has 128 KiB.
const JOBS: [(&str, &str); 18] = [
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
    ("offsets", OFFSETS),
    (
        "gaps",
        "[global]\nsize=128k\nbs=4k\n[a]\nrw=read:-8k\n[b]\nrw=write:8k\nloops=2\n[c]\nrw=read:-20k\nsize=62k\n\
         loops=2\n[d]\nrw=read:20k\nbs=16k\nsize=110k\nloops=2\n[e]\nrw=write:8k\nsize=100k\nio_size=300k\n\
         [f]\nrw=read:-4k\n[g]\nrw=read:-6k\nsize=50k\n[h]\nrw=write:2k\n[i]\nrw=read:-2k\nsize=20k\n",
    ),
    (
        "zones",
        "[global]\nsize=1m\nbs=16k\nzonemode=strided\nzonesize=64k\nzoneskip=128k\n[a]\nrw=read\n\
         [b]\nrw=write\nsize=992k\n[c]\nrw=read\nsize=1000k\nloops=2\n[d]\nrw=read\nzonesize=32k\nzonerange=64k\n\
         [e]\nrw=write\nsize=256k\nzonesize=40k\nzoneskip=24k\nloops=2\n",
    ),
    (
        "files in turn",
        "[global]\nbs=16k\n[a]\nrw=write\nsize=100k\nnrfiles=3\nloops=2\n[b]\nrw=write\nsize=120k\nnrfiles=3\n\
         file_service_type=roundrobin:2\n[c]\nrw=read\nfilesize=32k\nnrfiles=3\nio_size=160k\n\
         [d]\nrw=rw\nbs=4k\nsize=64k\nnrfiles=2\n[e]\nrw=write\nfilesize=20k\nnrfiles=3\nsize=100k\nopenfiles=3\n",
    ),
    (
        "sizes that are drawn, and zones of a distribution",
        "[global]\nsize=256k\n[a]\nrw=randwrite\nbssplit=4k/50:8k/50\n[b]\nrw=randread\nbsrange=4k-16k\nloops=2\n\
         [c]\nrw=randrw\nbssplit=512/10:1k/20:4k/70\n",
    ),
    (
        "zones of a distribution",
        "[global]\nsize=256k\nrw=randread\n[a]\nrandom_distribution=zoned:50/5:30/15:20/\n\
         [b]\nnorandommap\nrandom_distribution=zoned:60/10:40/90\nloops=2\n",
    ),
    (
        "calls that move no data",
        "[global]\nfilesize=4k\nnrfiles=7\n[a]\nioengine=filecreate\ncreate_on_open=1\nopenfiles=1\nfallocate=none\n\
         numjobs=2\n[b]\nioengine=filestat\nloops=2\n[c]\nioengine=filestat\nfilesize=8k\nrw=randwrite\n\
         [d]\nioengine=filedelete\nunlink=0\n[e]\nioengine=ftruncate\nrw=write\nnrfiles=1\nsize=20k\ndirect=1\n\
         [f]\nioengine=falloc\nrw=randwrite\nnrfiles=1\nfilesize=64k\n[g]\nioengine=falloc\nrw=read\nnrfiles=1\n\
         [h]\nioengine=falloc\nrw=randtrim\nnrfiles=1\nfilesize=64k\n",
    ),
    (
        "jobs that wait, and groups without a wall",
        "[global]\nthreads=1\nfilename=t\nsize=256k\n[a]\nrw=write\nnumjobs=2\n[b]\nnew_group\nwait_for=a\n\
         rw=randread\nio_submit_mode=offload\n[c]\nnew_group=1\nwait_for=b\nrw=randwrite\nramp_time=60\n",
    ),
    (
        "jobs that share a flow",
        "[global]\nfilename=t\nbs=4k\nsize=256k\n[a]\nrw=read\nflow=2\n[b]\nrw=read:-8k\nflow=1\n\
         [c]\nioengine=libaio\niodepth=4\nrw=randwrite\nflow=8\nflow_id=3\nflow_sleep=100\n",
    ),
    (
        "queues, and what is left on disk",
        "[global]\nsize=256k\nrw=randwrite\nbs=4k\nfallocate=truncate\n[a]\nioengine=libaio\n\
         iodepth=16\ndirect=1\n[b]\nioengine=psync\nbuffered=0\n[c]\nunlink=1\n[d]\noverwrite=1\n",
    ),
];

/// What a job of which each test finds the file does to its beginning, and to parts of it.
const OFFSETS: &str = "[global]\nbs=16k\nsize=64k\n[a]\nrw=write\noffset=16k\n\
     [b]\nrw=write\nfilename=b\noffset_increment=64k\nnumjobs=3\n[c]\nrw=write\noffset=16k\nfilesize=128k\n\
     [d]\nrw=write\nnrfiles=2\noffset=16k\n[e]\nrw=randwrite\noffset=20k\nio_size=128k\n\
     [f]\nrw=read\noffset=16k\nloops=2\nfallocate=none\n[g]\nrw=read\nfilename=there\noffset=25%\nsize=50%\n\
     [h]\nrw=read\nfilename=there\noffset=10%\nsize=100%\n[i]\nrw=read\nfilename=there\noffset_increment=25%\n\
     size=25%\nnumjobs=3\n[j]\nrw=read\nfilename=there\noffset=40k\nsize=100%\n\
     [k]\nrw=randread\nfilename=there\noffset=20%\noffset_align=32k\nsize=100%\n";

fn the_same_jobs_do_the_same_as_in_the_original() {
    for (what, text) in JOBS {
        let words = ["--output-format=json", "../jobs.fio"];
        let (ours, theirs) = (Ground::new(), Ground::new());
        for ground in [&ours, &theirs] {
            ground.make_dir("data");
            ground.write("jobs.fio", text);
            ground.write("data/there", "x".repeat(128 << 10));
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

/// Logs have the original's names and columns, and a line for each operation in its order.
fn logs_over_time_have_the_names_and_lines_of_the_original() {
    let text = "[global]\nbs=4k\nsize=32k\nlog_offset=1\n[a]\nname=shown\nrw=read:-8k\nwrite_bw_log\nwrite_iops_log\n\
         write_lat_log\n[b]\nstonewall\nrw=write\nnumjobs=2\nwrite_lat_log=of-b\nlog_prio=1\n\
         [c]\nstonewall\nrw=write:4k\nnumjobs=2\nwrite_bw_log=both\nper_job_logs=0\nlog_offset=0\n";
    let (ours, theirs) = (Ground::new(), Ground::new());
    for ground in [&ours, &theirs] {
        ground.write("jobs.fio", text);
    }
    original(theirs.path(), &["jobs.fio"]);
    stackrace(&ours, &["jobs.fio"]).ended(0);
    let logs = |ground: &Ground| -> BTreeMap<String, Vec<String>> {
        let names = files(ground.path()).into_keys();
        let logs = names.filter(|name| name.ends_with(".log"));
        // Without times and values; no latency of submission is measured here.
        let lines = |name: &String| {
            let text = fs::read_to_string(ground.path().join(name)).unwrap();
            let line = |line: &str| line.splitn(3, ", ").nth(2).unwrap().to_owned();
            text.lines().map(line).collect()
        };
        logs.map(|name| (name.clone(), lines(&name)))
            .filter(|(name, _)| !name.contains("_slat."))
            .collect()
    };
    let (ours, theirs) = (logs(&ours), logs(&theirs));
    assert_eq!(ours.len(), 9, "{ours:?}");
    assert_eq!(ours, theirs);
}

/// A stretch of a log is all operations that ended in it.
fn a_log_of_stretches_adds_up_to_all_operations() {
    let ground = Ground::new();
    let words = "--name=x --rw=randrw --size=1m --time_based --runtime=450ms --log_avg_msec=100 --write_iops_log=x \
                 --write_lat_log=x --output-format=json";
    let run = stackrace(&ground, &words.split_whitespace().collect::<Vec<_>>());
    run.ended(0);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    let log = |name: &str| -> Vec<Vec<u64>> {
        let text = fs::read_to_string(ground.path().join(name)).unwrap();
        let numbers = |line: &str| line.split(", ").map(|word| word.parse().unwrap()).collect();
        text.lines().map(numbers).collect()
    };
    for (direction, name) in [(0, "read"), (1, "write")] {
        let (mut counted, mut before) = (0.0, 0);
        for line in log("x_iops.1.log")
            .iter()
            .filter(|line| line[2] == direction)
        {
            counted += line[1] as f64 * (line[0] - before) as f64 / 1000.0;
            before = line[0];
        }
        let all = document["jobs"][0][name]["total_ios"].as_f64().unwrap();
        // Times are whole milliseconds.
        assert!(
            (counted / all - 1.0).abs() < 0.03,
            "{name}: {counted} of {all}"
        );
    }
    assert!(log("x_lat.1.log").len() >= 8);
}

/// The first job to end takes the others of its group, up to the wall, or all with it.
fn jobs_end_with_the_one_that_says_so() {
    let text = "[global]\nfilename=t\nsize=1m\nexitall=1\nrw=read\n[a]\nnumber_ios=10\nexit_what=stonewall\n\
         [b]\nnew_group\ntime_based\nruntime=600\nrate_iops=10\n[c]\nstonewall\nnumber_ios=10\nexit_what=all\n\
         [d]\nrate_iops=10\ntime_based\nruntime=600\n[e]\nstonewall\nnumber_ios=10\n";
    let ground = Ground::new();
    ground.write("jobs.fio", text);
    let run = stackrace(&ground, &["--output-format=json", "jobs.fio"]);
    run.ended(0);
    let names: Vec<(String, u64)> = done(&run.out).into_iter().map(|it| (it.0, it.1)).collect();
    let expected = [("a", 0), ("b", 1), ("c", 2), ("d", 2)];
    assert_eq!(
        names,
        expected.map(|(name, group)| (name.to_owned(), group))
    );
}

/// A job that moves less than it has to ends with the error that the original has for it.
fn a_job_that_is_too_slow_fails() {
    let ground = Ground::new();
    let words = "--name=x --rw=read --bs=4k --size=1m --rate_iops=5 --rate_cycle=300 --rate_min=1m --output-format=json";
    let run = stackrace(&ground, &words.split(' ').collect::<Vec<_>>());
    run.ended(1).err_has("x: rate_min=1048576B/s not met, got");
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["jobs"][0]["error"], 62);
}

/// What is done in the ramp counts for nothing, and the runtime begins behind it.
#[expect(
    clippy::disallowed_methods,
    reason = "what is reported is compared with what the program really took"
)]
fn a_ramp_is_left_out_of_the_figures() {
    let ground = Ground::new();
    for engine in ["psync", "io_uring"] {
        let words = format!(
            "--name=x --rw=randread --bs=4k --size=64k --ioengine={engine} --time_based --runtime=200ms \
             --ramp_time=400ms --write_lat_log=x --output-format=json"
        );
        let began = std::time::Instant::now();
        let run = stackrace(&ground, &words.split_whitespace().collect::<Vec<_>>());
        run.ended(0);
        let document: Value = serde_json::from_str(&run.out).unwrap();
        let read = &document["jobs"][0]["read"];
        let runtime = read["runtime"].as_f64().unwrap();
        // What the program took was the ramp, too.
        let taken = began.elapsed().as_secs_f64() * 1000.0;
        assert!(
            runtime >= 200.0 && runtime + 400.0 <= taken,
            "{engine}: {runtime} of {taken}"
        );
        let log = fs::read_to_string(ground.path().join("x_lat.1.log")).unwrap();
        assert_eq!(
            log.lines().count() as u64,
            read["total_ios"].as_u64().unwrap()
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
        logs_over_time_have_the_names_and_lines_of_the_original,
        a_log_of_stretches_adds_up_to_all_operations,
        jobs_end_with_the_one_that_says_so,
        a_job_that_is_too_slow_fails,
        a_ramp_is_left_out_of_the_figures,
        a_command_line_does_the_same_as_in_the_original,
        a_job_based_on_time_uses_all_of_it,
        what_only_is_read_is_never_written_to,
        a_block_device_is_never_written_to,
        a_report_of_both_layouts_can_be_imported,
        fio_plot_draws_what_is_reported,
    ])
}
