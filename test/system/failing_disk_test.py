"""A disk gives I/O errors under a daemon that runs: files with parity are read and made all the same, the LFS is lost,
and its daemon ends. And an LFS that runs is lost by a person's word."""

import fcntl
import os
import shutil
import struct
import sys

import loop_devices
from loop_devices import call
from parity_files import Contents, lines, pattern
from pif_system import FileSystem, await_condition, check, main

LFSS = 4
BEVY = ("--bevy", "2")
IMAGE_BYTES = 400 << 20
XFS_IOC_GOINGDOWN, WITHOUT_LOG = 0x8004587D, 2
FILES = {
    "/f": (("--record-length", "4096"), pattern(1, 4_000_000)),
    "/short": (("--record-length", "100"), pattern(2, 100 * 3000 + 33)),
    "/lines": (("--lines",), lines(3, 3000)),
}


class OwnDisk:
    """The root of one LFS is on a disk in an image file; nothing runs when it is made."""

    def __init__(self, fs, lfs):
        self.root = os.path.join(fs.folder, lfs)
        self.image = fs.local("image")
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_BYTES)
        call("mkfs.xfs", "-q", "-f", self.image)
        before = fs.local("before")
        shutil.move(self.root, before)
        os.mkdir(self.root, 0o700)
        call("mount", "-o", "loop", self.image, self.root)
        call("cp", "-a", before + "/.", self.root)
        os.chmod(self.root, 0o700)

    def fail(self):
        """As a kernel does that has met errors: from now on the file system answers all calls with EIO."""
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.ioctl(folder, XFS_IOC_GOINGDOWN, struct.pack("I", WITHOUT_LOG))
        os.close(folder)

    def close(self):
        call("umount", "-l", self.root)


def node(fs, name):
    return next(one for one in fs.json("status")["nodes"] if one["name"] == name)


def is_running(fs, name):
    return any(name in words_of(pid) for pid in fs.processes())


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")
    except OSError:
        return []


def check_all(fs, contents, where):
    contents.check(where)
    env = dict(fs.env, PIF_DATA="messages")
    for path, data in contents.files.items():
        check(fs.ok("cat", path, env=env) == data, f"{where}: {path} by message")


def failing_disk_test(fs, disk):
    contents = Contents(fs)
    contents.put(FILES, *BEVY)
    disk.fail()
    check_all(fs, contents, "the disk fails")
    await_condition(lambda: node(fs, "lfs1")["view_state"] == "lost", "lfs1 is lost", 60)
    check_all(fs, contents, "lfs1 is lost")
    await_condition(lambda: not is_running(fs, "lfs1"), "the daemon of lfs1 ends")
    contents.put({"/new": (("--record-length", "100"), pattern(4, 123_456))}, *BEVY)
    check_all(fs, contents, "without lfs1")
    new = fs.local("new-root")
    await_condition(lambda: fs.run("node", "replace", "--root", new, "lfs1").returncode == 0, "lfs1 is replaced")
    fs.ok("rebuild", "lfs1", timeout=300)
    await_condition(lambda: node(fs, "lfs1")["view_state"] == "member", "lfs1 is a member")
    check(node(fs, "lfs1")["state"] == "up", f"lfs1: {node(fs, 'lfs1')}")
    check_all(fs, contents, "on a new disk")


def a_failing_disk_is_lost_and_ends():
    if why := loop_devices.why_not():
        print(f"skipped: {why}")
        return
    with FileSystem(LFSS, up_options=BEVY) as fs:
        fs.ok("down", fs.folder)
        disk = OwnDisk(fs, "lfs1")
        try:
            fs.ok("up", fs.folder)
            failing_disk_test(fs, disk)
        finally:
            disk.close()


def a_running_lfs_is_lost_by_a_word_and_ends():
    with FileSystem(LFSS, up_options=BEVY) as fs:
        contents = Contents(fs)
        contents.put(FILES, *BEVY)
        check(is_running(fs, "lfs2"), "lfs2 runs")
        fs.ok("node", "lost", "lfs2")
        check(node(fs, "lfs2")["view_state"] == "lost", f"{node(fs, 'lfs2')}")
        await_condition(lambda: not is_running(fs, "lfs2"), "the daemon of lfs2 ends")
        check_all(fs, contents, "without lfs2")
        contents.put({"/new": (("--record-length", "100"), pattern(4, 123_456))}, *BEVY)
        fs.ok("up", fs.folder)
        await_condition(lambda: node(fs, "lfs2")["view_state"] == "member", "lfs2 is a member", 60)
        fs.kill("lfs3")
        check_all(fs, contents, "without lfs3")


TESTS = [
    a_failing_disk_is_lost_and_ends,
    a_running_lfs_is_lost_by_a_word_and_ends,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
