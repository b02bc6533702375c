"""pif compress and pif decompress: files of all shapes come back byte for byte; beside what the zstd program says."""

import json
import os
import random
import shutil
import subprocess
import sys

from pif_system import FileSystem, check, flip, main_on

FS = None
MAGIC = b"\x28\xb5\x2f\xfd"  # what stored records leave away of a frame
LONGEST = 16 << 20


def put(name, data, *words):
    FS.ok("put", "-q", *words, "-", name, data=data)


def log_lines(rnd, count):
    return b"".join(
        b'10.0.0.%d - - [2026-11-%02d] "GET /page/%d HTTP/1.1" 200 %d\n'
        % (rnd.randrange(999), rnd.randrange(1, 30), rnd.randrange(500), rnd.randrange(10_000))
        for _ in range(count)
    )


def shape(name):
    stat = FS.json("stat", name)
    return {key: stat[key] for key in ("format", "nodes", "bevies", "mode", "records", "bytes") if key in stat}


def goes_and_comes_back(name, data, *words):
    """The compressed file's size."""
    FS.ok("compress", "-q", *words, name, "/z")
    compressed = shape("/z")
    check(compressed["format"] == {"kind": "variable"}, f"{compressed}")
    check(compressed["records"] == shape(name)["records"], "a record for each")
    FS.ok("decompress", "-q", "/z", "/back")
    check(FS.ok("get", "/back", "-") == data, f"{name} {words}: other bytes")
    check(shape("/back") == shape(name), f"{shape('/back')}, not {shape(name)}")
    check(FS.json("stat", "/back")["attribute_bytes"] == FS.json("stat", name)["attribute_bytes"], "attributes")
    return compressed["bytes"]


def files_of_all_shapes_come_back():
    rnd = random.Random(1)
    text = log_lines(rnd, 20_000)
    pictures = b"P4\n# a comment\n800 300\n" + rnd.randbytes(100 * 300)
    files = [
        (text, ["--lines"]),
        (text[:-1], ["--lines", "--width", "8"]),
        (text, ["--lines", "--width", "8", "--bevy", "2"]),
        (text, []),
        (text, ["--record-length", "100", "--width", "2"]),
        (text.replace(b"\n", b"\0"), ["--delimited", "\\0"]),
        (b"a,b\n" + text, ["--csv"]),
        (pictures, ["--header", "pbm"]),
        (rnd.randbytes(3_000_000), []),
        (rnd.randbytes(200_000), ["--record-length", "7"]),
        (bytes(1_000_000), ["--record-length", "10"]),
        (b"\n" * 1000, ["--lines"]),
        (b"x", []),
        (b"one\n", ["--lines"]),
        (b"", []),
        (b"", ["--lines"]),
    ]
    for i, (data, words) in enumerate(files):
        put("/a", data, *words, *([] if "--width" in words else ["--width", "3"]))
        for more in [[], ["--context"]] + [["--level", "1", "--threads", "3"]] * (i < 3):
            goes_and_comes_back("/a", data, *more)


def text_becomes_smaller_and_with_context_still_smaller():
    here = os.path.dirname(os.path.abspath(__file__))
    text = b""
    for name in sorted(os.listdir(here)):
        if name.endswith(".py"):
            with open(os.path.join(here, name), "rb") as file:
                text += file.read()
    put("/a", text, "--lines", "--width", "1")
    size = goes_and_comes_back("/a", text)
    context = goes_and_comes_back("/a", text, "--context")
    check(context < 0.95 * size and size < 0.75 * len(text), f"{context} with context, {size} without, of {len(text)}")


def the_longest_records_come_back():
    rnd = random.Random(2)
    for data in (rnd.randbytes(LONGEST), bytes(LONGEST)):
        put("/a", data * 2 + b"end", "--record-length", str(LONGEST))
        for more in [[], ["--context"]]:
            goes_and_comes_back("/a", data * 2 + b"end", *more)
    line = rnd.randbytes(LONGEST - 10).replace(b"\n", b"x") + b"\n"
    put("/a", b"short\n" + line, "--lines", "--width", "1")
    FS.fails(3, r"record 1 \(from 0\) of /a has \d+ bytes that do not become fewer", "compress", "/a", "/none")
    FS.fails(3, "there is no /none", "stat", "/none")


def a_copy_of_any_width_comes_back():
    rnd = random.Random(3)
    text = log_lines(rnd, 30_000)
    for words in (
        ["--lines", "--width", "4"],
        ["--record-length", "53", "--width", "5"],
        ["--lines", "--width", "4", "--bevy", "2"],
    ):
        put("/a", text, *words)
        for more in [[], ["--context"]]:
            FS.ok("compress", "-q", *more, "/a", "/z")
            for width in (1, 3, 8):
                FS.ok("copy", "-q", "--width", str(width), "--bevy", "0", "/z", "/copy")
                FS.ok("decompress", "-q", "/copy", "/back")
                check(FS.ok("get", "/back", "-") == text, f"{words} {more} over {width}")
                back, original = shape("/back"), shape("/a")
                check(back["format"] == original["format"] and back["records"] == original["records"], f"{back}")
                check(len(back["nodes"]) == width, f"{back}")
    FS.ok("copy", "-q", "--width", "3", "--bevy", "0", "/z", "/copy")
    FS.ok("decompress", "-q", "--route", "tcp", "/copy", "/back")
    check(FS.ok("get", "/back", "-") == text, "over tcp")


def a_stored_record_is_a_frame_of_zstd():
    """Without a dictionary, which long records are not given."""
    if not shutil.which("zstd"):
        return
    data = log_lines(random.Random(4), 30_000)
    put("/a", data)
    FS.ok("compress", "-q", "/a", "/z")
    for n in (0, 7, len(data) // 65536):
        stored = FS.ok("cat", "--records", f"{n}:{n + 1}", "/z")
        done = subprocess.run(["zstd", "-dc"], input=MAGIC + stored[2:], stdout=subprocess.PIPE, check=True)
        check(done.stdout == data[n * 65536 : (n + 1) * 65536], f"record {n}")


def damage_is_named_and_leaves_nothing():
    data = log_lines(random.Random(5), 20_000)
    put("/a", data, "--lines")
    FS.ok("compress", "-q", "--context", "/a", "/z")
    FS.ok("sort", "-q", "/z", "/mixed")
    FS.ok("rm", "--force", "/back")
    FS.fails(3, r"record \d+ \(from 0\) of /mixed is damaged", "decompress", "/mixed", "/back")
    FS.fails(3, "there is no /back", "stat", "/back")
    FS.ok("compress", "-q", "/a", "/z")
    name = f"{FS.json('stat', '/z')['id']:016x}"
    path = os.path.join(FS.folder, "lfs1", "data", name[-2:], name + ".dat")
    flip(path, 5000)
    done = FS.run("decompress", "-q", "/z", "/back")
    check(done.returncode == 3 and b"lfs1" in done.stderr, f"{done}")
    flip(path, 5000)
    FS.fails(3, "there is no /back", "stat", "/back")
    FS.ok("decompress", "-q", "/z", "/back")
    check(FS.ok("get", "/back", "-") == data, "as it was")


def what_is_wrong_is_said():
    put("/a", b"a\nb\n", "--lines")
    FS.ok("compress", "-q", "/a", "/z")
    FS.fails(2, "is compressed already", "compress", "/z", "/y")
    FS.fails(2, "/a is not compressed", "decompress", "/a", "/y")
    FS.fails(3, "there is no /nothing", "compress", "/nothing", "/y")
    FS.fails(3, "there is no /nothing", "decompress", "/nothing", "/y")
    FS.fails(3, "/z exists already", "compress", "--no-clobber", "/a", "/z")
    FS.fails(2, "20", "compress", "--level", "20", "/a", "/y")
    check(b"nothing" in FS.ok("compress", "--explain", "/a", "/y"), "a plan")
    check(b"nothing" in FS.ok("decompress", "--explain", "/z", "/y"), "a plan")
    FS.fails(3, "there is no /y", "stat", "/y")
    found = json.loads(FS.ok("compress", "--json", "/a", "/z"))["results"]
    check(found["records"] == 2 and found["bytes"] == 4 and found["dictionary_bytes"] == 0, f"{found}")


def run_all():
    global FS
    with FileSystem(8, ["--insecure-loopback"]) as FS:
        return main_on(
            FS,
            [
                files_of_all_shapes_come_back,
                text_becomes_smaller_and_with_context_still_smaller,
                the_longest_records_come_back,
                a_copy_of_any_width_comes_back,
                a_stored_record_is_a_frame_of_zstd,
                damage_is_named_and_leaves_nothing,
                what_is_wrong_is_said,
            ],
            sys.argv[1:],
        )


if __name__ == "__main__":
    sys.exit(run_all())
