"""pif-transpose as people run it: images, genotypes, numbers, and what is wrong."""

import json
import os
import random
import signal
import subprocess
import sys

from pif_system import BIN, FileSystem, await_condition, check, main_on

FS = None


def bits_of(rows, columns, order="msb"):
    """Rows of bytes as one integer each, column 0 its lowest bit."""
    found = []
    for row in rows:
        bits = 0
        for c in range(columns):
            place = 7 - c % 8 if order == "msb" else c % 8
            bits |= (row[c // 8] >> place & 1) << c
        found.append(bits)
    return found


def transposed(data, columns, bits=1, order="msb"):
    """Packed rows of elements, transposed: a loop over elements."""
    length = (columns * bits + 7) // 8
    rows = [data[at : at + length] for at in range(0, len(data), length)]
    out_length = (len(rows) * bits + 7) // 8
    out = [bytearray(out_length) for _ in range(columns)]
    for r, row in enumerate(bits_of(rows, columns * bits, order)):
        for c in range(columns):
            for bit in range(bits):
                if row >> (c * bits + bit) & 1:
                    at = r * bits + bit
                    out[c][at // 8] |= 1 << (7 - at % 8 if order == "msb" else at % 8)
    return b"".join(out)


def a_bitmap_is_transposed_and_comes_back():
    rnd = random.Random(1)
    width, height = 301, 203
    body = b"".join((rnd.getrandbits(width) << 3).to_bytes(38, "big") for _ in range(height))
    FS.ok("put", "-q", "--header", "pbm", "-", "/page", data=b"P4\n# noise\n%d %d\n" % (width, height) + body)
    FS.ok("transpose", "-q", "/page", "/turned")
    check(
        FS.ok("cat", "/turned") == b"P4\n%d %d\n" % (height, width) + transposed(body, width),
        "transposed, with its header",
    )
    FS.ok("transpose", "-q", "--algorithm", "recursive", "/turned", "/page-again")
    check(FS.ok("cat", "/page-again") == b"P4\n%d %d\n" % (width, height) + body, "and back")


def an_image_that_is_not_as_its_header_says_is_refused():
    body = bytes([1, 2])
    wrong = [body[:1], b"", body + b"\n", body + b"x", body + b"P4\n8 2\n" + body, body * 2]
    for data in wrong:
        for words in ([], ["--record-length", "1"], ["--lines"]):
            done = FS.run("put", "--header", "pbm", *words, "-", "/image", data=b"P4\n8 2\n" + data)
            check(done.returncode == 3 and b"header says 2 rows of 1 bytes" in done.stderr, f"{data} {words}: {done}")
    FS.fails(3, "/image", "stat", "/image")
    for header in (b"P4\n#a\r8#b\n2#c\n", b"P4 8\t2\r", b"P4\n8 2\n"):
        FS.ok("put", "-q", "--header", "pbm", "-", "/image", data=header + body)
        FS.ok("transpose", "-q", "/image", "/turned")
        check(FS.content("/turned") == b"P4\n2 8\n" + bytes([0] * 6 + [0x40, 0x80]), f"{header}")
    FS.fails(2, "rows have 8 bits, not 7", "transpose", "--columns", "7", "/image", "/never")
    FS.ok("append", "-", "/image", data=b"\x03")
    FS.fails(3, "says 2 rows, but the file has 3 records", "transpose", "/image", "/never")
    FS.fails(3, "says 2 rows, but the file has 3 records", "transpose", "--rows", "0:2", "/image", "/never")
    FS.fails(3, "/never", "stat", "/never")


def genotypes_by_variant_become_genotypes_by_sample():
    rnd = random.Random(2)
    samples, variants = 250, 333
    rows = [rnd.getrandbits(2 * samples).to_bytes((samples + 3) // 4, "little") for _ in range(variants)]
    body = b"".join(rows)
    FS.ok(
        "put",
        "-q",
        "--header",
        "bed",
        "--record-length",
        str(len(rows[0])),
        "-",
        "/variants",
        data=b"\x6c\x1b\x01" + body,
    )
    FS.fails(2, "number of samples", "transpose", "/variants", "/samples")
    FS.ok("transpose", "-q", "--columns", str(samples), "/variants", "/samples")
    by_sample = FS.ok("cat", "/samples")
    check(by_sample == b"\x6c\x1b\x00" + transposed(body, samples, 2, "lsb"), "by sample")
    FS.ok("transpose", "-q", "/samples", "/variants-again")
    check(FS.ok("cat", "/variants-again") == b"\x6c\x1b\x01" + body, "and back")
    FS.ok("put", "-q", "--header", "bed", "--record-length", str((variants + 3) // 4), "-", "/copy", data=by_sample)
    FS.ok("transpose", "-q", "--columns", str(variants), "/copy", "/variants-again")
    check(FS.ok("cat", "/variants-again") == b"\x6c\x1b\x01" + body, "back from a local file")


def a_large_matrix_is_transposed_in_stripes_and_in_passes():
    columns, rows = 80_000, 3_000  # rows so long that pieces of them are read
    FS.ok("put", "-q", "--record-length", str(columns // 8), "-", "/large", data=os.urandom(columns // 8 * rows))
    FS.ok("transpose", "-q", "--columns", str(columns), "/large", "/one")
    one = FS.ok("cat", "/one")
    for options in (
        ["--memory", "32M"],
        ["--route", "tcp"],
        ["--threads", "1"],
        ["--threads", "7"],
        ["--threads", "28", "--memory", "64M"],
        ["--threads", "28", "--width", "1"],
        ["--route", "tcp", "--algorithm", "recursive", "--memory", "32M"],
        ["--memory", "32M", "--algorithm", "recursive"],
        ["--algorithm", "recursive", "--width", "3"],
    ):
        FS.ok("transpose", "-q", *options, "--columns", str(columns), "/large", "/other")
        check(FS.ok("cat", "/other") == one, f"{options}")
    FS.ok("transpose", "-q", "--memory", "32M", "/one", "/one")
    check(FS.ok("cat", "/one") == FS.ok("cat", "/large"), "twice is the identity")
    FS.ok("rm", "/large", "/one", "/other")


def a_window_is_transposed_onto_any_width():
    data = os.urandom(1000 * 100)
    FS.ok("put", "-q", "--record-length", "100", "-", "/floats", data=data)
    part = b"".join(data[r * 100 + 12 : r * 100 + 52] for r in range(100, 900))
    for width in (1, 2, 3, 4):
        FS.ok(
            "transpose",
            "-q",
            "--element-bits",
            "32",
            "--columns",
            "25",
            "--rows",
            "100:900",
            "--columns-range",
            "3:13",
            "--width",
            str(width),
            "/floats",
            "/part",
        )
        check(FS.ok("cat", "/part") == transposed(part, 10, 32, "lsb"), f"width {width}")


def what_it_will_take_is_predicted_and_reported():
    FS.ok("put", "-q", "--record-length", "500", "-", "/some", data=os.urandom(500 * 3000))
    plan = json.loads(FS.ok("transpose", "--json", "--explain", "--columns", "4000", "/some", "/never"))
    check("pif calibrate" in plan["predicted"] and plan["record_length"] == "375", f"{plan}")  # calibrate_test.py
    FS.fails(3, "/never", "stat", "/never")
    for algorithm in ("direct", "recursive"):
        report = json.loads(
            FS.ok("transpose", "--json", "--algorithm", algorithm, "--columns", "4000", "/some", "/out")
        )
        check(all(part["measured"] > 0 for part in report["predictions"].values()), f"{report}")


def what_is_wrong_is_said():
    FS.ok("put", "-q", "--record-length", "10", "-", "/ten", data=b"x" * 30)
    FS.ok("put", "-q", "--lines", "-", "/lines", data=b"a\nb\n")
    FS.ok("put", "-q", "--record-length", "1", "-", "/tall", data=b"x" * 40_000_000)
    for code, words, text in [
        (3, ["--columns", "80", "/nothing", "/out2"], b"there is no /nothing"),
        (2, ["/ten"], b"DST is required"),
        (2, ["/ten", "/out2"], b"--columns"),
        (2, ["--columns", "90", "/ten", "/out2"], b"records have 10 bytes"),
        (2, ["--columns", "80", "--element-bits", "3", "/ten", "/out2"], b"--element-bits"),
        (2, ["--columns", "80", "--rows", "5", "/ten", "/out2"], b"has no colon"),
        (2, ["--columns", "8", "/lines", "/out2"], b"variable length"),
        (2, ["--columns", "80", "--memory", "1K", "/ten", "/out2"], b"32M is the least"),
        (3, ["--columns", "8", "--memory", "32M", "/tall", "/out2"], b"40000000 rows take"),
        (3, ["--columns", "8", "--memory", "32M", "--algorithm", "recursive", "/tall", "/out2"], b"40000000 rows take"),
    ]:
        done = FS.run("transpose", *words)
        check(done.returncode == code and text in done.stderr, f"{words}: {done}")
    FS.fails(3, "/out2", "stat", "/out2")


def workers():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"pif-transpose") and b"--pif-worker" in words:
            found.append(int(pid))
    return found


def a_killed_worker_leaves_no_output():
    columns = 25_000
    FS.ok("put", "-q", "--record-length", str(columns // 8), "-", "/big", data=os.urandom(columns // 8 * columns))
    before = set(workers())
    running = subprocess.Popen(
        [os.path.join(BIN, "pif-transpose"), "-q", "--memory", "32M", "--columns", str(columns), "/big", "/gone"],
        env=FS.env,
        stderr=subprocess.PIPE,
    )
    victim = await_condition(lambda: set(workers()) - before, "a worker runs").pop()
    os.kill(victim, signal.SIGKILL)
    _, error = running.communicate(timeout=60)
    check(running.returncode == 3 and b"worker" in error, f"exit {running.returncode}: {error}")
    FS.fails(3, "/gone", "stat", "/gone")
    FS.ok("rm", "/big")


def run_all():
    global FS
    with FileSystem(4, ["--curve"]) as FS:
        return main_on(
            FS,
            [
                a_bitmap_is_transposed_and_comes_back,
            an_image_that_is_not_as_its_header_says_is_refused,
                genotypes_by_variant_become_genotypes_by_sample,
                a_large_matrix_is_transposed_in_stripes_and_in_passes,
                a_window_is_transposed_onto_any_width,
                what_it_will_take_is_predicted_and_reported,
                what_is_wrong_is_said,
                a_killed_worker_leaves_no_output,
            ]
        )


if __name__ == "__main__":
    sys.exit(run_all())
