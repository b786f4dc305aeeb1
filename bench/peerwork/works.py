"""The work: what each part compares, and each tool's command line for it."""

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from . import measure
from .places import GIB, MIB, Places
from .race import OURS, Case, Entrant, by_slope, by_whole, written

BLOCK = 4096
# Files of random bytes that several parts read.
SETS = {"hot": ("16 MiB, hot", 16 * MIB), "cached": ("1 GiB, in the page cache", GIB)}


@dataclass
class Bench:
    """What every part needs."""

    places: Places
    tools: dict
    core: int  # where work of one thread is pinned
    rounds: int
    quick: bool

    def path(self, tool):
        return self.tools[tool].path or tool

    def count(self, full):
        """Operations: a quarter of the full number in a quick run."""
        return full // 4 if self.quick else full

    def case(self, *words, **more):
        """A case; a quick run leaves out who keeps no latencies, and libaio."""
        case = Case(*words, **more)
        if self.quick:
            case.entrants = [entrant for entrant in case.entrants
                             if entrant.latencies is not False and "libaio" not in entrant.name]
        return case


def load(bench, place, workload, *settings):
    return [bench.path("stackrace"), "load", str(place), workload, *map(str, settings)]


def fio(bench, name, *options):
    return [bench.path("fio"), f"--name={name}", "--output=/dev/null", *map(str, options)]


def sysbench(bench, size, mode, events, *options):
    return [bench.path("sysbench"), "fileio", f"--file-total-size={size}", "--file-num=1",
            f"--file-test-mode={mode}", f"--file-block-size={BLOCK}", "--file-fsync-freq=0", "--time=0",
            f"--events={events}", *options, "run"]


def t_io_uring(bench, path, name, depth, *options, **words):
    """Runs for whole seconds and counts them itself: measured between its first two lines."""
    batch = min(depth, 32)
    argv = [bench.path("t/io_uring"), f"-d{depth}", f"-s{batch}", f"-c{batch}", f"-b{BLOCK}", "-p0",
            "-R1", "-n1", "-r4", *options, str(path)]
    scale = {"M": 1e6, "K": 1e3, "": 1}
    argv = measure.pinned(bench.core, ["stdbuf", "-oL", *argv])
    return by_whole(name, "t/io_uring", argv,
                    lambda: measure.between_lines(argv, r"^IOPS=([\d.]+)([KM]?),", scale), **words)


def elbencho(bench, path, depth, *options):
    """Random reads; its amount is in bytes."""
    return lambda n: [bench.path("elbencho"), "-r", "--rand", "--randalgo", "fast", "-t", "1", "-b", "4k",
                      "--iodepth", str(depth), "--lat", "--nolive", "--randamount", str(n * BLOCK),
                      *options, str(path)]


def fio_reads(bench, path, size, *options):
    """Random reads of a file or device; the page cache is left as it is."""
    return lambda n: fio(bench, "reads", f"--filename={path}", "--rw=randread", f"--bs={BLOCK}",
                         f"--size={size}", f"--io_size={n * BLOCK}", "--invalidate=0", *options)


def our_reads(bench, path, *settings):
    return lambda n: load(bench, path, "random", "mode=read", "access=uniform", f"block-size={BLOCK}",
                          f"operations={n}", "time=1h", *settings)


# fio at its best with latencies kept, and without.
FIO_LEAN = ["--norandommap=1", "--disable_slat=1", "--disable_lat=1"]
FIO_BLIND = ["--norandommap=1", "--gtod_reduce=1"]
FIO_BATCH = ["--iodepth_batch_submit=32", "--iodepth_batch_complete_min=32", "--iodepth_batch_complete_max=32"]
FIO_REGISTERED = ["--registerfiles=1", "--fixedbufs=1"]


def cached(bench):
    """4 KiB random reads from the page cache, one at a time."""
    for key, (label, size) in SETS.items():
        path, n = bench.places.file(key, size), bench.count(1_000_000)

        def event(*options):
            return lambda n: sysbench(bench, size, "rndrd", n, *options)

        yield bench.case(
            "cached", f"pread, {label}", "4 KiB random reads by plain calls, one at a time",
            ["cpu_ns", "elapsed_ns"], [
                by_slope(bench, "bare loop", "bare",
                         lambda n: [bench.path("bare"), "pread", path, n], n, latencies=None),
                by_slope(bench, OURS, "stackrace", our_reads(bench, path, "engine=sync"), n),
                by_slope(bench, "fio psync, default", "fio",
                         fio_reads(bench, path, size, "--ioengine=psync"), n),
                by_slope(bench, "fio psync, tuned", "fio",
                         fio_reads(bench, path, size, "--ioengine=psync", *FIO_LEAN), n),
                by_slope(bench, "fio psync, gtod_reduce", "fio",
                         fio_reads(bench, path, size, "--ioengine=psync", *FIO_BLIND), n, latencies=False),
                by_slope(bench, "sysbench, default", "sysbench", event(), n, cwd=path.parent,
                         note="its default draws from a special distribution"),
                by_slope(bench, "sysbench, uniform", "sysbench", event("--rand-type=uniform"), n,
                         cwd=path.parent),
                by_slope(bench, "elbencho", "elbencho", elbencho(bench, path, 1), n),
                t_io_uring(bench, path, "t/io_uring -S1, latencies", 1, "-S1", "-O0", "-t1"),
                t_io_uring(bench, path, "t/io_uring -S1", 1, "-S1", "-O0", "-t0", latencies=False),
            ], base="bare loop", settle=lambda path=path: bench.places.warm(path))


def uring(bench):
    """The same by io_uring at depth."""
    for key, depth in (("hot", 32), ("hot", 128), ("cached", 32), ("cached", 128)):
        if bench.quick and (key == "hot") != (depth == 32):
            continue
        label, size = SETS[key]
        path, n = bench.places.file(key, size), bench.count(500_000)
        deep = [f"--iodepth={depth}"]
        ring = ["--ioengine=io_uring", *deep]
        yield bench.case(
            "uring", f"io_uring, depth {depth}, {label}", "4 KiB random reads by a ring",
            ["cpu_ns", "elapsed_ns"], [
                by_slope(bench, "bare ring", "bare",
                         lambda n: [bench.path("bare"), "ring", path, n, depth], n, latencies=None),
                by_slope(bench, OURS, "stackrace",
                         our_reads(bench, path, f"queue-depth={depth}", "engine=io_uring"), n),
                by_slope(bench, "fio io_uring, default", "fio", fio_reads(bench, path, size, *ring), n),
                by_slope(bench, "fio io_uring, tuned", "fio", fio_reads(
                    bench, path, size, *ring, *FIO_LEAN, *FIO_REGISTERED, *FIO_BATCH), n),
                by_slope(bench, "fio io_uring, tuned, gtod_reduce", "fio", fio_reads(
                    bench, path, size, *ring, *FIO_BLIND, *FIO_REGISTERED, *FIO_BATCH), n, latencies=False),
                by_slope(bench, "fio libaio, default", "fio",
                         fio_reads(bench, path, size, "--ioengine=libaio", *deep), n),
                by_slope(bench, "fio libaio, tuned", "fio", fio_reads(
                    bench, path, size, "--ioengine=libaio", *deep, *FIO_LEAN, *FIO_BATCH), n),
                t_io_uring(bench, path, "t/io_uring, latencies", depth, "-O0", "-B1", "-F1", "-t1"),
                t_io_uring(bench, path, "t/io_uring", depth, "-O0", "-B1", "-F1", "-t0", latencies=False),
            ], base="bare ring", settle=lambda path=path: bench.places.warm(path))


def zram(bench):
    """4 KiB random reads of a fast block device, past the page cache."""
    size = 512 * MIB
    path = bench.places.zram(size)
    direct = "--direct=1"
    for depth in (1, 32):
        # A ring hands every request for this device to a kernel worker: a tenth of the operations.
        n, ring_n = bench.count(400_000), bench.count(60_000)
        deep = [f"queue-depth={depth}", "direct=true"]
        fio_deep = [direct, f"--iodepth={depth}"]
        yield Case(
            "zram", f"zram, direct, depth {depth}", "4 KiB random reads of a zram device of "
            "incompressible data, O_DIRECT", ["cpu_ns", "elapsed_ns"], [
                by_slope(bench, "bare loop", "bare",
                         lambda n: [bench.path("bare"), "pread", path, n, "direct"], n, latencies=None,
                         note="one at a time"),
                by_slope(bench, "bare ring", "bare",
                         lambda n: [bench.path("bare"), "ring", path, n, depth, "direct"], ring_n,
                         latencies=None),
                by_slope(bench, OURS, "stackrace", our_reads(bench, path, *deep, "engine=auto"), n,
                         note="engine=auto"),
                by_slope(bench, "stackrace, engine=sync", "stackrace",
                         our_reads(bench, path, *deep, "engine=sync"), n),
                by_slope(bench, "stackrace, engine=io_uring", "stackrace",
                         our_reads(bench, path, *deep, "engine=io_uring"), ring_n),
                by_slope(bench, "fio psync, tuned", "fio", fio_reads(
                    bench, path, size, direct, "--ioengine=psync", *FIO_LEAN), n, note="one at a time"),
                by_slope(bench, "fio io_uring, default", "fio",
                         fio_reads(bench, path, size, *fio_deep, "--ioengine=io_uring"), ring_n),
                by_slope(bench, "fio io_uring, tuned", "fio", fio_reads(
                    bench, path, size, *fio_deep, "--ioengine=io_uring", *FIO_LEAN, *FIO_REGISTERED,
                    *(FIO_BATCH if depth > 1 else [])), ring_n),
                by_slope(bench, "fio libaio, tuned", "fio", fio_reads(
                    bench, path, size, *fio_deep, "--ioengine=libaio", *FIO_LEAN,
                    *(FIO_BATCH if depth > 1 else [])), n),
                by_slope(bench, "elbencho", "elbencho", elbencho(bench, path, depth, "--direct"), n),
                t_io_uring(bench, path, "t/io_uring, latencies", depth, "-O1", "-B1", "-F1", "-t1"),
            ], base="bare loop")


def our_files(bench, kind, settings, names):
    """stackrace's phases of those names: its other phases are other work. In order of creation, and
    once more out of order, as bonnie++ does it."""
    def one(order):
        argv = load(bench, bench.places.fresh(kind), "files", *settings, f"order={order}", "--warm", "--json")
        told = json.loads(measure.run(measure.pinned(bench.core, argv)).out)
        phases = [phase for phase in told["phases"] if phase["name"] in names]
        if [phase["name"] for phase in phases] != names or any(phase["error"] for phase in phases):
            raise measure.ToolFailed(f"stackrace: phases {told['phases']}")
        count = sum(op["count"] for op in phases[0]["ops"])
        return {figure: sum(phase[key] for phase in phases) / count
                for figure, key in (("cpu_ns", "cpu_ns"), ("elapsed_ns", "elapsed_ns"))}

    def probe():
        both = [one(order) for order in ("creation", "random")]
        return {figure: sum(told[figure] for told in both) / 2 for figure in both[0]}
    return probe


def fio_files(bench, kind, count):
    """fio's engines for files, by its own account of each of three jobs: what it does before a job
    (laying files out again) is left out, and so are its other threads."""
    def argv(directory):
        jobs = [["--name=" + name, *stone, f"--ioengine={engine}"] for name, engine, stone in (
            ("create", "filecreate", []), ("stat", "filestat", ["--stonewall"]),
            ("delete", "filedelete", ["--stonewall"]))]
        return [bench.path("fio"), f"--directory={directory}", "--output-format=json", "--fallocate=none",
                "--openfiles=1", f"--nrfiles={count}", f"--filesize={BLOCK}", f"--bs={BLOCK}",
                "--filename_format=f.$filenum", *sum(jobs, [])]

    def probe():
        out = measure.run(measure.pinned(bench.core, argv(bench.places.fresh(kind)))).out
        jobs = json.loads(out[out.index("{"):])["jobs"]
        elapsed = sum(job["job_runtime"] for job in jobs) * 1e6
        cpu = sum(job["job_runtime"] * (job["usr_cpu"] + job["sys_cpu"]) / 100 for job in jobs) * 1e6
        return {"cpu_ns": cpu / count, "elapsed_ns": elapsed / count}

    return Entrant(f"fio filecreate, filestat, filedelete, {count} files", "fio",
                   [written(measure.pinned(bench.core, argv(f"/{kind}")))], probe,
                   note="by its own account of its jobs; grows with the number of files")


def fresh_slope(bench, kind, name, tool, command, few, many, per=1, **words):
    """Between a short and a long run, each on a file system made anew."""
    def cost(count):
        return measure.run(measure.pinned(bench.core, command(bench.places.fresh(kind), count)))

    def probe():
        short, long = cost(few), cost(many)
        return {"cpu_ns": (long.cpu_ns - short.cpu_ns) / (many - few) / per,
                "elapsed_ns": (long.elapsed_ns - short.elapsed_ns) / (many - few) / per}
    return Entrant(name, tool, [written(measure.pinned(bench.core, command(Path(f"/{kind}"), many)))],
                   probe, **words)


def files(bench):
    """Small files created, looked up and removed."""
    for kind in ("tmpfs", "ext4", "xfs"):
        if kind != "tmpfs" and not bench.quick:
            bench.places.need_root("a file system on a loop device")
        for size in (0, BLOCK):
            for directories in (1, 16):
                if bench.quick and (kind != "tmpfs" or (size == 0) != (directories == 1)):
                    continue
                yield files_case(bench, kind, size, directories)


def files_case(bench, kind, size, directories):
    thousands = bench.count(20)  # of 1,024, as bonnie++ counts
    n = thousands * 1024
    settings = [f"count={n}", f"directories={directories}", f"size-min={size}", f"size-max={size}",
                "sync-at-end=false"]
    names = ["create", "stat", "unlink"]
    command = [written(measure.pinned(bench.core, load(bench, f"/{kind}", "files", *settings, "--warm", "--json")))]
    bare = fresh_slope(bench, kind, "bare loop", "bare", lambda path, n: [
        bench.path("bare"), "files", path, n, directories, size], 1024, n, 2, latencies=None)
    ours = [bare, Entrant(OURS, "stackrace", command, our_files(bench, kind, settings, names))]
    if size:
        ours.append(Entrant("stackrace, reading too", "stackrace", command, our_files(
            bench, kind, settings, ["create", "stat", "read", "unlink"]), note="beside bonnie++"))
    peers = [
        # Sequential and random order: every file is made twice.
        fresh_slope(bench, kind, "bonnie++", "bonnie++", lambda path, k: [
            bench.path("bonnie++"), "-q", "-u", "root", "-s", "0", "-d", path, "-n",
            f"{k}:{size}:{size}:{directories}"], 1, thousands, 2048, latencies=False,
            note="only the longest" + ("; reads each file, too" if size else ""),
            beside=ours[-1].name),
        fresh_slope(bench, kind, "mdtest", "mdtest", lambda path, n: [
            bench.path("mdtest"), "-F", "-C", "-T", "-r", "-w", size, "-d", path,
            *(["-n", n] if directories == 1 else ["-b", directories - 1, "-z", 1, "-I", n // directories])],
            1024, n, latencies=False),
        fresh_slope(bench, kind, "elbencho", "elbencho", lambda path, n: [
            bench.path("elbencho"), "-t", "1", "--nolive", "-d", "-w", "--stat", "-F", "-D", "-n", directories,
            "-N", n // directories, "-s", size, *(["-b", size] if size else []), path], 1024, n),
    ]
    if size == 0 and directories == 1:
        peers.append(fio_files(bench, kind, 1000))
    what = "empty files" if size == 0 else "files of 4 KiB"
    where = "one directory" if directories == 1 else f"{directories} directories"
    return Case("files", f"{kind}, {what}, {where}", "Each file created, looked up and removed; per file",
                ["cpu_ns", "elapsed_ns"], ours + peers, base="bare loop")


def data(bench):
    """What it costs that data to write cannot be compressed."""
    n, size = bench.count(400_000), 16 * MIB
    directory = bench.places.directory("data", bench.places.memory)

    def ours(*settings):
        return lambda n: load(bench, directory, "random", "mode=write", "access=uniform", f"size={size}",
                              f"block-size={BLOCK}", f"operations={n}", "time=1h", "engine=sync",
                              "fsync-at-end=false", *settings)

    def fios(*options):
        return lambda n: fio(bench, "writes", f"--directory={directory}", "--rw=randwrite", f"--bs={BLOCK}",
                             f"--size={size}", f"--io_size={n * BLOCK}", "--ioengine=psync",
                             "--invalidate=0", "--overwrite=1", *FIO_LEAN, *options)

    yield Case(
        "data", "4 KiB random writes, tmpfs", "The same writes of zeros and of data that do not compress",
        ["cpu_ns", "elapsed_ns"], [
            by_slope(bench, "stackrace, zeros", "stackrace", ours("content=zero"), n),
            by_slope(bench, OURS, "stackrace", ours("content=random"), n, note="content=random"),
            by_slope(bench, "fio, zero_buffers", "fio", fios("--zero_buffers=1"), n),
            by_slope(bench, "fio, scrambled (default)", "fio", fios(), n,
                     note="blocks differ in 24 of 512 bytes"),
            by_slope(bench, "fio, refill_buffers", "fio", fios("--refill_buffers=1"), n),
        ], differences=[
            ("stackrace, content=random", OURS, "stackrace, zeros"),
            ("fio, scrambled", "fio, scrambled (default)", "fio, zero_buffers"),
            ("fio, refill_buffers", "fio, refill_buffers", "fio, zero_buffers")])


def start(bench):
    """From the start of the process to its first I/O; all of a run of one operation."""
    path, size = bench.places.file("hot", 16 * MIB), 16 * MIB
    reads = fio_reads(bench, path, size, "--ioengine=psync", *FIO_LEAN)
    runs = [
        (OURS, "stackrace", our_reads(bench, path, "engine=sync")(1), True),
        ("stackrace, engine=io_uring", "stackrace",
         our_reads(bench, path, "engine=io_uring", "queue-depth=32")(1), True),
        ("fio psync", "fio", reads(1), True),
        ("fio io_uring", "fio", fio_reads(bench, path, size, "--ioengine=io_uring", *FIO_LEAN)(1), True),
        ("sysbench", "sysbench", sysbench(bench, size, "rndrd", 1, "--rand-type=uniform"), True),
        ("elbencho", "elbencho", elbencho(bench, path, 1)(1), True),
        ("t/io_uring", "t/io_uring", [bench.path("t/io_uring"), "-d1", "-p0", "-O0", "-r1", str(path)], True),
        ("dd", "dd", ["dd", f"if={path}", "of=/dev/null", f"bs={BLOCK}", "count=1"], None),
    ]

    def elapsed(argv):
        return lambda: {"elapsed_ns": measure.run(argv, path.parent).elapsed_ns}

    def first(argv):
        return lambda: measure.first_io(argv, path, path.parent)

    rounds = max(bench.rounds, 5 if bench.quick else 15)
    if bench.tools["strace"].path:
        yield Case("start", "Start to first I/O", "From the start of the process to its first data system "
                   "call, under strace", ["first_io_ns"], [
                       by_whole(name, tool, argv, first(argv), latencies=known)
                       for name, tool, argv, known in runs], rounds=rounds)
    yield Case("start", "A run of one operation", "The whole process, from start to end", ["elapsed_ns"], [
        by_whole(name, tool, argv, elapsed(argv), latencies=known)
        for name, tool, argv, known in runs if tool != "t/io_uring"], rounds=rounds)


def memory(bench):
    """Highest resident set at depth 128 in 16 threads."""
    for size, label in ((GIB, "1 GiB"), (64 * GIB, "64 GiB")):
        path = bench.places.sparse(f"sparse-{size // GIB}", size)
        jobs = ["--ioengine=io_uring", "--iodepth=128", "--numjobs=16", "--thread", "--group_reporting",
                "--time_based", "--runtime=1"]
        run = fio_reads(bench, path, size, *jobs)(size // BLOCK)
        ours = load(bench, path, "random", "mode=read", "access=once", f"block-size={BLOCK}", "threads=16",
                    "queue-depth=128", "engine=io_uring", "time=1s")
        runs = [
            (OURS, "stackrace", ours, "each block once"),
            ("fio io_uring, default", "fio", run, "each block once"),
            ("fio io_uring, tuned", "fio", [*run, *FIO_LEAN], "with repeats"),
            ("sysbench, asynchronous", "sysbench", [
                *[word for word in sysbench(bench, size, "rndrd", 0, "--threads=16", "--file-io-mode=async",
                                            "--file-async-backlog=128") if word not in ("--time=0", "run")],
                "--time=1", "run"], "with repeats; one buffer for all requests"),
            ("t/io_uring, latencies", "t/io_uring", [
                bench.path("t/io_uring"), "-d128", f"-b{BLOCK}", "-p0", "-O0", "-n16", "-r2", "-t1", "-R1",
                str(path)], "with repeats"),
        ]
        yield Case("memory", f"16 threads of depth 128, file of {label}",
                   "Highest resident set while reading a file of holes at random for a second; 8 MiB of it "
                   "are buffers", ["peak_bytes"], [
                       by_whole(name, tool, argv,
                                lambda argv=argv: measure.peak_bytes(argv, path.parent), note=note)
                       for name, tool, argv, note in runs], rounds=1 if bench.quick else 3)


def layout(bench):
    """A file made and removed again."""
    size, few = (512 * MIB if bench.quick else 2 * GIB), 64 * MIB
    directory = bench.places.directory("layout", bench.places.memory)
    path = directory / "test_file.0"

    def removed(command):
        return lambda n: ["sh", "-c", f"{shlex.join(map(str, command(n)))} >{os.devnull} && rm -f {path}"]

    def entrant(name, tool, command, note, many=size):
        return Entrant(name, tool, [written(measure.pinned(bench.core, command(many)))],
                       lambda: measure.slope(command, few, many, bench.core, directory),
                       latencies=None, note=note)

    def fios(n, *options):
        return fio(bench, "layout", f"--filename={path}", "--rw=read", "--bs=1m", f"--size={n}",
                   "--create_only=1", *options)

    def prepare(n, *options):
        return [bench.path("sysbench"), "fileio", f"--file-total-size={n}", "--file-num=1", *options, "prepare"]

    yield Case("layout", f"{size // MIB} MiB on tmpfs", "A file written and removed", ["elapsed_ns", "cpu_ns"], [
        entrant("bare loop", "bare", removed(lambda n: [bench.path("bare"), "write", path, n]),
                "one buffer, again and again"),
        entrant(OURS, "stackrace", lambda n: load(
            bench, directory, "random", "mode=read", f"size={n}", "operations=1", "time=1h"), "random data"),
        entrant("fio, default", "fio", removed(fios), "random data"),
        entrant("fio, tuned", "fio", removed(lambda n: fios(n, "--fallocate=none", "--thread")), "random data"),
        entrant("sysbench prepare, default", "sysbench", removed(prepare), "a pattern; writes of 16 KiB"),
        entrant("sysbench prepare, tuned", "sysbench",
                removed(lambda n: prepare(n, "--file-block-size=1M")), "a pattern"),
        entrant("dd, zeros", "dd", removed(lambda n: [
            "dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={n // MIB}", "status=none"]), "zeros"),
        entrant("dd, urandom", "dd", removed(lambda n: [
            "dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={n // MIB}", "status=none"]), "random data",
            many=size // 4),
    ], base="bare loop")


def content_rates(bench):
    """What the engine's own loop says of the content it makes, one line of JSON each."""
    path = bench.tools["floor_content"].path
    return [json.loads(line) for line in measure.run([path, "--json"]).out.splitlines()] if path else []


PARTS = {"cached": cached, "uring": uring, "zram": zram, "files": files, "data": data, "start": start,
         "memory": memory, "layout": layout}
