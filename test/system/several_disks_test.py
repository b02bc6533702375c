"""One file system over several disks of a machine: pif up --disk. With disks in image files, and with plain folders."""

import os
import shutil
import subprocess
import sys

from loop_devices import call, why_not
from pif_system import FileSystem, check, main

MIB = 1 << 20


class Disks:
    """`with Disks(fs, 2) as disks:` has mount points with a disk of its own at each, if this machine can."""

    def __init__(self, fs, count, are_real):
        self.paths = [fs.local(f"disk {i}") for i in range(1, count + 1)]
        self.images = [fs.local(f"image{i}") for i in range(1, count + 1)]
        self.are_real = are_real

    def __enter__(self):
        for path, image in zip(self.paths, self.images):
            os.mkdir(path)
            if self.are_real:
                with open(image, "wb") as file:
                    file.truncate(320 * MIB)  # the least that XFS takes
                call("mkfs.xfs", "-q", image)
                self.mount(path)
        return self

    def __exit__(self, *ignored):
        for path in self.paths if self.are_real else []:
            subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)

    def mount(self, path):
        call("mount", "-o", "loop", self.images[self.paths.index(path)], path)

    def unmount(self, path):
        call("umount", path)

    def options(self):
        return [word for path in self.paths for word in ("--disk", path)]


class Bare(FileSystem):
    """None is made yet."""

    def begin(self):
        pass


def id_of(fs):
    return fs.json("status")["cluster"]


def roots_of(fs, disks):
    """{LFS: root}, as they should be: round over the disks."""
    count = len(fs.json("status")["nodes"])
    return {f"lfs{i}": f"{disks.paths[i % len(disks.paths)]}/pif-{id_of(fs)}/lfs{i}" for i in range(count)}


def check_roots(fs, disks):
    roots = {node["name"]: node["root"] for node in fs.json("status")["nodes"]}
    check(roots == roots_of(fs, disks), f"{roots}")
    for root in roots.values():
        for folder in (root, os.path.dirname(root)):
            check(os.stat(folder).st_mode & 0o7777 == 0o700, f"{folder} is for its owner alone")
            check(not os.path.islink(folder), folder)


def a_file_system_lies_on_several_disks():
    if reason := why_not("mkfs.xfs"):
        return print(f"      skipped: {reason}")
    with Bare(2) as fs, Disks(fs, 2, True) as disks:
        fs.ok("up", *disks.options(), fs.folder)
        check_roots(fs, disks)
        fs.ok("put", "--record-length", "100", "-", "/f", data=bytes(100000))
        fs.ok("down", fs.folder)
        first = disks.paths[0]
        disks.unmount(first)
        done = fs.run("up", fs.folder)
        check(done.returncode == 3 and f"{first}/pif-".encode() in done.stderr, f"the disk is named: {done}")
        check(b"is the disk mounted?" in done.stderr, f"{done}")
        check(os.listdir(first) == [], "nothing was made in its place")
        fs.run("down", fs.folder)
        disks.mount(first)
        fs.ok("up", fs.folder)
        check(fs.content("/f") == bytes(100000), "all is there")
        doctor = fs.run("doctor").stdout.decode()
        check("LFSs share it" not in doctor, doctor)
        done = fs.run("destroy", "--yes", fs.folder)
        check(done.returncode == 0 and all(path.encode() in done.stderr for path in disks.paths), f"{done}")
        check([os.listdir(path) for path in disks.paths] == [[], []], "nothing is left on the disks")
        return None


def a_disk_that_is_not_mounted_when_roots_are_made_gets_none():
    if reason := why_not("mkfs.xfs"):
        return print(f"      skipped: {reason}")
    with Bare(2) as fs, Disks(fs, 2, True) as disks:
        fs.ok("init", *disks.options(), fs.folder)
        second = disks.paths[1]
        disks.unmount(second)
        fs.fails(3, rf"{second}/pif-\w+ is missing, where the root of lfs1 is to be: is the disk", "up", fs.folder)
        check(os.listdir(second) == [], "nothing was made in its place")
        disks.mount(second)
        fs.ok("up", fs.folder)
        check_roots(fs, disks)
        fs.ok("destroy", "--yes", fs.folder)
        return None


def a_new_disk_takes_the_place_of_a_lost_one():
    if reason := why_not("mkfs.xfs"):
        return print(f"      skipped: {reason}")
    with Bare(2) as fs, Disks(fs, 2, True) as disks:
        fs.ok("up", *disks.options(), fs.folder)
        fs.ok("down", fs.folder)
        second = disks.paths[1]
        disks.unmount(second)
        fs.fails(3, f"no disk is mounted at {second}", "node", "replace", "lfs1")
        check(os.listdir(second) == [], "nothing was made in its place")
        call("mkfs.xfs", "-q", "-f", disks.images[1])
        disks.mount(second)
        fs.ok("node", "replace", "lfs1")
        fs.ok("up", fs.folder)
        check_roots(fs, disks)
        fs.ok("destroy", "--yes", fs.folder)
        return None


def folders_of_one_disk_want_force():
    with Bare(2) as fs, Disks(fs, 2, False) as disks:
        for command in ("up", "init"):
            fs.fails(2, "are on one disk: .*--force", command, *disks.options(), fs.folder)
        check(not os.path.exists(fs.folder) and os.listdir(disks.paths[0]) == [], "nothing was made")
        fs.ok("up", "-n", "4", "--force", *disks.options(), fs.folder)
        check_roots(fs, disks)
        fs.ok("put", "-", "/f", data=b"bytes")
        fs.ok("down", fs.folder)
        fs.ok("up", fs.folder)
        check(fs.content("/f") == b"bytes", "up of the folder is enough")
        fs.ok("up", *disks.options(), fs.folder)
        disks.paths.reverse()
        fs.fails(2, "has the root of lfs0 at .*leave out --disk", "up", *disks.options(), fs.folder)
        removed = fs.json("destroy", "--yes", fs.folder)["removed_roots"]
        check(len(removed) == 4, f"{removed}")
        check([os.listdir(path) for path in disks.paths] == [[], []], "nothing is left on the disks")


def what_cannot_be_is_said():
    with Bare(2) as fs, Disks(fs, 2, False) as disks:
        fs.fails(2, "3 LFSs .* multiple of 2", "up", "-n", "3", *disks.options(), fs.folder)
        fs.fails(3, r"/none is not there: mount the disk", "up", "--disk", fs.local("none"), fs.folder)
        with open(fs.local("file"), "wb"):
            fs.fails(3, "is no folder of a disk", "up", "--disk", fs.local("file"), fs.folder)
        check(not os.path.exists(fs.local("none")) and not os.path.exists(fs.folder), "nothing was made")
        fs.ok("init", "--force", *disks.options(), fs.folder)
        fs.ok("destroy", "--yes", fs.folder)
        check([os.listdir(path) for path in disks.paths] == [[], []], "nor left, if it was never started")
        with open(os.path.join(disks.paths[0], "mine"), "wb"):
            fs.ok("up", "--disk", disks.paths[0], fs.folder)
        fs.ok("destroy", "--yes", fs.folder)
        check(os.listdir(disks.paths[0]) == ["mine"], "what is somebody else's stays")


def companions_are_on_different_disks():
    if reason := why_not("mkfs.xfs"):
        return print(f"      skipped: {reason}")
    with Bare(2) as fs, Disks(fs, 2, True) as disks:
        fs.fails(2, "a lost disk .* --force", "up", "-n", "4", "--bevy", "2", *disks.options(), fs.folder)
        fs.ok("up", "-n", "4", "--bevy", "2", "--force", *disks.options(), fs.folder)
        fs.ok("destroy", "--yes", fs.folder)
        return None


if __name__ == "__main__":
    if not shutil.which("mount"):
        sys.exit(77)
    sys.exit(
        main(
            [
                folders_of_one_disk_want_force,
                what_cannot_be_is_said,
                a_file_system_lies_on_several_disks,
                a_disk_that_is_not_mounted_when_roots_are_made_gets_none,
                a_new_disk_takes_the_place_of_a_lost_one,
                companions_are_on_different_disks,
            ],
            sys.argv[1:],
        )
    )
