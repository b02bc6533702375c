"""What scripts/disk-cycles does: one file system of eight LFSs, and cycles until there are enough."""

import argparse
import json
import os
import random
import sys
import time

import cycles
import disks
from contents import Contents
from pif_system import Failure, FileSystem, check

LFSS = 8
ON_OWN_DISKS = ("lfs1", "lfs6")


class EightLfss(FileSystem):
    """Some of its roots may be disks of their own, which fail when asked to."""

    def __init__(self, where):
        super().__init__(LFSS, ("--bevy", "4"), where)
        self.own_disks = {}

    def begin(self):
        super().begin()
        if not disks.why_not():
            self.own_disks = cycles.move_roots_to_own_disks(self, ON_OWN_DISKS)

    def close(self):
        self.run("down", self.folder)
        for pid in self.processes():
            os.kill(pid, 9)
        for disk in self.own_disks.values():
            disk.close()
        super().close()


def parse(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=20, help="in all, those in --log included")
    parser.add_argument("--kind", help="only cycles of this kind")
    parser.add_argument("--each", action="store_true", help="one cycle of each kind instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", help="JSON lines; cycles that it has already are not run again")
    parser.add_argument("--where", type=os.path.abspath, help="folder for the file system")
    return parser.parse_args()


def done_before(log):
    if not log or not os.path.exists(log):
        return 0
    with open(log, encoding="utf-8") as lines:
        return sum(json.loads(line)["cycles"] for line in lines)


def wanted(options, tried, count):
    """Kinds of the cycles that are to be run; None: any."""
    if options.each:
        return sorted(tried.kinds)
    return [options.kind] * count


def run(options):
    before = done_before(options.log)
    begin = time.monotonic()
    rng = random.Random(options.seed + before)
    with EightLfss(options.where) as fs:
        tried = cycles.Cycles(fs, Contents(fs, rng), rng, fs.own_disks)
        check(not options.kind or options.kind in tried.kinds, f"there is no kind {options.kind}: {list(tried.kinds)}")
        try:
            for kind in wanted(options, tried, options.cycles - before):
                tried.cycle(kind)
        finally:
            report(options, tried, time.monotonic() - begin)


def report(options, tried, seconds):
    total = sum(tried.counts.values())
    print(f"{total} cycles in {seconds:.0f} s: {dict(tried.counts)}", flush=True)
    if options.log and total:
        with open(options.log, "a", encoding="utf-8") as lines:
            lines.write(json.dumps({"cycles": total, "kinds": tried.counts, "seed": options.seed}) + "\n")


def main(description):
    try:
        run(parse(description))
    except Failure as failure:
        print(f"disk-cycles: {failure}", file=sys.stderr)
        return 3
    return 0
