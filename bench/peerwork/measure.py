"""Running one process and saying what it cost; minimum, median and maximum of figures."""

import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# No run of this bench takes this long: a tool that does, hangs.
LIMIT_S = 120


class ToolFailed(Exception):
    """A tool ended with an error, or not at all; the message is its own last words."""


@dataclass
class Run:
    """One process, from its start to its end."""

    cpu_ns: float  # user + system, all threads and children; a ring's kernel workers are threads
    elapsed_ns: float
    out: str


def too_long(*_):
    raise ToolFailed(f"no end after {LIMIT_S} s")


signal.signal(signal.SIGALRM, too_long)


def last_words(text, lines=3):
    return " / ".join(line.strip() for line in text.strip().splitlines()[-lines:])


def end(child):
    """Ends a child and whatever it started; it is asked first, so that it can clean up."""
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        if child.poll() is not None:
            return
        try:
            os.killpg(child.pid, number)
            child.wait(patience)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


class Started:
    """A child in its own process group, its output in files; ended if the block is left early."""

    def __init__(self, argv, cwd=None):
        self.argv, self.cwd = [str(word) for word in argv], cwd

    def __enter__(self):
        self.out = tempfile.TemporaryFile("w+")
        self.err = tempfile.TemporaryFile("w+")
        self.begun_ns = time.perf_counter_ns()
        self.child = subprocess.Popen(
            self.argv, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
            start_new_session=True)
        signal.alarm(LIMIT_S)
        return self

    def __exit__(self, *_):
        signal.alarm(0)
        end(self.child)
        self.out.close()
        self.err.close()

    def finished(self):
        """Waits for the end; what it cost."""
        _, status, usage = os.wait4(self.child.pid, 0)
        elapsed_ns = time.perf_counter_ns() - self.begun_ns
        self.child.returncode = os.waitstatus_to_exitcode(status)
        self.out.seek(0)
        self.err.seek(0)
        out, err = self.out.read(), self.err.read()
        if self.child.returncode != 0:
            raise ToolFailed(f"{self.argv[0]} exit {self.child.returncode}: {last_words(err or out)}")
        return Run((usage.ru_utime + usage.ru_stime) * 1e9, elapsed_ns, out)


def run(argv, cwd=None):
    """One process to its end."""
    with Started(argv, cwd) as started:
        return started.finished()


def pinned(core, argv):
    return ["taskset", "-c", str(core), *argv] if core is not None else argv


def slope(command, few, many, core, cwd=None):
    """CPU and elapsed ns per operation between a short and a long run: start and end cancel."""
    short = run(pinned(core, command(few)), cwd)
    long = run(pinned(core, command(many)), cwd)
    return {"cpu_ns": (long.cpu_ns - short.cpu_ns) / (many - few),
            "elapsed_ns": (long.elapsed_ns - short.elapsed_ns) / (many - few)}


def cpu_clock(pid):
    """The kernel's clock of the CPU time of all threads of a process (see clock_getcpuclockid)."""
    return (~pid << 3) | 2


def between_lines(argv, pattern, scale):
    """For a tool that runs for whole seconds and prints its rate each second: from the first such
    line to the second. `pattern` finds the operations of that second, `scale` its unit."""
    read, write = os.pipe()
    with os.fdopen(read) as lines, subprocess.Popen(
            argv, stdout=write, stderr=subprocess.STDOUT, start_new_session=True) as child:
        os.close(write)
        try:
            seen, marks = [], []
            for line in lines:
                seen.append(line)
                found = re.search(pattern, line)
                if not found:
                    continue
                marks.append((time.clock_gettime_ns(cpu_clock(child.pid)), time.perf_counter_ns()))
                if len(marks) == 2:
                    count = float(found[1]) * scale[found[2]]
                    break
            else:
                raise ToolFailed(f"{argv[-1]}: {last_words(''.join(seen))}")
        finally:
            end(child)
    (cpu_then, then), (cpu_now, now) = marks
    return {"cpu_ns": (cpu_now - cpu_then) / count, "elapsed_ns": (now - then) / count}


def family(pid):
    """A process and its descendants."""
    pids = [pid]
    for parent in pids:
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as children:
                pids += [int(child) for child in children.read().split()]
        except OSError:
            continue
    return pids


def peak_bytes(argv, cwd=None):
    """Highest resident set, bytes: the kernel's own high-water mark of the process and its children,
    read until the end. (wait4's figure would begin with the size of this script.)"""
    peaks = {}
    with Started(argv, cwd) as started:
        pid = started.child.pid
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            for member in family(pid):
                try:
                    with open(f"/proc/{member}/status") as status:
                        found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
                except OSError:
                    continue
                if found:
                    peaks[member] = int(found[1]) * 1024
            time.sleep(0.005)
        started.finished()
    return {"peak_bytes": sum(peaks.values())}


DATA_CALLS = "pread64,preadv,preadv2,io_uring_enter,io_submit"


def first_io(argv, data, cwd=None):
    """Process start to the first data system call on the file `data`, ns, seen by strace. Other
    system calls run at full speed (seccomp filter). A traced call costs about 0.1 ms: plain reads,
    by which programs also read their settings and the state of the system, are traced only where
    the data are read so."""
    calls = DATA_CALLS + (",read" if Path(argv[0]).name == "dd" else "")
    trace = tempfile.NamedTemporaryFile("r", prefix="stackrace-peers-trace.")
    with trace:
        with Started(["strace", "-f", "--seccomp-bpf", "-ttt", "-y", "-e",
                      f"trace=execve,{calls}", "-o", trace.name, *argv], cwd) as started:
            started.finished()
        begun = None
        for line in trace:
            at = re.match(r"(?:\d+\s+)?(\d+\.\d+) (\w+)\(([^,]*)", line)
            if not at:
                continue
            if begun is None and at[2] == "execve":
                begun = float(at[1])
            elif at[2] in ("io_uring_enter", "io_submit") or f"<{data}>" in at[3]:
                return {"first_io_ns": (float(at[1]) - begun) * 1e9}
    raise ToolFailed(f"{argv[0]}: no data system call was seen")


def spread(figures):
    """Minimum, median, maximum."""
    return min(figures), statistics.median(figures), max(figures)


def ratio(figures, bases):
    """Median of the ratios within each round."""
    return statistics.median(a / b for a, b in zip(figures, bases) if b)
