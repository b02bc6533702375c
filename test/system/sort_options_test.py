"""What pif-sort makes of any options together, against GNU sort -s and head, byte for byte."""

import csv
import io
import json
import os
import random
import subprocess
import sys

from pif_system import FileSystem, check, main_on

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


# From the local files; returns that of the first one.
def leave_out_headers(files, count):
    headers = []
    for name in files:
        with open(name, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        headers.append([line.rstrip(b"\n") + b"\n" for line in lines[:count]])
        with open(name, "wb") as file:
            file.write(b"".join(lines[count:]))
    return headers[0]


def any_options_together_do_what_gnu_sort_and_head_do():
    for case in range(int(os.environ.get("PIF_SORT_CASES", "40"))):
        rnd = random.Random(case)
        files, paths = any_inputs(rnd)
        words = [*rnd.choice(KEYS), *rnd.choice(MORE)]
        header = rnd.choice((0, 0, 1, 3, 700))
        in_front = leave_out_headers(files, header)
        expected = gnu_sort(words, *files).splitlines(keepends=True)
        top = rnd.choice(FIRST)
        if top > 0:
            expected = expected[:top]
            words += ["--top", str(top)]
        expected = in_front + expected
        words += ["--header-lines", str(header)] if header > 0 else []
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


# Only the keys say what is in order: GNU sort -s has lines with equal keys as they came.
def sorted_inputs_are_merged_as_gnu_sort_does():
    for case in range(int(os.environ.get("PIF_SORT_CASES", "15"))):
        rnd = random.Random(1000 + case)
        files, paths = any_inputs(rnd, cut=False)
        way = [*rnd.choice(KEYS), *rnd.choice(MORE)]
        for name, path in zip(files, paths):
            data = gnu_sort(way, name)
            with open(name, "wb") as file:
                file.write(data)
            FS.ok("put", "-q", "--lines", *any_width(rnd), name, path)
        words = [*way, *HOW[case % len(HOW)], *any_width(rnd)[:2], "--bevy", "0"]
        words += ["--merge", rnd.choice(["split", "split", "token", "pipelined"])]
        FS.ok("sort", "-q", "-m", *words, *paths, "/out")
        check(FS.ok("cat", "/out") == gnu_sort(["-m", *way], *files), f"case {case}: {words}")


def what_is_not_in_order_is_sorted_all_the_same_and_no_record_is_lost():
    for case in range(int(os.environ.get("PIF_SORT_CASES", "10"))):
        rnd = random.Random(2000 + case)
        files, paths = any_inputs(rnd)
        way = [*rnd.choice(KEYS), *rnd.choice(MORE)]
        FS.ok("sort", "-q", "-m", *way, *HOW[case % len(HOW)], *paths, "/out")
        check(FS.ok("cat", "/out") == gnu_sort(way, *files), f"case {case}: {way}")


def header_lines_stay_where_they_are():
    FS.ok("put", "-q", "--lines", "-", "/headed", data=b"name\nc\na\nb")
    FS.ok("put", "-q", "--lines", "-", "/other", data=b"name\nd\n")
    FS.ok("sort", "--header-lines", "1", "/headed", "/other", "/out")
    check(FS.ok("cat", "/out") == b"name\na\nb\nc\nd\n", "of two inputs")
    for code, words in ((0, ["--header-lines", "1"]), (1, [])):
        check(FS.run("sort", "-c", *words, "/out").returncode == code, f"-c {words}")
    check(json.loads(FS.run("sort", "-c", "--json", "--header-lines", "1", "/headed").stdout)["results"]
          == {"sorted": False, "records_checked": 3, "first_out_of_order": 2}, "-c counts from the beginning")
    FS.ok("sort", "--header-lines", "9", "/headed", "/out")
    check(FS.ok("cat", "/out") == b"name\nc\na\nb\n", "all of it is header")
    check(FS.ok("sort", "--header-lines", "1", "-r", "--top", "1", "-", "-", data=b"n\n1\n3\n2\n") == b"n\n3\n", "")
    FS.ok("put", "-q", "--lines", "-", "/wide", data=b"x" * (9 << 20) + b"\na\n")
    FS.fails(3, "header records have more than", "sort", "--header-lines", "1", "/wide", "/out2")
    FS.fails(2, "needs --merge split", "sort", "--header-lines", "2", "--merge", "token", "-", "-", data=b"")
    lines = b"".join(b"%07d\n" % number for number in range(10_000_000))  # 80 MB: the workers check it
    FS.ok("put", "-q", "--lines", "-", "/long", data=b"z\n" + lines)
    check(FS.run("sort", "-c", "-q", "/long").returncode == 1, "the header is not in order")
    check(FS.run("sort", "-c", "-q", "--header-lines", "1", "/long").returncode == 0, "and is left out by the workers")
    FS.ok("rm", "/long", "/wide")


def csv_of(rows, end):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue().encode()


def tables_are_sorted_by_their_columns():
    keys = {  # as Python has them
        "name": lambda row: row[0].encode(),
        "1": lambda row: row[0].encode(),
        "price:n": lambda row: int(row[1] or 0),
        "2,2n": lambda row: int(row[1] or 0),
        "the \"note\":r": lambda row: bytes(255 - byte for byte in row[2].encode()) + b"\xff" * 9,
    }
    for case in range(12):
        rnd = random.Random(3000 + case)
        end, text = rnd.choice(["\n", "\r\n"]), ["a", "B", ",", '"', "\n", " ", "x\r\ny"]
        header = ["name", "price", 'the "note"']
        some = lambda: "".join(rnd.choices(text, k=rnd.randrange(5)))  # noqa: E731
        rows = [[some(), rnd.choice(["", str(rnd.randrange(-9, 99))]), some()] for _ in range(rnd.choice([0, 5, 900]))]
        data = csv_of([header, *rows], end)
        FS.ok("put", "-q", "--csv", *any_width(rnd), "-", "/table", data=data)
        check(FS.ok("cat", "/table") == data, f"case {case}: byte for byte what went in")
        check(FS.json("stat", "/table")["records"] == len(rows), f"case {case}: records")
        key = rnd.choice(list(keys))
        expected = csv_of([header, *sorted(rows, key=keys[key])], end)
        FS.ok("sort", "-q", "--csv", "-k", key, *HOW[case % len(HOW)], "/table", "/out")
        check(FS.ok("cat", "/out") == expected, f"case {case}: {key}")
        check(FS.ok("sort", "-q", "--csv", "-k", key, "/out", "-") == expected, f"case {case}: to a stream")
        check(FS.run("sort", "-c", "-q", "--csv", "-k", key, "/out").returncode == 0, f"case {case}: -c")
    FS.ok("put", "-q", "--csv", "-", "/semi", data=b"a;b\n2;x\n1;y")
    FS.ok("sort", "-q", "--csv", "-t", ";", "-k", "a:n", "/semi", "/out")
    check(FS.ok("cat", "/out") == b"a;b\n1;y\n2;x\n", "another separator, and an end for the last line")
    FS.fails(2, "one column", "sort", "--csv", "-k", "1,2", "/table", "/out2")
    FS.fails(2, "a number is needed", "sort", "--csv", "-k", "nothing", "/table", "/out2")
    FS.fails(2, "other columns", "sort", "--csv", "/table", "/semi", "/out2")
    FS.ok("put", "-q", "--lines", "-", "/lines", data=b"a\n")
    FS.fails(2, "no line of column names", "sort", "--csv", "/lines", "/out2")
    FS.fails(3, "is not closed", "put", "--csv", "-", "/out2", data=b'a\n"b\n')
    FS.fails(3, "does not begin with a line of column names", "put", "--csv", "-", "/out2", data=b"")


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        return main_on(
            FS,
            [
                any_options_together_do_what_gnu_sort_and_head_do,
                the_first_of_records_are_found_in_memory_and_from_scratch_files,
                the_first_ones_go_to_a_stream_and_need_the_split_merge,
                header_lines_stay_where_they_are,
                tables_are_sorted_by_their_columns,
                sorted_inputs_are_merged_as_gnu_sort_does,
                what_is_not_in_order_is_sorted_all_the_same_and_no_record_is_lost,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
