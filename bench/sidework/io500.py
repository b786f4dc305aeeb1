"""IO500 and the purpose `io500`: two processes on one machine, the same sizes, caches kept as IO500 keeps them."""

import csv
import io
import os
import re
import subprocess

NEEDS = ["io500", "mpirun"]
GIB = 2
PROCESSES = 2
# Of each process. Phases end when this is done, long before the time that the rules of the list ask for.
EASY_MIB, EASY_FILES, HARD_BLOCKS, HARD_FILES = 384, 40000, 4000, 20000

CONFIG = f"""[global]
datadir = {{place}}
timestamp-datadir = FALSE
resultdir = {{results}}
timestamp-resultdir = FALSE
drop-caches = FALSE
[ior-easy]
transferSize = 1m
blockSize = {EASY_MIB}m
[mdtest-easy]
n = {EASY_FILES}
[ior-hard]
segmentCount = {HARD_BLOCKS}
[mdtest-hard]
n = {HARD_FILES}
[find]
run = FALSE
[ior-rnd4K-easy-read]
run = FALSE
"""

# The workloads of `compare --for io500`, with these sizes.
STUDY = f"""title = "as IO500"
[[stack]]
dir = {{{{ path = "{{place}}" }}}}
[[workload]]
name = "ior-easy"
shared-file = {{{{ size = "{EASY_MIB} MiB", block-size = "1 MiB", layout = "own", visits = "next" }}}}
[[workload]]
name = "mdtest-easy"
files = {{{{ count = {EASY_FILES}, size-min = 0, size-max = 0, directories = 1, phases = ["create", "stat", "unlink"], order = "creation", sync-at-end = false, visits = "next" }}}}
[[workload]]
name = "ior-hard"
shared-file = {{{{ size = "{HARD_BLOCKS * 47008} B", block-size = 47008, layout = "strided", visits = "next" }}}}
[[workload]]
name = "mdtest-hard"
files = {{{{ count = {HARD_FILES}, size-min = 3901, size-max = 3901, directories = 1, tree = "shared", order = "creation", sync-at-end = false, visits = "next" }}}}
[decide]
rounds-at-most = 1
[trial]
drop-caches = false
remount = false
"""

# IO500's phase, then workload and metric here.
FIGURES = {
    "ior-easy-write": ("ior-easy", "write throughput"), "ior-easy-read": ("ior-easy", "read throughput"),
    "mdtest-easy-write": ("mdtest-easy", "create"), "mdtest-easy-stat": ("mdtest-easy", "stat"),
    "mdtest-easy-delete": ("mdtest-easy", "unlink"), "ior-hard-write": ("ior-hard", "write throughput"),
    "ior-hard-read": ("ior-hard", "read throughput"), "mdtest-hard-write": ("mdtest-hard", "create"),
    "mdtest-hard-stat": ("mdtest-hard", "stat"), "mdtest-hard-read": ("mdtest-hard", "read"),
    "mdtest-hard-delete": ("mdtest-hard", "unlink"),
}

MEMORY = ("Reads and stats come from memory, so what is left is what each program does for one of them. IO500 goes down a whole path each "
          "time (strace), stackrace asks an open directory for a name; IO500's time of IOR includes opening, closing and a barrier.")
WHY = {
    "read, ": MEMORY, "stat, ": MEMORY,
    "mdtest-hard-write": "IO500 makes these files while those of the three patterns before are being written back. mdtest alone on a "
                         "new file system made 64.4 and 66.0 thousand a second.",
    "ior-hard-write": "The cause was not found.",
}


def cases(stackrace, ground):
    # Open MPI asks root for both.
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def said(words):
        done = subprocess.run(list(map(str, words)), env=env, capture_output=True, text=True, cwd=ground.work)
        if done.returncode:
            raise SystemExit(f"{words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def original():
        config = ground.work / "io500.ini"
        config.write_text(CONFIG.format(place=ground.place / "io500", results=ground.work / "io500-results"))
        text = said(["mpirun", "--oversubscribe", "-np", PROCESSES, "io500", config])
        factors = {"GiB/s": 2 ** 30 / 1e6, "kIOPS": 1}
        found = {name: float(value) * factors[unit]
                 for name, value, unit in re.findall(r"\[RESULT\] +(\S+) +(\S+) (GiB/s|kIOPS)", text)}
        return {named(phase): found[phase] for phase in FIGURES}

    def ours():
        study, hosts = ground.work / "io500.toml", ground.work / "hosts"
        study.write_text(STUDY.format(place=ground.place))
        hosts.write_text(f"localhost slots={PROCESSES}\n")
        store = ["--store", ground.work / "store"]
        said([stackrace, *store, "run", study, "--clients", f"mpirun:{hosts}", "--processes", PROCESSES])
        rows = csv.DictReader(io.StringIO(said([stackrace, *store, "report", "--format", "csv"])))
        found = {(row["workload"], row["metric"]): (float(row["value"]), row["unit"]) for row in rows if row["value"]}
        return {named(phase): found[place][0] / (1e6 if found[place][1] == "B/s" else 1e3)
                for phase, place in FIGURES.items()}

    return {f"{PROCESSES} processes, the four patterns": (original, ours)}


def named(phase):
    return f"{phase}, {'MB/s' if phase.startswith('ior') else '1000/s'}"
