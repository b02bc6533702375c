"""Two LFSs that keep each other's parity are away, in turn or at once; and damage on one while another comes back."""

import os
import shutil
import subprocess
import sys

from parity_files import pattern
from pif_system import BIN, FileSystem, await_condition, check, flip, main

BEVIES = ("--bevy", "2")
RECORDS = ("--record-length", "100")


def put(fs, path, data):
    fs.ok("put", *RECORDS, "-", path, data=data)


def put_some(fs, count=8):
    files = {f"/f{i}": pattern(i, 20000) for i in range(count)}
    for path, data in files.items():
        put(fs, path, data)
    return files


def check_content(fs, files, when):
    for path, data in files.items():
        check(fs.content(path) == data, f"{when}: {path}")


def lacking(fs, lfs):
    return next(node["lacking"] for node in fs.json("status")["nodes"] if node["name"] == lfs)


def start(fs, lfs):
    """This one alone."""
    with open(fs.local(f"{lfs}.out"), "wb") as out:
        subprocess.Popen([os.path.join(BIN, "pif-lfs"), fs.folder, lfs], env=fs.env, stdin=subprocess.DEVNULL,
                         stdout=out, stderr=out, start_new_session=True)  # ended with the file system


def takes_part(fs, lfs):
    await_condition(lambda: fs.view_states()[lfs] == "member", f"{lfs} takes part", 60)


def lose_in_turn(fs):
    """lfs3 misses one new file, and lfs0's disk dies before lfs3 is back."""
    files = put_some(fs)
    fs.kill("lfs3")
    fs.declare_lost("lfs3")
    put(fs, "/new", pattern(99, 5000))
    fs.kill("lfs0")
    shutil.rmtree(os.path.join(fs.folder, "lfs0"))
    fs.run("up", fs.folder)  # says that a disk is missing, and starts the others
    return files


def replace_and_rebuild(fs, lfs):
    fs.ok("node", "replace", lfs)
    fs.ok("up", fs.folder)
    fs.run("rebuild", lfs)
    takes_part(fs, lfs)


def a_file_that_was_written_meanwhile_is_lost_alone():
    with FileSystem(4, BEVIES) as fs:
        files = lose_in_turn(fs)
        takes_part(fs, "lfs3")
        await_condition(lambda: fs.view_states()["lfs0"] == "lost", "lfs0 is lost, by itself", 60)
        check_content(fs, files, "without lfs0")
        check(lacking(fs, "lfs3") == 1, "lfs3 lacks its part of one file")
        done = fs.run("rebuild", "lfs3")
        check(done.returncode == 3 and b"/new" in done.stdout, f"which: {done.stdout} {done.stderr}")
        replace_and_rebuild(fs, "lfs0")
        check_content(fs, files, "lfs0 is another one")
        for path in files:
            check(not fs.json("stat", path)["marks"], f"{path} has no mark")
        check(fs.json("stat", "/new")["marks"], "/new has one")
        await_condition(lambda: lacking(fs, "lfs3") == 0, "lfs3 waits for nobody any more", 60)
        fs.kill("lfs3")
        fs.declare_lost("lfs3")
        check_content(fs, files, "without lfs3")


def the_other_one_is_not_replaced_while_the_first_is_away():
    with FileSystem(4, BEVIES) as fs:
        files = put_some(fs, 2)
        fs.kill("lfs3")
        fs.declare_lost("lfs3")
        fs.kill("lfs0")
        shutil.move(os.path.join(fs.folder, "lfs0"), fs.local("lfs0"))
        fs.fails(3, "lfs3 is lost, and may have what lfs0 is rebuilt from", "node", "replace", "lfs0")
        check(not any(fs.json("stat", path)["marks"] for path in files), "no file is marked")
        shutil.move(fs.local("lfs0"), os.path.join(fs.folder, "lfs0"))
        fs.ok("up", fs.folder)
        for lfs in ("lfs0", "lfs3"):
            takes_part(fs, lfs)
        check_content(fs, files, "both are back")
        fs.await_clean()


def whoever_comes_back_first_both_have_all_in_the_end():
    for order in (("lfs3", "lfs0"), ("lfs0", "lfs3")):
        with FileSystem(4, BEVIES) as fs:
            files = put_some(fs, 4)
            fs.kill("lfs3")
            fs.declare_lost("lfs3")
            fs.ok("append", "-", "/f1", data=pattern(7, 700))
            files["/f1"] += pattern(7, 700)
            fs.kill("lfs0")
            fs.declare_lost("lfs0", "--force")
            for lfs in order:
                start(fs, lfs)
                takes_part(fs, lfs)
            await_condition(lambda: lacking(fs, "lfs0") + lacking(fs, "lfs3") == 0, "nothing is lacking", 90)
            check_content(fs, files, f"back: {order}")
            fs.await_clean()


def damage_elsewhere_does_not_hold_up_who_has_all():
    for how in ("reboot", "drill"):
        with FileSystem(4, BEVIES) as fs:
            files = put_some(fs, 4)
            for path in files:
                for seed in (1, 2):
                    fs.ok("append", "-", path, data=pattern(seed, 300))
                    files[path] += pattern(seed, 300)
            fs.ok("down", "--yes", fs.folder)
            flip(fs.stored_files("lfs3")[2], 10)
            fs.ok("up", fs.folder)
            if how == "drill":
                fs.run("drill", "--lose", "lfs0")
            else:
                fs.kill("lfs0")
                fs.declare_lost("lfs0")
                fs.ok("up", fs.folder)
            takes_part(fs, "lfs0")
            check(lacking(fs, "lfs0") == 0, f"{how}: lfs0 has all")
            check_content(fs, files, how)
            fs.ok("scrub")
            check_content(fs, files, f"{how}, repaired")
            fs.await_clean()


def a_file_on_no_pair_is_counted_and_made_anew():
    with FileSystem(8, BEVIES) as fs:
        data = pattern(3, 5000)
        put(fs, "/steady", pattern(1, 5000))
        fs.ok("put", *RECORDS, "--nodes", "lfs0,lfs1,lfs4,lfs5", *BEVIES, "-", "/named", data=data)
        await_condition(lambda: fs.json("status")["off_pairs"] == 1, "it is counted", 60)
        check(b"a file lies on no pair" in fs.ok("status"), "status says so")
        done = fs.json("protect", "--all")
        check([one["path"] for one in done["protected"]] == ["/named"], f"protected: {done}")
        check(fs.content("/named") == data, "its bytes are the same")
        await_condition(lambda: fs.json("status")["off_pairs"] == 0, "none is left", 60)
        done = fs.json("protect", "--all")
        check(not done["protected"], f"again: {done}")


TESTS = [
    a_file_that_was_written_meanwhile_is_lost_alone,
    the_other_one_is_not_replaced_while_the_first_is_away,
    whoever_comes_back_first_both_have_all_in_the_end,
    damage_elsewhere_does_not_hold_up_who_has_all,
    a_file_on_no_pair_is_counted_and_made_anew,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
