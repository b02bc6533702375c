"""pif map: a command of the shell on every LFS, beside the same command here."""

import itertools
import json
import os
import random
import subprocess
import sys

from pif_system import FileSystem, check, main_on

FS = None
COUNT = 4


def sh(command, data):
    return subprocess.run(["sh", "-c", command], input=data, stdout=subprocess.PIPE, check=False, timeout=60).stdout


def in_order(text):
    return sorted(text.splitlines(True))


def text_of(rnd, count):
    return b"".join(
        b"%s,%d,%s\n" % (rnd.choice([b"", b"red", b"green", b"blue"]), rnd.randrange(1000), b"x" * rnd.randrange(30))
        for _ in range(count)
    )


def put(name, data, *words):
    FS.ok("put", "-q", "--lines", *words, "-", name, data=data)


def record_n_is_made_of_record_n():
    rnd = random.Random(1)
    for count, width, words in ((0, 2, []), (1, 3, []), (5000, 4, ["--bevy", "2"]), (40_000, 3, [])):
        data = text_of(rnd, count)
        put("/in", data, "--width", str(width), *words)
        expected = sh("cut -d, -f2", data)
        check(FS.ok("map", "--each", "cut -d, -f2", "/in") == expected, f"{count} to stdout")
        FS.ok("map", "--each", "cut -d, -f2", "/in", "/out")
        check(FS.ok("cat", "/out") == expected, f"{count} to a file")
    no_newline = b"a\nb\nc"
    put("/in", no_newline)
    check(FS.ok("map", "--each", "cat", "/in") == no_newline + b"\n", "the last line is ended")
    for command, text in (("head -n 10", b"the command made 10 lines"), ("cat; echo", b"the command made at least")):
        put("/in", text_of(rnd, 1000))
        done = FS.run("map", "--each", command, "/in", "/never")
        check(done.returncode == 3 and text in done.stderr, f"{command}: {done}")
        FS.fails(3, "/never", "stat", "/never")


def any_number_of_lines_comes_of_records():
    rnd = random.Random(2)
    data = text_of(rnd, 30_000)
    put("/in", data)
    commands = ["grep red || true", "cat; printf half", "cat > /dev/null", "tr , '\\n'", "sort -u"]
    for command, words in itertools.product(commands, ([], ["--width", "2"], ["--bevy", "2"])):
        parts = [sh(command, b"".join(data.splitlines(True)[i::COUNT])) for i in range(COUNT)]
        expected = b"".join(part if part.endswith(b"\n") or not part else part + b"\n" for part in parts)
        check(FS.ok("map", command, "/in") == expected, f"{command} to stdout, in order of LFSs")
        FS.ok("map", *words, command, "/in", "/out")
        check(FS.ok("cat", "/out") == expected, f"{command} {words} to a file")
        FS.ok("fsck")
    FS.ok("put", "-q", "--record-length", "5", "-", "/fixed", data=b"abcdefghij" * 1000)
    check(FS.ok("map", "wc -c", "/fixed") == b"2500\n" * COUNT, "bytes of records of one length")


def equal_fields_meet_at_one_command():
    rnd = random.Random(3)
    data = text_of(rnd, 30_000)
    put("/in", data)
    # One command gets all of a key, in the file's order: numbers of a key's lines are those of one awk.
    number = "awk -F, '{ print $1, ++n[$1], $2 }'"
    expected = in_order(sh(number, data))
    for words in (["-t", ","], ["--csv"], ["-t", ",", "--route", "tcp"]):
        check(in_order(FS.ok("map", "--by", "1", *words, number, "/in")) == expected, f"{words} to stdout")
    FS.ok("map", "--by", "1", "-t", ",", number, "/in", "/out")
    check(in_order(FS.ok("cat", "/out")) == expected, "to a file")
    check(FS.ok("map", "--by", "9", "-t", ",", "wc -l", "/in") == b"30000\n", "records without the field meet, too")


def how_a_command_ends_is_told():
    put("/in", text_of(random.Random(4), 1000))
    for command, text in (
        ("exit 3", b"the command ended with exit code 3"),
        ("echo too bad >&2; exit 1", b"the command ended with exit code 1: too bad"),
        ("kill -9 $$", b"the command died of signal 9"),
        ("no-such-command", b"exit code 127"),
        ("head -c 17000000 /dev/zero", b"a line of more than 16 MiB"),
    ):
        done = FS.run("map", command, "/in", "/never")
        check(done.returncode == 3 and text in done.stderr and b"on lfs" in done.stderr, f"{command}: {done}")
        FS.fails(3, "/never", "stat", "/never")
    done = FS.run("map", "echo careful >&2; cat", "/in", "/out")
    lines = done.stderr.splitlines()
    check(done.returncode == 0 and sorted(lines) == [b"lfs%d: careful" % i for i in range(COUNT)], f"{done}")
    done = FS.run("map", "yes careful | head -n 1000000 >&2", "/in")
    check(done.returncode == 0 and done.stderr.count(b"(and more)") == COUNT, "not all of it")
    check(len(done.stderr) < 8 << 20, "words are bounded")


def what_takes_or_ends_nothing_hangs_nothing():
    put("/in", text_of(random.Random(5), 200_000))
    check(FS.ok("map", "exec <&-; echo closed", "/in") == b"closed\n" * COUNT, "stdin was closed")
    check(FS.ok("map", "head -n 1 | wc -l", "/in") == b"1\n" * COUNT, "not all was read")
    with FS.start("map", "yes", "/in") as endless:
        check(endless.stdout.readline() == b"y\n", "what comes first is shown at once")
        endless.stdout.close()
        check(endless.wait(timeout=60) != 0, "nobody reads")
    with FS.start("map", "sleep 1000", "/in") as waiting:
        waiting.send_signal(2)
        check(waiting.wait(timeout=60) != 0, "interrupted")


def what_is_wrong_is_said():
    put("/in", b"a\n")
    for words, text in [
        (["cat", "/nothing"], b"there is no /nothing"),
        (["--by", "0", "cat", "/in"], b"--by"),
        (["--by", "1", "--each", "cat", "/in"], b"excludes"),
        (["-t", "ab", "cat", "/in"], b"must be one character"),
        (["--each", "--width", "1", "cat", "/in", "/out2"], b"is laid out like its source"),
        (["cat"], b"SRC"),
        (["--json", "cat", "/in"], b"standard output is the report's"),
    ]:
        done = FS.run("map", *words)
        check(done.returncode != 0 and text in done.stderr, f"{words}: {done}")
    check(json.loads(FS.ok("map", "--json", "cat", "/in", "/out2"))["results"] == {"records": 1}, "a report")
    plan = FS.ok("map", "--explain", "--each", "cat", "/in", "/never")
    check(b"moved: nothing" in plan, f"{plan}")
    FS.fails(3, "/never", "stat", "/never")


def run_all():
    global FS
    with FileSystem(COUNT, ["--insecure-loopback"]) as FS:
        os.environ["LC_ALL"] = "C"
        return main_on(
            FS,
            [
                record_n_is_made_of_record_n,
                any_number_of_lines_comes_of_records,
                equal_fields_meet_at_one_command,
                how_a_command_ends_is_told,
                what_takes_or_ends_nothing_hangs_nothing,
                what_is_wrong_is_said,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
