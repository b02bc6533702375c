"""Connections between the workers of a tool break, or are blocked: the tool ends soon, and says so."""

import re
import shutil
import subprocess
import sys
import time

from several import System, await_condition, check, text, why_not  # isort: skip
from pif_system import main

LIMIT = 120.0  # seconds that a tool may take to notice
RECORD = 100
RECORDS = 200_000
UNDER_WAY = 2 << 20  # bytes that a host has sent when it is in the middle of its work
PORTS = "7500-7999"  # worker-ports of pif.toml, if nobody says otherwise
OF_WORKERS = ["( dport >= :7500 and dport <= :7999 )", "( sport >= :7500 and sport <= :7999 )"]
SAYS = r"of worker \d on lfs\d( at h\d)? did not come in 30 s: .*worker-ports.*run the tool again"
PROBE = """
import socket, subprocess
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
subprocess.run(["ss", "-K", "-tn", f"dport = :{server.getsockname()[1]}"], check=True, stdout=subprocess.DEVNULL)
client.settimeout(1)
try:
    client.recv(1)
except ConnectionError:
    print("broken")
"""


def why_not_break():
    """Why connections cannot be broken here, or nothing."""
    if not shutil.which("ss"):
        return "there is no ss"
    line = f"ip link set lo up && exec {sys.executable} -c '{PROBE}'"
    done = subprocess.run(["unshare", "--net", "sh", "-c", line], capture_output=True, text=True, check=False)
    if done.stdout == "broken\n":
        return ""
    return f"ss -K breaks no connection (CONFIG_INET_DIAG_DESTROY): {done.stderr.strip()}"


def records():
    return b"".join(b"%09d %s\n" % (i * 7919 % RECORDS, b"x" * (RECORD - 11)) for i in range(RECORDS))


def break_all(host):
    for which in OF_WORKERS:
        host.ok("ss", "-K", "-tn", which)


def await_end(sort, begin, what):
    """Its exit code and what it said."""
    _, error = sort.communicate(timeout=LIMIT)
    waited, said = time.monotonic() - begin, text(error)
    print(f"      {what}: exit {sort.returncode} after {waited:.1f} s: {said.strip()}", flush=True)
    return sort.returncode, said


def sorts_whose_connections_break_fail_or_are_right():
    data = records()
    wanted = b"".join(sorted(data[i : i + RECORD] for i in range(0, len(data), RECORD)))
    with System(2, clients=1) as fs:
        fs.host("h3").write("/srv/data", data)
        fs.ok("h3", "put", "--record-length", str(RECORD), "/srv/data", "/data")
        fs.host("h1").limit("5mbps")  # so that much is under way
        begin, before, failed = time.monotonic(), fs.host("h1").sent_bytes(), 0
        sorts = [fs.host("h3").start("pif", "sort", "/data", f"/sorted{number}") for number in range(2)]
        await_condition(lambda: fs.host("h1").sent_bytes() > before + UNDER_WAY, "they are at work", 30)
        break_all(fs.host("h1"))
        for number, sort in enumerate(sorts):
            code, said = await_end(sort, begin, f"sort {number}")
            if code == 0:
                check(fs.ok("h3", "cat", f"/sorted{number}") == wanted, "it is sorted")
                continue
            failed += 1
            check(code == 3 and re.search(SAYS, said), said)
        check(failed > 0, "something was lost")
        fs.ok("h3", "sort", "/data", "/sorted")
        check(fs.ok("h3", "cat", "/sorted") == wanted, "it is sorted")
        fs.await_clean(seconds=30)


def a_sort_whose_workers_cannot_reach_each_other_says_so():
    with System(2, clients=1) as fs:
        fs.ok("h3", "put", "--lines", "-", "/lines", data=b"b\na\n" * 1000)
        fs.host("h2").nft(f"add rule inet cut input tcp dport {PORTS} drop", "input")
        begin = time.monotonic()
        code, said = await_end(fs.host("h3").start("pif", "sort", "/lines", "/sorted"), begin, "blocked")
        check(code == 3 and re.search(SAYS, said), said)
        fs.host("h2").mend()
        fs.ok("h3", "sort", "/lines", "/sorted")
        check(fs.ok("h3", "cat", "/sorted") == b"a\n" * 1000 + b"b\n" * 1000, "it is sorted")


TESTS = [sorts_whose_connections_break_fail_or_are_right, a_sort_whose_workers_cannot_reach_each_other_says_so]

if __name__ == "__main__":
    if reason := why_not() or why_not_break():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
