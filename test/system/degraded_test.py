"""Files with parity are written while an LFS is lost, which has all of it when it is back."""

import os
import sys
import time

from parity_files import BEVY, IN_ORDER, LFSS, Contents, lines, pattern
from pif_system import FileSystem, check, main

# path in a folder: (options of put, bytes)
FILES = {
    "/hundred": (("--record-length", "100"), pattern(1, 100 * 3000)),
    "/short": (("--record-length", "100"), pattern(2, 100 * 57 + 33)),
    "/bytes": (("--record-length", "1"), pattern(3, 5003)),
    "/long": (("--record-length", "65536"), pattern(4, 65536 * 40 + 11)),
    "/lines": (("--lines",), lines(5, 2000)),
    "/one": (("--record-length", "4096"), pattern(6, 1000)),
    "/none": (("--record-length", "100"), b""),
    "/no-lines": (("--lines",), b""),
}


class WrittenContents(Contents):
    """Files are put, appended to, renamed and removed."""

    def put_all(self, folder, bevies):
        self.fs.ok("mkdir", folder)
        self.put(FILES, *bevies, folder=folder)

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


def write_without(fs, contents, lost):
    """`lost` is killed, misses a lot, and comes back."""
    contents.put_all("/before", IN_ORDER)
    fs.kill(lost)
    fs.declare_lost(lost)
    contents.check("old files")
    contents.put_all("/in-order", IN_ORDER)
    contents.put_all("/anyhow", BEVY)
    contents.put_tree("/tree")
    fs.ok("put", "--record-length", "10", "-", "/plain", data=b"without parity")
    check(fs.content("/plain") == b"without parity", "a file that has no parity is on the others")
    contents.check("new files")
    contents.append_all("/before", 100)
    contents.append_all("/in-order", 200)
    contents.rename_and_remove("/in-order")
    contents.check("appended files")
    contents.check_otherwise(f"without {lost}", "/in-order")
    fs.bring_back(lost)
    contents.check(f"{lost} is back")
    contents.append_all("/before", 300)
    contents.check(f"appended with {lost}")


def read_without(fs, contents, other):
    """What `lost` missed is needed to read around another one."""
    fs.kill(other)
    contents.check(f"{other} is silent")
    fs.declare_lost(other)
    contents.check(f"without {other}")


def files_are_written_without_their_first_lfs():
    with FileSystem(LFSS) as fs:
        contents = WrittenContents(fs)
        write_without(fs, contents, "lfs0")
        for other in ("lfs1", "lfs5"):
            read_without(fs, contents, other)
            fs.bring_back(other)
        fs.await_clean()


def files_are_written_without_another_lfs_but_not_without_its_companion_too():
    with FileSystem(LFSS) as fs:
        contents = WrittenContents(fs)
        write_without(fs, contents, "lfs6")
        fs.ok("put", *BEVY[:1], "2", "--nodes", "lfs0,lfs1,lfs4,lfs5", "--record-length", "100", "-", "/others")
        contents.files["/others"] = b""
        read_without(fs, contents, "lfs7")
        fs.kill("lfs2")  # of the other bevy, and another place in it: one has parity of the other's rows
        fs.declare_lost("lfs2", "--force")
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
    sys.exit(main(TESTS, sys.argv[1:]))
