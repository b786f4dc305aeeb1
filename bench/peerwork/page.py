"""Tables of the results, and the page they are published on."""

import subprocess

from . import measure
from .race import OURS
from .tools import ROOT

PAGE = ROOT / "docs" / "performance.md"
# Code whose cost is measured.
MEASURED = ["crates/engine", "crates/system", "crates/load", "crates/machine", "src/cli/load", "src/commands/load.rs"]
BEGIN, END = "<!-- bench/peers writes from here -->", "<!-- bench/peers writes to here -->"


def plain(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# Figure -> what the column is called, what is shown of a value.
FIGURES = {
    "cpu_ns": ("CPU ns", lambda value: value),
    "elapsed_ns": ("elapsed ns", lambda value: value),
    "first_io_ns": ("ms", lambda value: value / 1e6),
    "peak_bytes": ("MiB", lambda value: value / (1 << 20)),
}
# Parts whose figures read better otherwise.
SHOWN = {
    ("layout", "elapsed_ns"): ("GB/s", lambda value: 1 / value),
    ("layout", "cpu_ns"): ("CPU ns per KiB", lambda value: value * 1024),
    ("start", "elapsed_ns"): ("ms", lambda value: value / 1e6),
}


def shown(case, figure):
    return SHOWN.get((case["part"], figure)) or FIGURES[figure]


def row_of(case, name):
    return next((row for row in case["entrants"] if row["name"] == name and not row["out"]), None)


def ratio(case, row, name, figure):
    """Median of the within-round ratios to the entrant `name`, or none."""
    base = row_of(case, name) if name else None
    if base is None or not row["rounds"][figure]:
        return None
    return measure.ratio(row["rounds"][figure], base["rounds"][figure])


def text(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def aligned(head, rows):
    """A Markdown table that can also be read as it is; the first column is text, others figures."""
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]

    def line(row):
        return "| " + " | ".join(
            cell.ljust(width) if column in (0, len(head) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))) + " |"
    rule = "|" + "|".join(
        "-" * (width + 2) if column in (0, len(head) - 1) else "-" * (width + 1) + ":"
        for column, width in enumerate(widths)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


KEPT = {True: "", False: "no latency of each operation", None: ""}


def table(case):
    """One case: the spread of its first figure, ratios, the median of its second figure."""
    figure, *more = case["figures"]
    name, value = shown(case, figure)
    head = ["", f"{name}: min", "median", "max"]
    head += [f"÷ {case['base']}"] if case["base"] else []
    head += [f"÷ {OURS}", *(f"{shown(case, other)[0]} (median)" for other in more), "remarks"]
    rows = []
    for row in case["entrants"]:
        if row["out"]:
            continue
        spread = sorted(value(each) for each in row["rounds"][figure])
        cells = [row["name"], *(plain(each) for each in measure.spread(spread))]
        for base in ([case["base"]] if case["base"] else []) + [row["beside"]]:
            cells.append(text(ratio(case, row, base, figure)))
        for other in more:
            cells.append(plain(measure.spread([shown(case, other)[1](each) for each in row["rounds"][other]])[1]))
        remarks = [remark for remark in (KEPT[row["latencies"]], row["note"]) if remark]
        rows.append([*cells, "; ".join(remarks)])
    lines = [f"### {case['title']}", "", case["work"] + "."]
    if rows:
        lines += ["", aligned(head, rows)]
    for name, entrant, less in case["differences"]:
        if row_of(case, entrant) and row_of(case, less):
            pairs = zip(row_of(case, entrant)["rounds"][figure], row_of(case, less)["rounds"][figure])
            low, middle, high = measure.spread([a - b for a, b in pairs])
            lines += ["", f"{name}, beyond its plain writes: {middle:.0f} ns ({low:.0f} to {high:.0f})."]
    out = [f"{row['name']} ({row['out']})" for row in case["entrants"] if row["out"]]
    if out:
        lines += ["", f"Not measured: {'; '.join(out)}."]
    return "\n".join(lines)


def peers(case):
    """Rows of other tools that do measure I/O, with their ratio to stackrace's."""
    if row_of(case, OURS) is None:
        return []
    figure = case["figures"][0]
    return [(ratio(case, row, row["beside"], figure), row) for row in case["entrants"]
            if not row["out"] and row["tool"] not in ("stackrace", "bare", "dd")]


def summary(cases):
    """One line per case: stackrace, what it adds to the bare loop, and the nearest peer."""
    rows = []
    for case in cases:
        ours, figure = row_of(case, OURS), case["figures"][0]
        if ours is None:
            continue
        name, value = shown(case, figure)
        middle = measure.spread([value(each) for each in ours["rounds"][figure]])[1]
        near = min((peer for peer in peers(case) if peer[1]["latencies"] is not False),
                   key=lambda peer: peer[0], default=None)
        rows.append([case["title"], f"{plain(middle)} {name}",
                     text(ratio(case, ours, case["base"], figure)) if case["base"] else "",
                     text(near[0]) if near else "", near[1]["name"] if near else ""])
    head = ["work", OURS, "÷ bare", f"nearest peer ÷ {OURS}", "nearest peer that keeps latencies"]
    return aligned(head, rows)


KINDS = {"cpu_ns": "CPU time", "elapsed_ns": "elapsed time", "first_io_ns": "time", "peak_bytes": "memory"}


def beaten(case, row, figure):
    """By how much, and in how many rounds: few of them are chance."""
    pairs = list(zip(row["rounds"][figure], row_of(case, row["beside"])["rounds"][figure]))
    less = sum(its < ours for its, ours in pairs)
    return (f"{ratio(case, row, row['beside'], figure):.2f} of its {KINDS[figure]} "
            f"(less in {less} of {len(pairs)} rounds)")


def losses(cases):
    """Every peer that beat stackrace, in any figure; all figures are costs, however they are shown."""
    found = []
    for case in cases:
        for _, row in peers(case):
            won = [beaten(case, row, figure) for figure in case["figures"]
                   if ratio(case, row, row["beside"], figure) < 0.995]
            if won:
                keeps = f" ({KEPT[False]})" if row["latencies"] is False else ""
                found.append(f"- {case['title']}: {row['name']}{keeps} takes {' and '.join(won)}.")
    return "\n".join(found) or "- In none of these figures."


def rates(found):
    """What the engine's content costs before it is written, by its own loop on one core."""
    rows = [[rate["content"], f"{rate['block_bytes']:,}", *(plain(rate["gb_per_s"][part]) for part in
             ("min", "median", "max")), plain(rate["ns_per_4_kib"]["median"]), f"{rate['rounds']} rounds"]
            for rate in found if rate["content"] != "zero"]
    head = ["", "bytes of a write", "GB/s: min", "median", "max", "ns per 4 KiB (median)", "remarks"]
    return "\n".join(["### Content made ready to be written, per core", "",
                      "By stackrace alone, without any write. Zeros are not touched at all and cost nothing per byte.", "", aligned(head, rows)])


def behind(commit):
    """Commits that changed what is measured since that one; none where that is not known."""
    counted = subprocess.run(["git", "rev-list", "--count", f"{commit.removesuffix('-dirty')}..HEAD", "--", *MEASURED],
                             cwd=ROOT, capture_output=True, text=True)
    return int(counted.stdout) if counted.returncode == 0 else None


def age(commits):
    """How old the page is, in its own words."""
    if not commits:
        return ""
    return f" Since then, {commits:,} commit{'s' if commits > 1 else ''} changed what is measured here."


def section(results):
    """All that is generated on the page: what is seen at a glance. `tables` has the rest."""
    machine = results["machine"]
    versions = "; ".join(f"{name}: {version}" for name, version in results["versions"].items())
    absent, other = ("; ".join(f"{name} ({why})" for name, why in results[key].items())
                     for key in ("absent", "not_comparable"))
    lines = [
        f"Measured {results['date']} on {machine['processor']}, {machine['memory']}, {machine['kernel']}, "
        f"{machine['system']}, governor {machine['governor']}; load average {results['load_before']} before, "
        f"{results['load_after']} after; {results['rounds']} rounds{', quick' if results['quick'] else ''}; "
        f"stackrace at commit {results['commit']}.{age(results.get('behind'))}", "",
        f"Versions: {versions}." + (f" Not here: {absent}." if absent else "") +
        f" Not comparable: {other}.", "",
        "## In short", "", summary(results["cases"]), "",
        "## Where stackrace loses", "",
        "Tools that take less than stackrace for the same work (median of the ratios within each round):", "",
        losses(results["cases"])]
    for part, why in results["refused"].items():
        lines += ["", f"Left out of part `{part}`: {why}."]
    return "\n".join(lines)


def tables(results):
    """Every figure: one table for each case."""
    lines = []
    for part in dict.fromkeys(case["part"] for case in results["cases"]):
        lines += [table(case) for case in results["cases"] if case["part"] == part]
        if part == "data" and results["rates"]:
            lines.append(rates(results["rates"]))
    return "\n\n".join(lines)


def publish(results):
    """Writes the section between the markers of the page."""
    page = PAGE.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"bench/peers: {PAGE} must have the lines '{BEGIN}' and '{END}' once each")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{section(results)}\n\n{END}{after}")
