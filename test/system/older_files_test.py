"""Files with bevies of releases before parity was kept: the present release reads them all, and changes none."""

import os
import sys
import tarfile

from pif_system import FileSystem, await_condition, check, flip, main

OLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bevies.tar.xz")
BEVIES = ("short", "pages", "lines", "few", "one", "empty", "appended", "appended_lines")
ROUTES = (
    (),
    ("--data", "descriptors"),
    ("--data", "messages"),
    ("--route", "ipc"),
    ("--route", "unix", "--data", "messages"),
)


class OlderFileSystem(FileSystem):
    """The file system of bevies.tar.xz (make_bevies.sh), served by this release."""

    def __init__(self):
        super().__init__(4)
        with tarfile.open(OLDER) as made:
            for member in made.getmembers():  # as the user who runs the test, not as who made it
                member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
                made.extract(member, self.temp)

    def begin(self):
        self.ok("up", self.folder)

    def expected(self, name):
        with open(os.path.join(self.local("files"), name), "rb") as file:
            return file.read()

    def check_all(self, *options):
        for name in (*BEVIES, "plain"):
            check(self.ok("cat", *options, "/" + name) == self.expected(name), f"{name} is what it was {options}")

    def formats(self):
        out = []
        for i in range(4):
            with open(os.path.join(self.folder, f"lfs{i}", "lfs.toml")) as file:
                out.append(next(line.strip() for line in file if line.startswith("format")))
        return out


def every_route_reads_them_before_and_after_a_restart():
    with OlderFileSystem() as fs:
        for options in ROUTES:
            fs.check_all(*options)
        fs.ok("down", fs.folder)
        fs.ok("up", fs.folder)
        fs.check_all()
        check(fs.formats() == ["format = 4"] * 4, f"its LFSs are not for older programs any more: {fs.formats()}")
        for i in range(4):
            logs = sorted(os.listdir(os.path.join(fs.folder, f"lfs{i}", "log")))
            check(logs == ["redo.0", "redo.1"], f"the older log is replayed once, and removed: {logs}")


def single_records_tails_and_tools_see_dense_rows():
    with OlderFileSystem() as fs:
        short, lines = fs.expected("short"), fs.expected("lines").splitlines(keepends=True)
        for first, end in ((0, 1), (3, 4), (499, 777), (1003, 1004)):
            got = fs.ok("cat", "--records", f"{first}:{end}", "/short")
            check(got == short[first * 100 : end * 100], f"records {first} to {end} of /short")
            got = fs.ok("cat", "--records", f"{first}:{end}", "/lines")
            check(got == b"".join(lines[first:end]), f"records {first} to {end} of /lines")
        check(fs.ok("tail", "-n", "3", "/lines") == b"".join(lines[-3:]), "tail")
        for name in ("short", "lines", "appended"):
            fs.ok("copy", "--bevy", "0", "/" + name, "/copied")
            check(fs.content("/copied") == fs.expected(name), f"a tool's copy of {name}")
            fs.ok("get", "/" + name, fs.local("got"))
            with open(fs.local("got"), "rb") as file:
                check(file.read() == fs.expected(name), f"get of {name}")
        fs.ok("sort", "/lines", "/sorted")
        check(sorted(fs.content("/sorted").splitlines()) == sorted(b"".join(lines).splitlines()), "sort")


def stat_and_fsck_call_them_unprotected_and_whole():
    with OlderFileSystem() as fs:
        for name in BEVIES:
            stat = fs.json("stat", "/" + name)
            check((stat["bevies"], stat["protected"]) == ([2, 2], False), f"{stat}")
            check(b"unprotected: made before parity was kept" in fs.ok("stat", "/" + name), "in words")
        check("protected" not in fs.json("stat", "/plain"), "a file without bevies is neither")
        report = fs.json("fsck")
        check(report["clean"] and report["findings"] == [], f"fsck: {report}")
        check(sorted(report["unprotected"]) == sorted("/" + name for name in BEVIES), f"fsck: {report}")
        text = fs.ok("fsck")
        check(b"unprotected: /pages: " in text and b"; 8 files unprotected: clean" in text, f"fsck: {text}")


def no_change_of_them_is_taken_but_removal_and_replacement():
    with OlderFileSystem() as fs:
        for name in ("short", "lines", "empty"):
            text = f"unprotected: /{name} was made before parity was kept.*`pif protect /{name}`"
            fs.fails(3, text, "append", "-", "/" + name, data=b"x")
        for operation in ("overwrite /short 7 3 1", "append /pages 7 50 1"):
            said = fs.crash_client(operation)
            check("1 fail unsupported" in said and "unprotected" in said, f"{operation}: {said}")
        fs.check_all()
        fs.ok("mv", "/few", "/moved")
        fs.ok("chmod", "0600", "/moved")
        check(fs.content("/moved") == fs.expected("few"), "names and modes change")
        fs.ok("rm", "/moved")
        # The folder has moved: LFSs hear with their next heartbeat where the others are now.
        put = ("put", "--bevy", "2", "--record-length", "100", "-", "/short")
        await_condition(lambda: fs.run(*put, data=b"new" * 1000).returncode == 0, "a put with parity", 10)
        check(fs.content("/short") == b"new" * 1000, "a new file of that name")
        check(fs.json("stat", "/short")["protected"], "is protected")
        fs.await_clean()
        fs.ok("down", fs.folder)
        fs.ok("up", fs.folder)
        check(fs.content("/short") == b"new" * 1000 and fs.content("/pages") == fs.expected("pages"), "it goes on")


KEPT = ("mode", "owner", "group", "records", "bytes", "modified", "format", "attribute_bytes")


def kept(stat):
    return {key: stat[key] for key in KEPT if key in stat}


def protect_makes_them_anew_with_parity():
    with OlderFileSystem() as fs:
        fs.ok("chmod", "0640", "/few")
        before = {name: fs.json("stat", "/" + name) for name in BEVIES}
        listed = fs.json("protect", "--all", "--dry-run")
        paths = sorted(one["path"] for one in listed["protected"])
        check(paths == sorted("/" + name for name in BEVIES), f"listed: {listed}")
        fs.fails(2, "has no bevies.*--bevy B", "protect", "/plain")
        fs.fails(2, "takes files, or --all", "protect")
        fs.fails(3, "/nobody", "protect", "/nobody")
        # The folder has moved: LFSs hear with their next heartbeat where the others are now.
        await_condition(lambda: fs.run("protect", "/short").returncode == 0, "one file", 20)
        check(not fs.json("stat", "/pages")["protected"], "and no other")
        rest = fs.json("protect", "--all")
        check(len(rest["protected"]) == len(BEVIES) - 1 and rest["already"] == 1, f"the rest: {rest}")
        for name in BEVIES:
            stat = fs.json("stat", "/" + name)
            check(stat["protected"] and stat["bevies"] == [2, 2], f"{stat}")
            check(kept(stat) == kept(before[name]), f"{name}: {stat} was {before[name]}")
        fs.check_all()
        again = fs.json("protect", "--all")
        check(again["protected"] == [] and again["already"] == len(BEVIES), f"nothing is left: {again}")
        fs.ok("append", "-", "/short", data=b"and more")
        check(fs.content("/short") == fs.expected("short") + b"and more", "they change again")
        fs.ok("protect", "--bevy", "2", "/plain")
        check(fs.json("stat", "/plain")["protected"], "a file that had no bevies")
        check(fs.content("/plain") == fs.expected("plain"), "is what it was")
        check(fs.json("fsck")["unprotected"] == [], "fsck has none to name")
        fs.await_clean()
        fs.kill("lfs1")
        check(fs.content("/pages") == fs.expected("pages"), "one LFS may be lost")


def damage_in_one_is_found_by_readers_and_by_fsck():
    with OlderFileSystem() as fs:
        fs.ok("down", fs.folder)
        flip(fs.stored_files("lfs1")[0], 50000)  # of /pages
        fs.ok("up", fs.folder)
        done = fs.run("cat", "/pages")
        check(done.returncode == 3 and b"checksum" in done.stderr, f"cat: {done.stderr}")
        check(fs.content("/lines") == fs.expected("lines"), "others are read")
        report = fs.run("fsck", "--json")
        check(report.returncode == 1 and b'"sums"' in report.stdout, f"fsck: {report.stdout}")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                every_route_reads_them_before_and_after_a_restart,
                single_records_tails_and_tools_see_dense_rows,
                stat_and_fsck_call_them_unprotected_and_whole,
                no_change_of_them_is_taken_but_removal_and_replacement,
                protect_makes_them_anew_with_parity,
                damage_in_one_is_found_by_readers_and_by_fsck,
            ]
        )
    )
