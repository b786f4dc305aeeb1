"""Entrants, cases, and rounds in which every entrant runs once, in random order."""

import random
import shlex
import sys
from dataclasses import dataclass, field
from typing import Callable

from . import measure
from .measure import ToolFailed
from .places import Unable
from .tools import ROOT

# What stackrace's own row is called in every case.
OURS = "stackrace"


@dataclass
class Entrant:
    """One tool in one configuration, doing the work of a case."""

    name: str
    tool: str
    commands: list[str]
    probe: Callable[[], dict]  # one measurement: figure -> value
    latencies: bool | None = True  # whether every operation's latency is recorded; None: none to record
    note: str = ""  # where its work differs from the others'
    beside: str = OURS  # the row of stackrace that does the same


@dataclass
class Case:
    """The same work for several entrants."""

    part: str
    title: str
    work: str  # what is done, in a sentence
    figures: list[str]  # keys of what a probe returns; the first is what the case is about
    entrants: list[Entrant]
    base: str | None = None  # the bare loop's row
    rounds: int | None = None
    settle: Callable[[], None] = lambda: None  # before every round
    differences: list[tuple] = field(default_factory=list)  # (name, entrant, less entrant)


def written(argv):
    """A command line as one would type it in the project's root."""
    return shlex.join(str(word) for word in argv).replace(f"{ROOT}/", "")


def raced(case, tools, rounds, seed):
    """The case's result: every entrant's figures by round. An entrant that fails is out of all later
    rounds and says why; so is a tool that is not there."""
    result = {"part": case.part, "title": case.title, "work": case.work, "figures": case.figures,
              "base": case.base, "differences": case.differences, "entrants": []}
    running = []
    for entrant in case.entrants:
        row = {"name": entrant.name, "tool": entrant.tool, "latencies": entrant.latencies,
               "note": entrant.note, "beside": entrant.beside, "commands": entrant.commands,
               "rounds": {figure: [] for figure in case.figures}, "out": tools[entrant.tool].missing}
        result["entrants"].append(row)
        if not row["out"]:
            running.append((entrant, row))
    order = random.Random(seed)
    for number in range(case.rounds or rounds):
        case.settle()
        order.shuffle(running)
        for entrant, row in running:
            if row["out"]:
                continue
            try:
                figures = entrant.probe()
            except (ToolFailed, Unable) as error:
                row["out"] = str(error).replace(f"{ROOT}/", "")
                print(f"bench/peers: {case.title}: {entrant.name}: {error}", file=sys.stderr)
                continue
            for figure in case.figures:
                row["rounds"][figure].append(round(figures[figure], 4))
        progress(case.title, number + 1, case.rounds or rounds)
    return result


def progress(title, number, rounds):
    if sys.stderr.isatty():
        print(f"\r\033[K{title}: round {number} of {rounds}", end="\n" if number == rounds else "",
              file=sys.stderr, flush=True)


def by_slope(bench, name, tool, command, many, **words):
    """An entrant measured between a short and a long run, whose lengths `command` takes."""
    cwd = words.pop("cwd", None)
    few = max(many // 50, 1)
    return Entrant(name, tool, [written(measure.pinned(bench.core, command(many)))],
                   lambda: measure.slope(command, few, many, bench.core, cwd), **words)


def by_whole(name, tool, argv, probe, **words):
    """An entrant measured by its own probe over one command line."""
    return Entrant(name, tool, [written(argv)], probe, **words)
