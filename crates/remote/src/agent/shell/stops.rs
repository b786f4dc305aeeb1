//! A measured program that a signal stopped, on a machine that has nothing but a shell.
//!
//! A small shell of its own looks once a second at the states of the program and of all below it, where the system shows
//! them in files (Linux, proc_pid_stat(5)): it reads them by itself, so that a look starts nothing but sleep(1) beside
//! what is measured. Elsewhere only ps(1) would show them, by going over every process there, which is too much beside a
//! measurement: then the record says that it is not seen ([`super::about`]). A look that comes late itself was stopped
//! together with the program.

use super::quoted;
use stackrace_system::child::StoppedProgram;
use std::path::Path;

/// Test of `sh` whether states can be looked at.
pub(super) const SEEN: &str = "[ -r /proc/$$/task/$$/children ] && [ -r /proc/uptime ]";

/// Looks at all below the shell `$1` but at itself, and adds a line to the file `$2` for each look that found one that the
/// look before had found, too: hundredths of a second so far, then the beginning of its line (`4711 (sleep`).
const LOOKS: &str = r#"top=$1; file=$2; last=" "; all=0; read -r now x </proc/uptime; now=${now%.*}${now#*.}
while sleep 1; do
  before=$now; read -r now x </proc/uptime; now=${now%.*}${now#*.}; went=$((now - before)); found=" "; who=
  [ $went -lt 200 ] || { all=$((all + went - 100)); printf '%s\n' "$all" >>"$file"; }
  set -- "$top"
  while [ $# -gt 0 ]; do
    one=$1; shift; [ "$one" != $$ ] || continue
    line=; read -r line <"/proc/$one/stat"
    case ${line##*) } in T*) found="$found$one "; case $last in *" $one "*) who=${line%)*};; esac;; esac
    for children in "/proc/$one/task/"*/children; do more=; read -r more <"$children"; set -- "$@" $more; done
  done
  [ -z "$who" ] || [ $went -ge 200 ] || { all=$((all + went)); printf '%s %s\n' "$all" "$who" >>"$file"; }
  last=$found
done"#;

/// Starts the looks at a program that the shell of this script starts later, where they can be made; `$l` is their
/// process then.
pub(super) fn begin(file: &Path) -> String {
    format!(
        "if {SEEN}; then sh -c {} stackrace-looks $$ {} </dev/null >/dev/null 2>&1 4>&- & l=$!; fi; ",
        quoted(LOOKS.as_ref()),
        quoted(file.as_os_str())
    )
}

/// What the looks found; `None` if nothing was stopped.
pub(super) fn found(text: &str) -> Option<StoppedProgram> {
    // A look that was ended may have left a part of its line.
    let whole = text.rsplit_once('\n')?.0;
    let mut stopped: Option<StoppedProgram> = None;
    for line in whole.lines() {
        let (hundredths, who) = line.split_once(' ').unwrap_or((line, ""));
        let Ok(hundredths) = hundredths.parse::<u64>() else {
            continue;
        };
        let who = who.split_once(" (");
        let who = who.map(|(number, name)| format!("{name} (process {number})"));
        stopped = Some(StoppedProgram {
            ns: hundredths.saturating_mul(10_000_000),
            who: who.or(stopped.and_then(|before| before.who)),
        });
    }
    stopped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_look_has_the_whole_time_and_the_name_is_kept() {
        let stopped = |ns, who: Option<&str>| {
            let who = who.map(str::to_owned);
            Some(StoppedProgram { ns, who })
        };
        assert_eq!(found(""), None);
        let text = "101 4711 (my (odd) name\n202 4711 (my (odd) name\n30";
        let who = Some("my (odd) name (process 4711)");
        assert_eq!(found(text), stopped(2_020_000_000, who));
        assert_eq!(found("400\n"), stopped(4_000_000_000, None));
        assert_eq!(
            found("101 7 (fio\n500\n"),
            stopped(5_000_000_000, Some("fio (process 7)"))
        );
        assert_eq!(found("no number\n"), None);
    }
}
