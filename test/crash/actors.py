"""Those who work while things are killed: clients with a folder each, and a copier."""

import collections
import os
import re
import signal
import subprocess

import oracle
from pif_system import Failure, check

LENGTHS = [0, 24, 100, 984, 5000]  # of records; 0: variable
RECORDS_MAX = 40
NAMES = 4
# How a client may reach the daemons. ipc is rare: who is gone there shows after 5 s of silence only.
FAST_WAYS = [["auto", "auto"], ["auto", "messages"]]
WAYS = FAST_WAYS * 10 + [["ipc", "messages"]]

# An operation that met a crash may fail like this. Anything else is a wrong answer.
CRASH_CODES = {"unavailable", "timed-out", "retry", "cancelled", "io-error", "read-only", "old-view", "outcome-unknown"}
# These only where the operation needs what an LFS lost because it died: a component being written, an open append.
RECORD_OPERATIONS = {"put", "append", "log", "overwrite", "dump"}
STATE_CODES = {"not-found", "stale-file", "busy", "bad-capability"}


class Client:
    """One process of test/crash/client.cc, with a folder of its own; nobody else writes there."""

    def __init__(self, name, words, env, rng, ways=WAYS, has_parity=False):
        self.name = name
        self.folder = "/" + name
        self.words = words
        self.env = env
        self.rng = rng
        self.oracle = oracle.Oracle(has_parity)
        self.strange = set()  # tags of files with an append that came to lie behind a late one
        self.process = None
        self.ways = ways
        self.has_parity = has_parity  # its files: overwriting is refused, and all LFSs are needed
        self.way = []  # it takes to the daemons now: route, and how records travel
        self.buffer = b""
        self.under_way = collections.deque()  # (number, operation), in the order asked
        self.acknowledged = 0
        self.failures = collections.Counter()
        self.lines = []  # of a dump under way

    # ---- the process ----

    def start(self):
        """Each time it may reach the daemons in another way."""
        self.way = self.rng.choice(self.ways)
        self.process = subprocess.Popen(
            self.words + self.way,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env,
            start_new_session=True,
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.buffer = b""

    def kill(self):
        """What it was at is not acknowledged; what it had not begun was not done."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        self.read_all()
        at = self.under_way.popleft() if self.under_way else None
        if at:
            self.doubt(at)
        self.under_way.clear()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        return at

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired as still:
            self.process.kill()
            raise Failure(f"client {self.name} does not end") from still
        self.process.stdout.close()
        self.process.stderr.close()

    # ---- asking ----

    def ask(self, entries):
        """entries: (number, operation, line). A failure before does not count any more."""
        text = "go\n" + "".join(f"{number} {line}\n" for number, _, line in entries)
        self.under_way.extend((number, operation) for number, operation, _ in entries)
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except BrokenPipeError as broken:
            raise Failure(f"client {self.name} died: {self.last_words()}") from broken

    def is_busy(self):
        return bool(self.under_way)

    def fileno(self):
        return self.process.stdout.fileno()

    def read_all(self):
        """Takes the answers that are there."""
        while True:
            try:
                block = os.read(self.process.stdout.fileno(), 1 << 16)
            except BlockingIOError:
                break
            if not block:
                break
            self.buffer += block
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            self.take(line.decode(errors="replace"))
        if self.process.poll() not in (None, -signal.SIGKILL):
            raise Failure(f"client {self.name} died: {self.last_words()}")

    def take(self, line):
        words = line.split(" ", 3)
        if words[0] in ("file", "folder"):
            self.lines.append(line)
            return
        number, operation = self.under_way.popleft()
        check(int(words[0]) == number, f"client {self.name} answers {line!r} instead of {number}")
        if words[1] == "ok":
            self.acknowledge((number, operation))
        elif words[1] == "fail":
            self.failed((number, operation), words[2], line)

    def failed(self, entry, code, line):
        self.failures[code] += 1
        late = re.search(r"appended at record (\d+)", line)
        if late and self.oracle.is_late(*entry[1][1:3], int(late.group(1))):
            tag = self.oracle.latest()[entry[1][1]][0]
            self.strange.add(tag)
            self.oracle.forget(tag)
            return
        check(code in CRASH_CODES | STATE_CODES, f"client {self.name}: {entry[1]}: {line}")
        if code in STATE_CODES:
            check(entry[1][0] in RECORD_OPERATIONS, f"client {self.name}: {entry[1]}: {line}")
        self.doubt(entry)

    def acknowledge(self, entry):
        number, operation = entry
        self.acknowledged += 1
        if operation[0] == "log":
            operation[1].acknowledged(number, operation[2])
        elif operation[0] != "dump":
            self.oracle.acknowledged(operation)

    def doubt(self, entry):
        number, operation = entry
        if operation[0] == "log":
            operation[1].unknown(number, operation[2])
        elif operation[0] != "dump":
            self.oracle.unknown(operation)

    def last_words(self):
        self.process.wait(10)
        return self.process.stderr.read().decode(errors="replace")

    # ---- what to do ----

    def batch(self, count, next_number, log):
        """`count` operations that all are possible if all are done."""
        world, entries = self.oracle.latest(), []
        for _ in range(count):
            number = next_number()
            if log and self.rng.random() < 0.2:
                records = self.rng.randrange(1, 7)
                entries.append((number, ("log", log[1], records), f"log {log[0]} {log[1].tag} {records}"))
                continue
            operation, line = self.choose(world, number)
            world = oracle.apply(world, operation)
            entries.append((number, operation, line))
        return entries

    def choose(self, world, number):
        weights = [3, 6, 0, 2, 1] if self.has_parity else [3, 3, 4, 2, 1]
        kind = self.rng.choices(["put", "append", "overwrite", "rename", "remove"], weights)[0]
        if not world or (kind == "put" and len(world) < NAMES * 2):
            return self.put(number)
        path = self.rng.choice(sorted(world))
        tag, _, generations = world[path]
        if kind == "rename":
            to = self.name_of(self.rng.randrange(NAMES))
            if to != path:
                return ("rename", path, to), f"rename {path} {to}"
        if kind == "remove":
            return ("remove", path), f"remove {path}"
        if kind == "overwrite" and generations:
            first = self.rng.randrange(len(generations))
            count = self.rng.randrange(1, len(generations) - first + 1)
            return ("overwrite", path, first, count, number), f"overwrite {path} {tag} {first} {count}"
        if kind == "append" and len(generations) < 4 * RECORDS_MAX:
            first, count = len(generations), self.rng.randrange(1, 12)
            return ("append", path, first, count, number), f"append {path} {tag} {first} {count}"
        return self.put(number)

    def name_of(self, index):
        return f"{self.folder}/f{index}"

    def put(self, number):
        path = self.name_of(self.rng.randrange(NAMES))
        length, records = self.rng.choice(LENGTHS), self.rng.randrange(RECORDS_MAX)
        width = 0 if self.has_parity else self.rng.randrange(4)
        return ("put", path, number, length, records), f"put {path} {number} {length} {records} {width}"


def parse_dump(lines):
    """({path: (length, runs)}, folders) of what a dump printed."""
    files, folders = {}, set()
    for line in lines:
        kind, path, *rest = line.split(" ")
        if kind == "folder":
            folders.add(path)
        else:
            files[path] = (int(rest[0]), [tuple(map(int, run.split(":"))) for run in rest[1:]])
    return files, folders


class Copier:
    """pif-copy, time and again, from one file to names beside it."""

    folder = "/copies"

    def __init__(self, program, env, rng):
        self.program = program
        self.env = env
        self.rng = rng
        self.oracle = oracle.Oracle()
        self.process = None
        self.operation = None
        self.outcomes = collections.Counter()

    def start(self, width):
        target = f"{self.folder}/c{self.rng.randrange(3)}"
        self.operation = ("copy", f"{self.folder}/origin", target)
        self.process = subprocess.Popen(
            [self.program, "--width", str(width), *self.operation[1:]],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def is_busy(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)

    def finish(self):
        """Once it is not busy: what it did counts."""
        if self.process is None:
            return
        _, text = self.process.communicate(timeout=60)
        code, text = self.process.returncode, text.decode(errors="replace")
        self.process = None
        self.outcomes[code] += 1
        check(code in (0, 3, -signal.SIGKILL), f"pif-copy: exit {code}: {text}")
        if code == 0:
            self.oracle.acknowledged(self.operation)
            return
        check(code != 3 or text.count("\n") == 1, f"pif-copy: not one line on stderr: {text!r}")
        self.oracle.unknown(self.operation)
