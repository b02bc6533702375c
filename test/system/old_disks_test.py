"""What docs/DISKS.md tells a person to do, done: LFSs and directories that come back as they were before."""

import os
import re
import shutil
import sys

from disks_steps import (
    CrashFileSystem,
    RECORDS,
    await_heartbeats,
    check_directory,
    down,
    findings,
    marks,
    overwrite,
    part,
    put,
    put_back,
    rows,
    save,
    up,
)
from pif_system import FileSystem, await_condition, check, files_below, main


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


TESTS = [
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
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
