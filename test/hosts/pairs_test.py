"""Everything from every host, by every route, with daemons of root and of another user."""

import os
import sys

from several import System, check, text, why_not  # isort: skip
from pif_system import main

LINES = b"".join(b"%08d %s\n" % (i * 7919 % 100000, b"x" * (i % 90)) for i in range(5000))
SORTED = b"".join(line + b"\n" for line in sorted(LINES.split(b"\n")[:-1]))
BITS = bytes(range(256)) * 64
CLIENT = os.environ.get("PIF_CRASH_CLIENT", "crash_client")
ANN = ["setpriv", "--reuid", "1007", "--regid", "1007", "--clear-groups"]
HOME = "/srv/ann"


class AnnsSystem(System):
    """All of it is hers: folders, daemons, and whoever asks."""

    def __init__(self, count, **options):
        super().__init__(count, folder=HOME + "/pif", **options)
        self.hosts.env.update(HOME=HOME, PIF_RSH="sh /srv/as-ann")
        for host in self.hosts:
            host.write("/srv/as-ann", f'address=$1; shift; exec /mnt/nsrun "$address" {" ".join(ANN)} "$@"\n'.encode())
            host.ok("sh", "-c", f"chmod 0755 /srv && mkdir {HOME} && chown 1007:1007 {HOME}")

    def command(self, host, *words, **options):
        return self.host(host).ok(*ANN, *words, **options)

    def run(self, host, *words, **options):
        return self.host(host).run(*ANN, "pif", *words, **options)


class RootsSystem(System):
    def command(self, host, *words, **options):
        return self.host(host).ok(*words, **options)


def everything_from(fs, host, other):
    """What `host` does `other` sees."""
    fs.ok(host, "put", "--lines", "-", "/lines", data=LINES)
    check(fs.ok(other, "get", "/lines", "-") == LINES, f"{other} gets what {host} put")
    fs.ok(host, "append", "-", "/lines", data=b"0\n")
    check(fs.ok(other, "cat", "/lines") == LINES + b"0\n", f"{host} appends")
    fs.ok(host, "cp", "/lines", "/copy")
    check(fs.ok(other, "cat", "/copy") == LINES + b"0\n", f"{host} copies")
    fs.ok(host, "copy", "--width", "1", "/lines", "/narrow")
    check(fs.ok(other, "cat", "/narrow") == LINES + b"0\n", f"workers copy for {host}")
    fs.ok(host, "sort", "/lines", "/sorted")
    check(fs.ok(other, "cat", "/sorted") == b"0\n" + SORTED, f"{host} sorts")
    fs.ok(host, "put", "--record-length", "128", "-", "/bits", data=BITS)
    fs.ok(host, "transpose", "--columns", "1024", "/bits", "/turned")
    fs.ok(host, "transpose", "/turned", "/bits")
    check(fs.ok(other, "cat", "/bits") == BITS, f"{host} transposes, twice")
    overwrite(fs, host, other)
    check(fs.run(host, "fsck").returncode == 0, f"{host} checks")
    fs.ok(host, "rm", "-r", "/lines", "/copy", "/narrow", "/sorted", "/bits", "/turned", "/box")
    check(fs.json(other, "ls", "/")["entries"] == [], f"{host} removes")


def overwrite(fs, host, other):
    """50 records by one client; 5 of them overwritten by another, which says by whom each record is."""
    fs.ok(host, "mkdir", "/box")
    said = fs.command(host, CLIENT, fs.folder, data=b"1 put /box/a 7 64 50 2\n2 overwrite /box/a 7 20 5\n")
    check(said == b"1 ok\n2 ok\n", f"{host} overwrites: {said}")
    said = text(fs.command(other, CLIENT, fs.folder, data=b"3 dump /box\n"))
    check("file /box/a 64 7:0:1:20 7:20:2:5 7:25:1:25\n" in said, f"{other} sees what {host} has overwritten: {said}")


def from_every_host(fs):
    for i, host in enumerate(fs.names):
        everything_from(fs, host, fs.names[(i + 1) % len(fs.names)])
    fs.await_clean(seconds=10)


def everything_works_from_every_host():
    with RootsSystem(2, clients=1) as fs:
        from_every_host(fs)


def everything_works_from_every_host_without_root():
    with AnnsSystem(2, clients=1) as fs:
        owners = "for p in /proc/[0-9]*; do case $(cat $p/comm) in pif-*) stat -c %u $p;; esac; done"
        for host in ("h1", "h2"):
            uids = set(text(fs.host(host).ok("sh", "-c", owners)).split())
            check(uids == {"1007"}, f"daemons of {host} are hers: {uids}")
        from_every_host(fs)


WAYS = [(route, data) for route in ("auto", "tcp") for data in ("auto", "messages")]
NEAR_WAYS = [*WAYS, ("unix", "auto"), ("unix", "messages"), ("ipc", "auto"), ("ipc", "messages")]


def what_goes_in_by_one_route_comes_out_by_any_other():
    with System(2, clients=1) as fs:
        # Of the server's own host all ways lead to its LFS.
        ways = {host: NEAR_WAYS if host == "h1" else WAYS for host in fs.names}
        everyone = [(host, ["--route", route, "--data", data]) for host in fs.names for route, data in ways[host]]
        for number, (host, way) in enumerate(everyone):
            data = LINES[number:]
            fs.ok(host, *way, "put", "--lines", "--nodes", "lfs0", "-", "/a", data=data)
            for other, other_way in everyone:
                found = fs.ok(other, *other_way, "cat", "/a")
                check(found == data, f"{other} {other_way} reads what {host} {way} wrote")
        for host, route in (("h1", "unix"), ("h2", "unix"), ("h2", "ipc"), ("h3", "ipc")):
            words = ["--route", route, "put", "--lines", "-", "/b"]
            only_tcp = r"on another host, where only tcp leads \(--route tcp or auto\).*h[12]"
            fs.fails(host, 3, only_tcp, *words, data=LINES)


TESTS = [
    everything_works_from_every_host,
    everything_works_from_every_host_without_root,
    what_goes_in_by_one_route_comes_out_by_any_other,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
