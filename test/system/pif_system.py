"""A file system of real processes in a folder of its own, for tests and scripts. Always stopped and removed."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

BIN = os.environ.get("PIF_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/bin"))


class Failure(Exception):
    """Something does not hold; its text says what."""


def check(condition, what):
    if not condition:
        raise Failure(what)


def await_condition(condition, what, seconds=30.0):
    """Asks until it holds; the value that did."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, f"after {seconds} s still not: {what}")
        pause.wait(0.005)


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha256(file)


def _sha256(file):
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def flip(path, at):
    """Changes one bit of the byte there; a second time, it is as it was."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x40]))


def private_environment(temp):
    """Of commands that find nothing of whoever runs the tests: what a user has of his own is in `temp`."""
    env = dict(
        os.environ,
        HOME=temp,
        XDG_CONFIG_HOME=os.path.join(temp, "config"),
        XDG_STATE_HOME=os.path.join(temp, "state"),
    )
    for name in ("PIF", "PIF_ROUTE", "PIF_DATA"):
        env.pop(name, None)
    return env


def run_pif(env, *words, data=None, timeout=120, cwd=None):
    """The command's end; its output in bytes."""
    return subprocess.run(
        [os.path.join(BIN, "pif"), *words],
        input=data if data is not None else b"",
        env=env,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=timeout,
        check=False,
    )


def files_below(folder, ending):
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.join(where, name) for name in names if name.endswith(ending)]
    return found


def command_lines():
    """(process id, words) of every process; one that has ended meanwhile is left out."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                yield int(pid), file.read().decode(errors="replace").split("\0")


def end_of(path, lines):
    """The last lines of a log that may not be there."""
    with contextlib.suppress(OSError):
        with open(path, errors="replace") as log:
            return log.read().splitlines()[-lines:]
    return []


def check_failure(done, words, code, pattern, lines=1):
    """That a command failed like this: exit code, and so many lines on stderr, one of which matches."""
    text = done.stderr.decode(errors="replace")
    check(done.returncode == code, f"pif {' '.join(words)}: exit {done.returncode} instead of {code}: {text}")
    check(text.count("\n") == lines, f"pif {' '.join(words)}: stderr is not {lines} lines: {text!r}")
    check(re.search(pattern, text), f"pif {' '.join(words)}: {text!r} does not match {pattern!r}")


class Running:
    """What all file systems of tests have in common. One has begin(), close() and run(), which runs a command; if run()
    wants to know more than its words, that comes before these, here too."""

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *ignored):
        self.close()

    def ok(self, *words, **options):
        """stdout of a command that must succeed."""
        done = self.run(*words, **options)
        said = done.stderr.decode(errors="replace")
        check(done.returncode == 0, f"pif {' '.join(words)}: exit {done.returncode}: {said}")
        return done.stdout

    def json(self, *words, **options):
        return json.loads(self.ok(*words, "--json", **options))

    def await_settled(self, *where, seconds, pending=True):
        """fsck finds no damage, and nothing that is still to be removed; pending: nor files that nobody finishes."""

        def settled():
            done = self.run(*where, "fsck", "--json", timeout=300)
            check(done.returncode in (0, 1), f"fsck: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
            report = json.loads(done.stdout)
            check(report["damages"] == 0, f"fsck found damage: {report['findings'][:5]}")
            left = report["leftovers"] + report["doomed"] + (report["pending"] if pending else 0)
            aside = sum("catalogue does not know" in finding["text"] for finding in report["findings"])  # for a day
            return report if left == aside else None

        return await_condition(settled, "nothing pending, doomed or left over", seconds)


class FileSystem(Running):
    """`with FileSystem(n) as fs:` has a running file system of n LFSs."""

    def __init__(self, count, up_options=(), where=None, folder="fs"):
        self.count = count
        self.up_options = list(up_options)
        self.temp = tempfile.mkdtemp(prefix="pif-system-", dir=where)
        self.folder = os.path.join(self.temp, folder)
        self.env = dict(private_environment(self.temp), PIF=self.folder)

    def begin(self):
        self.ok("up", "-n", str(self.count), *self.up_options, self.folder)

    def close(self):
        if os.path.exists(os.path.join(self.folder, "pif.toml")):
            self.run("down", self.folder)
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        if sys.exc_info()[0] is not None:
            self.show_logs()
        shutil.rmtree(self.temp, ignore_errors=True)
        check(not left or sys.exc_info()[0] is not None, f"processes were left running: {left}")

    def show_logs(self):
        for name in ["server"] + [f"lfs{i}" for i in range(self.count)]:
            if lines := end_of(os.path.join(self.folder, name, name + ".log"), 15):
                print(f"--- end of {name}.log", *lines, sep="\n", file=sys.stderr)

    def local(self, name):
        return os.path.join(self.temp, name)

    # ---- processes ----

    def processes(self):
        """Daemons of this file system, found by their command lines."""
        def is_of_it(words):
            return any(self.folder in word for word in words[1:])

        programs = ("pif-server", "pif-lfs")
        return [pid for pid, words in command_lines() if os.path.basename(words[0]) in programs and is_of_it(words)]

    def pid_of(self, daemon):
        with open(os.path.join(self.folder, daemon, "lock")) as file:
            return int(file.read().split()[0])

    def kill(self, daemon):
        """kill -9 of "server" or "lfs0"; returns when it is gone."""
        pid = self.pid_of(daemon)
        os.kill(pid, signal.SIGKILL)
        await_condition(lambda: pid not in self.processes(), f"{daemon} is gone", 10)

    def view_states(self):
        """{name of an LFS: "member", "lost" ...}, in order."""
        return {node["name"]: node["view_state"] for node in self.json("status")["nodes"]}

    def declare_lost(self, lfs, *options):
        """Of one that was killed; this waits for the end of its lease. The server may be quicker."""
        done = self.run("node", "lost", *options, lfs)
        state = self.view_states()[lfs]
        check(state == "lost", f"{lfs} is {state}: {done.stderr.decode(errors='replace')}")

    def bring_back(self, lfs):
        """Starts what does not run; returns when this one takes part again."""
        self.ok("up", self.folder)
        await_condition(lambda: self.view_states()[lfs] == "member", f"{lfs} is a member", 60)
        # LFSs learn of it with their next heartbeat; one that has not would not ask it.
        await_condition(self.have_one_view, "all LFSs know of it", 60)

    def have_one_view(self):
        views = {daemon["view"] for daemon in self.json("status")["daemons"] if daemon["node"] != "server"}
        return len(views) == 1

    def stored_files(self, lfs, ending=".dat"):
        """Files of rows, parity or the like on its disk that have bytes, longest first."""
        found = files_below(os.path.join(self.folder, lfs, "data"), ending)
        found = [path for path in found if os.path.getsize(path) > 0]
        return sorted(found, key=lambda path: (-os.path.getsize(path), path))

    # ---- commands ----

    def command(self, *words):
        return [os.path.join(BIN, "pif"), *words]

    def start(self, *words, **options):
        return subprocess.Popen(
            self.command(*words), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    def run(self, *words, env=None, **options):
        return run_pif(env or self.env, *words, **options)

    def crash_client(self, operation):
        """What the crash client (test/crash/client.cc) says of one operation: "1 ok\n", or why it failed."""
        return subprocess.run(
            [os.environ["PIF_CRASH_CLIENT"], self.folder],
            input=f"1 {operation}\n".encode(),
            stdout=subprocess.PIPE,
            timeout=30,
            check=True,
        ).stdout.decode()

    def fails(self, code, pattern, *words, **options):
        """A command that must fail like this: exit code, and one line on stderr that matches."""
        check_failure(self.run(*words, **options), words, code, pattern)

    # ---- what must hold ----

    def content(self, path):
        return self.ok("cat", path)

    def await_clean(self, seconds=150):
        """What crashes left is removed in time; then fsck must have nothing to say."""
        return self.await_settled(seconds=seconds)


def main(tests, names=()):
    """Runs functions one after another, or only those with these names; the process's exit code."""
    failed = 0
    for test in [test for test in tests if not names or test.__name__ in names]:
        begin = time.monotonic()
        try:
            test()
            print(f"ok    {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Exception as error:  # every test's failure is reported, whatever it was
            failed += 1
            print(f"FAIL  {test.__name__}: {type(error).__name__}: {error}", flush=True)
    return 1 if failed else 0


def main_on(fs, tests, names=()):
    """As main(), of tests that share one file system: when one fails, its logs are shown."""
    code = main(tests, names)
    if code:
        fs.show_logs()
    return code
