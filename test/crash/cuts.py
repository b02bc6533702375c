"""Power cuts: of one node or of all at once, in the middle of work and of recovery, and what follows."""

import time

import rounds
from pif_system import check

ALL_SHARE = 0.5  # of cuts that take every node at once
RECOVERY_CUT_SHARE = 0.25  # of restarts in which the power fails again
COPY_SHARE = 0.25  # of rounds with a copy
RECOVERY_SECONDS = 0.03  # the moment of a cut within a restart


class Cuts(rounds.Rounds):
    """One round: work, a cut in the middle of it, the restart, and everything verified."""

    def work(self):
        system = self.system
        if self.rng.random() < COPY_SHARE:
            self.renew_origin()
            self.start_copy()
        begin = time.monotonic()
        system.feed()
        system.pump(lambda: False, self.rng.random() * self.batch_seconds)
        self.power_cut()
        check(system.pump(lambda: not system.busy(), 60.0), f"still under way: {system.under_way()}")
        self.learn_batch(begin)

    def power_cut(self):
        names = list(self.system.daemons)
        victims = names if self.rng.random() < ALL_SHARE else [self.rng.choice(names)]
        during = self.system.under_way()
        self.cut(victims)
        while self.rng.random() < RECOVERY_CUT_SHARE:
            self.note(name_of(victims), "cut", during)
            for name in victims:
                self.system.daemons[name].spawn()
            self.system.pump(lambda: False, self.rng.random() * RECOVERY_SECONDS)
            during = during + ["recovery"]
            self.cut(victims)
        self.note(name_of(victims), "cut", during, self.start(victims))

    def cut(self, victims):
        """The disks first: a daemon that learns of it must not say that anything was done."""
        system = self.system
        for name in victims:
            system.disks[name].cut()
        system.pump(lambda: False, self.rng.choice([0, 0.002]))
        for name in victims:
            system.daemons[name].kill()
        if system.copier.is_busy():
            system.copier.kill()
        for client in system.clients:  # those with descriptors are on the same machine
            if len(victims) > 1 or client.way == ["auto", "auto"]:
                client.kill()
                client.start()
        for name in victims:
            system.disks[name].replug()

    def start(self, victims):
        """Seconds until all of them serve."""
        begin = time.monotonic()
        for name in victims:
            self.system.daemons[name].spawn()
        for name in victims:
            check(self.system.daemons[name].await_serving() is not None, f"{name} serves")
        return time.monotonic() - begin


def name_of(victims):
    return "all nodes" if len(victims) > 1 else victims[0]
