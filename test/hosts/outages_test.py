"""A host goes off in the middle of what people do: the error names it, and afterwards all is well again."""

import re
import sys
import time

from several import FOLDER, System, await_condition, check, text, why_not  # isort: skip
from pif_system import main

LIMIT = 10.0  # seconds until somebody who waits for a host must know which one it is
STATUS_LIMIT = 5.0  # three of them for the server
BYTES = 1 << 20


def cable(host):
    host.link(False)


def power(host):
    host.power_off()


def nothing_comes_in(host):
    host.cut("input")


def nothing_goes_out(host):
    host.cut("output")


def back(fs, host):
    host.link(True)
    host.mend()
    if host.power is None:
        host.power_on()
    fs.ok("h1", "up", FOLDER)
    fs.await_up()


def a_put_that_loses_a_host_says_which_and_leaves_nothing():
    with System(3, clients=1) as fs:
        lost = fs.host("h2")
        for number, fault in enumerate((cable, power, nothing_comes_in, nothing_goes_out)):
            put = fs.host("h4").start("pif", "put", "-", f"/big{number}", stdin=-1)
            put.stdin.write(b"x" * BYTES)  # the rest comes when the host has gone
            put.stdin.flush()
            fault(lost)
            begin = time.monotonic()
            _, error = put.communicate(b"y" * (16 * BYTES), timeout=60)
            waited = time.monotonic() - begin
            said = text(error)
            check(put.returncode == 3 and re.search(r"lfs1|h2", said), f"{fault.__name__}: {put.returncode}: {said}")
            check(waited < LIMIT, f"{fault.__name__}: {waited:.1f} s until it said: {said}")
            back(fs, lost)
            check(fs.run("h4", "cat", f"/big{number}").returncode == 3, "nobody sees a half file")
        fs.ok("h4", "put", "-", "/whole", data=b"z" * (4 * BYTES))
        check(fs.ok("h2", "cat", "/whole") == b"z" * (4 * BYTES), "it works as before")
        fs.await_clean(seconds=30, pending=False)


def a_read_that_loses_a_host_says_which():
    with System(2, clients=1) as fs:
        fs.ok("h3", "put", "-", "/a", data=b"x" * (8 * BYTES))
        for fault in (cable, power, nothing_goes_out):
            fault(fs.host("h2"))
            begin = time.monotonic()
            done = fs.run("h3", "cat", "/a", timeout=60)
            waited, said = time.monotonic() - begin, text(done.stderr)
            check(done.returncode == 3 and re.search(r"lfs1|h2", said), f"{fault.__name__}: {said}")
            check(waited < LIMIT, f"{fault.__name__}: {waited:.1f} s until it said: {said}")
            if fault is power:
                await_condition(lambda: fs.states()["lfs1"] != "up", "the server has missed it", 20)
                fs.fails("h1", 3, r"lfs1: it is not up.* \(on host h2\)", "fsck")
            back(fs, fs.host("h2"))
            check(fs.ok("h3", "cat", "/a") == b"x" * (8 * BYTES), "it is all there")


def a_copy_by_workers_that_loses_a_host_says_which():
    with System(3, clients=1) as fs:
        data = bytes(17 * BYTES)  # so long that pif cp runs pif-copy
        fs.ok("h4", "put", "-", "/a", data=data)
        power(fs.host("h2"))
        begin = time.monotonic()
        done = fs.run("h4", "cp", "/a", "/b", timeout=60)
        waited, said = time.monotonic() - begin, text(done.stderr)
        check(done.returncode == 3 and re.search(r"lfs1|h2", said), said)
        check(waited < LIMIT, f"{waited:.1f} s until it said: {said}")
        back(fs, fs.host("h2"))
        fs.ok("h4", "cp", "/a", "/b")
        check(fs.ok("h2", "cat", "/b") == data, "it is all there")
        fs.await_clean(seconds=30)


def status_says_soon_that_the_server_is_away():
    with System(2, clients=1) as fs:
        power(fs.host("h1"))
        begin = time.monotonic()
        done = fs.run("h3", "status")
        waited, said = time.monotonic() - begin, text(done.stdout)
        check(done.returncode == 1 and re.search("h1 .*cannot be reached", said), said)
        check(re.search(r"h2 .*lfs1 .*running", said), said)
        check(waited < STATUS_LIMIT, f"{waited:.1f} s until it said: {said}")


def a_server_that_was_away_is_found_again():
    with System(2, clients=1) as fs:
        fs.ok("h3", "put", "-", "/a", data=b"a\n")
        fs.host("h1").power_off()
        fs.host("h1").power_on()
        back(fs, fs.host("h1"))
        check(fs.ok("h3", "cat", "/a") == b"a\n", "it is there")
        fs.ok("h2", "rm", "/a")
        await_condition(lambda: fs.components() == 0, "it is gone everywhere", 10)


TESTS = [
    a_put_that_loses_a_host_says_which_and_leaves_nothing,
    a_read_that_loses_a_host_says_which,
    a_copy_by_workers_that_loses_a_host_says_which,
    status_says_soon_that_the_server_is_away,
    a_server_that_was_away_is_found_again,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
