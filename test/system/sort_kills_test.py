"""kill -9 of a worker, an LFS or the controller at some moment of a sort: a whole output or none, and the input as it
was.

PIF_SORT_KILLS=N: so many, and then a wait until nothing is left of any."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

from pif_system import FileSystem, await_condition, check, main_on

FS = None
RECORDS = 300_000
MERGES = (
    ["split"],
    ["token"],
    ["pipelined"],
    ["split", "--memory", "32M"],
    ["split", "--route", "tcp"],
    ["token", "--route", "tcp"],
)


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def workers():
    """Processes of our LFSs' jobs."""
    lfss = {FS.pid_of(f"lfs{i}") for i in range(4)}
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent in lfss and b"--pif-worker" in words_of(pid):
            found.append(int(pid))
    return found


def kill(victim, rnd, controller):
    """False: it was over."""
    if victim == "lfs":
        FS.kill(f"lfs{rnd.randrange(4)}")
        return True
    pids = workers() if victim == "worker" else [controller.pid]
    if controller.poll() is not None or not pids:
        return False
    try:
        os.kill(rnd.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def sorts_survive_kills():
    rnd = random.Random(int(os.environ.get("PIF_SORT_KILLS_SEED", "9")))
    records = [rnd.randbytes(10) + b"%090d" % i for i in range(RECORDS)]
    data, expected = b"".join(records), b"".join(sorted(records))
    FS.ok("put", "-q", "--record-length", "100", "-", "/in", data=data)
    begin = time.monotonic()
    FS.ok("sort", "-k", "0:10", "/in", "/out")
    usual = time.monotonic() - begin
    killed = whole = 0
    for i in range(int(os.environ.get("PIF_SORT_KILLS", "9"))):
        victim, merge = ("worker", "lfs", "controller")[i % 3], rnd.choice(MERGES)
        FS.run("rm", "/out")
        controller = FS.start("sort", "-q", "-k", "0:10", "--merge", *merge, "/in", "/out")
        with contextlib.suppress(subprocess.TimeoutExpired):  # mostly it is not over at that moment
            controller.wait(rnd.uniform(0, usual * (1 if merge == ["split"] else 2)))
        killed += kill(victim, rnd, controller)
        code = controller.wait(timeout=60)
        if victim == "lfs":
            FS.ok("up", FS.folder)
        await_condition(lambda: not workers(), "no worker is left", 20)
        await_condition(
            lambda: FS.run("ls", "/").returncode == 0 and FS.run("status").returncode == 0, "all are up", 30
        )
        there = FS.run("stat", "/out").returncode == 0
        check(there or code != 0, f"{victim}, {merge}: the sort said that it is done")
        if there:
            whole += 1
            check(FS.content("/out") == expected, f"{victim}, {merge}: the output is whole")
    check(FS.content("/in") == data, "the input is as it was")
    print(f"# {killed} kills, {whole} outputs, all whole")
    FS.run("rm", "/out")
    if "PIF_SORT_KILLS" in os.environ:  # what was killed is asked about after a minute
        FS.await_clean()


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        return main_on(FS, [sorts_survive_kills])


if __name__ == "__main__":
    sys.exit(run_all())
