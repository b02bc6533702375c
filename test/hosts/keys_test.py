"""pif key rotate on several hosts: what goes on, what is refused then, and hosts that were off meanwhile."""

import json
import re
import sys

from several import FOLDER, System, await_condition, check, text, why_not  # isort: skip
from pif_system import main

KEY = FOLDER + "/keys/cluster.key"
MB = 1_000_000


def key_of(fs, host):
    return fs.host(host).ok("head", "-c", "32", KEY)


def log_of(fs, host, name):
    return text(fs.host(host).ok("cat", f"{FOLDER}/{name}"))


def clients_go_on_while_the_key_is_changed():
    with System(3, clients=1) as fs:
        data = b"x" * (4 * MB)
        before = key_of(fs, "h1")
        put = fs.host("h4").start("pif", "put", "-", "/a", stdin=-1)
        put.stdin.write(data[:MB])
        put.stdin.flush()
        said = json.loads(fs.ok("h2", "key", "rotate", "--json"))
        check(said["number"] == 1 and 590 <= said["old_key_seconds"] <= 600, f"{said}")
        _, error = put.communicate(data[MB:], timeout=60)
        check(put.returncode == 0, text(error))
        keys = {key_of(fs, host) for host in fs.names}
        check(len(keys) == 1 and before not in keys, "all hosts have the same new key")
        check(fs.host("h3").ok("stat", "-c", "%a", KEY) == b"400\n", "it is secret")
        check(fs.ok("h4", "cat", "/a") == data, "it reads")
        fs.ok("h4", "cp", "/a", "/b")
        fs.ok("h3", "rm", "/a")
        fs.await_clean(seconds=30)
        check(set(fs.states().values()) == {"up"}, "no LFS was refused")
        fs.ok("h1", "down", FOLDER)
        fs.ok("h1", "up", FOLDER)
        fs.await_up()
        check(fs.ok("h4", "cat", "/b") == data, "after a start, too")


def a_host_that_was_off_gets_the_key_later():
    with System(3) as fs:
        fs.host("h3").power_off()
        before = key_of(fs, "h1")
        fs.fails("h1", 3, r"h3.*pif key rotate", "key", "rotate", lines=2)
        check(key_of(fs, "h1") == before, "nothing is refused: the new key does not sign yet")
        fs.host("h3").power_on()
        fs.ok("h1", "up", FOLDER)  # goes on
        check(key_of(fs, "h1") != before, "the change has ended")
        check(len({key_of(fs, host) for host in fs.names}) == 1, "on all hosts")
        fs.await_up()


def a_host_with_an_old_key_is_refused_until_pif_up():
    with System(2) as fs:
        fs.host("h2").ok("cp", "-p", KEY, "/srv/old.key")
        fs.ok("h1", "put", "-", "/a", data=b"a\n")
        fs.ok("h1", "key", "rotate", "--old-good-for", "3")
        fs.host("h2").ok("pif", "host", "down", FOLDER)
        fs.host("h2").ok("cp", "-p", "/srv/old.key", KEY)  # as if it had been off
        fs.host("h2").ok("pif", "host", "up", FOLDER)

        def is_said():
            log = log_of(fs, "h1", "server/server.log")
            return re.search(r"refused what lfs1 on host h2 asks: .*not one this cluster issued", log)

        await_condition(is_said, "the old key is refused, and the server's log says so", 20)
        await_condition(lambda: fs.states()["lfs1"] != "up", "the server does not hear it", 20)
        fs.fails("h2", 3, r"h1.*keys/cluster.key is newer.*run pif up on this host", "up", FOLDER, lines=2)
        fs.ok("h1", "up", FOLDER)
        fs.await_up()
        check(fs.ok("h2", "cat", "/a") == b"a\n", "it is there")


TESTS = [
    clients_go_on_while_the_key_is_changed,
    a_host_that_was_off_gets_the_key_later,
    a_host_with_an_old_key_is_refused_until_pif_up,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
