"""Tools in a control group that has less memory than a file, on a disk that reads 8 MiB ahead (as a RAID does).

What is counted is what the disk reads, not the time: read-ahead that is dropped before it is used is read again."""

import contextlib
import os
import subprocess
import sys
import tempfile

import loop_devices
from pif_system import FileSystem, check, main, sha256_of

MB = 1 << 20
GROUP = 128 * MB
READ_AHEAD_KB = 8192
RECORD = 1000
BYTES = 200_000 * RECORD
SIDE = 4096  # of a matrix of numbers of 8 bytes
SKIPPED = 77
DISK = None


class Group:
    """A control group of the first or second version, with this process and all that it starts in it."""

    def __init__(self, bytes_max):
        self.bytes_max = bytes_max
        with open("/proc/self/cgroup") as file:
            groups = {kinds: path for _, kinds, path in (line.rstrip("\n").split(":", 2) for line in file)}
        is_first = os.path.isdir("/sys/fs/cgroup/memory")
        top = "/sys/fs/cgroup/memory" if is_first else "/sys/fs/cgroup"
        path = next((path for kinds, path in groups.items() if "memory" in kinds.split(",")), groups.get("", "/"))
        self.before = os.path.join(top, path.lstrip("/") if is_first else "")
        self.folder = os.path.join(top, f"pif-small-memory-{os.getpid()}")
        self.limit = "memory.limit_in_bytes" if is_first else "memory.max"

    def set(self, folder, name, value):
        with open(os.path.join(folder, name), "w") as file:
            file.write(str(value))

    def __enter__(self):
        os.mkdir(self.folder)
        try:
            self.set(self.folder, self.limit, self.bytes_max)
            self.set(self.folder, "cgroup.procs", os.getpid())
        except OSError:
            os.rmdir(self.folder)
            raise
        return self

    def __exit__(self, *ignored):
        self.set(self.before, "cgroup.procs", os.getpid())
        os.rmdir(self.folder)


class Disk:
    """In an image file, mounted."""

    def __enter__(self):
        self.temp = tempfile.mkdtemp(prefix="pif-small-memory-")
        self.mounted = os.path.join(self.temp, "mounted")
        os.mkdir(self.mounted)
        image = os.path.join(self.temp, "image")
        with open(image, "wb") as file:
            file.truncate(4 << 30)
        loop_devices.call("mkfs.xfs", "-q", image)
        self.device = loop_devices.call("losetup", "-f", "--show", image)
        loop_devices.call("mount", self.device, self.mounted)
        self.block = os.path.join("/sys/block", os.path.basename(self.device))
        with open(os.path.join(self.block, "queue/read_ahead_kb"), "w") as file:
            file.write(str(READ_AHEAD_KB))
        return self

    def __exit__(self, *ignored):
        subprocess.run(["umount", self.mounted], check=False)
        subprocess.run(["losetup", "-d", self.device], check=False)
        subprocess.run(["rm", "-rf", self.temp], check=False)

    def bytes_read(self):
        with open(os.path.join(self.block, "stat")) as file:
            return int(file.read().split()[2]) * 512


def write_file(path, bytes_, piece=os.urandom):
    """This process is in the group, too: it never has much of a file."""
    with open(path, "wb") as file:
        for at in range(0, bytes_, MB):
            file.write(piece(min(MB, bytes_ - at)))
    return path


def lines(bytes_):
    letters = os.urandom(bytes_ // 2).hex().encode()
    return b"".join(letters[at : at + 50 + at % 99] + b"\n" for at in range(0, len(letters), 150))


@contextlib.contextmanager
def reads_at_most(times, bytes_, what):
    os.sync()
    before = DISK.bytes_read()
    yield
    read = DISK.bytes_read() - before
    print(f"      {what}: the disk reads {read / bytes_:.1f} times the file", flush=True)
    check(read <= times * bytes_, f"{what}: the disk reads {read / bytes_:.1f} times the file")


def sorts_read_the_file_and_its_runs():
    with FileSystem(2, where=DISK.mounted) as fs:
        fs.ok("put", "--record-length", str(RECORD), write_file(fs.local("a"), BYTES), "/a")
        for merge in ("split", "token", "pipelined"):
            with reads_at_most(5, BYTES, f"--merge {merge}"):
                fs.ok("sort", "-q", "--merge", merge, "-k", "0:10", "/a", "/b")
            with reads_at_most(2, BYTES, f"sort -c, after --merge {merge}"):
                fs.ok("sort", "-c", "-k", "0:10", "/b")


def a_sort_of_lines_reads_the_file_and_its_runs():
    with FileSystem(2, where=DISK.mounted) as fs:
        local = write_file(fs.local("a"), BYTES, lines)
        fs.ok("put", "--lines", local, "/a")
        with reads_at_most(8, os.path.getsize(local), "lines"):
            fs.ok("sort", "-q", "--memory", "32M", "/a", "/b")
        fs.ok("sort", "-c", "/b")


def a_recursive_transpose_reads_what_each_pass_needs():
    """In six passes here, each of which reads the file twice and overwrites it twice."""
    size = SIDE * SIDE * 8
    shape = ("--element-bits", "64", "--columns", str(SIDE))
    with FileSystem(4, where=DISK.mounted) as fs:
        fs.ok("put", "--record-length", str(SIDE * 8), write_file(fs.local("a"), size), "/a")
        with reads_at_most(16, size, "transpose --algorithm recursive"):
            fs.ok("transpose", "-q", "--algorithm", "recursive", "--memory", "32M", *shape, "/a", "/b")
        with reads_at_most(4, size, "transpose --algorithm direct"):
            fs.ok("transpose", "-q", *shape, "/b", "/c")
        fs.ok("get", "/c", fs.local("c"))
        check(sha256_of(fs.local("a")) == sha256_of(fs.local("c")), "twice is the identity")


TESTS = [
    sorts_read_the_file_and_its_runs,
    a_sort_of_lines_reads_the_file_and_its_runs,
    a_recursive_transpose_reads_what_each_pass_needs,
]


def run():
    global DISK
    why = loop_devices.why_not()
    if why:
        print(f"skipped: {why}")
        return SKIPPED
    try:
        group = Group(GROUP).__enter__()
    except OSError as error:
        print(f"skipped: no control group can be made here: {error}")
        return SKIPPED
    try:
        with Disk() as DISK:
            return main(TESTS, sys.argv[1:])
    finally:
        group.__exit__()


if __name__ == "__main__":
    sys.exit(run())
