"""What pif-sort makes of any options together, against GNU sort -s and head, byte for byte."""

import os
import random
import subprocess
import sys

from pif_system import FileSystem, check, main

FS = None
C_LOCALE = dict(os.environ, LC_ALL="C")
KEYS = ([], [], ["-k", "2,2"], ["-k", "2,2n"], ["-t", ",", "-k", "2.2,2r", "-k", "1,1"], ["-k", "2g"], ["-f"], ["-V"])
MORE = ([], ["-r"], ["-u"], ["-r", "-u"], ["-s"])
HOW = ([], ["--threads", "1"], ["--threads", "12"], ["--memory", "32M"], ["--route", "tcp"])
FIRST = (0, 0, 1, 2, 10, 299, 100_000)  # --top; 0: all


def gnu_sort(words, *files):
    return subprocess.run(["sort", "-s", *words, *files], env=C_LOCALE, stdout=subprocess.PIPE, check=True).stdout


def some_lines(rnd):
    in_front = rnd.choice(["", "", "2026-11-27 ", "a" * 300])
    kinds = rnd.choice([3, 30, 1000])
    lines = [
        in_front + rnd.choice("abAB") + rnd.choice([" ", ",", ", ", "\0"]) + str(rnd.randrange(kinds))
        for _ in range(rnd.choice([0, 1, 40, 600, 3000]))
    ]
    return [line.encode() + b"\n" for line in lines]


def any_width(rnd):
    return rnd.choice([["--width", str(rnd.randrange(1, 5)), "--bevy", "0"], ["--width", "4", "--bevy", "2"]])


# Local files, and copies of them in the file system. cut: the last line may lack its end.
def any_inputs(rnd, cut=True):
    files, paths = [], []
    for i in range(rnd.choice([1, 1, 2, 4])):
        data = b"".join(some_lines(rnd))
        files.append(FS.local(f"in{i}"))
        paths.append(f"/in{i}")
        with open(files[-1], "wb") as file:
            file.write(data[:-1] if cut and rnd.random() < 0.3 else data)
        FS.ok("put", "-q", "--lines", *any_width(rnd), files[-1], paths[-1])
    return files, paths


def any_options_together_do_what_gnu_sort_and_head_do():
    for case in range(int(os.environ.get("PIF_SORT_CASES", "60"))):
        rnd = random.Random(case)
        files, paths = any_inputs(rnd)
        words = [*rnd.choice(KEYS), *rnd.choice(MORE)]
        expected = gnu_sort(words, *files).splitlines(keepends=True)
        top = rnd.choice(FIRST)
        if top > 0:
            expected = expected[:top]
            words += ["--top", str(top)]
        words += [*HOW[case % len(HOW)], *any_width(rnd)]
        FS.ok("sort", "-q", *words, *paths, "/out")
        check(FS.ok("cat", "/out") == b"".join(expected), f"case {case}: {words}")


def the_first_of_records_are_found_in_memory_and_from_scratch_files():
    rnd = random.Random(1)
    records = [rnd.randbytes(4) + b"%08d" % (i % 1000) + rnd.randbytes(88) for i in range(400_000)]  # 40 MB
    FS.ok("put", "-q", "--record-length", "100", "-", "/large", data=b"".join(records))
    in_order = sorted(records, key=lambda record: record[4:12])
    for way in ([], ["--memory", "32M"], ["--memory", "32M", "--route", "tcp"], ["--route", "tcp"]):
        for top in (1, 777, 30_000):
            FS.ok("sort", "-q", *way, "-k", "4:8", "--top", str(top), "/large", "/out")
            check(FS.ok("cat", "/out") == b"".join(in_order[:top]), f"{way} {top}")
        FS.ok("sort", "-q", *way, "-u", "-k", "4:8", "--top", "777", "/large", "/out")
        check(FS.ok("cat", "/out") == b"".join(in_order[::400][:777]), f"{way} -u")
    FS.ok("rm", "/large", "/out")


def the_first_ones_go_to_a_stream_and_need_the_split_merge():
    check(FS.ok("sort", "--top", "2", "-", "-", data=b"c\na\nb") == b"a\nb\n", "to a stream")
    FS.fails(2, "needs --merge split", "sort", "--top", "2", "--merge", "token", "-", "-", data=b"")
    FS.fails(2, "--top", "sort", "--top", "0", "-", "-", data=b"")


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        code = main(
            [
                any_options_together_do_what_gnu_sort_and_head_do,
                the_first_of_records_are_found_in_memory_and_from_scratch_files,
                the_first_ones_go_to_a_stream_and_need_the_split_merge,
            ],
            sys.argv[1:],
        )
        if code:
            FS.show_logs()
    return code


if __name__ == "__main__":
    sys.exit(run_all())
