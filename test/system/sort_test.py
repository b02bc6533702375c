"""pif-sort as people run it: against GNU sort on text, against Python on records.

PIF_SORT_CASES=N: so many of each kind; PIF_SORT_LFSS=N: on so many LFSs."""

import concurrent.futures
import itertools
import json
import os
import random
import subprocess
import sys

from pif_system import FileSystem, check, main_on

FS = None
LFSS = int(os.environ.get("PIF_SORT_LFSS", "4"))
RECORD_MAX = 16 << 20
C_LOCALE = dict(os.environ, LC_ALL="C")


def sort(*words):
    return FS.run("sort", *words)


def gnu_sort(options, text):
    return subprocess.run(
        ["sort", "-s", *options],
        input=text,
        env=C_LOCALE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )


def any_text(rnd):
    lines = rnd.choice([0, 1, 2, 30, 400, 3000])
    numbers = ["0", "-0", "1", "-1", "10", "-10.5", "-10.49", ".5", "-.5", "007", "1e3", "-", "--5", "1.50", ""]
    forms = [
        lambda: "".join(rnd.choice("ab \tc,0") for _ in range(rnd.randrange(12))),
        lambda: "".join(rnd.choice("a0 \r\0\xff") for _ in range(rnd.randrange(8))),
        lambda: f"{rnd.choice('xyz')},{rnd.uniform(-50, 50)},{rnd.randrange(100)}",
        lambda: " " * rnd.randrange(3) + rnd.choice(numbers) + " " + rnd.choice("ab") * rnd.randrange(20),
        lambda: "".join(rnd.choice("ab") for _ in range(rnd.randrange(30))),
    ]
    form = rnd.choice(forms)
    text = [form() for _ in range(lines)]
    if text and rnd.random() < 0.02:
        text[rnd.randrange(lines)] = rnd.choice("ab") * rnd.choice([RECORD_MAX - 1, RECORD_MAX // 3])
    return ("\n".join(text) + ("\n" if lines and rnd.random() < 0.8 else "")).encode("latin-1")


def any_options(rnd):
    options = []
    for _ in range(rnd.choice([0, 0, 1, 2])):
        key = f"{rnd.randrange(1, 4)}" + (f".{rnd.randrange(1, 4)}" if rnd.random() < 0.3 else "")
        key += rnd.choice(["", "n", "r", "nr", "b", "br", "bn"])
        if rnd.random() < 0.6:
            key += (
                f",{rnd.randrange(1, 5)}"
                + (f".{rnd.randrange(0, 4)}" if rnd.random() < 0.3 else "")
                + rnd.choice(["", "b"])
            )
        options += ["-k", key]
    options += ["-t", ","] if rnd.random() < 0.3 else []
    return options + [f"-{letter}" for letter in "nrub" if rnd.random() < 0.2]


# By which letters texts are compared.
LETTERS = ["n", "g", "h", "M", "V", "f", "d", "i", "df", "di", "fi", "Vf", "Vd", "Vi", "Mf", "gf", "hf", "nf"]


def some(rnd, characters, most):
    return "".join(rnd.choice(characters) for _ in range(rnd.randrange(most)))


def a_number(rnd):
    digits = some(rnd, rnd.choice(["0", "09", "0123456789"]), rnd.choice([3, 3, 12, 30]))
    fraction = rnd.choice(["", "", ".", "." + some(rnd, "0123456789", 4)])
    suffix = rnd.choice(["", "", "K", "k", "M", "m", "G", "Y", "R", "e3", "e-3", " K"])
    return rnd.choice(["", "", " ", "x"]) + rnd.choice(["", "", "-", "+"]) + digits + fraction + suffix


def a_float(rnd):
    forms = ["-inf", "INF", "1e5000", "0x1p4", "0x", "1e-4940", ".", "e5", "1E5", "18446744073709551617"]
    return rnd.choice(forms + [a_number(rnd)] * 6)


def a_month(rnd):
    month = rnd.choice(["jan", "Feb", "MAR", "april", "may", "JUNE", "Jul", "aug", "sep", "OCT", "nov", "dec", "x", ""])
    return rnd.choice(["", " ", "\t"]) + month + rnd.choice(["", " 1", "-2"])


def a_version(rnd):
    name = rnd.choice(["", ".", "..", "a", "lib-"]) + some(rnd, "01", 4) + rnd.choice(["", ".", "~", "-"])
    return rnd.choice([some(rnd, "a0.~1", 7), name + some(rnd, "019", 3) + rnd.choice(["", ".c", ".tar.gz", ".~1~"])])


def a_word(rnd):
    return some(rnd, rnd.choice(["aAbB", "aA .-_", "aA\x00\x01\x7f\x81\xff \t", "Zz[`{@09/:"]), 8)


def letters_of_a_key(rnd):
    letters = rnd.choice([""] + LETTERS) + rnd.choice(["", "", "r"]) + rnd.choice(["", "", "b"])
    return "".join(rnd.sample(letters, len(letters)))


def options_with_letters(rnd):
    options = []
    for _ in range(rnd.choice([0, 1, 1, 2, 3])):
        key = f"{rnd.randrange(1, 4)}" + letters_of_a_key(rnd)
        if rnd.random() < 0.7:
            key += f",{rnd.randrange(1, 4)}" + rnd.choice(["", "", "b", ".2"])
        options += ["-k", key]
    options += ["-t", ","] if rnd.random() < 0.4 else []
    letters = letters_of_a_key(rnd) if not options or rnd.random() < 0.4 else ""
    return options + (["-" + letters] if letters else []) + (["-u"] if rnd.random() < 0.2 else [])


def text_of_values(rnd, end):
    forms = [a_number, a_float, a_month, a_version, a_word]
    forms = rnd.choice([[form] for form in forms] + [forms])
    separator = rnd.choice([",", " ", "  "])
    lines = []
    for _ in range(300):
        words = [rnd.choice(forms)(rnd) for _ in range(rnd.choice([1, 2, 3]))]
        lines.append(separator.join(words).replace(end, ""))
    lines[rnd.randrange(len(lines))] = "nan"  # one: GNU sort has an order of equal NaNs
    return "".join(line + end for line in lines).encode("latin-1")


def any_merge(rnd):
    merge = rnd.choice([[], ["--merge", "token"], ["--merge", "pipelined"]])
    batch = rnd.choice([[], ["--token-batch", "50"], ["--token-batch", "4096"]])
    return merge + batch if merge else []


def any_resources(rnd):
    threads = rnd.choice([[], ["--threads", str(rnd.choice([1, 2, 3, 7]) * FS.count)]])
    return threads + rnd.choice([[], [], ["--memory", "32M" if FS.count <= 4 else "72M"]])


def text_comes_out_as_gnu_sort_has_it():
    rnd = random.Random(4)
    for _ in range(int(os.environ.get("PIF_SORT_CASES", "20"))):
        text, options = any_text(rnd), any_options(rnd)
        FS.ok("put", "-q", "--lines", "--width", str(rnd.randint(1, FS.count)), "-", "/in", data=text)
        merge = any_merge(rnd) + any_resources(rnd) + ["--width", str(rnd.randint(1, FS.count))]
        route = rnd.choice([[], ["--route", "tcp"]])  # workers share memory, or talk over the network
        done = sort(*merge, *route, *options, "/in", "/out")
        check(done.returncode == 0, f"{merge} {route} {options}: {done}")
        check(FS.ok("cat", "/out") == gnu_sort(options, text).stdout, f"{merge} {route} {options} of {text[:200]!r}")
        same = gnu_sort([*options, "-c"], text).returncode == sort(*options, "-c", "/in").returncode
        check(same, f"-c {options} of {text[:200]!r}")
        check(sort(*options, "-c", "/out").returncode == 0, f"{options}: the output is sorted")


def sorted_in_ways(text, words, ways):
    """Most of what a small sort takes is waiting: several at a time, and what they made is read at once."""
    targets = [f"/sorted{i}" for i in range(len(ways))]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        expected = list(pool.map(lambda options: gnu_sort([*words, *options], text), ways))
        done = list(pool.map(lambda way: sort("-q", *words, *way[0], "/values", way[1]), zip(ways, targets)))
    for options, one, gnu in zip(ways, done, expected):
        check(gnu.returncode == 0 and one.returncode == 0, f"{options}: {one}, {gnu.stderr}")
    together = FS.ok("cat", *targets)
    for options, gnu in zip(ways, expected):
        found, together = together[: len(gnu.stdout)], together[len(gnu.stdout) :]
        check(found == gnu.stdout, f"{words} {options} of {text[:200]!r}")
    check(together == b"", "nothing else")
    FS.ok("rm", *targets)


def values_in_text_come_out_as_gnu_sort_has_them():
    rnd = random.Random(9)
    for case in range(int(os.environ.get("PIF_SORT_CASES", "20"))):
        end, put, words = rnd.choice([("\n", "--lines", [])] * 3 + [("\0", "--delimited=\\0", ["-z"])])
        text = text_of_values(rnd, end)
        FS.ok("put", "-q", put, "--width", str(rnd.randrange(1, 4)), "-", "/values", data=text)
        ways = [["-" + LETTERS[case % len(LETTERS)]]] + [options_with_letters(rnd) for _ in range(9)]
        sorted_in_ways(text, words, ways)
    FS.ok("rm", "/values")


def what_gnu_sort_refuses_is_refused():
    FS.ok("put", "-q", "--lines", "-", "/two", data=b"b\na\n")
    kinds = "nghMVdi"
    for first, second in itertools.combinations(kinds, 2):
        words = ["-c", "-k", f"1{first}br,1f{second}"]
        code = gnu_sort(words, b"").returncode
        done = sort("-q", *words, "/two")
        check((done.returncode == 2) == (code == 2), f"{words}: {done}")
        check(code == 0 or b"are incompatible" in done.stderr, f"{done}")
    FS.fails(2, "options '-gn' are incompatible", "sort", "-n", "-g", "/two", "/refused")
    FS.fails(2, "pif put --delimited", "sort", "-z", "/two", "/refused")
    check(b"LC_ALL=C" in FS.ok("sort", "--help"), "--help says what order this is")


def records_are_sorted_onto_any_width():
    rnd = random.Random(5)
    records = [rnd.randbytes(3) + rnd.choice([b"aa", b"ab"]) + rnd.randbytes(95) for _ in range(20_000)]
    FS.ok("put", "-q", "--record-length", "100", "--width", "3", "-", "/records", data=b"".join(records))
    for width in (1, 2, 3, 4):
        done = sort("-k", "3:2", "-k", "0:2:ube", "--width", str(width), "/records", "/sorted")
        check(done.returncode == 0, f"{done}")
        expected = sorted(records, key=lambda record: (record[3:5], record[0:2]))
        check(FS.ok("cat", "/sorted") == b"".join(expected), f"width {width}")


def what_does_not_fit_into_memory_is_sorted_by_every_merge():
    rnd = random.Random(6)
    records = [rnd.randbytes(10) + b"%090d" % i for i in range(400_000)]  # 40 MB
    FS.ok("put", "-q", "--record-length", "100", "-", "/large", data=b"".join(records))
    expected = b"".join(sorted(records))
    for merge, route in itertools.product(("split", "token", "pipelined"), ("auto", "tcp")):
        words = ("--memory", "32M", "--threads", "8", "--merge", merge, "--route", route)
        done = sort("-q", "-k", "0:10", *words, "/large", "/sorted")
        check(done.returncode == 0, f"{merge} {route}: {done}")
        check(FS.ok("cat", "/sorted") == expected, f"{merge} {route}")
    FS.ok("rm", "/large", "/sorted")


def any_records_come_out_the_same_with_any_number_of_threads():
    rnd = random.Random(8)
    kinds = {  # by what Python compares
        "": lambda field: field,
        "r": lambda field: bytes(255 - byte for byte in field),
        ":ube": lambda field: field,
        ":u": lambda field: field[::-1],
    }
    for _ in range(int(os.environ.get("PIF_SORT_CASES", "20"))):
        length = rnd.choice([8, 9, 24, 100, 700])
        letters = rnd.choice([2, 5, 256])  # few: many equal keys
        count = rnd.choice([1, 3000, 20_000, 50_000 if length < 100 else 5000])
        table = bytes(byte % letters for byte in range(256))
        pool = rnd.randbytes(count * length).translate(table)
        records = [pool[i * length : (i + 1) * length] for i in range(count)]
        begin, size = rnd.choice([(0, 4), (2, 3), (1, 7), (0, 8)]) if rnd.random() < 0.9 else (0, length)
        kind = rnd.choice(list(kinds)) if size in (4, 8) else ""
        unique = rnd.choice([[], ["-u"]])
        words = ["-k", f"{begin}:{size}{kind}", *unique, *any_merge(rnd)]
        words += ["--width", str(rnd.randrange(1, 5)), "--threads", str(rnd.choice([1, 2, 3, 7]) * rnd.choice([1, 4]))]
        words += rnd.choice([[], ["--memory", "32M"]]) + rnd.choice([[], [], ["--route", "tcp"]])
        put = ("--record-length", str(length), "--width", str(rnd.randrange(1, 5)))
        FS.ok("put", "-q", *put, "-", "/any", data=b"".join(records))
        key = lambda record: kinds[kind](record[begin : begin + size])  # noqa: E731
        expected = sorted(records, key=key)
        if unique:
            expected = [r for i, r in enumerate(expected) if i == 0 or key(r) != key(expected[i - 1])]
        done = sort("-q", *words, "/any", "/sorted")
        check(done.returncode == 0, f"{put} {words}: {done}")
        check(FS.ok("cat", "/sorted") == b"".join(expected), f"{put} {words}, {count} records of {letters} letters")
    FS.ok("rm", "/any", "/sorted")


def any_number_of_threads_sorts_to_the_same_bytes():
    records = [b"%05d%06d." % (i * 7919 % 20000, i) for i in range(60000)]
    FS.ok("put", "-q", "--record-length", "12", "-", "/records12", data=b"".join(records))
    lines = [b"%05d" % (i * 7919 % 20000) + b"x" * (i % 40) + b"\n" for i in range(60000)]
    FS.ok("put", "-q", "--lines", "-", "/many", data=b"".join(lines))
    by_key = b"".join(sorted(records, key=lambda record: record[:5]))
    unique = b"".join(sorted(set(lines)))
    for threads in (1, 2, 3, 7):
        for width in (1, 2):
            words = ("-q", "--threads", str(threads * 2), "--width", str(width))
            check(sort(*words, "-k", "0:5", "/records12", "/sorted").returncode == 0, f"{words}")
            check(FS.ok("cat", "/sorted") == by_key, f"records by {words}")
            check(sort(*words, "/many", "/sorted").returncode == 0, f"{words}")
            check(FS.ok("cat", "/sorted") == b"".join(sorted(lines)), f"lines by {words}")
        check(sort("-q", "-u", "--threads", str(threads), "/many", "/sorted").returncode == 0, f"{threads}")
        check(FS.ok("cat", "/sorted") == unique, f"different lines by {threads}")
    for wrong in ("0", "-1", "1025", "many"):
        FS.fails(2, "--threads", "sort", "--threads", wrong, "/many", "/never")
    FS.ok("rm", "/records12", "/many", "/sorted")


def long_lines_among_short_ones_are_sorted_by_every_merge():
    rnd = random.Random(7)
    lines = [b"%07d\n" % rnd.randrange(10**7) for _ in range(20_000)]
    lines += [b"z" * (3 << 20) + b"%02d\n" % number for number in rnd.sample(range(100), 16)]  # they meet at the end
    rnd.shuffle(lines)
    FS.ok("put", "-q", "--lines", "--width", "2", "-", "/lines", data=b"".join(lines))
    for merge, memory in itertools.product(("split", "token", "pipelined"), ([], ["--memory", "32M"])):
        done = sort("--merge", merge, *memory, "/lines", "/sorted")
        check(done.returncode == 0, f"{merge} {memory}: {done}")
        check(FS.ok("cat", "/sorted") == b"".join(sorted(lines)), f"{merge} {memory}")


def records_are_sorted_by_a_token_for_each():
    records = [os.urandom(16) for _ in range(8000)]  # many more than letters that may be under way
    FS.ok("put", "-q", "--record-length", "16", "-", "/each", data=b"".join(records))
    done = sort("--merge", "token", "--token-batch", "0", "/each", "/sorted")
    check(done.returncode == 0, f"{done}")
    check(FS.ok("cat", "/sorted") == b"".join(sorted(records)), "sorted")


def long_keys_are_sorted_over_the_network():
    rnd = random.Random(8)
    lines = [
        rnd.randbytes(200).hex().encode() + b"\n" for _ in range(24_000)
    ]  # samples of them are more than a header holds
    FS.ok("put", "-q", "--lines", "-", "/long", data=b"".join(lines))
    done = sort("--route", "tcp", "/long", "/sorted")
    check(done.returncode == 0, f"{done}")
    check(FS.ok("cat", "/sorted") == b"".join(sorted(lines)), "sorted")


def what_a_sort_will_take_is_predicted_and_reported():
    FS.ok("put", "-q", "--record-length", "10", "-", "/some", data=os.urandom(50_000))
    plan = json.loads(FS.ok("sort", "--json", "--explain", "/some", "/never"))
    check("pif calibrate" in plan["predicted"] and "predicted_split" not in plan, f"{plan}")  # calibrate_test.py
    FS.fails(3, "/never", "stat", "/never")
    report = json.loads(FS.ok("sort", "--json", "--merge", "token", "--token-batch", "64", "/some", "/sorted"))
    check(report["counts"]["token_hops"] > 0 and report["predictions"]["merge"]["measured"] > 0, f"{report}")


def a_file_is_sorted_onto_itself():
    FS.ok("put", "-q", "--lines", "-", "/self", data=b"b\nc\na")
    check(sort("/self", "/self").returncode == 0, "done")
    check(FS.ok("cat", "/self") == b"a\nb\nc\n", "sorted, and the last line is ended")


def what_is_wrong_is_said():
    FS.ok("put", "-q", "--record-length", "10", "-", "/short", data=b"x" * 25)
    for code, words, text in [
        (3, ["/nothing", "/out2"], b"there is no /nothing"),
        (2, ["/short"], b"DST: is needed"),
        (2, ["-k", "9:9", "/short", "/out2"], b"records have 10 bytes"),
        (2, ["-k", "1q", "/short", "/out2"], b"means nothing"),
        (2, ["/short", "/out2"], b"the last record is shorter"),
        (2, ["--memory", "1K", "/short", "/out2"], b"32M is the least"),
    ]:
        done = sort(*words)
        check(
            done.returncode == code and text in done.stderr and done.stderr.count(b"\n") <= (1 if code == 3 else 2),
            f"{words}: {done}",
        )
    FS.fails(3, "/out2", "stat", "/out2")


def a_letter_for_all_keys_is_heeded_or_refused():
    FS.ok("put", "-q", "--record-length", "3", "-", "/few", data=b"b1\na2\nc3\n")
    check(sort("-r", "-k", "0:1", "/few", "/falling").returncode == 0, "done")
    check(FS.ok("cat", "/falling") == b"c3\nb1\na2\n", "-r is for -k OFF:LEN too")
    check([sort("-c", "-r", "-k", "0:1", name).returncode for name in ("/falling", "/few")] == [0, 1], "and -c knows")
    for words in (["-n"], ["-b"], ["-t", ","], ["-V"], ["-f"]):
        FS.fails(2, f"{words[0]} is for keys by field", "sort", *words, "-k", "0:1", "/few", "/never")


def a_check_names_the_first_that_is_out_of_order():
    FS.ok("put", "-q", "--lines", "-", "/disorder", data=b"a\nc\nb\n")
    done = sort("-c", "/disorder")
    check(done.returncode == 1 and done.stderr == b"pif-sort: /disorder: record 2 is out of order: b\n", f"{done}")


def run_all():
    global FS
    with FileSystem(LFSS, ["--curve"]) as FS:
        return main_on(
            FS,
            [
                text_comes_out_as_gnu_sort_has_it,
                values_in_text_come_out_as_gnu_sort_has_them,
                what_gnu_sort_refuses_is_refused,
                records_are_sorted_onto_any_width,
                what_does_not_fit_into_memory_is_sorted_by_every_merge,
                any_records_come_out_the_same_with_any_number_of_threads,
                any_number_of_threads_sorts_to_the_same_bytes,
                long_lines_among_short_ones_are_sorted_by_every_merge,
                records_are_sorted_by_a_token_for_each,
                long_keys_are_sorted_over_the_network,
                what_a_sort_will_take_is_predicted_and_reported,
                a_file_is_sorted_onto_itself,
                what_is_wrong_is_said,
                a_letter_for_all_keys_is_heeded_or_refused,
                a_check_names_the_first_that_is_out_of_order,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
