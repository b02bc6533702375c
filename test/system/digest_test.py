"""pif digest and pif cmp: of files in many layouts, beside what Python says of the records."""

import json
import random
import sys

from pif_system import FileSystem, check, main_on

FS = None


def put(name, data, *words):
    FS.ok("put", "-q", *words, "-", name, data=data)


def digest(name):
    return FS.ok("digest", name).split()[0]


def text(rnd, count):
    return [bytes(rnd.randrange(32, 127) for _ in range(rnd.randrange(12))) + b"\n" for _ in range(count)]


def a_digest_is_of_records_and_their_order():
    rnd = random.Random(1)
    lines = text(rnd, 9000)
    put("/a", b"".join(lines), "--lines", "--width", "3")
    put("/b", b"".join(lines), "--lines", "--width", "1")
    put("/c", b"".join(lines), "--lines", "--width", "4", "--bevy", "2")
    check(digest("/a") == digest("/b") == digest("/c"), "of any layout")
    i, k = lines.index(b"\n"), next(i for i, line in enumerate(lines) if line != b"\n")
    lines[i], lines[k] = lines[k], lines[i]
    put("/swapped", b"".join(lines), "--lines")
    check(digest("/swapped") != digest("/a"), "the order counts")
    put("/empty", b"", "--lines")
    put("/one", b"\n", "--lines")
    check(len({digest("/empty"), digest("/one"), digest("/a")}) == 3, "all differ")
    shown = FS.ok("digest", "/a", "/empty").decode().splitlines()
    check([line.split()[1] for line in shown] == ["/a", "/empty"] and "0" * 32 in shown[1], f"{shown}")
    check(FS.ok("digest", "--route", "tcp", "/a") == FS.ok("digest", "/a"), "on any way")


def differences(a, b, width_a, width_b, words):
    put("/a", b"".join(a), *words, "--width", str(width_a))
    put("/b", b"".join(b), *words, "--width", str(width_b))
    done = FS.run("cmp", "--json", "/a", "/b")
    found = json.loads(done.stdout)["results"]
    different = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
    wanted = {
        "different": len(different),
        "only_in_first": max(len(a) - len(b), 0),
        "only_in_second": max(len(b) - len(a), 0),
    }
    if different:
        wanted["first"] = different[0] + 1
    check(found == wanted, f"{found}, not {wanted}")
    check(done.returncode == (0 if a == b else 1), f"{done}")


def files_are_compared_record_by_record():
    rnd = random.Random(2)
    for round in range(12):
        a = text(rnd, rnd.choice([0, 1, 300, 20_000]))
        b = list(a)
        for _ in range(rnd.choice([0, 0, 1, 5])):
            if b:
                b[rnd.randrange(len(b))] = text(rnd, 1)[0]
        if rnd.random() < 0.4:
            b = b[: rnd.randrange(len(b) + 1)] + text(rnd, rnd.choice([0, 3]))
        differences(a, b, rnd.randint(1, 4), rnd.randint(1, 4), ["--lines"])
    records = [rnd.randbytes(10) for _ in range(20_000)]
    other = list(records)
    other[9999] = other[9999][:9] + bytes([other[9999][9] ^ 1])
    differences(records, other, 3, 2, ["--record-length", "10"])
    check(FS.run("cmp", "/a", "/b").stdout == b"/a /b differ: record 10000, byte 10; 1 of 20000 records\n", "shown")
    check(FS.run("cmp", "-q", "/a", "/b").stdout == b"", "nothing is shown")
    put("/lines", b"".join(text(rnd, 10)), "--lines")
    check(FS.run("cmp", "/a", "/lines").returncode == 1, "of different kinds")


def what_is_wrong_is_said():
    FS.fails(3, "there is no /nothing", "digest", "/nothing")
    FS.fails(3, "there is no /nothing", "cmp", "/a", "/nothing")
    FS.fails(2, "B", "cmp", "/a")
    check(b"nothing but digests" in FS.ok("digest", "--explain", "/a"), "a plan")


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        return main_on(
            FS,
            [a_digest_is_of_records_and_their_order, files_are_compared_record_by_record, what_is_wrong_is_said],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
