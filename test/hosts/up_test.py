"""pif init, up, down, status and host on several hosts, and what they say of hosts that are not as they should be."""

import re
import subprocess
import sys

from several import FOLDER, System, await_condition, check, text, why_not  # isort: skip
from hosts import Hosts
from pif_system import main


def a_file_system_is_made_started_stopped_and_started_again():
    with System(2, clients=1) as fs:
        fs.await_daemons(h1="lfs server", h2="lfs", h3="")
        check(fs.json("h1", "up", FOLDER)["started"] == 0, "it is up already")
        fs.ok("h1", "put", "-", "/a", data=b"a\n")
        for host in fs.names:
            check(fs.ok(host, "cat", "/a") == b"a\n", f"{host} reads it")
        check(fs.json("h3", "down", FOLDER)["hosts"][1]["stopped"] == ["lfs1"], "any host can stop it")
        fs.await_daemons(h1="", h2="", h3="")
        check(fs.json("h2", "up", FOLDER)["started"] == 3, "any host can start it")
        check(fs.ok("h3", "cat", "/a") == b"a\n", "it is there")
        same = {host.ok("cat", FOLDER + "/pif.toml") for host in fs.hosts}
        check(len(same) == 1 and b"edition = 2" in same.pop(), "pif.toml is the same on all hosts")
        check(fs.host("h2").ok("stat", "-c", "%a", FOLDER + "/keys/cluster.key") == b"400\n", "keys are secret")


def hosts_may_have_addresses_of_their_own():
    with Hosts(2) as hosts:
        env = dict(hosts.env, PIF=FOLDER)
        names = f"one={hosts[0].address6},two={hosts[1].address}"
        hosts[0].ok("pif", "init", "--hosts", names, "--lfs-per-host", "2", "--port", "9000", FOLDER)
        hosts[0].ok("pif", "up", FOLDER)
        hosts[1].ok("pif", "put", "-", "/a", data=b"a\n", env=env)
        check(hosts[0].ok("pif", "cat", "/a", env=env) == b"a\n", "it is read there")
        check(hosts[1].ok("cat", FOLDER + "/host") == b"two\n", "a host is told its name")


def status_shows_hosts():
    with System(2, clients=1) as fs:
        said = text(fs.ok("h3", "status"))
        for host, address, up in (("h1", "h1", "2 of 2"), ("h2", "h2", "1 of 1"), ("h3", "h3", "-")):
            check(re.search(rf"^{host} +{address} +{up}", said, re.M), f"a line for {host}: {said}")
        fs.host("h1").ok("pif", "host", "down", FOLDER)
        done = fs.run("h2", "status")
        check(done.returncode == 1, f"{done}")
        check(re.search(r"^h1 +server +down", text(done.stdout), re.M), f"{done}")
        check(re.search(r"^h2 +lfs1 +running", text(done.stdout), re.M), f"{done}")
        fs.host("h1").link(False)
        done = fs.run("h2", "status")
        check(re.search(r"^h1 +\? +", text(done.stdout), re.M), f"{done}")


def a_host_that_is_down_is_named_and_finished_later():
    with System(2) as fs:
        fs.ok("h1", "put", "-", "/a", data=b"a\n")
        fs.ok("h1", "down", FOLDER)
        fs.host("h2").power_off()
        fs.fails("h1", 3, r"h2 \(h2\): cannot be reached .*is it on", "up", FOLDER, lines=2)
        fs.await_daemons(h1="lfs server")
        fs.host("h2").power_on()
        check(fs.json("h1", "up", FOLDER)["started"] == 1, "the same command does what is left")
        check(fs.ok("h2", "cat", "/a") == b"a\n", "and it is there")


def a_new_file_system_that_was_half_made_is_finished():
    with Hosts(3) as hosts:
        hosts.env["PIF"] = FOLDER
        hosts[2].power_off()
        done = hosts[0].run("pif", "init", "--hosts", "h1,h2,h3", FOLDER)
        check(done.returncode == 3 and b"h3 (h3): cannot be reached" in done.stderr, f"{done}")
        done = hosts[0].run("pif", "up", FOLDER)
        check(done.returncode == 3 and hosts[0].processes("pif-lfs") == [], f"nothing is started: {done}")
        hosts[2].power_on()
        hosts[0].ok("pif", "up", FOLDER)
        check(hosts[2].processes("pif-lfs") == ["pif-lfs"], "it is up")


# What the remote shell says instead of running a command; what `pif up` must say of it.
REFUSALS = [
    ("ssh: connect to host h2 port 22: Connection refused", "cannot be reached .*Connection refused"),
    ("root@h2: Permission denied (publickey,password).", "wants a password or refuses the key .*let this user in"),
    ("Host key verification failed.", "is not known, or is another one"),
]


def what_a_remote_shell_refuses_is_explained():
    with System(2) as fs:
        for refusal, pattern in REFUSALS:
            fs.hosts.refuse = lambda address, command, said=refusal: said if address == "h2" else None
            fs.fails("h1", 3, rf"h2 \(h2\): {pattern}", "up", FOLDER, lines=2)
        fs.hosts.refuse = None
        shell = fs.host("h1")
        for name, line, pattern in (
            ("none", 'echo "{}"; echo "sh: 1: pif: not found" >&2; exit 127', "has no pif .*install it there"),
            ("older", 'echo "pif: there is no command \'host\'" >&2; exit 2', "has another release of pif"),
            ("dumb", "exit 0", "gave no answer"),
        ):
            shell.write(f"/srv/{name}", f"#!/bin/sh\n{line}\n".encode())
            fs.fails("h1", 3, rf"h2 \(h2\): {pattern}", "up", "--rsh", f"sh /srv/{name}", FOLDER, lines=2)
        shell.write("/srv/banner", b'#!/bin/sh\necho "Welcome!"; /mnt/nsrun "$@"; code=$?; echo "{bye}"; exit $code\n')
        fs.ok("h1", "up", "--rsh", "sh /srv/banner", FOLDER)


def names_that_are_no_hosts_are_refused():
    with Hosts(2) as hosts:
        for names, pattern in (
            ("h1,h1", "h1 is named twice"),
            ("h1,h2=h1", "h1 and h2 have one address"),
            ("h1,", '"" cannot be a host\'s name'),
            ("h1,a;b", "cannot be a host's name"),
            ("h1,a b", "cannot be a host's name"),
            ("h1,a\nb", "cannot be a host's name"),
            ("h1," + "a" * 300, "cannot be a host's name"),
            ("h1,x=-oProxyCommand", "the address of x"),
            ("h1,nowhere", "nowhere is not known here"),
            ("h2", "none of the hosts h2 has an address of this machine"),
        ):
            done = hosts[0].run("pif", "init", "--hosts", names, FOLDER)
            said = text(done.stderr)
            check(done.returncode == 2 and said.count("\n") == 1 and pattern in said, f"{names!r}: {said}")
            check(hosts[0].run("test", "-e", FOLDER).returncode == 1, f"{names!r}: nothing is made")


def another_file_system_in_the_folder_is_left_alone():
    with Hosts(2) as hosts:
        hosts[1].ok("pif", "up", "-n", "1", FOLDER)
        done = hosts[0].run("pif", "init", "--hosts", "h1,h2", FOLDER)
        check(done.returncode == 3 and b"h2 (h2): " in done.stderr and b"another file system" in done.stderr, f"{done}")
        check(hosts[1].processes("pif-server") == ["pif-server"], "it runs as before")


def a_full_disk_is_named():
    with Hosts(2) as hosts:
        hosts[1].run("sh", "-c", "cat /dev/zero >/srv/full")
        done = hosts[0].run("pif", "init", "--hosts", "h1,h2", FOLDER)
        check(done.returncode == 3 and re.search(rb"h2 \(h2\): .*No space left", done.stderr), f"{done}")
        hosts[1].ok("rm", "/srv/full")
        hosts[0].ok("pif", "up", FOLDER)


def an_older_pif_toml_is_brought_up_to_date_and_a_newer_one_is_not_replaced():
    with System(2) as fs:
        fs.ok("h1", "down", FOLDER)
        path = FOLDER + "/pif.toml"
        newer = fs.host("h1").ok("cat", path).replace(b"edition = 2", b"edition = 3")
        fs.host("h1").write(path, newer)
        newer_there = r"h1 \(h1\): .*pif.toml is newer, edition 3 and not 2: run pif up on this host"
        fs.fails("h2", 3, newer_there, "up", FOLDER, lines=2)
        fs.ok("h1", "up", FOLDER)
        check(fs.host("h2").ok("cat", path) == newer, "h2 has what h1 had")


def daemons_that_end_are_started_again_by_host_run():
    with System(2) as fs:
        fs.ok("h1", "host", "down", FOLDER)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with fs.host("h1").start("pif", "host", "run", FOLDER, **quiet) as run:
            try:
                fs.await_daemons(h1="lfs server")
                fs.fails("h1", 3, "somebody runs pif host run", "host", "run", FOLDER)
                fs.await_up()
                before = fs.json("h1", "host", "status", FOLDER)["daemons"]
                fs.host("h1").ok("sh", "-c", "kill -9 $(head -n 1 /srv/pif-fs/lfs0/lock)")

                def runs_again():
                    now = fs.json("h1", "host", "status", FOLDER)["daemons"]
                    return now[1]["pid"] not in (0, before[1]["pid"]) and now[0]["pid"] == before[0]["pid"]

                await_condition(runs_again, "another lfs0 runs, and the same server", 20)
                fs.ok("h1", "host", "down", FOLDER)
                check(run.wait(20) == 0, "what would start them again is stopped, too")
                fs.await_daemons(h1="")
            finally:
                run.kill()


def keys_travel_on_standard_input_alone():
    with Hosts(2) as hosts:
        commands = []
        hosts.refuse = lambda address, command: commands.append(command)
        hosts[0].ok("pif", "init", "--hosts", "h1,h2", FOLDER)
        hosts[0].ok("pif", "up", FOLDER)
        line = r"pif host (receive|up) /srv/pif-fs( --id [0-9a-f]{16} --edition \d+)? --json"
        check(len(commands) == 3 and all(re.fullmatch(line, command) for command in commands), f"{commands}")


def file_of(name, content=b"x"):
    """One file as a host is given it: field 12 of a HeartbeatReply (proto/server.proto)."""
    inner = bytes([0x0A, len(name)]) + name + bytes([0x12, len(content)]) + content
    return bytes([0x62, len(inner)]) + inner


def what_is_no_file_of_a_host_is_refused():
    with Hosts(1) as hosts:
        for files, pattern in (
            (b"", "are no files of a host"),
            (b"garbage\n", "are no files of a host"),
            (b"PIF host files 1, bytes: 9\nshort", "not all of them arrived"),
            (b"PIF host files 1, bytes: 2\n\xff\xff", "are damaged"),
            (b"PIF host files 1, bytes: %d\n" % len(file_of(b"../x")) + file_of(b"../x"), '"../x" is no file'),
            (b"PIF host files 1, bytes: %d\n" % len(file_of(b"pif.toml")) + file_of(b"pif.toml"), "no such file|host"),
        ):
            done = hosts[0].run("pif", "host", "receive", FOLDER, data=files)
            said = text(done.stderr)
            check(done.returncode in (2, 3) and re.search(pattern, said, re.I), f"{files!r}: {said}")
            check(hosts[0].run("test", "-e", FOLDER).returncode == 1, f"{files!r}: nothing is made")


TESTS = [
    keys_travel_on_standard_input_alone,
    what_is_no_file_of_a_host_is_refused,
    a_file_system_is_made_started_stopped_and_started_again,
    hosts_may_have_addresses_of_their_own,
    status_shows_hosts,
    a_host_that_is_down_is_named_and_finished_later,
    a_new_file_system_that_was_half_made_is_finished,
    what_a_remote_shell_refuses_is_explained,
    names_that_are_no_hosts_are_refused,
    another_file_system_in_the_folder_is_left_alone,
    a_full_disk_is_named,
    an_older_pif_toml_is_brought_up_to_date_and_a_newer_one_is_not_replaced,
    daemons_that_end_are_started_again_by_host_run,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
