"""Files with parity: what they are on the disks, and that one lost LFS of each pair loses nothing."""

import os
import random
import shutil
import subprocess
import sys

from parity_files import BEVY, LFSS, Contents, pattern
from pif_system import BIN, FileSystem, await_condition, check, main


def lines(seed, count):
    """Text with empty lines, and some of several KB."""
    rng = random.Random(seed)
    out = []
    for i in range(count):
        size = rng.choice((0, 1, 17, 80, 80, 300, 5000 if i % 97 == 0 else 40))
        out.append(bytes(rng.choices(b"abcdefghijklmnop", k=size)) + b"\n")
    return b"".join(out)


# name: (options of put, bytes). Full and short last records, less than a page and many, one record, none.
FILES = {
    "/one": (("--record-length", "4096"), pattern(1, 4096)),
    "/short": (("--record-length", "4096"), pattern(2, 1000)),
    "/few": (("--record-length", "4096"), pattern(3, 5 * 4096 + 17)),
    "/pages": (("--record-length", "4096"), pattern(4, 500 * 4096 + 1)),
    "/small": (("--record-length", "100"), pattern(5, 100 * 20_000 + 50)),
    "/bytes": (("--record-length", "1"), pattern(6, 70_001)),
    "/long": (("--record-length", "1000000"), pattern(7, 25 * 1_000_000 + 3)),
    "/text": (("--lines",), lines(8, 30_000)),
    "/line": (("--lines",), b"one\n"),
    "/none": (("--record-length", "4096"), b""),
}


def filled(fs):
    contents = Contents(fs)
    contents.put(FILES, *BEVY)
    return contents.files


def check_all(fs, files, *options, env=None):
    for path, data in files.items():
        got = fs.ok("get", *options, path, "-", env=env)
        check(got == data, f"{path} {options}: {len(got)} bytes, {len(data)} are right")


def stop(fs, daemon):
    fs.kill(daemon)


def start(fs):
    """One that was away for long was lost, and takes part again once it has caught up."""
    fs.ok("up", fs.folder)
    await_condition(lambda: set(fs.view_states().values()) == {"member"}, "all are members", 60)


def read_everywhere(fs, files):
    """Every interface gives the right bytes."""
    check_all(fs, files)
    # Over ZeroMQ a dead LFS is silent for 8 s, until the server says that it is down.
    check_all(fs, {"/text": files["/text"]}, env=dict(fs.env, PIF_ROUTE="ipc"))
    check_all(fs, files, env=dict(fs.env, PIF_DATA="messages"))
    check(fs.ok("tail", "-c", "100", "/small") == files["/small"][-100:], "tail")
    check(fs.ok("head", "-n", "3", "/text") == b"".join(files["/text"].splitlines(True)[:3]), "head")


def every_lost_lfs_is_read_around():
    with FileSystem(LFSS) as fs:
        files = filled(fs)
        check_all(fs, files)
        for daemon in ("lfs0", "lfs3", "lfs5"):
            stop(fs, daemon)
            if daemon == "lfs3":
                read_everywhere(fs, files)
            check_all(fs, files)
            start(fs)
        fs.await_clean()


def appended_files_are_read_around():
    with FileSystem(LFSS) as fs:
        files = filled(fs)
        for round_, path in enumerate(("/few", "/pages", "/small", "/text", "/none", "/short")):
            more = lines(100 + round_, 2000) if path == "/text" else pattern(100 + round_, 4096 * 70 + 11)
            fs.ok("append", "-", path, data=more)
            files[path] += more
            for i in range(5):
                little = b"x\n" if path == "/text" else bytes([65 + i]) * (i + 1)
                fs.ok("append", "-", path, data=little)
                files[path] += little
        check_all(fs, files)
        for daemon in ("lfs1", "lfs4"):
            stop(fs, daemon)
            check_all(fs, files)
            start(fs)
        fs.await_clean()


def a_second_loss_is_an_error_for_those_records_only():
    with FileSystem(LFSS) as fs:
        files = filled(fs)
        stop(fs, "lfs0")
        stop(fs, "lfs5")
        done = fs.run("get", "/pages", "-")
        text = done.stderr.decode()
        is_named = all(name in text for name in ("lfs0", "lfs5", "/pages"))
        check(done.returncode == 3 and is_named, f"both are named: {text}")
        start(fs)
        check_all(fs, files)


def replace(fs, name):
    stop(fs, name)
    shutil.rmtree(os.path.join(fs.folder, name))
    fs.ok("node", "replace", name)


def an_empty_disk_gets_everything_back():
    with FileSystem(LFSS) as fs:
        files = filled(fs)
        more = pattern(50, 4096 * 9)
        fs.ok("append", "-", "/pages", data=more)
        files["/pages"] += more
        for name in ("lfs0", "lfs6"):
            replace(fs, name)
            check_all(fs, files)
            fs.ok("rebuild", name)
            check_all(fs, files)
            for path in files:
                check(fs.json("stat", path)["marks"] == [], f"{path} has no mark")
            fs.await_clean()
        # What was rebuilt protects the others again.
        for name in ("lfs1", "lfs7"):
            stop(fs, name)
            check_all(fs, files)
            start(fs)
        fs.ok("append", "-", "/pages", data=b"end")
        check(fs.content("/pages") == files["/pages"] + b"end", "appended")


def a_rebuild_goes_on_after_a_crash():
    with FileSystem(LFSS) as fs:
        files = filled(fs)
        done = fs.run("rebuild", "lfs1")
        check(done.returncode == 2 and b"nothing to rebuild" in done.stderr, f"a member: {done.stderr}")
        done = fs.run("rebuild", "nobody")
        check(done.returncode == 3 and b"no LFS named nobody" in done.stderr, f"unknown: {done.stderr}")
        replace(fs, "lfs1")
        slow = subprocess.Popen(
            [os.path.join(BIN, "pif"), "rebuild", "--rate", "3MiB", "lfs1"],
            env=fs.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        restored = os.path.join(fs.folder, "lfs1", "data")
        await_condition(lambda: any(names for _, _, names in os.walk(restored)), "something is restored")
        stop(fs, "lfs1")
        slow.wait(timeout=60)
        done = fs.run("rebuild", "lfs1")
        check(done.returncode == 3, f"down: {done.stderr}")
        fs.ok("up", fs.folder)
        fs.ok("rebuild", "lfs1")
        check_all(fs, files)
        fs.await_clean()


def an_lfs_that_does_not_run_is_declared_lost_and_comes_back_with_all_it_had():
    with FileSystem(3) as fs:
        data = pattern(10, 3000)
        fs.ok("put", "--record-length", "100", "-", "/a", data=data)
        fs.fails(3, "no LFS named lfs9", "node", "lost", "lfs9")
        fs.kill("lfs1")
        fs.ok("node", "lost", "lfs1")
        states = fs.view_states()
        check(states == {"lfs0": "member", "lfs1": "lost", "lfs2": "member"}, f"states: {states}")
        fs.fails(2, "lfs1 is lost already", "node", "lost", "lfs1")
        fs.bring_back("lfs1")
        check(set(fs.view_states().values()) == {"member"}, "it is a member, by itself, as the others are")
        check(fs.content("/a") == data, "all is there")
        fs.await_clean()


def a_loss_is_accepted_by_who_says_yes():
    with FileSystem(4, ("--bevy", "2")) as fs:
        fs.ok("put", "--record-length", "100", "-", "/a", data=pattern(3, 40000))
        fs.fails(2, "lfs1 is not lost", "node", "accept-loss", "lfs1")
        for lfs in ("lfs0", "lfs2"):
            fs.kill(lfs)
            fs.ok("node", "lost", "--force", lfs)
        fs.fails(2, "say --yes", "node", "accept-loss", "lfs2")
        done = fs.json("node", "accept-loss", "--yes", "lfs2")
        check([file["path"] for file in done["files"]] == ["/a"], f"files: {done}")


def an_overwrite_in_place_is_refused():
    with FileSystem(LFSS) as fs:
        fs.ok("put", "--record-length", "100", *BEVY, "-", "/a", data=pattern(9, 1000))
        said = fs.crash_client("overwrite /a 7 0 1")
        check("ok" not in said, f"refused: {said}")
        check(fs.content("/a") == pattern(9, 1000), "nothing is changed")


TESTS = [
    every_lost_lfs_is_read_around,
    appended_files_are_read_around,
    a_second_loss_is_an_error_for_those_records_only,
    an_empty_disk_gets_everything_back,
    a_rebuild_goes_on_after_a_crash,
    an_lfs_that_does_not_run_is_declared_lost_and_comes_back_with_all_it_had,
    a_loss_is_accepted_by_who_says_yes,
    an_overwrite_in_place_is_refused,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
