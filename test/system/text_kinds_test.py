"""put of FASTA and FASTQ; put and get of files that are compressed: beside the programs gzip, zstd and xz."""

import gzip
import os
import random
import shutil
import signal
import subprocess
import sys

from pif_system import FileSystem, check, main_on

FS = None
SUFFIX = {"gzip": ".gz", "zstd": ".zst", "xz": ".xz"}


def write(name, data):
    with open(FS.local(name), "wb") as file:
        file.write(data)
    return FS.local(name)


def run_program(program, option, data):
    return subprocess.run([program, "-q", option, "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def programs():
    return [program for program in SUFFIX if shutil.which(program)]


def stored(name):
    return FS.ok("get", name, "-")


def there(name):
    return FS.run("stat", name).returncode == 0


# ---- FASTA, FASTQ ----

def entry_of_fasta(rnd, i, end):
    lines = [b">seq%d some words" % i]
    lines += [bytes(rnd.choices(b"ACGT", k=rnd.randrange(80))) for _ in range(rnd.randrange(4))]
    return end.join(lines) + end


def entry_of_fastq(rnd, i, end):
    length, pieces = rnd.choice([0, 1, 75, 200]), rnd.choice([1, 1, 3])
    sequence, quality = bytes(rnd.choices(b"ACGTN", k=length)), bytes(rnd.choices(range(33, 75), k=length))
    if length > 0:
        quality = b"@" + quality[1:]  # as the next title begins

    def lines(text):
        step = max(-(-len(text) // pieces), 1)
        return [text[at : at + step] for at in range(0, len(text), step)] or [b""]

    empty = [b""] * (rnd.random() < 0.1)
    return end.join([b"@read%d/1" % i, *lines(sequence), b"+", *lines(quality), *empty]) + end


def each_entry_is_a_record():
    for option, entry_of in (("--fasta", entry_of_fasta), ("--fastq", entry_of_fastq)):
        files = ((0, b"\n", 0, 2), (1, b"\n", 1, 1), (4000, b"\r\n", 0, 3), (40_000, b"\n", 1, 4))
        for count, end, cut, width in files:
            rnd = random.Random(count)
            entries = [entry_of(rnd, i, end) for i in range(count)]
            while count and entries[-1].endswith(end + end):
                entries[-1] = entry_of(rnd, count, end)
            data = b"".join(entries)
            data = data[: len(data) - cut]
            FS.ok("put", "-q", option, "--width", str(width), "-", "/a", data=data)
            check(FS.json("stat", "/a")["records"] == count, f"{option} {count}")
            check(stored("/a") == data, f"{option} {count}: other bytes")
            for i in rnd.sample(range(count - 1), min(count - 1, 5)) if count else []:
                check(FS.ok("cat", "--records", f"{i}:{i + 1}", "/a") == entries[i], f"{option} record {i}")


def what_is_no_such_text_is_said():
    cases = [
        ("--fasta", b"ACGT\n>a\n", "standard input: record 1: does not begin with '>'"),
        ("--fasta", b"\n>a\n", "record 1: does not begin with '>'"),
        ("--fasta", b">a\n" + b"x" * (17 << 20), "record 1 is longer than 16777216 bytes"),
        ("--fastq", b">a\nACGT\n", "record 1: does not begin with '@'"),
        ("--fastq", b"@a\nACGT\n+\nIIII\n@b\nACGT\n+\nIII", "record 2: is cut off"),
        ("--fastq", b"@a\nACGT\n", "record 1: is cut off"),
        ("--fastq", b"@a\nACGT\n+\nIIIII\n@b\n", "record 1: has 4 letters and 5 qualities"),
        ("--csv", b'a\n"b\n', "record 1: a quote is not closed"),
    ]
    for option, data, text in cases:
        FS.fails(3, text, "put", option, "-", "/none", data=data)
        check(not there("/none"), f"{option} {data[:20]}: nothing is there")
    FS.fails(2, "fast", "put", "--fasta", "--fastq", "-", "/none", data=b"")


# ---- compressed files ----

def compressed_files_are_stored_as_what_is_in_them():
    rnd = random.Random(3)
    data = b"".join(b"line %d of %d\n" % (i, rnd.randrange(1000)) for i in range(200_000))
    for program in programs():
        name = "log" + SUFFIX[program]
        compressed = run_program(program, "-1", data)
        local = write(name, compressed)
        FS.ok("put", "-q", "--lines", "--decompress", local, "/log")
        check(stored("/log") == data and FS.json("stat", "/log")["records"] == 200_000, program)
        FS.ok("put", "-q", "--lines", local, "/as-it-is")
        check(stored("/as-it-is") == compressed, f"{program}: without the option it is stored as it is")
        FS.ok("mkdir", "-p", "/folder")
        FS.ok("put", "-q", "--decompress", local, "/folder")
        check(FS.ok("ls", "/folder") == b"log\n" and stored("/folder/log") == data, f"{program}: its name")
        FS.ok("rm", "-r", "/folder")
        both = compressed + run_program(program, "-9", b"more")
        FS.ok("put", "-q", f"--decompress={program}", "-", "/log", data=both)
        check(stored("/log") == data + b"more", f"{program}: two streams, one behind the other")
        FS.ok("put", "-q", f"--decompress={program}", "-", "/log", data=run_program(program, "-1", b""))
        check(stored("/log") == b"", f"{program}: nothing in it")
    entries = b"".join(b"@%d\nACGT\n+\nIIII\n" % i for i in range(1000))
    FS.ok("put", "-q", "--fastq", write("reads.fastq.gz", gzip.compress(entries)), "/reads")
    check(FS.json("stat", "/reads")["records"] == 1000 and stored("/reads") == entries, "by its name")
    FS.ok("put", "-q", "--csv", write("table.csv.gz", gzip.compress(b"a,b\n1,2\n")), "/table")
    check(stored("/table") == b"a,b\n1,2\n" and FS.json("stat", "/table")["records"] == 1, "a table")
    pbm = b"P4\n8 3\n" + b"abc"
    FS.ok("put", "-q", "--header", "pbm", "--decompress", write("i.pbm.gz", gzip.compress(pbm) + bytes(512)), "/i")
    check(stored("/i") == pbm and FS.json("stat", "/i")["records"] == 3, "an image, with zeros behind it")


def trees_have_both_kinds():
    os.makedirs(FS.local("tree/below.gz"))
    for name, data in (("a.gz", b"aaa"), ("b.txt", None), ("below.gz/c.gz", b"ccc"), ("d", None), ("d.gz", b"ddd")):
        write("tree/" + name, b"plain" if data is None else gzip.compress(data))
    done = FS.run("put", "-q", "-r", "--decompress", FS.local("tree"), "/tree")
    check(done.returncode == 3 and b"d.gz is left out" in done.stderr, f"{done}")
    found = set(FS.ok("find", "/tree").decode().split())
    check(found == {"/tree", "/tree/a", "/tree/b.txt", "/tree/below.gz", "/tree/below.gz/c", "/tree/d"}, f"{found}")
    check(stored("/tree/a") == b"aaa" and stored("/tree/below.gz/c") == b"ccc", "decompressed")
    check(stored("/tree/b.txt") == b"plain" and stored("/tree/d") == b"plain", "as they are")


def what_is_cut_or_damaged_is_said_and_nothing_is_there():
    rnd = random.Random(4)
    data = bytes(rnd.choices(b"abcdefgh\n", k=600_000))
    for program in programs():
        whole = run_program(program, "-6", data)
        for options in (["--lines"], ["--csv"], ["--header", "10"]):
            for size in (0, 1, 9, len(whole) // 2, len(whole) - 1):
                local = write("bad" + SUFFIX[program], whole[:size])
                FS.fails(3, "bad.*is (cut off|damaged)", "put", *options, "--decompress", local, "/none")
        for at in (0, len(whole) // 3, len(whole) - 6):
            flipped = whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
            local = write("bad" + SUFFIX[program], flipped)
            FS.fails(3, "bad.*is (cut off|damaged)", "put", "--decompress", local, "/none")
        FS.fails(3, "is damaged", "put", f"--decompress={program}", "-", "/none", data=b"no such thing " * 100)
    check(not there("/none"), "nothing is there")
    FS.fails(2, "--decompress=gzip, zstd or xz", "put", "--decompress", "-", "/none", data=b"")
    FS.fails(2, "lz4", "put", "--decompress=lz4", "-", "/none", data=b"")


def ctrl_c_ends_a_put_whose_input_says_nothing():
    process = FS.start("put", "-q", "--decompress=gzip", "-", "/none", stdin=subprocess.PIPE)
    process.stdin.write(gzip.compress(random.Random(6).randbytes(8 << 20))[: 4 << 20])  # more than pipes hold
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=20) == -signal.SIGINT, f"it ended with {process.returncode}")
    process.stdin.close()
    check(not there("/none"), "nothing is there")


def get_compresses():
    data = bytes(random.Random(5).choices(b"abcdefgh\n", k=300_000))
    FS.ok("mkdir", "-p", "/all/below")
    for path in ("/all/a", "/all/below/b"):
        FS.ok("put", "-q", "--header", "5", "-", path, data=data)
    FS.ok("put", "-q", "-", "/all/empty", data=b"")
    for program in programs():
        suffix = SUFFIX[program]

        def content(name):
            with open(FS.local(name), "rb") as file:
                return run_program(program, "-d", file.read())

        FS.ok("get", "-q", "--compress", "/all/a", FS.local("a" + suffix))
        check(content("a" + suffix) == data, f"{program}: by the name")
        os.mkdir(FS.local(program))
        FS.ok("get", "-q", f"--compress={program}", "/all/a", "/all/empty", FS.local(program))
        check(sorted(os.listdir(FS.local(program))) == ["a" + suffix, "empty" + suffix], "names in a folder")
        check(content(f"{program}/empty{suffix}") == b"", f"{program}: an empty file")
        FS.ok("get", "-q", "-r", f"--compress={program}", "/all", FS.local(program + "-all"))
        check(content(f"{program}-all/below/b{suffix}") == data, f"{program}: a tree")
        piped = FS.ok("get", f"--compress={program}", "/all/a", "-")
        check(run_program(program, "-d", piped) == data, f"{program}: standard output")
        check(len(piped) < 0.6 * len(data), f"{program}: {len(piped)}")
        with open("/dev/full", "wb") as full:
            command = FS.command("get", f"--compress={program}", "/all/a", "-")
            done = subprocess.run(command, env=FS.env, stdout=full, stderr=subprocess.PIPE, check=False)
        check(done.returncode == 3 and b"standard output" in done.stderr, f"{done}")
    FS.fails(2, "--compress=gzip, zstd or xz", "get", "--compress", "/all/a", FS.local("plain"))
    FS.fails(2, "--compress=gzip, zstd or xz", "get", "--compress", "/all/a", "-")
    check(not os.path.exists(FS.local("plain")), "nothing is made")


def run_all():
    global FS
    with FileSystem(4, ["--insecure-loopback"]) as FS:
        return main_on(
            FS,
            [
                each_entry_is_a_record,
                what_is_no_such_text_is_said,
                compressed_files_are_stored_as_what_is_in_them,
                trees_have_both_kinds,
                what_is_cut_or_damaged_is_said_and_nothing_is_there,
                ctrl_c_ends_a_put_whose_input_says_nothing,
                get_compresses,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
