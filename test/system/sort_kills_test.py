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
LEASE = 75  # a worker of a controller that died between two questions over tcp lives for 60 s (kJobLease)
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


def makers(rnd):
    """Of each file: how it is put, its sorts, and what each gives."""
    records = [rnd.randbytes(10) + b"%090d" % i for i in range(RECORDS)]
    FS.ok("put", "-q", "--record-length", "100", "-", "/records", data=b"".join(records))
    by_key = b"".join(sorted(records))
    made = [(["-k", "0:10", "--merge", *merge, "/records"], by_key) for merge in MERGES]
    lines = [b"%x" % rnd.getrandbits(rnd.choice([8, 200])) + b"\n" for _ in range(RECORDS)]
    FS.ok("put", "-q", "--lines", "-", "/lines", data=b"".join(lines))
    in_order = b"".join(sorted(lines))
    made += [(["--merge", *merge, "/lines"], in_order) for merge in MERGES]
    made += [(["-u", "/lines"], b"".join(sorted(set(lines))))]
    made += [(["--top", "100000", "/lines"], b"".join(sorted(lines)[:100_000]))]
    FS.ok("sort", "-q", "/lines", "/in-order")
    made += [(["-m", "/in-order", "/in-order"], b"".join(sorted(lines * 2)))]
    return made, {"/records": b"".join(records), "/lines": b"".join(lines), "/in-order": in_order}


def sorts_survive_kills():
    rnd = random.Random(int(os.environ.get("PIF_SORT_KILLS_SEED", "9")))
    made, inputs = makers(rnd)
    begin = time.monotonic()
    FS.ok("sort", "-k", "0:10", "/records", "/out")
    usual = time.monotonic() - begin
    killed = whole = 0
    for i in range(int(os.environ.get("PIF_SORT_KILLS", "9"))):
        victim, (words, expected) = ("worker", "lfs", "controller")[i % 3], rnd.choice(made)
        FS.run("rm", "/out")
        controller = FS.start("sort", "-q", *words, "/out")
        with contextlib.suppress(subprocess.TimeoutExpired):  # mostly it is not over at that moment
            controller.wait(rnd.uniform(0, usual * 2))
        killed += kill(victim, rnd, controller)
        code = controller.wait(timeout=60)
        if victim == "lfs":
            FS.ok("up", FS.folder)
        await_condition(lambda: not workers(), "no worker is left", LEASE)
        await_condition(
            lambda: FS.run("ls", "/").returncode == 0 and FS.run("status").returncode == 0, "all are up", 30
        )
        there = FS.run("stat", "/out").returncode == 0
        check(there or code != 0, f"{victim}, {words}: the sort said that it is done")
        if there:
            whole += 1
            check(FS.content("/out") == expected, f"{victim}, {words}: the output is whole")
    for name, content in inputs.items():
        check(FS.content(name) == content, f"{name} is as it was")
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
