"""Files with parity are written while an LFS is lost, which has all of it when it is back."""

import os
import random
import sys
import time

from pif_system import FileSystem, await_condition, check, main

LFSS = 8
BEVY = ("--bevy", "4")
# LFS n of the file is lfsN: lfs0 has the sequencer, lfs4 is its deputy.
IN_ORDER = (*BEVY, "--nodes", ",".join(f"lfs{i}" for i in range(LFSS)))


def pattern(seed, size):
    return random.Random(seed).randbytes(size)


def lines(seed, count):
    rng = random.Random(seed)
    return b"".join(bytes(rng.choices(b"abcdefghij", k=rng.choice((0, 1, 20, 80, 700)))) + b"\n" for _ in range(count))


# name: (options of put, bytes)
FILES = {
    "hundred": (("--record-length", "100"), pattern(1, 100 * 3000)),
    "short": (("--record-length", "100"), pattern(2, 100 * 57 + 33)),
    "bytes": (("--record-length", "1"), pattern(3, 5003)),
    "long": (("--record-length", "65536"), pattern(4, 65536 * 40 + 11)),
    "lines": (("--lines",), lines(5, 2000)),
    "one": (("--record-length", "4096"), pattern(6, 1000)),
    "none": (("--record-length", "100"), b""),
    "no-lines": (("--lines",), b""),
}


class Contents:
    """A file system, and what its files have."""

    def __init__(self, fs):
        self.fs = fs
        self.files = {}

    def put(self, folder, bevies):
        self.fs.ok("mkdir", folder)
        for name, (options, data) in FILES.items():
            self.fs.ok("put", *options, *bevies, "-", f"{folder}/{name}", data=data)
            self.files[f"{folder}/{name}"] = data

    def put_tree(self, path):
        """Small files, many at once."""
        local = self.fs.local("tree")
        os.makedirs(local, exist_ok=True)
        for i in range(20):
            data = pattern(i, 61 * i)
            with open(os.path.join(local, str(i)), "wb") as file:
                file.write(data)
            self.files[f"{path}/{i}"] = data
        self.fs.ok("put", "-r", *BEVY, "--record-length", "100", local, path)

    def append(self, path, data):
        self.fs.ok("append", "-", path, data=data)
        self.files[path] += data

    def append_all(self, folder, seed):
        for name in ("hundred", "bytes", "none"):
            self.append(f"{folder}/{name}", pattern(seed, 2500))
        self.append(f"{folder}/long", pattern(seed, 65536 * 9 + 5))
        # The end is in the middle of a record of each LFS in turn.
        for i, size in enumerate((40, 67, 100, 60, 130, 170, 100, 30, 203, 90)):
            self.append(f"{folder}/short", pattern(seed + i, size))
        for name in ("lines", "no-lines"):
            for i in range(3):
                self.append(f"{folder}/{name}", lines(seed + i, 40))

    def rename_and_remove(self, folder):
        self.fs.ok("mv", f"{folder}/one", f"{folder}/moved")
        self.files[f"{folder}/moved"] = self.files.pop(f"{folder}/one")
        self.fs.ok("put", "--record-length", "10", *BEVY, "-", f"{folder}/gone", data=pattern(8, 1234))
        self.fs.ok("rm", f"{folder}/gone")
        self.fs.ok("cp", f"{folder}/short", f"{folder}/copy")
        self.files[f"{folder}/copy"] = self.files[f"{folder}/short"]

    def check(self, where):
        paths = sorted(self.files)
        if self.fs.ok("cat", *paths) == b"".join(self.files[path] for path in paths):
            return
        for path in paths:
            got = self.fs.content(path)
            check(got == self.files[path], f"{where}: {path}: {len(got)} bytes, {len(self.files[path])} are right")
        check(False, f"{where}: what cat said of all files is not what it says of each")

    def check_otherwise(self, where, folder):
        """By message, and what is known without reading."""
        env = dict(self.fs.env, PIF_DATA="messages")
        for name in ("hundred", "short", "lines"):
            path = f"{folder}/{name}"
            check(self.fs.ok("get", path, "-", env=env) == self.files[path], f"{where}: {path} by message")
            size = self.fs.json("stat", path)["bytes"]
            check(size == len(self.files[path]), f"{where}: {path}: {size} bytes, says stat")
        listed = self.fs.ok("ls", folder).decode().split()
        wanted = sorted(path.rsplit("/", 1)[1] for path in self.files if path.startswith(folder + "/"))
        check(sorted(listed) == wanted, f"{where}: {folder} has {listed}")


def state_of(fs, daemon):
    return next(node["view_state"] for node in fs.json("status")["nodes"] if node["name"] == daemon)


def declare_lost(fs, daemon, *options):
    """Of one that was killed; this waits for the end of its lease."""
    fs.ok("node", "lost", *options, daemon)
    check(state_of(fs, daemon) == "lost", f"{daemon} is {state_of(fs, daemon)}")


def bring_back(fs, daemon):
    fs.ok("up", fs.folder)
    await_condition(lambda: state_of(fs, daemon) == "member", f"{daemon} is a member", 60)


def write_without(fs, contents, lost):
    """`lost` is killed, misses a lot, and comes back."""
    contents.put("/before", IN_ORDER)
    fs.kill(lost)
    declare_lost(fs, lost)
    contents.check("old files")
    contents.put("/in-order", IN_ORDER)
    contents.put("/anyhow", BEVY)
    contents.put_tree("/tree")
    fs.ok("put", "--record-length", "10", "-", "/plain", data=b"without parity")
    check(fs.content("/plain") == b"without parity", "a file that has no parity is on the others")
    contents.check("new files")
    contents.append_all("/before", 100)
    contents.append_all("/in-order", 200)
    contents.rename_and_remove("/in-order")
    contents.check("appended files")
    contents.check_otherwise(f"without {lost}", "/in-order")
    bring_back(fs, lost)
    contents.check(f"{lost} is back")
    contents.append_all("/before", 300)
    contents.check(f"appended with {lost}")


def read_without(fs, contents, other):
    """What `lost` missed is needed to read around another one."""
    fs.kill(other)
    contents.check(f"{other} is silent")
    declare_lost(fs, other)
    contents.check(f"without {other}")


def files_are_written_without_their_first_lfs():
    with FileSystem(LFSS) as fs:
        contents = Contents(fs)
        write_without(fs, contents, "lfs0")
        for other in ("lfs1", "lfs5"):
            read_without(fs, contents, other)
            bring_back(fs, other)
        fs.await_clean()


def files_are_written_without_another_lfs_but_not_without_its_companion_too():
    with FileSystem(LFSS) as fs:
        contents = Contents(fs)
        write_without(fs, contents, "lfs6")
        fs.ok("put", *BEVY[:1], "2", "--nodes", "lfs0,lfs1,lfs4,lfs5", "--record-length", "100", "-", "/others")
        contents.files["/others"] = b""
        read_without(fs, contents, "lfs7")
        fs.kill("lfs2")  # of the other bevy, and another place in it: one has parity of the other's rows
        declare_lost(fs, "lfs2", "--force")
        began = time.monotonic()
        fs.fails(3, "lfs[27] is lost, and lfs[27] is lost", "append", "-", "/before/hundred", data=pattern(9, 30_000))
        check(time.monotonic() - began < 15, "nothing is waited for")
        contents.append("/others", pattern(10, 12_345))
        check(fs.content("/others") == contents.files["/others"], "files without these two are written")


TESTS = [
    files_are_written_without_their_first_lfs,
    files_are_written_without_another_lfs_but_not_without_its_companion_too,
]

if __name__ == "__main__":
    names = sys.argv[1:]
    sys.exit(main([test for test in TESTS if not names or test.__name__ in names]))
