"""Forks from the command line: placed files, forks of other files, what copies and removals make of them."""

import os
import re
import sys

from pif_system import FileSystem, check, main

FS = None


def forks_of(path):
    return {entry["name"]: entry["bytes"] for entry in FS.json("forks", path)["forks"]}


def a_placed_file_is_its_forks():
    FS.ok("forks", "--make", "--width", "3", "--record-length", "4", "/field")
    check(FS.content("/field") == b"" and forks_of("/field") == {}, "empty at first")
    for subfile in (2, 0):
        FS.ok("put", "-q", "-", f"/field/{subfile}/data", data=b"%d..." % subfile)
    FS.ok("put", "-q", "--lines", "-", "/field/1/notes", data=b"one\ntwo\n")
    check(FS.content("/field") == b"0...2...", "one after another")
    check(FS.json("stat", "/field")["bytes"] == 8 and FS.json("stat", "/field")["placed"], "as long as they are")
    check(FS.json("stat", "/field/2/data")["format"]["record_length"] == 4, "the placed file's format")
    check(FS.json("stat", "/field/2/data")["nodes"] == [FS.json("forks", "/field")["nodes"][2]], "on its LFS")
    check(FS.ok("cat", "--records", "1:2", "/field/1/notes") == b"two\n", "a fork has records")
    FS.ok("append", "-q", "-", "/field/0/data", data=b"more")
    check(FS.content("/field") == b"0...more2...", "it grows")
    FS.ok("get", "-q", "/field", FS.local("field"))
    with open(FS.local("field"), "rb") as file:
        check(file.read() == b"0...more2...", "get")
    text = FS.ok("forks", "/field").decode()
    check(re.search(r"^ *1 +lfs\d +8 +2 +lines +.* notes$", text, re.MULTILINE) is not None, text)
    check(b"placed    in forks: pif forks /field" in FS.ok("stat", "/field"), "stat says where its bytes are")
    FS.fails(3, "/field exists already", "forks", "--make", "/field")


def copies_have_forks_of_their_own():
    FS.ok("cp", "/field", "/copy")
    check(forks_of("/copy") == forks_of("/field") and FS.content("/copy") == FS.content("/field"), "all of them")
    FS.ok("put", "-q", "--record-length", "4", "-", "/plain", data=b"0123456789")
    FS.ok("put", "-q", "-", "/plain/1/sums", data=b"sums")
    FS.ok("cp", "/plain", "/other")
    check(FS.content("/other") == b"0123456789" and FS.content("/other/1/sums") == b"sums", "records and forks")
    FS.ok("cp", "/plain/1/sums", "/plain/0/sums")
    check(FS.content("/plain/0/sums") == b"sums", "a fork becomes another one")
    FS.fails(2, "has no forks of its own", "cp", "/plain", "/other/0/a")
    FS.ok("cp", "/field/1/notes", "/notes")
    check(FS.content("/notes") == b"one\ntwo\n", "a fork becomes a file")


def large_ones_are_copied_with_their_forks():
    data = os.urandom(17 << 20)
    FS.ok("put", "-q", "-", "/large", data=data)
    FS.ok("put", "-q", "-", "/large/2/index", data=b"index")
    FS.ok("cp", "/large", "/large2")
    check(FS.content("/large2") == data and FS.content("/large2/2/index") == b"index", "the tool's way has no forks")


def tools_take_forks():
    FS.ok("put", "-q", "--lines", "-", "/field/2/words", data=b"b\na\n")
    FS.ok("sort", "/field/2/words", "/sorted")
    check(FS.content("/sorted") == b"a\nb\n", "a fork is a tool's input")
    FS.fails(2, "/field is a placed file.*pif forks /field", "copy", "/field", "/x")
    FS.fails(2, "a fork is on the LFS of its subfile", "copy", "/plain", "/field/0/x")


def forks_go_with_their_file():
    FS.ok("mv", "/copy", "/moved")
    FS.ok("mv", "/moved/1/notes", "/moved/1/other notes")
    check(FS.content("/moved/1/other notes") == b"one\ntwo\n", "under the new names")
    FS.fails(2, "a fork stays in its subfile", "mv", "/moved/1/other notes", "/moved/2/notes")
    FS.ok("rm", "/moved/1/other notes")
    FS.ok("rm", "/moved")
    FS.fails(3, "there is no", "cat", "/moved/0/data")
    FS.ok("put", "-q", "--record-length", "4", "-", "/plain", data=b"new")
    check(forks_of("/plain") == {}, "a file that is put anew has none")
    FS.fails(2, "there is no subfile 3", "put", "-", "/plain/3/a", data=b"x")
    FS.fails(2, "has forks, and no folders", "mkdir", "/plain/0/a")
    FS.ok("fsck")


if __name__ == "__main__":
    with FileSystem(3) as FS:
        sys.exit(
            main(
                [
                    a_placed_file_is_its_forks,
                    copies_have_forks_of_their_own,
                    large_ones_are_copied_with_their_forks,
                    tools_take_forks,
                    forks_go_with_their_file,
                ]
            )
        )
