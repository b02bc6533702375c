"""What people do with files, from every host of a file system: with an LFS, with the server, with neither."""

import re
import sys

from several import FOLDER, System, await_condition, check, text, why_not  # isort: skip
from pif_system import main

LOG = FOLDER + "/server/server.log"
LINES = b"".join(b"%08d %s\n" % (i * 7919 % 100000, b"x" * (i % 90)) for i in range(20000))


def put_get_append_copy_and_remove_from_every_host():
    with System(2, lfss_per_host=2, clients=1) as fs:
        for host in fs.names:
            fs.host(host).write("/srv/lines", LINES)
            fs.ok(host, "put", "--lines", "/srv/lines", f"/{host}")
            for other in fs.names:
                check(fs.ok(other, "cat", f"/{host}") == LINES, f"{other} reads what {host} put")
            fs.ok(host, "append", "-", f"/{host}", data=b"one more\n")
            fs.ok(host, "get", f"/{host}", "/srv/back")
            check(fs.host(host).ok("cat", "/srv/back") == LINES + b"one more\n", f"{host} gets it")
            fs.ok(host, "cp", f"/{host}", f"/{host}.copy")
            check(fs.ok("h1", "cat", f"/{host}.copy") == LINES + b"one more\n", "the copy is equal")
        check(fs.run("h2", "fsck").returncode == 0, "all is well")
        for host in fs.names:
            fs.ok(host, "rm", f"/{host}", f"/{host}.copy")
        await_condition(lambda: fs.components() == 0, "the components are gone on all hosts", 5)
        fs.await_clean(seconds=10)


def a_strangers_key_is_refused_and_the_log_says_so():
    with System(2, clients=1) as fs:
        fs.ok("h1", "put", "-", "/a", data=b"a\n")
        keys = FOLDER + "/keys"
        fs.host("h3").ok("sh", "-c", f"rm -f {keys}/client.curve; pif init --curve -n 1 /srv/other")
        fs.host("h3").ok("cp", "/srv/other/keys/client.curve", keys + "/client.curve")
        done = fs.run("h3", "cat", "/a", timeout=60)
        check(done.returncode == 3 and done.stdout == b"", f"{done}")

        def log_says_it():
            return re.search("10.77.0.3.*refused|refused.*10.77.0.3", text(fs.host("h1").ok("cat", LOG)))

        await_condition(log_says_it, "the server's log says who was refused", 10)


TESTS = [
    put_get_append_copy_and_remove_from_every_host,
    a_strangers_key_is_refused_and_the_log_says_so,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
