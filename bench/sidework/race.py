"""Rounds, ratios, and the table."""

import datetime
import math
import os
import platform
import random
import statistics
import sys

ORIGINAL, OURS, AGAIN = "original", "stackrace", "original again"
BEGIN, END = "<!-- bench/side-by-side writes from here -->", "<!-- bench/side-by-side writes to here -->"


def run(cases, ground, rounds):
    """`cases`: title → (run of the original, run of stackrace), each a function that gives figures
    by name. What is the same in every run, such as counts, is a figure named `=NAME`."""
    found = {title: [] for title in cases}
    load = os.getloadavg()[0]
    # The first round is left out: a virtual machine gets its memory as it is touched.
    for number in range(rounds + 1):
        for title, (original, ours) in cases.items():
            runs = {ORIGINAL: original, OURS: ours, AGAIN: original}
            figures = {}
            for name in random.sample(list(runs), 3):
                ground.fresh()
                figures[name] = runs[name]()
            same = [{k: v for k, v in f.items() if k[0] == "="} for f in figures.values()]
            if same[0] != same[1] or same[1] != same[2]:
                sys.exit(f"{title}: not the same work: {dict(zip(figures, same))}")
            if number > 0:
                found[title].append(figures)
        print(f"round {number} of {rounds}", file=sys.stderr)
    machine = f"{os.cpu_count()} processors, Linux {platform.release()}"
    return {"date": str(datetime.date.today()), "machine": machine, "load": [load, os.getloadavg()[0]],
            "rounds": rounds, "cases": found}


def interval(values):
    """The narrowest pair of order statistics that holds the median with at least 95 %; none: too few
    (David and Nagaraja, Order Statistics, 2003, section 7.1)."""
    n, values = len(values), sorted(values)
    best = None
    for k in range(n // 2):
        outside = 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2 ** n
        if outside <= 0.05:
            best = (values[k], values[n - 1 - k])
    return best


def cell(pairs):
    ratios = [own / other for own, other in pairs]
    held = interval(ratios)
    span = f"{held[0]:.2f} to {held[1]:.2f}" if held else "too few rounds"
    middle = statistics.median(ratios)
    return middle, held, f"{middle:.2f} ({span})"


def table(told, why):
    lines = [f"{told['date']}, {told['machine']}, load average {told['load'][0]:.1f} before and "
             f"{told['load'][1]:.1f} after; {told['rounds']} rounds. Ratios: median within rounds (95 % "
             "interval). ● differs by more than 5 %, and by more than the original's two runs differ."]
    for title, rounds in told["cases"].items():
        lines += ["", f"### {title}", "",
                  "| figure | stackrace ÷ original | original ÷ itself | original | stackrace | |", "|---|---|---|---|---|---|"]
        marked = []
        for name in rounds[0][ORIGINAL]:
            if name[0] == "=":
                continue
            kept = [r for r in rounds if all(r[e].get(name) for e in (ORIGINAL, OURS, AGAIN))]
            if not kept:
                lines.append(f"| {name} | not shown by the original | | | | |")
                continue
            middle, held, ours = cell([(r[OURS][name], r[ORIGINAL][name]) for r in kept])
            itself, _, again = cell([(r[AGAIN][name], r[ORIGINAL][name]) for r in kept])
            apart = abs(math.log(middle)) > math.log(1.05) and abs(math.log(middle)) > abs(math.log(itself))
            apart &= held is not None and (held[0] > 1 or held[1] < 1)
            values = [statistics.median(r[entrant][name] for r in kept) for entrant in (ORIGINAL, OURS)]
            lines.append(f"| {name} | {ours} | {again} | {values[0]:.4g} | {values[1]:.4g} | {'●' if apart else ''} |")
            if apart:
                marked.append(name)
        reasons = {}
        for name in marked:
            reason = next((text for part, text in why.items() if part in f"{title}: {name}"), "NOT EXPLAINED")
            reasons.setdefault(reason, []).append(name)
        lines += [""] * bool(reasons) + [f"- {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "\n".join(lines).rstrip()


def publish(page, text):
    whole = page.read_text()
    before, rest = whole.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")
