"""pif-copy onto the same layout copies parity, too: it is right, and no row is read for it."""

import os
import random
import sys

from pif_system import FileSystem, check, main

LFSS = 8
BEVY = ("--bevy", "4")


def pattern(seed, size):
    return random.Random(seed).randbytes(size)


# path: (options of put, bytes). Whole pages, pages and frames, short last records, variable ones.
FILES = {
    "/long": (("--record-length", "65536"), pattern(1, 65536 * 24 * 20)),
    "/pages": (("--record-length", "4096"), pattern(2, 500 * 4096 + 1)),
    "/small": (("--record-length", "100"), pattern(3, 100 * 20_000 + 50)),
    "/text": (("--lines",), b"".join(b"line %d of them\n" % i * (i % 5 + 1) for i in range(20_000))),
    "/few": (("--record-length", "4096"), pattern(4, 5 * 4096 + 17)),
}


def fill(fs):
    for path, (options, data) in FILES.items():
        fs.ok("put", *options, *BEVY, "-", path, data=data)


def requests(fs, name):
    """How often LFSs were asked for that."""
    return sum(
        operation["count"]
        for daemon in fs.json("status")["daemons"]
        for operation in daemon["operations"]
        if operation["name"] == name
    )


def largest(fs, lfs, ending):
    found = []
    for folder, _, names in os.walk(os.path.join(fs.folder, lfs, "data")):
        found += [os.path.join(folder, name) for name in names if name.endswith(ending)]
    return max(found, key=os.path.getsize)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x40]))


def logged(fs, text):
    return sum(text in open(os.path.join(fs.folder, f"lfs{i}", f"lfs{i}.log")).read() for i in range(LFSS))


def check_without_each(fs, files):
    """Every record is there, whichever LFS is lost."""
    for lfs in (0, LFSS - 1):
        fs.kill(f"lfs{lfs}")
        fs.ok("node", "lost", f"lfs{lfs}")
        for path, data in files.items():
            check(fs.content(path) == data, f"{path} without lfs{lfs}")
        fs.ok("up", fs.folder)
        fs.ok("rebuild", f"lfs{lfs}")


def a_copy_of_the_same_layout_gets_the_pages_of_its_source():
    with FileSystem(LFSS) as fs:
        fill(fs)
        attached = requests(fs, "attach")
        fs.ok("copy", "/long", "/long2")
        # Each worker attaches its component of both; a keeper that gathers attaches those of its three members.
        check(requests(fs, "attach") == attached + 2 * LFSS, "no keeper has read its members")
        copies = {}
        for path, (_, data) in FILES.items():
            fs.ok("copy", path, f"{path}-copy")
            copies[f"{path}-copy"] = data
        check(logged(fs, "copied") == 0, "nothing was gathered that could be copied")
        fs.ok("fsck")
        fs.ok("scrub")
        fs.ok("append", "-", "/long", data=pattern(7, 65536 * 30))
        check_without_each(fs, copies)


def a_damaged_page_is_not_copied():
    with FileSystem(LFSS) as fs:
        fs.ok("put", *FILES["/long"][0], *BEVY, "-", "/long", data=FILES["/long"][1])
        flip(largest(fs, "lfs1", ".par"), 3 * 65536 + 5)
        fs.ok("copy", "/long", "/copy")
        check(logged(fs, "pages behind the first 3 are not copied") == 1, "it is in the log")
        fs.ok("rm", "/long")
        fs.ok("fsck")
        check_without_each(fs, {"/copy": FILES["/long"][1]})


def a_copy_while_an_lfs_is_lost_is_gathered():
    with FileSystem(LFSS) as fs:
        fill(fs)
        fs.kill("lfs2")
        fs.ok("node", "lost", "lfs2")
        copies = {}
        for path, (_, data) in FILES.items():
            fs.ok("copy", path, f"{path}-copy")
            copies[f"{path}-copy"] = data
        for path, data in copies.items():
            check(fs.content(path) == data, f"{path} without lfs2")
        fs.ok("up", fs.folder)
        fs.ok("rebuild", "lfs2")
        fs.ok("fsck")
        check_without_each(fs, copies)


TESTS = [
    a_copy_of_the_same_layout_gets_the_pages_of_its_source,
    a_damaged_page_is_not_copied,
    a_copy_while_an_lfs_is_lost_is_gathered,
]

if __name__ == "__main__":
    names = sys.argv[1:]
    sys.exit(main([test for test in TESTS if not names or test.__name__ in names]))
