#!/usr/bin/env python3
"""Hosts that are reached by ssh itself: Debian's sshd, in a folder of its own, on each host of hosts.py.

  test/hosts/ssh.py [--where FOLDER] [TEST...]     all tests, or these

The machine gets no sshd: apt-get fetches the packages into FOLDER (default build/long/sshd), where dpkg-deb unpacks
them; a second run finds them there. Users, keys and the daemon are inside the hosts' namespaces.
Exit code: 0, 1 if something does not hold, 77 if this machine cannot have them (it says why).
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from several import FOLDER, System, await_condition, check, text, timed, why_not  # isort: skip
from pif_system import Failure, main

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PACKAGES = ("openssh-server", "libwrap0")
SECONDS = {4: 3.0, 16: 8.0}  # that starting so many hosts may take, and stopping them
WHERE = os.path.join(ROOT, "build", "long", "sshd")
PROGRAMS = "/mnt/bin:/usr/bin:/bin"

CONFIG = """
HostKey /mnt/ssh/host_key
UsePAM no
PidFile none
"""
USERS = {
    "passwd": "root:x:0:0:root:/srv/home:/bin/sh\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n",
    "shadow": "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n",
}


def fetch():
    """Why there is no sshd, or nothing. It is in WHERE then."""
    if os.path.exists(os.path.join(WHERE, "usr/sbin/sshd")):
        return ""
    for program in ("apt-get", "dpkg-deb", "ssh", "ssh-keygen"):
        if not shutil.which(program):
            return f"there is no {program}"
    os.makedirs(os.path.dirname(WHERE), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(WHERE)) as folder:
        words = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", *PACKAGES]
        done = subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return f"apt-get download {' '.join(PACKAGES)}: {done.stderr.strip()}"
        image = os.path.join(folder, "image")
        for name in [name for name in os.listdir(folder) if name.endswith(".deb")]:
            subprocess.run(["dpkg-deb", "-x", os.path.join(folder, name), image], check=True)
        os.rename(image, WHERE)
    return ""


class SshSystem(System):
    """A System whose remote shell is ssh. Nothing is made or started yet."""

    def __init__(self, count, **options):
        super().__init__(count, **options)
        del self.hosts.env["PIF_RSH"]
        self.sshds = {}
        self.folder_of_all = f"/proc/{self.hosts.world.pid}/root/mnt/ssh"
        try:
            self.make_keys()
            for host in self.hosts:
                self.let_in(host)
        except BaseException:
            self.close()
            raise

    def begin(self):
        pass

    def close(self):
        for daemon in self.sshds.values():
            daemon.kill()
            daemon.wait()
        super().close()

    def make_keys(self):
        os.mkdir(self.folder_of_all, 0o755)
        shutil.copytree(WHERE, self.folder_of_all + "/image")
        for name in ("user_key", "host_key", "other_key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder_of_all}/{name}"]
            subprocess.run(words, check=True)
        for name, lines in USERS.items():
            self.write(name, lines)

    def write(self, name, lines):
        """A file of /mnt/ssh, which all hosts have."""
        with open(f"{self.folder_of_all}/{name}", "w", encoding="utf-8") as file:
            file.write(lines)

    def read(self, name):
        with open(f"{self.folder_of_all}/{name}", encoding="utf-8") as file:
            return file.read()

    def let_in(self, host, key="host_key"):
        """Its sshd runs, and it knows those of all others by this key."""
        host.ok("sh", "-c", "for f in passwd shadow; do mount --bind /mnt/ssh/$f /etc/$f; done; mkdir /run/sshd")
        host.ok("mkdir", "-p", "-m", "0700", "/srv/home/.ssh")
        self.know(host, key)
        host.write("/srv/home/.ssh/authorized_keys", self.read("user_key.pub").encode())
        host.write("/srv/home/.ssh/config", b"IdentityFile /mnt/ssh/user_key\n")
        self.serve(host)

    def know(self, host, key):
        host.write("/srv/home/.ssh/known_hosts", f"* {self.read(key + '.pub')}".encode())

    def serve(self, host, more="", programs=PROGRAMS):
        """Its sshd is started, or anew with more lines in its configuration."""
        self.refuse(host)
        name = f"config.{host.name}"
        self.write(name, f"{CONFIG}SetEnv PATH={programs}\n{more}")
        image = "/mnt/ssh/image"
        env = dict(self.hosts.env, LD_LIBRARY_PATH=f"{image}/lib/x86_64-linux-gnu:{image}/usr/lib/x86_64-linux-gnu")
        words = [f"{image}/usr/sbin/sshd", "-D", "-e", "-f", f"/mnt/ssh/{name}"]
        with open(host.path("/srv/sshd.log"), "ab") as log:
            self.sshds[host.name] = host.start(*words, env=env, stdout=log, stderr=log)

        def answers():
            check(self.sshds[host.name].poll() is None, f"sshd: {text(host.ok('cat', '/srv/sshd.log'))}")
            return host.run("ssh-keyscan", "-t", "ed25519", host.name).stdout != b""

        await_condition(answers, f"sshd of {host.name} answers")

    def refuse(self, host):
        """It has no sshd any more. nsenter's child has a number of its own in there."""
        if host.name in self.sshds:
            host.run("sh", "-c", 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" != sshd ] || kill ${p#/proc/}; done')
            self.sshds.pop(host.name).wait(20)


def start_and_stop(count):
    load = os.getloadavg()[0]
    with SshSystem(count, disk="200M") as fs:
        seconds, _ = timed(fs.host("h1").ok, "ssh", "h2", "true")
        print(f"one ssh {seconds:.2f} s; the machine's load was {load:.1f}", flush=True)
        for words in (fs.init_words, ["up", FOLDER], ["down", FOLDER], ["up", FOLDER]):
            seconds, _ = timed(fs.ok, "h1", *words)
            print(f"{words[0]} of {count} hosts over ssh: {seconds:.2f} s", flush=True)
            check(words[0] == "init" or seconds <= SECONDS[count], f"{words[0]} took {seconds:.1f} s")
        fs.await_up()
        fs.ok(f"h{count}", "put", "-", "/a", data=b"a\n")
        check(fs.ok("h2", "cat", "/a") == b"a\n", "it works")


def four_hosts_start_and_stop_over_ssh():
    start_and_stop(4)


def sixteen_hosts_start_and_stop_over_ssh():
    start_and_stop(16)


@contextlib.contextmanager
def running(count):
    with SshSystem(count, disk="200M") as fs:
        fs.ok("h1", *fs.init_words)
        fs.ok("h1", "up", FOLDER)
        yield fs


OLDER = b"#!/bin/sh\necho \"pif: there is no command '$1': see pif help\" >&2\nexit 2\n"
PASSWORD = "PubkeyAuthentication no\nPasswordAuthentication yes\n"


def a_host_that_ssh_does_not_open_is_named_with_what_to_do():
    with running(3) as fs:
        h1, h2 = fs.host("h1"), fs.host("h2")
        h2.write("/srv/pif-of-old", OLDER)
        h2.ok("sh", "-c", "mkdir /srv/old && install -m 0755 /srv/pif-of-old /srv/old/pif")
        refused = r"cannot be reached \(.*Connection refused.*\): is it on"
        by_password = r"wants a password or refuses the key \(.*Permission denied.*\): let this user in by key"
        for change, pattern in (
            (lambda: fs.refuse(h2), refused),
            (lambda: fs.serve(h2, PASSWORD), by_password),
            (lambda: fs.serve(h2, "DenyUsers root\n"), by_password),
            (lambda: fs.serve(h2, programs="/usr/bin:/bin"), "has no pif .*: install it there, and try: ssh h2"),
            (lambda: fs.serve(h2, programs="/srv/old:/usr/bin:/bin"), "has another release of pif .*: install the one"),
            (lambda: fs.serve(h2, "ForceCommand internal-sftp\n"), "gave no answer.*: try: ssh h2 pif host"),
            (lambda: (fs.serve(h2), fs.know(h1, "other_key")), "is not known, or is another one .*: look at its key"),
        ):
            change()
            for command in ("up", "down"):
                left = r"h3 \(h3\)" if "another one" in pattern else None  # that h1 knows no other host either
                fs.fails("h1", 3, rf"h2 \(h2\): {pattern}", command, FOLDER, lines=3 if left else 2)
        fs.know(h1, "host_key")
        fs.ok("h1", "up", FOLDER)
        fs.await_up()


def what_a_login_prints_does_no_harm():
    with SshSystem(2, disk="200M") as fs:
        h2 = fs.host("h2")
        h2.write("/srv/banner", b"Welcome!\npassword: {not asked}\n")
        h2.write("/srv/home/.ssh/rc", b"echo '{\"daemons\": []}' ; echo hello; echo hello >&2\n")
        fs.serve(h2, "Banner /srv/banner\n")
        fs.ok("h1", *fs.init_words)
        fs.ok("h1", "up", FOLDER)
        check(fs.json("h1", "up", FOLDER)["started"] == 0, "all are up")
        fs.serve(h2, "Banner /srv/banner\n", programs="/usr/bin:/bin")
        fs.fails("h1", 3, r"h2 \(h2\): has no pif", "up", FOLDER, lines=2)
        fs.serve(h2, "Banner /srv/banner\n" + PASSWORD)
        fs.fails("h1", 3, r"h2 \(h2\): wants a password", "up", FOLDER, lines=2)


def fill(host, folder):
    host.run("sh", "-c", f"cat /dev/zero >{folder}/full")


def a_full_disk_is_named_and_tmp_is_not_needed():
    with SshSystem(2, disk="100M") as fs:
        h2 = fs.host("h2")
        fill(h2, "/tmp")
        fill(h2, "/srv")
        fs.fails("h1", 3, r"h2 \(h2\): .*No space left", *fs.init_words, lines=2)
        h2.ok("rm", "/srv/full")
        fs.ok("h1", "up", FOLDER)
        fs.ok("h2", "put", "--lines", "-", "/a", data=b"b\na\n")
        fs.ok("h1", "sort", "/a", "/b")
        check(fs.ok("h2", "cat", "/b") == b"a\nb\n", "workers do not need /tmp")
        fs.ok("h1", "down", FOLDER)
        fill(h2, "/srv")
        fs.fails("h1", 3, r"h2 \(h2\): lfs1 did not start: .*No space left on device \(log: ", "up", FOLDER, lines=2)


def a_name_that_is_no_host_goes_to_no_shell():
    with SshSystem(2, disk="100M") as fs:
        for name in ("a;touch /srv/x", "a b", "a\nb", "a" * 300, "-oProxyCommand=x", "$(x)"):
            fs.fails("h1", 2, "cannot be a host's name", "init", "--hosts", f"h1,{name}", FOLDER)
            fs.fails("h1", 2, "the address of x", "init", "--hosts", f"h1,x={name}", FOLDER)
        fs.ok("h1", *fs.init_words)
        fs.ok("h1", "up", FOLDER)
        for name in ("a;touch /srv/x", "a b", "a\nb", "a" * 300, "$(x)"):
            fs.fails("h1", 2, "cannot be a host's name|say HOST:ROOT", "host", "add", name)
            fs.fails("h1", 2, "cannot be a host's name|say HOST:ROOT", "node", "add", f"{name}:/srv/new")
        check(fs.host("h1").run("test", "-e", "/srv/x").returncode == 1, "nothing was run")


TESTS = [
    four_hosts_start_and_stop_over_ssh,
    sixteen_hosts_start_and_stop_over_ssh,
    a_host_that_ssh_does_not_open_is_named_with_what_to_do,
    what_a_login_prints_does_no_harm,
    a_full_disk_is_named_and_tmp_is_not_needed,
    a_name_that_is_no_host_goes_to_no_shell,
]


def run():
    global WHERE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", default=WHERE)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    WHERE = os.path.abspath(options.where)
    if reason := why_not() or fetch():
        print(f"skipped: {reason}")
        return 77
    return main(TESTS, options.tests)


if __name__ == "__main__":
    sys.exit(run())
