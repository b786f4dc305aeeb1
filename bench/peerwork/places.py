"""Where the work happens: files, fresh file systems, a zram device. All of it is undone."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ZRAM = Path("/sys/class/zram-control")
MIB, GIB = 1 << 20, 1 << 30


class Unable(Exception):
    """This machine or user cannot do this part; the message says why."""


def call(*argv):
    try:
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    except FileNotFoundError:
        raise Unable(f"{argv[0]} is not installed") from None
    if done.returncode != 0:
        raise Unable(f"{' '.join(map(str, argv))}: {done.stderr.strip()}")
    return done.stdout.strip()


class Places:
    """Makes places and undoes them in reverse order. `dry` only names them."""

    def __init__(self, directory, memory, dry=False):
        self.dry, self.undo = dry, ExitStack()
        self.work = self._scratch(directory)
        self.memory = self._scratch(memory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.undo.close()

    def _scratch(self, below):
        if self.dry:
            return Path(below) / "stackrace-peers"
        made = Path(tempfile.mkdtemp(prefix="stackrace-peers.", dir=below))
        self.undo.callback(shutil.rmtree, made, ignore_errors=True)
        return made.resolve()

    def need_root(self, what):
        if os.geteuid() != 0 and not self.dry:
            raise Unable(f"{what} needs root")

    def directory(self, name, below=None):
        made = (below or self.work) / name
        if not self.dry:
            made.mkdir(parents=True, exist_ok=True)
        return made

    def file(self, name, size):
        """A file of random bytes, all of it in the page cache and on the disk. It has the name that
        sysbench wants, in a directory of its own."""
        path = self.directory(name) / "test_file.0"
        if not self.dry and not path.exists():
            with open(path, "wb") as file:
                for _ in range(size // MIB):
                    file.write(os.urandom(MIB))
                file.flush()
                os.fsync(file.fileno())
        return path

    @staticmethod
    def warm(path):
        """All of a file in the page cache, also where it was dropped since the last round."""
        with open(path, "rb", buffering=0) as file:
            while file.read(MIB):
                pass

    def sparse(self, name, size):
        """A file of holes in memory: reading it costs no memory of its own."""
        path = self.directory(name, self.memory) / "test_file.0"
        if not self.dry:
            with open(path, "wb") as file:
                file.truncate(size)
        return path

    def fresh(self, kind):
        """An empty file system, made anew: on a loop device over a file in memory, or the tmpfs."""
        if kind == "tmpfs":
            path = self.directory("files", self.memory)
            if not self.dry:
                shutil.rmtree(path)
                path.mkdir()
            return path
        path = self.directory(kind)
        if self.dry:
            return path
        image = self.memory / f"{kind}.img"
        self.lower(path, image)
        with open(image, "wb") as file:
            file.truncate(2 * GIB)
        if kind == "ext4":
            call("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", image)
        else:
            call("mkfs.xfs", "-q", "-K", image)
        self.undo.callback(self.lower, path, image)
        call("mount", call("losetup", "--find", "--show", image), path)
        return path

    @staticmethod
    def lower(path, image):
        """Unmounts and detaches, whatever of it is up."""
        if os.path.ismount(path):
            call("umount", path)
        if image.exists():
            for device in call("losetup", "-j", image, "-O", "NAME", "-n").split():
                call("losetup", "-d", device)
            image.unlink()

    def zram(self, size):
        """A zram device that was not there before, full of incompressible data."""
        self.need_root("a zram device")
        if self.dry:
            return Path("/dev/zramN")
        if not ZRAM.exists():
            raise Unable(f"{ZRAM} is not there: modprobe zram")
        number = (ZRAM / "hot_add").read_text().strip()
        self.undo.callback(self._remove_zram, number)
        device = Path(f"/dev/zram{number}")
        for _ in range(100):
            if device.exists():
                break
            time.sleep(0.02)
        Path(f"/sys/block/zram{number}/disksize").write_text(str(size))
        with open(device, "wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
            file.flush()
            os.fsync(file.fileno())
        return device

    @staticmethod
    def _remove_zram(number):
        # Right after its last user is gone, udev may still look at the device.
        for _ in range(50):
            try:
                Path(f"/sys/block/zram{number}/reset").write_text("1")
                (ZRAM / "hot_remove").write_text(number)
                return
            except OSError:
                time.sleep(0.1)
        print(f"bench/peers: zram{number} could not be removed: it is in use")


def first(pattern, path):
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip() if found else ""


def machine():
    """What the figures were measured on."""
    cpu = first(r"^model name\s*:\s*(.*)", "/proc/cpuinfo") or platform.machine()
    virtual = " (virtual machine)" if " hypervisor" in first(r"^flags\s*:(.*)", "/proc/cpuinfo") + " " else ""
    kib = int(first(r"^MemTotal:\s*(\d+)", "/proc/meminfo") or 0)
    return {
        "processor": f"{len(os.sched_getaffinity(0))} × {cpu}{virtual}",
        "memory": f"{kib / (1 << 20):.0f} GiB",
        "kernel": f"Linux {platform.release()}",
        "system": first(r'^PRETTY_NAME="?([^"\n]*)', "/etc/os-release"),
        "governor": first(r"(.*)", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not visible",
    }
