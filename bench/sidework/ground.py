"""A loop device with a file system that is made anew, and processes run on it."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout.strip()


class Ground:
    """All of it is taken away again. `place` is where the file system is mounted, `work` a directory
    beside it."""

    def __init__(self, where, gib):
        self.work = Path(tempfile.mkdtemp(prefix="stackrace-side-by-side.", dir=where))
        self.place, self.gib, self.device = self.work / "mnt", gib, ""

    def __enter__(self):
        try:
            image = self.work / "image"
            with open(image, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, self.gib << 30)
            self.device = call("losetup", "--find", "--show", image)
            self.place.mkdir()
            return self
        except BaseException:
            self.__exit__()
            raise

    def fresh(self):
        """An empty ext4, nothing of the last one on its way any more."""
        self.unmount()
        call("mkfs.ext4", "-qF", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", self.device)
        call("mount", self.device, self.place)
        os.sync()

    def unmount(self):
        if os.path.ismount(self.place):
            call("umount", self.place)

    def __exit__(self, *_):
        self.unmount()
        if self.device:
            call("losetup", "--detach", self.device)
        call("rm", "-rf", "--one-file-system", self.work)

    def timed(self, argv, **words):
        """Seconds elapsed, seconds of processor time (user and system), and what it printed."""
        with open(self.work / "out", "w+") as out:
            began = time.monotonic()
            words.setdefault("stdin", subprocess.DEVNULL)
            process = subprocess.Popen([str(word) for word in argv], stdout=out, stderr=subprocess.STDOUT, **words)
            _, status, used = os.wait4(process.pid, 0)
            elapsed = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        if process.returncode != 0:
            sys.exit(f"{' '.join(map(str, argv))}: exit {process.returncode}\n{text}")
        return elapsed, used.ru_utime + used.ru_stime, text
