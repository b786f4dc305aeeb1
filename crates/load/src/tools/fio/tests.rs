//! Job files read, and refused.

use super::job::*;
use super::known;
use super::language::*;
use super::place::*;

/// The jobs of a file.
fn read(text: &str) -> Result<Vec<FioJob>, JobError> {
    all(text).map_err(|mut refused| refused.remove(0))
}

/// The jobs of a file, or everything that is wrong in it.
fn all(text: &str) -> Result<Vec<FioJob>, Vec<JobError>> {
    let mut sections = Sections::default();
    let variable = |name: &str| (name == "SIZE").then(|| "3m".to_owned());
    sections.file("a.fio", text, &variable);
    jobs(&sections)
}

/// The only job of some options.
fn job(options: &str) -> FioJob {
    let text = format!("[x]\n{}", options.replace(' ', "\n"));
    read(&text)
        .unwrap_or_else(|refusal| panic!("{refusal}"))
        .remove(0)
}

/// Returns where a job of these options is refused, and why.
fn refused(options: &str) -> String {
    let text = format!("[x]\n{}", options.replace(' ', "\n"));
    let refusal = read(&text).expect_err(options);
    assert!(!refusal.next.is_empty(), "{refusal}");
    refusal.to_string()
}

#[test]
fn global_options_apply_to_the_jobs_after_them() {
    let jobs = read(
        "; two groups\n[global]\nrw=randread\nsize=${SIZE} # from outside\n\n[one]\n  numjobs=4\n\
         [global]\nbs=16k\n[two]\nstonewall\nbs=8k\nbs=32k\n[three]\nname=third\n",
    )
    .unwrap();
    let names: Vec<(&str, u64, u32)> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.group, job.block_sizes[0].0))
        .collect();
    assert_eq!(
        names,
        [("one", 0, 4096), ("two", 1, 32768), ("third", 1, 16384)]
    );
    assert!(
        jobs.iter()
            .all(|job| job.mode == "randread" && job.size == Some(Extent::Bytes(3 << 20)))
    );
    assert_eq!((jobs[0].clones, jobs[1].clones), (4, 1));
    let place = |line| OptionPlace::Line {
        file: "a.fio".to_owned(),
        line,
    };
    assert_eq!((&jobs[0].place, &jobs[2].place), (&place(6), &place(14)));
}

/// The kinds of job the manual explains, in examples of our own.
#[test]
fn every_kind_of_job_is_understood() {
    let mixed = job(
        "rw=randrw rwmixread=70 rwmixwrite=40 bs=8k size=1g direct=1 ioengine=libaio iodepth=32",
    );
    assert_eq!(
        (mixed.mode, mixed.read_share, mixed.queue_depth),
        ("randrw", 0.6, 32)
    );
    assert_eq!(
        (mixed.engine, mixed.engine_name.as_str()),
        (Engine::Ring, "io_uring")
    );
    assert!(mixed.notes[0].contains("libaio is done with io_uring"));
    let server = job(
        "rw=randread bssplit=4k/60:64k/40 norandommap random_distribution=zipf:1.2 time_based runtime=5m",
    );
    assert_eq!(server.block_sizes, [(4096, 60), (65536, 40)]);
    assert_eq!(
        (server.access, server.align),
        (Access::Zipf(1.2), Some(4096))
    );
    assert_eq!(
        (server.time_ns, server.time_based),
        (Some(300_000_000_000), true)
    );
    let split = job("rw=write bssplit=4k/50:8k/:16k/");
    assert_eq!(split.block_sizes, [(4096, 100), (8192, 50), (16384, 50)]);
    let paced = job("rw=write bs=8k rate=1m,512k rate_process=poisson");
    assert_eq!(paced.pace, JobPace::Poisson(64.0));
    assert_eq!(job("rw=read rate_iops=,100").pace, JobPace::Think(0));
    assert_eq!(job("thinktime=20 rw=read").pace, JobPace::Think(20_000));
    let safe = job("rw=write fdatasync=16 sync=dsync");
    assert!(safe.durable.data_only && safe.durable.every == 16 && safe.durable.open_dsync);
    let data = job("rw=write buffer_compress_percentage=75 dedupe_percentage=30 refill_buffers");
    assert_eq!(
        data.content,
        Content::Random {
            ratio: 4.0,
            duplicates: 0.3
        }
    );
    assert_eq!(
        job("rw=randread random_distribution=normal:15").access,
        Access::Normal(0.15)
    );
    assert!(job("rw=write direct=0 buffered=0").direct);
    assert_eq!(job("iodepth=8").queue_depth, 1, "a plain call has no queue");
    assert_eq!(job("percentile_list=99.9:50").percentiles, [50.0, 99.9]);
    assert_eq!(job("randrepeat=0").seed, None);
    assert_eq!(job("randrepeat=0 randseed=7").seed, Some(7));
    assert!(job("verify=md5 rw=write").read_back);
}

/// Orders of blocks that leave some out, and orders over several files.
#[test]
fn every_order_of_blocks_is_understood() {
    assert_eq!(job("rw=read:-8k").access, Access::Gap(-8192));
    assert_eq!(job("rw=write:112k").access, Access::Gap(114_688));
    assert_eq!(job("nrfiles=2").access, Access::InTurn(1));
    assert_eq!(
        job("nrfiles=2 file_service_type=roundrobin:8").access,
        Access::InTurn(8)
    );
    let zones = job("zonemode=strided zonesize=64k zoneskip=1m").access;
    let expected = StridedZones {
        used: 64 << 10,
        every: 1088 << 10,
    };
    assert_eq!(zones, Access::Strided(expected));
    let split = job("rw=randread bssplit=512/10:4k/90");
    assert_eq!((split.access, split.align), (Access::Covering, Some(512)));
    let zoned = job("rw=randread random_distribution=zoned:50/5:30/15:20/");
    let Access::Zoned(zones) = zoned.access else {
        panic!("{:?}", zoned.access);
    };
    assert_eq!(zones.0[..4], [(50, 5), (30, 15), (20, 80), (0, 0)]);
    assert_eq!(
        job("rw=randrw rate_iops=70,30 rwmixread=70").pace,
        JobPace::Even(100.0)
    );
    assert_eq!(job("size=25%").size, Some(Extent::Percent(25)));
}

/// Options no phase can keep, and what is said of them.
const REFUSED: &[(&str, &str)] = &[
    (
        "rw=read ramp_time=5 rate_iops=10",
        "a.fio:3: ramp_time with rate_iops is not supported",
    ),
    ("rw=read bsz=4k", "a.fio:3: bsz is not supported"),
    (
        "size=1m rw=trimwrite",
        "a.fio:3: rw=trimwrite is not supported (job x)",
    ),
    ("rw=read:8", "a gap of 8 is not supported"),
    ("rw=randread:8", "rw=randread:8 is not supported"),
    ("rw=rw:4k", "rw=rw:4k is not supported"),
    (
        "rw=read:4k bsrange=4k-8k",
        "gaps and zones with blocks of several sizes",
    ),
    (
        "rw=write:4k verify=crc32c",
        "verify with rw is not supported",
    ),
    (
        "rw=write offset=4k verify=crc32c",
        "verify with offset is not supported",
    ),
    (
        "rw=read:4k offset=4k",
        "offset with gaps or zones is not supported",
    ),
    ("rw=read:4k nrfiles=2", "gaps and zones over several files"),
    ("zonesize=4k", "zones without zonemode=strided"),
    ("zonemode=zbd zonesize=4k", "zonemode=zbd is not supported"),
    (
        "zonemode=strided zonesize=8k zonerange=4k",
        "the zones do not fit",
    ),
    (
        "zonemode=strided zonesize=6k zoneskip=1k",
        "would reach into the next one",
    ),
    (
        "rw=randread zonemode=strided zonesize=64k",
        "is for sequential jobs",
    ),
    ("offset=100", "offset is no multiple of 512"),
    (
        "offset=10% filename=a:b",
        "offset in percent of several files",
    ),
    (
        "nrfiles=3 openfiles=2",
        "openfiles below the number of files",
    ),
    ("create_on_open=1", "create_on_open is not supported"),
    (
        "io_submit_mode=later",
        "io_submit_mode=later is not understood",
    ),
    (
        "write_bw_log=x log_avg_msec=100 log_max_value",
        "log_max_value of bandwidth",
    ),
    (
        "write_lat_log=x log_hist_msec=100",
        "log_hist_msec is not supported",
    ),
    ("ioengine=ftruncate rw=read", "it only writes"),
    (
        "ioengine=falloc rw=randrw",
        "with reads and writes together",
    ),
    ("ioengine=filestat fsync=1", "no data is moved"),
    ("ioengine=filedelete loops=2", "a file is deleted once"),
    ("wait_for=y", "wait_for=y is no job before this one"),
    ("exitall exit_what=some", "exit_what=some is not understood"),
    (
        "rw=read rate=1m rate_min=2m",
        "rate_min is above the rate itself",
    ),
    ("direct=yes", "direct=yes is not understood"),
    ("size=0", "size=0 measures nothing"),
    ("rw=randrw bs=4k,8k", "reads and writes of different sizes"),
    (
        "rw=randread bssplit=4k/50:6k/50",
        "are multiples of the smallest, 4096",
    ),
    (
        "rw=randwrite blockalign=64k",
        "come once each would overlap",
    ),
    ("bssplit=4k/50:8k/40 rw=read", "do not make 100 percent"),
    ("bs=100", "a block of 100 does not work here"),
    (
        "rw=read nrfiles=2 file_service_type=random",
        "file_service_type=random of this job is not supported",
    ),
    (
        "rw=read nrfiles=2 bsrange=4k-8k",
        "blocks of several sizes of several files in turn",
    ),
    (
        "rw=randread nrfiles=2 random_distribution=zipf:1",
        "skews the access within each file",
    ),
    (
        "filename=a filename=b",
        "a.fio:3: filename is given more than once",
    ),
    (
        "filename_format=$clientuid",
        "filename_format=$clientuid is not understood",
    ),
    (
        "rw=randread random_distribution=zoned:60/10",
        "it does not make 100 percent",
    ),
    (
        "rw=randrw random_distribution=zoned:60/10:40/90,50/50:50/50",
        "reads and writes have different zones",
    ),
    (
        "rw=randread random_distribution=zoned_abs:60/10:40/90",
        "random_distribution=zoned_abs:60/10:40/90 is not supported",
    ),
    (
        "rw=randrw rate_iops=100,50",
        "of reads and of writes that are not as their shares",
    ),
    (
        "thinktime=1 ioengine=io_uring iodepth=2",
        "pauses the whole queue",
    ),
    ("thinktime=1 thinktime_blocks=4", "thinktime_blocks above 1"),
    ("time_based", "time_based without runtime"),
    (
        "rw=read verify=crc32c",
        "a job that only reads cannot verify",
    ),
    ("rw=write verify=pattern", "verify=pattern is not supported"),
    ("rw=write verify=1 zero_buffers", "zeros cannot be verified"),
    (
        "rw=write verify=1 filename=a numjobs=2",
        "several clones write the same file",
    ),
    ("fsync=1 fdatasync=1", "exclude each other"),
    ("ioengine=mmap", "ioengine=mmap is not supported"),
    ("fallocate=keep", "fallocate=keep is not supported"),
    ("scramble_buffers=0", "scramble_buffers=0 is not supported"),
    ("numjobs=5000", "numjobs=5000 is not understood"),
    ("size=${NONE}", "the environment has no variable NONE"),
    ("size=$mb_memory", "$mb_memory is not supported"),
];

#[test]
fn unsupported_options_are_refused_with_their_place() {
    for (options, why) in REFUSED {
        let said = refused(options);
        assert!(said.contains(why), "{options}: {said}");
    }
    for (text, why) in [
        ("rw=read\n", "a.fio:1: rw stands before the first job"),
        ("[x\n", "a.fio:1: \"[x\" is not the beginning of a job"),
        (
            "[x]\n\n[y]\ncpuload=9\n",
            "a.fio:4: cpuload is not supported",
        ),
        (
            "include other.fio\n",
            "a.fio:1: include other.fio is not supported",
        ),
    ] {
        let said = read(text).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}

/// The page that says what every option means has every one, and the help too.
#[test]
fn every_option_is_explained() {
    let page = include_str!("../../../../../docs/workloads/fio.md");
    let help = include_str!("help.txt");
    for known in known::OPTIONS {
        for name in std::iter::once(&known.name).chain(known.also) {
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not explained"
            );
        }
        assert!(
            help.contains(known.name),
            "{} is not in the help",
            known.name
        );
    }
    let sorted = known::OPTIONS
        .windows(2)
        .all(|two| two[0].name < two[1].name);
    assert!(sorted, "OPTIONS is not alphabetical");
}

#[test]
fn everything_wrong_in_a_file_is_said_at_once_in_the_order_of_its_lines() {
    let text = "[global]\nbs=4q\nzonemode=zbd\n[a]\nrw=randread\niodepth=none\nsize=1m\n[b]\nrw=write\n\
        startdelay=5-9\nfallocate=maybe\nsize=1m\n[c]\nrw=trim\n[d]\nrw=write\nsize=1m\n\
        zonesize=1m\nzonemode=host\n";
    let refused = all(text).unwrap_err();
    let said: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let lines: Vec<&str> = said
        .iter()
        .map(|it| it.split(':').nth(1).unwrap())
        .collect();
    // The line of [global] once, and not for each job.
    // Sizes of zones say nothing of their own where the kind of zones is refused.
    assert_eq!(lines, ["2", "3", "6", "10", "11", "14", "19"], "{said:#?}");
    assert!(refused.iter().all(|it| !it.next.is_empty()), "{refused:?}");
}

#[test]
fn a_name_for_all_jobs_names_none_of_them() {
    let jobs = read("[global]\nname=all\nsize=64k\n[a]\n[b]\nname=bb\n").unwrap();
    let names: Vec<(&str, &str)> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.title.as_str()))
        .collect();
    assert_eq!(names, [("a", "a"), ("bb", "b")]);
    assert!(jobs[0].options[0].contains(&("name".to_owned(), "all".to_owned())));
}

#[test]
fn a_delay_is_one_time_in_seconds_unless_it_says_otherwise() {
    assert_eq!(job("size=1m").start_delay_ns, 0);
    assert_eq!(job("size=1m startdelay=5").start_delay_ns, 5_000_000_000);
    assert_eq!(job("size=1m startdelay=20ms").start_delay_ns, 20_000_000);
    // fio draws one from the range.
    let said = refused("size=1m startdelay=5-9");
    assert!(said.contains("startdelay=5-9"), "{said}");
    assert!(refused("size=1m startdelay=soon").contains("startdelay"));
}

#[test]
fn a_range_of_sizes_is_all_its_multiples() {
    let one = job("rw=write size=1m bsrange=4k-4k");
    assert_eq!(one.block_sizes, [(4096, 1)]);
    let some = job("rw=write size=1m bsrange=4k-16k");
    assert_eq!(
        some.block_sizes,
        [(4096, 1), (8192, 1), (12288, 1), (16384, 1)]
    );
    // The last of them counts, as with fio.
    assert_eq!(
        job("size=1m bsrange=4k-8k bs=64k").block_sizes,
        [(65536, 1)]
    );
    for (options, word) in [
        ("size=1m bsrange=8k-4k", "does not fit"),
        ("size=1m bsrange=4k", "no range"),
        ("size=1m bsrange=512-1m", "more than 256 sizes"),
    ] {
        let said = refused(options);
        assert!(said.contains(word), "{said}");
    }
}
