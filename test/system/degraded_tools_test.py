"""Tools on files with parity while one of their LFSs is lost: another one stands in for it."""

import sys

from parity_files import IN_ORDER, LFSS, Contents, lines, pattern
from pif_system import FileSystem, check, main

COLUMNS = 800  # bits of a record


# path: (options of put, bytes)
FILES = {
    "/hundred": (("--record-length", "100"), pattern(1, 100 * 30_000)),
    "/short": (("--record-length", "100"), pattern(2, 100 * 57 + 33)),
    "/few": (("--record-length", "4096"), pattern(3, 4096 * 3 + 1)),
    "/one": (("--record-length", "4096"), pattern(4, 1000)),
    "/none": (("--record-length", "100"), b""),
    "/text": (("--lines",), lines(5, 20_000)),
    "/line": (("--lines",), b"one\n"),
}


def sorted_records(data, length):
    return b"".join(sorted(data[at : at + length] for at in range(0, len(data), length)))


def sorted_lines(data):
    return b"".join(sorted(data.splitlines(True)))


class ToolContents(Contents):
    """Files, and what tools make of them."""

    def __init__(self, fs):
        super().__init__(fs)
        self.put(FILES, *IN_ORDER)

    def make(self, path, data, *words):
        self.fs.ok(*words)
        self.files[path] = data

    def run_tools(self, folder):
        """Every tool, with inputs of before and outputs of its own kind."""
        self.fs.ok("mkdir", folder)
        for path, (_, data) in FILES.items():
            self.make(folder + path, data, "copy", "-q", path, folder + path)
        self.make(f"{folder}/cp", FILES["/hundred"][1], "cp", "/hundred", f"{folder}/cp")
        # Rows go to other LFSs than those that they come from.
        other = ("--nodes", ",".join(f"lfs{i}" for i in (7, 6, 5, 4, 3, 2, 1, 0)), "--bevy", "2", "--same-host-ok")
        for path in ("/hundred", "/text"):
            self.make(f"{folder}{path}-other", FILES[path][1], "copy", "-q", *other, path, f"{folder}{path}-other")
        hundred, text = FILES["/hundred"][1], FILES["/text"][1]
        self.make(f"{folder}/sorted", sorted_records(hundred, 100), "sort", "-q", "/hundred", f"{folder}/sorted")
        self.make(f"{folder}/sorted-text", sorted_lines(text), "sort", "-q", "/text", f"{folder}/sorted-text")
        self.make(f"{folder}/upper", text.upper(), "run", "example-upper-case", "/text", f"{folder}/upper")
        turned = ("transpose", "-q", "--columns", str(COLUMNS), "/hundred", f"{folder}/turned")
        self.fs.ok(*turned)
        self.files[f"{folder}/turned"] = self.fs.content(f"{folder}/turned")


def lose(fs, name):
    fs.kill(name)
    fs.declare_lost(name)


def tools_work_while_an_lfs_is_lost():
    with FileSystem(LFSS) as fs:
        contents = ToolContents(fs)
        contents.run_tools("/all")
        turned = contents.files["/all/turned"]
        check(len(turned) == len(FILES["/hundred"][1]), "as many bits as before")
        lose(fs, "lfs1")
        contents.run_tools("/lost")
        check(contents.files["/lost/turned"] == turned, "transposed as before")
        contents.check("lfs1 is lost")
        fs.bring_back("lfs1")
        contents.check("lfs1 is back")
        # What lfs1 got back protects the others of its pair of bevies; and it has its own rows.
        fs.kill("lfs2")
        contents.check("lfs2 is silent")
        fs.ok("up", fs.folder)
        fs.await_clean()


def the_first_lfs_of_the_files_may_be_the_lost_one():
    with FileSystem(LFSS) as fs:
        contents = ToolContents(fs)
        lose(fs, "lfs0")
        contents.fs.ok("mkdir", "/lost")
        for path in ("/hundred", "/one", "/text"):
            contents.make(f"/lost{path}", FILES[path][1], "copy", "-q", path, f"/lost{path}")
        contents.make("/lost/sorted", sorted_lines(FILES["/text"][1]), "sort", "-q", "/text", "/lost/sorted")
        contents.check("lfs0 is lost")
        fs.bring_back("lfs0")
        contents.check("lfs0 is back")
        fs.await_clean()


def an_lfs_that_is_silent_but_not_lost_is_named_and_what_to_do():
    with FileSystem(LFSS) as fs:
        fs.ok("put", "--record-length", "100", *IN_ORDER, "-", "/a", data=pattern(1, 100 * 1000))
        fs.kill("lfs3")
        done = fs.run("copy", "-q", "/a", "/b")
        text = done.stderr.decode()
        if done.returncode != 0:  # unless the server has declared it lost by now
            check("pif node lost lfs3" in text, f"it says what to do: {text}")
            check(fs.run("stat", "/b").returncode != 0, "there is no half copy")
        fs.declare_lost("lfs3")
        fs.ok("copy", "-q", "/a", "/b")
        check(fs.content("/b") == pattern(1, 100 * 1000), "copied without it")


def files_without_parity_need_all_their_lfss():
    with FileSystem(LFSS) as fs:
        fs.ok("put", "--record-length", "100", "--nodes", "lfs0,lfs1,lfs2", "-", "/plain", data=pattern(1, 10_000))
        fs.ok("put", "--record-length", "100", *IN_ORDER, "-", "/safe", data=pattern(2, 10_000))
        lose(fs, "lfs1")
        done = fs.run("copy", "-q", "/plain", "/copy")
        check(done.returncode == 3, f"it cannot be read: {done.stderr}")
        fs.ok("copy", "-q", "/safe", "/copy")
        check(fs.content("/copy") == pattern(2, 10_000), "the other one")


TESTS = [
    tools_work_while_an_lfs_is_lost,
    the_first_lfs_of_the_files_may_be_the_lost_one,
    an_lfs_that_is_silent_but_not_lost_is_named_and_what_to_do,
    files_without_parity_need_all_their_lfss,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, sys.argv[1:]))
