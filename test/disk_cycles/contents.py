"""What the file system of the disk cycles must have: its files, and what each way of reading them gives."""

import os
import subprocess

from pif_system import check

LINE_LENGTHS = (0, 1, 20, 80, 700)


class File:
    """One file as it should be. A file without parity lies on `nodes`, or on all LFSs."""

    def __init__(self, path, options, data, nodes=None):
        self.path = path
        self.options = options
        self.data = data
        self.nodes = nodes
        self.is_protected = path.startswith("/with/")
        self.data_before = data  # what it had before its last change
        self.changed_in = 0  # the cycle of that change
        self.was_appended_to = False  # since it was put

    def uses(self, lfs):
        """Whether it may have something there: rows, or parity."""
        return self.nodes is None or lfs in self.nodes


def make_bytes(rng, size):
    return rng.randbytes(size)


def make_lines(rng, count):
    return b"".join(bytes(rng.choices(b"abcdefghij", k=rng.choice(LINE_LENGTHS))) + b"\n" for _ in range(count))


def plan(rng):
    """The files of one file system of eight LFSs: each format, some widths, with parity of two kinds and without."""
    fixed = ("--record-length", "100")
    lines = ("--lines",)
    shapes = {
        "fixed": (fixed, make_bytes(rng, 100 * 211)),
        "short-end": (fixed, make_bytes(rng, 100 * 31 + 33)),
        "lines": (lines, make_lines(rng, 300)),
        "long": (("--record-length", "65536"), make_bytes(rng, 65536 * 9 + 11)),
        "one": (("--record-length", "4096"), make_bytes(rng, 1000)),
        "none": (fixed, b""),
    }
    files = []
    for bevy in ("2", "4"):
        files += [File(f"/with/{name}{bevy}", (*o, "--bevy", bevy), data) for name, (o, data) in shapes.items()]
    files.append(File("/with/narrow", (*fixed, "--bevy", "2", "--width", "4"), make_bytes(rng, 5000)))
    without = [(name, o, data, None) for name, (o, data) in shapes.items()]
    without.append(("two", fixed, make_bytes(rng, 7000), ("lfs1", "lfs6")))
    without.append(("single", lines, make_lines(rng, 50), ("lfs4",)))
    for name, options, data, nodes in without:
        where = ("--nodes", ",".join(nodes)) if nodes else ()
        files.append(File(f"/without/{name}", (*options, "--bevy", "0", *where), data, nodes))
    return {file.path: file for file in files}


class Contents:
    """The files, and how they are written and read. Ways of reading: descriptors, messages, ZeroMQ, a tool's workers,
    and the library by single records."""

    WAYS = {
        "descriptors": {},
        "messages": {"PIF_DATA": "messages"},
        "ZeroMQ": {"PIF_ROUTE": "ipc"},
    }

    def __init__(self, fs, rng):
        self.fs = fs
        self.rng = rng
        self.files = plan(rng)
        for folder in ("/with", "/without", "/copies"):
            fs.ok("mkdir", folder)
        for file in self.files.values():
            self.put(file)

    def put(self, file, cycle=0):
        self.fs.ok("put", "-q", *file.options, "-", file.path, data=file.data)
        file.changed_in = cycle
        file.was_appended_to = False

    def renew(self, file, cycle):
        """Another file under the same name; of the same kind."""
        file.data_before = file.data
        file.data = make_lines(self.rng, 40) if "--lines" in file.options else make_bytes(self.rng, 4321)
        self.put(file, cycle)

    def append(self, file, cycle):
        more = make_lines(self.rng, 9) if "--lines" in file.options else make_bytes(self.rng, 777)
        self.fs.ok("append", "-q", "-", file.path, data=more)
        file.data_before = file.data
        file.data += more
        file.changed_in = cycle
        file.was_appended_to = True

    def work(self, cycle, files, appends=True):
        """Some of these files are put anew, others appended to."""
        for file in self.rng.sample(files, min(3, len(files))):
            if appends and self.rng.random() < 0.6:
                self.append(file, cycle)
            else:
                self.renew(file, cycle)

    # ---- reading ----

    def check(self, where, files):
        """Each of these files is right, by each way of reading."""
        self.check_without_workers(where, files)
        self.check_by_workers(where, files)

    def check_without_workers(self, where, files):
        """An LFS that is silent, or whose disk fails, has no workers until it is lost."""
        for way, env in self.WAYS.items():
            self.check_by_cat(f"{where}: {way}", files, env)

    def check_by_cat(self, where, files, env):
        env = dict(self.fs.env, **env)
        paths = [file.path for file in files]
        wanted = b"".join(file.data for file in files)
        if not paths or self.fs.ok("cat", *paths, env=env) == wanted:
            return
        for file in files:
            got = self.fs.ok("cat", file.path, env=env)
            check(got == file.data, f"{where}: {file.path}: {len(got)} bytes, {len(file.data)} are right")
        check(False, f"{where}: what cat gave of all files is not what it gave of each")

    def check_by_workers(self, where, files):
        """A copy is made by workers on the LFSs."""
        for file in files:
            done = self.fs.run("copy", "-q", file.path, "/copies/copy", "--width", "8", "--bevy", "4")
            check(done.returncode == 0, f"{where}: copy {file.path}: {done.stderr.decode(errors='replace')}")
            check(self.fs.content("/copies/copy") == file.data, f"{where}: a copy of {file.path} has other bytes")
        if files:
            self.fs.ok("rm", "/copies/copy")

    def marks(self):
        """{path: its marks} of the files that have any."""
        documents = {path: self.fs.json("stat", path) for path in self.files}
        return {path: document["marks"] for path, document in documents.items() if document["marks"]}


def read_as_is(fs, path):
    """What a marked file gives; its error is one that says so."""
    done = fs.run("cat", path)
    said = done.stderr.decode(errors="replace")
    check(done.returncode != 0 and "--stale" in said, f"{path} is marked: exit {done.returncode}: {said}")


def empty(folder):
    """The folder itself stays: a disk may be mounted there."""
    for name in os.listdir(folder):
        subprocess.run(["rm", "-rf", os.path.join(folder, name)], check=True)
