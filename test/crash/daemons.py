"""The daemons of a file system as children of the test: started, killed, and asked whether they serve yet."""

import os
import signal
import socket
import struct
import subprocess
import threading
import time

from pif_system import Failure, check

# Hello, by hand: version 1, id 1, timeout 5000 ms, operation 10 without fields (docs/PROTOCOL.md).
HELLO = bytes.fromhex("08 01 10 01 18 88 27 52 00")
SERVING_SECONDS = 30.0

# What a daemon may be killed at: everything that changes something on a disk, and every answer.
SYSTEM_CALLS = [
    "fdatasync,fsync,sync_file_range,msync",
    "pwrite64,pwritev,write,writev",
    "openat",
    "renameat,renameat2,rename",
    "unlink,unlinkat",
    "ftruncate,fallocate",
    "sendmsg,sendto",
    "recvmsg",
]


class Injection:
    """SIGKILL when one of these system calls is made for the when-th time by a thread."""

    def __init__(self, calls, when):
        self.calls = calls
        self.when = when

    def words(self):
        return [
            "strace",
            "-D",
            "-f",
            "-qqq",
            "-o",
            "/dev/null",
            "-e",
            f"trace={self.calls}",
            "-e",
            f"inject={self.calls}:signal=KILL:when={self.when}",
        ]

    def __str__(self):
        return f"{self.calls.split(',')[0]}#{self.when}"


def random_injection(rng):
    calls = rng.choice(SYSTEM_CALLS)
    return Injection(calls, min(200, 1 + int(rng.expovariate(1 / 12))))


class Daemon:
    def __init__(self, name, words, socket_path, log_path):
        self.name = name
        self.words = words
        self.socket_path = socket_path
        self.log_path = log_path
        self.process = None
        self.injection = None  # under which it runs

    def spawn(self, injection=None):
        words = (injection.words() if injection else []) + self.words
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        self.injection = injection

    def is_dead(self):
        return self.process is None or self.process.poll() is not None

    def was_killed(self):
        return self.is_dead() and self.process is not None and self.process.returncode == -signal.SIGKILL

    def kill(self):
        """kill -9; returns when it is gone. False if it was gone already."""
        if self.is_dead():
            return False
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        return True

    def await_serving(self):
        """Seconds from now until it answers; nothing if it was killed meanwhile."""
        begin = time.monotonic()
        pause = threading.Event()
        while not self.answers():
            if self.is_dead():
                check(
                    self.was_killed(), f"{self.name} did not start: exit {self.process.returncode}: {self.last_line()}"
                )
                return None
            check(time.monotonic() - begin < SERVING_SECONDS, f"{self.name} does not serve after {SERVING_SECONDS} s")
            pause.wait(0.001)
        return time.monotonic() - begin

    def answers(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(SERVING_SECONDS)
            try:
                connection.connect(self.socket_path)
                connection.send(struct.pack("<I", len(HELLO)) + HELLO)
                return len(connection.recv(1 << 17)) > 0
            except (ConnectionError, FileNotFoundError, BrokenPipeError):
                return False
            except TimeoutError as timeout:
                raise Failure(f"{self.name} listens but does not answer") from timeout

    def workers(self):
        """Process ids of the workers that it has started."""
        found = []
        try:
            for task in os.listdir(f"/proc/{self.process.pid}/task"):
                with open(f"/proc/{self.process.pid}/task/{task}/children", encoding="ascii") as file:
                    found += [int(word) for word in file.read().split()]
        except OSError:
            pass  # it has ended
        return found

    def last_line(self):
        with open(self.log_path, "rb") as log:
            lines = log.read().splitlines()
        return lines[-1].decode(errors="replace") if lines else "it said nothing"


def holder_of(folder):
    """Process id of the daemon that runs there, whoever started it; None if none does."""
    try:
        with open(os.path.join(folder, "lock"), encoding="ascii") as file:
            pid = int(file.read().split()[0])
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return pid if os.path.dirname(folder).encode() in file.read() else None
    except (OSError, ValueError, IndexError):
        return None


def kill_process(pid):
    """kill -9; whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
