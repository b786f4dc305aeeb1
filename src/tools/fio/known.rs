//! The options that are understood, and what to do without those that are not.

/// One option of a job that is understood.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name; aliases are read as this.
    pub(crate) name: &'static str,
    /// Other names of it.
    pub(crate) also: &'static [&'static str],
    /// It may stand without a value.
    pub(crate) flag: bool,
}

const fn valued(name: &'static str) -> Known {
    let also = &[];
    let flag = false;
    Known { name, also, flag }
}

const fn flag(name: &'static str) -> Known {
    let also = &[];
    let flag = true;
    Known { name, also, flag }
}

const fn named(name: &'static str, also: &'static [&'static str]) -> Known {
    let flag = false;
    Known { name, also, flag }
}

/// Every option, alphabetical; docs/workloads/fio.md says what each means.
pub(crate) const OPTIONS: &[Known] = &[
    flag("allrandrepeat"),
    named("blockalign", &["ba"]),
    named("bs", &["blocksize"]),
    named("bsrange", &["blocksize_range"]),
    valued("bssplit"),
    valued("buffer_compress_percentage"),
    flag("buffered"),
    flag("clat_percentiles"),
    flag("create_fsync"),
    flag("create_serialize"),
    valued("dedupe_percentage"),
    valued("description"),
    flag("direct"),
    valued("directory"),
    flag("disable_bw_measurement"),
    flag("disable_clat"),
    flag("disable_lat"),
    flag("disable_slat"),
    flag("do_verify"),
    flag("end_fsync"),
    flag("fadvise_hint"),
    valued("fallocate"),
    valued("fdatasync"),
    valued("file_service_type"),
    valued("filename"),
    valued("filename_format"),
    valued("filesize"),
    valued("fsync"),
    flag("fsync_on_close"),
    flag("group_reporting"),
    flag("gtod_reduce"),
    flag("invalidate"),
    named("io_size", &["io_limit"]),
    valued("iodepth"),
    named("iodepth_batch", &["iodepth_batch_submit"]),
    named("iodepth_batch_complete", &["iodepth_batch_complete_min"]),
    valued("iodepth_batch_complete_max"),
    valued("iodepth_low"),
    valued("ioengine"),
    valued("kb_base"),
    flag("lat_percentiles"),
    valued("loops"),
    valued("name"),
    flag("new_group"),
    flag("norandommap"),
    named("nrfiles", &["nr_files"]),
    valued("number_ios"),
    valued("numjobs"),
    flag("overwrite"),
    valued("percentile_list"),
    valued("random_distribution"),
    valued("random_generator"),
    flag("randrepeat"),
    valued("randseed"),
    valued("rate"),
    valued("rate_iops"),
    valued("rate_process"),
    flag("refill_buffers"),
    named("runtime", &["timeout"]),
    named("rw", &["readwrite"]),
    valued("rwmixread"),
    valued("rwmixwrite"),
    flag("scramble_buffers"),
    valued("size"),
    valued("startdelay"),
    Known {
        name: "stonewall",
        also: &["wait_for_previous"],
        flag: true,
    },
    valued("sync"),
    valued("thinktime"),
    valued("thinktime_blocks"),
    flag("thread"),
    flag("time_based"),
    flag("unlink"),
    named("verify", &[]),
    valued("verify_async"),
    flag("verify_dump"),
    flag("verify_fatal"),
    valued("verify_interval"),
    flag("zero_buffers"),
];

/// Options that many jobs have and no phase of ours can keep, and what to do without them.
const WITHOUT: &[(&str, &str)] = &[
    (
        "continue_on_error",
        "leave it out: a job ends at its first error",
    ),
    (
        "cpus_allowed",
        "leave it out, and start the program with taskset",
    ),
    (
        "exitall",
        "leave it out: a group ends when all of its jobs have",
    ),
    ("include", "write the lines of that file here"),
    (
        "max_latency",
        "leave it out, and read the largest latency in the report",
    ),
    ("mem", "leave it out: the program has buffers of its own"),
    ("nice", "leave it out, and start the program with nice"),
    (
        "offset",
        "leave it out: a job works from the beginning of its files",
    ),
    (
        "offset_increment",
        "leave it out: without filename each job has files of its own",
    ),
    (
        "ramp_time",
        "leave it out, and put a job of that runtime before it, with stonewall in this one",
    ),
    (
        "steadystate",
        "use `stackrace run`: a study ends by what it has found out",
    ),
    (
        "write_bw_log",
        "leave it out: `stackrace run` keeps a time series of every trial",
    ),
    (
        "write_iops_log",
        "leave it out: `stackrace run` keeps a time series of every trial",
    ),
    (
        "write_lat_log",
        "leave it out: `stackrace run` keeps every latency of every trial",
    ),
];

/// An option by its name or another name of it.
pub(super) fn find(word: &str) -> Option<&'static Known> {
    OPTIONS
        .iter()
        .find(|known| known.name == word || known.also.contains(&word))
}

/// Whether a word on the command line may stand without a value.
pub(crate) fn is_flag(word: &str) -> bool {
    find(word).is_some_and(|known| known.flag)
}

/// What to do about an option that is not understood.
pub(crate) fn nearest(word: &str) -> String {
    if let Some((_, next)) = WITHOUT.iter().find(|(name, _)| *name == word) {
        return (*next).to_owned();
    }
    let names = OPTIONS
        .iter()
        .flat_map(|known| known.also.iter().chain([&known.name]));
    let near = names.max_by(|one, other| {
        strsim::jaro_winkler(one, word).total_cmp(&strsim::jaro_winkler(other, word))
    });
    format!(
        "leave it out; the nearest that is supported is {}; docs/workloads/fio.md has all",
        near.unwrap_or(&"")
    )
}
