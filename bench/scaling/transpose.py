"""pif-transpose of a square of bits on p disks of a fixed speed."""

import os

import sort
from pif_system import check

CHECKS = 20_000  # elements of an output that are looked at


def make_source(path, side):
    """Random bits at `path`, `side` rows of as many."""
    with open(path, "wb") as file:
        for _ in range(side):
            file.write(os.urandom(side // 8))


def transpose_once(system, options, side, speed):
    command = [sort.program("pif-transpose"), "-q", "--columns", str(side), *options, "/matrix", "/transposed"]
    return sort.run_cold(system, command, side * side // 8, speed)


def bit_at(file, side, row, column):
    return os.pread(file, 1, (row * side + column) // 8)[0] >> (7 - column % 8) & 1


def check_transposed(system, source, result, side, rnd):
    system.ok("get", "-q", "/transposed", result, timeout=1800)
    with open(source, "rb") as before, open(result, "rb") as after:
        for _ in range(CHECKS):
            row, column = rnd.randrange(side), rnd.randrange(side)
            check(
                bit_at(before.fileno(), side, row, column) == bit_at(after.fileno(), side, column, row),
                f"element {column}, {row} of the output is wrong",
            )
    os.unlink(result)
    system.ok("rm", "/transposed")
    system.settle()


def measure(disks, where, source, side, speed, ways, rnd):
    """{way: what was measured} on these disks. ways: {name: options}."""
    found = {}
    for disk in disks:
        disk.hold_to(0)
    with sort.SortSystem(disks, where) as system:
        system.ok("put", "-q", "--record-length", str(side // 8), source, "/matrix", timeout=1800)
        for way, options in ways.items():
            found[way] = transpose_once(system, options, side, speed)
            check(found[way], f"pif-transpose does not know {options}")
            check_transposed(system, source, os.path.join(where, "transposed"), side, rnd)
    return found


def sides(size):
    """Bits on a side of a square of about so many bytes, whole lines of a cache to each row."""
    return int((size * 8) ** 0.5) // 512 * 512
