"""pif-sort of several files, local ones and streams among them, against GNU sort -s, byte for byte."""

import os
import random
import signal
import subprocess
import sys

from pif_system import FileSystem, await_condition, check, main_on

FS = None
C_LOCALE = dict(os.environ, LC_ALL="C")
MERGES = ([], [], ["--merge", "token"], ["--merge", "pipelined"], ["--memory", "32M"], ["--route", "tcp"])
WAYS = ([], ["-u"], ["-r"], ["-k", "2,2n"], ["-u", "-k", "2,2"], ["-t", ",", "-k", "2.2,2", "-r"], ["-fu"])


def gnu_sort(words, *files):
    return subprocess.run(["sort", "-s", *words, *files], env=C_LOCALE, stdout=subprocess.PIPE, check=True).stdout


def some_text(rnd):
    lines = [rnd.choice("abAB") + rnd.choice([" ", ","]) + str(rnd.randrange(30)) for _ in range(rnd.randrange(300))]
    return "".join(line + "\n" for line in lines)[: -1 if rnd.random() < 0.3 else None].encode()


def local_file(name, data):
    path = FS.local(name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def several_inputs_are_sorted_as_gnu_sort_does():
    rnd = random.Random(3)
    for case in range(18):
        files, paths = [], []
        for i in range(rnd.choice([1, 2, 3, 6])):
            files.append(local_file(f"in{i}", some_text(rnd)))
            paths.append(f"/in{i}")
            FS.ok("put", "-q", "--lines", "--width", str(rnd.randrange(1, 5)), files[-1], paths[-1])
        if rnd.random() < 0.3:
            files.append(files[0])
            paths.append(paths[0])
        words = [*MERGES[case % len(MERGES)], "--width", str(rnd.randrange(1, 5))]
        way = rnd.choice(WAYS)
        to = rnd.choice([[*paths, "/out"], ["-o", "/out", *paths], [*paths, "-o/out"]])
        FS.ok("sort", "-q", *words, *way, *to)
        check(FS.ok("cat", "/out") == gnu_sort(way, *files), f"{words} {way} of {len(files)} files")


def one_of_the_inputs_may_be_the_output():
    for name, text in (("a", b"c\na"), ("b", b"b\n")):
        FS.ok("put", "-q", "--lines", "-", f"/{name}", data=text)
    FS.ok("sort", "/a", "/b", "-o", "/b")
    check(FS.ok("cat", "/b") == b"a\nb\nc\n", "sorted")


def what_cannot_be_sorted_together_is_said():
    FS.ok("put", "-q", "--lines", "-", "/lines", data=b"a\n")
    FS.ok("put", "-q", "--record-length", "2", "-", "/fixed", data=b"a\n")
    FS.fails(2, "/fixed has other records than /lines", "sort", "/lines", "/fixed", "/out2")
    FS.fails(2, "is needed behind what is sorted", "sort", "/lines")
    FS.fails(2, "looks at one file", "sort", "-c", "/lines", "/lines")
    FS.fails(3, "/out2", "stat", "/out2")


def local_files_and_streams_are_sorted_as_gnu_sort_does():
    rnd = random.Random(4)
    for _ in range(8):
        files = [local_file(f"in{i}", some_text(rnd)) for i in range(3)]
        FS.ok("put", "-q", "--lines", files[2], "/in2")
        with open(files[1], "rb") as stdin:
            data = stdin.read()
        way = rnd.choice(WAYS)
        expected = gnu_sort(way, *files)
        inputs = ["in0", "-", rnd.choice(["/in2", "pif:/in2", "file:" + files[2]])]
        check(FS.ok("sort", *way, *inputs, "-", data=data, cwd=FS.temp) == expected, f"{way} to a stream")
        FS.ok("sort", *way, *inputs, "-o", "out", data=data, cwd=FS.temp)
        with open(FS.local("out"), "rb") as out:
            check(out.read() == expected, f"{way} to a local file")
        FS.ok("sort", *way, *inputs, "/out", data=data, cwd=FS.temp)
        check(FS.ok("cat", "/out") == expected, f"{way} into the file system")
    check(FS.ok("sort", "-z", "-", "-", data=b"b\0a\nc\0") == b"a\nc\0b\0", "records that end in a zero byte")
    check(FS.ok("sort", "-u", "-", "-") == b"", "nothing")
    FS.ok("put", "-q", "--lines", "--header", "5", "-", "/headed", data=b"head\nb\na\n")
    check(FS.ok("sort", "/headed", "-") == b"head\na\nb\n", "the header that was kept comes first")
    check(FS.run("sort", "-c", "-", data=b"b\na\n").returncode == 1, "a check of a stream")
    check(FS.json("status")["pending"] == 0, "what was read in is gone")


def a_local_output_is_whole_or_as_it_was():
    out = local_file("kept", b"before")
    FS.fails(3, "there is no /nothing", "sort", "/nothing", "-o", "file:" + out)
    FS.fails(3, "exists already", "sort", "--no-clobber", "-", "-o", "file:" + out, data=b"b\na\n")
    FS.fails(3, "cannot make a file in", "sort", "-", "-o", "file:/nowhere/out", data=b"b\na\n")
    FS.fails(3, "cannot read missing", "sort", "missing", "/never")
    FS.fails(2, "cannot bear", "sort", "--json", "-", "-", data=b"b\na\n")
    FS.fails(2, "in the file system", "sort", "--width", "2", "-", "-", data=b"b\na\n")
    with open(out, "rb") as file:
        check(file.read() == b"before", "it is as it was")


def of_a_sort_that_is_killed_nothing_is_left():
    for name in FS.ok("ls", "/").split():
        FS.ok("rm", "/" + name.decode())
    lines = b"".join(b"%07d\n" % (i * 7919 % 1000003) for i in range(500_000))
    words = ("sort", "-q", "-", "-")
    reading = FS.start(*words, stdin=subprocess.PIPE)
    reading.stdin.write(lines)
    reading.stdin.flush()
    await_condition(lambda: FS.json("status")["pending"] == 1, "it reads")
    writing, broken = FS.start(*words, stdin=subprocess.PIPE), FS.start(*words, stdin=subprocess.PIPE)
    for sort in (writing, broken):
        sort.stdin.write(lines)
        sort.stdin.close()
        check(sort.stdout.read(8) == b"0000000\n", "it writes")
    broken.stdout.close()
    check(broken.wait(timeout=60) == -signal.SIGPIPE, "it ends as sort(1) does")
    for sort in (reading, writing):
        sort.kill()
        sort.wait(timeout=60)
    FS.await_clean()  # what a client was making is given up 30 s after its end
    check(FS.ok("ls", "/") == b"" and FS.json("status")["pending"] == 0, "nothing is left")


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        return main_on(
            FS,
            [
                several_inputs_are_sorted_as_gnu_sort_does,
                one_of_the_inputs_may_be_the_output,
                what_cannot_be_sorted_together_is_said,
                local_files_and_streams_are_sorted_as_gnu_sort_does,
                a_local_output_is_whole_or_as_it_was,
                of_a_sort_that_is_killed_nothing_is_left,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
