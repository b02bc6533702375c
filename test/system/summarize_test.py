"""pif summarize, beside Python's statistics of the same fields."""

import collections
import csv
import io
import json
import math
import random
import statistics
import struct
import sys

from pif_system import FileSystem, check, main_on

FS = None


def put(name, data, *words):
    FS.ok("put", "-q", *words, "-", name, data=data)


def results(*words):
    return json.loads(FS.ok("summarize", "--json", *words))["results"]


def is_close(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def check_numbers(found, name, numbers, quantiles=(0.25, 0.5, 0.75)):
    ordered = sorted(numbers)
    wanted = {"min": ordered[0], "max": ordered[-1], "sum": math.fsum(numbers), "mean": statistics.fmean(numbers)}
    wanted["deviation"] = statistics.stdev(numbers) if len(numbers) > 1 else 0
    for q in quantiles:  # the smallest that a part of q is not above
        wanted[f"{q * 100:g}%"] = ordered[max(math.ceil(q * len(ordered)), 1) - 1]
    check(found[f"{name}.numbers"] == len(numbers), f"{name}: {found}")
    for key, value in wanted.items():
        check(is_close(found[f"{name}.{key}"], value), f"{name}.{key} is {value}, not {found[f'{name}.{key}']}")


def any_number(rnd):
    return rnd.choice([rnd.randrange(-5, 5), rnd.uniform(-1e6, 1e6), rnd.uniform(-1, 1), 1e-300, 0.1])


def fields_of_text_are_summed_up():
    rnd = random.Random(1)
    for count, width in ((1, 2), (2, 4), (5000, 3), (20_000, 4)):
        numbers = [any_number(rnd) for _ in range(count)]
        words = [rnd.choice(["", "x", "1e999", "nan", "12b"]) for _ in range(count // 10)]
        lines = [f"a:{number!r}:b" for number in numbers] + [f"c:{word}" for word in words] + ["alone"] * (count // 20)
        rnd.shuffle(lines)
        put("/text", "".join(line + "\n" for line in lines).encode(), "--lines", "--width", str(width))
        quantiles = (0, 0.01, 0.5, 0.999, 1)
        asked = ("--quantiles", ",".join(map(str, quantiles)))
        for route in ([], ["--route", "tcp"]) if count == 5000 else ([],):
            found = results("-t", ":", "-f", "2", *asked, *route, "/text")
            check_numbers(found, "2", numbers, quantiles)
            check(found["2.others"] == len(words) and found["2.missing"] == count // 20, f"{found}")
        texts = {line.split(":")[1] for line in lines if ":" in line}
        check(abs(found["2.different"] - len(texts)) <= 0.04 * len(texts) + 1, f"{found} of {len(texts)}")
        exact = results("-t", ":", "-f", "2", "--exact", "/text")
        check(exact["2.different"] == len(texts), f"{exact} of {len(texts)}")
    again = [FS.ok("summarize", "-t", ":", "-f", "2", "/text") for _ in range(3)]
    check(len(set(again)) == 1, "the same bytes at every run")


def columns_of_csv_are_grouped():
    rnd = random.Random(2)
    rows = [[rnd.choice(["Bonn", "Ulm, old", 'say "hi"']), rnd.uniform(0, 9), rnd.randrange(99)] for _ in range(9000)]
    text = io.StringIO()
    csv.writer(text).writerows([["city", "price", "how many"], *rows])
    put("/table", text.getvalue().encode(), "--csv")
    found = results("--csv", "-f", "price", "-f", "how many", "/table")
    check_numbers(found, "price", [row[1] for row in rows])
    check_numbers(found, "how many", [row[2] for row in rows])
    lines = FS.ok("summarize", "--csv", "--by", "city", "-f", "price", "/table").decode().splitlines()
    check(lines[0].split("\t")[:2] == ["city", "records"], lines[0])
    check([line.split("\t")[0] for line in lines[1:]] == sorted({row[0] for row in rows}), "in order of keys")
    for key, count, numbers, low, high, total, mean, deviation in (line.split("\t") for line in lines[1:]):
        prices = [row[1] for row in rows if row[0] == key]
        check(int(count) == int(numbers) == len(prices), key)
        wanted = (min(prices), max(prices), math.fsum(prices), statistics.fmean(prices), statistics.stdev(prices))
        check(all(map(is_close, map(float, (low, high, total, mean, deviation)), wanted)), key)
    counts = FS.ok("summarize", "--csv", "--by", "city", "/table").decode().splitlines()[1:]
    found = {line.split("\t")[0]: int(line.split("\t")[1]) for line in counts}
    check(found == collections.Counter(row[0] for row in rows), f"{found}")


def numbers_at_a_place_are_read_as_their_type():
    rnd = random.Random(3)
    kinds = {"0:8:f": "<d", "8:4:fbe": ">f", "12:2:i": "<h", "14:3:ube": None, "17:1:u": "<B"}
    rows = [
        (rnd.gauss(0, 1e9), rnd.gauss(0, 9), rnd.randrange(-9999, 9999), rnd.randrange(1 << 24), rnd.randrange(256))
        for _ in range(3000)
    ]
    data = b"".join(
        struct.pack("<d", a) + struct.pack(">f", b) + struct.pack("<h", c) + d.to_bytes(3, "big") + bytes([e])
        for a, b, c, d, e in rows
    )
    put("/binary", data, "--record-length", "18")
    fields = [word for kind in kinds for word in ("-f", kind)]
    found = results(*fields, "/binary")
    for i, kind in enumerate(kinds):
        column = [row[i] for row in rows]
        if kind == "8:4:fbe":
            column = [struct.unpack(">f", struct.pack(">f", value))[0] for value in column]
        check_numbers(found, kind, column)


def frequent_values_and_histograms_are_shown():
    rnd = random.Random(4)
    values = [int(rnd.expovariate(0.1)) for _ in range(10_000)]
    put("/values", "".join(f"{value}\n" for value in values).encode(), "--lines")
    text = FS.ok("summarize", "-f", "1", "--top", "5", "--histogram", "10", "/values").decode()
    parts = text.split("\n\n")
    bins = [int(line.split()[1]) for line in parts[1].splitlines()[1:]]
    high, wanted = max(values), [0] * 10
    for value in values:
        wanted[min(int(value / (high / 10)), 9)] += 1
    check(bins == wanted, f"{bins}, not {wanted}")
    most = [tuple(map(int, line.split())) for line in parts[2].splitlines()[1:]]
    counted = sorted(collections.Counter(values).items(), key=lambda item: (-item[1], str(item[0])))[:5]
    check(most == [(count, value) for value, count in counted], f"{most}, not {counted}")


def what_is_wrong_is_said():
    put("/text", b"1\n2\nthree\n", "--lines")
    for code, words, text in [
        (3, ["-f", "1", "/nothing"], b"there is no /nothing"),
        (2, ["/text"], b"--field"),
        (2, ["-f", "0", "/text"], b"'0' is no field"),
        (2, ["-f", "0:8:f", "/text"], b"is for records of one length"),
        (2, ["-f", "price", "/text"], b"is no field"),
        (2, ["-f", "1", "--by", "1", "--top", "3", "/text"], b"--by"),
        (2, ["-f", "1", "--quantiles", "2", "/text"], b"--quantiles"),
        (3, ["-f", "1", "--strict", "/text"], b"field 1 of record 3 is no number: 'three'"),
        (3, ["-f", "2", "--strict", "/text"], b"field 2 of record"),
    ]:
        done = FS.run("summarize", *words)
        check(done.returncode == code and text in done.stderr, f"{words}: {done}")
    check(b"reads: 10 bytes" in FS.ok("summarize", "--explain", "-f", "1", "/text"), "a plan")
    put("/empty", b"", "--lines")
    nothing = {f"1.{name}": 0 for name in ("numbers", "others", "missing", "different")}
    check(results("-f", "1", "/empty") == nothing, "of nothing")


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        return main_on(
            FS,
            [
                fields_of_text_are_summed_up,
                columns_of_csv_are_grouped,
                numbers_at_a_place_are_read_as_their_type,
                frequent_values_and_histograms_are_shown,
                what_is_wrong_is_said,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
