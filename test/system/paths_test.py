"""Operands as POSIX and the coreutils have them: several of one name, a slash at the end, links in the way, one bad
among good ones. Where there is one, the local command is run beside ours, and says what is right."""

import os
import shutil
import subprocess
import sys

from pif_system import FileSystem, check, main_on

FS = None
ODD = b"\xff"  # a name here, and none in the file system


def put(path, data, *options):
    FS.ok("put", "-q", *options, "-", path, data=data)


def local_file(name, data):
    path = FS.local(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def text_of(name):
    with open(FS.local(name), "rb") as file:
        return file.read()


def fresh(*folders):
    """These folders, here and there, with nothing in them."""
    for top in {folder.split("/")[0] for folder in folders}:
        shutil.rmtree(FS.local(top), ignore_errors=True)
        FS.run("rm", "-rf", "/" + top)
    for folder in folders:
        os.makedirs(FS.local(folder))
        FS.ok("mkdir", "-p", "/" + folder)


def both(name, data):
    local_file(name, data)
    put("/" + name, data)


def tree_here(top):
    found = {}
    for folder, folders, names in os.walk(FS.local(top)):
        below = os.path.relpath(folder, FS.local(top))
        for name in folders:
            found[os.path.normpath(os.path.join(below, name))] = None
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.normpath(os.path.join(below, name))] = file.read()
    return found


def tree_there(top):
    entries = FS.json("ls", "-R", "/" + top)["entries"]
    return {
        entry["path"][len(top) + 2 :]: None if entry["kind"] == "folder" else FS.content(entry["path"])
        for entry in entries
    }


def here(*words):
    """A local command, in our folder: whether it succeeds."""
    return subprocess.run(words, cwd=FS.temp, capture_output=True, check=False).returncode == 0


# ---- several operands of one last name ----


def the_second_operand_of_one_name_stays_where_it_is():
    for command, options in (("mv", []), ("cp", []), ("cp", ["-r"])):
        fresh("w/1", "w/2", "w/3", "w/to")
        for number in "123":
            both(f"w/{number}/out", b"out of " + number.encode())
        both("w/2/other", b"other")
        words = [f"w/{number}/out" for number in "123"] + ["w/2/other", "w/to"]
        right = here(command, *options, *words)
        done = FS.run(command, *options, *["/" + word for word in words])
        check(not right and done.returncode == 3, f"{command}: {done}")
        check(done.stderr.count(b"already") == 2, f"{command}: each is named: {done}")
        check(tree_there("w") == tree_here("w"), f"{command}: {tree_there('w')} instead of {tree_here('w')}")
    FS.ok("mkdir", "/w/new")
    done = FS.run("mv", "/w/?/out", "/w/new")
    check(done.returncode == 3 and done.stderr.count(b"stays where it is") == 2, f"{done}")
    check(FS.content("/w/new/out") == b"out of 1", "of a pattern, too, the first one arrives")


def folders_of_one_name_become_one_but_not_by_moving():
    fresh("w/1/d", "w/2/d", "w/to")
    both("w/1/d/f", b"one")
    both("w/2/d/f", b"two")
    both("w/2/d/g", b"three")
    check(here("cp", "-r", "w/1/d", "w/2/d", "w/to"), "cp -r")
    FS.ok("cp", "-r", "/w/1/d", "/w/2/d", "/w/to")
    check(tree_there("w") == tree_here("w"), f"{tree_there('w')}")
    FS.ok("put", "-q", "-r", FS.local("w/1/d"), FS.local("w/2/d"), "/w")
    check(tree_there("w/d") == tree_here("w/to/d"), f"{tree_there('w/d')}")
    os.mkdir(FS.local("w/back"))
    FS.ok("get", "-q", "-r", "/w/1/d", "/w/2/d", FS.local("w/back"))
    check(tree_here("w/back/d") == tree_here("w/to/d"), f"{tree_here('w/back/d')}")
    os.mkdir(FS.local("w/moved"))
    FS.ok("mkdir", "/w/moved")
    check(not here("mv", "w/1/d", "w/2/d", "w/moved"), "mv")
    FS.fails(3, "stays where it is", "mv", "/w/1/d", "/w/2/d", "/w/moved")
    check(tree_there("w/2/d") == tree_here("w/2/d"), "the second one stays")


def put_and_get_replace_nothing_that_they_have_just_made():
    fresh("w/1", "w/2", "w/to", "w/back")
    for number in "12":
        both(f"w/{number}/out", number.encode())
    done = FS.run("put", "-q", FS.local("w/1/out"), FS.local("w/2/out"), "/w/to")
    check(done.returncode == 3 and b"w/2/out stays" in done.stderr, f"{done}")
    check(FS.content("/w/to/out") == b"1", "the first one arrives")
    done = FS.run("get", "-q", "/w/?/out", FS.local("w/back"))
    check(done.returncode == 3 and b"/w/2/out stays" in done.stderr, f"{done}")
    check(tree_here("w/back") == {"out": b"1"}, "the first one arrives")
    os.mkdir(FS.local("w/alone"))
    done = FS.run("get", "-q", "/w/?/out", cwd=FS.local("w/alone"))
    check(done.returncode == 3 and tree_here("w/alone") == {"out": b"1"}, f"{done}")


def an_operand_that_is_named_twice_is_taken_once():
    fresh("w/1", "w/to", "w/back")
    both("w/1/out", b"1")
    check(here("cp", "w/1/out", "w/1/out", "w/to"), "cp")
    FS.ok("cp", "/w/1/out", "/w/1/ou?", "/w/to")
    FS.ok("put", "-q", FS.local("w/1/out"), FS.local("w/1/out"), "/w/to")
    FS.ok("get", "-q", "/w/1/out", "/w/1/out", FS.local("w/back"))
    check(tree_here("w/back") == {"out": b"1"}, f"{tree_here('w/back')}")


def a_dot_is_what_is_in_the_folder():
    fresh("w/from/sub", "w/to")
    local_file("w/from/f", b"f")
    local_file("w/from/sub/g", b"g")
    for dot in (".", "./", "../from/.", "sub/.."):
        shutil.rmtree(FS.local("w/to"))
        os.mkdir(FS.local("w/to"))
        FS.ok("rm", "-r", "/w/to")
        FS.ok("mkdir", "/w/to")
        subprocess.run(["cp", "-r", dot, FS.local("w/to")], cwd=FS.local("w/from"), check=True)
        FS.ok("put", "-q", "-r", dot, "/w/to", cwd=FS.local("w/from"))
        check(tree_there("w/to") == tree_here("w/to"), f"{dot}: {tree_there('w/to')} instead of {tree_here('w/to')}")


# ---- a slash at the end ----


def a_slash_behind_a_file_is_an_error_and_changes_nothing():
    fresh("s/folder")
    both("s/file", b"precious")
    put("/s/rows", b"12345678", "--record-length", "1")
    for before, behind in (
        (["cat"], []),
        (["head"], []),
        (["tail"], []),
        (["wc"], []),
        (["stat"], []),
        (["ls"], []),
        (["find"], []),
        (["rm"], []),
        (["rm", "-r"], []),
        (["chmod", "0600"], []),
        (["du"], []),
        (["mv"], ["s/new"]),
        (["cp"], ["s/new"]),
    ):
        for slash in ("/", "/.", "//"):
            words = [*before, "s/file" + slash, *behind]
            check(not here(*words), f"{words}: the local one")
            there = [*before, "/s/file" + slash, *["/" + word for word in behind]]
            FS.fails(3, "/s/file is a file, not a folder", *there)
    for words in ("tree", "locate", "forks", "stripe --width 1", "protect --bevy 2", "append /dev/null", "sort -c"):
        FS.fails(3, "/s/file is a file, not a folder", *words.split(), "/s/file/")
    FS.fails(3, "/s/file is a file, not a folder", "find", "/s", "-newer", "/s/file/")
    for words in ("mv /s/rows", "cp /s/rows", "copy /s/rows", "sort /s/rows", "transpose --columns 8 /s/rows"):
        FS.fails(3, "/s/file is a file, not a folder", *words.split(), "/s/file/")
        FS.fails(3, "there is no folder /s/new", *words.split(), "/s/new/")
        FS.fails(3, "/s/rows is a file, not a folder", *words.split()[:-1], "/s/rows/", "/s/new")
    for words in ("put -q", "put -q --skip-existing"):
        done = FS.run(*words.split(), FS.local("s/file"), "/s/file/")
        check(done.returncode == 3, f"{done}")
    FS.fails(3, "no folder /s/new", "forks", "--make", "/s/new/")
    check(here("rm", "-f", "s/file/"), "for rm -f such a folder is one that is not there")
    FS.ok("rm", "-f", "/s/file/")
    check(FS.content("/s/file") == b"precious" and FS.content("/s/rows") == b"12345678", "all is as it was")
    check(set(tree_there("s")) == {"file", "folder", "rows"}, f"{tree_there('s')}")


def a_slash_behind_a_folder_is_no_error():
    fresh("s/folder/inner", "s/other")
    both("s/file", b"f")
    both("s/folder/f", b"f")
    FS.ok("mkdir", "/s/made/")
    FS.ok("mkdir", "-p", "-m", "0700", "/s/deep/er/")
    check(FS.json("stat", "/s/deep/")["mode"] == "0755" and FS.json("stat", "/s/deep/er")["mode"] == "0700", "-p -m")
    os.mkdir(FS.local("s/made"))
    os.makedirs(FS.local("s/deep/er"))
    for words in (
        "mv s/other/ s/moved/",
        "cp -r s/folder/ s/copied/",
        "cp s/file s/made/",
        "mv s/folder/inner/ s/made/",
    ):
        check(here(*words.split()), words)
        command, *rest = words.split()
        FS.ok(command, *[word if word.startswith("-") else "/" + word for word in rest])
    check(tree_there("s") == tree_here("s"), f"{tree_there('s')} instead of {tree_here('s')}")
    folders = [f"/s/{name}/" for name in ("copied", "deep", "folder", "made", "moved")]
    check(FS.ok("ls", "-d", "/s/*/").decode().split() == folders, "a pattern with a slash finds folders")
    FS.ok("rm", "-r", "/s/copied/", "/s/m*/")
    check("made" not in tree_there("s") and "moved" not in tree_there("s"), "rm -r")
    FS.ok("ls", "/")
    FS.ok("stat", "/.")


# ---- links in the way of get ----


def get_goes_through_no_link_below_what_was_typed():
    fresh("l/back/t", "l/outside", "l/t/d", "l/t/e")
    local_file("l/outside/f", b"precious")
    for name in ("d/f", "e/f", "g", "h"):
        put("/l/t/" + name, b"new " + name.encode())
    os.symlink("../../outside", FS.local("l/back/t/d"))
    os.symlink("../../outside/f", FS.local("l/back/t/g"))
    os.mkfifo(FS.local("l/outside/pipe"))
    os.symlink("../../outside/pipe", FS.local("l/back/t/h"))
    for options in ([], ["--skip-existing"], ["--checksum"]):
        done = FS.run("get", "-q", "-r", *options, "/l/t", FS.local("l/back"), timeout=30)
        check(done.returncode == 3 and done.stderr.count(b"\n") == 1, f"one link, one line: {done}")
        check(b"back/t/d is no folder" in done.stderr, f"{done}")
        check(text_of("l/outside/f") == b"precious", "nothing is written outside")
    check(text_of("l/back/t/e/f") == b"new e/f", "the rest is done")
    check(text_of("l/back/t/g") == b"new g", "a link to a file gives way")
    check(not os.path.islink(FS.local("l/back/t/g")), "and a file is in its place")
    check(text_of("l/back/t/h") == b"new h", "to a pipe, too")


def get_goes_through_a_link_that_was_typed():
    fresh("l/real", "l/t")
    put("/l/t/f", b"new")
    os.symlink("real", FS.local("l/link"))
    FS.ok("get", "-q", "-r", "/l/t", FS.local("l/link"))
    FS.ok("get", "-q", "/l/t/f", FS.local("l/link/"))
    check(tree_here("l/real") == {"t": None, "t/f": b"new", "f": b"new"}, f"{tree_here('l/real')}")
    os.mkdir(FS.local("l/whole"))
    FS.ok("get", "-q", "-r", "--exclude", "[bsw]", "/", FS.local("l/whole/"))
    got = {path: data for path, data in tree_here("l/whole").items() if path.split("/")[0] in ("l", "whole")}
    check(got == {"l": None, "l/real": None, "l/t": None, "l/t/f": b"new"}, f"/ has no name of its own: {got}")
    os.mkdir(FS.local("l/real/d"))
    os.symlink("real", FS.local("l/t-link"))
    os.rename(FS.local("l/t-link"), FS.local("l/real/d/t"))
    check(FS.run("get", "-q", "-r", "/l/t", FS.local("l/real/d")).returncode == 3, "what is below it was not typed")


# ---- one bad among good ----


def one_name_that_cannot_be_does_not_keep_the_others():
    for option in ([], ["--skip-existing"], ["--checksum"]):
        fresh("b/a", "b/b", "b/c")
        local_file("b/a/good", b"1")
        local_file("b/b/good", b"2")
        for folder in (b"a", b"b"):
            with open(os.path.join(os.fsencode(FS.local("b")), folder, ODD), "wb") as file:
                file.write(b"3")
        os.mkdir(os.path.join(os.fsencode(FS.local("b/c")), ODD))
        local_file("b/c/good", b"4")
        FS.ok("rm", "-r", "/b")
        done = FS.run("put", "-q", "-r", *option, FS.local("b"), "/b")
        check(done.returncode == 3 and done.stderr.count(b"not UTF-8") == 3, f"{option}: {done}")
        check(
            tree_there("b") == {"a": None, "b": None, "c": None, "a/good": b"1", "b/good": b"2", "c/good": b"4"},
            f"{option}: {tree_there('b')}",
        )
    done = FS.run("put", "-q", FS.local("b/a/good"), os.path.join(os.fsencode(FS.local("b/a")), ODD), "/b")
    check(done.returncode == 3 and FS.content("/b/good") == b"1", f"{done}")


def one_bad_operand_does_not_keep_the_others():
    fresh("b/to", "b/got")
    odd = (os.fsdecode(b"/" + ODD), os.fsdecode(b"/b/" + ODD + b"*"))
    for bad in ("/none", *odd, "/b/" + "n" * 300, "/" + "p/" * 4000, "/b/../x"):
        for name in ("f", "g"):
            put("/b/" + name, b"12\n", "--lines")
        for words, shown in (
            (["cat"], b"12\n12\n"),
            (["head", "-q"], b"12\n12\n"),
            (["tail", "-q"], b"12\n12\n"),
            (["wc", "-c"], None),
            (["stat"], None),
            (["ls"], b"/b/f\n/b/g\n"),
            (["find"], b"/b/f\n/b/g\n"),
            (["du"], None),
            (["tree"], None),
            (["chmod", "0600"], b""),
            (["protect", "--bevy", "2"], b""),
        ):
            done = FS.run(*words, "/b/f", bad, "/b/g")
            check(done.returncode == 3 and done.stderr, f"{words} {bad[:20]}: {done}")
            if shown is not None:
                check(done.stdout == shown, f"{words} {bad[:20]}: {done}")
            elif words[0] != "wc":
                check(b"/b/f" in done.stdout and b"/b/g" in done.stdout, f"{words}: {done}")
        for words in (["cp"], ["mv"]):
            check(FS.run(*words, "/b/f", bad, "/b/g", "/b/to").returncode == 3, f"{words}")
            check(FS.content("/b/to/f") + FS.content("/b/to/g") == b"12\n12\n", f"{words} {bad[:20]}")
        check(FS.run("get", "-q", "/b/to/f", bad, "/b/to/g", FS.local("b/got")).returncode == 3, "get")
        check(tree_here("b/got") == {"f": b"12\n", "g": b"12\n"}, f"get: {tree_here('b/got')}")
        check(FS.run("rm", "/b/to/f", bad, "/b/to/g").returncode == 3 and tree_there("b/to") == {}, "rm")


def run_all():
    global FS
    with FileSystem(4) as FS:
        return main_on(
            FS,
            [
                the_second_operand_of_one_name_stays_where_it_is,
                folders_of_one_name_become_one_but_not_by_moving,
                put_and_get_replace_nothing_that_they_have_just_made,
                an_operand_that_is_named_twice_is_taken_once,
                a_dot_is_what_is_in_the_folder,
                a_slash_behind_a_file_is_an_error_and_changes_nothing,
                a_slash_behind_a_folder_is_no_error,
                get_goes_through_no_link_below_what_was_typed,
                get_goes_through_a_link_that_was_typed,
                one_name_that_cannot_be_does_not_keep_the_others,
                one_bad_operand_does_not_keep_the_others,
            ]
        )


if __name__ == "__main__":
    sys.exit(run_all())
