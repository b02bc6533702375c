"""The log of a long test, one JSON document a line: what is in it counts, so that the test goes on where it was."""

import collections
import json
import os


class Journal:
    def __init__(self, path):
        self.path = path
        self.file = None
        self.lines = []
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.lines = [json.loads(line) for line in file if line.endswith("\n")]
        if path:
            self.file = open(path, "a", encoding="utf-8")

    def add(self, **what):
        self.lines.append(what)
        if self.file:
            self.file.write(json.dumps(what) + "\n")
            self.file.flush()

    def crashes(self):
        return [line for line in self.lines if "victim" in line]

    def failures(self):
        return [line for line in self.lines if "failure" in line]

    def totals(self):
        """Text for people: how often what was ended, in the middle of what, and how long it took to serve again."""
        crashes = self.crashes()
        victims = collections.Counter(line["victim"] for line in crashes)
        how = collections.Counter(line["how"].split(" ")[0] for line in crashes)
        during = collections.Counter(word for line in crashes for word in set(line["during"]))
        recoveries = sorted(line["recovery_s"] for line in crashes if line.get("recovery_s") is not None)
        text = f"{len(crashes)} in all: {listing(victims)}\nhow: {listing(how)}\nin the middle of: {listing(during)}\n"
        if recoveries:
            text += (
                f"from start to serving: p50 {1000 * percentile(recoveries, 50):.0f} ms,"
                f" p99 {1000 * percentile(recoveries, 99):.0f} ms, longest {1000 * recoveries[-1]:.0f} ms"
                f" ({len(recoveries)} recoveries)\n"
            )
        rounds = [line for line in self.lines if "acknowledged" in line]
        acknowledged = sum(line["acknowledged"] for line in rounds)
        return text + (
            f"{acknowledged} acknowledged operations verified in {len(rounds)} rounds,"
            f" {len(self.failures())} rounds in which something did not hold"
        )


def listing(counter):
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def percentile(ordered, percent):
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
