"""pif scrub: LFSs find bytes that went bad on their disks, and repair them."""

import sys

from parity_files import BEVY, LFSS, Contents, pattern
from pif_system import FileSystem, await_condition, check, flip, main

FILES = {
    "/short": (("--record-length", "4096"), pattern(2, 1000)),
    "/pages": (("--record-length", "4096"), pattern(4, 500 * 4096 + 1)),
    "/small": (("--record-length", "100"), pattern(5, 100 * 20_000 + 50)),
    "/text": (("--lines",), b"".join(b"line %d of them\n" % i * (i % 5 + 1) for i in range(5000))),
}


def filled(fs):
    contents = Contents(fs)
    contents.put(FILES, *BEVY)
    return contents


def totals(document):
    nodes = document["nodes"]
    check(all(node["error"] == "" for node in nodes), f"no errors: {document}")
    return sum(node["found"] for node in nodes), sum(node["repaired"] for node in nodes)


def scrubbed(fs):
    return {node["name"] for node in fs.json("status")["nodes"] if node["scrubbed"] > 0}


def what_went_bad_is_repaired():
    with FileSystem(LFSS) as fs:
        contents = filled(fs)
        check(totals(fs.json("scrub")) == (0, 0), "nothing is wrong")
        for ending in (".dat", ".sum", ".par", ".psum", ".pap"):
            path = fs.stored_files("lfs2", ending)[0]
            before = open(path, "rb").read()
            flip(path, min(70, len(before) - 1))
            found, repaired = totals(fs.json("scrub"))
            at_most = 2 if ending == ".psum" else 1  # where a page of lines begins says the entry before
            check(1 <= found <= at_most and repaired == found, f"{ending}: {found} found, {repaired} repaired")
            check(totals(fs.json("scrub")) == (0, 0), f"{ending}: a second pass finds nothing")
            if ending != ".pap":
                check(open(path, "rb").read() == before, f"{ending} is as it was")
            fs.await_clean()
        contents.check("as it was put")


def what_is_not_repaired_is_an_exit_code():
    with FileSystem(LFSS) as fs:
        contents = filled(fs)
        path = fs.stored_files("lfs5")[0]
        flip(path, 10)
        done = fs.run("scrub", "--only-look", "lfs5")
        check(done.returncode == 1, f"found: {done.returncode} {done.stderr}")
        check(b"not repaired" in done.stdout and b".dat" in done.stdout, f"named: {done.stdout}")
        await_condition(lambda: scrubbed(fs) == {"lfs5"}, "its end is known, with the next heartbeat")
        fs.ok("scrub", "lfs5")
        check(b"never" in fs.ok("status"), "others were not looked at")
        fs.ok("scrub")
        await_condition(lambda: len(scrubbed(fs)) == LFSS, "all were")
        check(b"never" not in fs.ok("status") and b"today" in fs.ok("status"), "status says so")
        fs.fails(3, "no LFS named nobody", "scrub", "nobody")
        fs.await_clean()
        contents.check("as it was put")


def an_lfs_that_is_down_is_told_of():
    with FileSystem(LFSS) as fs:
        filled(fs)
        fs.kill("lfs3")
        done = fs.run("scrub")
        check(done.returncode == 3, f"not all were looked at: {done.returncode} {done.stdout} {done.stderr}")
        check(b"lfs3" in done.stdout, f"named: {done.stdout}")
        fs.ok("up", fs.folder)
        await_condition(lambda: fs.run("scrub").returncode == 0, "it takes part again", 90)
        fs.await_clean()


def a_drill_takes_an_lfs_away_compares_and_puts_it_back():
    with FileSystem(LFSS) as fs:
        contents = filled(fs)
        report = fs.json("drill", "--lose", "lfs2")
        check(report["differing"] == 0 and report["errors"] == [], f"all the same: {report}")
        check(report["files"] >= 3 and report["bytes"] > 300_000, f"all that it has: {report}")
        states = fs.view_states()
        check(set(states.values()) == {"member"}, f"it takes part again: {states}")
        contents.check("as it was put")
        fs.ok("append", "-", "/small", data=pattern(9, 5000))
        flip(fs.stored_files("lfs2")[0], 10)
        done = fs.run("drill", "--lose", "lfs2")
        check(done.returncode == 1, f"one differs: {done.returncode} {done.stdout} {done.stderr}")
        fs.ok("scrub")
        fs.ok("drill", "--lose", "lfs2")
        fs.kill("lfs5")
        fs.ok("node", "lost", "lfs5")
        fs.fails(3, "lfs5 is lost", "drill", "--lose", "lfs2")
        fs.fails(3, "not up", "drill", "--lose", "lfs5")


TESTS = [
    a_drill_takes_an_lfs_away_compares_and_puts_it_back,
    what_went_bad_is_repaired,
    what_is_not_repaired_is_an_exit_code,
    an_lfs_that_is_down_is_told_of,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
