//! The options that are understood, and what to do without those that are not.

/// One option of a job that is understood.
#[derive(Debug)]
pub(super) struct Known {
    /// Its name; aliases are read as this.
    pub name: &'static str,
    /// Other names of it.
    pub also: &'static [&'static str],
    /// Set if it may stand without a value.
    pub flag: bool,
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
pub(super) const OPTIONS: &[Known] = &[
    flag("allow_file_create"),
    flag("allrandrepeat"),
    named("blockalign", &["ba"]),
    named("bs", &["blocksize"]),
    named("bsrange", &["blocksize_range"]),
    valued("bssplit"),
    valued("buffer_compress_percentage"),
    flag("buffered"),
    flag("clat_percentiles"),
    flag("create_fsync"),
    flag("create_on_open"),
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
    valued("exit_what"),
    flag("exitall"),
    flag("fadvise_hint"),
    valued("fallocate"),
    valued("fdatasync"),
    valued("file_service_type"),
    valued("filename"),
    valued("filename_format"),
    valued("filesize"),
    valued("flow"),
    valued("flow_id"),
    valued("flow_sleep"),
    valued("fsync"),
    flag("fsync_on_close"),
    flag("group_reporting"),
    flag("gtod_reduce"),
    flag("invalidate"),
    named("io_size", &["io_limit"]),
    valued("io_submit_mode"),
    valued("iodepth"),
    named("iodepth_batch", &["iodepth_batch_submit"]),
    named("iodepth_batch_complete", &["iodepth_batch_complete_min"]),
    valued("iodepth_batch_complete_max"),
    valued("iodepth_low"),
    valued("ioengine"),
    valued("kb_base"),
    flag("lat_percentiles"),
    valued("log_avg_msec"),
    valued("log_hist_msec"),
    flag("log_max_value"),
    flag("log_offset"),
    flag("log_prio"),
    valued("loops"),
    valued("name"),
    flag("new_group"),
    flag("norandommap"),
    named("nrfiles", &["nr_files"]),
    valued("number_ios"),
    valued("numjobs"),
    valued("offset"),
    valued("offset_align"),
    valued("offset_increment"),
    valued("openfiles"),
    flag("overwrite"),
    flag("per_job_logs"),
    valued("percentile_list"),
    valued("ramp_time"),
    valued("random_distribution"),
    valued("random_generator"),
    flag("randrepeat"),
    valued("randseed"),
    valued("rate"),
    named("rate_cycle", &["ratecycle"]),
    valued("rate_iops"),
    valued("rate_iops_min"),
    named("rate_min", &["ratemin"]),
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
    Known {
        name: "thread",
        // fio takes what begins like an option for it; its examples have this one.
        also: &["threads"],
        flag: true,
    },
    flag("time_based"),
    flag("unlink"),
    named("verify", &[]),
    valued("verify_async"),
    flag("verify_dump"),
    flag("verify_fatal"),
    valued("verify_interval"),
    valued("wait_for"),
    flag("write_bw_log"),
    flag("write_iops_log"),
    flag("write_lat_log"),
    flag("zero_buffers"),
    valued("zonemode"),
    valued("zonerange"),
    valued("zonesize"),
    valued("zoneskip"),
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
        "cmdprio_percentage",
        "leave it out: all operations have one priority",
    ),
    (
        "dedupe_global",
        "leave it out: blocks are copies of others of the same job",
    ),
    (
        "fill_device",
        "leave it out, and write the size: a full disk stops other programs, too",
    ),
    ("include", "write the lines of that file here"),
    (
        "latency_target",
        "leave it out: `stackrace run` measures several queue depths beside each other",
    ),
    (
        "max_latency",
        "leave it out, and read the largest latency in the report",
    ),
    ("mem", "leave it out: the program has buffers of its own"),
    ("nice", "leave it out, and start the program with nice"),
    (
        "numa_cpu_nodes",
        "leave it out, and start the program with numactl",
    ),
    (
        "numa_mem_policy",
        "leave it out, and start the program with numactl",
    ),
    ("prio", "leave it out, and start the program with ionice"),
    (
        "prioclass",
        "leave it out, and start the program with ionice",
    ),
    (
        "ss",
        "use `stackrace run`: a study ends by what it has found out",
    ),
    (
        "steadystate",
        "use `stackrace run`: a study ends by what it has found out",
    ),
];

/// An option by its name or another name of it.
pub(super) fn find(word: &str) -> Option<&'static Known> {
    OPTIONS
        .iter()
        .find(|known| known.name == word || known.also.contains(&word))
}

/// Returns true if a word on the command line may stand without a value.
pub(super) fn is_flag(word: &str) -> bool {
    find(word).is_some_and(|known| known.flag)
}

/// Advice on an option that is not understood.
pub(super) fn nearest(word: &str) -> String {
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
