"""sysbench 1.0 fileio, six modes. Both work on files laid out by the original."""

import re

from .ground import call

NEEDS = ["sysbench"]
GIB = 1
WHY = {
    "processor": "sysbench hands each request through its scripting layer and takes a mutex for it; stackrace does not",
    # Where memory answers, a rate is nothing but the processor time per operation, turned over.
    **{f"{mode}: {figure}": "the data are in memory, so the rate is set by the processor time per operation: their "
       "product is within 2 % of the original's" for mode, figure in
       (("seqrewr", "writes/s"), ("seqrewr", "fsyncs/s"), ("seqrd", "reads/s"), ("rndrd", "reads/s"))},
}
MODES = ["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"]
OPTIONS = ["fileio", "--file-num=16", "--file-total-size=256M", "--time=1"]


def cases(stackrace, ground):
    def once(mode, *program):
        prepared = ["sysbench", *OPTIONS, "prepare"]
        ground.timed(prepared, cwd=ground.place)
        call("sync")
        _, cpu, text = ground.timed([*program, *OPTIONS, f"--file-test-mode={mode}", "run"], cwd=ground.place)
        found = {}
        for name in ("reads/s", "writes/s", "fsyncs/s"):
            found[name] = float(re.search(rf"{name}: +([\d.]+)", text)[1]) or None
        operations = sum(found[name] or 0 for name in ("reads/s", "writes/s", "fsyncs/s"))
        found["processor per operation, µs"] = cpu / operations * 1e6
        return {name: value for name, value in found.items() if value}
    return {mode: (lambda mode=mode: once(mode, "sysbench"), lambda mode=mode: once(mode, stackrace, "sysbench"))
            for mode in MODES}
