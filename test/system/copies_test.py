"""A file system and its copy (cp -a) have the same id and keys. No command for one reaches the daemons, sockets or
roots of the other."""

import contextlib
import glob
import os
import re
import shutil
import sys

from pif_system import FileSystem, check, main, run_pif

COUNT = 2
LONG = "l" * 100  # longer than a socket's path may be


class Copied:
    """`with Copied(fs) as copy:` has the folder of a copy; its daemons are stopped at the end."""

    def __init__(self, fs, name="copy"):
        self.fs = fs
        self.folder = os.path.join(fs.temp, name)
        self.env = dict(fs.env, PIF=self.folder)

    def __enter__(self):
        check(os.spawnlp(os.P_WAIT, "cp", "cp", "-a", self.fs.folder, self.folder) == 0, "cp -a")
        return self

    def __exit__(self, *ignored):
        if os.path.exists(os.path.join(self.folder, "pif.toml")):
            self.run("down", self.folder)

    def run(self, *words, **options):
        return run_pif(self.env, *words, **options)

    def ok(self, *words, **options):
        done = self.run(*words, **options)
        check(done.returncode == 0, f"pif {' '.join(words)}, of the copy: {done}")
        return done.stdout


def each_is_reached_alone(options, folder, copy_name):
    with FileSystem(COUNT, options, folder=folder) as fs:
        fs.ok("put", "-", "/f", data=b"original")
        with Copied(fs, copy_name) as copy:  # while it runs: with all that is in its run folder
            done = copy.run("ls", "/")
            check(done.returncode == 3 and done.stdout == b"", f"the copy is down, and answers: {done}")
        shutil.rmtree(copy.folder)
        fs.ok("down", fs.folder)
        with Copied(fs, copy_name) as copy:
            copy.ok("up", copy.folder)
            done = fs.run("put", "-", "/f", data=b"written to the original")
            check(done.returncode == 3, f"the original is down, and takes a file: {done}")
            check(copy.ok("cat", "/f") == b"original", "the copy is as it was")
            fs.ok("down", fs.folder)
            copy.ok("put", "-", "/g", data=b"copy")
            fs.ok("up", fs.folder)
            check(fs.run("cat", "/g").returncode != 0 and fs.content("/f") == b"original", "the original is as it was")
            copy.ok("down", copy.folder)
            check(fs.content("/f") == b"original", "and goes on when the copy is down")
            fs.ok("down", fs.folder)
            check(glob.glob(f"/tmp/pif-{cluster_of(fs)}-*") == [], "nothing is left in /tmp")
            fs.ok("up", fs.folder)


def cluster_of(fs):
    with open(os.path.join(fs.folder, "pif.toml"), encoding="utf-8") as file:
        return file.read().split('id = "')[1][:16]


def a_copy_is_reached_alone():
    each_is_reached_alone([], "fs", "copy")


def a_copy_whose_sockets_are_in_tmp_is_reached_alone():
    each_is_reached_alone([], "fs" + LONG, "copy" + LONG)


def a_copy_is_reached_alone_by_tcp():
    each_is_reached_alone(["--curve"], "fs", "copy")


def a_folder_that_was_renamed_keeps_its_daemons():
    with FileSystem(COUNT, folder="fs" + LONG) as fs:
        fs.ok("put", "-", "/f", data=b"bytes")
        renamed = fs.local("renamed" + LONG)
        os.rename(fs.folder, renamed)
        fs.env["PIF"] = renamed
        check(fs.content("/f") == b"bytes", "they are found")
        check(fs.json("down", renamed)["stopped"] == ["server", "lfs0", "lfs1"], "and stopped")
        os.rename(renamed, fs.folder)


class Elsewhere(FileSystem):
    """lfs1 has its root outside of the folder (DISKS.md "Moving the root of an LFS to another disk")."""

    def begin(self):
        super().begin()
        self.root = self.local("disk9")
        self.ok("put", "--record-length", "100", "-", "/f", data=bytes(10000))
        self.ok("down", self.folder)
        os.rename(os.path.join(self.folder, "lfs1"), self.root)
        description = os.path.join(self.folder, "pif.toml")
        with open(description, encoding="utf-8") as file:
            text = file.read()
        with open(description, "w", encoding="utf-8") as file:
            file.write(text.replace('root = "lfs1"', f'root = "{self.root}"'))
        self.ok("up", self.folder)


@contextlib.contextmanager
def stopped(fs):
    fs.ok("down", fs.folder)
    yield


def no_command_for_a_copy_touches_roots_of_the_original():
    with Elsewhere(COUNT) as fs, Copied(fs) as copy:
        shared = rf"{fs.root} belongs to the file system in {fs.folder}, and {copy.folder} names it, too: .*--take-"
        for _ in range(2):  # while the original runs, and while it is down
            before = fs.processes()
            done = copy.run("up", copy.folder)
            check_one(done, 3, shared)
            check(fs.processes() == before, "up of the copy starts and stops nothing")
            check(b"was not running" in copy.ok("down", copy.folder), "down of the copy")
            check(fs.processes() == before, "down of the copy stops nothing")
            doctor = copy.run("doctor", "--pif", copy.folder).stdout.decode()
            check(f"{fs.root} belongs to the file system in {fs.folder}" in doctor, doctor)
            fs.ok("down", fs.folder)
        fs.ok("up", fs.folder)
        done = copy.run("up", "--take-roots", copy.folder)
        check_one(done, 3, rf"lfs1 serves {fs.root} for {fs.folder} \(process \d+\): stop that first")
        done = copy.run("destroy", "--yes", copy.folder)
        check(done.returncode == 0 and not os.path.exists(copy.folder), f"destroy of the copy: {done}")
        check(f"left as it is: {fs.root} was used by {fs.folder} last".encode() in done.stderr, f"{done}")
        check(fs.content("/f") == bytes(10000), "the original has all its rows")


def check_one(done, code, pattern):
    said = done.stderr.decode()
    check(done.returncode == code and re.search(pattern, said), f"exit {done.returncode}: {said}")


def a_copy_takes_roots_over_if_that_is_asked_for():
    with Elsewhere(COUNT) as fs, stopped(fs), Copied(fs) as copy:
        done = copy.run("up", "--take-roots", copy.folder)
        check_one(done, 0, rf"{fs.root}, which {fs.folder} used, belongs to {copy.folder} now")
        check(copy.ok("cat", "/f") == bytes(10000), "the copy has all rows")
        fs.fails(3, rf"{fs.root} belongs to the file system in {copy.folder}", "up", fs.folder)
        copy.ok("down", copy.folder)
        done = copy.run("destroy", "--yes", copy.folder)
        check_one(done, 0, f"roots elsewhere that are removed, too: {fs.root}")
        check(not os.path.exists(fs.root), "its own root is removed")


def a_file_system_that_was_moved_has_its_roots():
    with Elsewhere(COUNT) as fs:
        fs.ok("down", fs.folder)
        moved = fs.local("moved")
        os.rename(fs.folder, moved)
        fs.folder = fs.env["PIF"] = moved
        check_one(fs.run("up", moved), 0, f"{fs.root}, which .*/fs used, belongs to {moved} now")
        check(fs.content("/f") == bytes(10000), "all rows are there")
        fs.ok("down", moved)
        check(fs.run("up", "-q", moved).stderr == b"", "that is said once")


def destroy_removes_no_root_elsewhere_that_it_has_not_used():
    with Elsewhere(COUNT) as fs, stopped(fs), Copied(fs) as copy:
        os.rename(fs.folder, fs.local("not mounted at the moment"))
        done = copy.run("destroy", "--yes", copy.folder)
        check_one(done, 0, f"left as it is: {fs.root} was used by {fs.folder} last, not by {copy.folder}")
        os.rename(fs.local("not mounted at the moment"), fs.folder)
        fs.ok("up", fs.folder)
        check(fs.content("/f") == bytes(10000), "all rows are there")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                a_copy_is_reached_alone,
                a_copy_whose_sockets_are_in_tmp_is_reached_alone,
                a_copy_is_reached_alone_by_tcp,
                a_folder_that_was_renamed_keeps_its_daemons,
                no_command_for_a_copy_touches_roots_of_the_original,
                a_copy_takes_roots_over_if_that_is_asked_for,
                a_file_system_that_was_moved_has_its_roots,
                destroy_removes_no_root_elsewhere_that_it_has_not_used,
            ],
            sys.argv[1:],
        )
    )
