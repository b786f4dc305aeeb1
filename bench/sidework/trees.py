"""cp -r, dd, tar -x, rsync -a and rm -rf. Both sides get a copy of one tree (or an archive of it, or
one large file), its data evicted and its names left in memory, as `stackrace load` leaves them, and
neither waits for its data to be durable, as the commands never do."""

import json
import os

from .ground import call

NEEDS = ["cp", "dd", "tar", "rsync", "rm"]
GIB = 4
WHY = {
    "rsync": "rsync hands all data through sockets between three processes and sums it up; the counterpart does "
             "the same to the file system, not to the processor",
    "rm": "`rm` opens and reads each directory twice, the counterpart once, and the figure of the command holds "
          "the start of its process",
    "cp": "the figure of the command holds the start of its process",
    "tar": "the figure of the command holds the start of its process",
}
TREE = "/usr/lib/python3"
LARGE = 1 << 30


def evict(root):
    """What `stackrace load` does before a phase: written out, then dropped by advice."""
    paths = [root] if os.path.isfile(root) else [
        os.path.join(home, name) for home, _, names in os.walk(root) for name in names]
    call("sync", "--file-system", root)
    for path in paths:
        if not os.path.islink(path):
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def cases(stackrace, ground):
    tree, archive, large = TREE, ground.work / "tree.tar", ground.work / "large"

    def theirs(source, argv):
        prepared, into = ground.place / "source", ground.place / "into"
        call("cp", "-a", source, prepared)
        into.mkdir()
        evict(prepared)
        words = [word.format(source=prepared, into=into) for word in argv]
        elapsed, cpu, _ = ground.timed(words)
        return {"elapsed, ms": elapsed * 1e3, "processor, ms": cpu * 1e3}

    def ours(source, words):
        _, _, text = ground.timed([stackrace, "load", ground.place, *words, f"from={source}", "--json"])
        phase = json.loads(text[text.index("{"):])["phases"][0]
        return {"elapsed, ms": phase["elapsed_ns"] / 1e6, "processor, ms": phase["cpu_ns"] / 1e6}

    def case(source, argv, words):
        return (lambda: theirs(source(), argv), lambda: ours(source(), words))

    def of_tree():
        return tree

    def of_archive():
        if not archive.exists():
            call("tar", "-cf", archive, "-C", tree, ".")
        return archive

    def of_large():
        if not large.exists():
            with open(large, "wb") as file:
                for _ in range(LARGE >> 20):
                    file.write(os.urandom(1 << 20))
        return large

    return {
        "cp -r": case(of_tree, ["cp", "-r", "{source}", "{into}/copy"],
                      ["copy-tree", "method=in-kernel", "sync-at-end=false"]),
        "rsync -a": case(of_tree, ["rsync", "-a", "{source}/", "{into}/copy"],
                         ["copy-tree", "as-rsync=true", "sync-at-end=false"]),
        "tar -x": case(of_archive, ["tar", "-xf", "{source}", "-C", "{into}"],
                       ["extract-tar", "sync-at-end=false"]),
        "rm -rf": case(of_tree, ["rm", "-rf", "{source}"], ["delete-tree", "sync-at-end=false"]),
        "dd": case(of_large, ["dd", "if={source}", "of=/dev/null", "bs=1M"], ["read-file", "block-size=1MiB"]),
    }
