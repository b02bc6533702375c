"""How pif-sort scales with the number of disks: one measurement of one merge on p disks of a fixed speed."""

import json
import os
import re
import resource
import subprocess
import time

import pif_system
from pif_system import await_condition, check

RECORD_BYTES = 100
TICKS = os.sysconf("SC_CLK_TCK")


def program(name):
    return os.path.join(pif_system.BIN, name)


def has_merges():
    done = subprocess.run([program("pif-sort"), "--help"], stdout=subprocess.PIPE, text=True, check=False)
    return "--merge" in done.stdout


def make_source(path, size):
    """Records at `path`; what they are, whatever their order."""
    subprocess.run([program("pif-bench"), "--make-records", str(size // RECORD_BYTES), path], check=True)
    return census(["cat", path])


def census(command, env=None):
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as giving:
        done = subprocess.run(
            [program("pif-bench"), "--census", "/dev/stdin"],
            stdin=giving.stdout,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    check(giving.returncode == 0 and done.returncode == 0, f"{' '.join(command)}: cannot be checked")
    return json.loads(done.stdout)


class SortSystem(pif_system.FileSystem):
    """A file system with an LFS on each disk."""

    def __init__(self, disks, where):
        super().__init__(len(disks), where=where)
        self.disks = disks
        try:
            self.describe()
        except BaseException:
            self.close()
            raise

    def describe(self):
        self.ok("init", "-n", str(len(self.disks)), self.folder)
        description = os.path.join(self.folder, "pif.toml")
        with open(description, encoding="utf-8") as file:
            text = file.read()
        for index, disk in enumerate(self.disks):
            root = f'root = "{disk.mount_point}/lfs"'
            text, count = re.subn(f'^root = "lfs{index}"$', root, text, flags=re.MULTILINE)
            check(count == 1, f"{description} has no root of LFS {index}")
        with open(description, "w", encoding="utf-8") as file:
            file.write(text)

    def hold_to(self, speed):
        for disk in self.disks:
            disk.hold_to(speed)

    def bytes_moved(self):
        return [sum(way) for way in zip(*(disk.bytes_moved() for disk in self.disks))]

    def make_cold(self):
        """What the LFSs hold is on their disks and no longer in memory; nobody else's memory is touched."""
        for disk in self.disks:
            for folder, _, names in os.walk(disk.mount_point):
                for name in names:
                    forget(os.path.join(folder, name))

    def settle(self):
        """Removed files are gone from the disks."""
        await_condition(lambda: self.json("status")["doomed"] == 0, "what was removed is gone", 120)

    def cpu_seconds(self):
        """Of the daemons, and of workers that have ended."""
        ticks = 0
        for pid in self.processes():
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
        return ticks / TICKS


def forget(path):
    file = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def own_children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_cold(system, command, size, speed):
    """Runs a tool that has no less than `size` bytes to read and to write, from cold disks to durable output. None if
    it has no such options."""
    system.make_cold()
    system.hold_to(speed)
    moved, cpu = system.bytes_moved(), system.cpu_seconds() + own_children_seconds()
    begin = time.monotonic()
    done = subprocess.run(
        command, env=system.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    seconds = time.monotonic() - begin
    cpu = system.cpu_seconds() + own_children_seconds() - cpu
    system.hold_to(0)
    if done.returncode == 2:
        return None
    check(done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    read, written = (after - before for after, before in zip(system.bytes_moved(), moved))
    check(read >= size, f"only {read} bytes came from the disks: the data was not cold")
    check(written >= size, f"only {written} bytes reached the disks: the output is not durable")
    return {"seconds": seconds, "cpu_seconds": cpu, "read": read, "written": written}


def sort_once(system, options, size, speed):
    """Sorts /source onto /sorted. None if this pif-sort has no such options."""
    return run_cold(system, [program("pif-sort"), "-q", "-k", "0:10", *options, "/source", "/sorted"], size, speed)


def check_sorted(system, wanted):
    got = census([program("pif"), "cat", "/sorted"], system.env)
    check(
        got["sorted"] and got["records"] == wanted["records"] and got["sum"] == wanted["sum"],
        f"the output is not the sorted input: {got}, not {wanted}",
    )
    system.ok("rm", "/sorted")
    system.settle()


def measure(disks, where, source, wanted, size, speed, merges):
    """{merge: what was measured, or None if there is no such merge} on these disks."""
    found = {}
    for disk in disks:
        disk.hold_to(0)
    with SortSystem(disks, where) as system:
        system.ok("put", "-q", "--record-length", str(RECORD_BYTES), source, "/source", timeout=1800)
        for merge, options in merges.items():
            found[merge] = sort_once(system, options, size, speed)
            if found[merge]:
                check_sorted(system, wanted)
    return found
