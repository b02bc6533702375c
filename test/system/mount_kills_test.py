"""kill -9 of a mount, an LFS or the server at some moment of a copy into a mount: what cp reported is whole.

PIF_MOUNT_KILLS=N: so many."""

import contextlib
import os
import random
import subprocess
import sys

from mounts import Mount, can_mount
from pif_system import FileSystem, await_condition, check, main_on

FS = None
LFSS = 3


def is_mounted(folder):
    try:
        return os.path.ismount(folder) and os.listdir(folder) is not None
    except OSError:
        return False


def heal(mount, victim):
    if victim == "mount":
        await_condition(lambda: mount.process() is None, "it has ended")
        mount.begin()  # over the dead one
    else:
        FS.ok("up", FS.folder)
    await_condition(lambda: FS.run("status").returncode == 0 and is_mounted(mount.folder), "all are up", 60)


def copies_are_whole_or_not_reported():
    rnd = random.Random(int(os.environ.get("PIF_MOUNT_KILLS_SEED", "3")))
    sources = {}
    for i, size in enumerate((1, 50_000, 3_000_000, 40_000_000)):
        sources[FS.local(f"source{i}")] = rnd.randbytes(size)
    for path, data in sources.items():
        with open(path, "wb") as file:
            file.write(data)
    mount = Mount(FS, "m")
    reported = {}  # name: which source
    killed = 0
    with mount as folder:
        for i in range(int(os.environ.get("PIF_MOUNT_KILLS", "6"))):
            victim = ("mount", "lfs", "server")[i % 3]
            copies = []
            for k in range(3):
                source, name = rnd.choice(list(sources)), f"f{i}-{k}"
                copy = subprocess.Popen(["cp", source, f"{folder}/{name}"], stderr=subprocess.PIPE)
                copies.append((name, source, copy))
            with contextlib.suppress(subprocess.TimeoutExpired):
                copies[2][2].wait(rnd.uniform(0, 0.05))
            killed += any(copy.poll() is None for _, _, copy in copies)
            if victim == "mount":
                os.kill(mount.process(), 9)
            else:
                FS.kill("server" if victim == "server" else f"lfs{rnd.randrange(LFSS)}")
            if victim != "mount":
                FS.ok("up", FS.folder)
            for name, source, copy in copies:
                _, said = copy.communicate(timeout=120)
                check(copy.returncode in (0, 1), f"{victim}: cp: {said}")
                if copy.returncode == 0:
                    reported[name] = source
            heal(mount, victim)
            for name, source, _ in copies:
                if name in reported:
                    check(FS.content(f"/{name}") == sources[source], f"{victim}: {name} was reported, and is not whole")
        for name, source in reported.items():
            with open(f"{folder}/{name}", "rb") as file:
                check(file.read() == sources[source], f"{name} is whole at the end")
    print(f"# {killed} kills within a copy, {len(reported)} copies reported, all whole")


def run_all():
    global FS
    if not can_mount():
        print("skipped: mounts need root and /dev/fuse")
        return 77
    with FileSystem(LFSS) as FS:
        return main_on(FS, [copies_are_whole_or_not_reported], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run_all())
