"""Commands that people know from elsewhere: cp, head, tail, wc, find, tree, append; and patterns in names."""

import os
import subprocess
import sys

from pif_system import FileSystem, await_condition, check, main_on

FS = None


def put(path, data, *options):
    FS.ok("put", "-q", *options, "-", path, data=data)


def shown(*words):
    return FS.ok(*words).decode().splitlines()


# ---- patterns ----


def patterns_match_as_in_a_shell():
    FS.ok("mkdir", "-p", "/p/sub/deep", "/p/other")
    for name in ("a.txt", "b.txt", "\u00e4.txt", "c.log", ".hidden", "sub/d.txt", "sub/deep/e.txt", "other/f.txt"):
        put("/p/" + name, name.encode())
    check(shown("ls", "/p/*.txt") == ["/p/a.txt", "/p/b.txt", "/p/\u00e4.txt"], "*")
    check(shown("ls", "/p/?.txt") == ["/p/a.txt", "/p/b.txt", "/p/\u00e4.txt"], "? is a character of UTF-8")
    check(shown("ls", "/p/[!a]*.txt") == ["/p/b.txt", "/p/\u00e4.txt"], "[!a]")
    check(
        shown("ls", "-d", "/p/*") == [f"/p/{n}" for n in ("a.txt", "b.txt", "c.log", "other/", "sub/", "\u00e4.txt")],
        "no hidden ones",
    )
    check(shown("ls", "/p/.h*") == shown("ls", "/p/.*") == ["/p/.hidden"], "unless asked for")
    check(shown("ls", "/p/*/*.txt") == ["/p/other/f.txt", "/p/sub/d.txt"], "in the middle, too")
    check(shown("ls", "/*/s*/deep/e.txt") == ["/p/sub/deep/e.txt"], "and a plain name behind it")
    check(FS.content("/p/[ab].txt") == b"a.txtb.txt", "cat")
    check([f["path"] for f in FS.json("stat", "/p/[ab].txt")] == ["/p/a.txt", "/p/b.txt"], "stat")
    check([u["files"] for u in FS.json("du", "/p/s*", "/p/o*")["usage"]] == [2, 1], "du")
    check(
        shown("find", "/p/o*", "/p/s*", "-name", "*.txt") == ["/p/other/f.txt", "/p/sub/d.txt", "/p/sub/deep/e.txt"],
        "find",
    )
    check(FS.json("wc", "-c", "/p/[ab].txt")["total"] == {"bytes": 10}, "wc")
    check(
        FS.ok("head", "-q", "-c", "1", "/p/?.txt") == b"ab\xc3"
        and FS.ok("tail", "-q", "-c", "4", "/p/[ab].txt") == b".txt.txt",
        "ends",
    )
    os.mkdir(FS.local("got"))
    FS.ok("get", "-q", "/p/[ab].txt", FS.local("got"))
    FS.ok("get", "-q", "/p/c.*", cwd=FS.local("got"))
    check(
        sorted(os.listdir(FS.local("got"))) == ["a.txt", "b.txt", "c.log"],
        "get, into a folder, or one under its own name",
    )
    FS.ok("get", "-q", "/p/sub/*.txt", "-")
    FS.ok("cp", "/p/[ab].txt", "/p/other")
    FS.ok("rm", "/p/other/?.txt")
    check(shown("ls", "/p/other") == [], "cp and rm")


def a_name_with_the_characters_of_a_pattern_is_that_name():
    for name in ("/p/q[1].txt", "/p/q1.txt", "/p/q*.txt"):
        put(name, name.encode())
    check(
        FS.content("/p/q[1].txt") == b"/p/q[1].txt" and FS.content("/p/q*.txt") == b"/p/q*.txt",
        "a name as it stands wins",
    )
    FS.ok("rm", "/p/q*.txt")
    check(shown("ls", "/p/q*") == ["/p/q1.txt", "/p/q[1].txt"], "only it was removed")
    check(FS.content("/p/q\\[1\\].tx?") == b"/p/q[1].txt", "a backslash takes the meaning away")
    FS.ok("rm", "/p/q*")


def a_pattern_without_a_match_is_an_error_that_names_it():
    for command in ("ls", "rm", "cat", "get", "du", "find", "head", "tail", "wc", "stat"):
        FS.fails(3, r"/p/no\*such", command, "/p/no*such")
    FS.fails(3, r"/p/no\*such", "cp", "/p/no*such", "/p/sub")
    FS.fails(3, r"/none/\*", "ls", "/none/*")
    FS.ok("rm", "-f", "/p/no*such")
    done = FS.run("cat", "/p/no*such", "/p/a.*")
    check((done.returncode, done.stdout) == (3, b"a.txt"), "the others are done")


def a_pattern_finds_its_names_among_many():
    FS.ok("mkdir", "/many")
    os.mkdir(FS.local("many"))
    for i in range(1100):  # more than a page of a listing
        with open(FS.local(f"many/n{i:04d}"), "wb"):
            pass
    FS.ok("put", "-q", "-r", FS.local("many"), "/many")
    check(len(shown("ls", "/many/many/n[0-9]*")) == 1100, "all of them")
    check(shown("ls", "/many/many/n09*7") == [f"/many/many/n09{i}7" for i in range(10)], "a few")
    check(
        shown("ls", "/many/many/n104?", "/many/many/n1099*")[-1] == "/many/many/n1099",
        "the last one, whose name is all of the prefix",
    )


# ---- cp ----


def a_copy_has_all_that_the_file_has():
    for options, data in (
        (["--record-length", "7", "--width", "2"], os.urandom(1000)),
        (["--lines"], b"one\ntwo\nthree"),
        ([], b""),
        (["--header", "4", "--record-length", "4"], b"headaaaabb"),
        (["--nodes", "lfs2,lfs0"], os.urandom(200_000)),
        (["--bevy", "2", "--record-length", "10"], bytes(95)),
    ):
        put("/from", data, *options)
        FS.ok("chmod", "0640", "/from")
        FS.ok("cp", "/from", "/to")
        one, other = FS.json("stat", "/from"), FS.json("stat", "/to")
        for name in ("records", "bytes", "format", "width", "nodes", "bevies", "mode", "attribute_bytes"):
            check(one[name] == other[name], f"{options}: {name}: {one[name]} and {other[name]}")
        check(one["id"] != other["id"] and FS.content("/to") == data, f"{options}: its bytes")
    FS.ok("rm", "/from", "/to")


def a_large_file_is_copied_by_its_lfss():
    data = os.urandom(1 << 20) * 20
    put("/large", data)
    before = FS.json("status")["daemons"]
    done = FS.json("cp", "/large", "/large.copy")
    check(done["bytes"] == len(data) and FS.content("/large.copy") == data, "all of it")
    after = FS.json("status")["daemons"]
    jobs = [
        sum(o["count"] for d in daemons for o in d["operations"] if o["name"] == "spawn") for daemons in (before, after)
    ]
    check(jobs[1] > jobs[0], f"workers did it: {jobs}")
    FS.fails(3, "exists", "cp", "-n", "/large", "/large.copy")
    FS.ok("rm", "/large", "/large.copy")


def folders_are_copied_with_all_that_is_in_them():
    FS.ok("mkdir", "-p", "/tree/sub/empty")
    FS.ok("mkdir", "-m", "0500", "/tree/sealed")
    for name in ("a", "sub/b"):
        put("/tree/" + name, name.encode() * 1000)
    FS.fails(3, "use -r", "cp", "/tree", "/tree2")
    copied = FS.json("cp", "-r", "/tree", "/tree2")
    check((copied["files"], copied["bytes"]) == (2, 6000), f"{copied}")
    one, other = shown("ls", "-R", "/tree"), shown("ls", "-R", "/tree2")
    check([n.replace("/tree", "/tree2", 1) for n in one] == other, f"{one} {other}")
    check(
        FS.json("stat", "/tree2/sealed")["mode"] == "0500" and FS.content("/tree2/sub/b") == b"sub/b" * 1000,
        "modes and bytes",
    )
    FS.ok("cp", "-r", "/tree", "/tree2")  # into it, because it is there
    check(FS.content("/tree2/tree/a") == b"a" * 1000, "into a folder")
    FS.fails(2, "into itself", "cp", "-r", "/tree", "/tree/sub")
    FS.fails(2, "itself", "cp", "/tree/a", "/tree/a")
    FS.fails(2, "itself", "cp", "/tree/a", "/tree")
    FS.fails(3, "no folder", "cp", "/tree/a", "/tree/sub/b", "/nowhere")
    FS.fails(3, "no folder", "cp", "/tree/a", "/nowhere/")
    FS.fails(2, "where to", "cp", "/tree/a")
    done = FS.run("cp", "/tree/a", "/none", "/tree/sub", "/tree2")
    check(done.returncode == 3 and done.stderr.count(b"\n") == 3, f"two of three fail: {done}")
    check(b"a" * 1000 == FS.content("/tree2/a"), "and the other is done")


def a_copy_keeps_owners_when_it_is_asked_to():
    if os.getuid() != 0:
        return
    FS.ok("chown", "-R", "12345:54321", "/tree")
    FS.ok("cp", "-r", "/tree", "/mine")
    FS.ok("cp", "-rp", "/tree", "/theirs")
    for path, owner in (
        ("/mine/a", (0, 0)),
        ("/theirs/a", (12345, 54321)),
        ("/theirs/sub", (12345, 54321)),
        ("/theirs", (12345, 54321)),
    ):
        entry = FS.json("stat", path)
        check((entry["owner"], entry["group"]) == owner, f"{path}: {entry}")
    FS.ok("rm", "-r", "/mine", "/theirs")


def links_are_entries_of_their_own():
    FS.ok("mkdir", "/links")
    FS.ok("ln", "-s", "../nowhere", "/links/l")
    FS.fails(2, "one name here.*pif cp", "ln", "/links/l", "/links/hard")
    FS.fails(3, "exists already", "ln", "-s", "x", "/links/l")
    entry = FS.json("stat", "/links/l")
    check((entry["kind"], entry["target"], entry["mode"]) == ("link", "../nowhere", "0777"), f"{entry}")
    check(b"target    ../nowhere" in FS.ok("stat", "/links/l"), "stat")
    check(b"l -> ../nowhere\n" in FS.ok("ls", "-l", "/links"), "ls -l")
    check(FS.ok("ls", "-l", "/links").splitlines()[1].startswith(b"lrwxrwxrwx"), "its letter")
    check(FS.ok("ls", "/links") == b"l\n" and FS.ok("ls", "/links/l") == b"/links/l\n", "ls")
    check("└── l -> ../nowhere" in FS.ok("tree", "/links").decode(), "tree")
    check(FS.ok("find", "/links", "-type", "l") == b"/links/l\n", "find -type l")
    check(FS.ok("find", "/links", "-type", "f") == b"", "find -type f")
    FS.fails(2, "symbolic link.*no bytes", "cat", "/links/l")
    FS.ok("cp", "-r", "/links", "/links2")
    check(FS.json("stat", "/links2/l")["target"] == "../nowhere", "a copy is a link")
    FS.ok("mv", "/links/l", "/links2/m")
    FS.ok("fsck")
    FS.ok("rm", "-r", "/links", "/links2")


def modes_have_twelve_bits():
    FS.ok("mkdir", "/bits")
    FS.ok("chmod", "2775", "/bits")
    FS.ok("chmod", "+t", "/bits")
    check(FS.json("stat", "/bits")["mode"] == "3775", "octal, then a letter")
    check(FS.ok("ls", "-ld", "/bits").splitlines()[1].startswith(b"drwxrwsr-t"), "as ls has it")
    FS.ok("rm", "-r", "/bits")


# ---- head, tail, wc ----

KINDS = (
    [],
    ["--lines"],
    ["--record-length", "7"],
    ["--record-length", "100", "--width", "2"],
    ["--delimited", "e"],
    ["--header", "5"],
)
TEXTS = (
    b"",
    b"\n",
    b"one",
    b"one\n",
    b"one\n\nthree",
    b"".join(b"line %d\n" % i for i in range(30_000)),
    b"x" * 300_000 + b"\nend",
)


def of_local(program, *words, data):
    return subprocess.run([program, *words], input=data, stdout=subprocess.PIPE, check=True).stdout


def head_tail_and_wc_say_what_the_local_ones_say():
    for kind in KINDS:
        for text in TEXTS:
            if "--header" in kind and len(text) < 5:
                continue
            put("/text", text, *kind)
            for words in (
                [],
                ["-n", "1"],
                ["-n", "0"],
                ["-n", "29999"],
                ["-c", "3"],
                ["-c", "0"],
                ["-c", "100000"],
                ["-n", "100000"],
            ):
                for program in ("head", "tail"):
                    got = FS.ok(program, *words, "/text")
                    check(
                        got == of_local(program, *words, data=text),
                        f"{program} {words} of {len(text)} bytes, {kind}: {got[:50]!r}...",
                    )
            for words in (["-l"], ["-w"], ["-c"], ["-l", "-w", "-c"], []):
                got = FS.ok("wc", *words, "/text").split()
                check(
                    got == of_local("wc", *words, data=text).split() + [b"/text"],
                    f"wc {words} of {len(text)} bytes, {kind}: {got}",
                )
    FS.ok("rm", "/text")


def ends_are_records_too():
    put("/r", b"aaaabbbbcc", "--record-length", "4")
    check(FS.ok("head", "-r", "2", "/r") == b"aaaabbbb" and FS.ok("tail", "-r", "2", "/r") == b"bbbbcc", "records")
    check(FS.ok("head", "-r", "9", "/r") == FS.ok("tail", "-r", "9", "/r") == b"aaaabbbbcc", "all there are")
    check(FS.json("wc", "-r", "/r")["files"] == [{"path": "/r", "records": 3}], "wc -r")
    check(FS.ok("head", "-c", "1", "/r", "/r") == b"==> /r <==\na\n==> /r <==\na", "names over several")
    FS.fails(2, "excludes", "head", "-n", "1", "-c", "1", "/r")
    FS.fails(2, "JSON", "tail", "--json", "/r")
    FS.fails(3, "is a folder", "wc", "/p")
    FS.ok("rm", "/r")


def tail_and_wc_read_no_more_than_they_need():
    put("/big", b"0123456789abcde\n" * (2 << 20), "--lines")

    def bytes_read():
        return sum(
            o["bytes_out"] for d in FS.json("status")["daemons"] if d["node"] != "server" for o in d["operations"]
        )

    before = bytes_read()
    env = dict(FS.env, PIF_DATA="messages")
    check(FS.ok("tail", "-n", "2", "/big", env=env) == b"0123456789abcde\n" * 2, "the last two")
    check(FS.ok("wc", "-lcr", "/big", env=env).split() == [b"2097152", b"2097152", b"33554432", b"/big"], "counts")
    check(bytes_read() - before < 1 << 20, f"{bytes_read() - before} bytes were read of 32 MiB")
    FS.ok("rm", "/big")


# ---- find, tree ----


def find_shows_what_passes_all_tests():
    FS.ok("mkdir", "-p", "/f/sub")
    put("/f/small.txt", b"s")

    def is_later():
        put("/f/sub/large.txt", bytes(20_000))
        return FS.json("stat", "/f/sub/large.txt")["modified"] > FS.json("stat", "/f/small.txt")["modified"]

    await_condition(is_later, "the server's clock, which counts seconds, goes on")
    put("/f/.hidden.txt", b"h")
    check(shown("find", "/f") == ["/f", "/f/.hidden.txt", "/f/small.txt", "/f/sub", "/f/sub/large.txt"], "all")
    check(shown("find", "/f", "-name", "*.txt", "-size", "+10k") == ["/f/sub/large.txt"], "-size +")
    check(shown("find", "/f", "-type", "d") == ["/f", "/f/sub"], "-type d")
    check(
        shown("find", "/f", "--size", "-2", "--type", "f") == ["/f/.hidden.txt", "/f/small.txt"], "two dashes, -size -"
    )
    check("/f/sub/large.txt" in shown("find", "/f", "-newer", "/f/small.txt", "-type", "f"), "-newer")
    check("/f/small.txt" not in shown("find", "/f", "-newer", "/f/small.txt"), "not newer than itself")
    check(
        FS.ok("find", "/f", "-name", "[s]mall*", "-print0") == b"/f/small.txt\0", "-print0, and a pattern in brackets"
    )
    check([e["bytes"] for e in FS.json("find", "/f", "-type", "f", "-size", "20000")["entries"]] == [20_000], "--json")
    check(FS.json("find", "/f", "-name", "none") == {"entries": []}, "nothing is a document")
    for words in (["-size", "10x"], ["-type", "x"], ["-exec", "rm"], ["-exec", "rm", "{}"]):
        check(FS.run("find", "/f", *words).returncode == 2, f"{words}")
    FS.fails(3, "/none", "find", "/none")


def find_runs_a_command_for_many_names_or_each():
    check(
        shown("find", "/f", "-type", "f", "-exec", "echo", "got", "{}", "+")
        == ["got /f/.hidden.txt /f/small.txt /f/sub/large.txt"],
        "+",
    )
    check(shown("find", "/f", "-type", "f", "-name", "s*", "-exec", "echo", "<{}>", ";") == ["</f/small.txt>"], ";")
    echoed = shown("find", "/many", "-type", "f", "-exec", "echo", "{}", "+")
    check(len(echoed) == 2 and sum(len(line.split()) for line in echoed) == 1100, f"in {len(echoed)} runs")
    elsewhere = dict(FS.env, PIF="/nowhere")
    FS.ok("find", "--pif", FS.folder, "/f", "-name", "*.txt", "-exec", "pif", "rm", "{}", "+", env=elsewhere)
    check(shown("find", "/f", "-type", "f") == [], "pif itself, on the same file system")
    FS.fails(3, "1 of 1 runs of false failed", "find", "/f", "-type", "d", "-exec", "false", "{}", "+")
    FS.fails(3, "no program", "find", "/f", "-exec", "no-such-program", "{}", "+")


def tree_draws_folders():
    FS.ok("mkdir", "-p", "/t/a/x", "/t/b")
    put("/t/a/f", b"f")
    put("/t/c", b"c")
    drawn = "/t\n├── a/\n│   ├── f\n│   └── x/\n├── b/\n└── c\n\n3 folders, 2 files\n"
    check(FS.ok("tree", "/t").decode() == drawn, FS.ok("tree", "/t").decode())
    folders = ["/t", "├── a/", "└── b/", "", "2 folders, 0 files"]
    check(shown("tree", "-L", "1", "-d", "/t") == folders, "-L -d")
    check(
        [e["path"] for e in FS.json("tree", "/t")["entries"]] == ["/t", "/t/a", "/t/a/f", "/t/a/x", "/t/b", "/t/c"],
        "--json",
    )
    FS.fails(2, "-L", "tree", "-L", "0")


# ---- append ----


def what_is_appended_goes_on_where_the_file_ends():
    for kind in ([], ["--record-length", "7"], ["--record-length", "100", "--width", "2"]):
        whole = b"begin"
        put("/log", whole, *kind)
        for more in (b"x" * 3, b"", os.urandom(200_000), b"end"):
            FS.ok("append", "-q", "-", "/log", data=more)
            whole += more
        entry = FS.json("stat", "/log")
        check(FS.content("/log") == whole and entry["bytes"] == len(whole), f"{kind}: {entry}")
    put("/log", b"one\ntwo\n", "--lines")
    with open(FS.local("more"), "wb") as file:
        file.write(b"three\n\nfive\n")
    said = FS.json("append", FS.local("more"), "/log")
    check((said["appended_bytes"], said["records"], said["bytes"]) == (12, 5, 20), f"{said}")
    check(FS.content("/log") == b"one\ntwo\nthree\n\nfive\n", "lines")
    large = b"".join(b"%d a line of some length\n" % i for i in range(500_000))
    FS.ok("append", "-", "/log", data=large)
    check(FS.content("/log") == b"one\ntwo\nthree\n\nfive\n" + large, "pieces")
    check(FS.json("stat", "/log")["records"] == 500_005, "each a record")


def a_last_record_without_its_end_is_not_appended():
    put("/log", b"one\n", "--lines")
    with open(FS.local("open"), "wb") as file:
        file.write(b"two\nthree")
    FS.fails(2, "nothing was appended", "append", FS.local("open"), "/log")
    FS.fails(2, "lacks its delimiter.*4 bytes before that are appended", "append", "-", "/log", data=b"two\nthree")
    check(FS.content("/log") == b"one\ntwo\n", "the lines before it are there")
    FS.ok("append", "--terminate", FS.local("open"), "/log")
    FS.ok("append", "--terminate", "-", "/log", data=b"four\n")
    check(FS.content("/log") == b"one\ntwo\ntwo\nthree\nfour\n", "--terminate")
    FS.fails(3, "/none", "append", FS.local("open"), "/none")
    FS.fails(3, "/p", "append", FS.local("open"), "/p")
    FS.fails(3, "No such file", "append", FS.local("nothing"), "/log")
    FS.fails(3, "is a folder", "append", FS.temp, "/log")


def what_a_stream_has_said_is_there_before_it_ends():
    put("/log", b"", "--lines")
    append = FS.start("append", "-", "/log", stdin=subprocess.PIPE)
    append.stdin.write(b"first\nsecond\nhalf of a ")
    append.stdin.flush()
    await_condition(
        lambda: FS.content("/log") == b"first\nsecond\n", "whole lines are appended while the stream is silent"
    )
    append.stdin.write(b"line\n")
    append.stdin.close()
    check(append.wait(timeout=30) == 0, "it ends well")
    append.stdout.close()
    append.stderr.close()
    check(FS.content("/log") == b"first\nsecond\nhalf of a line\n", "and the rest is there")


def appenders_at_once_lose_nothing():
    put("/bytes", b"")
    put("/lines", b"", "--lines")

    def lines_of(i):
        return b"".join(b"%d %d\n" % (i, j) for j in range(2000))

    for path in ("/bytes", "/lines"):
        running = []
        for i in range(4):
            with open(FS.local(f"from{i}"), "wb") as file:
                file.write(lines_of(i))
            running.append(FS.start("append", FS.local(f"from{i}"), path))
        for one in running:
            error = one.communicate(timeout=60)[1]
            check(one.returncode == 0, f"{error}")
        lines = FS.content(path).splitlines(keepends=True)
        for i in range(4):
            check(
                b"".join(l for l in lines if l.startswith(b"%d " % i)) == lines_of(i), f"{path}: those of {i} in order"
            )
        check(len(lines) == 8000, f"{path}: nothing else")


def fsck_is_clean():
    FS.await_clean(60)


def run_all():
    global FS
    tests = [
        patterns_match_as_in_a_shell,
        a_name_with_the_characters_of_a_pattern_is_that_name,
        a_pattern_without_a_match_is_an_error_that_names_it,
        a_pattern_finds_its_names_among_many,
        a_copy_has_all_that_the_file_has,
        a_large_file_is_copied_by_its_lfss,
        folders_are_copied_with_all_that_is_in_them,
        a_copy_keeps_owners_when_it_is_asked_to,
        links_are_entries_of_their_own,
        modes_have_twelve_bits,
        head_tail_and_wc_say_what_the_local_ones_say,
        ends_are_records_too,
        tail_and_wc_read_no_more_than_they_need,
        find_shows_what_passes_all_tests,
        find_runs_a_command_for_many_names_or_each,
        tree_draws_folders,
        what_is_appended_goes_on_where_the_file_ends,
        a_last_record_without_its_end_is_not_appended,
        what_a_stream_has_said_is_there_before_it_ends,
        appenders_at_once_lose_nothing,
        fsck_is_clean,
    ]
    with FileSystem(4) as FS:
        return main_on(FS, tests)


if __name__ == "__main__":
    sys.exit(run_all())
