"""Tools whose workers are on several hosts."""

import os
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


def workers_look_where_the_data_lies_and_talk_between_hosts():
    with System(4, clients=1) as fs:
        client, last = fs.names[-1], "h4"
        fs.host(client).write("/srv/lines", LINES)
        fs.ok(client, "put", "--lines", "/srv/lines", "/lines")
        few = b"".join(line for line in LINES.splitlines(True) if line.startswith(b"0001"))
        for host in (client, last):
            check(fs.ok(host, "search", "-c", "^0001", "/lines") == b"%d\n" % few.count(b"\n"), f"{host} counts")
            fs.ok(host, "search", "^0001", "/lines", "--to", "/few")
            check(fs.ok("h1", "cat", "/few") == few, f"{host} makes a file of what it finds")
            cut = b"".join(line[:8] + b"\n" for line in LINES.splitlines())
            fs.ok(host, "map", "--each", "cut -c 1-8", "/lines", "/cut")
            check(fs.ok("h1", "cat", "/cut") == cut, f"{host} maps")
            check(b"20000" in fs.ok(host, "summarize", "-f", "1", "/lines"), f"{host} summarizes")
            fs.ok(host, "compress", "--context", "/lines", "/small")
            fs.ok(host, "copy", "--width", "1", "/small", "/small.1")
            fs.ok(host, "decompress", "/small.1", "/back")
            check(fs.run(host, "cmp", "/lines", "/back").returncode == 0, f"{host} has it back")
        backup_and_restore(fs, client)
        check(fs.run("h2", "fsck").returncode == 0, "all is well")


def backup_and_restore(fs, client):
    """Each LFS's part is on its own host."""
    for host in fs.names:
        fs.host(host).ok("mkdir", "-p", "/srv/backup")
    fs.ok(client, "backup", "--all", "/srv/backup")
    for number, host in enumerate(fs.names[:-1]):
        check(os.path.exists(fs.host(host).path(f"/srv/backup/lfs{number}.tar.zst")), f"the archive of {host}")
    fs.ok(client, "rm", "/lines", "/few")
    fs.ok(client, "restore", "/srv/backup", "/lines", "/few")
    check(fs.ok("h1", "cat", "/lines") == LINES, "restored")


TESTS = [sort_copy_and_transpose_from_every_host, workers_look_where_the_data_lies_and_talk_between_hosts]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
