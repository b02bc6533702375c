"""What tests of old, missing and dead disks have in common: puts, backups of roots, what is marked and found."""

import json
import os
import shutil
import subprocess
import time

from pif_system import BIN, FileSystem, await_condition, check

LENGTH = 100
RECORDS = 30


def rows(letter, records=RECORDS):
    return letter.encode() * LENGTH * records


def put(fs, path, data, *options):
    fs.ok("put", "--record-length", str(LENGTH), *options, "-", path, data=data)


def overwrite(fs, path, record):
    """A client writes one record of a committed file."""
    said = fs.crash_client(f"overwrite {path} 7 {record} 1")
    check(said == "1 ok\n", f"overwrite: {said}")


def part(fs, name):
    return os.path.join(fs.folder, name)


def down(fs):
    fs.ok("down", fs.folder)


def up(fs):
    fs.ok("up", fs.folder)


def save(fs, name):
    """A copy of a folder as it is now, as a backup would have it."""
    shutil.copytree(part(fs, name), fs.local("saved-" + name))


def put_back(fs, name):
    """The folder becomes what the copy says; returns where the newer one is."""
    newer = fs.local("newer-" + name)
    os.rename(part(fs, name), newer)
    os.rename(fs.local("saved-" + name), part(fs, name))
    return newer


def await_heartbeats(fs):
    """Of all LFSs: what was done until now is known to the server, and to them."""
    begin = time.monotonic()

    def heard():
        passed = (time.monotonic() - begin) * 1000
        status = fs.json("status")
        return status["doomed"] == 0 and all(node["silent_ms"] < passed for node in status["nodes"])

    await_condition(heard, "heartbeats")


def refused(fs, pattern):
    """A start that says which folder is wrong, and leaves nothing running."""
    fs.fails(3, pattern, "up", fs.folder)
    check(fs.processes() == [], f"a refused start leaves processes: {fs.processes()}")


def up_without(fs, lfs, pattern):
    """A start that says which LFS's folder is wrong; all others serve."""
    fs.fails(3, pattern + ".*the others are up", "up", fs.folder)
    up_ones = [node["name"] for node in fs.json("status")["nodes"] if node["state"] == "up"]
    expected = [f"lfs{i}" for i in range(fs.count) if f"lfs{i}" != lfs]
    check(up_ones == expected, f"up: {up_ones}")
    check(len(fs.processes()) == fs.count, f"processes: {fs.processes()}")
    fs.fails(3, pattern, "up", fs.folder)  # what runs already says so too


def marks(fs, path):
    return [(mark["node"], mark["kind"]) for mark in fs.json("stat", path)["marks"]]


def findings(fs):
    done = fs.run("fsck", "--json")
    return [(finding["kind"], finding["path"], finding["node"]) for finding in json.loads(done.stdout)["findings"]]


def check_directory(fs):
    """What `pif-server check` says while nothing runs."""
    done = subprocess.run([os.path.join(BIN, "pif-server"), "check", fs.folder], stdout=subprocess.PIPE, check=False)
    check(done.returncode == 0, f"the directory is damaged: {done.stdout.decode()}")


class CrashFileSystem(FileSystem):
    """With files whose records the crash client can overwrite."""

    def crash_put(self, path):
        said = self.crash_client(f"put {path} 7 64 {RECORDS} {self.count}")
        check(said == "1 ok\n", f"put: {said}")
