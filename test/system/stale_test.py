"""Files of which rows are gone, read with --stale: what is there is given, what is not is named."""

import os
import shutil
import sys

from pif_system import FileSystem, check, main_on

FS = None
WIDTH = 3
RECORDS = 25


def record(n):
    return b"%02d:x" % n


def line(n):
    return b"line %d\n" % n


def lose_lfs1():
    """Each file begins on another LFS, so that lfs1 has records 0, 1 or 2 first."""
    for i in range(WIDTH):
        FS.ok("put", "-q", "--record-length", "4", "-", f"/fixed{i}", data=b"".join(map(record, range(RECORDS)))[:-2])
        FS.ok("put", "-q", "--lines", "-", f"/lines{i}", data=b"".join(map(line, range(RECORDS))))
    FS.ok("down", FS.folder)
    shutil.rmtree(os.path.join(FS.folder, "lfs1"))
    FS.ok("node", "replace", "lfs1")
    FS.ok("up", FS.folder)


def gone_of(path):
    nodes = FS.json("stat", path)["nodes"]
    lost = FS.json("stat", path)["marks"][0]["node"]
    return [n for n in range(RECORDS) if nodes[n % WIDTH] == lost]


def fixed_parts(gone):
    data = b"".join(bytes(4) if n in gone else record(n) for n in range(RECORDS))
    return data[:-2]


def negative(words, wanted, gone, total):
    done = FS.run(*words)
    check(done.returncode == 1, f"{words}: {done}")
    check(done.stdout == wanted, f"{words}: {done.stdout} instead of {wanted}")
    check(done.stderr.count(b"\n") == 1 and b"%d of %d records are gone" % (len(gone), total) in done.stderr, f"{done}")
    check(", ".join(map(str, gone[:10])).encode() in done.stderr, f"{words}: they are named: {done}")


def cat_gives_what_is_there():
    for i in range(WIDTH):
        FS.fails(3, "--stale", "cat", f"/fixed{i}")
        gone = gone_of(f"/fixed{i}")
        negative(["cat", "--stale", f"/fixed{i}"], fixed_parts(gone), gone, RECORDS)
        some = [n for n in gone if 4 <= n < 20]
        negative(["cat", "--stale", "--records", "4:20", f"/fixed{i}"], fixed_parts(gone)[16:80], some, 16)
        gone = gone_of(f"/lines{i}")
        there = b"".join(line(n) for n in range(RECORDS) if n not in gone)
        negative(["cat", "--stale", f"/lines{i}"], there, gone, RECORDS)


def get_writes_what_is_there():
    gone = gone_of("/fixed1")
    negative(["get", "-q", "--stale", "/fixed1", FS.local("fixed")], b"", gone, RECORDS)
    with open(FS.local("fixed"), "rb") as file:
        check(file.read() == fixed_parts(gone), "zeros stand for what is gone")
    os.mkdir(FS.local("all"))
    done = FS.run("get", "-q", "-r", "--stale", "/", FS.local("all"))
    check(done.returncode == 1 and done.stderr.count(b"records are gone") == 2 * WIDTH, f"{done}")
    done = FS.run("get", "-q", "--stale", "/fixed0", "/none", FS.local("all"))
    check(done.returncode == 3, f"what fails counts more: {done}")


def nothing_else_takes_such_a_file_for_a_shorter_one():
    for i in range(WIDTH):
        for words in (["cp", "--stale"], ["copy", "--stale"], ["sort", "--stale"]):
            done = FS.run(*words, f"/fixed{i}" if words[0] != "sort" else f"/lines{i}", "/copied")
            check(done.returncode == 3, f"{words} {i}: {done}")
            check(b"file " not in done.stderr.replace(b"file system", b""), f"no number, but a path: {done}")
        done = FS.run("head", "--stale", "-c", "1000", f"/fixed{i}")
        check(done.returncode == 3, f"head {i}: {done}")
    FS.fails(3, "/copied", "stat", "/copied")


def run_all():
    global FS
    with FileSystem(WIDTH) as FS:
        lose_lfs1()
        return main_on(
            FS,
            [
                cat_gives_what_is_there,
                get_writes_what_is_there,
                nothing_else_takes_such_a_file_for_a_shorter_one,
            ]
        )


if __name__ == "__main__":
    sys.exit(run_all())
