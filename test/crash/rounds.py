"""The frame of a round, whatever strikes in it: work, and everything verified."""

import time

import outages

RENEW_SHARE = 0.2  # of copies whose source is written anew before
BATCH_SECONDS_MAX = 0.3
STINTS = 4  # of work in a round, where the rest of the round takes long: with bevies
SCRUB_SHARE = 0.3  # of stints, with bevies


class Rounds:
    """Subclasses say in work() what is under way, and what happens to it."""

    def __init__(self, system, journal):
        self.system = system
        self.journal = journal
        self.rng = system.rng
        self.outages = outages.Outages(self) if system.bevy else None
        self.batch_seconds = 0.1  # how long the clients' operations of a round take; moments are drawn from it

    def round(self):
        before = self.acknowledged()
        for _ in range(STINTS if self.outages else 1):
            self.stint()
        self.system.fsck()
        if self.outages:
            self.outages.strike()
        self.journal.add(acknowledged=self.acknowledged() - before)

    def stint(self):
        scrub = None
        if self.outages and self.rng.random() < SCRUB_SHARE:
            scrub = self.system.start_pif("scrub", "--json")
        self.work()
        self.system.verify()
        if scrub:
            self.system.end_scrub(scrub)

    def work(self):
        raise NotImplementedError

    def acknowledged(self):
        return sum(client.acknowledged for client in self.system.clients)

    def renew_origin(self):
        """Now and then, before a copy."""
        if self.rng.random() < RENEW_SHARE:
            self.system.renew_origin()

    def start_copy(self):
        lfss = self.system.options.lfs
        self.system.copier.start(lfss if self.system.bevy else self.rng.randrange(1, lfss + 1))

    def learn_batch(self, begin):
        """Of a batch that was begun then and has ended: the mean moves a little."""
        self.batch_seconds += 0.05 * (min(BATCH_SECONDS_MAX, time.monotonic() - begin) - self.batch_seconds)

    def note(self, victim, how, during, recovery=None):
        self.journal.add(
            victim=victim, how=how, during=during, recovery_s=None if recovery is None else round(recovery, 4)
        )
