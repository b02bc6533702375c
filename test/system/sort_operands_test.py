"""pif-sort of several files against GNU sort -s, byte for byte."""

import os
import random
import subprocess
import sys

from pif_system import FileSystem, check, main

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


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        code = main(
            [
                several_inputs_are_sorted_as_gnu_sort_does,
                one_of_the_inputs_may_be_the_output,
                what_cannot_be_sorted_together_is_said,
            ],
            sys.argv[1:],
        )
        if code:
            FS.show_logs()
    return code


if __name__ == "__main__":
    sys.exit(run_all())
