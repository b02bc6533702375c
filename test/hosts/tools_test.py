"""Tools whose workers are on several hosts."""

import sys

from several import System, check, why_not  # isort: skip
from pif_system import main

LINES = b"".join(b"%08d %s\n" % (i * 7919 % 100000, b"x" * (i % 90)) for i in range(20000))
SORTED = b"".join(line + b"\n" for line in sorted(LINES.split(b"\n")[:-1]))
BITS = bytes(range(256)) * 64


def sort_copy_and_transpose_from_every_host():
    with System(2, clients=1) as fs:
        fs.host("h3").write("/srv/lines", LINES)
        fs.ok("h3", "put", "--lines", "/srv/lines", "/lines")
        fs.host("h3").write("/srv/bits", BITS)
        fs.ok("h3", "put", "--record-length", "128", "/srv/bits", "/bits")
        for host in fs.names:
            fs.ok(host, "sort", "/lines", f"/sorted.{host}")
            check(fs.ok("h1", "cat", f"/sorted.{host}") == SORTED, f"{host} sorts")
            fs.ok(host, "copy", "--width", "1", "/lines", f"/copy.{host}")
            check(fs.ok("h1", "cat", f"/copy.{host}") == LINES, f"{host} copies")
            fs.ok(host, "transpose", "--columns", "1024", "/bits", f"/turned.{host}")
            fs.ok(host, "transpose", f"/turned.{host}", f"/again.{host}")
            check(fs.ok("h1", "cat", f"/again.{host}") == BITS, f"{host} transposes, twice")
        check(fs.run("h2", "fsck").returncode == 0, "all is well")


TESTS = [sort_copy_and_transpose_from_every_host]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
