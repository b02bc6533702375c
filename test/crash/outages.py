"""An LFS loses its disk, or is away, in a file system whose files all have parity: they are read without it, written
without it, and it gets back all that it had, whatever strikes meanwhile."""

import os
import shutil
import time

import daemons
from pif_system import await_condition, check

KINDS = {"wiped": 40, "declared lost and wiped": 10, "away": 10, None: 40}  # None: nobody is lost in this round
STRUCK_SHARE = 0.5  # of rebuilds in which something is killed
WORK_SHARE = 0.6  # of outages in which clients write without the LFS
COMMAND_SECONDS = 120.0


class Outages:
    def __init__(self, rounds):
        self.rounds = rounds
        self.system = rounds.system
        self.rng = rounds.rng

    def strike(self):
        """One of the LFSs, or nobody. Returns when all are members again, and whole."""
        kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        if kind:
            name = self.rng.choice([name for name in self.system.daemons if name != "server"])
            self.lose(name, kind)
            self.read_without(name)
            self.bring_back(name, kind)
            self.system.verify()
            self.system.fsck()
        self.system.await_whole()

    def lose(self, name, kind):
        """What clients are at goes on meanwhile, or fails."""
        system, daemon = self.system, self.system.daemons[name]
        system.feed()
        daemon.kill()
        self.rounds.note(name, kind, system.under_way())
        if kind != "wiped":
            self.command("node", "lost", name)
        if kind != "away":
            empty(os.path.join(system.folder, name))
            self.command("node", "replace", name)
            self.adopt(daemon)
        self.await_clients()

    def adopt(self, daemon):
        """`pif node replace` has started it; from now on it is the test's own child."""
        pid = daemons.holder_of(os.path.join(self.system.folder, daemon.name))
        check(pid and daemons.kill_process(pid), f"{daemon.name} runs after it was replaced")
        self.rounds.note(daemon.name, "moment", ["rebuild"])
        self.start(daemon)

    def start(self, daemon):
        daemon.spawn()
        check(daemon.await_serving() is not None, f"{daemon.name} serves")

    def read_without(self, name):
        """In another way each time, and once more after writing."""
        self.system.dumper.stop()
        self.system.dumper.start()
        self.system.verify()
        if self.rng.random() < WORK_SHARE:
            self.system.feed()
            self.await_clients()
            self.system.verify()
        states = self.system.view_states()
        check(states[name] in ("lost", "rebuilding"), f"{name} was lost, and is {states[name]}")

    def bring_back(self, name, kind):
        if kind == "away":
            self.start(self.system.daemons[name])
        struck = self.rng.random() < STRUCK_SHARE
        deadline = time.monotonic() + COMMAND_SECONDS
        while True:
            process = self.system.start_pif("rebuild", "--json", name)
            if struck:
                self.rounds.work()
                self.system.verify()
            self.system.pump(lambda: process.poll() is not None, COMMAND_SECONDS)
            struck = struck and self.rng.random() < STRUCK_SHARE
            if self.is_back(name, process):
                return
            check(time.monotonic() < deadline, f"{name} is not rebuilt after {COMMAND_SECONDS} s")

    def is_back(self, name, process):
        out, err = process.communicate(timeout=COMMAND_SECONDS)
        check(process.returncode in (0, 2, 3), f"pif rebuild {name}: exit {process.returncode}: {out} {err}")
        if process.returncode == 3:  # something was away
            return False
        await_condition(lambda: self.system.view_states()[name] == "member", f"{name} is a member", COMMAND_SECONDS)
        return True

    def command(self, *words):
        process = self.system.start_pif(*words)
        done = self.system.pump(lambda: process.poll() is not None, COMMAND_SECONDS)
        check(done, f"pif {' '.join(words)} has not ended after {COMMAND_SECONDS} s")
        _, err = process.communicate()
        check(process.returncode == 0, f"pif {' '.join(words)}: exit {process.returncode}: {err}")

    def await_clients(self):
        check(
            self.system.pump(lambda: not self.system.busy(), COMMAND_SECONDS),
            f"still under way: {self.system.under_way()}",
        )


def empty(folder):
    """The folder itself stays: a disk may be mounted there."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
