"""All that docs/DISKS.md tells a person to do, done: disks that are missing, lost, or come back as they were before."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time

from pif_system import BIN, FileSystem, await_condition, check, files_below, main
FORMAT1 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "format1.tar.xz")
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


# ---- a disk that is not there, or is another one ----


def a_folder_that_is_missing_or_empty_is_named_and_nothing_is_made_in_its_place():
    with FileSystem(2) as fs:
        put(fs, "/a", rows("a"))
        put(fs, "/elsewhere", rows("e"), "--nodes", "lfs0")
        down(fs)
        for name in ("server", "lfs1"):
            pattern = f"/{name}/.* is missing: is the disk mounted"
            os.rename(part(fs, name), fs.local("away"))
            refused(fs, pattern) if name == "server" else up_without(fs, name, pattern)
            check(not os.path.exists(part(fs, name)), "nothing is made where a disk should be")
            os.mkdir(part(fs, name), 0o700)
            refused(fs, pattern) if name == "server" else up_without(fs, name, pattern)
            check(os.listdir(part(fs, name)) == [], f"an empty folder stays empty: {os.listdir(part(fs, name))}")
            doctor = fs.run("doctor")
            check(doctor.returncode == 1 and name.encode() in doctor.stdout, f"doctor: {doctor.stdout.decode()}")
            os.rmdir(part(fs, name))
            os.rename(fs.local("away"), part(fs, name))
        check(fs.content("/elsewhere") == rows("e"), "files on other LFSs are served meanwhile")
        up(fs)
        check(fs.content("/a") == rows("a"), "it was never touched")
        down(fs)
        for name in ("lfs0", "lfs1"):
            os.rename(part(fs, name), fs.local("away-" + name))
        refused(fs, "lfs0/.*, .*lfs1/.* are missing")


def a_file_with_parity_is_read_while_a_disk_is_not_mounted_and_the_disk_comes_back_by_itself():
    with FileSystem(4, ("--bevy", "2")) as fs:
        put(fs, "/a", rows("a"))
        down(fs)
        os.rename(part(fs, "lfs1"), fs.local("away"))
        up_without(fs, "lfs1", "/lfs1/.* is missing: is the disk mounted")
        fs.declare_lost("lfs1")
        check(fs.content("/a") == rows("a"), "what is not there comes from parity")
        os.rename(fs.local("away"), part(fs, "lfs1"))
        fs.bring_back("lfs1")
        check(fs.content("/a") == rows("a") and marks(fs, "/a") == [], "as if nothing had been")


def a_folder_of_another_file_system_is_refused():
    with FileSystem(2) as fs, FileSystem(2) as other:
        put(fs, "/a", rows("a"))
        down(fs)
        down(other)
        for name in ("server", "lfs1"):
            os.rename(part(fs, name), fs.local("away"))
            shutil.copytree(part(other, name), part(fs, name))
            pattern = "is the disk mounted|belongs to|is the right disk mounted"
            refused(fs, pattern) if name == "server" else up_without(fs, name, f"({pattern})")
            down(fs)
            shutil.rmtree(part(fs, name))
            os.rename(fs.local("away"), part(fs, name))
        up(fs)
        check(fs.content("/a") == rows("a"), "it was never touched")


def roots_that_changed_places_are_refused_and_work_again_in_their_own():
    with FileSystem(2) as fs:
        put(fs, "/a", rows("a"))
        down(fs)

        def swap():
            os.rename(part(fs, "lfs0"), fs.local("x"))
            os.rename(part(fs, "lfs1"), part(fs, "lfs0"))
            os.rename(fs.local("x"), part(fs, "lfs1"))

        swap()
        refused(fs, "lfs. did not start: .*is the right disk mounted")
        doctor = fs.run("doctor").stdout.decode()
        check(doctor.count("mount the right disk") == 2, f"doctor names both: {doctor}")
        swap()
        up(fs)
        check(fs.content("/a") == rows("a"), "it was never touched")


def a_catalogue_that_was_wiped_or_is_anothers_is_refused():
    with FileSystem(2) as fs:
        put(fs, "/a", rows("a"))
        down(fs)
        catalogue = os.path.join(part(fs, "lfs1"), "catalogue")
        os.rename(catalogue, fs.local("away"))
        up_without(fs, "lfs1", "lfs1/catalogue/data.mdb is missing")
        os.mkdir(catalogue)
        up_without(fs, "lfs1", "lfs1/catalogue/data.mdb is missing")
        os.rmdir(catalogue)
        down(fs)
        shutil.copytree(os.path.join(part(fs, "lfs0"), "catalogue"), catalogue)
        up_without(fs, "lfs1", "catalogue of .*/lfs1 belongs to the root")
        shutil.rmtree(catalogue)
        os.rename(fs.local("away"), catalogue)
        up(fs)
        check(fs.content("/a") == rows("a"), "its components were not removed as leftovers")


def an_lfs_that_cannot_be_started_keeps_no_other_from_serving():
    with FileSystem(2) as fs:
        put(fs, "/a", rows("a"))
        down(fs)
        log = os.path.join(part(fs, "lfs1"), "lfs1.log")
        os.remove(log)
        os.mkdir(log)  # as on a disk that takes no bytes
        up_without(fs, "lfs1", "cannot write the log")
        os.rmdir(log)
        up(fs)
        check(fs.content("/a") == rows("a"), "it was never touched")


# ---- an LFS that is older than it has been ----


def with_stale_lfs(fs):
    """lfs1 is put back as it was before /changed was overwritten, /late made and /replaced replaced. Returns where
    the newer root is."""
    for path in ("/same", "/changed", "/read"):
        fs.crash_put(path)
    put(fs, "/replaced", rows("r"))
    fs.ok("cat", "/read")
    down(fs)
    save(fs, "lfs1")
    up(fs)
    overwrite(fs, "/changed", 1)
    put(fs, "/late", rows("l"))
    put(fs, "/replaced", rows("R"))
    put(fs, "/elsewhere", rows("e"), "--nodes", "lfs0")
    await_heartbeats(fs)
    down(fs)
    return put_back(fs, "lfs1")


class CrashFileSystem(FileSystem):
    """With files whose records the crash client can overwrite."""

    def crash_put(self, path):
        said = self.crash_client(f"put {path} 7 64 {RECORDS} {self.count}")
        check(said == "1 ok\n", f"put: {said}")


def an_old_root_serves_nothing_and_accept_stale_marks_exactly_what_was_changed_or_lost():
    with CrashFileSystem(2) as fs:
        with_stale_lfs(fs)
        fs.fails(3, "lfs1 is older than it has been .*accept-stale lfs1", "up", fs.folder)
        status = fs.json("status")
        check([node["state"] for node in status["nodes"]] == ["up", "stale"], f"states: {status['nodes']}")
        check("accept-stale" in status["nodes"][1]["trouble"], "status says what to do")
        check(fs.run("doctor").stdout.count(b"wrong") == 1, "doctor says it once")
        for path in ("/same", "/late"):
            fs.fails(3, "lfs1 is older than it has been", "cat", path)
        check(fs.content("/elsewhere") == rows("e"), "files on other LFSs are served")
        fs.fails(3, "lfs1 is older than it has been", "fsck")
        fs.fails(2, "lfs0 is not stale", "node", "accept-stale", "lfs0")
        expected = {"/changed": "mixed", "/late": "lost", "/replaced": "lost"}

        def listed(*options):
            document = fs.json("node", "accept-stale", *options, "lfs1")
            return {file["path"]: file["kind"] for file in document["files"]}

        check(listed("--list") == expected, f"listed: {listed('--list')}")
        check(marks(fs, "/changed") == [], "a list changes nothing")
        check(listed() == expected, "what was listed is marked")
        for path, kind in expected.items():
            check(marks(fs, path) == [(2, kind)], f"{path}: {marks(fs, path)}")
            fs.fails(3, "--stale", "cat", path)
            fs.fails(3, "--stale", "get", path, fs.local("got"))
            fs.fails(3, "--stale", "copy", path, "/copied")
        for path in ("/same", "/read", "/elsewhere"):
            check(marks(fs, path) == [], f"{path} is as good as ever")
            fs.content(path)
        check(len(fs.content("/same")) == 64 * RECORDS, "and whole")
        check(len(fs.ok("cat", "--stale", "/changed")) == 64 * RECORDS, "what may be old can be read when asked for")
        fs.ok("copy", "--stale", "/changed", "/kept")
        check(fs.ok("cat", "--stale", "--records", "0:1", "/late") == rows("l", 1), "so can what was not lost of /late")
        aside = ("quarantined", "", "lfs1")  # of what /replaced was before
        check(
            findings(fs) == [("missing", "/late", "lfs1"), ("missing", "/replaced", "lfs1"), aside],
            f"fsck: {findings(fs)}",
        )
        put(fs, "/late", rows("L"))
        fs.ok("rm", "/replaced")
        check(marks(fs, "/late") == [] and fs.content("/late") == rows("L"), "a new file of that name has no marks")
        down(fs)
        up(fs)
        check(marks(fs, "/changed") == [(2, "mixed")], "marks stay")
        await_condition(lambda: findings(fs) == [aside], "nothing else is wrong")


def the_newer_root_can_be_brought_back_instead():
    with CrashFileSystem(2) as fs:
        newer = with_stale_lfs(fs)
        fs.fails(3, "lfs1 is older than it has been", "up", fs.folder)
        down(fs)
        shutil.rmtree(part(fs, "lfs1"))
        os.rename(newer, part(fs, "lfs1"))
        up(fs)
        check(fs.content("/late") == rows("l") and fs.content("/replaced") == rows("R"), "all is there")
        check(findings(fs) == [], f"fsck: {findings(fs)}")


def with_stale_lfs_and_parity(fs):
    """lfs1 is put back as it was before /late was made, with parity."""
    put(fs, "/old", rows("o"))
    await_heartbeats(fs)
    down(fs)
    save(fs, "lfs1")
    up(fs)
    put(fs, "/late", rows("l", 400))
    await_heartbeats(fs)
    down(fs)
    put_back(fs, "lfs1")
    fs.fails(3, "lfs1 is older .*pif rebuild lfs1.*accept-stale lfs1", "up", fs.folder)


def rebuilt_from_parity(fs):
    """As docs/DISKS.md says it: the old root goes, an empty one gets back all."""
    down(fs)
    os.rename(part(fs, "lfs1"), fs.local("old-lfs1"))
    replaced = fs.json("node", "replace", "lfs1")
    check(replaced["files"] == [], f"nothing is lost: {replaced}")
    up(fs)
    fs.ok("rebuild", "lfs1")
    for path, data in (("/old", rows("o")), ("/late", rows("l", 400))):
        check(marks(fs, path) == [], f"{path} has no mark: {marks(fs, path)}")
        check(fs.content(path) == data, f"{path} is what it was")
    fs.kill("lfs2")  # of the other bevy of the pair: what was rebuilt is parity, too
    fs.declare_lost("lfs2")
    check(fs.content("/late") == rows("l", 400), "one disk may be lost again")


def a_stale_lfs_of_files_with_parity_gets_back_every_byte_with_an_empty_root():
    with FileSystem(4, ("--bevy", "2")) as fs:
        with_stale_lfs_and_parity(fs)
        doctor = fs.run("doctor").stdout.decode()
        check(re.search("pif node replace and pif rebuild", doctor), f"doctor says so first: {doctor}")
        listed = fs.run("node", "accept-stale", "--list", "lfs1")
        check(b"brought back whole" in listed.stderr, f"so does accept-stale: {listed.stderr}")
        rebuilt_from_parity(fs)


def marks_of_a_stale_lfs_go_when_an_empty_root_takes_its_place():
    with FileSystem(4, ("--bevy", "2")) as fs:
        with_stale_lfs_and_parity(fs)
        fs.ok("node", "accept-stale", "lfs1")
        check(marks(fs, "/late") == [(2, "lost")], f"marks: {marks(fs, '/late')}")
        rebuilt_from_parity(fs)


def accept_stale_says_that_parity_is_missing():
    with FileSystem(4, ("--bevy", "2")) as fs:
        put(fs, "/old", rows("o"))
        await_heartbeats(fs)
        down(fs)
        names = [f"lfs{i}" for i in range(4)]
        for name in names:
            save(fs, name)
        up(fs)
        fs.ok("put", "--record-length", "4096", "-", "/one", data=b"1" * 4096)
        before = {}
        for name in names:
            before[name] = {os.path.basename(path) for path in files_below(fs.local("saved-" + name), ".par")}

        def keepers():
            return [
                name
                for name in names
                for path in fs.stored_files(name, ".par")
                if os.path.basename(path) not in before[name]
            ]

        keeper = await_condition(keepers, "parity of /one")[0]
        await_heartbeats(fs)
        down(fs)
        put_back(fs, keeper)
        fs.fails(3, f"{keeper} is older than it has been", "up", fs.folder)
        said = fs.run("node", "accept-stale", keeper)
        check(said.returncode == 0 and b"pif scrub" in said.stderr, f"it says what to do: {said.stderr}")
        check(marks(fs, "/one") == [] and fs.content("/one") == b"1" * 4096, "no rows are missing")


# ---- a directory that is older than its LFSs ----


def an_old_directory_serves_nobody_and_accept_old_brings_back_what_it_has_forgotten():
    with FileSystem(3) as fs:
        put(fs, "/kept", rows("k"))
        put(fs, "/removed", rows("r"))
        down(fs)
        save(fs, "server")
        up(fs)
        put(fs, "/forgotten", rows("f"))
        fs.ok("put", "--lines", "-", "/lines", data=b"one\n\nthree\nfour")
        fs.ok("rm", "/removed")
        await_heartbeats(fs)
        down(fs)
        newer = put_back(fs, "server")
        fs.fails(3, "older than lfs. has seen it.*accept-old", "up", fs.folder)
        fs.fails(3, "accept-old", "up", fs.folder)  # what runs already says so too
        for words in (("ls",), ("cat", "/kept"), ("mkdir", "/x")):
            fs.fails(3, "accept-old", *words)
        check(fs.json("status")["server"]["state"] == "behind", "status says it")
        check(b"server behind" in fs.ok("status"), "status says it in words")
        check(fs.run("doctor").returncode == 1, "so does doctor")
        listed = fs.json("server", "accept-old", "--list")
        check(len(listed["adopted"]) == 2 and {f["path"] for f in listed["files"]} == {"/removed"}, f"listed: {listed}")
        # The newer one, if it is there after all.
        down(fs)
        os.rename(part(fs, "server"), fs.local("saved-server"))
        shutil.copytree(newer, part(fs, "server"))
        up(fs)
        check(
            fs.content("/forgotten") == rows("f") and findings(fs) == [],
            "the newer directory serves as if nothing had been",
        )
        await_heartbeats(fs)
        put(fs, "/last", rows("z"), "--nodes", "lfs0")  # so lfs0 was told more than the others
        await_heartbeats(fs)
        down(fs)
        shutil.rmtree(part(fs, "server"))
        os.rename(fs.local("saved-server"), part(fs, "server"))
        fs.fails(3, "accept-old", "up", fs.folder)
        fs.ok("server", "accept-old")
        found = {fs.content("/lost+found/" + entry["name"]) for entry in fs.json("ls", "/lost+found")["entries"]}
        check(found == {rows("f"), rows("z"), b"one\n\nthree\nfour"}, f"byte for byte: {found}")
        check(fs.content("/kept") == rows("k") and marks(fs, "/kept") == [], "what it knows is untouched")
        check(
            [kind for _, kind in marks(fs, "/removed")] == ["lost"] * 3,
            f"what was removed since is marked: {marks(fs, '/removed')}",
        )
        fs.ok("rm", "/removed")
        fs.ok("mv", "/lost+found/" + fs.json("ls", "/lost+found")["entries"][0]["name"], "/again")
        put(fs, "/new", rows("n"))
        down(fs)
        check_directory(fs)
        up(fs)
        check(fs.content("/new") == rows("n"), "it goes on")
        fs.await_clean()


def accept_old_marks_again_what_an_accept_stale_that_was_forgotten_had_marked():
    with CrashFileSystem(2) as fs:
        fs.crash_put("/changed")
        fs.crash_put("/same")
        down(fs)
        save(fs, "lfs1")
        up(fs)
        overwrite(fs, "/changed", 1)
        await_heartbeats(fs)
        down(fs)
        save(fs, "server")
        put_back(fs, "lfs1")
        fs.fails(3, "lfs1 is older than it has been", "up", fs.folder)
        fs.ok("node", "accept-stale", "lfs1")
        await_heartbeats(fs)
        check(marks(fs, "/changed") == [(2, "mixed")], "it is marked")
        down(fs)
        put_back(fs, "server")
        for _ in range(12):  # each start is a transaction of the old directory, too
            fs.fails(3, "accept-old", "up", fs.folder)
            down(fs)
        fs.fails(3, "accept-old", "up", fs.folder)
        fs.ok("server", "accept-old")
        check(marks(fs, "/changed") == [(2, "mixed")], f"it is marked again: {marks(fs, '/changed')}")
        check(marks(fs, "/same") == [], "what was not changed is not")


def overwrite_everywhere(fs, path):
    for record in range(2 * fs.count):
        overwrite(fs, path, record)
    await_heartbeats(fs)


def kept_old(fs):
    """What accept-old says that it marks, and has marked: {path: kinds}."""
    fs.fails(3, "older than lfs. has seen it.*accept-old", "up", fs.folder)

    def listed(*options):
        found = {}
        for file in fs.json("server", "accept-old", *options)["files"]:
            found.setdefault(file["path"], set()).add(file["kind"])
        return found

    before = listed("--list")
    check(listed() == before, "what was listed is marked")
    up(fs)
    for path, kinds in before.items():
        check({kind for _, kind in marks(fs, path)} == kinds, f"{path}: {marks(fs, path)}")
        fs.fails(3, "--stale", "cat", path)
    return before


def a_directory_and_an_lfs_that_are_old_together_do_not_vouch_for_one_another():
    with CrashFileSystem(3) as fs:
        for path in ("/changed", "/same", "/before"):
            fs.crash_put(path)
        overwrite_everywhere(fs, "/before")
        down(fs)
        for name in ("server", "lfs0"):
            save(fs, name)
        up(fs)
        overwrite_everywhere(fs, "/changed")
        down(fs)
        for name in ("server", "lfs0"):
            put_back(fs, name)
        found = kept_old(fs)
        check(found == {"/changed": {"mixed"}}, f"marked: {found}")
        for path in ("/same", "/before"):
            check(marks(fs, path) == [] and len(fs.content(path)) == 64 * RECORDS, f"{path} is as good as ever")


def of_a_directory_with_an_older_and_a_newer_lfs_all_that_may_be_mixed_is_marked():
    with CrashFileSystem(3) as fs:
        for path in ("/first", "/then", "/same"):
            fs.crash_put(path)
        await_heartbeats(fs)
        down(fs)
        save(fs, "lfs0")
        up(fs)
        overwrite_everywhere(fs, "/first")
        down(fs)
        save(fs, "server")
        save(fs, "lfs1")
        up(fs)
        overwrite_everywhere(fs, "/then")
        down(fs)
        for name in ("server", "lfs0", "lfs1"):
            put_back(fs, name)
        found = kept_old(fs)
        check(found == {"/first": {"mixed"}, "/then": {"mixed"}}, f"marked: {found}")
        check(marks(fs, "/same") == [] and len(fs.content("/same")) == 64 * RECORDS, "what was not changed is not")


def a_directory_that_is_newer_than_all_roots_makes_them_stale():
    with FileSystem(2) as fs:
        put(fs, "/old", rows("o"))
        down(fs)
        for name in ("lfs0", "lfs1"):
            save(fs, name)
        up(fs)
        put(fs, "/late", rows("l"))
        await_heartbeats(fs)
        down(fs)
        for name in ("lfs0", "lfs1"):
            put_back(fs, name)
        fs.fails(3, "older than it has been", "up", fs.folder)
        check([node["state"] for node in fs.json("status")["nodes"]] == ["stale", "stale"], "both")
        for name in ("lfs0", "lfs1"):
            fs.ok("node", "accept-stale", name)
        check(fs.content("/old") == rows("o"), "it serves again")
        check(marks(fs, "/late") == [(1, "lost"), (2, "lost")], f"marks: {marks(fs, '/late')}")


def a_root_that_is_newer_than_everything_else_makes_the_directory_old():
    with FileSystem(2) as fs:
        put(fs, "/old", rows("o"))
        down(fs)
        for name in ("server", "lfs0"):
            save(fs, name)
        up(fs)
        put(fs, "/late", rows("l"), "--nodes", "lfs1")
        await_heartbeats(fs)
        down(fs)
        for name in ("server", "lfs0"):
            put_back(fs, name)
        fs.fails(3, "older than lfs1 has seen it", "up", fs.folder)
        fs.ok("server", "accept-old")
        entries = fs.json("ls", "/lost+found")["entries"]
        check(len(entries) == 1 and fs.content("/lost+found/" + entries[0]["name"]) == rows("l"), f"found: {entries}")
        check(fs.content("/old") == rows("o") and findings(fs) == [], f"fsck: {findings(fs)}")


# ---- a disk that is dead ----


def a_dead_disk_is_replaced_while_the_others_serve():
    with FileSystem(3) as fs:
        put(fs, "/a", rows("a"))
        put(fs, "/b", rows("b"), "--nodes", "lfs0,lfs2")
        fs.fails(3, "lfs1 runs .process [0-9]+.", "node", "replace", "lfs1")
        fs.fails(3, "lfs1 runs .process [0-9]+.", "node", "replace", "--root", fs.local("disk9"), "lfs1")
        check(marks(fs, "/a") == [], "nothing was changed")
        fs.kill("lfs1")
        os.rename(part(fs, "lfs1"), fs.local("dead"))
        replaced = fs.json("node", "replace", "lfs1")
        check([file["path"] for file in replaced["files"]] == ["/a"], f"listed: {replaced}")
        check(
            marks(fs, "/a") == [(2, "lost")] and marks(fs, "/b") == [], f"marks: {marks(fs, '/a')}, {marks(fs, '/b')}"
        )
        fs.fails(3, "rows of it are gone.*--stale", "cat", "/a")
        check(fs.ok("cat", "--stale", "--records", "0:1", "/a") == rows("a", 1), "what other disks have can be read")
        check(fs.content("/b") == rows("b"), "what did not use it is whole")
        put(fs, "/a", rows("A"))
        check(fs.content("/a") == rows("A") and findings(fs) == [], "put anew, it is whole")
        # The dead disk comes back to life: nobody takes it for the new one.
        down(fs)
        os.rename(part(fs, "lfs1"), fs.local("new"))
        os.rename(fs.local("dead"), part(fs, "lfs1"))
        up_without(fs, "lfs1", "lfs1 is the root .*pif.toml says")


def a_replace_that_fails_changes_nothing():
    with FileSystem(3) as fs:
        put(fs, "/a", rows("a"))
        with open(os.path.join(fs.folder, "pif.toml")) as file:
            before = file.read()
        fs.kill("lfs1")
        with open(fs.local("file"), "w") as file:
            file.write("no folder")
        for root in (fs.local("no/such/folder"), fs.local("file"), fs.local("file/lfs1")):
            fs.fails(3, "cannot make the folder|give an empty folder", "node", "replace", "--root", root, "lfs1")
            with open(os.path.join(fs.folder, "pif.toml")) as file:
                check(file.read() == before, f"pif.toml was changed for {root}")
        check(not os.path.exists(fs.local("no")), "nothing was made")
        # A folder that looks as if a try had been cut short, and in which none comes to its end.
        os.mkdir(fs.local("try"))
        with open(fs.local("try/catalogue"), "w") as file:
            file.write("no folder")
        fs.fails(3, "lfs1 keeps its old root: lfs1 did not start", "node", "replace", "--root", fs.local("try"), "lfs1")
        check(marks(fs, "/a") == [], f"marks that have no reason are gone: {marks(fs, '/a')}")
        with open(os.path.join(fs.folder, "pif.toml")) as file:
            check(file.read() == before, "pif.toml is what it was")
        up(fs)
        check(marks(fs, "/a") == [] and fs.content("/a") == rows("a"), "the root is as good as ever")


def a_dead_disk_is_replaced_by_another_folder_while_nothing_runs():
    with FileSystem(2) as fs:
        put(fs, "/a", rows("a"))
        down(fs)
        shutil.rmtree(part(fs, "lfs1"))
        up_without(fs, "lfs1", "pif node replace lfs1")
        down(fs)
        os.mkdir(fs.local("full"))
        with open(os.path.join(fs.local("full"), "thesis.txt"), "w") as file:
            file.write("precious")
        fs.fails(3, "give an empty folder", "node", "replace", "--root", fs.local("full"), "lfs1")
        fs.ok("node", "replace", "--root", fs.local("disk9"), "lfs1")
        check(fs.processes() == [], "what did not run does not run now")
        up(fs)
        check(fs.json("status")["nodes"][1]["root"] == fs.local("disk9"), "it is there")
        check(marks(fs, "/a") == [(2, "lost")], f"marks: {marks(fs, '/a')}")
        put(fs, "/a", rows("A"))
        down(fs)
        # Moved to another disk: the folder, then its line in pif.toml.
        shutil.copytree(fs.local("disk9"), fs.local("disk10"))
        shutil.rmtree(fs.local("disk9"))
        toml = os.path.join(fs.folder, "pif.toml")
        with open(toml) as file:
            text = file.read()
        with open(toml, "w") as file:
            file.write(text.replace("disk9", "disk10"))
        up(fs)
        check(fs.content("/a") == rows("A") and findings(fs) == [], "it is the same LFS elsewhere")
        # And the whole folder, its sockets being made anew.
        down(fs)
        os.rename(fs.folder, fs.local("moved"))
        fs.folder = fs.local("moved")
        fs.env["PIF"] = fs.folder
        up(fs)
        check(fs.content("/a") == rows("A"), "it is the same file system elsewhere")


# ---- backups of everything ----


def a_copy_of_all_folders_under_a_hold_is_of_one_moment():
    with FileSystem(3) as fs:
        stop = threading.Event()
        acknowledged = []

        def puts():
            while not stop.is_set():
                path = f"/put{len(acknowledged)}"
                put(fs, path, rows("p"))
                acknowledged.append(path)

        writer = threading.Thread(target=puts)
        writer.start()
        try:
            await_condition(lambda: len(acknowledged) > 3, "some are put")
            before = list(acknowledged)
            fs.ok("snapshot-hold", "--", "cp", "-a", fs.folder, fs.local("copy"))
            count = len(acknowledged)
            await_condition(lambda: len(acknowledged) > count + 2, "puts go on afterwards")
        finally:
            stop.set()
            writer.join()
        fs.fails(3, "went on after 1 s.*--seconds", "snapshot-hold", "-q", "--seconds", "1", "--", "sleep", "1.1")
        fs.fails(3, "false ended with exit code 1", "snapshot-hold", "-q", "--", "false")
        put(fs, "/after", rows("a"))  # at once: a hold that has failed is over
        down(fs)
        os.rename(fs.folder, fs.local("original"))
        os.rename(fs.local("copy"), fs.folder)
        shutil.rmtree(os.path.join(fs.folder, "run"))
        up(fs)
        check(all(node["state"] == "up" for node in fs.json("status")["nodes"]), "it starts without a word")
        for path in before:
            check(fs.content(path) == rows("p"), f"{path} was acknowledged before the copy began")
        report = fs.json("fsck")
        check(report["clean"], f"fsck: {report['findings']}")
        down(fs)
        check_directory(fs)


# ---- rights, and what an earlier release wrote ----


def only_root_and_the_owner_decide():
    if os.geteuid() != 0:
        return
    with FileSystem(2) as fs:
        os.chmod(fs.temp, 0o755)
        reachable = shutil.copy(fs.command("ls")[0], fs.local("pif"))  # the build may be in a folder of root's alone
        for words in (
            ("node", "accept-stale", "lfs0"),
            ("server", "accept-old"),
            ("snapshot-hold",),
            ("node", "replace", "lfs0"),
            ("node", "lost", "lfs0"),
            ("node", "accept-loss", "--yes", "lfs0"),
        ):
            done = subprocess.run(
                [reachable, *fs.command(*words)[1:]],
                env=fs.env,
                cwd="/",
                user=65534,
                group=65534,
                extra_groups=[],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                check=False,
                timeout=60,
            )
            check(
                done.returncode == 3 and re.search(b"neither root nor|ermission", done.stderr),
                f"{words}: {done.stderr}",
            )
        fs.ok("put", "-", "/a", data=b"a")


def a_file_system_of_format_1_is_taken_over_once():
    """format1.tar.xz: made with the programs of the last commit that wrote format 1, whose daemons were killed, so
    that the redo logs have entries: fs/, and files/ with what was put there."""
    with FileSystem(1) as fs:
        down(fs)
        fs.folder = fs.local("fs")
        shutil.rmtree(fs.folder)
        with tarfile.open(FORMAT1) as made:
            for member in made.getmembers():  # as the user who runs the test, not as who made it
                member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
                made.extract(member, fs.temp)
        fs.env["PIF"] = fs.folder
        toml = os.path.join(fs.folder, "pif.toml")
        with open(toml) as file:
            before = file.read()
        for name in ("server", "lfs1"):
            os.rename(part(fs, name), fs.local("away"))
            refused(fs, f"/{name}/.* is missing")
            with open(toml) as file:
                check(file.read() == before, "nothing is taken over while a folder is missing")
            os.rename(fs.local("away"), part(fs, name))
        up(fs)
        with open(toml) as file:
            adopted = file.read()
        check(
            "format = 2" in adopted and adopted.count("uuid") == 3 and 'stage = "ready"' in adopted,
            f"pif.toml: {adopted}",
        )
        for path in ("/folder/fixed", "/folder/lines", "/changed", "/empty"):
            with open(os.path.join(fs.local("files"), os.path.basename(path)), "rb") as file:
                check(fs.content(path) == file.read(), f"{path} is what it was")
        check(findings(fs) == [], f"fsck: {findings(fs)}")
        put(fs, "/new", rows("n"))
        down(fs)
        check_directory(fs)
        up(fs)
        check(open(toml).read() == adopted, "once")
        logs = sorted(os.listdir(os.path.join(part(fs, "lfs0"), "log")))
        check(logs == ["redo.0", "redo.1"], f"the log of format 1 is brought home, and removed: {logs}")
        check(fs.content("/new") == rows("n"), "it goes on")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                a_folder_that_is_missing_or_empty_is_named_and_nothing_is_made_in_its_place,
                a_file_with_parity_is_read_while_a_disk_is_not_mounted_and_the_disk_comes_back_by_itself,
                a_folder_of_another_file_system_is_refused,
                roots_that_changed_places_are_refused_and_work_again_in_their_own,
                a_catalogue_that_was_wiped_or_is_anothers_is_refused,
                an_lfs_that_cannot_be_started_keeps_no_other_from_serving,
                an_old_root_serves_nothing_and_accept_stale_marks_exactly_what_was_changed_or_lost,
                the_newer_root_can_be_brought_back_instead,
                a_stale_lfs_of_files_with_parity_gets_back_every_byte_with_an_empty_root,
                marks_of_a_stale_lfs_go_when_an_empty_root_takes_its_place,
                accept_stale_says_that_parity_is_missing,
                an_old_directory_serves_nobody_and_accept_old_brings_back_what_it_has_forgotten,
                accept_old_marks_again_what_an_accept_stale_that_was_forgotten_had_marked,
                a_directory_and_an_lfs_that_are_old_together_do_not_vouch_for_one_another,
                of_a_directory_with_an_older_and_a_newer_lfs_all_that_may_be_mixed_is_marked,
                a_directory_that_is_newer_than_all_roots_makes_them_stale,
                a_root_that_is_newer_than_everything_else_makes_the_directory_old,
                a_dead_disk_is_replaced_while_the_others_serve,
                a_replace_that_fails_changes_nothing,
                a_dead_disk_is_replaced_by_another_folder_while_nothing_runs,
                a_copy_of_all_folders_under_a_hold_is_of_one_moment,
                only_root_and_the_owner_decide,
                a_file_system_of_format_1_is_taken_over_once,
            ]
        )
    )
