"""The tools: where they are, which version, how to get them."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What this bench builds from the distribution's own source package lies here; `rm -r` is safe.
CACHE = ROOT / "target" / "peers"
PACKAGES = ["fio", "sysbench", "bonnie++", "postmark"]


@dataclass
class Tool:
    name: str
    path: str | None
    version: str
    missing: str = ""  # why it is not there, or what to do


def said(argv):
    """The version in what a program prints."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"\d+\.\d+[\w.]*", done.stdout + done.stderr)
    return found[0] if found else ""


def program(name):
    """Where a program is; tools for administrators are not on everyone's PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def fio_source():
    """The unpacked source package of fio in the cache, newest first."""
    return next(iter(sorted(CACHE.glob("fio-*/t"), reverse=True)), None)


def t_io_uring():
    built = fio_source()
    if built and (built / "io_uring").exists():
        return str(built / "io_uring"), f"of fio {built.parent.name.removeprefix('fio-')}, built here"
    path = program("t/io_uring") or program("fio-io_uring")
    return path, "on PATH" if path else ""


def found(stackrace):
    """All tools by name."""
    tools = {}
    for name, ask in (("fio", "--version"), ("sysbench", "--version"), ("bonnie++", "-h"),
                      ("postmark", None), ("mdtest", None), ("elbencho", "--version"),
                      ("strace", "--version")):
        path = program(name)
        version = said([path, ask] if ask else [path]) if path else ""
        how = f"apt-get install {name}" if name in PACKAGES + ["strace"] else "not on PATH"
        tools[name] = Tool(name, path, version, "" if path else how)
    path, version = t_io_uring()
    tools["t/io_uring"] = Tool("t/io_uring", path, version,
                               "" if path else "bench/peers --build-t-io-uring")
    for name in ("bare", "floor_content"):
        path = ROOT / "target/release/examples" / name
        there = path.exists()
        tools[name] = Tool(name, str(path) if there else None, "", "" if there else "not built")
    able = subprocess.run([stackrace, "load", "--help"], capture_output=True).returncode == 0 \
        if Path(stackrace).exists() else False
    tools["stackrace"] = Tool("stackrace", str(stackrace) if able else None, said([stackrace, "--version"]),
                              "" if able else "it is not built, or has no `load`")
    tools["dd"] = Tool("dd", program("dd"), said(["dd", "--version"]))
    return tools


def build_stackrace():
    """The tool itself and its bare loops, as they are shipped."""
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "--package", "stackrace-engine", "--examples"],
                   cwd=ROOT, check=True)


def install():
    """The peers that the distribution has."""
    subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES, "strace"], check=True)


def build_t_io_uring():
    """t/io_uring is in fio's source package only. Needs gcc, make, dpkg-dev and deb-src sources."""
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "source", "fio"], cwd=CACHE, check=True)
    source = fio_source()
    if source is None:
        raise SystemExit(f"bench/peers: apt-get source fio left no fio-*/t in {CACHE}")
    subprocess.run(["./configure", "--disable-native"], cwd=source.parent, check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["make", f"-j{os.cpu_count()}", "t/io_uring"], cwd=source.parent, check=True,
                   stdout=subprocess.DEVNULL)
    print(source / "io_uring")
