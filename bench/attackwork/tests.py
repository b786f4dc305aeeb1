"""Test programs of this repository: built, listed, and run one test at a time."""
import fnmatch
import json
import re
import subprocess

COUNTED = re.compile(r"attacks: (\d+) held, (\d+) failed")
REASON = re.compile(r"not run: .*?: (.*)|\.\.\. ignored(?: \((.*)\)|, (.*))?")


# Packages whose unit tests are no attacks: they are not what is attacked, or have a target of their own.
NOT_ATTACKED = ["drives", "engine", "stats", "system", "test-needs", "tidy", "ublk", "whole"]


def words_of(target):
    """What cargo calls a target: `lib` (of all packages), `-p PACKAGE`, or a file of tests/, all of which are one
    program."""
    if target == "lib":
        return ["--workspace", "--lib", *(f"--exclude=stackrace-{name}" for name in NOT_ATTACKED)]
    return ["-p", target[3:]] if target.startswith("-p ") else ["--test", "all"]


def build(targets, root, environment=None):
    """Builds test programs; gives back where each lies, by the target."""
    found = {}
    for words in sorted({tuple(words_of(target)) for target in targets}):
        built = subprocess.run(
            ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *words],
            cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        for line in built.stdout.splitlines():
            made = json.loads(line)
            if made.get("executable") and made["profile"]["test"]:
                found.setdefault(words, []).append(made["executable"])
    return {target: found.get(tuple(words_of(target)), []) for target in targets}


def names(program, target, root):
    """All tests of a target in its program."""
    listed = subprocess.run([program, "--list"], cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    found = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
    of_file = words_of(target) == ["--test", "all"]
    return [name for name in found if not of_file or name.startswith(f"{target}::")]


def matching(all_names, pattern):
    """The tests that a pattern means: the end of a path, with `*`."""
    return [name for name in all_names
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"*::{pattern}")]


def run(program, name, root, environment=None):
    """Runs one test. Gives back how many attacks held and failed, and why it was not run.

    A test is one attack, unless it prints how many it tried.
    """
    words = [program, "--exact", name, "--nocapture", "--test-threads=1"]
    ended = subprocess.run(words, cwd=root, env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = ended.stdout.decode(errors="replace")
    summary = re.search(r"test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored", said)
    passed, failed, ignored = map(int, summary.groups()) if summary else (0, 1, 0)
    if ignored:
        reasons = [next(filter(None, found), "") for found in REASON.findall(said)]
        return 0, 0, next(filter(None, reasons), "ignored")
    if passed + failed == 0:
        return 0, 0, "there is no such test"
    counted = [tuple(map(int, found)) for found in COUNTED.findall(said)]
    held = sum(one for one, _ in counted) if counted else passed
    wrong = sum(other for _, other in counted)
    # A test that failed has at least one attack that did not hold.
    return held, max(wrong, failed), None
