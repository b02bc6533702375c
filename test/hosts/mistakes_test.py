"""What goes wrong on several hosts by mistake: clocks, copied roots, ports in use, a disk that is replaced."""

import os
import re
import sys

from several import FOLDER, System, await_condition, check, text, why_not  # isort: skip
from pif_system import main

CLOCK = "/mnt/clock.so"
LISTEN = "import socket; s = socket.create_server(('0.0.0.0', {port})); print('ready', flush=True); s.accept()"


def clock_words(seconds):
    return ["env", f"LD_PRELOAD={CLOCK}", f"PIF_CLOCK_SHIFT={seconds}"]


def shift_clock(fs, name, seconds):
    """The daemons of a host have another time from now on."""
    fs.host(name).ok("pif", "host", "down", FOLDER)
    with open(os.environ["PIF_SHIFT_CLOCK"], "rb") as program:
        fs.host(name).write(CLOCK, program.read())
    fs.host(name).ok(*clock_words(seconds), "pif", "host", "up", FOLDER)


def await_skew(fs, name, pattern):
    await_condition(lambda: re.search(rf"^{name} .* {pattern}$", text(fs.ok("h1", "status")), re.M), pattern, 20)


def clocks_that_differ_by_little_are_shown_and_harm_nobody():
    with System(2) as fs:
        for seconds, shown in ((10, "(9|10) s ahead"), (-90, "9[01] s behind")):
            shift_clock(fs, "h2", seconds)
            fs.await_up()
            await_skew(fs, "h2", shown)
            data = b"x" * 300_000
            fs.ok("h1", "put", "-", "/a", data=data)
            check(fs.ok("h2", "cat", "/a") == data, "it is read")
            fs.ok("h1", "append", "-", "/a", data=b"more")
            fs.ok("h2", "rm", "/a")
            fs.await_clean()
            said = text(fs.run("h1", "doctor").stdout)
            check(re.search(r"^wrong +clock .*the clock of lfs1 is \d+ s .*server's.*NTP", said, re.M), said)


def clocks_that_differ_by_more_than_rights_live_are_named():
    with System(2) as fs:
        fs.ok("h1", "put", "-", "/a", data=b"x" * 300_000)
        shift_clock(fs, "h2", 700)
        why = r"lfs1: .*expired \d+ s ago by the clock of this host.*clocks of this host .* differ.*pif doctor.*host h2"
        fs.fails("h1", 3, why, "cat", "/a")
        shift_clock(fs, "h2", 0)
        fs.await_up()
        check(fs.ok("h1", "cat", "/a") == b"x" * 300_000, "it is there")


def a_port_in_use_is_named_with_its_host():
    with System(2) as fs:
        fs.ok("h1", "down", FOLDER)
        other = fs.host("h2").start("python3", "-c", LISTEN.format(port=7401))
        check(other.stdout.readline() == b"ready\n", "it listens")
        fs.fails("h1", 3, r"h2.*7401.*in use", "up", FOLDER, lines=2)
        other.kill()
        fs.host("h2").run("pkill", "-x", "python3")
        check(fs.json("h1", "up", FOLDER)["started"] == 1, "only what was left is started")


def two_daemons_with_one_port_are_refused():
    with System(2) as fs:
        fs.ok("h1", "down", FOLDER)
        path = FOLDER + "/pif.toml"
        good = fs.host("h1").ok("cat", path)
        fs.host("h1").write(path, good.replace(b"port = 7401", b"port = 7400", 1))
        fs.fails("h1", 3, r"pif.toml.*7400", "up", FOLDER)
        fs.await_daemons(h1="", h2="")
        fs.host("h1").write(path, good)
        fs.ok("h1", "up", FOLDER)


def a_copied_root_that_is_started_on_another_host_is_refused():
    with System(2, clients=1) as fs:
        fs.ok("h1", "put", "-", "/a", data=b"x" * 300_000)
        copy = fs.host("h2").ok("tar", "-C", FOLDER, "-cf", "-", "lfs1")
        fs.host("h3").ok("tar", "-C", FOLDER, "-xf", "-", data=copy)
        path = FOLDER + "/pif.toml"
        toml = fs.host("h3").ok("cat", path)
        at = toml.index(b'host = "h2"', toml.index(b'name = "lfs1"'))
        moved = toml[:at] + b'host = "h3"' + toml[at + len(b'host = "h2"') :]
        fs.host("h3").write(path, moved)
        fs.host("h3").ok("pif", "host", "up", FOLDER)
        log = lambda: text(fs.host("h3").ok("cat", FOLDER + "/lfs1/lfs1.log"))
        await_condition(lambda: re.search(r"h2.*h3|h3.*h2", log()), "the second one is refused, with both hosts", 20)
        check(fs.states()["lfs1"] == "up", "the first one serves on")
        check(fs.ok("h3", "cat", "/a") == b"x" * 300_000, "it is there")
        fs.host("h3").ok("pif", "host", "down", FOLDER)
        fs.host("h3").write(path, toml)
        fs.ok("h1", "up", FOLDER)


def a_lost_disk_is_replaced_on_its_host():
    with System(2) as fs:
        fs.ok("h1", "put", "-", "/a", data=b"x" * 300_000)
        fs.host("h2").ok("pif", "host", "down", FOLDER)
        fs.host("h2").ok("rm", "-rf", FOLDER + "/lfs1")
        fs.fails("h1", 3, r"h2 \(h2\): .*lfs1.*pif node replace lfs1", "up", FOLDER, lines=2)
        fs.fails("h1", 2, "lfs1 is on host h2: run this there", "node", "replace", "lfs1")
        said = fs.run("h2", "node", "replace", "lfs1")
        check(said.returncode == 0 and b"1 file marked" in said.stderr, f"{said}")
        fs.ok("h1", "up", FOLDER)
        fs.await_up()
        same = {host.ok("cat", FOLDER + "/pif.toml") for host in fs.hosts}
        check(len(same) == 1, "all hosts know of the new root")
        fs.fails("h1", 3, "/a", "cat", "/a")
        fs.ok("h1", "put", "-", "/a", data=b"anew\n")
        check(fs.ok("h2", "cat", "/a") == b"anew\n", "it works as before")


TESTS = [
    clocks_that_differ_by_little_are_shown_and_harm_nobody,
    clocks_that_differ_by_more_than_rights_live_are_named,
    a_port_in_use_is_named_with_its_host,
    two_daemons_with_one_port_are_refused,
    a_copied_root_that_is_started_on_another_host_is_refused,
    a_lost_disk_is_replaced_on_its_host,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
