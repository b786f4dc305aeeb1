//! A measured program on a machine that has nothing but a shell.
//!
//! It is timed over there, so that the line is no part of its time. What it prints goes to files of the
//! run's own there, and comes here after the clock has stopped. Its shell has a connection of its own:
//! when that ends (it is stopped, its time is over, this program dies) a watcher over there ends the
//! whole process group.

use super::line::{NoAnswer, ShellLine};
use super::{quoted, quoted_all, stops};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_machine::host::program::{
    DIRECTORY, PRINTED_MAX, ProgramCall, ProgramCut, ProgramRun,
};
use std::cell::Cell;
use std::path::Path;

/// Shows what the machine can time with: its line of `time -p`, then a moment in its finest form.
pub(super) const TIMER: &str =
    "( time -p true ) 2>&1 | grep real; printf 'date '; date +%s.%N; printf 'date '; date +%s";

/// Bytes kept of what a program says on standard error, from its end.
const ERRORS_MAX: usize = 64 << 10;

/// Bytes read of what was found to be stopped, from its end: the last line has it all.
const STOPS_MAX: usize = 4 << 10;

/// Digits of a second that date(1) shows where it shows nanoseconds.
const NANOSECOND_DIGITS: usize = 9;

/// Error that a time by two calls of date(1) can have, ns: about what it takes to start one.
const DATE_STEP_NS: u64 = 1_000_000;

/// Output of the script where the directory that the program is to work in is missing.
const NO_DIRECTORY: &str = "no-directory";

/// Output where the files for its outputs cannot be made.
const NO_WORK: &str = "no-work";

/// Output where they are gone when it has ended.
const NO_OUTPUTS: &str = "no-outputs";

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// Divisor of the share by which a time over there may be above the one here: a clock that was set meanwhile is found
/// by it.
const AHEAD: u64 = 50;

/// Way a machine times a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Timer {
    /// Smallest step of `time -p`, ns; `None` if it is not there.
    time_step_ns: Option<u64>,
    /// Step of date(1), nanoseconds or whole seconds; `None` if it cannot be used.
    date_step_ns: Option<u64>,
}

/// Reasons there is no result.
pub(super) enum NotRun {
    /// The connection ended: the words of ssh.
    Broken(String),
    /// The answer makes no sense; a clause.
    Wrong(String),
}

impl Timer {
    /// The timer by what [`TIMER`] shows; `None` if nothing there tells the time.
    pub(super) fn of(shown: &str) -> Option<Self> {
        let decimals = |text: &str| {
            text.split_once('.')
                .map_or(0, |(_, after)| after.trim().len())
        };
        let real = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix("real"));
        let real = real.filter(|text| text.trim().parse::<f64>().is_ok());
        // The digits that it prints are the steps that it counts in (POSIX, time: "%f" with at least as
        // many digits as the clock has).
        let time_step_ns = real.and_then(|text| {
            let digits = u32::try_from(decimals(text)).ok()?;
            Some(SECOND_NS / 10_u64.checked_pow(digits)?.clamp(1, 1000))
        });
        let dates = shown
            .lines()
            .filter_map(|line| line.trim().strip_prefix("date "));
        let steps = dates
            .filter(|text| text.parse::<f64>().is_ok())
            .map(|text| match decimals(text) == NANOSECOND_DIGITS {
                true => DATE_STEP_NS,
                false => SECOND_NS,
            });
        let date_step_ns = steps.min();
        let timer = Self {
            time_step_ns,
            date_step_ns,
        };
        (time_step_ns.or(date_step_ns).is_some()).then_some(timer)
    }

    /// Its smallest step, ns.
    fn step_ns(&self) -> u64 {
        let steps = [self.time_step_ns, self.date_step_ns];
        steps.into_iter().flatten().min().unwrap_or(SECOND_NS)
    }

    /// Returns true if the time is taken from date(1), which is finer here.
    fn by_date(&self) -> bool {
        match (self.time_step_ns, self.date_step_ns) {
            (Some(time), Some(date)) => date < time,
            (time, _) => time.is_none(),
        }
    }

    /// Method of its measurement, for the record.
    pub(super) fn described(&self) -> String {
        let by = match (self.by_date(), self.step_ns()) {
            (true, DATE_STEP_NS) => "date +%s.%N",
            (true, _) => "date +%s",
            (false, _) => "time -p",
        };
        let step = unit::time_ns(self.step_ns() as f64);
        format!("{by} there, in steps of {step}; a shorter trial than 100 steps has failed")
    }

    /// Command that shows a moment.
    fn moment(&self) -> &'static str {
        match self.date_step_ns {
            Some(DATE_STEP_NS) => "date +%s.%N",
            Some(_) => "date +%s",
            None => "echo none",
        }
    }
}

/// Runs a program over a line of its own, which is spent then.
pub(super) fn run(
    line: &mut ShellLine,
    timer: &Timer,
    work: &Path,
    call: &ProgramCall<'_>,
) -> Result<ProgramRun, NotRun> {
    let broken = |why| match why {
        NoAnswer::Broken(said) => NotRun::Broken(said),
        // Only the first wait can be given up, which is handled where it is waited for.
        NoAnswer::GivenUp | NoAnswer::NoShell => {
            NotRun::Wrong("the end of its outputs did not come".to_owned())
        }
    };
    let began = SystemClock.now_ns();
    line.send(&script(line.digits(), timer, work, call))
        .map_err(broken)?;
    let cut = Cell::new(None);
    let waits = || {
        let over = SystemClock.now_ns().saturating_sub(began) > call.time_max_ns;
        let why = match ((call.stopped)(), over) {
            (true, _) => Some(ProgramCut::Stopped),
            (false, true) => Some(ProgramCut::TimeOver),
            (false, false) => None,
        };
        cut.set(why);
        why.is_none()
    };
    let ended = match line.section("ended", 0, &waits) {
        Ok(ended) => ended.says,
        Err(NoAnswer::GivenUp) => {
            let cut = cut.get();
            return Ok(ProgramRun {
                cut,
                ..ProgramRun::default()
            });
        }
        Err(why) => return Err(broken(why)),
    };
    if let Some(why) = lacking(&ended, work, call) {
        return Err(NotRun::Wrong(why));
    }
    let here_ns = SystemClock.now_ns().saturating_sub(began);
    let always = || true;
    let out = line.section("out", PRINTED_MAX, &always).map_err(broken)?;
    let errors = line
        .section("errors", ERRORS_MAX, &always)
        .map_err(broken)?;
    let times = line.section("times", ERRORS_MAX, &always).map_err(broken)?;
    let times = Times::of(&String::from_utf8_lossy(&times.kept));
    let stops = line.section("stops", STOPS_MAX, &always).map_err(broken)?;
    let status = ended
        .parse()
        .map_err(|_| NotRun::Wrong(format!("its exit status came as {ended:?}")))?;
    let elapsed_ns = elapsed(timer, &times, here_ns).map_err(NotRun::Wrong)?;
    Ok(ProgramRun {
        status: Some(status),
        stdout_cut: out.dropped > 0,
        stdout: String::from_utf8_lossy(&out.kept).into_owned(),
        stderr: String::from_utf8_lossy(&errors.kept).into_owned(),
        elapsed_ns,
        cpu_user_ns: times.user_ns.unwrap_or(0),
        cpu_system_ns: times.system_ns.unwrap_or(0),
        step_ns: timer.step_ns(),
        stopped: stops::found(&String::from_utf8_lossy(&stops.kept)),
        ..ProgramRun::default()
    })
}

/// Reason a program was not run, or what it printed is not there, as the script says it in place of an exit status; a
/// clause.
fn lacking(ended: &str, work: &Path, call: &ProgramCall<'_>) -> Option<String> {
    let work = work.display();
    match ended {
        NO_DIRECTORY => Some(format!(
            "the directory {} is not there, or cannot be entered",
            call.directory.display()
        )),
        NO_WORK => Some(format!(
            "nothing can be written to {work}, where a program's outputs go while it runs"
        )),
        NO_OUTPUTS => Some(format!(
            "what the program printed is gone from {work}: something removed it meanwhile"
        )),
        _ => None,
    }
}

/// The script that runs a program, and shows how it ended and what it printed.
fn script(digits: &str, timer: &Timer, work: &Path, call: &ProgramCall<'_>) -> String {
    let in_work = |name: &str| quoted(work.join(name).as_os_str());
    let looks = stops::begin(&work.join("stops"));
    let (out, errors, times, stops, who) = (
        in_work("out"),
        in_work("errors"),
        in_work("times"),
        in_work("stops"),
        in_work("program"),
    );
    let directory = quoted(call.directory.as_os_str());
    let variables = call
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={}; export {name}; ", quoted(value)));
    let variables: String = variables.collect();
    let sync = if call.durable { "sync; " } else { "" };
    // Its outputs are redirected inside, because those of `time` are its own.
    let inner = format!(
        "cd {directory} || exit 126; {DIRECTORY}={directory}; export {DIRECTORY}; {variables}\
         ( exec {} ) </dev/null >{out} 2>{errors}; s=$?; {sync}exit $s",
        quoted_all(call.argv)
    );
    let timed = match timer.time_step_ns {
        Some(_) => "time -p ",
        None => "",
    };
    let moment = timer.moment();
    // Braces: the shell has read all of this before the watcher begins, which reads the same connection
    // and would take the rest of it away.
    // The watcher waits for the end of the connection: nothing more is ever sent. It is waited for in
    // the end, so that no dead process is left whose parent is gone; then what the program left running
    // is ended, and this shell with it. A missing file is said as such: no other error would show it.
    // Looks at what is stopped begin before the clock does.
    format!(
        "{{ ( while read -r line; do :; done; kill -9 -$$ ) <&3 3<&- >/dev/null 2>&1 4>&- &\n\
         w=$!; l=; exec 3<&-; \
         if ! ( cd {directory} ) 2>/dev/null; then s={NO_DIRECTORY}; \
         elif ! {{ echo $$ >{who} && printf '' >{out} && printf '' >{errors} && printf '' >{stops} && printf '' >{times}; }}; \
         then s={NO_WORK}; \
         else {looks}{moment} >>{times}; ( {timed}sh -c {inner} ) 2>>{times} 4>&-; s=$?; {moment} >>{times}; \
         [ -f {out} ] && [ -f {errors} ] && [ -f {times} ] || s={NO_OUTPUTS}; fi; \
         [ -z $l ] || kill -9 $l; printf '\\n%s ended %s\\n' {digits} $s; \
         dd if={out} bs=65536 count=130 2>/dev/null; printf '\\n%s out\\n' {digits}; \
         tail -c {ERRORS_MAX} {errors}; printf '\\n%s errors\\n' {digits}; \
         cat {times}; printf '\\n%s times\\n' {digits}; \
         tail -c {STOPS_MAX} {stops}; printf '\\n%s stops\\n' {digits}; \
         rm -f {who}; kill -9 $w; wait $w; kill -9 -$$; }}\n",
        inner = quoted(inner.as_ref()),
    )
}

/// Show the end of what a program printed, on both of its outputs.
pub(super) fn last_words(work: &Path) -> [String; 2] {
    ["out", "errors"].map(|name| {
        format!(
            "tail -c {ERRORS_MAX} {}",
            quoted(work.join(name).as_os_str())
        )
    })
}

/// Ends the process group of a program that a dead run left, and shows its number as long as it is there.
pub(super) fn left(work: &Path, name: &str) -> String {
    let who = quoted(work.join("program").as_os_str());
    // Its number may be another's by now: it is ended only where ps shows our name for it. A system
    // whose ps shows nothing has the number shown, and the user decides.
    format!(
        "[ -f {who} ] || exit 0; p=$(cat {who}); case $p in ''|*[!0-9]*) exit 0;; esac; \
         kill -0 -$p 2>/dev/null || {{ rm -f {who}; exit 0; }}; \
         a=$(ps -o args= -p $p 2>/dev/null); case $a in *stackrace-works-in-{name}*) kill -9 -$p;; \
         '') ;; *) rm -f {who}; exit 0;; esac; echo $p"
    )
}

/// Times of a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Times {
    real_ns: Option<u64>,
    user_ns: Option<u64>,
    system_ns: Option<u64>,
    /// Time between two calls of date(1), ns.
    between_ns: Option<u64>,
}

impl Times {
    fn of(text: &str) -> Self {
        let of = |name: &str| {
            let lines = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix(name));
            lines.filter_map(nanoseconds).next_back()
        };
        let mut moments = text.lines().filter_map(nanoseconds);
        let between = moments.next().zip(moments.next_back());
        Self {
            real_ns: of("real"),
            user_ns: of("user"),
            system_ns: of("sys"),
            between_ns: between.and_then(|(from, to)| to.checked_sub(from)),
        }
    }
}

/// A number of seconds with decimals, exactly.
fn nanoseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > NANOSECOND_DIGITS {
        return None;
    }
    // 1.5 s: the digits that are not written are zeros.
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(SECOND_NS)?
        .checked_add(part)
}

/// Duration, as the finer of the clocks there says.
fn elapsed(timer: &Timer, times: &Times, here_ns: u64) -> Result<u64, String> {
    let found = match timer.by_date() {
        true => times.between_ns,
        false => times.real_ns,
    };
    let there_ns = found.ok_or("the machine did not say how long it took")?;
    // It cannot have taken longer there than it was waited for here.
    let most = here_ns
        .saturating_add(here_ns / AHEAD)
        .saturating_add(timer.step_ns());
    match there_ns > most {
        true => Err(format!(
            "its clock says {}, and here only {} went by: the clock there was set meanwhile",
            unit::time_ns(there_ns as f64),
            unit::time_ns(here_ns as f64)
        )),
        false => Ok(there_ns),
    }
}

/// Reads a text as what a machine shows of its clocks, and of the times of a program.
///
/// # Panics
/// A step is impossible, or a program took longer than it was waited for.
#[cfg(any(test, feature = "testing"))]
pub(super) fn check_times(text: &str) {
    let times = Times::of(text);
    for timer in text.lines().filter_map(Timer::of).chain(Timer::of(text)) {
        assert!((1..=SECOND_NS).contains(&timer.step_ns()), "{timer:?}");
        for here_ns in [0, SECOND_NS, u64::MAX] {
            let most = here_ns
                .saturating_add(here_ns / AHEAD)
                .saturating_add(SECOND_NS);
            match elapsed(&timer, &times, here_ns) {
                Ok(ns) => assert!(ns <= most, "{timer:?} {times:?}"),
                Err(why) => assert!(!why.is_empty() && !timer.described().is_empty()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::local::LocalHost;
    use stackrace_machine::host::{Host, argv};
    use std::ffi::OsString;
    use std::sync::Arc;

    #[test]
    fn the_step_of_a_clock_is_read_from_what_it_shows() {
        let steps = |shown| Timer::of(shown).map(|timer| (timer.step_ns(), timer.by_date()));
        // BusyBox: date does not know %N.
        let busybox = "real 0.00\ndate 1795517008.%N\ndate 1795517008";
        assert_eq!(steps(busybox), Some((10_000_000, false)));
        let gnu = "real 0.00\ndate 1795517008.123456789\ndate 1795517008";
        assert_eq!(steps(gnu), Some((DATE_STEP_NS, true)));
        let without_time = "date 1795517008.N\ndate 1795517008";
        assert_eq!(steps(without_time), Some((SECOND_NS, true)));
        let three_digits = "real 0.001\n";
        assert_eq!(steps(three_digits), Some((1_000_000, false)));
        assert_eq!(steps("sh: time: not found\ndate: bad format"), None);
    }

    #[test]
    fn times_are_read_exactly_and_the_finer_clock_counts() {
        let text = "1795517008.5\nCommand exited with non-zero status 3\nreal 1.25\nuser 0.5\nsys 0.01\n1795517010\n";
        let times = Times::of(text);
        assert_eq!(
            times,
            Times {
                real_ns: Some(1_250_000_000),
                user_ns: Some(500_000_000),
                system_ns: Some(10_000_000),
                between_ns: Some(1_500_000_000),
            }
        );
        let timer = |shown| Timer::of(shown).unwrap();
        let by_time = timer("real 0.00\ndate 1");
        assert_eq!(elapsed(&by_time, &times, 2 * SECOND_NS), Ok(1_250_000_000));
        let by_date = timer("real 0.00\ndate 1.123456789");
        assert_eq!(elapsed(&by_date, &times, 2 * SECOND_NS), Ok(1_500_000_000));
    }

    /// Its watcher reads the same connection: what the shell had not read by then would be lost.
    #[test]
    fn nothing_of_the_script_runs_before_the_shell_has_read_all_of_it() {
        let words = ["sh", "-c", "echo 'a\nb'"].map(OsString::from);
        let call = ProgramCall {
            argv: &words,
            directory: Path::new("/srv/it's"),
            environment: &[],
            time_max_ns: 1,
            durable: true,
            leaves_server: false,
            stopped: &|| false,
            lines: None,
        };
        let timer = Timer::of("real 0.00").unwrap();
        let script = script("17", &timer, Path::new("/tmp/work"), &call);
        let host = LocalHost::new(Arc::new(|_| ()));
        let understood = |text: &str| {
            let said = host.exec(&argv(["sh", "-n", "-c", text])).unwrap();
            said.status == Some(0)
        };
        assert!(understood(&script), "{script}");
        let ends = script.match_indices('\n').map(|(at, _)| at + 1);
        for end in ends.filter(|end| *end < script.len()) {
            assert!(!understood(&script[..end]), "{}", &script[..end]);
        }
    }

    #[test]
    fn a_clock_that_was_set_is_found_out() {
        let timer = Timer::of("date 1.123456789").unwrap();
        let times = Times::of("100.0\n200.0\n");
        let error = elapsed(&timer, &times, SECOND_NS).unwrap_err();
        assert!(error.contains("was set meanwhile"), "{error}");
        // Set back, nothing is known.
        assert!(elapsed(&timer, &Times::of("200.0\n100.0\n"), SECOND_NS).is_err());
    }
}
