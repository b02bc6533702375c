#!/usr/bin/env python3
"""Daemons of one file system on several hosts: by tcp, with a key pair for each host. The hosts are folders of this
machine with loopback addresses of their own; test/hosts has them in namespaces."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from pif_system import BIN, await_condition, check, main
from several_hosts import SeveralHosts, curve_pair, write

DATA = bytes(i * 7 % 251 for i in range(300_000))
FS = None


def a_file_is_put_and_read_from_every_host():
    for host in FS.hosts:
        FS.ok(host, "put", "-", f"/from-{host}", data=DATA)
    for host in FS.hosts:
        for other in FS.hosts:
            check(FS.ok(host, "get", f"/from-{other}", "-") == DATA, f"{host} reads what {other} has put")
            check(
                FS.ok(host, "--route", "tcp", "get", f"/from-{other}", "-") == DATA,
                f"{host} reads it by tcp, too",
            )


def components_of_a_removed_file_are_gone_on_all_hosts():
    before = {lfs: len(FS.stored_files(lfs)) for lfs, _, _ in FS.lfss}
    FS.ok(FS.hosts[-1], "put", "-", "/short-lived", data=DATA)
    for lfs, _, _ in FS.lfss:
        check(len(FS.stored_files(lfs)) > before[lfs], f"{lfs} has a part of it")
    FS.ok(FS.hosts[-1], "rm", "/short-lived")
    for lfs, _, _ in FS.lfss:
        await_condition(lambda lfs=lfs: len(FS.stored_files(lfs)) == before[lfs], f"its part on {lfs} is gone", 5)


def lfss_read_each_other_s_rows():
    FS.ok(FS.hosts[0], "put", "--bevy", "2", "-", "/with-parity", data=DATA)
    check(FS.ok(FS.hosts[0], "get", "/with-parity", "-") == DATA, "a file with parity, gathered between hosts")


def what_is_backed_up_on_one_host_is_restored_from_another():
    first, last = FS.hosts[0], FS.hosts[-1]
    FS.ok(first, "put", "-", "/kept", data=DATA)
    folder = os.path.join(FS.temp, "backup")
    FS.ok(first, "backup", "/kept", folder)
    names = sorted(f"{lfs}.tar.zst" for lfs, _, _ in FS.lfss)
    check(sorted(os.listdir(folder)) == names + ["names.tar.zst"], "each LFS has written its own")
    FS.ok(last, "restore", "--verify", folder)
    FS.ok(last, "restore", "--into", "/back", "--width", "3", folder)
    check(FS.ok(first, "get", "/back/kept", "-") == DATA, "byte for byte")
    for host in FS.hosts:
        inside = os.path.join(FS.folder(host), "keys")
        check(b"name another folder" in FS.run(first, "backup", "/kept", inside).stderr, f"keys of {host}")


def settings_reach_every_host():
    first, last = FS.hosts[0], FS.hosts[-1]

    def has_format(number):
        return all(f"format = {number}\n".encode() in FS.bytes_of(host, "pif.toml") for host in FS.hosts)

    check(b"run this command there" in FS.run(last, "config", "set", "grants", "none").stderr, "not here")
    FS.ok(first, "config", "set", "--rsh", "false", "grants", "none")
    await_condition(lambda: has_format(4), "all hosts have it", 10)
    done = FS.run(last, "backup", "/kept", os.path.join(FS.temp, "never"))
    check(done.returncode == 3 and b'grants = "none"' in done.stderr, f"every LFS heeds it: {done}")
    FS.ok(first, "config", "set", "--rsh", "false", "grants", "any")
    await_condition(lambda: has_format(3), "all hosts have it", 10)


def a_server_that_starts_again_is_found_by_all():
    first = FS.hosts[0]
    FS.stop(first, "server", signal.SIGKILL)
    FS.start(first, "server")
    FS.await_up()
    FS.ok(FS.hosts[-1], "put", "-", "/after", data=DATA)
    check(FS.ok(first, "get", "/after", "-") == DATA, "as before")


def a_stranger_is_refused_and_logged():
    host = FS.hosts[-1]
    stranger = curve_pair()
    own = os.path.join(FS.temp, "config/pif/keys")
    os.makedirs(own)
    path = os.path.join(own, "00c0ffee00c0ffee.curve")
    write(path, f"public {stranger[0]}\nsecret {stranger[1]}\n", 0o400)
    try:
        done = FS.run(host, "ls", "/")
    finally:
        os.unlink(path)
    check(done.returncode == 3, f"a key that nobody knows is refused: {done.stderr.decode(errors='replace')}")
    log = FS.log(FS.hosts[0], "server")
    check(f"127.0.0.1 was refused: its key {stranger[0]}" in log, f"the server's log names address and key: {log}")


def a_host_whose_key_is_removed_is_shut_out():
    first, last = FS.hosts[0], FS.hosts[-1]
    path = os.path.join(FS.folder(first), f"keys/hosts/{last}.pub")
    with open(path, encoding="ascii") as file:
        key = file.read()
    os.unlink(path)
    lfs = FS.lfss[-1][0]
    line = f"{lfs} (node {len(FS.lfss)}) is down"
    await_condition(lambda: line in FS.log(first, "server"), f"{lfs} is not heard", 20)
    write(path, key, 0o444)
    FS.await_up()


def who_does_not_answer_is_named_with_its_host():
    first, last = FS.hosts[0], FS.hosts[-1]
    FS.ok(first, "put", "-", "/read-later", data=DATA)
    for host, daemon in ((last, FS.lfss[-1][0]), (first, "server")):
        process = FS.running[host, daemon]
        process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        done = FS.run(first, "--route", "tcp", "get", "/read-later", "-")
        took = time.monotonic() - begun
        process.send_signal(signal.SIGCONT)
        said = done.stderr.decode(errors="replace")
        check(done.returncode == 3 and f"(on host {host})" in said and said.count("\n") == 1, said)
        check(took < 11, f"it took {took:.1f} s to say that {daemon} does not answer")
    FS.await_up()


def a_newer_description_reaches_all_hosts():
    first, last = FS.hosts[0], FS.hosts[-1]
    added, gone = "keys/clients/alice.pub", "keys/clients/bob.pub"
    pair = curve_pair()
    write(os.path.join(FS.folder(last), gone), f"{pair[0]} 7 7\n", 0o400)
    write(os.path.join(FS.folder(first), added), f"{pair[0]} 8 8\n", 0o400)
    FS.describe("ready", edition=2, hosts=[first])

    def same(name):
        return FS.bytes_of(first, name) == FS.bytes_of(last, name) != b""

    await_condition(lambda: same("pif.toml"), "the other host has edition 2", 10)
    check(same(added), "with the new key")
    check(not os.path.exists(os.path.join(FS.folder(last), gone)), "without the one that the server's host has not")
    there = [lfs for lfs, host, _ in FS.lfss if host == last]
    await_condition(lambda: any("takes edition 2" in FS.log(last, lfs) for lfs in there), "an LFS there says so", 10)


def daemon_says(program, *words):
    """What a daemon that must not start says: one line of its log."""
    done = subprocess.run(
        [os.path.join(BIN, program), *words],
        env=FS.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=20,
        check=False,
    )
    said = done.stderr.decode(errors="replace")
    check(done.returncode == 3 and said.count("\n") == 1, f"{program} {words}: exit {done.returncode}: {said}")
    return said


def a_daemon_of_another_host_does_not_start():
    last = FS.hosts[-1]
    said = daemon_says("pif-lfs", "run", "--cluster", FS.folder(last), FS.lfss[0][0])
    check(f"runs on host {FS.hosts[0]}, and this is host {last}" in said, said)
    said = daemon_says("pif-server", "run", FS.folder(last))
    check(f"runs on host {FS.hosts[0]}, and this is host {last}" in said, said)


def a_port_in_use_is_one_line():
    lfs, host, port = FS.lfss[-1]
    FS.stop(host, lfs)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((FS.address[host], port))
        other.listen()
        said = daemon_says("pif-lfs", "run", "--cluster", FS.folder(host), lfs)
    check(f"host {host}" in said and f"{FS.address[host]}:{port}: the port is in use" in said, said)
    FS.start(host, lfs)
    FS.await_up()


def a_copied_root_on_another_machine_is_refused():
    lfs, host, _ = FS.lfss[-1]
    FS.stop(host, lfs)
    copy = os.path.join(FS.temp, "copy", "pif")
    shutil.copytree(
        FS.folder(host), copy, ignore=lambda _, names: [name for name in names if name in ("run", "lock")]
    )
    with open(os.path.join(copy, "pif.toml"), encoding="ascii") as file:
        text = file.read()
    net = FS.address[host].rsplit(".", 1)[0]
    text = text.replace(FS.folder(host), copy).replace(FS.address[host], net + ".77")
    write(os.path.join(copy, "pif.toml"), text, 0o644)
    FS.start(host, lfs)
    FS.await_up()
    log_path = FS.log_path(host, "twin")
    with open(log_path, "wb") as log:
        twin = subprocess.Popen(
            [os.path.join(BIN, "pif-lfs"), "run", "--cluster", copy, lfs], env=FS.env, stdout=log, stderr=log
        )
    try:
        await_condition(lambda: "runs already" in FS.log(host, "twin"), "the copy is told", 10)
        await_condition(lambda: "runs already" in FS.log(FS.hosts[0], "server"), "it is logged", 10)
        FS.ok(host, "put", "-", "/beside-a-copy", data=DATA)
        check(FS.up() == len(FS.lfss), "all go on")
    finally:
        twin.terminate()
        twin.wait(20)


def run_all():
    global FS
    tests = [
        a_file_is_put_and_read_from_every_host,
        components_of_a_removed_file_are_gone_on_all_hosts,
        lfss_read_each_other_s_rows,
        what_is_backed_up_on_one_host_is_restored_from_another,
        a_server_that_starts_again_is_found_by_all,
        a_stranger_is_refused_and_logged,
        a_host_whose_key_is_removed_is_shut_out,
        who_does_not_answer_is_named_with_its_host,
        a_newer_description_reaches_all_hosts,
        settings_reach_every_host,
        a_daemon_of_another_host_does_not_start,
        a_port_in_use_is_one_line,
        a_copied_root_on_another_machine_is_refused,
    ]
    with SeveralHosts(["h1", "h2"], 2) as FS:
        return main(tests)


if __name__ == "__main__":
    sys.exit(run_all())
