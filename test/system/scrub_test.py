"""pif scrub: LFSs find bytes that went bad on their disks, and repair them."""

import os
import shutil
import sys

from disks_steps import await_heartbeats
from parity_files import BEVY, LFSS, Contents, pattern
from pif_system import FileSystem, await_condition, check, files_below, flip, main

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


def without(fs, lfs, contents, where):
    """All files are read while that LFS is lost."""
    fs.kill(lfs)
    fs.declare_lost(lfs)
    contents.check(where)
    fs.bring_back(lfs)


def remove_one(fs, lfs, ending):
    path = files_below(os.path.join(fs.folder, lfs, "data"), ending)[0]
    os.remove(path)
    return path


def files_that_are_missing_are_made_anew():
    with FileSystem(4) as fs:
        contents = Contents(fs)
        contents.put({"/tiny": (("--record-length", "10"), pattern(3, 42))}, "--bevy", "2")
        keeper = next(f"lfs{i}" for i in range(4) if fs.stored_files(f"lfs{i}", ".pap"))
        removed = [remove_one(fs, keeper, ".pap"), remove_one(fs, keeper, ".sum"), remove_one(fs, keeper, ".dat")]
        done = fs.run("scrub", "--only-look", "--json")
        check(done.returncode == 1, f"only looked at: {done.returncode} {done.stdout} {done.stderr}")
        check(not any(os.path.exists(path) for path in removed), "and nothing was made")
        found, repaired = totals(fs.json("scrub"))
        check(found >= 3 and repaired == found, f"{found} found, {repaired} repaired")
        check(all(os.path.exists(path) for path in removed), "what is repaired has its name again")
        check(totals(fs.json("scrub")) == (0, 0), "a second pass finds nothing")
        fs.await_clean()
        fs.ok("down", fs.folder)
        fs.ok("up", fs.folder)
        for i in range(4):
            if f"lfs{i}" != keeper:
                without(fs, f"lfs{i}", contents, f"without lfs{i}")


def what_an_old_copy_of_an_lfs_lacks_is_made_anew():
    """The LFS keeps nothing but parity of a file that was made later: nothing is marked when it is taken as it is."""
    with FileSystem(4) as fs:
        contents = Contents(fs)
        fs.ok("down", fs.folder)
        for i in range(4):
            shutil.copytree(os.path.join(fs.folder, f"lfs{i}"), fs.local(f"lfs{i}"))
        fs.ok("up", fs.folder)
        contents.put({"/later": (("--record-length", "4096"), pattern(3, 4096))}, "--bevy", "2")
        keeper = next(f"lfs{i}" for i in range(4) if fs.stored_files(f"lfs{i}", ".par"))
        holder = next(f"lfs{i}" for i in range(4) if fs.stored_files(f"lfs{i}", ".dat"))
        await_heartbeats(fs)
        fs.ok("down", fs.folder)
        shutil.rmtree(os.path.join(fs.folder, keeper))
        shutil.copytree(fs.local(keeper), os.path.join(fs.folder, keeper))
        fs.run("up", fs.folder)
        fs.ok("node", "accept-stale", keeper)
        fs.ok("up", fs.folder)
        found, repaired = totals(fs.json("scrub"))
        check(found == repaired == 1, f"{found} found, {repaired} repaired")
        check(fs.stored_files(keeper, ".par"), "its parity is there again")
        fs.await_clean()
        without(fs, holder, contents, "without the LFS of its rows")


def an_lfs_that_is_down_is_told_of():
    with FileSystem(LFSS) as fs:
        filled(fs)
        fs.kill("lfs3")
        done = fs.run("scrub")
        check(done.returncode == 3, f"not all were looked at: {done.returncode} {done.stdout} {done.stderr}")
        check(b"lfs3" in done.stdout, f"named: {done.stdout}")
        done = fs.run("scrub", "lfs0")
        check(done.returncode == 1, f"not wholly compared: {done.returncode} {done.stdout} {done.stderr}")
        check(b"not wholly compared" in done.stdout and b"lfs3" in done.stdout, f"said: {done.stdout}")
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
    files_that_are_missing_are_made_anew,
    what_an_old_copy_of_an_lfs_lacks_is_made_anew,
    what_is_not_repaired_is_an_exit_code,
    an_lfs_that_is_down_is_told_of,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
