//! `stackrace sysbench`: in place of the original, with its options, files and layouts.
//!
//! It works in the current directory, as the original does, and leaves there what the original
//! leaves: the files, until `cleanup`. Nothing has to be undone, so there is no journal.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use stackrace_engine::Control;
use stackrace_engine::StartError;
use stackrace_engine::sysbench::{FilePreparation, LiveCounters, SysbenchOutcome, SysbenchVersion};

use super::super::tool::{Console, ToolCommand, raw_command, raw_words};
use super::measured;
use super::options::{Command, SysbenchOptions};
use super::print::{self, banner};
use stackrace_base::event::LeftBehind;
use stackrace_base::failure::{self, Failure};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};

/// A second Ctrl-C leaves files that the user asked for.
const FILES_STAY: LeftBehind = LeftBehind {
    clean: &[],
    told: "files stay",
    resumes: false,
};

/// Time a plan may take to find out that it cannot begin, before it is said to have begun.
const BEGINNING: Duration = Duration::from_millis(100);

/// `stackrace sysbench`, for [`super::TOOL`].
pub(super) const COMMAND: ToolCommand = ToolCommand {
    arguments: |command| {
        let about =
            "Drop-in for sysbench fileio: its options, files and output, in the current directory";
        raw_command(
            command,
            about,
            "As sysbench takes them: options, the test `fileio`, and prepare, run, cleanup or help",
        )
    },
    run: |matches, console| exec(console, &raw_words(matches)),
};

fn exec(console: &Console<'_>, words: &[String]) -> Result<u8, Failure> {
    let wrong = |why: String| {
        Failure::internal(why).next("see the options: stackrace sysbench fileio help")
    };
    let mut options = SysbenchOptions::read(words).map_err(wrong)?;
    // 0.4 never seeds its generator unless --init-rng asks for it: its positions are the same each
    // time. In 1.0 a seed of 0 asks for a new one, which therefore is never 0.
    options.plan.seed = match (options.plan.version, options.seed) {
        (SysbenchVersion::V0_4, _) if !options.seeded => 0,
        (_, 0) => (console.entropy)().max(1),
        (_, seed) => seed,
    };
    let interrupt = Arc::new(Interrupt::default());
    match options.command {
        Command::Help => {
            console.print(HELP);
            Ok(0)
        }
        Command::Cleanup => cleanup(console, &options),
        Command::Prepare => {
            (console.catch_interrupt)(&interrupt, "the files made so far stay", FILES_STAY)?;
            prepare(console, &options, &interrupt)
        }
        Command::Run if options.mode.is_none() => {
            Err(wrong("run needs --file-test-mode".to_owned()))
        }
        Command::Run => {
            (console.catch_interrupt)(&interrupt, "what was measured follows", FILES_STAY)?;
            run(console, &options, &interrupt)
        }
    }
}

fn fatal(console: &Console<'_>, what: &str, next: &str) -> u8 {
    console.print(&format!("FATAL: {what}\nWARNING: {next}\n"));
    1
}

fn first_lines(options: &SysbenchOptions) -> String {
    format!("{}\n\n", banner(measured::layout(options.plan.version)))
}

fn cleanup(console: &Console<'_>, options: &SysbenchOptions) -> Result<u8, Failure> {
    console.print(&(first_lines(options) + "Removing test files...\n"));
    match options.plan.clean_up() {
        Ok(()) => Ok(0),
        Err(error) => Ok(fatal(console, &error.to_string(), "remove it by hand")),
    }
}

fn prepare(
    console: &Console<'_>,
    options: &SysbenchOptions,
    interrupt: &Interrupt,
) -> Result<u8, Failure> {
    let plan = &options.plan;
    // 0.4 says less: neither flags, nor files one by one, nor bytes.
    let new = plan.version == SysbenchVersion::V1_0;
    let mut text = first_lines(options);
    text.push_str(&format!(
        "{} files, {}Kb each, {}Mb total\nCreating files for the test...\n",
        plan.files,
        plan.file_bytes() >> 10,
        plan.total_bytes >> 20
    ));
    if new {
        text.push_str(&format!(
            "Extra file open flags: {}\n",
            measured::flags(options)
        ));
    }
    console.print(&text);
    let control = Control::ended_by(interrupt.stop_flag());
    let prepared = plan.prepare(&control, &mut |made, file| {
        let what = match made {
            FilePreparation::Created => "Creating file",
            FilePreparation::Extended => "Extending existing file",
            FilePreparation::Reused => "Reusing existing file",
        };
        if new {
            console.print(&format!("{what} test_file.{file}\n"));
        }
    });
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            return Ok(fatal(
                console,
                &error.to_string(),
                "the files made so far stay",
            ));
        }
    };
    if prepared.stopped {
        return Ok(failure::INTERRUPTED);
    }
    let seconds = prepared.elapsed_ns as f64 / 1e9;
    match (new, prepared.bytes) {
        (false, _) => {}
        (true, 0) => console.print("No bytes written.\n"),
        (true, bytes) => console.print(&format!(
            "{bytes} bytes written in {seconds:.2} seconds ({:.2} MiB/sec).\n",
            bytes as f64 / seconds / f64::from(1 << 20)
        )),
    }
    Ok(0)
}

fn run(
    console: &Console<'_>,
    options: &SysbenchOptions,
    interrupt: &Interrupt,
) -> Result<u8, Failure> {
    let plan = &options.plan;
    if plan.events == 0 && plan.time_ns.is_none() {
        console.error("WARNING: neither events nor time are limited: Ctrl-C ends it\n");
    }
    let head = measured::head(options);
    console.print(&print::head(&head));
    // Every request would pay for counters; without an interval none are read.
    let live = (options.interval_s > 0).then(LiveCounters::default);
    let control = Control::ended_by(interrupt.stop_flag());
    let (finished, ends) = channel();
    let outcome = std::thread::scope(|scope| {
        let (control, live) = (&control, live.as_ref());
        let runner = scope.spawn(move || {
            // Dropped at the end, and with it the channel closed.
            let _finished: Sender<()> = finished;
            plan.run(control, live)
        });
        let begun = ends.recv_timeout(BEGINNING);
        // Still running, so it could begin. A plan that cannot (files are missing) ends sooner,
        // and then its start must not have been announced.
        if begun == Err(RecvTimeoutError::Timeout) {
            console.print(print::started(head.layout));
            if let Some(live) = live {
                watch(console, options, live, || {
                    // A wait that the end of the run cuts short.
                    ends.recv_timeout(Duration::from_secs(options.interval_s))
                        == Err(RecvTimeoutError::Timeout)
                });
            }
        }
        (begun, runner.join())
    });
    let (begun, result) = match outcome {
        (begun, Ok(result)) => (begun, result),
        (_, Err(panic)) => std::panic::resume_unwind(panic),
    };
    match result {
        Ok(run) => {
            // It was over before the first wait: its start still comes before its results.
            if begun != Err(RecvTimeoutError::Timeout) {
                console.print(print::started(head.layout));
            }
            Ok(conclude(console, options, &run, interrupt))
        }
        Err(error) => Ok(fatal(console, &error.to_string(), &advice(&error))),
    }
}

/// Prints a line after each interval, while there are any.
fn watch(
    console: &Console<'_>,
    options: &SysbenchOptions,
    live: &LiveCounters,
    wait: impl Fn() -> bool,
) {
    let begun_ns = SystemClock.now_ns();
    let mut before_ns = begun_ns;
    while wait() {
        let now_ns = SystemClock.now_ns();
        // This function is called that long after the start.
        let second =
            (now_ns.saturating_sub(begun_ns) + BEGINNING.as_nanos() as u64) / 1_000_000_000;
        let seconds = now_ns.saturating_sub(before_ns).max(1) as f64 / 1e9;
        console.print(&print::intermediate(&measured::step(
            options, live, second, seconds,
        )));
        before_ns = now_ns;
    }
}

fn advice(error: &StartError) -> String {
    match error {
        StartError::Open { .. } => "make the files first: prepare".to_owned(),
        error => error.next(),
    }
}

fn conclude(
    console: &Console<'_>,
    options: &SysbenchOptions,
    run: &SysbenchOutcome,
    interrupt: &Interrupt,
) -> u8 {
    if let Some(error) = &run.outcome.error {
        return fatal(
            console,
            &error.to_string(),
            "what was measured until then is not shown",
        );
    }
    console.print(&print::results(&measured::report(options, run)));
    if interrupt.raised() {
        return failure::INTERRUPTED;
    }
    0
}

/// Every option, in our own words.
const HELP: &str = "\
stackrace sysbench: sysbench's fileio test, in the current directory

  stackrace sysbench [OPTIONS] fileio [OPTIONS] prepare|run|cleanup|help     as sysbench 1.0.20
  stackrace sysbench --test=fileio [OPTIONS] prepare|run|cleanup             as sysbench 0.4.12

prepare makes test_file.0, test_file.1 …; run measures; cleanup removes them.
Numbers take K, M, G or T (1024). Defaults stand in brackets, those of 0.4.12 after a slash.

  --file-num=N               files [128]
  --file-block-size=N        bytes of one request [16384]
  --file-total-size=N        bytes of all files [2G]
  --file-test-mode=MODE      seqwr, seqrewr (writes only), seqrd, rndrd, rndwr, rndrw
  --file-io-mode=MODE        sync, async (through io_uring), mmap [sync]
  --file-async-backlog=N     async: requests outstanding, per thread [128]
  --file-extra-flags=LIST    open with sync, dsync, direct []
  --file-fsync-freq=N        fsync of every file after so many requests; 0: never [100]
  --file-fsync-all[=on|off]  fsync after each write instead [off]
  --file-fsync-end[=on|off]  fsync of every file at the end [on]
  --file-fsync-mode=MODE     fsync, fdatasync [fsync]
  --file-merged-requests=N   so many blocks in one sequential request [0]
  --file-rw-ratio=N          reads for each write of rndrw [1.5]
  --threads=N                threads (--num-threads) [1]
  --events=N                 stop after so many events; 0: never (--max-requests) [0/10000]
  --time=N                   stop after so many seconds; 0: never (--max-time) [10/0]
  --rate=N                   events per second, Poisson arrivals; 0: as fast as it goes [0]
  --report-interval=N        a line after so many seconds; 0: none [0]
  --percentile=N             which percentile of the latency; 0: none [95]
  --histogram[=on|off]       print the latency histogram [off]
  --validate[=on|off]        write checksums and check them [off]
  --rand-seed=N              seed; 0: another each time [0]
  --init-rng[=on|off]        0.4.12: another seed each time, instead of always the same [off]

Options of the random number distributions, --debug, --verbosity, --thread-stack-size and
--forced-shutdown are accepted and make no difference. docs/workloads/sysbench.md says what is
done, request for request, and where it differs from the original.
";
