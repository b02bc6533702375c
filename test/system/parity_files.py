"""What tests of files with parity have in common: their LFSs, bytes to put, and what is to be read again."""

import random

from pif_system import check

LFSS = 8
BEVY = ("--bevy", "4")
# LFS n of the file is lfsN: bevies are lfs0 to lfs3 and lfs4 to lfs7; lfs0 has the sequencer, lfs4 is its deputy.
IN_ORDER = (*BEVY, "--nodes", ",".join(f"lfs{i}" for i in range(LFSS)))


def pattern(seed, size):
    return random.Random(seed).randbytes(size)


def lines(seed, count):
    """Short ones, and empty ones."""
    rng = random.Random(seed)
    return b"".join(bytes(rng.choices(b"abcdefghij", k=rng.choice((0, 1, 20, 80, 700)))) + b"\n" for _ in range(count))


class Contents:
    """A file system, and what its files have."""

    def __init__(self, fs):
        self.fs = fs
        self.files = {}

    def put(self, files, *bevies, folder=""):
        """files: {path: (options of put, bytes)}, as paths in `folder`."""
        for path, (options, data) in files.items():
            self.fs.ok("put", *options, *bevies, "-", folder + path, data=data)
            self.files[folder + path] = data

    def check(self, where):
        paths = sorted(self.files)
        if self.fs.ok("cat", *paths) == b"".join(self.files[path] for path in paths):
            return
        for path in paths:
            got = self.fs.content(path)
            check(got == self.files[path], f"{where}: {path}: {len(got)} bytes, {len(self.files[path])} are right")
        check(False, f"{where}: what cat said of all files is not what it says of each")
