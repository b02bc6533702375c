"""What cat, head, tail and wc say of texts of all kinds is what coreutils say, in the C locale."""

import os
import random
import signal
import subprocess
import sys

from pif_system import FileSystem, await_condition, check, main_on

FS = None
SEED = random.randrange(1 << 32)
RANDOM = random.Random(SEED)
KINDS = (["--lines"], ["--record-length", "7"], ["--delimited", "e"], ["--lines", "--header", "5"], [])
ALPHABETS = (b"ab \n", b"a\n\n\n", b"a\t \n", b"a\0 \n", b"a\r\n\f\v\t\x7f\x80\xff ~!", bytes(range(256)), b"xe")


def put(path, data, *options):
    FS.ok("put", "-q", *options, "-", path, data=data)


def of_local(program, *words, data):
    env = dict(os.environ, LC_ALL="C")
    return subprocess.run([program, *words], input=data, stdout=subprocess.PIPE, env=env, check=True).stdout


def some_text(size):
    alphabet = RANDOM.choice(ALPHABETS)
    return bytes(RANDOM.choices(alphabet, k=size))


def check_wc(path, text, what):
    for words in (["-l"], ["-w"], ["-c"], ["-L"], ["-lwL"], []):
        got, wanted = FS.ok("wc", *words, path).split(), of_local("wc", *words, data=text).split()
        if words == ["-lwL"] or not words:
            check(len(got) == 4, f"three columns: {got}")
        check(got[:-1] == wanted, f"wc {words} of {what}: {got}, not {wanted}; {text[:60]!r}")


def check_workers(path, text, what):
    counted = FS.json("count", "-L", path)["results"]
    wanted = [int(n) for n in of_local("wc", "-lwL", data=text).split()]
    check([counted[name] for name in ("lines", "words", "longest")] == wanted, f"{what}: {counted}, not {wanted}")


def words_and_lines_are_those_of_coreutils_however_the_file_lies():
    for width in range(1, 6):
        for kind in KINDS:
            text = some_text(RANDOM.choice((0, 1, 5, 6, 63, 64, 65, 700)) + (5 if "--header" in kind else 0))
            what = f"{len(text)} bytes, {kind} over {width}, seed {SEED}"
            put("/t", text, *kind, "--width", str(width))
            check(FS.content("/t") == text, f"cat of {what}")
            check_wc("/t", text, what)
            check_workers("/t", text, what)
    FS.ok("rm", "/t")


def ends_are_those_of_coreutils_in_all_their_forms():
    text = b"".join(b"%d\n" % (i * i) for i in range(400_000)) + b"the last"
    amounts = ("0", "1", "17", "399999", "400000", "400001", "900000")
    for kind in (["--lines"], ["--lines", "--header", "5"], ["--record-length", "100"], ["--delimited", "9"]):
        put("/t", text, *kind)
        for amount in amounts:
            for option in ("-n", "-c"):
                for program, sign in (("head", ""), ("head", "-"), ("tail", ""), ("tail", "+")):
                    got = FS.ok(program, option, sign + amount, "/t")
                    wanted = of_local(program, option, sign + amount, data=text)
                    check(got == wanted, f"{program} {option} {sign}{amount}, {kind}: {len(got)} bytes")
    FS.ok("rm", "/t")


def workers_started():
    operations = [o for d in FS.json("status")["daemons"] if d["node"] != "server" for o in d["operations"]]
    return sum(o["count"] for o in operations if o["name"] == "worker_start")


def a_large_file_is_counted_by_its_lfss():
    line = b"some words, and a tab\there\r\n"
    text = line * (80_000_000 // len(line)) + b"the last"
    wanted = of_local("wc", "-lwL", data=text).split()
    for kind in (["--lines"], []):
        put("/large", text, *kind)
        before = workers_started()
        check(FS.ok("wc", "-lwL", "/large").split()[:-1] == wanted, f"{kind}: wc")
        check(workers_started() == before + 5, f"{kind}: by workers")
        check(FS.ok("wc", "-lc", "/large").split()[1] == b"%d" % len(text), f"{kind}: bytes")
    FS.ok("rm", "/large")


def beside_a_writer_a_large_file_is_counted_all_the_same():
    text = b"line of the log\n" * 5_000_000
    put("/log", text, "--lines")
    append = FS.start("append", "-", "/log", stdin=subprocess.PIPE)
    try:
        append.stdin.write(b"one\n")
        append.stdin.flush()
        await_condition(lambda: FS.ok("tail", "-n", "1", "/log") == b"one\n", "the writer is at work")
        check(FS.ok("wc", "-w", "/log").split()[0] == b"20000001", "words")
        append.stdin.write(b"two\n")
    finally:
        error = append.communicate(timeout=60)[1]
    check(append.returncode == 0, f"the writer ends well: {append.returncode} {error}")
    before = workers_started()
    check(FS.ok("wc", "-w", "/log").split()[0] == b"20000002", "words, in the end")
    check(workers_started() == before + 5, "and by workers then")
    FS.ok("rm", "/log")


def lines_of_very_different_lengths_come_in_order():
    text = b"\n" * 3_000_000 + b"".join(b"x" * RANDOM.randrange(300_000) + b"\n" for _ in range(60)) + b"end"
    for width in (1, 3, 5):
        put("/t", text, "--lines", "--width", str(width))
        check(FS.content("/t") == text, f"cat over {width}")
        FS.ok("get", "-q", "/t", FS.local("got"))
        with open(FS.local("got"), "rb") as got:
            check(got.read() == text, f"get over {width}")
        os.unlink(FS.local("got"))
        part = b"\n" * 10 + text[3_000_000:].split(b"\n")[0] + b"\n"
        check(FS.ok("cat", "--records", "2999990:3000001", "/t") == part, f"a range over {width}")
        check_wc("/t", text, f"long lines over {width}")
    FS.ok("rm", "/t")


def a_reader_that_goes_away_ends_cat():
    put("/t", b"0123456789\n" * 1_000_000, "--lines")
    for option in ([], ["--records", "5:"]):
        cat = FS.start("cat", *option, "/t")
        check(cat.stdout.read(22) == b"0123456789\n" * 2, "the first lines")
        cat.stdout.close()
        cat.stdout = None
        error = cat.communicate(timeout=60)[1]
        check(cat.returncode in (3, -signal.SIGPIPE), f"{cat.returncode} {error}")
    FS.ok("rm", "/t")


def run_all():
    global FS
    tests = [
        words_and_lines_are_those_of_coreutils_however_the_file_lies,
        ends_are_those_of_coreutils_in_all_their_forms,
        a_large_file_is_counted_by_its_lfss,
        beside_a_writer_a_large_file_is_counted_all_the_same,
        lines_of_very_different_lengths_come_in_order,
        a_reader_that_goes_away_ends_cat,
    ]
    with FileSystem(5) as FS:
        return main_on(FS, tests)


if __name__ == "__main__":
    sys.exit(run_all())
