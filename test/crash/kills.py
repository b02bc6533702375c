"""kill -9: of whom, when, and what follows."""

import time

import daemons
import rounds
from pif_system import check

RECOVERY_KILL_SHARE = 0.2  # of recoveries that are killed at some moment
RECOVERY_CALL_SHARE = 0.1  # at some call
CALL_SHARE = 0.3  # of rounds in which a daemon dies at some call
COPY_SHARE = 0.2  # of rounds with a copy
COPY_SECONDS = 0.08  # the moment of a controller's end is within so long
WORKER_SECONDS = 3.0  # a worker is awaited for so long
WORKER_MOMENT_SECONDS = 0.02


class Kills(rounds.Rounds):
    """One round: work, kills in the middle of it, restarts, and everything verified."""

    def work(self):
        system = self.system
        victim = self.choose_victim()
        copying = victim in ("worker", "controller") or self.rng.random() < COPY_SHARE
        if copying:
            self.renew_origin()
        if self.rng.random() < CALL_SHARE:
            victim = None
            self.inject()
        if copying:
            self.start_copy()
        system.feed()
        begin = time.monotonic()
        self.kill_one(victim)
        for _ in range(20):  # one that is under an injection may die until the work is done
            system.pump(lambda: not system.busy() or self.fallen(), 60.0)
            if not self.fallen():
                break
            self.raise_fallen(system.under_way())
        self.learn_batch(begin)
        self.end_injections()

    def inject(self):
        """A daemon is started anew, to die at some call of the work that comes."""
        daemon = self.rng.choice(list(self.system.daemons.values()))
        daemon.kill()
        daemon.spawn(daemons.random_injection(self.rng))
        serving = daemon.await_serving()
        self.note(daemon.name, "moment", [])
        if serving is None:
            self.raise_daemon(daemon, f"call {daemon.injection}", ["recovery"])

    def choose_victim(self):
        lfss = [name for name in self.system.daemons if name != "server"]
        victims = ["server", self.rng.choice(lfss), "client", "worker", "controller"]
        return self.rng.choices(victims, [30, 40, 15, 9, 6])[0]

    def kill_one(self, victim):
        system = self.system
        if victim == "worker":
            return self.kill_worker()
        span = COPY_SECONDS if victim == "controller" else self.batch_seconds
        system.pump(self.fallen, self.rng.random() * span)
        during = system.under_way()
        victims = self.with_others(victim)
        dead = [daemon for name, daemon in system.daemons.items() if name in victims and daemon.kill()]
        if victim == "client":
            client = self.rng.choice(system.clients)
            client.kill()
            client.start()
            self.note(victim, "moment", during)
        elif victim == "controller":
            if system.copier.is_busy():
                system.copier.kill()
                self.note(victim, "moment", during)
        for daemon in dead:
            self.raise_daemon(daemon, "moment", during)

    def with_others(self, victim):
        """Now and then several die at the same moment."""
        if victim is None:
            return set()
        others = self.rng.choices([0, 1, 2, len(self.system.daemons)], [60, 20, 15, 5])[0]
        return {victim, *self.rng.sample(sorted(self.system.daemons), min(others, len(self.system.daemons)))}

    def kill_worker(self):
        system = self.system
        deadline = time.monotonic() + WORKER_SECONDS
        while system.copier.is_busy() and time.monotonic() < deadline:
            workers = [pid for name, daemon in system.daemons.items() if name != "server" for pid in daemon.workers()]
            if workers:
                system.pump(lambda: not system.copier.is_busy(), self.rng.random() * WORKER_MOMENT_SECONDS)
                if daemons.kill_process(self.rng.choice(workers)):
                    self.note("worker", "moment", system.under_way())
                return
            system.pump(lambda: not system.copier.is_busy(), 0.002)

    # ---- daemons that fell ----

    def fallen(self):
        return [daemon for daemon in self.system.daemons.values() if daemon.is_dead()]

    def raise_fallen(self, during):
        for daemon in self.fallen():
            check(
                daemon.was_killed() and daemon.injection,
                f"{daemon.name} ended: {daemon.process.returncode}: {daemon.last_line()}",
            )
            self.raise_daemon(daemon, f"call {daemon.injection}", during)

    def raise_daemon(self, daemon, how, during):
        """Starts it again, and kills it now and then while it starts."""
        while True:
            injection = daemons.random_injection(self.rng) if self.rng.random() < RECOVERY_CALL_SHARE else None
            interrupted = injection is None and self.rng.random() < RECOVERY_KILL_SHARE
            begin = time.monotonic()
            daemon.spawn(injection)
            if interrupted:
                self.note(daemon.name, how, during)
                self.system.pump(lambda: False, self.rng.random() * 0.03)
                daemon.kill()
                how, during = "moment", during + ["recovery"]
                continue
            serving = daemon.await_serving()
            measured = None if injection or serving is None else time.monotonic() - begin
            self.note(daemon.name, how, during, measured)
            if serving is not None:
                return
            how, during = f"call {injection}", during + ["recovery"]

    def end_injections(self):
        """Who has survived its injection is killed plainly."""
        for daemon in self.system.daemons.values():
            while daemon.injection:
                daemon.kill()
                self.raise_daemon(daemon, "moment", [])
