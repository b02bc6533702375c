"""What docs/DISKS.md tells a person to do, done: disks that are missing or dead, backups, roots of the first format."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading

from disks_steps import check_directory, down, findings, marks, part, put, refused, rows, up, up_without
from pif_system import FileSystem, await_condition, check, main

FORMAT1 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "format1.tar.xz")


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
        check(logs == ["redo.0", "redo.1"], f"the log of format 1 is replayed, and removed: {logs}")
        check(fs.content("/new") == rows("n"), "it goes on")


TESTS = [
    a_folder_that_is_missing_or_empty_is_named_and_nothing_is_made_in_its_place,
    a_file_with_parity_is_read_while_a_disk_is_not_mounted_and_the_disk_comes_back_by_itself,
    a_folder_of_another_file_system_is_refused,
    roots_that_changed_places_are_refused_and_work_again_in_their_own,
    a_catalogue_that_was_wiped_or_is_anothers_is_refused,
    an_lfs_that_cannot_be_started_keeps_no_other_from_serving,
    a_dead_disk_is_replaced_while_the_others_serve,
    a_replace_that_fails_changes_nothing,
    a_dead_disk_is_replaced_by_another_folder_while_nothing_runs,
    a_copy_of_all_folders_under_a_hold_is_of_one_moment,
    only_root_and_the_owner_decide,
    a_file_system_of_format_1_is_taken_over_once,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
