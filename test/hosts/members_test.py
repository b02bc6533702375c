"""Hosts and LFSs that come and go, other users, and what pif doctor says of all hosts."""

import re
import sys

from several import FOLDER, System, await_condition, check, text, why_not  # isort: skip
from pif_system import main

ANN = ["setpriv", "--reuid", "1007", "--regid", "1007", "--clear-groups"]


def a_new_lfs_on_a_new_host_is_used():
    with System(2) as fs:
        fs.ok("h1", "put", "-", "/before", data=b"a\n")
        fs.hosts.add()
        fs.names.append("h3")
        fs.fails("h1", 3, r"h3 \(h3\): cannot make the folder /disk1/lfs", "node", "add", "h3:/disk1/lfs")
        fs.fails("h1", 2, "say HOST:ROOT", "node", "add", "h3")
        fs.ok("h1", "node", "add", "h3:/srv/new")
        check(fs.states() == {"lfs0": "up", "lfs1": "up", "lfs2": "up"}, f"{fs.states()}")
        fs.ok("h3", "put", "-", "/after", data=b"x" * 100000)
        check(b"lfs2" in fs.ok("h1", "locate", "/after"), "a new file uses it")
        check(fs.ok("h3", "cat", "/before") == b"a\n", "the new host reads what was there")
        fs.ok("h1", "down", FOLDER)
        check(fs.json("h3", "up", FOLDER)["started"] == 4, "it is part of it")
        check(fs.ok("h2", "cat", "/after") == b"x" * 100000, "as before")


def a_host_without_an_lfs_comes_and_goes():
    with System(1) as fs:
        fs.hosts.add()
        fs.names.append("h2")
        fs.ok("h1", "put", "-", "/a", data=b"a\n")
        fs.ok("h1", "host", "add", "h2")
        check(fs.ok("h2", "cat", "/a") == b"a\n", "it reads")
        fs.ok("h1", "host", "remove", "h2")
        check(b'"h2"' not in fs.host("h1").ok("cat", FOLDER + "/pif.toml"), "pif.toml has it no longer")
        check(fs.host("h1").run("test", "-e", FOLDER + "/keys/hosts/h2.pub").returncode == 1, "nor has keys")
        fs.fails("h1", 3, "has no host h2", "host", "remove", "h2")


def a_host_with_an_lfs_is_shut_out_only_on_request():
    with System(2) as fs:
        fs.fails("h1", 3, "h2 has lfs1, without which", "host", "remove", "h2")
        fs.fails("h2", 3, "h1 has the server, lfs0", "host", "remove", "h1")
        fs.ok("h1", "host", "remove", "--shut-out", "h2")
        fs.host("h2").ok("pif", "host", "down", FOLDER)
        fs.host("h2").run("pif", "host", "up", FOLDER)

        def is_refused():
            return re.search("refused", text(fs.host("h1").ok("cat", FOLDER + "/server/server.log")))

        await_condition(is_refused, "its LFS is refused, and the server's log says so", 20)
        fs.ok("h1", "host", "add", "h2")
        fs.ok("h1", "up", FOLDER)
        fs.await_up()


def another_user_comes_in_with_a_key_of_his_own():
    with System(2, clients=1) as fs:
        fs.ok("h1", "mkdir", "/ann")
        fs.ok("h1", "chown", "1007:1007", "/ann")
        home = "/srv/ann"
        fs.host("h3").ok("sh", "-c", f"mkdir -p {home} && chown 1007:1007 {home} && chmod 0755 /srv")
        env = dict(fs.hosts.env, HOME=home)
        done = fs.host("h3").run(*ANN, "pif", "ls", "/", env=env)
        check(done.returncode == 3 and b"pif user add" in done.stderr, f"{done}")
        key = fs.ok("h1", "user", "add", "--uid", "1007", "--gid", "1007", "ann")
        cluster = fs.json("h1", "user", "add", "--uid", "1008", "ben")["cluster"]
        path = f"{home}/.config/pif/keys/{cluster}.curve"
        line = f"umask 077; mkdir -p $(dirname {path}); cat >{path}; chown -R 1007 {home}"
        fs.host("h3").ok("sh", "-c", line, data=key)
        put = lambda: fs.host("h3").run(*ANN, "pif", "put", "-", "/ann/a", data=b"hers\n", env=env).returncode == 0
        await_condition(put, "she can write", 20)
        check(fs.ok("h1", "ls", "-l", "/ann").count(b"1007") == 2, "it is hers")
        done = fs.host("h3").run(*ANN, "pif", "put", "-", "/b", data=b"b", env=env)
        check(done.returncode == 3, "and no more than hers")


def doctor_looks_at_all_hosts():
    with System(2, clients=1) as fs:
        done = fs.run("h3", "doctor")
        said = text(done.stdout)
        check(re.search(r"^(ok|warning) .*h1: ", said, re.M) and re.search(r"^(ok|warning) .*h2: ", said, re.M), said)
        fs.host("h2").ok("pif", "host", "down", FOLDER)
        fs.host("h1").link(False)
        done = fs.run("h3", "doctor", "-q")
        said = text(done.stdout)
        check(done.returncode == 1 and re.search(r"^wrong .*h2: lfs1 is not running", said, re.M), said)
        check(re.search(r"^wrong .*h1 \(h1\): cannot be reached", said, re.M), said)


TESTS = [
    a_new_lfs_on_a_new_host_is_used,
    a_host_without_an_lfs_comes_and_goes,
    a_host_with_an_lfs_is_shut_out_only_on_request,
    another_user_comes_in_with_a_key_of_his_own,
    doctor_looks_at_all_hosts,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
