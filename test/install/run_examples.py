"""run_examples.py BUILT EXAMPLES: runs every program of the folder EXAMPLES, built in BUILT, on a file system of its
own."""

import collections
import json
import os
import struct
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))
from pif_system import FileSystem, check, main  # after its folder is known

BUILT, EXAMPLES = sys.argv[1:]
FS = None
NAMES = ["red", "green", "blue", "sunflower", "x"]
LOG = [f"{NAMES[i * i % 5 if i % 3 else 0]} {(i * 7919) % 1000 / 8} line {i}\n" for i in range(1000)]


def tool(name, *words, code=0):
    done = FS.run("run", os.path.join(BUILT, name), *words)
    check(done.returncode == code, f"{name} {words}: {done}")
    return done.stdout


def noop_starts_workers():
    tool("noop")


def upper_case_makes_capitals():
    tool("upper_case", "/text", "/capitals")
    check(FS.content("/capitals") == b"ONE\nTWO \xc3\xa4\nTHREE\n", "capitals")


def reverse_turns_the_order():
    tool("reverse", "/text", "/reversed")
    check(FS.content("/reversed") == b"three\ntwo \xc3\xa4\none\n", "the last line first")


def count_says_what_it_found():
    check(tool("count", "/text", code=1) == b"1\n", "for people")
    check(
        json.loads(tool("count", "--json", "/text", code=1))["results"] == {"records_not_ascii": 1}, "and in the report"
    )
    tool("count", "/ascii")


def top_k_finds_the_largest():
    rows = sorted(LOG, key=lambda row: (-float(row.split()[1]), LOG.index(row)))
    check(
        tool("top_k", "-k", "7", "--field", "2", "/log").decode() == "".join(rows[:7]), "the seven largest of all LFSs"
    )
    check(
        json.loads(tool("top_k", "--json", "-k", "1000", "--field", "2", "/log"))["results"] == {"records": len(LOG)},
        "all",
    )
    check(
        tool("top_k", "--field", "2", "/fixed") == b"c 9 \na 5 \n",
        "records without a delimiter; one has no number there",
    )


def group_by_counts_each_value():
    counts = collections.Counter(row.split()[0] for row in LOG)
    most = "".join(f"{count}\t{name}\n" for count, name in sorted(((c, n) for n, c in counts.items()), reverse=True))
    buckets = collections.Counter(count.bit_length() - 1 for count in counts.values())
    histogram = "".join(f"{1 << i}+\t{n}\t{'#' * n.bit_length()}\n" for i, n in sorted(buckets.items()))
    check(tool("group_by", "/log").decode() == f"{most}\ntimes\tvalues\n{histogram}", "counts and histogram")


def sample_takes_every_nth_record():
    for width in ("1", "2"):
        tool("sample", "--every", "7", "--width", width, "/log", "/some")
        check(FS.content("/some").decode() == "".join(LOG[::7]), f"width {width}")
    tool("sample", "--every", "2", "/fixed", "/half")
    check(FS.content("/half") == b"a 5 c 9 ", "records of one length")
    FS.ok("put", "--record-length", "4", "-", "/short", data=b"a 5 xyz c 9 d")
    for words in ([], ["--route", "tcp"]):
        tool("sample", "--every", "3", *words, "/short", "/third")
        check(FS.content("/third") == b"a 5 d", f"a shorter last record: {words}")


def pagerank_ranks_nodes():
    links = [((i * 7919) % 50, (i * i + 3) % 60) for i in range(400)]
    FS.ok("put", "--record-length", "8", "-", "/links", data=b"".join(struct.pack("<II", *link) for link in links))
    count = 1 + max(map(max, links))
    degrees = collections.Counter(link[0] for link in links)
    ranks = [1 / count] * count
    for _ in range(20):
        rest = sum(ranks[node] for node in range(count) if node not in degrees)
        sums = [0.0] * count
        for begin, end in links:
            sums[end] += ranks[begin] / degrees[begin]
        ranks = [(1 - 0.85 + 0.85 * rest) / count + 0.85 * total for total in sums]
    best = sorted(range(count), key=lambda node: (-ranks[node], node))[:10]
    found = [line.split("\t") for line in tool("pagerank", "/links").decode().splitlines()]
    check([rank for _, rank in found] == [f"{ranks[node]:.6f}" for node in best], f"ranks: {found}")
    check(len({node for node, _ in found}) == 10, "nodes")


def threads_read_a_file_together():
    for threads in ("1", "3", "7"):
        done = subprocess.run(
            [os.path.join(BUILT, "parallel_threads"), FS.folder, "/fixed", threads], stdout=subprocess.PIPE, check=True
        )
        check(done.stdout == b"97\t1\n99\t1\n120\t1\n", f"{threads} threads: {done}")


def processes_write_a_file_together():
    for processes in (1, 5):
        subprocess.run(
            [os.path.join(BUILT, "parallel_processes"), FS.folder, "/together", str(processes)], check=True
        )
        lines = [f"member {i:8}, round {r:8}\n" for r in range(100) for i in range(processes)]
        check(FS.content("/together").decode() == "".join(lines), f"{processes} processes")


def records_in_c_says_how_long_they_are():
    for name, lengths in (("/log", [len(row) for row in LOG]), ("/fixed", [4, 4, 4])):
        done = subprocess.run([os.path.join(BUILT, "records"), FS.folder, name], stdout=subprocess.PIPE, check=True)
        check(done.stdout.decode() == "".join(f"{i}\t{length}\n" for i, length in enumerate(lengths)), name)
    missing = subprocess.run(
        [os.path.join(BUILT, "records"), FS.folder, "/none"], stderr=subprocess.DEVNULL, check=False
    )
    check(missing.returncode == 3, "no file")


def a_file_has_forks_as_galley_has_them():
    program = os.path.join(BUILT, "galley_forks")
    done = subprocess.run([program, FS.folder, "/field"], stdout=subprocess.PIPE, check=True)
    forks = {"0/keys": 16, "0/left": 24, "0/right": 24, "1/keys": 24, "1/left": 36, "2/keys": 32}
    expected = "".join(f"{name}\t{size}\n" for name, size in forks.items()) + "0.00000\n0.00001\n"
    check(done.stdout.decode() == expected, f"{done}")
    check(FS.content("/field/1/left") == b"1.000000000\n1.000000001\n1.000000002\n", "a fork by its path")


def programs_in_c_make_and_read_a_file():
    for name in ("in_c", "in_c_by_pkg_config"):
        done = subprocess.run(
            [os.path.join(BUILT, name), FS.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False
        )
        check(done.returncode == 0 and done.stdout == b"3 records, mode 0600\n", f"{name}: {done}")


def every_example_was_run():
    run = {"noop", "upper_case", "reverse", "count", "top_k", "group_by", "sample", "records"}
    run |= {"pagerank", "parallel_threads", "parallel_processes", "galley_forks"}
    check({os.path.splitext(name)[0] for name in os.listdir(EXAMPLES)} == run, f"{os.listdir(EXAMPLES)}")


if __name__ == "__main__":
    with FileSystem(3, ["--insecure-loopback"]) as FS:
        FS.ok("put", "--lines", "-", "/text", data=b"one\ntwo \xc3\xa4\nthree\n")
        FS.ok("put", "--lines", "-", "/ascii", data=b"one\n")
        FS.ok("put", "--lines", "-", "/log", data="".join(LOG).encode())
        FS.ok("put", "--record-length", "4", "-", "/fixed", data=b"a 5 xyz c 9 ")
        sys.exit(
            main(
                [
                    top_k_finds_the_largest,
                    group_by_counts_each_value,
                    sample_takes_every_nth_record,
                    pagerank_ranks_nodes,
                    records_in_c_says_how_long_they_are,
                    a_file_has_forks_as_galley_has_them,
                    threads_read_a_file_together,
                    processes_write_a_file_together,
                    noop_starts_workers,
                    upper_case_makes_capitals,
                    reverse_turns_the_order,
                    count_says_what_it_found,
                    programs_in_c_make_and_read_a_file,
                    every_example_was_run,
                ]
            )
        )
