"""Folders that say how files in them are laid out: mkdir and stripe with --width and so on, put, stat, copies."""

import os
import sys

from pif_system import FileSystem, check, main_on

FS = None
LINES = b"one\ntwo\nthree\n"


def put(path, *options, data=LINES):
    FS.ok("put", "-q", *options, "-", path, data=data)
    return FS.json("stat", path)


def layout_of(path):
    entry = FS.json("stat", path)
    return entry["width"], entry["bevies"]


def striping_of(path):
    return FS.json("stat", path)["striping"]


def files_get_what_their_folder_says():
    FS.ok("mkdir", "--width", "2", "--lines", "/d")
    check(striping_of("/d") == {"format": {"kind": "delimited", "delimiter": 10}, "width": 2}, f"{striping_of('/d')}")
    check(b"  striping  lines, width 2\n" in FS.ok("stat", "/d"), "as text, too")
    check(b"striping" not in FS.ok("stat", "/") and striping_of("/") is None, "nothing where there is none")
    entry = put("/d/a")
    check((entry["width"], entry["records"], entry["format"]["kind"]) == (2, 3, "delimited"), f"{entry}")
    check(FS.content("/d/a") == LINES and FS.ok("cat", "--records", "1:2", "/d/a") == b"two\n", "the bytes are there")
    FS.ok("mv", "/d", "/e")
    check(put("/e/b")["width"] == 2, "also under another name")
    put("/e/short", data=b"no end of line")
    check(FS.content("/e/short") == b"no end of line", "a last line may lack its end")


def what_put_says_itself_wins():
    FS.ok("mkdir", "--nodes", "lfs3,lfs1,lfs0,lfs2", "--bevy", "2", "--record-length", "7", "/own")
    check(FS.json("stat", "/own")["striping"]["nodes"] == [4, 2, 1, 3], "nodes by number")
    check(b"fixed 7, width 4 (nodes 4,2,1,3), bevies of 2" in FS.ok("stat", "/own"), "as text")
    entry = put("/own/all")
    check((entry["nodes"], entry["bevies"], entry["format"]["record_length"]) == ([4, 2, 1, 3], [2, 2], 7), f"{entry}")
    entry = put("/own/plain", "--bevy", "0")
    check((entry["nodes"], entry["bevies"]) == ([4, 2, 1, 3], []), f"no parity, and the LFSs of the folder: {entry}")
    entry = put("/own/two", "--bevy", "0", "--width", "2", "--record-length", "5")
    check((entry["width"], entry["format"]["record_length"]) == (2, 5), f"{entry}")
    bitmap = b"P4\n16 3\n" + bytes(6)
    check(put("/own/image", "--header", "pbm", data=bitmap)["format"]["record_length"] == 2, "rows of the bitmap")
    FS.fails(2, "multiple of 4, not 3.*folder /own.*pif stat /own", "put", "--width", "3", "-", "/own/x", data=b"x")


def folders_below_get_the_same():
    FS.ok("mkdir", "--width", "3", "/top")
    os.makedirs(FS.local("tree/a/b"))
    for name in ("tree/f", "tree/a/b/g"):
        with open(FS.local(name), "wb") as file:
            file.write(LINES)
    FS.ok("put", "-q", "-r", FS.local("tree"), "/top")
    for path in ("/top/tree/f", "/top/tree/a/b/g"):
        check(layout_of(path) == (3, []), path)
    FS.ok("mkdir", "-p", "/top/x/y")
    check(striping_of("/top/x/y") == {"width": 3}, "mkdir -p")
    FS.ok("mkdir", "-p", "--width", "1", "/top/own/deep")
    check((striping_of("/top/own"), striping_of("/top/own/deep")) == ({"width": 3}, {"width": 1}), "only what is named")
    FS.ok("mkdir", "-p", "--width", "1", "/top/own/deep")
    FS.fails(3, "/top/own/deep exists already.*pif stripe", "mkdir", "-p", "--width", "2", "/top/own/deep")
    FS.ok("mkdir", "--width", "2", "/elsewhere")
    FS.ok("cp", "-r", "/top", "/elsewhere")
    check(striping_of("/elsewhere/top/x") == {"width": 2}, "cp -r makes folders as the one above says")


def copies_keep_the_layout_of_their_source():
    FS.ok("mkdir", "--width", "4", "--bevy", "2", "--record-length", "3", "/kept")
    put("/source", "--lines", "--width", "2")
    for words in (("cp", "/source"), ("copy", "/source"), ("sort", "/source")):
        FS.ok(*words, "/kept/" + words[0])
        entry = FS.json("stat", "/kept/" + words[0])
        seen = (entry["width"], entry["bevies"], entry["format"]["kind"])
        check(seen == (2, [], "delimited"), f"{words[0]}: {seen}")
    FS.ok("copy", "--width", "4", "/source", "/kept/wide")
    check(layout_of("/kept/wide") == (4, []), "what copy is told, and no more")


def stripe_changes_and_ends_it():
    FS.ok("mkdir", "/changed")
    FS.ok("stripe", "--width", "2", "--lines", "/changed")
    put("/changed/a")
    FS.ok("stripe", "--width", "1", "/changed")
    check(striping_of("/changed") == {"width": 1}, "all of it is replaced")
    check(layout_of("/changed/a") == (2, []), "files stay as they are")
    check(FS.json("stripe", "--none", "/changed")["changed"] == ["/changed"], "a document")
    check(striping_of("/changed") is None and put("/changed/b")["width"] == 4, "none")
    FS.ok("stripe", "--width", "3", "/")
    check(put("/in-root")["width"] == 3, "the root may have it")
    FS.ok("stripe", "--none", "/")


def what_cannot_be_is_one_line():
    FS.ok("mkdir", "/there")
    put("/file")
    for words in (["mkdir"], ["stripe"]):
        path = "/new" if words == ["mkdir"] else "/there"
        for pattern, options in (
            ("/(new|there): bevies of 2 need a width that is a multiple of 4, not 3", ["--width", "3", "--bevy", "2"]),
            ("/(new|there): a bevy has at least 2", ["--bevy", "1"]),
            ("no node 'lfs9'", ["--nodes", "lfs0,lfs9"]),
            ("named twice", ["--nodes", "lfs0,1"]),
            ("excludes", ["--nodes", "lfs0", "--width", "1"]),
            ("excludes", ["--lines", "--record-length", "3"]),
            ("one character", ["--delimited", "ab"]),
            ("--width", ["--width", "4097"]),
            ("--width", ["--width", "0"]),
            ("--bevy", ["--bevy", "2049"]),
        ):
            FS.fails(2, pattern, *words, *options, path)
    FS.fails(2, "--none", "stripe", "/there")
    FS.fails(2, "--none", "stripe", "--none", "--width", "1", "/there")
    FS.fails(3, "/file is a file", "stripe", "--width", "1", "/file")
    FS.fails(3, "/none", "stripe", "--width", "1", "/none")
    FS.fails(3, "/file", "mkdir", "-p", "--width", "1", "/file")
    FS.ok("mkdir", "--width", "9", "/wide")
    FS.fails(2, "9 is more than the 4 LFSs that are up.*folder /wide", "put", "-", "/wide/x", data=b"x")


def no_parity_is_none_where_the_file_system_has_bevies():
    with FileSystem(4, ("--bevy", "2"), folder="bevies") as fs:
        fs.ok("put", "-", "/with", data=b"x")
        fs.ok("put", "--bevy", "0", "-", "/without", data=b"x")
        fs.ok("mkdir", "--bevy", "0", "/plain")
        fs.ok("put", "-", "/plain/a", data=b"x")
        fs.ok("copy", "--bevy", "0", "/with", "/copied")
        fs.ok("cp", "/without", "/beside")
        bevies = [fs.json("stat", p)["bevies"] for p in ("/with", "/without", "/plain/a", "/copied", "/beside")]
        check(bevies == [[2, 2], [], [], [], []], f"{bevies}")


def folders_are_checked_and_outlive_the_daemons():
    check(FS.json("stat", "/own")["striping"]["bevy"] == 2, "it is there")
    FS.ok("down")
    FS.ok("up", FS.folder)
    check(FS.json("stat", "/own")["striping"]["bevy"] == 2, "and after a start")
    check(put("/own/later")["bevies"] == [2, 2], "for new files, too")


def run_all():
    global FS
    tests = [
        files_get_what_their_folder_says,
        what_put_says_itself_wins,
        folders_below_get_the_same,
        copies_keep_the_layout_of_their_source,
        stripe_changes_and_ends_it,
        what_cannot_be_is_one_line,
        no_parity_is_none_where_the_file_system_has_bevies,
        folders_are_checked_and_outlive_the_daemons,
    ]
    with FileSystem(4) as FS:
        return main_on(FS, tests)


if __name__ == "__main__":
    sys.exit(run_all())
