#!/usr/bin/env python3
"""What crosses the links between hosts, and how fast tools are that need them (scripts/long runs both).

  test/hosts/links.py bytes [--size MB]           sort and transpose on 4 hosts: the same bytes as on one host, and at
                                                  most twice the file crosses; times beside those on one host
  test/hosts/links.py speed [--hosts 1,2,4,8] [--size MB]
                                                  put, get, copy, sort and transpose over links of 50 MB/s, so many MB
                                                  for each host; at least 0.8 of the links for the first three at 4

Exit code: 0, 1 if something does not hold, 77 if this machine cannot have hosts (it says why).
"""

import argparse
import math
import random
import sys

from several import Failure, System, check, text, timed, why_not  # isort: skip

MB = 1_000_000
LINK = 50 * MB  # bytes a second, in either direction
SHARE_MIN = 0.8  # of the links of 4 hosts, for put, get and copy
CROSSED_MAX = 2.0  # times the file
WIDE = 8192  # columns of a matrix that has far fewer rows, or more
RECORD = 100  # bytes of those that are sorted
ROW = 8192  # bytes of the rows of a matrix
WHOLE = RECORD * ROW  # bytes; files of a multiple are whole records of either length

SORT = ["sort", "-q", "-k", "0:10"]
TRANSPOSE = ["transpose", "-q", "--element-bits", "8", "--columns"]


def tools(size):
    """What both file systems are asked: a name, the words before the paths, what it reads."""
    transpose = [*TRANSPOSE, str(side_of(size))]
    return (
        ("sort", SORT, "/records"),
        ("sort of lines", ["sort", "-q"], "/lines"),
        ("sort by token", [*SORT, "--merge", "token"], "/records"),
        ("transpose", transpose, "/matrix"),
        ("recursive transpose", [*transpose, "--algorithm", "recursive"], "/matrix"),
        ("recursive transpose of a wide one", [*TRANSPOSE, str(WIDE), "--algorithm", "recursive"], "/wide"),
    )


def side_of(size):
    """Of a square of so many bytes."""
    return max(8, math.isqrt(size))


def fill(fs, client, size):
    """Three files of about that size and one of a quarter of it, the same in each file system."""
    draw = random.Random(1)
    block = draw.randbytes(RECORD * 10_000)
    lines = b"".join(b"%x\n" % draw.getrandbits(8 * draw.randrange(1, 60)) for _ in range(20_000))
    fs.ok(client, "put", "-q", "--record-length", str(RECORD), "-", "/records", data=varied(block, size, RECORD))
    fs.ok(client, "put", "-q", "--lines", "-", "/lines", data=lines * max(1, size // len(lines)))
    side = side_of(size)
    rows = b"".join(draw.randbytes(side) for _ in range(side))
    fs.ok(client, "put", "-q", "--record-length", str(side), "-", "/matrix", data=rows)
    wide = rows[: max(8, len(rows) // WIDE // 4) * WIDE]
    fs.ok(client, "put", "-q", "--record-length", str(WIDE), "-", "/wide", data=wide)


def varied(block, size, step):
    """The block again and again, each time with its first bytes moved on, so that records differ."""
    count = max(1, size // len(block))
    return b"".join(block[i * 7 % step :] + block[: i * 7 % step] for i in range(count))


def digest(fs, client, path):
    return text(fs.host(client).ok("sh", "-c", f"pif cat {path} | sha256sum")).split()[0]


def bytes_crossed(fs):
    """What all hosts have sent so far."""
    return sum(host.sent_bytes() for host in fs.hosts)


def outcomes(fs, client, size, options=()):
    """Of each tool: seconds, bytes that left a host in shares of the file's, and the digest of its output."""
    found = {}
    for name, words, path in tools(size):
        before = bytes_crossed(fs)
        seconds, _ = timed(fs.ok, client, *words, *options, path, "/out", timeout=600)
        crossed = (bytes_crossed(fs) - before) / fs.json(client, "stat", path)["bytes"]
        found[name] = (seconds, crossed, digest(fs, client, "/out"))
        fs.ok(client, "rm", "/out")
    return found


def count_bytes(options):
    size = options.size * MB
    with System(1, lfss_per_host=4, disk="6G", seconds=1800) as fs:
        fill(fs, "h1", size)
        near = outcomes(fs, "h1", size)
        over_tcp = outcomes(fs, "h1", size, ["--route", "tcp"])
    with System(4, clients=1, disk="4G", seconds=1800) as fs:
        fill(fs, "h5", size)
        far = outcomes(fs, "h5", size)
    wrong = []
    print(f"files of {options.size} MB:")
    for name, (seconds, crossed, result) in far.items():
        beside = f"one host {near[name][0]:.2f} s, over tcp {over_tcp[name][0]:.2f} s"
        print(f"{name}: 4 hosts {seconds:.2f} s, {beside}; {crossed:.2f} of the file crossed")
        if not result == near[name][2] == over_tcp[name][2]:
            wrong.append(f"{name} gives other bytes on 4 hosts than on one")
        if crossed > CROSSED_MAX:
            wrong.append(f"{name}: {crossed:.2f} times the file crossed")
    check(not wrong, "; ".join(wrong))


def speed_of(fs, count, size):
    """(name, seconds) of each tool, with `count` hosts and a client of its own. The copy has every record elsewhere."""
    client = f"h{count + 1}"
    rest = ",".join(f"lfs{(i + 1) % count}" for i in range(count))
    commands = (
        ("put", ["put", "-q", "--record-length", str(RECORD), "/srv/file", "/records"]),
        ("get", ["get", "-q", "/records", "/srv/back"]),
        ("copy", ["copy", "-q", "--nodes", rest, "/records", "/copy"]),
        ("sort", [*SORT, "/records", "/sorted"]),
        ("put a matrix", ["put", "-q", "--record-length", str(ROW), "/srv/file", "/matrix"]),
        ("transpose", [*TRANSPOSE, str(ROW), "/matrix", "/turned"]),
    )
    fs.host(client).ok("sh", "-c", f"head -c {size} /dev/urandom >/srv/file")
    for name, words in commands:
        seconds, _ = timed(fs.ok, client, *words, timeout=600)
        yield name, seconds
        if name == "get":
            fs.host(client).ok("cmp", "/srv/file", "/srv/back")
    fs.ok(client, "get", "-q", "/copy", "/srv/back")
    fs.host(client).ok("cmp", "/srv/file", "/srv/back")


def speed(options):
    wrong = []
    for count in [int(word) for word in options.hosts.split(",")]:
        size = count * options.size * MB // WHOLE * WHOLE
        with System(count, clients=1, disk="6G", seconds=1800) as fs:
            for host in fs.hosts.all[:count]:
                host.limit("50mbps")
            for name, seconds in speed_of(fs, count, size):
                share = size / seconds / (count * LINK)
                rate = f"{size / seconds / MB:.0f} MB/s, {share:.2f} of the links"
                print(f"{name} with {count} hosts: {rate}", flush=True)
                if name in ("put", "get", "copy") and count == 4 and share < SHARE_MIN:
                    wrong.append(f"{name} with 4 hosts: {share:.2f} of the links")
    check(not wrong, "; ".join(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="bytes or speed")
    for name, function in (("bytes", count_bytes), ("speed", speed)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--size", type=int, default=268 if function is count_bytes else 100)
    commands.choices["speed"].add_argument("--hosts", default="1,2,4,8")
    options = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return 77
    try:
        options.function(options)
    except Failure as failure:
        print(f"FAIL  {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
