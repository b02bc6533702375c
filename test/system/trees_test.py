"""Trees with `pif put -r` and `pif get -r`: what is kept, what is left out, and how an interrupted one goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pif_system import FileSystem, check, main_on  # noqa: E402

FS = None
MANY = 700  # more than a batch


def a_file(name, data, when=None):
    path = FS.local(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    if when is not None:
        os.utime(path, ns=(when, when))
    return path


def listed(path):
    return sorted(entry["path"] for entry in FS.json("ls", "-R", path)["entries"])


def same(one, other):
    subprocess.run(["diff", "-r", "--no-dereference", FS.local(one), FS.local(other)], check=True)


def hundreds_of_files_of_all_sizes_go_both_ways_with_modes_and_times():
    for i in range(MANY):
        size = (0, 1, 4096, 65536, 65537, 300_000)[i % 6]
        path = a_file(
            f"many/{i % 7}/{i}",
            os.urandom(min(size, 1000)) * (size // 1000 + 1) if size else b"",
            1_000_000_007 * (i + 1) + i,
        )
        os.chmod(path, (0o600, 0o644, 0o755)[i % 3])
    a_file("many/large", os.urandom(1_000_000) * 3, 5_000_000_000)
    before = os.umask(0)
    stored = FS.json("put", "-r", FS.local("many"), "/many")
    check(len(stored["files"]) == MANY + 1 and "error" not in stored, f"{len(stored['files'])} files")
    check(stored["files"][0]["path"] == "/many/0/0", "the report is in the order of names")
    FS.ok("get", "-r", "/many", FS.local("back"))
    os.umask(before)
    same("many", "back")
    for i in range(MANY):
        here, there = (os.stat(FS.local(f"{tree}/{i % 7}/{i}")) for tree in ("many", "back"))
        check((here.st_mtime_ns, here.st_mode) == (there.st_mtime_ns, there.st_mode), f"{i}: {here} {there}")
    FS.ok("put", "-r", "--lines", "--width", "2", FS.local("many/3"), "/as-lines")
    FS.ok("get", "-r", "/as-lines", FS.local("lines-back"))
    same("many/3", "lines-back")
    FS.ok("rm", "-r", "/as-lines")


def what_is_excluded_is_left_out_both_ways():
    for name in ("a.o", "a.c", ".git/config", "sub/b.o", "sub/deep/c.c", "sub/deep/d.txt"):
        a_file(f"some/{name}", name.encode())
    exclude = ["--exclude", "*.o", "--exclude", ".git", "--exclude", "sub/*/*.txt"]
    FS.ok("put", "-r", *exclude, FS.local("some"), "/some")
    check(listed("/some") == ["/some/a.c", "/some/sub", "/some/sub/deep", "/some/sub/deep/c.c"], f"{listed('/some')}")
    a_file("some/ü.txt", b"one character, two bytes")
    FS.ok("put", "-r", *exclude, "--exclude", "?.txt", FS.local("some"), "/others")
    check("/others/ü.txt" not in listed("/others"), f"{listed('/others')}")
    FS.ok("rm", "-r", "/others")
    FS.ok("get", "-r", "--exclude", "deep", "/some", FS.local("some-back"))
    check(sorted(os.listdir(FS.local("some-back"))) == ["a.c", "sub"], "at the top")
    check(os.listdir(FS.local("some-back/sub")) == [], "nothing below")
    FS.ok("rm", "-r", "/some")


def files_that_are_there_already_are_skipped():
    for i in range(5):
        a_file(f"again/{i}", b"%d" % i * 100, 10**18 + i)
    FS.ok("put", "-r", FS.local("again"), "/again")
    a_file("again/1", b"x" * 100, 10**18 + 1)  # other bytes, same size and time: only --checksum sees it
    a_file("again/2", b"2" * 100, 10**18 + 7)  # another time
    a_file("again/3", b"3" * 101, 10**18 + 3)  # another size
    stored = FS.json("put", "-r", "--skip-existing", FS.local("again"), "/again")
    check([f["path"] for f in stored["files"]] == ["/again/2", "/again/3"] and stored["skipped"] == 3, f"{stored}")
    stored = FS.json("put", "-r", "--checksum", FS.local("again"), "/again")
    check([f["path"] for f in stored["files"]] == ["/again/1"] and stored["skipped"] == 4, f"{stored}")
    FS.ok("get", "-r", "/again", FS.local("got"))
    os.unlink(FS.local("got/4"))
    a_file("got/0", b"y" * 100, 10**18)
    got = FS.json("get", "-r", "--skip-existing", "/again", FS.local("got"))
    check([f["path"] for f in got["files"]] == ["/again/4"] and got["skipped"] == 4, f"{got}")
    got = FS.json("get", "-r", "--checksum", "/again", FS.local("got"))
    check([f["path"] for f in got["files"]] == ["/again/0"], f"{got}")
    same("again", "got")
    FS.ok("put", "--header", "10", "--record-length", "7", FS.local("again/0"), "/headed")
    check(
        FS.json("put", "--header", "10", "--checksum", FS.local("again/0"), "/headed")["skipped"] == 1,
        "a header counts as bytes",
    )
    FS.ok("rm", "-r", "/again")


def links_are_followed_or_left_out_as_asked():
    a_file("links/dir/f", b"f")
    os.symlink("dir", FS.local("links/to-dir"))
    os.symlink("dir/f", FS.local("links/to-file"))
    os.symlink("..", FS.local("links/dir/up"))
    done = FS.run("put", "-r", "--links", "skip", FS.local("links"), "/skipped")
    check(done.returncode == 0 and b"3 links were left out" in done.stderr, f"{done}")
    check(listed("/skipped") == ["/skipped/dir", "/skipped/dir/f"], "no links")
    done = FS.run("put", "-r", "--links", "follow", FS.local("links"), "/followed")
    check(done.returncode == 3 and b"is a link to a folder that it is in" in done.stderr, f"{done}")
    wanted = ["dir", "dir/f", "to-dir", "to-dir/f", "to-file"]
    check(listed("/followed") == [f"/followed/{name}" for name in wanted], f"{listed('/followed')}")
    FS.ok("rm", "-r", "/skipped")
    FS.ok("rm", "-r", "/followed")


def links_are_stored_and_made_again():
    a_file("kept/dir/f", b"f")
    os.symlink("dir", FS.local("kept/to-dir"))
    os.symlink("no where", FS.local("kept/dangling"))
    FS.ok("put", "-r", "--links", "store", FS.local("kept"), "/kept")
    FS.ok("put", "-r", "--links", "store", FS.local("kept") + "/.", "/kept")  # again: no change
    check(FS.json("stat", "/kept/to-dir")["target"] == "dir", "a link")
    os.mkdir(FS.local("links-back"))
    FS.ok("get", "-r", "/kept", FS.local("links-back"))
    check(os.readlink(FS.local("links-back/kept/to-dir")) == "dir", "a link again")
    check(os.readlink(FS.local("links-back/kept/dangling")) == "no where", "the other one")
    FS.ok("get", "-r", "/kept", FS.local("links-back"))  # over what is there
    FS.ok("get", "/kept/dangling", FS.local("links-back/alone"))
    check(os.readlink(FS.local("links-back/alone")) == "no where", "alone")
    FS.ok("rm", "-r", "/kept")


def failures_are_listed_in_the_end_and_the_rest_is_done():
    a_file("bad/good", b"good")
    for i in range(80):
        os.symlink("nowhere", FS.local(f"bad/dangling{i:02}"))
    done = FS.run("put", "-r", "--json", FS.local("bad"), "/bad")
    said = done.stderr.decode().splitlines()
    check(done.returncode == 3 and len(said) == 51, f"{len(said)} lines")
    check("80 things failed, the first 50 as said above" in said[-1], said[-1])
    check(len(json.loads(done.stdout)["errors"]) == 80, "programs get all")
    check(FS.content("/bad/good") == b"good", "the rest is done")
    FS.ok("mkdir", "/bad/good-folder")
    a_file("clash/good-folder", b"a file where a folder is")
    a_file("clash/other", b"other")
    check(
        FS.run("put", FS.local("clash/good-folder"), FS.local("clash/other"), "/bad").returncode == 3,
        "a folder is not replaced",
    )
    check(FS.content("/bad/other") == b"other", "and the other one")
    FS.ok("rm", "-r", "/bad")


def an_interrupted_tree_goes_on_with_skip_existing():
    process = FS.start("put", "-r", FS.local("many"), "/broken-off")
    process.send_signal(signal.SIGINT)  # anywhere, before the end or after it
    said = process.communicate()[1].decode()
    check(process.returncode in (0, 3, -signal.SIGINT), f"{process.returncode}: {said}")
    if process.returncode == 3:
        check("--skip-existing goes on" in said, said)
    FS.ok("put", "-r", "--skip-existing", FS.local("many"), "/broken-off")
    FS.ok("get", "-r", "/broken-off", FS.local("whole"))
    shutil.rmtree(FS.local("whole/3"))
    FS.ok("get", "-r", "--skip-existing", "/broken-off", FS.local("whole"))
    same("many", "whole")
    FS.ok("rm", "-r", "/broken-off")
    shutil.rmtree(FS.local("whole"))


def operands_of_one_name_are_put_one_after_another():
    a_file("first/x/f", b"first")
    a_file("second/x/f", b"second")
    FS.ok("mkdir", "/both")
    FS.ok("put", "-r", FS.local("first/x"), FS.local("second/x"), "/both")
    check(FS.content("/both/x/f") == b"second", "the last one is there")
    FS.ok("rm", "-r", "/both")


def nothing_is_left_behind():
    FS.ok("rm", "-r", "/many")
    FS.ok("rm", "/headed")
    FS.await_clean()


def run_all():
    global FS
    tests = [
        hundreds_of_files_of_all_sizes_go_both_ways_with_modes_and_times,
        what_is_excluded_is_left_out_both_ways,
        files_that_are_there_already_are_skipped,
        links_are_followed_or_left_out_as_asked,
        links_are_stored_and_made_again,
        failures_are_listed_in_the_end_and_the_rest_is_done,
        an_interrupted_tree_goes_on_with_skip_existing,
        operands_of_one_name_are_put_one_after_another,
        nothing_is_left_behind,
    ]
    with FileSystem(4) as FS:
        return main_on(FS, tests)


if __name__ == "__main__":
    sys.exit(run_all())
